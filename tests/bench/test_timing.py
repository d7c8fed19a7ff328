"""What the time of several devices is."""

import contextlib
import types

import pytest

from lagpu import algorithms, generators
from lagpu.bench.timing import Clock, Span


class Timer(contextlib.AbstractContextManager):
    """A timer that has measured some milliseconds."""

    def __init__(self, ms):
        self.elapsed_ms = ms

    def __exit__(self, *_exc_info):
        pass


def device(ms):
    return types.SimpleNamespace(alone=contextlib.nullcontext, timer=lambda: Timer(ms))


def test_work_of_several_devices_is_that_of_the_slowest_and_one_kernel_begins_with_the_last():
    with Span([device(3.0), device(5.0), device(4.0)]) as span:
        pass
    assert (span.elapsed_ms, span.together_ms) == (5.0, 3.0)


@pytest.mark.parametrize(("name", "ms"), [("grid:2:sim", 3.0), ("grid:2:cpu", 5.0)])
def test_a_search_of_pieces_is_one_kernel(name, ms):
    A = generators.kronecker(6, backend=name)
    clock = Clock(A.backend)
    clock._wait, clock._devices = lambda *_: None, [device(5.0), device(3.0)]
    clock._synchronize = lambda: None
    found, levels = clock.queued(lambda: algorithms.bfs_levels(A, 1))
    assert (found, levels.nvals) == (ms, algorithms.bfs_levels(A, 1).nvals)
