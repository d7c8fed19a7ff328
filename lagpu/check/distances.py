"""Check distances, from one source or all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from lagpu.check.graph import CheckReport, Edges, Graph, Slices, refuse, weighted
from lagpu.errors import CheckFailed, IndexOutOfBound
from lagpu.host.memory import require

Array = np.ndarray[Any, Any]

DISTANCE_RULES = (
    "the source has distance 0",
    "an edge from a reached vertex ends at a reached vertex",
    "no edge is a shortcut: its end is at most its length farther than its begin",
    "a path from the source to each reached vertex is as long as the distance",
)


def check_distances(A: Any, source: int, distances: Any) -> CheckReport:
    """Prove that distances are the lengths of shortest paths from a source, or raise.

    Parameters
    ----------
    A : Matrix or SciPy sparse array, (n, n)
        Entries are lengths, zero included.
    source : int
        ``0 <= source < n``.
    distances : result, (n,)
        Distance of each reached vertex.

    Returns
    -------
    CheckReport
        `depth` is the largest number of edges of a shortest path, counting the path with fewest.

    Notes
    -----
    The rules of `DISTANCE_RULES` suffice: by 1 and 4 every distance is the length of a walk from
    the source, so it is not too small; by 1, 2 and 3, and induction along any walk, it is not too
    large, and no reachable vertex is left out. A sum of floats is rounded once, and compared
    exactly.
    """
    graph = Graph(A, source)
    distance, present = graph.dense(distances, "distances")
    name = "check_distances"
    graph.require_at_source((distance, present), 0, f"{name}: {DISTANCE_RULES[0]}: distance")
    edges = weighted(A)
    begun = edges.at_ends(lambda e: present[e.begin], np.logical_or, False)
    refuse(begun & ~present, f"{name}: {DISTANCE_RULES[1]}", lambda v: "no distance")

    def through(e: Edges) -> Array:
        found: Array = distance[e.begin] + e.lengths
        return found

    def is_short(e: Edges) -> Array:
        return present[e.begin] & ~(distance[e.end] <= through(e))

    def shortcut(v: int) -> str:
        u = edges.first(lambda e: is_short(e) & (e.end == v))[v]
        way = edges.lengths(u, v).min()
        return f"distance {distance[v]}, but {distance[u] + way} by way of {u}"

    short = edges.at_ends(is_short, np.logical_or, False)
    refuse(short, f"{name}: {DISTANCE_RULES[2]}", shortcut)
    tight = edges.along(lambda e: present[e.begin] & (distance[e.end] == through(e)))
    steps = tight.search(np.array([graph.source]))
    refuse(
        present & (steps == graph.unreached),
        f"{name}: {DISTANCE_RULES[3]}",
        lambda v: f"distance {distance[v]}, but no path from {source} is that long",
    )
    reached = edges.total(lambda e: present[e.begin])
    return CheckReport(DISTANCE_RULES, int(present.sum()), int(steps[present].max()), reached)


# ---- prove results that follow from distances of pairs: eccentricities, closeness, shortest paths

_WORD = 64  # sources that a word has a bit for
_WORDS = 1 << 14  # words at a time, where a vertex has several
_FEW = 8  # as many sources search one by one, which looks at each edge once and not in each level

REMOTENESS_RULES = (
    "every requested vertex has a value",
    "a value follows from the distances by definition",
)
DIAMETER_RULES = ("the diameter is the largest of all distances",)
ROUTE_RULES = (
    "the path begins at the source and ends at the target",
    "consecutive vertices are joined by an edge",
    "the number of edges is the distance",
)


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
    Plain searches, many at a time, tell how many vertices lie at each distance.
    """
    graph = Graph(A)
    value, present = graph.dense(values, of)
    n, given = graph.n, np.flatnonzero(present)
    asked = np.arange(n) if vertices is None else np.asarray(vertices, int)
    if any(not 0 <= v < n for v in asked):
        raise IndexOutOfBound(f"check_remoteness: vertices {vertices} are not within 0 .. {n - 1}.")
    rule = f"check_remoteness: {REMOTENESS_RULES[0]}"
    refuse(np.isin(np.arange(n), asked) & ~present, rule, lambda v: "no value")
    edges = graph.edges if of == "eccentricity" else graph.edges.turned
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
    refuse(
        present & ~np.isclose(value.astype(float), wanted, rtol=rel_tol, atol=0),
        f"check_remoteness: {REMOTENESS_RULES[1]}",
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
    Plain searches from all vertices tell how many vertices lie at each distance.
    """
    graph = Graph(A)
    largest, source = -1.0, 0
    for v, counts in enumerate(_spheres(graph.edges, np.arange(graph.n))):
        farthest = len(counts) - 1 if counts.sum() == graph.n else np.inf
        if farthest > largest:
            largest, source = farthest, v
    if largest != diameter:
        target = int(np.argmax(graph.edges.search(np.array([source]))))
        raise CheckFailed(
            f"check_diameter: {DIAMETER_RULES[0]}: {diameter}, but from {source} to {target} it "
            f"is {largest:g}."
        )
    return DIAMETER_RULES


def check_route(A: Any, source: int, target: int, route: list[int]) -> tuple[str, ...]:
    """Prove that vertices are a shortest path, or raise.

    Parameters
    ----------
    A : graph, (n, n)
    source, target : int
        The ends of the path.
    route : list of int
        The vertices of the path.

    Notes
    -----
    A plain search computes the distance.
    """
    graph = Graph(A, source)
    if any(not 0 <= v < graph.n for v in route):
        raise IndexOutOfBound(f"check_route: {route} is not within 0 .. {graph.n - 1}.")
    if not route or (route[0], route[-1]) != (source, target):
        raise CheckFailed(f"check_route: {ROUTE_RULES[0]}: {route}, not {source} to {target}.")
    u, v = np.array(route[:-1], np.int64), np.array(route[1:], np.int64)
    joined = graph.edges.have(u, v)
    if not joined.all():
        k = int(np.argmin(joined))
        raise CheckFailed(f"check_route: {ROUTE_RULES[1]}: there is no edge {u[k]} -> {v[k]}.")
    level = graph.edges.search(np.array([source]))[target]
    distance = level if level < graph.unreached else np.inf
    if len(route) - 1 != distance:
        raise CheckFailed(
            f"check_route: {ROUTE_RULES[2]}: {len(route) - 1} edges, but distance {distance:g}."
        )
    return ROUTE_RULES


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
    new, counts = seen, []
    while new.any():
        counts.append(_of_bits(new))
        new = edges.through(new, np.bitwise_or) & ~seen
        seen = seen | new
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
