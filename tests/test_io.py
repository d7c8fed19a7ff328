"""Files and objects in and out: what is read, and what malformed input gets."""

import gzip
import io
import sys
import zipfile

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from lagpu import memory
from lagpu.csc import CSC
from lagpu.dtypes import BOOL, FP32, FP64, INT32, INT64, UINT64
from lagpu.errors import (
    BackendUnavailable,
    DimensionMismatch,
    DomainMismatch,
    FileFormatError,
    FileMissing,
    IndexOutOfBound,
    InvalidValue,
    NotSupported,
    OutOfMemory,
)
from lagpu.io import (
    edge_list,
    from_arrays,
    from_networkx,
    from_scipy,
    read,
    to_networkx,
    to_scipy,
    write,
    write_vector,
)
from lagpu.io.arrays import _array
from lagpu.io.files import _GRAPH_FORMATS

BANNER = "%%MatrixMarket matrix coordinate "


@pytest.fixture
def save(tmp_path):
    def save(content, name="graph"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return save


def entries(A):
    rows, cols, values = A.to_coo()
    return list(zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True))


def edges(A):
    return [(i, j) for i, j, _ in entries(A)]


def read_cpu(path, **options):
    return read(path, backend="cpu", **options)


# ------------------------------------------------------------------------------ Matrix Market
@pytest.mark.parametrize(
    ("kind", "body", "dtype", "expected"),
    [
        ("pattern general", "3 3 2\n1 2\n3 1\n", BOOL, [(0, 1, True), (2, 0, True)]),
        ("integer general", "2 3 2\n1 3 -7\n2 1 8\n", INT64, [(0, 2, -7), (1, 0, 8)]),
        ("real general", "2 2 2\n1 2 1.5\n2 2 0\n", FP64, [(0, 1, 1.5), (1, 1, 0.0)]),
        ("pattern symmetric", "3 3 2\n2 1\n3 3\n", BOOL, [(0, 1, 1), (1, 0, 1), (2, 2, 1)]),
        ("integer skew-symmetric", "3 3 1\n3 1 5\n", INT64, [(0, 2, -5), (2, 0, 5)]),
        ("integer general", "2 2 3\n1 2 5\n1 2 6\n2 2 1\n", INT64, [(0, 1, 11), (1, 1, 1)]),
        ("pattern general", "2 2 3\n1 2\n1 2\n2 2\n", BOOL, [(0, 1, True), (1, 1, True)]),
        ("pattern general", "4 4 0\n", BOOL, []),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_matrix_market(save, kind, body, dtype, expected, packed):
    content = f"{BANNER}{kind}\n% a comment\n{body}".encode()
    A = read_cpu(save(gzip.compress(content, mtime=0) if packed else content))
    assert A.dtype is dtype
    assert (A.nrows, A.ncols) == tuple(int(size) for size in body.split()[:2])
    assert entries(A) == expected


def test_matrix_market_with_returns_blank_lines_and_byte_order_mark(save):
    content = f"\ufeff{BANNER}pattern general\r\n\r\n3 3 1\r\n\r\n1 2\r\n\r\n"
    assert edges(read_cpu(save(content))) == [(0, 1)]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("pattern general\n3 3 3\n1 2\n2 3\n", FileFormatError, "Truncated|truncated"),
        ("pattern general\n3 3 1\n1 2\n2 3\n", FileFormatError, "Too many lines"),
        ("pattern general\n3 3 99999999999\n1 2\n", FileFormatError, "has room for at most"),
        ("pattern general\n3 3 1\n1 4\n", FileFormatError, "Line 3: Column index out of bounds"),
        ("pattern general\n3 3 1\n0 1\n", FileFormatError, "Row index out of bounds"),
        ("pattern general\n3 3 1\n-1 1\n", FileFormatError, "Row index out of bounds"),
        ("pattern general\n3 3 1\n1 x\n", FileFormatError, "Line 3: Invalid integer"),
        ("pattern general\n3 3 1\n1 2 7\n", FileFormatError, "line 3: '1 2 7' != 2 numbers"),
        ("real general\n3 3 1\n1 2\n", FileFormatError, "line 3: '1 2' != 3 numbers"),
        ("integer general\n3 3 2\n1 2 3\n1 3 1.5\n", FileFormatError, "line 4: a real number"),
        ("integer general\n3 3 1\n1 2 99999999999999999999\n", FileFormatError, "out of range"),
        ("pattern symmetric\n3 4 1\n2 1\n", FileFormatError, "nrows 3 != ncols 4"),
        ("pattern general\n", FileFormatError, "EOF"),
        ("nonsense general\n3 3 0\n", FileFormatError, "nonsense"),
        ("complex general\n3 3 1\n1 2 1 1\n", NotSupported, "complex"),
        ("pattern general\n2 99999999999999 0\n", OutOfMemory, "needs .* GB, .* GB free"),
    ],
)
def test_malformed_matrix_market(save, content, error, message):
    with pytest.raises(error, match=message):
        read_cpu(save(BANNER + content))


def test_dense_matrix_market_is_refused(save):
    with pytest.raises(NotSupported, match="array"):
        read_cpu(save("%%MatrixMarket matrix array real general\n1 1\n1\n"))


# -------------------------------------------------------------------------------- edge lists
@pytest.mark.parametrize(
    "content",
    [
        "0 1\n2 0\n",
        "# a comment\n% another\n\n0\t1\n  # inside\n2   0",
        "0 1\r\n2 0\r\n",
        "\ufeff0 1\n2 0\n",
        "3 2\n0 1\n2 0\n",
        "0 1\n2 0\n0 1\n",
        "2 0\n0 1\n\n \n",
    ],
    ids=["plain", "comments", "crlf", "bom", "header", "twice", "blank end"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_edge_list(save, content, packed):
    A = read_cpu(save(gzip.compress(content.encode(), mtime=0) if packed else content))
    assert (A.nrows, A.ncols, A.dtype) == (3, 3, BOOL)
    assert edges(A) == [(0, 1), (2, 0)]


def test_edge_list_with_weights(save):
    A = read_cpu(save("0 1 5\n1 2 -3\n0 1 2\n"))
    assert A.dtype is INT64
    assert entries(A) == [(0, 1, 7), (1, 2, -3)]
    B = read_cpu(save("0 1 .5\n1 2 1e3\n2 0 inf\n"))
    assert B.dtype is FP64
    assert entries(B) == [(0, 1, 0.5), (1, 2, 1000.0), (2, 0, np.inf)]


@pytest.mark.parametrize(
    ("content", "options", "n", "expected"),
    [
        ("4 2\n0 1\n1 2\n", {}, 4, [(0, 1), (1, 2)]),
        ("4 2\n0 1\n1 2\n", {"header": False}, 5, [(0, 1), (1, 2), (4, 2)]),
        ("4 3\n0 1\n1 2\n", {}, 5, [(0, 1), (1, 2), (4, 3)]),  # not as many lines
        ("2 2\n0 1\n1 2\n", {}, 3, [(0, 1), (1, 2), (2, 2)]),  # too small for vertex 2
        ("1 0\n", {}, 2, [(1, 0)]),  # no line follows
        ("5 0\n", {"header": True}, 5, []),
        ("9 2\n0 1 4\n1 2 4\n", {"header": None}, 9, [(0, 1), (1, 2)]),
        ("# Nodes: 6 Edges: 1\n0 1\n", {}, 6, [(0, 1)]),
    ],
)
def test_header_line(save, content, options, n, expected):
    A = read_cpu(save(content), **options)
    assert A.nrows == A.ncols == n
    assert edges(A) == expected


@pytest.mark.parametrize("content", ["4 3\n0 1\n1 2\n", "2 2\n0 1\n1 2\n", "x 2\n0 1\n1 2\n"])
def test_promised_header_that_does_not_fit(save, content):
    with pytest.raises(FileFormatError, match=r"the header .* does not fit: 2 lines follow"):
        read_cpu(save(content), header=True)


def test_header_over_vertices_from_one_is_refused(save):
    content = "3 4\n1 2\n2 3\n3 1\n1 3\n"
    with pytest.raises(FileFormatError, match=r"looks like a header, over vertices 1 \.\. 3"):
        read_cpu(save(content))
    assert read_cpu(save(content), header=False).nrows == 5


@pytest.mark.parametrize(
    ("comment", "directed", "symmetric"),
    [
        ("", None, False),
        ("", False, True),
        ("# Undirected graph: x\n", None, True),
        ("# Undirected graph: x\n", True, False),
        ("# Directed graph (each unordered pair of nodes is saved once): x\n", None, False),
    ],
)
def test_direction(save, comment, directed, symmetric):
    A = read_cpu(save(comment + "0 1\n1 1\n1 2\n2 1\n"), directed=directed)
    expected = [(0, 1), (1, 1), (1, 2), (2, 1)]
    assert edges(A) == sorted([*expected, (1, 0)]) if symmetric else edges(A) == expected


def test_direction_of_other_formats(save, tmp_path):
    path = save(BANNER + "real general\n3 3 3\n1 2 4\n2 1 4\n3 1 5\n")
    A = read_cpu(path, directed=False)
    assert entries(A) == [(0, 1, 4.0), (0, 2, 5.0), (1, 0, 4.0), (2, 0, 5.0)]
    sp.save_npz(tmp_path / "a.npz", sp.coo_array(([True], ([0], [1])), shape=(2, 2)))
    assert edges(read_cpu(tmp_path / "a.npz", directed=False)) == [(0, 1), (1, 0)]


def test_directions_that_disagree(save):
    with pytest.raises(InvalidValue, match=r"edge 1 -> 0 has value 4, 0 -> 1 has 3\. Give"):
        read_cpu(save("0 1 3\n1 0 4\n"), directed=False)
    with pytest.raises(InvalidValue, match="nrows 2 != ncols 3"):
        read_cpu(save(BANNER + "pattern general\n2 3 1\n1 2\n"), directed=False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 1\n# c\n1 x\n", "line 3: '1 x' is not made of numbers"),
        ("0 1\n1 2\n\n-1 2\n", "line 4: '-1 2' has a vertex"),
        ("0 1\n1 2.5\n", r"line 2: '1 2\.5' has a vertex"),
        ("0 1\n1 99999999999999999999\n", "line 2: .* has a vertex"),
        ("0 1\n1\n", "line 2: '1' has 1 numbers, not 2"),
        ("0 1\n1 2 3\n", "line 2: '1 2 3' has 3 numbers, not 2"),
        ("0 1 5\n1 2\n", "line 2: '1 2' has 2 numbers, not 3"),
        ("0 1 5\n1 2 99999999999999999999\n", "line 2: .* has a weight beyond 64 bits"),
        ("0 1\n1 2 3 4\n0 1\n", "line 2: .* has 4 numbers, not 2"),
        ("0 1 2 3\n", "line 1: .* has 4 numbers"),
        ("0 1 2\n3\n", "line 2: '3' has 1 numbers"),  # as many numbers as two lines of two
        ("0 1\n0 1\n2\n3\n4 5\n", "line 3: '2' has 1 numbers"),
        ("0 1\n0 1\n2 3 4 5\n", "line 3: '2 3 4 5' has 4 numbers"),
        ("0 1\n1 2 # no comment\n", "line 2: .* has 5 numbers"),
        ("0 1\n1 -\n", "line 2: '1 -' is not made of numbers"),
        ("0 1\n1-2 3\n", "line 2: '1-2 3' is not made of numbers"),
        ("0 1\n1,2\n", "line 2: '1,2' has 1 numbers"),
        ("0 1\n1_0 2\n", "line 2: '1_0 2' is not made of numbers"),
        ("0 1\n0x1 2\n", "line 2: '0x1 2' is not made of numbers"),
        ("0 1\nnan 2\n", "line 2: 'nan 2' has a vertex"),
        ("0 1\n1 \u00b2\n", "line 2: .* is not made of numbers"),
        ("hello world\n", "line 1: 'hello world' is not made of numbers"),
        ("# only\n% comments\n\n", "holds no edges"),
        ("\n \n", "holds no edges"),
    ],
)
def test_malformed_edge_list(save, content, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(save(content))


def test_fault_in_a_later_piece_has_its_line_number(save, monkeypatch):
    monkeypatch.setattr("lagpu.io.text._PIECE", 10)
    lines = [f"{i} {i + 1}" for i in range(50)]
    assert read_cpu(save("\n".join(lines))).nvals == 50
    lines[33] = "1 x"
    with pytest.raises(FileFormatError, match="line 34: '1 x'"):
        read_cpu(save("\n".join(lines)))
    lines[33] = "1 2 3"
    with pytest.raises(FileFormatError, match="line 34: '1 2 3' has 3 numbers, not 2"):
        read_cpu(save("\n".join(lines)))


def test_single_edge_and_blank_lines(save):
    assert edges(read_cpu(save("2 0\n\n\n"))) == [(2, 0)]


def test_binary_after_a_long_text(save):
    with pytest.raises(FileFormatError, match=r"line 20001: .* is not made of numbers"):
        read_cpu(save(b"0 1\n" * 20000 + b"0 \x001\n"))


def test_pieces_with_and_without_fractions_join(save, monkeypatch):
    monkeypatch.setattr("lagpu.io.text._PIECE", 10)
    A = read_cpu(save("0 1 2\n1 2 2\n2 3 0.5\n3 4 7\n"))
    assert entries(A) == [(0, 1, 2.0), (1, 2, 2.0), (2, 3, 0.5), (3, 4, 7.0)]


@pytest.mark.parametrize("content", ["0 999999999999999\n", "# Nodes: 999999999999999\n0 1\n"])
def test_vertex_beyond_memory(save, content):
    with pytest.raises(OutOfMemory, match=r"read: graph, .* vertices: needs .* GB free"):
        read_cpu(save(content))


# ------------------------------------------------------------------------------ any content
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (bytes(range(256)), "is binary"),
        (b"\x89PNG\r\n\x1a\n", "is binary"),
        ("0 1\n".encode("utf-16"), "is binary"),
        (gzip.compress(bytes(100), mtime=0), "is binary"),
        (gzip.compress(b"0 1\n" * 1000, mtime=0)[:-9], "truncated or damaged"),
        (gzip.compress(b"0 1\n" * 1000, mtime=0)[:12] + b"junkjunkjunk", "truncated or damaged"),
        (
            gzip.compress(b"0 1\n", mtime=0)[:-8] + bytes(8),
            "truncated or damaged",
        ),
        (b"\x1f\x8b", "truncated or damaged"),
        (b"PK\x03\x04 and no more", "not a matrix archive"),
        (b"PK\x05\x06" + bytes(18), "not a matrix archive"),  # an archive of nothing
    ],
)
def test_content_that_is_no_graph(save, content, message):
    with pytest.raises(FileFormatError, match=message):
        read_cpu(save(content))


def test_content_decides_and_not_the_name(save):
    assert edges(read_cpu(save(BANNER + "pattern general\n2 2 1\n1 2\n", "a.npz"))) == [(0, 1)]
    assert edges(read_cpu(save(gzip.compress(b"0 1\n", mtime=0), "a.mtx"))) == [(0, 1)]


def test_paths_that_are_no_file(tmp_path, save, monkeypatch):
    with pytest.raises(FileMissing, match="there is no file"):
        read_cpu(tmp_path / "none.txt")
    with pytest.raises(InvalidValue, match="is a folder"):
        read_cpu(tmp_path)

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    path = save("0 1\n")
    monkeypatch.setattr("pathlib.Path.open", refused)
    with pytest.raises(InvalidValue, match="Permission denied"):
        read_cpu(path)


def test_unpacking_asks_for_memory_on_the_way(save, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 25)
    with pytest.raises(OutOfMemory, match="Unpacked, it does not fit"):
        read_cpu(save(gzip.compress(b"0 1\n" * (1 << 24), 1, mtime=0)))


# --------------------------------------------------------------------------------- archives
def test_scipy_archives(tmp_path):
    S = sp.random_array((5, 4), density=0.4, rng=np.random.default_rng(1))
    for form in ("csr", "csc", "coo", "bsr"):
        sp.save_npz(tmp_path / "a.npz", S.asformat(form))
        A = read_cpu(tmp_path / "a.npz")
        assert A.dtype is FP64
        assert (to_scipy(A) != S).nnz == 0


def changed_archive(path, **arrays):
    with np.load(path) as archive:
        kept = {**archive, **arrays}
    np.savez(path, **{name: array for name, array in kept.items() if array is not None})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lagpu_format": 2}, "this lagpu reads 1"),
        ({"col_ptr": np.array([0, 1, 2])}, "col_ptr"),
        ({"col_ptr": np.array([0, 2, 1, 3])}, "does not rise"),
        ({"col_ptr": np.array([0, 1, 2, 4])}, "does not rise"),
        ({"col_ptr": np.array([0.0, 1, 2, 3])}, "not whole numbers"),
        ({"row_idx": np.array([0, 1, 3])}, "a row outside"),
        ({"row_idx": np.array([0, -1, 1])}, "a row outside"),
        ({"row_idx": np.array([2, 1, 1])}, "do not rise within"),
        ({"row_idx": np.array([0, 2, 1]), "col_ptr": np.array([0, 0, 0, 3])}, "do not rise within"),
        ({"row_idx": None}, "row_idx"),
        ({"values": np.array([1.0, 2.0])}, r"\(2,\) values"),
        ({"shape": np.array([3])}, "not a matrix archive"),
        ({"shape": np.array([-3, 3])}, "not a matrix archive"),
        ({"values": np.array([{}, 1, 2], object)}, "not a matrix archive"),
    ],
)
def test_damaged_archive_of_ours(tmp_path, change, message):
    path = tmp_path / "a.npz"
    S = sp.csc_array(([1.0, 2.0, 3.0], [1, 2, 0], [0, 2, 2, 3]), shape=(3, 3))
    write(from_scipy(S, backend="cpu"), path)
    assert read_cpu(path).nvals == 3
    changed_archive(path, **change)
    with pytest.raises(FileFormatError, match=message):
        read_cpu(path)


def test_unknown_type_in_an_archive(tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.eye_array(3, dtype=complex))
    with pytest.raises(NotSupported, match="complex"):
        read_cpu(tmp_path / "a.npz")


def test_scipy_archive_with_a_row_outside(tmp_path):
    path = tmp_path / "a.npz"
    sp.save_npz(path, sp.csc_array(([1.0], [1], [0, 1]), shape=(3, 1)))
    changed_archive(path, indices=np.array([3], np.int32))
    with pytest.raises(FileFormatError, match="not a matrix archive"):
        read_cpu(path)


def test_array_that_claims_to_be_huge(tmp_path):
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        array, {"descr": "<i8", "fortran_order": False, "shape": (10**15,)}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("lagpu_format.npy", array.getvalue())
    with pytest.raises(FileFormatError, match="bytes, not 8000000000000000"):
        read_cpu(tmp_path / "a.npz")


# ---------------------------------------------------------------------------------- writing
@pytest.fixture(params=[BOOL, INT32, INT64, UINT64, FP32, FP64], ids=repr)
def valued(request):
    values = np.array([3, 1, 1, 2, 5]).astype(request.param.numpy)
    S = sp.csc_array((values, ([0, 1, 3, 3, 0], [0, 0, 1, 2, 3])), shape=(5, 5))
    return from_scipy(S, backend="cpu")


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz", ".npz", ".txt", ".txt.gz"])
def test_write_and_read_back(tmp_path, valued, suffix):
    path = tmp_path / f"a.b{suffix}"
    write(valued, path)
    B = read_cpu(path)
    assert (B.nrows, B.ncols) == (5, 5)
    assert entries(B) == entries(valued)
    assert suffix != ".npz" or B.dtype is valued.dtype
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".mtx", ".npz", ".txt"])
def test_write_an_empty_matrix(tmp_path, suffix):
    empty = from_scipy(sp.csc_array((4, 4), dtype=bool), backend="cpu")
    write(empty, tmp_path / f"a{suffix}")
    B = read_cpu(tmp_path / f"a{suffix}")
    assert (B.nrows, B.nvals, B.dtype) == (4, 0, BOOL)


def test_stored_false_survives_as_a_zero(tmp_path):
    S = sp.csc_array(([True, False], ([0, 1], [1, 1])), shape=(2, 2))
    write(from_scipy(S, backend="cpu"), tmp_path / "a.mtx")
    assert entries(read_cpu(tmp_path / "a.mtx")) == [(0, 1, 1), (1, 1, 0)]


def test_iso_values_are_stored_once(tmp_path):
    write(from_scipy(sp.eye_array(1000, dtype=np.int32), backend="cpu"), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        assert "values" not in archive
        assert archive["iso"] == 1
        assert archive["row_idx"].dtype == np.int32
    B = read_cpu(tmp_path / "a.npz")
    assert B.dtype is INT32
    assert set(B.to_coo()[2].tolist()) == {1}


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, valued, monkeypatch):
    path = tmp_path / "a.mtx"
    path.write_text("old")

    def interrupted(csc, file):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setitem(_GRAPH_FORMATS, ".mtx", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(valued, path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.mtx"]


def test_write_through_a_link_keeps_the_link(tmp_path, valued):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.npz"
    link.symlink_to(tmp_path / "folder" / "real.npz")
    write(valued, link)
    assert link.is_symlink()
    assert read_cpu(tmp_path / "folder" / "real.npz").nvals == valued.nvals


def test_where_nothing_can_be_written(tmp_path, valued):
    with pytest.raises(InvalidValue, match=r"use \.mtx"):
        write(valued, tmp_path / "a.png")
    with pytest.raises(InvalidValue, match=r"use \.mtx"):
        write(valued, tmp_path / "a.npz.gz")
    with pytest.raises(FileMissing, match="there is no folder"):
        write(valued, tmp_path / "none" / "a.mtx")
    (tmp_path / "b.mtx").mkdir()
    with pytest.raises(InvalidValue, match="is a folder"):
        write(valued, tmp_path / "b.mtx")


def test_write_vector(tmp_path):
    indices, values = np.array([0, 2]), np.array([0.5, np.inf])
    write_vector(indices, values, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        assert archive["indices"].tolist() == [0, 2]
        assert archive["values"].tolist() == [0.5, np.inf]
    write_vector(indices, values, tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "0 0.5\n2 inf\n"
    write_vector(indices, np.array([True, False]), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "index,value\n0,1\n2,0\n"
    with pytest.raises(DimensionMismatch):
        write_vector([0], [1, 2], tmp_path / "b.txt")
    with pytest.raises(InvalidValue, match=r"use \.npz"):
        write_vector([0], [1], tmp_path / "b.xlsx")
    assert not (tmp_path / "b.txt").exists()


def test_many_rows_are_written_in_parts(monkeypatch):
    monkeypatch.setattr("lagpu.io.text._LINES", 2)
    csc = CSC(5, 5, np.arange(6), np.array([1, 2, 3, 4, 0]))
    file = io.BytesIO()
    edge_list.dump(csc, file)
    assert file.getvalue().splitlines()[2:] == [b"1\t0", b"2\t1", b"3\t2", b"4\t3", b"0\t4"]


# ---------------------------------------------------------------------------------- objects
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_scipy_formats(form):
    S = sp.random_array((6, 4), density=0.5, rng=np.random.default_rng(2)).asformat(form)
    A = from_scipy(S, backend="cpu")
    assert isinstance(to_scipy(A), sp.csc_array)
    assert (to_scipy(A) != S).nnz == 0


def test_scipy_array_is_left_as_it_is():
    S = sp.csc_array(
        (np.array([1, 2, 3]), np.array([2, 0, 0]), np.array([0, 3, 3, 3])), shape=(3, 3)
    )
    assert entries(from_scipy(S, backend="cpu")) == [(0, 0, 5), (2, 0, 1)]
    assert S.indices.tolist() == [2, 0, 0]
    assert S.data.tolist() == [1, 2, 3]


def test_scipy_types():
    assert from_scipy(sp.eye_array(3, dtype=np.int8), backend="cpu").dtype is INT32
    with pytest.raises(DomainMismatch):
        from_scipy(sp.eye_array(3, dtype=complex), backend="cpu")
    with pytest.raises(DomainMismatch, match="ndarray is not a 2-D sparse array"):
        from_scipy(np.eye(3), backend="cpu")


def test_networkx_order_and_direction():
    G = nx.Graph([("b", "a"), ("b", "b")])
    assert edges(from_networkx(G, backend="cpu")) == [(0, 0), (0, 1), (1, 0)]
    D = nx.DiGraph([("b", "a"), ("a", "c")])
    assert edges(from_networkx(D, backend="cpu")) == [(0, 1), (1, 2)]
    assert from_networkx(nx.empty_graph(3), backend="cpu").nvals == 0


def test_networkx_weights():
    loop = nx.Graph([(0, 0, {"w": 2}), (0, 1, {"w": 3})])
    assert entries(from_networkx(loop, weight="w", backend="cpu")) == [
        (0, 0, 2),
        (0, 1, 3),
        (1, 0, 3),
    ]
    G = nx.MultiDiGraph([(0, 1, {"w": 2}), (0, 1, {"w": 3}), (1, 0)])
    assert entries(from_networkx(G, weight="w", backend="cpu")) == [(0, 1, 5), (1, 0, 1)]
    assert from_networkx(G, backend="cpu").dtype is BOOL
    with pytest.raises(DomainMismatch, match="not always a number"):
        from_networkx(nx.Graph([(0, 1, {"w": "x"})]), weight="w", backend="cpu")


def test_to_networkx():
    A = from_scipy(sp.coo_array(([2.5], ([0], [1])), shape=(3, 3)), backend="cpu")
    G = to_networkx(A)
    assert list(G) == [0, 1, 2]
    assert list(G.edges(data="weight")) == [(0, 1, 2.5)]
    with pytest.raises(InvalidValue, match="not symmetric"):
        to_networkx(A, directed=False)
    C = from_networkx(nx.cycle_graph(4), backend="cpu")
    assert nx.utils.graphs_equal(to_networkx(C, directed=False), nx.cycle_graph(4))
    rectangle = from_scipy(sp.coo_array(([1], ([0], [1])), shape=(1, 3)), backend="cpu")
    with pytest.raises(InvalidValue, match="nrows 1 != ncols 3"):
        to_networkx(rectangle)


class OnDevice:
    """What an array on a device shows of itself."""

    __cuda_array_interface__ = {"shape": (1,), "typestr": "<i8", "data": (0, True), "version": 3}  # noqa: RUF012


class ThroughDLPack:
    """An array of another library, on the host."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays():
    rows, cols = np.array([0, 2]), ThroughDLPack(np.array([1, 0]))
    A = from_arrays(rows, cols, [4, 5], nrows=3, ncols=3, backend="cpu")
    assert entries(A) == [(0, 1, 4), (2, 0, 5)]
    assert from_arrays([0], [1], backend="cpu").dtype is BOOL
    with pytest.raises(IndexOutOfBound):
        from_arrays([0], [3], nrows=3, ncols=3, backend="cpu")


def test_device_arrays_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(BackendUnavailable, match="need CuPy"):
        from_arrays(OnDevice(), OnDevice(), backend="cpu")


def test_device_arrays_come_to_the_host(monkeypatch):
    class Copied:
        def get(self):
            return np.array([1])

    class CuPy:
        asarray = staticmethod(lambda source: Copied())

    monkeypatch.setitem(sys.modules, "cupy", CuPy)
    assert edges(from_arrays(OnDevice(), OnDevice(), backend="cpu")) == [(1, 1)]
    assert isinstance(_array(OnDevice(), keep_on_device=True), Copied)
    assert isinstance(_array(np.arange(2), keep_on_device=True), np.ndarray)


def test_networkx_that_is_not_installed(monkeypatch):
    A = from_arrays([0], [1], nrows=2, ncols=2, backend="cpu")
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(BackendUnavailable, match="install networkx"):
        to_networkx(A)


def test_scipy_archive_of_a_vector(tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.coo_array(([1.0], ([2],)), shape=(4,)))
    with pytest.raises(FileFormatError, match="a 1-D array"):
        read_cpu(tmp_path / "a.npz")
