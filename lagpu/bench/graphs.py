"""The graphs of a benchmark: named, generated or files; their columns, facts and roots."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu import algorithms, generators
from lagpu.backends.protocol import Backend
from lagpu.bench.harness import SEED, Array
from lagpu.catalog import FEW, RADIUS, SAMPLED, SOURCES
from lagpu.check import Pattern
from lagpu.core import Matrix
from lagpu.errors import InvalidValue
from lagpu.generators.load import Facts, load
from lagpu.io.csc import column_blocks

#: The graphs that are measured on a GPU by default; other scales are valid names too.
SUITE = (
    *("kron20e16", "kron22e16", "kron24e16", "urand22e16", "mycielskian17", "road2048"),
    "delaunay20",
)
#: The graphs that are measured by default where there is none: seconds on a CPU.
SMALL_SUITE = ("kron12e16", "urand12e16", "mycielskian11", "road64", "delaunay12")
LARGEST_WEIGHT = 255
_NO_EDGE = "bench: no vertex has an edge to another. Give another graph."


def require_graph(name: str, renumber: bool = False) -> None:
    """Check that a text names a file, or without `renumber` a generated graph."""
    if renumber and generators.is_spec(name):
        raise InvalidValue(f"--renumber: {name} is made, not read from a file. Leave it out.")
    if not (generators.is_spec(name) or Path(name).is_file()):
        raise InvalidValue(
            f"bench: there is no graph or file {name!r}. Use one of {', '.join(SUITE)}, "
            "a generated graph such as kron:16, or a file."
        )


@dataclass
class Summary:
    """Facts of a graph, which decide which algorithms are measured, and their arguments.

    `entries` are stored entries; `edges` counts an undirected edge once. If `connected`, each
    vertex reaches every other. A search from the vertex with most edges out has the largest level
    `depth`; it does not reach `outside` vertices. `sources` are random vertices that it reaches; in
    a directed graph the first one is where it begins.
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

    def __post_init__(self) -> None:
        self.source, self.target, self.radius = self.sources[0], self.sources[-1], RADIUS
        self.few, self.sampled = sorted(self.sources[:FEW]), min(SAMPLED, self.vertices)


@dataclass(frozen=True, eq=False)
class HostGraph:
    """The columns of a graph on the host; row i and column j are the edge i -> j.

    `facts` are `Facts`, with degrees, or of a graph from disk a `Summary`. Its edges have lengths,
    `weights`, 1 to 255 and the same in both directions.
    """

    col_ptr: Array
    row_idx: Array
    facts: Any
    weights: Any = None

    @classmethod
    def of(cls, A: Matrix) -> HostGraph:
        """Return the columns of a square matrix with at least one vertex."""
        if A.nrows != A.ncols or A.nrows == 0:
            raise InvalidValue(f"bench: the graph is {A.nrows} x {A.ncols}. Give a square matrix.")
        col_ptr, row_idx, _ = A._flushed().matrix_to_csc(A.data, narrow=True)
        if A.nrows < 2**31:
            row_idx = row_idx.astype(np.int32, copy=False)
        return cls(col_ptr, row_idx, Facts.of(A))

    @classmethod
    def read(cls, folder: Path) -> HostGraph:
        """Return the graph that `make` wrote; arrays are read on demand."""
        facts = Summary(**json.loads((folder / "facts.json").read_text("utf-8")))
        files = (folder / f"{name}.npy" for name in ("col_ptr", "row_idx", "weights"))
        col_ptr, row_idx, weights = (np.load(x, mmap_mode="r", allow_pickle=False) for x in files)
        return cls(col_ptr, row_idx, facts, weights)

    @property
    def columns(self) -> tuple[Array, Array]:
        return self.col_ptr, self.row_idx

    @cached_property
    def pattern(self) -> Pattern:
        """The columns as checkers take them, made once."""
        return Pattern(self.columns, self.facts.symmetric)

    @cached_property
    def rows(self) -> sp.csr_array:
        """The rows with the lengths or ones, which are the columns of a symmetric graph."""
        shape = (self.facts.vertices,) * 2
        ones = np.ones(len(self.row_idx), np.int8)
        parts = ones if self.weights is None else self.weights, self.row_idx, self.col_ptr
        if self.facts.symmetric:
            return sp.csr_array(parts, shape=shape)
        return sp.csc_array(parts, shape=shape).tocsr()

    def candidates(self, A: Matrix) -> Array:
        """Return the vertices of the largest component that have an edge to another."""
        candidates: Array = np.flatnonzero(self.facts.out_degree > self.facts.has_loop)
        labels = algorithms.connected_components(A).to_dense()[candidates]
        if labels.size:
            candidates = candidates[labels == np.bincount(labels).argmax()]
        return candidates


def drawn(candidates: Array, count: int, seed: int | None, refusal: str = _NO_EDGE) -> list[int]:
    """Return distinct random vertices of some; without any raise `InvalidValue`."""
    if not candidates.size:
        raise InvalidValue(refusal)
    rng = np.random.default_rng(SEED if seed is None else seed)
    return rng.choice(candidates, min(count, candidates.size), replace=False).tolist()


def make(
    graph: str, place: Backend, seed: int | None, folder: Path, renumber: bool = False
) -> Summary:
    """Make or read a graph, without its values, and write all that its measurement needs."""
    A = load(graph, place, seed=seed, renumber=renumber)
    host = HostGraph.of(A)
    known, n, acyclic = host.facts, A.nrows, False
    hub = int(np.argmax(known.out_degree - known.has_loop))
    reached, levels = algorithms.bfs_levels(A, hub).to_coo()
    sources = drawn(reached if len(reached) > 1 else reached[:0], SOURCES, seed)
    connected = len(reached) == n
    if not known.symmetric:
        sources = [hub, *(v for v in sources if v != hub)][:SOURCES]
        connected = connected and algorithms.bfs_levels(A.T.new(), hub).nvals == n
        if not known.has_loop.any():
            parts, _ = sp.csgraph.connected_components(host.rows, connection="strong")
            acyclic = bool(parts == n)
    facts = Summary(
        Path(graph).name, n, known.entries, known.edges, known.symmetric, acyclic, connected,
        int(levels.max()), n - len(reached), sources,
    )  # fmt: skip
    arrays = {"col_ptr": host.col_ptr, "row_idx": host.row_idx, "weights": _weights(*host.columns)}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    (folder / "facts.json").write_text(json.dumps(asdict(facts)), "utf-8")
    return facts


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
