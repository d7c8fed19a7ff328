"""Pieces that read shares of a file make the matrix that the whole of it makes, or its error."""

import gzip
import itertools
import threading

import numpy as np
import pytest
from ranks import on_grids
from samples import sampled

import lagpu
from lagpu import backends, io
from lagpu.errors import FileFormatError, FileMissing, InvalidValue, LagpuError, OutOfMemory
from lagpu.host import memory
from lagpu.io import edge_list, reading, slices

N, LINES = 40, 300
GRIDS = ["grid:1:cpu", "grid:3:cpu", "grid:2x3:cpu", "grid:3-degree:cpu"]
RNG = np.random.default_rng(1)
U, V, W = RNG.integers(0, N, LINES), RNG.integers(0, N, LINES), RNG.integers(-3, 9, LINES)
BANNER = "%%MatrixMarket matrix coordinate "


def rows(*columns, end="\n", shift=0):
    ends = [np.asarray(x) + shift for x in columns[:2]]
    return "".join(" ".join(map(str, row)) + end for row in zip(*ends, *columns[2:], strict=True))


def lower(*columns):
    i, j, *values = columns
    return rows(np.maximum(i, j), np.minimum(i, j), *values, shift=1)


def commas(*columns, top="", mark=",", end="\n"):
    return top + rows(*columns, end=end).replace(" ", mark)


APART = U != V
FILES = {
    "plain.txt": rows(U, V),
    "weights.txt": rows(U, V, W),
    "real at the end.txt": rows(U, V, [*W[:250], *(W[250:] + 0.5)]),
    "comments.txt": "# Undirected graph\n# Nodes: 50 Edges: 3\n" + rows(U, V, end="\n\n# x\n"),
    "header.txt": f"{N} {LINES}\n" + rows(U, V),
    "mark.txt": "\ufeff" + rows(U, V),
    "no end.el": rows(U, V).rstrip("\n"),
    "windows.wel": rows(U, V, W, end="\r\n"),
    "table.csv": commas(U, V, top="source,target\n"),
    "no header.csv": commas(U, V),
    "comments on top.csv": commas(U, V, W, top="# c\n\nsource,target,weight\n"),
    "columns.csv": commas(W, V, U, U / 2, top="id,to,from,weight\n"),
    "real at the end.tsv": commas(U, V, [*W[:250], *(W[250:] + 0.5)], mark="\t"),
    "windows.csv": commas(U, V, W, mark="; ", end="\r\n", top="\ufeffsrc; dst; w\r\n"),
    "blank lines.csv": commas(U, V, end="\n\n").rstrip(),
    "whole.mtx": f"{BANNER}integer general\n% c\n{N} {N} {LINES}\n" + rows(U, V, W, shift=1),
    "wide.mtx": f"{BANNER}pattern general\n{N} {N + 9} {LINES}\n" + rows(U, V, shift=1),
    "symmetric.mtx": f"{BANNER}real symmetric\n{N} {N} {LINES}\n" + lower(U, V, W / 4),
    "pattern.mtx": f"{BANNER}pattern symmetric\n{N} {N} {LINES}\n" + lower(U, V),
    "skew.mtx": f"{BANNER}integer skew-symmetric\n{N} {N} {APART.sum()}\n"
    + lower(U[APART], V[APART], W[APART]),
    "hermitian.mtx": f"{BANNER}integer hermitian\n{N} {N} {LINES}\n" + lower(U, V, W),
}
FAULTS = {
    "word.txt": ("# c\n" + rows(U[:200], V[:200]) + "1 x\n" + rows(U, V), "line 202: '1 x' is not"),
    "width.txt": (rows(U[:200], V[:200]) + rows(U, V, W), "line 201: .* has 3 numbers, not 2"),
    "first.txt": ("1 2 3\n" + rows(U, V), "line 2: .* has 2 numbers, not 3"),
    "from one.txt": (f"{N} {LINES}\n" + rows(U, V, shift=1), "looks like a header of vertices 1"),
    "few.mtx": (f"{BANNER}pattern general\n{N} {N} 301\n" + rows(U, V, shift=1), "says 301 en"),
    "outside.mtx": (f"{BANNER}pattern general\n{N} {N} 301\n" + rows(U, V, shift=1) + "1 41\n",
                    "line 303: .* is outside .* the shape in the header"),
    "real.mtx": (f"{BANNER}integer general\n{N} {N} 300\n" + rows(U, V, [*W[1:], 0.5], shift=1),
                 "line 302: a real number in a file of the field integer"),
}  # fmt: skip
OPTIONS = {
    "as it is": {},
    "undirected": {"directed": False},
    "an edge on top": {"header": False},
    "the first": {"dup_op": "first"},
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Have files of a few lines read in shares, a few lines at a time."""
    monkeypatch.setattr(slices, "HEAD", 80)
    monkeypatch.setattr(reading, "PIECE", 200)
    monkeypatch.setattr(slices, "_BLOCK", 3)
    monkeypatch.setattr(slices, "_ENTRIES", 7)


def written(tmp_path, name, text, packed=False):
    path = tmp_path / (name + (".gz" if packed else ""))
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    return path


def outcome(path, backend, **options):
    """Return all of the matrix, or the class of its error."""
    try:
        A = io.read(path, backend=backend, **options)
    except LagpuError as error:
        return type(error)
    return outcome_of(A)


def outcome_of(A):
    return A.dtype, A.shape, A.is_symmetric, [x.tolist() for x in A.to_coo()]


def whole_is_not_read(monkeypatch):
    monkeypatch.setattr(lagpu.io.files, "_parse", None)


@pytest.mark.parametrize(
    ("name", "options", "packed", "grid"),
    sampled(
        [
            (name, options, packed, grid)
            for name in FILES
            for options in OPTIONS
            for packed in (False, True)
            for grid in GRIDS
        ],
        7,
    ),
)
def test_as_the_whole(tmp_path, monkeypatch, name, options, packed, grid):
    path = written(tmp_path, name, FILES[name], packed)
    wanted = outcome(path, "cpu", **OPTIONS[options])
    if wanted is FileFormatError:  # a table's header that shall be an edge
        assert (options, path.suffixes[0]) == ("an edge on top", ".csv")
    elif path.suffixes[0] not in (".csv", ".tsv"):  # tables are read whole
        whole_is_not_read(monkeypatch)
    assert outcome(path, grid, **OPTIONS[options]) == wanted


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FAULTS)
def test_the_line_at_fault_is_named(tmp_path, monkeypatch, name, packed):
    text, message = FAULTS[name]
    path = written(tmp_path, name, text, packed)
    assert outcome(path, "cpu") is FileFormatError
    whole_is_not_read(monkeypatch)
    with pytest.raises(FileFormatError, match=message):
        io.read(path, backend="grid:3:cpu")


@pytest.mark.parametrize("options", [{}, {"directed": False}])
@pytest.mark.parametrize("name", ["plain.txt", "wide.mtx", "weights.txt", "pattern.mtx"])
def test_archives(tmp_path, monkeypatch, name, options):
    A = io.read(written(tmp_path, name, FILES[name]), backend="cpu")
    io.write(A, tmp_path / "a.npz")
    wanted = outcome(tmp_path / "a.npz", "cpu", **options)
    whole_is_not_read(monkeypatch)
    for grid in GRIDS:
        assert outcome(tmp_path / "a.npz", grid, **options) == wanted


@pytest.mark.parametrize("entries", [0, 3, 6])
def test_column_pointers_that_fall_anywhere(tmp_path, entries):
    """At the end of a share too, where no entry may show it."""
    path, whole = tmp_path / "a.npz", np.linspace(0, entries, 7).astype(int)
    head = {"lagpu_format": 1, "shape": (6, 6), "dtype": "BOOL", "iso": np.True_}
    for where, value in itertools.product(range(7), range(-1, entries + 3)):
        pointers = whole.copy()
        pointers[where] = value
        np.savez(path, **head, col_ptr=pointers, row_idx=np.arange(entries))
        assert outcome(path, "grid:3:cpu") == outcome(path, "cpu")


def test_an_edge_of_two_values(tmp_path):
    path = written(tmp_path, "a.txt", "1 2 5\n2 1 6\n" + "3 4 1\n" * 20)
    with pytest.raises(InvalidValue, match="edge 2 -> 1 has value 6, 1 -> 2 has 5"):
        io.read(path, backend="grid:3:cpu", directed=False)


def test_an_undirected_file_is_known_to_be_symmetric(tmp_path):
    for name in ("comments.txt", "pattern.mtx"):
        A = io.read(written(tmp_path, name, FILES[name]), backend="grid:2x3:cpu")
        assert A.data.symmetric is True


def test_what_is_not_read_in_shares_is_read_as_before(tmp_path):
    """Ids, archives that are packed, and files of a few lines."""
    path = written(tmp_path, "a.txt", FILES["plain.txt"])
    A, ids = io.read(path, backend="grid:3:cpu", renumber=True)
    assert A.nvals == io.read(path, backend="cpu").nvals
    assert len(ids) == A.nrows
    lagpu.io.write(io.read(path, backend="cpu"), tmp_path / "b.npz")
    arrays = dict(np.load(tmp_path / "b.npz"))
    np.savez_compressed(tmp_path / "c.npz", **arrays)
    for other in (tmp_path / "c.npz", written(tmp_path, "short.txt", "0 1\n1 2\n")):
        assert outcome(other, "grid:3:cpu") == outcome(other, "cpu")


def test_no_piece_reads_more_than_its_share(tmp_path, monkeypatch):
    seen = []
    real = edge_list.edges_of

    def parse(text, width, places=()):
        seen.append((threading.get_ident(), len(text)))
        return real(text, width, places)

    monkeypatch.setattr(edge_list, "edges_of", parse)
    path = written(tmp_path, "a.txt", FILES["plain.txt"])
    wanted = io.read(path, backend="cpu").to_coo()

    def program(place):
        A = io.read(path, backend=place)
        return np.array_equal(A.to_coo(), wanted), threading.get_ident()

    found = on_grids(3, program)
    assert [same for same, _ in found] == [True] * 3
    size = path.stat().st_size
    for _, thread in found:
        own = sum(count for of, count in seen if of == thread)
        assert abs(own - size / 3) < 20


QUOTED = commas(U[:200], V[:200], top="source,target,note\n").replace("\n", ',"a\nb"\n')
TABLES = {
    "quoted": ('"1","2"\n' + FILES["no header.csv"] + '"3","4"\n', {}),
    "quoted lines": ("source,target,note\n" + QUOTED[len("source,target,note") :].lstrip(), {}),
    "a gap": (FILES["table.csv"] + "1,\n", {}),
    "a word": (FILES["table.csv"] + "1,x\n", {}),
    "a field more": (FILES["table.csv"] + "1,2,3\n", {}),
    "below 0": (FILES["table.csv"] + "1,-2\n", {}),
    "a return alone": (FILES["table.csv"] + "1,2\r3,4\n", {}),
    "no such column": (FILES["columns.csv"], {"columns": ("to", "nowhere")}),
    "three of four": (FILES["columns.csv"], {"columns": ("to", "id", "weight")}),
    "too many columns": (FILES["columns.csv"].replace("to,from", "x,y"), {}),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_tables_with_more_than_numbers(tmp_path, name, packed):
    """What only the reader of the whole understands, and its errors, are as it has them."""
    text, options = TABLES[name]
    path = written(tmp_path, "a.csv", text, packed)

    def said(backend):
        try:
            return outcome_of(io.read(path, backend=backend, **options))
        except LagpuError as error:
            return type(error), str(error)

    assert said("grid:3:cpu") == said("cpu")


def test_columns_of_a_table_are_chosen(tmp_path):
    path = written(tmp_path, "a.csv", FILES["columns.csv"])
    how = {"columns": ("from", "to", "weight"), "dup_op": "min"}
    wanted = outcome(path, "cpu", **how)
    assert wanted[0] == "FP64"
    assert outcome(path, "grid:2x3:cpu", **how) == wanted


# -------------------------------------------------------------------------------------- Parquet
def parquet_file(tmp_path, groups=17, **columns):
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "a.parquet"
    table = pyarrow.table(columns)
    pyarrow.parquet.write_table(table, path, row_group_size=groups, compression="gzip")
    return path


PARQUET = {
    "ends": {"source": U, "target": V},
    "whole weights": {"source": U, "target": V.astype(np.int32), "weight": W},
    "real weights": {"weight": W / 4, "dst": V.astype(np.uint64), "src": U.astype(np.int16)},
    "booleans": {"u": U, "v": V, "w": W > 0},
}


@pytest.mark.extra
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", PARQUET)
def test_parquet(tmp_path, monkeypatch, name, options):
    path = parquet_file(tmp_path, **PARQUET[name])
    how = {name: value for name, value in OPTIONS[options].items() if name != "header"}
    wanted = outcome(path, "cpu", **how)
    whole_is_not_read(monkeypatch)
    for rows_at_once in (1 << 20, 5):
        monkeypatch.setattr(slices, "_ROWS", rows_at_once)
        for grid in GRIDS:
            assert outcome(path, grid, **how) == wanted


@pytest.mark.extra
def test_lagpus_own_parquet_has_its_last_vertices(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    A = lagpu.Matrix.from_coo(U, V, nrows=N + 9, ncols=N + 9, dup_op="lor", backend="cpu")
    io.write(A, tmp_path / "a.parquet")
    whole_is_not_read(monkeypatch)
    assert io.read(tmp_path / "a.parquet", backend="grid:3:cpu").to("cpu").isequal(A)


@pytest.mark.extra
@pytest.mark.parametrize(
    "columns",
    [
        {"source": [*U.tolist(), None], "target": [*V.tolist(), 1]},
        {"source": [*U.tolist(), -1], "target": [*V.tolist(), 1]},
        {"source": [*U.tolist(), 2**60], "target": [*V.tolist(), 1]},
        {"source": [f"v{u}" for u in U], "target": [f"v{v}" for v in V]},
        {"source": U, "target": V / 2},
        {"source": U, "target": V, "weight": [f"v{u}" for u in U]},
        {"source": U, "target": V, "weight": W.astype(np.int8)},
        {"source": U, "target": V, "weight": W, "x": W, "y": W},
        {"a": U, "b": V, "c": W, "d": W},
        {"source": U},
    ],
)
def test_parquet_that_is_left_to_the_reader_of_the_whole(tmp_path, columns):
    path = parquet_file(tmp_path, **columns)
    assert outcome(path, "grid:3:cpu") == outcome(path, "cpu")


@pytest.mark.extra
def test_damaged_parquet(tmp_path):
    path = parquet_file(tmp_path, **PARQUET["whole weights"])
    data = bytearray(path.read_bytes())
    data[40:90] = bytes(50)
    path.write_bytes(data)
    assert outcome(path, "cpu") is FileFormatError
    assert outcome(path, "grid:3:cpu") is FileFormatError
    path.write_bytes(bytes(data[:-9]))
    assert outcome(path, "grid:3:cpu") is outcome(path, "cpu") is FileFormatError


@pytest.mark.extra
def test_a_piece_reads_its_own_groups_alone(tmp_path, monkeypatch):
    path = parquet_file(tmp_path, **PARQUET["ends"])
    seen, real = [], slices._batch

    def chunk(key, batch, titles):
        seen.append((threading.get_ident(), batch.num_rows))
        return real(key, batch, titles)

    monkeypatch.setattr(slices, "_batch", chunk)

    def program(place):
        return io.read(path, backend=place).nvals, threading.get_ident()

    wanted = io.read(path, backend="cpu").nvals
    found = on_grids(3, program)
    assert [nvals for nvals, _ in found] == [wanted] * 3
    assert sum(count for _, count in seen) == LINES
    for _, thread in found:
        assert abs(sum(count for of, count in seen if of == thread) - LINES / 3) <= 17


# ------------------------------------------------------------------------- one process of several
def test_a_file_that_one_process_does_not_see(tmp_path):
    path = written(tmp_path, "a.txt", FILES["plain.txt"])

    def program(place):
        here = place.pieces.engine.local[0] == 0
        io.read(path if here else tmp_path / "elsewhere" / "a.txt", backend=place)

    found = on_grids(3, program)
    assert all(isinstance(error, FileMissing) for error in found), found
    assert "process 1 of 3: read: there is no file" in str(found[0])


def test_a_file_that_differs(tmp_path):
    def program(place):
        rank = place.pieces.engine.local[0]
        folder = tmp_path / str(rank)
        folder.mkdir()
        io.read(written(folder, "a.txt", FILES["plain.txt"] + "1 2\n" * rank), backend=place)

    found = on_grids(2, program)
    for error in found:
        assert isinstance(error, FileFormatError)
        assert "piece 1 sees another file" in str(error)


@pytest.mark.parametrize(("free", "reads"), [(5_000, 0), (100_000, 1)])
def test_memory_is_asked_of_all_processes_first(tmp_path, monkeypatch, free, reads):
    """For the shares, and then, once the vertices are known, for the parts."""
    path = written(tmp_path, "a.txt", FILES["plain.txt"] + "0 60000\n")
    own, read = threading.local(), []
    monkeypatch.setattr(memory, "available_bytes", lambda: getattr(own, "free", 10**12))
    real = slices._Reader.read_shares

    def share_read(self, source):
        read.append(self)
        return real(self, source)

    monkeypatch.setattr(slices._Reader, "read_shares", share_read)

    def program(place):
        own.free = free if place.pieces.engine.local[0] == 1 else 10**9
        io.read(path, backend=place)

    found = on_grids(3, program)
    assert all(isinstance(error, OutOfMemory) for error in found), found
    assert "process 1 of 3: read: a.txt" in str(found[0])
    assert len(read) == 3 * reads


def test_the_limit_of_a_file_holds(tmp_path, monkeypatch):
    path = written(tmp_path, "a.txt", FILES["plain.txt"] + f"0 {2**40}\n")
    for grid in ("cpu", "grid:3:cpu"):
        with pytest.raises(LagpuError, match="renumber=True"):
            io.read(path, backend=grid)


def test_a_grid_made_by_hand(tmp_path):
    path = written(tmp_path, "a.txt", FILES["weights.txt"])
    place = backends.get("grid:2:sim")
    assert outcome(path, place) == outcome(path, "cpu")
