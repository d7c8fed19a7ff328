"""Index lists: each piece assigns and extracts at the indices that it owns."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.grid.handles import GridHandle, GridMatrix
from lagpu.backends.grid.pieces import (
    Pieces,
    empty,
    entries_of,
    from_entries,
    joined,
    on_host,
)
from lagpu.operations import (
    Assign,
    AssignScalar,
    Descriptor,
    Extract,
    ExtractColumn,
    Handle,
    Operation,
    Statement,
)

__all__ = ["assign", "assign_scalar", "extract", "extract_column"]

Array = np.ndarray[Any, Any]


def assign(pieces: Pieces, op: Assign, out: GridHandle) -> list[Operation]:
    """Assign at the own indices; the operand's entries travel to the owners of their places."""
    x = pieces.turned(op.operand) if op.transposed else op.operand
    if op.indices is None:
        return [Assign(part) for part in x.parts]
    *rows, last = map(_on_host, op.indices)
    if last is None:
        return [Assign(part, (*rows, None)) for part in x.parts]
    parts = _at_places(pieces, x, last, out.shape[-1])
    return [
        Assign(parts[k], (*rows, _own(pieces, last, p, out.shape[-1])[1]))
        for k, p, _place in pieces
    ]


def _at_places(pieces: Pieces, x: GridHandle, last: Array, size: int) -> list[Handle]:
    """Return, for each local piece, the part of `x` that it assigns to its indices of `last`."""
    # `routed` reads the place, which is last but one; the number in `x` goes with it.
    given = [(*rows, number, last[number], values) for *rows, number, values in pieces.entries(x)]
    parts = []
    for (_, p, place), lists in zip(pieces, pieces.routed(given, size), strict=True):
        *rows, number, _, values = joined(lists)
        mine = _own(pieces, last, p, size)[0]
        entries = (*rows, np.searchsorted(mine, number), values)
        parts.append(from_entries(place, entries, x.dtype, (*x.shape[:-1], len(mine))))
    return parts


def assign_scalar(pieces: Pieces, op: AssignScalar, out: GridHandle) -> list[Operation]:
    """Assign a number at the own indices."""
    if op.indices is None:
        return [op] * len(pieces.places)
    *rows, last = map(_on_host, op.indices)
    return [
        op._replace(
            indices=(*rows, None if last is None else _own(pieces, last, p, out.shape[-1])[1])
        )
        for _, p, _place in pieces
    ]


def extract(pieces: Pieces, op: Extract, out: GridHandle) -> list[Operation]:
    """Extract at the own indices; what is found travels to the owners of the results."""
    x: GridHandle = op.operand
    *rows, last = (None,) * len(x.shape) if op.indices is None else map(_on_host, op.indices)
    if last is None:
        return [Extract(part, op.indices) for part in x.parts]
    given = []
    for k, p, place in pieces:
        mine, positions = _own(pieces, last, p, x.shape[-1])
        found = empty(place, x.dtype, (*out.shape[:-1], len(mine)))
        operation = Extract(x.parts[k], (*rows, positions))
        place.execute(Statement(found, Descriptor(), operation, x.dtype))
        *of_rows, number, values = entries_of(place, found, len(x.shape))
        given.append((*of_rows, mine[number], values))
    return [Assign(part) for part in pieces.sent(given, x.dtype, out.shape).parts]


def extract_column(pieces: Pieces, op: ExtractColumn, out: GridHandle) -> list[Operation]:
    """Extract a row from each part, or send a column from its owner to all."""
    A: GridMatrix = op.matrix
    if op.transposed:
        return [op._replace(matrix=part) for part in A.parts]
    by, given = pieces.partition(A.shape[1]), []
    for k, p, place in pieces:
        found = place.vector(A.dtype, A.shape[0])
        if p == by.owner(op.column):
            operation = ExtractColumn(A.parts[k], by.position(op.column))
            place.execute(Statement(found, Descriptor(), operation, A.dtype))
        given.append(place.vector_to_coo(found))
    return [Assign(part) for part in pieces.sent(given, A.dtype, out.shape).parts]


def _own(pieces: Pieces, last: Array, piece: int, size: int) -> tuple[Array, Array]:
    """Return (numbers in an index list, positions in the part) of the indices of a piece."""
    by = pieces.partition(size)
    mine = np.flatnonzero(by.owner(last) == piece)
    return mine, by.position(last[mine])


def _on_host(indices: Any) -> Any:
    return None if indices is None else np.asarray(on_host(indices), np.int64)
