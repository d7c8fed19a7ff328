"""Check numbers of pairs, reciprocities, Laplacian matrices, and neighbourhoods.

The checkers collect all edges in each process, but that of `check_k_hop_sizes`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import csgraph

from lagpu.check.graph import Proof
from lagpu.check.subgraphs import undirected, whole

SIMILARITY_RULES = (
    "every pair has an entry",
    "the entry of a pair follows from the two sets of neighbours by definition",
)
RECIPROCITY_RULES = ("the share of a vertex, or of the graph, is that of its edges with a reverse",)
LAPLACIAN_RULES = ("the matrix is that of the definition, computed with dense matrices",)
NEAR_RULES = ("the entries are those of the graph between two vertices within the radius",)
SIZE_RULES = ("a size is the number of vertices that a search of k levels finds",)
LARGEST_RULES = ("the members are the first component of those that SciPy finds to be largest",)


def check_similarity(
    A: Any, found: Any, pairs: Any = None, *, kind: str = "jaccard"
) -> tuple[str, ...]:
    """Prove that numbers are the similarities of pairs of vertices, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; symmetric, and self-loops do not count.
    found : Matrix or SciPy sparse array, (n, n)
        The number of each pair; an error of 1e-12 of it is allowed.
    pairs : list of pairs of int, optional
        By default all pairs of two vertices with a common neighbour.
    kind : str
        As in `lagpu.algorithms.similarity`.
    """
    proof = Proof("check_similarity", SIMILARITY_RULES, A)
    edges = undirected(proof)
    near: list[set[int]] = [set() for _ in range(proof.n)]
    for u, v in zip(edges.row.tolist(), edges.col.tolist(), strict=True):
        near[u].add(v)
    if pairs is None:
        pairs = {(u, v) for some in near for u in some for v in some if u != v}
    values = whole(Proof(proof.name, SIMILARITY_RULES, found, values=True)).tocoo()
    each = zip(values.row.tolist(), values.col.tolist(), values.data.tolist(), strict=True)
    number = {(u, v): x for u, v, x in each}
    for pair in sorted(number.keys() ^ {*map(tuple, pairs)}):
        proof.fail(0, f"{pair} {'is no pair' if pair in number else 'has none'}")
    for (u, v), x in number.items():
        both, either = near[u] & near[v], len(near[u] | near[v])
        product = len(near[u]) * len(near[v])
        wanted = {
            "common_neighbors": len(both),
            "jaccard": len(both) / max(either, 1),
            "cosine": len(both) / math.sqrt(max(product, 1)),
            "preferential_attachment": product,
            "resource_allocation": sum(1 / len(near[w]) for w in both),
            "adamic_adar": sum(_inverse(math.log(len(near[w]))) for w in both),
        }[kind]
        if not math.isclose(x, wanted, rel_tol=1e-12):
            proof.fail(1, f"{(u, v)}: {x}, not {wanted}")
    return SIMILARITY_RULES


def _inverse(x: float) -> float:
    return 1 / x if x else math.inf  # of a neighbour that the two ends of (v, v) have alone


def check_reciprocity(A: Any, share: Any) -> tuple[str, ...]:
    """Prove that shares are the reciprocities of the vertices or the graph, or raise.

    Parameters
    ----------
    A : graph, (n, n)
    share : result, (n,), or float
        The share of each vertex that has an edge; or of all edges, where self-loops have no
        reverse.
    """
    proof = Proof("check_reciprocity", RECIPROCITY_RULES, A)
    edges = whole(proof)
    mutual = edges.multiply(edges.T)
    if isinstance(share, float):
        wanted = (mutual.sum() - mutual.diagonal().sum()) / edges.sum()
        if not abs(share - wanted) <= 1e-12:
            proof.fail(0, f"{share}, not {wanted}")
        return RECIPROCITY_RULES
    value, present = proof.dense(share, "reciprocity")
    count = np.asarray(edges.sum(axis=0) + edges.sum(axis=1))
    right = 2 * np.asarray(mutual.sum(axis=1)) / np.maximum(count, 1)
    bad = (present != (count > 0)) | ~(np.abs(value - right) <= 1e-12)
    proof.refuse(0, bad, lambda v: f"{value[v] if present[v] else 'no share'}, not {right[v]}")
    return RECIPROCITY_RULES


def check_laplacian(
    A: Any, found: Any, *, weight: bool = True, normalized: bool = False
) -> tuple[str, ...]:
    """Prove that a matrix is the Laplacian matrix of a graph, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        With values. It takes memory for all pairs of vertices.
    found : Matrix or SciPy sparse array, (n, n)
        An error of 1e-9 is allowed.
    weight, normalized
        As in `lagpu.algorithms.laplacian_matrix`.
    """
    proof = Proof("check_laplacian", LAPLACIAN_RULES, A, values=weight)
    edges = whole(proof).toarray().astype(float)
    sums = edges.sum(axis=1)
    wanted = np.diag(sums) - edges
    if normalized:
        roots = np.sqrt(np.divide(1, sums, out=np.zeros(proof.n), where=sums != 0))
        wanted = roots[:, None] * wanted * roots
    values = whole(Proof(proof.name, LAPLACIAN_RULES, found, values=True)).toarray()
    wrong = np.argwhere(~np.isclose(values, wanted, rtol=1e-9, atol=1e-9))
    for u, v in wrong.tolist():
        proof.fail(0, f"{(u, v)}: {values[u, v]}, not {wanted[u, v]} (first of {len(wrong)})")
    return LAPLACIAN_RULES


def check_ego_graph(
    A: Any, n: int, found: Any, radius: float = 1, *, center: bool = True, undirected: bool = False
) -> tuple[str, ...]:
    """Prove that a graph is the part of another near a vertex, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        With values; each edge has length 1.
    n : int
        The vertex.
    found : graph, (n, n)
        The part, with values.
    radius, center, undirected
        As in `lagpu.algorithms.ego_graph`.
    """
    proof = Proof("check_ego_graph", NEAR_RULES, A, n, values=True)
    edges = whole(proof).tocoo()
    near = {proof.source}
    for _ in range(int(min(radius, proof.n))):
        hit = np.isin(edges.row, [*near]), np.isin(edges.col, [*near])
        near |= {*edges.col[hit[0]].tolist(), *(edges.row[hit[1]].tolist() if undirected else ())}
    near -= set() if center else {proof.source}
    kept = np.isin(edges.row, [*near]) & np.isin(edges.col, [*near])
    mine = whole(Proof(proof.name, NEAR_RULES, found, values=True)).tocoo()
    entries = [
        {*zip(x.row[k].tolist(), x.col[k].tolist(), x.data[k].tolist(), strict=True)}
        for x, k in ((edges, kept), (mine, slice(None)))
    ]
    for entry in sorted(entries[0] ^ entries[1]):
        proof.fail(0, f"{entry} is {'missing' if entry in entries[0] else 'not one'}")
    return NEAR_RULES


def check_k_hop_sizes(A: Any, k: int, sizes: Any) -> tuple[str, ...]:
    """Prove that numbers are those of the other vertices within k edges, or raise.

    Parameters
    ----------
    A : graph, (n, n)
    k : int
        Radius.
    sizes : result, (n,)
        Numbers of all vertices, or of some.
    """
    proof = Proof("check_k_hop_sizes", SIZE_RULES, A)
    size, present = proof.dense(sizes, "sizes")
    wanted = np.zeros(proof.n, np.int64)
    for v in np.flatnonzero(present):
        level = proof.edges.search(np.array([v]))
        wanted[v] = np.count_nonzero((level > 0) & (level <= min(k, proof.n)))
    proof.refuse(0, present & (size != wanted), lambda v: f"{size[v]}, not {wanted[v]}")
    return SIZE_RULES


def check_largest_component(A: Any, members: Any, *, strong: bool = False) -> tuple[str, ...]:
    """Prove that vertices are the largest component of a graph, or raise.

    Parameters
    ----------
    A : graph, (n, n)
    members : result, (n,)
        An entry for each member; of components of one size, those of the one with the least vertex.
    strong : bool
        Whether components are strong.
    """
    proof = Proof("check_largest_component", LARGEST_RULES, A)
    edges = whole(proof)
    label = csgraph.connected_components(edges, connection="strong" if strong else "weak")[1]
    _, first, count = np.unique(label, return_index=True, return_counts=True)
    right = np.zeros(proof.n, bool)
    if proof.n:
        right = label == label[first[count == count.max()].min()]
    _, member = proof.dense(members, "members")
    proof.refuse(0, member != right, lambda v: "no member" if right[v] else "a member")
    return LARGEST_RULES
