"""Prove connected components."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from lagpu.check.graph import Graph, refuse, whole_below
from lagpu.check.slices import least_of

__all__ = ["COMPONENT_RULES", "check_components"]

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
    SciPy computes the components again, by a depth-first search (Pearce 2005), unlike lagpu: weak
    ones of the edges of each slice, which it unites; strong ones of the whole graph.
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
    if strong:
        pattern = sp.csr_array(graph.columns.T)  # A' has the same components
        least = least_of(*csgraph.connected_components(pattern, connection="strong"))
    else:
        least = graph.edges.joined()
    refuse(
        label != least,
        f"{name}: {COMPONENT_RULES[2]}",
        lambda v: f"label {label[v]}, but it is in the component of {least[v]}",
    )
    return COMPONENT_RULES
