"""Breadth-first search: levels, parents and path counts, from one source or many."""

from __future__ import annotations

import math
from typing import Any

from lagpu.algebra.tables import semiring
from lagpu.algorithms.inputs import (
    frontier_of,
    index_type,
    source_vertex,
    source_vertices,
    where_any,
)
from lagpu.core import Matrix, Vector
from lagpu.core.arguments import integer
from lagpu.dtypes import BOOL, FP64, INT32
from lagpu.errors import DomainMismatch, LimitExceeded
from lagpu.loops.loop import loop

__all__ = [
    "bfs", "bfs_levels", "bfs_levels_joint", "bfs_levels_multi", "bfs_parents", "bfs_parents_multi",
    "count_shortest_paths", "k_hop", "neighborhood",
]  # fmt: skip


def bfs_levels(A: Matrix, source: int) -> Vector:
    """Return each vertex's distance from `source` in edges, by breadth-first search.

    Parameters
    ----------
    A : Matrix, (n, n)
    source : int
        ``0 <= source < n``.

    Returns
    -------
    Vector, (n,), INT32
        The source has level 0; a vertex that cannot be reached has no entry.

    Notes
    -----
    One product for each level. Source: Kepner and Gilbert 2011, chapter 6; Artiles and Saeed 2021,
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
    A, source
        As in `bfs_levels`.

    Returns
    -------
    Vector, (n,), INT32, or INT64 if n > 2**31
        The source is its own parent; a vertex that cannot be reached has no entry. A vertex has any
        one of its possible parents.

    Notes
    -----
    One product for each level. Source: Davis, SuiteSparse:GraphBLAS, any_secondi; LAGraph.

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
    A, source
        As in `bfs_levels`.

    Returns
    -------
    levels : Vector, (n,), INT32
        As `bfs_levels` returns it.
    parents : Vector, (n,), INT32, or INT64 if n > 2**31
        As `bfs_parents` returns it.

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


# ---- count shortest paths: sigma of TurboBFS, the forward half of betweenness centrality
#
# Each product adds up the numbers of paths to the next level::
#
#     q<!s(p)> = q (+.first) A
#     p = p + q


def count_shortest_paths(A: Matrix, source: int) -> Vector:
    """Return the number of shortest paths from `source` to each vertex.

    Parameters
    ----------
    A, source
        As in `bfs_levels`.

    Returns
    -------
    Vector, (n,), FP64
        1 at the source; no entry at a vertex that cannot be reached. Counts are exact up to
        2**53 and rounded, never wrapped, beyond.

    Raises
    ------
    LimitExceeded
        If a count does not fit FP64, 1.8e308 or more.

    Notes
    -----
    One product for each level.
    Source: Brandes 2001, section 4; Artiles and Saeed 2021, algorithm 2.

    Examples
    --------
    >>> from lagpu.generators import cycle
    >>> count_shortest_paths(cycle(4, backend="cpu"), 0).to_dense().tolist()
    [1.0, 1.0, 2.0, 1.0]
    """
    source = source_vertex(A, source)
    paths = Vector(FP64, A.nrows, like=A, name="paths")
    frontier = Vector(FP64, A.nrows, like=A, name="frontier")
    frontier[source] = 1
    for _ in loop(until_empty=frontier):
        paths(frontier.S) << frontier
        frontier(~paths.S, replace=True) << semiring.plus_first(frontier @ A)
    if math.isinf(paths.reduce("max").new().value):
        raise LimitExceeded(
            f"count_shortest_paths: from vertex {source} there are more than 1.8e308 shortest "
            "paths to a vertex, which do not fit FP64. Leave out the part of the graph that "
            "multiplies the paths."
        )
    return paths


# ---- many breadth-first searches at once, one in each row of a matrix
#
# The frontiers are the rows of a k x n matrix Q, and one product advances all of them::
#
#     Q<!s(L)> = Q (+.x) A


def bfs_levels_multi(A: Matrix, sources: Any) -> Matrix:
    """Return each vertex's distance in edges from each of some vertices.

    Parameters
    ----------
    A : Matrix, (n, n)
    sources : int or list of int
        k distinct vertices.

    Returns
    -------
    Matrix, (k, n), INT32
        Row r is the result of `bfs_levels` for ``sources[r]``: 0 at the source, no entry at a
        vertex that cannot be reached.

    Raises
    ------
    DomainMismatch
        If the sources are a set, which does not say which row belongs to which source.

    Notes
    -----
    As many products as the deepest search has levels, for any number of sources; on the gpu backend
    the loop is one kernel if bitmap matrices fit (docs/design/bitmap.md).
    Source: Then et al. 2014 (multi-source search); Kepner and Gilbert 2011, chapter 6.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> levels = bfs_levels_multi(path(4, backend="cpu"), [0, 2])
    >>> levels[0, :].new().to_dense().tolist(), levels[1, :].new().to_dense().tolist()
    ([0, 1, 2, 3], [2, 1, 0, 1])
    """
    frontier = _frontier(A, sources)
    levels = Matrix(INT32, *frontier.shape, like=A, name="levels")
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    return levels


def bfs_parents_multi(A: Matrix, sources: Any) -> Matrix:
    """Return each vertex's parent in a breadth-first tree from each of some vertices.

    Parameters
    ----------
    A, sources
        As in `bfs_levels_multi`.

    Returns
    -------
    Matrix, (k, n), INT32, or INT64 if n > 2**31
        Row r is a result of `bfs_parents` for ``sources[r]``: the source is its own parent, and a
        vertex has any one of its possible parents.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> parents = bfs_parents_multi(path(4, backend="cpu"), [0, 2])
    >>> parents[1, :].new().to_dense().tolist()
    [1, 2, 2, 2]
    """
    frontier = _frontier(A, sources, numbered=True)
    parents = Matrix(frontier.dtype, *frontier.shape, like=A, name="parents")
    for _ in loop(until_empty=frontier):
        parents(frontier.S) << frontier
        frontier(~parents.S, replace=True) << semiring.any_secondi(frontier @ A)
    return parents


def _frontier(A: Matrix, sources: Any, *, numbered: bool = False) -> Matrix:
    """Return the k x n matrix with an entry at each row's source: True, or the vertex number."""
    if isinstance(sources, (set, frozenset)):
        raise DomainMismatch("sources: a set has no order, which rows need. Give a list.")
    chosen = source_vertices(A, sources)
    return frontier_of(A, chosen, *((chosen, index_type(A)) if numbered else (True, BOOL)))


# ---- one breadth-first search from several vertices together, and their neighbourhoods


def bfs_levels_joint(A: Matrix, sources: Any) -> Vector:
    """Return each vertex's distance in edges from the nearest of some vertices.

    Parameters
    ----------
    A : Matrix, (n, n)
    sources : int or list of int
        Distinct vertices.

    Returns
    -------
    Vector, (n,), INT32
        The sources have level 0; a vertex that cannot be reached has no entry.

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
    sources : int or list of int
        Distinct vertices, which have level 0.
    k : int
        Radius, 0 or more.

    Returns
    -------
    Vector, (n,), INT32
        Levels ``0 .. k``; no entry farther away.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> neighborhood(path(5, backend="cpu"), 1).to_dense(-1).tolist()
    [1, 0, 1, -1, -1]
    """
    return _levels(A, sources, integer(k, "neighborhood: k", 0) + 1)


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

    Examples
    --------
    >>> from lagpu.generators import cycle
    >>> k_hop(cycle(6, backend="cpu"), 0, 2).to_coo()[0].tolist()
    [2, 4]
    """
    return where_any(neighborhood(A, sources, k).select("valueeq", k).new(), "hop")


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
