"""Files that lead elsewhere, unpack to more than they say, or run something: refused by name.

Each trick is tried with a file of its own that it would read, and with a pipe, that none would end.
"""

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import signal
import subprocess
import sys
import tarfile
import zipfile
import zlib

import numpy as np
import pytest
from file_mutations import npy
from readback import edges, entries, read_cpu

from lagpu.cli import main
from lagpu.errors import FileFormatError, LagpuError, LimitExceeded

TOP = b"%%MatrixMarket matrix coordinate pattern general\n"
MATRIX = TOP + b"2 2 1\n1 2\n"


@pytest.fixture(autouse=True)
def bell():
    """End a test that waits for a pipe."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits without end"))
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def secret(tmp_path):
    (tmp_path / "secret").write_bytes(b"password=hunter2")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


# ---------------------------------------------------------------------------------------- HDF5
def binsparse(path, values):
    """Save a matrix whose values are made by a function of the open file."""
    h5py = pytest.importorskip("h5py")
    kinds = dict.fromkeys(("indices_0", "indices_1", "values"), "uint8")
    head = {"version": "0.1", "format": "COO", "shape": [256, 256], "number_of_stored_values": 16}
    with h5py.File(path, "w") as h5:
        h5.attrs["binsparse"] = json.dumps({"binsparse": head | {"data_types": kinds}})
        h5["indices_0"] = h5["indices_1"] = np.arange(16, dtype=np.uint8)
        values(h5py, h5)
    return path


def virtual(h5py, h5, source, most=None):
    layout = h5py.VirtualLayout((16,), "u1", maxshape=(most,))
    whole = slice(None) if most else slice(h5py.h5s.UNLIMITED)
    layout[whole] = h5py.VirtualSource(source, "x", (16,), maxshape=(most,))[whole]
    h5.create_virtual_dataset("values", layout)


def linked(h5py, h5, source):
    h5["values"], h5["out"] = h5py.SoftLink("/out/x"), h5py.ExternalLink(source, "/")


ELSEWHERE = {
    "storage": lambda _, h5, at: h5.create_dataset("values", (16,), "u1", external=[(at, 0, 16)]),
    "virtual": lambda h5py, h5, at: virtual(h5py, h5, at, 16),
    "unlimited": virtual,
    "link": lambda h5py, h5, at: h5.__setitem__("values", h5py.ExternalLink(at, "x")),
    "linked": linked,
    "soft": lambda h5py, h5, at: h5.__setitem__("values", h5py.SoftLink("/indices_0")),
}  # fmt: skip


@pytest.mark.extra
@pytest.mark.parametrize("source", ["secret", "pipe"])
@pytest.mark.parametrize("trick", ELSEWHERE)
def test_hdf5_in_other_files(secret, trick, source):
    at = str(secret / source)
    path = binsparse(secret / "a.h5", lambda h5py, h5: ELSEWHERE[trick](h5py, h5, at))
    with pytest.raises(FileFormatError, match=r"values is (in another file|a link, which may)"):
        read_cpu(path)


def filtered(code):
    def values(h5py, h5):
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        how.set_chunk((16,))
        how.set_filter(code, h5py.h5z.FLAG_OPTIONAL, (1, 2))
        space = h5py.h5s.create_simple((16,))
        h5py.h5d.create(h5.id, b"values", h5py.h5t.NATIVE_UINT8, space, how)

    return values


def referring(h5py, h5):
    h5.create_dataset("values", (16,), h5py.regionref_dtype)[0] = h5["indices_0"].regionref[:3]


ODD = {
    "a filter that would be loaded": (filtered(32001), r"packed by HDF5 filters \[32001\]"),
    "gzip twice": (lambda h5py, h5: twice(h5py, h5), r"packed by HDF5 filters \[1, 1\]"),
    "region references": (referring, "has the type object"),
    "records": (
        lambda _, h5: h5.create_dataset("values", data=np.zeros(16, [("a", "u1")])),
        "has the type",
    ),
    "lists": (
        lambda h5py, h5: h5.create_dataset("values", (16,), h5py.vlen_dtype(np.uint8)),
        "has the type object",
    ),
    "texts": (lambda _, h5: h5.create_dataset("values", data=["x"] * 16), "has the type object"),
    "a group": (lambda _, h5: h5.create_group("values"), "values is no array"),
    "nothing": (lambda _, h5: None, "there is no values"),
    "values of a wider type": (
        lambda _, h5: h5.create_dataset("values", data=np.arange(300, 316)),
        "has values of the type int64 that uint8 has not",
    ),
}


def twice(h5py, h5):
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_chunk((16,))
    how.set_deflate(9)
    how.set_deflate(9)
    h5py.h5d.create(h5.id, b"values", h5py.h5t.NATIVE_UINT8, h5py.h5s.create_simple((16,)), how)


@pytest.mark.extra
@pytest.mark.parametrize("what", ODD)
def test_odd_arrays_of_hdf5(tmp_path, what):
    values, message = ODD[what]
    with pytest.raises(FileFormatError, match=message):
        read_cpu(binsparse(tmp_path / "a.h5", values))


@pytest.mark.extra
@pytest.mark.parametrize("how", [{}, {"compression": "gzip"}, {"compression": "lzf"}])
def test_packed_arrays_of_hdf5(tmp_path, how):
    how |= {"chunks": (4,), "shuffle": True, "fletcher32": True}
    data = np.arange(16, dtype=np.uint8)
    path = binsparse(tmp_path / "a.h5", lambda _, h5: h5.create_dataset("values", data=data, **how))
    assert entries(read_cpu(path)) == [(k, k, k) for k in range(16)]


@pytest.mark.extra
def test_a_chunk_that_unpacks_to_more_than_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr("lagpu.io.binsparse._LARGE", 1000)

    def values(_, h5):
        how = {"chunks": (16,), "compression": "gzip"}
        array = h5.create_dataset("values", (16,), "u1", **how)
        array.id.write_direct_chunk((0,), zlib.compress(bytes(10**7), 9))

    with pytest.raises(FileFormatError, match=r"values unpacks to more than its size"):
        read_cpu(binsparse(tmp_path / "a.h5", values))

    def large(_, h5):
        h5["values"] = np.zeros(16, np.uint8)
        del h5["indices_1"]
        data = np.arange(16, dtype=np.uint8)
        h5.create_dataset("indices_1", data=data, chunks=(10**7,), maxshape=(None,), **packed)

    packed = {"compression": "gzip"}
    monkeypatch.setenv("LAGPU_READ_LIMIT", "1e6")
    with pytest.raises(LimitExceeded, match=r"a\.h5, 256 x 256: needs 0\.0 GB, more than the"):
        read_cpu(binsparse(tmp_path / "a.h5", large))


@pytest.mark.extra
def test_a_heap_without_end_of_hdf5(tmp_path):
    """In another process: libhdf5 would not come back from it, for Ctrl-C neither."""
    path = binsparse(tmp_path / "a.h5", lambda _, h5: h5.__setitem__("values", np.zeros(16, "u1")))
    data = bytearray(path.read_bytes())
    heap = data.index(b"GCOL")
    data[heap + 24 : heap + 32] = (8).to_bytes(8, "little")  # the text's size, and then
    data[heap + 40 : heap + 56] = bytes(16)  # free space of no size
    path.write_bytes(data)
    code = "import sys, lagpu.io; lagpu.io.read(sys.argv[1], backend='cpu')"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert "FileFormatError: read: a.h5 is no matrix of Binsparse: a heap of t" in done.stderr


# ----------------------------------------------------------------------- archives of NumPy, zip
class Opens:
    """A pickle of it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_pickles_are_not_opened(tmp_path):
    made = tmp_path / "made"
    objects = npy([Opens(made)], dtype=object)
    assert b"builtins" in objects or b"open" in objects
    for name in ("data.npy", "values.npy", "lagpu_format.npy", "iso.npy"):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as out:
            out.writestr(name, objects)
        with pytest.raises(FileFormatError, match=r"is not a matrix archive"):
            read_cpu(tmp_path / "a.npz")
    for protocol in range(6):
        (tmp_path / "a.npz").write_bytes(pickle.dumps(Opens(made), protocol))
        with pytest.raises(LagpuError):
            read_cpu(tmp_path / "a.npz")
    assert not made.exists()


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_that_unpack_without_bounds(tmp_path, how):
    """Some hundred bytes, whose first block would be hundreds of megabytes."""
    with zipfile.ZipFile(tmp_path / "a.npz", "w", how) as out:
        out.writestr("data.npy", npy(np.zeros(100)))
    with pytest.raises(FileFormatError, match=r"data\.npy is packed in a way that NumPy does not"):
        read_cpu(tmp_path / "a.npz")


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_graph_that_unpacks_without_bounds(tmp_path, how):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", how) as out:
        out.writestr("../a.mtx", MATRIX)
    with pytest.raises(FileFormatError, match=r"a\.zip: \.\./a\.mtx: it is encrypted, or not"):
        read_cpu(tmp_path / "a.zip")
    assert [x.name for x in tmp_path.iterdir()] == ["a.zip"]


def test_an_archive_in_an_archive(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as out:
        out.writestr("a.mtx", MATRIX)
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as out:
        out.writestr("a.zip", inner.getvalue())
    with pytest.raises(FileFormatError):
        read_cpu(tmp_path / "b.zip")


# --------------------------------------------------------------------------------- tar archives
def tar(path, mode="w:gz", **members):
    """Save an archive, whose members are contents by name, or other things."""
    with tarfile.open(path, mode) as out:
        folder = tarfile.TarInfo("A")
        folder.type = tarfile.DIRTYPE
        out.addfile(folder)
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
                out.addfile(info, io.BytesIO(content))
            else:
                info.type, info.linkname = content
                out.addfile(info)
    return path


@pytest.mark.parametrize(("suffix", "mode"), [(".tar.gz", "w:gz"), (".tar", "w"), (".tgz", "w:gz")])
def test_the_matrix_in_a_tar_archive(tmp_path, suffix, mode):
    other = TOP + b"3 3 1\n3 3\n"
    path = tar(tmp_path / f"A{suffix}", mode, **{"A/A.mtx": MATRIX})
    assert edges(read_cpu(path)) == [(0, 1)]
    more = {"A/A_b.mtx": other, "A/A.mtx": MATRIX[:-1], "A/A_coord.mtx": other, "A/README": b"x"}
    path = tar(tmp_path / f"A{suffix}", mode, **more)
    assert edges(read_cpu(path)) == [(0, 1)]
    path = tar(tmp_path / f"B{suffix}", mode, **more)
    with pytest.raises(FileFormatError, match=r"tar archive \('A/A_b\.mtx', 'A/A.mtx', 'A/"):
        read_cpu(path)
    path = tar(tmp_path / f"A{suffix}", mode, **{"A/A.mtx": MATRIX, "B/A.mtx": other})
    with pytest.raises(FileFormatError, match=r"'B/A\.mtx'\), and which of them is the graph is"):
        read_cpu(path)
    path = tar(tmp_path / f"A{suffix}", mode, **{"a.txt": b"0 1\n", "README.txt": b"x"})
    assert edges(read_cpu(path)) == [(0, 1)]
    with pytest.raises(
        FileFormatError, match=rf"A{suffix} \(A\.mtx\), line 3: '1' is not 2 numbers"
    ):
        read_cpu(tar(tmp_path / f"A{suffix}", mode, **{"A.mtx": TOP + b"2 2 1\n1\n"}))


def test_the_command_line_reads_a_tar_archive(tmp_path):
    path = tar(tmp_path / "A.tar.gz", **{"A/A.mtx": MATRIX, "A/A_b.mtx": MATRIX})
    assert main(["bfs", str(path), "-s", "0", "-b", "cpu", "--check"]) == 0
    assert [x.name for x in tmp_path.iterdir()] == ["A.tar.gz"]  # nothing is unpacked to the disk


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_tar_archives_that_lead_elsewhere(secret, kind):
    for name in ("A.mtx", "../A.mtx", str(secret / "A.mtx")):
        path = tar(secret / "A.tar", "w", **{name: (kind, str(secret / "secret"))})
        with pytest.raises(FileFormatError, match=r"\(\), and there is no file in it"):
            read_cpu(path)
        path = tar(secret / "A.tar", "w", **{name: MATRIX})
        assert edges(read_cpu(path)) == [(0, 1)]  # a name is only compared
        assert not (secret / "A.mtx").exists()


def test_damaged_tar_archives(tmp_path):
    path = tar(tmp_path / "A.tar", "w", **{"A.mtx": MATRIX})
    data = path.read_bytes()
    at = data.index(b"A.mtx")
    below = bytearray(data)  # a size below 0, by which some versions of Python go backwards
    below[at + 124 : at + 136] = b"\xff" * 10 + b"\xfc\x00"
    below[at + 148 : at + 156] = b" " * 8
    total = sum(below[at : at + 512])
    below[at + 148 : at + 156] = b"%06o\0 " % total
    for damaged in (bytes(below), data[: at + 512], data[: at + 300], data[:512]):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError):
            read_cpu(path)
    with pytest.raises(FileFormatError, match=r"more than 1000 files"):
        read_cpu(tar(path, "w", **{f"{k}.mtx": b"" for k in range(1002)}))


# -------------------------------------------------------------------------------------- Parquet
@pytest.mark.extra
def test_parquet_in_another_file(secret):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"source": [0, 1], "target": [1, 2]})
    pq.write_table(table, secret / "other.parquet")
    metadata = pq.read_metadata(secret / "other.parquet")
    metadata.set_file_path("other.parquet")
    metadata.write_metadata_file(secret / "a.parquet")
    with pytest.raises(FileFormatError, match=r"is no table of Parquet"):
        read_cpu(secret / "a.parquet")


@pytest.mark.extra
def test_parquet_that_unpacks_to_more(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    zeros, names = np.zeros(10**6, np.int64), ["x" * 10**6, "y"]
    pq.write_table(pa.table({"source": zeros, "target": zeros}), tmp_path / "a.parquet")
    pq.write_table(
        pa.table({"source": names, "target": names}), tmp_path / "b.parquet", compression="zstd"
    )
    monkeypatch.setenv("LAGPU_READ_LIMIT", "5e5")
    for name in ("a", "b"):
        with pytest.raises(LimitExceeded, match=rf"{name}\.parquet, its rows: needs"):
            read_cpu(tmp_path / f"{name}.parquet", renumber=True)


# ------------------------------------------------------------------------- bombs, measured whole
@pytest.mark.ci
@pytest.mark.parametrize("kind", ["gzip", "tar", "lzma", "zip", "bz2", "xz"])
def test_nothing_unpacks_beyond_the_limit(tmp_path, kind, monkeypatch):
    """In another process, whose memory is bounded: a named error before it is taken."""
    monkeypatch.setenv("LAGPU_READ_LIMIT", "5e7")
    path, zeros = tmp_path / "a", bytes(1 << 24)
    if kind in ("lzma", "zip"):
        how = zipfile.ZIP_LZMA if kind == "lzma" else zipfile.ZIP_DEFLATED
        with (
            zipfile.ZipFile(path, "w", how, compresslevel=1) as out,
            out.open("data.npy" if kind == "lzma" else "a.txt", "w", force_zip64=True) as member,
        ):
            for _ in range(1 << 3):
                member.write(zeros)
    elif kind in ("bz2", "xz"):
        with bz2.BZ2File(path, "w") if kind == "bz2" else lzma.LZMAFile(path, "w") as out:
            for _ in range(1 << 3):
                out.write(zeros)
    else:
        head = tarfile.TarInfo("a.mtx")
        head.size = 1 << 28
        first = head.tobuf() if kind == "tar" else b"0 1\n"
        path.write_bytes(gzip.compress(first) + gzip.compress(zeros) * (1 << 4))  # in members
    code = (
        "import re, sys, lagpu.io\n"
        "try: lagpu.io.read(sys.argv[1], backend='cpu')\n"
        "except lagpu.errors.LagpuError as error: print(type(error).__name__)\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    name, used = done.stdout.split()
    assert name in ("LimitExceeded", "FileFormatError", "OutOfMemory")
    assert int(used) < 3e5  # kilobytes: the limit, and Python
