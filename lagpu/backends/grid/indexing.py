"""Element-wise operations, sums and indexing of distributed objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.algebra.operators import IndexUnaryOp
from lagpu.backends.grid.dealing import Layout
from lagpu.backends.grid.handles import GridHandle, GridMatrix
from lagpu.backends.grid.pieces import Pieces, empty, entries_of, from_entries, joined, on_host
from lagpu.backends.grid.travel import folded
from lagpu.backends.protocol import Backend
from lagpu.dtypes import DType
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
    Descriptor,
    Ewise,
    Extract,
    ExtractColumn,
    ExtractElement,
    Handle,
    Operation,
    Reduce,
    ReduceRows,
    Select,
    Statement,
)

Array = np.ndarray[Any, Any]
Lists = list[Array | None]


def assign(pieces: Pieces, op: Assign, out: GridHandle, _desc: Descriptor) -> list[Operation]:
    """Assign at the own indices; the operand's entries travel to the owners of their places."""
    x = pieces.turned(op.operand) if op.transposed else op.operand
    lists = _on_host(op.indices, x)
    by, own = pieces.layout(out.shape), pieces.layout(x.shape)
    if _in_place(lists, own, by):
        return [Assign(part, op.indices) for part in x.parts]
    # The numbers in the lists are the indices in `x`.
    given = pieces.entries(x)
    places = [
        [number if of is None else of[number] for of, number in zip(lists, numbers, strict=True)]
        for *numbers, _ in given
    ]
    received = pieces.routed(given, [by.owner(*at) for at in places])
    operations: list[Operation] = []
    for k, p, place in pieces:
        mine = _own(by, lists, p)
        *numbers, values = joined(received[k])
        shape = tuple(
            size if of is None else len(of[0]) for of, size in zip(mine, by.shape(p), strict=True)
        )
        local = [
            dim.position(number) if of is None else np.searchsorted(of[0], number)
            for of, number, dim in zip(mine, numbers, by.dims, strict=True)
        ]
        part = from_entries(place, (*local, values), x.dtype, shape)
        operations.append(Assign(part, _positions(mine)))
    return operations


def assign_scalar(
    pieces: Pieces, op: AssignScalar, out: GridHandle, _desc: Descriptor
) -> list[Operation]:
    """Assign a number at the own indices."""
    lists, by = _on_host(op.indices, out), pieces.layout(out.shape)
    own = [[None if of is None else _sorted(of) for of in _own(by, lists, p)] for _, p, _ in pieces]
    return [op._replace(indices=_positions(mine)) for mine in own]


def extract(pieces: Pieces, op: Extract, out: GridHandle, _desc: Descriptor) -> list[Operation]:
    """Extract at the own indices; what is found travels to the owners of the results."""
    x: GridHandle = op.operand
    lists, by = _on_host(op.indices, x), pieces.layout(x.shape)
    if _in_place(lists, pieces.layout(out.shape), by):
        return [Extract(part, op.indices) for part in x.parts]
    given = []
    for k, p, place in pieces:
        mine = _own(by, lists, p)
        shape = tuple(
            size if of is None else len(of[0]) for of, size in zip(mine, by.shape(p), strict=True)
        )
        found = empty(place, x.dtype, shape)
        operation = Extract(x.parts[k], _positions(mine))
        place.execute(Statement(found, Descriptor(), operation, x.dtype))
        *where, values = entries_of(place, found, len(shape))
        # The numbers in the lists are the indices of the result.
        numbers = [
            dim.index(part, at) if of is None else of[0][at]
            for of, at, dim, part in zip(mine, where, by.dims, by.parts(p), strict=True)
        ]
        given.append((*numbers, values))
    return [Assign(part) for part in pieces.sent(given, x.dtype, out.shape).parts]


def extract_column(
    pieces: Pieces, op: ExtractColumn, out: GridHandle, _desc: Descriptor
) -> list[Operation]:
    """Extract a column or a row from the parts that have it; it travels where it is cut."""
    A: GridMatrix = op.matrix
    by, dim = pieces.layout(A.shape), 0 if op.transposed else 1
    owner, position = by.dims[dim].owner(op.column), by.dims[dim].position(op.column)
    if by.dims[dim].whole:
        return [op._replace(matrix=part, column=position) for part in A.parts]
    given = []
    for k, p, place in pieces:
        parts, size = by.parts(p), by.shape(p)[1 - dim]
        found = place.vector(A.dtype, size)
        if parts[dim] == owner:
            local = op._replace(matrix=A.parts[k], column=position)
            place.execute(Statement(found, Descriptor(), local, A.dtype))
        where, values = place.vector_to_coo(found)
        given.append((by.dims[1 - dim].index(parts[1 - dim], where), values))
    return [Assign(part) for part in pieces.sent(given, A.dtype, out.shape).parts]


def _in_place(lists: Lists, one: Layout, other: Layout) -> bool:
    """Whether the entries of each piece stay there: dimensions with a list have one owner alone."""
    return all(
        a == b if of is None else a.whole and b.whole
        for of, a, b in zip(lists, one.dims, other.dims, strict=True)
    )


def _own(by: Layout, lists: Lists, piece: int) -> list[tuple[Array, Array] | None]:
    """Return for each list (numbers in the list, positions) of the indices of a piece's part."""
    found: list[tuple[Array, Array] | None] = []
    for of, dim, part in zip(lists, by.dims, by.parts(piece), strict=True):
        if of is None:
            found.append(None)
            continue
        mine = np.flatnonzero(dim.owner(of) == part)
        found.append((mine, dim.position(of[mine])))
    return found


def _positions(own: Sequence[tuple[Array, Array] | None]) -> tuple[Array | None, ...] | None:
    """Return the index lists of a local operation."""
    return None if all(of is None for of in own) else tuple(of and of[1] for of in own)


def _sorted(of: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the numbers and positions of a list, positions rising."""
    order = np.argsort(of[1])
    return of[0][order], of[1][order]


def _on_host(indices: Any, x: GridHandle) -> Lists:
    """Return the list of each dimension, or None where there is none."""
    if indices is None:
        return [None] * len(x.shape)
    return [None if of is None else np.asarray(on_host(of), np.int64) for of in indices]


# ------------------------------------------------------------------------------------------
# Element-wise operations: each piece by itself; operators of indices see the global ones.


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


# ------------------------------------------------------------------------------------------
# Sums: each piece adds its entries, then the pieces' sums are added in the order of the pieces.


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
