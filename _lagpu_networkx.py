"""What NetworkX reads of its backend lagpu when it is imported; it imports nothing.

The functions are in ``lagpu.nx``, which NetworkX imports when the first of them is called.
"""

from typing import Any

__all__ = ["info"]

_EDGES = "Edges count 1: weights are left to NetworkX."
_SIMPLE = "For undirected graphs without parallel edges; weights are left to NetworkX."
_ORDER = "The order is NetworkX'. Functions that sort neighbours are left to NetworkX."
_ASCENDING = "Nodes of equal distance come in the order of the graph."
_FUNCTIONS = {
    "all_pairs_bellman_ford_path_length": _ASCENDING,
    "all_pairs_dijkstra_path_length": _ASCENDING,
    "all_pairs_shortest_path_length": "",
    "ancestors": "",
    "average_clustering": _SIMPLE,
    "average_shortest_path_length": _EDGES,
    "bellman_ford_path_length": "",
    "betweenness_centrality": _EDGES,
    "bfs_edges": _ORDER,
    "bfs_layers": "",
    "bfs_predecessors": _ORDER,
    "bfs_successors": _ORDER,
    "bfs_tree": _ORDER,
    "bidirectional_shortest_path": "Of several shortest paths it may be another one.",
    "center": _EDGES,
    "closeness_centrality": _EDGES,
    "clustering": _SIMPLE,
    "color": "Nodes come in the order of the graph.",
    "connected_components": "",
    "core_number": "",
    "descendants": "",
    "descendants_at_distance": "",
    "diameter": _EDGES,
    "dijkstra_path_length": "",
    "eccentricity": _EDGES,
    "edge_betweenness_centrality": "Without parallel edges. " + _EDGES,
    "harmonic_centrality": _EDGES,
    "has_path": "",
    "is_bipartite": "",
    "is_connected": "",
    "is_directed_acyclic_graph": "",
    "is_strongly_connected": "",
    "is_weakly_connected": "",
    "k_core": "The core numbers alone are lagpu's.",
    "maximal_independent_set": "With a seed the set is the one that NetworkX draws.",
    "node_connected_component": "",
    "number_connected_components": "",
    "number_strongly_connected_components": "",
    "number_weakly_connected_components": "",
    "pagerank": "It stops at a change of ``min(n * tol, 1e-3)``, not of ``n * tol``.",
    "periphery": _EDGES,
    "radius": _EDGES,
    "sets": "",
    "shortest_path": "Between two nodes it may be another of several paths. " + _EDGES,
    "shortest_path_length": "",
    "single_source_bellman_ford_path_length": _ASCENDING,
    "single_source_dijkstra_path_length": _ASCENDING,
    "single_source_shortest_path": "",
    "single_source_shortest_path_length": "",
    "single_target_shortest_path": "Of several shortest paths it may be another one.",
    "single_target_shortest_path_length": "",
    "strongly_connected_components": "In a reverse topological order, maybe not NetworkX'.",
    "topological_generations": "The graph is read at the call, not while it is iterated.",
    "topological_sort": "The graph is read at the call, not while it is iterated.",
    "transitivity": _SIMPLE,
    "triangles": _SIMPLE,
    "weakly_connected_components": "",
}


def info() -> dict[str, Any]:
    """Return name, functions and configuration of the backend, for ``networkx.backend_info``."""
    return {
        "backend_name": "lagpu",
        "project": "lagpu",
        "package": "lagpu",
        "short_summary": "Sparse linear algebra on GPU or CPU.",
        "default_config": {"least_edges": 10_000},
        "functions": {name: {"additional_docs": docs} for name, docs in _FUNCTIONS.items()},
    }
