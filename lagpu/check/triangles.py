"""Prove triangles by their definition: the edges among each vertex's neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.check.graph import Graph, refuse
from lagpu.errors import CheckFailed, InvalidValue

__all__ = [
    "TRIANGLE_RULES",
    "check_clustering",
    "check_transitivity",
    "check_triangle_count",
    "check_triangles",
]

Array = np.ndarray[Any, Any]

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

    For each vertex, its neighbours are marked, and marks are counted among their neighbours.
    """
    begin, end = graph.ends()
    order = np.lexsort((begin, end))
    start = np.searchsorted(end[order], np.arange(graph.n + 1))
    neighbours = begin[order].astype(np.int64)
    if not np.array_equal(np.sort(begin * graph.n + end), np.sort(end * graph.n + begin)):
        raise InvalidValue(f"{name}: the graph is directed. Give the undirected one.")
    count, marked = np.zeros(graph.n, np.int64), np.zeros(graph.n, bool)
    for v in range(graph.n):
        own = neighbours[start[v] : start[v + 1]]
        if len(own) < 2:
            continue
        marked[own] = True
        lists = [neighbours[start[u] : start[u + 1]] for u in own.tolist()]
        count[v] = np.count_nonzero(marked[np.concatenate(lists)]) // 2
        marked[own] = False
    degree = np.diff(start)
    return count, degree * (degree - 1) // 2


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
