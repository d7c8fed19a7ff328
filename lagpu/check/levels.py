"""Prove the levels of a breadth-first search."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.check.graph import CheckReport, Graph, refuse
from lagpu.errors import CheckFailed

__all__ = ["LEVEL_RULES", "check_levels", "prove_levels", "prove_no_long_edge"]

Array = np.ndarray[Any, Any]

LEVEL_RULES = (
    "the source has level 0",
    "levels are whole numbers 0 .. n-1",
    "an edge from level d ends at a level <= d + 1",
    "a vertex of level d > 0 has an in-neighbour of level d - 1",
)


def check_levels(A: Any, source: int, levels: Any) -> CheckReport:
    """Prove that levels are the distances from a source, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module.
    source : int
        ``0 <= source < n``.
    levels : result, (n,)
        Level of each reached vertex.

    Raises
    ------
    CheckFailed
        At the first broken rule, with the vertex, both values, and how many vertices break it.
    IndexOutOfBound, DimensionMismatch
        If the source or the arrays do not fit the graph.

    Notes
    -----
    The rules of `LEVEL_RULES` suffice. Let dist be the true distance.

    - By rules 1 and 3, and induction along a shortest path, a vertex at distance d has a level, and
      it is <= d.
    - By rule 4, from a vertex of level d there is a walk against the edges through levels d - 1,
      d - 2, ..., 0. By rule 4 again only the source can have level 0, since no vertex has level -1.
      So a vertex of level d is reached from the source in d steps: dist <= level.

    Hence level = dist, and exactly the reachable vertices have one.
    """
    graph = Graph(A, source)
    level = graph.levels(levels, "check_levels", LEVEL_RULES[1])
    prove_levels(graph, level, "check_levels")
    return graph.report(LEVEL_RULES, level)


def prove_levels(graph: Graph, level: Array, name: str) -> None:
    """Raise unless levels, (n,), obey all of `LEVEL_RULES`."""
    source = graph.source
    if level[source] != 0:
        found = level[source] if level[source] < graph.unreached else "none"
        raise CheckFailed(f"{name}: {LEVEL_RULES[0]}: level[{source}] is {found}, not 0.")
    nearest = graph.nearest(level)
    prove_no_long_edge(graph, level, nearest, f"{name}: {LEVEL_RULES[2]}")
    bad = (level < graph.unreached) & (level != nearest + 1)
    bad[source] = False

    def describe(v: int) -> str:
        if nearest[v] == graph.unreached:
            return f"level {level[v]}, but none of its in-neighbours is reached"
        return f"level {level[v]}, but its nearest in-neighbour has level {nearest[v]}"

    refuse(bad, f"{name}: {LEVEL_RULES[3]}", describe)


def prove_no_long_edge(graph: Graph, level: Array, nearest: Array, rule: str) -> None:
    """Raise if an edge ends more than one level after its begin, or at an unreached vertex."""

    def describe(v: int) -> str:
        found = "no level" if level[v] == graph.unreached else f"level {level[v]}"
        u = graph.in_neighbour(v, level, nearest[v])
        return f"{found}, but the edge {u} -> {v} comes from level {nearest[v]}"

    refuse(level > nearest + 1, rule, describe)
