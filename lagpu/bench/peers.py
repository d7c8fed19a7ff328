"""Other libraries: which are installed, and their breadth-first search of the same graphs.

Each library gets its best form of the graph, untimed, and its result is converted to levels,
untimed too, for comparison.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lagpu.bench.graphs import HostGraph
from lagpu.errors import BackendUnavailable, InvalidValue

__all__ = ["PEERS", "Peer", "chosen", "versions"]

Array = np.ndarray[Any, Any]
Found = tuple[Array, Array]  # vertices and their levels


class Search(NamedTuple):
    """A library's search of one graph, and the conversion of its result to levels."""

    run: Callable[[int], Any]
    levels: Callable[[int, Any], Found]


class Peer(NamedTuple):
    """A library.

    Attributes
    ----------
    module, package : str
        The name to import, and the name to install.
    output : str
        The result of the search, levels or parents.
    prepare : callable or None
        Makes a `Search` of a graph; None for a library without searches.
    most : float
        Most entries of a graph that the library is asked to search.
    """

    module: str
    package: str
    output: str
    prepare: Callable[[HostGraph], Search] | None
    most: float = float("inf")


def chosen(names: Sequence[str], among: Sequence[str] = ()) -> list[str]:
    """Return the requested peers; ``all`` means all that are installed.

    Parameters
    ----------
    names : sequence of str
        Names, also several in one string with commas.
    among : sequence of str
        The valid peers; by default all that search.

    Raises
    ------
    InvalidValue
        For an unknown name; the message lists the valid ones.
    BackendUnavailable
        If a named library is not installed.
    """
    found: list[str] = []
    known = among or tuple(name for name, peer in PEERS.items() if peer.prepare)
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
    """Return the versions of some peers."""
    return {name: _version(PEERS[name]) for name in names}


def _version(peer: Peer) -> str | None:
    """Return the version of a peer; the names of some packages depend on the CUDA version."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(peer.package)
    with contextlib.suppress(Exception):  # installed, but broken
        return getattr(importlib.import_module(peer.module), "__version__", None)
    return None


def _installed(name: str) -> bool:
    return importlib.util.find_spec(PEERS[name].module) is not None


def _rows(graph: HostGraph) -> Found:
    """Return (row_ptr, col_idx), which are the columns of a symmetric graph."""
    if graph.facts.symmetric:
        return graph.columns
    n = graph.facts.vertices
    data = np.ones(len(graph.row_idx), np.int8)
    rows = sp.csc_array((data, graph.row_idx, graph.col_ptr), shape=(n, n)).tocsr()
    return rows.indptr, rows.indices


def _pairs(graph: HostGraph) -> Found:
    """Return (sources, targets); of a symmetric graph each edge once."""
    row_ptr, cols = _rows(graph)
    rows = np.repeat(np.arange(graph.facts.vertices, dtype=cols.dtype), np.diff(row_ptr))
    if not graph.facts.symmetric:
        return rows, cols
    once = rows <= cols
    return rows[once], cols[once]


def _scipy(graph: HostGraph) -> Search:
    from scipy.sparse.csgraph import breadth_first_order

    row_ptr, cols = _rows(graph)
    n = graph.facts.vertices
    # FP64, the type that SciPy uses, so that it does not convert in each call.
    wide = sp.csr_array((np.ones(len(cols)), cols, row_ptr), shape=(n, n))

    def levels(_root: int, found: Found) -> Found:
        order, parents = found
        depth = (parents >= 0).astype(np.int64)
        jump = np.where(parents >= 0, parents, np.arange(n))
        while not np.array_equal(further := jump[jump], jump):
            depth += depth[jump]
            jump = further
        return order, depth[order]

    return Search(lambda root: breadth_first_order(wide, root), levels)


def _networkx(graph: HostGraph) -> Search:
    import networkx as nx

    G: Any = nx.Graph() if graph.facts.symmetric else nx.DiGraph()
    G.add_nodes_from(range(graph.facts.vertices))
    G.add_edges_from(zip(*(ends.tolist() for ends in _pairs(graph)), strict=True))

    def levels(_root: int, found: dict[int, int]) -> Found:
        return np.array(list(found)), np.array(list(found.values()))

    return Search(lambda root: nx.single_source_shortest_path_length(G, root), levels)


def _graphblas(graph: HostGraph) -> Search:
    from graphblas import Matrix, Vector, semiring

    row_ptr, cols = _rows(graph)
    n = graph.facts.vertices
    A = Matrix.from_csr(row_ptr, cols, True, ncols=n)

    def search(root: int) -> Any:
        levels, frontier = Vector(int, n), Vector(bool, n)
        frontier[root] = True
        depth = 0
        while frontier.nvals:
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
            depth += 1
        return levels

    return Search(search, lambda _root, levels: levels.to_coo())


def _igraph(graph: HostGraph) -> Search:
    import igraph

    ends = np.column_stack(_pairs(graph))
    G = igraph.Graph(n=graph.facts.vertices, edges=ends, directed=not graph.facts.symmetric)

    def levels(_root: int, found: Any) -> Found:
        vertices, starts, _ = found
        return np.array(vertices), np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    return Search(lambda root: G.bfs(root, mode="out"), levels)


def _networkit(graph: HostGraph) -> Search:
    import networkit as nk

    ends = tuple(part.astype(np.uint64) for part in _pairs(graph))
    n = graph.facts.vertices
    G = nk.GraphFromCoo((np.ones(len(ends[0])), ends), n, False, not graph.facts.symmetric)

    def search(root: int) -> Any:
        found = nk.distance.BFS(G, root, storePaths=False)
        found.run()
        return found

    def levels(_root: int, found: Any) -> Found:
        distances = np.asarray(found.getDistances())
        reached = np.flatnonzero(distances < n)
        return reached, distances[reached].astype(np.int64)

    return Search(search, levels)


def _pylibcugraph(graph: HostGraph) -> Search:
    import cupy as cp
    import pylibcugraph as plc

    symmetric = graph.facts.symmetric
    row_ptr, cols = _rows(graph)
    n = graph.facts.vertices
    rows = np.repeat(np.arange(n, dtype=np.int32), np.diff(row_ptr))
    handle = plc.ResourceHandle()
    G = plc.SGGraph(
        handle,
        plc.GraphProperties(is_symmetric=symmetric, is_multigraph=False),
        cp.asarray(rows),
        cp.asarray(cols.astype(np.int32, copy=False)),
        weight_array=None,
        store_transposed=False,
        renumber=False,
        do_expensive_check=False,
    )

    def search(root: int) -> Any:
        sources = cp.asarray(np.array([root], np.int32))
        found = plc.bfs(handle, G, sources, symmetric, -1, False, False)
        cp.cuda.get_current_stream().synchronize()
        return found

    def levels(_root: int, found: Any) -> Found:
        distances, vertices = cp.asnumpy(found[0]), cp.asnumpy(found[2])
        reached = distances < np.iinfo(distances.dtype).max
        order = np.argsort(vertices[reached])
        return vertices[reached][order], distances[reached][order].astype(np.int64)

    return Search(search, levels)


PEERS = {
    "scipy": Peer("scipy", "scipy", "parents", _scipy),
    "networkx": Peer("networkx", "networkx", "levels", _networkx, most=4e6),
    "python-graphblas": Peer("graphblas", "python-graphblas", "levels", _graphblas, most=1e9),
    "igraph": Peer("igraph", "igraph", "levels", _igraph),
    "networkit": Peer("networkit", "networkit", "levels", _networkit),
    "cusparse": Peer("cupyx", "cupy-cuda13x", "products", None),
    "pylibcugraph": Peer("pylibcugraph", "pylibcugraph-cu13", "levels", _pylibcugraph),
}
