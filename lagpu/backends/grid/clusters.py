"""Sub-clusters of a grid: groups of pieces with a copy of the graph each, which share out sources.

A group has some pieces of a process, or some processes. Paper: Bernaschi and others 2018, section
4.2.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.storage.bitmap import MatrixHandle
from lagpu.backends.gpu.storage.stores import CscMatrix
from lagpu.backends.grid.comm import Arrays, LocalEngine, MpiEngine
from lagpu.backends.grid.partition import GridHandle, Layout, Shuffle, layout
from lagpu.backends.grid.pieces import Pieces, cut
from lagpu.backends.protocol import Backend
from lagpu.dtypes import BOOL
from lagpu.errors import InvalidValue, LagpuError
from lagpu.host.memory import require
from lagpu.operations import Handle

Array = np.ndarray[Any, Any]
T = TypeVar("T")

# Bytes of a copy, roughly: an entry in both forms, and as it arrives; a vertex in the pointers
# and in the vectors of a search and its sweep.
_ENTRY, _VERTEX = 24, 120
_GIVEN = 1 << 19  # entries that a piece sends at a time, to all sub-clusters together
_BLOCK = 1 << 26  # entries that are copied at a time from device to device


def cluster_size(pieces: Pieces, A: GridHandle, asked: int | None, free: int) -> int:
    """Return the number of pieces of a sub-cluster: as asked, or the smallest that fits.

    `free` are the free bytes of the piece that has least. It raises `InvalidValue` if there are no
    sub-clusters of so many pieces as asked.
    """
    count, here = pieces.engine.size, len(pieces.engine.local)
    sizes = [d for d in range(1, here + 1) if here % d == 0]
    sizes += [here * m for m in range(2, count // here + 1) if count // here % m == 0]
    if asked is not None:
        if asked not in sizes:
            raise InvalidValue(
                f"pieces: the graph cannot be shared by {asked} of {count} pieces, "
                f"{here} per process. Use one of {', '.join(map(str, sizes))}."
            )
        return asked
    needed = _ENTRY * pieces.nvals(A) + _VERTEX * A.shape[0]
    devices = [place.device for place in pieces.places]
    on_host = any(device is None or device.name == "sim" for device in devices)
    # hosts may have more processes and fewer
    most = max(pieces.engine.gather_objects([pieces.engine.beside] * here))
    beside = here * most if on_host else 1
    fitting = [d for d in sizes if 2 * beside * needed // d <= free]
    return fitting[0] if fitting else count


class GridClusters:
    """The sub-clusters of a grid that have pieces in this process; see `Clusters`.

    Each has `size` pieces, a divisor of those of a process or a multiple. `make` returns the
    backend over an engine and some places.
    """

    def __init__(
        self, pieces: Pieces, size: int, make: Callable[[LocalEngine, Sequence[Backend]], Backend]
    ) -> None:
        engine = pieces.engine
        self._pieces, self._size, self._here = pieces, size, len(engine.local)
        first, here = engine.local[0], self._here
        self.count = engine.size // size
        self.numbers: Sequence[int] = range(first // size, (first + max(here, size)) // size)
        self._group = engine.group(size) if isinstance(engine, MpiEngine) and size > here else None
        places = [pieces.places[k : k + size] for k in range(0, here, size)]
        self.backends: Sequence[Backend] = [
            group[0] if size == 1 else make(self._group or LocalEngine(size), group)
            for group in places
        ]

    @property
    def apart(self) -> bool:
        """See `Clusters`."""
        devices = [place.device for place in self._pieces.places]
        own = None not in devices and len({id(device) for device in devices}) == len(devices)
        return own and len(self.backends) > 1

    def run(self, work: Callable[[], T]) -> T:
        """See `Clusters`."""
        return self._pieces.run("clusters", work)

    def inside(self, work: Callable[[], T]) -> T:
        """See `Clusters`."""
        if self._group is None:
            return work()
        try:
            return self._group.inside(work)
        except LagpuError as error:
            if error.process is not None:
                self._pieces.engine.barrier()  # where the process with the error reports it
            raise

    def copy(self, A: GridHandle, k: int) -> Handle:
        """See `Clusters`."""
        return self.run(lambda: self._copy(A, k))

    def _copy(self, A: GridHandle, k: int) -> Handle:
        pieces, size = self._pieces, self._size
        if size == 1 and may_gather(pieces, A):
            with pieces.lock():
                found = A.copies.get(k)
                if found is None:
                    home = self.backends[k]
                    found = on_one_device(pieces, A, home)
                    # Kept, with the workspaces of searches, if half of another one would fit.
                    if 2 * home.free_bytes() > found.csc().nbytes:
                        A.copies[k] = found
                return found
        chosen = range(self.count)
        if size <= self._here:
            chosen = range(k, self.count, len(self.numbers))
        new = tuple(map(Shuffle, A.shape)) if pieces.order == "random" and size > 1 else None
        by = layout(A.shape, (size, 1), new)
        with pieces.lock():
            own = copied(pieces, A, by, chosen)
        shape = (A.shape[0], A.shape[1])
        symmetric = A.symmetric or None
        place, first = self.backends[k], self.numbers[k] * size
        parts = place.capabilities.parts
        if parts is None:
            return place.matrix_from_csc(*own.pop(first), np.True_, BOOL, shape, symmetric)

        def part(home: Backend, local: Any, q: int) -> Handle:
            return home.matrix_from_csc(*own.pop(first + q), np.True_, BOOL, local.shape(q))

        return self.inside(lambda: parts.matrix(part, BOOL, shape, symmetric))

    def total(self, parts: Sequence[Array]) -> Array:
        """See `Clusters`."""
        first = self.numbers[0]
        given = [
            (parts[p // self._size - first] if p % self._size == 0 else np.zeros(0),)
            for p in self._pieces.engine.local
        ]
        received = [of for (of,) in self._pieces.engine.gather(given)][:: self._size]
        return functools.reduce(np.add, received)


# ------------------------------------------------------------------------------------------
# A copy of a graph's pattern for some sub-clusters.
#
# Each piece sends the entries of its part, some at a time, to the owners in every sub-cluster.
# These know how many there are in each column, and write the rows where they belong: so a process
# holds its part and what its sub-cluster needs of the copy, once.


def copied(
    pieces: Pieces, A: GridHandle, by: Layout, clusters: Sequence[int]
) -> dict[int, tuple[Array, Array]]:
    """Return the parts of copies of a matrix' pattern for the local pieces, by their number.

    A part is (col_ptr, row_idx), rows rising. Every process calls it, with the layout of a copy, by
    which rows are not cut, and the numbers of the sub-clusters that get one.
    """
    before, columns = pieces.layout(A.shape), by.dims[1]
    kind = np.int32 if max(A.shape) < 2**31 else np.int64
    own = []
    for k, p, place in pieces:
        ptr, rows, _ = place.matrix_to_csc(A.parts[k], narrow=True)
        own.append((p, ptr, rows.astype(kind, copy=False)))

    def send(given: Sequence[Sequence[Arrays]]) -> dict[int, list[Arrays]]:
        """Send lists for each piece of a sub-cluster; return what local pieces receive."""
        each = [(c * by.pieces, c * by.pieces + by.pieces) for c in clusters]
        parts = [
            {d: lists[d - first] for first, last in each for d in range(first, last)}
            for lists in given
        ]
        local = zip(pieces.engine.local, pieces.engine.exchange(parts), strict=True)
        return {p: [*received.values()] for p, received in local if received}

    def cut_by_owner(index: Array, values: Array, kind: Any = None) -> list[Arrays]:
        """Return, for each owner, columns by position and a value for each."""
        where = columns.position(index)
        if kind is not None:
            where, values = where.astype(kind), values.astype(kind)
        return cut((where, values), columns.owner(index), by.pieces)

    counts = []
    for p, ptr, _ in own:
        counts.append(cut_by_owner(before.dims[1].own(before.parts(p)[1]), np.diff(ptr)))
    parts = {
        p: _Part(by.shape(p % by.pieces), received, pieces.engine.beside)
        for p, received in send(counts).items()
    }
    most = max(pieces.engine.gather_objects([len(rows) for _, _, rows in own]))
    chunk = max(1, _GIVEN // len(clusters))
    for first in range(0, most, chunk):
        given = []
        for p, ptr, rows in own:
            chosen = rows[first : first + chunk]
            at = np.searchsorted(ptr, np.arange(first, first + len(chosen)), side="right") - 1
            index = before.index(p, chosen, at)
            given.append(cut_by_owner(index[1], index[0], kind))
        for p, received in send(given).items():
            for lists in received:
                parts[p].take(*lists)
    del own
    return {p: parts.pop(p).ended() for p in list(parts)}


class _Part:
    """A part of a copy, as entries arrive in any order."""

    def __init__(self, shape: tuple[int, ...], counts: Sequence[Arrays], beside: int) -> None:
        self._shape = shape
        ptr = np.zeros(shape[1] + 1, np.int64)
        for where, of_column in counts:
            ptr[where + 1] += of_column  # a piece has a column once
        np.cumsum(ptr, out=ptr)
        self._kind = np.int32 if max(*shape, int(ptr[-1])) < 2**31 else np.int64
        require(
            beside * int(ptr[-1]) * (np.dtype(self._kind).itemsize + 1),
            "grid: a copy of the graph",
            "Let more pieces share one.",
        )
        self._ptr, self._next = ptr, ptr[:-1].copy()
        self._rows = np.empty(int(ptr[-1]), self._kind)

    def take(self, where: Array, rows: Array) -> None:
        """Write the rows of some entries into their columns."""
        order = np.argsort(where, kind="stable")
        where = where[order]
        rank = np.arange(len(where)) - np.searchsorted(where, where)  # in its column
        self._rows[self._next[where] + rank] = rows[order]
        np.add.at(self._next, where, 1)

    def ended(self) -> tuple[Array, Array]:
        """Return (col_ptr, row_idx), now that all entries are there."""
        arrays: Any = (np.ones(len(self._rows), np.int8), self._rows, self._ptr.astype(self._kind))
        nrows, ncols = self._shape
        found = sp.csc_array(arrays, shape=(nrows, ncols))
        found.sort_indices()  # in place; several pieces may have rows of a column
        return self._ptr, found.indices


# ------------------------------------------------------------------------------------------
# A copy of a graph's pattern on one device, made of the parts on all devices of this process.
#
# Where rows are not cut a part has whole columns, so each part's row indices are copied from
# device to device, some at a time, and written where their columns are; only the numbers of the
# columns pass through the host.


def may_gather(pieces: Pieces, A: GridHandle) -> bool:
    """Whether the parts of a matrix have whole columns, all on devices of this process."""
    engine = pieces.engine
    here = engine.between_devices and len(engine.local) == engine.size
    return here and pieces.layout(A.shape).dims[0].whole


def on_one_device(pieces: Pieces, A: GridHandle, home: Backend) -> MatrixHandle:
    """Return the pattern of a matrix that `may_gather` allows, BOOL, on one piece's device.

    The caller holds the locks of the pieces.
    """
    assert isinstance(home, GpuBackend)
    device, by = home.device, pieces.layout(A.shape).dims[1]
    parts: list[CscMatrix] = [part.csc() for part in A.parts]
    m, n = A.shape
    nvals = sum(part.nvals for part in parts)
    with device.alone():
        xp = device.xp
        width = parts[0].row_idx.dtype.itemsize
        at_once = 24 * min(_BLOCK, nvals)
        device.require(nvals * width + 32 * n + at_once, "grid: a copy of the graph")
        columns = [device.from_host(by.own(p)) for p in pieces.engine.local]
        offsets = [device.fetched(part.col_ptr, part.device).astype(np.int64) for part in parts]
        col_ptr = xp.zeros(n + 1, np.int64)
        for own, ptr in zip(columns, offsets, strict=True):
            col_ptr[own + 1] = xp.diff(ptr)
        col_ptr = xp.cumsum(col_ptr)
        row_idx = xp.empty(nvals, parts[0].row_idx.dtype)
        for part, own, ptr in zip(parts, columns, offsets, strict=True):
            ahead = col_ptr[own] - ptr[:-1]  # from an entry's place in the part to that in the copy
            for begin in range(0, part.nvals, _BLOCK):
                end = min(begin + _BLOCK, part.nvals)
                at = xp.arange(begin, end)
                at += ahead[xp.searchsorted(ptr, at, side="right") - 1]
                row_idx[at] = device.fetched(part.row_idx[begin:end], part.device)
        made = CscMatrix(device, BOOL, (m, n), col_ptr, row_idx, None, np.True_)
        made.symmetric = A.symmetric or None
    return MatrixHandle(made)
