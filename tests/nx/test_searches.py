"""The order of a search: that of NetworkX' queue, where a vertex has many possible parents."""

import random

import networkx as nx
import pytest

import lagpu
from lagpu.nx import convert_from_nx, interface


def shuffled(kind, seed, *, forward=False):
    """Return a graph whose edges come in any order; `forward`: without a cycle."""
    drawn = random.Random(seed)
    edges = list(nx.gnm_random_graph(40, 160, seed=seed).edges)
    edges = [edge if forward or drawn.random() < 0.5 else edge[::-1] for edge in edges]
    drawn.shuffle(edges)
    G = kind()
    G.add_nodes_from(drawn.sample(range(40), 40))
    G.add_edges_from(edges)
    return G


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@pytest.mark.parametrize("seed", range(3))
def test_a_breadth_first_search(kind, seed):
    G = shuffled(kind, seed)
    H = convert_from_nx(G)
    with lagpu.use("cpu"):
        for limit in (None, 2):
            theirs = list(nx.bfs_edges(G, 0, depth_limit=limit))
            assert list(interface.bfs_edges(H, 0, depth_limit=limit)) == theirs
        theirs = nx.single_source_shortest_path(G, 0)
        assert list(interface.single_source_shortest_path(H, 0).items()) == list(theirs.items())
        assert list(interface.bfs_layers(H, [0, 1])) == list(nx.bfs_layers(G, [0, 1]))


@pytest.mark.parametrize("seed", range(3))
def test_generations(seed):
    G = shuffled(nx.DiGraph, seed, forward=True)
    with lagpu.use("cpu"):
        ours = list(interface.topological_generations(convert_from_nx(G)))
    assert ours == list(nx.topological_generations(G))
