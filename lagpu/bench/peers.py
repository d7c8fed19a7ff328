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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csgraph

from lagpu import errors
from lagpu.bench.graphs import HostGraph
from lagpu.bench.harness import Array, Row
from lagpu.catalog import FEW, PRODUCTS, RANK_ERROR, SAMPLED, Algorithm, Answer, depths, factors
from lagpu.generators.load import canonical
from lagpu.versions import version

_SAMPLE = f"betweenness_centrality {SAMPLED} sources"
Found = tuple[Array, Array]  # vertices and their levels
Asked = tuple[Callable[[], Any], Callable[[Any], Answer]]  # what is timed, and reads its result


class Peer(NamedTuple):
    """A library: the name to import, the name to install, and what it does.

    `open` makes an object of a graph. A library with a search, which finds an `output`, has its
    ``search(root)``, timed, and ``levels(root, found)``, which returns vertices and levels. One
    that answers the questions of some `keys` has ``prepare(question)``, which returns the function
    to time and the reader of its result. `most_searched` and `most` are the most entries of a graph
    for either, and `cost` is the time of expensive questions, in searches.
    """

    module: str
    package: str
    open: Callable[[Any], Any]
    output: str = "levels"
    most_searched: float = float("inf")
    keys: Collection[str] = ()
    most: float = float("inf")
    cost: Mapping[str, float] = {}

    def why_not(self, key: str, entries: int) -> str:
        return "too large" if entries * self.cost.get(key, 1) > self.most else ""


def chosen(names: Sequence[str], among: Sequence[str] = ()) -> list[str]:
    """Return the requested libraries, of those that search; ``all`` means all installed."""
    found: list[str] = []
    known = among or [name for name, peer in PEERS.items() if peer.output]
    for name in (part for text in names for part in text.split(",")):
        if name == "all":
            found += [peer for peer in known if _installed(peer)]
        elif name not in known:
            remedy = f"Use all or some of {', '.join(known)}."
            raise errors.InvalidValue(f"--peers: there is no {name!r}. {remedy}")
        elif not _installed(name):
            remedy = f"Install it with: pip install {PEERS[name].package}"
            raise errors.BackendUnavailable(f"--peers: {name} is missing. {remedy}")
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def versions(names: Sequence[str]) -> dict[str, str | None]:
    """Return the versions of some libraries; the names of some packages depend on that of CUDA."""
    found: dict[str, str | None] = {}
    for name in names:
        found[name] = version(PEERS[name].package)
        if found[name] is None:
            with contextlib.suppress(Exception):  # installed, but broken
                found[name] = importlib.import_module(PEERS[name].module).__version__
    return found


def _installed(name: str) -> bool:
    return importlib.util.find_spec(PEERS[name].module) is not None


class _SciPy:
    def __init__(self, graph: HostGraph) -> None:
        self._facts = graph.facts
        self._lengths = graph.rows.astype(float)  # the type of SciPy, so that no call converts

    def search(self, root: int) -> Any:
        return csgraph.breadth_first_order(self._lengths, root)

    def levels(self, root: int, found: Found) -> Found:
        order, parents = found
        return order, _depths(parents, root)[order]

    def prepare(self, question: Algorithm) -> Asked:
        source = self._facts.source
        if question.key == "bfs_parents":
            return lambda: self.search(source), lambda found: Answer(_depths(found[1], source))
        if question.key == "delta_stepping":
            return (
                lambda: csgraph.dijkstra(self._lengths, indices=source),
                lambda d: Answer(np.where(np.isinf(d), -1, d)),
            )
        how: dict[str, Any] = {"directed": not self._facts.symmetric}
        if question.key == "strongly_connected_components":
            how = {"connection": "strong"}
        return (
            lambda: csgraph.connected_components(self._lengths, **how),
            lambda found: Answer(least_labels(found[1])),
        )


def least_labels(labels: Array) -> Array:
    """Return for each vertex the least vertex with the same label."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    return first[which]


def _depths(parents: Array, source: int) -> Array:
    """Return depths in a tree whose source has no parent, which is a negative number."""
    found = np.where(parents >= 0, parents, -1)
    found[source] = source
    return depths(found)


class _NetworkX:
    def __init__(self, graph: HostGraph) -> None:
        import networkx

        self._nx: Any = networkx
        self._facts, self._rows = graph.facts, graph.rows
        self.whole = self._made(undirected=self._facts.symmetric)

    def _made(self, undirected: bool) -> Any:
        G = self._nx.Graph() if undirected else self._nx.DiGraph()
        G.add_nodes_from(range(self._facts.vertices))
        edges = (x.tolist() for x in _edges(self._rows, undirected))
        G.add_weighted_edges_from(zip(*edges, strict=True))
        return G

    @cached_property
    def directed(self) -> Any:
        return self._made(undirected=False) if self._facts.symmetric else self.whole

    @cached_property
    def simple(self) -> Any:
        loops = list(self._nx.selfloop_edges(self.whole))
        G = self.whole.copy() if loops else self.whole
        G.remove_edges_from(loops)
        return G

    @cached_property
    def acyclic(self) -> Any:
        D = self.directed
        if self._facts.acyclic:
            return D
        found = D.edge_subgraph([(u, v) for u, v in D.edges if u < v]).copy()
        found.add_nodes_from(D)
        return found

    def search(self, root: int) -> Any:
        return self._nx.single_source_shortest_path_length(self.whole, root)

    def levels(self, _root: int, found: dict[int, int]) -> Found:
        return np.array(list(found)), np.array(list(found.values()))

    def prepare(self, question: Algorithm) -> Asked:
        facts = self._facts
        name, read, graph = _NETWORKX[question.key]
        G, given = getattr(self, graph), question.arguments(facts)
        how = {
            "pagerank": {"tol": RANK_ERROR / facts.vertices, "max_iter": 1000, "weight": None},
            "betweenness_centrality": question.options,
            "diameter": {"usebounds": facts.symmetric},
        }.get(name, {})
        if name == "connected_components" and not facts.symmetric:
            name = f"weakly_{name}"
        function = getattr(self._nx, name)

        def run() -> Any:
            if name == "closeness_centrality":
                return {v: function(G, v) for v in given[0]}
            found = function(G, *given, **how)
            return list(found) if isinstance(found, Iterator) else found

        return run, lambda found: Answer(read(found, facts))


def _vertices(found: Mapping[int, Any], facts: Any, fill: Any = -1) -> Array:
    values = np.full(facts.vertices, fill, np.array(list(found.values())).dtype)
    values[list(found)] = list(found.values())
    return values


def _tree(edges: Iterable[tuple[int, int]], facts: Any) -> Array:
    parents = {v: parent for parent, v in edges}
    return _depths(_vertices(parents | {facts.source: -1}, facts), facts.source)


def _parts(found: Iterable[set[int]], facts: Any) -> Array:
    return least_labels(_generations(found, facts))


def _generations(found: Iterable[Iterable[int]], facts: Any) -> Array:
    return _vertices({v: level for level, part in enumerate(found) for v in part}, facts)


def _few(found: Mapping[int, Any], facts: Any) -> Array:
    return np.array([found[v] for v in facts.few])


def _number(x: Any, _facts: Any = None) -> Array:
    return np.array([x])


#: The function of NetworkX, the reader of its result, and the graph, by the key of a question.
_NETWORKX: dict[str, tuple[str, Callable[[Any, Any], Array], str]] = {
    "bfs_levels": ("single_source_shortest_path_length", _vertices, "whole"),
    "bfs_parents": ("bfs_edges", _tree, "whole"),
    "shortest_path": ("shortest_path", lambda route, _: _number(len(route)), "whole"),
    "pagerank": ("pagerank", lambda found, facts: _vertices(found, facts, 0.0), "whole"),
    "connected_components bfs": ("connected_components", _parts, "whole"),
    "strongly_connected_components": ("strongly_connected_components", _parts, "directed"),
    "bipartite_sides": ("is_bipartite", _number, "whole"),
    "core_number": ("core_number", _vertices, "simple"),
    "topological_levels": ("topological_generations", _generations, "acyclic"),
    f"closeness_centrality {FEW} vertices": ("closeness_centrality", _few, "whole"),
    f"harmonic_centrality {FEW} vertices": ("harmonic_centrality", _few, "whole"),
    f"eccentricity {FEW} vertices": ("eccentricity", _few, "whole"),
    _SAMPLE: ("betweenness_centrality", _vertices, "whole"),
    "bellman_ford": ("single_source_bellman_ford_path_length", _vertices, "whole"),
    "delta_stepping": ("single_source_dijkstra_path_length", _vertices, "whole"),
    "triangle_count": ("triangles", lambda of, _: _number(sum(of.values()) // 3), "simple"),
    "diameter": ("diameter", _number, "whole"),
}


class _GraphBLAS:
    def __init__(self, graph: HostGraph) -> None:
        import graphblas

        self._gb: Any = graphblas
        rows, n = graph.rows, graph.facts.vertices
        self._A = graphblas.Matrix.from_csr(rows.indptr, rows.indices, True, ncols=n)

    def search(self, root: int) -> Any:
        any_pair, n = self._gb.semiring.any_pair, self._A.nrows
        levels, frontier = self._gb.Vector("INT32", n), self._gb.Vector("BOOL", n)
        frontier[root] = True
        depth = 0
        while frontier.nvals:
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True) << any_pair(frontier @ self._A)
            depth += 1
        return levels

    def levels(self, _root: int, found: Any) -> Found:
        return found.to_coo()


def _edges(rows: Any, symmetric: bool) -> tuple[Array, Array, Array]:
    """Return (sources, targets, values) of the edges; of a symmetric graph each edge once."""
    (i, j), values = rows.tocoo().coords, rows.data
    once = i <= j if symmetric else slice(None)
    return i[once], j[once], values[once]


class _IGraph:
    def __init__(self, graph: HostGraph) -> None:
        import igraph

        facts = graph.facts
        ends = np.column_stack(_edges(graph.rows, facts.symmetric)[:2])
        self._G = igraph.Graph(n=facts.vertices, edges=ends, directed=not facts.symmetric)

    def search(self, root: int) -> Any:
        return self._G.bfs(root, mode="out")

    def levels(self, _root: int, found: Any) -> Found:
        vertices, starts, _ = found
        return np.array(vertices), np.repeat(np.arange(len(starts) - 1), np.diff(starts))


class _NetworKit:
    def __init__(self, graph: HostGraph) -> None:
        import networkit

        self._nk: Any = networkit
        self._n, directed = graph.facts.vertices, not graph.facts.symmetric
        ends = tuple(x.astype(np.uint64) for x in _edges(graph.rows, not directed)[:2])
        self._G = self._nk.GraphFromCoo((np.ones(len(ends[0])), ends), self._n, False, directed)

    def search(self, root: int) -> Any:
        found = self._nk.distance.BFS(self._G, root, storePaths=False)
        found.run()
        return found

    def levels(self, _root: int, found: Any) -> Found:
        distances = np.asarray(found.getDistances())
        reached = np.flatnonzero(distances < self._n)
        return reached, distances[reached].astype(np.int64)


class _CuGraph:
    def __init__(self, graph: HostGraph) -> None:
        import cupy
        import pylibcugraph

        self._cp, self._plc = cupy, pylibcugraph
        self._facts, self._rows = graph.facts, graph.rows
        self._handle = pylibcugraph.ResourceHandle()
        degrees = np.diff(self._rows.indptr)
        self._sources = np.repeat(np.arange(graph.facts.vertices, dtype=np.int32), degrees)
        self._plain = self._graph()

    def _graph(self, *, weighted: bool = False, by_target: bool = False) -> Any:
        symmetric, asarray = self._facts.symmetric, self._cp.asarray
        return self._plc.SGGraph(
            self._handle, self._plc.GraphProperties(is_symmetric=symmetric, is_multigraph=False),
            asarray(self._sources), asarray(self._rows.indices.astype(np.int32, copy=False)),
            weight_array=asarray(self._rows.data.astype(np.float64)) if weighted else None,
            store_transposed=by_target, renumber=False, do_expensive_check=False,
        )  # fmt: skip

    def _call(self, name: str, *given: Any) -> Any:
        found = getattr(self._plc, name)(self._handle, *given)
        self._cp.cuda.get_current_stream().synchronize()
        return found

    def search(self, root: int) -> Any:
        sources = self._cp.asarray(np.array([root], np.int32))
        return self._call("bfs", self._plain, sources, self._facts.symmetric, -1, False, False)

    def levels(self, _root: int, found: Any) -> Found:
        dense = self.reached(found[2], found[0])
        vertices = np.flatnonzero(dense >= 0)
        return vertices, dense[vertices].astype(np.int64)

    def dense(self, vertices: Any, values: Any) -> Array:
        values = self._cp.asnumpy(values)
        dense = np.empty(self._facts.vertices, values.dtype)
        dense[self._cp.asnumpy(vertices)] = values
        return dense

    def reached(self, vertices: Any, values: Any) -> Array:
        dense = self.dense(vertices, values)
        of = np.iinfo if np.issubdtype(dense.dtype, np.integer) else np.finfo
        return np.where(dense == of(dense.dtype).max, -1, dense)

    def prepare(self, question: Algorithm) -> Asked:
        facts, graph = self._facts, self._plain
        name, given, read = _CUGRAPH[question.key]
        if name == "bfs":
            return lambda: self.search(facts.source), lambda found: Answer(read(self, found))
        if name == "sssp":
            graph, given = self._graph(weighted=True), (facts.source, *given)
        elif name == "pagerank":
            graph = self._graph(by_target=True)
            given = (None, None, None, None, 0.85, RANK_ERROR / facts.vertices, *given)
        elif not facts.symmetric or self._rows.diagonal().any():  # weights are above 0
            raise errors.NotSupported(f"{name}: needs an undirected graph without self-loops.")
        return lambda: self._call(name, graph, *given), lambda found: Answer(read(self, found))

    def triangles(self, found: Any) -> Array:
        return _number(int(self._cp.asnumpy(found[1]).sum()) // 3)


#: The function of pylibcugraph, its last arguments, and the reader of its result.
_CUGRAPH: dict[str, tuple[str, tuple[Any, ...], Callable[[_CuGraph, Any], Array]]] = {
    "bfs_levels": ("bfs", (), lambda L, x: L.reached(x[2], x[0])),
    "delta_stepping": ("sssp", (np.inf, True, False), lambda L, x: L.reached(*x[:2])),
    "pagerank": ("pagerank", (1000, False), lambda L, x: L.dense(*x[:2])),
    "connected_components fastsv": ("weakly_connected_components", (None,) * 4 + (False,),
                                    lambda L, x: least_labels(L.dense(*x))),
    "core_number": ("core_number", ("incoming", False), lambda L, x: L.dense(*x)),
    "triangle_count": ("triangle_count", (None, False), _CuGraph.triangles),
}  # fmt: skip


class _CuSparse:
    def __init__(self, graph: HostGraph) -> None:
        import cupy
        from cupyx import cusparse
        from cupyx.scipy.sparse import csr_matrix

        self._cp, self._cusparse, self._csr = cupy, cusparse, csr_matrix
        self._graph, n = graph, graph.facts.vertices
        narrow = (part.astype(np.int32, copy=False) for part in graph.columns)
        self._ptr, self._idx = map(self._cp.asarray, narrow)
        self._x, self._y = self._cp.asarray(factors(n)), self._cp.zeros(n, np.float32)

    def prepare(self, question: Algorithm) -> Asked:
        """Multiply by rows, which are the columns of a symmetric matrix; ones are stored too."""
        n, pattern = len(self._x), question.graph == "pattern"
        values = np.ones(len(self._graph.row_idx)) if pattern else self._graph.weights
        given = self._cp.asarray(values.astype(np.float32)), self._idx, self._ptr
        rows = self._csr(given, shape=(n, n))

        def run() -> Any:
            self._cusparse.spmv(rows, self._x, y=self._y)
            self._cp.cuda.get_current_stream().synchronize()
            return self._y

        return run, lambda found: Answer(self._cp.asnumpy(found))


PEERS = {
    "scipy": Peer("scipy", "scipy", _SciPy, "parents",
                  keys=("bfs_parents", "delta_stepping", "connected_components fastsv",
                        "strongly_connected_components")),
    # NetworkX takes seconds to read a million entries, and about one for a search.
    "networkx": Peer("networkx", "networkx", _NetworkX, most_searched=4e6, keys=_NETWORKX.keys(),
                     most=1e6, cost={"diameter": 50, _SAMPLE: 2.0}),
    "python-graphblas": Peer("graphblas", "python-graphblas", _GraphBLAS, most_searched=1e9),
    "igraph": Peer("igraph", "igraph", _IGraph),
    "networkit": Peer("networkit", "networkit", _NetworKit),
    "pylibcugraph": Peer("pylibcugraph", "pylibcugraph-cu13", _CuGraph, keys=_CUGRAPH.keys()),
    "cusparse": Peer("cupyx", "cupy-cuda13x", _CuSparse, output="",
                     keys=[f"product {name} FP32" for name in PRODUCTS]),
}  # fmt: skip

#: The libraries that answer questions.
ANSWERING = tuple(name for name, peer in PEERS.items() if peer.keys)

_TEXTS = ("graph", "backend", "output")
_NUMBERS = (
    *("roots", "max_ms", "wall_median_ms", "first_ms", "q1_ms", "q3_ms", "gteps", "bytes"),
    *("vertices", "edges"),
)
_REST = {"mode": "recorded"} | dict.fromkeys(
    ("kernel", "policy", "orientation", *_NUMBERS, "checked")
)


def is_file(name: str) -> bool:
    return name.endswith(".json")


def recorded(path: str) -> list[Row]:
    """Return the rows of a file, each with all fields of a report."""
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise errors.FileMissing(f"--peers: {path}: {error.strerror}. Check the name.") from error
    except (ValueError, RecursionError):
        found = None
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(map(_is_row, rows)):
        raise errors.FileFormatError(
            f"--peers: {path} is not a report of lagpu bench. Give one whose rows have graph, "
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
    """Return the rows of some files that fit graphs and outputs, under the names given here."""
    wanted = {canonical(name): name for name in graphs}
    found: list[Row] = []
    for file in files:
        rows = recorded(file)
        named = ((canonical(row["graph"]), row) for row in rows if row["output"] in outputs)
        fit = [row | {"graph": wanted[name]} for name, row in named if name in wanted]
        if not fit:
            known = ", ".join(dict.fromkeys(f"{row['graph']} ({row['output']})" for row in rows))
            raise errors.InvalidValue(
                f"--peers: {file} has none of {', '.join(graphs)} for {', '.join(outputs)}. "
                f"It has {known or 'no row'}."
            )
        found += fit
    return found
