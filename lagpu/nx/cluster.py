"""Triangles and clustering of undirected graphs; self-loops do not count."""

from __future__ import annotations

from typing import Any

from lagpu import algorithms
from lagpu.nx.answers import answers
from lagpu.nx.graph import Graph

_SIMPLE = ("directed", "multigraph")


def _of(G: Graph, values: list[Any], nodes: Any) -> Any:
    """Return the value of a node, or values by nodes."""
    if nodes is not None and nodes in G:
        return values[G.index[nodes]]
    chosen = G.bunch(nodes)
    return G.named((values[v] for v in chosen), chosen)


@answers(not_for=_SIMPLE)
def triangles(G: Graph, nodes: Any = None) -> Any:
    """Return the number of triangles of a node, or by nodes of each."""
    return _of(G, algorithms.triangles(G.matrix()).to_dense().tolist(), nodes)


@answers(not_for=_SIMPLE, weight=(None,))
def clustering(G: Graph, nodes: Any = None, weight: None = None) -> Any:
    """Return the share of joined pairs of neighbours of a node, or by nodes of each."""
    return _of(G, algorithms.clustering(G.matrix()).to_dense().tolist(), nodes)


@answers(not_for=_SIMPLE, weight=(None,))
def average_clustering(
    G: Graph, nodes: Any = None, weight: None = None, count_zeros: bool = True
) -> float:
    """Return the mean of the clustering of nodes."""
    every = algorithms.clustering(G.matrix()).to_dense()[G.bunch(nodes)].tolist()
    counted = every if count_zeros else [x for x in every if x > 0]
    return float(sum(counted) / len(counted))


@answers(not_for=_SIMPLE)
def transitivity(G: Graph) -> float:
    """Return the share of joined pairs among all pairs of a common neighbour."""
    return algorithms.transitivity(G.matrix())
