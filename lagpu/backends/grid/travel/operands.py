"""Operands travel to the pieces that need them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

from lagpu.backends.grid.dealing import Dealt, Layout, Partition
from lagpu.backends.grid.devices import collected, groups_of
from lagpu.backends.grid.handles import GridHandle
from lagpu.backends.grid.pieces import (
    Entries,
    Pieces,
    cut,
    each_once,
    entries_of,
    from_entries,
    joined,
)
from lagpu.backends.grid.travel.entries import by_position, fits, heard, nothing, places, told
from lagpu.backends.protocol import Backend
from lagpu.dtypes import INT64
from lagpu.host.memory import require
from lagpu.operations import Handle

__all__ = ["Need", "needed", "spread", "whole"]

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
        return groups_of(self.by, self.part)


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
    if as_vector and (numbered is None or len(x.shape) == 1):
        found = collected(pieces, x, need.by, need.part, numbered is not None)
        if found is not None:
            return found
    if len(x.shape) == 2:
        _require(pieces, x, need, what)
    if (as_vector or need.by.pieces == 1) and fits(x.shape):
        received = _told(pieces, x, need, numbered is None)
    else:
        received = _cut(pieces, x, need, dim, transposed)
    shape = x.shape[::-1] if transposed else x.shape

    def made(item: tuple[int, Backend, int]) -> Handle:
        k, place, part = item
        *at, values = received(k)
        if transposed:
            at.reverse()
        dtype, local = x.dtype, list(shape)
        if numbered is not None:
            values, dtype = at[numbered], INT64
        at[dim], local[dim] = need.by.position(at[dim]), need.by.count(part)
        return from_entries(place, (*at, values), dtype, tuple(local))

    items = [(k, place, need.part[p]) for k, p, place in pieces]
    return each_once(items, [(id(place), part) for _, place, part in items], made)


def _told(pieces: Pieces, x: GridHandle, need: Need, with_values: bool) -> Callable[[int], Entries]:
    """Send each local part to all pieces that need it, of which its owner is one.

    Return what gives the entries that a local piece has received, by global index.
    """
    own, groups, given = pieces.layout(x.shape), need.groups(), []
    shapes = [own.shape(p) for p in range(pieces.engine.size)]
    for k, p, place in pieces:
        *at, values = entries_of(place, x.parts[k], len(x.shape))
        numbers = by_position(shapes[p], tuple(at))
        given.append(told(numbers, values if with_values else values[:0], math.prod(shapes[p])))
    if need.by.pieces == 1:
        received = pieces.engine.gather(given)
    else:
        empty = nothing(x.dtype.numpy, 0)
        parts = [
            [message if part == need.part[p] else empty for part in need.part]
            for message, p in zip(given, pieces.engine.local, strict=True)
        ]
        received = pieces.engine.exchange(parts, groups)

    def entries(k: int) -> Entries:
        lists = []
        for s in groups[need.part[pieces.engine.local[k]]]:
            numbers, values = heard(received[k][s], math.prod(shapes[s]))
            lists.append((*own.index(s, *places(shapes[s], numbers)), values))
        return joined(lists)

    return entries


def _cut(
    pieces: Pieces, x: GridHandle, need: Need, dim: int, transposed: bool
) -> Callable[[int], Entries]:
    """Send each piece the entries of a matrix that it needs; see `_told`."""
    given = pieces.entries(x)
    if need.by.pieces == 1:
        received = pieces.engine.gather(given)
    else:
        along = len(x.shape) - 1 - dim % len(x.shape) if transposed else dim
        cuts = [cut(lists, need.by.owner(lists[:-1][along]), need.by.pieces) for lists in given]
        received = pieces.engine.exchange([[parts[q] for q in need.part] for parts in cuts])
    return lambda k: joined(received[k])


def _require(pieces: Pieces, A: GridHandle, need: Need, what: str) -> None:
    """Refuse a matrix of which the places of this process would need too much."""
    width = _COLLECTED + 2 * A.dtype.numpy.itemsize
    handles = len({(id(place), need.part[p]) for _, p, place in pieces})
    count = pieces.nvals(A) * handles * pieces.engine.beside // need.by.pieces
    remedy = "The grid collects this operand on every piece: use fewer of its rows at once."
    require(width * count, what, remedy)
