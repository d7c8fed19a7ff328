"""Methods that mostly need no device make it the thread's where they do."""

import numpy as np
import pytest

from lagpu import BOOL, INT32
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.backend import LARGE
from lagpu.backends.gpu.device.sim import SimDevice


@pytest.fixture
def entered():
    """Return a backend, and what tells how often its device was entered since it was asked."""
    device, calls = SimDevice(backend="entered"), []
    device.enter = lambda: calls.append(1)
    place = GpuBackend("entered", device)

    def count():
        found = len(calls)
        calls.clear()
        return found

    return place, count


def test_a_vector_and_its_first_entry_need_no_device(entered):
    place, count = entered
    v = place.vector(BOOL, 40)
    place.vector_set(v, 7, np.True_)
    assert place.nvals(v) == 1
    assert count() == 0
    assert v.get(7)


def test_a_second_entry_and_a_count_that_is_not_known_do(entered):
    place, count = entered
    v = place.vector(INT32, 40)
    place.vector_set(v, 7, np.int32(3))
    place.vector_set(v, 9, np.int32(4))
    assert count() == 1
    v.changes()
    assert place.nvals(v) == 2
    assert count() == 1


def test_an_entry_of_an_empty_bitmap_does(entered):
    place, count = entered
    v = place.vector(INT32, 40)
    v.set_bitmap(np.zeros(2, np.uint32), np.zeros(40, np.int32), None, 0)
    place.vector_set(v, 7, np.int32(3))
    assert count() == 1
    assert place.nvals(v) == 1


def test_a_large_vector_asks_the_device_for_memory(entered):
    place, count = entered
    place.vector(INT32, LARGE)
    assert count() == 1


def test_a_matrix_counts_on_its_device(entered):
    place, count = entered
    A = place.matrix(BOOL, (3, 4))
    count()
    assert place.nvals(A) == 0
    assert count() == 1
