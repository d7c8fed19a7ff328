"""The functions of graphblas-algorithms that run on both libraries, with small arguments."""

import warnings

import networkx as nx
import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import graphblas_algorithms as ga
    from graphblas import Vector

ALGORITHMS = "graphblas_algorithms.algorithms"


def graphs():
    """Return small graphs by name: undirected, directed, weighted or not, with negative edges."""
    rng = np.random.default_rng(5)
    plain = nx.karate_club_graph()
    weighted = nx.Graph()
    directed = nx.gnp_random_graph(12, 0.25, seed=3, directed=True)
    for _, _, data in plain.edges(data=True):
        data.clear()
    for u, v in plain.edges:
        weighted.add_edge(u, v, weight=int(rng.integers(1, 9)))
    for _, _, data in directed.edges(data=True):
        data["weight"] = float(rng.integers(1, 9))
    negative = nx.DiGraph()
    negative.add_weighted_edges_from([(0, 1, 4), (1, 2, -2), (2, 3, 3), (0, 3, 9), (3, 4, 1)])
    loops = nx.Graph(plain)
    loops.add_edge(3, 3)
    cycle = nx.cycle_graph(6)
    tournament = nx.DiGraph([(0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (0, 3)])
    undirected = ga.Graph.from_networkx
    ways = ga.DiGraph.from_networkx
    return {
        "u": undirected(plain),
        "w": undirected(weighted, weight="weight"),
        "d": ways(nx.DiGraph(directed)),
        "dw": ways(directed, weight="weight"),
        "negative": ways(negative, weight="weight"),
        "loops": undirected(loops),
        "cycle": undirected(cycle),
        "cycle2": undirected(nx.cycle_graph(range(6, 12))),
        "other": undirected(nx.path_graph(6)),
        "tournament": ways(tournament),
        "dag": ways(nx.DiGraph([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])),
    }


def calls():
    """Yield (module, function, graphs, further arguments, options) of each call."""
    size = 34
    S = Vector.from_coo([0, 1, 2, 3, 7], True, size=size, name="S")
    T = Vector.from_coo([20, 21, 30, 33], True, size=size, name="T")
    here = np.linspace(0.5, 2, 34)
    start = Vector.from_coo(range(34), here, name="start")
    few = Vector.from_coo([0, 5, 6], [1.0, 2.0, 3.0], size=34, name="few")
    start12 = Vector.from_coo(range(12), here[:12], name="start12")

    def of(module, **functions):
        for function, cases in functions.items():
            for names, *arguments in cases:
                options = arguments.pop() if arguments and type(arguments[-1]) is dict else {}
                yield f"{ALGORITHMS}.{module}", function, names.split(), arguments, options

    yield from of("_bfs",
        _bfs_plain=[("u", 0), ("d", 0, 5, {"transpose": True})],
        _bfs_level=[("u", 0), ("d", 1, 5, {"cutoff": 3})],
        _bfs_levels=[("cycle", None), ("u", [3, 4, 9])],
        _bfs_parent=[("u", 0), ("d", 0)],
        _bfs_plain_bidirectional=[("d", 0)],
    )  # fmt: skip
    yield from of("boundary",
        edge_boundary=[("w", S, T, {"is_weighted": True}), ("u", S)],
        node_boundary=[("u", S), ("u", S, {"mask": T.S})],
    )  # fmt: skip
    yield from of("centrality.degree_alg", _degree_centrality=[("u", start, "x")])
    yield from of(
        "centrality.eigenvector", eigenvector_centrality=[("u",), ("u", 100, 1e-6, start)]
    )
    yield from of("centrality.katz", katz_centrality=[("u", 0.05), ("dw", 0.01, start12)])
    yield from of("cluster",
        single_triangle=[("u", 0), ("loops", 3), ("w", 0, {"weighted": True})],
        triangles=[("u",), ("w", {"weighted": True}), ("u", {"mask": S.S})],
        total_triangles=[("u",)],
        transitivity=[("u",)],
        transitivity_directed=[("d",)],
        clustering=[("u",)],
        clustering_directed=[("d",), ("dw", {"weighted": True})],
        single_clustering=[("u", 0)],
        single_clustering_directed=[("d", 0), ("dw", 0, {"weighted": True})],
        average_clustering=[("u",), ("u", {"count_zeros": False}), ("u", {"mask": S.S})],
        average_clustering_directed=[("d",)],
        single_square_clustering=[("u", 0)],
        square_clustering=[("u",), ("u", [0, 3])],
        generalized_degree=[("u",), ("u", {"mask": S.S})],
        single_generalized_degree=[("u", 0)],
    )  # fmt: skip
    yield from of("community.quality",
        intra_community_edges=[("u", [S, T])], inter_community_edges=[("u", [S, T])],
    )  # fmt: skip
    yield from of("core", k_truss=[("u", 3), ("u", 4)])
    yield from of("cuts",
        cut_size=[("u", S, T), ("w", S, T, {"is_weighted": True})],
        volume=[("u", S), ("w", S, {"weighted": True})],
        normalized_cut_size=[("u", S, T)],
        conductance=[("u", S, T)],
        edge_expansion=[("u", S)],
        mixing_expansion=[("u", S)],
        node_expansion=[("u", S)],
        boundary_expansion=[("u", S)],
    )  # fmt: skip
    yield from of("dag", descendants=[("dag", 0)], ancestors=[("dag", 4)])
    yield from of("dominating", is_dominating_set=[("u", S)])
    yield from of("isolate", isolates=[("u",)])
    yield from of("isomorphism.isomorph",
        fast_could_be_isomorphic=[("cycle cycle2",), ("u u",)],
        faster_could_be_isomorphic=[("cycle cycle2",)],
    )  # fmt: skip
    yield from of("link_analysis.hits_alg", hits=[("d",), ("d", {"with_authority": True})])
    yield from of("link_analysis.pagerank_alg",
        pagerank=[("u",), ("dw",), ("dag",), ("w", 0.8, few, {"nstart": start})],
        google_matrix=[("u",), ("dag",), ("dw", 0.85, start12)],
    )  # fmt: skip
    yield from of("lowest_common_ancestors", lowest_common_ancestor=[("dag", 3, 4)])
    yield from of("operators.binary",
        union=[("cycle cycle2",)],
        disjoint_union=[("cycle other",)],
        intersection=[("cycle other",)],
        difference=[("cycle other",)],
        symmetric_difference=[("cycle other",)],
        compose=[("cycle other",), ("cycle cycle2",)],
        full_join=[("cycle cycle2",)],
    )  # fmt: skip
    yield from of("operators.unary", complement=[("u",)])
    yield from of("reciprocity", reciprocity=[("d",)], overall_reciprocity=[("d",)])
    yield from of("regular", is_regular=[("cycle",), ("d",)], is_k_regular=[("cycle", 2)])
    yield from of("shortest_paths.dense",
        floyd_warshall_predecessor_and_distance=[("cycle",), ("dw", True)],
    )  # fmt: skip
    yield from of("shortest_paths.unweighted",
        all_pairs_shortest_path_length=[
            ("cycle", {"nodes": [1, 2], "expand_output": True}), ("cycle",),
        ],
        bidirectional_shortest_path_length=[("u", 0, 33)],
    )  # fmt: skip
    yield from of("shortest_paths.weighted",
        _bellman_ford_path_length=[("dw", 0, {"name": "d"}), ("negative", 0, 4, {"name": "d"}),
                                   ("dw", 0, {"name": "d", "cutoff": 9})],
        bellman_ford_path_lengths=[("dw",), ("negative", [0, 1], {"expand_output": True})],
        bellman_ford_path=[("w", 0, 33), ("dw", 0, 5)],
        negative_edge_cycle=[("negative",)],
    )  # fmt: skip
    yield from of("simple_paths", is_simple_path=[("u", [0, 1, 2])])
    yield from of("smetric", s_metric=[("u",)])
    yield from of("structuralholes", mutual_weight=[("w", 0, 1)])
    yield from of("tournament",
        is_tournament=[("tournament",)], score_sequence=[("tournament",)],
        tournament_matrix=[("tournament",)],
    )  # fmt: skip
    yield from of("traversal.breadth_first_search",
        bfs_layers=[("u", 0)], descendants_at_distance=[("u", 0, 2)],
    )  # fmt: skip
    linalg = [
        ("bethehessianmatrix", "bethe_hessian_matrix", "u"),
        ("graphmatrix", "adjacency_matrix", "u"),
        ("laplacianmatrix", "laplacian_matrix", "u"),
        ("laplacianmatrix", "normalized_laplacian_matrix", "w"),
        ("modularitymatrix", "modularity_matrix", "u"),
        ("modularitymatrix", "directed_modularity_matrix", "d"),
    ]
    for module, function, name in linalg:
        yield f"graphblas_algorithms.linalg.{module}", function, [name], [], {}
    yield f"{ALGORITHMS}._helpers", "normalize", [], [start.dup(), "L2"], {}
    yield f"{ALGORITHMS}._helpers", "is_converged", [], [start.dup(), few, 1e-3], {}
