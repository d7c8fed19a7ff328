"""Prove the parents of a breadth-first search by the five rules of Graph500."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.check.graph import CheckReport, Graph, refuse, whole_below
from lagpu.check.levels import prove_no_long_edge
from lagpu.errors import CheckFailed

__all__ = ["PARENT_RULES", "check_parents"]

Array = np.ndarray[Any, Any]

PARENT_RULES = (
    "the source is its own parent",
    "parents are vertices",
    "1: the parents form a tree rooted at the source",
    "2: a tree edge joins levels that differ by one",
    "3: an edge from level d ends at a level <= d + 1",
    "4: the tree spans all that the source reaches",
    "5: a tree edge is an edge of the graph",
)


def check_parents(A: Any, source: int, parents: Any, levels: Any = None) -> CheckReport:
    """Prove that parents are a breadth-first tree from a source, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module.
    source : int
        ``0 <= source < n``.
    parents : result, (n,)
        Parent of each reached vertex; the source is its own parent.
    levels : result, (n,), optional
        If given, they must be the depths of the tree.

    Raises
    ------
    CheckFailed, IndexOutOfBound, DimensionMismatch
        As `check_levels`.

    Notes
    -----
    The rules of `PARENT_RULES`, numbered as in the Graph500 specification, and applied along the
    edges of a directed graph, suffice: by 1 each vertex of the tree has a depth, and by 5 the
    source reaches it in as many steps; by 3 and 4, which are rule 3 of `check_levels` for depths,
    not in fewer, and no reachable vertex is left out. So a parent on an unreached vertex breaks
    1 or 5: the chain of parents does not end at the source, or is not a path.
    """
    graph = Graph(A, source)
    parent, present = graph.dense(parents, "parents")
    if not present[source] or parent[source] != source:
        found = parent[source] if present[source] else "none"
        raise CheckFailed(
            f"check_parents: {PARENT_RULES[0]}: parent[{source}] is {found}, not {source}."
        )
    refuse(
        present & ~whole_below(parent, graph.n),
        f"check_parents: {PARENT_RULES[1]}",
        lambda v: f"parent {parent[v]} is not one of 0 .. {graph.n - 1}",
    )
    kind = np.int32 if graph.n < 2**31 else np.int64
    parent = np.where(present, parent.astype(kind), np.arange(graph.n, dtype=kind))
    level = _depths(graph, parent, present)
    if levels is not None:
        _prove_equal(graph, level, graph.levels(levels, "check_parents", PARENT_RULES[3]))
    _prove_edges(graph, parent, present)
    nearest = graph.nearest(level)
    both = np.where(level < graph.unreached, level, nearest + 1)
    prove_no_long_edge(graph, both, nearest, f"check_parents: {PARENT_RULES[4]}")
    prove_no_long_edge(graph, level, nearest, f"check_parents: {PARENT_RULES[5]}")
    return graph.report(PARENT_RULES, level)


def _depths(graph: Graph, parent: Array, present: Array) -> Array:
    """Return each vertex's depth in the tree, (n,), or raise unless all chains end at the source.

    Pointer doubling: after k rounds `jump` is 2**k parents up, or the source.
    """
    rule = f"check_parents: {PARENT_RULES[2]}"
    refuse(
        present & ~present[parent],
        rule,
        lambda v: f"its parent {parent[v]} has no parent",
    )
    jump = parent
    depth = (jump != np.arange(graph.n)).astype(np.int64)
    for _ in range(graph.n.bit_length()):
        further = jump[jump]
        depth += depth[jump]
        if np.array_equal(further, jump):
            break
        jump = further
    refuse(
        present & (jump != graph.source),
        rule,
        lambda v: (
            "is its own parent, but not the source"
            if parent[v] == v
            else f"its chain of parents, from {parent[v]} on, does not end at {graph.source}"
        ),
    )
    kind = np.int32 if graph.unreached < 2**31 - 1 else np.int64
    return np.where(present, depth, graph.unreached).astype(kind)


def _prove_equal(graph: Graph, depth: Array, level: Array) -> None:
    """Raise unless the given levels are the depths of the tree."""
    words = {graph.unreached: "none"}
    refuse(
        depth != level,
        f"check_parents: {PARENT_RULES[3]}",
        lambda v: (
            f"level {words.get(int(level[v]), level[v])}, "
            f"but depth in the tree {words.get(int(depth[v]), depth[v])}"
        ),
    )


def _prove_edges(graph: Graph, parent: Array, present: Array) -> None:
    """Raise unless each edge of the tree is an edge of the graph."""
    known = graph.edges.at_ends(lambda e: e.begin == parent[e.end], np.logical_or, False)
    known |= ~present
    known[graph.source] = True
    refuse(
        ~known,
        f"check_parents: {PARENT_RULES[6]}",
        lambda v: f"its parent is {parent[v]}, but there is no edge {parent[v]} -> {v}",
    )
