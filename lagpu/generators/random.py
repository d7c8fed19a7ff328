"""Random graphs: the same seed gives the same graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.generators.shapes import grid_links
from lagpu.generators.sizes import LARGEST_SCALE, count, require
from lagpu.io.csc import edge_keys, from_edge_keys, undirected

__all__ = ["PROBABILITIES", "delaunay", "kronecker", "kronecker_tuples", "road", "uniform"]

Array = np.ndarray[Any, Any]
Place = str | Backend | None

_KEPT = 0.8  # share of a grid's links that a road network keeps
_CHUNK = 1 << 16  # edges made at a time, so that they stay in the cache
# Graph500: the probabilities of the quadrants (0, 0), (0, 1), (1, 0); the rest is for (1, 1).
PROBABILITIES = (0.57, 0.19, 0.19)


def kronecker(scale: int, edge_factor: int = 16, *, seed: int = 1, backend: Place = None) -> Matrix:
    """Return a Graph500 Kronecker graph.

    Each of ``edge_factor * 2**scale`` edges is drawn bit by bit with the probabilities of the
    specification (0.57, 0.19, 0.19, 0.05), and vertices are relabelled by a random permutation.
    Self-loops and repeated edges are dropped, as kernel 1 of the specification may, so the graph
    has fewer edges; the order of edge tuples, which the specification shuffles, has no meaning.

    Parameters
    ----------
    scale : int
        There are ``2**scale`` vertices, 0 <= scale <= 31.
    edge_factor : int
        Edges drawn per vertex.
    seed : int
        The same seed gives the same graph.
    backend : str or Backend, optional
        Where the matrix will live.

    Returns
    -------
    Matrix
        (n, n), BOOL, symmetric.

    Raises
    ------
    InvalidValue
        If a number is out of range.
    OutOfMemory
        If the graph does not fit; raised before anything is allocated.

    Notes
    -----
    Source: Graph500 benchmark specification 2.0, section 4 (the R-MAT model of Chakrabarti, Zhan
    and Faloutsos 2004). Random numbers are NumPy's, so graphs differ from the reference code.
    """
    n, draws = _random_size("kronecker", scale, edge_factor)
    rng = np.random.default_rng(seed)
    label = rng.permutation(n).astype(np.int32)

    def draw(count: int) -> Array:
        i, j = _kronecker_edges(rng, scale, count)
        return edge_keys(label[i], label[j])

    return from_edge_keys(_drawn(draws, draw), n).matrix(backend)


def kronecker_tuples(scale: int, edge_factor: int = 16, *, seed: int = 1) -> tuple[Array, Array]:
    """Return the raw edge tuples of `kronecker`, before self-loops and repeated edges are dropped.

    Parameters
    ----------
    scale, edge_factor, seed
        As in `kronecker`, with the same errors.

    Returns
    -------
    u, v : ndarray of INT32, (edge_factor * 2**scale,)
        Drawn independently of each other and relabelled at random, so the order has no meaning.
    """
    n, draws = _random_size("kronecker", scale, edge_factor)
    rng = np.random.default_rng(seed)
    label = rng.permutation(n).astype(np.int32)
    u, v = np.empty(draws, np.int32), np.empty(draws, np.int32)
    for start in range(0, draws, _CHUNK):
        part = slice(start, min(start + _CHUNK, draws))
        i, j = _kronecker_edges(rng, scale, part.stop - start)
        u[part], v[part] = label[i], label[j]
    return u, v


def _kronecker_edges(rng: np.random.Generator, scale: int, count: int) -> tuple[Array, Array]:
    """Draw edges: for each bit of both endpoints a 32-bit random number chooses the quadrant."""
    i, j = np.zeros(count, np.int32), np.zeros(count, np.int32)
    limits = [np.uint32(round(limit * 2**32)) for limit in np.cumsum(PROBABILITIES).tolist()]
    for first in range(0, scale, 8):  # eight bits at a time, in one byte
        width = min(8, scale - first)
        row, col = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
        for _ in range(width):
            draw = rng.integers(0, 2**64, (count + 1) // 2, np.uint64).view(np.uint32)[:count]
            not_a, low, d = ((draw >= limit).view(np.uint8) for limit in limits)
            row += row
            row |= low
            col += col
            col |= not_a ^ low ^ d  # quadrants (0, 1) and (1, 1)
        i, j = (i << width) | row, (j << width) | col
    return i, j


def uniform(scale: int, edge_factor: int = 16, *, seed: int = 1, backend: Place = None) -> Matrix:
    """Return a uniform random graph: both endpoints of each edge are drawn uniformly.

    Parameters
    ----------
    scale, edge_factor, seed, backend
        As in `kronecker`, with the same result and errors.

    Notes
    -----
    Source: the graph Urand of the GAP benchmark suite (Beamer, Asanovic, Patterson 2015).
    """
    n, draws = _random_size("uniform", scale, edge_factor)
    rng = np.random.default_rng(seed)

    def draw(count: int) -> Array:
        u, v = rng.integers(0, n, (2, count), np.int32)
        return edge_keys(u, v)

    return from_edge_keys(_drawn(draws, draw), n).matrix(backend)


def _random_size(what: str, scale: int, edge_factor: int) -> tuple[int, int]:
    """Return (vertices, edges to draw), or raise if they do not fit."""
    # Beyond LARGEST_SCALE the error should be OutOfMemory, so `count` allows more here.
    n = 2 ** count(what, "scale", scale, 0, 60)
    draws = n * count(what, "edge_factor", edge_factor, 1)
    require(what, n, draws)
    return n, draws


def _drawn(draws: int, draw: Callable[[int], Array]) -> Array:
    """Return the keys of `draws` edges, drawn in chunks."""
    keys = np.empty(draws, np.int64)
    for start in range(0, draws, _CHUNK):
        part = keys[start : start + _CHUNK]
        part[:] = draw(len(part))
    return keys


def road(k: int, *, seed: int = 1, backend: Place = None) -> Matrix:
    """Return a road-like graph: a k x k grid from which a random fifth of the links is removed.

    Parameters
    ----------
    k : int
        Side of the grid, at least 1.
    seed, backend
        As in `kronecker`, with the same errors.
    """
    u, v = grid_links("road", k, k)
    keep = np.random.default_rng(seed).random(len(u)) < _KEPT
    return undirected(u[keep], v[keep], k * k).matrix(backend)


def delaunay(scale: int, *, seed: int = 1, backend: Place = None) -> Matrix:
    """Return the Delaunay triangulation of random points in the unit square.

    Parameters
    ----------
    scale : int
        There are ``2**scale`` points, 2 <= scale <= 31.
    seed, backend
        As in `kronecker`, with the same errors.
    """
    from scipy.spatial import Delaunay  # slow to import, and only needed here

    n = 2 ** count("delaunay", "scale", scale, 2, LARGEST_SCALE)
    require("delaunay", n, 3 * n, extra=700 * n)  # extra: memory of Qhull, measured
    corners = Delaunay(np.random.default_rng(seed).random((n, 2))).simplices
    u = np.concatenate([corners[:, 0], corners[:, 1], corners[:, 2]])
    v = np.concatenate([corners[:, 1], corners[:, 2], corners[:, 0]])
    return undirected(u, v, n).matrix(backend)
