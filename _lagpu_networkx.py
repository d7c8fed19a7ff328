"""What NetworkX reads of its backend lagpu when it is imported; it imports nothing.

The functions are in ``lagpu.nx``, which NetworkX imports when the first of them is called.
"""

from typing import Any

__all__ = ["info"]

#: The functions, by what NetworkX' documentation is to say of them.
_FUNCTIONS = {
    "": """
        adjacency_matrix all_pairs_lowest_common_ancestor all_pairs_shortest_path
        all_pairs_shortest_path_length ancestors average_shortest_path_length
        bellman_ford_path_length bethe_hessian_matrix bfs_layers biadjacency_matrix
        bidirectional_dijkstra bidirectional_shortest_path bipartite_betweenness_centrality
        boundary_expansion center closeness_centrality color conductance connected_components
        core_number cut_size degree_centrality descendants descendants_at_distance diameter
        dijkstra_path_length directed_modularity_matrix eccentricity edge_boundary edge_expansion
        efficiency ego_graph eigenvector_centrality fast_could_be_isomorphic
        faster_could_be_isomorphic floyd_warshall_numpy generic_bfs_edges global_efficiency
        google_matrix harmonic_centrality has_path in_degree_centrality inter_community_edges
        intra_community_edges is_arborescence is_bipartite is_branching is_connected
        is_directed_acyclic_graph is_dominating_set is_forest is_isolate is_k_regular
        is_negatively_weighted is_regular is_simple_path is_strongly_connected is_tournament is_tree
        is_triad is_weakly_connected isolates katz_centrality label_propagation_communities
        laplacian_matrix lowest_common_ancestor maximal_matching mixing_expansion modularity
        modularity_matrix mutual_weight node_boundary node_connected_component
        node_expansion normalized_cut_size normalized_laplacian_matrix number_connected_components
        number_of_isolates number_of_selfloops number_strongly_connected_components
        number_weakly_connected_components out_degree_centrality overall_reciprocity periphery
        preferential_attachment radius reciprocity s_metric score_sequence sets shortest_path_length
        single_source_shortest_path single_source_shortest_path_length
        single_target_shortest_path_length to_dict_of_lists to_numpy_array to_scipy_sparse_array
        topological_generations topological_sort tournament_matrix volume
        weakly_connected_components
    """,
    "Of several shortest paths it may be another one.": """
        all_pairs_bellman_ford_path all_pairs_dijkstra all_pairs_dijkstra_path bellman_ford_path
        dijkstra_path multi_source_dijkstra multi_source_dijkstra_path shortest_path
        single_source_bellman_ford single_source_bellman_ford_path single_source_dijkstra
        single_source_dijkstra_path single_target_shortest_path
    """,
    "Nodes of equal distance come in the order of the graph.": """
        all_pairs_bellman_ford_path_length all_pairs_dijkstra_path_length
        multi_source_dijkstra_path_length single_source_bellman_ford_path_length
        single_source_dijkstra_path_length
    """,
    "Without parallel edges.": "average_clustering clustering generalized_degree",
    "By Kruskal's algorithm, the default. For undirected graphs.": (
        "maximum_spanning_edges maximum_spanning_tree minimum_spanning_edges minimum_spanning_tree"
    ),
    "The order is NetworkX'. Functions that sort neighbours are left to NetworkX.": (
        "bfs_edges bfs_predecessors bfs_successors bfs_tree"
    ),
    "Without self-loops.": ("adamic_adar_index jaccard_coefficient resource_allocation_index"),
    "For undirected graphs without parallel edges.": "k_truss transitivity triangles",
    "Cycles of negative length are left to NetworkX.": (
        "floyd_warshall floyd_warshall_predecessor_and_distance"
    ),
    "By power iteration; results add up to 1; of several, that of the equal start.": "hits",
    "A frozen graph is no error.": "negative_edge_cycle",
    "For undirected graphs.": "square_clustering",
    "In a reverse topological order, maybe not NetworkX'.": "strongly_connected_components",
    "It stops at a change of ``min(n * tol, 1e-3)``, not of ``n * tol``.": "pagerank",
    "lagpu computes only the core numbers.": "k_core",
    "The result is a NetworkX graph.": "complement difference intersection symmetric_difference",
    "Weights of 0 are left to NetworkX.": (
        "betweenness_centrality betweenness_centrality_subset edge_betweenness_centrality"
    ),
    "With a seed the set is the one that NetworkX draws.": "maximal_independent_set",
    "Without a seed, for undirected graphs; the communities are lagpu's.": "louvain_communities",
}


def info() -> dict[str, Any]:
    """Return name, functions and configuration of the backend, for ``networkx.backend_info``."""
    return {
        "backend_name": "lagpu",
        "project": "lagpu",
        "package": "lagpu",
        "short_summary": "Sparse linear algebra on GPU or CPU.",
        "default_config": {"least_edges": 10_000},
        "functions": {
            name: {"additional_docs": docs}
            for docs, names in _FUNCTIONS.items()
            for name in names.split()
        },
    }
