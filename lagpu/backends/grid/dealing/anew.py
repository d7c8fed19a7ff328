"""A matrix dealt anew in the order of its vertices' degrees, from device to device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.grid.dealing.partition import Layout, Partition, Ranks, Relabelled
from lagpu.backends.grid.engine import Engine
from lagpu.backends.protocol import Backend
from lagpu.dtypes import DType
from lagpu.operations import Handle

Array = Any  # of a device

_CHUNK = 1 << 24  # entries at a time
_BYTES_IN_CHUNK = 80  # of an entry of these
_BYTES_PER_ENTRY = 40  # its key as it is given, received and sorted
_LOW = 0xFFFFFFFF


def order_by_degree(parts: Sequence[Any], by: Layout) -> Ranks:
    """Return the order of the vertices of a square matrix by the entries of row and column.

    Parameters
    ----------
    parts : sequence of handle
        The part of each piece, all of this process.
    by : Layout
        Who has which entries.
    """
    n = by.dims[0].size
    counts = []
    for p, part in enumerate(parts):
        A: CscMatrix = part.csc()
        with A.device.alone():
            A.device.require(24 * n + _BYTES_IN_CHUNK * min(A.nvals, _CHUNK), "order by degree")
            degrees = A.device.xp.zeros(n, np.int64)
            for _, ends in _entries(A, by, p):
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


def dealt_anew(
    engine: Engine,
    places: Sequence[Backend],
    parts: Sequence[Any],
    dtype: DType,
    before: Layout,
    after: Layout,
) -> list[Handle]:
    """Return the parts of a matrix by another layout; the entries stay on devices.

    Parameters
    ----------
    engine : Engine
        Of devices of this process.
    places : sequence of Backend
        Where each piece lives.
    parts : sequence of handle
        The part of each piece.
    dtype : DType
        Of the matrix.
    before, after : Layout
        Who has which entries, and who is to have them.
    """
    devices = [place.device for place in places]
    forms: list[CscMatrix] = [part.csc() for part in parts]
    iso = _one_value(forms)
    valued = iso is None
    received = engine.exchange([_given(A, before, after, p, valued) for p, A in enumerate(forms)])
    made = []
    for p, (place, device) in enumerate(zip(places, devices, strict=True)):
        lists, received[p] = received[p], []
        with device.alone():
            own = [
                tuple(device.fetched(array, sender) for array in arrays)
                for arrays, sender in zip(lists, devices, strict=True)
            ]
            lists.clear()
            made.append(_part(place, own, dtype, after.shape(p), iso))
    return made


def _one_value(forms: Sequence[CscMatrix]) -> Any:
    """Return the one value of all entries, or None."""
    numbers = {A.iso for A in forms if A.nvals}
    return numbers.pop() if len(numbers) == 1 else None


def _entries(A: CscMatrix, by: Layout, piece: int) -> Iterator[tuple[slice, list[Array]]]:
    """Yield where in a part some of its entries are, and their rows and columns by index."""
    tables = _tables(A.device, by, lambda ranks: ranks.indices)
    for begin in range(0, A.nvals, _CHUNK):
        end = min(begin + _CHUNK, A.nvals)
        where = (A.row_idx[begin:end].astype(np.int64), A.columns(begin, end))
        each = zip(by.dims, by.parts(piece), tables, where, strict=True)
        yield slice(begin, end), [_index(*one) for one in each]


def _given(
    A: CscMatrix, before: Layout, after: Layout, piece: int, valued: bool
) -> list[tuple[Array, ...]]:
    """Return, for each piece, the keys of its entries: column and row by position; and values."""
    device, xp, size = A.device, A.device.xp, after.pieces
    lists: list[list[tuple[Array, ...]]] = [[] for _ in range(size)]
    with device.alone():
        chunk = min(A.nvals, _CHUNK)
        device.require(_BYTES_PER_ENTRY * A.nvals + _BYTES_IN_CHUNK * chunk, "dealt anew")
        tables = _tables(device, after, lambda ranks: ranks.numbers)
        for at, indices in _entries(A, before, piece):
            each = zip(after.dims, tables, indices, strict=True)
            (of_row, i), (of_col, j) = (_placed(*one) for one in each)
            owner = of_row * after.dims[1].pieces + of_col
            arrays = [j << 32 | i]
            if valued:
                number = xp.full(len(i), A.number, A.dtype.numpy)
                arrays.append(number if A.values is None else A.values[at])
            for p in range(size):
                mine = owner == p
                lists[p].append(tuple(array[mine] for array in arrays))
        none = (xp.empty(0, np.int64), xp.empty(0, A.dtype.numpy))[: 1 + valued]
        return [_joined(xp, [none, *chunks]) for chunks in lists]


def _tables(device: Any, by: Layout, of: Callable[[Ranks], Any]) -> list[Array]:
    """Return a table of each dimension's ranks on a device, or None where it has none."""
    new = [dim.new if isinstance(dim, Relabelled) else None for dim in by.dims]
    return [device.from_host(of(ranks)) if isinstance(ranks, Ranks) else None for ranks in new]


def _index(by: Partition, piece: int, table: Array, positions: Array) -> Array:
    """Return the indices at positions of a piece."""
    if isinstance(by, Relabelled):
        return table[by.by.index(piece, positions)].astype(np.int64)
    return by.index(piece, positions)


def _placed(by: Partition, table: Array, indices: Array) -> tuple[Array, Array]:
    """Return owner and position of indices."""
    if isinstance(by, Relabelled):
        by, indices = by.by, table[indices].astype(np.int64)
    return by.owner(indices), by.position(indices)


def _joined(xp: Any, lists: list[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return lists as one; they are emptied so that they can be freed."""
    joined = tuple(map(xp.concatenate, zip(*lists, strict=True)))
    lists.clear()
    return joined


def _part(
    place: Backend, lists: list[tuple[Array, ...]], dtype: DType, shape: tuple[int, ...], iso: Any
) -> Handle:
    """Return the handle of a part; the lists are emptied so that they can be freed."""
    xp = place.device.xp
    keys, *values = _joined(xp, lists)
    if values:
        order = xp.argsort(keys)  # no two are the same
        keys, iso = keys[order], values[0][order]
    else:
        keys.sort()
    col_ptr = xp.searchsorted(keys, xp.arange(shape[1] + 1, dtype=np.int64) << 32)
    keys &= _LOW
    local = cast(tuple[int, int], shape)
    return place.matrix_from_csc(col_ptr, keys.astype(np.int32), iso, dtype, local)
