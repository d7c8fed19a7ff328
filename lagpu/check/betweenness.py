"""Check centralities: betweenness and PageRank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu.check.graph import Edges, Graph, Slice, Slices, both_ends, refuse, weighted
from lagpu.errors import CheckFailed, DimensionMismatch
from lagpu.host.memory import require

Array = np.ndarray[Any, Any]
Rows = tuple[Array, Array, Array]  # of some vertices: their numbers, distances and path counts

_CHUNK = 1 << 18  # distances at a time

BETWEENNESS_RULES = (
    "every vertex, or every edge, has a centrality",
    "a centrality is the scaled sum over the pairs that count",
    "a standard error is that of a mean over the sources that count",
)


def check_betweenness(
    A: Any,
    centrality: Any,
    *,
    normalized: bool = True,
    endpoints: bool = False,
    directed: bool = True,
    sources: Any = None,
    error: Any = None,
    rel_tol: float = 1e-9,
) -> tuple[str, ...]:
    """Prove that numbers are betweenness centralities, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; small, since all pairs take ``n**3`` steps.
    centrality : result, (n,)
        Centrality of each vertex.
    normalized, endpoints, directed
        As given to `lagpu.algorithms.betweenness_centrality`.
    sources : list of int, optional
        The sources of an estimate; by default all vertices.
    error : result, (n,), optional
        The standard errors, as `lagpu.algorithms.betweenness_estimate` returns them; they may be
        off by a millionth of the largest centrality, since squares are subtracted.
    rel_tol : float
        Relative tolerance of the centralities.

    Returns
    -------
    tuple of str
        The rules that hold: `BETWEENNESS_RULES`; without `error` the first two.

    Notes
    -----
    A shortest path from s to t leads through v if dist(s, v) + dist(v, t) = dist(s, t), and
    paths(s, v) * paths(v, t) of the paths do. Plain searches from some vertices at a time give
    distances and paths; nothing is accumulated backward.
    """
    graph = Graph(A)
    found, present = graph.dense(centrality, "centrality")
    name, n = "check_betweenness", graph.n
    refuse(~present, f"{name}: {BETWEENNESS_RULES[0]}", lambda v: "no centrality")
    chosen = np.arange(n) if sources is None else np.asarray(sources, int)
    total, counted, spread = np.zeros(n), np.zeros(n), np.zeros(n)
    t, from_sources = np.arange(n)[None, :], _rows(graph.edges, chosen)
    for vertices in _rows(graph.edges, np.arange(n))():
        each = [np.zeros((len(vertices[0]), 0))]  # the sum of each source at each of the vertices
        for some, distance, paths in from_sources():
            s = some[:, None]
            joined, here = np.isfinite(distance) & (s != t), np.zeros((len(vertices[0]), len(s)))
            for k, (v, further, onward) in enumerate(zip(*vertices, strict=True)):
                counts = (s != t) if endpoints else (s != t) & (s != v) & (t != v)
                through = joined & counts & (distance[:, v, None] + further == distance)
                here[k] = _shares(paths[:, v, None] * onward, paths, through).sum(axis=1)
                counted[v] += counts.sum()
            each.append(here)
        for v, of_source in zip(vertices[0], np.concatenate(each, axis=1), strict=True):
            total[v] = of_source.sum()
            sample = of_source if endpoints else of_source[chosen != v]
            spread[v] = _spread(sample, n if endpoints else n - 1)
    pairs = n * (n - 1) if endpoints else (n - 1) * (n - 2)
    wanted = _scaled(total, counted, pairs, normalized, directed)
    _compare(found, wanted, rel_tol, f"{name}: {BETWEENNESS_RULES[1]}: vertex", str)
    if error is None:
        return BETWEENNESS_RULES[:2]
    errors, present = graph.dense(error, "error")
    refuse(~present, f"{name}: {BETWEENNESS_RULES[2]}", lambda v: "no error")
    wanted = _scaled(spread, counted, pairs, normalized, directed)
    rule = f"{name}: {BETWEENNESS_RULES[2]}: vertex"
    _compare(errors, wanted, 1e-6, rule, str, 1e-6 * float(np.nanmax(found, initial=0)))
    return BETWEENNESS_RULES


def check_edge_betweenness(
    A: Any,
    centrality: Any,
    *,
    normalized: bool = True,
    directed: bool = True,
    sources: Any = None,
    rel_tol: float = 1e-9,
) -> tuple[str, ...]:
    """Prove that numbers are betweenness centralities of edges, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See `check_betweenness`.
    centrality : Matrix or SciPy sparse array, (n, n)
        Centrality of each entry of `A`.
    normalized, directed, sources, rel_tol
        As in `check_betweenness`.

    Notes
    -----
    A shortest path from s to t leads along u -> v if dist(s, u) + 1 + dist(v, t) = dist(s, t).
    """
    graph = Graph(A)
    name, n = "check_edge_betweenness", graph.n
    values = _values(graph.edges, centrality, name)
    chosen = np.arange(n) if sources is None else np.asarray(sources, int)
    ends = {own: both_ends(own) for own in values}
    total = {own: np.zeros(len(found)) for own, found in values.items()}
    from_sources = _rows(graph.edges, chosen)
    for vertices in _rows(graph.edges, np.arange(n))():
        for of_sources in from_sources():
            for own, (begin, end) in ends.items():
                _add_along(total[own], begin, end, of_sources, vertices)
                if not directed:
                    _add_along(total[own], end, begin, of_sources, vertices)

    def wrong(own: Slice) -> tuple[Array, ...]:
        counted = np.full(len(total[own]), len(chosen) * (n - 1))
        wanted = _scaled(total[own], counted, n * (n - 1), normalized, directed)
        bad = _differ(values[own], wanted, rel_tol)
        return tuple(x[bad] for x in (*ends[own], values[own], wanted))

    u, v, found, wanted = map(np.concatenate, zip(*graph.edges.gather(wrong), strict=True))
    order = np.lexsort((u, v))
    rule = f"{name}: {BETWEENNESS_RULES[1]}: edge"
    u, v, found, wanted = (x[order] for x in (u, v, found, wanted))
    _compare(found, wanted, rel_tol, rule, lambda k: f"{u[k]} -> {v[k]}")
    return BETWEENNESS_RULES[:2]


def _rows(edges: Slices, vertices: Array) -> Callable[[], Iterator[Rows]]:
    """Return what gives the rows of some vertices, as many at a time as all of them may take."""
    step = max(1, _CHUNK // max(edges.n, 1))
    require(48 * edges.n * min(step, edges.n), "check: distances and paths of pairs")
    held: list[Rows] = []

    def rows() -> Iterator[Rows]:
        if held:
            yield held[0]
            return
        for first in range(0, len(vertices), step):
            some = vertices[first : first + step]
            found = (some, *_searched(edges, some))
            if len(vertices) <= step:
                held.append(found)
            yield found

    return rows


def _searched(edges: Slices, sources: Array) -> tuple[Array, Array]:
    """Return the distances and the numbers of shortest paths from k vertices, both (k, n)."""
    distance, paths = np.full((edges.n, len(sources)), np.inf), np.zeros((edges.n, len(sources)))
    new, d = np.zeros(distance.shape, bool), 0
    new[sources, np.arange(len(sources))] = True
    came = new.astype(float)
    while new.any():
        distance[new], d = d, d + 1
        last = np.where(new, came, 0)
        paths += last
        came = edges.sums(last)
        new = (came > 0) & np.isinf(distance)
    return np.ascontiguousarray(distance.T), np.ascontiguousarray(paths.T)


def _shares(through: Array, paths: Array, where: Array) -> Array:
    """Return the share of paths through somewhere in all paths, 0 elsewhere."""
    return np.divide(through, paths, out=np.zeros(paths.shape), where=where)


def _add_along(total: Array, begin: Array, end: Array, of_sources: Rows, vertices: Rows) -> None:
    """Add to each edge that ends at some of the vertices the sum over pairs of some sources."""
    s, distance, paths = of_sources
    v, further, onward = vertices
    joined = np.isfinite(distance) & (s[:, None] != np.arange(distance.shape[1]))
    for e in np.flatnonzero((end >= v[0]) & (end <= v[-1])):
        u, k = begin[e], end[e] - v[0]
        on = joined & (distance[:, u, None] + 1 + further[k] == distance)
        total[e] += _shares(paths[:, u, None] * onward[k], paths, on).sum()


def _values(edges: Slices, B: Any, name: str) -> dict[Slice, Array]:
    """Return the value that a matrix has at each edge of each slice, or raise if one has none."""
    given = weighted(B)
    beside = given.parts is edges.parts  # so that each piece has the values of its own edges
    if not beside and given.parts is not None:
        col_ptr, row_idx, values = B.to_csc()
        given = weighted(sp.csc_array((values, row_idx, col_ptr), shape=B.shape))
    found: dict[Slice, Array] = {}
    for piece, own in edges.own.items():
        theirs = given.own[piece if beside else 0]
        keys, wanted = (end * edges.n + begin for begin, end in map(both_ends, (theirs, own)))
        order = np.argsort(keys)
        if np.isin(wanted, keys).all():
            found[own] = np.asarray(theirs.values)[order[np.searchsorted(keys[order], wanted)]]
    known = edges.gather(lambda own: (np.array([own in found]),))
    count = [s.total(lambda e: np.ones(len(e.begin), bool)) for s in (edges, given)]
    if given.n != edges.n or count[0] != count[1] or not all(x[0] for (x,) in known):
        raise DimensionMismatch(
            f"{name}: {BETWEENNESS_RULES[0]}: the entries are not those of the graph."
        )
    return found


def _scaled(total: Array, counted: Array, pairs: int, normalized: bool, directed: bool) -> Array:
    """Return sums over the counted pairs as shares, or extrapolated to all pairs."""
    if pairs <= 0:
        return total
    share: Array = np.divide(total, counted, out=np.full(len(total), np.nan), where=counted > 0)
    if not normalized:
        share *= pairs / (1 if directed else 2)
    return share


def _spread(each: Array, population: int) -> float:
    """Return the standard error of the sum of a sample drawn without replacement."""
    m = len(each)
    if m == population:
        return 0.0
    if m < 2:
        return np.nan
    return float(m * np.std(each, ddof=1) / np.sqrt(m) * np.sqrt(1 - m / population))


def _differ(found: Array, wanted: Array, rel_tol: float, atol: float = 1e-15) -> Array:
    bad: Array = ~np.isclose(found, wanted, rtol=rel_tol, atol=atol, equal_nan=True)
    return bad


def _compare(
    found: Array, wanted: Array, rel_tol: float, rule: str, place: Any, atol: float = 1e-15
) -> None:
    """Raise `CheckFailed` for the first number that is not the wanted one."""
    bad = _differ(found, wanted, rel_tol, atol)
    if bad.any():
        k = int(np.argmax(bad))
        raise CheckFailed(
            f"{rule} {place(k)}: {found[k]}, but the sum gives {wanted[k]} "
            f"(first of {np.count_nonzero(bad)})."
        )


# ---- prove PageRanks

PAGERANK_RULES = (
    "every vertex has a rank, a number >= 0",
    "the sum of the ranks is 1",
    "a further step changes the ranks by less than min(n * tol, 0.001) in sum",
)


def check_pagerank(
    A: Any,
    ranks: Any,
    alpha: float = 0.85,
    *,
    personalization: Any = None,
    tol: float = 1e-6,
    weight: bool = True,
    dangling: Any = None,
) -> tuple[str, ...]:
    """Prove that ranks are PageRanks up to a tolerance, or raise.

    Parameters
    ----------
    A : Matrix or SciPy sparse array, (n, n)
        Entries are weights >= 0.
    ranks : result, (n,)
        Rank of each vertex.
    alpha, personalization, tol, weight, dangling
        As given to `lagpu.algorithms.pagerank`.

    Notes
    -----
    The rules suffice: a step contracts distances by alpha, so by Banach's theorem ranks that one
    step moves by r lie within ``r / (1 - alpha)`` of the true ranks, the only ones with sum 1.
    """
    graph = Graph(A)
    rank, present = graph.dense(ranks, "ranks")
    n, name = graph.n, "check_pagerank"
    refuse(
        ~(present & (rank >= 0)),
        f"{name}: {PAGERANK_RULES[0]}",
        lambda v: f"rank {rank[v]}" if present[v] else "no rank",
    )
    if n and not abs(rank.sum() - 1) < 1e-9:
        raise CheckFailed(f"{name}: {PAGERANK_RULES[1]}: the sum is {rank.sum()}.")
    edges = weighted(A)

    def weights(e: Edges) -> Array:
        return e.lengths.astype(float) if weight else np.ones(len(e.begin))

    largest = edges.at_begins(weights, np.maximum, 0.0)
    largest[largest == 0] = 1

    def scaled(e: Edges) -> Array:  # so that no sum overflows, and no quotient
        found: Array = weights(e) / largest[e.begin]
        return found

    out = edges.at_begins(scaled, np.add, 0.0)
    jump = _probabilities(graph, personalization, np.full(n, 1 / max(n, 1)))
    lost_to = _probabilities(graph, dangling, jump)
    stays = out > 0
    share = np.divide(rank, out, out=np.zeros(n), where=stays)
    stepped = edges.at_ends(lambda e: scaled(e) * share[e.begin], np.add, 0.0)
    further = alpha * (stepped + rank[~stays].sum() * lost_to) + (1 - alpha) * jump
    moved = np.abs(further - rank).sum()
    enough = min(n * tol, 1e-3)  # ranks with sum 1 differ by at most 2 in sum
    if n and not moved < enough + 1e-12:
        raise CheckFailed(f"{name}: {PAGERANK_RULES[2]}: by {moved}, not below {enough}.")
    return PAGERANK_RULES


def _probabilities(graph: Graph, weights: Any, default: Array) -> Array:
    if weights is None:
        return default
    if isinstance(weights, Mapping):
        weights = (np.array(list(weights), int), np.array(list(weights.values()), float))
    values, _ = graph.dense(weights, "weights")
    values = values / values.max()  # so that the sum does not overflow
    found: Array = values / values.sum()
    return found
