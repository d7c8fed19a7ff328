"""Arrays of other libraries become entries, and a number that does not fit is an error."""

import sys
import types

import exporters
import numpy as np
import pytest
from exporters import DeviceArray, Exporter, OnDevice

from lagpu import BOOL, FP64, INT32, INT64, UINT64, Matrix, Vector
from lagpu.core.arguments import array_in
from lagpu.errors import BackendMismatch, BackendUnavailable, DomainMismatch, InvalidValue

MAKERS = {
    "vector": lambda x, dtype, place: Vector.from_coo([0, 1, 2], x, dtype, backend=place),
    "dense": lambda x, dtype, place: Vector.from_dense(x, dtype=dtype, backend=place),
    "some": lambda x, dtype, place: Vector.from_dense(x, 0, dtype=dtype, backend=place),
    "matrix": lambda x, dtype, place: Matrix.from_coo(
        [0, 1, 2], [0, 0, 0], x, dtype, backend=place
    ),
    "columns": lambda x, dtype, place: Matrix.from_csc(
        [0, 3], [0, 1, 2], x, nrows=3, dtype=dtype, backend=place
    ),
    "rows": lambda x, dtype, place: Matrix.from_csr(
        [0, 3], [0, 1, 2], x, ncols=3, dtype=dtype, backend=place
    ),
}
each_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def values_of(x):
    return x.to_coo()[-1].tolist()


@pytest.mark.each_value
@each_maker
@pytest.mark.parametrize(
    ("wrong", "dtype"),
    [
        (1.7, INT32), (np.nan, INT32), (np.inf, INT64), (2.0**31, INT32), (-1.0, UINT64),
        (2.0**63, INT64), (2.0**64, UINT64), (-(2.0**31) - 1, INT32),
    ],
)  # fmt: skip
def test_a_float_that_does_not_fit_is_refused(backend, make, wrong, dtype):
    for values in ([1.0, wrong, 2.0], np.array([1, 2, wrong])):
        with pytest.raises(DomainMismatch, match=f"does not fit {dtype}. Use a float type"):
            make(values, dtype, backend)


@each_maker
def test_floats_that_are_whole_fit(backend, make):
    for dtype, largest in ((INT32, 2.0**31 - 1), (INT64, 2.0**62), (UINT64, 2.0**63)):
        x = make(np.array([1, largest, 3], float), dtype, backend)
        assert (x.dtype, values_of(x)) == (dtype, [1, int(largest), 3])
    assert values_of(make([1.5, -1.0, 2.0], BOOL, backend)) == [True] * 3
    assert values_of(make([True, True, True], INT32, backend)) == [1, 1, 1]


@each_maker
def test_floats_of_16_bits_are_those_of_32(backend, make):
    """Their type does not hold the bounds of an integer type."""
    for dtype in (INT32, INT64, UINT64):
        assert values_of(make(np.array([1, 2, 3], np.float16), dtype, backend)) == [1, 2, 3]
        assert values_of(Vector.from_coo([0], np.float16(2), dtype, backend=backend)) == [2]
    for wrong in (np.inf, -np.inf, 1.5):
        with pytest.raises(DomainMismatch, match=r"does not fit INT32. Use a float type"):
            make(np.array([1, wrong, 3], np.float16), INT32, backend)


def test_build_takes_no_float_that_does_not_fit(backend):
    v = Vector(INT32, 3, backend=backend)
    with pytest.raises(DomainMismatch, match=r"1\.5 does not fit INT32"):
        v.build([0], [1.5])
    assert v.nvals == 0


# ---------------------------------------------------------------------------- other libraries


@pytest.mark.each_value
@each_maker
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint32", "bool", "int8"])
def test_arrays_by_dlpack(backend, make, dtype):
    array = np.array([1, 1, 1], dtype)
    for given in (array, Exporter(array)):
        x = make(given, None, backend)
        assert values_of(x) == array.tolist()
    assert make(Exporter(array), None, backend).dtype is make(array, None, backend).dtype


def test_places_by_dlpack(backend):
    where = Exporter(np.array([2, 0]))
    v = Vector.from_coo(where, Exporter(np.array([1.5, 2.5])), backend=backend)
    assert [x.tolist() for x in v.to_coo()] == [[0, 2], [2.5, 1.5]]
    A = Matrix.from_coo(where, where, Exporter(np.array(3)), backend=backend)
    assert [x.tolist() for x in A.to_coo()] == [[0, 2], [0, 2], [3, 3]]


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "uint32", ">i4", ">u8"])
def test_places_of_any_integer_type(backend, kind):
    where, ptr = np.array([1, 0], kind), np.array([0, 1, 2], kind)
    triplets = Matrix.from_coo(where, where, [3, 4], backend=backend)
    for A in (triplets, Matrix.from_csc(ptr, where[::-1], [4, 3], backend=backend)):
        assert [x.tolist() for x in A.to_coo()] == [[0, 1], [0, 1], [4, 3]]
    assert A[where, where].new().to_coo()[2].tolist() == [3, 4]
    assert Vector.from_coo(where, [3, 4], backend=backend)[where].new().to_dict() == {0: 3, 1: 4}


class WithGradient(Exporter):
    def __dlpack__(self, **options):
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")


class Bits(Exporter):
    """As pyarrow's Booleans: packed, so that only NumPy's own protocol hands them out."""

    def __dlpack__(self, **options):
        raise TypeError("bit-packed")

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_an_exporter_that_refuses_says_why(backend):
    with pytest.raises(DomainMismatch, match=r"WithGradient does not export.*tensor\.detach"):
        Vector.from_dense(WithGradient([1.0]), backend=backend)
    with pytest.raises(DomainMismatch, match="WithGradient does not export"):
        Matrix.from_coo([0], [0], WithGradient([1.0]), backend=backend)
    assert values_of(Vector.from_dense(Bits([True, False]), backend=backend)) == [True, False]


def test_arrays_of_a_gpu_go_where_they_can(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", exporters.pretended_cupy())
    gpu = exporters.pretended_gpu()
    for given in (OnDevice([1, 2]), Exporter([1, 2], exporters.ON_GPU)):
        assert isinstance(array_in(given, gpu, "x"), DeviceArray)
        assert type(array_in(given, gpu, "x", copies=True)) is DeviceArray
        host = types.SimpleNamespace(name="cpu", device=None)
        assert type(array_in(given, host, "x", copies=True)) is np.ndarray
        with pytest.raises(BackendMismatch, match="x: the array is on a GPU, the backend is cpu"):
            array_in(given, host, "x")
    assert isinstance(array_in(np.arange(2), gpu, "x"), np.ndarray)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(BackendUnavailable, match="x: device arrays need CuPy"):
        array_in(OnDevice([1]), gpu, "x")


@each_maker
def test_no_backend_on_the_host_copies_from_a_gpu(make):
    for place in ("cpu", "sim", "grid:2:cpu"):
        with pytest.raises(BackendMismatch, match="the array is on a GPU"):
            make(OnDevice([1, 2, 3]), None, place)


# ------------------------------------------------------------------------------ missing values


class NullableType:
    numpy_dtype = np.dtype("int64")


class Column:
    """As a nullable column of pandas: NumPy would make NaN of what is missing."""

    dtype = NullableType()

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def isna(self):
        return np.array([x is None for x in self.values])

    def to_numpy(self, dtype):
        return np.array(self.values, dtype)

    def __array__(self, dtype=None, copy=None):
        return np.array([np.nan if x is None else x for x in self.values])


class Nulls(Column):
    """As an array of pyarrow."""

    isna = property()

    @property
    def null_count(self):
        return sum(x is None for x in self.values)


class NullsOfPolars(Nulls):
    def null_count(self):
        return sum(x is None for x in self.values)


@pytest.mark.each_value
@each_maker
@pytest.mark.parametrize("kind", [Column, Nulls, NullsOfPolars])
def test_missing_values_are_refused(backend, make, kind):
    with pytest.raises(InvalidValue, match=r"1 of 3 values are missing. Leave them out"):
        make(kind([1, None, 3]), None, backend)
    assert values_of(make(kind([1, 2, 3]), None, backend)) == [1, 2, 3]


@each_maker
def test_masked_values_are_refused(backend, make):
    with pytest.raises(InvalidValue, match=r"1 of 3 values are missing"):
        make(np.ma.array([1, 2, 3], mask=[0, 1, 0]), None, backend)
    assert values_of(make(np.ma.array([1, 2, 3]), None, backend)) == [1, 2, 3]


def test_missing_places_are_refused(backend):
    with pytest.raises(InvalidValue, match=r"1 of 2 values are missing"):
        Vector.from_coo(Column([0, None]), 1, backend=backend)


def test_nan_is_a_value(backend):
    v = Vector.from_dense(np.array([1, np.nan]), backend=backend)
    assert (v.dtype, v.nvals) == (FP64, 2)


@pytest.mark.extra
def test_columns_of_pandas(backend):
    pd = pytest.importorskip("pandas")
    v = Vector.from_dense(pd.Series([1, 2], dtype="Int64"), backend=backend)
    assert (v.dtype, values_of(v)) == (INT64, [1, 2])
    for given in (
        pd.Series([1, None], dtype="Int64"),
        pd.Series([1, pd.NA]),
        pd.array([True, None], dtype="boolean"),
    ):
        with pytest.raises(InvalidValue, match="1 of 2 values are missing"):
            Vector.from_dense(given, backend=backend)
