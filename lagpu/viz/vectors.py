"""Vectors as a row of cells, and masks as the row that they let through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagpu.errors import DomainMismatch
from lagpu.expr import Mask
from lagpu.vector import Vector
from lagpu.viz.cells import KEPT, OUT, Block, bare, entry, legend
from lagpu.viz.style import axes, refuse_larger

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MOST", "mask", "vector", "vector_block"]

MOST = 40  # cells that fit a page


def vector_block(v: Vector, what: str, upright: bool = False) -> Block:
    """Return the cells of a vector, as a row or upright."""
    if not isinstance(v, Vector):
        raise DomainMismatch(f"viz.{what}: {type(v).__name__} is not a Vector.")
    refuse_larger(what, v.size, MOST, "cells", "Draw a part, such as v[:20].new().")
    block = Block(v.name, v.size, 1) if upright else Block(v.name, 1, v.size)
    for i, x in zip(*v.to_coo(), strict=True):
        block.put(i if upright else 0, 0 if upright else i, entry(x), x)
    return block


def vector(v: Vector, *, ax: Axes | None = None) -> Axes:
    """Draw a vector as a row of cells: blank without an entry, dashed where an entry is zero.

    Parameters
    ----------
    v : Vector, (n,), n <= 40
        On any backend.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    InvalidValue
        If it is too long for a picture.
    BackendUnavailable
        If Matplotlib is not installed.
    """
    block = vector_block(v, "vector")
    ax = axes(ax, max(4.5, 1 + 0.42 * v.size), 1.5)
    size = bare(ax, -1.2 - 0.25 * len(v.name), v.size - 0.3, -1.2, 0.7)
    block.draw(ax, size)
    block.number(ax, size, rows=False)
    ax.text(-0.8, 0, v.name, ha="right", va="center", fontsize=size)
    legend(ax, block.kinds)
    return ax


def mask(m: Mask, *, ax: Axes | None = None) -> Axes:
    """Draw a mask: the vector it is made of, and below it the positions that may be written.

    Parameters
    ----------
    m : Mask, (n,), n <= 40
        ``v.S``, ``v.V``, ``~v.S`` or ``~v.V``.
    ax : Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    DomainMismatch
        If it is not a mask.
    InvalidValue
        If it is too long for a picture.
    BackendUnavailable
        If Matplotlib is not installed.
    """
    if not isinstance(m, Mask):
        raise DomainMismatch(f"viz.mask: {type(m).__name__} is not a mask. Write v.S or ~v.V.")
    source = vector_block(m.vector, "mask")
    ax = axes(ax, max(5.5, 1 + 0.42 * m.vector.size), 2.4)
    kept = set(m.new().to_coo()[0].tolist())
    lets = Block(repr(m), 1, m.vector.size, y=1.35)
    for j in range(m.vector.size):
        lets.put(0, j, KEPT if j in kept else OUT)
    size = bare(ax, -1.2 - 0.25 * len(lets.name), m.vector.size - 0.3, -1.2, 2.1)
    for block in (source, lets):
        block.draw(ax, size)
        ax.text(-0.8, block.y, block.name, ha="right", va="center", fontsize=size)
    source.number(ax, size, rows=False)
    legend(ax, [*source.kinds, *lets.kinds])
    return ax
