"""Graph algorithms, each a short loop of public lagpu; the same text runs on every backend.

Entry (i, j) of a matrix, whatever its value, is the edge i -> j, unless an algorithm says
otherwise.
"""

from lagpu.algorithms.betweenness import (
    betweenness_centrality,
    betweenness_estimate,
    edge_betweenness_centrality,
)
from lagpu.algorithms.bfs import (
    bfs,
    bfs_levels,
    bfs_levels_joint,
    bfs_levels_multi,
    bfs_parents,
    bfs_parents_multi,
    count_shortest_paths,
    k_hop,
    neighborhood,
)
from lagpu.algorithms.centrality import (
    center,
    closeness_centrality,
    diameter,
    eccentricity,
    harmonic_centrality,
    pagerank,
    periphery,
    pseudo_diameter,
    radius,
)
from lagpu.algorithms.communities import contraction, label_propagation, louvain, modularity
from lagpu.algorithms.sssp import bellman_ford, delta_stepping, has_path, shortest_path, sssp
from lagpu.algorithms.structure import (
    average_clustering,
    bipartite_sides,
    clustering,
    connected_components,
    core_number,
    is_bipartite,
    k_core,
    maximal_independent_set,
    strongly_connected_components,
    topological_levels,
    topological_order,
    transitivity,
    triangle_count,
    triangles,
)
from lagpu.algorithms.subgraphs import k_truss, maximal_matching, minimum_spanning_forest

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
    "contraction",
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
    "k_truss",
    "label_propagation",
    "louvain",
    "maximal_independent_set",
    "maximal_matching",
    "minimum_spanning_forest",
    "modularity",
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
