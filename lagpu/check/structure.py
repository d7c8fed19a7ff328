"""Check components, two-colourings, orders, cores, independent sets and triangles."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from lagpu.check.graph import Array, Edges, Proof, Slice, Slices, both_ends, components
from lagpu.host.columns import distinct, listed

__all__ = [
    "check_clustering", "check_components", "check_core_numbers", "check_independent_set",
    "check_k_core", "check_odd_cycle", "check_sides", "check_square_clustering",
    "check_topological_levels", "check_topological_order", "check_transitivity",
    "check_triangle_centrality", "check_triangle_count", "check_triangles",
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
    _, first, place = np.unique(label, return_index=True, return_inverse=True)
    lowest, words = first[place], "the least vertex with this label is"
    proof.refuse(1, label != lowest, lambda v: f"label {label[v]}, but {words} {lowest[v]}")
    least = _strong(proof.edges, label) if strong else proof.edges.joined()
    words = "it is in the component of"
    proof.refuse(2, label != least, lambda v: f"label {label[v]}, but {words} {least[v]}")
    return COMPONENT_RULES


def _strong(edges: Slices, label: Array) -> Array:
    """Return labels, (n,), if they are those of strong components; else some of them corrected."""
    crossing = edges.along(lambda e: label[e.begin] != label[e.end])
    within = edges
    if any(len(x) for (x,) in crossing.gather(lambda own: (own.row_idx[:1],))):
        within = edges.along(lambda e: label[e.begin] == label[e.end])
    doubtful = ~_both_ways(within, distinct(label))
    if not doubtful.any():
        return _united(crossing, label)
    # Whether this vertex' label is wrong or not, some vertex of its component has a wrong one.
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
    proof.refuse(1, like < proof.n, lambda v: f"side {side[v]}, like {like[v]}")
    return SIDE_RULES


def check_odd_cycle(A: Any, cycle: list[int]) -> tuple[str, ...]:
    """Prove that a cycle shows a graph not to be bipartite, or raise.

    Directions of the edges of `A` do not matter; `cycle` is a list of the vertices in order. Sides
    cannot alternate along an odd cycle.
    """
    proof = Proof("check_odd_cycle", CYCLE_RULES, A)
    u = proof.vertices(cycle, f"{cycle} is not within")
    if len(cycle) % 2 == 0 or len(set(cycle)) != len(cycle):
        proof.fail(0, str(cycle))
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
    proof.refuse(1, level != wanted, lambda v: f"level {level[v]}, not {wanted[v]}")
    return ORDER_RULES


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

    `K_CORE_RULES` suffice: by 1 the members lie in the core. By 2 they are the whole core: no
    vertex of the core has degree below k while the others are there.
    """
    proof = Proof("check_k_core", K_CORE_RULES, A)
    member = proof.members(members)
    inside = proof.neighbours(lambda own, other: member[own] & member[other])
    proof.refuse(0, member & (inside < k), lambda v: f"{inside[v]} neighbours, not {k}")
    left = _peeled(proof) >= k
    proof.refuse(1, left & ~member, lambda v: "left, but not a member")
    return K_CORE_RULES


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
    proof.refuse(1, ~member & ~near, lambda v: "no neighbour is a member")
    return INDEPENDENT_RULES


# ---- prove triangles by their definition: the edges among each vertex's neighbours

_LISTED = 1 << 18  # neighbours at a time

TRIANGLE_RULES = (
    "every vertex has a number, or there is one number for the graph",
    "a vertex has as many triangles as there are edges among its neighbours",
)


def check_triangles(A: Any, triangles: Any) -> tuple[str, ...]:
    """Prove that numbers are the triangles of each vertex, or raise.

    `A` is symmetric, else this and the following checkers raise `InvalidValue`; self-loops do not
    count. `triangles`, (n,), has the number of each vertex.
    """
    proof = Proof("check_triangles", TRIANGLE_RULES, A)
    count, _ = _counted(proof)
    return _compare(proof, triangles, count.astype(float), 0)


def check_clustering(A: Any, clustering: Any, *, weight: bool = False) -> tuple[str, ...]:
    """Prove that shares are the clustering coefficients of each vertex, or raise.

    Self-loops of `A` do not count; `clustering`, (n,), is as `lagpu.algorithms.clustering` returns
    it with `weight`: one rounding is allowed, or with weights or in a directed graph a relative
    error of 1e-12.

    Without weights, the triangles of an undirected graph over its pairs of neighbours. Otherwise
    the triangles are listed, one by one, so the graph must be small.
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
        both = sum(u in out[v] and v in out[u] for u in near)
        possible = 2 * (ways * (ways - 1) - 2 * both)
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

    Each pair u, w of neighbours of v has q other common neighbours, each the corner of a square; it
    could have as many as u and w have other edges, not to each other or to a corner twice.
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
    if count != wanted:
        proof.fail(1, f"{count}, but there are {wanted}")
    return TRIANGLE_RULES


def check_transitivity(A: Any, share: float) -> tuple[str, ...]:
    """Prove that a share is the transitivity of a graph, or raise.

    `A` is as in `check_clustering`; `share` is three times the triangles over all pairs of
    neighbours, 0 if there is no pair; one rounding is allowed. In a directed graph, of the ordered
    pairs of ends of edges from one vertex those that an edge joins.
    """
    proof = Proof("check_transitivity", TRIANGLE_RULES, A)
    if proof.edges.symmetric:
        count, pairs = (int(x.sum()) for x in _counted(proof))
    else:
        near = proof.near()
        count = sum(len(ends & near[u]) for ends in near for u in ends)
        pairs = sum(len(ends) * (len(ends) - 1) for ends in near)
    wanted = count / pairs if pairs else 0.0
    if not abs(share - wanted) <= 1e-15 * wanted:
        proof.fail(1, f"{share}, but the share is {wanted}")
    return TRIANGLE_RULES


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
    proof.refuse(1, bad, lambda v: f"{found[v]}, not {wanted[v]:.17g}")
    return proof.rules
