"""Breadth-first searches in NetworkX' order, and shortest paths and their lengths."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import networkx as nx
import numpy as np

from lagpu import algorithms
from lagpu.algorithms import betweenness
from lagpu.core import Matrix
from lagpu.dtypes import INT64, Array
from lagpu.errors import CycleFound
from lagpu.host.ordered import NONE, level_ends, ordered
from lagpu.host.ordered import Graph as Ordered
from lagpu.nx.answers import answers, by_text
from lagpu.nx.graph import Graph


def require(G: Graph, node: Any, message: str, kind: type[Exception] = nx.NodeNotFound) -> int:
    """Return the vertex of a node, or raise an error of NetworkX; ``{}`` is the node."""
    vertex = G.find(node)
    if vertex is None:
        raise kind(message.format(node))
    return vertex


def levels_from(G: Graph, source: int, *, back: bool = False) -> Array:
    """Return the distance of each vertex from a source, (n,), -1 if not reached."""
    return algorithms.bfs_levels(G.matrix(back=back), source).to_dense(-1)


def visited(
    G: Graph, sources: Sequence[int], limit: Any = None, *, back: bool = False
) -> tuple[Array, Array, Array]:
    """Return the vertices as a queue visits them, and the parent and the level of every vertex."""
    # Levels of vertices that are not reached are -1; of the parents, those of the others count.
    levels, first = np.full(len(G), -1), len(sources)
    most = None if limit in (None, math.inf) else math.ceil(limit) if limit > 0 else 0
    if not sources:
        return NONE, NONE, levels
    order, above = ordered(G.ordered(back=back), np.array(sources))
    ends = level_ends(order, above, first)
    order = order[: None if most is None else ends[min(most, len(ends) - 1)]]
    levels[order] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))[: len(order)]
    return order, above, levels


# ---- breadth-first traversals, and shortest paths and their lengths, in edges and over weights
_UNKNOWN = "The node {} is not in the graph."


@answers(quick=True, iterator=True, text=("sort_neighbors",))
def bfs_edges(G: Graph, source: Any, reverse: bool, depth_limit: Any) -> Iterator[tuple[Any, Any]]:
    if reverse and G.is_directed():
        raise NotImplementedError("lagpu: the order of edges into a node is not kept")
    order, parents, _ = visited(G, [require(G, source, _UNKNOWN, nx.NetworkXError)], depth_limit)
    nodes, rest = G.names, order[1:]
    ends = zip(parents[rest].tolist(), rest.tolist(), strict=True)
    return iter([(nodes[u], nodes[v]) for u, v in ends])


by_text(
    *("bfs_tree", "bfs_predecessors", "bfs_successors", "descendants_at_distance", "has_path"),
    quick=True,
)


@answers(quick=True, iterator=True)
def bfs_layers(G: Graph, sources: Any) -> Iterator[list[Any]]:
    first = list({sources} if sources in G else set(sources))
    order, _, levels = visited(G, [require(G, node, _UNKNOWN, nx.NetworkXError) for node in first])
    cuts = np.flatnonzero(np.diff(levels[order])) + 1
    nodes = G.names
    return iter([[nodes[v] for v in part.tolist()] for part in np.split(order, cuts) if part.size])


@answers(quick=True)
def descendants(G: Graph, source: Any) -> set[Any]:
    return _reached(G, source, back=False)


@answers(quick=True)
def ancestors(G: Graph, source: Any) -> set[Any]:
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
    return _followed(G, [start], order, parents, back=back)


@answers(quick=True)
def single_source_shortest_path_length(G: Graph, source: Any, cutoff: Any) -> dict[Any, int]:
    return _lengths(G, require(G, source, "Source {} is not in G"), cutoff)


@answers(quick=True)
def single_target_shortest_path_length(G: Graph, target: Any, cutoff: Any) -> dict[Any, int]:
    return _lengths(G, require(G, target, "Target {} is not in G"), cutoff, back=True)


@answers(quick=True)
def single_source_shortest_path(G: Graph, source: Any, cutoff: Any) -> dict[Any, list[Any]]:
    return _paths(G, require(G, source, "Source {} not in G"), cutoff)


@answers(quick=True)
def single_target_shortest_path(G: Graph, target: Any, cutoff: Any) -> dict[Any, list[Any]]:
    return _paths(G, require(G, target, "Target {} not in G"), cutoff, back=True)


@answers(method=(None, "unweighted"), text=("method", "weight"))
def average_shortest_path_length(G: Graph) -> float:
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


def lengths_matrix(G: Graph, weight: Any) -> Matrix:
    """Return the matrix of lengths, of parallel edges the shortest."""
    values = G.weights(weight)
    if values is not None and values.dtype.kind == "f" and np.isnan(values).any():
        raise NotImplementedError("lagpu: lengths that are NaN")  # min would pass over them
    return G.matrix(weight, "min")


class _Reached:
    """The vertices that some vertices reach over lengths, these first, in order of distance.

    `nearest`: no length may be negative, as for Dijkstra's algorithm, which ends at a target.
    """

    def __init__(
        self, G: Graph, starts: list[int], weight: Any, *, nearest: bool, cutoff: Any = None,
        target: Any = None,
    ) -> None:  # fmt: skip
        self._G, self._starts, self._weight = G, starts, weight
        self._end = None if target is None else G.find(target)
        A, values = lengths_matrix(G, weight), G.weights(weight)
        if nearest and values is not None and values.size and values.min() < 0:
            raise NotImplementedError("lagpu: Dijkstra's algorithm with negative weights")
        bounded = nearest and cutoff is not None and cutoff >= 0
        try:
            limit, goal = float(cutoff) if bounded else None, self._end if nearest else None
            found = algorithms.bellman_ford(A, starts, limit=limit, target=goal)
        except CycleFound as error:
            raise nx.NetworkXUnbounded("Negative cycle detected.") from error
        reached, distances = found.to_coo()
        if not (nearest or np.isfinite(distances).all()):  # NetworkX does not reach them
            raise NotImplementedError("lagpu: an infinite distance")
        kept = ~np.isin(reached, starts)
        if cutoff is not None and cutoff != math.inf:
            kept &= ~(distances > cutoff)  # NaN is no limit
        reached, distances = reached[kept], distances[kept]
        order = np.argsort(distances, kind="stable")
        self._vertices = np.append(starts, reached[order])
        self._distances = np.append(np.zeros(len(starts), distances.dtype), distances[order])

    def lengths(self) -> dict[Any, Any]:
        found = self._G.named(self._distances.tolist(), self._vertices.tolist())
        return found | {self._G.names[v]: 0 for v in self._starts}

    def length(self, unreached: str) -> Any:
        """Return the distance of the target, or raise."""
        at = np.flatnonzero(self._vertices == self._end)
        if not at.size:
            raise nx.NetworkXNoPath(unreached)
        return self._distances[at[0]].item()

    def routes(self) -> dict[Any, list[Any]]:
        """Return the nodes of a shortest path to each vertex, or to the target, of fewest edges."""
        # A breadth-first search takes the edges (u, v) with d[u] + w = d[v].
        G, starts = self._G, self._starts
        (rows, cols), values, n = G.along(), G.weights(self._weight), len(G)
        values = np.ones(len(rows), np.int64) if values is None else values
        values = values.astype(np.int64) if values.dtype.kind == "b" else values
        d, known = np.zeros(n, self._distances.dtype), np.full(n, False)
        d[self._vertices], known[self._vertices] = self._distances, True
        on = known[rows] & known[cols] & (d[rows] + values == d[cols])
        ptr = np.append(0, np.cumsum(np.bincount(rows[on], minlength=n)))
        order, parents = ordered(Ordered(ptr, cols[on]), np.array(starts))
        if len(order) < len(self._vertices):
            raise NotImplementedError("lagpu: distances that no path has")
        if self._end is not None:
            path = [self._end]
            while path[-1] not in starts:
                path.append(int(parents[path[-1]]))
            order, starts = np.array(path[::-1]), path[-1:]
        return _followed(G, starts, order, parents)

    def lengths_and_routes(self, target: Any, unreached: str) -> Any:
        """Return distances and paths by nodes, or those of the target."""
        if target is None:
            return self.lengths(), self.routes()
        return self.length(unreached), self.routes()[target]


def _followed(
    G: Graph, starts: list[int], order: Array, parents: Array, *, back: bool = False
) -> dict[Any, list[Any]]:
    """Return the nodes of the path to each vertex, or back; the first ones come first in order."""
    nodes, rest = G.names, order[len(starts) :]
    found = {nodes[v]: [nodes[v]] for v in starts}
    for v, parent in zip(rest.tolist(), parents[rest].tolist(), strict=True):
        before = found[nodes[parent]]
        found[nodes[v]] = [nodes[v], *before] if back else [*before, nodes[v]]
    return found


def _starts(G: Graph, sources: Any) -> list[int]:
    if not sources:
        raise ValueError("sources must not be empty")
    return list(dict.fromkeys(require(G, node, _NOT_FOUND) for node in sources))


@answers()
def multi_source_dijkstra_path_length(
    G: Graph, sources: Any, cutoff: Any, weight: Any
) -> dict[Any, Any]:
    return _Reached(G, _starts(G, sources), weight, nearest=True, cutoff=cutoff).lengths()


@answers()
def multi_source_dijkstra(G: Graph, sources: Any, target: Any, cutoff: Any, weight: Any) -> Any:
    starts = _starts(G, sources)
    if target in sources:
        return 0, [target]
    found = _Reached(G, starts, weight, nearest=True, cutoff=cutoff, target=target)
    return found.lengths_and_routes(target, f"No path to {target}.")


@answers()
def single_source_bellman_ford(G: Graph, source: Any, target: Any, weight: Any) -> Any:
    if source == target:
        require(G, source, "Node {} is not found in the graph")
        return 0, [source]
    found = _Reached(G, [require(G, source, _NO_SOURCE)], weight, nearest=False, target=target)
    return found.lengths_and_routes(target, f"Node {target} not reachable from {source}")


@answers()
def single_source_bellman_ford_path_length(G: Graph, source: Any, weight: Any) -> dict[Any, Any]:
    return _Reached(G, [require(G, source, _NO_SOURCE)], weight, nearest=False).lengths()


@answers()
def dijkstra_path_length(G: Graph, source: Any, target: Any, weight: Any) -> Any:
    start = require(G, source, _NOT_FOUND)
    if source == target:
        return 0
    found = _Reached(G, [start], weight, nearest=True, target=target)
    return found.length(f"Node {target} not reachable from {source}")


@answers()
def bellman_ford_path_length(G: Graph, source: Any, target: Any, weight: Any) -> Any:
    start = require(G, source, _NOT_FOUND if source == target else _NO_SOURCE)
    if source == target:
        return 0
    found = _Reached(G, [start], weight, nearest=False, target=target)
    return found.length(f"node {target} not reachable from {source}")


@answers()
def negative_edge_cycle(G: Graph, weight: Any, heuristic: bool) -> bool:
    return algorithms.find_negative_cycle(lengths_matrix(G, weight)) is not None


by_text(
    *("single_source_dijkstra", "single_source_dijkstra_path", "multi_source_dijkstra_path"),
    *("single_source_dijkstra_path_length", "dijkstra_path"),
    *("all_pairs_dijkstra", "all_pairs_dijkstra_path", "all_pairs_dijkstra_path_length"),
    *("single_source_bellman_ford_path", "bellman_ford_path"),
    *("all_pairs_bellman_ford_path", "all_pairs_bellman_ford_path_length"),
    *("all_pairs_shortest_path", "all_pairs_shortest_path_length", "global_efficiency"),
)
by_text("shortest_path", "shortest_path_length", "efficiency", "generic_bfs_edges", quick=True)
