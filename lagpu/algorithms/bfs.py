"""Breadth-first search: levels, parents, or both.

The next frontier q is the set of neighbours of the frontier without an entry in v::

    q<!s(v)> = q (+.x) A
"""

from __future__ import annotations

from lagpu.algebra.tables import semiring
from lagpu.algorithms.inputs import index_type, source_vertex
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, INT32
from lagpu.loops.loop import loop

__all__ = ["bfs", "bfs_levels", "bfs_parents"]


def bfs_levels(A: Matrix, source: int) -> Vector:
    """Return each vertex's distance from `source` in edges.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    source : int
        ``0 <= source < n``.

    Returns
    -------
    Vector, (n,), INT32
        The source has level 0; a vertex that cannot be reached has no entry.

    Raises
    ------
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or `source` is not a vertex.

    Notes
    -----
    ``depth + 1`` products. Source: Kepner and Gilbert 2011, chapter 6; Artiles and Saeed 2021,
    algorithm 6.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> bfs_levels(path(4, backend="cpu"), 1).to_dense(-1).tolist()
    [1, 0, 1, 2]
    """
    source = source_vertex(A, source)
    levels = Vector(INT32, A.nrows, like=A, name="levels")
    frontier = Vector(BOOL, A.nrows, like=A, name="frontier")
    frontier[source] = True
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    return levels


def bfs_parents(A: Matrix, source: int) -> Vector:
    """Return each vertex's parent in some breadth-first tree from `source`.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    source : int
        ``0 <= source < n``.

    Returns
    -------
    Vector, (n,), INT32, or INT64 if n > 2**31
        The source is its own parent; a vertex that cannot be reached has no entry. A vertex has any
        one of its possible parents.

    Raises
    ------
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or `source` is not a vertex.

    Notes
    -----
    ``depth + 1`` products. Source: Davis, SuiteSparse:GraphBLAS, any_secondi; LAGraph.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> bfs_parents(path(4, backend="cpu"), 1).to_dense(-1).tolist()
    [1, 1, 1, 2]
    """
    source = source_vertex(A, source)
    parents = Vector(index_type(A), A.nrows, like=A, name="parents")
    frontier = Vector(index_type(A), A.nrows, like=A, name="frontier")
    frontier[source] = source
    for _ in loop(until_empty=frontier):
        parents(frontier.S) << frontier
        frontier(~parents.S, replace=True) << semiring.any_secondi(frontier @ A)
    return parents


def bfs(A: Matrix, source: int) -> tuple[Vector, Vector]:
    """Return levels and parents of one breadth-first tree from `source`.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    source : int
        ``0 <= source < n``.

    Returns
    -------
    levels, parents : Vector, (n,)
        As `bfs_levels` and `bfs_parents` return them.

    Raises
    ------
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or `source` is not a vertex.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> levels, parents = bfs(path(4, backend="cpu"), 1)
    >>> levels.to_dense(-1).tolist(), parents.to_dense(-1).tolist()
    ([1, 0, 1, 2], [1, 1, 1, 2])
    """
    source = source_vertex(A, source)
    levels = Vector(INT32, A.nrows, like=A, name="levels")
    parents = Vector(index_type(A), A.nrows, like=A, name="parents")
    frontier = Vector(index_type(A), A.nrows, like=A, name="frontier")
    frontier[source] = source
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        parents(frontier.S) << frontier
        frontier(~levels.S, replace=True) << semiring.any_secondi(frontier @ A)
    return levels, parents
