"""Betweenness centrality of edges: what flows along them from each source.

Edges are the rows of two matrices, T with an entry at an edge's tail and H at its head::

    f = (T q) (H ((1 + d) / q'));  d = f T
"""

from __future__ import annotations

import numpy as np

from lagpu.algebra import binary, semiring
from lagpu.algorithms.brandes import is_directed, path_counts, sample, scale
from lagpu.dtypes import FP64
from lagpu.matrix import Matrix
from lagpu.vector import Vector

__all__ = ["edge_betweenness_centrality"]


def edge_betweenness_centrality(
    A: Matrix,
    k: int | None = None,
    normalized: bool = True,
    *,
    directed: bool | None = None,
    seed: int | None = None,
) -> Matrix:
    """Return the share of shortest paths that lead along each edge.

    Parameters
    ----------
    A, k, normalized, directed, seed
        As in `betweenness_centrality`. In an undirected graph both entries of an edge hold the
        paths in both directions.

    Returns
    -------
    Matrix, (n, n), FP64
        An entry for each entry of `A`.

    Raises
    ------
    InvalidValue, DimensionMismatch, DomainMismatch
        As `betweenness_centrality`.

    Notes
    -----
    Edges are the rows of two matrices: T has an entry at an edge's tail, H at its head. So what
    flows along the edges is a vector, ``f = (T q) (H ((1 + d) / q'))``, and ``d = f T``.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> edge_betweenness_centrality(path(3, backend="cpu")).get(0, 1)
    0.6666666666666666
    """
    sources = sample(A, k, seed)
    directed = is_directed(A) if directed is None else directed
    rows, cols, _ = A.to_coo()
    each = np.arange(len(rows) + 1)
    tails = Matrix.from_csr(each, rows, ncols=A.nrows, like=A, name="T")
    heads = Matrix.from_csr(each, cols, ncols=A.nrows, like=A, name="H")
    total = Vector.from_dense(np.zeros(len(rows)), like=A, name="betweenness")
    along, ahead = (Vector(FP64, len(rows), like=A, name=name) for name in ("along", "ahead"))
    for source in sources:
        frontiers = path_counts(A, [source])
        delta = Vector.from_dense(np.zeros(A.nrows), like=A, name="delta")
        share = Vector(FP64, A.nrows, like=A, name="share")
        for k_above in range(len(frontiers) - 2, -1, -1):
            above, here = frontiers[k_above], frontiers[k_above + 1]
            share(here.S, replace=True) << delta.apply("plus", right=1)
            share << share.ewise_mult(here, binary.truediv)
            along << semiring.any_second(tails @ above)
            ahead << semiring.any_second(heads @ share)
            along << along.ewise_mult(ahead, binary.times)
            total(accum=binary.plus) << along
            delta(accum=binary.plus) << semiring.plus_first(along @ tails)
    if not directed:
        back = np.lexsort((rows, cols))  # the k-th edge by columns is the reverse of the k-th
        total(accum=binary.plus) << total[back].new()
    values = total.to_dense() * scale(A, sources, normalized, True, directed)[rows]
    return Matrix.from_coo(rows, cols, values, nrows=A.nrows, ncols=A.nrows, like=A)
