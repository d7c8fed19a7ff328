"""Check what follows from the whole graph: communities, pairs, trusses, forests, neighbourhoods.

All but `check_matching` and `check_k_hop_sizes` collect all edges in each process.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lagpu.check.graph import Array, Proof

__all__ = [
    "check_communities", "check_contraction", "check_ego_graph", "check_k_hop_sizes",
    "check_k_truss", "check_label_propagation", "check_laplacian", "check_largest_component",
    "check_matching", "check_modularity", "check_reciprocity", "check_similarity",
    "check_spanning_forest",
]  # fmt: skip

Places = dict[tuple[Any, Any], Any]  # the values of entries by row and column

TRUSS_RULES = (
    "an edge is in the truss if and only if it is left when edges with too few triangles are "
    "removed one by one",
    "its value is that of the graph",
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
SIMILARITY_RULES = (
    "every pair has an entry",
    "the entry of a pair follows from the two sets of neighbours by definition",
)
RECIPROCITY_RULES = ("the share of a vertex, or of the graph, is that of its edges with a reverse",)
LAPLACIAN_RULES = ("the matrix is that of the definition, computed with dense matrices",)
NEAR_RULES = ("the entries are those of the graph between two vertices within the radius",)
SIZE_RULES = ("a size is the number of vertices that a search of k levels finds",)
LARGEST_RULES = ("the members are the first component of those that SciPy finds to be largest",)
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


def _places(A: Any, names: Any = None) -> Places:
    """Return the entries of a graph by the vertices, or by their names."""
    found = Proof("check", (), A, values=True).matrix().tocoo()
    ends = (x.tolist() if names is None else names[x].tolist() for x in found.coords)
    return dict(zip(zip(*ends, strict=True), found.data.tolist(), strict=True))


def _compare(
    proof: Proof, found: Places, right: Places, rules: tuple[int, int] = (0, 0), tol: float = 0,
    missing: Any = None,
) -> None:  # fmt: skip
    """Raise for the first entry that breaks a rule: of the places, or of the values there."""
    # Without an entry there is the value `missing`, if there is one.
    for place in sorted(found.keys() | right.keys()):
        x, wanted = found.get(place, missing), right.get(place, missing)
        if x is None or wanted is None:
            proof.fail(rules[0], f"{place} is {'missing' if x is None else 'not one'}")
        same = x == wanted or (x != x and wanted != wanted)  # so are two that are no numbers
        if not (same or (tol and math.isclose(x, wanted, rel_tol=tol, abs_tol=tol))):
            proof.fail(rules[1], f"{place}: {x}, not {wanted}")


def check_k_truss(A: Any, truss: Any, k: int) -> tuple[str, ...]:
    """Prove that a graph is the k-truss of another, or raise.

    `A` is symmetric, and its self-loops do not count; `truss` is a graph, (n, n), with the entries
    of `A` that are in the truss, whose edges are in k - 2 of its triangles or more.

    Edges are removed one by one, whichever comes first, and sets of neighbours are intersected.
    Source: Cohen 2008.
    """
    proof = Proof("check_k_truss", TRUSS_RULES, A)
    proof.require_undirected()
    near = proof.near()
    waiting = {(u, v) for u, others in enumerate(near) for v in others if u < v}
    while waiting:
        u, v = waiting.pop()
        thirds = near[u] & near[v]
        if v in near[u] and len(thirds) < k - 2:
            near[u].discard(v)
            near[v].discard(u)
            waiting |= {(min(x, w), max(x, w)) for w in thirds for x in (u, v)}
    left = {(u, v): x for (u, v), x in _places(A).items() if v in near[u]}
    _compare(proof, _places(truss), left, (0, 1))
    return TRUSS_RULES


def check_spanning_forest(A: Any, forest: Any, *, maximum: bool = False) -> tuple[str, ...]:
    """Prove that a graph is a spanning forest of least weight of another, or raise.

    `A` is symmetric, with weights, and its self-loops do not count; `forest` is a graph, (n, n),
    with the entries of the forest; `maximum` says whether its weight is the largest.

    All spanning forests of least weight have the same sorted weights; SciPy finds one of them. The
    weights are replaced by their places in order, on which the forest depends alone.
    """
    name, rules = "check_spanning_forest", FOREST_RULES
    proof, found = (Proof(name, rules, x, values=True) for x in (A, forest))
    proof.require_undirected()
    values, tree = proof.matrix(), found.matrix().tocoo()
    edges = values.tocoo()
    off = edges.row != edges.col
    rank = np.unique(edges.data[off], return_inverse=True)[1] + 1
    rank = rank.max(initial=0) + 1 - rank if maximum else rank
    ranks = sp.csr_array((rank, (edges.row[off], edges.col[off])), shape=edges.shape)
    for u, v, value in zip(tree.row, tree.col, tree.data, strict=True):
        if u == v or not ranks[u, v] or values[u, v] != value or not found.edges.symmetric:
            proof.fail(0, f"({u}, {v}) with {value}")
    count, wanted = (csgraph.connected_components(x)[0] for x in (tree, ranks))
    if count != wanted or len(tree.data) != 2 * (proof.n - count):
        proof.fail(1, f"{len(tree.data) // 2} edges and {count} components, not {wanted}")
    mine = np.sort([ranks[u, v] for u, v in zip(tree.row, tree.col, strict=True) if u < v])
    differ = np.flatnonzero(mine != np.sort(csgraph.minimum_spanning_tree(ranks).data))
    if differ.size:
        proof.fail(2, f"at place {differ[0]} (first of {differ.size})")
    return FOREST_RULES


def check_matching(A: Any, mates: Any) -> tuple[str, ...]:
    """Prove that vertices are matched along edges, and that no edge can be added, or raise.

    Directions of the edges of `A` do not matter, and self-loops do not count; `mates`, (n,), has
    the other end of each vertex's edge.
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


def check_similarity(
    A: Any, found: Any, pairs: Any = None, *, kind: str = "jaccard"
) -> tuple[str, ...]:
    """Prove that numbers are the similarities of pairs of vertices, or raise.

    `A` is symmetric, and its self-loops do not count; `found` is a Matrix or a SciPy sparse array,
    (n, n), with the number of each pair up to an error of 1e-12. `pairs` is a list of pairs of int,
    by default all pairs of two vertices with a common neighbour; `kind` is as in
    `lagpu.algorithms.similarity`.
    """
    proof = Proof("check_similarity", SIMILARITY_RULES, A)
    proof.require_undirected()
    near = proof.near()
    if pairs is None:
        pairs = [pair for some in near for pair in itertools.permutations(some, 2)]
    right: Places = {}
    for u, v in pairs:
        both, either = near[u] & near[v], len(near[u] | near[v])
        product, sizes = len(near[u]) * len(near[v]), [len(near[w]) for w in both]
        right[u, v] = {
            "common_neighbors": len(both),
            "jaccard": len(both) / max(either, 1),
            "cosine": len(both) / math.sqrt(max(product, 1)),
            "preferential_attachment": product,
            "resource_allocation": sum(1 / k for k in sizes),
            # inf of a neighbour that the two ends of (v, v) have alone
            "adamic_adar": sum(1 / math.log(k) if k > 1 else math.inf for k in sizes),
        }[kind]
    _compare(proof, _places(found), right, (0, 1), 1e-12)
    return SIMILARITY_RULES


def check_reciprocity(A: Any, share: Any) -> tuple[str, ...]:
    """Prove that shares are the reciprocities of the vertices or the graph, or raise.

    `share`, (n,), has the share of each vertex that has an edge; or it is a float, that of all
    edges, where self-loops have no reverse.
    """
    proof = Proof("check_reciprocity", RECIPROCITY_RULES, A)
    edges = proof.matrix()
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

    `A` has values, and takes memory for all pairs of vertices; `found` is a Matrix or a SciPy
    sparse array, (n, n), up to an error of 1e-9; `weight` and `normalized` are as in
    `lagpu.algorithms.laplacian_matrix`.
    """
    proof = Proof("check_laplacian", LAPLACIAN_RULES, A, values=weight)
    edges = proof.matrix().toarray().astype(float)
    sums = edges.sum(axis=1)
    wanted = np.diag(sums) - edges
    if normalized:
        roots = np.sqrt(np.divide(1, sums, out=np.zeros(proof.n), where=sums != 0))
        wanted = roots[:, None] * wanted * roots
    _compare(proof, _places(found), _places(sp.coo_array(wanted)), tol=1e-9, missing=0.0)
    return LAPLACIAN_RULES


def check_ego_graph(
    A: Any, n: int, found: Any, radius: float = 1, *, center: bool = True, undirected: bool = False
) -> tuple[str, ...]:
    """Prove that a graph is the part of another near a vertex, or raise.

    `A` has values, and each edge has length 1; `found` is the part near the vertex `n`, a graph,
    (n, n), with values; `radius`, `center` and `undirected` are as in `lagpu.algorithms.ego_graph`.
    """
    proof = Proof("check_ego_graph", NEAR_RULES, A, n, values=True)
    edges = proof.matrix().tocoo()
    near = {proof.source}
    for _ in range(int(min(radius, proof.n))):
        hit = np.isin(edges.row, [*near]), np.isin(edges.col, [*near])
        near |= {*edges.col[hit[0]].tolist(), *(edges.row[hit[1]].tolist() if undirected else ())}
    near -= set() if center else {proof.source}
    kept = np.isin(edges.row, [*near]) & np.isin(edges.col, [*near])
    ends = (edges.row[kept], edges.col[kept])
    right = _places(sp.coo_array((edges.data[kept], ends), shape=edges.shape))
    _compare(proof, _places(found), right)
    return NEAR_RULES


def check_k_hop_sizes(A: Any, k: int, sizes: Any, nodes: Any = None) -> tuple[str, ...]:
    """Prove that numbers are those of the other vertices within k edges, or raise.

    `sizes`, (n,), has the numbers of the vertices `nodes`, by default all.
    """
    proof = Proof("check_k_hop_sizes", SIZE_RULES, A)
    size, present = proof.dense(sizes, "sizes")
    asked, wanted = present.copy(), np.zeros(proof.n, np.int64)
    asked[slice(None) if nodes is None else proof.vertices(nodes, "nodes are not within")] = True
    for v in np.flatnonzero(asked):
        level = proof.edges.search(np.array([v]))
        wanted[v] = np.count_nonzero((level > 0) & (level <= min(k, proof.n)))
    words = np.where(present, size.astype(str), "no size")
    proof.refuse(0, asked & ~(present & (size == wanted)), lambda v: f"{words[v]}, not {wanted[v]}")
    return SIZE_RULES


def check_largest_component(A: Any, members: Any, *, strong: bool = False) -> tuple[str, ...]:
    """Prove that vertices are the largest component of a graph, or raise.

    `members`, (n,), has an entry for each member, none of them False: of components of one size,
    those of the one with the least vertex. `strong` says whether components are strong.
    """
    proof = Proof("check_largest_component", LARGEST_RULES, A)
    edges = proof.matrix()
    label = csgraph.connected_components(edges, connection="strong" if strong else "weak")[1]
    _, first, count = np.unique(label, return_index=True, return_counts=True)
    right = np.zeros(proof.n, bool)
    if proof.n:
        right = label == label[first[count == count.max()].min()]
    member = proof.members(members)
    proof.refuse(0, member != right, lambda v: "no member" if right[v] else "a member")
    return LARGEST_RULES


def check_contraction(A: Any, labels: Any, quotient: Any, names: Any) -> tuple[str, ...]:
    """Prove that a graph is the quotient of another by labels, values added, or raise.

    `A` has values, and one rounding of each sum is allowed; `labels`, (n,), has the label of each
    vertex; `quotient` is a Matrix or a SciPy sparse array, (k, k), and `names`, (k,), has the label
    of each of its vertices.
    """
    proof = Proof("check_contraction", CONTRACTION_RULES, A, values=True)
    label = proof.full(labels, "labels", "label")
    name = Proof(proof.name, CONTRACTION_RULES, quotient).full(names, "names", "name")
    right = np.unique(label)
    if name.tolist() != right.tolist():
        proof.fail(0, f"{name.tolist()}, not {right.tolist()}")
    sums: Places = defaultdict(float)
    edges = proof.matrix().tocoo()
    for u, v, x in zip(edges.row, edges.col, edges.data.tolist(), strict=True):
        sums[label[u].item(), label[v].item()] += x
    _compare(proof, _places(quotient, name), sums, (1, 1), 1e-12)
    return CONTRACTION_RULES


def _is_symmetric(proof: Proof, edges: Any) -> bool:
    """Whether each edge has a reverse of the same value, which may be 0."""
    return proof.edges.symmetric and not (edges != edges.T).nnz


def _expected(
    A: Any, weight: bool, name: str, rules: tuple[str, ...], directed: bool | None = None
) -> tuple[Proof, Any, Any]:
    """Return the weights, (n, n), and those that are expected at random, dense."""
    proof = Proof(name, rules, A, values=True)
    edges = proof.matrix().astype(float)
    if not weight:
        edges.data[:] = 1
    if not (not _is_symmetric(proof, edges) if directed is None else directed):
        edges = edges + sp.diags_array(edges.diagonal())
    total = edges.sum()
    return proof, edges / total, np.outer(edges.sum(axis=1), edges.sum(axis=0)) / total**2


def check_modularity(
    A: Any, labels: Any, found: float, *, weight: bool = True, resolution: float = 1,
    directed: bool | None = None,
) -> tuple[str, ...]:  # fmt: skip
    """Prove that a number is the modularity of communities, or raise.

    `A` has values, and takes memory for all pairs of vertices; `labels`, (n,), has the community of
    each vertex; `found` is the number up to an error of 1e-9; `weight`, `resolution` and `directed`
    are as in `lagpu.algorithms.modularity`.
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

    `A` is symmetric, else as in `check_modularity`, as are `weight` and `resolution`; `labels`,
    (n,), has the least vertex of each vertex's community; `threshold` is the gain of joining two
    communities that may be left.
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

    `A` has values; `labels`, (n,), are computed again by plain loops; `colors`, `max_iter` and
    `weight` are as in `lagpu.algorithms.label_propagation`.
    """
    proof = Proof("check_label_propagation", PROPAGATION_RULES, A, values=True)
    given = proof.full(labels, "labels", "label")
    color = np.zeros(proof.n) if colors is None else proof.full(colors, "colors", "colour")
    edges = proof.matrix()
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
