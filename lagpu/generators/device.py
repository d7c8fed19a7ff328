"""Kronecker and uniform graphs made on the device itself, which is faster than the host.

Parameters, sizes and probabilities are those of `lagpu.generators.kronecker` and `uniform`. The
random stream is from the device's library, so the same seed gives another graph than on the host,
and always the same graph with the same library.
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
from lagpu.generators.random import PROBABILITIES
from lagpu.generators.sizes import LARGEST_SCALE, count

__all__ = ["kronecker", "kronecker_tuples", "undirected", "uniform"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device

_CHUNK = 1 << 24  # edges made at a time
_BYTES_PER_EDGE = 48  # keys of both directions, and memory for sorting them
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
        A backend with a device: ``"gpu"`` or ``"sim"``.

    Raises
    ------
    InvalidValue, NotSupported
        If a number is out of range, or the backend has no device.
    OutOfMemory
        If the graph does not fit; raised before anything is allocated.
    """
    place = _with_device(backend)
    n, draws = _size("kronecker", place, scale, edge_factor)
    xp = place.device.xp
    rng = xp.random.default_rng(seed)
    label = _labels(xp, rng, n)

    def draw(edges: int) -> Array:
        i, j = _kronecker_edges(xp, rng, scale, edges)
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

    def draw(edges: int) -> Array:
        return _keys(xp, *(rng.integers(0, n, edges, np.int32) for _ in range(2)))

    return _matrix(place, _drawn(xp, draws, draw), n)


def kronecker_tuples(xp: Any, scale: int, edge_factor: int, *, seed: int) -> tuple[Array, Array]:
    """Return the raw edge tuples of `kronecker`, with self-loops and repeated edges.

    Parameters
    ----------
    xp : module
        ``cupy`` or ``numpy``.
    scale, edge_factor, seed
        As in `kronecker`.

    Returns
    -------
    u, v : array of INT32, (edge_factor * 2**scale,)
        Drawn independently of each other and relabelled at random, so the order has no meaning.
    """
    n = 1 << scale
    rng = xp.random.default_rng(seed)
    label = _labels(xp, rng, n)
    u, v = (xp.empty(n * edge_factor, np.int32) for _ in range(2))
    for start in range(0, len(u), _CHUNK):
        part = slice(start, min(start + _CHUNK, len(u)))
        i, j = _kronecker_edges(xp, rng, scale, part.stop - start)
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
        A backend with a device.
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
    """Return (vertices, edges to draw), or raise if they do not fit."""
    n = 1 << count(what, "scale", scale, 0, LARGEST_SCALE)
    draws = n * count(what, "edge_factor", edge_factor, 1)
    place.device.require(_BYTES_PER_EDGE * draws + 16 * n, what)
    return n, draws


def _labels(xp: Any, rng: Any, n: int) -> Array:
    """Return a random permutation; CuPy's generator has none."""
    return xp.argsort(rng.random(n)).astype(np.int32)


def _kronecker_edges(xp: Any, rng: Any, scale: int, edges: int) -> tuple[Array, Array]:
    """Draw edges: for each bit of both endpoints a random number chooses the quadrant."""
    i, j = (xp.zeros(edges, np.int32) for _ in range(2))
    a, ab, abc = (np.float32(limit) for limit in np.cumsum(PROBABILITIES))
    for _ in range(scale):
        draw = rng.random(edges, np.float32)
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
    """Return the keys of `draws` edges, drawn in chunks, in a list that `_matrix` empties."""
    keys = xp.empty(draws, np.int64)
    for start in range(0, draws, _CHUNK):
        part = keys[start : start + _CHUNK]
        part[:] = draw(len(part))
    return [keys]


def _matrix(place: Backend, owner: list[Array], n: int) -> Matrix:
    """Return the matrix of the keys in `owner`, which is emptied so that they can be freed."""
    xp = place.device.xp
    keys = owner.pop()
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
    # symmetric=True is known here; testing it would take much memory.
    data = place.matrix_from_csc(col_ptr, rows, np.True_, BOOL, (n, n), symmetric=True)
    pool = getattr(xp, "get_default_memory_pool", None)
    if pool is not None:  # free the memory of sorting
        pool().free_all_blocks()
    return Matrix._of(data, BOOL, (n, n), place, "A")
