"""The 1-degree reduction of betweenness: branches that are trees are folded into their roots.

A vertex of degree 1 hangs on its neighbour, which takes over its mass, the number of vertices that
it stands for; and so on, until every degree is 0 or at least 2. What leads through the branches
follows from masses alone. With leaves q of mass m, in a graph of which A is left::

    t<left> = m<q> (+.first) A;  m = m + t
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.components import connected_components
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, FP64, INT64
from lagpu.loops.loop import loop

__all__ = ["Folded", "fold_branches"]

Array = np.ndarray[Any, Any]


class Folded(NamedTuple):
    """A graph whose branches are folded.

    Attributes
    ----------
    A : Matrix, (k, k)
        What is left: the edges between vertices of degree 2 and more, without self-loops.
    vertices : array of int, (k,)
        The vertices of these.
    mass : array, (n,)
        For each vertex the vertices that it stands for, itself included.
    known : array, (n,)
        What the searches of `A` do not give each vertex, a pair and its reverse counted both; see
        `fold_branches`.
    reachable : array, (n,)
        The vertices of each vertex' component.
    """

    A: Matrix
    vertices: Array
    mass: Array
    known: Array
    reachable: Array


def fold_branches(A: Matrix) -> Folded:
    """Fold the branches of an undirected graph.

    Parameters
    ----------
    A : Matrix, (n, n)
        Its pattern is symmetric; self-loops do not count.

    Returns
    -------
    Folded
        For a source s that is left, let e(s, v) be mass(v) - 1 and the sum over the successors w
        of v of ``paths(v) / paths(w) (1 + e(s, w))``. Then v has ``known[v]``, and of all other
        sources ``mass[s] e(s, v)``.

    Notes
    -----
    As many rounds as the longest branch has edges. With c the vertices of a component and m the
    mass of v, a pair of a vertex folded into v with another of its component leads through v:
    ``2 (m - 1) (c - m)`` if the second one is not folded into v too, of which the sum above has
    half where v is left; and two branches give v ``2 m_i m_j``.
    Derived for this program; the heuristic is that of Bernaschi, Carbone and Vella 2016.
    """
    edges = A.select("offdiag").new().apply("one").new(BOOL, name="edges")
    mass, between = (Vector(FP64, A.nrows, like=A, name=name) for name in ("mass", "between"))
    mass << 1
    between << 0
    left = _peeled(edges, mass, between)
    vertices = left.select("valuegt", 0).new().to_coo()[0]
    held = mass.to_dense()
    labels = connected_components(edges).to_dense().astype(np.int64)
    reachable = np.bincount(labels, minlength=A.nrows)[labels].astype(float)
    half = np.full(A.nrows, 2.0)
    half[vertices] = 1  # the searches give the other half
    known = between.to_dense() + half * (held - 1) * (reachable - held)
    rest = edges
    if len(vertices) < A.nrows:
        rest = edges[vertices, vertices].new(name=A.name)
    return Folded(rest, vertices, held, known, reachable)


def _peeled(edges: Matrix, mass: Vector, between: Vector) -> Vector:
    """Fold leaves until there is none; return the degree of each vertex that is left, 0 or more."""
    n = edges.nrows
    degree, number = (Vector(INT64, n, like=edges, name=name) for name in ("degree", "number"))
    degree << 0
    degree(accum=binary.plus) << edges.apply("one").new(INT64).reduce_rowwise("plus")
    number << Vector.from_dense(np.arange(n), like=edges)
    leaves, fewer, partner = (
        Vector(INT64, n, like=edges, name=name) for name in ("leaves", "fewer", "partner")
    )
    given, total, others = (
        Vector(FP64, n, like=edges, name=name) for name in ("given", "total", "others")
    )
    leaves << degree.select("valueeq", 1)
    for _ in loop(until_empty=leaves):
        # Of two leaves that have each other the one of the smaller number goes.
        partner(leaves.S, replace=True) << semiring.any_secondi(leaves @ edges)
        partner << partner.ewise_mult(number, binary.minus)
        partner << partner.select("valuelt", 0)
        leaves(~partner.S, replace=True) << leaves
        degree(~leaves.S, replace=True) << degree
        given(leaves.S, replace=True) << mass
        # Two branches m_i, m_j, or what was folded before, m - 1: (2 (m - 1) + t) t - sum(m_i^2).
        total(degree.S, replace=True) << semiring.plus_first(given @ edges)
        others(total.S, replace=True) << mass.apply(binary.minus, right=1)
        others << others.apply(binary.times, right=2)
        others << others.ewise_add(total, binary.plus)
        others << others.ewise_mult(total, binary.times)
        between(accum=binary.plus) << others
        mass(accum=binary.plus) << total
        given << given.ewise_mult(given, binary.times)
        total(degree.S, replace=True) << semiring.plus_first(given @ edges)
        between(accum=binary.minus) << total
        fewer(degree.S, replace=True) << semiring.plus_pair(leaves @ edges)
        degree(accum=binary.minus) << fewer
        leaves << degree.select("valueeq", 1)
    return degree
