"""Sums: each piece adds its entries, then the pieces' sums are added in the order of the pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.grid.handles import GridHandle, GridMatrix
from lagpu.backends.grid.pieces import Pieces, from_entries, joined
from lagpu.operations import (
    Assign,
    Descriptor,
    Ewise,
    ExtractElement,
    Operation,
    Reduce,
    ReduceRows,
    Statement,
)

__all__ = ["element", "reduce", "reduce_rows"]


def reduce_rows(pieces: Pieces, op: ReduceRows, out: GridHandle) -> list[Operation]:
    """Add the columns of each part, or its rows, whose sums travel to their owners."""
    A: GridMatrix = op.matrix
    if op.transposed:
        return [op._replace(matrix=part) for part in A.parts]
    dtype, size = op.monoid.types(A.dtype)[1], A.shape[0]
    given = []
    for k, _, place in pieces:
        sums = place.vector(dtype, size)
        place.execute(Statement(sums, Descriptor(), ReduceRows(A.parts[k], op.monoid), dtype))
        given.append(place.vector_to_coo(sums))
    received = pieces.routed(given, size)
    # Not `made` of all at once: an index comes from every piece that has an entry in its row.
    total, *others = (
        pieces.made([lists[s] for lists in received], dtype, (size,))
        for s in range(pieces.engine.size)
    )
    for other in others:
        both = zip(total.parts, other.parts, strict=True)
        added = [Ewise("ewise_add", left, right, op.monoid.op) for left, right in both]
        total = pieces.evaluated(added, dtype, (size,))
    return [Assign(part) for part in total.parts]


def reduce(pieces: Pieces, op: Reduce) -> Any:
    """Return the sum of all entries, or None."""
    x: GridHandle = op.operand
    dtype = op.monoid.types(x.dtype)[1]
    given = []
    for k, _, place in pieces:
        value = place.evaluate(Reduce(x.parts[k], op.monoid))
        given.append((np.array([] if value is None else [value], dtype.numpy),))
    (values,) = joined(pieces.engine.gather(given)[0])
    if not len(values):
        return None
    place = pieces.places[0]
    sums = from_entries(place, (np.arange(len(values)), values), dtype, (len(values),))
    return place.evaluate(Reduce(sums, op.monoid))


def element(pieces: Pieces, op: ExtractElement) -> Any:
    """Return the value at an index or two, or None: the owner tells it to all."""
    x: GridHandle = op.operand
    *row, last = op.position
    by, given = pieces.partition(x.shape[-1]), []
    for k, p, place in pieces:
        value = None
        if p == by.owner(last):
            value = place.evaluate(ExtractElement(x.parts[k], (*row, by.position(last))))
        given.append((np.array([] if value is None else [value], x.dtype.numpy),))
    (values,) = joined(pieces.engine.gather(given)[0])
    return values[0].item() if len(values) else None
