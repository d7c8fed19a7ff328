"""GraphML and GML files, by NetworkX; the edge attribute ``weight`` is the value."""

from __future__ import annotations

import io
import re
from typing import IO, Any

import numpy as np

from lagpu.errors import FileFormatError
from lagpu.host import memory
from lagpu.io import reading
from lagpu.io.csc import CSC, asymmetry
from lagpu.io.networkx_graphs import graph
from lagpu.io.reading import NAMES_HINT, Budget, Edges, Names, Options, Parsed, needed

Array = np.ndarray[Any, Any]

# Measured, docs/design/memory.md: bytes that NetworkX takes for one of a file.
_BYTES = 60
_NUMBERED = re.compile(r"n[0-9]{1,18}")  # as yEd and igraph number nodes
_GML = re.compile(rb"\s*+(?:(?:#|Creator|Version|comment)[^\n]*\n\s*+)*+graph\s*\[", re.IGNORECASE)
_GRAPHML = re.compile(
    rb"(?:<\?xml[^>]*>|<!--.*?-->|<!DOCTYPE[^>\[]*>|\s)*+<(?:\w+:)?graphml\b", re.DOTALL
)


def is_graphml(data: bytes) -> bool:
    """Return whether the root of an XML text is ``graphml``."""
    return _GRAPHML.match(data[: 1 << 16]) is not None


def is_gml(data: bytes) -> bool:
    """Return whether a text begins as GML."""
    return _GML.match(data[: 1 << 16]) is not None


def parse(data: bytes, budget: Budget, options: Options, *, kind: str) -> Parsed:
    """Return the graph of a file of a kind, GraphML or GML.

    Nodes that are numbers, also as ``n0``, are vertices; others need `renumber`. A GML node is
    named by its label, if all have different ones, and is else the number of its id.
    """
    name = budget.name
    nx, stream = needed("nx", f"read: {name} is {kind}, and"), io.BytesIO(data)
    budget.require(_BYTES * len(data), "its elements", held=len(data))
    with reading.errors_named(f"read: {name}"):  # of XML, of GML, of numbers, of nesting
        G = nx.read_graphml(stream) if kind == "GraphML" else nx.read_gml(stream, label="id")
    weights = _weights(G, name)
    nodes, ids = _numbers(G, options, name)
    place = dict(zip(G, nodes.tolist(), strict=True))
    pairs = np.array([(place[u], place[v]) for u, v in G.edges()], np.int64).reshape(-1, 2)
    u, v = pairs[:, 0], pairs[:, 1]
    undirected = not G.is_directed()
    if undirected:  # parallel edges are summed, whichever end is first
        u, v = np.minimum(u, v), np.maximum(u, v)
    n = int(nodes.max(initial=-1)) + 1
    held = len(data) + 16 * len(u)
    edges = Edges(u, v, weights)
    return reading.graph_of(edges, budget, options, held=held, n=n, ids=ids, undirected=undirected)


def _weights(G: Any, name: str) -> Array | None:
    """Return the weight of each edge, 1 where it is missing; None if no edge has one."""
    found = [value for *_, value in G.edges(data="weight")]
    if all(value is None for value in found):
        return None
    try:
        values = np.array([_number(value) for value in found])
    except (ValueError, OverflowError):
        values = np.array([], object)
    if values.dtype.kind not in "biuf":
        raise FileFormatError(f"read: {name}: a weight is no number of 64 bits.")
    return values


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return 1 if value is None else value
    return int(value) if value.lstrip("+-").isdigit() else float(value)


def _numbers(G: Any, options: Options, name: str) -> tuple[Array, Array | None]:
    """Return the number of each node, and the ids if they are renumbered."""
    labels: list[Any] = list(dict(G.nodes(data="label")).values())
    named = None not in labels and len({*map(str, labels)}) == len(labels)
    words: list[Any] = list(G)
    if named and (options.renumber or reading.whole_numbers([*map(str, labels)]) is not None):
        words = [*map(str, labels)]
    if options.renumber:
        names = Names()
        numbers, _, ids = names.ordered(names.codes(words, len(words)), np.empty(0, np.int64))
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
    """Write nodes ``0 .. n-1``, and a weight for each edge unless all values are True.

    The graph is undirected if the matrix is symmetric.
    """
    nx = needed("nx", f"write: {kind}")
    memory.require(csc.nvals * 440 + csc.nrows * 750, "write", "Use .npz.")
    entries = [x.astype(np.int8) if x.dtype.kind == "b" else x for x in csc.entries()]
    G = graph(range(csc.nrows), entries, directed=asymmetry(csc) is not None)
    (nx.write_graphml if kind == "GraphML" else nx.write_gml)(G, file)
