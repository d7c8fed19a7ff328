"""Shortest paths over weights: lengths and the paths themselves."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.bfs import bfs_levels, bfs_parents
from lagpu.algorithms.inputs import index_type, number, require_finite, source_vertex
from lagpu.algorithms.structure import cycle_of
from lagpu.core import Matrix, Scalar, Vector
from lagpu.dtypes import BOOL, FP64, INT64
from lagpu.errors import CycleFound, InvalidValue, NoPath
from lagpu.loops.loop import loop

_WIDTH = 8  # default delta, in units of the largest weight over the mean degree


def sssp(
    A: Matrix, source: int, *, delta: float | None = None, limit: float | None = None
) -> Vector:
    """Return each vertex's distance from `source` over the weights of `A`.

    Parameters
    ----------
    A, source
        As in `bellman_ford`.
    delta : float, optional
        Step of `delta_stepping`; by default the algorithm is `bellman_ford`.
    limit : float, optional
        Largest distance, as in `bellman_ford`, which takes no `delta`.

    Returns
    -------
    Vector, (n,), INT64, or FP64 if the weights are floats
        As `bellman_ford` returns it.

    Raises
    ------
    CycleFound, InvalidValue, DimensionMismatch, DomainMismatch, IndexOutOfBound
        As `bellman_ford` and `delta_stepping`.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 5, 2], nrows=3, backend="cpu")
    >>> sssp(A, 0).to_dense().tolist()
    [0, 1, 3]
    """
    if delta is None:
        return bellman_ford(A, source, limit=limit)
    if limit is not None:
        raise InvalidValue("sssp: delta-stepping has no limit. Leave out delta.")
    return delta_stepping(A, source, delta)


def bellman_ford(A: Matrix, source: int, *, limit: float | None = None) -> Vector:
    """Return each vertex's distance from `source`; weights may be negative, but not cycles.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) is the length of the edge i -> j; True counts 1.
    source : int
        ``0 <= source < n``.
    limit : float, optional
        Largest distance, 0 or more, of lengths of 0 or more: the search goes no farther.

    Returns
    -------
    Vector, (n,), INT64, or FP64 if the weights are floats
        0 at the source; a vertex that cannot be reached, or is beyond the limit, has no entry.

    Raises
    ------
    CycleFound
        If a cycle of negative length can be reached, or a cycle that rounding makes negative; the
        error has the vertices as ``cycle``.
    InvalidValue
        If a weight is NaN or infinite, integer lengths may exceed 64 bits, or there is a limit and
        it or a weight is negative.
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, `source` is not a vertex, or `limit` is not a number.

    Notes
    -----
    At most n + 1 products: two more than a shortest path has edges. Lengths in floating point are
    rounded, so a cycle of length zero may turn out negative, and the message says so; or distances
    on the cycle decrease by a few roundings before they converge, and no path has exactly this
    length. A distance beyond 1.8e308 is infinite.
    Source: Bellman 1958; Ford 1956; Kepner and Gilbert 2011, chapter 5.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 2], [1, 2, 1], [4, 5, -2], ncols=3, backend="cpu")
    >>> bellman_ford(A, 0).to_dense().tolist()
    [0, 3, 5]
    """
    source = source_vertex(A, source)
    A = _lengths(A, "bellman_ford")
    kind = FP64 if A.dtype.is_float else INT64
    distances = Vector(kind, A.nrows, like=A, name="distances")
    nearer = Vector(kind, A.nrows, like=A, name="nearer")
    worse = Vector(BOOL, A.nrows, like=A, name="worse")
    nearer[source] = 0
    if limit is not None and (most := _most(A, limit)) is not None:
        for _ in loop(until_empty=nearer):
            nearer(~worse.V, replace=True) << nearer
            nearer << nearer.select("valuele", most)
            distances(nearer.S) << nearer
            nearer << semiring.min_plus(nearer @ A)
            worse << nearer.ewise_mult(distances, binary.ge)
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


def delta_stepping(A: Matrix, source: int, delta: float | None = None) -> Vector:
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
        As `bellman_ford` returns it.

    Raises
    ------
    InvalidValue
        If a weight is negative, NaN or infinite, integer lengths may exceed 64 bits, or `delta` is
        not above 0.
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, `source` is not a vertex, or `delta` is not a number.

    Notes
    -----
    A vertex whose distance decreases is relaxed again, over all its edges: to separate short from
    long edges, as in the first paper, would take nested loops and a second matrix. A small step
    relaxes fewer edges, a large one takes fewer products; `bellman_ford` is an infinite step.
    Source: Meyer and Sanders 2003; Dong et al. 2021 (edges not separated).

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 5, 2], nrows=3, backend="cpu")
    >>> delta_stepping(A, 0, delta=2).to_dense().tolist()
    [0, 1, 3]
    """
    source = source_vertex(A, source)
    A = _lengths(A, "delta_stepping")
    _require_no_negative(A, "delta_stepping")
    delta = _step(A, delta)
    kind = FP64 if A.dtype.is_float else INT64
    distances = Vector(kind, A.nrows, like=A, name="distances")
    waiting = Vector(kind, A.nrows, like=A, name="waiting")
    nearer = Vector(kind, A.nrows, like=A, name="nearer")
    worse = Vector(BOOL, A.nrows, like=A, name="worse")
    limit = Scalar(kind, name="limit")
    distances[source] = 0
    waiting[source] = 0
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


def _most(A: Matrix, limit: Any) -> Any:
    """Return a limit as an int or a float like the weights; None if it is infinite."""
    if not number(limit, "bellman_ford: limit") >= 0:
        raise InvalidValue(f"bellman_ford: limit {limit} is not 0 or more.")
    _require_no_negative(A, "bellman_ford: with a limit")
    if A.dtype.is_float or limit == math.inf:
        return None if limit == math.inf else float(limit)
    return min(math.floor(limit), 2**63 - 1)


def _require_no_negative(A: Matrix, what: str) -> None:
    least = A.reduce("min").new().value
    if least is not None and least < 0:
        raise InvalidValue(f"{what}: a weight is {least} < 0. Use bellman_ford without a limit.")


def _lengths(A: Matrix, name: str) -> Matrix:
    """Return `A` with weights whose sums fit their type, or raise `InvalidValue`."""
    require_finite(A, name)
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
        return delta if A.dtype.is_float else max(1, int(delta))
    if not 0 < number(delta, "delta_stepping: delta") < math.inf:
        raise InvalidValue(
            f"delta_stepping: delta {delta} is not above 0 and finite. Give a positive step."
        )
    return float(delta) if A.dtype.is_float else max(1, int(min(delta, 2**62)))


def _relax_further(A: Matrix, distances: Vector) -> tuple[Any, list[int]]:
    """Relax on after n rounds; return the converged distances, (n,), and a negative cycle or [].

    Stores which vertex decreased the distance of each vertex. If these links close a cycle, its
    length is negative (Cherkassky and Goldberg 1999). If only rounding kept distances decreasing,
    there may be no cycle, and they converge.
    """
    rows, cols, lengths = A.to_coo()
    reached = np.zeros(A.nrows, bool)
    reached[distances.to_coo()[0]] = True
    kept = reached[rows]
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


def _cycle_message(A: Matrix, cycle: list[int]) -> str:
    """Return the message of the error for a cycle that shortens paths."""
    ends = [*cycle, cycle[0]]
    lengths = [A.get(u, v) for u, v in itertools.pairwise(ends)]
    length = math.fsum(lengths) if A.dtype.is_float else sum(lengths)
    around = f"bellman_ford: the cycle {' -> '.join(map(str, ends))} has"
    if length < 0:
        return f"{around} negative length, so there is no shortest path. Remove one of its edges."
    return (
        f"{around} length {length:g}, but rounding makes it negative, so distances never converge. "
        "Give integer lengths, or remove one of its edges."
    )


# ---- a shortest path between two vertices: searches from both ends until they meet, or one search
#
# The smaller frontier takes a step: along the edges from the source, against them from the
# target::
#
#     q<!s(p)> = q (any.secondi) A
#     r<!s(c)> = r (any.secondi) A'
#
# One search from the source is `bfs_parents`, a single kernel on backends that fuse loops.


_METHODS = ("bidirectional", "single")
_STEPS = 64  # steps of a path that are read one by one, before all parents are copied


def shortest_path(A: Matrix, source: int, target: int, *, method: str | None = None) -> list[int]:
    """Return the vertices of a shortest path, `source` and `target` included.

    Parameters
    ----------
    A : Matrix, (n, n)
    source, target : int
        Vertices ``0 .. n-1``.
    method : str, optional
        ``"bidirectional"``, searches from both ends, or ``"single"``, one search of all vertices
        that the source reaches; by default ``"single"`` on backends that fuse loops.

    Returns
    -------
    list of int
        One of the paths with fewest edges; ``[source]`` if it is the target.

    Raises
    ------
    NoPath
        If there is no path.
    InvalidValue
        If there is no such method.
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or an end is not a vertex.

    Notes
    -----
    In a graph that widens evenly, two searches visit about the square root of the vertices that one
    search visits, but Python decides after each level which search goes on.
    Source: Pohl 1971.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> shortest_path(path(9, backend="cpu"), 2, 5)
    [2, 3, 4, 5]
    """
    source, target = source_vertex(A, source), source_vertex(A, target, "target")
    if _is_single(A, method):
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
        True for a vertex and itself.

    Raises
    ------
    InvalidValue, DimensionMismatch, DomainMismatch, IndexOutOfBound
        As `shortest_path`.

    Examples
    --------
    >>> A = Matrix.from_coo([0], [1], nrows=2, ncols=2, backend="cpu")
    >>> has_path(A, 0, 1), has_path(A, 1, 0)
    (True, False)
    """
    source, target = source_vertex(A, source), source_vertex(A, target, "target")
    if _is_single(A, method):
        return bfs_levels(A, source).get(target) is not None
    return _meet(A, source, target)[2] is not None


def _is_single(A: Matrix, method: str | None) -> bool:
    """Return True to search from the source alone."""
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
    kind = index_type(A)
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
