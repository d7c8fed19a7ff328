"""Prove triangles by their definition: the edges among each vertex's neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.check.graph import Graph, refuse
from lagpu.check.slices import Edges, Slice, Slices
from lagpu.errors import CheckFailed, InvalidValue

Array = np.ndarray[Any, Any]

_LISTED = 1 << 18  # neighbours at a time

TRIANGLE_RULES = (
    "every vertex has a number, or there is one number for the graph",
    "a vertex has as many triangles as there are edges among its neighbours",
)


def check_triangles(A: Any, triangles: Any) -> tuple[str, ...]:
    """Prove that numbers are the triangles of each vertex, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; symmetric, and self-loops do not count.
    triangles : result, (n,)
        Number of each vertex.

    Returns
    -------
    tuple of str
        The rules that hold: `TRIANGLE_RULES`, which are the definition.

    Raises
    ------
    CheckFailed
        At the first vertex with a wrong number.
    InvalidValue
        If the graph is directed.
    """
    graph, name = Graph(A), "check_triangles"
    return _compare(graph, name, triangles, _counted(graph, name)[0].astype(float), 0)


def check_clustering(A: Any, clustering: Any) -> tuple[str, ...]:
    """Prove that shares are the clustering coefficients of each vertex, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        As in `check_triangles`.
    clustering : result, (n,)
        Triangles over pairs of neighbours, 0 where there is no pair.

    Returns
    -------
    tuple of str
        The rules that hold: `TRIANGLE_RULES`.

    Raises
    ------
    CheckFailed, InvalidValue
        As `check_triangles`; one rounding is allowed.
    """
    graph, name = Graph(A), "check_clustering"
    count, pairs = _counted(graph, name)
    wanted = np.divide(count, pairs, out=np.zeros(graph.n), where=pairs > 0)
    return _compare(graph, name, clustering, wanted, 1e-15)


def check_triangle_count(A: Any, count: int) -> tuple[str, ...]:
    """Prove that a number is the number of triangles of a graph, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        As in `check_triangles`.
    count : int
        The number.

    Returns
    -------
    tuple of str
        The rules that hold: `TRIANGLE_RULES`.

    Raises
    ------
    CheckFailed, InvalidValue
        As `check_triangles`.
    """
    name = "check_triangle_count"
    wanted = int(_counted(Graph(A), name)[0].sum()) // 3
    if count != wanted:
        raise CheckFailed(f"{name}: {TRIANGLE_RULES[1]}: {count}, but there are {wanted}.")
    return TRIANGLE_RULES


def check_transitivity(A: Any, share: float) -> tuple[str, ...]:
    """Prove that a share is the transitivity of a graph, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        As in `check_triangles`.
    share : float
        Three times the triangles over all pairs of neighbours, 0 if there is no pair.

    Returns
    -------
    tuple of str
        The rules that hold: `TRIANGLE_RULES`.

    Raises
    ------
    CheckFailed, InvalidValue
        As `check_triangles`; one rounding is allowed.
    """
    name = "check_transitivity"
    count, pairs = (int(x.sum()) for x in _counted(Graph(A), name))
    wanted = count / pairs if pairs else 0.0
    if not abs(share - wanted) <= 1e-15 * wanted:
        raise CheckFailed(f"{name}: {TRIANGLE_RULES[1]}: {share}, but the share is {wanted}.")
    return TRIANGLE_RULES


def _counted(graph: Graph, name: str) -> tuple[Array, Array]:
    """Return the triangles and the pairs of neighbours of each vertex, both (n,).

    For each vertex, its neighbours are marked, and edges between marked vertices are counted: each
    edge once, from its end of fewer neighbours, so that no list is long.
    """
    edges = graph.edges
    if not edges.symmetric:
        raise InvalidValue(f"{name}: the graph is directed. Give the undirected one.")
    degree = edges.at_ends(lambda e: (e.begin != e.end).astype(np.int64), np.add, 0)

    def onward(e: Edges) -> Array:
        fewer, same = degree[e.begin] < degree[e.end], degree[e.begin] == degree[e.end]
        found: Array = fewer | (same & (e.begin < e.end))
        return found

    once = edges.along(onward)
    count = np.zeros(graph.n, np.int64)
    some = np.flatnonzero(degree > 1)
    cuts = np.flatnonzero(np.diff(np.cumsum(degree[some]) // _LISTED)) + 1
    for vertices in np.split(some, cuts):
        start, lists = _neighbours(edges, vertices)

        def among(own: Slice, start: Array = start, lists: Array = lists) -> tuple[Array, ...]:
            return (_edges_among(own, graph.n, start, lists),)

        count[vertices] = sum(found for (found,) in once.gather(among))
    return count, degree * (degree - 1) // 2


def _neighbours(edges: Slices, vertices: Array) -> tuple[Array, Array]:
    """Return (start, lists): the neighbours of vertex k are ``lists[start[k] : start[k + 1]]``."""
    which, ends = map(
        np.concatenate, zip(*edges.gather(lambda own: own.out_of(vertices)), strict=True)
    )
    others = vertices[which] != ends
    which, ends = which[others], ends[others]
    order = np.argsort(which, kind="stable")
    return np.searchsorted(which[order], np.arange(len(vertices) + 1)), ends[order]


def _edges_among(own: Slice, n: int, start: Array, lists: Array) -> Array:
    """Return how many edges of a slice join two vertices of each list."""
    marked, found = np.zeros(n, bool), np.zeros(len(start) - 1, np.int64)
    for k, (first, last) in enumerate(zip(start[:-1].tolist(), start[1:].tolist(), strict=True)):
        some = lists[first:last]
        marked[some] = True
        found[k] = np.count_nonzero(marked[own.after(some)])
        marked[some] = False
    return found


def _compare(
    graph: Graph, name: str, result: Any, wanted: Array, rel_tol: float
) -> tuple[str, ...]:
    """Raise `CheckFailed` for the first vertex whose number is not the wanted one."""
    found, present = graph.dense(result, name.removeprefix("check_"))
    refuse(~present, f"{name}: {TRIANGLE_RULES[0]}", lambda v: "no number")
    refuse(
        ~(np.abs(found - wanted) <= rel_tol * wanted),
        f"{name}: {TRIANGLE_RULES[1]}",
        lambda v: f"{found[v]}, not {wanted[v]:.17g}",
    )
    return TRIANGLE_RULES
