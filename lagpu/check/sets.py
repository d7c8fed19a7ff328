"""Proof of topological levels and orders, core numbers and independent sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.check.graph import Graph, refuse, whole_below

__all__ = [
    "CORE_RULES",
    "INDEPENDENT_RULES",
    "K_CORE_RULES",
    "LINE_RULES",
    "ORDER_RULES",
    "check_core_numbers",
    "check_independent_set",
    "check_k_core",
    "check_topological_levels",
    "check_topological_order",
]

Array = np.ndarray[Any, Any]

ORDER_RULES = (
    "levels are whole numbers 0 .. n-1, one for each vertex",
    "a level is one more than the highest of the in-neighbours', 0 without any",
)
LINE_RULES = (
    "every vertex stands at one place, and every place has one",
    "every edge leads to a later place",
)
CORE_RULES = (
    "core numbers are whole numbers 0 or more, one for each vertex",
    "a vertex has as many neighbours in its core as its number says",
    "peeling one vertex of least degree after the other gives no larger number",
)
K_CORE_RULES = (
    "a member has k neighbours or more among the members",
    "peeling vertices of degree below k leaves no other vertex",
)
INDEPENDENT_RULES = (
    "no edge joins two members",
    "a vertex outside has a member for a neighbour",
)


def check_topological_levels(A: Any, levels: Any) -> tuple[str, ...]:
    """Prove that levels are the lengths of the longest paths to each vertex, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module.
    levels : result, (n,)
        Level of each vertex.

    Returns
    -------
    tuple of str
        The rules that hold: `ORDER_RULES`.

    Raises
    ------
    CheckFailed
        At the first vertex that breaks a rule.

    Notes
    -----
    They suffice: by the second every edge leads to a higher level, so there is no cycle, and by
    induction over levels a path that ends at v has at most level(v) edges, and one has as many.
    """
    graph = Graph(A)
    values, present = graph.dense(levels, "levels")
    name = "check_topological_levels"
    refuse(
        ~present | ~whole_below(values, graph.n),
        f"{name}: {ORDER_RULES[0]}",
        lambda v: f"level {values[v]}" if present[v] else "no level",
    )
    level, wanted = values.astype(np.int64), np.zeros(graph.n, np.int64)
    for columns, counts, rows in graph.blocks():
        wanted[columns] = graph.reduce_columns(level[rows] + 1, counts, np.maximum, 0)
    refuse(
        level != wanted,
        f"{name}: {ORDER_RULES[1]}",
        lambda v: f"level {level[v]}, not {wanted[v]}",
    )
    return ORDER_RULES


def check_topological_order(A: Any, order: Any) -> tuple[str, ...]:
    """Prove that vertices stand in such an order that every edge leads onward, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module.
    order : result, (n,)
        Entry k is the k-th vertex.

    Returns
    -------
    tuple of str
        The rules that hold: `LINE_RULES`, which are the definition.

    Raises
    ------
    CheckFailed
        At the first place or edge that breaks a rule.
    """
    graph, name = Graph(A), "check_topological_order"
    vertex, present = graph.dense(order, "order")
    refuse(
        ~present | ~whole_below(vertex, graph.n),
        f"{name}: {LINE_RULES[0]}",
        lambda k: f"place {k} has {vertex[k] if present[k] else 'none'}",
    )
    place = np.full(graph.n, -1)
    place[vertex.astype(np.int64)] = np.arange(graph.n)
    refuse(place < 0, f"{name}: {LINE_RULES[0]}", lambda v: "no place")
    cols = np.repeat(np.arange(graph.n), np.diff(graph.col_ptr))
    backward = place[graph.row_idx] >= place[cols]
    bad = np.zeros(graph.n, bool)
    bad[cols[backward]] = True

    def describe(v: int) -> str:
        u = graph.row_idx[backward & (cols == v)][0]
        return f"place {place[v]}, but the edge {u} -> {v} comes from place {place[u]}"

    refuse(bad, f"{name}: {LINE_RULES[1]}", describe)
    return LINE_RULES


def check_core_numbers(A: Any, cores: Any) -> tuple[str, ...]:
    """Prove that numbers are core numbers, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module. Without symmetry, edges in and out count.
    cores : result, (n,)
        Core number of each vertex.

    Returns
    -------
    tuple of str
        The rules that hold: `CORE_RULES`.

    Raises
    ------
    CheckFailed
        At the first vertex that breaks a rule.

    Notes
    -----
    They suffice: by 2 the vertices of numbers >= k have degree >= k among themselves, so a number
    is not too large. By 3 it is not too small: a core of degree k keeps every vertex of it at
    degree >= k until the first of it is peeled.
    """
    graph = Graph(A)
    values, present = graph.dense(cores, "cores")
    name = "check_core_numbers"
    refuse(
        ~present | ~whole_below(values, 2 * graph.n),
        f"{name}: {CORE_RULES[0]}",
        lambda v: f"core number {values[v]}" if present[v] else "no core number",
    )
    core = values.astype(np.int64)
    begin, end = graph.ends(both=True)
    inside = np.bincount(begin[core[end] >= core[begin]], minlength=graph.n)
    refuse(
        inside < core,
        f"{name}: {CORE_RULES[1]}",
        lambda v: f"core number {core[v]}, but {inside[v]} neighbours",
    )
    largest = _peeled(graph.n, begin, end)
    refuse(
        core < largest,
        f"{name}: {CORE_RULES[2]}",
        lambda v: f"core number {core[v]}, but peeled at {largest[v]}",
    )
    return CORE_RULES


def check_k_core(A: Any, members: Any, k: int) -> tuple[str, ...]:
    """Prove that vertices are the k-core of a graph, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module. Without symmetry, edges in and out count.
    members : result, (n,)
        An entry for each member.
    k : int
        Least degree within the core.

    Returns
    -------
    tuple of str
        The rules that hold: `K_CORE_RULES`.

    Raises
    ------
    CheckFailed
        At the first vertex that breaks a rule.

    Notes
    -----
    They suffice: by 1 the members lie in the core. By 2 they are all of it: no vertex of the core
    is ever of degree below k while the core is there.
    """
    graph, name = Graph(A), "check_k_core"
    _, member = graph.dense(members, "members")
    begin, end = graph.ends(both=True)
    inside = np.bincount(begin[member[begin] & member[end]], minlength=graph.n)
    refuse(
        member & (inside < k),
        f"{name}: {K_CORE_RULES[0]}",
        lambda v: f"{inside[v]} of them, not {k}",
    )
    left = np.ones(graph.n, bool)
    while True:
        degree = np.bincount(begin[left[begin] & left[end]], minlength=graph.n)
        low = left & (degree < k)
        if not low.any():
            break
        left &= ~low
    refuse(left & ~member, f"{name}: {K_CORE_RULES[1]}", lambda v: "no member, but left")
    return K_CORE_RULES


def _peeled(n: int, begin: Array, end: Array) -> Array:
    """Return the largest least degree up to each vertex's turn: one vertex at a time."""
    order = np.argsort(begin, kind="stable")
    start = np.searchsorted(begin[order], np.arange(n + 1))
    neighbours = end[order]
    degree = np.diff(start)
    found, left, k = np.zeros(n, np.int64), np.ones(n, bool), 0
    for _ in range(n):
        v = int(np.argmin(np.where(left, degree, 2 * len(end) + 1)))
        k = max(k, int(degree[v]))
        found[v], left[v] = k, False
        np.subtract.at(degree, neighbours[start[v] : start[v + 1]], 1)
    return found


def check_independent_set(A: Any, members: Any) -> tuple[str, ...]:
    """Prove that vertices are a maximal independent set, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; which way an edge points does not matter, and self-loops do not count.
    members : result, (n,)
        An entry for each member.

    Returns
    -------
    tuple of str
        The rules that hold: `INDEPENDENT_RULES`, which are the definition.

    Raises
    ------
    CheckFailed
        At the first vertex that breaks a rule.
    """
    graph = Graph(A)
    _, member = graph.dense(members, "members")
    begin, end = graph.ends(both=True)
    near = np.zeros(graph.n, bool)
    near[end[member[begin]]] = True
    name = "check_independent_set"
    refuse(
        member & near,
        f"{name}: {INDEPENDENT_RULES[0]}",
        lambda v: f"a member, like {begin[(end == v) & member[begin]][0]}",
    )
    refuse(~member & ~near, f"{name}: {INDEPENDENT_RULES[1]}", lambda v: "none of them is")
    return INDEPENDENT_RULES
