"""Betweenness centrality of edges: what flows along them from each source.

Edges are the rows of two matrices, T with an entry at an edge's tail and H at its head. Along those
that lead one level on, with path counts p and the dependencies d of `brandes`::

    f<H l - T l = 1> = (T p) (H ((1 + d) / p))
"""

from __future__ import annotations

import numpy as np

from lagpu.algebra import binary, semiring
from lagpu.algorithms.brandes import (
    count_paths,
    dependencies,
    is_directed,
    require_reverses,
    sample,
    scale,
)
from lagpu.dtypes import FP64, INT32
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
    InvalidValue, DimensionMismatch, DomainMismatch, LimitExceeded
        As `betweenness_centrality`.

    Notes
    -----
    Edges are the rows of two matrices: T has an entry at an edge's tail, H at its head. So what
    flows along the edges is a vector, ``f = (T p) (H ((1 + d) / p))``, and each source takes two
    sweeps and some products with these.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> edge_betweenness_centrality(path(3, backend="cpu")).get(0, 1)
    0.6666666666666666
    """
    sources = sample(A, k, seed)
    require_reverses(A, directed)
    directed = is_directed(A) if directed is None else directed
    rows, cols, _ = A.to_coo()
    each = np.arange(len(rows) + 1)
    tails = Matrix.from_csr(each, rows, ncols=A.nrows, like=A, name="T")
    heads = Matrix.from_csr(each, cols, ncols=A.nrows, like=A, name="H")
    total = Vector.from_dense(np.zeros(len(rows)), like=A, name="betweenness")
    along, ahead = (Vector(FP64, len(rows), like=A, name=name) for name in ("along", "ahead"))
    step, before = (Vector(INT32, len(rows), like=A, name=name) for name in ("step", "before"))
    for source in sources:
        levels, paths = count_paths(A, [source])
        share = dependencies(A, levels, paths).apply(binary.plus, right=1).new(name="share")
        share << share.ewise_mult(paths, binary.truediv)
        step << semiring.any_second(heads @ levels)
        before << semiring.any_second(tails @ levels)
        step << step.ewise_mult(before, binary.minus)
        step << step.select("valueeq", 1)  # edges on a shortest path
        along(step.S, replace=True) << semiring.any_second(tails @ paths)
        ahead(step.S, replace=True) << semiring.any_second(heads @ share)
        total(accum=binary.plus) << along.ewise_mult(ahead, binary.times)
    if not directed:
        back = np.lexsort((rows, cols))  # the k-th edge by columns is the reverse of the k-th
        total(accum=binary.plus) << total[back].new()
    values = total.to_dense() * scale(A, sources, normalized, True, directed)[rows]
    return Matrix.from_coo(rows, cols, values, nrows=A.nrows, ncols=A.nrows, like=A)
