"""Centralities and distances: closeness, eccentricity, diameter and PageRank."""

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
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.arguments import integer
from lagpu.dtypes import FP64, INT32
from lagpu.host import progress
from lagpu.loops.loop import loop


def closeness_centrality(
    A: Matrix, u: Any = None, distance: None = None, wf_improved: bool = True
) -> Vector:
    """Return the reciprocal of the mean distance to each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
    u : int or list of int, optional
        Distinct vertices; by default all.
    distance : None
        Only for the same argument positions as in NetworkX, where it is a weight; an edge counts 1.
    wf_improved : bool
        Multiply by the share of the other vertices that reach the vertex (Wasserman and Faust).

    Returns
    -------
    Vector, (n,), FP64
        ``(r - 1) / (sum of the distances from the r vertices that reach u)``, 0 if only u itself
        does; an entry for each vertex asked for.

    Raises
    ------
    InvalidValue, IndexOutOfBound, DimensionMismatch, DomainMismatch
        If `u` is empty, has a vertex twice or a number that is not a vertex; if `A` is not square.
    NotSupported
        If `distance` is given.

    Notes
    -----
    A breadth-first search against the edges from each vertex. Source: Freeman 1979; as NetworkX.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> closeness_centrality(star(4, backend="cpu")).to_dense().tolist()
    [1.0, 0.6, 0.6, 0.6]
    """
    if distance is not None:
        raise errors.NotSupported(
            f"closeness_centrality: distance={distance!r}, but an edge counts 1. Leave it None."
        )

    def closeness(distances: Vector) -> float:
        others, total = distances.nvals - 1, distances.reduce("plus").new().value
        if not others:
            return 0.0
        share = others / (A.nrows - 1) if wf_improved else 1.0
        return float(others / total * share)

    return _from_distances(A, u, closeness, "closeness_centrality: u")


def harmonic_centrality(A: Matrix, nbunch: Any = None, *, sources: Any = None) -> Vector:
    """Return the sum of the reciprocals of the distances to each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
    nbunch : int or list of int, optional
        Distinct vertices; by default all.
    sources : int or list of int, optional
        Distinct vertices whose distances count; by default all.

    Returns
    -------
    Vector, (n,), FP64
        ``sum of 1 / distance`` from the other sources, 0 from where there is no path; an entry for
        each vertex asked for.

    Raises
    ------
    InvalidValue, IndexOutOfBound, DimensionMismatch, DomainMismatch
        If `nbunch` or `sources` is empty, has a vertex twice or a number that is not a vertex; if
        `A` is not square.

    Notes
    -----
    A breadth-first search against the edges from each vertex. Source: Boldi and Vigna 2014; as
    NetworkX.

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

    return _from_distances(A, nbunch, harmonic, "harmonic_centrality: nbunch")


def _from_distances(A: Matrix, vertices: Any, of: Callable[[Vector], float], what: str) -> Vector:
    """Return the value of `of` for the distances to each vertex, (n,), FP64."""
    back = _reversed(A)
    chosen = list(range(A.nrows)) if vertices is None else inputs.source_vertices(A, vertices, what)
    each = progress.over(chosen, what.partition(":")[0])
    values = [of(bfs_levels(back, v).dup(FP64)) for v in each]
    return Vector.from_coo(chosen, np.array(values, float), size=A.nrows, like=A)


# ---- eccentricities and diameters: the distance to the farthest vertex
#
# The exact diameter needs few searches: one from s, of eccentricity e, bounds all others::
#
#     upper = min(upper, d(., s) + e)
#     lower = max(lower, d(., s), e - d(s, .))


def eccentricity(A: Matrix, v: Any = None) -> Vector:
    """Return the distance from each vertex to the vertex farthest from it.

    Parameters
    ----------
    A : Matrix, (n, n)
    v : int or list of int, optional
        Distinct vertices; by default all.

    Returns
    -------
    Vector, (n,), INT32
        An entry for each vertex asked for.

    Raises
    ------
    NoPath
        If one of them does not reach every vertex.
    InvalidValue, IndexOutOfBound, DimensionMismatch, DomainMismatch
        If `v` is empty, has a vertex twice or a number that is not a vertex; if `A` is not square.

    Notes
    -----
    A breadth-first search from each vertex.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> eccentricity(path(4, backend="cpu")).to_dense().tolist()
    [3, 2, 2, 3]
    """
    require_square(A)
    vertices = (
        list(range(A.nrows)) if v is None else inputs.source_vertices(A, v, "eccentricity: v")
    )
    each = progress.over(vertices, "eccentricity")
    found = [_reach_all(A, s, "eccentricity")[1] for s in each]
    return Vector.from_coo(vertices, np.array(found, np.int32), size=A.nrows, like=A)


def diameter(A: Matrix) -> int:
    """Return the largest distance between two vertices.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j; n > 0.

    Returns
    -------
    int
        The largest eccentricity.

    Raises
    ------
    NoPath
        If some vertex does not reach another one.
    InvalidValue, DimensionMismatch, DomainMismatch
        If there is no vertex; if `A` is not square.

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
    lower = Vector.from_scalar(0, A.nrows, INT32, like=A, name="lower")
    upper = Vector.from_scalar(A.nrows, A.nrows, INT32, like=A, name="upper")
    found = -1
    for turn in itertools.count():
        upper << upper.select("valuegt", found)  # the others cannot increase the diameter
        if not upper.nvals:
            break
        lower(upper.S, replace=True) << lower
        s = _first(upper, "max") if turn % 2 == 0 else _first(lower, "min")
        forth, e = _reach_all(A, s, "diameter")
        backward = forth if back is A else _reach_all(back, s, "diameter", against=True)[0]
        found = max(found, e)
        upper(upper.S, accum=binary.min) << backward.apply("plus", right=e)
        lower(lower.S, accum=binary.max) << backward
        lower(lower.S, accum=binary.max) << forth.apply("minus", left=e)
    return found


def radius(A: Matrix) -> int:
    """Return the least distance from a vertex to the vertex farthest from it.

    Parameters
    ----------
    A
        As in `diameter`.

    Returns
    -------
    int
        The least eccentricity.

    Raises
    ------
    NoPath, InvalidValue, DimensionMismatch, DomainMismatch
        As `diameter`; the searches are those of `eccentricity`.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> radius(path(5, backend="cpu"))
    2
    """
    return int(_eccentricities(A, "radius").reduce("min").new().value)


def center(A: Matrix) -> Vector:
    """Return the vertices from which the farthest one is nearest.

    Parameters
    ----------
    A
        As in `diameter`.

    Returns
    -------
    Vector, (n,), BOOL
        True where the eccentricity is the radius; no entry elsewhere.

    Raises
    ------
    NoPath, InvalidValue, DimensionMismatch, DomainMismatch
        As `diameter`; the searches are those of `eccentricity`.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> center(path(5, backend="cpu")).to_coo()[0].tolist()
    [2]
    """
    return inputs.where_any(_best(_eccentricities(A, "center"), "min"), "members")


def periphery(A: Matrix) -> Vector:
    """Return the vertices from which the farthest one is farthest.

    Parameters
    ----------
    A
        As in `diameter`.

    Returns
    -------
    Vector, (n,), BOOL
        True where the eccentricity is the diameter; no entry elsewhere.

    Raises
    ------
    NoPath, InvalidValue, DimensionMismatch, DomainMismatch
        As `diameter`; the searches are those of `eccentricity`.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> periphery(path(5, backend="cpu")).to_coo()[0].tolist()
    [0, 4]
    """
    return inputs.where_any(_best(_eccentricities(A, "periphery"), "max"), "members")


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
        The distance from `begin` to `end`: at most the diameter, and in a tree the diameter.

    Raises
    ------
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or `source` is not a vertex.

    Notes
    -----
    Each search starts from the farthest vertex of the one before, alternately along and against the
    edges, while distances grow.
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
        depth = levels.reduce("max").new().value
        if depth <= length:
            break
        there = _first(levels, "max")
        length, ends = depth, (here, there) if turn % 2 == 0 else (there, here)
        here = there
    return (length, *ends)


def _reversed(A: Matrix) -> Matrix:
    """Return ``A'``, or `A` itself if it is symmetric."""
    require_square(A)
    return A if A.is_symmetric else A.T.new()


def _require_a_vertex(A: Matrix, what: str) -> None:
    if require_square(A) == 0:
        raise errors.InvalidValue(f"{what}: there is no vertex. Give a graph with one.")


def _eccentricities(A: Matrix, what: str) -> Vector:
    """Return the eccentricities of a graph with vertices."""
    _require_a_vertex(A, what)
    return eccentricity(A)


def _reach_all(A: Matrix, s: int, what: str, *, against: bool = False) -> tuple[Vector, int]:
    """Return the levels from `s`, and the largest, or raise `NoPath`."""
    levels = bfs_levels(A, s)
    if levels.nvals < A.nrows:
        v = int((~levels.S).new().to_coo()[0][0])
        pair = (v, s) if against else (s, v)
        raise errors.NoPath(
            f"{what}: there is no path from {pair[0]} to {pair[1]}. "
            "Take one (strongly) connected component, or pseudo_diameter."
        )
    return levels, levels.reduce("max").new().value


def _first(v: Vector, op: str) -> int:
    """Return the least index of the greatest ("max") or least ("min") value."""
    return int(_best(v, op).to_coo()[0][0])


def _best(v: Vector, op: str) -> Vector:
    """Return the entries of the greatest or least value."""
    best: Vector = v.select("valueeq", v.reduce(op).new().value).new()
    return best


# ------------------------------------------------------------------------------------------
# PageRank by power iteration.
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
    A: Matrix,
    alpha: float = 0.85,
    personalization: Weights | None = None,
    max_iter: int = 100,
    tol: float = 1e-6,
    nstart: Weights | None = None,
    weight: bool = True,
    dangling: Weights | None = None,
) -> Vector:
    """Return the PageRank of each vertex.

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
    tol : float
        Stop when the sum of all changes is less than ``min(n * tol, 1e-3)``.
    nstart : Vector or dict, optional
        Weights of the first ranks; by default equal.
    weight : bool
        Whether values are weights; else each edge counts 1.
    dangling : Vector or dict, optional
        Weights of the vertices to which the walker goes from a vertex without edges out; by default
        `personalization`.

    Returns
    -------
    Vector, (n,), FP64
        Full; the ranks have the sum 1.

    Raises
    ------
    NotConverged
        If `max_iter` iterations are not enough.
    InvalidValue
        If a weight, `alpha`, `max_iter` or `tol` is out of range or NaN, or the weights of an
        argument have the sum 0.
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or an argument does not fit it.

    Notes
    -----
    One product per iteration; on `gpu` and `sim` all iterations are one kernel. Source: Page, Brin,
    Motwani and Winograd 1999; parameters, stopping and treatment of dangling vertices as in
    NetworkX, but for the bound 1e-3: NetworkX stops below ``n * tol`` alone, and the sum of all
    ranks is 1, so for more than a million vertices the default of NetworkX stops after the first
    iteration. With the default `tol` the bound matters from 1000 vertices on. After a change by r
    the ranks are within ``r * alpha / (1 - alpha)`` of the exact ones.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> pagerank(star(3, backend="cpu")).to_dense().round(3).tolist()
    [0.486, 0.257, 0.257]
    """
    require_square(A)
    if weight:
        inputs.require_finite(A, "pagerank")
        least = A.reduce("min").new().value
        if least is not None and least < 0:
            raise errors.InvalidValue(
                f"pagerank: a weight is {least} < 0. Use weight=False to ignore it."
            )
    if not 0 <= inputs.number(alpha, "pagerank: alpha") <= 1:
        raise errors.InvalidValue(f"pagerank: alpha {alpha} is not a probability, 0 to 1.")
    if not 0 < inputs.number(tol, "pagerank: tol") < np.inf:
        raise errors.InvalidValue(
            f"pagerank: tol {tol} is not above 0 and finite. Give a tolerance."
        )
    n, max_iter = A.nrows, integer(max_iter, "pagerank: max_iter", 0)
    ones = Vector.from_scalar(1, n, FP64, like=A, name="ones")
    jumps = _distribution(A, personalization, "personalization", 1 - alpha)
    if dangling is None:
        sent = _distribution(A, personalization, "personalization", alpha)
    else:
        sent = _distribution(A, dangling, "dangling", alpha)
    ranks = _distribution(A, nstart, "nstart").dup(name="ranks")
    out, left, new = (Vector(FP64, n, like=A) for _ in range(3))
    add_up, follow = (
        (semiring.plus_times,) * 2 if weight else (semiring.plus_second, semiring.plus_first)
    )
    out << add_up(A @ ones)
    if weight and _is_extreme(out):
        A = _with_largest_1(A)
        out << add_up(A @ ones)
    if weight:
        out << out.select("valuegt", 0)
    rate = out.apply("truediv", left=alpha).new()
    enough = min(n * tol, MOST)
    lost, moved = Scalar(FP64, name="lost"), Scalar(FP64, FARTHEST, name="moved")
    apart = Vector.from_coo([0], FARTHEST, size=1, like=A, name="apart")
    for _ in loop(until_empty=apart, times=max_iter if n else 0):
        left(~rate.S, replace=True) << ranks
        lost << 0
        lost(accum=binary.plus) << left.reduce("plus")
        new << ranks.ewise_mult(rate, binary.times)
        new << follow(new @ A)
        new(accum=binary.plus) << sent.apply("times", right=lost)
        new(accum=binary.plus) << jumps
        ranks << ranks.ewise_mult(new, binary.minus)
        ranks << ranks.apply("abs")
        moved << ranks.reduce("plus")
        ranks << new
        apart << moved
        apart << apart.select("valuege", enough)
    if n and not moved.value < enough:  # also for NaN
        raise errors.NotConverged(
            f"pagerank: ranks still change by {moved.value:.3g} in sum, not below {enough:.3g}, "
            f"after {max_iter} iterations. Allow more with max_iter="
            + (", or a larger tol=." if enough < MOST else ".")
        )
    return ranks


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
    scaled: Matrix = by_columns.T.new()
    return scaled


def _distribution(A: Matrix, weights: Weights | None, what: str, total: float = 1) -> Vector:
    """Return weights as a full vector with the sum `total`; equal ones for None."""
    n = A.nrows
    full = Vector(FP64, n, like=A, name=what)
    given: Any = weights
    if given is None:
        full << total / max(n, 1)
        return full
    if not isinstance(given, (Vector, Mapping)):
        raise errors.DomainMismatch(f"pagerank: {what} is neither a Vector nor a dict of weights.")
    if not isinstance(given, Vector):
        values = [inputs.number(x, f"pagerank: {what}") for x in given.values()]
        given = Vector.from_coo(list(given), values, FP64, size=n, like=A, name=what)
    if given.size != n:
        raise errors.DimensionMismatch(f"pagerank: {what}.size {given.size} != {n} vertices.")
    found = given.to_coo()[1].astype(float)
    if not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
        raise errors.InvalidValue(
            f"pagerank: {what} needs finite weights >= 0, at least one above 0."
        )
    full << 0
    largest = float(found.max())  # first, so that the sum of large weights does not overflow
    full(given.S) << given
    full << full.apply("truediv", right=largest)
    full << full.apply("truediv", right=float((found / largest).sum()))
    if total != 1:
        full << full.apply("times", right=total)
    return full
