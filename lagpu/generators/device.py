"""Random graphs made on a device, which is faster than the host: the same graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.dtypes import BOOL
from lagpu.generators.edges import (
    Edges,
    KroneckerEdges,
    both_ways,
    endpoints,
    require_numbers,
    size_of,
)
from lagpu.host.columns import Entries, bytes_of, even_ends, keeps, shares_for, sorted_columns

Array = Any  # numpy.ndarray or cupy.ndarray, by the device

_CHUNK = 1 << 24  # edges made at a time
_BYTES_PER_DRAWN = 100  # of these
_BYTES_PER_VERTEX = 24  # pointers, as they are made and joined


def drawn(
    what: str, kind: type[Edges], scale: int, edge_factor: int, seed: int, place: Backend
) -> Matrix:
    """Return a random graph made on the backend's device, which it needs.

    The edges are drawn by `kind`; result and errors are those of `lagpu.generators.kronecker`.
    """
    n, draws = size_of(what, scale, edge_factor)
    with place.device.alone():  # CuPy works on the device of this block
        shares = _shares(what, place.device, draws, n)
        require_numbers(what, n)
        edges = kind(scale, seed, place.device)
        free = place.device.free_bytes() - _beside(draws, n)
        if shares > 1 and keeps(2 * draws, free, 8 * draws):
            return undirected(*endpoints(place.device.xp, edges, 0, draws, _CHUNK), n, place)
        return _matrix(place, edges, draws, n, shares)


def kronecker_tuples(
    scale: int, edge_factor: int, seed: int, place: Backend
) -> tuple[Array, Array]:
    """Return what `lagpu.generators.graphs.kronecker_tuples` returns, on a device."""
    n, draws = size_of("kronecker", scale, edge_factor)
    with place.device.alone():
        place.device.require(8 * draws + _BYTES_PER_DRAWN * min(draws, _CHUNK), "kronecker")
        require_numbers("kronecker", n)
        edges = KroneckerEdges(scale, seed, place.device)
        return endpoints(place.device.xp, edges, 0, draws, _CHUNK)


def undirected(u: Array, v: Array, n: int, place: Backend) -> Matrix:
    """Return the symmetric BOOL matrix of edges {u, v}, without self-loops and duplicates.

    The endpoints, (k,), are on the device.
    """
    with place.device.alone():
        shares = _shares("undirected", place.device, len(u), n)
        return _matrix(place, lambda at, k: (u[at : at + k], v[at : at + k]), len(u), n, shares)


def _shares(what: str, device: Any, draws: int, n: int) -> int:
    """Return the shares in which a graph's columns are made, or raise if it does not fit."""
    beside = _beside(draws, n)
    shares = shares_for(2 * draws, device.free_bytes() - beside)
    device.require(bytes_of(2 * draws, shares) + beside, what)
    return shares


def _beside(draws: int, n: int) -> int:
    """Return the bytes beside those of entries: of the edges at a time, and of vertices."""
    return _BYTES_PER_VERTEX * n + _BYTES_PER_DRAWN * min(draws, _CHUNK)


def _matrix(
    place: Backend,
    edges: Callable[[int, int], tuple[Array, Array]],
    draws: int,
    n: int,
    shares: int,
) -> Matrix:
    """Return the matrix of edges that a function draws, so many from a number on."""
    xp = place.device.xp

    def drawn() -> Iterator[Entries]:
        for start in range(0, draws, _CHUNK):
            yield from both_ways(*edges(start, min(_CHUNK, draws - start)))

    col_ptr, rows = sorted_columns(xp, drawn, even_ends(n, shares))
    # symmetric=True is known here; testing it would take much memory.
    data = place.matrix_from_csc(col_ptr, rows, np.True_, BOOL, (n, n), symmetric=True)
    pool = getattr(xp, "get_default_memory_pool", None)
    if pool is not None:  # free the memory of sorting
        pool().free_all_blocks()
    return Matrix._of(data, BOOL, (n, n), place, "A")
