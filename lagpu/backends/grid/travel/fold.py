"""Partial results travel to their owners, who add them up."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lagpu.algebra.operators import Monoid
from lagpu.algebra.tables import binary
from lagpu.backends.grid.dealing import Layout
from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.pieces import Pieces, cut, empty, entries_of, from_entries
from lagpu.backends.grid.travel.entries import by_position, heard, nothing, places, told
from lagpu.backends.grid.travel.masks import of_owners
from lagpu.backends.grid.travel.operands import needed
from lagpu.dtypes import DType
from lagpu.operations import Assign, Descriptor, Ewise, Operation, Statement

__all__ = ["folded"]


def folded(
    pieces: Pieces,
    local: Sequence[Operation],
    layout: Layout,
    dim: int,
    monoid: Monoid,
    dtype: DType,
    shape: tuple[int, ...],
    desc: Descriptor,
    expected: Sequence[float],
    width: int,
) -> list[Operation]:
    """Return, for each local piece, the assignment of its part of the sum of partial results.

    A partial result comes from each piece that has the same part of one dimension of a matrix; the
    owners add them in the order of the pieces. Of several values `any` takes that of the first one.
    Owners tell first what the mask leaves out, where that pays.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    local : sequence of Operation
        Finds the partial result of each local piece; its last dimension is the piece's part.
    layout : Layout
        The layout of the matrix.
    dim : int
        The dimension of the matrix that is the last one of the result.
    monoid : Monoid
        Adds.
    dtype : DType
        The type of the sums.
    shape : tuple of int
        The shape of the result.
    desc : Descriptor
        How the result is written.
    expected : sequence of float
        About how many entries the partial result of each local piece has without a mask.
    width : int
        Bytes of a value of it, as it travels; 0 if all have the same one.
    """
    own, need = pieces.layout(shape), needed(layout, dim)
    groups, size = need.groups(), pieces.engine.size
    shapes = [own.shape(p) for p in range(size)]
    descs = of_owners(pieces, desc, shape, need, expected, width)
    given: list[list[Arrays]] = []
    for k, p, place in pieces:
        part = need.part[p]
        found = empty(place, dtype, (*shape[:-1], need.by.count(part)))
        pieces.execute(k, Statement(found, descs[k], local[k], dtype))
        *rows, where, values = entries_of(place, found, len(shape))
        index = need.by.index(part, where)
        lists = cut((*rows, index, values), own.owner(*rows, index), size)
        messages = [nothing(values.dtype, 0)] * size
        for d in groups[part]:
            *at, values = lists[d]
            numbers = by_position(shapes[d], own.position(*at))
            messages[d] = told(numbers, values, math.prod(shapes[d]))
        given.append(messages)
    received = pieces.engine.exchange(given, groups)
    op = binary.first if monoid.op.name == "any" else monoid.op
    sums: list[Operation] = []
    for k, p, place in pieces:
        mine, terms = shapes[p], []
        for s in groups[need.part[p]]:
            numbers, values = heard(received[k][s], math.prod(mine))
            if len(numbers):
                terms.append(from_entries(place, (*places(mine, numbers), values), dtype, mine))
        total = terms[0] if terms else empty(place, dtype, mine)
        for term in terms[1:]:
            added = empty(place, dtype, mine)
            both = Ewise("ewise_add", total, term, op)
            place.execute(Statement(added, Descriptor(), both, dtype))
            total = added
        sums.append(Assign(total))
    return sums
