"""The two sides of a bipartite graph, or an odd cycle; every graph has exactly one of the two.

From one vertex of each component on, the sides alternate from level to level::

    q<!s(v)> = 1 - (q (any.first) A);  v<s(q)> = q
"""

from __future__ import annotations

from lagpu.algebra.tables import binary, indexunary, semiring
from lagpu.algorithms.bfs import bfs_parents
from lagpu.algorithms.components import connected_components
from lagpu.algorithms.inputs import undirected
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import INT32
from lagpu.loops.loop import loop

__all__ = ["bipartite_sides", "is_bipartite"]


def bipartite_sides(A: Matrix) -> tuple[Vector | None, list[int] | None]:
    """Return the sides of a bipartite graph, or an odd cycle of a graph that is not bipartite.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value joins i and j, in either direction.

    Returns
    -------
    sides : Vector, (n,), INT32, or None
        0 or 1 at each vertex, 0 at the least one of a component; every edge joins a 0 and a 1.
    odd_cycle : list of int, or None
        Vertices of a cycle of odd length, if there is one; a self-loop is the shortest.

    Raises
    ------
    DimensionMismatch, DomainMismatch
        If `A` is not square.

    Notes
    -----
    One breadth-first search of all components together. An edge within a side joins two vertices of
    one level, and closes an odd cycle with the paths up the tree to their common ancestor.
    Source: Konig 1916.

    Examples
    --------
    >>> from lagpu.generators import cycle
    >>> sides, odd_cycle = bipartite_sides(cycle(4, backend="cpu"))
    >>> sides.to_dense().tolist(), odd_cycle
    ([0, 1, 0, 1], None)
    >>> bipartite_sides(cycle(3, backend="cpu"))
    (None, [0, 1, 2])
    """
    A = undirected(A)
    roots = connected_components(A)
    sides = Vector(INT32, A.nrows, like=A, name="sides")
    frontier = Vector(INT32, A.nrows, like=A, name="frontier")
    index = roots.apply(indexunary.rowindex, 0).new()
    frontier(roots.ewise_mult(index, binary.eq).new().V) << 0
    for _ in loop(until_empty=frontier):
        sides(frontier.S) << frontier
        frontier(~sides.S, replace=True) << semiring.any_first(frontier @ A)
        frontier << frontier.apply("minus", left=1)
    for side in (0, 1):
        one = sides.select("valueeq", side).new()
        within = semiring.any_secondi(one @ A).new(mask=one.S)
        if within.nvals:
            v, u = (int(x[0]) for x in within.to_coo())
            return None, _odd_cycle(A, roots.get(v), u, v)
    return sides, None


def is_bipartite(A: Matrix) -> bool:
    """Return True if the vertices have two sides such that each edge joins one with the other.

    Parameters
    ----------
    A : Matrix, (n, n)
        As in `bipartite_sides`.

    Returns
    -------
    bool
        True if `bipartite_sides` returns sides, False if it returns an odd cycle.

    Raises
    ------
    DimensionMismatch, DomainMismatch
        If `A` is not square.

    Examples
    --------
    >>> from lagpu.generators import cycle
    >>> is_bipartite(cycle(4, backend="cpu")), is_bipartite(cycle(5, backend="cpu"))
    (True, False)
    """
    return bipartite_sides(A)[1] is None


def _odd_cycle(A: Matrix, root: int, u: int, v: int) -> list[int]:
    """Return the cycle of the edge (u, v), whose ends have one level, and the tree above them."""
    parents = bfs_parents(A, root)
    left, right = [u], [v]
    while left[-1] != right[-1]:
        left.append(parents.get(left[-1]))
        right.append(parents.get(right[-1]))
    cycle = left + right[-2::-1]
    start = cycle.index(min(cycle))
    return cycle[start:] + cycle[:start]
