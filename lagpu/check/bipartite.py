"""Prove that a graph is bipartite, or that it is not."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.check.graph import Graph, refuse
from lagpu.errors import CheckFailed, IndexOutOfBound

__all__ = ["CYCLE_RULES", "SIDE_RULES", "check_odd_cycle", "check_sides"]

SIDE_RULES = (
    "every vertex is on side 0 or 1",
    "no edge joins two vertices of one side",
)
CYCLE_RULES = (
    "the cycle has an odd number of vertices, none of them twice",
    "consecutive vertices, and the last and the first, are joined by an edge",
)


def check_sides(A: Any, sides: Any) -> tuple[str, ...]:
    """Prove that sides show a graph to be bipartite, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; directions of edges do not matter.
    sides : result, (n,)
        0 or 1 at each vertex.

    Returns
    -------
    tuple of str
        The rules that hold: `SIDE_RULES`, which are the definition.

    Raises
    ------
    CheckFailed
        At the first vertex that breaks a rule.
    """
    graph = Graph(A)
    side, present = graph.dense(sides, "sides")
    refuse(
        ~present | ((side != 0) & (side != 1)),
        f"check_sides: {SIDE_RULES[0]}",
        lambda v: f"side {side[v]}" if present[v] else "no side",
    )
    cols = np.repeat(np.arange(graph.n), np.diff(graph.col_ptr))
    within = side[graph.row_idx] == side[cols]
    bad = np.zeros(graph.n, bool)
    bad[cols[within]] = True

    def other_end(v: int) -> str:
        return f"side {side[v]}, like {graph.row_idx[within & (cols == v)][0]}"

    refuse(bad, f"check_sides: {SIDE_RULES[1]}", other_end)
    return SIDE_RULES


def check_odd_cycle(A: Any, cycle: list[int]) -> tuple[str, ...]:
    """Prove that a cycle shows a graph not to be bipartite, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; directions of edges do not matter.
    cycle : list of int
        Vertices of the cycle in order.

    Returns
    -------
    tuple of str
        The rules that hold: `CYCLE_RULES`. Sides cannot alternate along an odd cycle.

    Raises
    ------
    CheckFailed, IndexOutOfBound
        At the first broken rule; if a number is not a vertex.
    """
    graph = Graph(A)
    if any(not 0 <= v < graph.n for v in cycle):
        raise IndexOutOfBound(f"check_odd_cycle: {cycle} is not within 0 .. {graph.n - 1}.")
    if len(cycle) % 2 == 0 or len(set(cycle)) != len(cycle):
        raise CheckFailed(f"check_odd_cycle: {CYCLE_RULES[0]}: {cycle}.")
    joined = graph.columns + graph.columns.T
    for u, v in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        if not joined[u, v]:
            raise CheckFailed(f"check_odd_cycle: {CYCLE_RULES[1]}: {u} and {v} are not.")
    return CYCLE_RULES
