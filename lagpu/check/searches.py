"""Check levels, parents and path counts of searches, from one source or several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu.check.graph import CheckReport, Edges, Graph, Pattern, refuse, whole_below
from lagpu.errors import CheckFailed, DimensionMismatch, IndexOutOfBound

Array = np.ndarray[Any, Any]

LEVEL_RULES = (
    "the source has level 0",
    "levels are whole numbers 0 .. n-1",
    "an edge from level d ends at a level <= d + 1",
    "a vertex of level d > 0 has an in-neighbour of level d - 1",
)


def check_levels(A: Any, source: int, levels: Any) -> CheckReport:
    """Prove that levels are the distances from a source, or raise.

    Parameters
    ----------
    A : graph, (n, n)
    source : int
        ``0 <= source < n``.
    levels : result, (n,)
        Level of each reached vertex.

    Notes
    -----
    The rules of `LEVEL_RULES` suffice. Let dist be the true distance.

    - By rules 1 and 3, and induction along a shortest path, a vertex at distance d has a level, and
      it is <= d.
    - By rule 4, from a vertex of level d there is a walk against the edges through levels d - 1,
      d - 2, ..., 0. By rule 4 again only the source can have level 0, since no vertex has level -1.
      So a vertex of level d is reached from the source in d steps: dist <= level.

    Hence level = dist, and exactly the reachable vertices have one.
    """
    graph = Graph(A, source)
    level = graph.levels(levels, "check_levels", LEVEL_RULES[1])
    prove_levels(graph, level, "check_levels")
    return graph.report(LEVEL_RULES, level)


def prove_levels(graph: Graph, level: Array, name: str) -> None:
    """Raise unless levels, (n,), obey all of `LEVEL_RULES`."""
    source = graph.source
    if level[source] != 0:
        found = level[source] if level[source] < graph.unreached else "none"
        raise CheckFailed(f"{name}: {LEVEL_RULES[0]}: level[{source}] is {found}, not 0.")
    nearest = graph.nearest(level)
    prove_no_long_edge(graph, level, nearest, f"{name}: {LEVEL_RULES[2]}")
    bad = (level < graph.unreached) & (level != nearest + 1)
    bad[source] = False

    def describe(v: int) -> str:
        if nearest[v] == graph.unreached:
            return f"level {level[v]}, but none of its in-neighbours is reached"
        return f"level {level[v]}, but its nearest in-neighbour has level {nearest[v]}"

    refuse(bad, f"{name}: {LEVEL_RULES[3]}", describe)


def prove_no_long_edge(graph: Graph, level: Array, nearest: Array, rule: str) -> None:
    """Raise if an edge ends more than one level after its begin, or at an unreached vertex."""

    def describe(v: int) -> str:
        found = "no level" if level[v] == graph.unreached else f"level {level[v]}"
        u = graph.edges.first(lambda e: (e.end == v) & (level[e.begin] == nearest[v]))[v]
        return f"{found}, but the edge {u} -> {v} comes from level {nearest[v]}"

    refuse(level > nearest + 1, rule, describe)


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

    Parameters
    ----------
    A : graph, (n, n)
    source : int
        ``0 <= source < n``.
    parents : result, (n,)
        Parent of each reached vertex; the source is its own parent.
    levels : result, (n,), optional
        If given, they must be the depths of the tree.

    Notes
    -----
    The rules of `PARENT_RULES`, numbered as in the Graph500 specification, and applied along the
    edges of a directed graph, suffice: by 1 each vertex of the tree has a depth, and by 5 the
    source reaches it in as many steps; by 3 and 4, which are rule 3 of `check_levels` for depths,
    not in fewer, and no reachable vertex is left out. So a parent on an unreached vertex breaks
    1 or 5: the chain of parents does not end at the source, or is not a path.
    """
    graph = Graph(A, source)
    parent, present = graph.dense(parents, "parents")
    rule = f"check_parents: {PARENT_RULES[0]}: parent"
    graph.require_at_source((parent, present), graph.source, rule)
    refuse(
        present & ~whole_below(parent, graph.n),
        f"check_parents: {PARENT_RULES[1]}",
        lambda v: f"parent {parent[v]} is not one of 0 .. {graph.n - 1}",
    )
    kind = np.int32 if graph.n < 2**31 else np.int64
    parent = np.where(present, parent.astype(kind), np.arange(graph.n, dtype=kind))
    level = _depths(graph, parent, present)
    if levels is not None:
        given = graph.levels(levels, "check_parents", PARENT_RULES[3])
        words = {graph.unreached: "none"}
        refuse(
            level != given,
            f"check_parents: {PARENT_RULES[3]}",
            lambda v: (
                f"level {words.get(int(given[v]), given[v])}, "
                f"but depth in the tree {words.get(int(level[v]), level[v])}"
            ),
        )
    known = graph.edges.at_ends(lambda e: e.begin == parent[e.end], np.logical_or, False)
    known |= ~present
    known[graph.source] = True
    refuse(
        ~known,
        f"check_parents: {PARENT_RULES[6]}",
        lambda v: f"its parent is {parent[v]}, but there is no edge {parent[v]} -> {v}",
    )
    nearest = graph.nearest(level)
    both = np.where(level < graph.unreached, level, nearest + 1)
    prove_no_long_edge(graph, both, nearest, f"check_parents: {PARENT_RULES[4]}")
    prove_no_long_edge(graph, level, nearest, f"check_parents: {PARENT_RULES[5]}")
    return graph.report(PARENT_RULES, level)


def _depths(graph: Graph, parent: Array, present: Array) -> Array:
    """Return each vertex's depth in the tree, (n,), or raise unless all chains end at the source.

    Pointer doubling: after k rounds `jump` is 2**k parents up, or the source.
    """
    rule = f"check_parents: {PARENT_RULES[2]}"
    refuse(
        present & ~present[parent],
        rule,
        lambda v: f"its parent {parent[v]} has no parent",
    )
    jump = parent
    depth = (jump != np.arange(graph.n)).astype(np.int64)
    for _ in range(graph.n.bit_length()):
        further = jump[jump]
        depth += depth[jump]
        if np.array_equal(further, jump):
            break
        jump = further
    refuse(
        present & (jump != graph.source),
        rule,
        lambda v: (
            "is its own parent, but not the source"
            if parent[v] == v
            else f"its chain of parents, from {parent[v]} on, does not end at {graph.source}"
        ),
    )
    kind = np.int32 if graph.unreached < 2**31 - 1 else np.int64
    return np.where(present, depth, graph.unreached).astype(kind)


# ---- prove numbers of shortest paths

PATH_RULES = (
    "the source has one path",
    "exactly the reached vertices have a count",
    "a count is the sum over the in-neighbours one level up",
)


def check_paths(A: Any, source: int, paths: Any, levels: Any = None) -> CheckReport:
    """Prove that counts are the numbers of shortest paths from a source, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; parallel edges do not exist, so a path is a sequence of vertices.
    source : int
        ``0 <= source < n``.
    paths : result, (n,)
        Count of each reached vertex, of any whole or floating-point type.
    levels : result, (n,), optional
        Distances, which are proved first; by default a plain search computes them.

    Notes
    -----
    The rules of `PATH_RULES`, over proved levels, suffice: a shortest path to v ends with an edge
    from a vertex one level up, and by induction over levels the counts there are right.
    Integers are compared exactly, a sum beyond 64 bits included. A float may differ from the sum
    over the in-neighbours by the rounding of this sum; infinite counts must be infinite sums.
    """
    graph = Graph(A, source)
    if levels is None:
        level = graph.edges.search(np.array([graph.source]))
    else:
        level = graph.levels(levels, "check_paths", LEVEL_RULES[1])
    prove_levels(graph, level, "check_paths")
    count, present = graph.dense(paths, "paths")
    graph.require_at_source((count, present), 1, f"check_paths: {PATH_RULES[0]}: paths")
    refuse(
        present != (level < graph.unreached),
        f"check_paths: {PATH_RULES[1]}",
        lambda v: (
            f"{count[v]} paths, but it is unreached"
            if present[v]
            else f"no count, but it is at level {level[v]}"
        ),
    )
    prove = _prove_float_sums if count.dtype.kind == "f" else _prove_whole_sums
    prove(graph, level, count)
    return graph.report(LEVEL_RULES + PATH_RULES, level)


def _prove_whole_sums(graph: Graph, level: Array, count: Array) -> None:
    """Compare integer counts with their sums, in two halves of 32 bits so that nothing wraps."""
    rule = f"check_paths: {PATH_RULES[2]}"
    refuse((level < graph.unreached) & (count < 1), rule, lambda v: f"{count[v]} paths")
    width, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    bits = count.astype(np.uint64)
    high, low = _sums(graph, level, bits >> width), _sums(graph, level, bits & mask)
    high, low = high + (low >> width), low & mask
    refuse(
        _except_source(graph, level, (bits >> width != high) | (bits & mask != low)),
        rule,
        lambda v: f"{count[v]} paths, but the sum is {(int(high[v]) << 32) + int(low[v])}",
    )


def _prove_float_sums(graph: Graph, level: Array, count: Array) -> None:
    """Compare float counts with their sums: equal while exact, else up to rounding."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = _sums(graph, level, count.astype(np.float64)).astype(count.dtype)
        limits = np.finfo(count.dtype)
        # k positive summands lose at most k roundings; below 2**precision there are none.
        summands = graph.edges.at_ends(lambda e: np.ones(len(e.begin), np.int64), np.add, 0)
        slack = (summands + 1) * float(limits.eps) * total
        inexact = np.isfinite(total) & (total >= 2.0 ** (limits.nmant + 1))
        good = (count == total) | (inexact & (np.abs(count - total) <= slack))
    refuse(
        _except_source(graph, level, ~good),
        f"check_paths: {PATH_RULES[2]}",
        lambda v: f"{count[v]} paths, but the sum is {total[v]}",
    )


def _except_source(graph: Graph, level: Array, bad: Array) -> Array:
    bad &= level < graph.unreached
    bad[graph.source] = False
    return bad


def _sums(graph: Graph, level: Array, count: Array) -> Array:
    """Return the sum of each vertex's counts over the in-neighbours one level up, (n,)."""

    def above(edges: Edges) -> Array:
        begin = edges.begin
        return np.where(level[begin] + 1 == level[edges.end], count[begin], count.dtype.type(0))

    return graph.edges.at_ends(above, np.add, 0)


# ---- check the results of many sources


def check_levels_multi(A: Any, sources: Any, levels: Any) -> tuple[CheckReport, ...]:
    """Prove that each row of a matrix has the distances from its source, or raise.

    Parameters
    ----------
    A : graph, (n, n)
    sources : list of int, (k,)
        Row r belongs to ``sources[r]``.
    levels : Matrix or SciPy sparse array, (k, n)
        Level of each reached vertex; a stored zero is a level.

    Returns
    -------
    tuple of CheckReport
        The report of `check_levels` for each row.
    """
    return _rows(check_levels, "check_levels_multi", A, sources, levels)


def check_parents_multi(A: Any, sources: Any, parents: Any) -> tuple[CheckReport, ...]:
    """Prove that each row of a matrix is a breadth-first tree from its source, or raise.

    Parameters
    ----------
    A, sources
        As in `check_levels_multi`.
    parents : Matrix or SciPy sparse array, (k, n)
        Parent of each reached vertex; a stored zero is a parent.

    Returns
    -------
    tuple of CheckReport
        The report of `check_parents` for each row.
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

    Parameters
    ----------
    A : graph, (n, n)
    sources : list of int
        Vertices ``0 .. n-1``.
    levels : result, (n,)
        Level of each reached vertex.
    k : int, optional
        The largest level; vertices farther away have none.
    IndexOutOfBound, DimensionMismatch
        If the sources or the arrays do not fit the graph.

    Notes
    -----
    The rules suffice by the proof in `check_levels`, with "the sources" for "the source".
    """
    graph, name = Graph(A), "check_levels_joint"
    chosen = _inside(sources, graph, name)
    level = graph.levels(levels, name, JOINT_RULES[0])
    last = graph.n if k is None else k
    reached = level < graph.unreached
    refuse(reached & (level > last), f"{name}: {JOINT_RULES[0]}", lambda v: f"level {level[v]}")
    is_source = np.zeros(graph.n, bool)
    is_source[chosen] = True
    found = {graph.unreached: "no level"}

    def shown(v: int) -> str:
        return found.get(int(level[v]), f"level {level[v]}")

    refuse(is_source != (level == 0), f"{name}: {JOINT_RULES[1]}", shown)
    nearest = graph.nearest(level)
    refuse(
        (nearest < last) & (level > nearest + 1),
        f"{name}: {JOINT_RULES[2]}",
        lambda v: f"{shown(v)}, but an edge comes from level {nearest[v]}",
    )
    refuse(
        reached & ~is_source & (level != nearest + 1),
        f"{name}: {JOINT_RULES[3]}",
        lambda v: f"{shown(v)}, but no in-neighbour is one level up",
    )
    return JOINT_RULES


def check_k_hop(A: Any, sources: Any, k: int, members: Any) -> tuple[str, ...]:
    """Prove that vertices are those k edges from the nearest of some vertices, or raise.

    Parameters
    ----------
    A : graph, (n, n)
    sources : list of int
        Vertices ``0 .. n-1``.
    k : int
        The distance.
    members : result, (n,)
        An entry for each member.

    Notes
    -----
    A plain search computes the distances.
    """
    graph, name = Graph(A), "check_k_hop"
    chosen = _inside(sources, graph, name)
    _, member = graph.dense(members, "members")
    level = graph.edges.search(chosen)
    distance = np.where(level < graph.unreached, level, np.inf)
    refuse(
        member != (distance == k),
        f"{name}: {HOP_RULES[0]}",
        lambda v: f"{'a' if member[v] else 'not a'} member, at distance {distance[v]:g}",
    )
    return HOP_RULES


def _inside(sources: Any, graph: Graph, name: str) -> Any:
    chosen = np.asarray(sources, np.int64)
    if chosen.size and not 0 <= chosen.min() <= chosen.max() < graph.n:
        raise IndexOutOfBound(f"{name}: a source is outside 0 .. {graph.n - 1}.")
    return chosen
