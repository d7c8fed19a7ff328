"""Which calls the backend runs, which it refuses, and its reasons."""

import networkx as nx
import pytest
from networkx_door import door  # noqa: F401

from lagpu.nx import convert_from_nx
from lagpu.nx.answers import can_run, should_run

KARATE = nx.karate_club_graph()


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "why"),
    [
        ("pagerank", (), {}, ""),
        ("pagerank", (), {"weight": "w"}, ""),
        ("pagerank", (), {"weight": len}, "name of an edge attribute, not a function"),
        ("pagerank", (), {"nonsense": 1}, "unexpected keyword argument 'nonsense'"),
        ("pagerank", (), {"of_a_newer_networkx": None}, ""),
        ("betweenness_centrality", (), {"weight": "w"}, "takes weight=None alone"),
        ("average_shortest_path_length", (), {"method": "unweighted"}, ""),
        ("average_shortest_path_length", (), {"method": "x"}, "method=None or 'unweighted' alone"),
        ("bfs_edges", (0,), {"sort_neighbors": sorted}, "takes sort_neighbors=None alone"),
        ("single_source_dijkstra_path_length", (0,), {"weight": len}, "not a function"),
        ("eccentricity", (), {"sp": {}}, "takes sp=None alone"),
        ("diameter", (), {"usebounds": True}, ""),
    ],
)
def test_arguments(name, args, kwargs, why):
    found = can_run(name, (KARATE, *args), kwargs)
    assert found is True if not why else why in found


@pytest.mark.parametrize(
    ("name", "kind", "why"),
    [
        ("clustering", nx.DiGraph, "for undirected graphs"),
        ("clustering", nx.MultiGraph, "without parallel edges"),
        ("edge_betweenness_centrality", nx.MultiGraph, "without parallel edges"),
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
