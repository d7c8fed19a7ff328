"""Reports of benchmarks: the machine, the statistics of a row, the printed table."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from lagpu.backends.protocol import Backend
from lagpu.bench.timing import devices_of
from lagpu.host.fitting import FittingTable
from lagpu.versions import commit
from lagpu.versions import versions as installed

__all__ = ["envelope", "harmonic_gteps", "statistics_of", "table"]

_CHECKED = {True: Text("yes", "green"), False: Text("NO", "red"), None: Text("-")}
_TIMES = {
    "median ms": "median_ms",
    "q1": "q1_ms",
    "q3": "q3_ms",
    "max": "max_ms",
    "wall ms": "wall_median_ms",
    "first ms": "first_ms",
}
# A narrow terminal leaves them out; a report has all.
_SPARE = ("roots", "q1", "q3", "max", "first ms", "MB")


def envelope(backends: Sequence[Backend], versions: dict[str, str | None]) -> dict[str, Any]:
    """Return the report without rows: machine, commit, date and versions."""
    machine: dict[str, str] = {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _processor(),
        "cores": str(os.cpu_count()),
    }
    for place in backends:
        devices = devices_of(place)
        for device in devices[:1]:
            machine |= device.describe()
        if len(devices) > 1:
            machine["devices"] = str(len(devices))
    return {
        "machine": machine,
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": installed() | versions,
    }


def _processor() -> str:
    """Return the name of the processor from Linux, or as Python knows it."""
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def statistics_of(
    device_ms: Sequence[float], wall_ms: Sequence[float], edges: Sequence[int]
) -> dict[str, float]:
    """Return a row's statistics over the roots.

    Parameters
    ----------
    device_ms, wall_ms : sequence of float
        Times of each root; `median_ms`, `max_ms`, the quartiles and `gteps` are from `device_ms`.
    edges : sequence of int
        Undirected edges that each search has traversed, each counted once.
    """
    q1, median, q3 = np.percentile(device_ms, (25, 50, 75)).tolist()
    return {
        "median_ms": median,
        "max_ms": max(device_ms),
        "wall_median_ms": float(np.median(wall_ms)),
        "q1_ms": q1,
        "q3_ms": q3,
        "gteps": harmonic_gteps(device_ms, edges),
    }


def harmonic_gteps(ms: Sequence[float], edges: Sequence[int]) -> float:
    """Return the harmonic mean of the rates, in 10**9 edges a second."""
    return len(ms) / sum(t / m for t, m in zip(ms, edges, strict=True)) / 1e6


def table(rows: Sequence[dict[str, Any]]) -> FittingTable:
    """Return the rows as a table; ms is the device's time if there is a device."""
    named = ("graph", "backend", "mode", "output")
    found = FittingTable(*named, spare=_SPARE)
    for name in ("roots", *_TIMES, "GTEPS", "MB", "checked"):
        found.add_column(name, justify="right")
    for row in rows:
        found.add_row(
            *(_how(row) if x == "mode" else row[x] for x in named),
            _number("{}", row["roots"]),
            *(_number("{:,.3f}", row[name]) for name in _TIMES.values()),
            _number("{:.3g}", row["gteps"]),
            _number("{:,.1f}", row["bytes"], 1e6),
            _CHECKED[row["checked"]],
        )
    return found


def _how(row: dict[str, Any]) -> str:
    """Return the kernel, or the policy and whether its loops were fused, or the mode alone."""
    chosen = row["kernel"] or row["policy"]
    if chosen is None:
        return str(row["mode"])
    return f"{chosen}, fused" if row["mode"] == "fused" else str(chosen)


def _number(form: str, x: float | None, unit: float = 1) -> str:
    """Return a number as text; None is a dash."""
    return "-" if x is None else form.format(x if unit == 1 else x / unit)
