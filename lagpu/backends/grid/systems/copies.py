"""A copy of a graph's pattern for some sub-clusters, made of the parts by what travels to them.

Each piece gives the entries of its part, some at a time, to the owners in every sub-cluster. These
know how many there are in each column, and write the rows where they belong: so a process holds its
part and what its sub-cluster needs of the copy, once, and nothing else of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu.backends.grid.dealing import Layout
from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.handles import GridMatrix
from lagpu.backends.grid.pieces import Pieces, cut
from lagpu.host.memory import require

__all__ = ["copied"]

Array = np.ndarray[Any, Any]

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
