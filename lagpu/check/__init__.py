"""Prove results by plain NumPy and SciPy: levels, parents, path counts and more.

Where possible, a checker tests local rules, with one look at every stored entry. The docstring
proves that the rules suffice, unless they are the definition. Otherwise a checker computes the
answer in another way. So it shares neither code nor idea with the algorithm that it checks.

Row i, column j is the edge i -> j. A graph is a `Matrix` on any backend, a SciPy sparse array, or a
pair ``(col_ptr, row_idx)``, or a `Pattern` of one of these, which many checks of a graph share; a
result, (n,), is a `Vector` or a pair ``(indices, values)``. A vertex without an entry is unreached.
The argument `A` is a graph, (n, n), unless a docstring says more; vertices are ``0 .. n-1``.

A checker returns the rules that hold, as texts, or a `CheckReport` with them. It raises
`CheckFailed` at the first vertex, edge or place that breaks a rule, with both values and how many
break it; `IndexOutOfBound` for a number that is not a vertex; and `DimensionMismatch` if an
argument does not fit the graph.

On a grid each piece looks at the edges of its own part, and every process of the grid calls the
checker, which says the same in all. No process collects the graph.
"""

# Names are imported under their own names so that type checkers take them as exported.
# isort: skip_file
import inspect

from lagpu.check.centrality import (
    check_betweenness as check_betweenness,
    check_degree_centrality as check_degree_centrality,
    check_diameter as check_diameter,
    check_edge_betweenness as check_edge_betweenness,
    check_eigenvector as check_eigenvector,
    check_hits as check_hits,
    check_katz as check_katz,
    check_pagerank as check_pagerank,
    check_remoteness as check_remoteness,
)
from lagpu.check.collected import (
    check_communities as check_communities,
    check_contraction as check_contraction,
    check_ego_graph as check_ego_graph,
    check_k_hop_sizes as check_k_hop_sizes,
    check_k_truss as check_k_truss,
    check_label_propagation as check_label_propagation,
    check_laplacian as check_laplacian,
    check_largest_component as check_largest_component,
    check_matching as check_matching,
    check_modularity as check_modularity,
    check_reciprocity as check_reciprocity,
    check_similarity as check_similarity,
    check_spanning_forest as check_spanning_forest,
)
from lagpu.check.graph import CheckReport as CheckReport, Pattern as Pattern
from lagpu.check.searches import (
    check_distances as check_distances,
    check_floyd_warshall as check_floyd_warshall,
    check_k_hop as check_k_hop,
    check_levels as check_levels,
    check_levels_joint as check_levels_joint,
    check_levels_multi as check_levels_multi,
    check_negative_cycle as check_negative_cycle,
    check_parents as check_parents,
    check_parents_multi as check_parents_multi,
    check_paths as check_paths,
    check_route as check_route,
    check_sssp_parents as check_sssp_parents,
)
from lagpu.check.structure import (
    check_clustering as check_clustering,
    check_components as check_components,
    check_core_numbers as check_core_numbers,
    check_independent_set as check_independent_set,
    check_k_core as check_k_core,
    check_odd_cycle as check_odd_cycle,
    check_sides as check_sides,
    check_square_clustering as check_square_clustering,
    check_topological_levels as check_topological_levels,
    check_topological_order as check_topological_order,
    check_transitivity as check_transitivity,
    check_triangle_centrality as check_triangle_centrality,
    check_triangle_count as check_triangle_count,
    check_triangles as check_triangles,
)

__all__ = [
    *("CheckReport", "Pattern"),
    *sorted(name for name, x in globals().items() if inspect.isfunction(x)),
]
