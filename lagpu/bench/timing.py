"""Time of one search: on the device and on the wall.

The time on the wall ends when the device has ended. The time on the device, where there is a GPU,
is that between two events: one before the first and one behind the last operation of the search.
The search is queued behind a kernel that only waits, so the time that Python takes to launch is not
in it, as far as the search does not itself wait for the device; an eager loop does, where it asks
whether it goes on.
Elsewhere both are the time on the wall.
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

REPEATS = 5  # the median of so many runs is kept
_ENOUGH_MS = 1000.0  # a slower search is repeated no more
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
        Where they run; None for another library, whose calls have ended when they return.
    """

    def __init__(self, backend: Backend | None = None) -> None:
        self._device: Any = None if backend is None else backend.device
        xp = np if self._device is None else self._device.xp
        self._wait = None if xp is np else xp.RawKernel(_WAIT, "wait_cycles")

    @property
    def has_device(self) -> bool:
        """Whether `queued` measures more than `wall`."""
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
        """Run a search so often, or until it took so long; return each time and the last result.

        Parameters
        ----------
        once : callable
            `wall` or `queued`.
        search : callable
            What to run.
        repeats : int
            At most.
        enough_ms : float
            No more runs once they took so long together.
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
