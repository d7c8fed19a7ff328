"""Check trusses, spanning forests and matchings.

The checkers of the first two collect all edges in each process.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lagpu.check.graph import Array, Proof, both_ends
from lagpu.errors import InvalidValue

TRUSS_RULES = (
    "an edge is in the truss if and only if it is left when edges with too few triangles are "
    "removed one by one",
)
FOREST_RULES = (
    "an entry of the forest is one of the graph, and has a reverse",
    "the forest has the components of the graph and no cycle",
    "its weights, sorted, are those of another forest of least weight",
)
MATCHING_RULES = (
    "a vertex is the mate of its mate, and an edge joins the two",
    "no edge joins two vertices without a mate",
)


def whole(proof: Proof) -> sp.csr_array:
    """Return all edges of a graph with their values, or ones, (n, n)."""

    def own(part: Any) -> tuple[Array, ...]:
        begin, end = both_ends(part)
        values = np.ones(len(begin), int) if part.values is None else part.values
        return begin, end, values if values.dtype.kind == "f" else values.astype(np.int64)

    begin, end, values = map(np.concatenate, zip(*proof.edges.gather(own), strict=True))
    return sp.csr_array((values, (begin, end)), shape=(proof.n, proof.n))


def undirected(proof: Proof) -> sp.coo_array:
    """Return all edges off the diagonal, or raise if the graph is directed."""
    if not proof.edges.symmetric:
        raise InvalidValue(f"{proof.name}: the graph is directed. Give the undirected one.")
    found = whole(proof).tocoo()
    off = found.row != found.col
    return sp.coo_array((found.data[off], (found.row[off], found.col[off])), shape=found.shape)


def check_k_truss(A: Any, truss: Any, k: int) -> tuple[str, ...]:
    """Prove that a graph is the k-truss of another, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; symmetric, and self-loops do not count.
    truss : graph, (n, n)
        The entries of the truss.
    k : int
        An edge is in k - 2 triangles of the truss or more.

    Notes
    -----
    Edges are removed one by one, whichever comes first, and sets of neighbours are intersected.
    Source: Cohen 2008.
    """
    proof, found = (Proof("check_k_truss", TRUSS_RULES, graph) for graph in (A, truss))
    edges = undirected(proof)
    near: list[set[int]] = [set() for _ in range(proof.n)]
    for u, v in zip(edges.row.tolist(), edges.col.tolist(), strict=True):
        near[u].add(v)
    waiting = {(u, v) for u, others in enumerate(near) for v in others if u < v}
    while waiting:
        u, v = waiting.pop()
        thirds = near[u] & near[v]
        if v in near[u] and len(thirds) < k - 2:
            near[u].discard(v)
            near[v].discard(u)
            waiting |= {(min(x, w), max(x, w)) for w in thirds for x in (u, v)}
    left = {(u, v) for u, others in enumerate(near) for v in others}
    rows, cols = whole(found).nonzero()
    for edge in sorted(left ^ set(zip(rows.tolist(), cols.tolist(), strict=True))):
        proof.fail(0, f"{edge} is {'left, but not there' if edge in left else 'not left'}")
    return TRUSS_RULES


def check_spanning_forest(A: Any, forest: Any, *, maximum: bool = False) -> tuple[str, ...]:
    """Prove that a graph is a spanning forest of least weight of another, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; symmetric, with weights, and self-loops do not count.
    forest : graph, (n, n)
        The entries of the forest.
    maximum : bool
        Whether the weight is the largest.

    Notes
    -----
    All spanning forests of least weight have the same sorted weights; SciPy finds one of them. The
    weights are replaced by their places in order, on which the forest depends alone.
    """
    proof, found = (Proof("check_spanning_forest", FOREST_RULES, x, values=True)
                    for x in (A, forest))  # fmt: skip
    edges = undirected(proof)
    rank = np.unique(edges.data, return_inverse=True)[1] + 1
    ranks = sp.csr_array((rank.max(initial=0) + 1 - rank if maximum else rank,
                          (edges.row, edges.col)), shape=edges.shape)  # fmt: skip
    values = whole(proof)
    tree = whole(found).tocoo()
    for u, v, value in zip(tree.row, tree.col, tree.data, strict=True):
        if u == v or not ranks[u, v] or values[u, v] != value or not found.edges.symmetric:
            proof.fail(0, f"({u}, {v}) with {value}")
    count, wanted = (csgraph.connected_components(x)[0] for x in (tree, ranks))
    if count != wanted or len(tree.data) != 2 * (proof.n - count):
        proof.fail(1, f"{len(tree.data) // 2} edges and {count} components, not {wanted}")
    mine = np.sort([ranks[u, v] for u, v in zip(tree.row, tree.col, strict=True) if u < v])
    right = np.sort(csgraph.minimum_spanning_tree(ranks).data)
    differ = np.flatnonzero(mine != right)
    if differ.size:
        proof.fail(2, f"at place {differ[0]} (first of {differ.size})")
    return FOREST_RULES


def check_matching(A: Any, mates: Any) -> tuple[str, ...]:
    """Prove that vertices are matched along edges, and that no edge can be added, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; directions of edges do not matter, and self-loops do not count.
    mates : result, (n,)
        The other end of each vertex's edge.
    """
    proof = Proof("check_matching", MATCHING_RULES, A)
    mate, matched = proof.dense(mates, "mates")
    proof.refuse(0, matched & ~proof.are_vertices(mate), lambda v: f"mate {mate[v]}")
    u = np.flatnonzero(matched)
    v = mate[u].astype(np.int64)
    right = matched[v] & (mate[v] == u) & (proof.edges.have(u, v) | proof.edges.have(v, u))
    wrong = np.zeros(proof.n, bool)
    wrong[u] = ~right | (u == v)
    proof.refuse(0, wrong, lambda v: f"mate {mate[v]}")
    free = proof.neighbours(lambda own, other: ~matched[own] & ~matched[other])
    proof.refuse(1, free > 0, lambda v: f"{free[v]} edges to others without a mate")
    return MATCHING_RULES
