"""Which calls the backend runs, which it refuses, and its reasons."""

import networkx as nx
import pytest
from networkx_door import door  # noqa: F401

import lagpu
from lagpu.nx import convert_from_nx
from lagpu.nx.answers import DECLARED, Declared, can_run, should_run

KARATE = nx.karate_club_graph()


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "why"),
    [
        ("pagerank", (), {}, ""),
        ("pagerank", (), {"weight": "w"}, ""),
        ("pagerank", (), {"weight": len}, ""),
        ("pagerank", (), {"nonsense": 1}, "unexpected keyword argument 'nonsense'"),
        ("pagerank", (), {"of_a_newer_networkx": None}, ""),
        ("betweenness_centrality", (), {"weight": "w"}, ""),
        ("minimum_spanning_tree", (), {"algorithm": "prim"}, "takes algorithm='kruskal' alone"),
        ("average_shortest_path_length", (), {"method": "unweighted"}, ""),
        ("average_shortest_path_length", (), {"method": "x"}, ""),
        ("bfs_edges", (0,), {"sort_neighbors": sorted}, ""),
        ("eccentricity", (), {"sp": {}}, ""),
        ("diameter", (), {"usebounds": True}, ""),
    ],
)
def test_arguments(name, args, kwargs, why):
    found = can_run(name, (KARATE, *args), kwargs)
    assert found is True if not why else why in found


@pytest.mark.parametrize(
    ("name", "kind", "why"),
    [
        ("square_clustering", nx.DiGraph, "for undirected graphs"),
        ("clustering", nx.MultiGraph, "without parallel edges"),
        ("core_number", nx.MultiGraph, "without parallel edges"),
        ("betweenness_centrality", nx.MultiDiGraph, ""),
    ],
)
def test_kinds_of_graphs(name, kind, why):
    found = can_run(name, (kind(),), {})
    assert found is True if not why else why in found
    assert "list is not a graph" in can_run(name, ([],), {})


def test_small_graphs_and_quick_searches_are_not_worth_it(door):
    assert "the graph has 78 edges" in should_run("pagerank", (KARATE,), {})
    assert nx.config.backends.lagpu.least_edges == 10_000
    nx.config.backends.lagpu.least_edges = 3000
    large = nx.gnm_random_graph(500, 3000, seed=1)
    assert should_run("pagerank", (large,), {}) is True
    for _ in range(2):
        for _ in range(4):
            assert "less time than to convert" in should_run("bfs_edges", (large, 0), {})
        assert should_run("bfs_edges", (large, 0), {}) is True
        large.add_edge(0, 1)
    with nx.config.backend_priority(algos=["lagpu"]):
        nx.pagerank(large)
    assert should_run("bfs_edges", (large, 0), {}) is True
    nx.config.backends.lagpu.least_edges = 5000
    assert "the graph has 3001 edges" in should_run("pagerank", (large,), {})  # also if converted
    nx.config.backends.lagpu.least_edges = 3000
    large.__networkx_cache__ = None
    for _ in range(5):
        assert "less time than to convert" in should_run("bfs_edges", (large, 0), {})
    assert should_run("pagerank", (convert_from_nx(KARATE),), {}) is True
    nx.config.backends.lagpu.least_edges = 10
    assert should_run("pagerank", (KARATE,), {}) is True


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("bfs_edges", (0,), {"depth_limit": 2}),
        ("bfs_edges", (0, False, 2), {}),
        ("descendants_at_distance", (0, 3), {}),
        ("single_source_shortest_path_length", (0, 9), {}),
        ("single_source_dijkstra_path_length", (0,), {"cutoff": 9}),
        ("dijkstra_path_length", (0, 9), {}),
        ("shortest_path", (0, 9), {}),
        ("has_path", (0,), {"target": 9}),
        ("triangles", (5,), {}),
        ("jaccard_coefficient", ([(0, 1)],), {}),
    ],
)
def test_calls_that_end_early_are_left_to_networkx(door, name, args, kwargs):
    nx.config.backends.lagpu.least_edges = 0
    large = nx.gnm_random_graph(500, 3000, seed=1)
    with nx.config.backend_priority(algos=["lagpu"]):
        nx.pagerank(large)  # converts it
    assert "of NetworkX ends early" in should_run(name, (large, *args), kwargs)
    assert should_run(name, (convert_from_nx(large), *args), kwargs) is True


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("bfs_edges", (0,), {"depth_limit": None}),
        ("single_source_dijkstra_path_length", (0,), {"cutoff": float("inf")}),
        ("shortest_path", (0,), {}),
        ("shortest_path_length", (), {"target": 0, "weight": "w"}),
        ("triangles", (), {}),
        ("triangles", ([5, 6],), {}),
        ("closeness_centrality", (5,), {}),
    ],
)
def test_other_calls_of_a_converted_graph_are_worth_it(door, name, args, kwargs):
    nx.config.backends.lagpu.least_edges = 0
    large = nx.gnm_random_graph(500, 3000, seed=1)
    with nx.config.backend_priority(algos=["lagpu"]):
        nx.pagerank(large)
    assert should_run(name, (large, *args), kwargs) is True


def test_one_node_is_not_worth_a_conversion(door):
    nx.config.backends.lagpu.least_edges = 0
    large = nx.gnm_random_graph(500, 3000, seed=1)
    assert "less time than to convert" in should_run("closeness_centrality", (large, 5), {})
    assert should_run("closeness_centrality", (large,), {}) is True


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("is_isolate", (0,), {}),
        ("cut_size", ([0, 1],), {}),
        ("ego_graph", (0,), {}),
        ("diameter", (), {"e": {0: 1}}),
        ("eccentricity", (), {"sp": {0: {0: 0}}}),
        ("k_core", (), {"core_number": {0: 1}}),
    ],
)
def test_short_calls_are_left_to_networkx_though_a_graph_is_converted(door, name, args, kwargs):
    nx.config.backends.lagpu.least_edges = 0
    large = nx.gnm_random_graph(500, 3000, seed=1)
    with nx.config.backend_priority(algos=["lagpu"]):
        nx.pagerank(large)
    assert "less time than a call" in should_run(name, (large, *args), kwargs)
    assert should_run(name, (convert_from_nx(large), *args), kwargs) is True


def test_deep_graphs_are_left_to_networkx_until_they_change(door):
    nx.config.backends.lagpu.least_edges = 0
    deep, shallow = nx.grid_2d_graph(60, 3), nx.gnm_random_graph(400, 3000, seed=1)
    backward = nx.path_graph(600, nx.DiGraph).reverse()
    with lagpu.use("cpu"):
        for name in ("core_number", "edge_betweenness_centrality"):
            assert "the graph is deep" in should_run(name, (deep,), {})
            assert should_run(name, (shallow,), {}) is True
            assert should_run(name, (convert_from_nx(deep),), {}) is True
        assert "the graph is deep" in should_run("core_number", (backward,), {})
        deep.add_edges_from(((0, 0), node) for node in [*deep])
        assert should_run("core_number", (deep,), {}) is True
        assert should_run("pagerank", (backward,), {}) is True
    with lagpu.use("sim"):
        assert should_run("core_number", (backward,), {}) is True


def test_edges_are_counted_once(door, monkeypatch):
    large = nx.gnm_random_graph(500, 3000, seed=1)
    for _ in range(2):
        assert "the graph has 3000 edges" in should_run("pagerank", (large,), {})
        monkeypatch.setattr(large, "number_of_edges", None)


def test_binding_says_what_python_says(door):
    for args, kwargs in (((0,), {"source": 1}), ((), {}), ((0, 1, 2, 3, 4, 5, 6, 7), {})):
        with pytest.raises(TypeError) as theirs:
            nx.bfs_edges.orig_func(KARATE, *args, **kwargs)
        assert can_run("bfs_edges", (KARATE, *args), kwargs) is not True, theirs


def test_a_plain_call_is_one_that_the_whole_check_accepts(monkeypatch):
    # `plain` is only quicker: positional and by keyword, with a default given, doubled or left out.
    G, odd = nx.path_graph(4), object()
    for name, rules in DECLARED.items():
        graphs = [G] * len(rules.graphs)
        others = rules.names[len(graphs) :]
        defaults = [rules._defaults.get(x, 0) for x in others]
        calls = [((*graphs, *defaults[:k]), {}) for k in range(len(others) + 1)]
        calls += [(graphs, dict(zip(others[:k], defaults, strict=False))) for k in range(9)]
        calls += [(graphs, {x: odd}) for x in (*others, "no_argument")]
        calls += [((*graphs, *defaults[:k], odd), {}) for k in range(len(others))]
        calls += [((*graphs, *defaults), dict.fromkeys(others[:1], 0)), ((), {"G": G}), ((1,), {})]
        for args, kwargs in calls:
            quick = can_run(name, args, kwargs)
            with monkeypatch.context() as whole:
                whole.setattr(Declared, "plain", lambda *_: False)
                assert can_run(name, args, kwargs) == quick, (name, args, kwargs)
