"""Measure the time of one search: on the device and on the wall.

The wall time ends when the device has ended. The device time, on a GPU, is measured between two
events, before the first and after the last operation of the search. The search is queued behind a
kernel that only waits, so the time that Python takes to launch is not included, unless the search
itself waits for the device; an eager loop does so to test its condition.
Without a GPU both are the wall time. On a grid of GPUs the device time is that of the slowest GPU;
of a search that is one kernel on all of them it begins when the last GPU's wait has ended, and ends
with the kernel.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lagpu.backends.processes import of_all
from lagpu.backends.protocol import Backend

__all__ = ["REPEATS", "Clock", "Sample", "Span", "devices_of"]

Result = TypeVar("Result")

REPEATS = 5  # runs of which the median is taken
_ENOUGH_MS = 1000.0  # total time of runs after which a search is not repeated
_TOGETHER = "search of pieces: "  # a loop that is one kernel on several devices
_WAIT_CYCLES = 2_000_000  # about a millisecond, longer than Python takes to launch a search
_WAIT = """extern "C" __global__ void wait_cycles(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
}"""


class Sample(NamedTuple):
    """Median times of one search, in milliseconds."""

    device_ms: float
    wall_ms: float


def devices_of(backend: Backend) -> list[Any]:
    """Return the devices on which a backend's operations run: of a grid, those of its pieces."""
    parts = backend.capabilities.parts
    homes = [backend] if parts is None else parts.homes
    return [home.device for home in homes if home.device is not None]


class Span:
    """A context manager: the time of the work of several devices, that of the slowest.

    Parameters
    ----------
    devices : sequence of Device
        The devices, in this process.
    together : bool
        Whether `together_ms` is measured too, which takes an event more.
    """

    def __init__(self, devices: Sequence[Any], together: bool = False) -> None:
        self._devices, self._together = devices, together
        self._timers: list[Any] = []
        self._launched: list[Any] = []
        self._ending = ExitStack()

    def __enter__(self) -> Span:
        for device in self._devices:
            with device.alone():
                self._timers.append(device.timer().__enter__())
            if self._together:
                with device.alone():
                    self._launched.append(device.timer().__enter__())
                self._ending.enter_context(device.launches_end(self._launched[-1]))
        return self

    def __exit__(self, *exc_info: object) -> None:
        for device, timer in zip(self._devices, self._timers, strict=True):
            with device.alone():
                timer.__exit__(*exc_info)
        self._ending.close()

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds; reading it waits for the devices."""
        return float(max(timer.elapsed_ms for timer in self._timers))

    @property
    def together_ms(self) -> float:
        """Milliseconds of one kernel of all devices, from when the last of them was ready for it.

        The kernels end together, as each takes part in the last meeting, so it is the least of
        their times: the others have waited for the one that was launched last. Each time ends
        behind the kernel, and not behind what the host does when it has heard how the kernel ended.
        """
        return float(min(timer.elapsed_ms for timer in self._launched))


class Clock:
    """Measures searches on one backend.

    Parameters
    ----------
    backend : Backend, optional
        The backend; None for another library, whose calls return when they have ended.
    """

    def __init__(self, backend: Backend | None = None) -> None:
        self._backend = backend
        self._devices = [] if backend is None else devices_of(backend)
        xp = self._devices[0].xp if self._devices else np
        self._wait = None if xp is np else xp.RawKernel(_WAIT, "wait_cycles")

    @property
    def has_device(self) -> bool:
        """Whether `queued` can measure the device time."""
        return self._wait is not None

    def measure(self, search: Callable[[], Result]) -> tuple[Sample, Result]:
        """Run a search several times; return its times and the last result."""
        times, result = self.repeat(self.wall, search)
        wall = statistics.median(times)
        if not self.has_device:
            return Sample(wall, wall), result
        times, result = self.repeat(self.queued, search)
        return Sample(statistics.median(times), wall), result

    def repeat(
        self,
        once: Callable[[Callable[[], Result]], tuple[float, Result]],
        search: Callable[[], Result],
        repeats: int = REPEATS,
        enough_ms: float = _ENOUGH_MS,
    ) -> tuple[list[float], Result]:
        """Run a search repeatedly; return the time of each run and the last result.

        In several processes it is the time of the slowest.

        Parameters
        ----------
        once : callable
            `wall` or `queued`.
        search : callable
            The search.
        repeats : int
            Most runs.
        enough_ms : float
            Total time of runs after which there are no more.
        """
        times: list[float] = []
        while not times or (len(times) < repeats and sum(times) < enough_ms):
            ms, result = once(search)
            of_each = [[ms]] if self._backend is None else of_all(self._backend, ms)
            times.append(max(its for (its,) in of_each))
        return times, result

    def wall(self, search: Callable[[], Result]) -> tuple[float, Result]:
        """Run a search once; return the milliseconds until the device has ended."""
        self._synchronize()
        begin = time.perf_counter()
        result = search()
        self._synchronize()
        return (time.perf_counter() - begin) * 1e3, result

    def queued(self, search: Callable[[], Result]) -> tuple[float, Result]:
        """Run a search once behind a kernel that waits; return its milliseconds on the device."""
        self._synchronize()
        assert self._wait is not None
        for device in self._devices:
            with device.alone():
                self._wait((1,), (1,), (np.int64(_WAIT_CYCLES),))
        of_pieces = self._backend is not None and self._backend.capabilities.parts is not None
        with Span(self._devices, together=of_pieces) as span:
            result = search()
        loop = "" if self._backend is None else self._backend.last_loop
        together = loop.startswith(_TOGETHER)
        return span.together_ms if together else span.elapsed_ms, result

    def _synchronize(self) -> None:
        for device in self._devices:
            with device.alone():
                device.synchronize()
