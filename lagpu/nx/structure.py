"""Measures and structure of a graph: centralities, clustering, components, cores, orders."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np
from networkx.utils import create_py_random_state

from lagpu import algorithms
from lagpu.algebra.tables import semiring
from lagpu.algorithms.centrality import MOST
from lagpu.backends.protocol import of_all
from lagpu.core import Matrix, Vector
from lagpu.dtypes import Array
from lagpu.errors import NotConverged
from lagpu.host import memory
from lagpu.nx.answers import NETWORKX, answers, by_networkx, by_text, registered
from lagpu.nx.graph import Graph, labels_of, once, pairs
from lagpu.nx.paths import lengths_matrix, levels_from, require

_SIMPLE = ("directed", "multigraph")


def _labels(G: Graph) -> Array:
    """Return the least vertex of each vertex's component, (n,)."""
    return algorithms.connected_components(G.matrix()).to_dense()


def _sets(G: Graph, rank: Array) -> Iterator[set[Any]]:
    """Return an iterator over the sets of nodes of equal rank, the least rank first."""
    order = np.argsort(rank, kind="stable")
    cuts = np.flatnonzero(np.diff(rank[order])) + 1
    nodes = G.names
    names = [nodes[v] for v in order.tolist()]
    ends = [0, *cuts.tolist(), len(names)]
    return (set(names[a:b]) for a, b in itertools.pairwise(ends) if a < b)


for _pre, _not_for in (("", ("directed",)), ("weakly_", ())):
    _how: Any = {"quick": True, "not_for": _not_for}
    answers(name=f"{_pre}connected_components", **_how)(lambda G: _sets(G, _labels(G)))
    answers(name=f"number_{_pre}connected_components", **_how)(lambda G: len(np.unique(_labels(G))))


@answers(quick=True, not_for=("directed",))
def is_connected(G: Graph) -> bool:
    return bool((levels_from(G, 0) >= 0).all())


@answers(quick=True, not_for=("directed",))
def node_connected_component(G: Graph, n: Any) -> set[Any]:
    return G.where(levels_from(G, G.index[n]) >= 0)


@answers(quick=True)
def is_weakly_connected(G: Graph) -> bool:
    return not _labels(G).any()


@answers(by_level=True)
def strongly_connected_components(G: Graph) -> Iterator[set[Any]]:
    labels = algorithms.strongly_connected_components(G.matrix()).to_dense()
    rows, cols = (labels[ends] for ends in G.along())
    between, n = rows != cols, len(G)
    pairs = np.unique(rows[between].astype(np.int64) * n + cols[between]) if n else rows
    merged = Matrix.from_coo(*np.divmod(pairs, max(n, 1)), nrows=n, ncols=n, like=G.matrix())
    levels = algorithms.topological_levels(merged).to_dense()[labels].astype(np.int64)
    return _sets(G, labels - levels * n)


@answers(by_level=True)
def number_strongly_connected_components(G: Graph) -> int:
    return len(np.unique(algorithms.strongly_connected_components(G.matrix()).to_dense()))


@answers(quick=True)
def is_strongly_connected(G: Graph) -> bool:
    return all((levels_from(G, 0, back=back) >= 0).all() for back in (False, True))


def _require_no_loops(G: Graph) -> None:
    if G.loops.any():
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )


@answers(by_level=True, not_for=("multigraph",))
def core_number(G: Graph) -> dict[Any, int]:
    _require_no_loops(G)
    A = G.matrix()
    # Where each edge has its reverse, lagpu counts a neighbour once, NetworkX an edge in and out.
    times = 2 if G.is_directed() and A.is_symmetric else 1
    return G.named((algorithms.core_number(A).to_dense() * times).tolist())


by_text("k_core", by_level=True, not_for=("multigraph",))


@answers(not_for=_SIMPLE)
def k_truss(G: Graph, k: Any) -> Any:
    _require_no_loops(G)
    found = algorithms.k_truss(G.matrix(), max(0, k)).to_coo()
    rows, cols = once(G)
    gone = ~np.isin(rows * len(G) + cols, found[0] * len(G) + found[1])
    H = G.copy()
    H.remove_edges_from(pairs(G, rows[gone], cols[gone]))
    H.remove_nodes_from(list(nx.isolates(H)))
    return H


def _ranked(G: Graph, keys: Array) -> tuple[Matrix, Array]:
    """Return the matrix of the places of edges in the order of keys, and that order, (m,)."""
    # Equal keys keep NetworkX' order, so NetworkX' greedy algorithm has the same result.
    rows, cols, keys = once(G, keys)
    order = np.argsort(keys, kind="stable")
    rows, cols, n = rows[order], cols[order], len(G)
    place = np.flatnonzero((rows != cols) & ~np.isnan(keys[order]))
    ends = np.r_[rows[place], cols[place]], np.r_[cols[place], rows[place]]
    how: Any = {"nrows": n, "ncols": n, "dup_op": "min", "like": G.matrix()}
    return Matrix.from_coo(*ends, np.r_[place, place], **how), order


def _edges(G: Graph, *, keys: Any, data: Any) -> list[Any]:
    """Return the edges as NetworkX names them, in its order, with keys if they may be parallel."""
    if not (data or G.is_multigraph()):
        return list(pairs(G, *once(G)))
    own = {"keys": bool(keys)} if G.is_multigraph() else {}
    return list(G.edges(data=bool(data), **own))


def _declare_spanning(kind: str, sign: int) -> None:
    """Declare the functions of spanning forests of least weight, or with -1 of largest weight."""

    def edges(G: Graph, weight: Any, keys: bool, data: bool, ignore_nan: bool) -> Iterator[Any]:
        """Return an iterator over the edges of a spanning forest, in Kruskal's order."""
        lengths = G.numbers(weight)
        if not ignore_nan and np.isnan(lengths).any():
            raise NotImplementedError("lagpu: weights that are NaN")
        A, order = _ranked(G, sign * lengths)
        chosen = order[np.unique(algorithms.minimum_spanning_forest(A).to_coo()[2])]
        every = _edges(G, keys=keys, data=data)
        return iter([every[k] for k in chosen.tolist()])

    def tree(G: Graph, weight: Any, ignore_nan: bool) -> Any:
        T = G.networkx.__class__()
        T.graph.update(G.graph)
        T.add_nodes_from(G.nodes.items())
        T.add_edges_from(edges(G, weight, True, True, ignore_nan))
        return T

    rules: dict[str, Any] = {"by_level": True, "not_for": ("directed",), "algorithm": ("kruskal",)}
    answers(name=f"{kind}_spanning_tree", **rules)(tree)
    answers(name=f"{kind}_spanning_edges", **rules, iterator=True)(edges)


_declare_spanning("minimum", 1)
_declare_spanning("maximum", -1)


def _require_no_seed(seed: Any) -> None:
    if seed is not create_py_random_state(None):
        raise NotImplementedError("lagpu: a seed selects the result that NetworkX draws")


@answers(not_for=("directed",))
def maximal_independent_set(G: Graph, nodes: Any, seed: Any) -> Any:
    # The result is a list that begins with `nodes`, and a set from NetworkX 3.7 on.
    _require_no_seed(seed)
    if G.loops.any():
        raise NotImplementedError("lagpu: an independent set of a graph with self-loops")
    # Each process of a grid has a generator of its own: what the first has drawn is all others'.
    drawn = 0 if nodes else seed.choice(range(len(G))), seed.randint(0, 2**31 - 1)
    one, number = map(int, of_all(G.matrix().backend, *drawn)[0])
    wanted = set(nodes) if nodes else {G.names[one]}
    if any(node not in G for node in wanted):
        raise nx.NetworkXUnfeasible(f"{wanted} is not a subset of the nodes of G")
    first = [G.index[node] for node in wanted]
    rows, cols = G.along()
    if (np.isin(rows, first) & np.isin(cols, first)).any():
        raise nx.NetworkXUnfeasible(f"{wanted} is not an independent set of G")
    members = algorithms.maximal_independent_set(G.matrix(), first, seed=number).to_coo()[0]
    independent = [G.names[v] for v in (*first, *np.setdiff1d(members, first).tolist())]
    return independent if NETWORKX < (3, 7) else set(independent)


@answers(not_for=("directed",))
def label_propagation_communities(G: Graph) -> Any:
    text: Any = registered("greedy_color").orig_func
    colors = text(G)
    by_vertex = Vector.from_dense(np.array([colors[node] for node in G.names]), like=G.matrix())
    found = algorithms.label_propagation(G.matrix(), by_vertex, max_iter=10**9)
    clusters: dict[int, set[Any]] = {}
    for node, label in zip(G.names, found.to_dense().tolist(), strict=True):
        clusters.setdefault(label, set()).add(node)
    return clusters.values()


@answers(not_for=("directed",))
def louvain_communities(
    G: Graph, weight: Any, resolution: Any, threshold: Any, max_level: Any, seed: Any
) -> list[set[Any]]:
    _require_no_seed(seed)
    A = G.matrix(weight, counted=True)
    number = int(of_all(A.backend, seed.randint(0, 2**31 - 1))[0][0])
    labels = algorithms.louvain(
        A, resolution=resolution, threshold=threshold, max_level=max_level, seed=number
    )
    return list(_sets(G, labels.to_dense()))


@answers()
def modularity(G: Graph, communities: Any, weight: Any, resolution: Any) -> float:
    A, directed = G.matrix(weight, counted=True), G.is_directed()
    labels = Vector.from_dense(labels_of(G, communities), like=A)
    return algorithms.modularity(A, labels, resolution=resolution, directed=directed)


# ---- centralities, eccentricities and clustering of nodes, and what follows from them
@answers()
def betweenness_centrality(
    G: Graph, k: int | None, normalized: bool, weight: Any, endpoints: bool, seed: Any
) -> dict[Any, float]:
    k, directed = None if k == len(G) else k, G.is_directed()
    A, weighted, ends = lengths_matrix(G, weight), weight is not None, bool(endpoints)
    found = algorithms.betweenness_centrality(
        A, k, bool(normalized), weight=weighted, endpoints=ends, directed=directed, seed=seed
    )
    return G.named(found.to_dense().tolist())


@answers()
def betweenness_centrality_subset(
    G: Graph, sources: Any, targets: Any, normalized: bool, weight: Any
) -> dict[Any, float]:
    if any(isinstance(nodes, Iterator) for nodes in (sources, targets)):
        raise NotImplementedError("lagpu: nodes that can be taken only once")
    starts = [G.find(node) for node in sources]
    ends = {G.find(node) for node in targets} - {None}
    if None in starts:
        raise NotImplementedError("lagpu: a source that is no node")
    A, weighted, directed = lengths_matrix(G, weight), weight is not None, G.is_directed()
    how: dict[str, Any] = {"weight": weighted, "directed": directed}
    found = algorithms.betweenness_centrality(
        A, None, bool(normalized), sources=starts, targets=sorted(ends), **how
    )
    return G.named(found.to_dense().tolist())


@answers(by_level=True)
def edge_betweenness_centrality(
    G: Graph, k: int | None, normalized: bool, weight: Any, seed: Any
) -> dict[Any, float]:
    n, A = len(G), lengths_matrix(G, weight)
    how: dict[str, Any] = {"weight": weight is not None, "directed": G.is_directed(), "seed": seed}
    found = algorithms.edge_betweenness_centrality(A, k, bool(normalized), **how)
    col_ptr, row_idx, values = found.to_csc()
    keys = np.repeat(np.arange(n), np.diff(col_ptr)) * n + row_idx
    rows, cols, lengths = once(G, G.numbers(weight))
    places = np.searchsorted(keys, cols * n + rows)
    # The shortest of parallel edges share it.
    least = np.full(len(keys), lengths.max(initial=0), lengths.dtype)
    np.minimum.at(least, places, lengths)
    shortest = lengths == least[places]
    share = values / np.maximum(np.bincount(places[shortest], minlength=len(keys)), 1)
    names = _edges(G, keys=True, data=False)
    return dict(zip(names, np.where(shortest, share[places], 0.0).tolist(), strict=True))


@answers()
def closeness_centrality(G: Graph, u: Any, distance: Any, wf_improved: bool) -> Any:
    chosen = None if u is None else require(G, u, "Source {} is not in G")
    A, weighted = lengths_matrix(G, distance), distance is not None
    found = algorithms.closeness_centrality(A, chosen, weighted, bool(wf_improved))
    return G.named(found.to_dense().tolist()) if chosen is None else found.get(chosen)


@answers()
def harmonic_centrality(G: Graph, nbunch: Any, distance: Any, sources: Any) -> dict[Any, float]:
    wanted = [G.names[v] for v in G.bunch(nbunch)]
    counted = None if sources is None else G.bunch(sources)
    ordered = set(wanted)  # as NetworkX orders its result, and each process otherwise
    if not wanted or counted == []:
        return dict.fromkeys(ordered, 0)
    chosen = [G.index[node] for node in wanted]
    A, weighted = lengths_matrix(G, distance), distance is not None
    found = algorithms.harmonic_centrality(A, chosen, weighted, counted).to_dense(0)
    return {node: found[G.index[node]].item() for node in ordered}


@answers()
def pagerank(
    G: Graph, alpha: float, personalization: Any, max_iter: int, tol: float, nstart: Any,
    weight: Any, dangling: Any,
) -> dict[Any, float]:  # fmt: skip
    if personalization is not None and not sum(x for v, x in personalization.items() if v in G):
        raise ZeroDivisionError
    jump, start, lost_to = (
        None if x is None else {G.index[v]: x[v] for v in x if v in G.index}
        for x in (personalization, nstart, dangling)
    )
    try:
        A = G.matrix(weight, counted=True)
        found = algorithms.pagerank(
            A, alpha, jump, max_iter, tol, start, not A.dtype.is_bool, lost_to
        )
    except NotConverged as error:
        if len(G) * tol > MOST:
            raise NotImplementedError("lagpu: NetworkX stops at larger changes") from error
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    return G.named(found.to_dense().tolist())


def _begin(G: Graph, given: Any) -> dict[int, float] | None:
    if given is not None and set(given) != set(G):
        raise NotImplementedError("lagpu: first values of some nodes")
    return None if given is None else {G.index[node]: x for node, x in given.items()}


@answers()
def eigenvector_centrality(
    G: Graph, max_iter: int, tol: float, nstart: Any, weight: Any
) -> dict[Any, float]:
    if nstart is not None and not any(nstart.values()):
        raise nx.NetworkXError("initial vector cannot have all zero values")
    A = G.matrix(weight or None, counted=True)
    try:
        found = algorithms.eigenvector_centrality(A, max_iter, tol, _begin(G, nstart))
    except NotConverged as error:
        values = G.weights(weight or None)
        if values is not None and (abs(values) > _LARGE).any():
            raise NotImplementedError("lagpu: squares of weights beyond floats") from error
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    return G.named(found.to_dense().tolist())


@answers()
def katz_centrality(
    G: Graph, alpha: float, beta: Any, max_iter: int, tol: float, nstart: Any, normalized: bool,
    weight: Any,
) -> dict[Any, float]:  # fmt: skip
    try:
        begin: Any = _begin(G, beta) if isinstance(beta, dict) else float(beta)
    except (TypeError, ValueError) as error:
        raise nx.NetworkXError("beta must be a number") from error
    A = G.matrix(weight, counted=True)
    try:
        found = algorithms.katz_centrality(
            A, alpha, begin, max_iter, tol, _begin(G, nstart), bool(normalized)
        )
    except NotConverged as error:
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    return G.named(found.to_dense().tolist())


_LARGE = 1e100  # of weights whose squares and their sums are floats
_CLOSER = 1000  # times more exact than `tol`: NetworkX' ARPACK is


@answers(normalized=(True,))
def hits(
    G: Graph, max_iter: int, tol: float, nstart: Any, normalized: bool
) -> tuple[dict[Any, float], dict[Any, float]]:
    if max_iter <= 0:
        raise nx.PowerIterationFailedConvergence(max_iter)
    if len(G) == 1:
        raise NotImplementedError("lagpu: hubs of one vertex")
    A, closer = G.matrix("weight", counted=True), max(tol, 1e-10) / _CLOSER
    found = algorithms.hits(A, _CLOSER * max_iter, closer, _begin(G, nstart))
    hubs, authorities = (G.named(x.to_dense().tolist()) for x in found)
    return hubs, authorities


@answers(text=("sp",))
def eccentricity(G: Graph, v: Any, weight: Any) -> Any:
    chosen = G.bunch(v)
    if not chosen:
        return {}
    found = algorithms.eccentricity(lengths_matrix(G, weight), chosen, weight=weight is not None)
    nodes = v if v in G else [G.names[k] for k in chosen]  # `v` may be an iterator
    return _of(G, found.to_dense(-1).tolist(), nodes)


@answers(text=("e", "weight"))
def diameter(G: Graph, usebounds: bool) -> int:
    return int(algorithms.diameter(G.matrix()))


by_text("center", "periphery", "radius")


def _of(G: Graph, values: list[Any], nodes: Any) -> Any:
    if nodes is not None and nodes in G:
        return values[G.index[nodes]]
    chosen = G.bunch(nodes)
    return G.named((values[v] for v in chosen), chosen)


@answers(not_for=_SIMPLE)
def triangles(G: Graph, nodes: Any) -> Any:
    return _of(G, algorithms.triangles(G.matrix()).to_dense().tolist(), nodes)


@answers(not_for=("multigraph",))
def clustering(G: Graph, nodes: Any, weight: Any) -> Any:
    found = algorithms.clustering(G.matrix(weight), weight=weight is not None)
    return _of(G, found.to_dense().tolist(), nodes)


by_text("average_clustering", not_for=("multigraph",))


@answers(not_for=("directed",))
def square_clustering(G: Graph, nodes: Any) -> Any:
    return _of(G, algorithms.square_clustering(G.matrix()).to_dense().tolist(), nodes)


@answers(not_for=("multigraph",))
def transitivity(G: Graph) -> float:
    return algorithms.transitivity(G.matrix())


# ---- degrees, and what NetworkX itself computes in less time than lagpu
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
        if G.loops.any():
            raise NotImplementedError("lagpu: similarity in a graph with self-loops")
        whole: Any = G
        ends = [(u, v) for u, v in (nx.non_edges(whole) if ebunch is None else ebunch)]
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
    rows, cols, values = once(G, G.numbers(weight, "a matrix"))
    rows, cols = places[rows], places[cols]
    kept = (rows >= 0) & (cols >= 0)
    some = values[kept]
    whole = np.floor(some) == some
    if some.dtype.kind == "i":  # of both truths and integers
        whole = ((some == 0) | (some == 1)) & (values.min(initial=1) < values.max(initial=1))
    if len(some) < len(values) and whole.all():  # they keep their type there
        raise NotImplementedError("lagpu: integers among other weights, or truths")
    return rows[kept], cols[kept], some


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
        _COMBINED[multigraph_weight].at(total, np.delete(inverse, first), np.delete(values, first))
        (rows, cols), values = np.divmod(keys, n), total
    A[rows, cols] = values
    if not G.is_directed():
        A[cols, rows] = values
    return A


@answers(quick=True)
def floyd_warshall(G: Graph, weight: Any) -> dict[Any, dict[Any, Any]]:
    n, (rows, cols, values) = len(G), algorithms.floyd_warshall(lengths_matrix(G, weight)).to_coo()
    lengths = [dict.fromkeys(G.names, np.inf) for _ in range(n)]
    for u, v, x in zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True):
        lengths[u][G.names[v]] = x
    return G.named(lengths)


@answers(quick=True)
def floyd_warshall_predecessor_and_distance(G: Graph, weight: Any) -> tuple[Any, Any]:
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
