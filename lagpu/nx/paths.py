"""Breadth-first searches in NetworkX' order, and shortest paths and their lengths."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import networkx as nx
import numpy as np

from lagpu import algorithms
from lagpu.algorithms import betweenness
from lagpu.dtypes import INT64
from lagpu.errors import CycleFound, NoPath
from lagpu.host.columns import listed
from lagpu.host.ordered import NONE, level_ends, ordered
from lagpu.nx.answers import answers
from lagpu.nx.graph import Graph

Array = np.ndarray[Any, Any]


def require(G: Graph, node: Any, message: str, kind: type[Exception] = nx.NodeNotFound) -> int:
    """Return the vertex of a node, or raise an error of NetworkX; ``{}`` is the node."""
    vertex = G.find(node)
    if vertex is None:
        raise kind(message.format(node))
    return vertex


def _steps(limit: Any) -> int | None:
    """Return a limit of NetworkX as a number of levels, None for none."""
    if limit is None or limit == math.inf:
        return None
    found: int = math.ceil(limit)
    return max(0, found)


def levels_from(G: Graph, source: int, limit: Any = None, *, back: bool = False) -> Array:
    """Return the distance of each vertex from a source, (n,), -1 if not reached."""
    A, most = G.matrix(back=back), _steps(limit)
    if most is None:
        found = algorithms.bfs_levels(A, source)
    else:
        found = algorithms.neighborhood(A, source, most)
    levels: Array = found.to_dense(-1)
    return levels


def visited(
    G: Graph, sources: Sequence[int], limit: Any = None, *, back: bool = False
) -> tuple[Array, Array, Array]:
    """Return the vertices as a queue visits them, their parents, and the level of every vertex.

    The parents of the sources, and levels of vertices that are not reached, are -1.
    """
    levels, first, most = np.full(len(G), -1), len(sources), _steps(limit)
    if not sources:
        return NONE, NONE, levels
    order, above = ordered(G.ordered(back=back), np.array(sources))
    ends = level_ends(order, above, first)
    order = order[: None if most is None else ends[min(most, len(ends) - 1)]]
    levels[order] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))[: len(order)]
    parents = above[order]
    parents[:first] = -1
    return order, parents, levels


class _Down:
    """The edges that lead from a level to the next one, by the vertex where they begin."""

    def __init__(self, rows: Array, cols: Array, levels: Array) -> None:
        down = (levels[rows] >= 0) & (levels[cols] == levels[rows] + 1)
        self.cols = cols[down]
        count = np.bincount(rows[down], minlength=len(levels))
        self.ptr = np.append(0, np.cumsum(count))

    def of(self, parents: Array) -> tuple[Array, Array]:
        """Return (parent, child) of the edges of some parents, one parent after the other."""
        counts, places = listed(self.ptr, parents)
        return np.repeat(parents, counts), self.cols[places]


def generations(rows: Array, cols: Array, levels: Array) -> list[Array]:
    """Return the vertices of each level of a DAG in the order in which their last edge is taken.

    A level is the length of the longest path that ends there.
    """
    down, place = _Down(rows, cols, levels), np.empty(len(levels), np.int64)
    layer = np.flatnonzero(levels == 0)
    found = []
    while layer.size:
        found.append(layer)
        _, below = down.of(layer)
        at = np.arange(len(below))
        place[below] = at  # of equal indices the last one assigns
        layer = below[place[below] == at]
    return found


# ------------------------------------------------------------------------------------------
# Breadth-first traversals, and shortest paths and their lengths, in edges and over weights.


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


@answers(quick=True, iterator=True)
def bfs_edges(G: Graph, source: Any, reverse: bool, depth_limit: Any) -> Iterator[tuple[Any, Any]]:
    """Return an iterator over (parent, child) of a breadth-first tree."""
    return iter(_edges(G, source, depth_limit, reverse))


@answers(quick=True)
def bfs_tree(G: Graph, source: Any, reverse: bool, depth_limit: Any) -> Any:
    """Return a breadth-first tree as a NetworkX graph."""
    edges = _edges(G, source, depth_limit, reverse)
    T: Any = nx.DiGraph()
    T.add_node(source)
    T.add_edges_from(edges)
    return T


@answers(quick=True, iterator=True)
def bfs_predecessors(G: Graph, source: Any, depth_limit: Any) -> Iterator[tuple[Any, Any]]:
    """Return an iterator over (child, parent) of a breadth-first tree."""
    return iter([(v, u) for u, v in _edges(G, source, depth_limit, False)])


@answers(quick=True, iterator=True)
def bfs_successors(G: Graph, source: Any, depth_limit: Any) -> Iterator[tuple[Any, list[Any]]]:
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
    return G.where((distance >= 0) & (levels_from(G, start, distance) == distance))


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
    return G.where(levels_from(G, start, back=back) > 0)


def _lengths(G: Graph, start: int, cutoff: Any, *, back: bool = False) -> dict[Any, int]:
    order, _, levels = visited(G, [start], cutoff, back=back)
    return G.named(levels[order].tolist(), order.tolist())


def _paths(G: Graph, start: int, cutoff: Any, *, back: bool = False) -> dict[Any, list[Any]]:
    """Return the nodes of a shortest path from `start` to each node, or back to it."""
    order, parents, _ = visited(G, [start], cutoff, back=back)
    nodes, found = G.nodes, {G.nodes[start]: [G.nodes[start]]}
    for v, parent in zip(order[1:].tolist(), parents[1:].tolist(), strict=True):
        before = found[nodes[parent]]
        found[nodes[v]] = [nodes[v], *before] if back else [*before, nodes[v]]
    return found


@answers(quick=True)
def single_source_shortest_path_length(G: Graph, source: Any, cutoff: Any) -> dict[Any, int]:
    """Return the distance of each node from a node."""
    return _lengths(G, require(G, source, "Source {} is not in G"), cutoff)


@answers(quick=True)
def single_target_shortest_path_length(G: Graph, target: Any, cutoff: Any) -> dict[Any, int]:
    """Return the distance of each node to a node."""
    return _lengths(G, require(G, target, "Target {} is not in G"), cutoff, back=True)


@answers()
def all_pairs_shortest_path_length(G: Graph, cutoff: Any) -> Iterator[tuple[Any, dict[Any, int]]]:
    """Return an iterator over each node with the distances from it."""
    return ((node, _lengths(G, v, cutoff)) for v, node in enumerate(G.nodes))


@answers(quick=True)
def single_source_shortest_path(G: Graph, source: Any, cutoff: Any) -> dict[Any, list[Any]]:
    """Return a shortest path from a node to each node."""
    return _paths(G, require(G, source, "Source {} not in G"), cutoff)


@answers(quick=True)
def single_target_shortest_path(G: Graph, target: Any, cutoff: Any) -> dict[Any, list[Any]]:
    """Return a shortest path from each node to a node."""
    return _paths(G, require(G, target, "Target {} not in G"), cutoff, back=True)


@answers(quick=True)
def bidirectional_shortest_path(G: Graph, source: Any, target: Any) -> list[Any]:
    """Return the nodes of a shortest path between two nodes."""
    start = require(G, source, "Source {} is not in G")
    end = require(G, target, "Target {} is not in G")
    try:
        path = algorithms.shortest_path(G.matrix(), start, end)
    except NoPath as error:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.") from error
    return [G.nodes[v] for v in path]


@answers(quick=True)
def has_path(G: Graph, source: Any, target: Any) -> bool:
    """Return True if there is a path from a node to another one."""
    start = require(G, source, "Source {} is not in G")
    end = require(G, target, "Target {} is not in G")
    return algorithms.has_path(G.matrix(), start, end)


@answers(method=(None, "unweighted"))
def average_shortest_path_length(G: Graph) -> float:
    """Return the mean distance of two nodes."""
    n, total = len(G), 0
    levels: Any
    if n == 1:
        return 0
    A = G.matrix()
    for some in betweenness.batches(A, list(range(n)), None):
        if len(some) == 1:
            levels = algorithms.bfs_levels(A, some[0])
        else:
            levels = algorithms.bfs_levels_multi(A, some)
        if levels.nvals < len(some) * n:
            what = "strongly connected" if G.is_directed() else "connected"
            raise nx.NetworkXError(f"Graph is not {what}.")
        total += int(levels.dup(INT64).reduce("plus").new().value)
    return total / (n * (n - 1))


_NOT_FOUND, _NO_SOURCE = "Node {} not found in graph", "Source {} not in G"


def _distances(
    G: Graph, start: int, weight: Any, *, cutoff: Any = None, nearest: bool, back: bool = False
) -> dict[Any, Any]:
    """Return the distance of each node that is reached, the vertex itself first, then ascending.

    Of parallel edges the shortest counts. `nearest`: no length may be negative, as for Dijkstra's
    algorithm; `back`: search against the edges.
    """
    values = G.weights(weight)
    if values is not None and values.dtype.kind == "f" and np.isnan(values).any():
        raise NotImplementedError("lagpu: lengths that are NaN")  # min would pass over them
    if nearest and values is not None and values.size and values.min() < 0:
        raise NotImplementedError("lagpu: Dijkstra's algorithm with negative weights")
    A = G.matrix(weight, "min", back=back)
    bounded = nearest and cutoff is not None and cutoff >= 0
    try:
        found = algorithms.bellman_ford(A, start, limit=float(cutoff) if bounded else None)
    except CycleFound as error:
        raise nx.NetworkXUnbounded("Negative cycle detected.") from error
    reached, distances = found.to_coo()
    if cutoff is not None and cutoff != math.inf:
        kept = (distances <= cutoff) | (reached == start)
        reached, distances = reached[kept], distances[kept]
    order = np.argsort(distances, kind="stable")
    named = G.named(distances[order].tolist(), reached[order].tolist())
    named.pop(G.nodes[start])
    return {G.nodes[start]: 0} | named


@answers()
def single_source_dijkstra_path_length(
    G: Graph, source: Any, cutoff: Any, weight: Any
) -> dict[Any, Any]:
    """Return the distance of each node from a node, over weights that are not negative."""
    start = require(G, source, _NOT_FOUND)
    return _distances(G, start, weight, cutoff=cutoff, nearest=True)


@answers()
def dijkstra_path_length(G: Graph, source: Any, target: Any, weight: Any) -> Any:
    """Return the distance of two nodes over weights that are not negative."""
    start = require(G, source, _NOT_FOUND)
    return _between(G, start, source, target, weight, True, "Node {} not reachable from {}")


@answers(iterator=True)
def all_pairs_dijkstra_path_length(
    G: Graph, cutoff: Any, weight: Any
) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Return an iterator over each node with the distances from it."""
    return _of_each(G, lambda v: _distances(G, v, weight, cutoff=cutoff, nearest=True))


@answers()
def single_source_bellman_ford_path_length(G: Graph, source: Any, weight: Any) -> dict[Any, Any]:
    """Return the distance of each node from a node."""
    return _distances(G, require(G, source, _NO_SOURCE), weight, nearest=False)


@answers()
def bellman_ford_path_length(G: Graph, source: Any, target: Any, weight: Any) -> Any:
    """Return the distance of two nodes."""
    start = require(G, source, _NOT_FOUND if source == target else _NO_SOURCE)
    return _between(G, start, source, target, weight, False, "node {} not reachable from {}")


def _between(
    G: Graph, start: int, source: Any, target: Any, weight: Any, nearest: bool, unreached: str
) -> Any:
    """Return the distance of two nodes, or raise with NetworkX' words, which differ."""
    if source == target:
        return 0
    found = _distances(G, start, weight, nearest=nearest)
    if target not in G or target not in found:
        raise nx.NetworkXNoPath(unreached.format(target, source))
    return found[target]


@answers(iterator=True)
def all_pairs_bellman_ford_path_length(
    G: Graph, weight: Any
) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Return an iterator over each node with the distances from it."""
    return _of_each(G, lambda v: _distances(G, v, weight, nearest=False))


def _of_each(G: Graph, of: Callable[[int], Any]) -> Iterator[tuple[Any, Any]]:
    """Return an iterator over each node with what `of` gives for it, the first one at once.

    Weights that lagpu refuses are refused before anything is taken from the iterator.
    """
    pairs = ((node, of(v)) for v, node in enumerate(G.nodes))
    return itertools.chain(list(itertools.islice(pairs, 1)), pairs)


_METHODS = ("dijkstra", "bellman-ford")


@answers(quick=True, method=_METHODS)
def shortest_path(G: Graph, source: Any, target: Any) -> Any:
    """Return a shortest path in edges between two nodes, or by nodes from or to one."""
    if source is None and target is None:
        raise NotImplementedError("lagpu: shortest paths of all pairs")
    if source is None:
        return single_target_shortest_path(G, target)
    if target is None:
        return single_source_shortest_path(G, source)
    return bidirectional_shortest_path(G, source, target)


@answers(quick=True, method=_METHODS)
def shortest_path_length(G: Graph, source: Any, target: Any, weight: Any, method: str) -> Any:
    """Return the distance of two nodes, or by nodes from or to one, or of all pairs."""
    nearest = method == "dijkstra"
    missing = _NOT_FOUND if nearest else _NO_SOURCE
    if weight is None:
        return _in_edges(G, source, target)
    if source is not None and target is not None:
        one = dijkstra_path_length if nearest else bellman_ford_path_length
        return one(G, source, target, weight)
    if source is not None or target is not None:
        back = source is None
        start = require(G, target if back else source, missing)
        return _distances(G, start, weight, nearest=nearest, back=back)
    every = all_pairs_dijkstra_path_length if nearest else all_pairs_bellman_ford_path_length
    return every(G, weight=weight)


def _in_edges(G: Graph, source: Any, target: Any) -> Any:
    """Return lengths in edges."""
    if source is not None and target is not None:
        return len(bidirectional_shortest_path(G, source, target)) - 1
    if source is not None:
        return single_source_shortest_path_length(G, source)
    if target is not None:
        return single_target_shortest_path_length(G, target)
    return all_pairs_shortest_path_length(G)
