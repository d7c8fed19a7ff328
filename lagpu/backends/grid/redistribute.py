"""Redistribute a matrix in the order of its vertices' degrees, from device to device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.grid.comm import Engine
from lagpu.backends.grid.partition import Layout, Ranks
from lagpu.backends.protocol import Backend
from lagpu.dtypes import DType
from lagpu.operations import Handle

Array = Any  # of a device

_CHUNK = 1 << 24  # entries at a time
_BYTES_IN_CHUNK = 80  # of an entry of these
_BYTES_PER_ENTRY = 40  # its key as it is given, received and sorted
_LOW = 0xFFFFFFFF


def order_by_degree(parts: Sequence[Any], by: Layout) -> Ranks:
    """Return the order of a square matrix' vertices by their entries, all parts being here."""
    n = by.dims[0].size
    counts = []
    for p, part in enumerate(parts):
        A: CscMatrix = part.csc()
        with A.device.alone():
            A.device.require(24 * n + _BYTES_IN_CHUNK * min(A.nvals, _CHUNK), "order by degree")
            degrees = A.device.xp.zeros(n, np.int64)
            for _, ends in _entries(A, by.on(A.device), p):
                for indices in ends:
                    degrees += A.device.xp.bincount(indices, minlength=n)
            counts.append(degrees)
    device = parts[0].csc().device
    with device.alone():
        xp, degrees = device.xp, counts[0]
        for part, others in zip(parts[1:], counts[1:], strict=True):
            degrees += device.fetched(others, part.csc().device)
        used = int(xp.count_nonzero(degrees))
        keys = -degrees << 32  # they rise where degrees fall, and then where vertices rise
        keys |= xp.arange(n, dtype=np.int64)
        keys.sort()
        keys &= _LOW
        return Ranks(device.to_host(keys), used)


def redistributed(
    engine: Engine,
    places: Sequence[Backend],
    parts: Sequence[Any],
    dtype: DType,
    before: Layout,
    after: Layout,
) -> list[Handle]:
    """Return the parts of a matrix by another layout; all are on devices of this process."""
    forms: list[CscMatrix] = [part.csc() for part in parts]
    numbers = {A.iso for A in forms if A.nvals}
    iso = numbers.pop() if len(numbers) == 1 else None  # the one value of all entries
    given = [_keys(A, before, after, p, iso is None) for p, A in enumerate(forms)]
    received = engine.exchange(given, on_devices=True)
    given.clear()
    made = []
    for p, place in enumerate(places):
        with place.device.alone():
            xp, shape = place.device.xp, cast(tuple[int, int], after.shape(p))
            keys, *values = _joined(xp, [*received.pop(0).values()])
            if values:
                order = xp.argsort(keys)  # no two are the same
                keys, iso = keys[order], values[0][order]
            else:
                keys.sort()
            col_ptr = xp.searchsorted(keys, xp.arange(shape[1] + 1, dtype=np.int64) << 32)
            keys &= _LOW
            made.append(place.matrix_from_csc(col_ptr, keys.astype(np.int32), iso, dtype, shape))
    return made


def _entries(A: CscMatrix, by: Layout, piece: int) -> Iterator[tuple[slice, tuple[Array, ...]]]:
    """Yield where in a part some of its entries are, and their rows and columns by index."""
    for begin in range(0, A.nvals, _CHUNK):
        end = min(begin + _CHUNK, A.nvals)
        where = A.row_idx[begin:end].astype(np.int64), A.columns(begin, end)
        yield slice(begin, end), by.index(piece, *where)


def _keys(
    A: CscMatrix, before: Layout, after: Layout, piece: int, valued: bool
) -> dict[int, tuple[Array, ...]]:
    """Return, for each piece, the keys of its entries: column and row by position; and values."""
    device, xp = A.device, A.device.xp
    with device.alone():
        none = (xp.empty(0, np.int64), xp.empty(0, A.dtype.numpy))[: 1 + valued]
        lists = [[none] for _ in range(after.pieces)]
        chunk = min(A.nvals, _CHUNK)
        device.require(_BYTES_PER_ENTRY * A.nvals + _BYTES_IN_CHUNK * chunk, "redistributed")
        there = after.on(device)
        for at, indices in _entries(A, before.on(device), piece):
            owner, (i, j) = there.owner(*indices), there.position(*indices)
            arrays = [j << 32 | i]
            if valued:
                number = xp.full(len(i), A.number, A.dtype.numpy)
                arrays.append(number if A.values is None else A.values[at])
            for p, chunks in enumerate(lists):
                mine = owner == p
                chunks.append(tuple(array[mine] for array in arrays))
        return {p: _joined(xp, chunks) for p, chunks in enumerate(lists)}


def _joined(xp: Any, lists: list[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return lists as one; they are emptied so that they can be freed."""
    joined = tuple(map(xp.concatenate, zip(*lists, strict=True)))
    lists.clear()
    return joined
