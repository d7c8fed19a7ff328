"""Prove betweenness centralities by their definition, from all pairs of vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lagpu.check.graph import Graph, refuse
from lagpu.errors import CheckFailed, DimensionMismatch
from lagpu.host.memory import require

__all__ = ["BETWEENNESS_RULES", "check_betweenness", "check_edge_betweenness"]

Array = np.ndarray[Any, Any]

BETWEENNESS_RULES = (
    "every vertex, or every edge, has a centrality",
    "a centrality is the scaled sum over the pairs that count",
    "a standard error is that of a mean over the sources that count",
)


def check_betweenness(
    A: Any,
    centrality: Any,
    *,
    normalized: bool = True,
    endpoints: bool = False,
    directed: bool = True,
    sources: Any = None,
    error: Any = None,
    rel_tol: float = 1e-9,
) -> tuple[str, ...]:
    """Prove that numbers are betweenness centralities, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; small, since all pairs take ``48 n**2`` bytes and ``n**3`` steps.
    centrality : result, (n,)
        Centrality of each vertex.
    normalized, endpoints, directed
        As given to `lagpu.algorithms.betweenness_centrality`.
    sources : list of int, optional
        The sources of an estimate; by default all vertices.
    error : result, (n,), optional
        The standard errors, as `lagpu.algorithms.betweenness_estimate` returns them; they may be
        off by a millionth of the largest centrality, since squares are subtracted.
    rel_tol : float
        Relative tolerance of the centralities.

    Returns
    -------
    tuple of str
        The rules that hold: `BETWEENNESS_RULES`; without `error` the first two.

    Raises
    ------
    CheckFailed
        At the first vertex with a wrong centrality or error.

    Notes
    -----
    A shortest path from s to t leads through v if dist(s, v) + dist(v, t) = dist(s, t), and
    paths(s, v) * paths(v, t) of the paths do. SciPy computes distances; nothing is accumulated
    backward.
    """
    graph = Graph(A)
    found, present = graph.dense(centrality, "centrality")
    name, n = "check_betweenness", graph.n
    refuse(~present, f"{name}: {BETWEENNESS_RULES[0]}", lambda v: "no centrality")
    distance, paths = _all_pairs(graph)
    chosen = np.arange(n) if sources is None else np.asarray(sources, int)
    s, t = chosen[:, None], np.arange(n)[None, :]
    joined = np.isfinite(distance[chosen]) & (s != t)
    total, counted, spread = np.zeros(n), np.zeros(n), np.zeros(n)
    for v in range(n):
        counts = (s != t) if endpoints else (s != t) & (s != v) & (t != v)
        through = joined & counts
        through &= distance[chosen, v][:, None] + distance[v] == distance[chosen]
        share = paths[chosen, v][:, None] * paths[v]
        each = np.divide(share, paths[chosen], out=np.zeros(share.shape), where=through).sum(axis=1)
        total[v] = each.sum()
        counted[v] = counts.sum()
        spread[v] = _spread(each if endpoints else each[chosen != v], n if endpoints else n - 1)
    pairs = n * (n - 1) if endpoints else (n - 1) * (n - 2)
    wanted = _scaled(total, counted, pairs, normalized, directed)
    _compare(found, wanted, rel_tol, f"{name}: {BETWEENNESS_RULES[1]}: vertex", str)
    if error is None:
        return BETWEENNESS_RULES[:2]
    errors, present = graph.dense(error, "error")
    refuse(~present, f"{name}: {BETWEENNESS_RULES[2]}", lambda v: "no error")
    wanted = _scaled(spread, counted, pairs, normalized, directed)
    rule = f"{name}: {BETWEENNESS_RULES[2]}: vertex"
    _compare(errors, wanted, 1e-6, rule, str, 1e-6 * float(np.nanmax(found, initial=0)))
    return BETWEENNESS_RULES


def check_edge_betweenness(
    A: Any,
    centrality: Any,
    *,
    normalized: bool = True,
    directed: bool = True,
    sources: Any = None,
    rel_tol: float = 1e-9,
) -> tuple[str, ...]:
    """Prove that numbers are betweenness centralities of edges, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See `check_betweenness`.
    centrality : Matrix or SciPy sparse array, (n, n)
        Centrality of each entry of `A`.
    normalized, directed, sources, rel_tol
        As in `check_betweenness`.

    Returns
    -------
    tuple of str
        The rules that hold: the first two of `BETWEENNESS_RULES`.

    Raises
    ------
    CheckFailed, DimensionMismatch
        At the first edge with a wrong centrality; if the entries are not those of `A`.

    Notes
    -----
    A shortest path from s to t leads along u -> v if dist(s, u) + 1 + dist(v, t) = dist(s, t).
    """
    graph = Graph(A)
    name, n = "check_edge_betweenness", graph.n
    entries = graph.columns.tocoo()
    rows, cols, found = _entries(centrality)
    if not (np.array_equal(rows, entries.row) and np.array_equal(cols, entries.col)):
        raise DimensionMismatch(
            f"{name}: {BETWEENNESS_RULES[0]}: the entries are not those of the graph."
        )
    distance, paths = _all_pairs(graph)
    chosen = np.arange(n) if sources is None else np.asarray(sources, int)
    joined = np.isfinite(distance[chosen]) & (chosen[:, None] != np.arange(n))

    def along(u: int, v: int) -> float:
        on = joined & (distance[chosen, u][:, None] + 1 + distance[v] == distance[chosen])
        share = paths[chosen, u][:, None] * paths[v]
        return float(np.divide(share, paths[chosen], out=np.zeros(share.shape), where=on).sum())

    total = np.array([along(u, v) for u, v in zip(rows, cols, strict=True)])
    if not directed:
        total += np.array([along(v, u) for u, v in zip(rows, cols, strict=True)])
    counted = np.full(len(rows), len(chosen) * (n - 1))
    wanted = _scaled(total, counted, n * (n - 1), normalized, directed)
    rule = f"{name}: {BETWEENNESS_RULES[1]}: edge"
    _compare(found, wanted, rel_tol, rule, lambda e: f"{rows[e]} -> {cols[e]}")
    return BETWEENNESS_RULES[:2]


def _all_pairs(graph: Graph) -> tuple[Array, Array]:
    """Return the distances and the numbers of shortest paths between all pairs, both (n, n)."""
    require(48 * graph.n**2, "check: distances and paths of all pairs")
    pattern = sp.csr_array(graph.columns, dtype=float)
    search: Any = csgraph.shortest_path
    distance: Array = search(pattern, method="D", unweighted=True)
    paths = np.eye(graph.n)
    for d in range(1, int(distance[np.isfinite(distance)].max(initial=0)) + 1):
        before = np.where(distance == d - 1, paths, 0)
        paths = np.where(distance == d, before @ pattern, paths)
    return distance, paths


def _entries(B: Any) -> tuple[Array, Array, Array]:
    """Return (rows, columns, values) by columns and then by rows."""
    rows, cols, values = B.to_coo() if hasattr(B, "to_coo") else sp.find(B)
    order = np.lexsort((rows, cols))
    return rows[order], cols[order], values[order]


def _scaled(total: Array, counted: Array, pairs: int, normalized: bool, directed: bool) -> Array:
    """Return sums over the counted pairs as shares, or extrapolated to all pairs."""
    if pairs <= 0:
        return total
    share: Array = np.divide(total, counted, out=np.full(len(total), np.nan), where=counted > 0)
    if not normalized:
        share *= pairs / (1 if directed else 2)
    return share


def _spread(each: Array, population: int) -> float:
    """Return the standard error of the sum of a sample drawn without replacement."""
    m = len(each)
    if m == population:
        return 0.0
    if m < 2:
        return np.nan
    return float(m * np.std(each, ddof=1) / np.sqrt(m) * np.sqrt(1 - m / population))


def _compare(
    found: Array, wanted: Array, rel_tol: float, rule: str, place: Any, atol: float = 1e-15
) -> None:
    """Raise `CheckFailed` for the first number that is not the wanted one."""
    bad = ~np.isclose(found, wanted, rtol=rel_tol, atol=atol, equal_nan=True)
    if bad.any():
        k = int(np.argmax(bad))
        raise CheckFailed(
            f"{rule} {place(k)}: {found[k]}, but the sum gives {wanted[k]} "
            f"(first of {np.count_nonzero(bad)})."
        )
