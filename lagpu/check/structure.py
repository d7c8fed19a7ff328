"""Check components, orders, cores, triangles, forests, pairs, neighbourhoods and communities."""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lagpu.check.graph import Array, Edges, Proof, Slice, Slices, both_ends, components, least_of
from lagpu.host.columns import distinct, listed

__all__ = [
    "check_clustering", "check_communities", "check_components", "check_contraction",
    "check_core_numbers", "check_ego_graph", "check_independent_set", "check_k_core",
    "check_k_hop_sizes", "check_k_truss", "check_label_propagation", "check_laplacian",
    "check_largest_component", "check_matching", "check_modularity", "check_odd_cycle",
    "check_reciprocity", "check_sides", "check_similarity", "check_spanning_forest",
    "check_square_clustering", "check_topological_levels", "check_topological_order",
    "check_transitivity", "check_triangle_centrality", "check_triangle_count", "check_triangles",
]  # fmt: skip

COMPONENT_RULES = (
    "every vertex has a label, and the label is a vertex",
    "a label is the least vertex with this label",
    "vertices have the same label if and only if they are in the same component",
)


def check_components(A: Any, labels: Any, *, strong: bool = False) -> tuple[str, ...]:
    """Prove that labels name the connected components of a graph, or raise.

    `labels`, (n,), has the least vertex of each vertex's component. Components are weak, joined by
    edges in either direction, or `strong`: sets of vertices that reach each other.

    Weak components are computed again: SciPy finds those of the edges of each slice, which are
    united. Strong ones are proved. All vertices of a label are in one component: along edges
    between vertices of one label, one search from all vertices that are a label finds every vertex,
    and so does one against the edges. No component has two labels: edges from label to label make
    no cycle. Labels without such an edge into them are removed until few edges are left. SciPy
    finds their components by a depth-first search (Pearce 2005).
    """
    proof = Proof("check_components", COMPONENT_RULES, A)
    label = proof.whole(labels, "labels", "label", proof.n)
    lowest, words = least_of(label), "the least vertex with this label is"
    proof.refuse(1, label != lowest, lambda v: f"label {label[v]}, but {words} {lowest[v]}")
    least = _strong(proof.edges, label) if strong else proof.edges.joined()
    words = "it is in the component of"
    return proof.refuse(2, label != least, lambda v: f"label {label[v]}, but {words} {least[v]}")


def _strong(edges: Slices, label: Array) -> Array:
    """Return labels, (n,), if they are those of strong components; else some of them corrected."""
    crossing = edges.along(lambda e: label[e.begin] != label[e.end])
    within = edges
    if any(len(x) for (x,) in crossing.gather(lambda own: (own.row_idx[:1],))):
        within = edges.along(lambda e: label[e.begin] == label[e.end])
    doubtful = ~_both_ways(within, distinct(label))
    if not doubtful.any():
        return _united(crossing, label)
    # Whether this vertex's label is wrong or not, some vertex of its component has a wrong one.
    component = _both_ways(edges, np.flatnonzero(doubtful)[:1])
    return np.where(component, np.argmax(component), label)


def _both_ways(edges: Slices, roots: Array) -> Array:
    """Return which vertices some of the roots reach, and which reach some of them, (n,)."""
    return np.asarray((edges.search(roots) <= edges.n) & (edges.reversed.search(roots) <= edges.n))


def _united(crossing: Slices, label: Array) -> Array:
    """Return the labels of strong components, (n,), if vertices of one label are in one."""
    # `crossing` are the edges from label to label.
    left = _left(crossing, label)
    few = crossing.along(lambda e: left[label[e.begin]] & left[label[e.end]])
    begin, end = map(np.concatenate, zip(*few.gather(both_ends), strict=True))
    return components(few.n, label[begin], label[end], "strong")[label]


def _left(crossing: Slices, label: Array) -> Array:
    """Return which labels are left, (n,), as those without an edge into them are taken away."""
    # It ends when all processes may have the edges that are left, at most one for each vertex, or
    # when edges between all labels that are left make a cycle, which only wrong labels have.
    members = np.argsort(label, kind="stable")
    start = np.searchsorted(label[members], np.arange(crossing.n + 1))
    enter = crossing.at_ends(lambda e: np.ones(len(e.begin), np.int64), np.add, 0)
    entered = np.bincount(label, enter, minlength=crossing.n).astype(np.int64)
    left, edges = np.ones(crossing.n, bool), int(entered.sum())
    free = np.flatnonzero(entered == 0)
    while free.size and edges > crossing.n:
        left[free] = False
        hit = crossing.hits(members[listed(start, free)[1]])
        for ends, counts in hit:
            np.subtract.at(entered, label[ends], counts)
            edges -= int(counts.sum())
        near = distinct(np.concatenate([label[ends] for ends, _ in hit]))
        free = near[left[near] & (entered[near] == 0)]
    return left


# ---- prove that a graph is bipartite, or that it is not

SIDE_RULES = ("every vertex is on side 0 or 1", "no edge joins two vertices of one side")
CYCLE_RULES = (
    "the cycle has an odd number of vertices, none of them twice",
    "consecutive vertices, and the last and the first, are joined by an edge",
)


def check_sides(A: Any, sides: Any) -> tuple[str, ...]:
    """Prove that sides show a graph to be bipartite, or raise.

    Directions of the edges of `A` do not matter; `sides`, (n,), is 0 or 1 at each vertex.
    """
    proof = Proof("check_sides", SIDE_RULES, A)
    side = proof.full(sides, "sides", "side", lambda x: (x == 0) | (x == 1))
    like = proof.edges.first(lambda e: side[e.begin] == side[e.end])
    return proof.refuse(1, like < proof.n, lambda v: f"side {side[v]}, like {like[v]}")


def check_odd_cycle(A: Any, cycle: list[int]) -> tuple[str, ...]:
    """Prove that a cycle shows a graph not to be bipartite, or raise.

    Directions of the edges of `A` do not matter; `cycle` is a list of the vertices in order. Sides
    cannot alternate along an odd cycle.
    """
    proof = Proof("check_odd_cycle", CYCLE_RULES, A)
    u = proof.vertices(cycle, f"{cycle} is not within")
    proof.require(0, len(cycle) % 2 and len(set(cycle)) == len(cycle), str(cycle))
    v = np.roll(u, -1)
    joined = proof.edges.have(u, v) | proof.edges.have(v, u)
    if not joined.all():
        k = int(np.argmin(joined))
        proof.fail(1, f"{u[k]} and {v[k]} are not")
    return CYCLE_RULES


# ---- prove topological levels and orders, core numbers and independent sets

ORDER_RULES = (
    "levels are whole numbers 0 .. n-1, one for each vertex",
    "a level is one more than the highest level of an in-neighbour, or 0 if there is none",
)
LINE_RULES = (
    "every vertex has one place, and every place one vertex",
    "every edge leads to a later place",
)
CORE_RULES = (
    "core numbers are whole numbers 0 or more, one for each vertex",
    "a vertex of core number k has at least k neighbours of core number >= k",
    "peeling vertices of least degree gives no larger number",
)
K_CORE_RULES = (
    "a member has at least k neighbours among the members",
    "peeling vertices of degree below k leaves only members",
)
INDEPENDENT_RULES = (
    "no edge joins two members",
    "a vertex that is not a member has a neighbour that is one",
)


def check_topological_levels(A: Any, levels: Any) -> tuple[str, ...]:
    """Prove that levels are the lengths of the longest paths to each vertex, or raise.

    `levels`, (n,), has the level of each vertex. `ORDER_RULES` suffice: by 2 every edge leads to a
    higher level, so there is no cycle, and by induction over levels the longest path that ends at v
    has level(v) edges.
    """
    proof = Proof("check_topological_levels", ORDER_RULES, A)
    level = proof.whole(levels, "levels", "level", proof.n)
    wanted = proof.edges.at_ends(lambda e: level[e.begin] + 1, np.maximum, 0)
    return proof.refuse(1, level != wanted, lambda v: f"level {level[v]}, not {wanted[v]}")


def check_topological_order(A: Any, order: Any) -> tuple[str, ...]:
    """Prove that an order of the vertices is topological, or raise.

    Entry k of `order`, (n,), is the k-th vertex.
    """
    proof = Proof("check_topological_order", LINE_RULES, A)
    vertex, present = proof.dense(order, "order")
    odd = ~present | ~proof.are_vertices(vertex)
    proof.refuse(0, odd, lambda k: f"place {k} has {vertex[k] if present[k] else 'no vertex'}")
    place = np.full(proof.n, -1)
    place[vertex.astype(np.int64)] = np.arange(proof.n)
    proof.refuse(0, place < 0, lambda v: "no place")
    later = proof.edges.first(lambda e: place[e.begin] >= place[e.end])
    wrong = "place {}, but the edge {} -> {} comes from place {}".format
    proof.refuse(1, later < proof.n, lambda v: wrong(place[v], u := later[v], v, place[u]))
    return LINE_RULES


def check_core_numbers(A: Any, cores: Any) -> tuple[str, ...]:
    """Prove that numbers are core numbers, or raise.

    In a directed graph edges in and out count; `cores`, (n,), has the core number of each vertex.

    `CORE_RULES` suffice: by 2 the vertices of numbers >= k have degree >= k among themselves, so a
    number is not too large. By 3 it is not too small: every vertex of a k-core has degree >= k
    until the first vertices of this core are peeled.
    """
    proof = Proof("check_core_numbers", CORE_RULES, A)
    core = proof.whole(cores, "cores", "core number", 2 * proof.n)
    inside = proof.neighbours(lambda own, other: core[other] >= core[own])
    proof.refuse(1, inside < core, lambda v: f"core number {core[v]}, but {inside[v]} neighbours")
    largest = _peeled(proof)
    proof.refuse(2, core < largest, lambda v: f"core number {core[v]}, but peeled at {largest[v]}")
    return CORE_RULES


def check_k_core(A: Any, members: Any, k: int) -> tuple[str, ...]:
    """Prove that vertices are the k-core of a graph, or raise.

    In a directed graph edges in and out count; `members`, (n,), has an entry for each member,
    none of them False; `k` is the least degree within the core.

    Each member has at least k neighbours among the members, so these lie in the core. To peel
    vertices of degree below k leaves only members, so they are the whole core: no vertex of it has
    degree below k while the others are there.
    """
    proof = Proof("check_k_core", K_CORE_RULES, A)
    member = proof.members(members)
    inside = proof.neighbours(lambda own, other: member[own] & member[other])
    proof.refuse(0, member & (inside < k), lambda v: f"{inside[v]} neighbours, not {k}")
    return proof.refuse(1, (_peeled(proof) >= k) & ~member, lambda v: "left, but not a member")


def _peeled(proof: Proof) -> Array:
    """Return the core numbers by peeling: first all of least degree, then those it makes as low."""
    degree = proof.neighbours(lambda own, _: np.ones(len(own), bool))
    found, left, k = np.zeros(proof.n, np.int64), np.ones(proof.n, bool), 0
    while left.any():
        k = max(k, int(degree[left].min()))
        low = np.flatnonzero(left & (degree <= k))
        while low.size:
            found[low], left[low] = k, False
            hit = [hit for way in proof.ways for hit in way.hits(low)]
            for ends, counts in hit:
                degree[ends] -= counts
            near = distinct(np.concatenate([ends for ends, _ in hit]))
            low = near[left[near] & (degree[near] <= k)]
    return found


def check_independent_set(A: Any, members: Any) -> tuple[str, ...]:
    """Prove that vertices are a maximal independent set, or raise.

    Directions of the edges of `A` do not matter, and self-loops do not count; `members`, (n,), has
    an entry for each member, none of them False.
    """
    proof = Proof("check_independent_set", INDEPENDENT_RULES, A)
    member = proof.members(members)
    near = proof.neighbours(lambda own, other: member[other]) > 0

    def beside(v: int) -> int:
        of = [way.first(lambda e: member[e.begin] & (e.begin != e.end)) for way in proof.ways]
        return int(min(first[v] for first in of))

    proof.refuse(0, member & near, lambda v: f"a member, like {beside(v)}")
    return proof.refuse(1, ~member & ~near, lambda v: "no neighbour is a member")


# ---- prove triangles by their definition: the edges among each vertex's neighbours

_LISTED = 1 << 18  # neighbours at a time

TRIANGLE_RULES = (
    "every vertex has a number, or there is one number for the graph",
    "a vertex has as many triangles as there are edges among its neighbours",
)


def check_triangles(A: Any, triangles: Any) -> tuple[str, ...]:
    """Prove that numbers are the triangles of each vertex, or raise.

    `A` is symmetric, else `InvalidValue` is raised; self-loops do not count. `triangles`, (n,),
    has the number of each vertex.
    """
    proof = Proof("check_triangles", TRIANGLE_RULES, A)
    count, _ = _counted(proof)
    return _compare(proof, triangles, count.astype(float), 0)


def check_clustering(A: Any, clustering: Any, *, weight: bool = False) -> tuple[str, ...]:
    """Prove that shares are the clustering coefficients of each vertex, or raise.

    Self-loops of `A` do not count; `clustering`, (n,), is as `lagpu.algorithms.clustering` returns
    it with `weight`: one rounding is allowed, or with weights or in a directed graph a relative
    error of 1e-12.

    In an undirected graph without weights, triangles are counted and divided by the pairs of
    neighbours. Otherwise they are listed, one by one, so the graph must be small.
    """
    proof = Proof("check_clustering", TRIANGLE_RULES, A, values=weight)
    if not weight and proof.edges.symmetric:
        count, pairs = _counted(proof)
        wanted = np.divide(count, pairs, out=np.zeros(proof.n), where=pairs > 0)
        return _compare(proof, clustering, wanted, 1e-15)
    rows = proof.matrix()
    cuts = itertools.pairwise(rows.indptr.tolist())
    out = [dict(zip(rows.indices[a:b].tolist(), rows.data[a:b], strict=True)) for a, b in cuts]
    largest = max((max(ends.values()) for ends in out if ends), default=1.0)
    strength: list[dict[int, float]] = [{} for _ in out]
    for u, ends in enumerate(out):
        for v, length in ends.items():
            if u != v:
                strength[u][v] = strength[u].get(v, 0.0) + float(np.cbrt(length / largest))
                strength[v][u] = strength[v].get(u, 0.0) + float(np.cbrt(length / largest))
    wanted = np.zeros(proof.n)
    for v, near in enumerate(strength):
        ways = sum((u in out[v]) + (v in out[u]) for u in near)
        possible = 2 * (ways * (ways - 1) - 2 * sum(u in out[v] and v in out[u] for u in near))
        around = sum(
            near[u] * near[w] * strength[u].get(w, 0.0) for u, w in itertools.permutations(near, 2)
        )
        wanted[v] = around / possible if possible else 0.0
    return _compare(proof, clustering, wanted, 1e-12)


CENTRALITY_RULES = (
    "every vertex has a number, and the graph is undirected",
    "the number follows from the triangles or squares around it by definition",
)


def check_triangle_centrality(A: Any, centrality: Any) -> tuple[str, ...]:
    """Prove that numbers are the triangle centralities of each vertex, or raise.

    `A` is as in `check_triangles`, small; `centrality`, (n,), is as
    `lagpu.algorithms.triangle_centrality` returns it, up to 1e-12 of it.
    """
    proof = Proof("check_triangle_centrality", CENTRALITY_RULES, A)
    count, _ = _counted(proof)
    total, wanted = count.sum() / 3, np.zeros(proof.n)
    near = proof.near()
    for v in range(proof.n if total else 0):
        joined = {u for u in near[v] if near[u] & near[v]}
        own = (count[v] + sum(count[u] for u in joined)) / 3
        wanted[v] = (own + sum(count[u] for u in near[v] - joined)) / total
    return _compare(proof, centrality, wanted, 1e-12)


def check_square_clustering(A: Any, clustering: Any) -> tuple[str, ...]:
    """Prove that shares are the square clustering coefficients of each vertex, or raise.

    `A` is as in `check_triangles`, small; `clustering`, (n,), is as
    `lagpu.algorithms.square_clustering` returns it, up to 1e-12 of it.

    Each pair u, w of neighbours of v has q common neighbours other than v, each the corner of a
    square. It could have one at each other vertex that is a neighbour of u or w.
    """
    proof = Proof("check_square_clustering", CENTRALITY_RULES, A)
    proof.require_undirected()
    near = proof.near()
    wanted = np.zeros(proof.n)
    for v in range(proof.n):
        squares = possible = 0
        for u, w in itertools.combinations(sorted(near[v]), 2):
            q = len((near[u] & near[w]) - {v})
            squares += q
            possible += q + sum(len(near[x]) - 1 - q - (w in near[u]) for x in (u, w))
        wanted[v] = squares / possible if possible else 0.0
    return _compare(proof, clustering, wanted, 1e-12)


def check_triangle_count(A: Any, count: int) -> tuple[str, ...]:
    """Prove that a number is that of all triangles, as in `check_triangles`, or raise."""
    proof = Proof("check_triangle_count", TRIANGLE_RULES, A)
    wanted = int(_counted(proof)[0].sum()) // 3
    return proof.require(1, count == wanted, f"{count}, but there are {wanted}")


def check_transitivity(A: Any, share: float) -> tuple[str, ...]:
    """Prove that a share is the transitivity of a graph, or raise.

    `A` is as in `check_clustering`; `share` is three times the triangles over all pairs of
    neighbours, 0 if there is no pair; one rounding is allowed. In a directed graph it is the share
    of the ordered pairs of successors of a vertex that an edge joins.
    """
    proof = Proof("check_transitivity", TRIANGLE_RULES, A)
    if proof.edges.symmetric:
        count, pairs = (int(x.sum()) for x in _counted(proof))
    else:
        near = proof.near()
        count = sum(len(ends & near[u]) for ends in near for u in ends)
        pairs = sum(len(ends) * (len(ends) - 1) for ends in near)
    wanted = count / pairs if pairs else 0.0
    same = abs(share - wanted) <= 1e-15 * wanted
    return proof.require(1, same, f"{share}, but the share is {wanted}")


def _counted(proof: Proof) -> tuple[Array, Array]:
    """Return the triangles and the pairs of neighbours of each vertex, both (n,)."""
    # For each vertex, its neighbours are marked, and edges between marked vertices are counted:
    # each edge once, from its end of fewer neighbours, so that no list is long.
    edges, n = proof.edges, proof.n
    proof.require_undirected()
    degree = edges.at_ends(lambda e: (e.begin != e.end).astype(np.int64), np.add, 0)

    def onward(e: Edges) -> Array:
        fewer, same = degree[e.begin] < degree[e.end], degree[e.begin] == degree[e.end]
        return np.asarray(fewer | (same & (e.begin < e.end)))

    once = edges.along(onward)
    count = np.zeros(n, np.int64)
    some = np.flatnonzero(degree > 1)
    cuts = np.flatnonzero(np.diff(np.cumsum(degree[some]) // _LISTED)) + 1
    for vertices in np.split(some, cuts):
        start, lists = _neighbours(edges, vertices)
        among = functools.partial(_edges_among, n=n, start=start, lists=lists)
        count[vertices] = np.sum([found for (found,) in once.gather(among)], axis=0)
    return count, degree * (degree - 1) // 2


def _neighbours(edges: Slices, vertices: Array) -> tuple[Array, Array]:
    """Return (start, lists): the neighbours of vertex k are ``lists[start[k] : start[k + 1]]``."""
    counts, lists = zip(*edges.gather(lambda own: own.out_of(vertices)), strict=True)
    which = np.concatenate([np.repeat(np.arange(len(vertices)), count) for count in counts])
    ends = np.concatenate(lists)
    others = vertices[which] != ends
    which, ends = which[others], ends[others]
    order = np.argsort(which, kind="stable")
    return np.searchsorted(which[order], np.arange(len(vertices) + 1)), ends[order]


def _edges_among(own: Slice, n: int, start: Array, lists: Array) -> tuple[Array, ...]:
    """Return how many edges of a slice join two vertices of each list."""
    marked, found = np.zeros(n, bool), np.zeros(len(start) - 1, np.int64)
    for k, (first, last) in enumerate(zip(start[:-1].tolist(), start[1:].tolist(), strict=True)):
        some = lists[first:last]
        marked[some] = True
        found[k] = np.count_nonzero(marked[own.out_of(some)[1]])
        marked[some] = False
    return (found,)


def _compare(proof: Proof, result: Any, wanted: Array, rel_tol: float) -> tuple[str, ...]:
    """Raise `CheckFailed` for the first vertex whose number is not the wanted one."""
    found = proof.full(result, proof.name.removeprefix("check_"), "number")
    bad = ~(np.abs(found - wanted) <= rel_tol * np.abs(wanted))
    return proof.refuse(1, bad, lambda v: f"{found[v]}, not {wanted[v]:.17g}")


# ---- what follows from the whole graph, whose edges each process collects, but for the checks of
# matchings and of sizes: trusses, forests, pairs, neighbourhoods, communities
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


def _compare_places(
    proof: Proof, found: Places, right: Places, rules: tuple[int, int] = (0, 0), tol: float = 0,
    missing: Any = None,
) -> tuple[str, ...]:  # fmt: skip
    """Return all rules, or raise for the first entry that breaks that of places, or of values."""
    # Without an entry there is the value `missing`, if there is one.
    for place in sorted(found.keys() | right.keys()):
        x, wanted = found.get(place, missing), right.get(place, missing)
        if x is None or wanted is None:
            proof.fail(rules[0], f"{place} is {'missing' if x is None else 'not one'}")
        same = x == wanted or (x != x and wanted != wanted)  # so are two that are no numbers
        if not (same or (tol and math.isclose(x, wanted, rel_tol=tol, abs_tol=tol))):
            proof.fail(rules[1], f"{place}: {x}, not {wanted}")
    return proof.rules


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
    return _compare_places(proof, _places(truss), left, (0, 1))


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
    spans = count == wanted and len(tree.data) == 2 * (proof.n - count)
    proof.require(1, spans, f"{len(tree.data) // 2} edges and {count} components, not {wanted}")
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
    return proof.refuse(1, free > 0, lambda v: f"{free[v]} edges to others without a mate")


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
    return _compare_places(proof, _places(found), right, (0, 1), 1e-12)


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
        return proof.require(0, abs(share - wanted) <= 1e-12, f"{share}, not {wanted}")
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
    right = _places(sp.coo_array(wanted))
    return _compare_places(proof, _places(found), right, tol=1e-9, missing=0.0)


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
    return _compare_places(proof, _places(found), right)


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
    wrong = asked & ~(present & (size == wanted))
    return proof.refuse(0, wrong, lambda v: f"{words[v]}, not {wanted[v]}")


def check_largest_component(A: Any, members: Any, *, strong: bool = False) -> tuple[str, ...]:
    """Prove that vertices are the largest component of a graph, or raise.

    `members`, (n,), has an entry for each member, none of them False: of components of one size,
    those of the one with the least vertex. `strong` says whether components are strong.
    """
    proof = Proof("check_largest_component", LARGEST_RULES, A)
    edges = proof.matrix()
    label = csgraph.connected_components(edges, connection="strong" if strong else "weak")[1]
    least = least_of(label)
    right = least == np.argmax(np.bincount(least, minlength=1))  # the first of the largest
    member = proof.members(members)
    return proof.refuse(0, member != right, lambda v: "no member" if right[v] else "a member")


def check_contraction(A: Any, labels: Any, quotient: Any, names: Any) -> tuple[str, ...]:
    """Prove that a graph is the quotient of another by labels, values added, or raise.

    `A` has values, and one rounding of each sum is allowed; `labels`, (n,), has the label of each
    vertex; `quotient` is a Matrix or a SciPy sparse array, (k, k), and `names`, (k,), has the label
    of each of its vertices.
    """
    proof = Proof("check_contraction", CONTRACTION_RULES, A, values=True)
    label = proof.full(labels, "labels", "label")
    name = Proof(proof.name, CONTRACTION_RULES, quotient).full(names, "names", "name")
    right, place = np.unique(label, return_inverse=True)
    proof.require(0, name.tolist() == right.tolist(), f"{name.tolist()}, not {right.tolist()}")
    edges = proof.matrix().astype(float).tocoo()
    ends = place[edges.row], place[edges.col]
    sums = _places(sp.coo_array((edges.data, ends), shape=(len(right),) * 2), name)
    return _compare_places(proof, _places(quotient, name), sums, (1, 1), 1e-12)


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
    return proof.require(0, abs(found - wanted) <= 1e-9, f"{found}, not {wanted}")


def check_communities(
    A: Any, labels: Any, *, weight: bool = True, resolution: float = 1, threshold: float = 1e-7
) -> tuple[str, ...]:
    """Prove that joining two communities never improves the modularity, or raise.

    `A` is symmetric, else as in `check_modularity`, as are `weight` and `resolution`; `labels`,
    (n,), has the least vertex of each vertex's community; `threshold` is the largest gain that is
    allowed.
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
    return proof.refuse(0, given != label, lambda v: f"label {given[v]}, not {label[v]}")
