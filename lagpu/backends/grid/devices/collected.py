"""What a piece needs of a vector or a bitmap matrix, put together on its device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, require, stride
from lagpu.backends.gpu.storage.handle import MatrixHandle
from lagpu.backends.gpu.storage.vector import VectorStore, bytes_of, nwords
from lagpu.backends.grid.dealing import Dealt, Partition, Relabelled
from lagpu.backends.grid.handles import GridHandle
from lagpu.backends.grid.pieces import Pieces
from lagpu.operations import Handle

__all__ = ["collected"]

Array = Any
BITS = 32  # of a word


class Told(NamedTuple):
    """What a piece tells of its part: presence bits or a list of indices, whichever is shorter.

    Attributes
    ----------
    is_list : bool
        Whether `where` has indices, INT64, with packed values; else presence words, with a value
        for each index.
    where : array
        As above.
    values : array or None
        None if all are `number`.
    number : NumPy scalar
        The one value, where there is one.
    nvals : int
        How many entries there are.
    """

    is_list: bool
    where: Array
    values: Array | None
    number: Any
    nvals: int

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What travels."""
        return (self.where,) if self.values is None else (self.where, self.values)


def collected(
    pieces: Pieces, x: GridHandle, by: Partition, part: Sequence[int]
) -> list[Handle] | None:
    """Return, for each local piece, a handle of the part that it needs; or None.

    None where it has to go by way of the host: devices that do not hand over arrays, indices that
    are not dealt by turns, matrices by columns.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    x : GridHandle
        A vector, or a matrix of few rows, whose columns are dealt as the entries of a vector.
    by : Partition
        The parts of the last dimension.
    part : sequence of int
        The part that each piece needs.
    """
    size = pieces.engine.size
    own, together = pieces.partition(x.shape[-1]), size // by.pieces
    run = _run_of_turns(own, by, together)
    if not run or not pieces.engine.between_devices:
        return None
    if list(part) != [p // together for p in range(size)]:
        return None
    stored = [v for v in map(_stored, x.parts) if v is not None]
    devices = [v.device for v in stored]
    each = 1 if len(x.shape) == 1 else stride(x.shape[0])
    run *= each
    own_told = []
    for device, v in zip(devices, stored, strict=True):
        with device.alone():
            own_told.append(_told(v, run))
    told = _heads(pieces, own_told, len(stored) == len(x.parts), x)
    if told is None:
        return None
    groups = [range(q * together, (q + 1) * together) for q in range(by.pieces)]
    received = pieces.engine.share([message.arrays for message in own_told], groups)
    found: list[Handle] = []
    for k, p, _ in pieces:
        device, count = devices[k], by.count(part[p])
        messages = [
            told[s]._replace(where=where, values=values[0] if values else None)
            for s, (where, *values) in zip(groups[part[p]], received[k], strict=True)
        ]
        with device.alone():
            if len(x.shape) == 2:
                require(device, (x.shape[0], count), x.dtype, "mxm")
            else:
                device.require(bytes_of(count, x.dtype), "mxv")
            v = VectorStore(device, stored[k].counters, x.dtype, count * each)
            _put_together(v, messages, run)
            found.append(_handle(device, v, x, count))
    return found


def _heads(
    pieces: Pieces, own_told: list[Told], is_stored: bool, x: GridHandle
) -> list[Told] | None:
    """Return what every piece tells, without the arrays of other processes.

    None if some piece has no such part, which all processes learn alike.
    """
    if pieces.engine.alone:
        return own_told if is_stored else None
    given = [
        (np.array([m.is_list, m.nvals, is_stored], np.int64), np.array([m.number], x.dtype.numpy))
        for m in own_told
    ]
    absent = (np.zeros(3, np.int64), np.zeros(1, x.dtype.numpy))
    given += [absent] * (len(pieces.engine.local) - len(given))
    found = pieces.engine.gather(given)[0]
    if not all(head[2] for head, _ in found):
        return None
    return [Told(bool(head[0]), None, None, number[0], int(head[1])) for head, number in found]


def _run_of_turns(own: Partition, by: Partition, together: int) -> int:
    """Return the indices that the pieces with a part have by turns in its order; 0 if they do not.

    Parameters
    ----------
    own : Partition
        Whose entries they are.
    by : Partition
        The parts, each of which so many pieces have together.
    """
    if isinstance(own, Relabelled) and isinstance(by, Relabelled) and own.new == by.new:
        own, by = own.by, by.by  # both deal the same new numbers
    if not isinstance(own, Dealt) or not isinstance(by, Dealt):
        return 0
    return own.run if by.whole or by.run == own.run * together else 0


def _stored(handle: Any) -> VectorStore | None:
    """Return the entries of a vector or a bitmap matrix, position by position."""
    if isinstance(handle, VectorStore):
        return handle
    store = handle.store
    return store.entries if isinstance(store, BitmapMatrix) else None


def _handle(device: Device, v: VectorStore, x: GridHandle, count: int) -> Handle:
    if len(x.shape) == 1:
        return v
    return MatrixHandle(BitmapMatrix(device, x.dtype, (x.shape[0], count), v))


def _told(v: VectorStore, run: int) -> Told:
    """Return the shorter form of a part, which is kept: the next one asks for it again."""
    each = 0 if v.values is None else v.dtype.numpy.itemsize
    if run % BITS or v.nvals * (8 + each) < 4 * nwords(v.size) + each * v.size:
        indices, values = v.listed()
        return Told(True, indices, values, v.number, v.nvals)
    v.to_bitmap()
    return Told(False, v.words, v.values, v.number, v.nvals)


def _put_together(v: VectorStore, messages: Sequence[Told], run: int) -> None:
    """Become the vector whose runs the senders of messages have by turns."""
    xp, turns = v.device.xp, len(messages)
    rounds = -(-v.size // (run * turns))
    numbers = [m.number for m in messages if m.nvals]
    iso = all(m.values is None for m in messages if m.nvals) and len(set(numbers)) <= 1
    number = numbers[0] if numbers else v.dtype.zero
    length = rounds * turns * run
    words = xp.zeros(nwords(length), np.uint32)
    values = None if iso else xp.empty(length, v.dtype.numpy)
    for turn, m in enumerate(messages):
        if not m.nvals:
            continue
        if m.is_list:
            at = (m.where // run * turns + turn) * run + m.where % run
            packed = m.values
            if values is not None and packed is None:
                packed = xp.full(m.nvals, m.number, v.dtype.numpy)
            scatter = kernel("elementwise/bitmap.cu", "scatter_entries", U=v.dtype.ctype)
            v.device.launch(scatter, m.nvals, m.nvals, at, packed, words, values)
            continue
        _deal(words.reshape(rounds, turns, run // BITS)[:, turn], m.where)
        if values is not None:
            target = values.reshape(rounds, turns, run)[:, turn]
            if m.values is None:
                target[:] = m.number
            else:
                _deal(target, m.values)
    count = sum(m.nvals for m in messages)
    kept = None if values is None else values[: v.size]
    v.set_bitmap(words[: nwords(v.size)], kept, number if iso else None, count)


def _deal(rows: Array, run_after_run: Array) -> None:
    """Put runs into rows, one each; the last one may be shorter."""
    width = rows.shape[1]
    whole, rest = divmod(len(run_after_run), width)
    rows[:whole] = run_after_run[: whole * width].reshape(whole, width)
    if rest:
        rows[whole, :rest] = run_after_run[whole * width :]
