"""Graph algorithms, each a short loop of public lagpu; the same text runs on every backend."""

from lagpu.algorithms.batch import bfs_levels_multi, bfs_parents_multi
from lagpu.algorithms.betweenness import betweenness_centrality, betweenness_estimate
from lagpu.algorithms.bfs import bfs, bfs_levels, bfs_parents
from lagpu.algorithms.bipartite import bipartite_sides, is_bipartite
from lagpu.algorithms.closeness import closeness_centrality, harmonic_centrality
from lagpu.algorithms.components import connected_components, strongly_connected_components
from lagpu.algorithms.cores import core_number, k_core
from lagpu.algorithms.counting import count_shortest_paths
from lagpu.algorithms.dag import topological_levels, topological_order
from lagpu.algorithms.diameter import (
    center,
    diameter,
    eccentricity,
    periphery,
    pseudo_diameter,
    radius,
)
from lagpu.algorithms.edge_betweenness import edge_betweenness_centrality
from lagpu.algorithms.independent import maximal_independent_set
from lagpu.algorithms.multi_source import bfs_levels_joint, k_hop, neighborhood
from lagpu.algorithms.pagerank import pagerank
from lagpu.algorithms.shortest_path import has_path, shortest_path
from lagpu.algorithms.sssp import bellman_ford, delta_stepping, sssp
from lagpu.algorithms.triangles import (
    average_clustering,
    clustering,
    transitivity,
    triangle_count,
    triangles,
)

__all__ = [
    "average_clustering",
    "bellman_ford",
    "betweenness_centrality",
    "betweenness_estimate",
    "bfs",
    "bfs_levels",
    "bfs_levels_joint",
    "bfs_levels_multi",
    "bfs_parents",
    "bfs_parents_multi",
    "bipartite_sides",
    "center",
    "closeness_centrality",
    "clustering",
    "connected_components",
    "core_number",
    "count_shortest_paths",
    "delta_stepping",
    "diameter",
    "eccentricity",
    "edge_betweenness_centrality",
    "harmonic_centrality",
    "has_path",
    "is_bipartite",
    "k_core",
    "k_hop",
    "maximal_independent_set",
    "neighborhood",
    "pagerank",
    "periphery",
    "pseudo_diameter",
    "radius",
    "shortest_path",
    "sssp",
    "strongly_connected_components",
    "topological_levels",
    "topological_order",
    "transitivity",
    "triangle_count",
    "triangles",
]
