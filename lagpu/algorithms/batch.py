"""Many breadth-first searches at once, one in each row of a matrix.

The frontiers are the rows of a k x n matrix Q, and one product advances all of them::

    Q<!s(L)> = Q (+.x) A
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.tables import semiring
from lagpu.algorithms.inputs import index_type, source_vertices
from lagpu.core.matrix import Matrix
from lagpu.dtypes import BOOL, INT32
from lagpu.errors import DomainMismatch
from lagpu.loops.loop import loop

__all__ = ["bfs_levels_multi", "bfs_parents_multi"]


def bfs_levels_multi(A: Matrix, sources: Any) -> Matrix:
    """Return each vertex's distance in edges from each of some vertices.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    sources : int or list of int
        k distinct vertices.

    Returns
    -------
    Matrix, (k, n), INT32
        Row r is the result of `bfs_levels` for ``sources[r]``: 0 at the source, no entry at a
        vertex that cannot be reached.

    Raises
    ------
    InvalidValue
        If there is no source, or one is given twice.
    DomainMismatch
        If the sources are a set, which does not say which row belongs to which source.
    DimensionMismatch, IndexOutOfBound
        If `A` is not square, or a source is not a vertex.

    Notes
    -----
    As many products as the deepest search has levels, whatever k is; on the gpu backend the loop is
    one kernel if bitmap matrices fit (docs/design/bitmap.md).
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

    Raises
    ------
    InvalidValue, DomainMismatch, DimensionMismatch, IndexOutOfBound
        As `bfs_levels_multi`.

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
    return Matrix.from_coo(
        np.arange(len(chosen)),
        chosen,
        chosen if numbered else True,
        index_type(A) if numbered else BOOL,
        nrows=len(chosen),
        ncols=A.nrows,
        like=A,
        name="frontier",
    )
