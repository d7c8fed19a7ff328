"""Check what follows from all distances: eccentricities, closeness, betweenness; and PageRank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from lagpu.check.graph import Array, Edges, Proof, Slice, Slices, both_ends, weighted
from lagpu.errors import DimensionMismatch
from lagpu.host.memory import require

Rows = tuple[Array, Array, Array]  # of some vertices: numbers, distances (or NaN), path counts

_WORD = 64  # sources that a word has a bit for
_WORDS = 1 << 14  # words at a time, where a vertex has several
_FEW = 8  # as many sources search one by one, which looks at each edge once and not in each level

REMOTENESS_RULES = (
    "every requested vertex has a value",
    "a value follows from the distances by definition",
)
DIAMETER_RULES = ("the diameter is the largest of all distances",)


def check_remoteness(
    A: Any,
    values: Any,
    of: Literal["eccentricity", "closeness", "harmonic"],
    *,
    vertices: Any = None,
    wf_improved: bool = True,
    rel_tol: float = 1e-9,
) -> tuple[str, ...]:
    """Prove eccentricities, closeness or harmonic centralities, or raise.

    Parameters
    ----------
    A : graph, (n, n)
    values : result, (n,)
        Value of each vertex.
    of : str
        "eccentricity": the largest distance from a vertex. "closeness" and "harmonic": the
        definitions in `lagpu.algorithms.closeness_centrality` and ``harmonic_centrality``, from the
        distances to a vertex.
    vertices : list of int, optional
        The requested vertices; by default all. Others may have a value.
    wf_improved : bool
        As given to ``closeness_centrality``.
    rel_tol : float
        Relative tolerance of the values.

    Notes
    -----
    Plain searches, many at a time, count the vertices at each distance.
    """
    proof = Proof("check_remoteness", REMOTENESS_RULES, A)
    value, present = proof.dense(values, of)
    n, given = proof.n, np.flatnonzero(present)
    wanted_of = np.arange(n) if vertices is None else vertices
    chosen = proof.vertices(wanted_of, f"vertices {vertices} are not within")
    proof.refuse(0, np.isin(np.arange(n), chosen) & ~present, lambda v: "no value")
    edges = proof.edges if of == "eccentricity" else proof.edges.turned
    wanted = np.zeros(n)
    for v, counts in zip(given, _spheres(edges, given), strict=True):
        others, distance = counts[1:], np.arange(1, len(counts))
        reaching = int(others.sum())
        if of == "eccentricity":
            wanted[v] = len(others) if reaching == n - 1 else np.inf
        elif of == "harmonic":
            wanted[v] = np.sum(others / distance)
        elif reaching:
            wanted[v] = reaching / (others @ distance)
            wanted[v] *= reaching / (n - 1) if wf_improved else 1
    proof.refuse(
        1,
        present & _differ(value.astype(float), wanted, rel_tol, 0),
        lambda v: f"{of} {value[v]}, but it is {wanted[v]}",
    )
    return REMOTENESS_RULES


def check_diameter(A: Any, diameter: int) -> tuple[str, ...]:
    """Prove that a number is the diameter of a graph, or raise.

    Parameters
    ----------
    A : graph, (n, n)
    diameter : int
        The number.

    Notes
    -----
    Plain searches from all vertices count the vertices at each distance.
    """
    proof = Proof("check_diameter", DIAMETER_RULES, A)
    largest, source = -1.0, 0
    for v, counts in enumerate(_spheres(proof.edges, np.arange(proof.n))):
        farthest = len(counts) - 1 if counts.sum() == proof.n else np.inf
        if farthest > largest:
            largest, source = farthest, v
    if largest != diameter:
        target = int(np.argmax(proof.edges.search(np.array([source]))))
        proof.fail(0, f"{diameter}, but from {source} to {target} it is {largest:g}")
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
    proof = Proof("check_betweenness", BETWEENNESS_RULES, A)
    found, n = proof.full(centrality, "centrality", "centrality"), proof.n
    chosen = np.arange(n) if sources is None else np.asarray(sources, int)
    total, counted, spread = np.zeros(n), np.zeros(n), np.zeros(n)
    require(16 * n * len(chosen), "check: distances and paths from the sources")
    t, from_sources = np.arange(n)[None, :], [*_rows(proof.edges, chosen)]
    for vertices in _rows(proof.edges, np.arange(n)):
        each = [np.zeros((len(vertices[0]), 0))]  # the sum of each source at each of the vertices
        for of_sources in from_sources:
            s = of_sources[0][:, None]
            here = np.zeros((len(vertices[0]), len(s)))
            for k, (v, further, onward) in enumerate(zip(*vertices, strict=True)):
                counts = (s != t) if endpoints else (s != t) & (s != v) & (t != v)
                here[k] = _through(of_sources, v, further, onward, counts)
                counted[v] += counts.sum()
            each.append(here)
        for v, of_source in zip(vertices[0], np.concatenate(each, axis=1), strict=True):
            total[v] = of_source.sum()
            sample = of_source if endpoints else of_source[chosen != v]
            spread[v] = _spread(sample, n if endpoints else n - 1)
    pairs = n * (n - 1) if endpoints else (n - 1) * (n - 2)
    wanted = _scaled(total, counted, pairs, normalized, directed)

    def describe(v: int) -> str:
        return f"{found[v]}, but the sum gives {wanted[v]}"

    proof.refuse(1, _differ(found, wanted, rel_tol), describe)
    if error is None:
        return BETWEENNESS_RULES[:2]
    rounding = 1e-6 * float(np.nanmax(found, initial=0))
    found = proof.full(error, "error", "error", rule=2)
    wanted = _scaled(spread, counted, pairs, normalized, directed)
    proof.refuse(2, _differ(found, wanted, 1e-6, rounding), describe)
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
    proof = Proof("check_edge_betweenness", BETWEENNESS_RULES, A)
    edges, n = proof.edges, proof.n
    values = _values(edges, centrality, proof.name)
    chosen = np.arange(n) if sources is None else np.asarray(sources, int)
    ends = {own: both_ends(own) for own in values}
    total = {own: np.zeros(len(found)) for own, found in values.items()}
    require(16 * n * len(chosen), "check: distances and paths from the sources")
    from_sources = [*_rows(edges, chosen)]
    for vertices in _rows(edges, np.arange(n)):
        for of_sources in from_sources:
            for own, (begin, end) in ends.items():
                _add_along(total[own], begin, end, of_sources, vertices)
                if not directed:
                    _add_along(total[own], end, begin, of_sources, vertices)

    def wrong(own: Slice) -> tuple[Array, ...]:
        counted = np.full(len(total[own]), len(chosen) * (n - 1))
        wanted = _scaled(total[own], counted, n * (n - 1), normalized, directed)
        bad = _differ(values[own], wanted, rel_tol)
        return tuple(x[bad] for x in (*ends[own], values[own], wanted))

    u, v, found, wanted = map(np.concatenate, zip(*edges.gather(wrong), strict=True))
    order = np.lexsort((u, v))
    proof.refuse(
        1,
        np.ones(len(order), bool),
        lambda k: f"{found[order[k]]}, but the sum gives {wanted[order[k]]}",
        lambda k: f"edge {u[order[k]]} -> {v[order[k]]}",
    )
    return BETWEENNESS_RULES[:2]


def _rows(edges: Slices, vertices: Array) -> Iterator[Rows]:
    """Yield the rows of some vertices, as many at a time as all of them may take."""
    step = max(1, _CHUNK // max(edges.n, 1))
    require(48 * edges.n * min(step, edges.n), "check: distances and paths of pairs")
    for first in range(0, len(vertices), step):
        some = vertices[first : first + step]
        yield some, *_searched(edges, some)


def _searched(edges: Slices, sources: Array) -> tuple[Array, Array]:
    """Return the distances and the numbers of shortest paths from k vertices, both (k, n)."""
    distance, paths = np.full((edges.n, len(sources)), np.nan), np.zeros((edges.n, len(sources)))
    new, d = np.zeros(distance.shape, bool), 0
    new[sources, np.arange(len(sources))] = True
    came = new.astype(float)
    while new.any():
        distance[new], d = d, d + 1
        last = np.where(new, came, 0)
        paths += last
        came = edges.sums(last)
        new = (came > 0) & np.isnan(distance)
    return np.ascontiguousarray(distance.T), np.ascontiguousarray(paths.T)


def _through(of_sources: Rows, u: int, further: Array, onward: Array, counts: Array) -> Array:
    """Return, for each source, the sum over targets of the share of shortest paths through u, (k,).

    From u on, `onward` paths are `further` long; `counts` says which pairs count.
    """
    _, distance, paths = of_sources
    on = counts & (distance[:, u, None] + further == distance)
    through = paths[:, u, None] * onward
    share = np.divide(through, paths, out=np.zeros(paths.shape), where=on)
    return np.asarray(share.sum(axis=1))


def _add_along(total: Array, begin: Array, end: Array, of_sources: Rows, vertices: Rows) -> None:
    """Add to each edge that ends at some of the vertices the sum over pairs of some sources."""
    v, further, onward = vertices
    counts = of_sources[0][:, None] != np.arange(further.shape[1])
    for e in np.flatnonzero((end >= v[0]) & (end <= v[-1])):
        k = end[e] - v[0]
        total[e] += _through(of_sources, begin[e], further[k] + 1, onward[k], counts).sum()


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
    return np.asarray(~np.isclose(found, wanted, rtol=rel_tol, atol=atol, equal_nan=True))


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
    proof = Proof("check_pagerank", PAGERANK_RULES, A, values=True)
    rank, n = proof.full(ranks, "ranks", "rank", lambda x: x >= 0), proof.n
    if n and not abs(rank.sum() - 1) < 1e-9:
        proof.fail(1, f"the sum is {rank.sum()}")
    edges = proof.edges

    def weights(e: Edges) -> Array:
        return e.lengths.astype(float) if weight else np.ones(len(e.begin))

    largest = edges.turned.at_ends(weights, np.maximum, 0.0)
    largest[largest == 0] = 1  # weights over the largest: so no sum overflows, and no quotient
    out = edges.turned.at_ends(lambda e: weights(e) / largest[e.end], np.add, 0.0)
    jump = _probabilities(proof, personalization, np.full(n, 1 / max(n, 1)))
    lost_to = _probabilities(proof, dangling, jump)
    stays = out > 0
    share = np.divide(rank, out, out=np.zeros(n), where=stays)
    stepped = edges.at_ends(lambda e: weights(e) / largest[e.begin] * share[e.begin], np.add, 0.0)
    further = alpha * (stepped + rank[~stays].sum() * lost_to) + (1 - alpha) * jump
    moved = np.abs(further - rank).sum()
    enough = min(n * tol, 1e-3)  # ranks with sum 1 differ by at most 2 in sum
    if n and not moved < enough + 1e-12:
        proof.fail(2, f"by {moved}, not below {enough}")
    return PAGERANK_RULES


def _probabilities(proof: Proof, weights: Any, default: Array) -> Array:
    if weights is None:
        return default
    if isinstance(weights, Mapping):
        weights = (np.array(list(weights), int), np.array(list(weights.values()), float))
    values, _ = proof.dense(weights, "weights")
    values = values / values.max()  # so that the sum does not overflow
    return np.asarray(values / values.sum())
