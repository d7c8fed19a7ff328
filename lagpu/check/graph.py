"""Tools of all checkers: the graph on the host, results as dense arrays, errors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu.errors import CheckFailed, DimensionMismatch, IndexOutOfBound, InvalidValue
from lagpu.io.csc import column_blocks

__all__ = ["CheckReport", "Graph", "Pattern", "whole_below"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class CheckReport:
    """The result of a successful check.

    Attributes
    ----------
    rules : tuple of str
        The rules that hold.
    reached : int
        Reached vertices, the source among them.
    depth : int
        Largest level.
    edges : int
        Edges of the reached part: in a symmetric matrix each undirected edge once, else each stored
        entry of a reached row. This is the m of Graph500's TEPS.
    """

    rules: tuple[str, ...]
    reached: int
    depth: int
    edges: int


class Pattern:
    """A graph made ready once for many checks, each of which takes it as its graph.

    Parameters
    ----------
    A : graph, (n, n)
        See `lagpu.check`.

    Attributes
    ----------
    columns : csc_array of int8, (n, n)
        A one for each stored entry, rows rising in each column.

    Raises
    ------
    DimensionMismatch, IndexOutOfBound
        If the graph is not square, or a row is outside.
    """

    def __init__(self, A: Any) -> None:
        self.columns = _columns(A)

    @cached_property
    def by_rows(self) -> Any:
        """The pattern by rows: out-neighbours."""
        return self.columns.tocsr()

    @cached_property
    def symmetric(self) -> bool:
        """Whether the pattern is that of an undirected graph."""
        rows, columns = self.by_rows, self.columns
        pairs = ((rows.indptr, columns.indptr), (rows.indices, columns.indices))
        return all(np.array_equal(a, b) for a, b in pairs)


class Graph:
    """The pattern of a graph in NumPy arrays, and the source of a search if there is one.

    Attributes
    ----------
    n, source : int
        Number of vertices, and the source of the search.
    col_ptr, row_idx : ndarray of int
        The in-neighbours of each vertex.
    unreached : int
        The level of unreached vertices in arrays, larger than any level plus one, so that an edge
        to an unreached vertex counts as too long. It never leaves this package.
    """

    def __init__(self, A: Any, source: int | None = None) -> None:
        self._pattern = A if isinstance(A, Pattern) else Pattern(A)
        self.columns = self._pattern.columns
        self.col_ptr: Array = self.columns.indptr.astype(np.int64)
        self.row_idx: Array = self.columns.indices
        self.n = len(self.col_ptr) - 1
        self.unreached = self.n + 1
        if source is None:
            return
        try:
            self.source = operator.index(source)
        except TypeError:
            raise InvalidValue(f"check: source {source!r} is not a whole number.") from None
        if not 0 <= self.source < self.n:
            raise IndexOutOfBound(f"check: source {source} is outside 0 .. {self.n - 1}.")

    def dense(self, result: Any, name: str) -> tuple[Array, Array]:
        """Return the value of each vertex, (n,), and whether the vertex has a value, (n,)."""
        vector = hasattr(result, "to_coo")
        if vector and result.size != self.n:
            raise DimensionMismatch(f"check: {name}.size {result.size} != {self.n} vertices.")
        indices, values = map(np.asarray, result.to_coo() if vector else result)
        if indices.shape != values.shape:
            raise DimensionMismatch(
                f"check: {name} has {indices.shape} indices != {values.shape} values."
            )
        if indices.size and not 0 <= indices.min() <= indices.max() < self.n:
            raise IndexOutOfBound(f"check: {name} has a vertex outside 0 .. {self.n - 1}.")
        present = np.zeros(self.n, bool)
        present[indices] = True
        if np.count_nonzero(present) != indices.size:
            raise InvalidValue(f"check: {name} has two values for one vertex.")
        dense = np.zeros(self.n, values.dtype)
        dense[indices] = values
        return dense, present

    def levels(self, levels: Any, name: str, rule: str) -> Array:
        """Return the level of each vertex, (n,), or `unreached`."""
        values, present = self.dense(levels, "levels")
        refuse(
            present & ~whole_below(values, self.n),
            f"{name}: {rule}",
            lambda v: f"level {values[v]} is not one of 0 .. {self.n - 1}",
        )
        kind = np.int32 if self.unreached < 2**31 - 1 else np.int64
        return np.where(present, values.astype(kind), self.unreached)

    def column_blocks(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (columns, entries of each column, rows of the entries), some columns at a time."""
        for j, stop in column_blocks(self.col_ptr):
            counts = np.diff(self.col_ptr[j : stop + 1])
            yield slice(j, stop), counts, self.row_idx[self.col_ptr[j] : self.col_ptr[stop]]

    def reduce_columns(self, values: Array, counts: Array, ufunc: np.ufunc, empty: Any) -> Array:
        """Return the reduction of the values of each column's entries; `empty` without entries."""
        out = np.full(len(counts), empty, values.dtype)
        filled = counts > 0
        if filled.any():
            # reduceat cannot reduce an empty run, so empty columns are left out.
            starts = (np.cumsum(counts) - counts)[filled]
            out[filled] = ufunc.reduceat(values, starts)
        return out

    def nearest(self, level: Array) -> Array:
        """Return the least level among each vertex's in-neighbours, (n,)."""
        out = np.empty_like(level)
        for columns, counts, rows in self.column_blocks():
            out[columns] = self.reduce_columns(level[rows], counts, np.minimum, self.unreached)
        return out

    def in_neighbour(self, v: int, level: Array, wanted: int) -> int:
        """Return an in-neighbour of `v` of level `wanted`."""
        rows = self.row_idx[self.col_ptr[v] : self.col_ptr[v + 1]]
        return int(rows[np.argmax(level[rows] == wanted)])

    def ends(self, *, both: bool = False) -> tuple[Array, Array]:
        """Return (begin, end) of each edge but self-loops; `both`: both ways, if not symmetric."""
        cols = np.repeat(np.arange(self.n), np.diff(self.col_ptr))
        keep = self.row_idx != cols
        begin, end = self.row_idx[keep], cols[keep]
        if not both or self._pattern.symmetric:
            return begin, end
        return np.concatenate([begin, end]), np.concatenate([end, begin])

    @property
    def by_rows(self) -> Any:
        """The pattern by rows: out-neighbours."""
        return self._pattern.by_rows

    def report(self, rules: tuple[str, ...], level: Array) -> CheckReport:
        """Return the report for proved levels."""
        reached = level < self.unreached
        entries = int(np.diff(self.by_rows.indptr)[reached].sum(dtype=np.int64))
        if self._pattern.symmetric:
            loops = sum(self._loops(reached))
            entries = (entries - loops) // 2 + loops
        depth = int(level[reached].max())
        return CheckReport(rules, int(np.count_nonzero(reached)), depth, entries)

    def _loops(self, reached: Array) -> Iterator[int]:
        for columns, counts, rows in self.column_blocks():
            vertices = np.arange(columns.start, columns.stop, dtype=rows.dtype)
            loop = rows == np.repeat(vertices, counts)
            yield int(np.count_nonzero(loop & np.repeat(reached[columns], counts)))


def refuse(bad: Array, rule: str, describe: Callable[[int], str]) -> None:
    """Raise `CheckFailed` for the first vertex that breaks a rule, if there is one.

    Parameters
    ----------
    bad : ndarray of bool, (n,)
        Which vertices break the rule.
    rule : str
        The checker and the rule.
    describe : callable
        Returns the fault of a vertex in words.
    """
    count = int(np.count_nonzero(bad))
    if count:
        v = int(np.argmax(bad))
        raise CheckFailed(f"{rule}: vertex {v}: {describe(v)} (first of {count}).")


def whole_below(values: Array, n: int) -> Array:
    """Return, for each value, whether it is a whole number ``0 .. n - 1``."""
    within = (values >= 0) & (values < n)
    return within & (np.floor(values) == values) if values.dtype.kind == "f" else within


def _columns(A: Any) -> Any:
    """Return any graph as a SciPy CSC array of ones, rows rising in each column."""
    if hasattr(A, "to_csc"):
        col_ptr, row_idx, _ = A.to_csc()
    elif hasattr(A, "tocsc"):
        columns = A.tocsc()
        col_ptr, row_idx = columns.indptr, columns.indices
    else:
        col_ptr, row_idx = A
    col_ptr, row_idx = np.asarray(col_ptr), np.asarray(row_idx)
    n = len(col_ptr) - 1
    nrows = getattr(A, "shape", (n, n))[0]
    if nrows != n:
        raise DimensionMismatch(f"check: {nrows} rows != {n} columns. Give a square matrix.")
    if row_idx.size and not 0 <= row_idx.min() <= row_idx.max() < n:
        raise IndexOutOfBound(f"check: a row of the graph is outside 0 .. {n - 1}.")
    # SciPy takes the wider of both index types.
    kind = np.int32 if max(n, row_idx.size) < 2**31 else np.int64
    arrays: Any = (np.ones(row_idx.size, np.int8), row_idx.astype(kind), col_ptr.astype(kind))
    found = sp.csc_array(arrays, shape=(n, n))
    found.sum_duplicates()
    return found
