"""Draw a breadth-first search: frontiers on the adjacency matrix, and sizes of levels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.viz.matrices import SQUARES, entries, plane, squares
from lagpu.viz.style import (
    GREY,
    INK,
    LABEL,
    MUTED,
    VERMILION,
    axes,
    level_colours,
    pyplot,
    refuse_larger,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 12
BAND, FRONT, BACK = "#E9E9E9", "#BFDDF2", "#0072B2"
Array = np.ndarray[Any, Any]


def level_array(what: str, A: Matrix, levels: Vector) -> Array:
    """Return each vertex's level, or -1, after checks against the graph."""
    if not isinstance(levels, Vector) or levels.dtype.is_float or levels.dtype.is_bool:
        raise DomainMismatch(f"viz.{what}: levels are a Vector of integers. See bfs_levels.")
    if not A.nrows == A.ncols == levels.size:
        raise DimensionMismatch(
            f"viz.{what}: {A.nrows} x {A.ncols} matrix != {levels.size} levels. "
            "Give the levels of this graph."
        )
    found: Array = levels.to_dense(-1, "INT64")
    return found


def frontier(A: Matrix, levels: Vector, depth: int, *, ax: Axes | None = None) -> Axes:
    """Draw one level of a search on the adjacency matrix.

    Rows of the frontier are blue; columns of vertices that already have a level are grey, which is
    the mask. An entry where a blue row crosses a white column leads to a new vertex, and is red.

    Parameters
    ----------
    A : Matrix, (n, n), n <= 120
        The graph.
    levels : Vector, (n,)
        Levels of a finished search, as `lagpu.algorithms.bfs_levels` returns them.
    depth : int
        The level whose vertices are the frontier.
    ax : Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    DimensionMismatch, DomainMismatch
        If `levels` are not levels of this graph.
    InvalidValue
        If the graph is too large for a picture, or the search has no such level.
    BackendUnavailable
        If Matplotlib is not installed.
    """
    pyplot()
    A, rows, cols, _ = _small(A, "frontier")
    level = level_array("frontier", A, levels)
    _require_levels("frontier", level, [depth])
    ax = axes(ax, 5, 5.4)
    _panel(ax, level, rows, cols, depth)
    _explain(ax, (0.5, -0.02))
    return ax


def _require_levels(what: str, level: Array, depths: list[Any]) -> None:
    """Raise `InvalidValue` for a level that no vertex has, or if no vertex has a level."""
    count = int(level.max(initial=-1)) + 1
    if not (count and depths):
        raise InvalidValue(f"viz.{what}: no vertex has a level. Give levels of a search.")
    for depth in depths:
        if depth not in range(count):
            raise InvalidValue(
                f"viz.{what}: there is no level {depth}. Use one of 0 .. {count - 1}."
            )


def frontiers(A: Matrix, levels: Vector, depths: Iterable[int] | None = None) -> Figure:
    """Draw all levels of a search side by side; see `frontier`.

    Parameters
    ----------
    A : Matrix, (n, n), n <= 120
        The graph.
    levels : Vector, (n,)
        Levels of a finished search.
    depths : iterable of int, optional
        The levels to draw, at most 12; by default all.

    Returns
    -------
    Figure

    Raises
    ------
    DimensionMismatch, DomainMismatch, InvalidValue, BackendUnavailable
        As `frontier` raises them; also for more than 12 levels.
    """
    plt = pyplot()
    A, rows, cols, _ = _small(A, "frontiers")
    level = level_array("frontiers", A, levels)
    shown = list(range(int(level.max(initial=-1)) + 1) if depths is None else depths)
    refuse_larger("frontiers", len(shown), PANELS, "levels", "Choose some with depths=.")
    _require_levels("frontiers", level, shown)
    wide = min(math.ceil(len(shown) ** 0.5), 4)
    tall = math.ceil(len(shown) / wide)
    figure, places = plt.subplots(
        tall, wide, figsize=(max(3.1 * wide, 6), 3.5 * tall), layout="constrained", squeeze=False
    )
    for ax, depth in zip(places.flat, shown, strict=False):
        _panel(ax, level, rows, cols, depth)
    for ax in places.flat[len(shown) :]:
        ax.set_axis_off()
    figure.get_layout_engine().set(h_pad=0.12, w_pad=0.06)
    _explain(figure, None, 2 if wide > 2 else 1)
    drawn: Figure = figure
    return drawn


def _small(A: Matrix, what: str) -> tuple[Matrix, Array, Array, Array]:
    size = max(getattr(A, "shape", (0,)))
    refuse_larger(what, size, SQUARES, "vertices", "Use viz.level_histogram, or a smaller graph.")
    return entries(A, what)


def _panel(ax: Axes, level: Array, rows: Array, cols: Array, depth: int) -> None:
    """Draw one level: bands of rows and columns, then entries coloured by their end."""
    n = len(level)
    front = level == depth
    seen = (level >= 0) & (level <= depth)
    for j in np.flatnonzero(seen):
        ax.axvspan(j - 0.5, j + 0.5, color=BAND, zorder=1, linewidth=0, gid=f"seen-{j}")
    for i in np.flatnonzero(front):
        ax.axhspan(i - 0.5, i + 0.5, color=FRONT, alpha=0.75, zorder=2, lw=0, gid=f"front-{i}")
    met = front[rows]
    new = met & ~seen[cols]
    for which, colour, name in (
        (~met, GREY, "idle"),
        (met & ~new, BACK, "back"),
        (new, VERMILION, "new"),
    ):
        squares(ax, (n, n), rows[which], cols[which], np.ones(which.sum()), colour, name)
    plane(ax, (n, n))
    count = int(front.sum())
    ax.set_title(
        f"level {depth}: {count} {'vertex' if count == 1 else 'vertices'}, "
        f"{len(np.unique(cols[new]))} new",
        fontsize=LABEL,
        color=INK,
    )


def _explain(place: Any, anchor: tuple[float, float] | None, columns: int = 1) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(color=FRONT, label="row of a vertex of the frontier"),
        Patch(color=BAND, label="column of a vertex that has a level: masked"),
        Patch(color=VERMILION, label="edge to a new vertex"),
        Patch(color=BACK, label="edge that the mask drops"),
        Patch(color=GREY, label="edge from outside the frontier"),
    ]
    if anchor is None:
        place.legend(
            handles=handles,
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            fontsize=LABEL,
        )
    else:
        place.legend(
            handles=handles,
            loc="upper center",
            bbox_to_anchor=anchor,
            frameon=False,
            fontsize=LABEL,
        )


def level_histogram(levels: Vector, *, ax: Axes | None = None) -> Axes:
    """Draw how many vertices each level has, and how many vertices have no level.

    Parameters
    ----------
    levels : Vector, (n,), of integers
        Levels of a search, of any size.
    ax : Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    DomainMismatch
        If `levels` are not integers from 0.
    BackendUnavailable
        If Matplotlib is not installed.
    """
    pyplot()
    if not isinstance(levels, Vector) or levels.dtype.is_float or levels.dtype.is_bool:
        raise DomainMismatch("viz.level_histogram: levels are a Vector of integers.")
    values = levels.to_coo()[1].astype(np.int64)
    if values.min(initial=0) < 0:
        raise DomainMismatch(f"viz.level_histogram: level {values.min()} < 0. Levels begin at 0.")
    from matplotlib.ticker import MaxNLocator

    counts = np.bincount(values)
    left = levels.size - len(values)
    few = len(counts) <= 20
    ax = axes(ax, 6.4, 3.2)
    bars = ax.bar(
        range(len(counts)),
        counts,
        width=0.8 if few else 1.0,
        color=level_colours(len(counts)) if few else "#0072B2",
    )
    for depth, bar in enumerate(bars):
        bar.set_gid(f"level-{depth}")
    if left:
        where = len(counts) + (0.2 if few else 0.03 * len(counts))
        wide = 0.8 if few else max(1.0, 0.02 * len(counts))
        (rest,) = ax.bar(
            [where],
            [left],
            width=wide,
            color="white",
            edgecolor=MUTED,
            hatch="////",
            label="no level",
        )
        rest.set_gid("no-level")
        ax.legend(frameon=False, fontsize=LABEL)
    if few:
        ax.set_xticks(range(len(counts)))
        for container in ax.containers:
            ax.bar_label(container, fmt="{:,.0f}", fontsize=LABEL, padding=2)
    ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.set_xlabel("level: edges from the source", fontsize=LABEL)
    ax.set_ylabel("vertices", fontsize=LABEL)
    ax.tick_params(labelsize=LABEL)
    ax.margins(y=0.12)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
