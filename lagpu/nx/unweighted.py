"""Shortest paths and their lengths in edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

from lagpu import algorithms
from lagpu.errors import NoPath
from lagpu.nx.answers import answers
from lagpu.nx.graph import Graph
from lagpu.nx.searches import require, visited

_SOURCES = 64  # searched together


def _lengths(G: Graph, start: int, cutoff: Any, *, back: bool = False) -> dict[Any, int]:
    order, _, levels = visited(G, [start], cutoff, back=back)
    return G.named(levels[order].tolist(), order.tolist())


def _paths(G: Graph, start: int, cutoff: Any, *, back: bool = False) -> dict[Any, list[Any]]:
    """Return the nodes of a shortest path from `start` to each node, or back to it."""
    order, parents, _ = visited(G, [start], cutoff, back=back)
    nodes, found = G.nodes, {G.nodes[start]: [G.nodes[start]]}
    for v, parent in zip(order[1:].tolist(), parents[1:].tolist(), strict=True):
        before = found[nodes[parent]]
        found[nodes[v]] = [nodes[v], *before] if back else [*before, nodes[v]]
    return found


@answers(quick=True)
def single_source_shortest_path_length(G: Graph, source: Any, cutoff: Any = None) -> dict[Any, int]:
    """Return the distance of each node from a node."""
    return _lengths(G, require(G, source, "Source {} is not in G"), cutoff)


@answers(quick=True)
def single_target_shortest_path_length(G: Graph, target: Any, cutoff: Any = None) -> dict[Any, int]:
    """Return the distance of each node to a node."""
    return _lengths(G, require(G, target, "Target {} is not in G"), cutoff, back=True)


@answers()
def all_pairs_shortest_path_length(
    G: Graph, cutoff: Any = None
) -> Iterator[tuple[Any, dict[Any, int]]]:
    """Return an iterator over each node with the distances from it."""
    return ((node, _lengths(G, v, cutoff)) for v, node in enumerate(G.nodes))


@answers(quick=True)
def single_source_shortest_path(G: Graph, source: Any, cutoff: Any = None) -> dict[Any, list[Any]]:
    """Return a shortest path from a node to each node."""
    return _paths(G, require(G, source, "Source {} not in G"), cutoff)


@answers(quick=True)
def single_target_shortest_path(G: Graph, target: Any, cutoff: Any = None) -> dict[Any, list[Any]]:
    """Return a shortest path from each node to a node."""
    return _paths(G, require(G, target, "Target {} not in G"), cutoff, back=True)


@answers(quick=True)
def bidirectional_shortest_path(G: Graph, source: Any, target: Any) -> list[Any]:
    """Return the nodes of a shortest path between two nodes."""
    start = require(G, source, "Source {} is not in G")
    end = require(G, target, "Target {} is not in G")
    try:
        path = algorithms.shortest_path(G.matrix(), start, end)
    except NoPath as error:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.") from error
    return [G.nodes[v] for v in path]


@answers(quick=True)
def has_path(G: Graph, source: Any, target: Any) -> bool:
    """Return True if there is a path from a node to another one."""
    start = require(G, source, "Source {} is not in G")
    end = require(G, target, "Target {} is not in G")
    return algorithms.has_path(G.matrix(), start, end)


@answers(weight=(None,), method=(None, "unweighted"))
def average_shortest_path_length(G: Graph, weight: None = None, method: Any = None) -> float:
    """Return the mean distance of two nodes."""
    n, total = len(G), 0
    if n == 0:
        raise nx.NetworkXPointlessConcept(
            "the null graph has no paths, thus there is no average shortest path length"
        )
    if n == 1:
        return 0
    A = G.matrix()
    for begin in range(0, n, _SOURCES):
        levels = algorithms.bfs_levels_multi(A, list(range(begin, min(n, begin + _SOURCES))))
        if levels.nvals < levels.nrows * n:
            what = "strongly connected" if G.is_directed() else "connected"
            raise nx.NetworkXError(f"Graph is not {what}.")
        total += levels.to_csc()[2].sum(dtype="int64").item()
    return total / (n * (n - 1))
