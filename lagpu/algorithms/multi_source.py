"""One breadth-first search from several vertices together, and their neighbourhoods."""

from __future__ import annotations

from typing import Any

from lagpu.algebra.tables import semiring
from lagpu.algorithms.inputs import source_vertices
from lagpu.core.arguments import integer
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, INT32
from lagpu.errors import InvalidValue
from lagpu.loops.loop import loop

__all__ = ["bfs_levels_joint", "k_hop", "neighborhood"]


def bfs_levels_joint(A: Matrix, sources: Any) -> Vector:
    """Return each vertex's distance in edges from the nearest of some vertices.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    sources : int or list of int
        Distinct vertices.

    Returns
    -------
    Vector, (n,), INT32
        The sources have level 0; a vertex that cannot be reached has no entry.

    Raises
    ------
    InvalidValue
        If there is no source, or one is given twice.
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or a source is not a vertex.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> bfs_levels_joint(path(5, backend="cpu"), [0, 3]).to_dense().tolist()
    [0, 1, 1, 0, 1]
    """
    return _levels(A, sources, None)


def neighborhood(A: Matrix, sources: Any, k: int = 1) -> Vector:
    """Return the levels of the vertices at most `k` edges from a source.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    sources : int or list of int
        Distinct vertices, which have level 0.
    k : int
        Radius, 0 or more.

    Returns
    -------
    Vector, (n,), INT32
        Levels ``0 .. k``; no entry farther away.

    Raises
    ------
    InvalidValue
        If there is no source, one is given twice, or `k` is negative.
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, a source is not a vertex, or `k` is not an integer.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> neighborhood(path(5, backend="cpu"), 1).to_dense(-1).tolist()
    [1, 0, 1, -1, -1]
    """
    k = integer(k, "neighborhood: k")
    if k < 0:
        raise InvalidValue(f"neighborhood: k {k} < 0. Give 0 or more.")
    return _levels(A, sources, k + 1)


def k_hop(A: Matrix, sources: Any, k: int) -> Vector:
    """Return the vertices exactly `k` edges from the nearest source.

    Parameters
    ----------
    A, sources, k
        As in `neighborhood`.

    Returns
    -------
    Vector, (n,), BOOL
        True at these vertices; no entry elsewhere.

    Raises
    ------
    InvalidValue, DimensionMismatch, DomainMismatch, IndexOutOfBound
        As `neighborhood`.

    Examples
    --------
    >>> from lagpu.generators import cycle
    >>> k_hop(cycle(6, backend="cpu"), 0, 2).to_coo()[0].tolist()
    [2, 4]
    """
    last = neighborhood(A, sources, k).select("valueeq", k).new()
    hop = Vector(BOOL, A.nrows, like=A, name="hop")
    hop(last.S) << True
    return hop


def _levels(A: Matrix, sources: Any, times: int | None) -> Vector:
    """Return the levels of a search for `times` levels, or for None of the whole search."""
    sources = source_vertices(A, sources)
    levels = Vector(INT32, A.nrows, like=A, name="levels")
    frontier = Vector(BOOL, A.nrows, like=A, name="frontier")
    frontier[sources] = True
    for depth in loop(until_empty=frontier, times=times):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    return levels
