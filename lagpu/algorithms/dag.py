"""Directed acyclic graphs: topological order and generations, and cycles."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.inputs import require_square
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import INT32, INT64
from lagpu.errors import CycleFound
from lagpu.loops.loop import loop


def cycle_of(parents: np.ndarray[Any, Any]) -> list[int]:
    """Return the vertices of a cycle along the edges parent -> child, or an empty list.

    Parameters
    ----------
    parents : ndarray of int, (n,)
        Parent of each vertex, -1 where there is none.

    Notes
    -----
    Pointer doubling: after k rounds `jump` is 2**k parents up; n parents up is a cycle.
    """
    n = len(parents)
    jump = np.append(np.where(parents < 0, n, parents), n)
    for _ in range(n.bit_length()):
        jump = jump[jump]
    on_cycle = jump[jump < n]
    if not on_cycle.size:
        return []
    start = int(on_cycle.min())
    cycle, v = [start], int(parents[start])
    while v != start:
        cycle.append(v)
        v = int(parents[v])
    return [start, *cycle[:0:-1]]


# ---- topological levels and order of a directed acyclic graph
#
# Vertices without an edge in are the first level; removing them gives the next level::
#
# d = d - q (+.pair) A; q<!s(levels)> = d<d = 0>


def topological_levels(A: Matrix) -> Vector:
    """Return the number of edges of the longest path that ends at each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.

    Returns
    -------
    Vector, (n,), INT32
        Full; an edge leads to a higher level, and level 0 has no edge in.

    Raises
    ------
    CycleFound
        If there is a cycle; its vertices are the attribute ``cycle`` of the error.
    DimensionMismatch, DomainMismatch
        If `A` is not square.

    Notes
    -----
    One product per level. Source: Kahn 1962; ``topological_generations`` of NetworkX.

    Examples
    --------
    >>> A = Matrix.from_coo([0, 0, 1], [1, 2, 2], nrows=3, ncols=3, backend="cpu")
    >>> topological_levels(A).to_dense().tolist()
    [0, 1, 2]
    """
    require_square(A)
    levels = Vector(INT32, A.nrows, like=A, name="levels")
    edges_in = Vector(INT64, A.nrows, like=A, name="edges_in")
    edges_in << 0
    frontier = Vector(INT64, A.nrows, like=A, name="frontier")
    edges_in(accum=binary.plus) << semiring.plus_pair(edges_in @ A)
    frontier << edges_in.select("valueeq", 0)
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        edges_in(accum=binary.minus) << semiring.plus_pair(frontier @ A)
        frontier(~levels.S, replace=True) << edges_in.select("valueeq", 0)
    if levels.nvals < A.nrows:
        cycle = _cycle(A, levels)
        around = " -> ".join(map(str, [*cycle, cycle[0]]))
        raise CycleFound(f"topological order: there is a cycle {around}. Remove an edge.", cycle)
    return levels


def topological_order(A: Matrix) -> Vector:
    """Return the vertices of a directed acyclic graph so that every edge leads to a later one.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.

    Returns
    -------
    Vector, (n,), INT64
        Entry k is the k-th vertex, sorted by level and then by number.

    Raises
    ------
    CycleFound, DimensionMismatch, DomainMismatch
        As `topological_levels`.

    Examples
    --------
    >>> A = Matrix.from_coo([2, 2, 1], [1, 0, 0], nrows=3, ncols=3, backend="cpu")
    >>> topological_order(A).to_dense().tolist()
    [2, 1, 0]
    """
    levels = topological_levels(A)
    order = np.argsort(levels.to_dense(), kind="stable")
    return Vector.from_dense(order.astype(np.int64), like=A, name="order")


def _cycle(A: Matrix, levels: Vector) -> list[int]:
    """Return a cycle of vertices without a level, each of which has an edge from another one."""
    rest = (~levels.S).new()
    before = semiring.any_secondi(rest @ A).new(mask=rest.S)
    return cycle_of(before.to_dense(-1))
