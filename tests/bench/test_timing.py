"""What the time of several devices is."""

import contextlib
import itertools

import pytest
from ranks import on_grids

from lagpu import algorithms, backends, generators
from lagpu.backends.gpu.device import protocol
from lagpu.backends.gpu.device.protocol import CheckedLaunch
from lagpu.backends.gpu.kernels import kernel
from lagpu.bench.harness import REPEATS, Clock, Sample, Span, envelope, hardware_of


class Timer(contextlib.AbstractContextManager):
    """A timer that has measured as many milliseconds as its device has, when it was last ended."""

    def __init__(self, device):
        self.device, self.elapsed_ms = device, 0.0

    def __exit__(self, *_exc_info):
        self.elapsed_ms = self.device.now


COUNT = kernel("elementwise/bitmap.cu", "count_bits")


class Device(protocol.Device):
    """A device whose launch takes some milliseconds, and what comes afterwards others."""

    def __init__(self, ms, afterwards=0.0):
        super().__init__("test")
        self.now, self._ms, self._afterwards = 0.0, ms, afterwards

    def timer(self):
        return Timer(self)

    def run(self, *_):
        self.now = self._ms

    def launched(self):
        fixed = {x.name: None if x.pointer else 0 for x in COUNT.params}
        CheckedLaunch(self, COUNT, 1, fixed)({})
        self.now += self._afterwards


def test_work_of_several_devices_is_that_of_the_slowest():
    devices = [Device(3.0), Device(5.0), Device(4.0, afterwards=2.0)]
    with Span(devices) as span:
        for one in devices:
            one.launched()
    assert span.elapsed_ms == 6.0
    with Span(devices, together=True) as span:
        devices[0].now = 7.0  # by something that is no launch
    assert (span.elapsed_ms, span.together_ms) == (7.0, 5.0)
    assert all(one.observer is None for one in devices)


@pytest.mark.parametrize(
    ("how", "has_device", "ran"),
    [
        ({}, False, ["wall"] * 5),
        ({"repeats": 3}, False, ["wall"] * 3),  # the only time there is
        ({"repeats": 3}, True, [*["wall"] * 3, *["queued"] * 3]),
        ({"enough_ms": 4.0}, True, [*["wall"] * 2, *["queued"] * 2]),
    ],
)
def test_a_search_is_repeated_as_often_as_the_clock_says(monkeypatch, how, has_device, ran):
    done = []
    for name in ("wall", "queued"):
        timed = lambda self, search, name=name: done.append(name) or (2.0, search())  # noqa: E731
        monkeypatch.setattr(Clock, name, timed)
    monkeypatch.setattr(Clock, "has_device", has_device)
    assert Clock(**how).measure(lambda: 7) == (Sample(2.0, 2.0), 7)
    assert done == ran


def test_a_report_says_what_computes():
    cpu, grid = backends.get("cpu"), backends.get("grid:2:cpu")
    assert hardware_of(cpu) == hardware_of(grid) == {"threads": str(cpu.capabilities.threads())}
    assert "threads" not in hardware_of(backends.get("sim"))
    assert envelope([cpu], {})["machine"]["threads"] == str(cpu.capabilities.threads())


def test_one_kernel_begins_with_the_last_device_and_ends_behind_its_launch():
    devices = [Device(3.0, afterwards=1.0), Device(5.0, afterwards=1.0)]
    with Span(devices, together=True) as span:
        for one in devices:
            one.launched()
    assert (span.elapsed_ms, span.together_ms) == (6.0, 3.0)


@pytest.mark.parametrize(("name", "ms"), [("grid:2:sim", 3.0), ("grid:2:cpu", 6.0)])
def test_a_search_of_pieces_is_one_kernel(name, ms):
    A = generators.kronecker(6, backend=name)
    clock = Clock(A.backend)
    devices = [Device(5.0, afterwards=1.0), Device(3.0, afterwards=1.0)]
    clock._devices = devices
    clock._synchronize = lambda: None

    def search():
        for one in devices:
            one.launched()
        return algorithms.bfs_levels(A, 1)

    first, _ = clock.queued(search)
    found, levels = clock.queued(search)
    assert (first, found, levels.nvals) == (6.0, ms, algorithms.bfs_levels(A, 1).nvals)


def test_no_launch_is_observed_for_a_loop_of_other_kernels():
    """Each launch would take longer, and the time with it."""
    A = generators.kronecker(6, backend="grid:2:sim")
    clock, observers = Clock(A.backend), []

    def ranks():
        observers.extend(device.observer for device in clock._devices)
        return algorithms.pagerank(A)

    clock.queued(ranks)
    clock.queued(ranks)
    assert observers == [None] * 4


@pytest.mark.parametrize(("took_ms", "held_ms"), [(0.0, 1.0), (3.0, 3.0), (50.0, 10.0)])
def test_devices_wait_as_long_as_the_last_run_took(took_ms, held_ms, monkeypatch):
    """Else the launches that Python makes later would count as the device's time."""
    clock, held, now = Clock(), [], iter([1.0, 1.0 + took_ms / 1e3])
    clock._devices = [Device(1.0)]
    clock._devices[0].hold = held.append
    clock._synchronize = lambda: None
    monkeypatch.setattr("lagpu.bench.harness.time.perf_counter", lambda: next(now))
    clock.queued(int)
    clock.wall(int)
    clock.queued(int)
    assert held == [2_000_000, pytest.approx(2e6 * held_ms, abs=1)]


@pytest.mark.parametrize("slow", [100.0, 600.0])
def test_processes_repeat_a_search_as_often_as_the_slowest(slow):
    """A process that went by its own time would stop, or go on, while others wait for it."""
    times = itertools.cycle([1.0, slow])

    def program(place):
        mine = next(times)
        A = generators.kronecker(5, 4, seed=1, backend=place)
        clock = Clock(place)
        return clock.repeat(lambda search: (mine, search()), lambda: algorithms.bfs_levels(A, 0))[0]

    found = on_grids(2, program)
    assert found == [[slow] * (2 if slow > 500 else REPEATS)] * 2
