"""A vector shares no memory with the arrays it was made of, and takes them in any layout."""

import numpy as np
import pytest

from lagpu import UINT64, Matrix, Vector, binary, io
from lagpu.errors import DimensionMismatch, IndexOutOfBound
from lagpu.io.files import read_vector


def of_the_device(backend, array):
    """The array where the backend would not have to move it."""
    return backend.device.from_host(array) if backend.name == "gpu" else array


@pytest.mark.parametrize("size", [3, 9])
def test_writing_a_vector_leaves_the_arrays_alone(backend, size):
    where, values = np.arange(3), of_the_device(backend, np.arange(3))
    v = Vector.from_coo(where, values, size=size, backend=backend)
    v(v.S, accum=binary.plus) << 10
    assert v.to_coo()[1].tolist() == [10, 11, 12]
    assert where.tolist() == values.tolist() == [0, 1, 2]


@pytest.mark.parametrize("size", [3, 9])
def test_writing_the_arrays_leaves_a_vector_alone(backend, size):
    where, values = np.arange(3), of_the_device(backend, np.arange(3))
    v = Vector.from_coo(where, values, size=size, backend=backend)
    where += 1
    values[:] = 5
    assert [x.tolist() for x in v.to_coo()] == [[0, 1, 2], [0, 1, 2]]


def test_values_that_are_a_step_of_a_longer_array(backend):
    values = of_the_device(backend, np.arange(6))[::3]
    v = Vector.from_coo([0, 4], values, size=5, backend=backend)
    v(accum=binary.plus) << v
    assert v.to_coo()[1].tolist() == [0, 6]


_LARGE = 2**63 + 1  # NumPy makes 2.0**63 of it in a list with smaller numbers


@pytest.mark.parametrize("dtype", [None, UINT64])
@pytest.mark.parametrize(
    "make",
    [
        lambda **how: Vector.from_coo([0, 1], [_LARGE, 1], **how),
        lambda **how: Vector.from_dense([_LARGE, 1], **how),
        lambda **how: Vector.from_dict({0: _LARGE, 1: 1}, **how),
        lambda **how: Matrix.from_dense([[_LARGE, 1]], **how),
        lambda **how: Matrix.from_edgelist([(0, 0, _LARGE), (0, 1, 1)], **how),
        lambda dtype, backend: io.from_edgelist([(0, 1, _LARGE), (1, 0, 1)], backend=backend)[0],
    ],
)
def test_whole_numbers_of_a_list_are_not_rounded(backend, make, dtype):
    made = make(dtype=dtype, backend=backend)
    assert (made.to_coo()[-1].tolist(), made.dtype) == ([_LARGE, 1], UINT64)


def test_a_list_that_is_assigned_is_not_rounded(backend):
    v = Vector(UINT64, 3, backend=backend)
    v[[0, 2]] << [_LARGE, 1]
    assert v.to_dict() == {0: _LARGE, 2: 1}
    v << [1, 2, _LARGE]
    assert v.to_dict() == {0: 1, 1: 2, 2: _LARGE}


@pytest.mark.parametrize("suffix", ["npz", "txt", "csv"])
def test_a_vector_of_large_numbers_is_read_back(tmp_path, suffix):
    v, path = Vector.from_dense([_LARGE, 1], backend="cpu"), tmp_path / f"v.{suffix}"
    io.write_vector(*v.to_coo(), path)
    assert read_vector(path)[1].tolist() == [_LARGE, 1]


def test_an_index_beyond_int64_is_none_from_the_end(backend):
    v = Vector.from_dense([1, 2, 3], backend=backend, name="v")
    for indices in ([2**64 - 1], np.array([0, 2**64 - 1], np.uint64)):
        with pytest.raises(IndexOutOfBound, match=r"v: index 9223372036854775807 is outside 0"):
            v[indices] << 7
        with pytest.raises(DimensionMismatch, match=r"> 2\*\*60, the largest"):
            Vector.from_coo(indices, 1, backend=backend)
    assert v.to_dict() == {0: 1, 1: 2, 2: 3}
