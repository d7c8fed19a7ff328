"""Measure the time of one search: on the device and on the wall.

The wall time ends when the device has ended. The device time, on a GPU, is measured between two
events, before the first and after the last operation of the search. The search is queued behind a
kernel that only waits, so the time that Python takes to launch is not included, unless the search
itself waits for the device; an eager loop does so to test its condition.
Without a GPU both are the wall time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lagpu.backends.protocol import Backend

__all__ = ["REPEATS", "Clock", "Sample"]

Result = TypeVar("Result")

REPEATS = 5  # runs of which the median is taken
_ENOUGH_MS = 1000.0  # total time of runs after which a search is not repeated
_WAIT_CYCLES = 2_000_000  # about a millisecond, longer than Python takes to launch a search
_WAIT = """extern "C" __global__ void wait_cycles(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {}
}"""


class Sample(NamedTuple):
    """Median times of one search, in milliseconds."""

    device_ms: float
    wall_ms: float


class Clock:
    """Measures searches on one backend.

    Parameters
    ----------
    backend : Backend, optional
        The backend; None for another library, whose calls return when they have ended.
    """

    def __init__(self, backend: Backend | None = None) -> None:
        self._device: Any = None if backend is None else backend.device
        xp = np if self._device is None else self._device.xp
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
            times.append(ms)
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
        self._wait((1,), (1,), (np.int64(_WAIT_CYCLES),))
        with self._device.timer() as timer:
            result = search()
        return timer.elapsed_ms, result

    def _synchronize(self) -> None:
        if self._device is not None:
            self._device.synchronize()
