"""A trace as a plot: kernel time and entries by level."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lagpu.errors import BackendUnavailable
from lagpu.observe.trace.rows import Row
from lagpu.observe.trace.table import KINDS, kind, not_by_level, of_levels

__all__ = ["plot"]


def plot(traced: Iterable[Row], ax: Any = None) -> Any:
    """Draw bars of kernel time by level, and the entries of multiplied vectors; see `Trace`."""
    if ax is None:
        ax = _pyplot().subplots(layout="constrained")[1]
    rows = of_levels(traced)
    levels = range(max((level for level, _ in rows), default=-1) + 1)
    bottom = [0.0] * len(levels)
    for name, colour in KINDS.items():
        found = [(level, row) for level, row in rows if kind(row) == name]
        if not found:
            continue
        height = [0.0] * len(levels)
        for level, row in found:
            height[level] += row.kernel_ms
        ax.bar(levels, height, bottom=bottom, color=colour, label=name)
        bottom = [a + b for a, b in zip(bottom, height, strict=True)]
    line = {level: max(row.nvals_in or 0, 1) for level, row in rows if row.method == "mxv"}
    if line:
        other = ax.twinx()
        style = "k.-" if len(line) < 100 else "k-"
        other.plot(list(line), list(line.values()), style, lw=0.8)
        other.set_yscale("log")
        other.set_ylabel("entries of the vector multiplied")
    ax.set_xlabel(f"level\n{not_by_level(traced)}".strip())
    ax.set_ylabel("kernel time [ms]")
    if rows:
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(KINDS), frameon=False)
    return ax


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise BackendUnavailable(
            f'plot: Matplotlib is missing ({error}). Install it with: pip install "lagpu[viz]"'
        ) from error
    return pyplot
