"""Betweenness centrality of vertices and edges by Brandes' algorithm."""

from __future__ import annotations

import contextvars
import math
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.bfs import bfs_levels
from lagpu.algorithms.inputs import frontier_of, random_seed, require_square, source_vertices
from lagpu.algorithms.sssp import bellman_ford, lengths_of, tight_edges
from lagpu.algorithms.structure import connected_components
from lagpu.backends.protocol import Clusters, of_all, require_alike
from lagpu.core import Matrix, Vector
from lagpu.core.arguments import integer
from lagpu.core.recorder import current_observer
from lagpu.dtypes import BOOL, FP64, INT32, INT64, Array
from lagpu.errors import InvalidValue, LimitExceeded
from lagpu.host import progress
from lagpu.loops.loop import loop, sweep
from lagpu.operations import Handle

__all__ = ["betweenness_centrality", "betweenness_estimate", "edge_betweenness_centrality"]


# k x n matrices in use at the same time. FP64: paths, delta, share, pulled and frontier; INT32:
# levels, and a sweep's copy of one level; BOOL: here and above.
_LIVE = ((FP64, 5), (INT32, 2), (BOOL, 2))


def sample(A: Matrix, k: Any, seed: Any, sources: Any = None) -> list[int]:
    """Return all vertices, some given ones, or `k` random ones, the same as NetworkX chooses."""
    require_square(A)
    if np.ndim(k) or (k is not None and sources is not None):
        raise InvalidValue("betweenness: k is a number of random sources. Give it or sources=[v].")
    if sources is not None:
        return source_vertices(A, sources, "betweenness: sources")
    if k is None:
        return list(range(A.nrows))
    k = integer(k, "betweenness: k")
    if not 1 <= k <= A.nrows:
        raise InvalidValue(f"betweenness: k {k} is not one of 1 .. {A.nrows} sources.")
    if hasattr(seed, "sample"):  # a generator; each process of a grid has its own
        return list(map(int, of_all(A.backend, *seed.sample(range(A.nrows), k))[0]))
    return random.Random(random_seed(seed, "betweenness", A)).sample(range(A.nrows), k)


def some_targets(A: Matrix, k: int | None, targets: Any) -> list[int] | None:
    """Return the given targets, or None if all vertices are."""
    if targets is None:
        return None
    if k is not None:
        raise InvalidValue("betweenness: k estimates for all targets. Give sources, not k.")
    return source_vertices(A, targets, "betweenness: targets")


def batch_size(A: Matrix, sources: Sequence[int]) -> int:
    """Return how many sources to take at once, which the backend of `A` decides.

    A search from the first source gives the backend the number of levels.
    """
    if len(sources) < 2:
        return 1
    levels = 1 + bfs_levels(A, sources[0]).reduce("max").new().value
    return A.backend.batch_size(A.data, len(sources), levels, _LIVE)


def batches(A: Matrix, sources: list[int], batch: int | None) -> Iterator[list[int]]:
    """Yield the sources in batches of `batch`, or for None of `batch_size`."""
    batch = integer(batch_size(A, sources) if batch is None else batch, "betweenness: batch", 1)
    for k in range(0, len(sources), batch):
        yield sources[k : k + batch]


def count_paths(A: Matrix, sources: list[int]) -> tuple[Any, Any]:
    """Return the levels of the vertices, and the numbers of shortest paths to the vertices.

    Both are vectors for one source, and matrices with a row for each of several sources.
    """
    frontier: Any
    if len(sources) == 1:
        frontier = Vector(FP64, A.nrows, like=A, name="frontier")
        frontier[sources[0]] = 1
    else:
        frontier = frontier_of(A, sources, 1, FP64)
    levels = type(frontier)(INT32, *frontier.shape, like=A, name="levels")
    paths = type(frontier)(FP64, *frontier.shape, like=A, name="paths")
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        paths(frontier.S) << frontier
        frontier(~levels.S, replace=True) << semiring.plus_first(frontier @ A)
    _require_countable(paths, sources)
    return levels, paths


def _require_countable(paths: Any, sources: list[int]) -> None:
    if math.isinf(paths.reduce("max").new().value):
        named = f"one of {len(sources)} vertices" if len(sources) > 1 else f"vertex {sources[0]}"
        raise LimitExceeded(
            f"betweenness: from {named} there are more than 1.8e308 shortest paths to a "
            "vertex, which do not fit FP64. Choose other sources with k and seed, or leave out the "
            "part of the graph that multiplies the paths."
        )


def count_weighted_paths(A: Matrix, source: int) -> tuple[Matrix, Vector, Vector]:
    """Return the tight edges, levels among these, and the numbers of paths of least length.

    Edges of lengths above 0 that lie on such paths close no cycle, so a vertex has its number of
    paths once all its tight edges in are settled, as in a topological order. Its level is the
    largest number of edges of such a path: a tight edge may skip levels.
    """
    T = tight_edges(A, bellman_ford(A, source))
    frontier, paths, came = (Vector(FP64, A.nrows, like=A, name=x) for x in ("frontier", "p", "q"))
    levels = Vector(INT32, A.nrows, like=A, name="levels")
    waiting, settled, ready = (
        Vector(INT64, A.nrows, like=A, name=name) for name in ("waiting", "settled", "ready")
    )
    waiting << T.apply("one").new(INT64).reduce_columnwise("plus")
    frontier[source] = 1
    paths[source] = 1
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        came << semiring.plus_first(frontier @ T)
        paths(accum=binary.plus) << came
        settled << semiring.plus_pair(frontier @ T)
        waiting(accum=binary.minus) << settled
        ready << waiting.select("valueeq", 0)
        waiting(~ready.S, replace=True) << waiting
        frontier(ready.S, replace=True) << paths
    if waiting.nvals:
        raise InvalidValue(
            f"betweenness: from {source} rounding makes the length of a cycle 0, so paths of least "
            "length cannot be counted. Give integer lengths, or leave out the largest."
        )
    _require_countable(paths, [source])
    return T, levels, paths


def require_above_0(A: Matrix) -> Matrix:
    """Return the lengths of the edges of `A`, or raise unless all are above 0."""
    least = A.reduce("min").new().value
    if least is not None and not least > 0:
        raise InvalidValue(
            f"betweenness: a weight is {least}, but paths of least length are counted, and with "
            "edges of length 0 there may be any number. Give lengths above 0."
        )
    return lengths_of(A, "betweenness")


def dependencies(
    A: Matrix, levels: Any, paths: Any, held: Matrix | None = None,
    targets: list[int] | None = None, skips: bool = False,
) -> Any:  # fmt: skip
    """Return the dependencies of each source on the vertices that it reaches.

    The dependency on v is the sum over all t of (paths to t through v) / (paths to t); on the
    source itself it is the number of vertices that the source reaches. A diagonal matrix `held`
    counts the other vertices that are folded into each vertex: they are targets too, and the result
    for v includes those that are folded into v. Only t in `targets` count. `skips`: all edges are
    on shortest paths, and one may skip levels, as in the results of `count_weighted_paths`.
    """
    delta, share, pulled = (
        type(paths)(FP64, *paths.shape, like=A, name=name) for name in ("delta", "share", "pulled")
    )
    delta(paths.S) << 0
    if held is not None:
        delta << semiring.plus_second(paths @ held)
    ends, some = delta if targets is None else reached(targets, paths), targets is not None
    for here, above in sweep(levels):
        if some:
            share(here.S, replace=True) << delta.ewise_mult(ends, binary.plus)
        else:
            share(here.S, replace=True) << delta.apply(binary.plus, right=1)
        share(here.S) << share.ewise_mult(paths, binary.truediv)
        if skips:
            pulled << semiring.plus_first(share @ A.T)
        else:
            pulled(above.S, replace=True) << semiring.plus_first(share @ A.T)
        delta(accum=binary.plus) << pulled.ewise_mult(paths, binary.times)
    return delta


def reached(targets: list[int], paths: Any) -> Any:
    """Return 1 at the targets that each source reaches, and 0 at other vertices that it reaches."""
    n = paths.shape[-1]
    chosen = np.zeros(n)
    chosen[targets] = 1
    each = np.arange(n + 1)
    D = Matrix.from_csc(each, each[:n], chosen, nrows=n, like=paths, name="targets")
    ends = paths.dup(name="ends")
    ends(paths.S) << semiring.plus_second(paths @ D)
    return ends


def is_directed(A: Matrix, weight: bool = False) -> bool:
    """Return True if the pattern of `A`, or with `weight` its values, are not symmetric."""
    return not (A if weight else A.apply("one").new()).is_symmetric


def require_reverses(A: Matrix, directed: bool | None, option: str = "directed=False") -> None:
    """Raise `InvalidValue` if `directed` is False and an edge has no reverse."""
    if directed is not None and not directed and is_directed(A):
        raise InvalidValue(
            f"betweenness: {option}, but an edge has no reverse. Give the undirected graph, as "
            f"A.ewise_add(A.T, 'max').new(), or leave {option.partition('=')[0]}= out."
        )


def scale(
    A: Matrix, sources: list[int], normalized: bool, endpoints: bool, directed: bool | None,
    whole_sum: bool = False,
) -> tuple[float, float]:  # fmt: skip
    """Return the factors of the sums over pairs, of vertices that are not sources and of sources.

    A pair (s, t) counts for v if s is a source, t another vertex and, without endpoints, v is
    neither. NaN where no pair counts. `whole_sum`: as if all vertices were sources.
    """
    n, count = A.nrows, len(sources)
    others = n if endpoints else n - 1
    if others < 2:
        return 1.0, 1.0
    whole = 1.0
    if not normalized:
        whole = others * (others - 1)
        whole /= 1 if (is_directed(A) if directed is None else directed) else 2
    if whole_sum:
        return (whole / (others * (others - 1)),) * 2

    def factor(count: int) -> float:
        return whole / (count * (others - 1)) if count else math.nan

    return factor(count), factor(count if endpoints else count - 1)


# ---- sums over sources, which the sub-clusters of a grid share out; elsewhere one has them all

Add = Callable[[Matrix, list[int], list[Vector]], None]


def sums(
    A: Matrix, sources: list[int], batch: int | None, pieces: int | None, count: int, add: Add
) -> list[Vector]:
    """Return so many sums over sources, full vectors of FP64.

    ``add(A, chosen, totals)`` adds what some sources contribute; `A` may be a copy. Sub-cluster c
    of C has ``sources[c::C]`` of those in an order where sources without edges are last. Their sums
    are added in order, so the result is the same on every run.
    """
    pieces = None if pieces is None else integer(pieces, "betweenness: pieces")
    split = A.backend.capabilities.clusters
    if split is None and pieces not in (None, 1):
        raise InvalidValue(
            f"betweenness: pieces {pieces}: {A.backend.name} has no sub-clusters. Leave it out."
        )
    require_alike(A.backend, "betweenness", sources=np.array(sources), batch=batch)
    clusters = None if split is None else split(A.data, pieces)
    stop = threading.Event()

    def added(B: Matrix, mine: list[int]) -> list[Vector]:
        new = partial(Vector.from_scalar, 0, B.nrows, FP64, like=B, name="total")
        totals, taken = [new() for _ in range(count)], 0
        with progress.bar("betweenness", len(mine)) as done:
            for chosen in batches(B, mine, batch):
                if stop.is_set():
                    break
                add(B, chosen, totals)
                taken += len(chosen)
                done(taken)
        return totals

    if clusters is None:
        return added(A, sources)
    shared: Clusters = clusters
    first = A.reduce_rowwise("any").new()[sources].new().to_coo()[0]
    ordered = [sources[k] for k in first] + np.delete(sources, first).tolist()

    def copy(k: int) -> Matrix:
        made = shared.copy(A.data, k)
        return Matrix._of(made, BOOL, (A.nrows, A.ncols), shared.backends[k], None)

    def part(k: int, copied: Matrix) -> list[Any]:
        found = added(copied, ordered[shared.numbers[k] :: shared.count])
        if not shared.add_up:
            return [x.to_dense() for x in found]
        for x in found:
            x.wait()
        return [x.data for x in found]

    def work() -> list[Handle]:
        parts = _each(shared, copy, part, stop)
        return [shared.total(list(one)) for one in zip(*parts, strict=True)]

    made = shared.run(work)
    return [Vector._of(total, FP64, (A.nrows,), A.backend, "total") for total in made]


def _each(
    shared: Clusters, copy: Callable[[int], Matrix], work: Callable[[int, Matrix], list[Any]],
    stop: threading.Event,
) -> list[list[Any]]:  # fmt: skip
    """Do some work for each sub-cluster: in threads if devices are apart and nothing observes."""
    # Otherwise each copy is freed before the next one is made.
    numbers = range(len(shared.numbers))
    if not shared.apart or current_observer() is not None:
        return [shared.inside(partial(work, k, copy(k))) for k in numbers]
    copies = [copy(k) for k in numbers]
    with ThreadPoolExecutor(len(copies)) as threads:
        try:
            done = [
                threads.submit(contextvars.copy_context().run, work, k, copies[k]) for k in numbers
            ]
            return [one.result() for one in done]
        finally:
            stop.set()  # after an error or Ctrl-C the others end at their next batch


# ---- the 1-degree reduction of betweenness: branches that are trees are folded into their roots
#
# A vertex of degree 1 is folded into its neighbour, whose mass, the number of vertices folded into
# it and itself, grows by that of the leaf; this repeats until every degree is 0 or at least 2.
# The paths through branches follow from masses alone.
class Folded(NamedTuple):
    """A graph whose branches are folded."""

    A: Matrix  # (k, k): edges between vertices of degree 2 and more, without self-loops
    vertices: Array  # of `A`, (k,)
    mass: Array  # for each vertex, how many are folded into it, itself included
    known: Array  # what the searches of `A` do not give each vertex, pairs counted both ways
    reachable: Array  # the vertices of each vertex's component


def fold_branches(A: Matrix) -> Folded:
    """Fold the branches of an undirected graph, where self-loops do not count.

    For a source s that is left, let e(s, v) be mass(v) - 1 and the sum over the successors w of v
    of ``paths(v) / paths(w) (1 + e(s, w))``. Then v has ``known[v]``, and of all other sources
    ``mass[s] e(s, v)``.

    As many rounds as the longest branch has edges. With c the vertices of a component and m the
    mass of v, a pair of a vertex folded into v with another of its component leads through v:
    ``2 (m - 1) (c - m)`` if the second one is not folded into v too (where v is left, the sum above
    has half of it); and two branches give v ``2 m_i m_j``.
    Derived for this program; the heuristic is that of Bernaschi, Carbone and Vella 2016.
    """
    edges = A.select("offdiag").new().apply("one").new(BOOL, name="edges")
    mass = Vector.from_scalar(1, A.nrows, FP64, like=A, name="mass")
    between = Vector.from_scalar(0, A.nrows, FP64, like=A, name="between")
    vertices = _peeled(edges, mass, between).select("valuegt", 0).new().to_coo()[0]
    held = mass.to_dense()
    labels = connected_components(edges).to_dense().astype(np.int64)
    reachable = np.bincount(labels, minlength=A.nrows)[labels].astype(float)
    half = np.full(A.nrows, 2.0)
    half[vertices] = 1  # the searches give the other half
    known = between.to_dense() + half * (held - 1) * (reachable - held)
    rest = edges[vertices, vertices].new(name=A.name) if len(vertices) < A.nrows else edges
    return Folded(rest, vertices, held, known, reachable)


def _peeled(edges: Matrix, mass: Vector, between: Vector) -> Vector:
    """Fold leaves until there is none; return the degree of each vertex that is left, 0 or more."""
    n = edges.nrows
    degree = Vector.from_scalar(0, n, INT64, like=edges, name="degree")
    degree(accum=binary.plus) << edges.apply("one").new(INT64).reduce_rowwise("plus")
    number = Vector.from_dense(np.arange(n), like=edges, name="number")
    leaves, fewer, partner = (
        Vector(INT64, n, like=edges, name=name) for name in ("leaves", "fewer", "partner")
    )
    given, total, others = (
        Vector(FP64, n, like=edges, name=name) for name in ("given", "total", "others")
    )
    leaves << degree.select("valueeq", 1)
    for _ in loop(until_empty=leaves):
        # Of two leaves that have each other the one of the smaller number goes.
        partner(leaves.S, replace=True) << semiring.any_secondi(leaves @ edges)
        partner << partner.ewise_mult(number, binary.minus)
        partner << partner.select("valuelt", 0)
        leaves(~partner.S, replace=True) << leaves
        degree(~leaves.S, replace=True) << degree
        given(leaves.S, replace=True) << mass
        # Two branches m_i, m_j, or what was folded before, m - 1: (2 (m - 1) + t) t - sum(m_i^2).
        total(degree.S, replace=True) << semiring.plus_first(given @ edges)
        others(total.S, replace=True) << mass.apply(binary.minus, right=1)
        others << others.apply(binary.times, right=2)
        others << others.ewise_add(total, binary.plus)
        others << others.ewise_mult(total, binary.times)
        between(accum=binary.plus) << others
        mass(accum=binary.plus) << total
        given << given.ewise_mult(given, binary.times)
        total(degree.S, replace=True) << semiring.plus_first(given @ edges)
        between(accum=binary.minus) << total
        fewer(degree.S, replace=True) << semiring.plus_pair(leaves @ edges)
        degree(accum=binary.minus) << fewer
        leaves << degree.select("valueeq", 1)
    return degree


# ---- betweenness centrality of vertices: Brandes' algorithm, for one source or many at once
def betweenness_centrality(
    A: Matrix, k: int | None = None, normalized: bool = True, *, weight: bool = False,
    endpoints: bool = False, directed: bool | None = None, sources: Any = None, targets: Any = None,
    seed: int | random.Random | None = None, batch: int | None = None, one_degree: bool = False,
    pieces: int | None = None,
) -> Vector:  # fmt: skip
    """Return the share of shortest paths that lead through each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
    k : int, optional
        Estimate from this many sources chosen at random, 1 to n; by default all are used.
    normalized : bool
        Divide by the number of pairs of vertices that count; else a pair counts 1.
    weight : bool
        Whether values are lengths above 0; else each edge counts 1.
    endpoints : bool
        Whether a path leads through its own ends.
    directed : bool, optional
        If False, (s, t) and (t, s) are one pair, which matters only without `normalized`; by
        default True if the pattern, or with `weight` a length, is not symmetric.
    sources : int or list of int, optional
        Distinct vertices whose paths count, in place of `k`; scaled as an estimate from these.
    targets : int or list of int, optional
        Distinct vertices to which paths count; not with `k`. Nothing is scaled up then: only pairs
        of a source and a target count, divided with `normalized` by the number of all pairs.
    seed : int or random.Random, optional
        Seed of the choice of sources, or the generator that draws them; NetworkX chooses the same
        for vertices ``0 .. n-1``.
    batch : int, optional
        Sources at once, 1 or more; by default ``lagpu.algorithms.betweenness.batch_size(A,
        sources)``, which suits the graph and the free memory of the backend. It changes only time,
        memory and rounding.
    one_degree : bool
        First fold branches that are trees into their roots: the sizes of the branches give their
        part of the result, so no search begins in a branch or enters one. For an undirected graph
        and all sources. It changes only time and rounding.
    pieces : int, optional
        On a grid, the number of pieces that share a copy of the graph, which is then a sub-cluster
        with sources of its own; by default the smallest number that holds the graph. It changes
        only time, memory and rounding.

    Returns
    -------
    Vector, (n,), FP64
        An entry for each vertex. With ``k=1`` and without endpoints the source is NaN, as no pair
        counts for it.

    Raises
    ------
    InvalidValue
        If a length is not above 0, or so small beside others that rounding loses those of a cycle;
        or an edge has no reverse although ``directed=False`` or `one_degree`, which takes all
        sources and no weights.
    LimitExceeded
        If there are more than 1.8e308 shortest paths to a vertex.

    Notes
    -----
    Two products for each level and batch; memory does not depend on the number of levels. On `gpu`
    the search and the sweep of a single source are one kernel each.
    With `weight` the sources come one by one. Each takes a `bellman_ford`, the matrix of edges on
    paths of least length, and a search and a sweep of as many products as such a path may have
    edges: O(m) work after the distances, and m more entries of memory. Float lengths are rounded
    sums, so paths whose lengths differ by rounding count as different, as in NetworkX.
    The result is the sum over s and t of (paths from s to t through v) / (paths from s to t),
    scaled as in NetworkX 3.6.
    Source: Brandes 2001; Brandes and Pich 2007 (samples); Kepner and Gilbert 2011, chapter 6
    (batches); Brandes 2008 (targets, as in NetworkX' ``betweenness_centrality_subset``).

    Examples
    --------
    >>> from lagpu.generators import star
    >>> betweenness_centrality(star(4, backend="cpu")).to_dense().tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    chosen, ends = sample(A, k, seed, sources), some_targets(A, k, targets)
    require_reverses(A, directed)
    if one_degree:
        if k is not None or sources is not None or targets is not None or weight:
            raise InvalidValue(
                "betweenness: one_degree counts all pairs, without weights. Leave out the others."
            )
        require_reverses(A, False, "one_degree=True")
        total = _of_folded(A, endpoints, batch, pieces)
    elif weight:
        directed = is_directed(A, weight) if directed is None else directed
        total = _weighted_sum(require_above_0(A), chosen, endpoints, ends)
    else:
        (total,) = _sums(A, chosen, endpoints, batch, pieces, targets=ends)
    _scale(total, chosen, scale(A, chosen, normalized, endpoints, directed, ends is not None))
    return total


def _count_ends(delta: Any, levels: Any, endpoints: bool, targets: list[int] | None) -> None:
    """Count paths at their ends too, or leave out the sources."""
    if not endpoints:
        delta(levels.V, replace=True) << delta  # the source is at level 0
    elif targets is None:
        delta(levels.V, accum=binary.plus) << 1
    else:
        delta(levels.V, accum=binary.plus) << reached(targets, delta)


def _weighted_sum(
    A: Matrix, sources: list[int], endpoints: bool, targets: list[int] | None
) -> Vector:
    """Return the sum of the dependencies over the sources, by lengths above 0."""
    total = Vector.from_scalar(0, A.nrows, FP64, like=A, name="total")
    for source in sources:
        T, levels, paths = count_weighted_paths(A, source)
        delta = dependencies(T, levels, paths, targets=targets, skips=True)
        _count_ends(delta, levels, endpoints, targets)
        total(accum=binary.plus) << delta
    return total


def betweenness_estimate(
    A: Matrix, k: int, normalized: bool = True, *, endpoints: bool = False,
    directed: bool | None = None, seed: int | random.Random | None = None, batch: int | None = None,
    pieces: int | None = None,
) -> tuple[Vector, Vector]:  # fmt: skip
    """Return betweenness centralities estimated from some sources, and their standard errors.

    Parameters
    ----------
    A, k, normalized, endpoints, directed, seed, batch, pieces
        As in `betweenness_centrality`.

    Returns
    -------
    centrality, error : Vector, (n,), FP64
        An entry for each vertex. The error is 0 where all sources that count were used, NaN where
        only one was used.

    Raises
    ------
    InvalidValue, LimitExceeded
        As `betweenness_centrality`.

    Notes
    -----
    Each of m = `k` sources, drawn from N = n vertices, contributes a value x to a vertex. Without
    endpoints the vertex itself does not count: N is n - 1, and m is k - 1 for a vertex drawn.
    Centrality is a multiple of the mean x, the standard error the same multiple of
    ``sqrt((1 - m/N) s**2 / m)``, where
    ``s**2 = sum((x - mean)**2) / (m - 1)`` is an unbiased estimate of the variance over all
    choices. Contributions are skewed, so an interval from this error is rough if k is small.
    Source: Brandes and Pich 2007; Cochran 1977, chapter 2 (sampling without replacement).

    Examples
    --------
    >>> from lagpu.generators import star
    >>> found, error = betweenness_estimate(star(5, backend="cpu"), 3, seed=1)
    >>> found.get(0), error.get(0)
    (1.0, 0.0)
    """
    sources = sample(A, k, seed)
    require_reverses(A, directed)
    total, squares = _sums(A, sources, endpoints, batch, pieces, squares=True)
    used = np.full(A.nrows, len(sources), float)  # the sources that count for each vertex
    if not endpoints:
        used[sources] -= 1
    population = A.nrows if endpoints else A.nrows - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.maximum(squares.to_dense() - total.to_dense() ** 2 / used, 0)
        errors = np.sqrt(spread / (used - 1) * used * (1 - used / population))
    errors[used == population] = 0
    error = Vector.from_dense(errors, like=A, name="error")
    factors = scale(A, sources, normalized, endpoints, directed)
    for x in (total, error):
        _scale(x, sources, factors)
    return total, error


def _scale(x: Vector, sources: list[int], factors: tuple[float, float]) -> None:
    """Multiply by one factor where there is no source, and by another where there is one."""
    others, own = factors
    chosen = Vector.from_coo(sources, True, BOOL, size=x.size, like=x)
    x(~chosen.S, accum=binary.times) << others
    x(chosen.S, accum=binary.times) << own


def _sums(
    A: Matrix, sources: list[int], endpoints: bool, batch: int | None, pieces: int | None,
    squares: bool = False, targets: list[int] | None = None,
) -> list[Vector]:  # fmt: skip
    """Return the sums of the dependencies over the sources, and of their squares if wanted."""

    def add(B: Matrix, chosen: list[int], totals: list[Vector]) -> None:
        levels, paths = count_paths(B, chosen)
        delta = dependencies(B, levels, paths, targets=targets)
        # All but the source, whose level is 0; of several sources each row leaves out its own.
        inside = levels.V if isinstance(delta, Vector) and not endpoints else None
        if inside is None:
            _count_ends(delta, levels, endpoints, targets)
        totals[0](inside, accum=binary.plus) << _by_vertex(delta)
        if squares:
            square = delta.ewise_mult(delta, binary.times).new()
            totals[1](inside, accum=binary.plus) << _by_vertex(square)

    return sums(A, sources, batch, pieces, 1 + squares, add)


def _of_folded(A: Matrix, endpoints: bool, batch: int | None, pieces: int | None) -> Vector:
    """Return the sums of the dependencies over all sources, from the graph without its branches."""
    folded = fold_branches(A)
    mass = folded.mass[folded.vertices]
    held: dict[int, Matrix] = {}  # on each backend that has a copy of the graph

    def add(B: Matrix, chosen: list[int], totals: list[Vector]) -> None:
        if id(B.backend) not in held:
            held[id(B.backend)] = Vector.from_dense(mass - 1, like=B).diag()
        levels, paths = count_paths(B, chosen)
        delta = dependencies(B, levels, paths, held[id(B.backend)])
        delta(levels.V, replace=True) << delta
        if isinstance(delta, Vector):
            totals[0](accum=binary.plus) << delta.apply(binary.times, right=mass[chosen[0]])
        else:
            weight = Vector.from_dense(mass[chosen], like=B)
            totals[0](accum=binary.plus) << semiring.plus_times(weight @ delta)

    total = folded.known
    if len(mass):
        (found,) = sums(folded.A, list(range(len(mass))), batch, pieces, 1, add)
        total[folded.vertices] += found.to_dense()
    if endpoints:
        total += 2 * (folded.reachable - 1)
    return Vector.from_dense(total, like=A, name="betweenness")


def _by_vertex(x: Vector | Matrix) -> Any:
    return x if isinstance(x, Vector) else x.reduce_columnwise("plus")


# ---- betweenness centrality of edges: the flow of dependencies along edges from each source
#
# With levels l, path counts p and `dependencies` d, each vertex in its own column::
#
#     P(l(v) + 1, v) = p(v)
#     S(l(v), v) = (1 + d(v)) / p(v)
#     F<s(A)> += P' (+.x) S
#
# Column i of P meets column j of S if j is one level farther than i, where edges lie on shortest
# paths.
def edge_betweenness_centrality(
    A: Matrix, k: int | None = None, normalized: bool = True, *, weight: bool = False,
    directed: bool | None = None, sources: Any = None, targets: Any = None,
    seed: int | random.Random | None = None,
) -> Matrix:  # fmt: skip
    """Return the share of shortest paths that lead along each edge.

    Parameters
    ----------
    A, k, normalized, weight, directed, sources, targets, seed
        As in `betweenness_centrality`. In an undirected graph both entries of an edge have the sum
        of both directions.

    Returns
    -------
    Matrix, (n, n), FP64
        An entry for each entry of `A`.

    Raises
    ------
    InvalidValue, LimitExceeded
        As `betweenness_centrality`.

    Notes
    -----
    Each source takes the search and the sweep of `betweenness_centrality`, and one product of two
    matrices with an entry for each vertex, under the mask of the edges; with `weight`, in place of
    that product, the outer product of paths and shares, under the mask of the edges on paths of
    least length.
    Source: Brandes 2008 (edges).

    Examples
    --------
    >>> from lagpu.generators import path
    >>> edge_betweenness_centrality(path(3, backend="cpu")).get(0, 1)
    0.6666666666666666
    """
    chosen, ends = sample(A, k, seed, sources), some_targets(A, k, targets)
    require_reverses(A, directed)
    directed = is_directed(A, weight) if directed is None else directed
    if weight:
        A = require_above_0(A)
    flow = Matrix(FP64, *A.shape, like=A, name="betweenness")
    flow(A.S) << 0
    each = Vector.from_dense(np.arange(A.nrows + 1), like=A)
    zeros = Vector.from_scalar(0, A.nrows, INT32, like=A)
    for source in progress.over(chosen, "edge betweenness"):
        if weight:
            T, levels, paths = count_weighted_paths(A, source)
            share = _shares(dependencies(T, levels, paths, None, ends, skips=True), paths, ends)
            flow(T.S, accum=binary.plus) << paths.outer(share, "times")
            continue
        levels, paths = count_paths(A, [source])
        share = _shares(dependencies(A, levels, paths, targets=ends), paths, ends)
        above = levels.apply(binary.plus, right=1).new(name="above")
        P, S = (_by_level(each, zeros, *x) for x in ((above, paths), (levels, share)))
        flow(A.S, accum=binary.plus) << semiring.plus_times(P.T @ S)
    factor, _ = scale(A, chosen, normalized, True, directed, ends is not None)
    flow << flow.apply(binary.times, right=factor)
    return flow if directed else flow.ewise_add(flow.T, binary.plus).new()  # both ways


def _shares(delta: Vector, paths: Vector, targets: list[int] | None) -> Vector:
    """Return the dependencies by path, with those on vertices as targets."""
    if targets is None:
        share = delta.apply(binary.plus, right=1).new(name="share")
    else:
        share = delta.ewise_mult(reached(targets, paths), binary.plus).new(name="share")
    share << share.ewise_mult(paths, binary.truediv)
    return share


def _by_level(each: Vector, zeros: Vector, levels: Vector, values: Vector) -> Matrix:
    """Return a matrix with the value of each vertex in the vertex's column, in the level's row."""
    # A vertex without a level has a 0 in row 0. `each` has the numbers 0 .. n, `zeros` n zeros.
    rows, full = (x.ewise_union(zeros, binary.first, 0, 0).new() for x in (levels, values))
    return Matrix.from_csc(each, rows, full, nrows=each.size, like=each)
