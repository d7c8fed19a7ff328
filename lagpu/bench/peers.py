"""What is measured beside lagpu: other libraries, and recorded figures of other systems.

Each library gets its best form of the graph, untimed, and its result is converted to the form of
lagpu, untimed too, for comparison. A file of recorded figures has the form of a report of
``lagpu bench --json``, so an earlier report of lagpu, from another machine or commit, is one too.
What was not measured is null.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csgraph

from lagpu.bench.graphs import Columns
from lagpu.bench.harness import Array, Row
from lagpu.bench.questions import (
    FEW,
    PRODUCTS,
    RANK_ERROR,
    SAMPLED,
    SEED,
    Answer,
    Question,
    depths,
    factors,
    least_labels,
)
from lagpu.errors import (
    BackendUnavailable,
    FileFormatError,
    FileMissing,
    InvalidValue,
    NotSupported,
)
from lagpu.generators.spec import canonical

Found = tuple[Array, Array]  # vertices and their levels
Asked = tuple[Callable[[], Any], Callable[[Any], Answer]]  # what is timed, and reads its result


class Peer(NamedTuple):
    """A library.

    Attributes
    ----------
    module, package : str
        The name to import, and the name to install.
    open : callable
        Makes an object of a graph, which the questions get. A library with a search has its
        ``search(root)``, timed, and ``levels(root, found)``, which returns vertices and levels.
    output : str
        The result of its search, levels or parents; an empty string for a library without one.
    most_searched : float
        Most entries of a graph that it searches.
    questions : mapping
        What it answers of `lagpu.bench.questions`, by key.
    most : float
        Most entries of a graph about which it is asked these.
    cost : mapping
        The time of expensive questions, in searches.
    """

    module: str
    package: str
    open: Callable[[Any], Any]
    output: str = "levels"
    most_searched: float = float("inf")
    questions: Mapping[str, Callable[[Any], Asked]] = {}
    most: float = float("inf")
    cost: Mapping[str, float] = {}

    def why_not(self, key: str, entries: int) -> str:
        """Return why the library is not asked a question, or an empty string."""
        return "too large" if entries * self.cost.get(key, 1) > self.most else ""


class Opened:
    """A library with a graph, which answers questions about it."""

    place = None

    def __init__(self, name: str, graph: Columns) -> None:
        self._questions, self._graph = PEERS[name].questions, PEERS[name].open(graph)

    def prepare(self, question: Question) -> Asked:
        """Return the function to time, and the reader of its result."""
        return self._questions[question.key](self._graph)


def searching() -> tuple[str, ...]:
    """Return the libraries that have a search."""
    return tuple(name for name, peer in PEERS.items() if peer.output)


def answering() -> tuple[str, ...]:
    """Return the libraries that answer questions."""
    return tuple(name for name, peer in PEERS.items() if peer.questions)


def chosen(names: Sequence[str], among: Sequence[str] = ()) -> list[str]:
    """Return the requested libraries, by default of `searching`; ``all`` means all installed.

    Raises
    ------
    InvalidValue
        For an unknown name; the message lists the valid ones.
    BackendUnavailable
        If a named library is not installed.
    """
    found: list[str] = []
    known = among or searching()
    for name in (part for text in names for part in text.split(",")):
        if name == "all":
            found += [peer for peer in known if _installed(peer)]
        elif name not in known:
            raise InvalidValue(
                f"--peers: there is no {name!r}. Use all or some of {', '.join(known)}."
            )
        elif not _installed(name):
            package = PEERS[name].package
            raise BackendUnavailable(
                f"--peers: {name} is missing. Install it with: pip install {package}"
            )
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def versions(names: Sequence[str]) -> dict[str, str | None]:
    """Return the versions of some libraries."""
    return {name: _version(PEERS[name]) for name in names}


def _version(peer: Peer) -> str | None:
    """Return the version of a library; the names of some packages depend on that of CUDA."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(peer.package)
    with contextlib.suppress(Exception):  # installed, but broken
        return getattr(importlib.import_module(peer.module), "__version__", None)
    return None


def _installed(name: str) -> bool:
    return importlib.util.find_spec(PEERS[name].module) is not None


def _number(x: Any) -> Answer:
    return Answer(np.array([x]))


# ------------------------------------------------------------------------------------ SciPy


class _SciPy:
    def __init__(self, graph: Columns) -> None:
        self.facts = graph.facts
        self.lengths = graph.rows.astype(float)  # the type of SciPy, so that no call converts

    def search(self, root: int) -> Any:
        return csgraph.breadth_first_order(self.lengths, root)

    def levels(self, root: int, found: Found) -> Found:
        order, parents = found
        return order, depths(_own(parents, root))[order]

    def components(self, **how: Any) -> Asked:
        run = csgraph.connected_components
        return lambda: run(self.lengths, **how), lambda found: Answer(least_labels(found[1]))


def _own(parents: Array, source: int) -> Array:
    """Return parents with the source as its own parent, and -1 for none."""
    found = np.where(parents >= 0, parents, -1)
    found[source] = source
    return found


_SCIPY: dict[str, Callable[[_SciPy], Asked]] = {
    "bfs_parents": lambda L: (
        lambda: L.search(L.facts.source),
        lambda found: Answer(depths(_own(found[1], L.facts.source))),
    ),
    "delta_stepping": lambda L: (
        lambda: csgraph.dijkstra(L.lengths, indices=L.facts.source),
        lambda d: Answer(np.where(np.isinf(d), -1, d)),
    ),
    "connected_components fastsv": lambda L: L.components(directed=not L.facts.symmetric),
    "strongly_connected_components": lambda L: L.components(connection="strong"),
}

# --------------------------------------------------------------------------------- NetworkX


class _NetworkX:
    def __init__(self, graph: Columns) -> None:
        import networkx

        self.nx: Any = networkx
        self.facts, self._rows = graph.facts, graph.rows.tocoo()
        self.n = self.facts.vertices
        self.G = self._made(undirected=self.facts.symmetric)

    def _made(self, undirected: bool) -> Any:
        (i, j), values = self._rows.coords, self._rows.data
        if undirected:  # each edge once
            once = i <= j
            i, j, values = i[once], j[once], values[once]
        G = self.nx.Graph() if undirected else self.nx.DiGraph()
        G.add_nodes_from(range(self.n))
        G.add_weighted_edges_from(zip(i.tolist(), j.tolist(), values.tolist(), strict=True))
        return G

    def search(self, root: int) -> dict[int, int]:
        found: dict[int, int] = self.nx.single_source_shortest_path_length(self.G, root)
        return found

    def levels(self, _root: int, found: dict[int, int]) -> Found:
        return np.array(list(found)), np.array(list(found.values()))

    @cached_property
    def directed(self) -> Any:
        return self._made(undirected=False) if self.facts.symmetric else self.G

    @cached_property
    def simple(self) -> Any:
        """The graph without self-loops."""
        loops = list(self.nx.selfloop_edges(self.G))
        G = self.G.copy() if loops else self.G
        G.remove_edges_from(loops)
        return G

    @cached_property
    def above(self) -> Any:
        """The acyclic graph."""
        D = self.directed
        if self.facts.acyclic:
            return D
        found = D.edge_subgraph([(u, v) for u, v in D.edges if u < v]).copy()
        found.add_nodes_from(range(self.n))
        return found

    @property
    def few(self) -> list[int]:
        return sorted(self.facts.sources[:FEW])

    def asked(self, name: str, read: Callable[[Any], Answer], *more: Any, **how: Any) -> Asked:
        """Ask a function about the graph, an iterator as a list."""
        function, graph = getattr(self.nx, name), how.pop("graph", self.G)
        listed = how.pop("listed", False)

        def run() -> Any:
            found = function(graph, *more, **how)
            return list(found) if listed else found

        return run, read

    def dense(self, found: Mapping[int, Any], fill: Any = -1) -> Answer:
        values = np.full(self.n, fill, np.array(list(found.values())).dtype)
        values[list(found)] = list(found.values())
        return Answer(values)

    def tree(self, edges: Iterable[tuple[int, int]]) -> Answer:
        parents = np.full(self.n, -1)
        for parent, v in edges:
            parents[v] = parent
        return Answer(depths(_own(parents, self.facts.source)))

    def sets(self, label: Callable[[int, Any], int]) -> Callable[[Iterable[Any]], Answer]:
        """Return the reader of sets of vertices, which have the label of their number and set."""

        def read(found: Iterable[Any]) -> Answer:
            labels = np.empty(self.n, np.int64)
            for k, vertices in enumerate(found):
                labels[list(vertices)] = label(k, vertices)
            return Answer(labels)

        return read

    def some(self, found: Mapping[int, Any]) -> Answer:
        return Answer(np.array([found[v] for v in self.few]))


def _least(_k: int, part: set[int]) -> int:
    return min(part)


_NETWORKX: dict[str, Callable[[_NetworkX], Asked]] = {
    "bfs_levels": lambda L: (lambda: dict(L.search(L.facts.source)), L.dense),
    "bfs_parents": lambda L: L.asked("bfs_edges", L.tree, L.facts.source, listed=True),
    "shortest_path": lambda L: L.asked(
        "shortest_path", lambda route: _number(len(route)), L.facts.source, L.facts.target
    ),
    "pagerank": lambda L: L.asked(
        "pagerank", lambda found: L.dense(found, 0.0), tol=RANK_ERROR / L.n, max_iter=1000,
        weight=None,
    ),
    "connected_components bfs": lambda L: L.asked(
        f"{'' if L.facts.symmetric else 'weakly_'}connected_components", L.sets(_least), listed=True
    ),
    "strongly_connected_components": lambda L: L.asked(
        "strongly_connected_components", L.sets(_least), graph=L.directed, listed=True
    ),
    "bipartite_sides": lambda L: L.asked("is_bipartite", _number),
    "core_number": lambda L: L.asked("core_number", L.dense, graph=L.simple),
    "topological_levels": lambda L: L.asked(
        "topological_generations", L.sets(lambda k, _: k), graph=L.above, listed=True
    ),
    f"closeness_centrality {FEW} vertices": lambda L: (
        lambda: {v: L.nx.closeness_centrality(L.G, v) for v in L.few}, L.some
    ),
    f"harmonic_centrality {FEW} vertices": lambda L: L.asked("harmonic_centrality", L.some, L.few),
    f"eccentricity {FEW} vertices": lambda L: L.asked("eccentricity", L.some, L.few),
    f"betweenness_centrality {SAMPLED} sources": lambda L: L.asked(
        "betweenness_centrality", L.dense, min(SAMPLED, L.n), seed=SEED
    ),
    "bellman_ford": lambda L: L.asked(
        "single_source_bellman_ford_path_length", L.dense, L.facts.source
    ),
    "delta_stepping": lambda L: L.asked(
        "single_source_dijkstra_path_length", L.dense, L.facts.source
    ),
    "triangle_count": lambda L: L.asked(
        "triangles", lambda found: _number(sum(found.values()) // 3), graph=L.simple
    ),
    "diameter": lambda L: L.asked("diameter", _number, usebounds=L.facts.symmetric),
}  # fmt: skip

# ------------------------------------------------------- python-graphblas, igraph, NetworKit


def graphblas_levels(A: Any, source: int) -> Any:
    """Search by the loop of lagpu on python-graphblas objects; return levels."""
    import graphblas as gb

    any_pair = gb.semiring.any_pair
    levels = gb.Vector("INT32", A.nrows)
    frontier = gb.Vector("BOOL", A.nrows)
    frontier[source] = True
    depth = 0
    while frontier.nvals:
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << any_pair(frontier @ A)
        depth += 1
    return levels


class _GraphBLAS:
    def __init__(self, graph: Columns) -> None:
        from graphblas import Matrix

        rows, n = graph.rows, graph.facts.vertices
        self._A = Matrix.from_csr(rows.indptr, rows.indices, True, ncols=n)

    def search(self, root: int) -> Any:
        return graphblas_levels(self._A, root)

    def levels(self, _root: int, found: Any) -> Found:
        return found.to_coo()  # type: ignore[no-any-return]


def _ends(graph: Columns) -> tuple[Array, Array]:
    """Return (sources, targets) of the edges; of a symmetric graph each edge once."""
    i, j = graph.rows.tocoo().coords
    if not graph.facts.symmetric:
        return i, j
    once = i <= j
    return i[once], j[once]


class _IGraph:
    def __init__(self, graph: Columns) -> None:
        import igraph

        facts, ends = graph.facts, np.column_stack(_ends(graph))
        self._G = igraph.Graph(n=facts.vertices, edges=ends, directed=not facts.symmetric)

    def search(self, root: int) -> Any:
        return self._G.bfs(root, mode="out")

    def levels(self, _root: int, found: Any) -> Found:
        vertices, starts, _ = found
        return np.array(vertices), np.repeat(np.arange(len(starts) - 1), np.diff(starts))


class _NetworKit:
    def __init__(self, graph: Columns) -> None:
        import networkit

        self._nk: Any = networkit
        ends = tuple(part.astype(np.uint64) for part in _ends(graph))
        self._n, directed = graph.facts.vertices, not graph.facts.symmetric
        self._G = self._nk.GraphFromCoo((np.ones(len(ends[0])), ends), self._n, False, directed)

    def search(self, root: int) -> Any:
        found = self._nk.distance.BFS(self._G, root, storePaths=False)
        found.run()
        return found

    def levels(self, _root: int, found: Any) -> Found:
        distances = np.asarray(found.getDistances())
        reached = np.flatnonzero(distances < self._n)
        return reached, distances[reached].astype(np.int64)


# ------------------------------------------------------------------------------ pylibcugraph


class _CuGraph:
    def __init__(self, graph: Columns) -> None:
        import cupy
        import pylibcugraph

        self.cp, self.plc = cupy, pylibcugraph
        self.facts, self._rows = graph.facts, graph.rows
        self._handle = self.plc.ResourceHandle()
        degrees = np.diff(self._rows.indptr)
        self._sources = np.repeat(np.arange(self.facts.vertices, dtype=np.int32), degrees)
        self.plain = self.graph()

    def graph(self, *, weighted: bool = False, by_target: bool = False) -> Any:
        properties = self.plc.GraphProperties(
            is_symmetric=self.facts.symmetric, is_multigraph=False
        )
        weights = self.cp.asarray(self._rows.data.astype(np.float64)) if weighted else None
        return self.plc.SGGraph(
            self._handle,
            properties,
            self.cp.asarray(self._sources),
            self.cp.asarray(self._rows.indices.astype(np.int32, copy=False)),
            weight_array=weights,
            store_transposed=by_target,
            renumber=False,
            do_expensive_check=False,
        )

    def call(self, name: str, *more: Any) -> Any:
        found = getattr(self.plc, name)(self._handle, *more)
        self.cp.cuda.get_current_stream().synchronize()
        return found

    def search(self, root: int) -> Any:
        sources = self.cp.asarray(np.array([root], np.int32))
        return self.call("bfs", self.plain, sources, self.facts.symmetric, -1, False, False)

    def levels(self, _root: int, found: Any) -> Found:
        dense = self.reached(found[2], found[0]).same
        vertices = np.flatnonzero(dense >= 0)
        return vertices, dense[vertices].astype(np.int64)

    def in_order(self, vertices: Any, values: Any) -> Array:
        values = self.cp.asnumpy(values)
        dense = np.empty(self.facts.vertices, values.dtype)
        dense[self.cp.asnumpy(vertices)] = values
        return dense

    def reached(self, vertices: Any, values: Any) -> Answer:
        dense = self.in_order(vertices, values)
        of = np.iinfo if np.issubdtype(dense.dtype, np.integer) else np.finfo
        return Answer(np.where(dense == of(dense.dtype).max, -1, dense))

    def asked(self, name: str, read: Callable[[Any], Answer], *more: Any) -> Asked:
        """Ask a function about the graph, which must be undirected and without self-loops."""
        if not self.facts.symmetric or self._rows.diagonal().any():  # weights are above 0
            raise NotSupported(f"{name}: needs an undirected graph without self-loops.")
        return lambda: self.call(name, self.plain, *more), read


def _lengths(L: _CuGraph) -> Asked:
    graph = L.graph(weighted=True)
    return (
        lambda: L.call("sssp", graph, L.facts.source, np.inf, True, False),
        lambda found: L.reached(found[0], found[1]),
    )


def _ranks(L: _CuGraph) -> Asked:
    how = None, None, None, None, 0.85, RANK_ERROR / L.facts.vertices, 1000, False
    graph = L.graph(by_target=True)
    return (
        lambda: L.call("pagerank", graph, *how),
        lambda found: Answer(L.in_order(*found[:2])),
    )


_CUGRAPH: dict[str, Callable[[_CuGraph], Asked]] = {
    "bfs_levels": lambda L: (
        lambda: L.search(L.facts.source),
        lambda found: L.reached(found[2], found[0]),
    ),
    "delta_stepping": _lengths,
    "pagerank": _ranks,
    "connected_components fastsv": lambda L: L.asked(
        "weakly_connected_components",
        lambda found: Answer(least_labels(L.in_order(*found))),
        *(None, None, None, None, False),
    ),
    "core_number": lambda L: L.asked(
        "core_number", lambda found: Answer(L.in_order(*found)), "incoming", False
    ),
    "triangle_count": lambda L: L.asked(
        "triangle_count", lambda found: _number(int(L.cp.asnumpy(found[1]).sum()) // 3), None, False
    ),
}

# --------------------------------------------------------------------------------- cuSPARSE


class _CuSparse:
    def __init__(self, graph: Columns) -> None:
        import cupy
        from cupyx import cusparse
        from cupyx.scipy.sparse import csr_matrix

        self._cp, self._cusparse, self._csr = cupy, cusparse, csr_matrix
        self._graph, n = graph, graph.facts.vertices
        self._ptr, self._idx = (
            self._cp.asarray(part.astype(np.int32, copy=False)) for part in graph.columns
        )
        self._x, self._y = self._cp.asarray(factors(n)), self._cp.zeros(n, np.float32)

    def product(self, name: str) -> Asked:
        """Multiply by rows, which are the columns of a symmetric matrix."""
        n, given = len(self._x), self._graph
        # It has no product without values.
        ones = name == "plus_second"
        values = np.ones(len(given.row_idx)) if ones else given.values
        made = self._cp.asarray(values.astype(np.float32))
        rows = self._csr((made, self._idx, self._ptr), shape=(n, n))

        def run() -> Any:
            self._cusparse.spmv(rows, self._x, y=self._y)
            self._cp.cuda.get_current_stream().synchronize()
            return self._y

        return run, lambda found: Answer(self._cp.asnumpy(found))


def _product(name: str) -> Callable[[_CuSparse], Asked]:
    return lambda L: L.product(name)


PEERS = {
    "scipy": Peer("scipy", "scipy", _SciPy, "parents", questions=_SCIPY),
    "networkx": Peer(
        "networkx", "networkx", _NetworkX, most_searched=4e6, questions=_NETWORKX,
        most=1e6,  # NetworkX takes seconds to read so many entries, and about one for a search
        cost={"diameter": 50, f"betweenness_centrality {SAMPLED} sources": 2.0},
    ),
    "python-graphblas": Peer("graphblas", "python-graphblas", _GraphBLAS, most_searched=1e9),
    "igraph": Peer("igraph", "igraph", _IGraph),
    "networkit": Peer("networkit", "networkit", _NetworKit),
    "pylibcugraph": Peer("pylibcugraph", "pylibcugraph-cu13", _CuGraph, questions=_CUGRAPH),
    "cusparse": Peer(
        "cupyx", "cupy-cuda13x", _CuSparse, output="",
        questions={f"product {name} FP32": _product(name) for name in PRODUCTS},
    ),
}  # fmt: skip

# -------------------------------------------------------------------------- recorded figures

_TEXTS = ("graph", "backend", "output")
_NUMBERS = (
    *("roots", "max_ms", "wall_median_ms", "first_ms", "q1_ms", "q3_ms", "gteps", "bytes"),
    *("vertices", "edges"),
)
_REST = {"mode": "recorded"} | dict.fromkeys(
    ("kernel", "policy", "orientation", *_NUMBERS, "checked")
)


def is_file(name: str) -> bool:
    """Return True if a text of ``--peers`` is meant as a file."""
    return name.endswith(".json")


def recorded(path: str) -> list[Row]:
    """Return the rows of a file, each with all fields of a report.

    Raises
    ------
    FileMissing
        If there is no such file, or it cannot be read.
    FileFormatError
        If it does not have the form of a report.
    """
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise FileMissing(f"--peers: {path}: {error.strerror}. Check the name.") from error
    except (ValueError, RecursionError):
        found = None
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(map(_is_row, rows)):
        raise FileFormatError(
            f"--peers: {path} is no report of lagpu bench. Give one whose rows have graph, "
            "backend, output and median_ms, as `lagpu bench --json` writes it."
        )
    return [_REST | row for row in rows]


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(name), str) for name in _TEXTS)
        and all(isinstance(row.get(name), str | None) for name in ("mode", "kernel", "policy"))
        and row.get("checked") in (True, False, None)
        and _is_time(row.get("median_ms"))
        and all(row.get(name) is None or _is_time(row[name]) for name in _NUMBERS)
    )


def _is_time(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and x >= 0


def recorded_for(
    files: Iterable[str], graphs: Sequence[str], outputs: Sequence[str]
) -> Iterable[Row]:
    """Return the rows of some files that fit graphs and outputs, under the names given here.

    Raises
    ------
    InvalidValue
        If a file has no row that fits.
    """
    wanted = {canonical(name): name for name in graphs}
    found: list[Row] = []
    for file in files:
        rows = recorded(file)
        fit = [
            row | {"graph": wanted[canonical(row["graph"])]}
            for row in rows
            if canonical(row["graph"]) in wanted and row["output"] in outputs
        ]
        if not fit:
            known = ", ".join(dict.fromkeys(f"{row['graph']} ({row['output']})" for row in rows))
            raise InvalidValue(
                f"--peers: {file} has none of {', '.join(graphs)} for {', '.join(outputs)}. "
                f"It has {known or 'no row'}."
            )
        found += fit
    return found
