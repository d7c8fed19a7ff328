"""Rewrite statements on bitmap matrices as statements on the vectors that store their entries.

So the kernels for loops over vectors run loops over matrices too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lagpu.backends.gpu.fused.match import method
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.handle import MatrixHandle
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
    Ewise,
    Multiply,
    Rejection,
    Select,
    Statement,
)

__all__ = ["OnEntries", "on_entries"]

_NO_BITMAP = "a matrix is not a bitmap matrix, and does not fit as one"


class OnEntries(NamedTuple):
    """Statements on bitmap matrices, rewritten as statements on vectors.

    Attributes
    ----------
    statements : list of Statement
        Outputs, masks and operands are vectors; a product has the same matrix.
    outputs : list of (MatrixHandle, BitmapMatrix)
        The bitmap matrix that each handle gets once the statements have run.
    bitmaps : dict
        The bitmap matrix of each handle, by the handle's ``id``.
    """

    statements: list[Statement]
    outputs: list[tuple[MatrixHandle, BitmapMatrix]]
    bitmaps: dict[int, BitmapMatrix]

    def store(self) -> None:
        """Store the bitmap matrices written in the outputs' handles."""
        for handle, made in self.outputs:
            made.changed()
            handle.store = made


def on_entries(
    counters: Counters,
    statements: Sequence[Statement],
    read: Sequence[MatrixHandle],
    shape: tuple[int, int] | None = None,
) -> OnEntries | Rejection:
    """Return statements on entries, or why there are none.

    Parameters
    ----------
    counters : Counters
        For new vectors.
    statements : sequence of Statement
        As recorded; each writes a matrix.
    read : sequence of MatrixHandle
        Matrices that a sweep or the loop's condition reads besides.
    shape : tuple of int, optional
        The shape that all matrices must have, except those of products.
    """
    for s in statements:
        why = _why_not(s, shape)
        if why:
            return Rejection(why)
    if not all(A.may_be_bitmap for A in read):
        return Rejection(_NO_BITMAP)
    written = {id(s.out): s.out for s in statements}
    bitmaps = {of: C.own_bitmap(counters) for of, C in written.items()}
    for A in (*read, *(A for s in statements for A in _by_position(s))):
        if id(A) not in bitmaps:
            bitmaps[id(A)] = A.bitmap(counters)
    entries = {of: made.entries for of, made in bitmaps.items()}
    outputs = [(C, bitmaps[of]) for of, C in written.items()]
    return OnEntries([_on_entries(s, entries) for s in statements], outputs, bitmaps)


def _by_position(s: Statement) -> tuple[MatrixHandle, ...]:
    """Return the matrices that a statement reads position by position."""
    operation = s.operation
    mask = () if s.desc.mask is None else (s.desc.mask,)
    if isinstance(operation, (Multiply, Apply, Select, Assign)):
        return (operation.operand, *mask)
    if isinstance(operation, Ewise):
        return (operation.left, operation.right, *mask)
    return mask


def _why_not(s: Statement, shape: tuple[int, int] | None) -> str:
    """Return why a statement cannot be rewritten on entries, or an empty string."""
    operation, what = s.operation, method(s)
    if isinstance(operation, (Assign, AssignScalar)) and operation.indices is not None:
        return f"{what} has indices"
    if isinstance(operation, (Multiply, Assign)) and operation.transposed:
        return f"{what} transposes its operand"
    if isinstance(operation, Ewise) and any(operation.transposed):
        return f"{what} transposes an operand"
    if not isinstance(operation, (Multiply, Ewise, Apply, Select, Assign, AssignScalar)):
        return f"{what} is not among the operations of a fused loop over matrices"
    for A in (s.out, *_by_position(s)):
        if shape is not None and A.shape != shape:
            return f"{what} has an operand whose shape is not that of the levels"
        if not A.may_be_bitmap:
            return _NO_BITMAP
    return ""


def _on_entries(s: Statement, entries: dict[int, VectorStore]) -> Statement:
    """Return one statement on entries."""
    operation, mask = s.operation, s.desc.mask
    if isinstance(operation, Ewise):
        left, right = entries[id(operation.left)], entries[id(operation.right)]
        operation = operation._replace(left=left, right=right)
    elif isinstance(operation, (Multiply, Apply, Select, Assign)):
        operation = operation._replace(operand=entries[id(operation.operand)])
    desc = s.desc if mask is None else s.desc._replace(mask=entries[id(mask)])
    return s._replace(out=entries[id(s.out)], desc=desc, operation=operation)
