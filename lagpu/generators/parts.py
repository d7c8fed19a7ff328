"""Graphs made part by part on the pieces of a grid, or whole on one device.

On a grid no process and no device has the whole.

Of a random graph each piece draws every edge, some at a time, and keeps the entries that it owns:
nothing is sent. The GPUs of one process draw a share of the edges each instead, and copy the
others' tuples, some at a time. Tuples that pieces have already are seen so too, or else sent to the
owners of their entries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from lagpu.backends.processes import require_alike
from lagpu.backends.protocol import Backend, Parts
from lagpu.core import Matrix
from lagpu.dtypes import BOOL
from lagpu.generators import edges as drawing
from lagpu.generators.edges import (
    Edges,
    KroneckerEdges,
    is_on_gpu,
    parts_of,
    require_of_pieces,
)
from lagpu.host.columns import Entries, bytes_of, even_ends, keeps, shares_for, sorted_columns

Array = Any  # numpy.ndarray or cupy.ndarray, by the device

_CHUNK_ON_HOST, _CHUNK_ON_GPU = 1 << 16, 1 << 24  # edges at a time
_BYTES_PER_ENTRY = 40  # of a part of tuples: as they are sent and received, and their keys
_BYTES_KEPT = 8  # of an entry, once the part is made
_BYTES_PER_DRAWN = 100  # of the edges at a time
_BYTES_PER_VERTEX = 24  # of a device: pointers, as they are made and joined


def drawn(
    what: str, kind: type[Edges], scale: int, edge_factor: int, seed: int, grid: Backend
) -> Matrix:
    """Return a random graph on a grid, or on a backend of one device.

    The edges are drawn by `kind`; result and errors are those of `lagpu.generators.kronecker`.
    """
    n, draws = _size_of(what, scale, edge_factor, grid)
    require_alike(grid, what, scale=scale, edge_factor=edge_factor, seed=seed)
    parts = parts_of(grid)
    gpus = _gpus(parts)
    entries = 2 * draws // parts.count

    def keeps_tuples(gpu: Any) -> bool:
        """Whether edges are seen more than once, and a GPU had better keep those that it draws."""
        free, kept = _free(gpu, draws, n // parts.count), 8 * draws * gpus.count(gpu) // len(gpus)
        return (len(gpus) > 1 or shares_for(entries, free) > 1) and keeps(entries, free, kept)

    if gpus and all(map(keeps_tuples, gpus)):
        tuples = _tuples(what, kind, scale, seed, draws, grid)
        return _of_edges(what, lambda to: _seen(tuples, gpus, to), draws, n, grid)

    def edges(device: Any) -> Iterator[tuple[Array, Array]]:
        draw, chunk = kind(scale, seed, device), _chunk(device)
        return (draw(at, min(chunk, draws - at)) for at in range(0, draws, chunk))

    return _of_edges(what, edges, draws, n, grid)


def _of_edges(
    what: str,
    edges: Callable[[Any], Iterator[tuple[Array, Array]]],
    total: int,
    n: int,
    grid: Backend,
) -> Matrix:
    """Return the undirected graph of edges which each piece sees all of, and keeps its own.

    `edges` yields their endpoints, some at a time, on a device, or on the host for None.
    """
    parts = parts_of(grid)
    entries, ncols = 2 * total // parts.count, n // parts.count

    def shares(device: Any) -> int:
        """Return those of a piece's columns; to see all again would take the host too long."""
        return 1 if device is None else shares_for(entries, _free(device, total, ncols))

    def of_piece(device: Any, _piece: int) -> tuple[int, int]:
        sorting = bytes_of(entries, shares(device))
        return sorting + _beside(device, total, ncols), _BYTES_KEPT * entries

    def part(home: Backend, layout: Any, piece: int) -> Any:
        shuffled = not all(by.rises for by in layout.dims)  # computed on the host
        device = None if shuffled else _gpu(home)
        xp = np if device is None else device.xp

        def own() -> Iterator[Entries]:
            for ends in edges(device):
                for i, j, there in drawing.both_ways(*ends):
                    yield *layout.position(i, j), there & (layout.owner(i, j) == piece)

        with on_host if device is None else device.alone():
            return _part(xp, home, own, layout.shape(piece), shares(device), alone)

    alone = True if grid.capabilities.parts is None else None
    on_host = threading.Lock()  # which is asked for the memory of one piece at a time
    require_of_pieces(grid, what, of_piece=of_piece)
    drawing.require_numbers(what, n)
    return _matrix(part, n, grid)


def kronecker_tuples(
    scale: int, edge_factor: int, seed: int, grid: Backend
) -> dict[int, tuple[Array, Array]]:
    """Return, by the number of each local piece, its share of `random.kronecker_tuples`.

    A share is a run of the tuples, INT32, on the piece's GPU if it has one, else on the host.
    """
    _, draws = _size_of("kronecker", scale, edge_factor, grid)
    require_alike(grid, "kronecker", scale=scale, edge_factor=edge_factor, seed=seed)
    return _tuples("kronecker", KroneckerEdges, scale, seed, draws, grid)


def _tuples(
    what: str, kind: type[Edges], scale: int, seed: int, draws: int, grid: Backend
) -> dict[int, tuple[Array, Array]]:
    """Return, by the number of each local piece, the endpoints of its share of the edges."""
    parts, shares = parts_of(grid), {}

    def share(piece: int) -> tuple[int, int]:
        return draws * piece // parts.count, draws * (piece + 1) // parts.count

    def of_piece(device: Any, piece: int) -> tuple[int, int]:
        first, last = share(piece)
        own = 8 * (last - first)
        return own + _beside(device, last - first), own

    def draw(home: Backend, piece: int) -> tuple[()]:
        first, last = share(piece)
        device = _gpu(home)
        chunk = min(last - first, _chunk(device))
        with nullcontext() if device is None else device.alone():
            edges = kind(scale, seed, device)
            xp = np if device is None else device.xp
            shares[piece] = drawing.endpoints(xp, edges, first, last - first, max(chunk, 1))
        return ()

    require_of_pieces(grid, what, of_piece=of_piece)
    drawing.require_numbers(what, 2**scale)
    parts.gather(draw)
    for device in filter(None, map(_gpu, parts.homes)):
        with device.alone():
            device.synchronize()  # copies from it may use another stream
    return shares


def undirected(tuples: Mapping[int, tuple[Array, Array]], n: int, grid: Backend) -> Matrix:
    """Return the symmetric BOOL matrix of edges {u, v}, without self-loops and duplicates.

    `tuples` has the endpoints of each local piece, (k,), INT32, by its number.
    """
    parts = parts_of(grid)
    gpus, total = _gpus(parts), sum(len(u) for u, _ in tuples.values())
    if gpus:
        return _of_edges("undirected", lambda to: _seen(tuples, gpus, to), total, n, grid)

    def entries(home: Backend, piece: int) -> tuple[Array, Array]:
        device = _gpu(home)
        u, v = tuples[piece] if device is None else map(device.to_host, tuples[piece])
        u, v = u[u != v], v[u != v]
        return np.concatenate((u, v)), np.concatenate((v, u))

    # On the host, wherever the pieces are.
    require_of_pieces(grid, "undirected", 2 * total * _BYTES_PER_ENTRY)
    own = parts.owned(entries, (n, n))

    def part(home: Backend, layout: Any, piece: int) -> Any:
        i, j = own.pop(piece)[:2]
        return _part(np, home, lambda: [(i, j, True)], layout.shape(piece))

    return _matrix(part, n, grid)


def _seen(
    tuples: Mapping[int, tuple[Array, Array]], gpus: Sequence[Any], to: Any
) -> Iterator[tuple[Array, Array]]:
    """Yield the tuples of all GPUs, some at a time, on one of them, or on the host for None."""
    chunk = _chunk(to)
    for piece, pair in tuples.items():
        for at in range(0, len(pair[0]), chunk):
            u, v = (of[at : at + chunk] for of in pair)
            if to is not None and len(gpus) == 1:
                yield u, v
                continue
            if to is not None:
                yield to.fetched(u, gpus[piece]), to.fetched(v, gpus[piece])
                continue
            with gpus[piece].alone():  # the part is made on the host, with no device's lock
                u, v = gpus[piece].to_host(u), gpus[piece].to_host(v)
            yield u, v


def _matrix(part: Any, n: int, grid: Backend) -> Matrix:
    """Return the undirected graph whose parts a function returns."""
    parts = parts_of(grid)
    data = parts.matrix(part, BOOL, (n, n), symmetric=True, apart=True)
    return Matrix._of(data, BOOL, (n, n), grid, "A")


def _size_of(what: str, scale: int, edge_factor: int, grid: Backend) -> tuple[int, int]:
    """Return (vertices, edges to draw); one device says first that they do not fit."""
    alone = grid.capabilities.parts is None
    return drawing.size_of(what, scale, edge_factor, 60 if alone else drawing.LARGEST_SCALE)


def _gpus(parts: Parts) -> list[Any]:
    """Return the GPUs of all pieces, if these are in this process and each has one; else none."""
    gpus = [_gpu(home) for home in parts.homes]
    return gpus if len(gpus) == parts.count and all(gpus) else []


def _gpu(home: Backend) -> Any:
    """Return the GPU of a piece, or None."""
    return home.device if is_on_gpu(home) else None


def _chunk(device: Any) -> int:
    return _CHUNK_ON_HOST if device is None else _CHUNK_ON_GPU


def _beside(device: Any, edges: int, ncols: int = 0) -> int:
    """Return the bytes that the edges at a time take, and on a device the columns of a part."""
    pointers = 0 if device is None else _BYTES_PER_VERTEX * ncols
    return _BYTES_PER_DRAWN * min(edges, _chunk(device)) + pointers


def _free(device: Any, edges: int, ncols: int) -> int:
    """Return the bytes that are free for all else on a GPU."""
    return int(device.free_bytes()) - _beside(device, edges, ncols)


def _part(
    xp: Any,
    home: Backend,
    entries: Callable[[], Iterable[Entries]],
    shape: tuple[int, int],
    shares: int = 1,
    symmetric: bool | None = None,
) -> Any:
    """Return the handle of a part of entries by position; see `sorted_columns`."""
    col_ptr, rows = sorted_columns(xp, entries, even_ends(shape[1], shares))
    return home.matrix_from_csc(col_ptr, rows, np.True_, BOOL, shape, symmetric=symmetric)
