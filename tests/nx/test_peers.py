"""Functions of other backends of NetworkX that lagpu has too, and a day of an analyst."""

import networkx as nx
import pytest
from networkx_calls import outcome, same
from networkx_door import door  # noqa: F401

import _lagpu_networkx
import lagpu
from lagpu.nx import interface  # noqa: F401 - declares them
from lagpu.nx.answers import DECLARED, registered

#: Of nx-cugraph's `_nx_cugraph/__init__.py`, at ac64d6d of 2026, those that generate no graph.
CUGRAPH = """
    adjacency_matrix all_pairs_bellman_ford_path all_pairs_bellman_ford_path_length
    all_pairs_dijkstra all_pairs_dijkstra_path all_pairs_dijkstra_path_length
    all_pairs_shortest_path all_pairs_shortest_path_length ancestors average_clustering
    bellman_ford_path bellman_ford_path_length betweenness_centrality bfs_edges bfs_layers
    bfs_predecessors bfs_successors bfs_tree biadjacency_matrix bidirectional_shortest_path
    bipartite_betweenness_centrality clustering complement connected_components
    convert_node_labels_to_integers core_number degree_centrality descendants
    descendants_at_distance dijkstra_path dijkstra_path_length edge_betweenness_centrality
    eigenvector_centrality forceatlas2_layout from_biadjacency_matrix from_dict_of_lists
    from_pandas_edgelist from_scipy_sparse_array generic_bfs_edges has_path hits
    in_degree_centrality is_arborescence is_branching is_connected is_forest is_isolate
    is_negatively_weighted is_tree is_weakly_connected isolates jaccard_coefficient k_truss
    katz_centrality leiden_communities louvain_communities lowest_common_ancestor
    node_connected_component number_connected_components number_of_isolates number_of_selfloops
    number_weakly_connected_components out_degree_centrality overall_reciprocity pagerank
    reciprocity relabel_nodes reverse shortest_path shortest_path_length
    single_source_bellman_ford single_source_bellman_ford_path
    single_source_bellman_ford_path_length single_source_dijkstra single_source_dijkstra_path
    single_source_dijkstra_path_length single_source_shortest_path
    single_source_shortest_path_length single_target_shortest_path
    single_target_shortest_path_length to_dict_of_lists to_numpy_array to_scipy_sparse_array
    tournament_matrix transitivity triangles weakly_connected_components
"""
#: Of graphblas-algorithms' `_nx_graphblas/__init__.py`, at 35dbc90 of 2024.
GRAPHBLAS = """
    adjacency_matrix all_pairs_bellman_ford_path_length all_pairs_shortest_path_length ancestors
    average_clustering bellman_ford_path bellman_ford_path_length bethe_hessian_matrix
    bfs_layers boundary_expansion clustering complement compose conductance cut_size
    degree_centrality descendants descendants_at_distance difference directed_modularity_matrix
    disjoint_union edge_boundary edge_expansion efficiency ego_graph eigenvector_centrality
    fast_could_be_isomorphic faster_could_be_isomorphic floyd_warshall floyd_warshall_numpy
    floyd_warshall_predecessor_and_distance full_join generalized_degree google_matrix has_path
    hits in_degree_centrality inter_community_edges intersection intra_community_edges
    is_connected is_dominating_set is_isolate is_k_regular is_regular is_simple_path
    is_tournament is_triad is_weakly_connected isolates k_truss katz_centrality laplacian_matrix
    lowest_common_ancestor mixing_expansion modularity_matrix mutual_weight negative_edge_cycle
    node_boundary node_connected_component node_expansion normalized_cut_size
    normalized_laplacian_matrix number_of_isolates out_degree_centrality overall_reciprocity
    pagerank reciprocity reverse s_metric score_sequence single_source_bellman_ford_path_length
    single_source_shortest_path_length single_target_shortest_path_length square_clustering
    symmetric_difference tournament_matrix transitivity triangles union volume
"""


def is_text(name):
    return DECLARED[name].function.__wrapped__ is registered(name).orig_func


@pytest.mark.parametrize(
    ("peer", "names", "count"), [("nx-cugraph", CUGRAPH, 87), ("graphblas", GRAPHBLAS, 81)]
)
def test_most_functions_of_other_backends_are_there(peer, names, count):
    names = names.split()
    assert len(set(names)) == count
    ours = set(_lagpu_networkx.info()["functions"])
    lacking = sorted(set(names) - ours)
    # Of these NetworkX' own text reads lagpu's graph, and what it calls runs in lagpu.
    texts = [name for name in names if name in ours and is_text(name)]
    print(
        f"{peer}: {len(names) - len(lacking)} of {len(names)}, {len(texts)} of them by NetworkX' "
        f"own text, without {lacking}"
    )
    assert len(names) - len(lacking) >= 75, lacking


DAY = {
    "pagerank": {"tol": 1e-12},
    "hits": {},
    "louvain_communities": {},
    "k_truss": {"k": 4},
    "katz_centrality": {"alpha": 0.01},
    "eigenvector_centrality": {},
    "minimum_spanning_tree": {},
    "jaccard_coefficient": {},
    "label_propagation_communities": {},
    "maximum_flow": {"_s": 0, "_t": 33, "capacity": "weight"},
    "connected_components": {},
    "betweenness_centrality": {},
    "shortest_path": {"source": 0, "weight": "weight"},
    "clustering": {},
    "core_number": {},
    "closeness_centrality": {},
}
RANDOM = {"louvain_communities"}
ANOTHER_PATH = {"shortest_path"}


def called(name, G, **options):
    module = nx.community if name.endswith("communities") else nx
    given = [options.pop(x) for x in ("_s", "_t") if x in options]
    return outcome(lambda: getattr(module, name)(G, *given, **options))


def test_of_a_day_of_sixteen_calls_fifteen_run(door):
    G = nx.karate_club_graph()
    ran = []
    with lagpu.use("cpu"):
        for name, options in DAY.items():
            found = called(name, G, **options, backend="lagpu")
            if found is NotImplementedError:
                continue
            ran.append(name)
            wanted = called(name, G, **options)
            if name in RANDOM:
                ours, theirs = (nx.community.modularity(G, list(x)) for x in (found, wanted))
                assert ours > 0.95 * theirs
            elif name in ANOTHER_PATH:
                lengths = [
                    {v: nx.path_weight(G, x[v], "weight") for v in G} for x in (found, wanted)
                ]
                assert lengths[0] == lengths[1]
            else:
                assert same(found, wanted, False), name
    print(f"{len(ran)} of {len(DAY)} calls of a day")
    assert [name for name in DAY if name not in ran] == ["maximum_flow"]
