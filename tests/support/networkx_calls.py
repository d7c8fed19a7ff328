"""Calls of each function of the NetworkX backend, and whether two results are the same."""

import itertools
import math

import networkx as nx
import numpy as np
from networkx.utils import backends as dispatch

# Arguments by words: a node that is there, one that may not be, every second node, all in another
# order, a partition, and the same nodes with other edges.
NODE, OTHER, SOME, ALL, PARTS, AGAIN = "node", "other", "some", "all", "parts", "again"
#: The keys or items come in NetworkX' order.
IN_ORDER = {
    "bfs_edges": [(NODE,), (NODE, False, 1), (OTHER,), (NODE, False, None, sorted)],
    "bfs_predecessors": [(NODE,), (NODE, 2)],
    "bfs_successors": [(NODE,), (NODE, 0)],
    "bfs_layers": [(NODE,), (SOME,), (OTHER,)],
    "generic_bfs_edges": [(NODE,), (NODE, None, 1), (OTHER,)],
    "single_source_shortest_path_length": [(NODE,), (NODE, 1), (NODE, 0.5), (OTHER,)],
    "single_source_shortest_path": [(NODE,), (NODE, 2), (OTHER,)],
    "all_pairs_shortest_path_length": [(), (1,)],
    "all_pairs_shortest_path": [(), (1,)],
    "topological_generations": [()],
    "topological_sort": [()],
    "connected_components": [()],
    "weakly_connected_components": [()],
    "pagerank": [(), (0.5, {NODE: 1}), (0.85, None, 100, 1e-6, None, "w"), (0.85, {OTHER: 0})],
    "betweenness_centrality": [
        *[(), (None, False), (None, True, None, True), (None, True, "w"), (2, True, "w", True, 5)],
    ],
    "betweenness_centrality_subset": [
        *[(SOME, ALL), (SOME, SOME, True), (ALL, SOME, True, "w"), ([NODE, OTHER], ALL)],
        *[([NODE, NODE], ALL), ([NODE], [OTHER, NODE, NODE], False, "w"), ([], SOME), (NODE, SOME)],
    ],
    "edge_betweenness_centrality": [(), (None, False), (None, True, "w"), (1, False, "w", 5)],
    "bipartite_betweenness_centrality": [(SOME,)],
    "closeness_centrality": [(), (NODE,), (None, None, False), (OTHER,), (None, "w"), (NODE, "w")],
    "harmonic_centrality": [(), (SOME,), (None, None, SOME), (NODE,), (None, "w")],
    "triangles": [(), (NODE,), (SOME,)],
    "clustering": [(), (NODE,), (SOME,), (None, "w"), (SOME, "sign")],
    "square_clustering": [(), (NODE,), (SOME,)],
    "reciprocity": [(), (NODE,), (SOME,), (OTHER,)],
    "eccentricity": [(), (NODE,), (SOME,), (None, None, "w"), (SOME, None, "w"), (NODE, {})],
    "core_number": [()],
    "degree_centrality": [()],
    "in_degree_centrality": [()],
    "out_degree_centrality": [()],
    "isolates": [()],
    "score_sequence": [()],
    "edge_boundary": [
        *[(SOME,), (SOME, ALL), (SOME, [NODE, OTHER]), (SOME, None, "w"), (SOME, ALL, "w", False)],
        *[(SOME, None, None, False, 7), ([NODE, OTHER],), (SOME, None, True)],
    ],
    "jaccard_coefficient": [(), ([(NODE, OTHER), (NODE, NODE)],), ([],)],
    "preferential_attachment": [(), ([(NODE, OTHER), (NODE, NODE)],)],
    "resource_allocation_index": [(), ([(NODE, OTHER)],)],
    "adamic_adar_index": [(), ([(NODE, OTHER), (NODE, NODE)],)],
    "to_dict_of_lists": [(), (SOME,)],
}
#: The keys or items come in some order.
ANY_ORDER = {
    "generalized_degree": [(), (NODE,), (SOME,)],
    "single_target_shortest_path_length": [(NODE,), (NODE, 1), (OTHER,)],
    "single_source_dijkstra_path_length": [(NODE, None, "w"), (NODE, 3, "w"), (OTHER, None, "w")],
    "multi_source_dijkstra_path_length": [
        *[([NODE], None, "w"), ([], None, "w"), ([OTHER], 2, "w"), (SOME, None, "w")],
        *[(SOME, 2, "w"), (SOME, -1, "w")],
    ],
    "all_pairs_dijkstra_path_length": [(None, "w")],
    "dijkstra_path_length": [(NODE, OTHER, "w"), (NODE, NODE, "w"), (OTHER, NODE, "w")],
    "single_source_bellman_ford_path_length": [(NODE, "w"), (NODE, "sign"), (OTHER, "w")],
    "all_pairs_bellman_ford_path_length": [("w",)],
    "bellman_ford_path_length": [(NODE, OTHER, "w"), (OTHER, OTHER, "w")],
    "shortest_path_length": [
        *[(NODE,), (None, NODE), (NODE, OTHER), (), (NODE, None, "w"), (None, NODE, "w")],
        *[(NODE, OTHER, "w"), (NODE, OTHER, "w", "bellman-ford"), (None, None, "w")],
        *[(NODE, None, "w", "bellman-ford"), (None, None, "w", "bellman-ford")],
        *[(None, NODE, "sign", "bellman-ford"), (NODE, None, None, "none")],
    ],
    "has_path": [(NODE, OTHER), (NODE, NODE)],
    "average_shortest_path_length": [(), ("w",), ("w", "bellman-ford"), ("w", "floyd-warshall")],
    "efficiency": [(NODE, OTHER), (OTHER, NODE)],
    "global_efficiency": [()],
    "floyd_warshall": [(), ("w",), ("sign",)],
    "floyd_warshall_predecessor_and_distance": [(), ("w",)],
    "floyd_warshall_numpy": [(), (ALL, "w")],
    "descendants": [(NODE,), (OTHER,)],
    "ancestors": [(NODE,), (OTHER,)],
    "descendants_at_distance": [(NODE, 1), (NODE, 7), (NODE, -1), (OTHER, 1)],
    "diameter": [(), (None, False, "w"), (None, True, "w"), ({1: 2, 2: 3},)],
    "radius": [(), (None, False, "w"), ({1: 2, 2: 3},)],
    "center": [(), (None, False, "w"), ({1: 2, 2: 3},)],
    "periphery": [(), (None, False, "w"), ({1: 2, 2: 3},)],
    "average_clustering": [(), (SOME,), (None, None, False), (None, "w"), (None, "sign", False)],
    "transitivity": [()],
    "number_connected_components": [()],
    "number_weakly_connected_components": [()],
    "number_strongly_connected_components": [()],
    "is_connected": [()],
    "is_weakly_connected": [()],
    "is_strongly_connected": [()],
    "node_connected_component": [(NODE,)],
    "is_bipartite": [()],
    "color": [()],
    "sets": [()],
    "is_directed_acyclic_graph": [()],
    "bfs_tree": [(NODE,)],
    "k_core": [(), (1,), (2,)],
    "ego_graph": [(NODE,), (NODE, 2), (NODE, 1, False), (NODE, 2, True, False, "w"), (OTHER,)],
    "is_isolate": [(NODE,), (OTHER,)],
    "number_of_isolates": [()],
    "number_of_selfloops": [()],
    "is_negatively_weighted": [(), (None, "w"), (None, "sign"), ((NODE, OTHER), "sign")],
    "is_regular": [()],
    "is_k_regular": [(0,), (2,)],
    "is_tree": [()],
    "is_forest": [()],
    "is_arborescence": [()],
    "is_branching": [()],
    "is_triad": [()],
    "is_tournament": [()],
    "tournament_matrix": [()],
    "is_dominating_set": [(SOME,), (ALL,), ([OTHER],)],
    "is_simple_path": [(SOME,), (ALL,), ([],), ([NODE],), ([OTHER],), ([NODE, OTHER],)],
    "node_boundary": [(SOME,), (SOME, ALL), ([NODE, OTHER],), (SOME, [NODE, OTHER])],
    "cut_size": [(SOME,), (SOME, ALL), (SOME, None, "w"), (SOME, [NODE], "w"), ([NODE, OTHER],)],
    "volume": [(SOME,), (SOME, "w"), ([NODE, OTHER, NODE], "w")],
    "conductance": [(SOME,), (SOME, None, "w"), (SOME, [NODE], "w")],
    "normalized_cut_size": [(SOME,), (SOME, None, "w"), (SOME, [NODE], "w")],
    "edge_expansion": [(SOME,), (SOME, None, "w")],
    "mixing_expansion": [(SOME,), (SOME, None, "w")],
    "node_expansion": [(SOME,), ([OTHER],)],
    "boundary_expansion": [(SOME,), (ALL,)],
    "mutual_weight": [(NODE, OTHER), (NODE, OTHER, "w"), (OTHER, NODE, "sign"), (NODE, NODE, "w")],
    "overall_reciprocity": [()],
    "s_metric": [()],
    "intra_community_edges": [(PARTS,), ([],), ([SOME, ALL],)],
    "inter_community_edges": [(PARTS,), ([SOME],)],
    "fast_could_be_isomorphic": [(AGAIN,)],
    "faster_could_be_isomorphic": [(AGAIN,)],
    "complement": [()],
    "difference": [(AGAIN,)],
    "symmetric_difference": [(AGAIN,)],
    "intersection": [(AGAIN,)],
    "adjacency_matrix": [(), (ALL, None, "w"), (None, float, None)],
    "to_scipy_sparse_array": [
        *[(), (ALL, None, "w"), (SOME, None, "w"), (SOME, float, None, "coo"), ([],)],
        *[(None, None, "w", "coo"), (None, int, "w", "csc"), ([NODE, NODE],), ([OTHER],)],
        *[(None, None, "w", "none"), (None, None, "sign")],
    ],
    "to_numpy_array": [
        *[(), (ALL, None, None, sum, "w"), (SOME, float, "F", min, "w"), (ALL, None, None, max)],
        *[(None, None, None, sum, "w", -1), ([NODE, NODE],), ([OTHER],), (None, int), ([],)],
        (None, None, None, min, "w", math.inf),
    ],
    "biadjacency_matrix": [
        *[(SOME,), (SOME, None, None, "w"), (ALL, SOME, None, "w", "coo"), ([],)],
        *[(SOME, [NODE, OTHER]), ([NODE, NODE],), (SOME, [NODE, NODE]), (SOME, ALL, float)],
    ],
    "laplacian_matrix": [(), (ALL, "w")],
    "normalized_laplacian_matrix": [(), (ALL, "w")],
    "bethe_hessian_matrix": [(), (1.5, ALL)],
    "modularity_matrix": [(), (ALL, "w")],
    "directed_modularity_matrix": [(), (ALL, "w")],
    "label_propagation_communities": [()],
    "modularity": [(PARTS,), (PARTS, "w"), (PARTS, "w", 0.5), ([SOME],), (PARTS, None)],
    "eigenvector_centrality": [(), (1000, 1e-9, None, "w"), (1,)],
    "katz_centrality": [(), (0.05, 2, 1000, 1e-9, None, False, "w"), (0.1, {NODE: 1}), (9,)],
    "negative_edge_cycle": [(), ("w",), ("sign",)],
    "k_truss": [(0,), (2,), (3,), (4,), (2.5,)],
    "maximal_matching": [()],
    "minimum_spanning_edges": [
        *[("kruskal", "w"), ("kruskal", "w", True, False), ("prim", "w")],
        *[("kruskal", "w", False), ("kruskal", "w", False, False), ("kruskal", "w", 1, "w", True)],
    ],
    "maximum_spanning_edges": [("kruskal", "w"), ("kruskal", "sign", True, False)],
    "minimum_spanning_tree": [("w",), ("sign",), ("w", "boruvka"), ("w", "kruskal", True)],
    "maximum_spanning_tree": [("w",), ("sign",)],
    "google_matrix": [(), (0.5, None, ALL, "w"), (0.85, {NODE: 1}), (0.85, {OTHER: 0})],
}
#: Of several shortest paths it may be another one: what is left when each path is its length.
PATHS = {
    "bidirectional_shortest_path": [(NODE, OTHER), (NODE, NODE)],
    "shortest_path": [
        *[(NODE,), (None, NODE), (NODE, OTHER), (), (NODE, None, "w"), (None, NODE, "w")],
        *[(NODE, OTHER, "w"), (NODE, OTHER, "w", "bellman-ford"), (None, None, "w")],
        *[(NODE, None, "w", "bellman-ford"), (None, NODE, "sign", "bellman-ford")],
        *[(OTHER, None, "w"), (NODE, None, "none")],
    ],
    "single_target_shortest_path": [(NODE,), (NODE, 1), (OTHER,)],
    "single_source_dijkstra": [(NODE, None, None, "w"), (NODE, OTHER, 2, "w"), (OTHER,)],
    "single_source_dijkstra_path": [(NODE, None, "w"), (NODE, 2, "w"), (NODE, -1, "w"), (OTHER,)],
    "multi_source_dijkstra": [([NODE], None, None, "w"), ([NODE], OTHER, None, "w"), ([],)],
    "multi_source_dijkstra_path": [([NODE], None, "w"), ([OTHER],), ([],), ([NODE, NODE],)],
    "bidirectional_dijkstra": [(NODE, OTHER, "w"), (NODE, NODE, "w"), (OTHER, NODE, "w")],
    "dijkstra_path": [(NODE, OTHER, "w"), (NODE, NODE, "w"), (OTHER, NODE, "w")],
    "all_pairs_dijkstra": [(None, "w"), (2, "w")],
    "all_pairs_dijkstra_path": [(None, "w")],
    "single_source_bellman_ford": [(NODE, None, "w"), (NODE, OTHER, "sign"), (OTHER,)],
    "single_source_bellman_ford_path": [(NODE, "w"), (NODE, "sign"), (OTHER,)],
    "bellman_ford_path": [(NODE, OTHER, "w"), (NODE, NODE, "w"), (OTHER, NODE, "w")],
    "all_pairs_bellman_ford_path": [("w",), ("sign",)],
}
#: These choose among several right results, for which there are tests of their own.
OTHERS = {
    "hits",
    "all_pairs_lowest_common_ancestor",
    "louvain_communities",
    "lowest_common_ancestor",
    "maximal_independent_set",
    "strongly_connected_components",
}
ERRORS = (nx.NetworkXException, ArithmeticError, AttributeError, LookupError, TypeError)
ERRORS += (ValueError, OverflowError)


def function_of(name):
    """Return what NetworkX calls by a name: a function with its decorators."""
    found = dispatch._registered_algorithms[name]
    module = __import__(found.orig_func.__module__, fromlist=["x"])
    return getattr(module, found.orig_func.__name__)


def filled(given, G, other="none", again=None):
    """Return arguments with nodes of `G` in place of the words."""
    nodes = list(G)
    words = {NODE: nodes[-1] if nodes else "none", OTHER: other, SOME: nodes[::2], ALL: nodes[::-1]}
    words |= {PARTS: [nodes[::2], nodes[1::2]], AGAIN: again}

    def fill(x):
        if isinstance(x, dict):
            return {fill(k): v for k, v in x.items()}
        if isinstance(x, (list, tuple)):
            return type(x)(map(fill, x))
        return words.get(x, x) if isinstance(x, str) else x

    return fill(given)


def outcome(call):
    """Return what a call gives, iterators as lists, or the kind of its error."""
    try:
        found = call()
        if isinstance(found, (itertools.chain, type({}.values()))) or hasattr(found, "__next__"):
            found = list(found)
        return found
    except NotImplementedError:
        return NotImplementedError
    except ERRORS as error:
        return type(error)


def same(found, wanted, in_order):
    """Whether two results are equal, floats but for rounding, without types of NumPy."""
    if isinstance(wanted, type):
        return found is wanted
    if hasattr(wanted, "tocoo"):
        alike = type(found) is type(wanted) and found.dtype == wanted.dtype
        alike = alike and found.format == wanted.format and found.nnz == wanted.nnz
        return alike and same(found.toarray(), wanted.toarray(), in_order)
    if isinstance(wanted, np.ndarray):
        alike = type(found) is type(wanted) and found.dtype == wanted.dtype
        return alike and np.allclose(found, wanted, 1e-9, 1e-12, equal_nan=True)
    assert type(found).__module__ != "numpy"
    if isinstance(wanted, nx.Graph):
        return nx.utils.graphs_equal(found, wanted)
    if isinstance(wanted, dict):
        right = list(found) == list(wanted) if in_order else found.keys() == wanted.keys()
        return right and all(same(found[key], x, in_order) for key, x in wanted.items())
    if isinstance(wanted, (list, tuple)) and not isinstance(found, type):
        pairs = zip(found, wanted, strict=False)
        return len(found) == len(wanted) and all(same(x, y, in_order) for x, y in pairs)
    if isinstance(wanted, (float, np.number)) and isinstance(found, (int, float)):
        both_nan = found != found and wanted != wanted
        return both_nan or math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-12)
    return found == wanted


def measured(found, G, weight):
    """Return a result in which each path is (first node, last node, its length)."""
    if isinstance(found, dict):
        return {k: measured(x, G, weight) for k, x in found.items()}
    if isinstance(found, tuple):
        return tuple(measured(x, G, weight) for x in found)
    if isinstance(found, list) and found and isinstance(found[0], tuple) and found[0] not in G:
        return [measured(x, G, weight) for x in found]  # of all pairs
    if isinstance(found, list) and found:
        steps = [_step(G, u, v, weight) for u, v in itertools.pairwise(found)]
        return found[0], found[-1], sum(steps)
    return found


def _step(G, u, v, weight):
    edges = G[u][v].values() if G.is_multigraph() else [G[u][v]]
    return 1 if weight is None else min(data.get(weight, 1) for data in edges)
