"""A vector shares no memory with the arrays it was made of, and takes them in any layout."""

import numpy as np
import pytest

from lagpu import Vector, binary


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
