"""Random graphs made on a device, which is faster than the host: the same graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.dtypes import BOOL
from lagpu.generators import sizes
from lagpu.generators.edges import Edges, KroneckerEdges, endpoints
from lagpu.generators.sizes import is_on_gpu

__all__ = ["drawn", "is_on_gpu", "kronecker_tuples", "undirected"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device

_CHUNK = 1 << 24  # edges made at a time
_BYTES_PER_EDGE = 48  # keys of both directions, and memory for sorting them
_LOW = 0xFFFFFFFF


def drawn(
    what: str, kind: type[Edges], scale: int, edge_factor: int, seed: int, place: Backend
) -> Matrix:
    """Return a random graph made on the backend's device, which it needs.

    Parameters
    ----------
    what : str
        The generator, for messages.
    kind : type
        Draws the edges.
    scale, edge_factor, seed
        As in `lagpu.generators.kronecker`, and so are result and errors.
    place : Backend
        A backend with a device, sim too.
    """
    with place.device.alone():  # CuPy works on the device of this block
        n, draws = _size(what, place, scale, edge_factor)
        return _matrix(place, [_keys_of(kind(scale, seed, place.device), place, draws)], n)


def kronecker_tuples(
    scale: int, edge_factor: int, seed: int, place: Backend
) -> tuple[Array, Array]:
    """Return what `lagpu.generators.random.kronecker_tuples` returns, on a device."""
    with place.device.alone():
        _, draws = _size("kronecker", place, scale, edge_factor)
        edges = KroneckerEdges(scale, seed, place.device)
        return endpoints(place.device.xp, edges, 0, draws, _CHUNK)


def undirected(u: Array, v: Array, n: int, place: Backend) -> Matrix:
    """Return the symmetric BOOL matrix of edges {u, v}, without self-loops and duplicates.

    Parameters
    ----------
    u, v : array of int, (k,)
        Endpoints, on the device.
    n : int
        Number of vertices.
    place : Backend
        A backend with a device.
    """
    device = place.device
    with device.alone():
        device.require(_BYTES_PER_EDGE * len(u) + 16 * n, "undirected")
        keys = device.xp.empty(len(u), np.int64)
        for start in range(0, len(u), _CHUNK):
            part = slice(start, start + _CHUNK)
            keys[part] = _keys(device.xp, u[part], v[part])
        return _matrix(place, [keys], n)


def _keys_of(edges: Edges, place: Backend, draws: int) -> Array:
    """Return the keys of all edges, drawn in chunks."""
    xp = place.device.xp
    keys = xp.empty(draws, np.int64)
    for start in range(0, draws, _CHUNK):
        part = keys[start : start + _CHUNK]
        part[:] = _keys(xp, *edges(start, len(part)))
    return keys


def _size(what: str, place: Any, scale: int, edge_factor: int) -> tuple[int, int]:
    """Return (vertices, edges to draw), or raise if they do not fit."""
    n, draws = sizes.drawn(what, scale, edge_factor)
    place.device.require(_BYTES_PER_EDGE * draws + 16 * n, what)
    sizes.require_numbers(what, n)
    return n, draws


def _keys(xp: Any, u: Array, v: Array) -> Array:
    """Return one INT64 for each edge {u, v}: the larger vertex, then the smaller in 32 bits."""
    keys = xp.maximum(u, v).astype(np.int64)
    keys <<= 32
    keys |= xp.minimum(u, v)
    return keys


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
