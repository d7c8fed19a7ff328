"""Centralities: by degrees, distances and eigenvectors; eccentricities and diameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lagpu import errors
from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms import inputs
from lagpu.algorithms.bfs import bfs_levels
from lagpu.algorithms.inputs import require_square
from lagpu.algorithms.sssp import bellman_ford, lengths_of
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.arguments import integer
from lagpu.core.collection import agg
from lagpu.dtypes import BOOL, FP64, INT32, INT64, DType
from lagpu.host import progress
from lagpu.loops.loop import loop

__all__ = [
    "center", "closeness_centrality", "degree_centrality", "diameter", "eccentricity",
    "eigenvector_centrality", "harmonic_centrality", "hits", "in_degree_centrality",
    "katz_centrality", "out_degree_centrality", "pagerank", "periphery", "pseudo_diameter",
    "radius",
]  # fmt: skip


def closeness_centrality(
    A: Matrix, u: Any = None, distance: bool = False, wf_improved: bool = True
) -> Vector:
    """Return the reciprocal of the mean distance to each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
    u : int or list of int, optional
        Distinct vertices; by default all.
    distance : bool
        Whether values are lengths, 0 or more; else each edge counts 1.
    wf_improved : bool
        Multiply by the share of the other vertices that reach the vertex (Wasserman and Faust).

    Returns
    -------
    Vector, (n,), FP64
        ``(r - 1) / (sum of the distances from the r vertices that reach u)``, with `wf_improved`
        times ``(r - 1) / (n - 1)``; 0 if only u itself does or the sum is 0; an entry for each
        requested vertex.

    Raises
    ------
    InvalidValue
        If a length is negative, or as `bellman_ford` refuses it.

    Notes
    -----
    From each vertex a breadth-first search against the edges, or a `bellman_ford` by lengths.
    Source: Freeman 1979; as NetworkX.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> closeness_centrality(star(4, backend="cpu")).to_dense().tolist()
    [1.0, 0.6, 0.6, 0.6]
    """

    def closeness(distances: Vector) -> float:
        others, total = distances.nvals - 1, distances.reduce("plus").new().value
        if not total:
            return 0.0
        share = others / (A.nrows - 1) if wf_improved else 1.0
        return float(others / total * share)

    return _from_distances(A, u, closeness, "closeness_centrality: u", distance)


def harmonic_centrality(
    A: Matrix, nbunch: Any = None, distance: bool = False, sources: Any = None
) -> Vector:
    """Return the sum of the reciprocals of the distances to each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
    nbunch : int or list of int, optional
        Distinct vertices; by default all.
    distance : bool
        Whether values are lengths, 0 or more; else each edge counts 1.
    sources : int or list of int, optional
        Distinct vertices whose distances count; by default all.

    Returns
    -------
    Vector, (n,), FP64
        The sum of ``1 / distance`` from the sources, by default all vertices, at a distance above
        0; an entry for each requested vertex.

    Raises
    ------
    InvalidValue
        As `closeness_centrality`.

    Notes
    -----
    The searches are those of `closeness_centrality`. Source: Boldi and Vigna 2014; as NetworkX.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> harmonic_centrality(star(4, backend="cpu")).to_dense().tolist()
    [3.0, 2.0, 2.0, 2.0]
    """
    require_square(A)
    counted = None
    if sources is not None:
        chosen = inputs.source_vertices(A, sources, "harmonic_centrality: sources")
        counted = Vector.from_coo(chosen, True, size=A.nrows, like=A).S

    def harmonic(distances: Vector) -> float:
        others = distances.select("valuegt", 0).new(mask=counted)
        return float(others.apply("minv").new().reduce("plus").new().value or 0.0)

    return _from_distances(A, nbunch, harmonic, "harmonic_centrality: nbunch", distance)


def _from_distances(
    A: Matrix, vertices: Any, of: Callable[[Vector], float], what: str, weight: bool
) -> Vector:
    """Return the value of `of` for the distances to each vertex, (n,), FP64."""
    back = _reversed(A)
    chosen = list(range(A.nrows)) if vertices is None else inputs.source_vertices(A, vertices, what)
    name = what.partition(":")[0]
    search = _search(A, weight, name)
    values = progress.each(lambda v: of(search(back, v).dup(FP64)), chosen, name)
    return Vector.from_coo(chosen, np.array(values, float), size=A.nrows, like=A)


def _search(A: Matrix, weight: bool, what: str) -> Callable[[Matrix, int], Vector]:
    """Return the search of all distances from a vertex; with weights they must be 0 or more."""
    if not weight:
        return bfs_levels
    lengths_of(A, what)
    inputs.require_no_negative(A, what, "Leave such edges out.")
    return bellman_ford


# ---- eccentricities and diameters: the distance to the farthest vertex
#
# The exact diameter needs few searches: one from s, of eccentricity e, bounds all others::
#
#     upper = min(upper, d(., s) + e)
#     lower = max(lower, d(., s), e - d(s, .))
def eccentricity(A: Matrix, v: Any = None, *, weight: bool = False) -> Vector:
    """Return the distance from each vertex to the vertex farthest from it.

    Parameters
    ----------
    A : Matrix, (n, n)
    v : int or list of int, optional
        Distinct vertices; by default all.
    weight : bool
        Whether values are lengths, 0 or more; else each edge counts 1.

    Returns
    -------
    Vector, (n,), INT32; with lengths INT64, or FP64 if they are floats
        An entry for each requested vertex.

    Raises
    ------
    NoPath
        If one of them does not reach every vertex.
    InvalidValue
        As `closeness_centrality`.

    Notes
    -----
    From each vertex a breadth-first search, or a `bellman_ford` by lengths.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> eccentricity(path(4, backend="cpu")).to_dense().tolist()
    [3, 2, 2, 3]
    """
    require_square(A)
    what = "eccentricity"
    vertices = list(range(A.nrows)) if v is None else inputs.source_vertices(A, v, f"{what}: v")
    search = _search(A, weight, what)
    found = progress.each(lambda s: _reach_all(A, s, what, search)[1], vertices, what)
    return Vector.from_coo(
        vertices, found, _kind(A, weight), size=A.nrows, like=A, name="eccentricity"
    )


def _kind(A: Matrix, weight: bool) -> DType:
    return (FP64 if A.dtype.is_float else INT64) if weight else INT32


def diameter(A: Matrix, *, weight: bool = False) -> int | float:
    """Return the largest distance between two vertices.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) is the edge i -> j; n > 0.
    weight : bool
        As in `eccentricity`.

    Returns
    -------
    int, or float if the lengths are floats
        The largest eccentricity; of float lengths up to rounding, since the bounds are rounded.

    Raises
    ------
    NoPath
        If some vertex does not reach another one.
    InvalidValue
        If there is no vertex, or as `closeness_centrality`.

    Notes
    -----
    Searches start alternately from the vertex of the largest upper bound and of the least lower
    bound, until no upper bound exceeds the largest eccentricity found: often a dozen searches, n at
    worst. A directed graph needs a search along the edges and one against them each time.
    Source: Takes and Kosters 2011.

    Examples
    --------
    >>> from lagpu.generators import cycle
    >>> diameter(cycle(7, backend="cpu"))
    3
    """
    back = _reversed(A)
    _require_a_vertex(A, "diameter")
    search, kind = _search(A, weight, "diameter"), _kind(A, weight)
    longest = 1 if not weight else A.reduce("max").new().value or 1
    lower = Vector.from_scalar(0, A.nrows, kind, like=A, name="lower")
    upper = Vector.from_scalar(longest * A.nrows, A.nrows, kind, like=A, name="upper")
    found = -1
    for turn in itertools.count():
        upper << upper.select("valuegt", found)  # the others cannot increase the diameter
        if not upper.nvals:
            break
        lower(upper.S, replace=True) << lower
        s = _first(upper, "max") if turn % 2 == 0 else _first(lower, "min")
        forth, e = _reach_all(A, s, "diameter", search)
        backward = forth if back is A else _reach_all(back, s, "diameter", search, against=True)[0]
        found = max(found, e)
        upper(upper.S, accum=binary.min) << backward.apply("plus", right=e)
        lower(lower.S, accum=binary.max) << backward
        lower(lower.S, accum=binary.max) << forth.apply("minus", left=e)
    return found


def radius(A: Matrix, *, weight: bool = False) -> int | float:
    """Return the least distance from a vertex to the vertex farthest from it.

    Parameters
    ----------
    A, weight
        As in `diameter`.

    Returns
    -------
    int, or float if the lengths are floats
        The least eccentricity.

    Raises
    ------
    NoPath, InvalidValue
        As `diameter`; the searches are those of `eccentricity`.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> radius(path(5, backend="cpu"))
    2
    """
    return _eccentricities(A, "radius", weight).reduce("min").new().value


def center(A: Matrix, *, weight: bool = False) -> Vector:
    """Return the vertices of the least `eccentricity`.

    Parameters
    ----------
    A, weight
        As in `diameter`.

    Returns
    -------
    Vector, (n,), BOOL
        True where the eccentricity is the radius; no entry elsewhere.

    Raises
    ------
    NoPath, InvalidValue
        As `diameter`; the searches are those of `eccentricity`.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> center(path(5, backend="cpu")).to_coo()[0].tolist()
    [2]
    """
    return inputs.where_any(_best(_eccentricities(A, "center", weight), "min"), "members")


def periphery(A: Matrix, *, weight: bool = False) -> Vector:
    """Return the vertices of the largest `eccentricity`.

    Parameters
    ----------
    A, weight
        As in `diameter`.

    Returns
    -------
    Vector, (n,), BOOL
        True where the eccentricity is the diameter; no entry elsewhere.

    Raises
    ------
    NoPath, InvalidValue
        As `diameter`; the searches are those of `eccentricity`.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> periphery(path(5, backend="cpu")).to_coo()[0].tolist()
    [0, 4]
    """
    return inputs.where_any(_best(_eccentricities(A, "periphery", weight), "max"), "members")


def pseudo_diameter(A: Matrix, source: int = 0) -> tuple[int, int, int]:
    """Return a large distance, and two vertices that far apart, by a few searches.

    Parameters
    ----------
    A : Matrix, (n, n)
    source : int
        The vertex of the first search; vertices that it does not reach are ignored.

    Returns
    -------
    length, begin, end : int
        The distance from `begin` to `end`: at most the diameter; in a tree, exactly the diameter.

    Notes
    -----
    Each search starts from the farthest vertex that the last one found, alternately along and
    against the edges, while distances grow.
    Source: Gibbs, Poole and Stockmeyer 1976; Crescenzi et al. 2012 (directed).

    Examples
    --------
    >>> from lagpu.generators import path
    >>> pseudo_diameter(path(5, backend="cpu"), 1)
    (4, 0, 4)
    """
    here = inputs.source_vertex(A, source)
    ways = A, _reversed(A)
    length, ends = -1, (here, here)
    for turn in itertools.count():
        levels = bfs_levels(ways[turn % 2], here)
        farthest = levels.reduce("max").new().value
        if farthest <= length:
            break
        there = _first(levels, "max")
        length, ends = farthest, (here, there) if turn % 2 == 0 else (there, here)
        here = there
    return (length, *ends)


def _reversed(A: Matrix) -> Matrix:
    """Return ``A'``, or `A` itself if it is symmetric."""
    require_square(A)
    return A if A.is_symmetric else A.T.new(name="reversed")


def _require_a_vertex(A: Matrix, what: str) -> None:
    if require_square(A) == 0:
        raise errors.InvalidValue(f"{what}: there is no vertex. Give a graph with one.")


def _eccentricities(A: Matrix, what: str, weight: bool) -> Vector:
    _require_a_vertex(A, what)
    return eccentricity(A, weight=weight)


def _reach_all(
    A: Matrix, s: int, what: str, search: Callable[[Matrix, int], Vector], *, against: bool = False
) -> tuple[Vector, Any]:
    """Return the distances from `s`, and the largest, or raise `NoPath`."""
    levels = search(A, s)
    if levels.nvals < A.nrows:
        v = int((~levels.S).new().to_coo()[0][0])
        pair = (v, s) if against else (s, v)
        raise errors.NoPath(
            f"{what}: there is no path from {pair[0]} to {pair[1]}. "
            "Take one (strongly) connected component, or pseudo_diameter."
        )
    return levels, levels.reduce("max").new().value


def _first(v: Vector, op: str) -> int:
    return int(_best(v, op).to_coo()[0][0])


def _best(v: Vector, op: str) -> Vector:
    return v.select("valueeq", v.reduce(op).new().value).new()


# ---- PageRank by power iteration
#
# A random walker follows an edge with probability alpha and otherwise jumps, by the distribution
# p; from a vertex without edges out the walker goes on by the distribution d::
#
#     x = (x alpha / out) (+.*) A + alpha lost d + (1 - alpha) p
Weights = Vector | Mapping[int, float]

FARTHEST = 2.0  # the largest possible sum of changes of the ranks
LARGE = 1e290  # sums of weights between 1 / LARGE and LARGE are used as they are
MOST = 1e-3  # the largest sum of changes, of ranks with sum 1, at which the iteration may stop


def pagerank(
    A: Matrix, alpha: float = 0.85, personalization: Weights | None = None, max_iter: int = 100,
    tol: float | None = 1e-6, nstart: Weights | None = None, weight: bool = True,
    dangling: Weights | bool | None = None,
) -> Vector:  # fmt: skip
    """Return the PageRank of each vertex: how often a random walk with jumps visits it.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) >= 0 is the weight of the edge i -> j; True counts 1.
    alpha : float
        Probability of following an edge, 0 to 1.
    personalization : Vector or dict, optional
        Weights >= 0 of the vertices at which a jump ends, 0 without an entry; by default equal.
    max_iter : int
        Largest number of iterations.
    tol : float, optional
        Stop when the sum of all changes is less than ``min(n * tol, 1e-3)``; None for exactly
        `max_iter` iterations.
    nstart : Vector or dict, optional
        Weights of the first ranks; by default equal.
    weight : bool
        Whether values are weights; else each edge counts 1.
    dangling : Vector, dict or False, optional
        Weights of the vertices to which the walker goes from a vertex without edges out; by default
        `personalization`. With False such a walker is lost.

    Returns
    -------
    Vector, (n,), FP64
        An entry for each vertex; their sum is 1, or less if walkers are lost (``dangling=False``).

    Raises
    ------
    NotConverged
        If `max_iter` iterations are not enough.
    InvalidValue
        If a weight is negative, NaN or infinite, or the weights of an argument have the sum 0.

    Notes
    -----
    One product per iteration; on `gpu` and `sim` all iterations are one kernel. Source: Page, Brin,
    Motwani and Winograd 1999; parameters, stopping and dangling vertices as in NetworkX, except
    that changes must be below ``min(n * tol, 1e-3)``: NetworkX has only ``n * tol``, and stops
    after one or two iterations if a graph has a million vertices, since all ranks add up to 1. With
    the default `tol` the bound 1e-3 matters from 1000 vertices on. After a change by r the ranks
    are within ``r * alpha / (1 - alpha)`` of the exact ones.
    The GAP benchmark's PageRank (Beamer et al. 2015) is ``pagerank(A, tol=1e-4 / n, weight=False,
    dangling=False)``. That of LDBC Graphalytics (Iosup et al. 2016) has k iterations:
    ``pagerank(A, max_iter=k, tol=None, weight=False)``.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> pagerank(star(3, backend="cpu")).to_dense().round(3).tolist()
    [0.486, 0.257, 0.257]
    """
    require_square(A)
    if weight:
        inputs.require_finite(A, "pagerank")
        inputs.require_no_negative(A, "pagerank", "Use weight=False to ignore it.")
    if not 0 <= inputs.number(alpha, "pagerank: alpha") <= 1:
        raise errors.InvalidValue(f"pagerank: alpha {alpha} is not a probability, 0 to 1.")
    n, max_iter = A.nrows, integer(max_iter, "pagerank: max_iter", 0)
    enough = -1.0 if tol is None else min(n * _tolerance(tol, "pagerank"), MOST)
    # Where all vertices are alike, a number stands for a vector: it takes no memory traffic.
    even = personalization is None and (dangling is None or dangling is False)
    sent: Any = alpha / max(n, 1) if dangling is None else 0.0
    jumps: Any = (1 - alpha) / max(n, 1)
    if not even:
        jumps = _distribution(A, personalization, "personalization", 1 - alpha)
        if dangling is None:
            sent = _distribution(A, personalization, "personalization", alpha)
        elif dangling is False:
            sent = Vector.from_scalar(0, n, FP64, like=A)
        else:
            sent = _distribution(A, dangling, "dangling", alpha)
    ranks = _distribution(A, nstart, "nstart")
    ranks.name = "ranks"
    rate, left, new = (Vector(FP64, n, like=A) for _ in range(3))
    add_up = semiring.plus_first if weight else semiring.plus_pair
    follow = semiring.plus_times if weight else semiring.plus_first
    rate << add_up(A @ ranks)  # the values of `ranks` do not count
    if weight and not A.dtype.is_bool and _is_extreme(rate):
        A = _with_largest_1(A)
        rate << add_up(A @ ranks)
    rate(rate.V, replace=True) << rate.apply(binary.truediv, left=alpha)  # a sum of 0 leads nowhere
    lost, moved = Scalar(FP64, name="lost"), Scalar(FP64, FARTHEST, name="moved")
    close, given = Scalar(BOOL, False, name="close"), Scalar(FP64, name="given")
    new << ranks.ewise_mult(rate, binary.times)
    for _ in loop(until=close, times=max_iter if n else 0):
        left(~rate.S, replace=True) << ranks
        lost << 0
        lost(accum=binary.plus) << left.reduce("plus")
        new << follow(new @ A)
        if even:
            given << lost * sent
            given(accum=binary.plus) << jumps
            new(accum=binary.plus) << given
        else:
            new(accum=binary.plus) << sent.apply("times", right=lost)
            new(accum=binary.plus) << jumps
        ranks << ranks.ewise_mult(new, binary.minus)
        ranks << ranks.apply("abs")
        moved << ranks.reduce("plus")
        ranks << new
        new << ranks.ewise_mult(rate, binary.times)  # here, in the pass that has the ranks
        close << (moved < enough)
    if tol is not None:
        _require_converged(n, moved, enough, max_iter, "pagerank: ranks")
    return ranks


def _tolerance(tol: Any, name: str) -> float:
    if not 0 < inputs.number(tol, f"{name}: tol") < np.inf:
        raise errors.InvalidValue(f"{name}: tol {tol} is not above 0 and finite. Give a tolerance.")
    return float(tol)


def _require_converged(n: int, moved: Scalar, enough: float, max_iter: int, what: str) -> None:
    """Raise `NotConverged` unless the last change was small enough."""
    if n and not moved.value < enough:  # also for NaN
        raise errors.NotConverged(
            f"{what} still change by {moved.value:.3g} in sum, not below {enough:.3g}, after "
            f"{max_iter} iterations. Allow more with max_iter="
            + (", or a larger tol=." if enough < MOST else ".")
        )


def _is_extreme(out: Vector) -> bool:
    """Return True if a rank divided by a vertex's sum of weights may overflow or lose digits."""
    most = out.reduce("max").new().value or 1
    least = out.select("valuegt", 0).new().reduce("min").new().value or 1
    return not (most < LARGE and least > 1 / LARGE)


def _with_largest_1(A: Matrix) -> Matrix:
    """Return `A` with each row divided by its largest weight; ranks depend on ratios alone."""
    largest = A.reduce_rowwise("max").new()
    largest << largest.select("valuegt", 0)
    by_columns = semiring.plus_truediv(A.T @ largest.diag()).new()
    return by_columns.T.new()


def _distribution(
    A: Matrix, weights: Any, what: str, total: float = 1, name: str = "pagerank"
) -> Vector:
    """Return weights as a full vector with the sum `total`; equal ones for None."""
    full = Vector(FP64, A.nrows, like=A, name=what)
    if weights is None:
        full << total / max(A.nrows, 1)
        return full
    given = _of_vertices(A, weights, f"{name}: {what}")
    found = given.to_coo()[1].astype(float)
    if not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
        raise errors.InvalidValue(
            f"{name}: {what} needs finite weights >= 0, at least one above 0."
        )
    full << 0
    largest = float(found.max())  # first, so that the sum of large weights does not overflow
    full(given.S) << given
    full << full.apply("truediv", right=largest)
    full << full.apply("truediv", right=float((found / largest).sum()))
    if total != 1:
        full << full.apply("times", right=total)
    return full


def _of_vertices(A: Matrix, given: Any, what: str) -> Vector:
    if not isinstance(given, (Vector, Mapping)):
        raise errors.DomainMismatch(f"{what} is neither a Vector nor a dict of weights.")
    if not isinstance(given, Vector):
        values = [inputs.number(x, what) for x in given.values()]
        given = Vector.from_coo(list(given), values, FP64, size=A.nrows, like=A)
    if given.size != A.nrows:
        raise errors.DimensionMismatch(f"{what}.size {given.size} != {A.nrows} vertices.")
    return given


# ---- eigenvector and Katz centrality, hubs and authorities: products with a vector until it is
# unchanged, up to a tolerance
def eigenvector_centrality(
    A: Matrix, max_iter: int = 100, tol: float = 1e-6, nstart: Weights | None = None,
    weight: bool = True,
) -> Vector:  # fmt: skip
    """Return the eigenvector centrality of each vertex: neighbours' centralities add up.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) is the weight of the edge i -> j; True counts 1.
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when the sum of all changes is less than ``n * tol``.
    nstart : Vector or dict, optional
        First numbers >= 0 of the vertices, 0 without an entry; by default equal.
    weight : bool
        Whether values are weights; else each edge counts 1.

    Returns
    -------
    Vector, (n,), FP64
        An entry for each vertex: the left eigenvector of the largest eigenvalue, of length 1.

    Raises
    ------
    NotConverged
        If `max_iter` iterations are not enough.
    InvalidValue
        As `pagerank`; weights may be negative.

    Notes
    -----
    ``x = x + (x plus.times A)``, then x / (length of x): power iteration of A + I, which has the
    eigenvectors of A and also converges for bipartite graphs. One product an iteration, O(m) work,
    two vectors; all iterations are one kernel on `gpu` and `sim`.
    Source: Bonacich 1987; iteration and stopping as in NetworkX.

    Examples
    --------
    >>> from lagpu.generators import complete
    >>> eigenvector_centrality(complete(4, backend="cpu")).to_dense().tolist()
    [0.5, 0.5, 0.5, 0.5]
    """
    follow, enough, max_iter = _iteration(A, max_iter, tol, weight, "eigenvector_centrality")
    x = _distribution(A, nstart, "nstart", name="eigenvector_centrality")
    x.name = "x"
    last = Vector(FP64, A.nrows, like=A, name="last")
    length, moved = Scalar(FP64, name="length"), Scalar(FP64, FARTHEST, name="moved")
    apart = Vector.from_coo([0], FARTHEST, size=1, like=A, name="apart")
    for _ in loop(until_empty=apart, times=max_iter):
        last << x
        x(accum=binary.plus) << follow(last @ A)
        length << x.reduce(agg.hypot)
        x << x.apply("truediv", right=length)
        last << last.ewise_mult(x, binary.minus)
        last << last.apply("abs")
        moved << last.reduce("plus")
        apart << moved
        apart << apart.select("valuege", enough)
    _require_converged(A.nrows, moved, enough, max_iter, "eigenvector_centrality: centralities")
    return x


def katz_centrality(
    A: Matrix, alpha: float = 0.1, beta: float | Weights = 1.0, max_iter: int = 1000,
    tol: float = 1e-6, nstart: Weights | None = None, normalized: bool = True, weight: bool = True,
) -> Vector:  # fmt: skip
    """Return the Katz centrality of each vertex: walks to it, damped by alpha for each edge.

    Parameters
    ----------
    A, max_iter, tol, weight
        As in `eigenvector_centrality`.
    alpha : float
        Damping; it converges if alpha is below 1 over the largest eigenvalue of `A`.
    beta : float, Vector or dict
        What each vertex begins with; a vertex without an entry begins with 0.
    nstart : Vector or dict, optional
        First numbers of the vertices, 0 without an entry; by default 0.
    normalized : bool
        Divide by the Euclidean length.

    Returns
    -------
    Vector, (n,), FP64
        An entry for each vertex: ``x = alpha (x plus.times A) + beta``, over its Euclidean length
        if `normalized`.

    Raises
    ------
    NotConverged
        If `max_iter` iterations are not enough, or alpha is too large.
    InvalidValue
        As `eigenvector_centrality`.

    Notes
    -----
    One product an iteration, O(m) work, three vectors; all iterations are one kernel on `gpu` and
    `sim`. Source: Katz 1953; iteration and stopping as in NetworkX.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> katz_centrality(star(3, backend="cpu"), normalized=False).to_dense().round(4).tolist()
    [1.2245, 1.1224, 1.1224]
    """
    follow, enough, max_iter = _iteration(A, max_iter, tol, weight, "katz_centrality")
    n = A.nrows
    alpha = inputs.number(alpha, "katz_centrality: alpha")
    begin, x = (Vector.from_scalar(0, n, FP64, like=A, name=name) for name in ("begin", "x"))
    if isinstance(beta, (Vector, Mapping)):
        begin(accum=binary.plus) << _of_vertices(A, beta, "katz_centrality: beta")
    else:
        begin << inputs.number(beta, "katz_centrality: beta")
    if nstart is not None:
        x(accum=binary.plus) << _of_vertices(A, nstart, "katz_centrality: nstart")
    last = Vector(FP64, n, like=A, name="last")
    moved = Scalar(FP64, FARTHEST, name="moved")
    apart = Vector.from_coo([0], FARTHEST, size=1, like=A, name="apart")
    for _ in loop(until_empty=apart, times=max_iter):
        last << x
        x << follow(last @ A)
        x << x.apply("times", right=alpha)
        x << x.ewise_add(begin, binary.plus)
        last << last.ewise_mult(x, binary.minus)
        last << last.apply("abs")
        moved << last.reduce("plus")
        apart << moved
        apart << apart.select("valuege", enough)
    _require_converged(n, moved, enough, max_iter, "katz_centrality: centralities")
    if normalized and (length := x.reduce(agg.hypot).new().value):
        if length == np.inf:  # a square overflows
            x << x.apply("truediv", right=x.reduce(agg.Linfnorm).new().value)
            length = x.reduce(agg.hypot).new().value
        x << x.apply("truediv", right=length)
    return x


def hits(
    A: Matrix, max_iter: int = 100, tol: float = 1e-8, nstart: Weights | None = None,
    normalized: bool = True, weight: bool = True,
) -> tuple[Vector, Vector]:  # fmt: skip
    """Return hubs, which lead to good authorities, and authorities, to which good hubs lead.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) >= 0 is the weight of the edge i -> j; True counts 1.
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when the sum of all changes of the hubs, which have the sum 1, is less than `tol`.
    nstart : Vector or dict, optional
        First hubs >= 0, 0 without an entry; by default equal.
    normalized : bool
        Divide both by their sums; else the authorities have Euclidean length 1, and the hubs are
        their product with `A`.
    weight : bool
        Whether values are weights; else each edge counts 1.

    Returns
    -------
    hubs, authorities : Vector, (n,), FP64
        An entry for each vertex: the singular vectors of the largest singular value.

    Raises
    ------
    NotConverged
        If `max_iter` iterations are not enough.
    InvalidValue
        If there is no edge; or as `pagerank`.

    Notes
    -----
    ``a = h plus.times A``, ``h = A plus.times a``, both divided by their sums. Two products an
    iteration, O(m) work, three vectors; all iterations are one kernel on `gpu` and `sim`. NetworkX
    computes the singular vector by ARPACK, so results agree up to `tol` where it is unique.
    Source: Kleinberg 1999.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 1, 1], nrows=3, ncols=3, backend="cpu")
    >>> [x.to_dense().round(3).tolist() for x in hits(A)]
    [[0.618, 0.382, 0.0], [0.0, 0.382, 0.618]]
    """
    follow, _, max_iter = _iteration(A, max_iter, tol, weight, "hits")
    against = semiring.plus_times if weight else semiring.plus_second
    if weight:
        inputs.require_no_negative(A, "hits", "Use weight=False to ignore it.")
    if A.nrows and not A.nvals:
        raise errors.InvalidValue("hits: there is no edge. Give a graph with one.")
    hubs = _distribution(A, nstart, "nstart", name="hits")
    hubs.name = "hubs"
    authorities, last = (Vector(FP64, A.nrows, like=A, name=x) for x in ("authorities", "last"))
    total, moved = Scalar(FP64, name="total"), Scalar(FP64, FARTHEST, name="moved")
    apart = Vector.from_coo([0], FARTHEST, size=1, like=A, name="apart")
    for _ in loop(until_empty=apart, times=max_iter):
        last << hubs
        authorities << 0
        authorities(accum=binary.plus) << follow(hubs @ A)
        total << authorities.reduce("plus")
        authorities << authorities.apply("truediv", right=total)
        hubs << 0
        hubs(accum=binary.plus) << against(A @ authorities)
        total << hubs.reduce("plus")
        hubs << hubs.apply("truediv", right=total)
        last << last.ewise_mult(hubs, binary.minus)
        last << last.apply("abs")
        moved << last.reduce("plus")
        apart << moved
        apart << apart.select("valuege", tol)
    _require_converged(A.nrows, moved, tol, max_iter, "hits: hubs")
    if not normalized and A.nrows:
        authorities << authorities.apply("truediv", right=authorities.reduce(agg.hypot).new().value)
        hubs << 0
        hubs(accum=binary.plus) << against(A @ authorities)
    return hubs, authorities


def _iteration(
    A: Matrix, max_iter: Any, tol: Any, weight: bool, name: str
) -> tuple[Any, float, int]:
    """Return the semiring of products along edges, the largest last change, and the iterations."""
    n = require_square(A)
    if weight:
        inputs.require_finite(A, name)
    enough = n * _tolerance(tol, name)
    times = integer(max_iter, f"{name}: max_iter", 0) if n else 0
    return semiring.plus_times if weight else semiring.plus_first, enough, times


# ---- centralities by degrees
def degree_centrality(A: Matrix) -> Vector:
    """Return the number of edges at each vertex, divided by the number of other vertices.

    Parameters
    ----------
    A : Matrix, (n, n)
        If the pattern is symmetric an undirected graph, where a self-loop counts twice; else edges
        in and out count, so a share may be up to 2.

    Returns
    -------
    Vector, (n,), FP64
        An entry for each vertex, ``degree / (n - 1)``; 1 if there is only one vertex.

    Notes
    -----
    Sums of rows and columns, O(m) work. Source: Freeman 1979; as NetworkX.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> degree_centrality(star(3, backend="cpu")).to_dense().tolist()
    [1.0, 0.5, 0.5]
    """
    require_square(A)
    ones = A.apply("one").new(INT64)
    loops = ones.select("diag").new() if ones.is_symmetric else ones
    return _share_of_others(A, ones.reduce_rowwise("plus"), loops.reduce_columnwise("plus"))


def in_degree_centrality(A: Matrix) -> Vector:
    """Return the number of edges into each vertex, divided by the number of other vertices.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j; a self-loop counts.

    Returns
    -------
    Vector, (n,), FP64
        An entry for each vertex; 1 if there is only one vertex.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0], [1, 2], [1, 1], nrows=3, ncols=3, backend="cpu")
    >>> in_degree_centrality(A).to_dense().tolist()
    [0.0, 0.5, 0.5]
    """
    require_square(A)
    return _share_of_others(A, A.apply("one").new(INT64).reduce_columnwise("plus"))


def out_degree_centrality(A: Matrix) -> Vector:
    """Return the number of edges out of each vertex, divided by the number of other vertices.

    Parameters
    ----------
    A
        As in `in_degree_centrality`.

    Returns
    -------
    Vector, (n,), FP64
        As `in_degree_centrality`.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0], [1, 2], [1, 1], nrows=3, ncols=3, backend="cpu")
    >>> out_degree_centrality(A).to_dense().tolist()
    [1.0, 0.0, 0.0]
    """
    require_square(A)
    return _share_of_others(A, A.apply("one").new(INT64).reduce_rowwise("plus"))


def _share_of_others(A: Matrix, *degrees: Any) -> Vector:
    """Return the sum of degrees over n - 1, or 1 for a single vertex."""
    share = Vector.from_scalar(float(A.nrows == 1), A.nrows, FP64, like=A, name="share")
    if A.nrows > 1:
        for degree in degrees:
            share(accum=binary.plus) << degree
        share << share.apply("times", right=1 / (A.nrows - 1))
    return share
