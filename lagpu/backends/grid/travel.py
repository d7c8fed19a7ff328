"""Entries, masks and operands sent between pieces through the host."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from lagpu.algebra.operators import Monoid
from lagpu.algebra.tables import binary
from lagpu.backends.grid.dealing import Dealt, Layout, Partition
from lagpu.backends.grid.devices import collected, groups_of, handed
from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.handles import GridHandle
from lagpu.backends.grid.pieces import (
    Entries,
    Pieces,
    cut,
    each_once,
    empty,
    entries_of,
    from_entries,
    joined,
)
from lagpu.backends.profile import Sent
from lagpu.backends.protocol import Backend
from lagpu.dtypes import BOOL, INT64, DType
from lagpu.host.memory import require
from lagpu.operations import Assign, Descriptor, Ewise, Handle, Operation, Statement

Array = np.ndarray[Any, Any]

#: How a set of positions travels; "shorter" decides for each message.
FORMS = ("shorter", "list", "bitmap")
_NARROW = 2**32  # positions that a number of 4 bytes can mean


def packed(vertices: Array, size: int, form: str = "shorter", used: int | None = None) -> Array:
    """Return a set of positions, to be sent.

    Numbers of a list and words of a bitmap are u32, or u64 if there are more than 2**32 positions.

    Parameters
    ----------
    vertices : array of int
        Distinct positions in a part.
    size : int
        The number of the part's positions: the bits of a bitmap.
    form : str
        One of `FORMS`. The shorter one is a list only if it is shorter than the bitmap, so the
        length of a message tells what it is.
    used : int, optional
        A bitmap has so many bits alone if no vertex is behind them.
    """
    number = _number(size)
    words = _words(size if used is None else used, number)
    if form == "list" or (form == "shorter" and len(vertices) < words):
        return np.sort(vertices).astype(number)
    bits = 8 * number.itemsize
    if len(vertices) and vertices.max() >= words * bits:
        words = _words(size, number)
    there = np.zeros(words * bits, bool)
    there[vertices] = True
    return np.packbits(there, bitorder="little").view(number)


def unpacked(message: Array, size: int, form: str = "shorter", used: int | None = None) -> Array:
    """Return the positions of a message as `packed` has made it, rising."""
    if form_of(message, size, form, used) == "list":
        return message.astype(np.int64)
    bits = np.unpackbits(message.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits)


def length(count: float, size: int) -> float:
    """Return the bytes of the shorter message of so many positions."""
    number = _number(size)
    return min(count, _words(size, number)) * number.itemsize


def summed(messages: Iterable[tuple[str, int]]) -> tuple[Sent, ...]:
    """Return the messages of a phase by form, from the (form, bytes) of each."""
    found: dict[str, tuple[int, int]] = {}
    for form, nbytes in messages:
        if nbytes:
            count, total = found.get(form, (0, 0))
            found[form] = count + 1, total + nbytes
    return tuple(Sent(form, *found[form]) for form in sorted(found))


def form_of(message: Array, size: int, form: str, used: int | None = None) -> str:
    """Return whether a message that `packed` has made is a ``"list"`` or a ``"bitmap"``."""
    if form != "shorter":
        return form
    words = _words(size if used is None else used, _number(size))
    return "bitmap" if size and len(message) >= words else "list"


def _number(size: int) -> np.dtype[Any]:
    """Return the type of a number in a list, and of a word."""
    return np.dtype(np.uint32 if size <= _NARROW else np.uint64)


def _words(size: int, number: np.dtype[Any]) -> int:
    return -(-size // (8 * number.itemsize))


# ------------------------------------------------------------------------------------------
# Entries of a part as a message: a set of positions, and their values, or the one value of all.


def fits(shape: tuple[int, ...]) -> bool:
    """Whether the places in a part of this shape, or a smaller one, can be numbered."""
    return math.prod(shape) < 2**63


def by_position(shape: tuple[int, ...], at: Arrays) -> Array:
    """Return the number of each place in a part, column after column."""
    *rows, last = at
    return last * shape[0] + rows[0] if rows else last


def places(shape: tuple[int, ...], numbers: Array) -> Arrays:
    """Return the place that each number means: the inverse of `by_position`."""
    if len(shape) == 1:
        return (numbers,)
    columns, rows = np.divmod(numbers, max(shape[0], 1))
    return rows, columns


def told(numbers: Array, values: Array, size: int) -> Arrays:
    """Return entries as a message of two arrays.

    Parameters
    ----------
    numbers : array of int
        Distinct places, of `size`, in any order.
    values : array
        The value of each, or no value at all. Values that are all the same bits travel as one.
    size : int
        The number of all places.
    """
    if len(values) > 1:
        if _are_one(values):
            values = values[:1]
        elif (np.diff(numbers) < 0).any():
            order = np.argsort(numbers)
            numbers, values = numbers[order], values[order]
    return packed(numbers, size), values


def heard(message: Arrays, size: int) -> tuple[Array, Array]:
    """Return (numbers rising, values) of a message of `told`; no values if none were told."""
    numbers, values = unpacked(message[0], size), message[1]
    return numbers, np.repeat(values, len(numbers)) if len(values) == 1 else values


def nothing(dtype: np.dtype[Any], size: int) -> Arrays:
    """Return the message of no entries, to who needs none."""
    return told(np.zeros(0, np.int64), np.zeros(0, dtype), size)


def _are_one(values: Array) -> bool:
    bits = values.view(f"u{values.itemsize}")
    return bool((bits == bits[0]).all())


# ------------------------------------------------------------------------------------------
# Operands travel to the pieces that need them.


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


# ------------------------------------------------------------------------------------------
# Masks travel to the pieces that find partial results, which find and send no others then.


def of_owners(
    pieces: Pieces,
    desc: Descriptor,
    shape: tuple[int, ...],
    need: Need,
    expected: Sequence[float],
    width: int,
) -> list[Descriptor]:
    """Return, for each local piece, the mask of its partial result, as how that is written.

    Between devices all masks travel, where they can be put together there. By way of the host an
    owner tells the places of its mask, or that it does not: then none of its results is left out.
    So each owner decides by itself, and nobody has to agree.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    desc : Descriptor
        How the whole result is written.
    shape : tuple of int
        The shape of the whole result.
    need : Need
        Which part of its last dimension each piece finds.
    expected : sequence of float
        About how many entries the partial result of each local piece has without a mask.
    width : int
        Bytes of a value of it, as it travels.
    """
    if desc.mask is None:
        return [Descriptor() for _ in pieces]
    parts = collected(pieces, cast(GridHandle, desc.mask), need.by, need.part)
    if parts is not None:
        return [Descriptor(one, desc.structure, desc.complement, None, True) for one in parts]
    own, groups, size = pieces.layout(shape), need.groups(), pieces.engine.size
    shapes = [own.shape(p) for p in range(size)]
    silent = packed(np.zeros(0, np.int64), 0), np.zeros(0, bool)
    given: list[list[Arrays]] = []
    for k, p, place in pieces:
        mates, message = groups[need.part[p]], silent
        part, here = shapes[p], math.prod(shapes[p])
        mask, numbers = desc.mask.parts[k], None
        if not desc.structure:
            numbers = _places(place, mask, part, not_zero=True)
        count = place.nvals(mask) if numbers is None else len(numbers)
        left_out = count if desc.complement else here - count
        if pays(count, left_out, here, expected[k] / len(mates), width):
            if numbers is None:
                numbers = _places(place, mask, part)
            message = packed(numbers, here), np.ones(1, bool)
        given.append([message if d in mates else silent for d in range(size)])
    received = pieces.engine.exchange(given, groups)

    def received_by(item: tuple[int, Backend, int]) -> Handle | None:
        k, place, part = item
        heard = {s: received[k][s] for s in groups[part]}
        if not any(len(says) for _, says in heard.values()):
            return None
        lists = []
        for s, (where, says) in heard.items():
            here = math.prod(shapes[s])
            if len(says):
                numbers = unpacked(where, here)
            else:  # all of its results are kept
                numbers = np.arange(0 if desc.complement else here)
            *rows, last = own.index(s, *places(shapes[s], numbers))
            lists.append((*rows, need.by.position(last), np.ones(len(numbers), bool)))
        entries = tuple(map(np.concatenate, zip(*lists, strict=True)))
        return from_entries(place, entries, BOOL, (*shape[:-1], need.by.count(part)))

    items = [(k, place, need.part[p]) for k, p, place in pieces]
    masks = each_once(items, [(id(place), part) for _, place, part in items], received_by)
    return [
        Descriptor() if one is None else Descriptor(one, True, desc.complement, None, True)
        for one in masks
    ]


def pays(count: int, left_out: int, size: int, expected: float, width: int) -> bool:
    """Whether the places of a mask have fewer bytes than the results that it leaves out.

    Parameters
    ----------
    count : int
        The places of the mask.
    left_out : int
        The places of results that it leaves out, of `size`.
    size : int
        All places of an owner.
    expected : float
        About how many results a piece would send to the owner without the mask.
    width : int
        Bytes of the value of one.
    """
    if not left_out:
        return False
    found = min(expected, size)
    kept = found * (size - left_out) / size
    saved = length(found, size) - length(kept, size) + width * (found - kept)
    return length(count, size) + 1 < saved


def _places(place: Backend, x: Handle, shape: tuple[int, ...], not_zero: bool = False) -> Array:
    """Return where a part has an entry, or one that is not zero."""
    *at, values = entries_of(place, x, len(shape))
    numbers = by_position(shape, tuple(at))
    return numbers[values != 0] if not_zero else numbers


# ------------------------------------------------------------------------------------------
# Partial results travel to their owners, who add them up.


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
