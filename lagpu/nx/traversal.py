"""Breadth-first traversals: edges, trees, layers, descendants."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from lagpu.nx.answers import answers
from lagpu.nx.graph import Graph
from lagpu.nx.searches import levels_from, require, visited

_UNKNOWN = "The node {} is not in the graph."


def _edges(G: Graph, source: Any, depth_limit: Any, reverse: bool) -> list[tuple[Any, Any]]:
    """Return (parent, child) for each node that a search reaches, in NetworkX' order."""
    if reverse and G.is_directed():
        raise NotImplementedError("lagpu: the order of edges into a node is not kept")
    start = require(G, source, _UNKNOWN, nx.NetworkXError)
    order, parents, _ = visited(G, [start], depth_limit)
    nodes = G.nodes
    ends = zip(parents[1:].tolist(), order[1:].tolist(), strict=True)
    return [(nodes[u], nodes[v]) for u, v in ends]


@answers(quick=True, iterator=True, sort_neighbors=(None,))
def bfs_edges(
    G: Graph,
    source: Any,
    reverse: bool = False,
    depth_limit: Any = None,
    sort_neighbors: None = None,
) -> Iterator[tuple[Any, Any]]:
    """Return an iterator over (parent, child) of a breadth-first tree."""
    return iter(_edges(G, source, depth_limit, reverse))


@answers(quick=True, sort_neighbors=(None,))
def bfs_tree(
    G: Graph,
    source: Any,
    reverse: bool = False,
    depth_limit: Any = None,
    sort_neighbors: None = None,
) -> Any:
    """Return a breadth-first tree as a NetworkX graph."""
    edges = _edges(G, source, depth_limit, reverse)
    T: Any = nx.DiGraph()
    T.add_node(source)
    T.add_edges_from(edges)
    return T


@answers(quick=True, iterator=True, sort_neighbors=(None,))
def bfs_predecessors(
    G: Graph, source: Any, depth_limit: Any = None, sort_neighbors: None = None
) -> Iterator[tuple[Any, Any]]:
    """Return an iterator over (child, parent) of a breadth-first tree."""
    return iter([(v, u) for u, v in _edges(G, source, depth_limit, False)])


@answers(quick=True, iterator=True, sort_neighbors=(None,))
def bfs_successors(
    G: Graph, source: Any, depth_limit: Any = None, sort_neighbors: None = None
) -> Iterator[tuple[Any, list[Any]]]:
    """Return an iterator over (parent, list of children) of a breadth-first tree."""
    edges = _edges(G, source, depth_limit, False)
    groups = itertools.groupby(edges, key=lambda edge: edge[0])
    return iter([(u, [v for _, v in group]) for u, group in groups] or [(source, [])])


@answers(quick=True, iterator=True)
def bfs_layers(G: Graph, sources: Any) -> Iterator[list[Any]]:
    """Return an iterator over the lists of nodes of each distance from some nodes."""
    first = list({sources} if sources in G else set(sources))
    starts = [require(G, node, _UNKNOWN, nx.NetworkXError) for node in first]
    order, _, levels = visited(G, starts)
    cuts = np.flatnonzero(np.diff(levels[order])) + 1
    nodes = G.nodes
    return iter([[nodes[v] for v in part.tolist()] for part in np.split(order, cuts) if part.size])


@answers(quick=True)
def descendants_at_distance(G: Graph, source: Any, distance: Any) -> set[Any]:
    """Return the nodes of one distance from a node."""
    start = require(G, source, _UNKNOWN, nx.NetworkXError)
    chosen = levels_from(G, [start]) == distance if distance >= 0 else np.zeros(len(G), bool)
    return _named(G, chosen)


@answers(quick=True)
def descendants(G: Graph, source: Any) -> set[Any]:
    """Return the nodes that can be reached from a node."""
    return _reached(G, source, back=False)


@answers(quick=True)
def ancestors(G: Graph, source: Any) -> set[Any]:
    """Return the nodes from which a node can be reached."""
    return _reached(G, source, back=True)


def _reached(G: Graph, source: Any, back: bool) -> set[Any]:
    kind = "digraph" if G.is_directed() else "graph"
    start = require(G, source, f"The node {{}} is not in the {kind}.", nx.NetworkXError)
    return _named(G, levels_from(G, [start], back=back) > 0)


def _named(G: Graph, chosen: Any) -> set[Any]:
    nodes = G.nodes
    return {nodes[v] for v in np.flatnonzero(chosen).tolist()}
