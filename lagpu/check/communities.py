"""Check quotient graphs, modularities and communities.

The checkers collect all edges in each process.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu.check.graph import Array, Proof
from lagpu.check.subgraphs import whole

CONTRACTION_RULES = (
    "the names are the labels of the vertices, rising",
    "an entry of the quotient combines the entries between two labels",
)
MODULARITY_RULES = ("the modularity is the sum over all edges, and over all pairs of vertices",)
COMMUNITY_RULES = (
    "a label is the least vertex with this label",
    "joining two communities gains no modularity",
)
PROPAGATION_RULES = ("labels are those of vertices that count their neighbours' labels one by one",)


def check_contraction(A: Any, labels: Any, quotient: Any, names: Any) -> tuple[str, ...]:
    """Prove that a graph is the quotient of another by labels, values added, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        With values; one rounding of each sum is allowed.
    labels : result, (n,)
        The label of each vertex.
    quotient : Matrix or SciPy sparse array, (k, k)
    names : result, (k,)
        The label of each vertex of the quotient.
    """
    proof = Proof("check_contraction", CONTRACTION_RULES, A, values=True)
    label = proof.full(labels, "labels", "label")
    found = Proof("check_contraction", CONTRACTION_RULES, quotient, values=True)
    name, right = found.full(names, "names", "name"), np.unique(label)
    if name.tolist() != right.tolist():
        proof.fail(0, f"{name.tolist()}, not {right.tolist()}")
    sums: dict[tuple[Any, Any], float] = defaultdict(float)
    edges = whole(proof).tocoo()
    for u, v, x in zip(edges.row, edges.col, edges.data.tolist(), strict=True):
        sums[label[u], label[v]] += x
    mine = whole(found).tocoo()
    of = {(name[u], name[v]): x for u, v, x in zip(mine.row, mine.col, mine.data, strict=True)}
    for a, b in sorted(sums.keys() | of.keys()):
        x, wanted = of.get((a, b)), sums.get((a, b))
        if x is None or wanted is None or not np.isclose(x, wanted, rtol=1e-12, atol=1e-12):
            proof.fail(1, f"({a}, {b}): {x}, not {wanted}")
    return CONTRACTION_RULES


def _is_symmetric(proof: Proof, edges: Any) -> bool:
    """Whether each edge has a reverse of the same value, which may be 0."""
    return proof.edges.symmetric and not (edges != edges.T).nnz


def _expected(
    A: Any, weight: bool, name: str, rules: tuple[str, ...], directed: bool | None = None
) -> tuple[Proof, Any, Any]:
    """Return the weights, (n, n), and those that are expected at random, dense."""
    proof = Proof(name, rules, A, values=True)
    edges = whole(proof).astype(float)
    if not weight:
        edges.data[:] = 1
    if not (not _is_symmetric(proof, edges) if directed is None else directed):
        edges = edges + sp.diags_array(edges.diagonal())
    total = edges.sum()
    return proof, edges / total, np.outer(edges.sum(axis=1), edges.sum(axis=0)) / total**2


def check_modularity(
    A: Any,
    labels: Any,
    found: float,
    *,
    weight: bool = True,
    resolution: float = 1,
    directed: bool | None = None,
) -> tuple[str, ...]:
    """Prove that a number is the modularity of communities, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        With values. It takes memory for all pairs of vertices.
    labels : result, (n,)
        The community of each vertex.
    found : float
        The number; an error of 1e-9 is allowed.
    weight, resolution, directed
        As in `lagpu.algorithms.modularity`.
    """
    proof, edges, pairs = _expected(A, weight, "check_modularity", MODULARITY_RULES, directed)
    label = proof.full(labels, "labels", "label")
    wanted = (edges.toarray() - resolution * pairs)[label[:, None] == label].sum()
    if not abs(found - wanted) <= 1e-9:
        proof.fail(0, f"{found}, not {wanted}")
    return MODULARITY_RULES


def check_communities(
    A: Any, labels: Any, *, weight: bool = True, resolution: float = 1, threshold: float = 1e-7
) -> tuple[str, ...]:
    """Prove that communities are those at which a method that joins them may end, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See `check_modularity`; symmetric.
    labels : result, (n,)
        The least vertex of each vertex's community.
    weight, resolution
        As in `check_modularity`.
    threshold : float
        The gain of joining two communities that may be left.
    """
    proof = Proof("check_communities", COMMUNITY_RULES, A)
    label = proof.whole(labels, "labels", "label", proof.n)
    _, first, place = np.unique(label, return_index=True, return_inverse=True)
    proof.refuse(0, label != first[place], lambda v: f"label {label[v]}, not {first[place[v]]}")
    if not proof.edges.total(lambda e: np.ones(len(e.begin), bool)):
        return COMMUNITY_RULES
    _, edges, pairs = _expected(A, weight, proof.name, COMMUNITY_RULES)
    member = sp.csr_array((np.ones(proof.n), (place, np.arange(proof.n))))
    gain = 2 * (member @ (edges.toarray() - resolution * pairs) @ member.T)
    np.fill_diagonal(gain, 0)
    if gain.size and gain.max() > threshold + 1e-9:
        a, b = (int(x) for x in np.unravel_index(np.argmax(gain), gain.shape))
        proof.fail(1, f"{first[a]} and {first[b]}: {gain[a, b]}")
    return COMMUNITY_RULES


def check_label_propagation(
    A: Any, labels: Any, colors: Any = None, *, max_iter: int = 100, weight: bool = False
) -> tuple[str, ...]:
    """Prove that labels are those of label propagation, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        With values.
    labels : result, (n,)
        Labels; those of every vertex are computed again by plain loops.
    colors, max_iter, weight
        As in `lagpu.algorithms.label_propagation`.
    """
    proof = Proof("check_label_propagation", PROPAGATION_RULES, A, values=True)
    given = proof.full(labels, "labels", "label")
    color = np.zeros(proof.n) if colors is None else proof.full(colors, "colors", "colour")
    edges = whole(proof)
    if not weight:
        edges.data[:] = 1
    if not _is_symmetric(proof, edges):  # a sum of SciPy's would lose edges of weight 0
        begin, end = (np.concatenate(x) for x in (edges.tocoo().coords, edges.tocoo().coords[::-1]))
        edges = sp.csr_array((np.tile(edges.data, 2), (begin, end)), shape=edges.shape)
    label: Array = np.arange(proof.n)
    for _ in range(max_iter):
        before = label.copy()
        for k in np.unique(color):
            now = label.copy()
            for v in np.flatnonzero(color == k):
                near = slice(edges.indptr[v], edges.indptr[v + 1])
                counts: dict[int, float] = defaultdict(float)
                for u, x in zip(edges.indices[near].tolist(), edges.data[near], strict=True):
                    counts[int(label[u])] += x
                best = [c for c, x in counts.items() if x == max(counts.values())]
                if best and not (colors is not None and label[v] in best):
                    now[v] = min(best) if colors is None else max(best)
            label = now
        if (label == before).all():
            break
    proof.refuse(0, given != label, lambda v: f"label {given[v]}, not {label[v]}")
    return PROPAGATION_RULES
