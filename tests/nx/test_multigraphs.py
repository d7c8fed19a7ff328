"""Parallel edges, weights that lack or are odd: what NetworkX answers, or its own function runs."""

import math

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lagpu import INT64, io

WEIGHTS = (1, 2, 2.5, 0, 10**6, True, math.nan, None, "heavy")
CALLS = {
    "pagerank": lambda G, w, **b: nx.pagerank(G, weight=w, **b),
    "dijkstra": lambda G, w, **b: nx.single_source_dijkstra_path_length(G, 0, weight=w, **b),
    "bellman_ford": lambda G, w, **b: nx.single_source_bellman_ford_path_length(
        G, 0, weight=w, **b
    ),
    "shortest_path_length": lambda G, w, **b: dict(nx.shortest_path_length(G, 0, weight=w, **b)),
    "betweenness": lambda G, w, **b: nx.betweenness_centrality(G, **b),
    "closeness": lambda G, w, **b: nx.closeness_centrality(G, **b),
    "bfs_edges": lambda G, w, **b: sorted(map(sorted, nx.bfs_edges(G, 0, **b))),
}


@st.composite
def multigraphs(draw):
    """A multigraph of a few nodes with parallel edges and self-loops, some of odd weights."""
    kind = draw(st.sampled_from([nx.MultiGraph, nx.MultiDiGraph, nx.Graph, nx.DiGraph]))
    G = kind()
    n = draw(st.integers(1, 6))
    G.add_nodes_from(range(n))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    odd = draw(st.booleans())
    weights = WEIGHTS if odd else WEIGHTS[:4]
    for u, v in draw(st.lists(ends, max_size=14)):
        if draw(st.booleans()):
            G.add_edge(u, v)
        else:
            G.add_edge(u, v, weight=draw(st.sampled_from(weights)))
    return G


def outcome(call, G, weight, **backend):
    """Return the result, or the name of the error."""
    try:
        return call(G, weight, **backend)
    except NotImplementedError:
        return NotImplemented
    except Exception as error:
        return type(error).__name__


def same(found, right):
    if isinstance(right, dict):
        return found.keys() == right.keys() and all(
            found[k] == pytest.approx(right[k], rel=1e-4, abs=1e-5, nan_ok=True) for k in right
        )
    return found == right


@settings(max_examples=150)
@given(multigraphs(), st.sampled_from([*CALLS]), st.sampled_from([None, "weight", "x"]))
def test_as_networkx_or_left_to_it(G, name, weight):
    found = outcome(CALLS[name], G, weight, backend="lagpu")
    if found is not NotImplemented:
        right = outcome(CALLS[name], G, weight)
        assert same(found, right), (name, weight, list(G.edges(data=True)))


def test_parallel_edges_count_in_pagerank_without_a_weight():
    G = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (1, 2), (2, 0)])
    assert same(nx.pagerank(G, weight=None, backend="lagpu"), nx.pagerank(G, weight=None))


def test_nan_beside_a_number_is_left_to_networkx():
    G = nx.MultiGraph([(0, 1, {"weight": math.nan}), (0, 1, {"weight": 1.0})])
    with pytest.raises(NotImplementedError):
        nx.single_source_dijkstra_path_length(G, 0, backend="lagpu")


def test_a_multigraph_without_a_weight_is_counts():
    G = nx.MultiGraph([(0, 1), (0, 1), (1, 1)])
    A = io.from_networkx(G, backend="cpu")
    assert A.dtype is INT64
    assert [x.tolist() for x in A.to_coo()] == [[0, 1, 1], [1, 0, 1], [2, 2, 1]]
    assert io.from_networkx(G, dup_op="max", backend="cpu").reduce("max").new().value == 1
    assert io.from_networkx(nx.Graph(G), backend="cpu").dtype.is_bool
