"""NetworkX graphs, and GraphML and GML files, which NetworkX reads and writes."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Literal, overload

import numpy as np

from lagpu.backends.protocol import Backend, in_step
from lagpu.core import Matrix
from lagpu.core.arguments import binary_operator
from lagpu.dtypes import Array, as_array, lookup
from lagpu.errors import DimensionMismatch, DomainMismatch, FileFormatError, InvalidValue
from lagpu.host import memory
from lagpu.io import reading
from lagpu.io.arrays import is_directed, named
from lagpu.io.csc import CSC, asymmetry, from_entries, known_symmetric
from lagpu.io.reading import NAMES_HINT, Budget, Edges, Names, Options, Parsed, needed

__all__ = ["from_networkx", "to_networkx"]


_EXACT = 2**53  # a float holds each integer up to here


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The edges of a NetworkX graph as arrays, in the order in which NetworkX has them.

    An undirected edge is there twice, a self-loop once, and each of several parallel edges.
    """

    nodes: list[Any]  # the name of each vertex
    row_ptr: Array  # INT64, (n + 1,): vertex k has the edges row_ptr[k] .. row_ptr[k + 1] - 1
    cols: Array  # INT64, (m,): where the edges lead
    values: dict[Any, Array] = field(default_factory=dict)  # of the edge attributes asked for, (m,)
    directed: bool = True

    def rows(self) -> Array:
        """Return the vertex where each edge begins, (m,)."""
        return np.repeat(np.arange(len(self.nodes)), np.diff(self.row_ptr))

    def matrix(
        self, weight: Any = None, dup_op: Any = None, backend: str | Backend | None = None, *,
        numbers: bool = False,
    ) -> Matrix:  # fmt: skip
        """Return the matrix; parallel edges are summed, or combined by the operator `dup_op`."""
        # Without a weight each edge is True; with `numbers` True is 1, so that parallel edges
        # count.
        n, rows = len(self.nodes), self.rows()
        values = None if weight is None else self.values[weight]
        if values is None and (numbers or dup_op is not None):
            values = np.ones(len(rows), bool)
        if values is not None and numbers and values.dtype.kind == "b":
            values = values.astype(np.int64)
        op = None if dup_op is None else binary_operator(dup_op)
        csc = from_entries(rows, self.cols, values, n, n, op)
        return (csc if self.directed else known_symmetric(csc)).matrix(backend)


def adjacency(
    G: Any, weights: Mapping[Any, Any] | None = None, nodelist: Iterable[Any] | None = None
) -> Adjacency:
    """Return the edges of a NetworkX graph of any class, or of a view, in NetworkX' own order."""
    # `weights` are edge attributes to read, each with the value of an edge that lacks it;
    # `nodelist` has distinct nodes in the order of the vertices, by default ``list(G)``. The errors
    # are those of `from_networkx`.
    _require_graph(G)
    # Measured, docs/design/memory.md: lists of names and values, then arrays.
    size = G.number_of_edges() * (1 if G.is_directed() else 2)
    memory.require(size * 120 + G.number_of_nodes() * 100, "from_networkx")
    nodes = list(G) if nodelist is None else list(nodelist)
    place = {node: k for k, node in enumerate(nodes)}
    if nodelist is None:
        each = [near for _, near in G.adjacency()]
    else:
        found = dict(G.adjacency())
        if unknown := [node for node in nodes if node not in found]:
            raise InvalidValue(
                f"from_networkx: the node {unknown[0]!r} of nodelist is not in the graph. Leave it "
                "out."
            )
        if len(place) != len(nodes):
            twice = next(node for k, node in enumerate(nodes) if place[node] != k)
            raise InvalidValue(f"from_networkx: nodelist has {twice!r} twice. Give each node once.")
        each = [{v: data for v, data in found[u].items() if v in place} for u in nodes]
    if G.is_multigraph():
        ends: Iterable[Any] = (v for near in each for v, keys in near.items() for _ in keys)
        degrees = [sum(map(len, near.values())) for near in each]
        data = (x for near in each for keys in near.values() for x in keys.values())
    else:
        ends = itertools.chain.from_iterable(each)
        degrees = [len(near) for near in each]
        data = (x for near in each for x in near.values())
    row_ptr = np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)]).astype(np.int64)
    cols = np.fromiter(map(place.__getitem__, ends), np.int64, int(row_ptr[-1]))
    attributes = list(data) if weights else []
    values = {
        name: numbers([x.get(name, default) for x in attributes], name)
        for name, default in (weights or {}).items()
    }
    return Adjacency(nodes, row_ptr, cols, values, G.is_directed())


def _require_graph(G: Any) -> None:
    """Raise `DomainMismatch` unless `G` has what a NetworkX graph has."""
    if all(hasattr(G, name) for name in ("adjacency", "is_multigraph", "is_directed")):
        return
    kind, remedy = type(G).__name__, "Use Matrix.from_coo, or a function of lagpu.io."
    if hasattr(G, "get_edgelist"):
        kind, remedy = f"igraph's {kind}", "Write io.from_igraph(graph)."
    elif isinstance(G, Matrix):
        remedy = "It is a matrix already."
    elif hasattr(G, "tocsc"):
        remedy = "Use from_scipy."
    raise DomainMismatch(f"from_networkx: {kind} is not a NetworkX graph. {remedy}")


def numbers(values: list[Any], name: Any) -> Array:
    """Return the values of an edge attribute as an array of numbers, or raise `DomainMismatch`."""
    try:
        found = as_array(values) if values else np.zeros(0, np.int64)
    except ValueError:  # lists of several lengths
        found = np.array(None)
    if found.ndim != 1 or found.dtype.kind not in "biuf":
        raise DomainMismatch(f"from_networkx: the attribute {name!r} is not always a number.")
    large = found.dtype.kind == "f" and (np.abs(found) >= _EXACT).any()
    if large and any(isinstance(x, int | np.integer) and abs(int(x)) > _EXACT for x in values):
        raise DomainMismatch(
            f"from_networkx: the attribute {name!r} has integers beyond 2**53, which "
            "become floats and may be rounded. Make all weights floats."
        )
    return found


@overload
def from_networkx(G: Any, *, return_nodes: Literal[False] = False, **how: Any) -> Matrix: ...
@overload
def from_networkx(
    G: Any, *, return_nodes: Literal[True], **how: Any
) -> tuple[Matrix, list[Any]]: ...
def from_networkx(  # type: ignore[misc]  # the overloads leave the options to it
    G: Any, *, weight: Any = None, dup_op: Any = None, nodelist: Iterable[Any] | None = None,
    dtype: Any = None, name: str | None = None, return_nodes: bool = False,
    backend: str | Backend | None = None,
) -> Matrix | tuple[Matrix, list[Any]]:  # fmt: skip
    """Return the adjacency matrix of a NetworkX graph, and the names of its vertices if asked.

    Parameters
    ----------
    G : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        Vertex k of the matrix is node ``list(G)[k]``. An undirected edge gives two entries, a
        self-loop one.
    weight : str, optional
        Edge attribute with the value; an edge without the attribute counts 1. By default each edge
        is True, or counts 1 if `G` is a multigraph or `dtype` is a type of numbers.
    dup_op : BinaryOp, optional
        Combines the values of parallel edges; by default they are summed, as NetworkX does for its
        own matrices, and two True are True. Shortest paths over weights need ``"min"``, the length
        of the shortest edge.
    nodelist : iterable, optional
        Distinct nodes of `G` in the order of the vertices; edges to other nodes are left out.
    dtype : DType, optional
        Type of the values; by default that of the weights. Without `weight` it is BOOL, or INT64
        for a multigraph, whose parallel edges are counted; searches need only ``"BOOL"``.
    name : str, optional
        Name of the matrix.
    return_nodes : bool
        Also return the node of each vertex, for `to_networkx` and to read results by name.
    backend : str or Backend, optional
        Where the matrix will live.

    Returns
    -------
    A : Matrix, (n, n)
        The matrix.
    nodes : list, (n,)
        Vertex k is the node ``nodes[k]``; only with `return_nodes`.

    Raises
    ------
    DomainMismatch
        If `G` is not a NetworkX graph, or a weight is not a number, or integers beyond 2**53 would
        become floats.
    InvalidValue
        If a node of `nodelist` is not in `G`, or is given twice.

    Examples
    --------
    >>> import networkx as nx
    >>> G = nx.Graph([("Ann", "Bob"), ("Bob", "Cem")])
    >>> A, nodes = from_networkx(G, return_nodes=True, backend="cpu")
    >>> nodes, A.nvals
    (['Ann', 'Bob', 'Cem'], 4)
    >>> roads = nx.MultiGraph([("Ann", "Bob"), ("Ann", "Bob")])
    >>> from_networkx(roads, backend="cpu")[0, 1].new().value
    2
    >>> from_networkx(roads, dtype="BOOL", backend="cpu")[0, 1].new().value
    True
    """
    found = adjacency(G, None if weight is None else {weight: 1}, nodelist)
    counts = weight is None and G.is_multigraph()
    numbers = counts if dtype is None else not lookup(dtype).is_bool
    A = named(found.matrix(weight, dup_op, backend, numbers=numbers), dtype, name)
    return (A, found.nodes) if return_nodes else A


def to_networkx(
    A: Matrix, *, directed: bool | None = None, nodes: Iterable[Any] | None = None,
    weight: str = "weight",
) -> Any:  # fmt: skip
    """Return a matrix as a NetworkX graph.

    Parameters
    ----------
    A : Matrix, (n, n)
        A matrix on any backend. Unless BOOL, values become an edge attribute.
    directed : bool, optional
        Return a ``DiGraph``, or a ``Graph``, for which the matrix must be symmetric; by default a
        ``Graph`` if the matrix is symmetric.
    nodes : iterable, optional
        n distinct names of the vertices, as `from_networkx` returns them; by default ``0 .. n-1``.
    weight : str
        Name of the edge attribute.

    Raises
    ------
    InvalidValue
        If the matrix is not square, or is not symmetric where it must be, or a name is given twice.
    DimensionMismatch
        If there is not a name for each vertex.
    BackendUnavailable
        If NetworkX is not installed.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> G = to_networkx(path(3, backend="cpu"), nodes="abc")
    >>> list(G.edges)
    [('a', 'b'), ('b', 'c')]
    """
    needed("nx", "to_networkx: it")
    if not isinstance(A, Matrix):
        raise DomainMismatch(f"to_networkx: {type(A).__name__} is not a Matrix. Give a Matrix.")
    directed = is_directed(A, directed, "to_networkx")
    names = range(A.nrows) if nodes is None else list(nodes)
    if len(names) != A.nrows:
        raise DimensionMismatch(f"to_networkx: {len(names)} nodes != {A.nrows} vertices.")
    if len(set(names)) != A.nrows:
        raise InvalidValue("to_networkx: a name is given twice. Give each node a name of its own.")
    # Measured, docs/design/memory.md: dictionaries of nodes, neighbours and attributes.
    need = A.nvals * (270 if A.dtype.is_bool else 440) + A.nrows * 750
    in_step(A.backend, lambda: memory.require(need, "to_networkx", "Use to_scipy."))
    rows, cols, values = A.to_coo()
    entries = [rows, cols] if A.dtype.is_bool else [rows, cols, values]
    return graph(names, entries, directed=directed, weight=weight)


def graph(
    names: Sequence[Any], entries: list[Array], *, directed: bool, weight: str = "weight"
) -> Any:
    """Return the NetworkX graph of some vertices and of entries: rows, columns, maybe values."""
    import networkx as nx

    G: Any = nx.DiGraph() if directed else nx.Graph()
    G.add_nodes_from(names)
    rows, cols, *values = (array.tolist() for array in entries)
    if not isinstance(names, range):
        rows, cols = ([names[k] for k in ends] for ends in (rows, cols))
    if values:
        G.add_weighted_edges_from(zip(rows, cols, *values, strict=True), weight)
    else:
        G.add_edges_from(zip(rows, cols, strict=True))
    return G


# ---- GraphML and GML; the edge attribute ``weight`` is the value.


# Measured, docs/design/memory.md: bytes that NetworkX takes for one of a file.
_BYTES = 60
_NUMBERED = re.compile(r"n[0-9]{1,18}")  # as yEd and igraph number nodes
GML = re.compile(rb"\s*+(?:(?:#|Creator|Version|comment)[^\n]*\n\s*+)*+graph\s*\[", re.IGNORECASE)
GRAPHML = re.compile(
    rb"(?:<\?xml[^>]*>|<!--.*?-->|<!DOCTYPE[^>\[]*>|\s)*+<(?:\w+:)?graphml\b", re.DOTALL
)


def parse(data: bytes, budget: Budget, options: Options, *, kind: str) -> Parsed:
    """Return the graph of a file of a kind, GraphML or GML."""
    # Nodes that are numbers, also as ``n0``, are vertices; others need `renumber`. A GML node is
    # named by its label, if all have different ones, and is else the number of its id.
    name = budget.name
    nx, stream = needed("nx", f"read: {name} is {kind}, and"), io.BytesIO(data)
    budget.require(_BYTES * len(data), "its elements", held=len(data))
    with reading.errors_named(f"read: {name}"):  # of XML, of GML, of numbers, of nesting
        G = nx.read_graphml(stream) if kind == "GraphML" else nx.read_gml(stream, label="id")
    nodes, ids = _numbered(G, options, name)
    place = dict(zip(G, nodes.tolist(), strict=True))
    pairs = np.array([(place[u], place[v]) for u, v in G.edges()], np.int64).reshape(-1, 2)
    u, v = pairs[:, 0], pairs[:, 1]
    undirected = not G.is_directed()
    if undirected:  # parallel edges are summed, whichever end is first
        u, v = np.minimum(u, v), np.maximum(u, v)
    n = int(nodes.max(initial=-1)) + 1
    how: Any = {"held": len(data), "n": n, "ids": ids, "undirected": undirected}
    return reading.graph_of(Edges(u, v, _weights_of(G, name)), budget, options, **how)


def _weights_of(G: Any, name: str) -> Array | None:
    """Return the weight of each edge, 1 where it is missing; None if no edge has one."""
    found = [value for *_, value in G.edges(data="weight")]
    if all(value is None for value in found):
        return None
    try:
        texts = (1 if x is None else x for x in found)
        values = as_array([reading.number(x.encode()) if isinstance(x, str) else x for x in texts])
    except (ValueError, OverflowError):
        values = np.array([], object)
    if values.dtype.kind not in "biuf":
        raise FileFormatError(f"read: {name}: a weight is no number of 64 bits.")
    return values


def _numbered(G: Any, options: Options, name: str) -> tuple[Array, Array | None]:
    """Return the number of each node, and the ids if they are renumbered."""
    labels: list[Any] = list(dict(G.nodes(data="label")).values())
    named = None not in labels and len({*map(str, labels)}) == len(labels)
    words: list[Any] = list(G)
    if named and (options.renumber or reading.whole_numbers([*map(str, labels)]) is not None):
        words = [*map(str, labels)]
    if options.renumber:
        names = Names()
        codes = names.codes(words, len(words))
        (numbers, _, _), ids = names.ordered(Edges(codes, codes))
        return numbers, ids
    if all(isinstance(word, str) and _NUMBERED.fullmatch(word) for word in words):
        words = [word[1:] for word in words]
    found = reading.whole_numbers(words)
    if found is None or found.dtype.kind not in "iu" or found.min(initial=0) < 0:
        odd = next((w for w in words if reading.whole_numbers([w]) is None), words[0])
        raise FileFormatError(
            f"read: {name}: node {str(odd)[:60]!r} is no whole number 0, 1, 2, ... {NAMES_HINT}."
        )
    if len(set(found.tolist())) != len(found):
        raise FileFormatError(f"read: {name}: two nodes are the same number. {NAMES_HINT}.")
    return found, None


def dump(csc: CSC, file: IO[bytes], *, kind: str) -> None:
    """Write nodes ``0 .. n-1``, and a weight for each edge unless all values are True."""
    # The graph is undirected if the matrix is symmetric.
    nx = needed("nx", f"write: {kind}")
    memory.require(csc.nvals * 440 + csc.nrows * 750, "write", "Use .npz.")
    entries = [x.astype(np.int8) if x.dtype.kind == "b" else x for x in csc.entries()]
    G = graph(range(csc.nrows), entries, directed=asymmetry(csc) is not None)
    (nx.write_graphml if kind == "GraphML" else nx.write_gml)(G, file)
