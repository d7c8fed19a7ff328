"""The edges of a graph in slices, results as dense arrays, and the errors of checkers.

A rule is written once, as a function of some edges. Each slice applies it to its own edges; on a
grid the owner of a vertex combines what the slices found and sends it to all processes. So no
process has all edges, and all come to the same verdict.
"""

from __future__ import annotations

import functools
import operator
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NoReturn

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lagpu.backends.protocol import Parts
from lagpu.core import Matrix
from lagpu.errors import CheckFailed, DimensionMismatch, IndexOutOfBound, InvalidValue
from lagpu.host.columns import distinct, listed
from lagpu.host.memory import mapped
from lagpu.io.csc import column_blocks

__all__ = ["CheckReport", "Pattern"]

Array = np.ndarray[Any, Any]
Lookup = tuple[Array, Array]  # of each vertex: its value, and whether it has one

_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Edges:
    """The edges of k entries in some columns."""

    begin: Array  # of each edge, (k,)
    ends: Array  # the vertex of each column
    counts: Array  # the entries of each column
    values: Any  # of each edge, (k,), if the slice has values
    columns: slice
    entries: slice

    @cached_property
    def end(self) -> Array:
        """The end of each edge, (k,)."""
        return np.repeat(self.ends, self.counts)

    @cached_property
    def lengths(self) -> Array:
        """The values, or ones, (k,); integers and BOOL as INT64, so that True counts 1."""
        found = np.ones(len(self.begin), np.int64) if self.values is None else self.values
        return found if found.dtype.kind == "f" else found.astype(np.int64, copy=False)

    @property
    def weights(self) -> Array:
        """The lengths as floats, (k,)."""
        return np.ones(len(self.begin)) if self.values is None else self.lengths.astype(float)


class Slice:
    """Some of the edges of a graph of n vertices, by columns.

    Rows and columns are positions. `rows` and `cols` have the vertex at each; without these a
    position is a vertex.
    """

    def __init__(
        self, n: int, col_ptr: Array, row_idx: Array, rows: Array | None = None,
        cols: Array | None = None, values: Array | None = None,
    ) -> None:  # fmt: skip
        self._n = n
        self.col_ptr, self.row_idx, self.values = col_ptr, row_idx, values
        self._rows, self._cols = rows, cols
        self.shape = (n if rows is None else len(rows), len(col_ptr) - 1)

    @cached_property
    def _runs(self) -> list[tuple[int, int]]:
        return list(column_blocks(self.col_ptr))

    def blocks(self) -> Iterator[Edges]:
        """Yield the edges of some columns at a time."""
        return (self._edges(*run) for run in self._runs)

    def _edges(self, j: int, stop: int) -> Edges:
        within = slice(int(self.col_ptr[j]), int(self.col_ptr[stop]))
        rows = self.row_idx[within]
        values = None if self.values is None else self.values[within]
        begin = rows if self._rows is None else self._rows[rows]
        ends = np.arange(j, stop, dtype=rows.dtype) if self._cols is None else self._cols[j:stop]
        counts = np.diff(self.col_ptr[j : stop + 1])
        return Edges(begin, ends, counts, values, slice(j, stop), within)

    def at_ends(self, of: Callable[[Edges], Array], ufunc: np.ufunc, empty: Any) -> Array:
        """Return a reduction of the values that `of` gives to the edges into each column."""
        like = of(self._edges(0, 0))
        found = np.full((self.shape[1], *like.shape[1:]), empty, like.dtype)

        def reduce(block: tuple[int, int]) -> None:
            edges = self._edges(*block)
            values = of(edges)
            filled = np.flatnonzero(edges.counts)
            if len(filled):
                # reduceat cannot reduce an empty run, so empty columns are left out.
                starts = (np.cumsum(edges.counts) - edges.counts)[filled]
                found[edges.columns][filled] = ufunc.reduceat(values, starts)

        mapped(reduce, self._runs)  # each has columns of its own
        return found

    def total(self, of: Callable[[Edges], Array]) -> int:
        """Return how many edges `of` keeps."""
        return sum(mapped(lambda run: int(np.count_nonzero(of(self._edges(*run)))), self._runs))

    def along(self, of: Callable[[Edges], Array]) -> Slice:
        """Return the slice of the edges that `of` keeps, without values."""
        kept = np.concatenate([e.entries.start + np.flatnonzero(of(e)) for e in self.blocks()])
        ptr = np.searchsorted(kept, self.col_ptr)
        return Slice(self._n, ptr, self.row_idx[kept], self._rows, self._cols)

    @cached_property
    def by_rows(self) -> Any:
        """The pattern by rows, rows and columns as positions."""
        kind = np.int32 if max(*self.shape, len(self.row_idx)) < 2**31 else np.int64
        indices = (x.astype(kind, copy=False) for x in (self.row_idx, self.col_ptr))
        arrays: Any = (np.ones(len(self.row_idx), np.int8), *indices)
        return sp.csc_array(arrays, shape=self.shape).tocsr()

    @cached_property
    def reversed(self) -> Slice:
        """The same edges in the other direction; it shares memory with `by_rows`."""
        rows, values = self.by_rows, self.values
        if values is not None:
            order: Any = (np.arange(len(values)), self.row_idx, self.col_ptr)
            values = values[sp.csc_array(order, shape=self.shape).tocsr().data]
        found = Slice(self._n, rows.indptr, rows.indices, self._cols, self._rows, values)
        arrays: Any = (rows.data, self.row_idx, self.col_ptr)
        found.by_rows = sp.csr_array(arrays, shape=self.shape[::-1])
        return found

    @cached_property
    def _row_of(self) -> Array | None:
        """The position of each vertex among the rows, -1 if it has none; None: the vertex."""
        if self._rows is None:
            return None
        found = np.full(self._n, -1, np.int32 if self._n < 2**31 else np.int64)
        found[self._rows] = np.arange(len(self._rows))
        return found

    def out_of(self, vertices: Array) -> tuple[Array, Array]:
        """Return the number of edges from each of some vertices, and the ends of all."""
        here: Any = slice(None)
        if self._row_of is not None:
            here = self._row_of[vertices] >= 0
        at = vertices if self._row_of is None else self._row_of[vertices[here]]
        counts = np.zeros(len(vertices), np.int64)
        counts[here], places = listed(self.by_rows.indptr, at)
        found = self.by_rows.indices[places]
        return counts, found if self._cols is None else self._cols[found]

    def fingerprint(self, key: int) -> int:
        """Return a number that is 0 if each edge has its reverse; see `Slices.symmetric`."""

        def of(run: tuple[int, int]) -> int:
            edges = self._edges(*run)
            begin, end = (x.astype(np.uint64) for x in (edges.begin, edges.end))
            mixed = _mixed(_mixed(np.minimum(begin, end) + np.uint64(key)) + np.maximum(begin, end))
            return int(mixed[begin < end].sum()) - int(mixed[end < begin].sum())

        return sum(mapped(of, self._runs)) & _MASK

    def joined(self) -> Array:
        """Return the least vertex that these edges join with each, (n,), in any direction."""
        if self._rows is None and self._cols is None:
            ones = np.ones(len(self.row_idx), np.int8)
            reverse = sp.csr_array((ones, self.row_idx, self.col_ptr), shape=self.shape)
            return least_of(csgraph.connected_components(reverse, connection="weak")[1])
        return components(self._n, *both_ends(self))


class Slices:
    """All edges of a graph of n vertices, in one slice or in those of a grid's pieces.

    `own` has the slices of this process by the number of the piece; a slice of all edges is that
    of 0. `ends` is the dimension of the matrix that has the ends: 0, its rows, if they are
    `reversed`. Every process of the grid calls the same methods, and gets the same from them.
    """

    def __init__(
        self, n: int, own: dict[int, Slice], parts: Parts | None = None, ends: int = 1
    ) -> None:
        self.n, self.own, self.parts, self._ends = n, own, parts, ends
        self.known_symmetric: bool | None = None

    @property
    def reversed(self) -> Slices:
        """The same edges in the other direction."""
        own = {piece: of_piece.reversed for piece, of_piece in self.own.items()}
        return Slices(self.n, own, self.parts, 1 - self._ends)

    @classmethod
    def of_parts(cls, A: Any, parts: Parts, *, values: bool = False) -> Slices:
        """Return the slices of a matrix on a grid."""
        _require_square(A.nrows, A.ncols)
        kind, own = np.int32 if A.nrows < 2**31 else np.int64, {}
        for piece, (ptr, idx, found, rows, cols) in parts.columns(A.data).items():
            kept = found if values else None
            own[piece] = Slice(A.nrows, ptr, idx.astype(kind, copy=False), rows, cols, kept)
        return cls(A.nrows, own, parts)

    def at_ends(self, of: Callable[[Edges], Array], ufunc: np.ufunc, empty: Any) -> Array:
        """Return, for each vertex, the reduction of what `of` returns for the edges into it, (n,).

        That is a value, or a row of values, for each edge; any order of reduction must do. `empty`
        is the value where there is no edge, neutral in the reduction.
        """
        if self.parts is None:
            return self.own[0].at_ends(of, ufunc, empty)

        def work(_home: Any, piece: int) -> Array:
            return self.own[piece].at_ends(of, ufunc, empty)

        return self.parts.reduced(work, (self.n, self.n), self._ends, ufunc)

    def first(self, of: Callable[[Edges], Array]) -> Array:
        """Return the least begin of the edges into each vertex that `of` keeps, (n,); else n."""
        n = np.int64(self.n)
        return self.at_ends(lambda e: np.where(of(e), e.begin, n), np.minimum, n)

    def total(self, of: Callable[[Edges], Array]) -> int:
        """Return how many edges `of` keeps."""
        return sum(int(x[0]) for (x,) in self.gather(lambda own: (np.array([own.total(of)]),)))

    def along(self, of: Callable[[Edges], Array]) -> Slices:
        """Return the slices of the edges that `of` keeps, without values."""
        own = {piece: of_piece.along(of) for piece, of_piece in self.own.items()}
        return Slices(self.n, own, self.parts, self._ends)

    def hits(self, vertices: Array) -> list[tuple[Array, ...]]:
        """Return (ends, counts): how many edges of each slice lead from some vertices to others."""

        def count(own: Slice) -> tuple[Array, ...]:
            ends = own.out_of(vertices)[1]
            if len(ends) < self.n // 16:
                return np.unique(ends, return_counts=True)
            counts = np.bincount(ends, minlength=self.n)  # cheaper than sorting many
            some = np.flatnonzero(counts)
            return some, counts[some]

        return self.gather(count)

    def gather(self, work: Callable[[Slice], tuple[Array, ...]]) -> list[tuple[Array, ...]]:
        """Return the arrays that a function returns for each slice, of all processes."""
        if self.parts is None:
            return [work(self.own[0])]
        return self.parts.gather(lambda _, piece: work(self.own[piece]))

    def have(self, begin: Array, end: Array) -> Array:
        """Return which of some edges, a few of all, are there."""

        def look(own: Slice) -> tuple[Array, ...]:
            counts, ends = own.out_of(begin)
            which = np.repeat(np.arange(len(begin)), counts)
            found = np.zeros(len(begin), bool)
            found[which[ends == end[which]]] = True
            return (found,)

        return np.asarray(np.logical_or.reduce([found for (found,) in self.gather(look)]))

    def search(self, sources: Array) -> Array:
        """Return the distance from the nearest of some sources, (n,); n + 1 if there is no path."""
        # A plain breadth-first search, which shares nothing with those that are checked.
        unreached = self.n + 1
        level = np.full(self.n, unreached, np.int32 if unreached < 2**31 - 1 else np.int64)
        frontier, depth = distinct(sources), 0
        level[frontier] = depth

        def further(own: Slice) -> tuple[Array, ...]:
            ends = own.out_of(frontier)[1]
            return (self._once(ends[level[ends] == unreached]),)

        while frontier.size:
            depth += 1
            new = [ends for (ends,) in self.gather(further)]
            frontier = self._once(np.concatenate(new)) if len(new) > 1 else new[0]
            level[frontier] = depth
        return level

    def lengths_from(self, source: int) -> Lookup:
        """Return the lengths of shortest paths from a vertex, (n,), and where there is one."""
        # Whole ones are INT64, which FP64 would round, and the largest where there is none.
        lengths = next(iter(self.own.values())).values
        whole = lengths is not None and lengths.dtype.kind != "f"
        far: Any = np.iinfo(np.int64).max if whole else np.inf
        found = self.relaxed(np.where(np.arange(self.n) == source, type(far)(0), far), far)
        return found, found < far

    def relaxed(self, distance: Array, far: Any = np.inf) -> Array:
        """Return distances, `far` where there is none, after up to n rounds over all edges."""

        def through(e: Edges) -> Array:
            near = distance[e.begin]
            if distance.dtype.kind == "f":
                return np.asarray(near + e.lengths)
            fits = near < far - np.maximum(e.lengths, 0)  # so that no sum wraps
            return np.where(fits, np.where(fits, near, 0) + e.lengths, far)

        for _ in range(self.n):
            further = np.minimum(distance, self.at_ends(through, np.minimum, far))
            if np.array_equal(further, distance):
                break
            distance = further
        return distance

    def joined(self) -> Array:
        """Return the least vertex of each vertex's weak component, (n,)."""
        # SciPy finds the components of each slice, and then of the stars that these leave.
        if self.parts is None:
            return self.own[0].joined()
        label, nothing = np.arange(self.n), np.zeros(0, np.int64)

        def star(own: Slice, number: int) -> tuple[Array, ...]:
            if own is not self.own.get(number):
                return nothing, nothing
            least = own.joined()
            leaves = np.flatnonzero(least != np.arange(self.n))
            return leaves, least[leaves]

        for number in range(self.parts.count):
            for leaves, centres in self.gather(functools.partial(star, number=number)):
                if len(leaves):  # one slice at a time: no piece holds those of all
                    begin = np.concatenate([leaves, np.arange(self.n)])
                    label = components(self.n, begin, np.concatenate([centres, label]))
        return label

    def _once(self, vertices: Array) -> Array:
        """Return each vertex once, rising; a scan of all is cheaper than sorting many."""
        if len(vertices) < self.n // 16:
            return np.asarray(distinct(vertices))
        marked = np.zeros(self.n, bool)
        marked[vertices] = True
        return np.flatnonzero(marked)

    @property
    def symmetric(self) -> bool:
        """Whether each edge is there in both directions.

        Edges up less edges down, each pair of vertices as a number that looks random, are 0 modulo
        2**64; with other edges they are so with a chance of about 2**-64, since the numbers differ
        from call to call. No edge is there twice.
        Source: Clarke and others 2003 (sums of hashes as fingerprints of multisets).
        """
        if self.known_symmetric is None:
            keys = self.gather(lambda _: (np.array([secrets.randbits(64)], np.uint64),))
            key = int(keys[0][0][0])  # of one process, so that all have the same
            each = self.gather(lambda own: (np.array([own.fingerprint(key)], np.uint64),))
            self.known_symmetric = sum(int(x[0]) for (x,) in each) & _MASK == 0
        return self.known_symmetric


def _mixed(x: Array) -> Array:
    """Return 64 bits that look random for each of some numbers."""
    # Source: Steele, Lea and Flood 2014 (the finalizer of SplitMix64).
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ x >> np.uint64(31))


def least_of(labels: Array) -> Array:
    """Return for each vertex the least vertex with the same label, a number below n, (n,)."""
    least, each = np.zeros(len(labels), np.int64), np.arange(len(labels))
    least[labels[::-1]] = each[::-1]  # the last of several stays
    return least[labels]


def components(
    n: int, begin: Array, end: Array, connection: Literal["weak", "strong"] = "weak"
) -> Array:
    """Return the least vertex of each vertex's component, weak or strong, by SciPy, (n,)."""
    pattern = sp.csr_array((np.ones(len(begin), np.int8), (begin, end)), shape=(n, n))
    return least_of(csgraph.connected_components(pattern, connection=connection)[1])


def climbed(xp: Any, parents: Any) -> tuple[Any, Any]:
    """Return the depth and the root of each vertex of a forest by pointer doubling.

    A root is its own parent. The root returned for a cycle is not its own parent.
    """
    jump, depth = parents, (parents != xp.arange(len(parents))).astype(np.int32)
    for _ in range(len(parents).bit_length()):
        further = jump[jump]
        if bool((further == jump).all()):
            break
        depth += depth[jump]
        jump = further
    return depth, jump


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
    """A graph prepared once for many checks; each check accepts it as its graph.

    `A` is a graph, (n, n), see `lagpu.check`; on a grid each piece keeps the pattern of its part on
    the host. If `symmetric` is given it is believed; by default the edges are compared with their
    reverses when a check needs to know, which takes longer than a check. `n` is the number of
    vertices, and `slices` has the edges: in one slice, or on each piece of a grid its own.
    `DimensionMismatch` or `IndexOutOfBound` if the graph is not square, or a row is outside.
    """

    def __init__(self, A: Any, symmetric: bool | None = None) -> None:
        self.slices = _slices(A)
        self.slices.known_symmetric = symmetric
        self.n = self.slices.n

    @property
    def symmetric(self) -> bool:
        """Whether the pattern is that of an undirected graph."""
        return self.slices.symmetric


class Proof:
    """The rules of a checker, and the graph of n vertices for which a result must obey them.

    `unreached` is the level of unreached vertices in arrays, larger than any level plus one, so
    that an edge to an unreached vertex counts as too long. It never leaves this package. With
    `values` the edges have their lengths.
    """

    def __init__(
        self, name: str, rules: tuple[str, ...], A: Any, source: Any = ..., *,
        values: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.rules = name, rules
        self.edges = A.slices if isinstance(A, Pattern) and not values else _slices(A, values)
        self.n = self.edges.n
        self.unreached = self.n + 1
        if source is ...:
            return
        try:
            self.source = operator.index(source)
        except TypeError:
            raise InvalidValue(f"check: source {source!r} is not a whole number.") from None
        if not 0 <= self.source < self.n:
            raise IndexOutOfBound(f"check: source {source} is outside 0 .. {self.n - 1}.")

    def require_undirected(self) -> None:
        """Raise `InvalidValue` if the graph is directed."""
        if not self.edges.symmetric:
            raise InvalidValue(f"{self.name}: the graph is directed. Give the undirected one.")

    def matrix(self) -> sp.csr_array:
        """Return all edges with their values, or ones, (n, n): each process collects them."""

        def own(part: Slice) -> tuple[Array, ...]:
            values = np.concatenate([e.lengths for e in part.blocks()])
            return *both_ends(part), values.astype(float) if values.dtype.kind == "f" else values

        begin, end, values = map(np.concatenate, zip(*self.edges.gather(own), strict=True))
        return sp.csr_array((values, (begin, end)), shape=(self.n, self.n))

    def near(self) -> list[set[int]]:
        """Return the ends of the edges from each vertex to others, of all edges."""
        rows = self.matrix()
        ends = np.split(rows.indices, rows.indptr[1:-1])
        return [{*some.tolist()} - {v} for v, some in enumerate(ends[: self.n])]

    @property
    def ways(self) -> list[Slices]:
        """The edges and, if the graph is directed, the same edges reversed."""
        return [self.edges] if self.edges.symmetric else [self.edges, self.edges.reversed]

    def fail(self, rule: int, fault: str) -> NoReturn:
        """Raise `CheckFailed` for a broken rule."""
        raise CheckFailed(f"{self.name}: {self.rules[rule]}: {fault}.")

    def require(self, rule: int, holds: Any, fault: str) -> tuple[str, ...]:
        """Return all rules, or raise `CheckFailed` if one does not hold."""
        if not holds:
            self.fail(rule, fault)
        return self.rules

    def refuse(
        self, rule: int, bad: Array, describe: Callable[[int], str],
        place: Callable[[int], str] = "vertex {}".format,
    ) -> tuple[str, ...]:  # fmt: skip
        """Return all rules, or raise `CheckFailed` for the first vertex that breaks one."""
        # `bad` says which vertices do, (n,); `describe` returns the fault of a vertex in words.
        count = int(np.count_nonzero(bad))
        if count:
            v = int(np.argmax(bad))
            self.fail(rule, f"{place(v)}: {describe(v)} (first of {count})")
        return self.rules

    def vertices(self, given: Any, what: str) -> Array:
        """Return a list of vertices as an array, or raise."""
        found = np.asarray(given)
        if found.dtype.kind not in "iu" and found.size:
            raise InvalidValue(f"{self.name}: {given} are not whole numbers.")
        found = found.astype(np.int64)
        if found.size and not 0 <= found.min() <= found.max() < self.n:
            raise IndexOutOfBound(f"{self.name}: {what} 0 .. {self.n - 1}.")
        return found

    def are_vertices(self, values: Array, below: int | None = None) -> Array:
        """Return, for each value, whether it is a vertex: a whole number ``0 .. below - 1``."""
        within = (values >= 0) & (values < (self.n if below is None else below))
        return within & (np.floor(values) == values) if values.dtype.kind == "f" else within

    def dense(self, result: Any, name: str) -> tuple[Array, Array]:
        """Return the value of each vertex, (n,), and whether the vertex has a value, (n,)."""
        vector = hasattr(result, "to_coo")
        pair = result.to_coo() if vector else result
        if not _is_pair(pair) or any(np.ndim(x) != 1 for x in pair):
            raise InvalidValue(
                f"check: {name} is of type {type(result).__name__}. "
                "Give a Vector, or a pair (indices, values) of arrays, (k,)."
            )
        if vector and result.size != self.n:
            raise DimensionMismatch(f"check: {name}.size {result.size} != {self.n} vertices.")
        indices, values = map(np.asarray, pair)
        if indices.shape != values.shape:
            raise DimensionMismatch(
                f"check: {name} has {indices.shape} indices != {values.shape} values."
            )
        if values.dtype.kind not in "biufO":
            raise InvalidValue(
                f"check: {name} has values of type {values.dtype}, not real numbers."
            )
        indices = self.vertices(indices, f"{name} has a vertex outside")
        present = np.zeros(self.n, bool)
        present[indices] = True
        if np.count_nonzero(present) != indices.size:
            raise InvalidValue(f"check: {name} has two values for one vertex.")
        dense = np.zeros(self.n, values.dtype)
        dense[indices] = values
        return dense, present

    def full(
        self, result: Any, name: str, word: str, valid: Callable[[Array], Array] | None = None,
        rule: int = 0,
    ) -> Array:  # fmt: skip
        """Return the value of each vertex, (n,); every vertex must have a valid one."""
        values, present = self.dense(result, name)
        bad = ~present if valid is None else ~(present & valid(values))
        self.refuse(rule, bad, lambda v: f"{word} {values[v]}" if present[v] else f"no {word}")
        return values

    def members(self, result: Any) -> Array:
        """Return which vertices have an entry, (n,); none may be False."""
        values, present = self.dense(result, "members")
        if values.dtype == bool:
            self.refuse(0, present & ~values, lambda v: "its entry is False")
        return present

    def whole(self, result: Any, name: str, word: str, below: int) -> Array:
        """Return the whole number ``0 .. below - 1`` that each vertex must have, (n,), INT64."""
        return self.full(result, name, word, lambda x: self.are_vertices(x, below)).astype(np.int64)

    def at_source(self, result: Any, name: str, word: str, wanted: int, rule: int = 0) -> Lookup:
        """Return `dense` of a result, which must have the wanted value at the source."""
        values, present = self.dense(result, name)
        if not present[self.source] or values[self.source] != wanted:
            value = values[self.source] if present[self.source] else "none"
            self.fail(rule, f"{word}[{self.source}] is {value}, not {wanted}")
        return values, present

    def levels(self, levels: Any, rule: int) -> Array:
        """Return the level of each vertex, (n,), or `unreached`."""
        values, present = self.dense(levels, "levels")
        odd = present & ~self.are_vertices(values)
        self.refuse(rule, odd, lambda v: f"level {values[v]} is not one of 0 .. {self.n - 1}")
        kind = np.int32 if self.unreached < 2**31 - 1 else np.int64
        return np.where(present, values.astype(kind), self.unreached)

    def nearest(self, level: Array) -> Array:
        """Return the least level among each vertex's in-neighbours, (n,)."""
        return self.edges.at_ends(lambda e: level[e.begin], np.minimum, self.unreached)

    def neighbours(self, of: Callable[[Array, Array], Array]) -> Array:
        """Return how many others edges join to each vertex, (n,); both ways if directed."""
        # ``of(own, other)`` says which edges count; self-loops never do.

        def counted(e: Edges) -> Array:
            return np.asarray(of(e.end, e.begin) & (e.begin != e.end), np.int64)

        return np.asarray(sum(way.at_ends(counted, np.add, 0) for way in self.ways))

    def report(self, level: Array) -> CheckReport:
        """Return the report for proved levels."""
        reached = level < self.unreached
        entries = self.edges.total(lambda e: reached[e.begin])
        if self.edges.symmetric:
            loops = self.edges.total(lambda e: reached[e.begin] & (e.begin == e.end))
            entries = (entries - loops) // 2 + loops
        depth = int(level[reached].max())
        return CheckReport(self.rules, int(np.count_nonzero(reached)), depth, entries)


def both_ends(edges: Slice) -> tuple[Array, Array]:
    """Return (begin, end) of all edges of a slice, both INT64."""
    each = [(e.begin.astype(np.int64), e.end.astype(np.int64)) for e in edges.blocks()]
    begin, end = map(np.concatenate, zip(*each, strict=True))
    return begin, end


def _is_pair(x: Any) -> bool:
    return isinstance(x, (tuple, list)) and len(x) == 2


def _require_square(nrows: int, n: int) -> None:
    if nrows != n:
        raise DimensionMismatch(f"check: {nrows} rows != {n} columns. Give a square matrix.")


def _slices(A: Any, values: bool = False) -> Slices:
    """Return the edges of any graph, with or without their values, rows rising in each column."""
    own = isinstance(A, Matrix)  # so its arrays are copies
    if own and A.backend.capabilities.parts is not None:
        return Slices.of_parts(A, A.backend.capabilities.parts, values=values)
    data: Any = None
    if own and not values:
        col_ptr, row_idx, _ = A._flushed().matrix_to_csc(A.data, narrow=True)
    elif hasattr(A, "to_csc"):
        col_ptr, row_idx, data = A.to_csc()
    elif hasattr(A, "tocsc"):
        columns = A.tocsc()
        col_ptr, row_idx, data = columns.indptr, columns.indices, columns.data
    elif _is_pair(A):
        col_ptr, row_idx = A
    else:
        raise InvalidValue(
            f"check: the graph is of type {type(A).__name__}. "
            "Give a Matrix, a SciPy sparse array, or a pair (col_ptr, row_idx)."
        )
    col_ptr, row_idx = np.asarray(col_ptr), np.asarray(row_idx)
    n = len(col_ptr) - 1
    _require_square(getattr(A, "shape", (n, n))[0], n)
    if row_idx.size and not 0 <= row_idx.min() <= row_idx.max() < n:
        raise IndexOutOfBound(f"check: a row of the graph is outside 0 .. {n - 1}.")
    # SciPy takes the wider of both index types.
    kind = np.int32 if max(n, row_idx.size) < 2**31 else np.int64
    row_idx, col_ptr = (x.astype(kind, copy=not own) for x in (row_idx, col_ptr))
    data = np.array(data, copy=not own) if values else np.ones(row_idx.size, np.int8)
    arrays: Any = (data, row_idx, col_ptr)
    found = sp.csc_array(arrays, shape=(n, n))
    if not own:  # a matrix has each entry once
        found.sum_duplicates()
    lengths = found.data if values else None
    return Slices(n, {0: Slice(n, found.indptr.astype(np.int64), found.indices, values=lengths)})
