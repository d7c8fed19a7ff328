"""Prove PageRanks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lagpu.check.graph import Graph, refuse, weighted
from lagpu.check.slices import Edges
from lagpu.errors import CheckFailed

__all__ = ["PAGERANK_RULES", "check_pagerank"]

Array = np.ndarray[Any, Any]

PAGERANK_RULES = (
    "every vertex has a rank, a number >= 0",
    "the sum of the ranks is 1",
    "a further step changes the ranks by less than min(n * tol, 0.001) in sum",
)


def check_pagerank(
    A: Any,
    ranks: Any,
    alpha: float = 0.85,
    *,
    personalization: Any = None,
    tol: float = 1e-6,
    weight: bool = True,
    dangling: Any = None,
) -> tuple[str, ...]:
    """Prove that ranks are PageRanks up to a tolerance, or raise.

    Parameters
    ----------
    A : Matrix or SciPy sparse array, (n, n)
        Entries are weights >= 0.
    ranks : result, (n,)
        Rank of each vertex.
    alpha, personalization, tol, weight, dangling
        As given to `lagpu.algorithms.pagerank`.

    Returns
    -------
    tuple of str
        The rules that hold: `PAGERANK_RULES`.

    Raises
    ------
    CheckFailed
        At the first broken rule.

    Notes
    -----
    The rules suffice: a step contracts distances by alpha, so by Banach's theorem ranks that one
    step moves by r lie within ``r / (1 - alpha)`` of the true ranks, the only ones with sum 1.
    """
    graph = Graph(A)
    rank, present = graph.dense(ranks, "ranks")
    n, name = graph.n, "check_pagerank"
    refuse(
        ~(present & (rank >= 0)),
        f"{name}: {PAGERANK_RULES[0]}",
        lambda v: f"rank {rank[v]}" if present[v] else "no rank",
    )
    if n and not abs(rank.sum() - 1) < 1e-9:
        raise CheckFailed(f"{name}: {PAGERANK_RULES[1]}: the sum is {rank.sum()}.")
    edges = weighted(A)

    def weights(e: Edges) -> Array:
        return e.lengths.astype(float) if weight else np.ones(len(e.begin))

    largest = edges.at_begins(weights, np.maximum, 0.0)
    largest[largest == 0] = 1

    def scaled(e: Edges) -> Array:  # so that no sum overflows, and no quotient
        found: Array = weights(e) / largest[e.begin]
        return found

    out = edges.at_begins(scaled, np.add, 0.0)
    jump = _probabilities(graph, personalization, np.full(n, 1 / max(n, 1)))
    lost_to = _probabilities(graph, dangling, jump)
    stays = out > 0
    share = np.divide(rank, out, out=np.zeros(n), where=stays)
    stepped = edges.at_ends(lambda e: scaled(e) * share[e.begin], np.add, 0.0)
    further = alpha * (stepped + rank[~stays].sum() * lost_to) + (1 - alpha) * jump
    moved = np.abs(further - rank).sum()
    enough = min(n * tol, 1e-3)  # ranks with sum 1 differ by at most 2 in sum
    if n and not moved < enough + 1e-12:
        raise CheckFailed(f"{name}: {PAGERANK_RULES[2]}: by {moved}, not below {enough}.")
    return PAGERANK_RULES


def _probabilities(graph: Graph, weights: Any, default: Array) -> Array:
    if weights is None:
        return default
    if isinstance(weights, Mapping):
        weights = (np.array(list(weights), int), np.array(list(weights.values()), float))
    values, _ = graph.dense(weights, "weights")
    values = values / values.max()  # so that the sum does not overflow
    found: Array = values / values.sum()
    return found
