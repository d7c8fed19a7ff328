"""Connected, weakly and strongly connected components, as sets of nodes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from lagpu import algorithms
from lagpu.core.matrix import Matrix
from lagpu.nx.answers import answers
from lagpu.nx.graph import Graph
from lagpu.nx.searches import levels_from

Array = np.ndarray[Any, Any]


def _labels(G: Graph) -> Array:
    """Return the least vertex of each vertex' component, (n,)."""
    found: Array = algorithms.connected_components(G.matrix()).to_dense()
    return found


def _sets(G: Graph, rank: Array) -> Iterator[set[Any]]:
    """Return an iterator over the sets of nodes of equal rank, the least rank first."""
    order = np.argsort(rank, kind="stable")
    cuts = np.flatnonzero(np.diff(rank[order])) + 1
    nodes = G.nodes
    names = [nodes[v] for v in order.tolist()]
    ends = [0, *cuts.tolist(), len(names)]
    return (set(names[a:b]) for a, b in itertools.pairwise(ends) if a < b)


def _connected(G: Graph, kind: str = "") -> bool:
    reached = not (levels_from(G, [0]) < 0).any()
    if kind != "strong" or not reached:
        return reached
    return not (levels_from(G, [0], back=True) < 0).any()


@answers(quick=True, not_for=("directed",))
def connected_components(G: Graph) -> Iterator[set[Any]]:
    """Return an iterator over the components, in the order of their first nodes."""
    return _sets(G, _labels(G))


@answers(quick=True, not_for=("directed",))
def number_connected_components(G: Graph) -> int:
    """Return the number of components."""
    return len(np.unique(_labels(G)))


@answers(quick=True, not_for=("directed",))
def is_connected(G: Graph) -> bool:
    """Return True if there is one component."""
    return _connected(G)


@answers(quick=True, not_for=("directed",))
def node_connected_component(G: Graph, n: Any) -> set[Any]:
    """Return the component of a node."""
    nodes = G.nodes
    reached = levels_from(G, [G.index[n]]) >= 0
    return {nodes[v] for v in np.flatnonzero(reached).tolist()}


@answers(quick=True)
def weakly_connected_components(G: Graph) -> Iterator[set[Any]]:
    """Return an iterator over the components without regard to direction."""
    return _sets(G, _labels(G))


@answers(quick=True)
def number_weakly_connected_components(G: Graph) -> int:
    """Return the number of weak components."""
    return len(np.unique(_labels(G)))


@answers(quick=True)
def is_weakly_connected(G: Graph) -> bool:
    """Return True if there is one weak component."""
    return not _labels(G).any()


@answers()
def strongly_connected_components(G: Graph) -> Iterator[set[Any]]:
    """Return an iterator over the strong components; edges lead to those that came before."""
    labels = algorithms.strongly_connected_components(G.matrix()).to_dense()
    rows, cols = (labels[ends] for ends in G.along())
    between, n = rows != cols, len(G)
    pairs = np.unique(rows[between].astype(np.int64) * n + cols[between]) if n else rows
    merged = Matrix.from_coo(*np.divmod(pairs, max(n, 1)), nrows=n, ncols=n, like=G.matrix())
    levels = algorithms.topological_levels(merged).to_dense()[labels].astype(np.int64)
    return _sets(G, labels - levels * n)


@answers()
def number_strongly_connected_components(G: Graph) -> int:
    """Return the number of strong components."""
    return len(np.unique(algorithms.strongly_connected_components(G.matrix()).to_dense()))


@answers(quick=True)
def is_strongly_connected(G: Graph) -> bool:
    """Return True if there is one strong component."""
    return _connected(G, "strong")
