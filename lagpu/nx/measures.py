"""Degrees, similarities, matrices, and what NetworkX itself computes in less time than lagpu."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from lagpu import algorithms
from lagpu.algebra.tables import semiring
from lagpu.core import Matrix
from lagpu.dtypes import Array
from lagpu.host import memory
from lagpu.nx.answers import answers, by_networkx, by_text
from lagpu.nx.graph import Graph, once
from lagpu.nx.paths import lengths_matrix

by_networkx(
    *("degree_centrality", "in_degree_centrality", "out_degree_centrality", "number_of_selfloops"),
    *("is_isolate", "isolates", "number_of_isolates", "is_negatively_weighted", "s_metric"),
    *("is_k_regular", "is_regular", "score_sequence", "faster_could_be_isomorphic", "is_forest"),
    *("is_tree", "is_arborescence", "is_branching", "is_triad", "is_tournament", "reciprocity"),
    *("is_dominating_set", "is_simple_path", "to_dict_of_lists", "overall_reciprocity"),
    *("node_boundary", "edge_boundary", "mutual_weight", "maximal_matching", "biadjacency_matrix"),
    *("cut_size", "volume", "conductance", "normalized_cut_size"),
    *("intra_community_edges", "inter_community_edges"),
    *("boundary_expansion", "edge_expansion", "mixing_expansion", "node_expansion"),
    *("all_pairs_lowest_common_ancestor", "lowest_common_ancestor", "ego_graph"),
    *("complement", "difference", "intersection", "symmetric_difference"),
    *("bidirectional_shortest_path", "bidirectional_dijkstra", "preferential_attachment"),
    *("is_bipartite", "color", "sets", "is_directed_acyclic_graph"),
    *("topological_generations", "topological_sort"),
)
by_text("fast_could_be_isomorphic", "bipartite_betweenness_centrality")
by_text(
    *("adjacency_matrix", "laplacian_matrix", "normalized_laplacian_matrix"),
    *("bethe_hessian_matrix", "modularity_matrix", "directed_modularity_matrix"),
    *("google_matrix", "tournament_matrix", "floyd_warshall_numpy"),
    quick=True,
)


@answers(not_for=("directed", "multigraph"))
def generalized_degree(G: Graph, nodes: Any) -> Any:
    A = G.matrix().select("offdiag").new(name="A")
    ends, _, many = semiring.plus_pair(A @ A).new("INT64", mask=A.S, name="shared").to_coo()
    rows = G.along()[0][~G.loops]
    degree = np.bincount(rows, minlength=len(G)) - np.bincount(ends, minlength=len(G))
    chosen = G.bunch(nodes)
    cuts = np.cumsum(np.bincount(ends, minlength=len(G)))
    of = np.split(many[np.argsort(ends, kind="stable")], cuts)
    found = [Counter(of[v].tolist() + [0] * int(degree[v])) for v in chosen]
    return found[0] if nodes is not None and nodes in G else G.named(found, chosen)


# ---- similarity of nodes, for the prediction of edges


def _similarity(kind: str) -> Callable[[Graph, Any], Iterator[Any]]:
    """Return the function of a kind of `lagpu.algorithms.similarity`."""

    def similar(G: Graph, ebunch: Any) -> Iterator[Any]:
        """Return an iterator over pairs of nodes, by default those without an edge, and numbers."""
        if G.has_loops:
            raise NotImplementedError("lagpu: similarity in a graph with self-loops")
        whole: Any = G
        wanted = nx.non_edges(whole) if ebunch is None else ebunch
        ends = [(u, v) for u, v in wanted]
        for node in itertools.chain.from_iterable(ends):
            if node not in G:
                raise nx.NodeNotFound(f"Node {node} not in G.")
        u, v = (np.array([G.index[pair[k]] for pair in ends], np.int64) for k in (0, 1))
        A, n = G.matrix(), len(G)
        some = Matrix.from_coo(u, v, True, nrows=n, ncols=n, dup_op="lor", like=A)
        i, j, values = algorithms.similarity(A, some, kind=kind).to_coo()
        if not np.isfinite(values).all():  # of (v, v), where NetworkX divides by zero
            raise NotImplementedError("lagpu: an infinite sum")
        order = np.argsort(i * n + j)
        numbers = values[order][np.searchsorted((i * n + j)[order], u * n + v)].tolist()
        return ((*pair, x) for pair, x in zip(ends, numbers, strict=True))

    return similar


for _name, _kind in (
    ("adamic_adar_index", "adamic_adar"),
    ("jaccard_coefficient", "jaccard"),
    ("resource_allocation_index", "resource_allocation"),
):
    answers(name=_name, not_for=("directed", "multigraph"))(_similarity(_kind))


# ---- matrices


def _places(G: Graph, nodelist: Any) -> Array:
    """Return the index of each vertex in a list of distinct nodes, (n,), -1 if it is not there."""
    place = np.full(len(G), -1)
    place[[G.index[node] for node in nodelist]] = np.arange(len(nodelist))
    return place


def _between(G: Graph, places: Array, weight: Any) -> tuple[Array, Array, Array]:
    """Return row, column and weight of each edge that joins nodes with a place, once."""
    rows, cols, values = once(G, _weights(G, weight))
    rows, cols = places[rows], places[cols]
    kept = (rows >= 0) & (cols >= 0)
    some = values[kept]
    whole = np.floor(some) == some
    if some.dtype.kind == "i":  # of both truths and integers
        whole = ((some == 0) | (some == 1)) & (values.min(initial=1) < values.max(initial=1))
    if len(some) < len(values) and whole.all():  # they keep their type there
        raise NotImplementedError("lagpu: integers among other weights, or truths")
    return rows[kept], cols[kept], some


def _weights(G: Graph, weight: Any) -> Array:
    """Return an edge attribute of one of the two types that SciPy gives to numbers of Python."""
    values = G.weights(weight)
    if values is None:
        return np.ones(len(G.stored.cols), np.int64)
    if values.dtype not in (np.int64, np.float64):
        raise NotImplementedError(f"lagpu: a matrix of weights of the type {values.dtype}")
    return values


def _require_integers(values: Array, dtype: Any) -> None:
    """Leave values that become no integers to NetworkX; NaN compares False."""
    if dtype is not None and np.dtype(dtype).kind != "f" and not (abs(values) < 2**62).all():
        raise NotImplementedError("lagpu: weights that are not integers")


_TYPES = (None, int, float, np.int64, np.float64)


@answers(quick=True, dtype=_TYPES)
def to_scipy_sparse_array(G: Graph, nodelist: Any, dtype: Any, weight: Any, format: str) -> Any:
    import scipy as sp

    wanted = G.names if nodelist is None else nodelist
    if not len(wanted):
        raise nx.NetworkXError("nodelist has no nodes")
    unknown = [node for node in wanted if node not in G]
    if unknown:
        raise nx.NetworkXError(f"Node {unknown[0]} in nodelist is not in G")
    if len(set(wanted)) < len(wanted):
        raise nx.NetworkXError("nodelist contains duplicates.")
    rows, cols, values = _between(G, _places(G, wanted), weight)
    if not G.is_directed():
        loops = rows == cols
        ends = np.concatenate([rows, cols, rows[loops]]), np.concatenate([cols, rows, rows[loops]])
        rows, cols, values = *ends, np.concatenate([values, values, -values[loops]])
    if not values.size:
        values = values.astype(np.float64)
    _require_integers(values, dtype)
    A: Any = sp.sparse.coo_array((values, (rows, cols)), shape=(len(wanted),) * 2, dtype=dtype)
    try:
        return A.asformat(format)
    except ValueError as error:
        raise nx.NetworkXError(f"Unknown sparse matrix format: {format}") from error


_COMBINED = {sum: np.add, min: np.minimum, max: np.maximum}


@answers(quick=True, dtype=_TYPES, multigraph_weight=(*_COMBINED,))
def to_numpy_array(
    G: Graph, nodelist: Any, dtype: Any, order: Any, multigraph_weight: Any, weight: Any,
    nonedge: Any,
) -> Any:  # fmt: skip
    wanted = G.names if nodelist is None else nodelist
    unknown = set(wanted) - set(G)
    if unknown:
        raise nx.NetworkXError(f"Nodes {unknown} in nodelist is not in G")
    n = len(wanted)
    if len(set(wanted)) < n:
        raise nx.NetworkXError("nodelist contains duplicates.")
    memory.require(8 * n * n, "to_numpy_array")
    A = np.full((n, n), nonedge, dtype, order)
    rows, cols, values = _between(G, _places(G, wanted), weight)
    _require_integers(values, A.dtype)
    if G.is_multigraph():
        if not values.size and G.number_of_edges():
            raise NotImplementedError("lagpu: no edge between the nodes")
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise NotImplementedError("lagpu: weights that are NaN")
        least, most = np.minimum(rows, cols), np.maximum(rows, cols)
        keys = rows * n + cols if G.is_directed() else least * n + most
        keys, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        total = values[first]
        rest = np.ones(len(values), bool)
        rest[first] = False
        _COMBINED[multigraph_weight].at(total, inverse[rest], values[rest])
        (rows, cols), values = np.divmod(keys, n), total
    A[rows, cols] = values
    if not G.is_directed():
        A[cols, rows] = values
    return A


@answers(quick=True)
def floyd_warshall(G: Graph, weight: Any) -> dict[Any, dict[Any, Any]]:
    found = algorithms.floyd_warshall(lengths_matrix(G, weight))
    n, (rows, cols, values) = len(G), found.to_coo()
    lengths = [dict.fromkeys(G.names, math.inf) for _ in range(n)]
    for u, v, x in zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True):
        lengths[u][G.names[v]] = x
    return G.named(lengths)


@answers(quick=True)
def floyd_warshall_predecessor_and_distance(G: Graph, weight: Any) -> tuple[Any, Any]:
    """Return the node before the last one of a path between each two nodes, and the distances."""
    # One node after the other may be on the paths: d = min(d, d[:, w] + d[w, :]).
    # Source: Floyd 1962.
    n, values = len(G), G.numbers(weight)
    memory.require(40 * n * n, "floyd_warshall")
    if np.isnan(values).any():
        raise NotImplementedError("lagpu: lengths that are NaN")
    if values.dtype.kind == "i" and n * np.abs(values.astype(float)).max(initial=0) >= 2**53:
        raise NotImplementedError("lagpu: integer lengths whose sums FP64 would round")
    rows, cols = G.along()
    d, before = np.full((n, n), np.inf), np.full((n, n), -1)
    np.fill_diagonal(d, 0)
    np.minimum.at(d, (rows, cols), values)
    before[rows, cols] = rows
    for w in range(n):
        by = d[:, w, None] + d[w]
        shorter = by < d
        before = np.where(shorter, before[w], before)
        d = np.where(shorter, by, d)
        if d.diagonal().min() < 0:
            raise NotImplementedError("lagpu: a cycle of negative length")
    nodes, whole = G.names, values.dtype.kind == "i"
    lengths = {
        u: {v: int(x) if whole and x < np.inf else x for v, x in zip(nodes, row, strict=True)}
        for u, row in zip(nodes, d.tolist(), strict=True)
    }
    found = {
        u: {nodes[v]: nodes[k] for v, k in enumerate(row) if k >= 0}
        for u, row in zip(nodes, before.tolist(), strict=True)
    }
    return {u: near for u, near in found.items() if near}, lengths
