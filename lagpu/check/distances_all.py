"""Prove results that follow from distances of pairs: eccentricities, closeness, shortest paths."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lagpu.check.graph import Graph, refuse
from lagpu.errors import CheckFailed, IndexOutOfBound
from lagpu.host.memory import require

__all__ = [
    "DIAMETER_RULES",
    "REMOTENESS_RULES",
    "ROUTE_RULES",
    "check_diameter",
    "check_remoteness",
    "check_route",
]

Array = np.ndarray[Any, Any]

_CHUNK = 2**22  # distances at a time

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
        See the module.
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

    Returns
    -------
    tuple of str
        The rules that hold: `REMOTENESS_RULES`.

    Raises
    ------
    CheckFailed, IndexOutOfBound
        At the first vertex with a missing or wrong value; if one of `vertices` is not a vertex.

    Notes
    -----
    SciPy computes the distances by Dijkstra's algorithm.
    """
    graph = Graph(A)
    value, present = graph.dense(values, of)
    n, given = graph.n, np.flatnonzero(present)
    asked = np.arange(n) if vertices is None else np.asarray(vertices, int)
    if any(not 0 <= v < n for v in asked):
        raise IndexOutOfBound(f"check_remoteness: vertices {vertices} are not within 0 .. {n - 1}.")
    rule = f"check_remoteness: {REMOTENESS_RULES[0]}"
    refuse(np.isin(np.arange(n), asked) & ~present, rule, lambda v: "no value")
    distance = _distances(graph, given, forward=of == "eccentricity")
    wanted = np.zeros(n)
    for v, row in zip(given, distance, strict=True):
        reaching = row[np.isfinite(row) & (row > 0)]
        if of == "eccentricity":
            wanted[v] = row.max()
        elif of == "harmonic":
            wanted[v] = np.sum(1 / reaching)
        elif reaching.size:
            wanted[v] = reaching.size / reaching.sum()
            wanted[v] *= reaching.size / (n - 1) if wf_improved else 1
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
        See the module.
    diameter : int
        The number.

    Returns
    -------
    tuple of str
        The rule that holds: `DIAMETER_RULES`.

    Raises
    ------
    CheckFailed
        If it is not, with two vertices that prove it.

    Notes
    -----
    SciPy computes all distances, some rows at a time.
    """
    graph = Graph(A)
    largest, pair = -1.0, (0, 0)
    step = max(1, _CHUNK // max(graph.n, 1))
    for start in range(0, graph.n, step):
        vertices = np.arange(start, min(start + step, graph.n))
        distance = _distances(graph, vertices, forward=True)
        if distance.max() > largest:
            s, t = np.unravel_index(int(distance.argmax()), distance.shape)
            largest, pair = distance[s, t], (int(vertices[s]), int(t))
    if largest != diameter:
        raise CheckFailed(
            f"check_diameter: {DIAMETER_RULES[0]}: {diameter}, but from {pair[0]} to {pair[1]} it "
            f"is {largest:g}."
        )
    return DIAMETER_RULES


def check_route(A: Any, source: int, target: int, route: list[int]) -> tuple[str, ...]:
    """Prove that vertices are a shortest path, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module.
    source, target : int
        The ends of the path.
    route : list of int
        The vertices of the path.

    Returns
    -------
    tuple of str
        The rules that hold: `ROUTE_RULES`.

    Raises
    ------
    CheckFailed, IndexOutOfBound
        At the first broken rule; if a number is not a vertex.

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


def _distances(graph: Graph, vertices: Array, *, forward: bool) -> Array:
    """Return distances from, or to, some vertices, (len(vertices), n)."""
    require(20 * len(vertices) * graph.n, "check: distances")
    pattern = sp.csr_array(graph.columns if forward else graph.columns.T, dtype=float)
    search: Any = csgraph.dijkstra
    found: Array = search(pattern, indices=vertices, unweighted=True)
    return found
