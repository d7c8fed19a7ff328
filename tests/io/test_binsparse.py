"""Binsparse in HDF5: each form of the specification, descriptors that contradict the arrays."""

import io
import json

import numpy as np
import pytest
from readback import entries, read_cpu

from lagpu.dtypes import BOOL, FP32, INT64
from lagpu.errors import FileFormatError, LimitExceeded, NotSupported
from lagpu.host import memory
from lagpu.io import write

h5py = pytest.importorskip("h5py")
pytestmark = pytest.mark.extra

# The matrix of the specification's example: 5 x 5, nine entries in one triangle.
SYMMETRIC = {
    "pointers_to_1": [0, 1, 3, 5, 7, 9],
    "indices_1": [0, 0, 1, 0, 2, 1, 3, 2, 4],
    "values": [1, 2, 9, 7, 2, 2, 3, 3, 7],
}
ROWS = {"pointers_to_1": [0, 2, 2, 3], "indices_1": [1, 3, 0], "values": [5, 6, 7]}
ENTRIES = [(0, 1, 5), (0, 3, 6), (2, 0, 7)]


def laid_out(arrays, form="CSR", shape=(3, 4), version="0.1", values="int64", **more):
    kinds = dict.fromkeys(arrays, "uint64") | {"values": values}
    plain = values.removeprefix("iso[").removesuffix("]").replace("bint8", "uint8")
    count = len(arrays.get("indices_1", arrays["values"]))
    head = {
        "version": version,
        "format": form,
        "shape": list(shape),
        "number_of_stored_values": count,
        "data_types": kinds,
    } | more
    image = io.BytesIO()
    with h5py.File(image, "w") as file:
        file.attrs["binsparse"] = json.dumps({"binsparse": head, "author": "somebody"})
        for name, array in arrays.items():
            file[name] = np.array(array, plain if name == "values" else "uint64")
    return image.getvalue()


FORMS = {
    "CSR": ROWS,
    "CSC": {"pointers_to_1": [0, 1, 2, 2, 3], "indices_1": [2, 0, 0], "values": [7, 5, 6]},
    "COO": {"indices_0": [0, 0, 2], "indices_1": [1, 3, 0], "values": [5, 6, 7]},
    "COOR": {"indices_0": [0, 0, 2], "indices_1": [1, 3, 0], "values": [5, 6, 7]},
    "COOC": {"indices_0": [0, 1, 3], "indices_1": [2, 0, 0], "values": [7, 5, 6]},
    "DCSR": {"indices_0": [0, 2], "pointers_to_1": [0, 2, 3], "indices_1": [1, 3, 0],
             "values": [5, 6, 7]},
    "DCSC": {"indices_0": [0, 1, 3], "pointers_to_1": [0, 1, 2, 3], "indices_1": [2, 0, 0],
             "values": [7, 5, 6]},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", ["0.1", "0.1.0"])
def test_forms(save, form, version):
    A = read_cpu(save(laid_out(FORMS[form], form, version=version)))
    assert (A.shape, A.dtype, entries(A)) == ((3, 4), INT64, ENTRIES)


def test_values_of_one_kind(save):
    A = read_cpu(save(laid_out(ROWS | {"values": [7]}, values="iso[float32]")))
    assert (A.dtype, {x for *_, x in entries(A)}) == (FP32, {7.0})
    A = read_cpu(save(laid_out(ROWS | {"values": [1]}, values="iso[bint8]")))
    assert (A.dtype, A.nvals) == (BOOL, 3)
    A = read_cpu(save(laid_out(ROWS | {"values": [1, 0, 1]}, values="bint8")))
    assert (A.dtype, [x for *_, x in entries(A)]) == (BOOL, [True, False, True])


@pytest.mark.parametrize("sign", [1, -1])
def test_triangles(save, sign):
    kind = "symmetric_lower" if sign == 1 else "skew_symmetric_lower"
    A = read_cpu(save(laid_out(SYMMETRIC, shape=(5, 5), structure=kind)))
    found = {(i, j): x for i, j, x in entries(A)}
    assert len(found) == 13
    assert (found[1, 0], found[0, 1], found[4, 4]) == (2, 2 * sign, 7)
    with pytest.raises(FileFormatError, match=r"an entry is outside the triangle"):
        read_cpu(save(laid_out(SYMMETRIC, shape=(5, 5), structure="symmetric_upper")))


def test_the_reference_implementation_reads_what_is_written(tmp_path, save):
    binsparse = pytest.importorskip("binsparse")
    A = read_cpu(save("0 1 5\n0 3 6\n3 0 7\n"))
    write(A, tmp_path / "a.h5")
    tensor = binsparse.load_binsparse(tmp_path / "a.h5")
    assert (tensor.format, tensor.shape) == ("CSC", (4, 4))
    assert tensor.values.tolist() == [7, 5, 6]
    binsparse.save_binsparse(tensor, tmp_path / "b.h5")
    assert entries(read_cpu(tmp_path / "b.h5")) == entries(A)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (lambda: laid_out(ROWS, version="0.2"), FileFormatError, "version '0.2', but this lagpu"),
        (lambda: laid_out(ROWS, "DMAT"), NotSupported, "has the form 'DMAT' of Binsparse"),
        (lambda: laid_out(ROWS, "custom"), NotSupported, "has the form 'custom'"),
        (lambda: laid_out(ROWS, shape=(3,)), FileFormatError, r"shape \[3\] and 3 values"),
        (lambda: laid_out(ROWS, shape=(4, 4)), FileFormatError, "pointers_to_1 has the shape"),
        (lambda: laid_out(ROWS, shape=(3, 3)), FileFormatError, r"indices_1 has an index outside"),
        (
            lambda: laid_out(ROWS | {"pointers_to_1": [0, 3, 2, 3]}),
            FileFormatError,
            "pointers_to_1 does not rise from 0 to 3",
        ),
        (lambda: laid_out(ROWS | {"values": [1, 2]}), FileFormatError, r"values has the shape"),
        (lambda: laid_out(ROWS, structure="hermitian_lower"), NotSupported, "the structure 'herm"),
        (lambda: laid_out(ROWS)[:900], FileFormatError, "is no matrix of Binsparse"),
        (lambda: laid_out(ROWS)[:8], FileFormatError, "is no matrix of Binsparse"),
    ],
)
def test_what_is_no_matrix(save, data, error, message):
    with pytest.raises(error, match=message):
        read_cpu(save(data()))


def test_hdf5_of_something_else(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = [1]
    with pytest.raises(FileFormatError, match=r"its root has no attribute `binsparse`"):
        read_cpu(tmp_path / "a.h5")


def test_complex_values_and_sizes_that_do_not_fit(save, monkeypatch):
    data = laid_out(ROWS).replace(b'"values": "int64"', b'"values": "cmplx"')
    with pytest.raises(NotSupported, match=r"values has the type 'cmplx'"):
        read_cpu(save(data))
    monkeypatch.setattr(memory, "available_bytes", lambda: 10**15)
    with pytest.raises(LimitExceeded, match=r"3 x 4000000000: needs"):
        read_cpu(save(laid_out(ROWS, shape=(3, 4 * 10**9))))
