"""Kronecker and uniform graphs made on the device itself, for graphs that the host is slow to make.

Parameters and chances are those of `lagpu.generators.kronecker` and `uniform`, and so are sizes and
shape. The random stream is that of the device's library, so the same seed gives another graph than
on the host, and always the same one on the same library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu import backends
from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.dtypes import BOOL
from lagpu.errors import NotSupported
from lagpu.generators.random import CHANCES
from lagpu.generators.sizes import LARGEST_SCALE, count

__all__ = ["kronecker", "kronecker_tuples", "undirected", "uniform"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device

_CHUNK = 1 << 24  # edges made at a time
_BYTES_PER_EDGE = 48  # keys of both directions, and what sorting them takes
_LOW = 0xFFFFFFFF


def kronecker(
    scale: int, edge_factor: int = 16, *, seed: int = 1, backend: str | Backend
) -> Matrix:
    """Return a Graph500 Kronecker graph made on the backend's device.

    Parameters
    ----------
    scale, edge_factor, seed
        As in `lagpu.generators.kronecker`, and so is the result.
    backend : str or Backend
        One with a device: ``"gpu"`` or ``"sim"``.

    Raises
    ------
    InvalidValue, NotSupported
        If a number is out of range, or the backend has no device.
    OutOfMemory
        If the graph does not fit, told at once.
    """
    place = _with_device(backend)
    n, draws = _size("kronecker", place, scale, edge_factor)
    xp = place.device.xp
    rng = xp.random.default_rng(seed)
    label = _labels(xp, rng, n)

    def draw(some: int) -> Array:
        i, j = _quadrants(xp, rng, scale, some)
        return _keys(xp, label[i], label[j])

    return _matrix(place, _drawn(xp, draws, draw), n)


def uniform(scale: int, edge_factor: int = 16, *, seed: int = 1, backend: str | Backend) -> Matrix:
    """Return a uniform random graph made on the backend's device.

    Parameters
    ----------
    scale, edge_factor, seed, backend
        As in `kronecker`, and so are result and errors.
    """
    place = _with_device(backend)
    n, draws = _size("uniform", place, scale, edge_factor)
    xp = place.device.xp
    rng = xp.random.default_rng(seed)

    def draw(some: int) -> Array:
        return _keys(xp, *(rng.integers(0, n, some, np.int32) for _ in range(2)))

    return _matrix(place, _drawn(xp, draws, draw), n)


def kronecker_tuples(xp: Any, scale: int, edge_factor: int, *, seed: int) -> tuple[Array, Array]:
    """Return the raw edge tuples of `kronecker`: self-loops and repeated edges are in.

    Parameters
    ----------
    xp : module
        ``cupy`` or ``numpy``.
    scale, edge_factor, seed
        As in `kronecker`.

    Returns
    -------
    u, v : array of INT32, (edge_factor * 2**scale,)
        Drawn independently of each other and relabelled at random, so that their order means
        nothing.
    """
    n = 1 << scale
    rng = xp.random.default_rng(seed)
    label = _labels(xp, rng, n)
    u, v = (xp.empty(n * edge_factor, np.int32) for _ in range(2))
    for start in range(0, len(u), _CHUNK):
        part = slice(start, min(start + _CHUNK, len(u)))
        i, j = _quadrants(xp, rng, scale, part.stop - start)
        u[part], v[part] = label[i], label[j]
    return u, v


def undirected(u: Array, v: Array, n: int, *, backend: str | Backend) -> Matrix:
    """Return the symmetric BOOL matrix of edges {u, v}, without self-loops and duplicates.

    Parameters
    ----------
    u, v : array of int, (k,)
        Endpoints, on the device.
    n : int
        Number of vertices.
    backend : str or Backend
        One with a device.
    """
    place = _with_device(backend)
    device = place.device
    device.require(_BYTES_PER_EDGE * len(u) + 16 * n, "undirected")
    keys = device.xp.empty(len(u), np.int64)
    for start in range(0, len(u), _CHUNK):
        part = slice(start, start + _CHUNK)
        keys[part] = _keys(device.xp, u[part], v[part])
    return _matrix(place, [keys], n)


def _with_device(backend: str | Backend) -> Backend:
    place = backends.get(backend)
    if place.device is None:
        raise NotSupported(
            f"generate: the {place.name} backend has no device. Use lagpu.generators.kronecker."
        )
    return place


def _size(what: str, place: Any, scale: int, edge_factor: int) -> tuple[int, int]:
    """Return (vertices, edges to draw), once they are known to fit."""
    n = 1 << count(what, "scale", scale, 0, LARGEST_SCALE)
    draws = n * count(what, "edge_factor", edge_factor, 1)
    place.device.require(_BYTES_PER_EDGE * draws + 16 * n, what)
    return n, draws


def _labels(xp: Any, rng: Any, n: int) -> Array:
    """Return a random permutation; CuPy's generator has none."""
    return xp.argsort(rng.random(n)).astype(np.int32)


def _quadrants(xp: Any, rng: Any, scale: int, some: int) -> tuple[Array, Array]:
    """Draw edges: one number a bit of both endpoints tells the quadrant."""
    i, j = (xp.zeros(some, np.int32) for _ in range(2))
    a, ab, abc = (np.float32(limit) for limit in np.cumsum(CHANCES))
    for _ in range(scale):
        draw = rng.random(some, np.float32)
        low = draw >= ab
        i += i
        i |= low
        j += j
        j |= (draw >= a) ^ low ^ (draw >= abc)  # quadrants (0, 1) and (1, 1)
    return i, j


def _keys(xp: Any, u: Array, v: Array) -> Array:
    """Return one INT64 for each edge {u, v}: the larger vertex, then the smaller in 32 bits."""
    keys = xp.maximum(u, v).astype(np.int64)
    keys <<= 32
    keys |= xp.minimum(u, v)
    return keys


def _drawn(xp: Any, draws: int, draw: Callable[[int], Array]) -> list[Array]:
    """Return the keys of so many edges, drawn a chunk at a time, in a list that can be emptied."""
    keys = xp.empty(draws, np.int64)
    for start in range(0, draws, _CHUNK):
        part = keys[start : start + _CHUNK]
        part[:] = draw(len(part))
    return [keys]


def _matrix(place: Backend, box: list[Array], n: int) -> Matrix:
    """Return the matrix of the keys in `box`, which is emptied so that they can be freed."""
    xp = place.device.xp
    keys = box.pop()
    keys.sort()
    keep = (keys >> 32) != (keys & _LOW)
    keep[1:] &= keys[1:] != keys[:-1]
    keys = keys[keep]
    del keep
    edges = len(keys)
    both = xp.empty(2 * edges, np.int64)
    both[:edges] = keys
    both[edges:] = keys & _LOW
    both[edges:] <<= 32
    keys >>= 32
    both[edges:] |= keys
    del keys
    both.sort()
    col_ptr = xp.searchsorted(both, xp.arange(n + 1, dtype=np.int64) << 32)
    both &= _LOW
    rows = both.astype(np.int32)
    del both
    # Each edge is there both ways; to find that out takes much memory.
    data = place.matrix_from_csc(col_ptr, rows, np.True_, BOOL, (n, n), symmetric=True)
    pool = getattr(xp, "get_default_memory_pool", None)
    if pool is not None:  # what sorting took is of no more use
        pool().free_all_blocks()
    return Matrix._of(data, BOOL, (n, n), place, "A")
