"""Breadth-first order of a graph on the host, by SciPy's csgraph."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
NONE = np.zeros(0, np.int32)


class Graph:
    """A graph by the edges out of each vertex, as csgraph reads it.

    The edges of vertex v lead to ``idx[ptr[v] : ptr[v + 1]]``; n + m < 2**31. The `values`, (m,),
    are lengths; `kept` is what its user has found out about it.
    """

    def __init__(self, ptr: Array, idx: Array, values: Any = None) -> None:
        self.ptr, self.idx = ptr.astype(np.int32), idx.astype(np.int32)
        self.n = len(ptr) - 1
        self._values = values
        self.kept: dict[str, Any] = {}

    def weights(self) -> Array:
        """Return the values of the entries as FP64."""
        if "weights" not in self.kept:
            self.kept["weights"] = self._values.astype(np.float64)
        return self.kept["weights"]

    def rows(self) -> Array:
        """Return the vertex that each edge leaves, (m,)."""
        if "rows" not in self.kept:
            self.kept["rows"] = np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.ptr))
        return self.kept["rows"]

    def csr(self, weights: Array | None = None, extra: Array | None = None, to: Any = ()) -> Any:
        """Return the graph for csgraph, with a further vertex n whose edges lead `to` vertices.

        Edges of the length `extra` lead from it, if lengths count.
        """
        from scipy.sparse import csr_array

        ptr, idx = self.ptr, self.idx
        if extra is not None:
            ptr = np.append(ptr, ptr[-1] + len(to)).astype(np.int32)
            idx = np.concatenate([idx, to], dtype=np.int32)
            weights = None if weights is None else np.concatenate([weights, extra])
        values = np.broadcast_to(1.0, len(idx)) if weights is None else weights
        return csr_array((values, idx, ptr), shape=(len(ptr) - 1,) * 2)

    def without(self, vertices: Array) -> Graph:
        """Return the graph without the edges that lead to some vertices."""
        kept = np.isin(self.idx, vertices, invert=True)
        return Graph(np.concatenate([[0], np.cumsum(kept)])[self.ptr], self.idx[kept])


def ordered(graph: Graph, starts: Array, gone: Array = NONE) -> tuple[Array, Array]:
    """Return the vertices in the order of a search from `starts` without `gone`, and parents."""
    from scipy.sparse import csgraph

    if len(gone):
        graph = graph.without(gone)
    elif len(starts) == 1:
        order, parents = csgraph.breadth_first_order(graph.csr(), int(starts[0]))
        return order, parents
    order, parents = csgraph.breadth_first_order(graph.csr(extra=starts, to=starts), graph.n)
    return order[1:], parents[:-1]


def level_ends(order: Array, parents: Array, first: int) -> list[int]:
    """Return where each level ends in the order of a search whose `first` vertices are level 0.

    Children follow in the order of their parents, so those of a level are behind those of the one
    before: level k + 1 ends where the children of all vertices up to the end of level k do.
    """
    n = len(parents)
    children = np.bincount(parents[parents >= 0], minlength=n + 1)[order]  # n leads to the first
    behind: Any = (first + np.concatenate([[0], np.cumsum(children)])).data
    ends = [first]
    while ends[-1] < len(order):
        ends.append(behind[ends[-1]])
    return ends
