"""Count shortest paths: sigma of TurboBFS, the forward half of betweenness centrality.

Each product adds up the numbers of paths to the next level::

    q<!s(p)> = q (+.first) A;  p = p + q
"""

from __future__ import annotations

import math

from lagpu.algebra.tables import semiring
from lagpu.algorithms.inputs import source_vertex
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import FP64
from lagpu.errors import LimitExceeded
from lagpu.loops.loop import loop

__all__ = ["count_shortest_paths"]


def count_shortest_paths(A: Matrix, source: int) -> Vector:
    """Return the number of shortest paths from `source` to each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    source : int
        ``0 <= source < n``.

    Returns
    -------
    Vector, (n,), FP64
        1 at the source; no entry at a vertex that cannot be reached. Counts are exact up to
        2**53 and rounded, never wrapped, beyond.

    Raises
    ------
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or `source` is not a vertex.
    LimitExceeded
        If a count does not fit FP64, 1.8e308 or more.

    Notes
    -----
    ``depth + 1`` products. Source: Brandes 2001, section 4; Artiles and Saeed 2021, algorithm 2.

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
