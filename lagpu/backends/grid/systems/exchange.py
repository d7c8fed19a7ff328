"""Exchanges of the paper systems: copies, neighbours, messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.storage.bitmap import MatrixHandle
from lagpu.backends.gpu.storage.forms import csr_of
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.grid.dealing import Layout, Partition
from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.handles import GridMatrix
from lagpu.backends.grid.pieces import Pieces, cut, entries_of
from lagpu.backends.grid.travel import form_of, needed, packed, summed, unpacked
from lagpu.backends.profile import Sent
from lagpu.backends.protocol import Backend
from lagpu.dtypes import BOOL
from lagpu.host.memory import require
from lagpu.operations import Handle

Array = np.ndarray[Any, Any]

COLUMN, ROW = 0, 1  # pieces with the same sources; pieces with the same targets


class Exchange:
    """Sends messages among the pieces of each row or column, and notes what was sent.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    layout : Layout
        Of the matrix.
    by : Partition
        Of the vertices.
    """

    def __init__(self, pieces: Pieces, layout: Layout, by: Partition) -> None:
        self._pieces, self._by = pieces, by
        self._groups = [needed(layout, dim).groups() for dim in (COLUMN, ROW)]
        self._mates = [
            {p: [q for q in group if q != p] for group in groups for p in group}
            for groups in self._groups
        ]
        self._noted: list[tuple[str, int]] = []

    def mates(self, piece: int, along: int) -> list[int]:
        """Return the other pieces of a piece's column or row, rising."""
        return self._mates[along][piece]

    def noted(self) -> tuple[Sent, ...]:
        """Return what was sent since the last call, by form."""
        noted, self._noted = self._noted, []
        return summed(noted)

    def sets(
        self, given: Sequence[Mapping[int, Array]], along: int, form: str, of_receiver: bool
    ) -> list[dict[int, Array]]:
        """Send each mate a set of vertices; return, by sender, what each local piece receives.

        Parameters
        ----------
        given : sequence of mapping
            For each local piece, by receiver, the positions of vertices.
        along : int
            `COLUMN` or `ROW`.
        form : str
            See `packed`.
        of_receiver : bool
            Whether the vertices, and the bits of a bitmap, are the receiver's own; else they are
            the sender's.
        """
        parts = []
        for p, lists in zip(self._pieces.engine.local, given, strict=True):
            to: dict[int, Arrays] = {}
            for d in self.mates(p, along):
                size = self._sizes(d if of_receiver else p)
                message = packed(lists[d], size[0], form, size[1])
                self._noted.append((form_of(message, size[0], form, size[1]), message.nbytes))
                to[d] = (message,)
            parts.append(to)
        received = self._lists(parts, along, 1)
        return [
            {
                s: self._unpacked(message, p if of_receiver else s, form)
                for s, (message,) in lists.items()
            }
            for p, lists in zip(self._pieces.engine.local, received, strict=True)
        ]

    def _sizes(self, piece: int) -> tuple[int, int]:
        """Return the vertices of a piece, and how many of the first ones may have edges."""
        return self._by.count(piece), self._by.used(piece)

    def _unpacked(self, message: Array, piece: int, form: str) -> Array:
        size, used = self._sizes(piece)
        return unpacked(message, size, form, used)

    def told(self, own: Sequence[Array], along: int, form: str) -> list[dict[int, Array]]:
        """Send all mates one set of own vertices of each local piece; see `sets`."""
        local = zip(self._pieces.engine.local, own, strict=True)
        given = [dict.fromkeys(self.mates(p, along), vertices) for p, vertices in local]
        return self.sets(given, along, form, of_receiver=False)

    def numbers(
        self, given: Sequence[Mapping[int, Arrays]], along: int, width: int, name: str
    ) -> list[dict[int, Arrays]]:
        """Send each mate as many lists of numbers below 2**32; return, by sender, INT64."""
        parts = []
        for p, lists in zip(self._pieces.engine.local, given, strict=True):
            short = {d: tuple(x.astype(np.uint32) for x in lists[d]) for d in self.mates(p, along)}
            self._noted += [(name, sum(x.nbytes for x in arrays)) for arrays in short.values()]
            parts.append(short)
        return [
            {s: tuple(x.astype(np.int64) for x in arrays) for s, arrays in lists.items()}
            for lists in self._lists(parts, along, width)
        ]

    def _lists(
        self, given: Sequence[Mapping[int, Arrays]], along: int, width: int
    ) -> list[dict[int, Arrays]]:
        """Send each mate `width` arrays of u32, uncounted; return, by sender, what each gets."""
        nothing = (np.zeros(0, np.uint32),) * width
        size, local = self._pieces.engine.size, self._pieces.engine.local
        parts = [[to.get(d, nothing) for d in range(size)] for to in given]
        received = self._pieces.engine.exchange(parts, self._groups[along])
        return [
            {s: one[s] for s in self.mates(p, along)}
            for p, one in zip(local, received, strict=True)
        ]

    def totals(self, numbers: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the sums over all pieces of the numbers of each local one."""
        given = [(np.array(of_piece, np.int64),) for of_piece in numbers]
        others = self._pieces.engine.size - 1
        self._noted += [("counts", counts.nbytes) for (counts,) in given for _ in range(others)]
        received = self._pieces.engine.gather(given)[0]
        return [int(total) for total in np.sum([counts for (counts,) in received], axis=0)]


# ------------------------------------------------------------------------------------------
# A copy of a graph's pattern for some sub-clusters, made of the parts by what travels to them.
#
# Each piece gives the entries of its part, some at a time, to the owners in every sub-cluster.
# These know how many there are in each column, and write the rows where they belong: so a process
# holds its part and what its sub-cluster needs of the copy, once, and nothing else of the graph.


_GIVEN = 1 << 19  # entries that a piece gives at a time, to all sub-clusters together


def copied(
    pieces: Pieces, A: GridMatrix, by: Layout, clusters: Sequence[int]
) -> dict[int, tuple[Array, Array]]:
    """Return the parts of copies of a matrix, as far as this process has their pieces.

    Every process calls it.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    A : GridMatrix
        The matrix, of which only the pattern counts.
    by : Layout
        The layout of a copy: the pieces of a sub-cluster are a column of pieces, rows are not cut.
    clusters : sequence of int
        The numbers of the sub-clusters that get a copy.

    Returns
    -------
    dict of (col_ptr, row_idx)
        By the number of the piece; rows rise in each column.
    """
    own, many = _Own(pieces, A, by), by.pieces
    chunk = max(1, _GIVEN // len(clusters))
    every = pieces.engine.gather([(np.array([len(part[1])]),) for part in own.parts])[0]
    parts: dict[int, _Part] = {}
    for p, received in _exchanged(pieces, many, clusters, own.counts()).items():
        parts[p] = _Part(by.shape(p % many), received, pieces.engine.beside)
    for first in range(0, max(int(count[0]) for (count,) in every), chunk):
        given = own.entries(first, first + chunk)
        for p, received in _exchanged(pieces, many, clusters, given).items():
            for lists in received:
                parts[p].take(*lists)
    del own
    return {p: parts.pop(p).ended() for p in list(parts)}


def _exchanged(
    pieces: Pieces, many: int, clusters: Sequence[int], given: Sequence[Sequence[Arrays]]
) -> dict[int, list[Arrays]]:
    """Return what the local pieces of these sub-clusters receive from each piece.

    ``given[k][q]`` is what local piece `k` has for piece `q` of each sub-cluster.
    """
    chosen = set(clusters)

    def of(lists: Sequence[Arrays], d: int) -> Arrays:
        mine = lists[d % many]
        return mine if d // many in chosen else tuple(x[:0] for x in mine)

    parts = [[of(lists, d) for d in range(pieces.engine.size)] for lists in given]
    found = dict(zip(pieces.engine.local, pieces.engine.exchange(parts), strict=True))
    return {p: received for p, received in found.items() if p // many in chosen}


class _Own:
    """The parts of a matrix on the local pieces, as others are to have them."""

    def __init__(self, pieces: Pieces, A: GridMatrix, by: Layout) -> None:
        self._to, self._from, self._pieces = by, pieces.layout(A.shape), pieces
        self._kind = np.int32 if max(A.shape) < 2**31 else np.int64
        self.parts = []
        for k, _, place in pieces:
            ptr, idx, _ = place.matrix_to_csc(A.parts[k], narrow=True)
            self.parts.append((ptr, idx.astype(self._kind, copy=False)))

    def counts(self) -> list[list[Arrays]]:
        """Return, for each piece of a sub-cluster, (columns by position, entries of each)."""
        found = []
        for (_, p, _), (ptr, _) in zip(self._pieces, self.parts, strict=True):
            dim = self._from.dims[1]
            columns = dim.own(self._from.parts(p)[1])
            lists = (self._to.dims[1].position(columns), np.diff(ptr))
            found.append(cut(lists, self._to.dims[1].owner(columns), self._to.pieces))
        return found

    def entries(self, first: int, last: int) -> list[list[Arrays]]:
        """Return, for each piece of a sub-cluster, (columns by position, rows) of some entries."""
        found = []
        for (_, p, _), (ptr, idx) in zip(self._pieces, self.parts, strict=True):
            within = np.arange(min(first, len(idx)), min(last, len(idx)))
            places = np.searchsorted(ptr, within, side="right") - 1
            rows, columns = self._from.index(p, idx[first:last], places)
            where = self._to.dims[1].position(columns)
            lists = (where.astype(self._kind), rows.astype(self._kind))
            found.append(cut(lists, self._to.dims[1].owner(columns), self._to.pieces))
        return found


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
        if not len(where):
            return
        order = np.argsort(where, kind="stable")
        where = where[order]
        begin = np.flatnonzero(np.concatenate([[True], where[1:] != where[:-1]]))
        counts = np.diff(np.append(begin, len(where)))
        columns = where[begin]
        rank = np.arange(len(where)) - np.repeat(begin, counts)
        self._rows[np.repeat(self._next[columns], counts) + rank] = rows[order]
        self._next[columns] += counts

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
# Where rows are not cut a part has whole columns, so each part's row indices are moved from
# device to device, some at a time, and written where their columns are; nothing passes the host
# but the numbers of the columns.


_BLOCK = 1 << 26  # entries that move at a time


def may_gather(pieces: Pieces, A: GridMatrix) -> bool:
    """Whether the parts of a matrix have whole columns, all on devices of this process."""
    here = pieces.engine.between_devices and len(pieces.engine.local) == pieces.engine.size
    return here and pieces.layout(A.shape).dims[0].whole


def on_one_device(pieces: Pieces, A: GridMatrix, home: Backend) -> MatrixHandle:
    """Return the pattern of a matrix, BOOL, on the device of one of its pieces.

    Parameters
    ----------
    pieces : Pieces
        The pieces, with locks held.
    A : GridMatrix, (m, n)
        A matrix that `may_gather` allows.
    home : Backend
        The place that gets the copy.
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
        made.symmetric = True if A.symmetric else None
    return MatrixHandle(made)


# ------------------------------------------------------------------------------------------
# Claims without atomics: the list of all neighbours of a frontier, sorted, each of them once.
#
# Paper: Mastrostefano and Bernaschi 2013, to which Bisson and others 2016 compare their atomics.


# numpy.ndarray or cupy.ndarray, by the place


class Listed(NamedTuple):
    """The entries that leave a frontier, on the place, one after the other.

    Attributes
    ----------
    targets, sources : array of int, (k,)
        Positions in the part.
    """

    targets: Array
    sources: Array

    @property
    def nbytes(self) -> int:
        """The bytes of both lists."""
        return int(self.targets.nbytes + self.sources.nbytes)


class Neighbours:
    """A piece's part by its sources, where the place computes.

    Parameters
    ----------
    place : Backend
        The place.
    part : Handle
        A matrix of sources and targets.
    sources : int
        Its rows.
    """

    def __init__(self, place: Backend, part: Any, sources: int) -> None:
        self._device = place.device if isinstance(place, GpuBackend) else None
        if self._device is None:
            self._xp: Any = np
            self._ptr, self._targets = _by_rows(place, part, sources)
            return
        self._xp = self._device.xp
        with self._device.alone():
            form = csr_of(part.csc())
            self._ptr, self._targets = form.col_ptr, form.row_idx

    def listed(self, front: np.ndarray[Any, Any]) -> Listed:
        """Return the entries in the rows of a frontier, rising sources first."""
        xp = self._xp
        with self._alone():
            rows = xp.asarray(front.astype(np.int64))
            starts, ends = self._ptr[rows].astype(np.int64), self._ptr[rows + 1].astype(np.int64)
            before = xp.cumsum(ends - starts)
            total = int(before[-1]) if len(front) else 0
            if self._device is not None:
                self._device.require(48 * total, "claims=sort")
            place = xp.arange(total)
            of = xp.searchsorted(before, place, side="right")
            at = (ends - before)[of] + place
            return Listed(self._targets[at], rows[of])

    def distinct(self, listed: Listed) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return, on the host, the targets rising and each once, with the first source of each."""
        xp = self._xp
        with self._alone():
            order = xp.argsort(listed.targets, kind="stable")
            targets, sources = listed.targets[order], listed.sources[order]
            new = xp.ones(len(order), bool)
            new[1:] = targets[1:] != targets[:-1]
            found = targets[new], sources[new]
            if self._device is not None:
                found = self._device.to_host(found[0]), self._device.to_host(found[1])
        return found[0].astype(np.int64), found[1].astype(np.int64)

    def _alone(self) -> AbstractContextManager[Any]:
        return nullcontext() if self._device is None else self._device.alone()


def _by_rows(place: Backend, part: Handle, count: int) -> tuple[Array, Array]:
    """Return (pointers, columns) of the entries of a part by rows."""
    rows, columns, _ = entries_of(place, part, 2)
    ptr = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=ptr[1:])
    return ptr, columns[np.argsort(rows, kind="stable")]
