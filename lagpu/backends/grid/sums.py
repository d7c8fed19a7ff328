"""Sums: each piece adds its entries, then the pieces' sums are added in the order of the pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.grid.handles import GridHandle, GridMatrix
from lagpu.backends.grid.pieces import Pieces, from_entries, joined
from lagpu.backends.grid.travel import folded
from lagpu.operations import (
    Descriptor,
    ExtractElement,
    Operation,
    Reduce,
    ReduceRows,
)

__all__ = ["element", "reduce", "reduce_rows"]


def reduce_rows(
    pieces: Pieces, op: ReduceRows, out: GridHandle, desc: Descriptor
) -> list[Operation]:
    """Add the rows or the columns of each part; where these are cut, the sums travel and add up."""
    A: GridMatrix = op.matrix
    layout, kept = pieces.layout(A.shape), 1 if op.transposed else 0
    local = [op._replace(matrix=part) for part in A.parts]
    if layout.dims[1 - kept].whole:
        return list(local)
    dtype = op.monoid.types(A.dtype)[1]
    expected = [place.nvals(A.parts[k]) for k, _, place in pieces]
    width = dtype.numpy.itemsize
    return folded(pieces, local, layout, kept, op.monoid, dtype, out.shape, desc, expected, width)


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
    by, given = pieces.layout(x.shape), []
    for k, p, place in pieces:
        value = None
        if p == by.owner(*op.position):
            value = place.evaluate(ExtractElement(x.parts[k], by.position(*op.position)))
        given.append((np.array([] if value is None else [value], x.dtype.numpy),))
    (values,) = joined(pieces.engine.gather(given)[0])
    return values[0].item() if len(values) else None
