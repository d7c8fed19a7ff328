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
    like = graph.edges.first(lambda e: side[e.begin] == side[e.end])
    refuse(
        like < graph.n,
        f"check_sides: {SIDE_RULES[1]}",
        lambda v: f"side {side[v]}, like {like[v]}",
    )
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
    u, v = np.array(cycle), np.array([*cycle[1:], cycle[0]])
    joined = graph.edges.have(u, v) | graph.edges.have(v, u)
    if not joined.all():
        k = int(np.argmin(joined))
        raise CheckFailed(f"check_odd_cycle: {CYCLE_RULES[1]}: {u[k]} and {v[k]} are not.")
    return CYCLE_RULES
