"""What moves around a local product: operands to the pieces that need them, partial sums back."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from lagpu.algebra.operators import Monoid
from lagpu.algebra.tables import binary
from lagpu.backends.grid.devices import collected
from lagpu.backends.grid.handles import GridHandle
from lagpu.backends.grid.partition import Dealt, Layout, Partition
from lagpu.backends.grid.pieces import Entries, Pieces, cut, each_once, from_entries, joined
from lagpu.backends.protocol import Backend
from lagpu.dtypes import INT64, DType
from lagpu.host.memory import require
from lagpu.operations import Assign, Ewise, Handle, Operation

__all__ = ["Need", "folded", "needed", "spread", "whole"]

_COLLECTED = 40  # bytes of an entry without its values, as it is received, sorted and stored


@dataclass(frozen=True)
class Need:
    """Which indices of a dimension each piece needs, be it the owner of their entries or not.

    Attributes
    ----------
    by : Partition
        The parts of the dimension.
    part : tuple of int
        For each piece the part that it needs.
    """

    by: Partition
    part: tuple[int, ...]

    def groups(self) -> list[list[int]]:
        """Return, for each part, the pieces that need it."""
        return [[p for p, q in enumerate(self.part) if q == r] for r in range(self.by.pieces)]


@functools.lru_cache(maxsize=1024)
def needed(layout: Layout, dim: int) -> Need:
    """Return the need of every piece for the indices of its part of a dimension."""
    return Need(layout.dims[dim], tuple(layout.parts(p)[dim] for p in range(layout.pieces)))


def whole(pieces: Pieces, x: GridHandle, what: str) -> list[Handle]:
    """Return, for each local piece, a handle of all of a vector or matrix; never written."""
    return spread(pieces, x, Need(Dealt(x.shape[-1], 1, 1), (0,) * pieces.engine.size), what)


def spread(
    pieces: Pieces,
    x: GridHandle,
    need: Need,
    what: str,
    dim: int = -1,
    transposed: bool = False,
    numbered: int | None = None,
) -> list[Handle]:
    """Return, for each local piece, a handle of all that it needs of a vector or matrix.

    The handle is never written. Its indices in one dimension are positions in the part that the
    piece needs, those in the other one are global.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    x : GridHandle
        The vector or matrix.
    need : Need
        What each piece needs of one dimension.
    what : str
        The operation, for messages.
    dim : int
        This dimension of `x`, or of its transpose.
    transposed : bool
        Whether the transpose of `x` is needed.
    numbered : int, optional
        Make the index in this dimension the value of each entry.

    Raises
    ------
    OutOfMemory
        If `x` is a matrix, and the free memory is too small for what the places of this process
        need of it.
    """
    own = pieces.layout(x.shape)
    as_vector = not transposed and own.dims[dim] == pieces.partition(x.shape[dim])
    if as_vector and numbered is None and need == needed(own, dim):
        return x.parts
    if as_vector and numbered is None:
        found = collected(pieces, x, need.by, need.part)
        if found is not None:
            return found
    if len(x.shape) == 2:
        _require(pieces, x, need, what)
    given, shape, dtype = pieces.entries(x), x.shape, x.dtype
    if transposed:
        given, shape = [(j, i, values) for i, j, values in given], shape[::-1]
    if numbered is not None:
        given, dtype = [(*at, at[numbered]) for *at, _ in given], INT64
    # Entries that are dealt as those of a vector are with one of the pieces that need them.
    among = need.groups() if as_vector else None
    received = _delivered(pieces, given, need, dim, among)
    items = [(place, need.part[p], received[k]) for k, p, place in pieces]
    return each_once(
        items,
        [(id(place), part) for place, part, _ in items],
        lambda item: _numbered_by_position(*item, need.by, dim, dtype, shape),
    )


def _delivered(
    pieces: Pieces,
    given: Sequence[Entries],
    need: Need,
    dim: int,
    among: Sequence[Sequence[int]] | None,
) -> list[list[Entries]]:
    """Return, for each local piece, the entries that it needs, by sender."""
    if need.by.pieces == 1:
        return pieces.engine.gather(given)
    cuts = [cut(lists, need.by.owner(lists[:-1][dim]), need.by.pieces) for lists in given]
    return pieces.engine.exchange([[parts[q] for q in need.part] for parts in cuts], among)


def _numbered_by_position(
    place: Backend,
    part: int,
    received: Sequence[Entries],
    by: Partition,
    dim: int,
    dtype: DType,
    shape: tuple[int, ...],
) -> Handle:
    *at, values = joined(received)
    local = list(shape)
    at[dim], local[dim] = by.position(at[dim]), by.count(part)
    return from_entries(place, (*at, values), dtype, tuple(local))


def _require(pieces: Pieces, A: GridHandle, need: Need, what: str) -> None:
    """Refuse a matrix of which the places of this process would need too much."""
    width = _COLLECTED + 2 * A.dtype.numpy.itemsize
    handles = len({(id(place), need.part[p]) for _, p, place in pieces})
    count = pieces.nvals(A) * handles * pieces.engine.beside // need.by.pieces
    remedy = "The grid collects this operand on every piece: use fewer of its rows at once."
    require(width * count, what, remedy)


def folded(
    pieces: Pieces,
    partial: Sequence[Entries],
    layout: Layout,
    dim: int,
    monoid: Monoid,
    dtype: DType,
    shape: tuple[int, ...],
) -> list[Operation]:
    """Return, for each local piece, the assignment of its part of the sum of partial results.

    A partial result comes from each piece that has the same part of one dimension of a matrix; the
    owners add them in the order of the pieces. Of several values `any` takes that of the first one.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    partial : sequence of Entries
        The entries that each local piece has found; the last index is a position in the dimension.
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
    """
    given, owners = [], []
    for (*rows, where, values), (_, p, _place) in zip(partial, pieces, strict=True):
        index = layout.dims[dim].index(layout.parts(p)[dim], where)
        given.append((*rows, index, values))
        owners.append(pieces.layout(shape).owner(*rows, index))
    need = needed(layout, dim)
    groups = need.groups()
    received = pieces.routed(given, owners, groups)
    mates = [groups[need.part[p]] for _, p, _place in pieces]
    op = binary.first if monoid.op.name == "any" else monoid.op
    total, *others = (
        pieces.made(
            [lists[senders[s]] for lists, senders in zip(received, mates, strict=True)],
            dtype,
            shape,
        )
        for s in range(len(mates[0]))
    )
    for other in others:
        both = zip(total.parts, other.parts, strict=True)
        added = [Ewise("ewise_add", left, right, op) for left, right in both]
        total = pieces.evaluated(added, dtype, shape)
    return [Assign(part) for part in total.parts]
