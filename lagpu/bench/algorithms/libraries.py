"""The questions that SciPy, NetworkX, pylibcugraph and cuSPARSE can answer.

Each library gets its best form of the graph, untimed, and its result is converted to the form of
lagpu, untimed too, for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lagpu.bench.algorithms.menu import (
    FEW,
    PRODUCTS,
    RANK_ERROR,
    SAMPLED,
    SEED,
    Answer,
    Question,
    depths,
    factors,
)
from lagpu.bench.algorithms.menu import least_labels as least
from lagpu.bench.algorithms.problem import Problem

__all__ = ["LIBRARIES", "Library"]

Array = np.ndarray[Any, Any]
Table = dict[str, tuple[Callable[[], Any], Callable[[Any], Answer]]]


class Library(NamedTuple):
    """A library that answers some of the questions.

    Attributes
    ----------
    table : callable
        Returns, for a problem, the function to time and the reader of its result, by question.
    keys : frozenset of str
        Keys of the questions that the library answers.
    most : float
        Most entries of a graph that the library is given.
    cost : mapping of str to float
        The time of expensive questions, in searches.
    """

    table: Callable[[Problem], Table]
    keys: frozenset[str]
    most: float = float("inf")
    cost: Mapping[str, float] = {}

    def open(self, given: Problem) -> _Opened:
        """Return the library with a graph."""
        return _Opened(self.table(given))

    def why_not(self, key: str, entries: int) -> str:
        """Return why the library is not asked a question, or an empty string."""
        return "too large" if entries * self.cost.get(key, 1) > self.most else ""


class _Opened:
    place = None

    def __init__(self, table: Table) -> None:
        self._table = table

    def prepare(self, question: Question) -> tuple[Callable[[], Any], Callable[[Any], Answer]]:
        return self._table[question.key]


# ---------------------------------------------------------------------------------- SciPy


def _scipy(given: Problem) -> Table:
    facts, rows = given.facts, given.rows
    lengths = rows.astype(float)  # the type that SciPy uses, so that no call converts
    search: Any = csgraph
    return {
        "bfs_parents": (
            lambda: search.breadth_first_order(lengths, facts.source),
            lambda found: Answer(depths(_own(found[1], facts.source))),
        ),
        "delta_stepping": (
            lambda: search.dijkstra(lengths, indices=facts.source),
            lambda d: Answer(np.where(np.isinf(d), -1, d)),
        ),
        "connected_components fastsv": (
            lambda: search.connected_components(lengths, directed=not facts.symmetric),
            lambda found: Answer(least(found[1])),
        ),
        "strongly_connected_components": (
            lambda: search.connected_components(lengths, connection="strong"),
            lambda found: Answer(least(found[1])),
        ),
    }


def _own(parents: Array, source: int) -> Array:
    """Return parents with the source as its own parent, and -1 for none."""
    found = np.where(parents >= 0, parents, -1)
    found[source] = source
    return found


# -------------------------------------------------------------------------------- NetworkX


def _networkx(given: Problem) -> Table:
    import networkx as nx

    facts, rows = given.facts, given.rows.tocoo()
    n, s = facts.vertices, facts.source
    few = sorted(facts.sources[:FEW])
    D: Any = nx.DiGraph()
    D.add_nodes_from(range(n))
    i, j = rows.coords
    D.add_weighted_edges_from(zip(i.tolist(), j.tolist(), rows.data.tolist(), strict=True))
    G = D.to_undirected() if facts.symmetric else D
    loops = list(nx.selfloop_edges(G))
    simple = G.copy() if loops else G
    simple.remove_edges_from(loops)
    above = D
    if not facts.acyclic:
        above = D.edge_subgraph([(u, v) for u, v in D.edges if u < v]).copy()
        above.add_nodes_from(range(n))
    weak = nx.connected_components if facts.symmetric else nx.weakly_connected_components

    def dense(found: Mapping[int, Any], fill: Any = -1) -> Answer:
        values = np.full(n, fill, np.array(list(found.values())).dtype)
        values[list(found)] = list(found.values())
        return Answer(values)

    def parents(found: Iterable[tuple[int, int]]) -> Answer:
        table = np.full(n, -1)
        for v, parent in found:
            table[v] = parent
        return Answer(depths(_own(table, s)))

    def labels(parts: Iterable[set[int]]) -> Answer:
        table = np.empty(n, np.int64)
        for part in parts:
            table[list(part)] = min(part)
        return Answer(table)

    def generations(found: Iterable[list[int]]) -> Answer:
        table = np.empty(n, np.int64)
        for level, vertices in enumerate(found):
            table[vertices] = level
        return Answer(table)

    def some(found: Mapping[int, Any]) -> Answer:
        return Answer(np.array([found[v] for v in few]))

    def number(x: Any) -> Answer:
        return Answer(np.array([x]))

    def triangles(graph: Any) -> int:
        each: Any = nx.triangles(graph)
        return int(sum(each.values())) // 3

    return {
        "bfs_levels": (lambda: dict(nx.single_source_shortest_path_length(G, s)), dense),
        "bfs_parents": (lambda: [(v, u) for u, v in nx.bfs_edges(G, s)], parents),
        "shortest_path": (
            lambda: nx.shortest_path(G, s, facts.target),
            lambda route: Answer(np.array([len(route)])),
        ),
        "pagerank": (
            lambda: nx.pagerank(G, tol=RANK_ERROR / n, max_iter=1000, weight=None),
            lambda found: dense(found, 0.0),
        ),
        "connected_components bfs": (lambda: list(weak(G)), labels),
        "strongly_connected_components": (
            lambda: list(nx.strongly_connected_components(D)),
            labels,
        ),
        "bipartite_sides": (lambda: nx.is_bipartite(G), number),
        "core_number": (lambda: nx.core_number(simple), dense),
        "topological_levels": (lambda: list(nx.topological_generations(above)), generations),
        f"closeness_centrality {FEW} vertices": (
            lambda: {v: nx.closeness_centrality(G, v) for v in few},
            some,
        ),
        f"harmonic_centrality {FEW} vertices": (lambda: nx.harmonic_centrality(G, few), some),
        f"eccentricity {FEW} vertices": (lambda: nx.eccentricity(G, few), some),
        f"betweenness_centrality {SAMPLED} sources": (
            lambda: nx.betweenness_centrality(G, min(SAMPLED, n), seed=SEED),
            dense,
        ),
        "bellman_ford": (lambda: nx.single_source_bellman_ford_path_length(G, s), dense),
        "delta_stepping": (lambda: nx.single_source_dijkstra_path_length(G, s), dense),
        "triangle_count": (
            lambda: triangles(simple),
            number,
        ),
        "diameter": (lambda: nx.diameter(G, usebounds=facts.symmetric), number),
    }


# ----------------------------------------------------------------------------- pylibcugraph


def _pylibcugraph(given: Problem) -> Table:
    import cupy as cp
    import pylibcugraph as plc

    facts, rows = given.facts, given.rows
    n, symmetric = facts.vertices, facts.symmetric
    sources = np.repeat(np.arange(n, dtype=np.int32), np.diff(rows.indptr))
    handle = plc.ResourceHandle()

    def graph(weights: Array | None, *, by_target: bool = False) -> Any:
        return plc.SGGraph(
            handle,
            plc.GraphProperties(is_symmetric=symmetric, is_multigraph=False),
            cp.asarray(sources),
            cp.asarray(rows.indices.astype(np.int32, copy=False)),
            weight_array=None if weights is None else cp.asarray(weights),
            store_transposed=by_target,
            renumber=False,
            do_expensive_check=False,
        )

    plain, by_target = graph(None), graph(None, by_target=True)
    weighted = graph(rows.data.astype(np.float64))
    simple = _without_loops(rows)
    root = cp.asarray(np.array([facts.source], np.int32))

    def ended(found: Any) -> Any:
        cp.cuda.get_current_stream().synchronize()
        return found

    def in_order(vertices: Any, values: Any) -> Array:
        dense = np.empty(n, cp.asnumpy(values).dtype)
        dense[cp.asnumpy(vertices)] = cp.asnumpy(values)
        return dense

    def reached(vertices: Any, values: Any) -> Answer:
        dense = in_order(vertices, values)
        return Answer(np.where(dense == _largest(dense.dtype), -1, dense))

    table: Table = {
        "bfs_levels": (
            lambda: ended(plc.bfs(handle, plain, root, symmetric, -1, False, False)),
            lambda found: reached(found[2], found[0]),
        ),
        "delta_stepping": (
            lambda: ended(plc.sssp(handle, weighted, facts.source, np.inf, True, False)),
            lambda found: reached(found[0], found[1]),
        ),
        "pagerank": (
            lambda: ended(
                plc.pagerank(
                    handle, by_target, None, None, None, None, 0.85, RANK_ERROR / n, 1000, False
                )
            ),
            lambda found: Answer(in_order(*found[:2])),
        ),
    }
    if symmetric and simple:
        table |= {
            "connected_components fastsv": (
                lambda: ended(
                    plc.weakly_connected_components(handle, plain, None, None, None, None, False)
                ),
                lambda found: Answer(least(in_order(*found))),
            ),
            "core_number": (
                lambda: ended(plc.core_number(handle, plain, "incoming", False)),
                lambda found: Answer(in_order(*found)),
            ),
            "triangle_count": (
                lambda: ended(plc.triangle_count(handle, plain, None, False)),
                lambda found: Answer(np.array([int(cp.asnumpy(found[1]).sum()) // 3])),
            ),
        }
    return table


def _without_loops(rows: sp.csr_array) -> bool:
    return not rows.diagonal().any()  # weights are above 0


def _largest(dtype: Any) -> Any:
    return np.iinfo(dtype).max if np.issubdtype(dtype, np.integer) else np.finfo(dtype).max


# -------------------------------------------------------------------------------- cuSPARSE


def _cusparse(given: Problem) -> Table:
    import cupy as cp
    from cupyx import cusparse
    from cupyx.scipy.sparse import csr_matrix

    n = given.facts.vertices
    x, y = cp.asarray(factors(n)), cp.zeros(n, np.float32)
    ptr, idx = (cp.asarray(part.astype(np.int32, copy=False)) for part in given.columns[:2])
    made: dict[str, Any] = {}

    def multiply(values: Callable[[], Array]) -> Callable[[], Any]:
        """Multiply by rows, which are the columns of a symmetric matrix."""

        def run() -> Any:
            if made.get("values") is not values:  # one matrix at a time
                made.clear()
                rows = csr_matrix((cp.asarray(values()), idx, ptr), shape=(n, n))
                made.update(values=values, rows=rows)
            cusparse.spmv(made["rows"], x, y=y)
            cp.cuda.get_current_stream().synchronize()
            return y

        return run

    def read(found: Any) -> Answer:
        return Answer(cp.asnumpy(found))

    # It has no product without values.
    ones = multiply(lambda: np.ones(len(given.row_idx), np.float32))
    weights = multiply(lambda: given.weights.astype(np.float32))
    return {"product plus_second FP32": (ones, read), "product plus_times FP32": (weights, read)}


_SEARCHES = ("bfs_levels", "bfs_parents", "shortest_path")
_SCIPY = (
    "bfs_parents",
    "delta_stepping",
    "connected_components fastsv",
    "strongly_connected_components",
)
_CUGRAPH = (
    "bfs_levels",
    "delta_stepping",
    "pagerank",
    "connected_components fastsv",
    "core_number",
    "triangle_count",
)
_NETWORKX = (
    *_SEARCHES,
    "pagerank",
    "connected_components bfs",
    "strongly_connected_components",
    "bipartite_sides",
    "core_number",
    "topological_levels",
    f"closeness_centrality {FEW} vertices",
    f"harmonic_centrality {FEW} vertices",
    f"eccentricity {FEW} vertices",
    f"betweenness_centrality {SAMPLED} sources",
    "bellman_ford",
    "delta_stepping",
    "triangle_count",
    "diameter",
)

LIBRARIES = {
    "scipy": Library(_scipy, frozenset(_SCIPY)),
    "networkx": Library(
        _networkx,
        frozenset(_NETWORKX),
        most=1e6,  # NetworkX takes seconds to read so many entries, and about one for a search
        cost={"diameter": 50, f"betweenness_centrality {SAMPLED} sources": 2.0},
    ),
    "pylibcugraph": Library(_pylibcugraph, frozenset(_CUGRAPH)),
    "cusparse": Library(_cusparse, frozenset(f"product {name} FP32" for name in PRODUCTS)),
}
