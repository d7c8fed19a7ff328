"""Partial results travel to their owners, who add them up."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lagpu.algebra.operators import Monoid
from lagpu.algebra.tables import binary
from lagpu.backends.grid.dealing import Layout
from lagpu.backends.grid.devices import handed
from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.pieces import Pieces, cut, empty, entries_of, from_entries
from lagpu.backends.grid.travel.entries import by_position, heard, nothing, places, told
from lagpu.backends.grid.travel.masks import of_owners
from lagpu.backends.grid.travel.operands import Need, needed
from lagpu.dtypes import DType
from lagpu.operations import Assign, Descriptor, Ewise, Handle, Operation, Statement

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
    need = needed(layout, dim)
    descs = of_owners(pieces, desc, shape, need, expected, width)
    found = []
    for k, p, place in pieces:
        found.append(empty(place, dtype, (*shape[:-1], need.by.count(need.part[p]))))
        pieces.execute(k, Statement(found[-1], descs[k], local[k], dtype))
    terms = handed(pieces, found, shape, need.by, need.part, dtype)
    if terms is None:
        terms = _exchanged(pieces, found, shape, need, dtype)
    op = binary.first if monoid.op.name == "any" else monoid.op
    own = pieces.layout(shape)
    sums: list[Operation] = []
    for k, p, place in pieces:
        total = terms[k][0] if terms[k] else empty(place, dtype, own.shape(p))
        for term in terms[k][1:]:
            added = empty(place, dtype, own.shape(p))
            both = Ewise("ewise_add", total, term, op)
            place.execute(Statement(added, Descriptor(), both, dtype))
            total = added
        sums.append(Assign(total))
    return sums


def _exchanged(
    pieces: Pieces, found: Sequence[Handle], shape: tuple[int, ...], need: Need, dtype: DType
) -> list[list[Handle]]:
    """Return, for each local piece, what each of its group has found of its entries.

    By way of the host. Who has found none of them is left out.
    """
    own, groups, size = pieces.layout(shape), need.groups(), pieces.engine.size
    shapes = [own.shape(p) for p in range(size)]
    given: list[list[Arrays]] = []
    for k, p, place in pieces:
        part = need.part[p]
        *rows, where, values = entries_of(place, found[k], len(shape))
        index = need.by.index(part, where)
        lists = cut((*rows, index, values), own.owner(*rows, index), size)
        messages = [nothing(values.dtype, 0)] * size
        for d in groups[part]:
            *at, values = lists[d]
            numbers = by_position(shapes[d], own.position(*at))
            messages[d] = told(numbers, values, math.prod(shapes[d]))
        given.append(messages)
    received = pieces.engine.exchange(given, groups)
    terms: list[list[Handle]] = []
    for k, p, place in pieces:
        mine, its = shapes[p], []
        for s in groups[need.part[p]]:
            numbers, values = heard(received[k][s], math.prod(mine))
            if len(numbers):
                its.append(from_entries(place, (*places(mine, numbers), values), dtype, mine))
        terms.append(its)
    return terms
