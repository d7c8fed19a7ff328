"""Branches that are trees are folded, and betweenness is what it is without."""

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, entries, matrix, random_edges

from lagpu.algorithms import betweenness_centrality
from lagpu.algorithms.betweenness import fold_branches
from lagpu.errors import InvalidValue


def tree(n, seed=1):
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(0, v)), v) for v in range(1, n)]


def shifted(edges, by):
    return [(u + by, v + by) for u, v in edges]


CYCLE = [(v, (v + 1) % 5) for v in range(5)]
#: A cycle with branches of a path, a star, and a tree that meet in one vertex; two components more.
MIXED = [
    *CYCLE, (0, 5), (5, 6), (6, 7), (5, 8), (1, 9), (1, 10), (1, 11), (9, 12),
    *shifted(tree(7, 3), 13), (13, 2), *shifted(tree(6), 20), (26, 27), *shifted(CYCLE, 28),
]  # fmt: skip
GRAPHS = {
    "one edge": (2, [(0, 1)]),
    "an edge and two alone": (4, [(1, 3)]),
    "path": (9, [(v, v + 1) for v in range(8)]),
    "even path": (8, [(v, v + 1) for v in range(7)]),
    "star": (6, [(3, v) for v in range(6) if v != 3]),
    "tree": (40, tree(40)),
    "forest": (30, [*tree(12), *shifted(tree(9, 5), 12), *shifted(tree(8, 6), 21)]),
    "cycle": (5, CYCLE),
    "mixed": (35, MIXED),
    "lollipop": (12, [*nx.lollipop_graph(5, 7).edges]),
    "loops": (6, [(0, 0), (0, 1), (1, 2), (2, 0), (2, 3), (3, 3), (3, 4)]),
    "sparse": (60, random_edges(60, 55, 2)),
    "denser": (60, random_edges(60, 90, 3)),
}  # fmt: skip


def graph(name, backend):
    n, edges = GRAPHS[name] if name in GRAPHS else AWKWARD[name]
    G = nx.Graph()
    G.add_nodes_from(range(n))
    G.add_edges_from(edges)
    return matrix(n, both_ways(edges), backend), G


def test_on_every_backend(backend):
    A, G = graph("mixed", backend)
    for batch in (None, 1):
        found = betweenness_centrality(A, one_degree=True, batch=batch)
        assert entries(found) == pytest.approx(nx.betweenness_centrality(G), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
def test_as_without(name):
    A, G = graph(name, "cpu")
    found = betweenness_centrality(A, one_degree=True)
    assert entries(found) == pytest.approx(nx.betweenness_centrality(G), rel=1e-9, abs=1e-12)
    for how in ({"normalized": False}, {"endpoints": True, "batch": 3}, {"batch": 1}):
        wanted = betweenness_centrality(A, **how).to_dense()
        folded = betweenness_centrality(A, one_degree=True, **how).to_dense()
        assert folded == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(name):
    A, _ = graph(name, "cpu")
    wanted = betweenness_centrality(A).to_dense()
    assert betweenness_centrality(A, one_degree=True).to_dense() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    edges = random_edges(n, int(rng.integers(0, 2 * n)), seed)
    A = matrix(n, both_ways(edges), "cpu")
    wanted = betweenness_centrality(A, normalized=False).to_dense()
    found = betweenness_centrality(A, normalized=False, one_degree=True).to_dense()
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_what_is_left():
    """Cycles alone are searched, and their roots stand for their branches."""
    folded = fold_branches(graph("mixed", "cpu")[0])
    assert folded.vertices.tolist() == [0, 1, 2, 3, 4, *range(28, 33)]
    assert folded.A.nvals == 2 * 10
    assert folded.mass[folded.vertices].tolist() == [5, 5, 8, 1, 1, 1, 1, 1, 1, 1]
    assert folded.reachable[[0, 7, 20, 26, 28, 33]].tolist() == [20, 20, 6, 2, 5, 1]
    whole = graph("cycle", "cpu")[0]
    assert fold_branches(whole).A.nvals == whole.nvals


def test_a_tree_needs_no_search(monkeypatch):
    from lagpu.algorithms import betweenness

    monkeypatch.setattr(betweenness, "count_paths", None)
    A, G = graph("tree", "cpu")
    found = betweenness_centrality(A, one_degree=True)
    assert entries(found) == pytest.approx(nx.betweenness_centrality(G), rel=1e-12)


def test_what_cannot_be_folded():
    A = matrix(4, [(0, 1), (1, 0), (1, 2), (2, 3)], "cpu")
    with pytest.raises(InvalidValue, match="one_degree=True, but an edge has no reverse"):
        betweenness_centrality(A, one_degree=True)
    with pytest.raises(InvalidValue, match=r"one_degree counts all pairs, without"):
        betweenness_centrality(A, 2, one_degree=True)
