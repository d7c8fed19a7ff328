"""Prove topological levels and orders, core numbers and independent sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.check.graph import Graph, refuse, whole_below
from lagpu.host.columns import distinct

Array = np.ndarray[Any, Any]

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
    The rules suffice: by the second every edge leads to a higher level, so there is no cycle, and
    by induction over levels the longest path that ends at v has level(v) edges.
    """
    graph = Graph(A)
    values, present = graph.dense(levels, "levels")
    name = "check_topological_levels"
    refuse(
        ~present | ~whole_below(values, graph.n),
        f"{name}: {ORDER_RULES[0]}",
        lambda v: f"level {values[v]}" if present[v] else "no level",
    )
    level = values.astype(np.int64)
    wanted = graph.edges.at_ends(lambda e: level[e.begin] + 1, np.maximum, 0)
    refuse(
        level != wanted,
        f"{name}: {ORDER_RULES[1]}",
        lambda v: f"level {level[v]}, not {wanted[v]}",
    )
    return ORDER_RULES


def check_topological_order(A: Any, order: Any) -> tuple[str, ...]:
    """Prove that an order of the vertices is topological, or raise.

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
        lambda k: f"place {k} has {vertex[k] if present[k] else 'no vertex'}",
    )
    place = np.full(graph.n, -1)
    place[vertex.astype(np.int64)] = np.arange(graph.n)
    refuse(place < 0, f"{name}: {LINE_RULES[0]}", lambda v: "no place")
    later = graph.edges.first(lambda e: place[e.begin] >= place[e.end])

    def describe(v: int) -> str:
        u = later[v]
        return f"place {place[v]}, but the edge {u} -> {v} comes from place {place[u]}"

    refuse(later < graph.n, f"{name}: {LINE_RULES[1]}", describe)
    return LINE_RULES


def check_core_numbers(A: Any, cores: Any) -> tuple[str, ...]:
    """Prove that numbers are core numbers, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module. In a directed graph edges in and out count.
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
    The rules suffice: by 2 the vertices of numbers >= k have degree >= k among themselves, so a
    number is not too large. By 3 it is not too small: every vertex of a k-core has degree >= k
    until the first vertices of this core are peeled.
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
    inside = graph.neighbours(lambda own, other: core[other] >= core[own])
    refuse(
        inside < core,
        f"{name}: {CORE_RULES[1]}",
        lambda v: f"core number {core[v]}, but {inside[v]} neighbours",
    )
    largest = _peeled(graph)
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
        See the module. In a directed graph edges in and out count.
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
    The rules suffice: by 1 the members lie in the core. By 2 they are the whole core: no vertex of
    the core has degree below k while the others are there.
    """
    graph, name = Graph(A), "check_k_core"
    _, member = graph.dense(members, "members")

    def among(kept: Array) -> Array:
        return graph.neighbours(lambda own, other: kept[own] & kept[other])

    inside = among(member)
    refuse(
        member & (inside < k),
        f"{name}: {K_CORE_RULES[0]}",
        lambda v: f"{inside[v]} neighbours, not {k}",
    )
    left = np.ones(graph.n, bool)
    while True:
        low = left & (among(left) < k)
        if not low.any():
            break
        left &= ~low
    refuse(left & ~member, f"{name}: {K_CORE_RULES[1]}", lambda v: "left, but not a member")
    return K_CORE_RULES


def _peeled(graph: Graph) -> Array:
    """Return the core numbers by peeling: first all of least degree, then those it makes as low."""
    ways = [graph.edges] if graph.symmetric else [graph.edges, graph.edges.turned]
    degree = graph.neighbours(lambda own, _: np.ones(len(own), bool))
    found, left, k = np.zeros(graph.n, np.int64), np.ones(graph.n, bool), 0
    while left.any():
        k = max(k, int(degree[left].min()))
        low = np.flatnonzero(left & (degree <= k))
        while low.size:
            found[low], left[low] = k, False
            hit = [hit for way in ways for hit in way.hits(low)]
            for ends, counts in hit:
                degree[ends] -= counts
            near = distinct(np.concatenate([ends for ends, _ in hit]))
            low = near[left[near] & (degree[near] <= k)]
    return found


def check_independent_set(A: Any, members: Any) -> tuple[str, ...]:
    """Prove that vertices are a maximal independent set, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; directions of edges do not matter, and self-loops do not count.
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
    near = graph.neighbours(lambda own, other: member[other]) > 0
    name = "check_independent_set"

    def describe(v: int) -> str:
        before = graph.edges.first(lambda e: member[e.begin] & (e.begin != e.end))[v]
        if before == graph.n:
            ends = graph.edges.at_begins(
                lambda e: np.where(member[e.end] & (e.begin != e.end), e.end, graph.n),
                np.minimum,
                graph.n,
            )
            before = ends[v]
        return f"a member, like {before}"

    refuse(member & near, f"{name}: {INDEPENDENT_RULES[0]}", describe)
    refuse(~member & ~near, f"{name}: {INDEPENDENT_RULES[1]}", lambda v: "no neighbour is a member")
    return INDEPENDENT_RULES
