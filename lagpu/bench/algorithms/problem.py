"""A graph on disk, as every system reads it: columns, weights, sources and facts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu import algorithms
from lagpu.backends.protocol import Backend
from lagpu.bench.graphs import HostGraph
from lagpu.core.matrix import Matrix
from lagpu.errors import InvalidValue
from lagpu.generators.load import load
from lagpu.io.csc import column_blocks

__all__ = ["Facts", "Problem", "make"]

Array = np.ndarray[Any, Any]

SOURCES = 8
LARGEST_WEIGHT = 255
_SEED = 7


@dataclass(frozen=True)
class Facts:
    """Facts of a graph, which decide which algorithms are measured, and from which sources.

    Attributes
    ----------
    graph : str
        Name of the graph.
    vertices, entries, edges : int
        Rows of the matrix, stored entries, and edges, where an undirected edge counts once.
    symmetric, acyclic, connected : bool
        Properties of the pattern; connected means that each vertex reaches every other.
    depth : int
        Largest level of a search from the vertex with most edges out.
    outside : int
        Number of vertices that this search does not reach.
    sources : list of int
        Distinct random vertices that this search reaches. In a directed graph the first one is the
        source of the search, since the others may not reach each other.
    """

    graph: str
    vertices: int
    entries: int
    edges: int
    symmetric: bool
    acyclic: bool
    connected: bool
    depth: int
    outside: int
    sources: list[int]

    @property
    def source(self) -> int:
        """The source of searches from one vertex."""
        return self.sources[0]

    @property
    def target(self) -> int:
        """The end of the path from `source`."""
        return self.sources[-1]


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph as arrays, row i and column j being the edge i -> j.

    Attributes
    ----------
    facts : Facts
        Facts of the graph.
    col_ptr, row_idx : ndarray of int, (n + 1,) and (m,)
        The columns.
    weights : ndarray of UINT8, (m,)
        The length of each edge, 1 to 255, the same in both directions.
    """

    facts: Facts
    col_ptr: Array
    row_idx: Array
    weights: Array

    @classmethod
    def read(cls, folder: Path) -> Problem:
        """Return the problem that `make` wrote; arrays are read on demand."""
        facts = Facts(**json.loads((folder / "facts.json").read_text("utf-8")))
        names = ("col_ptr", "row_idx", "weights")
        files = (folder / f"{name}.npy" for name in names)
        return cls(facts, *(np.load(file, mmap_mode="r", allow_pickle=False) for file in files))

    @property
    def columns(self) -> tuple[Array, Array]:
        """The pair ``(col_ptr, row_idx)``, as checkers take it."""
        return self.col_ptr, self.row_idx

    @cached_property
    def rows(self) -> sp.csr_array:
        """The rows with the weights, which are the columns of a symmetric graph."""
        n = self.facts.vertices
        parts = self.weights, self.row_idx, self.col_ptr
        if self.facts.symmetric:
            return sp.csr_array(parts, shape=(n, n))
        return sp.csc_array(parts, shape=(n, n)).tocsr()

    def has_edge(self, i: int, j: int) -> bool:
        """Whether there is an edge i -> j."""
        column = self.row_idx[self.col_ptr[j] : self.col_ptr[j + 1]]
        k = int(np.searchsorted(column, i))
        return k < len(column) and int(column[k]) == i


def make(
    graph: str, place: Backend, seed: int | None, folder: Path, renumber: bool = False
) -> Facts:
    """Make or read a graph, and write all data for its measurement to a folder.

    Parameters
    ----------
    graph : str
        A name for `lagpu.bench.graphs.load`; values in a file are ignored.
    place : Backend
        The backend on which the graph is made, and searched once.
    seed : int, optional
        Seed of a generated graph and of the choice of sources.
    folder : Path
        The folder of the files.
    renumber : bool
        As in `lagpu.generators.load.load`.

    Raises
    ------
    InvalidValue
        If the matrix is not square, or no vertex reaches another one.
    """
    A = load(graph, place, seed=seed, renumber=renumber)
    host = HostGraph.of(A)
    facts = _facts(Path(graph).name, A, host, _SEED if seed is None else seed)
    np.save(folder / "col_ptr.npy", host.col_ptr, allow_pickle=False)
    np.save(folder / "row_idx.npy", host.row_idx, allow_pickle=False)
    np.save(folder / "weights.npy", _weights(host.col_ptr, host.row_idx), allow_pickle=False)
    (folder / "facts.json").write_text(json.dumps(asdict(facts)), "utf-8")
    return facts


def _facts(graph: str, A: Matrix, host: HostGraph, seed: int) -> Facts:
    known = host.facts
    hub = int(np.argmax(known.out_degree - known.has_loop))
    reached, levels = algorithms.bfs_levels(A, hub).to_coo()
    n = known.vertices
    if len(reached) < 2:
        raise InvalidValue("bench: no vertex has an edge to another. Give another graph.")
    connected = len(reached) == n
    if connected and not known.symmetric:
        connected = algorithms.bfs_levels(A.T.new(), hub).nvals == n
    drawn: list[int] = (
        np.random.default_rng(seed)
        .choice(reached, min(SOURCES, len(reached)), replace=False)
        .tolist()
    )
    if not known.symmetric:
        drawn = [hub, *(v for v in drawn if v != hub)][:SOURCES]
    return Facts(
        graph=graph,
        vertices=n,
        entries=known.entries,
        edges=known.edges,
        symmetric=known.symmetric,
        acyclic=not known.symmetric and not known.has_loop.any() and _is_acyclic(host),
        connected=connected,
        depth=int(levels.max()),
        outside=n - len(reached),
        sources=drawn,
    )


def _is_acyclic(host: HostGraph) -> bool:
    n = host.facts.vertices
    ones = np.ones(len(host.row_idx), np.int8)
    columns = sp.csc_array((ones, host.row_idx, host.col_ptr), shape=(n, n))
    parts, _ = sp.csgraph.connected_components(columns, directed=True, connection="strong")
    return bool(parts == n)


def _weights(col_ptr: Array, row_idx: Array) -> Array:
    """Return a length for each edge, a hash of its two ends that ignores the direction."""
    # Multiplicative hashing by the golden ratio: Knuth, volume 3, section 6.4.
    weights = np.empty(len(row_idx), np.uint8)
    widths = np.diff(col_ptr)
    for first, last in column_blocks(col_ptr):
        rows = row_idx[col_ptr[first] : col_ptr[last]].astype(np.uint64)
        cols = np.repeat(np.arange(first, last, dtype=np.uint64), widths[first:last])
        low, high = np.minimum(rows, cols), np.maximum(rows, cols)
        mixed = (low * np.uint64(0x9E3779B1) + high) * np.uint64(0x9E3779B97F4A7C15)
        drawn = (mixed >> np.uint64(40)) % np.uint64(LARGEST_WEIGHT)
        weights[col_ptr[first] : col_ptr[last]] = drawn + np.uint64(1)
    return weights
