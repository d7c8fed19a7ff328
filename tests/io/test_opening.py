"""Open files, packed files and archives: what is read, and which member is the graph."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest
from readback import edges, entries, read_cpu

from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io import from_arrays, opening, slices, write

PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, "": bytes}
TEXT = b"0 1\n1 2\n"
FOUND = [(0, 1), (1, 2)]


def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return path


def tarred(path, mode, **members):
    with tarfile.open(path, mode) as out:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return path


# ------------------------------------------------------------------------------------ open files
class Dribbles(io.RawIOBase):
    """Gives three bytes at a time, as a network may, and cannot seek."""

    def __init__(self, data):
        self.data = io.BytesIO(data)

    def read(self, size=-1):
        return self.data.read(3)


@pytest.mark.parametrize("suffix", PACKED)
def test_open_files(tmp_path, suffix):
    data = PACKED[suffix](TEXT)
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(data)
    with path.open("rb") as stream, gzip.open(io.BytesIO(gzip.compress(data))) as other:
        for source in (path, str(path), stream, io.BytesIO(data), Dribbles(data), other):
            assert edges(read_cpu(source)) == FOUND
        assert not stream.closed


def test_open_texts(tmp_path):
    assert edges(read_cpu(io.StringIO(TEXT.decode()))) == FOUND
    source = io.StringIO("a line\n" + TEXT.decode())
    source.readline()
    assert edges(read_cpu(source)) == FOUND  # from where it is
    A, ids = read_cpu(io.StringIO("\u00e9 b\n"), renumber=True)
    assert (edges(A), ids.tolist()) == ([(1, 0)], ["b", "\u00e9"])
    path = tmp_path / "latin.txt"
    path.write_bytes("\u00e9 b\n".encode("latin-1"))
    with path.open(encoding="latin-1") as stream:
        assert read_cpu(stream, renumber=True)[1].tolist() == ["b", "\u00e9"]
    with path.open(encoding="utf-8") as stream, pytest.raises(FileFormatError, match="binary mode"):
        read_cpu(stream, renumber=True)


def test_the_name_of_an_open_file_says_its_format(tmp_path):
    path = tmp_path / "a.graph"
    path.write_text("2 1\n2\n1\n")
    with path.open() as stream:
        assert edges(read_cpu(stream)) == [(0, 1), (1, 0)]
    with pytest.raises(FileFormatError, match=r"read: BytesIO is empty"):
        read_cpu(io.BytesIO())
    with pytest.raises(FileFormatError, match=r"read: StringIO, line 1: 'x' has 1 numbers"):
        read_cpu(io.StringIO("x\n"))


def test_what_is_no_file_of_bytes(tmp_path):
    class Numbers:
        def read(self, size):
            return 5

    with pytest.raises(InvalidValue, match=r"read: Numbers returns int, not bytes"):
        read_cpu(Numbers())
    closed = io.BytesIO(TEXT)
    closed.close()
    with pytest.raises(InvalidValue, match=r"read: BytesIO: I/O operation on closed file"):
        read_cpu(closed)


@pytest.mark.parametrize("place", ["cpu", "grid:3:cpu"])
def test_an_archive_of_numpy_that_is_open(tmp_path, place):
    A = from_arrays([0, 1], [1, 2], [1.5, 2.5], nrows=3, ncols=3, backend="cpu")
    write(A, tmp_path / "a.npz")
    with (tmp_path / "a.npz").open("rb") as stream:
        assert entries(opening_read(stream, place)) == entries(A)


def opening_read(source, backend):
    from lagpu.io import read

    return read(source, backend=backend)


# ------------------------------------------------------------------------------ packed, archives
@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_packed_files_are_written_and_read(tmp_path, suffix):
    A = from_arrays([0, 1], [1, 2], [3, 4], nrows=4, ncols=4, backend="cpu")
    path = tmp_path / f"a.mtx{suffix}"
    write(A, path)
    data = path.read_bytes()
    assert data == PACKED[suffix](b"")[:2] + data[2:]
    B = read_cpu(path)
    assert (entries(B), B.shape) == (entries(A), A.shape)
    for damaged in (data[:-5], data[:12] + b"junkjunkjunk" + data[24:]):
        path.write_bytes(damaged)
        with pytest.raises(FileFormatError, match="truncated or damaged"):
            read_cpu(path)


def test_a_grid_reads_shares_of_packed_files(tmp_path, monkeypatch):
    shared, real = [], slices._Reader.read_shares
    monkeypatch.setattr(slices._Reader, "read_shares", lambda *of: shared.append(1) or real(*of))
    text = "".join(f"{k} {k + 1}\n" for k in range(20_000)).encode()
    for suffix, pack in PACKED.items():
        (tmp_path / f"a.txt{suffix}").write_bytes(pack(text))
        for path in (tmp_path / f"a.txt{suffix}", f"{tmp_path}/a.txt{suffix}"):
            A = opening_read(path, "grid:3:cpu")
            assert (A.nvals, A.nrows) == (20_000, 20_001)
    assert len(shared) == 2 * len(PACKED)


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz", ".tar.bz2", ".tar.xz"])
@pytest.mark.parametrize(
    ("archive", "members", "graph"),
    [
        ("x", ["a.txt"], "a.txt"),
        ("x", ["notes"], "notes"),  # the only one
        ("x", ["x/README.txt", "LICENSE", "x/b.mtx", "x/.c.mtx", "__MACOSX/b.mtx"], "x/b.mtx"),
        ("x", ["x/x.mtx", "x/x_b.mtx", "x/x_coord.mtx"], "x/x.mtx"),
        ("download.tsv.k", ["k/out.k", "k/meta.k", "k/README.k", "k/ent.k.names.txt"], "k/out.k"),
        ("x", ["a.txt", "x.txt.gz"], "x.txt.gz"),
        ("x", ["a.txt", "b.txt"], ""),
        ("x", ["out.a", "out.b", "c.txt"], ""),
        ("x", ["p/x.mtx", "q/x.mtx"], ""),
        ("x", [".hidden"], ""),
        ("x", ["a", "b"], ""),
    ],
)
def test_which_member_is_the_graph(tmp_path, suffix, archive, members, graph):
    matrix = b"%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n"
    contents = dict.fromkeys(members, b"7 7\n7 8\n")
    if graph:
        contents[graph] = matrix if graph.endswith(".mtx") else TEXT
        contents[graph] = gzip.compress(TEXT) if graph.endswith(".gz") else contents[graph]
    path = tmp_path / f"{archive}{suffix}"
    if suffix == ".zip":
        zipped(path, **contents)
    else:
        tarred(path, f"w:{suffix[5:]}", **contents)
    if graph:
        assert edges(read_cpu(path)) == FOUND
        with path.open("rb") as stream:
            assert edges(read_cpu(stream)) == FOUND
    else:
        shown = "there is no file" if members == [".hidden"] else members[-1]
        with pytest.raises(FileFormatError, match=rf"read: {path.name} is a .*archive .*{shown}"):
            read_cpu(path)


def test_the_member_of_a_choice_is_read_as_an_open_file(tmp_path):
    path = zipped(tmp_path / "x.zip", **{"a.txt": b"7 7\n", "b.txt": TEXT})
    with zipfile.ZipFile(path) as archive, archive.open("b.txt") as member:
        assert edges(read_cpu(member)) == FOUND


def test_names_of_members_are_shown_in_one_line(tmp_path):
    path = zipped(tmp_path / "x.zip", **{"a\nb\x1b.txt": b"0 x\n"})
    with pytest.raises(FileFormatError, match=r"x\.zip \(a\\nb\\x1b\.txt\), line 1") as error:
        read_cpu(path)
    assert len(str(error.value).splitlines()) == 1


def test_encrypted_and_damaged_members(tmp_path):
    path = zipped(tmp_path / "x.zip", **{"a.txt": TEXT * 100})
    data = bytearray(path.read_bytes())
    for at in (6, data.index(b"PK\x01\x02") + 8):
        data[at] |= 1
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"x\.zip: a\.txt: it is encrypted"):
        read_cpu(path)
    path = zipped(tmp_path / "x.zip", **{"a.txt": TEXT * 100})
    data = bytearray(path.read_bytes())
    data[36:40] = b"junk"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"read: x\.zip: a\.txt: "):
        read_cpu(path)


def test_a_tar_archive_that_unpacks_in_small_parts(tmp_path):
    path = tarred(tmp_path / "x.tar", "w", **{"a.txt": TEXT})
    data = path.read_bytes()
    parts = [gzip.compress(data[k : k + 100]) for k in range(0, len(data), 100)]
    (tmp_path / "x.tgz").write_bytes(b"".join(parts))
    assert edges(read_cpu(tmp_path / "x.tgz")) == FOUND


def test_nothing_is_opened_twice(tmp_path):
    """The suffix alone does not make a packed file: its first bytes do."""
    (tmp_path / "a.txt.gz").write_bytes(TEXT)
    assert edges(read_cpu(tmp_path / "a.txt.gz")) == FOUND
    with opening.opened(tmp_path / "a.txt.gz") as found:
        assert opening.unpacked(found.stream) is found.stream
