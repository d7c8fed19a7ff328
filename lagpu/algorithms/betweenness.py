"""Betweenness centrality of vertices: Brandes' algorithm, for one source or many at once.

`brandes` computes the dependencies d of each source; they are added up, the source's own left out::

    b = b + d<levels>
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary
from lagpu.algorithms.brandes import (
    batches,
    count_paths,
    dependencies,
    require_reverses,
    sample,
    scale,
    weights,
)
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import FP64

__all__ = ["betweenness_centrality", "betweenness_estimate"]

Array = np.ndarray[Any, Any]


def betweenness_centrality(
    A: Matrix,
    k: int | None = None,
    normalized: bool = True,
    *,
    endpoints: bool = False,
    directed: bool | None = None,
    seed: int | random.Random | None = None,
    batch: int | None = None,
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
        If False, (s, t) and (t, s) are one pair, which matters only without `normalized`; by
        default True if the pattern is not symmetric.
    seed : int or random.Random, optional
        Seed of the choice of sources, or what draws them; NetworkX chooses the same for vertices
        ``0 .. n-1``.
    batch : int, optional
        Sources at once, 1 or more; by default ``lagpu.algorithms.brandes.batch_size(A, sources)``,
        which suits the graph and the free memory of the backend. It changes only time, memory and
        rounding.

    Returns
    -------
    Vector, (n,), FP64
        Full. With ``k=1`` and without endpoints the source is NaN, as no pair counts for it.

    Raises
    ------
    InvalidValue
        If `k` is not 1 to n, `seed` is negative, `batch` is below 1, or an edge has no reverse
        although ``directed=False``.
    DimensionMismatch, DomainMismatch
        If `A` is not square, or `k`, `seed` or `batch` is not an integer.
    LimitExceeded
        If there are more than 1.8e308 shortest paths to a vertex.

    Notes
    -----
    Two products for each level and batch; memory does not depend on the number of levels. On `gpu`
    the search and the sweep of a single source are one kernel each.
    The sum over s and t of (paths from s to t through v) / (paths from s to t), in floating point;
    scaled as in NetworkX 3.6.
    Source: Brandes 2001; Brandes and Pich 2007 (samples); Kepner and Gilbert 2011, chapter 6
    (batches).

    Examples
    --------
    >>> from lagpu.generators import star
    >>> betweenness_centrality(star(4, backend="cpu")).to_dense().tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    sources = sample(A, k, seed)
    require_reverses(A, directed)
    total, _ = _sums(A, sources, endpoints, batch, squares=False)
    factor = scale(A, sources, normalized, endpoints, directed)
    total(accum=binary.times) << Vector.from_dense(factor, like=A)
    return total


def betweenness_estimate(
    A: Matrix,
    k: int,
    normalized: bool = True,
    *,
    endpoints: bool = False,
    directed: bool | None = None,
    seed: int | random.Random | None = None,
    batch: int | None = None,
) -> tuple[Vector, Vector]:
    """Return betweenness centralities estimated from some sources, and their standard errors.

    Parameters
    ----------
    A, k, normalized, endpoints, directed, seed, batch
        As in `betweenness_centrality`.

    Returns
    -------
    centrality, error : Vector, (n,), FP64
        Full. The error is 0 where all sources that count were used, NaN where only one was used.

    Raises
    ------
    InvalidValue, DimensionMismatch, DomainMismatch, LimitExceeded
        As `betweenness_centrality`.

    Notes
    -----
    Of the N sources that count for a vertex (the vertex itself only with endpoints) m were chosen.
    If they contribute x_1 .. x_m, the centrality is a multiple of the mean, and the standard error
    the same multiple of ``sqrt((1 - m/N) s**2 / m)`` with ``s**2 = sum((x - mean)**2) / (m - 1)``,
    an unbiased estimate of the variance over all choices. Contributions are skewed, so an interval
    from this error is rough if k is small.
    Source: Brandes and Pich 2007; Cochran 1977, chapter 2 (sampling without replacement).

    Examples
    --------
    >>> from lagpu.generators import star
    >>> found, error = betweenness_estimate(star(5, backend="cpu"), 3, seed=1)
    >>> found.get(0), error.get(0)
    (1.0, 0.0)
    """
    sources = sample(A, k, seed)
    require_reverses(A, directed)
    total, squares = _sums(A, sources, endpoints, batch, squares=True)
    factor = scale(A, sources, normalized, endpoints, directed)
    used = weights(A, sources, endpoints)
    error = _standard_error(total.to_dense(), squares.to_dense(), used, A.nrows - (not endpoints))
    total(accum=binary.times) << Vector.from_dense(factor, like=A)
    return total, Vector.from_dense(error * factor, like=A, name="error")


def _sums(
    A: Matrix, sources: list[int], endpoints: bool, batch: int | None, squares: bool
) -> tuple[Vector, Vector]:
    """Return the sums of the dependencies, and of the squared dependencies, over the sources."""
    total = Vector(FP64, A.nrows, like=A, name="betweenness")
    total << 0
    second = total.dup(name="squares")
    for chosen in batches(A, sources, batch):
        levels, paths = count_paths(A, chosen)
        delta = dependencies(A, levels, paths)
        if endpoints:
            delta(levels.V, accum=binary.plus) << 1  # a path leads through its own end
        else:
            delta(levels.V, replace=True) << delta  # without the source, at level 0
        total(accum=binary.plus) << _by_vertex(delta)
        if squares:
            square = delta.ewise_mult(delta, binary.times).new()
            second(accum=binary.plus) << _by_vertex(square)
    return total, second


def _by_vertex(x: Vector | Matrix) -> Any:
    return x if isinstance(x, Vector) else x.reduce_columnwise("plus")


def _standard_error(total: Array, squares: Array, used: Array, population: int) -> Array:
    """Return the standard error of each sum, (n,); see `betweenness_estimate`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(squares - total**2 / used, 0) / (used - 1)
        error: Array = np.sqrt(variance * used * (1 - used / population))
    error[used == population] = 0
    return error
