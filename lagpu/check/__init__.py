"""Prove results by plain NumPy and SciPy: levels, parents, path counts and more.

Where possible, a checker tests local rules, with one look at every stored entry. The docstring
proves that the rules suffice, unless they are the definition. Otherwise a checker computes the
answer in another way. So it shares neither code nor idea with the algorithm that it checks.

Row i, column j is the edge i -> j. A graph is a `Matrix` on any backend, a SciPy sparse array, or a
pair ``(col_ptr, row_idx)``, or a `Pattern` of one of these, which many checks of a graph share; a
result is a `Vector` or a pair ``(indices, values)``. A vertex without an entry is unreached.

A checker returns the rules that hold, as texts, or a `CheckReport` with them. It raises
`CheckFailed` at the first vertex, edge or place that breaks a rule, with both values and how many
break it; `IndexOutOfBound` for a number that is not a vertex; and `DimensionMismatch` if an
argument does not fit the graph.

On a grid each piece looks at the edges of its own part, and every process of the grid calls the
checker, which says the same in all. No process collects the graph.
"""

from lagpu.check.centrality import (
    check_betweenness,
    check_degree_centrality,
    check_diameter,
    check_edge_betweenness,
    check_eigenvector,
    check_hits,
    check_katz,
    check_pagerank,
    check_remoteness,
)
from lagpu.check.communities import (
    check_communities,
    check_contraction,
    check_label_propagation,
    check_modularity,
)
from lagpu.check.graph import CheckReport, Pattern
from lagpu.check.searches import (
    check_distances,
    check_floyd_warshall,
    check_k_hop,
    check_levels,
    check_levels_joint,
    check_levels_multi,
    check_negative_cycle,
    check_parents,
    check_parents_multi,
    check_paths,
    check_route,
    check_sssp_parents,
)
from lagpu.check.similarity import (
    check_ego_graph,
    check_k_hop_sizes,
    check_laplacian,
    check_largest_component,
    check_reciprocity,
    check_similarity,
)
from lagpu.check.structure import (
    check_clustering,
    check_components,
    check_core_numbers,
    check_independent_set,
    check_k_core,
    check_odd_cycle,
    check_sides,
    check_square_clustering,
    check_topological_levels,
    check_topological_order,
    check_transitivity,
    check_triangle_centrality,
    check_triangle_count,
    check_triangles,
)
from lagpu.check.subgraphs import check_k_truss, check_matching, check_spanning_forest

__all__ = [
    "CheckReport",
    "Pattern",
    "check_betweenness",
    "check_clustering",
    "check_communities",
    "check_components",
    "check_contraction",
    "check_core_numbers",
    "check_degree_centrality",
    "check_diameter",
    "check_distances",
    "check_edge_betweenness",
    "check_ego_graph",
    "check_eigenvector",
    "check_floyd_warshall",
    "check_hits",
    "check_independent_set",
    "check_k_core",
    "check_k_hop",
    "check_k_hop_sizes",
    "check_k_truss",
    "check_katz",
    "check_label_propagation",
    "check_laplacian",
    "check_largest_component",
    "check_levels",
    "check_levels_joint",
    "check_levels_multi",
    "check_matching",
    "check_modularity",
    "check_negative_cycle",
    "check_odd_cycle",
    "check_pagerank",
    "check_parents",
    "check_parents_multi",
    "check_paths",
    "check_reciprocity",
    "check_remoteness",
    "check_route",
    "check_sides",
    "check_similarity",
    "check_spanning_forest",
    "check_square_clustering",
    "check_sssp_parents",
    "check_topological_levels",
    "check_topological_order",
    "check_transitivity",
    "check_triangle_centrality",
    "check_triangle_count",
    "check_triangles",
]
