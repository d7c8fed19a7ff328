"""Lengths of shortest paths over weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from lagpu import algorithms
from lagpu.errors import CycleFound
from lagpu.nx.answers import answers
from lagpu.nx.graph import Graph
from lagpu.nx.searches import require

_UNKNOWN = "Node {} not found in graph"


def lengths(
    G: Graph, start: int, weight: Any, *, cutoff: Any = None, nearest: bool, back: bool = False
) -> dict[Any, Any]:
    """Return the distance of each node that is reached, the vertex itself first, then ascending.

    Parameters
    ----------
    G : Graph
        The graph; of parallel edges the shortest counts.
    start : int
        The vertex.
    weight : str
        Edge attribute with the length.
    cutoff : number, optional
        Largest distance that is returned.
    nearest : bool
        Whether no length may be negative, as for Dijkstra's algorithm.
    back : bool
        Search against the edges.
    """
    values = G.weights(weight)
    if values is not None and values.dtype.kind == "f" and np.isnan(values).any():
        raise NotImplementedError("lagpu: lengths that are NaN")  # min would pass over them
    if nearest and values is not None and values.size and values.min() < 0:
        raise NotImplementedError("lagpu: Dijkstra's algorithm with negative weights")
    A = G.matrix(weight, "min", back=back)
    try:
        found = algorithms.bellman_ford(A, start)
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
    G: Graph, source: Any, cutoff: Any = None, weight: Any = "weight"
) -> dict[Any, Any]:
    """Return the distance of each node from a node, over weights that are not negative."""
    start = require(G, source, _UNKNOWN)
    return lengths(G, start, weight, cutoff=cutoff, nearest=True)


@answers()
def dijkstra_path_length(G: Graph, source: Any, target: Any, weight: Any = "weight") -> Any:
    """Return the distance of two nodes over weights that are not negative."""
    start = require(G, source, _UNKNOWN)
    return _between(G, start, source, target, weight, True, "Node {} not reachable from {}")


@answers(iterator=True)
def all_pairs_dijkstra_path_length(
    G: Graph, cutoff: Any = None, weight: Any = "weight"
) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Return an iterator over each node with the distances from it."""
    return _of_each(G, lambda v: lengths(G, v, weight, cutoff=cutoff, nearest=True))


@answers()
def single_source_bellman_ford_path_length(
    G: Graph, source: Any, weight: Any = "weight"
) -> dict[Any, Any]:
    """Return the distance of each node from a node."""
    return lengths(G, require(G, source, "Source {} not in G"), weight, nearest=False)


@answers()
def bellman_ford_path_length(G: Graph, source: Any, target: Any, weight: Any = "weight") -> Any:
    """Return the distance of two nodes."""
    start = require(G, source, _UNKNOWN if source == target else "Source {} not in G")
    return _between(G, start, source, target, weight, False, "node {} not reachable from {}")


def _between(
    G: Graph, start: int, source: Any, target: Any, weight: Any, nearest: bool, unreached: str
) -> Any:
    """Return the distance of two nodes, or raise with NetworkX' words, which differ."""
    if source == target:
        return 0
    found = lengths(G, start, weight, nearest=nearest)
    if target not in G or target not in found:
        raise nx.NetworkXNoPath(unreached.format(target, source))
    return found[target]


@answers(iterator=True)
def all_pairs_bellman_ford_path_length(
    G: Graph, weight: Any = "weight"
) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """Return an iterator over each node with the distances from it."""
    return _of_each(G, lambda v: lengths(G, v, weight, nearest=False))


def _of_each(G: Graph, of: Callable[[int], Any]) -> Iterator[tuple[Any, Any]]:
    """Return an iterator over each node with what `of` gives for it, the first one at once.

    Weights that lagpu refuses are refused before anything is taken from the iterator.
    """
    pairs = ((node, of(v)) for v, node in enumerate(G.nodes))
    return itertools.chain(list(itertools.islice(pairs, 1)), pairs)
