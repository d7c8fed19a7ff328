"""Operands, masks and partial sums sent between pieces: through the host, or between devices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import Monoid
from lagpu.algebra.tables import binary
from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.storage import bitmap
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, MatrixHandle
from lagpu.backends.gpu.storage.stores import VectorStore, bytes_of, nwords
from lagpu.backends.grid.comm import Arrays, Messages, Received, alone
from lagpu.backends.grid.partition import BITS, GridHandle, Need, Partition, needed
from lagpu.backends.grid.pieces import (
    Pieces,
    computed,
    cut,
    empty,
    entries_of,
    from_entries,
    joined,
    may_gather,
    on_one_device,
)
from lagpu.backends.protocol import Backend
from lagpu.dtypes import BOOL, INT64, DType
from lagpu.host.memory import require
from lagpu.operations import Assign, Descriptor, Ewise, Handle, Operation, Statement

Array = np.ndarray[Any, Any]
DeviceArray = Any

#: How a set of positions is sent; "shorter" decides for each message.
FORMS = ("shorter", "list", "bitmap")
_NARROW = 2**32  # positions that a number of 4 bytes can mean
_NUMBERED = 2**63  # positions, at least, that are sent by row and column instead of by a number
_COLLECTED = 40  # bytes of an entry without its values, as it is received, sorted and stored


# -------------- Messages on the host: a set of positions, and their values, or the one value of all
def packed(vertices: Array, size: int, form: str = "shorter") -> Array:
    """Return a set of positions as a message: a list of u32 or u64, or bytes of a bitmap."""
    end = int(vertices.max()) + 1 if len(vertices) else 0
    if form == "list" or (form == "shorter" and length(len(vertices), size) < -(-end // 8)):
        return np.sort(vertices).astype(_number(size))
    there = np.zeros(end, bool)
    there[vertices] = True
    return np.packbits(there, bitorder="little")


def unpacked(message: Array) -> Array:
    """Return the positions of a message of `packed`, rising."""
    if message.dtype != np.uint8:
        return message.astype(np.int64)
    return np.flatnonzero(np.unpackbits(message, bitorder="little"))


def length(count: float, size: int) -> float:
    """Return the most bytes of the shorter message of so many positions."""
    return min(count * _number(size).itemsize, -(-size // 8))


def exchanged(
    pieces: Pieces, given: Messages, need: Need | None, on_devices: bool = False
) -> Received:
    """Exchange messages, among pieces with the same `need` alone; a trace counts them by form."""
    pieces.note(given, np.uint32 if on_devices else np.uint8)
    return pieces.engine.exchange(given, on_devices, None if need is None else need.groups)


def _number(size: int) -> np.dtype[Any]:
    return np.dtype(np.uint32 if size <= _NARROW else np.uint64)


def to_numbers(shape: tuple[int, ...], at: Arrays) -> Array:
    """Return the number of each position in a part, column after column."""
    *rows, last = at
    return last * shape[0] + rows[0] if rows else last


def from_numbers(shape: tuple[int, ...], numbers: Array) -> Arrays:
    """Return the position of each number: the inverse of `to_numbers`."""
    if len(shape) == 1:
        return (numbers,)
    columns, rows = np.divmod(numbers, max(shape[0], 1))
    return rows, columns


def to_message(shape: tuple[int, ...], at: Arrays, values: Array, form: str = "shorter") -> Arrays:
    """Return entries of a part of this shape as a message: equal values are sent once."""
    size = math.prod(shape)
    if size >= _NUMBERED:
        return (*at, values)
    numbers = to_numbers(shape, at)
    if len(values) > 1:
        bits = values.view(f"u{values.itemsize}")
        if (bits == bits[0]).all():
            values = values[:1]
        elif (np.diff(numbers) < 0).any():
            order = np.argsort(numbers)
            numbers, values = numbers[order], values[order]
    return packed(numbers, size, form), values


def from_message(shape: tuple[int, ...], message: Arrays) -> Arrays:
    """Return the entries of a message, rising by columns; no values if it has none."""
    if math.prod(shape) >= _NUMBERED:
        return message
    numbers, values = unpacked(message[0]), message[1]
    if len(values) == 1:
        values = np.repeat(values, len(numbers))
    return (*from_numbers(shape, numbers), values)


# --------------------------------------------------- Operands are sent to the pieces that need them
def _at_homes(pieces: Pieces, need: Need, make: Callable[[int, Backend, int], Handle]) -> list[Any]:
    """Return ``make(k, place, part)`` for each local piece, once for each (place, part)."""
    keys, made = [(id(place), need.part[p]) for _, p, place in pieces], {}
    for (k, _, place), key in zip(pieces, keys, strict=True):
        if key not in made:
            made[key] = make(k, place, key[1])
    return [made[key] for key in keys]


def whole(pieces: Pieces, x: GridHandle, what: str) -> list[Handle]:
    """Return, for each local piece, a handle of all of a vector or matrix; never written."""
    return spread(pieces, x, pieces.all_need(x.shape[-1]), what)


def spread(
    pieces: Pieces, x: GridHandle, need: Need, what: str, dim: int = -1,
    transposed: bool = False, numbered: int | None = None, form: str = "shorter",
) -> list[Handle]:  # fmt: skip
    """Return, for each local piece, a handle of all that it needs of a vector or matrix.

    The handle is never written. `need` is of dimension `dim` of `x`, or of its transpose if
    `transposed`: indices there are positions in the part that the piece needs, those in the other
    dimension are global. The value of an entry is its index in dimension `numbered`, if given.
    `what` is the operation, for `OutOfMemory`: if the host has no room for a matrix. `form` is that
    of positions, one of `FORMS`.
    """
    if transposed and may_gather(pieces, x):
        x, transposed = pieces.transpose(x), False
    own = pieces.layout(x.shape)
    as_vector = not transposed and own.dims[dim] == pieces.partition(x.shape[dim])
    is_whole = pieces.engine.size == 1 and not transposed and own.dims[dim].whole
    if numbered is None and (is_whole or (as_vector and need == needed(own, dim))):
        return x.parts
    if as_vector and (numbered is None or len(x.shape) == 1):
        found = collected(pieces, x, need, numbered is not None)
        if found is not None:
            return found
        if need.by.whole and numbered is None and len(x.shape) == 2 and may_gather(pieces, x):
            return _at_homes(pieces, need, lambda k, at, part: on_one_device(pieces, x, at, False))
    if len(x.shape) == 2:
        handles = len({(id(place), need.part[p]) for _, p, place in pieces})
        count = pieces.nvals(x) * handles * pieces.engine.beside // need.by.pieces
        remedy = "The grid collects this operand on every piece: use fewer of its rows at once."
        require((_COLLECTED + 2 * x.dtype.numpy.itemsize) * count, what, remedy)
    axis = dim % len(x.shape)
    along = len(x.shape) - 1 - axis if transposed else axis
    is_cut = not as_vector and need.by.pieces > 1
    given: list[dict[int, Arrays]] = []
    for k, p, place in pieces:
        *where, values = entries_of(place, x.parts[k], len(x.shape))
        lists = [(*where, values)]
        if is_cut:  # the parts that are needed are others than those that pieces have
            lists = cut(lists[0], need.by.owner(own.index(p, *where)[along]), need.by.pieces)
        messages = [
            to_message(own.shape(p), tuple(at), of if numbered is None else of[:0], form)
            for *at, of in lists
        ]
        if is_cut:
            given.append({q: messages[part] for q, part in enumerate(need.part)})
        else:
            given.append(dict.fromkeys(need.group(p), messages[0]))
    received = exchanged(pieces, given, None if is_cut else need)

    def made(k: int, place: Backend, part: int) -> Handle:
        given = received[k].items()
        lists = [own.indexed(s, from_message(own.shape(s), message)) for s, message in given]
        *at, values = joined(lists)
        if transposed:
            at.reverse()
        dtype, local = x.dtype, list(x.shape[::-1] if transposed else x.shape)
        if numbered is not None:
            values, dtype = at[numbered], INT64
        at[dim], local[dim] = need.by.position(at[dim]), need.by.count(part)
        return from_entries(place, (*at, values), dtype, tuple(local))

    return _at_homes(pieces, need, made)


# ------------- Masks are sent to the pieces that compute partial results, which then compute less
def masks_for(
    pieces: Pieces, s: Statement, need: Need, expected: Sequence[float], width: int, share: bool
) -> list[Descriptor]:
    """Return, for each local piece, how its partial result is written under the result's mask.

    Without `share` no mask is sent. Between devices all masks are sent, if they can be put together
    there. Through the host each owner decides whether the positions of its mask are worth sending;
    if not, pieces compute all of its results. See `folded` for the arguments.
    """
    desc, shape = s.desc, s.out.shape
    if desc.mask is None or not share:
        return [Descriptor() for _ in pieces]
    parts = collected(pieces, desc.mask, need)
    if parts is not None:
        return [Descriptor(one, desc.structure, desc.complement, None, True) for one in parts]
    own, given = pieces.layout(shape), []
    for k, p, place in pieces:
        mask, here = desc.mask.parts[k], math.prod(own.shape(p))
        at: Arrays | None = None
        if not desc.structure:
            *where, values = entries_of(place, mask, len(shape))
            at = tuple(x[values != 0] for x in where)
        count = place.nvals(mask) if at is None else len(at[0])
        left_out = count if desc.complement else here - count
        messages: dict[int, Arrays] = {}
        if pays(count, left_out, here, expected[k] / len(need.group(p)), width):
            at = entries_of(place, mask, len(shape))[:-1] if at is None else at
            messages = dict.fromkeys(need.group(p), to_message(own.shape(p), at, np.empty(0, bool)))
        given.append(messages)
    received = exchanged(pieces, given, need)

    def made(k: int, place: Backend, part: int) -> Descriptor:
        if not received[k]:
            return Descriptor()
        lists = []
        for q in need.groups[part]:
            if q in received[k]:
                at = from_message(own.shape(q), received[k][q])[:-1]
            else:  # all of its results are kept
                every = np.arange(0 if desc.complement else math.prod(own.shape(q)))
                at = from_numbers(own.shape(q), every)
            *rows, last = own.index(q, *at)
            lists.append((*rows, need.by.position(last), np.ones(len(last), bool)))
        mask = from_entries(place, joined(lists), BOOL, (*shape[:-1], need.by.count(part)))
        return Descriptor(mask, True, desc.complement, None, True)

    return _at_homes(pieces, need, made)


def pays(count: int, left_out: int, size: int, expected: float, width: int) -> bool:
    """Whether the positions of a mask have fewer bytes than the results that it leaves out.

    Of `size` positions of an owner the mask has `count`, and leaves out `left_out` results. Without
    it a piece would send about `expected` results, with a value of `width` bytes each.
    """
    if not left_out:
        return False
    found = min(expected, size)
    kept = found * (size - left_out) / size
    saved = length(found, size) - length(kept, size) + width * (found - kept)
    return length(count, size) + 1 < saved


# ---------------------------------------- Partial results are sent to their owners, who add them up
def folded(
    pieces: Pieces, local: Sequence[Operation], need: Need, monoid: Monoid, s: Statement,
    expected: Sequence[float], width: int, form: str = "shorter", share: bool = True,
) -> list[Operation]:  # fmt: skip
    """Return, for each local piece, the assignment of its part of the sum of partial results.

    The `local` operation of a piece computes the part of the result's last dimension that the piece
    needs; the owners add what all pieces with the same need have computed, in the order of the
    pieces. Of several values `any` takes the first. Without a mask the result of each local piece
    has about `expected` entries, and sends `width` bytes for each: 0 if all values are the same.
    """
    descs = masks_for(pieces, s, need, expected, width, share)
    pieces.mark("share", only_if_sent=True)
    found, shape, dtype = [], s.out.shape, s.dtype
    for k, p, place in pieces:
        found.append(empty(place, dtype, (*shape[:-1], need.by.count(need.part[p]))))
        pieces.execute(k, Statement(found[-1], descs[k], local[k], dtype))
    pieces.mark("expansion")
    terms = terms_on_devices(pieces, found, shape, need, dtype)
    if terms is None:
        terms = _terms_on_host(pieces, found, shape, need, dtype, form)
    pieces.mark("fold")
    op = binary.first if monoid.op.name == "any" else monoid.op
    own = pieces.layout(shape)
    sums: list[Operation] = []
    for k, p, place in pieces:
        total = terms[k][0] if terms[k] else empty(place, dtype, own.shape(p))
        for term in terms[k][1:]:
            total = computed(place, Ewise("ewise_add", total, term, op), dtype, own.shape(p))
        sums.append(Assign(total))
    return sums


def _terms_on_host(
    pieces: Pieces, found: Sequence[Handle],
    shape: tuple[int, ...], need: Need, dtype: DType, form: str,
) -> list[list[Handle]]:  # fmt: skip
    """Return, for each local piece, what each of its group has found of its entries, if any."""
    own, given = pieces.layout(shape), []
    for k, p, place in pieces:
        *rows, where, values = entries_of(place, found[k], len(shape))
        index = need.by.index(need.part[p], where)
        lists = cut((*rows, index, values), own.owner(*rows, index), pieces.engine.size)
        messages = {}
        for d in need.group(p):
            *at, mine = lists[d]
            if len(mine):
                messages[d] = to_message(own.shape(d), own.position(*at), mine, form)
        given.append(messages)
    received = exchanged(pieces, given, need)
    return [
        [
            from_entries(place, from_message(own.shape(p), message), dtype, own.shape(p))
            for message in received[k].values()
        ]
        for k, p, place in pieces
    ]


# ---- The same between devices: vectors and bitmap matrices, whose owners take turns block by block
class Part(NamedTuple):
    """A part as a message on a device: presence bits or a list, whichever is shorter."""

    is_list: bool
    where: DeviceArray  # indices, INT64, or presence words
    values: DeviceArray | None  # packed for a list, else one for each index; None: all are `number`
    number: Any  # the one value, where there is one
    nvals: int

    @property
    def arrays(self) -> Arrays:
        return (self.where,) if self.values is None else (self.where, self.values)


def _shared_block(own: Partition, need: Need) -> int:
    """Return the block that the owners of each needed part have there in turn; 0 without one."""
    by, part = need.by, list(need.part)
    each = len(part) // by.pieces
    if own.new != by.new:
        return 0
    consecutive = by.block == own.block * each and part == [p // each for p in range(len(part))]
    in_turn = by.block == own.block and part == [p % by.pieces for p in range(len(part))]
    return own.block if by.pieces == 1 or consecutive or in_turn else 0


def _part_of(v: VectorStore, block: int) -> Part:
    """Return the shorter form of a part, which is kept for the next time."""
    each = 0 if v.values is None else v.dtype.numpy.itemsize
    if block % BITS or v.nvals * (8 + each) < 4 * nwords(v.size) + each * v.size:
        indices, values = v.listed()
        return Part(True, indices, values, v.number, v.nvals)
    v.to_bitmap()
    return Part(False, v.words, v.values, v.number, v.nvals)


def _headers(pieces: Pieces, own: list[Part], is_stored: bool, dtype: DType) -> list[Part] | None:
    """Return every piece's part without the arrays of other processes; None if one has none."""
    if pieces.engine.alone:
        return own if is_stored else None
    given: list[Any] = [(m.is_list, m.nvals, m.number.item()) for m in own]
    found = pieces.engine.gather_objects(given if is_stored else [None] * len(pieces.places))
    if None in found:
        return None
    return [Part(is_list, None, None, dtype.numpy.type(of), nvals) for is_list, nvals, of in found]


def collected(
    pieces: Pieces, x: GridHandle, need: Need, numbered: bool = False
) -> list[Handle] | None:
    """Return, for each local piece, a handle of its part, put together on its device; or None.

    None where the host has to do it: without exchange between devices, for owners that do not have
    blocks in turn, for indices in another order as values (`numbered`), and matrices by columns.
    """
    block = _shared_block(pieces.partition(x.shape[-1]), need)
    if not block or not pieces.engine.between_devices or (numbered and need.by.new is not None):
        return None
    parts = [v for v in map(_stored, x.parts) if v is not None]
    found: list[Handle] = []
    if pieces.engine.alone and len(x.shape) == 1 and not numbered:
        filled = [v for v in parts if v.size]
        if all(v.is_number for v in filled) and len({v.number.tobytes() for v in filled}) == 1:
            for v, (_, p, _place) in zip(parts, pieces, strict=True):
                made = VectorStore(v.device, v.counters, v.dtype, need.by.count(need.part[p]))
                made.set_full(None, filled[0].number)
                found.append(made)
            return found  # nothing is sent
    each = 1 if len(x.shape) == 1 else bitmap.stride(x.shape[0])
    own = [alone(v.device, _part_of, v, block * each) for v in parts]
    headers = _headers(pieces, own, len(parts) == len(x.parts), x.dtype)
    if headers is None:
        return None
    sent = zip(pieces.engine.local, own, strict=True)
    given = [dict.fromkeys(need.group(p), message.arrays) for p, message in sent]
    received = exchanged(pieces, given, need, on_devices=True)
    for k, p, _ in pieces:
        device, count = parts[k].device, need.by.count(need.part[p])
        messages = [
            headers[s]._replace(where=where, values=values[0] if values else None)
            for s, (where, *values) in received[k].items()
        ]
        with device.lock, device.entered():
            if len(x.shape) == 2:
                bitmap.require(device, (x.shape[0], count), x.dtype, "mxm")
            else:
                device.require(bytes_of(count, x.dtype), "mxv")
            v = VectorStore(device, parts[k].counters, x.dtype, count * each)
            _put_together(v, messages, block * each)
            if numbered:
                v = _numbered(v, need.by, need.part[p])
            is_vector = len(x.shape) == 1
            shape = x.shape[0], count
            found.append(v if is_vector else MatrixHandle(BitmapMatrix(device, x.dtype, shape, v)))
    return found


def _stored(handle: Any) -> VectorStore | None:
    """Return the entries of a vector or a bitmap matrix, position by position."""
    if isinstance(handle, VectorStore):
        return handle
    return handle.store.entries if isinstance(handle.store, BitmapMatrix) else None


def _put_together(v: VectorStore, messages: Sequence[Part], block: int) -> None:
    """Become the vector whose blocks the senders of messages have in turn."""
    xp, turns = v.device.xp, len(messages)
    rounds = -(-v.size // (block * turns))
    numbers = [m.number for m in messages if m.nvals]
    iso = all(m.values is None for m in messages if m.nvals) and len(set(numbers)) <= 1
    number = numbers[0] if numbers else v.dtype.zero
    length = rounds * turns * block
    words = xp.zeros(nwords(length), np.uint32)
    values = None if iso else xp.empty(length, v.dtype.numpy)
    for turn, m in enumerate(messages):
        if not m.nvals:
            continue
        if m.is_list:
            at = (m.where // block * turns + turn) * block + m.where % block
            packed = m.values
            if values is not None and packed is None:
                packed = xp.full(m.nvals, m.number, v.dtype.numpy)
            scatter = kernel("elementwise/bitmap.cu", "scatter_entries", U=v.dtype.ctype)
            v.device.launch(scatter, m.nvals, m.nvals, at, packed, words, values)
            continue
        _put_blocks(words.reshape(rounds, turns, block // BITS)[:, turn], m.where)
        if values is not None:
            target = values.reshape(rounds, turns, block)[:, turn]
            if m.values is None:
                target[:] = m.number
            else:
                _put_blocks(target, m.values)
    kept = None if values is None else values[: v.size]
    count = sum(m.nvals for m in messages)
    if count == v.size:  # for which products have kernels
        v.set_full(kept, number if iso else None)
    else:
        v.set_bitmap(words[: nwords(v.size)], kept, number if iso else None, count)


def _put_blocks(rows: DeviceArray, blocks: DeviceArray) -> None:
    """Put blocks into rows, one each; the last one may be shorter."""
    width = rows.shape[1]
    whole, rest = divmod(len(blocks), width)
    rows[:whole] = blocks[: whole * width].reshape(whole, width)
    if rest:
        rows[whole, :rest] = blocks[whole * width :]


def _numbered(v: VectorStore, by: Partition, part: int) -> VectorStore:
    """Return a vector of the same entries, whose values are the indices of a part's positions."""
    made = VectorStore(v.device, v.counters, INT64, v.size)
    if v.nvals:
        at, _ = v.listed()
        v.device.require(2 * at.nbytes, "mxv")
        made.set_sparse(at, by.index(part, at))
    return made


def terms_on_devices(
    pieces: Pieces, found: Sequence[Handle], shape: tuple[int, ...], need: Need, dtype: DType
) -> list[list[Handle]] | None:
    """Return what `_terms_on_host` does, by exchange between devices; None where it cannot be."""
    own = pieces.partition(shape[-1])
    block = _shared_block(own, need)
    if len(shape) > 1 or not block or not pieces.engine.between_devices:
        return None
    messages, given = [], []
    for k, p, _ in pieces:
        with found[k].device.lock, found[k].device.entered():
            message, group = _part_of(found[k], block), need.group(p)
            cuts = _cuts_for(found[k].device, message, block, [own.count(d) for d in group])
            messages.append(message)
            given.append(dict(zip(group, cuts, strict=True)))
    headers: Any = _headers(pieces, messages, True, dtype)
    received = exchanged(pieces, given, need, on_devices=True)
    terms: list[list[Handle]] = []
    for k, p, _ in pieces:
        device, counters, count = found[k].device, found[k].counters, own.count(p)
        mine: list[Handle] = []
        with device.lock, device.entered():
            device.require(len(received[k]) * bytes_of(count, dtype), "mxv")
            for s, (where, *values) in received[k].items():
                if not headers[s].nvals or (headers[s].is_list and not len(where)):
                    continue
                term = VectorStore(device, counters, dtype, count)
                one = None if values else headers[s].number
                if headers[s].is_list:
                    term.set_sparse(where, *values or (None, one))
                else:
                    term.set_bitmap(where, values[0] if values else None, one, None)
                mine.append(term)
        terms.append(mine)
    return terms


def _cuts_for(device: Device, message: Part, block: int, counts: Sequence[int]) -> list[Arrays]:
    """Return the arrays for each owner of so many indices, which have blocks in turn."""
    if message.is_list:
        turns = len(counts)
        turn, round_ = message.where // block % turns, message.where // (block * turns)
        arrays = (round_ * block + message.where % block, *message.arrays[1:])
        return [tuple(x[mine] for x in arrays) for mine in (turn == t for t in range(turns))]
    words = _in_turn(device.xp, message.where, block // BITS, [nwords(count) for count in counts])
    if message.values is None:
        return [(of,) for of in words]
    return list(zip(words, _in_turn(device.xp, message.values, block, counts), strict=True))


def _in_turn(xp: Any, array: DeviceArray, width: int, counts: Sequence[int]) -> list[DeviceArray]:
    """Return, for each owner, the blocks of an array that it has in turn, one after the other."""
    rounds = -(-len(array) // (width * len(counts)))
    padded = xp.zeros(rounds * len(counts) * width, array.dtype)
    padded[: len(array)] = array
    rows = padded.reshape(rounds, len(counts), width)
    return [xp.ascontiguousarray(rows[:, t]).reshape(-1)[:count] for t, count in enumerate(counts)]
