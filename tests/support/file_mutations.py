"""Graph files of every format, and what can go wrong with them: made from a number."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile

import numpy as np
import scipy.sparse as sp

from lagpu.io import from_scipy, write

HUGE = [
    *(-1, 0, 2**31 - 1, 2**31, 2**32, 2**53 - 1, 2**53, 2**53 + 1, 2**60, 2**63 - 1, 2**63),
    *(-(2**63), 2**64, 10**8, 10**9, 10**15, 10**19, 10**30, 10**400, 3 * 10**7),
]
ODD = [
    *("", " ", "\t", "\r", "\n", "\r\n", "\n\r", "\v", "\f", "\0", "-", "+", ".", "e", "1e", "1e+"),
    *(
        ",",
        ";",
        ":",
        "|",
        "#",
        "%",
        "nan",
        "inf",
        "-inf",
        "NaN",
        "1_0",
        "0x10",
        "1.5",
        "1e3",
        "1d3",
    ),
    *(
        "-0",
        "+1",
        "1e400",
        "1e-400",
        "00",
        "07",
        "1.",
        ".5",
        "x",
        "'",
        '"',
        "(",
        "\u00a0",
        "\u2028",
    ),
    *("\ufeff", "\u0661", "\uff11", "\u00e9", "\x85", "\x1a", "1 2 3", "1 2", "%%", "# Nodes: 5"),
]
WORDS = [
    *("matrix", "coordinate", "array", "vector", "real", "double", "integer", "unsigned-integer"),
    *("pattern", "complex", "general", "symmetric", "skew-symmetric", "hermitian", "REAL", ""),
    *("%%MatrixMarket", "%%matrixmarket", "%MatrixMarket", "%%MATRIXMARKET", "%% MatrixMarket"),
]


def edges(draw: random.Random, n: int, first: int, lower: str) -> list[tuple[int, int]]:
    found = {(draw.randrange(n), draw.randrange(n)) for _ in range(draw.randrange(1, 12))}
    if lower:
        found = {(max(i, j), min(i, j)) for i, j in found if lower == "symmetric" or i != j}
    return [(i + first, j + first) for i, j in sorted(found)]


def number(draw: random.Random, field: str) -> str:
    if field == "real":
        return draw.choice([f"{draw.uniform(-9, 9):.6e}", f"{draw.uniform(0, 9):.3f}", "1", "0"])
    return str(draw.randrange(0 if field == "unsigned-integer" else -9, 100))


def matrix_market(draw: random.Random) -> bytes:
    field = draw.choice(["pattern", "integer", "real", "unsigned-integer", "complex"])
    symmetry = draw.choice(["general", "general", "symmetric", "skew-symmetric", "hermitian"])
    n = draw.randrange(1, 9)
    rows = edges(draw, n, 1, "" if symmetry == "general" else symmetry)
    values = {"pattern": 0, "complex": 2}.get(field, 1)
    lines = [" ".join(map(str, row)) + "".join(f" {number(draw, field)}" for _ in range(values))
             for row in rows]  # fmt: skip
    comments = ["% a comment"] * draw.randrange(2)
    end = draw.choice(["\n", "\n", "\n", "\r\n"])
    head = [f"%%MatrixMarket matrix coordinate {field} {symmetry}", *comments]
    return end.join([*head, f"{n} {n} {len(rows)}", *lines, ""]).encode()


def edge_list(draw: random.Random) -> bytes:
    n, first = draw.randrange(1, 9), draw.choice([0, 0, 1])
    rows = edges(draw, n, first, "")
    field = draw.choice(["", "", "integer", "real"])
    space = draw.choice([" ", " ", "\t", "  ", ","])
    lines = [space.join([*map(str, row), *([number(draw, field)] if field else [])])
             for row in rows]  # fmt: skip
    head = draw.choice(
        [[], [], ["# a comment"], ["# Nodes: 9 Edges: 3"], ["# Undirected graph"], ["% x", ""]]
    )
    sizes = draw.choice([[], [], [f"{n} {len(rows)}"], [f"{n} {n} {len(rows)}"]])
    end = draw.choice(["\n", "\n", "\r\n"])
    return end.join([*head, *sizes, *lines, ""]).encode()


def sparse(draw: random.Random) -> sp.coo_array:
    n = draw.randrange(1, 9)
    rows = np.array(edges(draw, n, 0, ""))
    kind = draw.choice([bool, np.int8, np.int32, np.int64, np.uint64, np.float32, np.float64])
    values = np.array([draw.randrange(1, 90) for _ in rows]).astype(kind)
    return sp.coo_array((values, (rows[:, 0], rows[:, 1])), shape=(n, n + draw.randrange(2)))


def arrays(draw: random.Random, folder) -> dict[str, bytes]:
    """The members of an archive, as they lie in it."""
    path, S = folder / "seed.npz", sparse(draw)
    form = draw.choice(["lagpu", "lagpu", "csc", "csr", "coo", "bsr", "dia"])
    if form == "lagpu":
        if S.dtype.kind not in "bf" and S.dtype.itemsize < 4:
            S = S.astype(np.int32)
        write(from_scipy(S, backend="cpu"), path)
    else:
        sp.save_npz(path, S.asformat(form), compressed=False)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npy(array: object, **how: object) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array, **how), allow_pickle=True)
    return file.getvalue()


def bent(draw: random.Random, data: bytes) -> bytes:
    """Another array in the place of one: of another type, shape or length."""
    try:
        array = np.load(io.BytesIO(data))
    except Exception:
        return data
    change = draw.randrange(10)
    if change == 0:
        kinds = [
            "O",
            "c16",
            "S3",
            "U3",
            "f2",
            "f4",
            "f8",
            "i1",
            "i8",
            "u8",
            ">i8",
            ">f8",
            "?",
            "S0",
        ]
        kinds += ["M8[s]", "m8[s]", "V3", "f8,i4"]
        try:
            return npy(array.astype(draw.choice(kinds)))
        except Exception:
            return npy(np.empty(array.shape, "V0"))
    if change == 1:
        return npy(array.reshape(draw.choice([(1, -1), (-1, 1), (-1,), (1, 1, -1)])))
    if change == 2:
        return npy(array.ravel()[: draw.randrange(array.size + 1)])
    if change == 3:
        return npy(np.append(array.ravel(), array.ravel()))
    if change == 4:
        return npy(np.empty(draw.choice([(), (0,), (0, 5), (5, 0)]), array.dtype))
    if change == 5:
        return npy(np.asfortranarray(array))
    if change == 6:
        return npy({"a": 1}, dtype=object)
    if change == 7:
        return data[: draw.randrange(len(data))]
    if change == 8 and array.dtype.kind in "iuf" and array.size:
        flat = array.ravel().copy()
        least, most = (-9, 9) if array.dtype.kind == "f" else (
            np.iinfo(array.dtype).min, np.iinfo(array.dtype).max)  # fmt: skip
        flat[draw.randrange(flat.size)] = draw.choice([least, most, 0, 1])
        return npy(flat.reshape(array.shape))
    header = bytearray(data[:128])
    for _ in range(draw.randrange(1, 3)):
        header[draw.randrange(6, len(header))] = draw.randrange(256)
    if draw.random() < 0.4:
        shape = str(draw.choice(HUGE[:-2])).encode()
        header = header.replace(b"'shape': (", b"'shape': (" + shape + b", ")
    return bytes(header) + data[128:]


def archive(draw: random.Random, folder) -> bytes:
    members = list(arrays(draw, folder).items())
    broken = draw.random() < 0.8
    if broken and draw.random() < 0.7:
        k = draw.randrange(len(members))
        name, data = members[k]
        change = draw.randrange(8)
        if change == 0:
            members.pop(k)
        elif change == 1:
            members.append((name, bent(draw, data)))
        elif change == 2:
            other = draw.choice(["x.npy", "format.npy", "data.npy", "", "../a.npy", name[:-4]])
            members[k] = other, data
        elif change == 3:
            members[k] = name, draw.choice(members)[1]
        else:
            members[k] = name, bent(draw, data)
    file = io.BytesIO()
    how = draw.choice([zipfile.ZIP_STORED] * 3 + [zipfile.ZIP_DEFLATED] * 2 + [zipfile.ZIP_BZIP2])
    how = zipfile.ZIP_LZMA if draw.random() < 0.1 else how
    with zipfile.ZipFile(file, "w", how) as out:
        for name, data in members:
            if name not in out.NameToInfo or draw.random() < 0.9:
                info = zipfile.ZipInfo(name)
                info.compress_type = how
                out.filelist = [*out.filelist]
                out.NameToInfo.pop(name, None)  # twice is a fault of the file, not of the writer
                out.writestr(info, data)
    packed = file.getvalue()
    return bytes_changed(draw, packed) if broken and draw.random() < 0.5 else packed


def bytes_changed(draw: random.Random, data: bytes) -> bytes:
    """What a disk or a wire may do."""
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        if not data:
            return data
        at, change = draw.randrange(len(data)), draw.randrange(7)
        if change == 0:
            data = data[:at]
        elif change in (1, 2):
            data = data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
        elif change == 3:
            data = data[:at] + draw.randbytes(draw.randrange(1, 9)) + data[at:]
        elif change == 4:
            stop = at + draw.randrange(1, 30)
            data = data[:stop] + data[at:stop] + data[stop:]
        elif change == 5:
            data = data[:at] + data[at + draw.randrange(1, 30) :]
        else:
            data = data[:at] + bytes(draw.randrange(1, 5)) + data[at + 4 :]
    return data


def text_changed(draw: random.Random, text: bytes) -> bytes:
    """What a person or a program may write."""
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        change = draw.randrange(9)
        words = text.split(b" ")
        lines = text.splitlines(keepends=True) or [b""]
        if change == 0:
            text = text[: draw.randrange(len(text) + 1)]
        elif change == 1:
            at = draw.randrange(len(text) + 1)
            text = text[:at] + draw.choice(ODD).encode() + text[at:]
        elif change == 2:
            words[draw.randrange(len(words))] = str(draw.choice(HUGE)).encode()
            text = b" ".join(words)
        elif change == 3:
            lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
            text = b"".join(lines)
        elif change == 4:
            lines.pop(draw.randrange(len(lines)))
            text = b"".join(lines)
        elif change == 5:
            end = draw.choice([b"\r\n", b"\r", b"\n\n", b"\n\r", b" \n", b"\t\n", b"\v", b"\f\n"])
            text = text.replace(b"\n", end, draw.choice([-1, 1, 2]))
        elif change == 6:
            words[draw.randrange(min(6, len(words)))] = draw.choice(WORDS).encode()
            text = b" ".join(words)
        elif change == 7:
            text = text.replace(b" ", draw.choice([b"\t", b",", b"  ", b"\xc2\xa0", b";"]))
        else:
            text = bytes_changed(draw, text)
    return text


def packed(draw: random.Random, text: bytes) -> bytes:
    """The text under gzip, with what can be wrong there."""
    data = gzip.compress(text, mtime=0)
    change = draw.randrange(8)
    if change == 0:
        return bytes_changed(draw, data)
    if change == 1:
        return data + data
    if change == 2:
        return data + draw.choice([b"\0" * 9, b"garbage", b"\x1f\x8b"])
    if change == 3:
        return gzip.compress(data, mtime=0)
    if change == 4:
        return draw.choice([bz2.compress(text), lzma.compress(text)])
    return data


def table(draw: random.Random) -> bytes:
    """Edges with commas or tabs, below names of columns in any order."""
    n, names = draw.randrange(1, 9), ["source", "target"]
    field = draw.choice(["", "integer", "real"])
    rows = [[str(i), str(j)] for i, j in edges(draw, n, 0, "")]
    if field:
        names.append("weight")
        rows = [[*row, number(draw, field)] for row in rows]
    order = draw.sample(range(len(names)), len(names))
    quote = draw.choice(["", "", '"'])
    head = [[names[k] for k in order]] if draw.random() < 0.7 or order != sorted(order) else []
    body = [[f"{quote}{row[k]}{quote}" for k in order] for row in rows]
    mark = draw.choice([",", ",", "\t", ";", ", "]) if head else ","
    end = draw.choice(["\n", "\n", "\r\n"])
    return end.join([mark.join(row) for row in [*head, *body]] + [""]).encode()


def dimacs(draw: random.Random) -> bytes:
    n, kind = draw.randrange(1, 9), draw.choice(["sp", "sp", "edge", "col"])
    rows = edges(draw, n, 1, "")
    field = draw.choice(["integer", "real"])
    lines = [f"a {i} {j} {number(draw, field)}" if kind == "sp" else f"e {i} {j}" for i, j in rows]
    if draw.random() < 0.3:
        lines.insert(draw.randrange(len(lines) + 1), "c a comment")
    return "\n".join(["c made", f"p {kind} {n} {len(rows)}", *lines, ""]).encode()


def metis(draw: random.Random) -> bytes:
    n = draw.randrange(1, 9)
    once = {(i, j) for i, j in edges(draw, n, 0, "symmetric") if i != j}
    weights = {pair: draw.randrange(1, 9) for pair in sorted(once)}
    both = weights | {(j, i): w for (i, j), w in weights.items()}
    weighted, sized = draw.random() < 0.5, draw.random() < 0.3
    lines = []
    for i in range(n):
        words = ["7"] if sized else []
        for j in range(n):
            if (i, j) in both:
                words += [str(j + 1), *([str(both[i, j])] if weighted else [])]
        lines.append(" ".join(words))
    flags = f" {int(sized)}0{int(weighted)}" if weighted or sized or draw.random() < 0.2 else ""
    head = ["% made"] * draw.randrange(2) + [f"{n} {len(once)}{flags}"]
    return "\n".join([*head, *lines, ""]).encode()


def konect(draw: random.Random) -> bytes:
    n, width = draw.randrange(1, 9), draw.randrange(3)
    kind = draw.choice(["unweighted", "positive", "weighted", "weighted"])
    more = [lambda: number(draw, "integer"), lambda: str(draw.randrange(10**9))][:width]
    rows = [" ".join([f"{i} {j}", *(word() for word in more)]) for i, j in edges(draw, n, 1, "")]
    sizes = [f"% {len(rows)} {n} {n}"] * draw.randrange(2)
    return "\n".join([f"% {draw.choice(['sym', 'asym'])} {kind}", *sizes, *rows, ""]).encode()


_TEXTS = (matrix_market, matrix_market, edge_list, table, dimacs, metis, konect)


def suffix(number: int) -> str:
    """The suffix of a file's name, which tells a METIS graph from an edge list."""
    kind = random.Random(number).randrange(1 + len(_TEXTS))
    return ".graph" if kind and _TEXTS[kind - 1] is metis else ""


def graph_file(number: int, folder) -> bytes:
    """The file of a number: valid in about one of seven cases."""
    draw = random.Random(number)
    kind = draw.randrange(1 + len(_TEXTS))
    if kind == 0:
        return archive(draw, folder)
    text = _TEXTS[kind - 1](draw)
    if draw.random() < 0.85:
        text = text_changed(draw, text)
    return packed(draw, text) if draw.random() < 0.2 else text


def binary_file(number: int, folder) -> bytes:
    """A changed Parquet, HDF5 or tar file of a number; needs pyarrow and h5py."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw, path = random.Random(number), folder / "seed"
    n = draw.randrange(1, 30)
    kind = draw.choice([".parquet", ".h5", ".tar"])
    if kind == ".parquet":
        ends = [draw.choices(range(9), k=n) for _ in range(2)]
        ends = [[*map(str, end)] if draw.random() < 0.3 else end for end in ends]
        table = pa.table([*ends, [draw.random() for _ in range(n)]], ["source", "target", "weight"])
        how = draw.choice(["none", "snappy", "zstd", "gzip"])
        pq.write_table(table, path, compression=how, use_dictionary=draw.random() < 0.5)
        return bytes_changed(draw, path.read_bytes())
    S = from_scipy(sp.eye_array(n, format="coo"), backend="cpu")
    path = folder / ("seed.h5" if kind == ".h5" else "seed.mtx")
    write(S, path)
    if kind == ".tar":
        file = io.BytesIO()
        mode = draw.choice(["w", "w:gz"])
        with tarfile.open(fileobj=file, mode=mode, format=draw.randrange(3)) as out:
            out.add(path, "seed/seed.mtx")
        return bytes_changed(draw, file.getvalue())
    return bytes_changed(draw, path.read_bytes())
