"""Draw a matrix: cells with values if it is small, squares if medium, density if large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lagpu.core.matrix import Matrix
from lagpu.core.views import SelectionMatrix, TransposedMatrix
from lagpu.errors import DomainMismatch
from lagpu.viz.cells import CellGrid, bare, entry, legend, name_place
from lagpu.viz.style import AS_IT_IS, BLUE, LABEL, MUTED, ORANGE, axes, pyplot, refuse_larger

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELLS = 20  # most rows and columns for which values are written
SQUARES = 120  # most rows and columns for which each entry is a square
BINS = 128  # most rows and columns of a density
ENTRIES = 100_000_000  # most entries that are fetched for a density: 1.6 GB

Array = np.ndarray[Any, Any]


def entries(A: Any, what: str, most: int = ENTRIES) -> tuple[Matrix, Array, Array, Array]:
    """Return a matrix, also made of a view, with its triplets, or raise if it is too large."""
    if isinstance(A, TransposedMatrix | SelectionMatrix):
        refuse_larger(what, A.nvals, most, "entries", "Draw a part of it, or a smaller graph.")
        A = A.new(name=A.name)
    if not isinstance(A, Matrix):
        raise DomainMismatch(f"viz.{what}: {type(A).__name__} is not a Matrix. Give one.")
    refuse_larger(what, A.nvals, most, "entries", "Draw a part of it, or a smaller graph.")
    return A, *A.to_coo()


def matrix(A: Matrix | TransposedMatrix | SelectionMatrix, *, ax: Axes | None = None) -> Axes:
    """Draw the pattern of a matrix, and values if it is small.

    Parameters
    ----------
    A : Matrix, its transpose or a selection, (m, n)
        On any backend. Up to 20 rows and columns each entry is a cell with its value; up to 120 it
        is a square, hollow if the value is zero; beyond that, the picture is the number of entries
        in each of at most 128 x 128 parts.
    ax : Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    DomainMismatch
        If `A` is not a matrix.
    InvalidValue
        If `A` has more than 100 million entries.
    BackendUnavailable
        If Matplotlib is not installed.
    """
    pyplot()
    A, rows, cols, values = entries(A, "matrix")
    largest = max(A.nrows, A.ncols)
    if largest <= CELLS:
        return _cells(A, rows, cols, values, ax)
    ax = axes(ax, 5, 5)
    if largest <= SQUARES:
        squares(ax, A.shape, rows, cols, values)
    else:
        _density(ax, A.shape, rows, cols)
    title = f"{A.name}: {A.nrows:,} x {A.ncols:,}, {A.nvals:,} entries"
    ax.set_title(title, fontsize=11, **AS_IT_IS)
    return ax


def _cells(A: Matrix, rows: Array, cols: Array, values: Array, ax: Axes | None) -> Axes:
    ax = axes(ax, max(4.5, 1.2 + 0.42 * A.ncols), 1.3 + 0.42 * A.nrows)
    grid = CellGrid(A.name, A.nrows, A.ncols)
    for i, j, x in zip(rows, cols, values, strict=True):
        grid.put(i, j, entry(x), x)
    x, y = name_place(A.name)
    size = bare(ax, -1.4, A.ncols - 0.3, y - 0.5, A.nrows - 0.3)
    grid.draw(ax, size)
    grid.number(ax, size)
    ax.text(x, y, A.name, ha="center", va="center", fontsize=size, **AS_IT_IS)
    legend(ax, grid.kinds)
    return ax


def squares(
    ax: Axes,
    shape: tuple[int, int],
    rows: Array,
    cols: Array,
    values: Array,
    colour: str = BLUE,
    name: str = "entry",
) -> None:
    """Draw each entry as a square, hollow if its value is zero, in axes of rows and columns."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    for is_zero in (False, True):
        which = np.flatnonzero((values == 0) == is_zero)
        side = 0.62 if is_zero else 0.84
        found = PatchCollection(
            [Rectangle((cols[k] - side / 2, rows[k] - side / 2), side, side) for k in which],
            facecolor="white" if is_zero else colour,
            edgecolor=ORANGE if is_zero else "none",
            linewidth=1.2 if is_zero else 0,
            zorder=3,
        )
        found.set_gid(f"{name}-zero" if is_zero else name)
        if len(which):
            ax.add_collection(found)
    plane(ax, shape)


def plane(ax: Axes, shape: tuple[int, int]) -> None:
    """Set axes up for rows downward and columns to the right, numbered above."""
    from matplotlib.ticker import MaxNLocator

    nrows, ncols = shape
    ax.set_xlim(-0.5, max(ncols, 1) - 0.5)
    ax.set_ylim(max(nrows, 1) - 0.5, -0.5)
    ax.set_aspect("equal")
    ax.xaxis.tick_top()
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(6, integer=True))
    ax.tick_params(labelsize=LABEL, colors=MUTED, length=2)
    for spine in ax.spines.values():
        spine.set_color(MUTED)


def _density(ax: Axes, shape: tuple[int, int], rows: Array, cols: Array) -> None:
    """Draw the number of entries in each part; parts without entries are white."""
    from matplotlib.colors import LogNorm

    nrows, ncols = max(shape[0], 1), max(shape[1], 1)
    tall, wide = min(nrows, BINS), min(ncols, BINS)
    part = rows * tall // nrows * wide + cols * wide // ncols
    counts = np.bincount(part, minlength=tall * wide).reshape(tall, wide)
    shown = np.ma.masked_equal(counts, 0)
    image = ax.imshow(
        shown,
        cmap="viridis_r",
        norm=LogNorm(1, max(int(counts.max(initial=0)), 2)),
        extent=(-0.5, ncols - 0.5, nrows - 0.5, -0.5),
        interpolation="nearest",
        aspect="equal",
    )
    image.set_gid("density")
    plane(ax, shape)
    figure: Any = ax.get_figure()
    bar = figure.colorbar(image, ax=ax, shrink=0.8, pad=0.03)
    bar.set_label(f"entries in {-(-nrows // tall):,} x {-(-ncols // wide):,} positions", size=LABEL)
    bar.ax.tick_params(labelsize=LABEL)
