"""Betweenness centrality of edges: the flow of dependencies along edges from each source.

With levels l, path counts p and dependencies d of `brandes`, each vertex in its own column::

    P(l(v) + 1, v) = p(v);   S(l(v), v) = (1 + d(v)) / p(v)
    F<s(A)> += P' (+.x) S

Column i of P meets column j of S if j is one level farther than i, where edges lie on shortest
paths.
"""

from __future__ import annotations

import random

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.brandes import (
    count_paths,
    dependencies,
    is_directed,
    require_reverses,
    sample,
    scale,
)
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import FP64, INT32

__all__ = ["edge_betweenness_centrality"]


def edge_betweenness_centrality(
    A: Matrix,
    k: int | None = None,
    normalized: bool = True,
    *,
    directed: bool | None = None,
    seed: int | random.Random | None = None,
) -> Matrix:
    """Return the share of shortest paths that lead along each edge.

    Parameters
    ----------
    A, k, normalized, directed, seed
        As in `betweenness_centrality`. In an undirected graph both entries of an edge have the sum
        of both directions.

    Returns
    -------
    Matrix, (n, n), FP64
        An entry for each entry of `A`.

    Raises
    ------
    InvalidValue, DimensionMismatch, DomainMismatch, LimitExceeded
        As `betweenness_centrality`.

    Notes
    -----
    Each source takes the search and the sweep of `betweenness_centrality`, and one product of two
    matrices with an entry for each vertex, under the mask of the edges.
    Source: Brandes 2008 (edges).

    Examples
    --------
    >>> from lagpu.generators import path
    >>> edge_betweenness_centrality(path(3, backend="cpu")).get(0, 1)
    0.6666666666666666
    """
    sources = sample(A, k, seed)
    require_reverses(A, directed)
    directed = is_directed(A) if directed is None else directed
    flow = Matrix(FP64, *A.shape, like=A, name="betweenness")
    flow(A.S) << 0
    each = Vector.from_dense(np.arange(A.nrows + 1), like=A)
    zeros = Vector(INT32, A.nrows, like=A)
    zeros << 0
    for source in sources:
        levels, paths = count_paths(A, [source])
        share = dependencies(A, levels, paths).apply(binary.plus, right=1).new(name="share")
        share << share.ewise_mult(paths, binary.truediv)
        above = levels.apply(binary.plus, right=1).new(name="above")
        P, S = (_by_level(each, zeros, *x) for x in ((above, paths), (levels, share)))
        flow(A.S, accum=binary.plus) << semiring.plus_times(P.T @ S)
    factor, _ = scale(A, sources, normalized, True, directed)
    flow << flow.apply(binary.times, right=factor)
    return flow if directed else flow.ewise_add(flow.T, binary.plus).new()  # both ways


def _by_level(each: Vector, zeros: Vector, levels: Vector, values: Vector) -> Matrix:
    """Return a matrix with the value of each vertex in the vertex' column, in the level's row.

    A vertex without a level has a 0 in row 0. `each` has the numbers 0 .. n, `zeros` n zeros.
    """
    rows, full = (x.ewise_union(zeros, binary.first, 0, 0).new() for x in (levels, values))
    return Matrix.from_csc(each, rows, full, nrows=each.size, like=each)
