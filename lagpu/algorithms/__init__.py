"""Graph algorithms, each a short loop of public lagpu; the same text runs on every backend.

Entry (i, j) of a matrix, whatever its value, is the edge i -> j, unless an algorithm says
otherwise.

Every algorithm raises `DimensionMismatch` if the matrix is not square or another argument does not
fit it, `DomainMismatch` if an argument has a wrong type, `IndexOutOfBound` if a number is not a
vertex, and `InvalidValue` if a list of vertices is empty or repeats one, or if a number or an
option is not among those it accepts. The docstrings say what else an algorithm raises.
"""

# Names are imported under their own names so that type checkers take them as exported.
# isort: skip_file
import inspect

from lagpu.algorithms.betweenness import (
    betweenness_centrality as betweenness_centrality,
    betweenness_estimate as betweenness_estimate,
    edge_betweenness_centrality as edge_betweenness_centrality,
)
from lagpu.algorithms.bfs import (
    bfs as bfs,
    bfs_levels as bfs_levels,
    bfs_levels_joint as bfs_levels_joint,
    bfs_levels_multi as bfs_levels_multi,
    bfs_parents as bfs_parents,
    bfs_parents_multi as bfs_parents_multi,
    count_shortest_paths as count_shortest_paths,
    k_hop as k_hop,
    neighborhood as neighborhood,
)
from lagpu.algorithms.centrality import (
    center as center,
    closeness_centrality as closeness_centrality,
    degree_centrality as degree_centrality,
    diameter as diameter,
    eccentricity as eccentricity,
    eigenvector_centrality as eigenvector_centrality,
    harmonic_centrality as harmonic_centrality,
    hits as hits,
    in_degree_centrality as in_degree_centrality,
    katz_centrality as katz_centrality,
    out_degree_centrality as out_degree_centrality,
    pagerank as pagerank,
    periphery as periphery,
    pseudo_diameter as pseudo_diameter,
    radius as radius,
)
from lagpu.algorithms.communities import (
    contraction as contraction,
    label_propagation as label_propagation,
    louvain as louvain,
    modularity as modularity,
)
from lagpu.algorithms.similarity import (
    laplacian_matrix as laplacian_matrix,
    overall_reciprocity as overall_reciprocity,
    reciprocity as reciprocity,
    similarity as similarity,
)
from lagpu.algorithms.sssp import (
    bellman_ford as bellman_ford,
    delta_stepping as delta_stepping,
    find_negative_cycle as find_negative_cycle,
    floyd_warshall as floyd_warshall,
    has_path as has_path,
    path_weight as path_weight,
    shortest_path as shortest_path,
    sssp as sssp,
    sssp_parents as sssp_parents,
)
from lagpu.algorithms.structure import (
    average_clustering as average_clustering,
    bipartite_sides as bipartite_sides,
    clustering as clustering,
    connected_components as connected_components,
    core_number as core_number,
    is_bipartite as is_bipartite,
    k_core as k_core,
    maximal_independent_set as maximal_independent_set,
    square_clustering as square_clustering,
    strongly_connected_components as strongly_connected_components,
    topological_levels as topological_levels,
    topological_order as topological_order,
    transitivity as transitivity,
    triangle_centrality as triangle_centrality,
    triangle_count as triangle_count,
    triangles as triangles,
)
from lagpu.algorithms.subgraphs import (
    ego_graph as ego_graph,
    k_hop_sizes as k_hop_sizes,
    k_truss as k_truss,
    largest_component as largest_component,
    maximal_matching as maximal_matching,
    minimum_spanning_forest as minimum_spanning_forest,
)

__all__ = sorted(name for name, x in globals().items() if inspect.isfunction(x))
