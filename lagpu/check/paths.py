"""Prove numbers of shortest paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.check.graph import CheckReport, Graph, refuse
from lagpu.check.levels import LEVEL_RULES, prove_levels
from lagpu.check.slices import Edges
from lagpu.errors import CheckFailed

__all__ = ["PATH_RULES", "check_paths"]

Array = np.ndarray[Any, Any]

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

    Raises
    ------
    CheckFailed, IndexOutOfBound, DimensionMismatch
        As `check_levels`.

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
    source = graph.source
    if not present[source] or count[source] != 1:
        found = count[source] if present[source] else "none"
        raise CheckFailed(f"check_paths: {PATH_RULES[0]}: paths[{source}] is {found}, not 1.")
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
