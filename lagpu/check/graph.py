"""Tools of all checkers: the edges of a graph, results as dense arrays, errors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu.check.slices import Slice, Slices
from lagpu.core.matrix import Matrix
from lagpu.errors import CheckFailed, DimensionMismatch, IndexOutOfBound, InvalidValue

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

    On a grid each piece keeps the pattern of its part on the host.

    Parameters
    ----------
    A : graph, (n, n)
        See `lagpu.check`.
    symmetric : bool, optional
        Whether each edge has its reverse, which is believed: it only decides how reports count
        edges. By default the pattern is compared with its transpose, which takes longer than a
        check.

    Attributes
    ----------
    n : int
        Number of vertices.

    Raises
    ------
    DimensionMismatch, IndexOutOfBound
        If the graph is not square, or a row is outside.
    """

    def __init__(self, A: Any, symmetric: bool | None = None) -> None:
        self._known = symmetric
        self._matrix, self._parts = A, _parts_of(A)
        self._slices: Slices | None = None
        if self._parts is None:
            self.n = int(self.columns.shape[0])
            self._matrix = None  # nothing else is asked of it
        else:
            _require_square(A.nrows, A.ncols)
            self.n = A.nrows

    @cached_property
    def columns(self) -> Any:
        """The whole graph as a csc_array of int8: a one for each entry, rows rising."""
        return _columns(self._matrix)

    @property
    def slices(self) -> Slices:
        """The edges: in one slice, or on each piece of a grid its own."""
        if self._slices is None:  # no cached_property: its lock would be held as processes meet
            if self._parts is not None:
                self._slices = Slices.of_parts(self._matrix, self._parts)
            else:
                columns = self.columns
                whole = Slice(self.n, columns.indptr.astype(np.int64), columns.indices)
                self._slices = Slices(self.n, {0: whole})
        return self._slices

    @property
    def symmetric(self) -> bool:
        """Whether the pattern is that of an undirected graph."""
        return self.slices.symmetric if self._known is None else self._known


class Graph:
    """The pattern of a graph of n vertices, and the source of a search if there is one.

    `unreached` is the level of unreached vertices in arrays, larger than any level plus one, so
    that an edge to an unreached vertex counts as too long. It never leaves this package.
    """

    def __init__(self, A: Any, source: int | None = None) -> None:
        self._pattern = A if isinstance(A, Pattern) else Pattern(A)
        self.n = self._pattern.n
        self.unreached = self.n + 1
        if source is None:
            return
        try:
            self.source = operator.index(source)
        except TypeError:
            raise InvalidValue(f"check: source {source!r} is not a whole number.") from None
        if not 0 <= self.source < self.n:
            raise IndexOutOfBound(f"check: source {source} is outside 0 .. {self.n - 1}.")

    @property
    def edges(self) -> Slices:
        """The edges."""
        return self._pattern.slices

    @property
    def symmetric(self) -> bool:
        """Whether the pattern is that of an undirected graph."""
        return self._pattern.symmetric

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

    def whole(self, result: Any, name: str, word: str, below: int, rule: str) -> Array:
        """Return the whole number ``0 .. below - 1`` that each vertex must have, (n,), INT64."""
        values, present = self.dense(result, name)
        refuse(
            ~present | ~whole_below(values, below),
            rule,
            lambda v: f"{word} {values[v]}" if present[v] else f"no {word}",
        )
        return values.astype(np.int64)

    def require_at_source(self, found: tuple[Array, Array], wanted: int, rule: str) -> None:
        """Raise unless the values of `dense` have the wanted one at the source."""
        values, present = found
        if not present[self.source] or values[self.source] != wanted:
            value = values[self.source] if present[self.source] else "none"
            raise CheckFailed(f"{rule}[{self.source}] is {value}, not {wanted}.")

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

    def nearest(self, level: Array) -> Array:
        """Return the least level among each vertex's in-neighbours, (n,)."""
        return self.edges.at_ends(lambda e: level[e.begin], np.minimum, self.unreached)

    def neighbours(self, of: Callable[[Array, Array], Array]) -> Array:
        """Return with how many others an edge joins each vertex, (n,); both ways if directed.

        ``of(own, other)`` says of which edges this counts; self-loops never do.
        """

        def counted(own: Array, other: Array) -> Array:
            found: Array = of(own, other) & (own != other)
            return found.astype(np.int64)

        found = self.edges.at_ends(lambda e: counted(e.end, e.begin), np.add, 0)
        if not self.symmetric:
            found += self.edges.at_begins(lambda e: counted(e.begin, e.end), np.add, 0)
        return found

    def report(self, rules: tuple[str, ...], level: Array) -> CheckReport:
        """Return the report for proved levels."""
        reached = level < self.unreached
        entries = self.edges.total(lambda e: reached[e.begin])
        if self.symmetric:
            loops = self.edges.total(lambda e: reached[e.begin] & (e.begin == e.end))
            entries = (entries - loops) // 2 + loops
        depth = int(level[reached].max())
        return CheckReport(rules, int(np.count_nonzero(reached)), depth, entries)


def refuse(bad: Array, rule: str, describe: Callable[[int], str]) -> None:
    """Raise `CheckFailed` for the first vertex that breaks a rule, if there is one.

    `bad` says which vertices do, (n,); `rule` names the checker too; `describe` returns the fault
    of a vertex in words.
    """
    count = int(np.count_nonzero(bad))
    if count:
        v = int(np.argmax(bad))
        raise CheckFailed(f"{rule}: vertex {v}: {describe(v)} (first of {count}).")


def whole_below(values: Array, n: int) -> Array:
    """Return, for each value, whether it is a whole number ``0 .. n - 1``."""
    within = (values >= 0) & (values < n)
    return within & (np.floor(values) == values) if values.dtype.kind == "f" else within


def both_ends(edges: Slice) -> tuple[Array, Array]:
    """Return (begin, end) of all edges of a slice, both INT64."""
    each = [(e.begin.astype(np.int64), e.end.astype(np.int64)) for _, _, e in edges.blocks()]
    begin, end = map(np.concatenate, zip(*each, strict=True))
    return begin, end


def weighted(A: Any) -> Slices:
    """Return the edges of a graph with their values."""
    parts = _parts_of(A)
    if parts is not None:
        return Slices.of_parts(A, parts, values=True)
    if hasattr(A, "to_csc"):
        col_ptr, row_idx, values = A.to_csc()
    else:
        entries = sp.coo_array(A)
        order = np.lexsort((entries.row, entries.col))
        row_idx, values = entries.row[order], entries.data[order]
        col_ptr = np.zeros(entries.shape[1] + 1, np.int64)
        np.cumsum(np.bincount(entries.col, minlength=entries.shape[1]), out=col_ptr[1:])
    n = len(col_ptr) - 1
    return Slices(n, {0: Slice(n, col_ptr, row_idx, values=values)})


def _parts_of(A: Any) -> Any:
    """Return what a grid does piece by piece, if it has the graph."""
    return A.backend.capabilities.parts if isinstance(A, Matrix) else None


def _require_square(nrows: int, n: int) -> None:
    if nrows != n:
        raise DimensionMismatch(f"check: {nrows} rows != {n} columns. Give a square matrix.")


def _columns(A: Any) -> Any:
    """Return any graph as a SciPy CSC array of ones, rows rising in each column."""
    own = isinstance(A, Matrix)  # so its arrays are copies
    if own:
        col_ptr, row_idx, _ = A._flushed().matrix_to_csc(A.data, narrow=True)
    elif hasattr(A, "to_csc"):
        col_ptr, row_idx, _ = A.to_csc()
    elif hasattr(A, "tocsc"):
        columns = A.tocsc()
        col_ptr, row_idx = columns.indptr, columns.indices
    else:
        col_ptr, row_idx = A
    col_ptr, row_idx = np.asarray(col_ptr), np.asarray(row_idx)
    n = len(col_ptr) - 1
    _require_square(getattr(A, "shape", (n, n))[0], n)
    if row_idx.size and not 0 <= row_idx.min() <= row_idx.max() < n:
        raise IndexOutOfBound(f"check: a row of the graph is outside 0 .. {n - 1}.")
    # SciPy takes the wider of both index types.
    kind = np.int32 if max(n, row_idx.size) < 2**31 else np.int64
    row_idx, col_ptr = (x.astype(kind, copy=not own) for x in (row_idx, col_ptr))
    arrays: Any = (np.ones(row_idx.size, np.int8), row_idx, col_ptr)
    found = sp.csc_array(arrays, shape=(n, n))
    if not own:  # a matrix has each entry once
        found.sum_duplicates()
    return found
