"""Draw vectors as rows of cells, and masks as the positions that they keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lagpu.core.expr import Mask, format_formula
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.viz.cells import KEPT, OUT, CellGrid, bare, entry, legend
from lagpu.viz.matrices import CELLS
from lagpu.viz.style import AS_IT_IS, axes, refuse_larger

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 40  # cells that fit a page


def vector(*vectors: Vector, ax: Axes | None = None) -> Axes:
    """Draw vectors as rows of cells: blank without an entry, dashed where an entry is zero.

    Parameters
    ----------
    *vectors : Vector, (n,), n <= 40
        One vector, or several of one size, drawn below one another; on any backend.
    ax : Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    DomainMismatch
        If an argument is not a vector.
    DimensionMismatch
        If the vectors differ in size.
    InvalidValue
        If the vectors are too long for a picture, or there is none.
    BackendUnavailable
        If Matplotlib is not installed.
    """
    return _rows([_vector(v, "vector") for v in vectors], "vector", ax)


def mask(*masks: Mask, ax: Axes | None = None) -> Axes:
    """Draw masks: a vector or matrix, and below it the positions that each mask keeps.

    Parameters
    ----------
    *masks : Mask, (n,), n <= 40, or (m, n), both <= 20
        ``v.S``, ``v.V``, ``~v.S`` or ``~v.V``, or masks of a matrix; a vector is drawn once for
        all its masks that follow.
    ax : Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    DomainMismatch
        If an argument is not a mask.
    DimensionMismatch
        If the masks differ in size.
    InvalidValue
        If the masks are too long for a picture, or there is none.
    BackendUnavailable
        If Matplotlib is not installed.
    """
    grids: list[CellGrid] = []
    source = None
    for m in masks:
        if not isinstance(m, Mask):
            raise DomainMismatch(f"viz.mask: {type(m).__name__} is not a mask. Write v.S or ~v.V.")
        if m.vector is not source:
            source = m.vector
            grids.append(_entries(source, "mask"))
        kept = {(i, j) for i, j, _ in _triplets(m.new())}
        lets = CellGrid(format_formula(m.formula), grids[-1].nrows, grids[-1].ncols)
        for i in range(lets.nrows):
            for j in range(lets.ncols):
                lets.put(i, j, KEPT if (i, j) in kept else OUT)
        grids.append(lets)
    return _rows(grids, "mask", ax)


def _triplets(x: Vector | Matrix) -> Iterator[tuple[int, int, Any]]:
    """Yield row, column and value of each entry; a vector is a row."""
    *where, values = x.to_coo()
    cells = where if len(where) == 2 else (np.zeros_like(where[0]), *where)
    yield from zip(*(index.tolist() for index in cells), values, strict=True)


def _vector(v: Vector, what: str) -> CellGrid:
    """Return the cells of a vector."""
    if not isinstance(v, Vector):
        remedy = "See viz.matrix." if isinstance(v, Matrix) else "Give a Vector."
        raise DomainMismatch(f"viz.{what}: {type(v).__name__} is not a Vector. {remedy}")
    return _entries(v, what)


def _entries(x: Vector | Matrix, what: str) -> CellGrid:
    """Return the cells of a vector, or of a matrix."""
    if isinstance(x, Vector):
        refuse_larger(what, x.size, MOST, "cells", "Draw a part, such as v[:20].new().")
    else:
        remedy = "Draw a part, such as A[:20, :20].new()."
        refuse_larger(what, max(x.shape), CELLS, "rows or columns", remedy)
    grid = CellGrid(x.name, *(x.shape if isinstance(x, Matrix) else (1, x.size)))
    for i, j, value in _triplets(x):
        grid.put(i, j, entry(value), value)
    return grid


def _rows(grids: list[CellGrid], what: str, ax: Axes | None) -> Axes:
    """Draw grids of cells below one another, with their names, and indices above the first."""
    if not grids:
        raise InvalidValue(f"viz.{what}: there is nothing to draw. Give at least one.")
    first = grids[0]
    for grid in grids:
        _require_alike(first, grid, what)
    tall = first.nrows > 1
    right = -1.6 if tall else -0.8  # of the names; the indices of rows stand between
    left = right - 0.3 - 0.28 * max(len(grid.name) for grid in grids)
    step = first.nrows + 0.35
    bottom = step * len(grids) - 0.65
    ax = axes(ax, max(5.5, 0.42 * (first.ncols - left)), 0.42 * (bottom + 1.2) + 0.9)
    size = bare(ax, left, first.ncols - 0.3, -1.2, bottom)
    for k, grid in enumerate(grids):
        grid.y = step * k
        grid.draw(ax, size)
        grid.number(ax, size, rows=tall, cols=grid is first)
        middle = grid.y + (grid.nrows - 1) / 2
        ax.text(right, middle, grid.name, ha="right", va="center", fontsize=size, **AS_IT_IS)
    legend(ax, [kind for grid in grids for kind in grid.kinds])
    return ax


def _require_alike(first: CellGrid, other: CellGrid, what: str) -> None:
    """Raise `DimensionMismatch` if two grids do not fit below one another."""
    if first.nrows == other.nrows == 1 and first.ncols != other.ncols:
        raise DimensionMismatch(
            f"viz.{what}: {first.name}.size {first.ncols} != {other.name}.size {other.ncols}."
        )
    if (first.nrows, first.ncols) != (other.nrows, other.ncols):
        raise DimensionMismatch(
            f"viz.{what}: {first.name} has {first.nrows} x {first.ncols} cells != "
            f"{other.nrows} x {other.ncols} of {other.name}. Draw them separately."
        )
