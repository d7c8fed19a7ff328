"""Betweenness centrality of vertices: Brandes' algorithm, one source or many at once.

A source's dependencies d, from both sweeps of a search, without its own; `brandes` has these::

    b = b + d<levels>
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.tables import binary
from lagpu.algorithms.brandes import (
    blocks,
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
    seed: int | None = None,
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
        If not, (s, t) and (t, s) are one pair, which matters only to what is not normalized; by
        default whether the pattern is not symmetric.
    seed : int, optional
        Of the choice of sources; the same ones as in NetworkX on vertices ``0 .. n-1``.
    batch : int, optional
        Sources at once, 1 or more; by default as many as suit the graph and the free memory where
        `A` lives, which ``lagpu.algorithms.brandes.batch_size(A, sources)`` tells. It changes
        nothing but time, memory and rounding.

    Returns
    -------
    Vector, (n,), FP64
        Full. With ``k=1``, and without endpoints, the one source is NaN: there is no pair for it.

    Raises
    ------
    InvalidValue
        If `k` is not 1 to n, `seed` is negative, `batch` is below 1, or an edge has no reverse
        though the graph is not to be directed.
    DimensionMismatch, DomainMismatch
        If `A` is not square, or `k`, `seed` or `batch` no integer.
    LimitExceeded
        If there are more than 1.8e308 shortest paths to a vertex.

    Notes
    -----
    Two products a level and block of sources; memory does not depend on the number of levels. On
    `gpu` each half of a single source's search is one kernel.
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
    seed: int | None = None,
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
        Full. The error is 0 where all sources that count were used, and NaN where only one was.

    Raises
    ------
    InvalidValue, DimensionMismatch, DomainMismatch, LimitExceeded
        As `betweenness_centrality`.

    Notes
    -----
    Of the N sources that count for a vertex, itself only with endpoints, m were chosen. If they
    contribute x_1 .. x_m, the centrality is a multiple of their mean, and its standard error the
    same multiple of ``sqrt((1 - m/N) s**2 / m)`` with ``s**2 = sum((x - mean)**2) / (m - 1)``:
    without bias for the variance over all choices. Contributions are skewed, so an interval from
    it is rough if k is small.
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
    """Return the sums over the sources of their dependencies, and of these squared."""
    total = Vector(FP64, A.nrows, like=A, name="betweenness")
    total << 0
    second = total.dup(name="squares")
    for block in blocks(A, sources, batch):
        levels, paths = count_paths(A, block)
        delta = dependencies(A, levels, paths)
        if endpoints:
            delta(levels.V, accum=binary.plus) << 1  # a path leads through its own end
        else:
            delta(levels.V, replace=True) << delta  # and not through its source, at level 0
        total(accum=binary.plus) << _by_vertex(delta)
        if squares:
            square = delta.ewise_mult(delta, binary.times).new()
            second(accum=binary.plus) << _by_vertex(square)
    return total, second


def _by_vertex(x: Vector | Matrix) -> Any:
    return x if isinstance(x, Vector) else x.reduce_columnwise("plus")


def _standard_error(total: Array, squares: Array, used: Array, all_of_them: int) -> Array:
    """Return the standard error of each sum, (n,); see `betweenness_estimate`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(squares - total**2 / used, 0) / (used - 1)
        error: Array = np.sqrt(variance * used * (1 - used / all_of_them))
    error[used == all_of_them] = 0
    return error
