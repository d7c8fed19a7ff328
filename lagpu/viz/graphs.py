"""Draw a small graph as dots and lines, coloured by level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import DimensionMismatch, InvalidValue
from lagpu.host.layout import places as layout_of
from lagpu.viz.matrices import entries
from lagpu.viz.searches import level_array
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

VERTICES, EDGES, LABELLED = 500, 5000, 60
Array = np.ndarray[Any, Any]


def graph(
    A: Matrix,
    levels: Vector | None = None,
    *,
    parents: Vector | None = None,
    layout: Any = None,
    labels: bool | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a graph of up to some hundred vertices, coloured by level.

    Parameters
    ----------
    A : Matrix, (n, n), n <= 500
        Entry (i, j) is the edge i -> j; a symmetric matrix is drawn without arrows. At most 5000
        edges.
    levels : Vector, (n,), optional
        Levels of a search; a vertex without a level is white.
    parents : Vector, (n,), optional
        Parents of a search; the edges of this tree are drawn thick.
    layout : array_like, (n, 2), or str, optional
        Positions of the vertices; ``"levels"`` puts each level in a column. By default distances
        in the plane follow distances in the graph (see Notes); the same in each run.
    labels : bool, optional
        Whether to write vertex numbers; by default if there are at most 60 vertices.
    ax : Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    DimensionMismatch, DomainMismatch
        If the matrix is not square, or levels or parents are not those of this graph.
    InvalidValue
        If the graph is too large for a picture, or the layout is wrong.
    BackendUnavailable
        If Matplotlib is not installed.

    Notes
    -----
    The default layout is stress majorization. Source: Gansner, Koren and North 2004.
    """
    pyplot()
    _refuse_large(A)
    A, rows, cols, _ = entries(A, "graph")
    n = A.nrows
    if n != A.ncols:
        raise DimensionMismatch(f"viz.graph: {n} rows != {A.ncols} columns. A graph is square.")
    level = None if levels is None else level_array("graph", A, levels)
    above = None if parents is None else level_array("graph", A, parents)
    places = _places(A, rows, cols, level, layout)
    labels = n <= LABELLED if labels is None else labels
    size = 330 if labels else max(12, min(120, 5000 / max(n, 1)))
    ax = axes(ax, 6.4, 5.2)
    _edges(ax, places, rows, cols, above, bool(A.is_symmetric), size)
    _vertices(ax, places, level, size, labels)
    ax.set_axis_off()
    ax.margins(0.08)
    if not isinstance(layout, str):
        ax.set_aspect("equal")
    return ax


def _refuse_large(A: Any) -> None:
    remedy = "Draw viz.matrix(A), or a smaller graph."
    refuse_larger("graph", max(getattr(A, "shape", (0,))), VERTICES, "vertices", remedy)
    refuse_larger("graph", getattr(A, "nvals", 0), 2 * EDGES, "entries", remedy)


def _places(A: Matrix, rows: Array, cols: Array, level: Array | None, layout: Any) -> Array:
    """Return the position (x, y) of each vertex in the given layout."""
    n = A.nrows
    if isinstance(layout, str):
        if layout != "levels" or level is None:
            raise InvalidValue(
                f"viz.graph: layout {layout!r} is not 'levels', or levels= is missing. "
                "Give both, or an array of positions."
            )
        return _by_level(level)
    if layout is not None:
        given = np.asarray(layout, dtype=float)
        if given.shape != (n, 2) or not np.isfinite(given).all():
            raise InvalidValue(
                f"viz.graph: layout has shape {given.shape} != ({n}, 2), or is not finite."
            )
        return given
    return layout_of(rows, cols, n)


def _by_level(level: Array) -> Array:
    """Return positions in columns, one per level; vertices without a level are in the last."""
    column = np.where(level < 0, level.max(initial=-1) + 1.5, level)
    places = np.zeros((len(level), 2))
    for x in np.unique(column):
        (here,) = np.nonzero(column == x)
        places[here, 0] = x
        places[here, 1] = np.linspace(0, -1, len(here) + 2)[1:-1] * len(here) ** 0.5
        places[here, 1] -= places[here, 1].mean()
    return places


def _edges(
    ax: Axes,
    places: Array,
    rows: Array,
    cols: Array,
    above: Array | None,
    symmetric: bool,
    size: float,
) -> None:
    """Draw lines, or arrows where the graph is directed; tree edges thick, loops as circles."""
    from matplotlib.collections import LineCollection
    from matplotlib.transforms import ScaledTranslation

    in_tree = np.zeros(len(rows), bool)
    if above is not None:
        in_tree = above[cols] == rows
        in_tree |= (above[rows] == cols) if symmetric else False
    once = (rows < cols) if symmetric else (rows != cols)
    for which, colour, width, name, layer in (
        (once & ~in_tree, GREY, 0.9, "edges", 1),
        (once & in_tree, VERMILION, 2.2, "tree", 2),
    ):
        if symmetric:
            ends = np.stack([places[rows[which]], places[cols[which]]], axis=1)
            ax.add_collection(
                LineCollection(ends, colors=colour, linewidths=width, zorder=layer, gid=name)
            )
            continue
        for k in np.flatnonzero(which):
            ax.annotate(
                "",
                xy=tuple(places[cols[k]]),
                xytext=tuple(places[rows[k]]),
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": MUTED if colour == GREY else colour,
                    "lw": width,
                    "shrinkA": size**0.5 / 2,
                    "shrinkB": size**0.5 / 2 + 1,
                    "connectionstyle": "arc3,rad=0.08",
                },
                zorder=layer,
                gid=f"{name}-{rows[k]}-{cols[k]}",
            )
    loops = np.unique(rows[rows == cols])
    if len(loops):
        figure: Any = ax.get_figure()
        lifted = ax.transData + ScaledTranslation(0, 0.8 * size**0.5 / 72, figure.dpi_scale_trans)
        ax.scatter(
            *places[loops].T, s=0.7 * size, facecolors="none", edgecolors=MUTED,
            transform=lifted, zorder=1, gid="loops",
        )  # fmt: skip


def _vertices(ax: Axes, places: Array, level: Array | None, size: float, labels: bool) -> None:
    """Draw dots coloured by level, white without a level, with a legend or a colour bar."""
    most = -1 if level is None else int(level.max(initial=-1))
    colours = np.array(level_colours(most + 1) or [(0, 0, 0, 1)])
    shown = np.full(len(places), -1) if level is None else level
    for depth in np.unique(shown):
        (here,) = np.nonzero(shown == depth)
        plain = level is None
        face = ("#CFE5F5" if plain else "white") if depth < 0 else colours[depth]
        ax.scatter(
            *places[here].T,
            s=size,
            color=[face],
            edgecolors=MUTED,
            linewidths=0.8,
            zorder=3,
            label=f"level {depth}" if depth >= 0 else "no level",
            gid=f"level-{depth}" if depth >= 0 else "no-level",
        )
    for i, (x, y) in enumerate(places if labels else ()):
        dark = shown[i] >= 0 and colours[shown[i]][:3] @ (0.299, 0.587, 0.114) < 0.5
        ax.text(
            x, y, str(i), ha="center", va="center_baseline", fontsize=LABEL, zorder=4,
            color="white" if dark else INK,
        )  # fmt: skip
    if level is None:
        return
    if most < 12:
        ax.legend(
            loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=LABEL,
            markerscale=min(1, (70 / size) ** 0.5),
        )  # fmt: skip
        return
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize
    from matplotlib.ticker import MaxNLocator

    scale = ScalarMappable(Normalize(-0.5, most + 0.5), ListedColormap(colours))
    figure: Any = ax.get_figure()
    bar = figure.colorbar(scale, ax=ax, shrink=0.6, ticks=MaxNLocator(8, integer=True))
    bar.set_label("level", size=LABEL)
    bar.ax.tick_params(labelsize=LABEL)
