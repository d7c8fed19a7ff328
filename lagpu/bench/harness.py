"""The harness of all measurements: time calls, and write a report.

The wall time ends when the device has ended. The device time, on a GPU, is measured between two
events around all operations. A kernel that only waits goes before them, so the time that Python
takes to launch is not included, unless the search itself waits for the device, as an eager loop
does to test its condition. Without a GPU both are the wall time. On a grid of GPUs the device time
is that of the slowest GPU; of one kernel on all of them, from when the last GPU is ready.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from rich.text import Text

from lagpu import versions
from lagpu.backends.protocol import Backend, of_all
from lagpu.core.recorder import flush
from lagpu.generators.edges import parts_of
from lagpu.host.fitting import FittingTable

Array = np.ndarray[Any, Any]
Row = dict[str, Any]
Report = dict[str, Any]
Say = Callable[[str], None]
Keep = Callable[[Report], None]
Columns = Sequence[tuple[str, str | Callable[[Row], Any]]]
Result = TypeVar("Result")

REPEATS = 5  # the median of these runs is reported
SEED = 7  # of the roots, where none is given
_CHECKED = {True: Text("yes", "green"), False: Text("NO", "red"), None: Text("-")}
_ENOUGH_MS = 1000.0  # total time of runs after which a search is not repeated
_TOGETHER = "search of pieces: "  # a loop that is one kernel on several devices


class Sample(NamedTuple):
    """Median times of one search, in milliseconds; of its kernels and its parts, if known."""

    device_ms: float
    wall_ms: float
    kernel_ms: float | None = None
    parts: Mapping[str, float] = {}


def silent(_text: object) -> None:
    """Take a description, or a report, and do nothing."""


def devices_of(backend: Backend) -> list[Any]:
    """Return the devices on which a backend's operations run: of a grid, those of its pieces."""
    return [home.device for home in parts_of(backend).homes if home.device is not None]


def hardware_of(backend: Backend) -> dict[str, str]:
    """Describe the hardware: the first device and how many there are, or the number of threads."""
    devices = devices_of(backend)
    threads = parts_of(backend).homes[0].capabilities.threads
    found: dict[str, str] = devices[0].describe() if devices else {}
    if len(devices) > 1:
        found["devices"] = str(len(devices))
    return found if threads is None else found | {"threads": str(threads())}


def machine_line(report: Report) -> str:
    """Return the machine of a report as words: device, processor, and the threads of ``cpu``."""
    machine = report["machine"]
    threads = f"{machine['threads']} threads for cpu" if "threads" in machine else None
    return ", ".join(filter(None, (machine.get("device"), machine["cpu"], threads)))


def used_bytes(backend: Backend) -> int:
    return sum(int(device.used_bytes()) for device in devices_of(backend))


class Span:
    """Times the work of several devices; with `together` also one kernel of all of them."""

    def __init__(self, devices: Sequence[Any], together: bool = False) -> None:
        self._devices, self._together = devices, together
        self._timers: list[Any] = []
        self._launched: list[Any] = []
        self._ending = ExitStack()

    def __enter__(self) -> Span:
        for device in self._devices:
            with device.lock, device.entered():
                self._timers.append(device.timer().__enter__())
                if self._together:
                    self._launched.append(device.timer().__enter__())
            if self._together:
                self._ending.enter_context(device.launches_end(self._launched[-1]))
        return self

    def __exit__(self, *exc_info: object) -> None:
        for device, timer in zip(self._devices, self._timers, strict=True):
            with device.lock, device.entered():
                timer.__exit__(*exc_info)
        self._ending.close()

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds of the slowest device; reading it waits for the devices."""
        return float(max(timer.elapsed_ms for timer in self._timers))

    @property
    def together_ms(self) -> float:
        """Milliseconds of one kernel of all devices, from when the last of them is ready for it.

        The kernels end together, at their last barrier, so it is the least of their times.
        """
        return float(min(timer.elapsed_ms for timer in self._launched))


class Clock:
    """Times calls on one backend, or of another library (None), whose calls return at their end.

    A search is repeated up to `repeats` times, until its runs took `enough_ms`.
    """

    def __init__(
        self, backend: Backend | None = None, repeats: int = REPEATS, enough_ms: float = _ENOUGH_MS
    ) -> None:
        self.backend, self._repeats, self._enough_ms = backend, repeats, enough_ms
        self._devices = [] if backend is None else devices_of(backend)
        self._wall_ms = 0.0  # of the last run: as long as Python may take to launch the next
        self._together: Any = False  # whether that was one kernel of all devices

    @property
    def has_device(self) -> bool:
        """Whether `queued` can measure the device time."""
        return bool(self._devices) and self._devices[0].xp is not np

    def measure(self, search: Callable[[], Result]) -> tuple[Sample, Result]:
        """Run a search several times; return its times and the last result."""
        times, result = self.repeat(self.wall, search)
        wall = statistics.median(times)
        if not self.has_device:
            return Sample(wall, wall), result
        times, result = self.repeat(self.queued, search)
        return Sample(statistics.median(times), wall), result

    def repeat(
        self, once: Callable[[Callable[[], Result]], tuple[float, Result]],
        search: Callable[[], Result], repeats: int | None = None, enough_ms: float | None = None,
    ) -> tuple[list[float], Result]:  # fmt: skip
        """Run a search by `wall` or `queued` several times.

        Return the time of each run, of several processes that of the slowest, and the last result.
        """
        times: list[float] = []
        repeats = self._repeats if repeats is None else repeats
        enough_ms = self._enough_ms if enough_ms is None else enough_ms
        while not times or (len(times) < repeats and sum(times) < enough_ms):
            ms, result = once(search)
            times.append(self.slowest(ms))
        return times, result

    def slowest(self, time: float) -> float:
        """Return the longest of the times that the processes give."""
        of_each = [[time]] if self.backend is None else of_all(self.backend, time)
        return max(its for (its,) in of_each)

    def compile_ms(self) -> float:
        return sum(float(device.compile_ms) for device in self._devices)

    def wall(self, search: Callable[[], Result]) -> tuple[float, Result]:
        """Run a search once; return the milliseconds until the device has ended."""
        self._synchronize()
        begin = time.perf_counter()
        result = search()
        flush()  # statements may wait for others
        self._synchronize()
        self._wall_ms = (time.perf_counter() - begin) * 1e3
        return self._wall_ms, result

    def queued(self, search: Callable[[], Result]) -> tuple[float, Result]:
        """Run a search once after a kernel that waits; return its milliseconds on the device."""
        self._synchronize()
        for device in self._devices:
            with device.lock, device.entered():
                device.hold(int(min(max(self._wall_ms, 1), 10) * 2e6))  # cycles, 1 to 10 ms
        before = self._together  # if not, no launch is to take longer, as one that ends a timer
        with Span(self._devices, before) as span:
            result = search()
            flush()
        self._together = self.backend and self.backend.last_loop.startswith(_TOGETHER)
        return span.together_ms if before and self._together else span.elapsed_ms, result

    def _synchronize(self) -> None:
        for device in self._devices:
            with device.lock, device.entered():
                device.synchronize()


def harmonic_gteps(ms: Sequence[float], edges: Sequence[int]) -> float:
    """Return the harmonic mean of the rates, in 10**9 edges a second."""
    return len(ms) / sum(t / m for t, m in zip(ms, edges, strict=True)) / 1e6


def envelope(backends: Sequence[Backend], others: dict[str, str | None]) -> Report:
    """Return a report without rows: machine, commit, date and versions."""
    info = Path("/proc/cpuinfo")  # of Linux
    lines = info.read_text().splitlines() if info.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    machine: dict[str, str] = {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": next(models, platform.processor() or "unknown"),
        "cores": str(os.cpu_count()),
    }
    for place in backends:
        machine |= hardware_of(place)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    known = versions.versions() | others
    return {"machine": machine, "commit": versions.commit(), "date": date, "versions": known}


def table(rows: Sequence[Row], texts: Columns, numbers: Columns, **how: Any) -> FittingTable:
    """Return rows as a table; a column is a heading, and a format or a function of a row."""
    heads = [head for head, _ in texts]
    found = FittingTable(*heads, common=heads, **how)
    for head, _ in numbers:
        found.add_column(head, justify="right")
    for row in rows:
        found.add_row(*(cell(of, row) for _, of in (*texts, *numbers)))
    return found


def cell(of: str | Callable[[Row], Any], row: Row) -> Any:
    if not isinstance(of, str):
        return of(row)
    try:
        return of.format_map(row)
    except TypeError:  # None has no form of a number
        return "-"


def checked(row: Row) -> Text:
    return _CHECKED[row["checked"]]
