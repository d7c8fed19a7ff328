"""Check components and two-colourings."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lagpu.check.graph import Graph, both_ends, refuse, whole_below
from lagpu.check.slices import Slices, least_of, listed
from lagpu.errors import CheckFailed, IndexOutOfBound
from lagpu.host.columns import distinct

Array = np.ndarray[Any, Any]

COMPONENT_RULES = (
    "every vertex has a label, and the label is a vertex",
    "a label is the least vertex with this label",
    "vertices have the same label if and only if they are in the same component",
)


def check_components(A: Any, labels: Any, *, strong: bool = False) -> tuple[str, ...]:
    """Prove that labels name the connected components of a graph, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module.
    labels : result, (n,)
        The least vertex of each vertex's component.
    strong : bool
        Whether components are strong: sets of vertices that reach each other. Weak components are
        joined by edges in either direction.

    Returns
    -------
    tuple of str
        The rules that hold: `COMPONENT_RULES`.

    Raises
    ------
    CheckFailed
        At the first broken rule, with the vertex.

    Notes
    -----
    Weak components are computed again: SciPy finds those of the edges of each slice, which are
    united.

    Strong ones are proved. All vertices of a label are in one component: along edges between
    vertices of one label, one search from all vertices that are a label finds every vertex, and so
    does one against the edges. No component has two labels: edges from label to label make no
    cycle. Labels without such an edge into them are taken away until few edges are left, of which
    SciPy finds the components, by a depth-first search (Pearce 2005).
    """
    graph = Graph(A)
    label, present = graph.dense(labels, "labels")
    n, name = graph.n, "check_components"
    refuse(
        ~present | ~whole_below(label, n),
        f"{name}: {COMPONENT_RULES[0]}",
        lambda v: f"label {label[v]}" if present[v] else "no label",
    )
    label = label.astype(np.int64)
    _, first, place = np.unique(label, return_index=True, return_inverse=True)
    refuse(
        label != first[place],
        f"{name}: {COMPONENT_RULES[1]}",
        lambda v: f"label {label[v]}, but the least vertex with this label is {first[place[v]]}",
    )
    least = _strong(graph.edges, label) if strong else graph.edges.joined()
    refuse(
        label != least,
        f"{name}: {COMPONENT_RULES[2]}",
        lambda v: f"label {label[v]}, but it is in the component of {least[v]}",
    )
    return COMPONENT_RULES


def _strong(edges: Slices, label: Array) -> Array:
    """Return labels, (n,), if they are those of strong components; else some of them corrected."""
    crossing = edges.along(lambda e: label[e.begin] != label[e.end])
    doubtful = ~_both_ways(_within(edges, crossing, label), distinct(label))
    if not doubtful.any():
        return _united(crossing, label)
    # Whether this vertex' label is wrong or not, some vertex of its component has a wrong one.
    component = _both_ways(edges, np.flatnonzero(doubtful)[:1])
    return np.where(component, np.argmax(component), label)


def _within(edges: Slices, crossing: Slices, label: Array) -> Slices:
    """Return the edges between vertices of one label; `crossing` are the others."""
    if not any(len(x) for (x,) in crossing.gather(lambda own: (own.row_idx[:1],))):
        return edges
    return edges.along(lambda e: label[e.begin] == label[e.end])


def _both_ways(edges: Slices, roots: Array) -> Array:
    """Return which vertices some of the roots reach, and which reach some of them, (n,)."""
    found: Array = (edges.search(roots) <= edges.n) & (edges.turned.search(roots) <= edges.n)
    return found


def _united(crossing: Slices, label: Array) -> Array:
    """Return the labels of strong components, (n,), if vertices of one label are in one.

    `crossing` are the edges from label to label.
    """
    left = _left(crossing, label)
    few = crossing.along(lambda e: left[label[e.begin]] & left[label[e.end]])
    begin, end = map(np.concatenate, zip(*few.gather(both_ends), strict=True))
    arrays: Any = (np.ones(len(begin), np.int8), (label[begin], label[end]))
    pattern = sp.csr_array(arrays, shape=(few.n, few.n))
    least = least_of(*csgraph.connected_components(pattern, connection="strong"))
    found: Array = least[label]
    return found


def _left(crossing: Slices, label: Array) -> Array:
    """Return which labels are left, (n,), as those without an edge into them are taken away.

    It ends when all processes may have the edges that are left, at most one for each vertex, or
    when edges between all labels that are left make a cycle, which only wrong labels have.
    """
    members = np.argsort(label, kind="stable")
    start = np.searchsorted(label[members], np.arange(crossing.n + 1))
    enter = crossing.at_ends(lambda e: np.ones(len(e.begin), np.int64), np.add, 0)
    entered = np.bincount(label, enter, minlength=crossing.n).astype(np.int64)
    left, edges = np.ones(crossing.n, bool), int(entered.sum())
    free = np.flatnonzero(entered == 0)
    while free.size and edges > crossing.n:
        left[free] = False
        hit = crossing.hits(listed(start, members, free))
        for ends, counts in hit:
            np.subtract.at(entered, label[ends], counts)
            edges -= int(counts.sum())
        near = distinct(np.concatenate([label[ends] for ends, _ in hit]))
        free = near[left[near] & (entered[near] == 0)]
    return left


# ------------------------------------------------------------------------------------------
# Prove that a graph is bipartite, or that it is not.


SIDE_RULES = (
    "every vertex is on side 0 or 1",
    "no edge joins two vertices of one side",
)
CYCLE_RULES = (
    "the cycle has an odd number of vertices, none of them twice",
    "consecutive vertices, and the last and the first, are joined by an edge",
)


def check_sides(A: Any, sides: Any) -> tuple[str, ...]:
    """Prove that sides show a graph to be bipartite, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; directions of edges do not matter.
    sides : result, (n,)
        0 or 1 at each vertex.

    Returns
    -------
    tuple of str
        The rules that hold: `SIDE_RULES`, which are the definition.

    Raises
    ------
    CheckFailed
        At the first vertex that breaks a rule.
    """
    graph = Graph(A)
    side, present = graph.dense(sides, "sides")
    refuse(
        ~present | ((side != 0) & (side != 1)),
        f"check_sides: {SIDE_RULES[0]}",
        lambda v: f"side {side[v]}" if present[v] else "no side",
    )
    like = graph.edges.first(lambda e: side[e.begin] == side[e.end])
    refuse(
        like < graph.n,
        f"check_sides: {SIDE_RULES[1]}",
        lambda v: f"side {side[v]}, like {like[v]}",
    )
    return SIDE_RULES


def check_odd_cycle(A: Any, cycle: list[int]) -> tuple[str, ...]:
    """Prove that a cycle shows a graph not to be bipartite, or raise.

    Parameters
    ----------
    A : graph, (n, n)
        See the module; directions of edges do not matter.
    cycle : list of int
        Vertices of the cycle in order.

    Returns
    -------
    tuple of str
        The rules that hold: `CYCLE_RULES`. Sides cannot alternate along an odd cycle.

    Raises
    ------
    CheckFailed, IndexOutOfBound
        At the first broken rule; if a number is not a vertex.
    """
    graph = Graph(A)
    if any(not 0 <= v < graph.n for v in cycle):
        raise IndexOutOfBound(f"check_odd_cycle: {cycle} is not within 0 .. {graph.n - 1}.")
    if len(cycle) % 2 == 0 or len(set(cycle)) != len(cycle):
        raise CheckFailed(f"check_odd_cycle: {CYCLE_RULES[0]}: {cycle}.")
    u, v = np.array(cycle), np.array([*cycle[1:], cycle[0]])
    joined = graph.edges.have(u, v) | graph.edges.have(v, u)
    if not joined.all():
        k = int(np.argmin(joined))
        raise CheckFailed(f"check_odd_cycle: {CYCLE_RULES[1]}: {u[k]} and {v[k]} are not.")
    return CYCLE_RULES
