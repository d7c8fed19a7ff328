"""Distances of all vertices: closeness, eccentricity and diameter."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary
from lagpu.algorithms.bfs import bfs_levels
from lagpu.algorithms.inputs import require_square, source_vertex, source_vertices
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, FP64, INT32
from lagpu.errors import InvalidValue, NoPath, NotSupported


def closeness_centrality(
    A: Matrix, u: Any = None, distance: None = None, wf_improved: bool = True
) -> Vector:
    """Return the reciprocal of the mean distance to each vertex.

    Parameters
    ----------
    A : Matrix, (n, n)
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
    back = _reversed(A)
    chosen = list(range(A.nrows)) if vertices is None else source_vertices(A, vertices, what)
    values = [of(bfs_levels(back, v).dup(FP64)) for v in chosen]
    return Vector.from_coo(chosen, np.array(values, float), size=A.nrows, like=A)


# ---- eccentricities and diameters: the distance to the farthest vertex
#
# The exact diameter needs few searches: one from s, of eccentricity e, bounds all
# eccentricities::
#
# upper = min(upper, d(., s) + e); lower = max(lower, d(., s), e - d(s, .))


def eccentricity(A: Matrix, v: Any = None) -> Vector:
    """Return the distance from each vertex to the vertex farthest from it.

    Parameters
    ----------
    A : Matrix, (n, n)
    v : int or list of int, optional
        Distinct vertices; by default all.

    Returns
    -------
    Vector, (n,), INT32
        An entry for each vertex asked for.

    Raises
    ------
    NoPath
        If one of them does not reach every vertex.
    InvalidValue, IndexOutOfBound, DimensionMismatch, DomainMismatch
        If `v` is empty, has a vertex twice or a number that is not a vertex; if `A` is not square.

    Notes
    -----
    A breadth-first search from each vertex.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> eccentricity(path(4, backend="cpu")).to_dense().tolist()
    [3, 2, 2, 3]
    """
    require_square(A)
    vertices = list(range(A.nrows)) if v is None else source_vertices(A, v, "eccentricity: v")
    found = [_reach_all(A, s, "eccentricity")[1] for s in vertices]
    return Vector.from_coo(vertices, np.array(found, np.int32), size=A.nrows, like=A)


def diameter(A: Matrix) -> int:
    """Return the largest distance between two vertices.

    Parameters
    ----------
    A : Matrix, (n, n)
        Entry (i, j) of any value is the edge i -> j; n > 0.

    Returns
    -------
    int
        The largest eccentricity.

    Raises
    ------
    NoPath
        If some vertex does not reach another one.
    InvalidValue, DimensionMismatch, DomainMismatch
        If there is no vertex; if `A` is not square.

    Notes
    -----
    Searches start alternately from the vertex of the largest upper bound and of the least lower
    bound, until no upper bound exceeds the largest eccentricity found: often a dozen searches, n at
    worst. A directed graph needs a search along the edges and one against them each time.
    Source: Takes and Kosters 2011.

    Examples
    --------
    >>> from lagpu.generators import cycle
    >>> diameter(cycle(7, backend="cpu"))
    3
    """
    back = _reversed(A)
    if A.nrows == 0:
        raise InvalidValue("diameter: there is no vertex. Give a graph with one.")
    lower, upper = (Vector(INT32, A.nrows, like=A, name=name) for name in ("lower", "upper"))
    lower << 0
    upper << A.nrows
    found = -1
    for turn in itertools.count():
        upper << upper.select("valuegt", found)  # the others cannot increase the diameter
        if not upper.nvals:
            break
        lower(upper.S, replace=True) << lower
        s = _first(upper, "max") if turn % 2 == 0 else _first(lower, "min")
        forth, e = _reach_all(A, s, "diameter")
        backward = forth if back is A else _reach_all(back, s, "diameter", against=True)[0]
        found = max(found, e)
        upper(upper.S, accum=binary.min) << backward.apply("plus", right=e)
        lower(lower.S, accum=binary.max) << backward
        lower(lower.S, accum=binary.max) << forth.apply("minus", left=e)
    return found


def radius(A: Matrix) -> int:
    """Return the least distance from a vertex to the vertex farthest from it.

    Parameters
    ----------
    A
        As in `diameter`.

    Returns
    -------
    int
        The least eccentricity.

    Raises
    ------
    NoPath, InvalidValue, DimensionMismatch, DomainMismatch
        As `diameter`; the searches are those of `eccentricity`.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> radius(path(5, backend="cpu"))
    2
    """
    return int(_eccentricities(A, "radius").reduce("min").new().value)


def center(A: Matrix) -> Vector:
    """Return the vertices from which the farthest one is nearest.

    Parameters
    ----------
    A
        As in `diameter`.

    Returns
    -------
    Vector, (n,), BOOL
        True where the eccentricity is the radius; no entry elsewhere.

    Raises
    ------
    NoPath, InvalidValue, DimensionMismatch, DomainMismatch
        As `diameter`; the searches are those of `eccentricity`.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> center(path(5, backend="cpu")).to_coo()[0].tolist()
    [2]
    """
    return _where(_eccentricities(A, "center"), "min")


def periphery(A: Matrix) -> Vector:
    """Return the vertices from which the farthest one is farthest.

    Parameters
    ----------
    A
        As in `diameter`.

    Returns
    -------
    Vector, (n,), BOOL
        True where the eccentricity is the diameter; no entry elsewhere.

    Raises
    ------
    NoPath, InvalidValue, DimensionMismatch, DomainMismatch
        As `diameter`; the searches are those of `eccentricity`.

    Examples
    --------
    >>> from lagpu.generators import path
    >>> periphery(path(5, backend="cpu")).to_coo()[0].tolist()
    [0, 4]
    """
    return _where(_eccentricities(A, "periphery"), "max")


def pseudo_diameter(A: Matrix, source: int = 0) -> tuple[int, int, int]:
    """Return a large distance, and two vertices that far apart, by a few searches.

    Parameters
    ----------
    A : Matrix, (n, n)
    source : int
        The vertex of the first search; vertices that it does not reach are ignored.

    Returns
    -------
    length, begin, end : int
        The distance from `begin` to `end`: at most the diameter, and in a tree the diameter.

    Raises
    ------
    DimensionMismatch, DomainMismatch, IndexOutOfBound
        If `A` is not square, or `source` is not a vertex.

    Notes
    -----
    Each search starts from the farthest vertex of the one before, alternately along and against the
    edges, while distances grow.
    Source: Gibbs, Poole and Stockmeyer 1976; Crescenzi et al. 2012 (directed).

    Examples
    --------
    >>> from lagpu.generators import path
    >>> pseudo_diameter(path(5, backend="cpu"), 1)
    (4, 0, 4)
    """
    here = source_vertex(A, source)
    ways = A, _reversed(A)
    length, ends = -1, (here, here)
    for turn in itertools.count():
        levels = bfs_levels(ways[turn % 2], here)
        depth = levels.reduce("max").new().value
        if depth <= length:
            break
        there = _first(levels, "max")
        length, ends = depth, (here, there) if turn % 2 == 0 else (there, here)
        here = there
    return (length, *ends)


def _reversed(A: Matrix) -> Matrix:
    """Return ``A'``, or `A` itself if it is symmetric."""
    require_square(A)
    return A if A.is_symmetric else A.T.new()


def _eccentricities(A: Matrix, what: str) -> Vector:
    """Return the eccentricities of a graph with vertices."""
    require_square(A)
    if A.nrows == 0:
        raise InvalidValue(f"{what}: there is no vertex. Give a graph with one.")
    return eccentricity(A)


def _where(v: Vector, op: str) -> Vector:
    """Return the positions of the greatest ("max") or least ("min") value as a BOOL vector."""
    members = Vector(BOOL, v.size, like=v, name="members")
    members(_best(v, op).S) << True
    return members


def _reach_all(A: Matrix, s: int, what: str, *, against: bool = False) -> tuple[Vector, int]:
    """Return the levels from `s`, and the largest, or raise `NoPath`."""
    levels = bfs_levels(A, s)
    if levels.nvals < A.nrows:
        v = int((~levels.S).new().to_coo()[0][0])
        pair = (v, s) if against else (s, v)
        raise NoPath(
            f"{what}: there is no path from {pair[0]} to {pair[1]}. "
            "Take one (strongly) connected component, or pseudo_diameter."
        )
    return levels, levels.reduce("max").new().value


def _first(v: Vector, op: str) -> int:
    """Return the least index of the greatest ("max") or least ("min") value."""
    return int(_best(v, op).to_coo()[0][0])


def _best(v: Vector, op: str) -> Vector:
    """Return the entries of the greatest or least value."""
    best: Vector = v.select("valueeq", v.reduce(op).new().value).new()
    return best
