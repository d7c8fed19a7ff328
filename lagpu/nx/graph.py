"""The graph that NetworkX passes to the algorithms: converted once, with a matrix a backend.

NetworkX keeps the converted graph in ``G.__networkx_cache__`` until `G` changes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np

from lagpu import backends
from lagpu.backends.protocol import in_step
from lagpu.core import Matrix
from lagpu.dtypes import Array
from lagpu.errors import LagpuError
from lagpu.host.ordered import Graph as Ordered
from lagpu.io.networkx_graphs import Adjacency, adjacency, numbers

WEIGHED = "what the function gives"


class Graph:
    """A NetworkX graph as arrays, and as matrices on the backends that use it.

    What it lacks, an attribute or a method, is that of the NetworkX graph itself, `origin`; of one
    that was made of another `Graph`, as `reverse` does, that of a NetworkX graph of its arrays.
    """

    __networkx_backend__ = "lagpu"

    def __init__(
        self, stored: Adjacency, *, directed: bool, multigraph: bool, origin: Any = None
    ) -> None:
        self.stored, self.names, self.origin = stored, stored.nodes, origin
        self._directed, self._multigraph = directed, multigraph
        self._matrices: dict[Any, Matrix] = {}
        self.of_directed = False  # whether it is an undirected view of a directed graph
        self._alike: set[Any] = set()  # attributes that are then the same in both directions
        self.behind: Any = None  # of a view: the graph that it shows, and its mark

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the matrices, which belong to this process and its device."""
        return {**self.__dict__, "_matrices": {}}

    def renew(self) -> None:
        """Convert a view again if the graph behind it has changed, which NetworkX does not note."""
        if self.behind and noted(self.behind[0], "lagpu mark", list) is not self.behind[1]:
            names = dict.fromkeys(self.stored.values, 1)
            self.__dict__ = convert_from_nx(self.origin, edge_attrs=names).__dict__

    @functools.cached_property
    def networkx(self) -> Any:
        """The NetworkX graph; of one that is made of arrays, parallel edges have keys 0, 1, ..."""
        if self.origin is not None:
            return self.origin
        kinds: Any = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
        G = kinds[2 * self._multigraph + self._directed]()
        G.add_nodes_from(self.names)
        rows, cols, *values = once(self, *self.stored.values.values())
        names, attributes = [*self.stored.values], zip(*(x.tolist() for x in values), strict=True)
        of_each = attributes if values else itertools.repeat(())
        for (u, v), own in zip(pairs(self, rows, cols), of_each, strict=False):
            G.add_edge(u, v, **dict(zip(names, own, strict=True)))
        return G

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.networkx, name)

    def __getitem__(self, node: Any) -> Any:
        return self.networkx[node]

    def is_directed(self) -> bool:
        return self._directed

    def is_multigraph(self) -> bool:
        return self._multigraph

    def number_of_edges(self) -> int:
        """Return the number of edges, each of several parallel ones."""
        count = len(self.stored.cols)
        return count if self._directed else (count + int(self.loops.sum())) // 2

    def __len__(self) -> int:
        return len(self.names)

    order = number_of_nodes = __len__

    def __iter__(self) -> Any:
        return iter(self.names)

    def __contains__(self, node: Any) -> bool:
        return self.find(node) is not None

    @functools.cached_property
    def index(self) -> dict[Any, int]:
        """Vertex of each name."""
        return {node: k for k, node in enumerate(self.names)}

    def find(self, node: Any) -> int | None:
        """Return the vertex of a name, or None if there is none."""
        try:
            return self.index.get(node)
        except TypeError:  # not hashable: no node
            return None

    def bunch(self, nodes: Any) -> list[int]:
        """Return the vertices that an argument such as ``nodes=`` of NetworkX selects."""
        if nodes is None:
            return list(range(len(self)))
        if nodes in self:
            return [self.index[nodes]]
        try:
            return [self.index[node] for node in dict.fromkeys(nodes) if node in self.index]
        except TypeError as error:
            raise nx.NetworkXError(f"Node {nodes} is not in the graph.") from error

    def where(self, chosen: Array) -> set[Any]:
        """Return the nodes of the vertices at which an array, (n,), is True."""
        nodes = self.names
        return {nodes[v] for v in np.flatnonzero(chosen).tolist()}

    def named(self, values: Iterable[Any], vertices: Iterable[int] | None = None) -> dict[Any, Any]:
        """Return values by names, of all vertices or of some."""
        nodes = self.names
        names = nodes if vertices is None else [nodes[k] for k in vertices]
        return dict(zip(names, values, strict=True))

    def matrix(
        self, weight: Any = None, dup_op: Any = None, *, back: bool = False, counted: bool = False
    ) -> Matrix:
        """Return the matrix on the default backend."""
        # `back`: with each edge reversed; `counted`: without a weight each parallel edge counts 1.
        place = backends.get()
        back = back and self._directed
        counted = counted and self._multigraph and weight is None
        dup_op = dup_op if self._multigraph and weight is not None else None
        key = place.name, weight, dup_op, back, counted
        found = self._matrices.get(key)
        if found is None:
            if back:
                found = self.matrix(weight, dup_op).T.new(name="A")
            else:
                self.weights(weight)
                numbers = counted or weight is not None  # NetworkX adds up True as 1
                found = self.stored.matrix(weight, dup_op, place, numbers=numbers)
            self._matrices[key] = found
        return found

    def reverse(self, copy: bool = True) -> Graph:
        """Return the graph with each edge reversed, which come in the order of the vertices."""
        return self._turned

    @functools.cached_property
    def _turned(self) -> Graph:
        order = np.argsort(self.stored.cols, kind="stable")
        count = np.bincount(self.stored.cols, minlength=len(self))
        values = {name: x[order] for name, x in self.stored.values.items()}
        ends = np.append(0, np.cumsum(count)), self.stored.rows()[order]
        edges = Adjacency(self.names, *ends, values, self._directed)
        return Graph(edges, directed=self._directed, multigraph=self._multigraph)

    def weighed(self, function: Callable[[Any, Any, Any], Any]) -> Graph:
        """Return the graph with what a function of both nodes and the attributes gives each edge.

        The attribute is `WEIGHED`, and the two directions of an undirected edge may differ.
        """
        if self._multigraph:
            raise NotImplementedError("lagpu: a function as weight, of parallel edges")
        try:
            all_near = self.networkx.adjacency()
            of = [function(u, v, x) for u, near in all_near for v, x in near.items()]
        except Exception as error:  # which NetworkX may not raise
            raise NotImplementedError(f"lagpu: a function as weight raised {error!r}") from error
        edges = replace(self.stored, values={WEIGHED: numbers(of, WEIGHED)}, directed=True)
        return Graph(edges, directed=self._directed, multigraph=False)

    def numbers(self, weight: Any, of: str = "sums") -> Array:
        """Return an edge attribute whose values can be added up, (m,), INT64 or FP64."""
        # Without a weight each edge is 1. `NotImplementedError` if it has another type, or its sums
        # may be beyond 2**63. In place of sums it may be for "a matrix".
        values = self.weights(weight)
        if values is None:
            return np.ones(len(self.stored.cols), np.int64)
        if values.dtype.kind == "b" and of == "sums":
            values = values.astype(np.int64)
        if values.dtype not in (np.int64, np.float64):
            raise NotImplementedError(f"lagpu: {of} of weights of the type {values.dtype}")
        if values.dtype.kind == "i" and values.size and of == "sums":
            largest = max(abs(int(values.min())), abs(int(values.max())))
            if largest * 2 * values.size >= 2**63:
                raise NotImplementedError("lagpu: sums of weights beyond 64 bits")
        return values

    def weights(self, name: Any) -> Array | None:
        """Return an edge attribute in NetworkX' order, (m,), 1 for an edge without it."""
        if name is None:
            return None
        if name not in self.stored.values:
            if self.origin is None:
                raise NotImplementedError(f"the attribute {name!r} was not converted")
            now = adjacency(self.origin, {name: 1})
            before, after = (np.append(x.row_ptr, x.cols) for x in (self.stored, now))
            if now.nodes != self.names or not np.array_equal(before, after):
                raise NotImplementedError("the graph has changed since it was converted")
            self.stored.values.update(now.values)
        values = self.stored.values[name]
        if self.of_directed and name not in self._alike:
            # Of an edge with two values, some functions of NetworkX read one and some both.
            rows, cols = self.along()
            there, back = (values[np.lexsort((values, *x))] for x in ((cols, rows), (rows, cols)))
            if (there != back).any():
                raise NotImplementedError(
                    "lagpu: an undirected view of edges that differ by direction"
                )
            self._alike.add(name)
        return values

    @functools.cached_property
    def loops(self) -> Array:
        """Whether each edge joins a vertex with itself, (m,)."""
        return self.stored.rows() == self.stored.cols

    def along(self) -> tuple[Array, Array]:
        """Return (row, column) of each edge, (m,), in NetworkX' order."""
        return self.stored.rows(), self.stored.cols

    def ordered(self, *, back: bool = False) -> Ordered:
        """Return the edges of each node in NetworkX' order, or the reversed ones by vertices."""
        return self._turned._ordered if back and self._directed else self._ordered

    @functools.cached_property
    def _ordered(self) -> Ordered:
        return Ordered(self.stored.row_ptr, self.stored.cols)


def once(G: Graph, *others: Array) -> tuple[Array, ...]:
    """Return rows and columns of the edges, and entries of other arrays, an undirected edge once.

    They come in the order of ``G.edges`` of NetworkX.
    """
    rows, cols = G.along()
    kept = np.full(len(rows), True) if G.is_directed() else rows <= cols
    return tuple(x[kept] for x in (rows, cols, *others))


def pairs(G: Graph, rows: Array, cols: Array) -> Iterator[tuple[Any, Any]]:
    nodes = G.names
    return ((nodes[u], nodes[v]) for u, v in zip(rows.tolist(), cols.tolist(), strict=True))


def labels_of(G: Graph, partition: Any) -> Array:
    """Return for each vertex the number of its part, (n,), of a partition of the nodes."""
    parts = [set(part) for part in partition]
    if sum(map(len, parts)) != len(G) or set().union(*parts) != set(G):
        raise NotImplementedError("lagpu: parts that are not a partition of the nodes")
    label = np.empty(len(G), np.int64)
    for k, part in enumerate(parts):
        label[[G.index[node] for node in part]] = k
    return label


def convert_from_nx(
    graph: Any, *, edge_attrs: Mapping[Any, Any] | None = None, **_others: Any
) -> Graph:
    """Return a NetworkX graph as a `Graph`; NetworkX calls this with what a function reads."""
    # `NotImplementedError` if an edge attribute that is needed is not always a number, or memory is
    # short: NetworkX then runs its own function.
    if isinstance(graph, Graph):
        return graph
    if not isinstance(graph, nx.Graph):
        raise NotImplementedError(f"{type(graph).__name__} is not a graph that lagpu converts")
    try:
        stored = in_step(backends.get(), lambda: adjacency(graph, edge_attrs))
    except LagpuError as error:
        raise NotImplementedError(str(error)) from error
    directed, multigraph = graph.is_directed(), graph.is_multigraph()
    found = Graph(stored, directed=directed, multigraph=multigraph, origin=graph)
    while (base := getattr(graph, "_graph", None)) is not None:  # of a view
        found.of_directed, graph = found.of_directed or base.is_directed() > directed, base
        found.behind = graph, noted(graph, "lagpu mark", list)
    return found


def noted(G: Any, key: str, find: Callable[[], Any]) -> Any:
    """Return what `find` returned before, unless the graph has changed: NetworkX clears notes."""
    cache = getattr(G, "__networkx_cache__", None)
    if cache is None:
        return find()
    if key not in cache:
        cache[key] = find()
    return cache[key]


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """Return a `Graph` as the NetworkX graph, and anything else as it is."""
    return result.networkx if isinstance(result, Graph) else result
