"""Betweenness over lengths, from given sources and to given targets: NetworkX, the checkers."""

import itertools

import networkx as nx
import numpy as np
import pytest
from graphs import both_ways, drawn, entries, matrix, networkx_of
from hypothesis import strategies as st
from loop_names import is_fused
from strategies import for_all

from lagpu import Matrix
from lagpu.algorithms import betweenness_centrality, edge_betweenness_centrality
from lagpu.check import check_betweenness, check_edge_betweenness
from lagpu.errors import CheckFailed, IndexOutOfBound, InvalidValue

#: Paths of equal length but unequal numbers of edges, and a way round that is longer.
EDGES = [(0, 1, 1), (1, 2, 1), (0, 2, 2), (2, 3, 4), (0, 3, 6), (3, 4, 1), (4, 0, 2), (2, 2, 5)]


def edge_numbers(B):
    rows, cols, values = B.to_coo()
    return {(int(i), int(j)): x for i, j, x in zip(rows, cols, values, strict=True)}


@pytest.mark.parametrize("weights", ["whole", "float"])
@pytest.mark.parametrize("directed", [True, False])
def test_paths_of_unequal_numbers_of_edges(backend, weights, directed):
    edges = EDGES if directed else both_ways(EDGES)
    A = matrix(6, edges, backend, weights=weights)
    G = networkx_of(A)
    for more in ({}, {"normalized": False}, {"endpoints": True}):
        found = betweenness_centrality(A, weight=True, directed=True, **more)
        theirs = nx.betweenness_centrality(G, weight="weight", **more)
        assert entries(found) == pytest.approx(theirs, rel=1e-12)
        check_betweenness(A, found, weight=True, **more)
    if backend.capabilities.fuses:
        betweenness_centrality(A, weight=True, sources=[0])
        assert is_fused(backend.last_loop)
    found = edge_betweenness_centrality(A, weight=True, directed=True)
    theirs = nx.edge_betweenness_centrality(G, weight="weight")
    assert edge_numbers(found) == pytest.approx(theirs, rel=1e-12)
    check_edge_betweenness(A, found, weight=True)


@for_all(cpu=30, compiled=3)
def test_random_graphs(backend, draw):
    A = drawn(draw, backend, weights="whole")
    A = A.select("valuegt", 0).new()
    G = networkx_of(A)
    vertices = st.lists(st.integers(0, A.nrows - 1), min_size=1, max_size=3, unique=True)
    sources = draw(st.none() | vertices, label="sources")
    found = betweenness_centrality(A, weight=True, sources=sources, directed=True)
    check_betweenness(A, found, weight=True, sources=sources)
    if sources is None:
        theirs = nx.betweenness_centrality(G, weight="weight")
        assert entries(found) == pytest.approx(theirs, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("unit", [0.1, 0.001, 2**54 + 1])
def test_sums_that_floats_round_are_compared_from_each_source(unit):
    """Two ways of equal length may differ by a rounding, another one for each source."""
    rng = np.random.default_rng(2)
    ends = np.unique(rng.integers(0, 20, (80, 2)), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    values = (
        rng.integers(1, 8, len(ends)) + unit if unit > 1 else rng.integers(1, 8, len(ends)) * unit
    )
    A = Matrix.from_coo(*ends.T, values, nrows=20, ncols=20, backend="cpu")
    G = networkx_of(A)
    for search, check, read in (
        (betweenness_centrality, check_betweenness, entries),
        (edge_betweenness_centrality, check_edge_betweenness, edge_numbers),
    ):
        found = search(A, weight=True, directed=True)
        theirs = getattr(nx, search.__name__)(G, weight="weight")
        assert read(found) == pytest.approx(theirs, rel=1e-12, abs=1e-15)
        check(A, found, weight=True)
        with pytest.raises(CheckFailed, match="but the sum gives"):
            check(A, found.apply("plus", 1e-4).new(), weight=True)


def test_given_sources(backend):
    A = matrix(6, both_ways(EDGES), backend)
    G = networkx_of(A)
    for sources in ([0, 4], 2, [5]):
        found = betweenness_centrality(A, sources=sources, normalized=False, directed=True)
        chosen = np.atleast_1d(sources).tolist()
        check_betweenness(A, found, normalized=False, sources=chosen)
        theirs = nx.betweenness_centrality_subset(G, chosen, list(G), normalized=False)
        for v in G:
            counted = len(chosen) - (v in chosen)
            if counted:  # scaled to all sources but v
                assert found.get(v) == pytest.approx(theirs[v] * 5 / counted)
        flow = edge_betweenness_centrality(A, sources=sources, directed=True)
        check_edge_betweenness(A, flow, sources=chosen)


def test_lengths_that_rounding_loses_are_refused(backend):
    """From 0, vertices 1 and 2 have one distance, so each would lie on the path to the other."""
    A = matrix(3, both_ways([(0, 1, 1e20), (1, 2, 1)]), backend, weights="real")
    for search in (betweenness_centrality, edge_betweenness_centrality):
        with pytest.raises(InvalidValue, match="from 0 rounding makes the length of a cycle 0"):
            search(A, weight=True)
        search(A.select("triu").new(), weight=True)  # there is no cycle


@pytest.mark.parametrize("weight", [False, True])
@pytest.mark.parametrize("directed", [True, False])
def test_given_targets(backend, directed, weight):
    A = matrix(6, EDGES if directed else both_ways(EDGES), backend, weights="whole")
    G, name = networkx_of(A), "weight" if weight else None
    how = {"weight": weight, "directed": True}
    for sources, targets in (([0, 4], [2, 4, 5]), (2, 0), (None, [3, 1])):
        from_, to = (
            list(G) if x is None else np.atleast_1d(x).tolist() for x in (sources, targets)
        )
        given = {"sources": sources, "targets": targets, **how}
        for normalized in (True, False):
            found = betweenness_centrality(A, normalized=normalized, **given)
            theirs = nx.betweenness_centrality_subset(
                G.to_directed(), from_, to, normalized=normalized, weight=name
            )
            assert entries(found) == pytest.approx(theirs, rel=1e-12)
            check_betweenness(
                A, found, normalized=normalized, sources=from_, targets=to, weight=weight
            )
        one = betweenness_centrality(A, endpoints=True, **given, **({} if weight else {"batch": 1}))
        check_betweenness(A, one, endpoints=True, sources=from_, targets=to, weight=weight)
        flow = edge_betweenness_centrality(A, **given)
        check_edge_betweenness(A, flow, sources=from_, targets=to, weight=weight)
    if backend.capabilities.fuses:
        betweenness_centrality(A, sources=[0], targets=[3], **how)
        assert is_fused(backend.last_loop)


def test_all_targets_are_no_targets(backend):
    A = matrix(6, both_ways(EDGES), backend)
    for search in (betweenness_centrality, edge_betweenness_centrality):
        for normalized in (True, False):
            found, whole = (
                search(A, normalized=normalized, targets=x) for x in (range(A.nrows), None)
            )
            assert found.to_coo()[-1] == pytest.approx(whole.to_coo()[-1], rel=1e-12)


def test_an_undirected_pair_counts_once(backend):
    A = matrix(3, both_ways([(0, 1, 1), (1, 2, 1)]), backend)
    how = {"sources": [0], "targets": [2], "normalized": False}
    assert betweenness_centrality(A, **how).to_dense().tolist() == [0, 0.5, 0]  # as in NetworkX
    assert betweenness_centrality(A, **how, directed=True).to_dense().tolist() == [0, 1, 0]
    assert edge_betweenness_centrality(A, **how).get(0, 1) == 0.5


def test_tiny_dependencies_on_vertices_that_are_no_targets_are_kept(backend):
    """A chain of 30 bundles of 4 paths each, and beside it one path as long."""
    edges = [
        edge
        for k in range(30)
        for middle in range(5 * k + 1, 5 * k + 5)
        for edge in ((5 * k, middle, 1), (middle, 5 * k + 5, 1))
    ]
    beside = [0, *range(151, 210), 150]
    edges += [(u, v, 1) for u, v in itertools.pairwise(beside)]
    A = matrix(210, edges, backend)
    found = betweenness_centrality(A, sources=[0], targets=[150], normalized=False)
    assert found.get(200) == pytest.approx(1 / (4**30 + 1), rel=1e-9)


def test_wrong_targets(backend):
    A = matrix(6, EDGES, backend, weights="whole")
    found = betweenness_centrality(A, sources=[0], targets=[3])
    with pytest.raises(CheckFailed, match="vertex"):
        check_betweenness(A, found, sources=[0], targets=[4])
    flow = edge_betweenness_centrality(A, sources=[0], targets=[3])
    with pytest.raises(CheckFailed, match="edge"):
        check_edge_betweenness(A, flow, sources=[0], targets=[4])
    for search in (betweenness_centrality, edge_betweenness_centrality):
        with pytest.raises(InvalidValue, match="k estimates for all targets"):
            search(A, 1, targets=[0])
        with pytest.raises(InvalidValue, match="targets: the list is empty"):
            search(A, targets=[])
        with pytest.raises(IndexOutOfBound, match="targets"):
            search(A, targets=[6])
    with pytest.raises(InvalidValue, match="one_degree counts all pairs"):
        betweenness_centrality(A, targets=[0], one_degree=True)


def test_lengths_that_differ_by_direction_are_those_of_a_directed_graph(backend):
    """Although each edge has a reverse."""
    edges = [(0, 1, 1), (1, 0, 5), (1, 2, 1), (2, 1, 5), (2, 0, 1), (0, 2, 5)]
    A, G = matrix(3, edges, backend, weights="whole"), nx.DiGraph()
    G.add_weighted_edges_from(edges)
    wanted = nx.betweenness_centrality(G, weight="weight", normalized=False)
    found = betweenness_centrality(A, weight=True, normalized=False)
    assert found.to_dict() == wanted
    wanted = nx.edge_betweenness_centrality(G, weight="weight", normalized=False)
    assert edge_numbers(edge_betweenness_centrality(A, weight=True, normalized=False)) == wanted


def test_what_is_refused(backend):
    A = matrix(3, [(0, 1, 1), (1, 2, 0)], backend, weights="whole")
    for search in (betweenness_centrality, edge_betweenness_centrality):
        with pytest.raises(InvalidValue, match=r"a weight is 0, .* Give lengths above 0"):
            search(A, weight=True)
        with pytest.raises(InvalidValue, match="Give it or sources"):
            search(A, 1, sources=[0])
        with pytest.raises(InvalidValue, match="vertex 1 is given twice"):
            search(A, sources=[1, 1])
        with pytest.raises(IndexOutOfBound):
            search(A, sources=[3])
    B = matrix(3, both_ways([(0, 1, 1)]), backend, weights="whole")
    with pytest.raises(InvalidValue, match="one_degree counts all pairs, without weights"):
        betweenness_centrality(B, weight=True, one_degree=True)
    A = matrix(6, EDGES, backend, weights="whole")
    found = betweenness_centrality(A)
    with pytest.raises(CheckFailed, match="vertex"):
        check_betweenness(A, found, weight=True)
