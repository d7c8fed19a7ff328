"""Graph algorithms, each a short loop of public lagpu; the same text runs on every backend."""

from lagpu.algorithms.betweenness import betweenness_centrality, edge_betweenness_centrality
from lagpu.algorithms.bfs import bfs, bfs_levels, bfs_parents
from lagpu.algorithms.components import connected_components, strongly_connected_components
from lagpu.algorithms.joint import bfs_levels_joint, k_hop, neighborhood
from lagpu.algorithms.pagerank import pagerank
from lagpu.algorithms.paths import count_shortest_paths
from lagpu.algorithms.sssp import bellman_ford, delta_stepping, sssp

__all__ = [
    "bellman_ford",
    "betweenness_centrality",
    "bfs",
    "bfs_levels",
    "bfs_levels_joint",
    "bfs_parents",
    "connected_components",
    "count_shortest_paths",
    "delta_stepping",
    "edge_betweenness_centrality",
    "k_hop",
    "neighborhood",
    "pagerank",
    "sssp",
    "strongly_connected_components",
]
