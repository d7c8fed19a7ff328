"""Betweenness centrality of edges: what flows along them from each source.

Edges are the columns of two matrices, T with an entry at an edge's tail and H at its head. Along
those that lead one level on, with path counts p and the dependencies d of `brandes`::

    f<l H - l T = 1> = (p T) (((1 + d) / p) H)
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
    Edges are the columns of two matrices: T has an entry at an edge's tail, H at its head. So what
    flows along the edges is a vector, ``f = (p T) (((1 + d) / p) H)``, and each source takes two
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
    ptr, rows, _ = A.to_csc()
    cols = np.repeat(np.arange(A.ncols), np.diff(ptr))
    each = np.arange(len(rows) + 1)
    tails = Matrix.from_csc(each, rows, nrows=A.nrows, like=A, name="T")
    heads = Matrix.from_csc(each, cols, nrows=A.nrows, like=A, name="H")
    total = Vector.from_dense(np.zeros(len(rows)), like=A, name="betweenness")
    along, ahead = (Vector(FP64, len(rows), like=A, name=name) for name in ("along", "ahead"))
    step, before = (Vector(INT32, len(rows), like=A, name=name) for name in ("step", "before"))
    for source in sources:
        levels, paths = count_paths(A, [source])
        share = dependencies(A, levels, paths).apply(binary.plus, right=1).new(name="share")
        share << share.ewise_mult(paths, binary.truediv)
        step << semiring.any_first(levels @ heads)
        before << semiring.any_first(levels @ tails)
        step << step.ewise_mult(before, binary.minus)
        step << step.select("valueeq", 1)  # edges on a shortest path
        along(step.S, replace=True) << semiring.any_first(paths @ tails)
        ahead(step.S, replace=True) << semiring.any_first(share @ heads)
        total(accum=binary.plus) << along.ewise_mult(ahead, binary.times)
    values = total.to_dense() * scale(A, sources, normalized, True, directed)[rows]
    found = Matrix.from_csc(ptr, rows, values, nrows=A.nrows, like=A)
    return found if directed else found.ewise_add(found.T, binary.plus).new()  # both ways
