"""Check centralities: of all distances, of eigenvectors and of degrees; and eccentricities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np

from lagpu.check.graph import Array, Edges, Proof, Slices
from lagpu.errors import DimensionMismatch, InvalidValue
from lagpu.host.memory import require

__all__ = [
    "check_betweenness", "check_degree_centrality", "check_diameter", "check_edge_betweenness",
    "check_eigenvector", "check_hits", "check_katz", "check_pagerank", "check_remoteness",
]  # fmt: skip

_WORD = 64  # sources that a word has a bit for
_WORDS = 1 << 14  # words at a time, where a vertex has several
_FEW = 8  # as many sources search one by one, which looks at each edge once and not in each level

REMOTENESS_RULES = (
    "every requested vertex has a value",
    "a value follows from the distances by definition",
)
DIAMETER_RULES = ("the diameter is the largest of all distances",)


def check_remoteness(
    A: Any, values: Any, of: Literal["eccentricity", "closeness", "harmonic"], *,
    vertices: Any = None, wf_improved: bool = True, weight: bool = False, rel_tol: float = 1e-9,
) -> tuple[str, ...]:  # fmt: skip
    """Prove eccentricities, closeness or harmonic centralities, or raise.

    `values`, (n,), has the value of each vertex: `of` is "eccentricity", the largest distance from
    a vertex, or "closeness" or "harmonic", as defined in `lagpu.algorithms.closeness_centrality`
    and ``harmonic_centrality``, from the distances to a vertex. `vertices` is a list of the
    requested ones, by default all; others may have a value. `wf_improved` is as given to
    ``closeness_centrality``; `weight` says whether values of `A` are lengths, else each edge counts
    1; `rel_tol` is the relative tolerance of the values.

    Plain searches, many at a time, count the vertices at each distance; with lengths, plain
    relaxation over all edges from each vertex.
    """
    if of not in ("eccentricity", "closeness", "harmonic"):
        raise InvalidValue(f"check_remoteness: {of!r} is not eccentricity, closeness or harmonic.")
    proof = Proof("check_remoteness", REMOTENESS_RULES, A, values=weight)
    value, present = proof.dense(values, of)
    n, given = proof.n, np.flatnonzero(present)
    wanted_of = np.arange(n) if vertices is None else vertices
    chosen = proof.vertices(wanted_of, f"vertices {vertices} are not within")
    proof.refuse(0, np.isin(np.arange(n), chosen) & ~present, lambda v: "no value")
    edges = proof.edges if of == "eccentricity" else proof.edges.reversed
    wanted = np.zeros(n)
    for v, (distance, others) in zip(given, _distances(edges, given, weight), strict=True):
        reaching, total = int(others.sum()) - 1, float(others @ distance)
        far = distance > 0
        if of == "eccentricity":
            wanted[v] = distance.max() if reaching == n - 1 else np.inf
        elif of == "harmonic":
            wanted[v] = np.sum(others[far] / distance[far])
        elif total:
            wanted[v] = reaching / total * (reaching / (n - 1) if wf_improved else 1)
    bad = present & _differ(value.astype(float), wanted, rel_tol, 0)
    return proof.refuse(1, bad, lambda v: f"{of} {value[v]}, but it is {wanted[v]}")


def _distances(edges: Slices, sources: Array, weight: bool) -> Iterator[tuple[Array, Array]]:
    """Yield, for each source, distances, and how many vertices lie at each of them."""
    if not weight:
        for counts in _spheres(edges, sources):
            yield np.arange(len(counts)), counts
        return
    for source in sources:
        distance, reached = edges.lengths_from(source)
        distance = distance[reached]
        yield distance, np.ones(len(distance))


def check_diameter(A: Any, diameter: float, *, weight: bool = False) -> tuple[str, ...]:
    """Prove that a number is the diameter of a graph, or raise.

    `weight` says whether values of `A` are lengths, else each edge counts 1; of float lengths an
    error of 1e-9 is allowed. Plain searches from all vertices, as in `check_remoteness`.
    """
    proof = Proof("check_diameter", DIAMETER_RULES, A, values=weight)
    largest: int | float = -1
    source = 0
    for v, (distance, others) in enumerate(_distances(proof.edges, np.arange(proof.n), weight)):
        farthest = distance.max().item() if others.sum() == proof.n else np.inf
        if farthest > largest:
            largest, source = farthest, v
    whole = isinstance(largest, int)
    if largest != diameter and (whole or _differ(np.array(diameter), largest, 1e-9)):
        target = int(np.argmax(proof.edges.search(np.array([source]))))
        where = "" if weight else f" to {target}"
        proof.fail(0, f"{diameter}, but from {source}{where} it is {largest}")
    return DIAMETER_RULES


def _spheres(edges: Slices, sources: Array) -> Iterator[Array]:
    """Yield, for each source, how many vertices lie at each distance from it, 0 first."""
    words = min(8, max(1, _WORDS // max(edges.n, 1)))
    require((32 * words + 24) * edges.n, "check: distances")
    for first in range(0, len(sources), words * _WORD):
        some = sources[first : first + words * _WORD]
        if len(some) > _FEW:
            yield from _counted(edges, some)
            continue
        for source in some:
            level = edges.search(np.array([source]))
            yield np.bincount(level[level <= edges.n])


def _counted(edges: Slices, sources: Array) -> Iterator[Array]:
    """Do as `_spheres` for many sources at once: each has a bit in the words of every vertex."""
    which = np.arange(len(sources))
    seen = np.zeros((edges.n, -(-len(sources) // _WORD)), np.uint64)
    seen[sources, which // _WORD] = np.uint64(1) << (which % _WORD).astype(np.uint64)
    new, counts = seen.copy(), []
    while new.any():
        counts.append(_of_bits(new))
        new[:] = edges.at_ends(lambda e: new[e.begin], np.bitwise_or, 0) & ~seen
        seen |= new
    for of_source in np.transpose(counts)[: len(sources)]:
        yield np.trim_zeros(of_source, "b")


def _of_bits(words: Array) -> Array:
    """Return in how many rows of words each bit is set, (64 * words of a row,)."""
    some = words[words.any(axis=1)].astype("<u8", copy=False)
    found = np.zeros(_WORD * words.shape[1], np.int64)
    for first in range(0, len(some), 1 << 14):
        octets = some[first : first + (1 << 14)].view(np.uint8)
        found += np.unpackbits(octets, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
    return found


# ---- prove betweenness centralities

_PAIRS = 1 << 16  # distances at a time

BETWEENNESS_RULES = (
    "every vertex, or every edge, has a centrality",
    "a centrality is the scaled sum over the pairs that count",
    "a standard error is that of a mean over the sources that count",
)


def check_betweenness(
    A: Any, centrality: Any, *, normalized: bool = True, endpoints: bool = False,
    directed: bool = True, weight: bool = False, sources: Any = None, targets: Any = None,
    error: Any = None, rel_tol: float = 1e-9,
) -> tuple[str, ...]:  # fmt: skip
    """Prove that numbers are betweenness centralities, or raise.

    `A` is small, since all pairs take ``n**3`` steps; `centrality`, (n,), has the number of each
    vertex up to the relative tolerance `rel_tol`; `normalized`, `endpoints`, `directed` and
    `weight` are as given to `lagpu.algorithms.betweenness_centrality`. `sources` is a list of the
    sources of an estimate, and `targets` a list of the vertices to which paths count, both by
    default all vertices; `error`, (n,), has the standard errors as
    `lagpu.algorithms.betweenness_estimate` returns them, which may be off by a millionth of the
    largest centrality, since squares are subtracted. Without `error` the first two of
    `BETWEENNESS_RULES` are returned.

    Shortest paths from s to t lead through v if dist(s, v) + dist(v, t) = dist(s, t), and there
    are paths(s, v) * paths(v, t) of them. Plain searches from some vertices at a time give
    distances and paths; nothing is accumulated backward. With lengths, distances from each source
    are relaxed, and the paths from this source are counted along edges: two sums of floats that are
    equal from one source may differ from another. Each process of a grid collects all edges.
    """
    proof = Proof("check_betweenness", BETWEENNESS_RULES, A, values=weight)
    found, n = proof.full(centrality, "centrality", "centrality"), proof.n
    chosen, t = np.arange(n) if sources is None else np.asarray(sources, int), np.arange(n)
    ways = t, t, np.zeros(n)
    each = _shares(proof, proof.matrix(), ways, chosen, targets, weight, endpoints)
    others = n if endpoints else n - 1
    counts = np.full((n, len(chosen)), True) if endpoints else t[:, None] != chosen
    counted, pairs = counts.sum(axis=1) * (others - 1), others * (others - 1)
    spread = np.array([_spread(x[of], others) for x, of in zip(each, counts, strict=True)])
    counted = counted if targets is None else np.full(n, pairs)
    wanted = _scaled(each.sum(axis=1), counted, pairs, normalized, directed)

    def describe(v: int) -> str:
        return f"{found[v]}, but the sum gives {wanted[v]}"

    proof.refuse(1, _differ(found, wanted, rel_tol), describe)
    if error is None:
        return BETWEENNESS_RULES[:2]
    rounding = 1e-6 * float(np.nanmax(found, initial=0))
    found = proof.full(error, "error", "error", rule=2)
    wanted = _scaled(spread, counted, pairs, normalized, directed)
    return proof.refuse(2, _differ(found, wanted, 1e-6, rounding), describe)


def check_edge_betweenness(
    A: Any, centrality: Any, *, normalized: bool = True, directed: bool = True,
    weight: bool = False, sources: Any = None, targets: Any = None, rel_tol: float = 1e-9,
) -> tuple[str, ...]:  # fmt: skip
    """Prove that numbers are betweenness centralities of edges, or raise.

    `centrality` is a Matrix or a SciPy sparse array, (n, n), with the number of each entry of `A`;
    the rest is as in `check_betweenness`.

    A shortest path from s to t leads along u -> v if dist(s, u) + 1 + dist(v, t) = dist(s, t), or
    with the edge's length in place of 1.
    """
    name = "check_edge_betweenness"
    proof = Proof(name, BETWEENNESS_RULES, A, values=weight)
    given = Proof(name, BETWEENNESS_RULES, centrality, values=True)
    edges, found = (of.matrix().tocsc() for of in (proof, given))
    if not all(map(np.array_equal, *[(x.indptr, x.indices) for x in (edges, found)])):
        raise DimensionMismatch(
            f"{name}: {BETWEENNESS_RULES[0]}: the entries are not those of the graph."
        )
    n, (u, v) = proof.n, edges.tocoo().coords
    chosen = np.arange(n) if sources is None else np.asarray(sources, int)
    sums = np.zeros(len(u))
    for begin, end in ((u, v), (v, u))[: 1 if directed else 2]:
        ways = begin, end, edges.data
        sums += _shares(proof, edges, ways, chosen, targets, weight, True).sum(axis=1)
    counted = np.full(len(sums), (len(chosen) if targets is None else n) * (n - 1))
    wanted = _scaled(sums, counted, n * (n - 1), normalized, directed)

    def describe(k: int) -> str:
        return f"{found.data[k]}, but the sum gives {wanted[k]}"

    bad = _differ(found.data, wanted, rel_tol)
    return proof.refuse(1, bad, describe, lambda k: f"edge {u[k]} -> {v[k]}")[:2]


def _by_levels(edges: Any, sources: Array) -> tuple[Array, Array]:
    """Return the distances and the numbers of shortest paths from k vertices, both (k, n)."""
    shape, d = (len(sources), edges.shape[0]), 0
    distance, paths, came = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape)
    came[np.arange(len(sources)), sources] = 1
    while came.any():
        distance[came > 0], d = d, d + 1
        paths += came
        came = np.where(np.isnan(distance), came @ edges, 0)
    return distance, paths


def _shares(
    proof: Proof, edges: Any, ways: tuple[Array, Array, Any], sources: Array, targets: Any,
    weight: bool, at_ends: bool,
) -> Array:  # fmt: skip
    """Return the sum over targets of the share of shortest paths along each way, (m, k)."""
    # A way leads from a vertex to another one, or to itself with length 0. The k columns are those
    # of the sources. With `at_ends` paths count that begin or end with the way.
    (begin, end, lengths), t, k = ways, np.arange(proof.n), len(sources)
    rows = len(t) if weight else min(len(t), 1 + _PAIRS // max(1, len(t)))  # vertices at a time
    held = 48 * rows * len(t) + (24 * len(t) + 32 * len(begin)) * k
    require(held, "check: distances and paths of pairs")
    left_out = np.isin(t, t if targets is None else targets, invert=True)
    through = np.zeros((k, len(t)))
    distance, paths = np.zeros((2, k, len(t))) if weight else _by_levels(edges, sources)
    on = distance[:, begin] + lengths == distance[:, end]  # with `weight` set below, unrounded
    for first in range(0, len(t), rows):
        some = t[first : first + rows]
        further, onward = (distance, paths) if weight else _by_levels(edges, some)
        for at, s in enumerate(sources):
            if weight:
                d, onward = _by_lengths(proof.edges, edges, s)
                on[at], paths[at] = d[begin] + lengths == d[end], onward[s]
                leads = paths[at] > 0
            else:
                leads = distance[at, some, None] + further == distance[at]
            share = np.divide(onward, paths[at], out=np.zeros(onward.shape), where=leads)
            share[:, left_out | (t == s)] = 0
            if not at_ends:
                share[np.arange(len(some)), some] = 0
                share[some == s] = 0
            through[at, some] = share.sum(axis=1)
    found: Array = (on * paths[:, begin] * through[:, end]).T
    return found


def _by_lengths(of: Slices, edges: Any, source: int) -> tuple[Array, Array]:
    """Return distances from a source, and the numbers of ways on from each vertex to each, (n, n).

    Lengths are above 0. An edge is on a shortest path if the distances of its ends differ by its
    length.
    """
    d, reached = of.lengths_from(source)
    # Later ends first: where a path goes on is counted before; again if rounding lost a length.
    u, v = edges.tocoo().coords
    tight = np.flatnonzero(reached[u] & reached[v] & (d[u] + edges.tocoo().data == d[v]))
    pairs = [(int(u[k]), int(v[k])) for k in tight[np.argsort(-d[u[tight]], kind="stable")]]
    before: Array = np.zeros(0)
    onward: Array = np.eye(len(d))
    while not np.array_equal(onward, before):
        before, onward = onward, np.eye(len(d))
        for a, b in pairs:
            onward[a] += before[b] if d[a] == d[b] else onward[b]
    return d, onward


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


def _differ(found: Array, wanted: Any, rel_tol: float, atol: float = 1e-15) -> Array:
    return np.asarray(~np.isclose(found, wanted, rtol=rel_tol, atol=atol, equal_nan=True))


# ---- prove PageRanks

PAGERANK_RULES = (
    "every vertex has a rank, a number >= 0",
    "the sum of the ranks is 1",
    "a further step changes the ranks by less than min(n * tol, 0.001) in sum",
    "the ranks are those after so many steps",
)


def check_pagerank(
    A: Any, ranks: Any, alpha: float = 0.85, *, personalization: Any = None,
    tol: float | None = 1e-6, weight: bool = True, dangling: Any = None, max_iter: int = 100,
) -> tuple[str, ...]:  # fmt: skip
    """Prove that ranks are PageRanks up to a tolerance, or raise.

    `A` is a Matrix or a SciPy sparse array, (n, n), of weights >= 0; `ranks`, (n,), has the rank of
    each vertex; the options are as given to `lagpu.algorithms.pagerank`.

    Without a tolerance the steps are made again from equal ranks, and may differ by rounding. With
    one the rules suffice: a step contracts distances by alpha, so by Banach's theorem ranks that
    one step moves by r lie within ``r / (1 - alpha)`` of the true ranks, the only ones with sum 1.
    """
    proof = Proof("check_pagerank", PAGERANK_RULES, A, values=weight)
    rank, n = proof.full(ranks, "ranks", "rank", lambda x: x >= 0), proof.n
    holds = not n or dangling is False or abs(rank.sum() - 1) < 1e-9
    proof.require(1, holds, f"the sum is {rank.sum()}")
    edges, back = proof.edges, proof.edges.reversed
    largest = back.at_ends(lambda e: e.weights, np.maximum, 0.0)
    largest[largest == 0] = 1  # weights over the largest: so no sum overflows, and no quotient
    out = back.at_ends(lambda e: e.weights / largest[e.end], np.add, 0.0)
    jump = _probabilities(proof, personalization, np.full(n, 1 / max(n, 1)))
    lost_to = np.zeros(n) if dangling is False else _probabilities(proof, dangling, jump)
    stays = out > 0

    def step(rank: Array) -> Array:
        share = np.divide(rank, out, out=np.zeros(n), where=stays)
        moved = edges.at_ends(lambda e: e.weights / largest[e.begin] * share[e.begin], np.add, 0.0)
        moved = moved + rank[~stays].sum() * lost_to
        return np.asarray(alpha * moved + (1 - alpha) * jump)

    if tol is None:
        wanted = np.full(n, 1 / max(n, 1))
        for _ in range(max_iter):
            wanted = step(wanted)
        return proof.refuse(3, _differ(rank, wanted, 1e-9), lambda v: f"{rank[v]}, not {wanted[v]}")
    moved = np.abs(step(rank) - rank).sum()
    enough = min(n * tol, 1e-3)  # ranks with sum 1 differ by at most 2 in sum
    holds = not n or moved < enough + 1e-12
    return proof.require(2, holds, f"by {moved}, not below {enough}")[:3]


def _numbers(proof: Proof, given: Any) -> Array:
    """Return numbers of vertices, a result or a dict, as an array, 0 without an entry."""
    if isinstance(given, Mapping):
        given = (np.array(list(given), int), np.array(list(given.values()), float))
    return proof.dense(given, "weights")[0]


def _probabilities(proof: Proof, weights: Any, default: Array) -> Array:
    if weights is None:
        return default
    values = _numbers(proof, weights)
    values = values / values.max()  # so that the sum does not overflow
    return np.asarray(values / values.sum())


# ---- prove eigenvector and Katz centralities, hubs and authorities, and degrees

VECTOR_RULES = (
    "every vertex has a number",
    "their length, or with hubs and authorities their sum, is 1",
    "a further step changes the numbers by no more than the tolerance allows",
)


def check_eigenvector(
    A: Any, centrality: Any, *, tol: float = 1e-6, weight: bool = True
) -> tuple[str, ...]:
    """Prove that numbers are an eigenvector of unit length up to a tolerance, or raise.

    `A` is a Matrix or a SciPy sparse array, (n, n), of weights; `centrality`, (n,), has the number
    of each vertex; `tol` and `weight` are as given to `lagpu.algorithms.eigenvector_centrality`.

    A vector that one step ``x + x A``, over its length, does not move is an eigenvector. In a
    strongly connected graph of positive weights only that of the largest eigenvalue has no sign
    change (Perron and Frobenius). The step after one that moves the vector by r moves it by at most
    ``2 r`` times the norm of the step.
    """
    proof = Proof("check_eigenvector", VECTOR_RULES, A, values=weight)
    x, n = proof.full(centrality, "centrality", "centrality"), proof.n
    step, norm = _products(proof.edges)
    moved = x + step(x)
    length = float(np.linalg.norm(moved))
    _require_one(proof, np.linalg.norm(x))
    allowed = 2 * n * tol * (1 + norm) / (length or 1)
    return _require_still(proof, moved / (length or 1) - x, allowed)


def check_katz(
    A: Any, centrality: Any, alpha: float = 0.1, *, beta: Any = 1.0, tol: float = 1e-6,
    normalized: bool = True, weight: bool = True,
) -> tuple[str, ...]:  # fmt: skip
    """Prove that numbers are Katz centralities up to a tolerance, or raise.

    `A` and `centrality` are as in `check_eigenvector`, the options as given to
    `lagpu.algorithms.katz_centrality`.

    ``x - alpha x A`` must be beta, or with `normalized` a positive multiple of it: this system has
    one solution if alpha is below 1 over the largest eigenvalue.
    """
    proof = Proof("check_katz", VECTOR_RULES, A, values=weight)
    x, n = proof.full(centrality, "centrality", "centrality"), proof.n
    begin = np.full(n, beta, float) if np.isscalar(beta) else _numbers(proof, beta)
    step, norm = _products(proof.edges)
    rest, factor = x - alpha * step(x), 1.0
    if normalized:
        _require_one(proof, np.linalg.norm(x))
        factor = max(0.0, rest @ begin / (begin @ begin)) if begin.any() else 0.0
    return _require_still(proof, rest - factor * begin, n * tol * max(1, abs(alpha) * norm))


def check_hits(A: Any, found: Any, *, tol: float = 1e-8, weight: bool = True) -> tuple[str, ...]:
    """Prove that numbers are hubs and authorities up to a tolerance, or raise.

    `A` is a Matrix or a SciPy sparse array, (n, n), of weights >= 0; `found` has hubs and
    authorities, (n,), each with the sum 1; `tol` and `weight` are as given to
    `lagpu.algorithms.hits`. As in `check_eigenvector`: hubs are an eigenvector of ``A A'``,
    authorities of ``A' A``.
    """
    proof = Proof("check_hits", VECTOR_RULES, A, values=weight)
    along, out = _products(proof.edges)
    against, into = _products(proof.edges.reversed)
    norm = max(out, into)
    ways = (("hub", against, along), ("authority", along, against))
    for x, (name, second, first) in zip(found, ways, strict=True):
        values = proof.full(x, name, name, lambda x: x >= 0)
        _require_one(proof, values.sum())
        moved, slack = values, 2 * tol
        for step in (first, second):
            moved = step(moved)
            total = float(moved.sum()) or 1.0
            moved, slack = moved / total, slack * max(1, norm / total)
        _require_still(proof, moved - values, slack)
    return VECTOR_RULES


def _products(edges: Slices) -> tuple[Callable[[Array], Array], float]:
    """Return x -> x A for plain arrays, and the largest sum of absolute weights out of a vertex."""

    def product(x: Array) -> Array:
        return edges.at_ends(lambda e: e.weights * x[e.begin], np.add, 0.0)

    out = edges.reversed.at_ends(lambda e: np.abs(e.weights), np.add, 0.0)
    return product, float(out.max(initial=0))


def _require_one(proof: Proof, total: Any) -> None:
    proof.require(1, not proof.n or abs(total - 1) < 1e-9, f"it is {total}")


def _require_still(proof: Proof, change: Array, allowed: float) -> tuple[str, ...]:
    moved = float(np.abs(change).sum())
    fault = f"by {moved:.3g} in sum, more than {allowed:.3g}"
    return proof.require(2, not proof.n or moved <= allowed + 1e-12, fault)


DEGREE_RULES = ("every vertex has its number of edges over the number of other vertices",)


def check_degree_centrality(
    A: Any, centrality: Any, kind: Literal["all", "in", "out"] = "all"
) -> tuple[str, ...]:
    """Prove that numbers are degrees over n - 1, or raise.

    `centrality`, (n,), has the share of each vertex; one rounding is allowed. `kind` is "in",
    "out", or "all": both in a directed graph; in an undirected one a self-loop counts twice, as it
    has two ends.
    """
    if kind not in ("all", "in", "out"):
        raise InvalidValue(f"check_degree_centrality: {kind!r} is not all, in or out.")
    proof = Proof("check_degree_centrality", DEGREE_RULES, A)
    found, n = proof.full(centrality, "centrality", "centrality"), proof.n

    def ends(edges: Slices, *, loops: bool = False) -> Array:
        def counted(e: Edges) -> Array:
            return np.asarray((e.begin == e.end) | (not loops), np.int64)

        return edges.at_ends(counted, np.add, 0)

    into, out = ends(proof.edges), ends(proof.edges.reversed)
    both = into + (ends(proof.edges, loops=True) if proof.edges.symmetric else out)
    wanted = {"in": into, "out": out, "all": both}[kind] / max(n - 1, 1) if n > 1 else np.ones(n)
    return proof.refuse(0, _differ(found, wanted, 1e-15), lambda v: f"{found[v]}, not {wanted[v]}")
