"""Vectors as rows of cells, and masks as the positions that they let through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lagpu.core.expr import Mask, format_formula
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.viz.cells import KEPT, OUT, Block, bare, entry, legend
from lagpu.viz.matrices import CELLS
from lagpu.viz.style import axes, refuse_larger

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MOST", "mask", "vector"]

MOST = 40  # cells that fit a page


def vector(*vectors: Vector, ax: Axes | None = None) -> Axes:
    """Draw vectors as rows of cells: blank without an entry, dashed where an entry is zero.

    Parameters
    ----------
    *vectors : Vector, (n,), n <= 40
        One, or several of one size, which stand below one another; on any backend.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    DomainMismatch
        If one is no vector.
    DimensionMismatch
        If they differ in size.
    InvalidValue
        If they are too long for a picture, or there is none.
    BackendUnavailable
        If Matplotlib is not installed.
    """
    return _rows([_vector(v, "vector") for v in vectors], "vector", ax)


def mask(*masks: Mask, ax: Axes | None = None) -> Axes:
    """Draw masks: what they are made of, and below it the positions that may be written.

    Parameters
    ----------
    *masks : Mask, (n,), n <= 40, or (m, n), both <= 20
        ``v.S``, ``v.V``, ``~v.S`` or ``~v.V``, or those of a matrix; a vector is drawn once for
        the masks that follow.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    DomainMismatch
        If one is no mask.
    DimensionMismatch
        If they differ in size.
    InvalidValue
        If they are too long for a picture, or there is none.
    BackendUnavailable
        If Matplotlib is not installed.
    """
    blocks: list[Block] = []
    source = None
    for m in masks:
        if not isinstance(m, Mask):
            raise DomainMismatch(f"viz.mask: {type(m).__name__} is not a mask. Write v.S or ~v.V.")
        if m.vector is not source:
            source = m.vector
            blocks.append(_entries(source, "mask"))
        kept = {(i, j) for i, j, _ in _triplets(m.new())}
        lets = Block(format_formula(m.formula), blocks[-1].nrows, blocks[-1].ncols)
        for i in range(lets.nrows):
            for j in range(lets.ncols):
                lets.put(i, j, KEPT if (i, j) in kept else OUT)
        blocks.append(lets)
    return _rows(blocks, "mask", ax)


def _triplets(x: Vector | Matrix) -> Iterator[tuple[int, int, Any]]:
    """Yield row, column and value of each entry; a vector is a row."""
    *where, values = x.to_coo()
    cells = where if len(where) == 2 else (np.zeros_like(where[0]), *where)
    yield from zip(*(index.tolist() for index in cells), values, strict=True)


def _vector(v: Vector, what: str) -> Block:
    """Return the cells of a vector."""
    if not isinstance(v, Vector):
        remedy = "See viz.matrix." if isinstance(v, Matrix) else "Give a Vector."
        raise DomainMismatch(f"viz.{what}: {type(v).__name__} is not a Vector. {remedy}")
    return _entries(v, what)


def _entries(x: Vector | Matrix, what: str) -> Block:
    """Return the cells of a vector, or of a matrix."""
    if isinstance(x, Vector):
        refuse_larger(what, x.size, MOST, "cells", "Draw a part, such as v[:20].new().")
    else:
        remedy = "Draw a part, such as A[:20, :20].new()."
        refuse_larger(what, max(x.shape), CELLS, "rows or columns", remedy)
    block = Block(x.name, *(x.shape if isinstance(x, Matrix) else (1, x.size)))
    for i, j, value in _triplets(x):
        block.put(i, j, entry(value), value)
    return block


def _rows(blocks: list[Block], what: str, ax: Axes | None) -> Axes:
    """Draw grids of cells below one another, with their names, and indices above the first."""
    if not blocks:
        raise InvalidValue(f"viz.{what}: there is nothing to draw. Give at least one.")
    first = blocks[0]
    for block in blocks:
        _require_alike(first, block, what)
    tall = first.nrows > 1
    right = -1.6 if tall else -0.8  # of the names; the indices of rows stand between
    left = right - 0.3 - 0.28 * max(len(block.name) for block in blocks)
    step = first.nrows + 0.35
    bottom = step * len(blocks) - 0.65
    ax = axes(ax, max(5.5, 0.42 * (first.ncols - left)), 0.42 * (bottom + 1.2) + 0.9)
    size = bare(ax, left, first.ncols - 0.3, -1.2, bottom)
    for k, block in enumerate(blocks):
        block.y = step * k
        block.draw(ax, size)
        block.number(ax, size, rows=tall, cols=block is first)
        middle = block.y + (block.nrows - 1) / 2
        ax.text(right, middle, block.name, ha="right", va="center", fontsize=size)
    legend(ax, [kind for block in blocks for kind in block.kinds])
    return ax


def _require_alike(first: Block, other: Block, what: str) -> None:
    """Raise `DimensionMismatch` if two grids cannot stand below one another."""
    if first.nrows == other.nrows == 1 and first.ncols != other.ncols:
        raise DimensionMismatch(
            f"viz.{what}: {first.name}.size {first.ncols} != {other.name}.size {other.ncols}."
        )
    if (first.nrows, first.ncols) != (other.nrows, other.ncols):
        raise DimensionMismatch(
            f"viz.{what}: {first.name} has {first.nrows} x {first.ncols} cells != "
            f"{other.nrows} x {other.ncols} of {other.name}. Draw them apart."
        )
