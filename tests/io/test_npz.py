"""Archives whose members, headers or packing are broken, and values that SciPy stores."""

import io
import struct
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from file_mutations import npy
from readback import entries, read_cpu

from lagpu.errors import FileFormatError, LimitExceeded, OutOfMemory
from lagpu.host import memory
from lagpu.io.files import read_vector


def archive(path, how=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path, "w", how) as out:
        for name, data in members.items():
            out.writestr(f"{name}.npy", data)
    return path


def parts(form="csc", **changes):
    S = sp.coo_array(([1.0, 2.0], ([0, 1], [1, 2])), shape=(3, 3)).asformat(form)
    file = io.BytesIO()
    sp.save_npz(file, S, compressed=False)
    with zipfile.ZipFile(file) as kept:
        found = {name[:-4]: kept.read(name) for name in kept.namelist()}
    found |= changes
    return {name: data for name, data in found.items() if data is not None}


def header(text, rest=b""):
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode() + rest


BROKEN = {
    "no format": parts(format=None),
    "no data": parts(data=None),
    "a format of numbers": parts(format=npy(np.int64(3))),
    "another format": parts(format=npy(np.bytes_(b"xyz"))),
    "objects": parts(data=npy([{}, {}], dtype=object)),
    "dates": parts(data=npy(np.array([1, 2], "M8[s]"))),
    "a type of no bytes": parts(data=npy(np.empty(10**6, "S0"))),
    "a shape of no end": parts(data=header("{'descr': '<f8', 'fortran_order': False, 'shape': (2")),
    "a header that is no Python": parts(data=header("{'descr': ((((")),
    "a negative size": parts(
        data=header("{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -1)}", bytes(16))
    ),
    "an unknown version": parts(data=b"\x93NUMPY\x09\0" + bytes(100)),
    "no array": parts(data=b"hello"),
    "an empty member": parts(data=b""),
    "a shape of three": parts(shape=npy([3, 3, 3])),
    "a negative shape": parts(shape=npy([-3, 3])),
    "a shape of fractions": parts(shape=npy([3.0, 3.0])),
    "indices of fractions": parts(indices=npy([0.0, 1.0])),
    "an index outside": parts(indices=npy([0, 3])),
    "a negative index": parts(indices=npy([0, -1])),
    "too few pointers": parts(indptr=npy([0, 2])),
    "blocks whose pointers fall": parts("bsr", indptr=npy([0, 3, 0, 0])),
    "blocks of another size": parts("bsr", data=npy(np.ones((2, 2, 2)))),
    "diagonals outside": parts("dia", offsets=npy([10**15])),
    "a diagonal given twice": parts("dia", offsets=npy([1, 1]), data=npy(np.ones((2, 3)))),
    "diagonals of one row": parts("dia", data=npy(np.ones(3))),
    "coordinates outside": parts("coo", row=npy([0, 3])),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_archive_is_refused(tmp_path, what):
    with pytest.raises(FileFormatError, match=r"a\.npz is not a matrix archive: .") as caught:
        read_cpu(archive(tmp_path / "a.npz", **BROKEN[what]))
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("form", ["csc", "csr", "bsr"])
@pytest.mark.parametrize("extra", [-1, 1])
def test_values_for_other_indices_are_refused_before_scipy_sees_them(tmp_path, form, extra):
    shape = (2 + extra, 1, 1) if form == "bsr" else (2 + extra,)
    path = archive(tmp_path / "a.npz", **parts(form, data=npy(np.ones(shape))))
    with pytest.raises(FileFormatError, match="values do not fit 2 indices"):
        read_cpu(path)


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_broken_packing_is_refused_whichever_it_is(tmp_path, how):
    path = archive(tmp_path / "a.npz", how, **parts())
    assert read_cpu(path).nvals == 2
    data = path.read_bytes()
    refused = 0
    for at in range(30, len(data) - 22, 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        try:  # some bytes say nothing
            assert read_cpu(path).nvals == 2
        except FileFormatError:
            refused += 1
    assert refused > 20


def test_an_encrypted_archive_is_refused(tmp_path):
    data = bytearray(archive(tmp_path / "a.npz", **parts()).read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(mark)
        while at >= 0:
            data[at + offset] |= 1
            at = data.find(mark, at + 1)
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(FileFormatError, match="encrypted"):
        read_cpu(tmp_path / "a.npz")


def test_a_member_given_twice_is_refused(tmp_path):
    path = archive(tmp_path / "a.npz", **parts())
    with (
        pytest.warns(UserWarning, match="Duplicate"),
        zipfile.ZipFile(path, "a") as out,
    ):
        out.writestr("data.npy", npy([8.0, 9.0]))
    with pytest.raises(FileFormatError, match=r"data\.npy is there twice"):
        read_cpu(path)


@pytest.mark.parametrize("form", ["csc", "csr", "bsr", "coo", "dia"])
def test_every_format_of_scipy(tmp_path, form):
    path = archive(tmp_path / "a.npz", **parts(form))
    assert entries(read_cpu(path)) == [(0, 1, 1.0), (1, 2, 2.0)]


@pytest.mark.parametrize(("shape", "edges"), [((2, 4), [-1, 3]), ((4, 2), [-3, 1])])
def test_diagonals_at_the_corners(tmp_path, shape, edges):
    """The first and the last diagonal of a matrix that is not square, and those beyond."""
    for k in edges:
        S = sp.dia_array((np.ones((1, shape[1])), [k]), shape=shape)
        sp.save_npz(tmp_path / "a.npz", S)
        assert read_cpu(tmp_path / "a.npz").nvals == 1
    for k in (edges[0] - 2, edges[1] + 2):
        sp.save_npz(tmp_path / "a.npz", sp.dia_array((np.ones((1, 9)), [k]), shape=shape))
        with pytest.raises(FileFormatError, match="a diagonal outside"):
            read_cpu(tmp_path / "a.npz")


@pytest.mark.parametrize("block", [(0, 1), (1, 0), (2, 1), (1, 2)])
def test_blocks_that_do_not_fit_the_shape(tmp_path, block):
    path = archive(tmp_path / "a.npz", **parts("bsr", data=npy(np.ones((2, *block)))))
    with pytest.raises(FileFormatError, match=r"blocks \([012], [012]\) do not fit"):
        read_cpu(path)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_an_archive_without_rows_or_columns(tmp_path, shape):
    sp.save_npz(tmp_path / "a.npz", sp.csc_array(shape))
    found = read_cpu(tmp_path / "a.npz")
    assert (found.shape, found.nvals) == (shape, 0)


def test_numbers_of_another_byte_order(tmp_path):
    path = archive(tmp_path / "a.npz", **parts(data=npy(np.array([1.0, 2.0], ">f8"))))
    assert entries(read_cpu(path)) == [(0, 1, 1.0), (1, 2, 2.0)]


def test_a_packed_archive_asks_before_it_unpacks(tmp_path, monkeypatch):
    """A few kilobytes of zeros."""
    path = archive(tmp_path / "a.npz", zipfile.ZIP_DEFLATED, **parts(data=npy(np.zeros(10**6))))
    assert path.stat().st_size < 20_000
    monkeypatch.setenv("LAGPU_READ_LIMIT", "1e6")
    with pytest.raises(LimitExceeded, match=r"its arrays: needs .* or set LAGPU_READ_LIMIT=2e\+07"):
        read_cpu(path)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 20)
    with pytest.raises(OutOfMemory, match="its arrays: needs"):
        read_cpu(path)


def test_a_shape_asks_for_memory_before_it_is_taken(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.npz", **parts("coo", shape=npy([3, 10**12])))
    with pytest.raises(OutOfMemory, match=r"3 x 1000000000000: needs"):
        read_cpu(path)
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**15)
    with pytest.raises(LimitExceeded, match=r"3 x 1000000000000: needs"):
        read_cpu(path)


def test_a_vector_archive_is_checked_in_the_same_way(tmp_path):
    path = archive(tmp_path / "a.npz", indices=npy([0, 1]), values=header("{'descr': (((("))
    with pytest.raises(FileFormatError, match=r"has no arrays `indices` and `values`: ."):
        read_vector(path)


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_types_that_widen_are_summed_afterwards(tmp_path, form):
    values, ones, ptr = np.array([100, 100], np.int8), np.array([1, 1]), np.array([0, 2, 2])
    given = (values, (ones - 1, ones)) if form == "coo" else (values, ones, ptr)
    S = getattr(sp, f"{form}_array")(given, shape=(2, 2))
    sp.save_npz(tmp_path / "graph.npz", S)
    assert read_cpu(tmp_path / "graph.npz").to_coo()[2].tolist() == [200]
