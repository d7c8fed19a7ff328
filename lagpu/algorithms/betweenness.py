"""Betweenness centrality of vertices and of edges: Brandes' algorithm.

For each source, path counts forward, a frontier q a level, and backward the dependencies d of the
source on each vertex::

    q'<!s(p)> = q (+.first) A;  p = p + q'
    d<s(q)>   = q (A (+.second) ((1 + d) / q'))
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from lagpu.algebra import binary, semiring
from lagpu.algorithms.source import random_seed, require_square
from lagpu.dtypes import FP64
from lagpu.errors import InvalidValue
from lagpu.loop import loop
from lagpu.matrix import Matrix
from lagpu.operands import integer
from lagpu.vector import Vector

__all__ = ["betweenness_centrality", "edge_betweenness_centrality"]


def betweenness_centrality(
    A: Matrix,
    k: int | None = None,
    normalized: bool = True,
    *,
    endpoints: bool = False,
    directed: bool | None = None,
    seed: int | None = None,
) -> Vector:
    """Return the share of shortest paths that lead through each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    k : int, optional
        Estimate from this many sources chosen at random, 1 to n; by default all are used.
    normalized : bool
        Divide by the number of pairs of vertices that count; else a pair counts 1.
    endpoints : bool
        Whether a path leads through its own ends.
    directed : bool, optional
        If not, (s, t) and (t, s) are one pair; by default whether the pattern is not symmetric.
        It matters only to what is not normalized.
    seed : int, optional
        Of the choice of sources; the same ones as in NetworkX on vertices ``0 .. n-1``.

    Returns
    -------
    Vector, (n,), FP64
        Full. With ``k=1``, and without endpoints, the one source is NaN: there is no pair for it.

    Raises
    ------
    InvalidValue
        If `k` is not 1 to n, or `seed` is negative.
    DimensionMismatch, DomainMismatch
        If `A` is not square, or `k` or `seed` no integer.

    Notes
    -----
    Two products a level and source. The frontiers of one source are kept: up to 8 bytes a vertex
    and level, where a backend stores them dense. The sum over s and t of (paths from s to t
    through v) / (paths from s to t), in floating point; scaled as in NetworkX 3.6.
    Source: Brandes 2001; Brandes and Pich 2007 (samples); Kepner and Gilbert 2011, chapter 6.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> betweenness_centrality(star(4, backend="cpu")).to_dense().tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    sources = _sources(A, k, seed)
    total = Vector.from_dense(np.zeros(A.nrows), like=A, name="betweenness")
    for source in sources:
        frontiers = _frontiers(A, source)
        if endpoints:
            for frontier in frontiers[1:]:
                total(frontier.S, accum=binary.plus) << 1
            reached = sum(frontier.nvals for frontier in frontiers[1:])
            total(accum=binary.plus)[source] << reached
        delta = Vector.from_dense(np.zeros(A.nrows), like=A, name="delta")
        share, flow = (Vector(FP64, A.nrows, like=A, name=name) for name in ("share", "flow"))
        for k_above in range(len(frontiers) - 2, 0, -1):
            above, here = frontiers[k_above], frontiers[k_above + 1]
            share(here.S, replace=True) << delta.apply("plus", right=1)
            share << share.ewise_mult(here, binary.truediv)
            flow(above.S, replace=True) << semiring.plus_second(A @ share)
            delta(flow.S) << flow.ewise_mult(above, binary.times)
        total(accum=binary.plus) << delta
    scale = _scale(A, sources, normalized, endpoints, directed)
    total(accum=binary.times) << Vector.from_dense(scale, like=A)
    return total


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
    sources = _sources(A, k, seed)
    directed = _is_directed(A) if directed is None else directed
    rows, cols, _ = A.to_coo()
    each = np.arange(len(rows) + 1)
    tails = Matrix.from_csr(each, rows, ncols=A.nrows, like=A, name="T")
    heads = Matrix.from_csr(each, cols, ncols=A.nrows, like=A, name="H")
    total = Vector.from_dense(np.zeros(len(rows)), like=A, name="betweenness")
    along, ahead = (Vector(FP64, len(rows), like=A, name=name) for name in ("along", "ahead"))
    for source in sources:
        frontiers = _frontiers(A, source)
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
    values = total.to_dense() * _scale(A, sources, normalized, True, directed)[rows]
    return Matrix.from_coo(rows, cols, values, nrows=A.nrows, ncols=A.nrows, like=A)


def _sources(A: Matrix, k: int | None, seed: int | None) -> list[int]:
    """Return all vertices, or `k` chosen ones."""
    require_square(A)
    if k is None:
        return list(range(A.nrows))
    k = integer(k, "betweenness: k")
    if not 1 <= k <= A.nrows:
        raise InvalidValue(f"betweenness: k {k} is not one of 1 .. {A.nrows} sources.")
    return random.Random(random_seed(seed, "betweenness")).sample(range(A.nrows), k)


def _frontiers(A: Matrix, source: int) -> list[Vector]:
    """Return for each level the numbers of shortest paths to its vertices."""
    paths = Vector(FP64, A.nrows, like=A, name="paths")
    frontier = Vector(FP64, A.nrows, like=A, name="frontier")
    frontier[source] = 1
    kept = []
    for _ in loop(until_empty=frontier):
        kept.append(frontier.dup())
        paths(frontier.S) << frontier
        frontier(~paths.S, replace=True) << semiring.plus_first(frontier @ A)
    return kept


def _is_directed(A: Matrix) -> bool:
    return not A.apply("one").new().is_symmetric


def _scale(
    A: Matrix, sources: list[int], normalized: bool, endpoints: bool, directed: bool | None
) -> np.ndarray[Any, Any]:
    """Return what to multiply each vertex's sum over pairs with, (n,).

    A pair (s, t) counts for v if s is a source, t another vertex and, without endpoints, v neither.
    """
    n, k = A.nrows, len(sources)
    others = n if endpoints else n - 1
    scale: np.ndarray[Any, Any] = np.ones(n)
    if others >= 2:
        pairs = np.full(n, k * (others - 1), float)
        if not endpoints:
            pairs[sources] = (k - 1) * (others - 1)
        whole = 1.0
        if not normalized:
            whole = others * (others - 1)
            whole /= 1 if (_is_directed(A) if directed is None else directed) else 2
        scale = np.divide(whole, pairs, out=np.full(n, math.nan), where=pairs > 0)
    return scale
