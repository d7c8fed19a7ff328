"""Closeness and harmonic centrality: how near a vertex is to the vertices that reach it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.algorithms.bfs import bfs_levels
from lagpu.algorithms.inputs import require_square, source_vertices
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import FP64
from lagpu.errors import NotSupported

__all__ = ["closeness_centrality", "harmonic_centrality"]


def closeness_centrality(
    A: Matrix, u: Any = None, distance: None = None, wf_improved: bool = True
) -> Vector:
    """Return the reciprocal of the mean distance to each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    u : int or list of int, optional
        Distinct vertices; by default all.
    distance : None
        Only for the same argument positions as in NetworkX, where it is a weight; an edge counts 1.
    wf_improved : bool
        Multiply by the share of the other vertices that reach the vertex (Wasserman and Faust).

    Returns
    -------
    Vector, (n,), FP64
        ``(r - 1) / (sum of the distances from the r vertices that reach u)``, 0 if only u itself
        does; an entry for each vertex asked for.

    Raises
    ------
    InvalidValue, IndexOutOfBound, DimensionMismatch, DomainMismatch
        If `u` is empty, has a vertex twice or a number that is not a vertex; if `A` is not square.
    NotSupported
        If `distance` is given.

    Notes
    -----
    A breadth-first search against the edges from each vertex. Source: Freeman 1979; as NetworkX.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> closeness_centrality(star(4, backend="cpu")).to_dense().tolist()
    [1.0, 0.6, 0.6, 0.6]
    """
    if distance is not None:
        raise NotSupported(
            f"closeness_centrality: distance={distance!r}, but an edge counts 1. Leave it None."
        )

    def closeness(distances: Vector) -> float:
        others, total = distances.nvals - 1, distances.reduce("plus").new().value
        if not others:
            return 0.0
        share = others / (A.nrows - 1) if wf_improved else 1.0
        return float(others / total * share)

    return _from_distances(A, u, closeness, "closeness_centrality: u")


def harmonic_centrality(A: Matrix, nbunch: Any = None, *, sources: Any = None) -> Vector:
    """Return the sum of the reciprocals of the distances to each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j.
    nbunch : int or list of int, optional
        Distinct vertices; by default all.
    sources : int or list of int, optional
        Distinct vertices whose distances count; by default all.

    Returns
    -------
    Vector, (n,), FP64
        ``sum of 1 / distance`` from the other sources, 0 from where there is no path; an entry for
        each vertex asked for.

    Raises
    ------
    InvalidValue, IndexOutOfBound, DimensionMismatch, DomainMismatch
        If `nbunch` or `sources` is empty, has a vertex twice or a number that is not a vertex; if
        `A` is not square.

    Notes
    -----
    A breadth-first search against the edges from each vertex. Source: Boldi and Vigna 2014; as
    NetworkX.

    Examples
    --------
    >>> from lagpu.generators import star
    >>> harmonic_centrality(star(4, backend="cpu")).to_dense().tolist()
    [3.0, 2.0, 2.0, 2.0]
    """
    require_square(A)
    counted = None
    if sources is not None:
        chosen = source_vertices(A, sources, "harmonic_centrality: sources")
        counted = Vector.from_coo(chosen, True, size=A.nrows, like=A).S

    def harmonic(distances: Vector) -> float:
        others = distances.select("valuegt", 0).new(mask=counted)
        return float(others.apply("minv").new().reduce("plus").new().value or 0.0)

    return _from_distances(A, nbunch, harmonic, "harmonic_centrality: nbunch")


def _from_distances(A: Matrix, vertices: Any, of: Callable[[Vector], float], what: str) -> Vector:
    """Return the value of `of` for the distances to each vertex, (n,), FP64."""
    require_square(A)
    chosen = list(range(A.nrows)) if vertices is None else source_vertices(A, vertices, what)
    back = A if A.is_symmetric else A.T.new()
    values = [of(bfs_levels(back, v).dup(FP64)) for v in chosen]
    return Vector.from_coo(chosen, np.array(values, float), size=A.nrows, like=A)
