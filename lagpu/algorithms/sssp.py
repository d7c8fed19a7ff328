"""Shortest paths over weights: lengths and the paths themselves."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms import inputs
from lagpu.algorithms.bfs import bfs_levels, bfs_parents
from lagpu.algorithms.structure import cycle_of
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.arguments import index_array
from lagpu.dtypes import BOOL, FP64, INT64, DType
from lagpu.errors import CycleFound, InvalidValue, NoPath
from lagpu.loops.loop import loop

__all__ = [
    "bellman_ford", "delta_stepping", "find_negative_cycle", "floyd_warshall", "has_path",
    "path_weight", "shortest_path", "sssp", "sssp_parents",
]  # fmt: skip

_WITHOUT = "Use bellman_ford without a limit."
_WIDTH = 8  # default delta, in units of the largest weight over the mean degree


def sssp(
    A: Matrix, source: Any, *, delta: float | None = None, limit: float | None = None,
    target: Any = None,
) -> Vector:  # fmt: skip
    """Return each vertex's distance from `source`: single-source shortest paths over weights.

    Parameters
    ----------
    A, source, limit, target
        As in `bellman_ford`.
    delta : float, optional
        Step of `delta_stepping`, which takes no limit and no target; by default the algorithm is
        `bellman_ford`.

    Returns
    -------
    Vector, (n,), INT64, or FP64 if the weights are floats
        As `bellman_ford` returns it.

    Raises
    ------
    CycleFound, InvalidValue
        As `bellman_ford` and `delta_stepping`.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 5, 2], nrows=3, backend="cpu")
    >>> sssp(A, 0).to_dense().tolist()
    [0, 1, 3]
    """
    if delta is None:
        return bellman_ford(A, source, limit=limit, target=target)
    if limit is not None or target is not None:
        raise InvalidValue("sssp: delta-stepping has no limit and no target. Leave out delta.")
    return delta_stepping(A, source, delta)


def bellman_ford(
    A: Matrix, source: Any, *, limit: float | None = None, target: Any = None
) -> Vector:
    """Return each vertex's distance from `source`; weights may be negative, but not cycles.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) is the length of the edge i -> j; True counts 1.
    source : int or list of int
        Vertices ``0 .. n-1``; the distance from several is that from the nearest of them.
    limit : float, optional
        Largest distance, 0 or more, of lengths of 0 or more: the search goes no farther.
    target : int or list of int, optional
        The search of lengths of 0 or more goes no farther than the nearest of these vertices.

    Returns
    -------
    Vector, (n,), INT64, or FP64 if the weights are floats
        0 at the source; a vertex that cannot be reached, or is beyond the limit or farther than the
        target, has no entry.

    Raises
    ------
    CycleFound
        If a cycle of negative length can be reached, or a cycle that rounding makes negative; the
        error has the vertices as ``cycle``.
    InvalidValue
        If a weight is NaN or infinite, integer lengths may exceed 64 bits, or there is a limit or a
        target and a weight is negative.

    Notes
    -----
    One product for each edge of the shortest path that has most edges, and two more, at most n + 1.
    A distance beyond 1.8e308 is infinite. Rounding may make a cycle of length zero negative: an
    error says so, or the distances converge to a few roundings below the lengths of the shortest
    paths. Source: Bellman 1958; Ford 1956; Kepner and Gilbert 2011, chapter 5.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 2], [1, 2, 1], [4, 5, -2], ncols=3, backend="cpu")
    >>> bellman_ford(A, 0).to_dense().tolist()
    [0, 3, 5]
    """
    sources = inputs.source_vertices(A, source, "source")
    goals = [] if target is None else inputs.source_vertices(A, target, "target")
    A = lengths_of(A, "bellman_ford")
    kind = FP64 if A.dtype.is_float else INT64
    distances = Vector(kind, A.nrows, like=A, name="distances")
    nearer = Vector(kind, A.nrows, like=A, name="nearer")
    worse = Vector(BOOL, A.nrows, like=A, name="worse")
    nearer[sources] = 0
    if goals or limit not in (None, math.inf):
        most = _most(A, kind, math.inf if limit is None else limit)
        ahead = Vector.from_coo(goals, most.value, kind, size=A.nrows, like=A, name="ahead")
        for _ in loop(until_empty=nearer):
            nearer(~worse.V, replace=True) << nearer
            nearer << nearer.select("valuele", most)
            distances(nearer.S) << nearer
            ahead(ahead.S, accum=binary.min) << distances
            most(accum=binary.min) << ahead.reduce("min")
            nearer << semiring.min_plus(nearer @ A)
            worse << nearer.ewise_mult(distances, binary.ge)
        distances << distances.select("valuele", most)
        return distances
    for _ in loop(until_empty=nearer, times=A.nrows + 1):
        nearer(~worse.V, replace=True) << nearer
        distances(nearer.S) << nearer
        nearer << semiring.min_plus(nearer @ A)
        worse << nearer.ewise_mult(distances, binary.ge)
    if nearer.nvals:  # no shortest path has n edges
        converged, cycle = _relax_further(A, distances)
        if cycle:
            raise CycleFound(_cycle_message(A, cycle), cycle)
        distances(distances.S) << Vector.from_dense(converged, like=A)
    return distances


def delta_stepping(A: Matrix, source: Any, delta: float | None = None) -> Vector:
    """Return each vertex's distance from `source`, the nearest vertices first.

    Parameters
    ----------
    A, source
        As in `bellman_ford`, but lengths are 0 or more.
    delta : float, optional
        Vertices whose distances differ by at most `delta` are relaxed together; by default eight
        times the largest weight over the mean degree (docs/design/algorithms.md).

    Returns
    -------
    Vector, (n,), INT64, or FP64 if the weights are floats
        0 at the source; a vertex that cannot be reached has no entry.

    Raises
    ------
    InvalidValue
        If a weight is negative, NaN or infinite, or integer lengths may exceed 64 bits.

    Notes
    -----
    A vertex whose distance decreases is relaxed again, over all its edges: to separate short from
    long edges, as Meyer and Sanders do, would take nested loops and a second matrix. A small step
    relaxes fewer edges, a large one takes fewer products; `bellman_ford` is an infinite step.
    Source: Meyer and Sanders 2003; Dong et al. 2021 (edges not separated).

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 5, 2], nrows=3, backend="cpu")
    >>> delta_stepping(A, 0, delta=2).to_dense().tolist()
    [0, 1, 3]
    """
    sources = inputs.source_vertices(A, source, "source")
    A = lengths_of(A, "delta_stepping")
    inputs.require_no_negative(A, "delta_stepping", _WITHOUT)
    delta = _step(A, delta)
    kind = FP64 if A.dtype.is_float else INT64
    distances = Vector(kind, A.nrows, like=A, name="distances")
    waiting = Vector(kind, A.nrows, like=A, name="waiting")
    nearer = Vector(kind, A.nrows, like=A, name="nearer")
    worse = Vector(BOOL, A.nrows, like=A, name="worse")
    limit = Scalar(kind, name="limit")
    distances[sources] = 0
    waiting[sources] = 0
    for _ in loop(until_empty=waiting):
        limit << waiting.reduce("min")
        limit(accum=binary.plus) << delta
        nearer << waiting.select("valuele", limit)
        waiting(~nearer.S, replace=True) << waiting
        nearer << semiring.min_plus(nearer @ A)
        worse << nearer.ewise_mult(distances, binary.ge)
        nearer(~worse.V, replace=True) << nearer
        distances(nearer.S) << nearer
        waiting(nearer.S) << nearer
    return distances


# ---- trees of shortest paths: a breadth-first search along edges that shortest paths may take
#
# Edge (i, j) is tight if ``d(i) + A(i, j) = d(j)``, by outer products under the mask of the edges::
#
#     T = (d (first) d')<s(A)> + A == (d (second) d')<s(A)>
#
# A search of T visits a vertex once, so edges of length 0 close no cycle of parents.
def sssp_parents(
    A: Matrix, source: Any, *, delta: float | None = None, limit: float | None = None,
    target: Any = None,
) -> tuple[Vector, Vector]:  # fmt: skip
    """Return distances and parents of a tree of shortest paths from `source` over the weights.

    Parameters
    ----------
    A, source, delta, limit, target
        As in `sssp`.

    Returns
    -------
    distances : Vector, (n,), INT64, or FP64 if the weights are floats
        As `sssp` returns it.
    parents : Vector, (n,), INT32, or INT64 if n > 2**31
        The vertex before each vertex, on a shortest path that has fewest edges; a source is its own
        parent. Exactly the vertices with a distance have one.

    Raises
    ------
    CycleFound
        As `sssp`.
    InvalidValue
        As `sssp`; or if negative lengths are rounded so that no path is as long as its distance.

    Notes
    -----
    After `sssp`, three operations on the edges and a breadth-first search, one kernel on
    `gpu` and `sim`: O(m) work and memory for m edges. Float distances are rounded
    sums from the source on, so an edge of a shortest path is found exactly.
    Source: Gallo and Pallottino 1986 (optimality); Davis, SuiteSparse:GraphBLAS, any_secondi.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 5, 2], nrows=3, backend="cpu")
    >>> distances, parents = sssp_parents(A, 0)
    >>> distances.to_dense().tolist(), parents.to_dense().tolist()
    ([0, 1, 3], [0, 0, 1])
    """
    distances = sssp(A, source, delta=delta, limit=limit, target=target)
    sources = inputs.source_vertices(A, source, "source")
    T = tight_edges(lengths_of(A, "sssp"), distances)
    parents = Vector(inputs.index_type(A), A.nrows, like=A, name="parents")
    frontier = Vector.from_coo(
        sources, sources, parents.dtype, size=A.nrows, like=A, name="frontier"
    )
    for _ in loop(until_empty=frontier):
        parents(frontier.S) << frontier
        frontier(~parents.S, replace=True) << semiring.any_secondi(frontier @ T)
    if parents.nvals < distances.nvals:
        v = int(distances.apply("one").new(mask=~parents.S).to_coo()[0][0])
        raise InvalidValue(
            f"sssp_parents: rounded lengths, some negative, leave no path to vertex "
            f"{v} that is as long as its distance. Give integer lengths."
        )
    return distances, parents


def tight_edges(A: Matrix, distances: Vector) -> Matrix:
    """Return True for each edge on a shortest path: its length is the distances' difference.

    Vertices without a distance get numbers that no sum equals: products with full diagonals are
    fastest. See `lengths_of`: distances and their sums with a length are below 2**62.
    """
    far = math.nan if distances.dtype.is_float else 2**62
    tails = Vector.from_scalar(far, A.nrows, distances.dtype, like=A, name="tails")
    heads = Vector.from_scalar(-far, A.nrows, distances.dtype, like=A, name="heads")
    tails(distances.S) << distances
    heads(distances.S) << distances
    through = tails.ewise_mult(A, binary.plus).new(name="through")
    tight = through.ewise_mult(heads, binary.eq).new(BOOL, name="tight")
    return tight.select("valueeq", True).new(name="T")


def path_weight(A: Matrix, path: Any) -> int | float:
    """Return the length of a path over the weights of `A`.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) is the length of the edge i -> j; True counts 1.
    path : list of int
        Vertices, each joined to the next one; a vertex and an edge may occur again.

    Returns
    -------
    int, or float if the weights are floats
        The sum from the first edge to the last one, rounded as in `sssp`; 0 for fewer than two
        vertices.

    Raises
    ------
    NoPath
        If there is no edge between two consecutive vertices.

    Notes
    -----
    One copy of the path's entries of `A`.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 5, 2], nrows=3, backend="cpu")
    >>> path_weight(A, [0, 1, 2])
    3
    """
    inputs.require_square(A)
    chosen = index_array(path, A.nrows, "path_weight: path", from_end=False)
    steps = list(itertools.pairwise(range(A.nrows) if chosen is None else chosen.tolist()))
    total: int | float = 0.0 if A.dtype.is_float else 0
    if not steps:
        return total
    begin, end = zip(*set(steps), strict=True)
    taken = Matrix.from_coo(begin, end, True, BOOL, nrows=A.nrows, ncols=A.nrows, like=A)
    lengths = A.ewise_mult(taken, binary.first).new()
    found = lengths.to_dicts()
    for u, v in steps:
        if v not in found.get(u, ()):
            raise NoPath(f"path_weight: there is no edge {u} -> {v}.")
        total += found[u][v]
    return total


def find_negative_cycle(A: Matrix, source: Any = None) -> list[int] | None:
    """Return the vertices of a cycle of negative length, or None if there is none.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) is the length of the edge i -> j.
    source : int or list of int, optional
        Only cycles that these vertices reach count; by default all do.

    Returns
    -------
    list of int, or None
        Each vertex once; an edge leads from the last one to the first. A negative self-loop is a
        cycle of one vertex.

    Raises
    ------
    CycleFound
        If rounding makes a cycle negative whose length is 0 or more.
    InvalidValue
        As `bellman_ford`.

    Notes
    -----
    Bellman-Ford from all sources at once, at most n + 1 products; if distances still decrease, the
    cycle is found from parents on the host. Source: Cherkassky and Goldberg 1999.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 1, 2], [1, 2, 1], [4, -3, 2], nrows=3, backend="cpu")
    >>> sorted(find_negative_cycle(A))
    [1, 2]
    """
    if not inputs.require_square(A):
        return None
    try:
        bellman_ford(A, list(range(A.nrows)) if source is None else source)
    except CycleFound as error:
        if _around(A, error.cycle) < 0:
            return error.cycle
        raise
    return None


def floyd_warshall(A: Matrix) -> Matrix:
    """Return the distance between each two vertices; for small graphs.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) is the length of the edge i -> j, which may be negative; True counts 1.

    Returns
    -------
    Matrix, (n, n), INT64, or FP64 if the weights are floats
        Entry (i, j) is the distance from i to j, 0 on the diagonal; no entry without a path.

    Raises
    ------
    CycleFound
        If there is a cycle of negative length.
    InvalidValue
        As `bellman_ford`.

    Notes
    -----
    Step k allows paths through vertex k: ``D min= plus outer(D[:, k], D[k, :])``. n steps,
    ``O(n**3)`` work, ``n**2`` entries of memory. Float distances may differ from those of `sssp` by
    rounding, as their sums have another order.
    Source: Floyd 1962; Warshall 1962.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 5, 2], nrows=3, ncols=3, backend="cpu")
    >>> floyd_warshall(A).to_coo()[2].tolist()
    [0, 1, 3, 0, 2, 0]
    """
    inputs.require_square(A)
    A = lengths_of(A, "floyd_warshall")
    kind = FP64 if A.dtype.is_float else INT64
    if (A.reduce("min").new().value or 0) < 0:
        bellman_ford(A, list(range(A.nrows)))  # raises if there is a negative cycle
    each = np.arange(A.nrows)
    D = Matrix.from_coo(each, each, 0, kind, nrows=A.nrows, ncols=A.nrows, like=A, name="D")
    D(accum=binary.min) << A
    for k in range(A.nrows):
        column, row = D[:, k].new(name="column"), D[k, :].new(name="row")
        D(accum=binary.min) << column.outer(row, "plus")
    return D


def _most(A: Matrix, kind: DType, limit: Any) -> Scalar:
    """Return a limit as a scalar of the distances' type, the largest value for an infinite one."""
    if not inputs.number(limit, "bellman_ford: limit") >= 0:
        raise InvalidValue(f"bellman_ford: limit {limit} is not 0 or more.")
    inputs.require_no_negative(A, "bellman_ford: with a limit or a target", _WITHOUT)
    most = limit if kind is FP64 else min(2**63 - 1, limit if limit == math.inf else int(limit))
    return Scalar(kind, most, name="most")


def lengths_of(A: Matrix, name: str) -> Matrix:
    """Return `A` with weights whose sums fit their type, or raise `InvalidValue`."""
    inputs.require_finite(A, name)
    if A.dtype.is_float:
        return A
    low, high = (A.reduce(op).new().value or 0 for op in ("min", "max"))
    if 2 * A.nrows * max(-low, high) >= 2**63:
        raise InvalidValue(
            f"{name}: the sum of {A.nrows} weights of up to {max(-low, high)} may exceed 64 bits. "
            "Use A.dup(FP64)."
        )
    return A.dup(INT64) if A.dtype.name == "UINT64" else A


def _step(A: Matrix, delta: Any) -> Any:
    """Return the step of delta-stepping, as an int or a float like the weights."""
    if delta is None:
        longest = A.reduce("max").new().value or 1
        delta = _WIDTH * longest * A.nrows / max(A.nvals, A.nrows)
    elif not 0 < inputs.number(delta, "delta_stepping: delta") < math.inf:
        raise InvalidValue(
            f"delta_stepping: delta {delta} is not above 0 and finite. Give a positive step."
        )
    return float(delta) if A.dtype.is_float else max(1, int(min(delta, 2**62)))


def _relax_further(A: Matrix, distances: Vector) -> tuple[Any, list[int]]:
    """Relax on after n rounds; return the converged distances, (n,), and a negative cycle or []."""
    # Stores which vertex decreased the distance of each vertex. If these links close a cycle, its
    # length is negative (Cherkassky and Goldberg 1999). If only rounding kept distances decreasing,
    # there may be no cycle, and they converge.
    rows, cols, lengths = A.to_coo()
    kept = np.isin(rows, distances.to_coo()[0])
    rows, cols, lengths = rows[kept], cols[kept], lengths[kept]
    dense, parents = distances.to_dense(0), np.full(A.nrows, -1)
    while not (cycle := cycle_of(parents)):
        through = dense[rows] + lengths
        best = dense.copy()
        np.minimum.at(best, cols, through)
        better = (through == best[cols]) & (best[cols] < dense[cols])
        if not better.any():
            break
        parents[cols[better]] = rows[better]
        dense = best
    return dense, cycle


def _around(A: Matrix, cycle: list[int]) -> int | float:
    """Return the length of a cycle, rounded once if at all."""
    lengths = [A.get(u, v) for u, v in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
    return math.fsum(lengths) if A.dtype.is_float else sum(lengths)


def _cycle_message(A: Matrix, cycle: list[int]) -> str:
    ends, length = [*cycle, cycle[0]], _around(A, cycle)
    around = f"bellman_ford: the cycle {' -> '.join(map(str, ends))} has"
    if length < 0:
        return f"{around} negative length, so there is no shortest path. Remove one of its edges."
    return (
        f"{around} length {length:g}, but rounding makes it negative, so distances never converge. "
        "Give integer lengths, or remove one of its edges."
    )


# ---- a shortest path between two vertices: searches from both ends until they meet, or one search
#
# The smaller frontier takes a step: along the edges from the source, against them from the target.
# One search from the source is `bfs_parents`, a single kernel on backends that fuse loops.
_METHODS = ("bidirectional", "single")
_STEPS = 64  # steps of a path that are read one by one, before all parents are copied


def shortest_path(
    A: Matrix, source: int, target: int, *, weight: bool = False, method: str | None = None
) -> list[int]:
    """Return the vertices of a shortest path, `source` and `target` included.

    Parameters
    ----------
    A : Matrix, (n, n)
    source, target : int
        Vertices ``0 .. n-1``.
    weight : bool
        Whether values are lengths, as in `bellman_ford`; else each edge counts 1. `path_weight`
        returns the length of the path.
    method : str, optional
        ``"bidirectional"``, searches from both ends, or ``"single"``, one search of all vertices
        that the source reaches; by default ``"single"`` on backends that fuse loops.

    Returns
    -------
    list of int
        One of the paths with fewest edges or, with `weight`, of least length; ``[source]`` if
        `source` is `target`.

    Raises
    ------
    NoPath
        If there is no path.
    InvalidValue
        If there is a method although there are weights, which always take one search; and as
        `sssp_parents`.
    CycleFound
        If a cycle of negative length can be reached.

    Notes
    -----
    If levels grow by a constant factor and one search visits v vertices, two visit about sqrt(v),
    but Python decides after each level which search goes on. With weights the cost is that of
    `sssp_parents`; without negative ones the search goes no farther than the target.
    Source: Pohl 1971.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> shortest_path(path(9, backend="cpu"), 2, 5)
    [2, 3, 4, 5]
    """
    source, target = inputs.source_vertex(A, source), inputs.source_vertex(A, target, "target")
    if weight and method is not None:
        raise InvalidValue("shortest_path: weights take one search. Leave method out.")
    if weight:
        least = A.reduce("min").new().value or 0
        before = sssp_parents(A, source, target=target if least >= 0 else None)[1]
        after, middle = before, target if before.get(target) is not None else None
    elif _is_single(A, method):
        before = bfs_parents(A, source)
        after, middle = before, target if before.get(target) is not None else None
    else:
        before, after, middle = _meet(A, source, target)
    if middle is None:
        raise NoPath(f"shortest_path: there is no path from {source} to {target}.")
    return [*_followed(before, middle, source)[:0:-1], *_followed(after, middle, target)]


def has_path(A: Matrix, source: int, target: int, *, method: str | None = None) -> bool:
    """Return True if there is a path from `source` to `target`.

    Parameters
    ----------
    A, source, target, method
        As in `shortest_path`.

    Returns
    -------
    bool
        Whether there is one; a vertex has a path to itself.

    Examples
    --------
    >>> A = Matrix.from_coo([0], [1], nrows=2, ncols=2, backend="cpu")
    >>> has_path(A, 0, 1), has_path(A, 1, 0)
    (True, False)
    """
    source, target = inputs.source_vertex(A, source), inputs.source_vertex(A, target, "target")
    if _is_single(A, method):
        return bfs_levels(A, source).get(target) is not None
    return _meet(A, source, target)[2] is not None


def _is_single(A: Matrix, method: str | None) -> bool:
    if method is None:
        return A.backend.capabilities.fuses  # otherwise visiting fewer vertices pays
    if method not in _METHODS:
        raise InvalidValue(
            f"shortest_path: there is no method {method!r}. Use {' or '.join(_METHODS)}."
        )
    return method == "single"


def _followed(links: Vector, begin: int, end: int) -> list[int]:
    """Return the vertices from `begin` to `end`, where ``links`` has the successor of each."""
    route = [begin]
    while route[-1] != end and len(route) <= _STEPS:
        route.append(links.get(route[-1]))
    if route[-1] != end:
        all_links = links.to_dense(-1)
        while route[-1] != end:
            route.append(int(all_links[route[-1]]))
    return route


def _meet(A: Matrix, source: int, target: int) -> tuple[Vector, Vector, int | None]:
    """Return predecessors, successors, and a vertex at which the searches meet (None: no path)."""
    kind = inputs.index_type(A)
    before, after, forth, back, met = (Vector(kind, A.nrows, like=A) for _ in range(5))
    before[source] = forth[source] = source
    after[target] = back[target] = target
    if source == target:
        return before, after, source
    against = A if A.is_symmetric else A.T  # every backend can push along the edges of A
    while forth.nvals and back.nvals:
        if forth.nvals <= back.nvals:
            forth(~before.S, replace=True) << semiring.any_secondi(forth @ A)
            before(forth.S) << forth
            met << after.ewise_mult(forth, binary.pair)
        else:
            back(~after.S, replace=True) << semiring.any_secondi(back @ against)
            after(back.S) << back
            met << before.ewise_mult(back, binary.pair)
        if met.nvals:
            return before, after, int(met.to_coo()[0][0])
    return before, after, None
