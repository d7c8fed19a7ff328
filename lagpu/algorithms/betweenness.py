"""Betweenness centrality of vertices: Brandes' algorithm, for one source or many at once.

`brandes` computes the dependencies d of each source; they are added up, the source's own left out::

    b = b + d<levels>
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.algorithms.brandes import (
    count_paths,
    dependencies,
    require_reverses,
    sample,
    scale,
    weights,
)
from lagpu.algorithms.clusters import sums
from lagpu.algorithms.one_degree import fold_branches
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL
from lagpu.errors import InvalidValue

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
    one_degree: bool = False,
    pieces: int | None = None,
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
    one_degree : bool
        Fold branches that are trees into their roots first, whose part follows from their sizes:
        no search begins in a branch or enters one. Of an undirected graph, with all sources. It
        changes only time and rounding.
    pieces : int, optional
        On a grid, the number of pieces that share a copy of the graph, which is then a sub-cluster
        with sources of its own; by default the smallest number that holds the graph. It changes
        only time, memory and rounding.

    Returns
    -------
    Vector, (n,), FP64
        Full. With ``k=1`` and without endpoints the source is NaN, as no pair counts for it.

    Raises
    ------
    InvalidValue
        If `k` is not 1 to n, `seed` is negative, `batch` is below 1, `pieces` are not there, or an
        edge has no reverse although ``directed=False`` or `one_degree`, which takes no `k`.
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
    if one_degree:
        if k is not None:
            raise InvalidValue("betweenness: one_degree counts all sources. Leave out k.")
        require_reverses(A, False, "one_degree=True")
        total = _of_folded(A, endpoints, batch, pieces)
    else:
        (total,) = _sums(A, sources, endpoints, batch, pieces, squares=False)
    _scale(total, sources, scale(A, sources, normalized, endpoints, directed))
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
    pieces: int | None = None,
) -> tuple[Vector, Vector]:
    """Return betweenness centralities estimated from some sources, and their standard errors.

    Parameters
    ----------
    A, k, normalized, endpoints, directed, seed, batch, pieces
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
    total, squares = _sums(A, sources, endpoints, batch, pieces, squares=True)
    used = weights(A, sources, endpoints)
    errors = _standard_error(total.to_dense(), squares.to_dense(), used, A.nrows - (not endpoints))
    error = Vector.from_dense(errors, like=A, name="error")
    factors = scale(A, sources, normalized, endpoints, directed)
    for x in (total, error):
        _scale(x, sources, factors)
    return total, error


def _scale(x: Vector, sources: list[int], factors: tuple[float, float]) -> None:
    """Multiply by one factor where there is no source, and by another where there is one."""
    others, own = factors
    chosen = Vector.from_coo(sources, True, BOOL, size=x.size, like=x)
    x(~chosen.S, accum=binary.times) << others
    x(chosen.S, accum=binary.times) << own


def _sums(
    A: Matrix,
    sources: list[int],
    endpoints: bool,
    batch: int | None,
    pieces: int | None,
    squares: bool,
) -> list[Vector]:
    """Return the sums of the dependencies over the sources, and of their squares if wanted."""

    def add(B: Matrix, chosen: list[int], totals: list[Vector]) -> None:
        levels, paths = count_paths(B, chosen)
        delta = dependencies(B, levels, paths)
        if endpoints:
            delta(levels.V, accum=binary.plus) << 1  # a path leads through its own end
        else:
            delta(levels.V, replace=True) << delta  # without the source, at level 0
        totals[0](accum=binary.plus) << _by_vertex(delta)
        if squares:
            square = delta.ewise_mult(delta, binary.times).new()
            totals[1](accum=binary.plus) << _by_vertex(square)

    return sums(A, sources, batch, pieces, 1 + squares, add)


def _of_folded(A: Matrix, endpoints: bool, batch: int | None, pieces: int | None) -> Vector:
    """Return the sums of the dependencies over all sources, from the graph without its branches."""
    folded = fold_branches(A)
    mass = folded.mass[folded.vertices]
    held: dict[int, Matrix] = {}  # on each backend that has a copy of the graph

    def add(B: Matrix, chosen: list[int], totals: list[Vector]) -> None:
        if id(B.backend) not in held:
            held[id(B.backend)] = Vector.from_dense(mass - 1, like=B).diag()
        levels, paths = count_paths(B, chosen)
        delta = dependencies(B, levels, paths, held[id(B.backend)])
        delta(levels.V, replace=True) << delta
        if isinstance(delta, Vector):
            totals[0](accum=binary.plus) << delta.apply(binary.times, right=mass[chosen[0]])
        else:
            weight = Vector.from_dense(mass[chosen], like=B)
            totals[0](accum=binary.plus) << semiring.plus_times(weight @ delta)

    total = folded.known
    if len(mass):
        (found,) = sums(folded.A, list(range(len(mass))), batch, pieces, 1, add)
        total[folded.vertices] += found.to_dense()
    if endpoints:
        total += 2 * (folded.reachable - 1)
    return Vector.from_dense(total, like=A, name="betweenness")


def _by_vertex(x: Vector | Matrix) -> Any:
    return x if isinstance(x, Vector) else x.reduce_columnwise("plus")


def _standard_error(total: Array, squares: Array, used: Array, population: int) -> Array:
    """Return the standard error of each sum, (n,); see `betweenness_estimate`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(squares - total**2 / used, 0) / (used - 1)
        error: Array = np.sqrt(variance * used * (1 - used / population))
    error[used == population] = 0
    return error
