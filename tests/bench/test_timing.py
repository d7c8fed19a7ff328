"""What the time of several devices is."""

import contextlib
import types

import pytest

from lagpu import algorithms, generators
from lagpu.bench.timing import Clock, Span


class Timer(contextlib.AbstractContextManager):
    """A timer that has measured as many milliseconds as its device has, when it was last ended."""

    def __init__(self, device):
        self.device, self.elapsed_ms = device, 0.0

    def __exit__(self, *_exc_info):
        self.elapsed_ms = self.device.now


def device(ms, afterwards=0.0):
    """Return a device whose launch takes some milliseconds, and what comes afterwards others."""
    made = types.SimpleNamespace(now=0.0, observer=None, alone=contextlib.nullcontext)
    made.timer = lambda: Timer(made)

    def prepared(_launch, _new):
        made.now = ms

    def launch():
        seen = made.prepared if made.observer is None else made.observer.prepared
        seen(None, ())
        made.now += afterwards

    made.prepared, made.launch = prepared, launch
    return made


def test_work_of_several_devices_is_that_of_the_slowest():
    devices = [device(3.0), device(5.0), device(4.0, afterwards=2.0)]
    with Span(devices) as span:
        for one in devices:
            one.launch()
    assert span.elapsed_ms == 6.0
    with Span(devices) as span:
        devices[0].now = 7.0  # by something that is no launch
    assert (span.elapsed_ms, span.together_ms) == (7.0, 5.0)
    assert all(one.observer is None for one in devices)


def test_one_kernel_begins_with_the_last_device_and_ends_behind_its_launch():
    devices = [device(3.0, afterwards=1.0), device(5.0, afterwards=1.0)]
    with Span(devices) as span:
        for one in devices:
            one.launch()
    assert (span.elapsed_ms, span.together_ms) == (6.0, 3.0)


@pytest.mark.parametrize(("name", "ms"), [("grid:2:sim", 3.0), ("grid:2:cpu", 6.0)])
def test_a_search_of_pieces_is_one_kernel(name, ms):
    A = generators.kronecker(6, backend=name)
    clock = Clock(A.backend)
    devices = [device(5.0, afterwards=1.0), device(3.0, afterwards=1.0)]
    clock._wait, clock._devices = lambda *_: None, devices
    clock._synchronize = lambda: None

    def search():
        for one in devices:
            one.launch()
        return algorithms.bfs_levels(A, 1)

    found, levels = clock.queued(search)
    assert (found, levels.nvals) == (ms, algorithms.bfs_levels(A, 1).nvals)
