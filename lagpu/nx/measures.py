"""Centralities, eccentricities and clustering of nodes, and what follows from them."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from lagpu import algorithms
from lagpu.algorithms.pagerank import MOST
from lagpu.errors import NoPath, NotConverged
from lagpu.nx.answers import answers
from lagpu.nx.graph import Graph
from lagpu.nx.paths import require


@answers()
def betweenness_centrality(
    G: Graph, k: int | None, normalized: bool, endpoints: bool, seed: Any
) -> dict[Any, float]:
    """Return the share of shortest paths that lead through each node."""
    found = algorithms.betweenness_centrality(
        G.matrix(),
        None if k == len(G) else k,
        bool(normalized),
        endpoints=bool(endpoints),
        directed=G.is_directed(),
        seed=seed,
    )
    return G.named(found.to_dense().tolist())


@answers(not_for=("multigraph",))
def edge_betweenness_centrality(
    G: Graph, k: int | None, normalized: bool, seed: Any
) -> dict[Any, float]:
    """Return the share of shortest paths that lead along each edge."""
    n, directed = len(G), G.is_directed()
    found = algorithms.edge_betweenness_centrality(
        G.matrix(), k, bool(normalized), directed=directed, seed=seed
    )
    col_ptr, row_idx, values = found.to_csc()
    keys = np.repeat(np.arange(n), np.diff(col_ptr)) * n + row_idx
    rows, cols = G.along()
    if not directed:
        rows, cols = rows[rows <= cols], cols[rows <= cols]
    wanted = values[np.searchsorted(keys, cols * n + rows)].tolist()
    nodes = G.nodes
    ends = zip(rows.tolist(), cols.tolist(), wanted, strict=True)
    return {(nodes[u], nodes[v]): value for u, v, value in ends}


@answers()
def closeness_centrality(G: Graph, u: Any, wf_improved: bool) -> Any:
    """Return the reciprocal of the mean distance to a node, or by nodes to each."""
    chosen = None if u is None else require(G, u, "Source {} is not in G")
    found = algorithms.closeness_centrality(G.matrix(), chosen, wf_improved=bool(wf_improved))
    return G.named(found.to_dense().tolist()) if chosen is None else found.get(chosen)


@answers()
def harmonic_centrality(G: Graph, nbunch: Any, sources: Any) -> dict[Any, float]:
    """Return the sum of the reciprocals of the distances to each node."""
    wanted = [G.nodes[v] for v in G.bunch(nbunch)]
    counted = None if sources is None else G.bunch(sources)
    ordered = set(wanted)  # as NetworkX orders its result, and each process otherwise
    if not wanted or counted == []:
        return dict.fromkeys(ordered, 0)
    chosen = [G.index[node] for node in wanted]
    found = algorithms.harmonic_centrality(G.matrix(), chosen, sources=counted).to_dense(0)
    return {node: found[G.index[node]].item() for node in ordered}


@answers()
def pagerank(
    G: Graph,
    alpha: float,
    personalization: Any,
    max_iter: int,
    tol: float,
    nstart: Any,
    weight: Any,
    dangling: Any,
) -> dict[Any, float]:
    """Return the PageRank of each node."""
    if personalization is not None and not sum(x for v, x in personalization.items() if v in G):
        raise ZeroDivisionError
    given = (
        None if x is None else {G.index[v]: x[v] for v in x if v in G.index}
        for x in (personalization, nstart, dangling)
    )
    jump, start, lost_to = given
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


def _error(G: Graph) -> nx.NetworkXError:
    kind = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
    return nx.NetworkXError(f"Found infinite path length because the {kind}")


@answers()
def eccentricity(G: Graph, v: Any) -> Any:
    """Return the distance from a node, or by nodes from each, to the farthest node."""
    chosen = G.bunch(v)
    if not chosen:
        return {}
    try:
        found = algorithms.eccentricity(G.matrix(), chosen)
    except NoPath as error:
        raise _error(G) from error
    values = found.to_dense(-1)[chosen].tolist()
    return values[0] if v is not None and v in G else G.named(values, chosen)


@answers()
def diameter(G: Graph, usebounds: bool) -> int:
    """Return the largest eccentricity."""
    try:
        return algorithms.diameter(G.matrix())
    except NoPath as error:
        raise _error(G) from error


@answers()
def radius(G: Graph, usebounds: bool) -> int:
    """Return the least eccentricity."""
    return int(min(eccentricity(G).values()))


@answers()
def center(G: Graph, usebounds: bool) -> list[Any]:
    """Return the nodes of the least eccentricity."""
    found = eccentricity(G)
    least = min(found.values())
    return [node for node, value in found.items() if value == least]


@answers()
def periphery(G: Graph, usebounds: bool) -> list[Any]:
    """Return the nodes of the largest eccentricity."""
    found = eccentricity(G)
    most = max(found.values())
    return [node for node, value in found.items() if value == most]


_SIMPLE = ("directed", "multigraph")


def _of(G: Graph, values: list[Any], nodes: Any) -> Any:
    """Return the value of a node, or values by nodes."""
    if nodes is not None and nodes in G:
        return values[G.index[nodes]]
    chosen = G.bunch(nodes)
    return G.named((values[v] for v in chosen), chosen)


@answers(not_for=_SIMPLE)
def triangles(G: Graph, nodes: Any) -> Any:
    """Return the number of triangles of a node, or by nodes of each."""
    return _of(G, algorithms.triangles(G.matrix()).to_dense().tolist(), nodes)


@answers(not_for=_SIMPLE)
def clustering(G: Graph, nodes: Any) -> Any:
    """Return the share of joined pairs of neighbours of a node, or by nodes of each."""
    return _of(G, algorithms.clustering(G.matrix()).to_dense().tolist(), nodes)


@answers(not_for=_SIMPLE)
def average_clustering(G: Graph, nodes: Any, count_zeros: bool) -> float:
    """Return the mean of the clustering of nodes."""
    every = algorithms.clustering(G.matrix()).to_dense()[G.bunch(nodes)].tolist()
    counted = every if count_zeros else [x for x in every if x > 0]
    return float(sum(counted) / len(counted))


@answers(not_for=_SIMPLE)
def transitivity(G: Graph) -> float:
    """Return the share of joined pairs among all pairs of a common neighbour."""
    return algorithms.transitivity(G.matrix())
