"""Any file: its format by content, archives, what is written and read back."""

import contextlib
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from readback import BANNER, edges, entries, read_cpu

from lagpu.dtypes import BOOL, FP32, FP64, INT32, INT64, UINT64
from lagpu.errors import (
    BackendUnavailable,
    DimensionMismatch,
    FileFormatError,
    FileMissing,
    InvalidValue,
    NotSupported,
    OutOfMemory,
)
from lagpu.host import memory
from lagpu.io import formats, from_scipy, to_scipy, write, write_vector
from lagpu.io.csc import CSC


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (bytes(range(256)), "is binary"),
        (b"\x89PNG\r\n\x1a\n", "is a picture. Give the graph"),
        ("0 1\n".encode("utf-16"), "is text in UTF-16. Convert"),
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


def test_a_misspelt_name_gets_the_nearest_one(tmp_path):
    (tmp_path / "karate.txt").write_text("0 1\n")
    for name in ("karat.txt", "Karate.txt", "kartae.txt"):
        with pytest.raises(FileMissing, match=r"Did you mean .*karate\.txt\?$"):
            read_cpu(tmp_path / name)
    for path in (tmp_path / "enron.mtx", tmp_path / "none" / "karate.txt"):
        with pytest.raises(FileMissing, match=r"Check the name\.$"):
            read_cpu(path)
    (tmp_path / "link.txt").symlink_to("gone.txt")
    with pytest.raises(FileMissing, match=r"It is a link to gone\.txt, which is missing\.$"):
        read_cpu(tmp_path / "link.txt")


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
    monkeypatch.setattr(memory, "available_bytes", lambda: 18 << 20)
    with pytest.raises(OutOfMemory, match=r"read: graph, its text: needs"):
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
        ({"col_ptr": np.array([0.0, 1, 2, 3])}, "not a list of whole numbers"),
        ({"row_idx": np.array([0, 1, 3])}, "a row outside"),
        ({"row_idx": np.array([0, -1, 1])}, "a row outside"),
        ({"row_idx": np.array([2, 1, 1])}, "do not rise within"),
        ({"row_idx": np.array([1, 1, 0])}, "do not rise within"),
        ({"row_idx": np.array([0, 2, 1]), "col_ptr": np.array([0, 0, 0, 3])}, "do not rise within"),
        ({"row_idx": None}, "row_idx"),
        ({"values": np.array([1.0, 2.0])}, r"\(2,\) values"),
        ({"shape": np.array([3])}, "not a matrix archive"),
        ({"shape": np.array([-3, 3])}, "not a matrix archive"),
        (
            {
                "shape": np.array([-1, 3]),
                "col_ptr": np.zeros(4, int),
                "row_idx": np.zeros(0, int),
                "values": np.zeros(0),
            },
            r"the shape \(-1, 3\) is not of a matrix",
        ),
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


@pytest.mark.parametrize("form", formats.FORMATS, ids=lambda form: form.name)
def test_numbers_beyond_int64_come_back_or_are_refused(tmp_path, form):
    """A text would read back as others, rounded or not at all, and METIS had negative ones."""
    path, n = tmp_path / f"a{form.suffixes[0]}", 2**63
    values = np.array([n, n, 5, 5], np.uint64)
    A = from_scipy(sp.csc_array((values, ([0, 1, 2, 3], [1, 0, 3, 2]))), backend="cpu")
    if "unsigned" in form.holds and form.extra:
        pytest.importorskip({"parquet": "pyarrow", "hdf5": "h5py"}[form.extra])
    if "unsigned" in form.holds:
        write(A, path)
        assert entries(read_cpu(path)) == entries(A)
        return
    with pytest.raises(InvalidValue, match="has no place for"):
        write(A, path)
    if "values" in form.holds and form.suffixes != (".wsg",):
        less = A.apply("minus", right=1).new()
        with contextlib.suppress(BackendUnavailable):
            write(less, path)
            assert entries(read_cpu(path)) == entries(less)


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

    def interrupted(file, *_, **__):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr("scipy.io.mmwrite", interrupted)
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
    monkeypatch.setattr("lagpu.io.reading._LINES", 2)
    csc = CSC(5, 5, np.arange(6), np.array([1, 2, 3, 4, 0]))
    file = io.BytesIO()
    formats.by_suffix(Path("a.txt")).dump(csc, file)
    assert file.getvalue().splitlines()[2:] == [b"1\t0", b"2\t1", b"3\t2", b"4\t3", b"0\t4"]


def test_scipy_archive_of_a_vector(tmp_path):
    sp.save_npz(tmp_path / "a.npz", sp.coo_array(([1.0], ([2],)), shape=(4,)))
    with pytest.raises(FileFormatError, match="a 1-D array"):
        read_cpu(tmp_path / "a.npz")
