"""Breadth-first searches from named nodes: levels that lagpu finds, and NetworkX' order of them.

A queue visits the vertices of a level in the order of their parents, and the children of a parent
in the order of its edges; the parent of a vertex is the first one that reaches it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np

from lagpu import algorithms
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


def levels_from(
    G: Graph, sources: Sequence[int], limit: Any = None, *, back: bool = False
) -> Array:
    """Return the distance of each vertex from the nearest source, (n,), -1 if not reached."""
    if not sources:
        return np.full(len(G), -1)
    A, most = G.matrix(back=back), _steps(limit)
    if most is not None:
        found = algorithms.neighborhood(A, list(sources), most)
    elif len(sources) == 1:
        found = algorithms.bfs_levels(A, sources[0])
    else:
        found = algorithms.bfs_levels_joint(A, list(sources))
    levels: Array = found.to_dense(-1)
    return levels


def visited(
    G: Graph, sources: Sequence[int], limit: Any = None, *, back: bool = False
) -> tuple[Array, Array, Array]:
    """Return the vertices in NetworkX' order, their parents, and the level of every vertex."""
    levels = levels_from(G, sources, limit, back=back)
    return *_breadth_first(*G.along(back=back), levels, sources), levels


class _Down:
    """The edges that lead from a level to the next one, by the vertex where they begin."""

    def __init__(self, rows: Array, cols: Array, levels: Array) -> None:
        down = (levels[rows] >= 0) & (levels[cols] == levels[rows] + 1)
        self.cols = cols[down]
        self.count = np.bincount(rows[down], minlength=len(levels))
        self.begin = np.cumsum(self.count) - self.count

    def of(self, parents: Array) -> tuple[Array, Array]:
        """Return (parent, child) of the edges of some parents, one parent after the other."""
        count = self.count[parents]
        shift = np.repeat(self.begin[parents] - (np.cumsum(count) - count), count)
        return np.repeat(parents, count), self.cols[shift + np.arange(len(shift))]


def _breadth_first(
    rows: Array, cols: Array, levels: Array, sources: Sequence[int]
) -> tuple[Array, Array]:
    """Return the vertices as a queue visits them, and the parent of each, -1 for the sources.

    The edges of a vertex are side by side in `rows` and `cols`, in NetworkX' order.
    """
    down, place = _Down(rows, cols, levels), np.empty(len(levels), np.int64)
    layer = np.asarray(sources, np.int64)
    order, parents = [layer], [np.full(len(layer), -1)]
    while layer.size:
        above, below = down.of(layer)
        at = np.arange(len(below))
        place[below[::-1]] = at[::-1]  # of equal indices the last one assigns: the first edge
        first = place[below] == at
        layer = below[first]
        order.append(layer)
        parents.append(above[first])
    return np.concatenate(order), np.concatenate(parents)


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
