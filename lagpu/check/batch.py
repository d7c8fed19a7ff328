"""Check the results of many sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from lagpu.check.graph import CheckReport, Graph, Pattern, refuse
from lagpu.check.levels import check_levels, check_parents
from lagpu.errors import CheckFailed, DimensionMismatch, IndexOutOfBound


def check_levels_multi(A: Any, sources: Any, levels: Any) -> tuple[CheckReport, ...]:
    """Prove that each row of a matrix has the distances from its source, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module.
    sources : list of int, (k,)
        Row r belongs to ``sources[r]``.
    levels : Matrix or SciPy sparse array, (k, n)
        Level of each reached vertex; a stored zero is a level.

    Returns
    -------
    tuple of CheckReport
        The report of `check_levels` for each row.

    Raises
    ------
    CheckFailed
        At the first broken rule, with row, source and vertex.
    IndexOutOfBound, DimensionMismatch
        If a source or the matrix does not fit the graph.
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

    Raises
    ------
    CheckFailed, IndexOutOfBound, DimensionMismatch
        As `check_levels_multi`.
    """
    return _rows(check_parents, "check_parents_multi", A, sources, parents)


def _rows(
    check: Callable[..., CheckReport], name: str, A: Any, sources: Any, found: Any
) -> tuple[CheckReport, ...]:
    """Check a result row by row."""
    pattern = Pattern(A)
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


# ------------------------------------------------------------------------------------------
# Prove the levels of a search from several vertices.


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
        See the module.
    sources : list of int
        Vertices ``0 .. n-1``.
    levels : result, (n,)
        Level of each reached vertex.
    k : int, optional
        The largest level; vertices farther away have none.

    Returns
    -------
    tuple of str
        The rules that hold: `JOINT_RULES`.

    Raises
    ------
    CheckFailed
        At the first broken rule, with the vertex.
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
        See the module.
    sources : list of int
        Vertices ``0 .. n-1``.
    k : int
        The distance.
    members : result, (n,)
        An entry for each member.

    Returns
    -------
    tuple of str
        The rule that holds: `HOP_RULES`, which is the definition.

    Raises
    ------
    CheckFailed, IndexOutOfBound
        At the first vertex that breaks the rule; if a source is not a vertex.

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
