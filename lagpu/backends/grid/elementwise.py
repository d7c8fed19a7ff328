"""Element-wise operations: each piece by itself; operators of indices see the global ones."""

from __future__ import annotations

from typing import Any

from lagpu.algebra.operators import IndexUnaryOp
from lagpu.backends.grid.handles import GridHandle
from lagpu.backends.grid.pieces import Pieces, empty, entries_of, from_entries
from lagpu.backends.protocol import Backend
from lagpu.dtypes import DType
from lagpu.operations import (
    Apply,
    Assign,
    Descriptor,
    Ewise,
    Handle,
    Operation,
    Select,
    Statement,
)

__all__ = ["apply", "ewise", "select"]


def ewise(pieces: Pieces, op: Ewise, _out: GridHandle, _desc: Descriptor) -> list[Operation]:
    """Combine the parts; a transposed matrix is laid out anew first."""
    left, right = (
        pieces.turned(x) if transposed else x
        for x, transposed in zip((op.left, op.right), op.transposed, strict=True)
    )
    straight = op._replace(transposed=(False, False))
    return [straight._replace(left=left.parts[k], right=right.parts[k]) for k, _, _place in pieces]


def apply(pieces: Pieces, op: Apply, _out: GridHandle, _desc: Descriptor) -> list[Operation]:
    """Apply a function to each part."""
    return _each_part(pieces, op, op.function.op, op.function.result)


def select(pieces: Pieces, op: Select, _out: GridHandle, _desc: Descriptor) -> list[Operation]:
    """Select entries of each part."""
    return _each_part(pieces, op, op.op, op.operand.dtype)


def _each_part(pieces: Pieces, op: Apply | Select, function: Any, dtype: DType) -> list[Operation]:
    x: GridHandle = op.operand
    if not _reads_indices(function):
        return [op._replace(operand=part) for part in x.parts]
    return [Assign(_by_global_index(pieces, x, op, dtype, k, p, place)) for k, p, place in pieces]


def _reads_indices(function: Any) -> bool:
    return isinstance(function, IndexUnaryOp) and (bool(function.body) or not function.uses_value)


def _by_global_index(
    pieces: Pieces,
    x: GridHandle,
    op: Apply | Select,
    dtype: DType,
    k: int,
    piece: int,
    place: Backend,
) -> Handle:
    """Return the part of a result that was computed with its entries at their global indices."""
    ndim, by = len(x.shape), pieces.layout(x.shape)
    *where, values = entries_of(place, x.parts[k], ndim)
    wide = from_entries(place, (*by.index(piece, *where), values), x.dtype, x.shape)
    found = empty(place, dtype, x.shape)
    place.execute(Statement(found, Descriptor(), op._replace(operand=wide), dtype))
    *indices, values = entries_of(place, found, ndim)
    return from_entries(place, (*by.position(*indices), values), dtype, by.shape(piece))
