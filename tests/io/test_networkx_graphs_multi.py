"""NetworkX graphs of all four kinds as they come: parallel edges, self-loops, parts, names."""

import networkx as nx
import pytest
from graphs import entries
from hypothesis import strategies as st
from strategies import for_all

from lagpu import BOOL, FP32, INT64
from lagpu.algorithms import (
    bellman_ford,
    betweenness_centrality,
    bfs_levels,
    bfs_levels_multi,
    closeness_centrality,
    connected_components,
    core_number,
    count_shortest_paths,
    delta_stepping,
    edge_betweenness_centrality,
    harmonic_centrality,
    pagerank,
    sssp,
    strongly_connected_components,
    triangles,
)
from lagpu.errors import DomainMismatch
from lagpu.io import from_networkx

KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)


def drawn(draw):
    """Draw a graph whose nodes are words, not in order; few edges leave many parts."""
    kind = draw(st.sampled_from(KINDS), label="kind")
    n = draw(st.integers(1, 10), label="n")
    G = kind()
    G.add_nodes_from(f"node {v}" for v in draw(st.permutations(range(n)), label="order"))
    node = st.sampled_from(list(G))
    edge = st.tuples(node, node, st.integers(0, 9))
    G.add_weighted_edges_from(draw(st.lists(edge, max_size=3 * n), label="edges"), "length")
    return G


def named(G, v):
    nodes = list(G)
    return {nodes[k]: value for k, value in entries(v).items()}


@for_all(cpu=100, compiled=8)
def test_shortest_paths_take_the_shortest_of_parallel_edges(backend, draw):
    G = drawn(draw)
    A = from_networkx(G, weight="length", dup_op="min", backend=backend)
    source = draw(st.integers(0, len(G) - 1), label="source")
    theirs = nx.single_source_dijkstra_path_length(G, list(G)[source], weight="length")
    for search in (sssp, bellman_ford, delta_stepping):
        assert named(G, search(A, source)) == theirs


@for_all(cpu=100, compiled=6)
def test_searches_and_components(backend, draw):
    G = drawn(draw)
    A, nodes = from_networkx(G, backend=backend), list(G)
    source = draw(st.integers(0, len(G) - 1), label="source")
    levels = nx.single_source_shortest_path_length(G, nodes[source])
    assert named(G, bfs_levels(A, source)) == levels
    rows = bfs_levels_multi(A, list(range(len(G))))
    for v in range(len(G)):
        theirs = nx.single_source_shortest_path_length(G, nodes[v])
        assert named(G, rows[v, :].new()) == theirs
    simple = nx.DiGraph(G)  # NetworkX counts parallel edges as so many paths
    paths = nx.predecessor(simple, nodes[source])
    counted = {nodes[source]: 1}
    for v in sorted(levels, key=levels.get)[1:]:
        counted[v] = sum(counted[u] for u in paths[v])
    assert named(G, count_shortest_paths(A, source)) == counted
    parts = nx.weakly_connected_components if G.is_directed() else nx.connected_components
    for found, theirs in (
        (connected_components(A), parts(G)),
        (strongly_connected_components(A), nx.strongly_connected_components(nx.DiGraph(G))),
    ):
        least = {v: min(map(nodes.index, part)) for part in theirs for v in part}
        assert named(G, found) == least


@for_all(cpu=100, compiled=6)
def test_rankings(backend, draw):
    G = drawn(draw)
    A, simple = from_networkx(G, backend=backend), (nx.DiGraph if G.is_directed() else nx.Graph)(G)
    for mine, theirs in (
        (betweenness_centrality, nx.betweenness_centrality),
        (closeness_centrality, nx.closeness_centrality),
        (harmonic_centrality, nx.harmonic_centrality),
    ):
        assert named(G, mine(A)) == pytest.approx(theirs(simple), rel=1e-9)
    edges, nodes = nx.edge_betweenness_centrality(simple), list(G)
    directed = G.is_directed()
    rows, cols, values = edge_betweenness_centrality(A, directed=directed).to_coo()
    for u, v, value in zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True):
        pair = (nodes[u], nodes[v])
        wanted = edges[pair] if pair in edges else edges[pair[::-1]]
        assert value == pytest.approx(wanted, rel=1e-9, abs=1e-15)
    if not directed:
        assert named(G, triangles(A)) == nx.triangles(simple)
    pattern = from_networkx(G, dtype=BOOL, backend=backend)
    if not (directed and pattern.is_symmetric):  # to lagpu that is an undirected graph
        simple.remove_edges_from(list(nx.selfloop_edges(simple)))
        assert named(G, core_number(A)) == nx.core_number(simple)


@for_all(cpu=60, compiled=6)
def test_pagerank_adds_up_parallel_edges(backend, draw):
    G = drawn(draw)
    A = from_networkx(G, weight="length", backend=backend)
    theirs = nx.pagerank(G, weight="length", tol=1e-10, max_iter=500)
    assert named(G, pagerank(A, tol=1e-10, max_iter=500)) == pytest.approx(theirs, abs=1e-8)


def test_how_parallel_edges_combine(backend):
    G = nx.MultiGraph()
    G.add_weighted_edges_from([(0, 1, 5), (1, 0, 2), (1, 1, 3), (1, 1, 1)])

    def combined(op):
        A = from_networkx(G, weight="weight", dup_op=op, backend=backend)
        assert A.dtype is INT64
        return [A.get(0, 1), A.get(1, 0), A.get(1, 1), A.nvals]

    assert combined(None) == [7, 7, 4, 3]
    assert combined("min") == [2, 2, 1, 3]
    assert combined("max") == [5, 5, 3, 3]
    for options in ({"weight": "weight"}, {}):
        with pytest.raises(DomainMismatch):
            from_networkx(G, dup_op=3, backend=backend, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_weight_an_edge_is_true_or_counts_1(backend, kind):
    G = kind([(0, 1), (0, 1), (1, 2), (1, 1), (1, 1), (1, 1)])
    for op in (None, "min", "plus"):
        A = from_networkx(G, dup_op=op, dtype=BOOL, backend=backend)
        assert (A.dtype, A[0, 1].new().value, A.nvals) == (BOOL, True, 3 if G.is_directed() else 5)
    default = INT64 if G.is_multigraph() else BOOL
    for dtype, its in ((None, default), (INT64, INT64), (FP32, FP32)):
        counts = from_networkx(G, dtype=dtype, backend=backend)
        assert counts.dtype is its
        theirs = nx.to_scipy_sparse_array(G, weight=None, dtype=int).toarray()
        assert counts.to_dense(0).tolist() == theirs.tolist()
        assert from_networkx(G, dtype=dtype, dup_op="max", backend=backend).get(1, 1) == 1
    nx.set_edge_attributes(G, True, "open")
    assert from_networkx(G, weight="open", backend=backend).dtype is BOOL
    counts = from_networkx(G, weight="open", dtype=INT64, backend=backend)
    assert counts.to_dense(0).tolist() == theirs.tolist()
