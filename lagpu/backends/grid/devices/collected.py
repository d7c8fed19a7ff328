"""What a piece needs of a vector or a bitmap matrix, put together on its device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, require, stride
from lagpu.backends.gpu.storage.handle import MatrixHandle
from lagpu.backends.gpu.storage.vector import VectorStore, bytes_of, nwords
from lagpu.backends.grid.dealing import Dealt, Partition
from lagpu.backends.grid.devices.told import BITS, Told, groups_of, heads, run_of_turns, told_by
from lagpu.backends.grid.engine import to_each
from lagpu.backends.grid.handles import GridHandle
from lagpu.backends.grid.pieces import Pieces
from lagpu.dtypes import INT64
from lagpu.operations import Handle

__all__ = ["collected"]

Array = Any


def collected(
    pieces: Pieces, x: GridHandle, by: Partition, part: Sequence[int], numbered: bool = False
) -> list[Handle] | None:
    """Return, for each local piece, a handle of the part that it needs; or None.

    None where it has to go by way of the host: devices that do not hand over arrays, indices that
    are not dealt by turns, or not by their own numbers where these are the values, and matrices by
    columns.

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
    numbered : bool
        Whether the value of each entry of a vector is its index.
    """
    if numbered and not isinstance(by, Dealt):
        return None
    run = run_of_turns(pieces.partition(x.shape[-1]), by, part)
    if not run or not pieces.engine.between_devices:
        return None
    parts = [v for v in map(_stored, x.parts) if v is not None]
    devices = [v.device for v in parts]
    each = 1 if len(x.shape) == 1 else stride(x.shape[0])
    run *= each
    own_told = []
    for device, v in zip(devices, parts, strict=True):
        with device.alone():
            own_told.append(told_by(v, run))
    told = heads(pieces, own_told, len(parts) == len(x.parts), x.dtype)
    if told is None:
        return None
    groups = groups_of(by, part)
    given = to_each([message.arrays for message in own_told], pieces.engine.local, groups)
    received = pieces.engine.hand(given, groups)
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
            v = VectorStore(device, parts[k].counters, x.dtype, count * each)
            _put_together(v, messages, run)
            if numbered:
                v = _numbered(v, by, part[p])
            found.append(_handle(device, v, x, count))
    return found


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


def _numbered(v: VectorStore, by: Partition, part: int) -> VectorStore:
    """Return a vector of the same entries, whose values are the indices of a part's positions."""
    made = VectorStore(v.device, v.counters, INT64, v.size)
    if v.nvals:
        at, _ = v.listed()
        v.device.require(2 * at.nbytes, "mxv")
        made.set_sparse(at, by.index(part, at))
    return made


def _deal(rows: Array, run_after_run: Array) -> None:
    """Put runs into rows, one each; the last one may be shorter."""
    width = rows.shape[1]
    whole, rest = divmod(len(run_after_run), width)
    rows[:whole] = run_after_run[: whole * width].reshape(whole, width)
    if rest:
        rows[whole, :rest] = run_after_run[whole * width :]
