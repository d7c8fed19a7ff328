"""`shortest_path` and `shortest_path_length`, which choose by their arguments."""

from __future__ import annotations

from typing import Any

from lagpu.nx.answers import answers
from lagpu.nx.graph import Graph
from lagpu.nx.searches import require
from lagpu.nx.unweighted import (
    all_pairs_shortest_path_length,
    bidirectional_shortest_path,
    single_source_shortest_path,
    single_source_shortest_path_length,
    single_target_shortest_path,
    single_target_shortest_path_length,
)
from lagpu.nx.weighted import (
    all_pairs_bellman_ford_path_length,
    all_pairs_dijkstra_path_length,
    bellman_ford_path_length,
    dijkstra_path_length,
    lengths,
    single_source_bellman_ford_path_length,
    single_source_dijkstra_path_length,
)

_METHODS = ("dijkstra", "bellman-ford")


@answers(quick=True, weight=(None,), method=_METHODS)
def shortest_path(
    G: Graph,
    source: Any = None,
    target: Any = None,
    weight: None = None,
    method: str = "dijkstra",
) -> Any:
    """Return a shortest path in edges between two nodes, or by nodes from or to one."""
    if source is None and target is None:
        raise NotImplementedError("lagpu: shortest paths of all pairs")
    if source is None:
        return single_target_shortest_path(G, target)
    if target is None:
        return single_source_shortest_path(G, source)
    return bidirectional_shortest_path(G, source, target)


@answers(quick=True, method=_METHODS)
def shortest_path_length(
    G: Graph,
    source: Any = None,
    target: Any = None,
    weight: Any = None,
    method: str = "dijkstra",
) -> Any:
    """Return the distance of two nodes, or by nodes from or to one, or of all pairs."""
    nearest = method == "dijkstra"
    if weight is None:
        return _in_edges(G, source, target)
    if source is not None and target is not None:
        one = dijkstra_path_length if nearest else bellman_ford_path_length
        return one(G, source, target, weight)
    if source is not None:
        from_one = (
            single_source_dijkstra_path_length
            if nearest
            else single_source_bellman_ford_path_length
        )
        return from_one(G, source, weight=weight)
    if target is not None:
        message = "Node {} not found in graph" if nearest else "Source {} not in G"
        return lengths(G, require(G, target, message), weight, nearest=nearest, back=True)
    every = all_pairs_dijkstra_path_length if nearest else all_pairs_bellman_ford_path_length
    return every(G, weight=weight)


def _in_edges(G: Graph, source: Any, target: Any) -> Any:
    """Return lengths in edges."""
    if source is not None and target is not None:
        return len(bidirectional_shortest_path(G, source, target)) - 1
    if source is not None:
        return single_source_shortest_path_length(G, source)
    if target is not None:
        return single_target_shortest_path_length(G, target)
    return all_pairs_shortest_path_length(G)
