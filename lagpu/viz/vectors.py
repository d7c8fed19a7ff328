"""Vectors as rows of cells, and masks as the positions that they let through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.expr import Mask, spell
from lagpu.vector import Vector
from lagpu.viz.cells import KEPT, OUT, Block, bare, entry, legend
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
    return _rows([_entries(v, "vector") for v in vectors], "vector", ax)


def mask(*masks: Mask, ax: Axes | None = None) -> Axes:
    """Draw masks: the vector they are made of, and below it the positions that may be written.

    Parameters
    ----------
    *masks : Mask, (n,), n <= 40
        ``v.S``, ``v.V``, ``~v.S`` or ``~v.V``; a vector is drawn once for the masks that follow.
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
        kept = set(m.new().to_coo()[0].tolist())
        lets = Block(spell(m.formula), 1, source.size)
        for j in range(source.size):
            lets.put(0, j, KEPT if j in kept else OUT)
        blocks.append(lets)
    return _rows(blocks, "mask", ax)


def _entries(v: Vector, what: str) -> Block:
    """Return the cells of a vector."""
    if not isinstance(v, Vector):
        raise DomainMismatch(f"viz.{what}: {type(v).__name__} is not a Vector.")
    refuse_larger(what, v.size, MOST, "cells", "Draw a part, such as v[:20].new().")
    block = Block(v.name, 1, v.size)
    for i, x in zip(*v.to_coo(), strict=True):
        block.put(0, i, entry(x), x)
    return block


def _rows(blocks: list[Block], what: str, ax: Axes | None) -> Axes:
    """Draw rows of cells below one another, with their names, and indices above the first."""
    if not blocks:
        raise InvalidValue(f"viz.{what}: there is nothing to draw. Give at least one.")
    n = blocks[0].ncols
    for block in blocks:
        if block.ncols != n:
            raise DimensionMismatch(
                f"viz.{what}: {blocks[0].name}.size {n} != {block.name}.size {block.ncols}."
            )
    left = -1.1 - 0.28 * max(len(block.name) for block in blocks)
    bottom = 1.35 * len(blocks) - 0.65
    ax = axes(ax, max(5.5, 0.42 * (n - left)), 0.42 * (bottom + 1.2) + 0.9)
    size = bare(ax, left, n - 0.3, -1.2, bottom)
    for k, block in enumerate(blocks):
        block.y = 1.35 * k
        block.draw(ax, size)
        ax.text(-0.8, block.y, block.name, ha="right", va="center", fontsize=size)
    blocks[0].number(ax, size, rows=False)
    legend(ax, [kind for block in blocks for kind in block.kinds])
    return ax
