"""Check searches: levels, parents, path counts, distances and shortest paths."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu.check.graph import Array, CheckReport, Edges, Pattern, Proof, Slice, climbed
from lagpu.errors import CheckFailed, DimensionMismatch

__all__ = [
    "check_distances", "check_floyd_warshall", "check_k_hop", "check_levels", "check_levels_joint",
    "check_levels_multi", "check_negative_cycle", "check_parents", "check_parents_multi",
    "check_paths", "check_route", "check_sssp_parents",
]  # fmt: skip

LEVEL_RULES = (
    "the source has level 0",
    "levels are whole numbers 0 .. n-1",
    "an edge from level d ends at a level <= d + 1",
    "a vertex of level d > 0 has an in-neighbour of level d - 1",
)


def check_levels(A: Any, source: int, levels: Any) -> CheckReport:
    """Prove that levels are the distances from a source, or raise.

    `levels`, (n,), has the level of each reached vertex. The rules of `LEVEL_RULES` suffice. Let
    dist be the true distance.

    - By rules 1 and 3, and induction along a shortest path, a vertex at distance d has a level, and
      it is <= d.
    - By rule 4, from a vertex of level d there is a walk against the edges through levels d - 1,
      d - 2, ..., 0. By rule 4 again only the source can have level 0, since no vertex has level -1.
      So a vertex of level d is reached from the source in d steps: dist <= level.

    Hence level = dist, and exactly the reachable vertices have one.
    """
    proof = Proof("check_levels", LEVEL_RULES, A, source)
    level = proof.levels(levels, 1)
    _prove_levels_from_source(proof, level)
    return proof.report(level)


def _prove_levels_from_source(proof: Proof, level: Array) -> None:
    """Raise unless levels, (n,), obey all of `LEVEL_RULES`."""
    source = proof.source
    if level[source] != 0:
        found = level[source] if level[source] < proof.unreached else "none"
        proof.fail(0, f"level[{source}] is {found}, not 0")
    _prove_levels(proof, level, np.array([source]), proof.n)


def _prove_levels(proof: Proof, level: Array, sources: Array, last: int) -> tuple[str, ...]:
    """Raise unless levels obey rules 2 and 3, up to the last level, where a search stops."""
    nearest = proof.nearest(level)
    _prove_no_long_edge(proof, 2, level, np.where(nearest < last, nearest, proof.unreached))
    bad = (level < proof.unreached) & (level != nearest + 1)
    bad[sources] = False

    def describe(v: int) -> str:
        if nearest[v] == proof.unreached:
            return f"level {level[v]}, but none of its in-neighbours is reached"
        return f"level {level[v]}, but its nearest in-neighbour has level {nearest[v]}"

    return proof.refuse(3, bad, describe)


def _prove_no_long_edge(proof: Proof, rule: int, level: Array, nearest: Array) -> None:
    """Raise if an edge ends more than one level after its begin, or at an unreached vertex."""

    def describe(v: int) -> str:
        found = "no level" if level[v] == proof.unreached else f"level {level[v]}"
        u = proof.edges.first(lambda e: (e.end == v) & (level[e.begin] == nearest[v]))[v]
        return f"{found}, but the edge {u} -> {v} comes from level {nearest[v]}"

    proof.refuse(rule, level > nearest + 1, describe)


# ---- prove the parents of a breadth-first search by the five rules of Graph500

PARENT_RULES = (
    "the source is its own parent",
    "parents are vertices",
    "1: the parents form a tree rooted at the source",
    "2: a tree edge joins levels that differ by one",
    "3: an edge from level d ends at a level <= d + 1",
    "4: the tree spans all that the source reaches",
    "5: a tree edge is an edge of the graph",
)


def check_parents(A: Any, source: int, parents: Any, levels: Any = None) -> CheckReport:
    """Prove that parents are a breadth-first tree from a source, or raise.

    `parents`, (n,), has the parent of each reached vertex; the source is its own parent. `levels`,
    (n,), if given, must be the depths of the tree.

    The rules of `PARENT_RULES`, numbered as in the Graph500 specification, and applied along the
    edges of a directed graph, suffice: by 1 each vertex of the tree has a depth, and by 5 the
    source reaches it in as many steps; by 3 and 4, which are rule 3 of `check_levels` for depths,
    not in fewer, and no reachable vertex is left out. So a parent on an unreached vertex breaks 1
    or 5: the chain of parents does not end at the source, or is not a path.
    """
    proof = Proof("check_parents", PARENT_RULES, A, source)
    parent, present = proof.at_source(parents, "parents", "parent", proof.source)
    odd = present & ~proof.are_vertices(parent)
    proof.refuse(1, odd, lambda v: f"parent {parent[v]} is not one of 0 .. {proof.n - 1}")
    kind = np.int32 if proof.n < 2**31 else np.int64
    parent = np.where(present, parent.astype(kind), np.arange(proof.n, dtype=kind))
    if levels is None:
        level = _depths(proof, parent, present)
    else:
        level = _given_depths(proof, parent, present, proof.levels(levels, 3))
    known = proof.edges.at_ends(lambda e: e.begin == parent[e.end], np.logical_or, False)
    known |= ~present
    known[proof.source] = True
    proof.refuse(
        6, ~known, lambda v: f"its parent is {parent[v]}, but there is no edge {parent[v]} -> {v}"
    )
    nearest = proof.nearest(level)
    _prove_no_long_edge(proof, 4, np.where(level < proof.unreached, level, nearest + 1), nearest)
    _prove_no_long_edge(proof, 5, level, nearest)
    return proof.report(level)


def _given_depths(proof: Proof, parent: Array, present: Array, level: Array) -> Array:
    """Return levels if they are the depths in a tree, or raise; quicker than `_depths`."""
    # A level is one more than the parent's, and 0 at the source alone: the chain of parents of a
    # vertex goes through falling levels, and ends there.
    wanted = np.where(present, level[parent] + 1, proof.unreached)
    wanted[proof.source] = 0

    def describe(v: int) -> str:
        mine, its = ("none" if x == proof.unreached else x for x in (level[v], level[parent[v]]))
        of = f"its parent {parent[v]} has {its}" if present[v] else "it has no parent"
        return f"level {mine}, but {of}"

    proof.refuse(3, (level != wanted) | (present & (level == proof.unreached)), describe)
    return level


def _depths(proof: Proof, parent: Array, present: Array) -> Array:
    """Return each vertex's depth in the tree, (n,), or raise: all chains end at the source."""
    orphans = present & ~present[parent]
    proof.refuse(2, orphans, lambda v: f"its parent {parent[v]} has no parent")
    depth, root = climbed(np, parent)

    def describe(v: int) -> str:
        if parent[v] == v:
            return "is its own parent, but not the source"
        return f"its chain of parents, from {parent[v]} on, does not end at {proof.source}"

    proof.refuse(2, present & (root != proof.source), describe)
    kind = np.int32 if proof.unreached < 2**31 - 1 else np.int64
    return np.where(present, depth, proof.unreached).astype(kind)


# ---- prove numbers of shortest paths

PATH_RULES = (
    *LEVEL_RULES,
    "the source has one path",
    "exactly the reached vertices have a count",
    "a count is the sum over the in-neighbours one level up",
)


def check_paths(A: Any, source: int, paths: Any, levels: Any = None) -> CheckReport:
    """Prove that counts are the numbers of shortest paths from a source, or raise.

    `paths`, (n,), has the count of each reached vertex, of any whole or floating-point type: a path
    is a sequence of vertices, since parallel edges do not exist. `levels`, (n,), are distances,
    which are proved first; by default a plain search computes them.

    The last three of `PATH_RULES`, over proved levels, suffice: a shortest path to v ends with an
    edge from a vertex one level up, and by induction over levels the counts there are right.
    Integers are compared exactly, a sum beyond 64 bits included. A float may differ from the sum
    over the in-neighbours by the rounding of this sum; infinite counts must be infinite sums.
    """
    proof = Proof("check_paths", PATH_RULES, A, source)
    if levels is None:
        level = proof.edges.search(np.array([proof.source]))
    else:
        level = proof.levels(levels, 1)
    _prove_levels_from_source(proof, level)
    reached = level < proof.unreached
    count, present = proof.at_source(paths, "paths", "paths", 1, rule=4)

    proof.refuse(5, present & ~reached, lambda v: f"{count[v]} paths, but it is unreached")
    proof.refuse(5, reached & ~present, lambda v: f"no count, but it is at level {level[v]}")
    compare = _float_sums if count.dtype.kind == "f" else _whole_sums
    bad, total = compare(proof, level, count)
    bad &= reached
    bad[proof.source] = False
    proof.refuse(6, bad, lambda v: f"{count[v]} paths, but the sum is {total(v)}")
    return proof.report(level)


def _whole_sums(proof: Proof, level: Array, count: Array) -> tuple[Array, Callable[[int], int]]:
    """Return (which counts are not their sums, the sums), all beyond 64 bits too."""
    proof.refuse(6, (level < proof.unreached) & (count < 1), lambda v: f"{count[v]} paths")
    # In two halves of 32 bits so that nothing wraps.
    width, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    bits = count.astype(np.uint64)
    high, low = _sums(proof, level, bits >> width), _sums(proof, level, bits & mask)
    high, low = high + (low >> width), low & mask
    bad = (bits >> width != high) | (bits & mask != low)
    return bad, lambda v: (int(high[v]) << 32) + int(low[v])


def _float_sums(proof: Proof, level: Array, count: Array) -> tuple[Array, Callable[[int], Any]]:
    """Return (which counts are not their sums, the sums): equal while exact, else but rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = _sums(proof, level, count.astype(np.float64)).astype(count.dtype)
        limits = np.finfo(count.dtype)
        # k positive summands lose at most k roundings; below 2**precision there are none.
        summands = _sums(proof, level, np.ones(proof.n, np.int64))
        slack = (summands + 1) * float(limits.eps) * total
        inexact = np.isfinite(total) & (total >= 2.0 ** (limits.nmant + 1))
        good = (count == total) | (inexact & (np.abs(count - total) <= slack))
    return ~good, total.__getitem__


def _sums(proof: Proof, level: Array, count: Array) -> Array:
    """Return the sum of each vertex's counts over the in-neighbours one level up, (n,)."""
    none = count.dtype.type(0)
    return proof.edges.at_ends(
        lambda e: np.where(level[e.begin] + 1 == level[e.end], count[e.begin], none), np.add, 0
    )


# ---- check the results of many sources


def check_levels_multi(A: Any, sources: Any, levels: Any) -> tuple[CheckReport, ...]:
    """Prove that each row of a matrix has the distances from its source, or raise.

    Row r belongs to ``sources[r]``; `levels` is a Matrix or a SciPy sparse array, (k, n), with the
    level of each reached vertex, where a stored zero is a level. Returns the report of
    `check_levels` for each row.
    """
    return _rows(check_levels, "check_levels_multi", A, sources, levels)


def check_parents_multi(A: Any, sources: Any, parents: Any) -> tuple[CheckReport, ...]:
    """Prove that each row of a matrix is a breadth-first tree from its source, or raise.

    As `check_levels_multi`, for `check_parents`; a stored zero is a parent.
    """
    return _rows(check_parents, "check_parents_multi", A, sources, parents)


def _rows(
    check: Callable[..., CheckReport], name: str, A: Any, sources: Any, found: Any
) -> tuple[CheckReport, ...]:
    """Check a result row by row."""
    pattern = A if isinstance(A, Pattern) else Pattern(A)
    wanted = (len(sources), pattern.n)
    if tuple(found.shape) != wanted:
        raise DimensionMismatch(
            f"{name}: the result has shape {tuple(found.shape)} != {wanted}, a row for each source."
        )
    if hasattr(found, "to_csr"):
        start, vertices, values = found.to_csr()
    else:
        rows = sp.csr_array(found)
        start, vertices, values = rows.indptr, rows.indices, rows.data
    reports = []
    for r, source in enumerate(np.asarray(sources).tolist()):
        one = slice(start[r], start[r + 1])
        try:
            reports.append(check(pattern, source, (vertices[one], values[one])))
        except CheckFailed as error:
            raise CheckFailed(f"{name}: row {r}, source {source}: {error}") from None
    return tuple(reports)


# ---- prove the levels of a search from several vertices

JOINT_RULES = (
    "levels are whole numbers 0 .. n-1, or 0 .. k",
    "exactly the sources have level 0",
    "an edge from level d, below k, ends at a level <= d + 1",
    "a vertex of level d > 0 has an in-neighbour of level d - 1",
)

HOP_RULES = ("the members are the vertices whose distance from the nearest source is k",)


def check_levels_joint(
    A: Any, sources: Any, levels: Any, *, k: int | None = None
) -> tuple[str, ...]:
    """Prove that levels are the distances from the nearest of some vertices, or raise.

    `levels`, (n,), has the level of each reached vertex; with `k`, vertices farther away than that
    have none. The rules suffice by the proof in `check_levels`, with "the sources" for "the
    source".
    """
    proof = Proof("check_levels_joint", JOINT_RULES, A)
    chosen = proof.vertices(sources, "a source is outside")
    level = proof.levels(levels, 0)
    last = proof.n if k is None else k
    reached = level < proof.unreached
    proof.refuse(0, reached & (level > last), lambda v: f"level {level[v]}")
    wrong = np.isin(np.arange(proof.n), chosen) != (level == 0)
    proof.refuse(1, wrong, lambda v: f"level {level[v]}" if reached[v] else "no level")
    return _prove_levels(proof, level, chosen, last)


def check_k_hop(A: Any, sources: Any, k: int, members: Any) -> tuple[str, ...]:
    """Prove that vertices are those k edges from the nearest of some vertices, or raise.

    `members`, (n,), has an entry for each member, none of them False. A plain search computes the
    distances.
    """
    proof = Proof("check_k_hop", HOP_RULES, A)
    chosen = proof.vertices(sources, "a source is outside")
    member = proof.members(members)
    level = proof.edges.search(chosen)
    distance = np.where(level < proof.unreached, level, np.inf)
    wrong, no = member != (distance == k), np.where(member, "", "not ")
    return proof.refuse(0, wrong, lambda v: f"{no[v]}a member, at distance {distance[v]:g}")


# ---- prove distances, and shortest paths

DISTANCE_RULES = (
    "the source has distance 0",
    "an edge from a reached vertex ends at a reached vertex",
    "no edge is a shortcut: its end is at most its length farther than its begin",
    "a path from the source to each reached vertex is as long as the distance",
)


def check_distances(A: Any, source: Any, distances: Any, limit: float = math.inf) -> CheckReport:
    """Prove that distances are the lengths of shortest paths from a source, or raise.

    `A` is a Matrix or a SciPy sparse array, (n, n), of lengths, zero included; `source` is a
    vertex, or a list of vertices, and then the nearest counts; `distances`, (n,), has the distance
    of each reached vertex, and none of a vertex farther away than `limit`. The `depth` of the
    report is the largest number of edges of a shortest path, counting the path with fewest.

    The rules of `DISTANCE_RULES` suffice: by 1 and 4 every distance is the length of a walk from
    the source, so it is not too small; by 1, 2 and 3, and induction along any walk, it is not too
    large, and no reachable vertex is left out. A sum of floats is rounded once, and compared
    exactly.
    """
    proof = Proof("check_distances", DISTANCE_RULES, A, values=True)
    return _prove_distances(proof, _sources(proof, source), distances, limit)[0]


def _sources(proof: Proof, source: Any) -> Array:
    return proof.vertices(np.atleast_1d(source), f"source {source} is outside")


def _prove_distances(
    proof: Proof, sources: Array, distances: Any, limit: float = math.inf
) -> tuple[CheckReport, Array, Array]:
    """Return the report, the distances, and which vertices have one, or raise."""
    distance, present = proof.dense(distances, "distances")
    if distance.dtype.kind != "f" and np.abs(distance.astype(float)).max(initial=0) >= 2**53:
        distance = distance.astype(object)  # no sum wraps, and of UINT64 none is a float
    for s in sources[~present[sources] | (distance[sources] != 0)]:
        proof.fail(0, f"distance[{s}] is {distance[s] if present[s] else 'none'}, not 0")
    edges = proof.edges

    def through(e: Edges) -> Array:
        return np.asarray(distance[e.begin] + e.lengths)

    def is_begun(e: Edges) -> Array:
        return present[e.begin] & (through(e) <= limit)

    begun = edges.at_ends(is_begun, np.logical_or, False)
    proof.refuse(1, begun & ~present, lambda v: "no distance")
    proof.refuse(3, present & (distance > limit), lambda v: f"{distance[v]} is beyond the limit")

    def is_short(e: Edges) -> Array:
        return is_begun(e) & ~(distance[e.end] <= through(e))

    def shortcut(v: int) -> str:
        u = int(edges.first(lambda e: is_short(e) & (e.end == v))[v])
        (length,) = _lengths_along(proof, [u, v], 2)
        return f"distance {distance[v]}, but {distance[u] + length} through {u}"

    proof.refuse(2, edges.at_ends(is_short, np.logical_or, False), shortcut)
    tight = edges.along(lambda e: present[e.begin] & (distance[e.end] == through(e)))
    steps = tight.search(sources)
    far, begin = present & (steps == proof.unreached), ", ".join(map(str, sources))
    fault = f"no path from {begin} is that long"
    proof.refuse(3, far, lambda v: f"distance {distance[v]}, but {fault}")
    reached = edges.total(lambda e: present[e.begin])
    depth = int(steps[present].max())
    return CheckReport(proof.rules, int(present.sum()), depth, reached), distance, present


TREE_RULES = (
    *DISTANCE_RULES,
    "a source is its own parent, and exactly the vertices with a distance have a parent",
    "a parent is a vertex, joined to its child by an edge as long as their distances differ",
    "the chain of parents of each vertex ends at a source",
)


def check_sssp_parents(
    A: Any, source: Any, distances: Any, parents: Any, limit: float = math.inf
) -> CheckReport:
    """Prove that distances are right and parents a tree of shortest paths, or raise.

    `parents`, (n,), has the parent of each vertex with a distance; the rest is as in
    `check_distances`.

    The rules of `TREE_RULES` suffice: by the last two a chain of parents, read backward, is a path
    from a source whose length is the distance, which the first four prove. Without the last one
    edges of length 0 could close a cycle of parents.
    """
    proof = Proof("check_sssp_parents", TREE_RULES, A, values=True)
    sources = _sources(proof, source)
    report, distance, reached = _prove_distances(proof, sources, distances, limit)
    parent, present = proof.dense(parents, "parents")
    proof.refuse(4, present != reached, lambda v: "a parent" if present[v] else "no parent")
    is_source = np.isin(np.arange(proof.n), sources)
    proof.refuse(4, is_source & (parent != np.arange(proof.n)), lambda v: f"parent {parent[v]}")
    parent = np.where(present & proof.are_vertices(parent), parent, -1).astype(np.int64)

    def is_link(e: Edges) -> Array:
        tight = distance[e.begin] + e.lengths == distance[e.end]
        return np.asarray((e.begin == parent[e.end]) & tight)

    linked = proof.edges.at_ends(is_link, np.logical_or, False) & reached[parent]
    proof.refuse(5, present & ~is_source & ~linked, lambda v: f"parent {parent[v]}")
    _, root = climbed(np, np.where(present, parent, np.arange(proof.n)))
    proof.refuse(6, present & ~is_source[root], lambda v: f"its chain comes to {root[v]}")
    return report


FLOYD_RULES = ("a row has the distances from its vertex, and no other entry",)


def check_floyd_warshall(A: Any, distances: Any, *, rel_tol: float = 1e-9) -> tuple[str, ...]:
    """Prove that a matrix has the distances between all vertices, or raise.

    `A` is as in `check_distances`, small, since each row takes a plain relaxation over all edges;
    `distances` is a Matrix or a SciPy sparse array, (n, n), where a stored zero is a distance.
    Those of integers must be exact; `rel_tol` is the tolerance of float ones, over the largest of
    the row: sums depend on their order.
    """
    proof = Proof("check_floyd_warshall", FLOYD_RULES, A, values=True)
    entries = Proof(proof.name, FLOYD_RULES, distances, values=True).matrix().tocoo()
    if entries.shape[0] != proof.n:
        fact = f"{entries.shape[0]} rows of distances != {proof.n} vertices"
        raise DimensionMismatch(f"{proof.name}: {fact}.")
    (rows, cols), values = entries.coords, entries.data
    found, known = (np.zeros((proof.n, proof.n), kind) for kind in (values.dtype, bool))
    found[rows, cols], known[rows, cols] = values, values != np.inf
    for v in range(proof.n):
        wanted, reached = proof.edges.lengths_from(v)
        slack = rel_tol * np.abs(wanted[reached]).max() if values.dtype.kind == "f" else 0
        close = np.isclose(found[v], wanted, rtol=0, atol=slack) if slack else found[v] == wanted
        bad = np.flatnonzero((known[v] != reached) | (reached & ~close))
        if bad.size:
            pairs = ((found[v], known[v]), (wanted, reached))
            here, right = (x[bad[0]] if there[bad[0]] else np.inf for x, there in pairs)
            proof.fail(0, f"from {v} to {bad[0]}: {here}, not {right}")
    return FLOYD_RULES


CYCLE_RULES = (
    "consecutive vertices of the cycle, which are distinct, are joined by an edge",
    "the cycle has a negative length",
    "without a cycle the vertices have potentials, by which no edge has a negative length",
)


def check_negative_cycle(A: Any, cycle: list[int] | None) -> tuple[str, ...]:
    """Prove that a cycle has a negative length, or for None that there is none, or raise.

    `A` is a Matrix or a SciPy sparse array, (n, n), of lengths; `cycle` is a list of vertices, each
    once, and an edge leads from the last one to the first.

    Around a cycle potentials cancel, so if each edge's length is at least the difference of its
    ends' potentials, no cycle is negative (Johnson 1977). Plain relaxation from all vertices finds
    potentials within n rounds if there are some.
    """
    proof = Proof("check_negative_cycle", CYCLE_RULES, A, values=True)
    if cycle is None:
        potential = proof.edges.relaxed(np.zeros(proof.n))
        lower = proof.edges.at_ends(
            lambda e: potential[e.begin] + e.lengths < potential[e.end], np.logical_or, False
        )
        return proof.refuse(2, lower, lambda v: "its distance still decreases after n rounds")[2:]
    proof.require(0, len({*cycle}) == len(cycle), f"{cycle} has a vertex twice")
    lengths = _lengths_along(proof, [*cycle, *cycle[:1]], 0)
    length = (sum if all(type(x) is int for x in lengths) else math.fsum)(lengths)
    return proof.require(1, length < 0, f"{cycle} has length {length:g}")[:2]


def _lengths_along(proof: Proof, route: list[int], rule: int) -> list[float]:
    """Return the lengths of the edges between consecutive vertices, or raise if one is missing."""
    vertices = proof.vertices(route, f"{route} is not within")
    begin, end = vertices[:-1], vertices[1:]
    keys = np.unique(begin * proof.n + end)

    def wanted(own: Slice) -> tuple[Array, ...]:
        found = [(e.begin.astype(np.int64) * proof.n + e.end, e.lengths) for e in own.blocks()]
        key, length = (np.concatenate(x) for x in zip(*found, strict=True))
        kept = np.isin(key, keys)
        return key[kept], length[kept]

    known: dict[int, float] = {}
    for key, length in proof.edges.gather(wanted):
        known |= zip(key.tolist(), length.tolist(), strict=True)
    for u, v in zip(begin.tolist(), end.tolist(), strict=True):
        proof.require(rule, u * proof.n + v in known, f"there is no edge {u} -> {v}")
    return [known[k] for k in (begin * proof.n + end).tolist()]


ROUTE_RULES = (
    "the path begins at the source and ends at the target",
    "consecutive vertices are joined by an edge",
    "the number of edges, or with weights their length, is the distance",
)


def check_route(
    A: Any, source: int, target: int, route: list[int], *, weight: bool = False
) -> tuple[str, ...]:
    """Prove that vertices are a shortest path, or raise.

    `route` is a list of the vertices from `source` to `target`. With `weight` the values of `A` are
    lengths, as in `check_distances`, which are summed from the source on; else each edge counts 1.
    A plain search, or plain relaxation over all edges, computes the distance.
    """
    proof = Proof("check_route", ROUTE_RULES, A, source, values=weight)
    vertices = proof.vertices(route, f"{route} is not within")
    ends = (route[0], route[-1]) if len(route) else None
    proof.require(0, ends == (source, target), f"{route}, not {source} to {target}")
    if weight:
        distances, reached = proof.edges.lengths_from(source)
        distance = distances[target].item() if reached[target] else np.inf
        length = sum(_lengths_along(proof, route, 1))
        return proof.require(2, length == distance, f"length {length}, but distance {distance}")
    u, v = vertices[:-1], vertices[1:]
    joined = proof.edges.have(u, v)
    if not joined.all():
        k = int(np.argmin(joined))
        proof.fail(1, f"there is no edge {u[k]} -> {v[k]}")
    level = proof.edges.search(np.array([source]))[target]
    distance = level if level < proof.unreached else np.inf
    fault = f"{len(route) - 1} edges, but distance {distance:g}"
    return proof.require(2, len(route) - 1 == distance, fault)
