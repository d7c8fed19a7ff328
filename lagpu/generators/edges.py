"""The edges of random graphs by number, drawn in any parts, and their graphs on pieces and GPUs."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lagpu import backends
from lagpu.backends.protocol import Backend, Parts, require_alike
from lagpu.core import Matrix
from lagpu.dtypes import BOOL
from lagpu.errors import InvalidValue, NotSupported
from lagpu.host import columns, memory
from lagpu.host.columns import Entries, Permutation
from lagpu.io.arrays import is_on_gpu

Array = Any  # numpy.ndarray or cupy.ndarray, by the device

LARGEST_SCALE = 31  # vertices are numbered in 32 bits
_ROUNDS = 4
_LABELS = 1 << 32  # the stream of the numbers of `labels`; edges have the streams below


def key(seed: int) -> Array:
    """Return the key of a seed, (2,), UINT64: NumPy mixes its bits."""
    return np.random.SeedSequence(seed).generate_state(2, np.uint64)


def words(device: Any, key: Array, stream: int, first: int, count: int) -> Array:
    """Return the numbers ``first .. first + count - 1`` of a stream, (count,), UINT32."""
    # They are made on a device, or on the host for None; `key` is from the function `key`.
    if device is not None:
        return device.random_words(key, stream, first, count)
    block, skipped = divmod(first, 8)
    generator = np.random.Philox(key=key, counter=[block, stream, 0, 0])
    blocks = -(-(skipped + count) // 8)
    return generator.random_raw(4 * blocks).view(np.uint32)[skipped : skipped + count]


def labels(key: Array, bits: int) -> Permutation:
    """Return a random permutation of ``0 .. 2**bits - 1``, for at most 32 bits."""
    added = words(None, key, _LABELS, 0, _ROUNDS)
    times = words(None, key, _LABELS + 1, 0, _ROUNDS) | np.uint32(1)
    return Permutation(bits, added.tolist(), times.tolist())


# Graph500: the probabilities of the quadrants (0, 0), (0, 1), (1, 0); the rest is for (1, 1).
PROBABILITIES = (0.57, 0.19, 0.19)
_LIMITS = tuple(np.uint32(round(limit * 2**32)) for limit in np.cumsum(PROBABILITIES).tolist())


class Edges:
    """The edges of a random graph of ``2**scale`` vertices, self-loops and repeated ones included.

    The same seed gives the same edges; they are drawn on a device, or on the host for None.
    """

    def __init__(self, scale: int, seed: int, device: Any = None) -> None:
        self._scale, self._key, self._device = operator.index(scale), key(seed), device

    def __call__(self, first: int, count: int) -> tuple[Array, Array]:
        """Return both endpoints of some edges, (count,), INT32."""
        raise NotImplementedError


class KroneckerEdges(Edges):
    """The edges of `lagpu.generators.kronecker`.

    Number e of stream b chooses the quadrant of edge e at bit b of its endpoints, counted from the
    highest; the endpoints are then relabelled by `lagpu.generators.edges.labels`.
    """

    def __init__(self, scale: int, seed: int, device: Any = None) -> None:
        super().__init__(scale, seed, device)
        self._labels = labels(self._key, self._scale)

    def __call__(self, first: int, count: int) -> tuple[Array, Array]:
        """Return both endpoints of some edges, (count,), INT32."""
        u, v = (self._labels.forward(x).view(np.int32) for x in self.unlabelled(first, count))
        return u, v

    def unlabelled(self, first: int, count: int) -> tuple[Array, Array]:
        """Return both endpoints as they are drawn, (count,), UINT32; vertex 0 has most edges."""
        xp = np if self._device is None else self._device.xp
        i, j = (xp.zeros(count, np.uint32) for _ in range(2))
        for begin in range(0, self._scale, 8):  # eight bits at a time, in one byte
            width = min(8, self._scale - begin)
            row, col = (xp.zeros(count, np.uint8) for _ in range(2))
            for bit in range(begin, begin + width):
                draw = words(self._device, self._key, bit, first, count)
                not_a, low, d = ((draw >= limit).view(np.uint8) for limit in _LIMITS)
                row += row
                row |= low
                col += col
                col |= not_a ^ low ^ d  # quadrants (0, 1) and (1, 1)
            i, j = (i << width) | row, (j << width) | col
        return i, j


class UniformEdges(Edges):
    """The edges of `lagpu.generators.uniform`.

    The highest bits of number e of the streams 0 and 1 are the endpoints of edge e.
    """

    def __call__(self, first: int, count: int) -> tuple[Array, Array]:
        """Return both endpoints of some edges, (count,), INT32."""
        u, v = (words(self._device, self._key, k, first, count) for k in (0, 1))
        for draw in (u, v):
            draw >>= 31 - self._scale  # in two steps: no shift takes all 32 bits away
            draw >>= 1
        return u.view(np.int32), v.view(np.int32)


def endpoints(xp: Any, edges: Edges, first: int, count: int, chunk: int) -> tuple[Array, Array]:
    """Return both endpoints of some edges, (count,), INT32, drawn `chunk` at a time."""
    u, v = (xp.empty(count, np.int32) for _ in range(2))
    for start in range(0, count, chunk):
        part = slice(start, min(start + chunk, count))
        u[part], v[part] = edges(first + start, part.stop - start)
    return u, v


def both_ways(u: Array, v: Array) -> Iterator[Entries]:
    """Yield edges {u, v} in each direction: rows, columns, and which are not self-loops."""
    apart = u != v
    yield u, v, apart
    yield v, u, apart


def count(what: str, name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a number of the caller as an int, or raise if it is not whole or out of range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidValue(f"{what}: {name} {value!r} is not a whole number.") from None
    if number < least or (most is not None and number > most):
        limit = f">= {least}" if most is None else f"in {least} .. {most}"
        raise InvalidValue(f"{what}: {name} {number} is not {limit}.")
    return number


def require(
    what: str, n: int, edges: int, extra: int = 0, backend: str | Backend | None = "cpu"
) -> None:
    """Raise if a graph of `n` vertices and at most `edges` edges, each stored twice, cannot fit."""
    # On a grid every process makes the whole, so all are asked before one of them begins.
    nbytes = 24 * edges + 60 * n + extra  # the peak, measured
    require_of_pieces(backends.get(backend), what, n, nbytes)


@dataclass(frozen=True)
class _OneDevice:
    """A backend of one device as the parts of a grid of one piece, which has everything."""

    homes: tuple[Backend]
    count: int = 1
    beside: int = 1
    dims: tuple[Any, ...] = ()
    n: int = 0

    def gather(self, work: Callable[[Backend, int], Any]) -> list[Any]:
        """See `Parts`."""
        return [work(self.homes[0], 0)]

    def position(self, i: Array, j: Array) -> tuple[Array, Array]:
        """See the layout of a grid."""
        return i, j

    def shape(self, _piece: int) -> tuple[int, int]:
        """See the layout of a grid."""
        return self.n, self.n

    def matrix(self, part: Any, _dtype: Any, shape: tuple[int, int], **_how: bool) -> Any:
        """See `Parts`."""
        (home,) = self.homes
        made = part(home, replace(self, n=shape[0]), 0)
        pool = getattr(home.device.xp, "get_default_memory_pool", None)
        if pool is not None:  # free the memory of sorting
            with home.device.lock, home.device.entered():
                pool().free_all_blocks()
        return made


def parts_of(place: Backend) -> Any:
    """Return the `Parts` of a grid, or one device as such."""
    return place.capabilities.parts or _OneDevice((place,))


def require_of_pieces(
    grid: Backend, what: str, n: int, whole: int = 0,
    of_piece: Callable[[Any, int], tuple[int, int]] | None = None,
) -> None:  # fmt: skip
    """Ask for the memory of n vertices in all processes of a grid before one of them takes any."""
    # Every process calls this. Each takes `whole` bytes on the host, whatever its pieces, and
    # ``of_piece(device, piece)`` returns the bytes that are taken while a part is made, one after
    # the other, and how many of them stay; `device` is that of a GPU, or None for the host. If a
    # process or its device has not so much, every process raises `OutOfMemory` with the number of
    # that one; then `NotSupported` if there are more vertices than numbers for them.
    parts = parts_of(grid)
    processes = parts.beside // len(parts.homes)
    left, most, kept = len(parts.homes), 0, whole

    def ask(home: Backend, piece: int) -> tuple[()]:
        nonlocal left, most, kept
        device = home.device if is_on_gpu(home) else None
        taken, stay = (0, 0) if of_piece is None else of_piece(device, piece)
        if device is None:
            most, kept = max(most, taken - stay), kept + stay
        else:
            device.require(taken, what)
        left -= 1
        if not left and most + kept:  # the last one of this process
            memory.require(most + kept, what, processes=processes)
        return ()

    parts.gather(ask)
    if n > 2**LARGEST_SCALE:
        raise NotSupported(f"{what}: {n} vertices > 2**31. Make a smaller graph.")


def size_of(what: str, scale: int, edge_factor: int, *, alone: bool = True) -> tuple[int, int]:
    """Return (vertices, edges to draw) of a random graph, `alone` if on one device."""
    # The caller checks the memory: one device beyond LARGEST_SCALE should raise OutOfMemory.
    n = 2 ** count(what, "scale", scale, 0, 60 if alone else LARGEST_SCALE)
    return n, n * count(what, "edge_factor", edge_factor, 1)


# ---- Graphs of such edges, made part by part on the pieces of a grid, or whole on one device.
#
# On a grid no process and no device has the whole. Of a random graph each piece draws every edge,
# some at a time, and keeps the entries that it owns: nothing is sent. The GPUs of one process draw
# a share of the edges each instead, and copy the others' tuples, some at a time. Tuples that pieces
# have already are seen so too, or else sent to the owners of their entries.


_CHUNK_ON_HOST, _CHUNK_ON_GPU = 1 << 16, 1 << 24  # edges at a time
_BYTES_PER_ENTRY = 40  # of a part of tuples: as they are sent and received, and their keys
_BYTES_KEPT = 8  # of an entry, once the part is made
_BYTES_PER_DRAWN = 100  # of the edges at a time
_BYTES_PER_VERTEX = 24  # of a device: pointers, as they are made and joined


def drawn(
    what: str, kind: type[Edges], scale: int, edge_factor: int, seed: int, grid: Backend
) -> Matrix:
    """Return a random graph on a grid, or on a backend of one device."""
    # The edges are drawn by `kind`; result and errors are those of `lagpu.generators.kronecker`.
    n, draws = size_of(what, scale, edge_factor, alone=grid.capabilities.parts is None)
    require_alike(grid, what, scale=scale, edge_factor=edge_factor, seed=seed)
    parts = parts_of(grid)
    gpus = _gpus(parts)
    entries = 2 * draws // parts.count

    def keeps_tuples(gpu: Any) -> bool:
        """Whether edges are seen more than once, and a GPU had better keep those that it draws."""
        free, kept = _free(gpu, draws, n // parts.count), 8 * draws * gpus.count(gpu) // len(gpus)
        again = len(gpus) > 1 or columns.shares_for(entries, free) > 1
        return again and columns.keeps(entries, free, kept)

    if gpus and all(map(keeps_tuples, gpus)):
        tuples = _tuples(what, kind, scale, seed, draws, grid)
        return _of_edges(what, lambda to: _seen(tuples, gpus, to), draws, n, grid)

    def edges(device: Any) -> Iterator[tuple[Array, Array]]:
        draw, chunk = kind(scale, seed, device), _chunk(device)
        return (draw(at, min(chunk, draws - at)) for at in range(0, draws, chunk))

    return _of_edges(what, edges, draws, n, grid)


def _of_edges(
    what: str, edges: Callable[[Any], Iterator[tuple[Array, Array]]], total: int, n: int,
    grid: Backend,
) -> Matrix:  # fmt: skip
    """Return the undirected graph of edges which each piece sees all of, and keeps its own."""
    # `edges` yields their endpoints, some at a time, on a device, or on the host for None.
    parts = parts_of(grid)
    entries, ncols = 2 * total // parts.count, n // parts.count

    def shares(device: Any) -> int:
        """Return those of a piece's columns; to see all again would take the host too long."""
        return 1 if device is None else columns.shares_for(entries, _free(device, total, ncols))

    def of_piece(device: Any, _piece: int) -> tuple[int, int]:
        sorting = columns.bytes_of(entries, shares(device))
        return sorting + _beside(device, total, ncols), _BYTES_KEPT * entries

    def part(home: Backend, layout: Any, piece: int) -> Any:
        # Those that are shuffled are computed on the host.
        device = _gpu(home) if all(by.rises for by in layout.dims) else None
        xp = np if device is None else device.xp

        def entries_of_piece() -> Iterator[Entries]:
            for ends in edges(device):
                for i, j, there in both_ways(*ends):
                    own = there if alone else there & (layout.owner(i, j) == piece)
                    yield *layout.position(i, j), own

        lock, entered = (
            (on_host, nullcontext()) if device is None else (device.lock, device.entered())
        )
        with lock, entered:
            return _part(xp, home, entries_of_piece, layout.shape(piece), shares(device), alone)

    alone = True if grid.capabilities.parts is None else None
    on_host = threading.Lock()  # which is asked for the memory of one piece at a time
    require_of_pieces(grid, what, n, of_piece=of_piece)
    return _matrix(part, n, grid)


def kronecker_tuples(
    scale: int, edge_factor: int, seed: int, grid: Backend
) -> dict[int, tuple[Array, Array]]:
    """Return, by the number of each local piece, its share of the tuples of `kronecker`, INT32."""
    # These are the edges before self-loops and repeated ones are dropped. A share is a run of them,
    # on the piece's GPU if it has one, else on the host; a backend without pieces is piece 0.
    _, draws = size_of("kronecker", scale, edge_factor, alone=grid.capabilities.parts is None)
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
        lock, entered = (
            (nullcontext(), nullcontext()) if device is None else (device.lock, device.entered())
        )
        with lock, entered:
            edges = kind(scale, seed, device)
            xp = np if device is None else device.xp
            shares[piece] = endpoints(xp, edges, first, last - first, max(chunk, 1))
        return ()

    require_of_pieces(grid, what, 2**scale, of_piece=of_piece)
    parts.gather(draw)
    for device in filter(None, map(_gpu, parts.homes)):
        with device.lock, device.entered():
            device.synchronize()  # copies from it may use another stream
    return shares


def undirected(tuples: Mapping[int, tuple[Array, Array]], n: int, grid: Backend) -> Matrix:
    """Return the symmetric BOOL matrix of edges {u, v}, without self-loops and duplicates."""
    # `tuples` has the endpoints of each local piece, (k,), INT32, by its number.
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
    require_of_pieces(grid, "undirected", n, 2 * total * _BYTES_PER_ENTRY)
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
        gpu = gpus[piece]
        for at in range(0, len(pair[0]), chunk):
            u, v = (of[at : at + chunk] for of in pair)
            if to is None:
                with gpu.lock, gpu.entered():  # the part is made on the host, with no device's lock
                    u, v = gpu.to_host(u), gpu.to_host(v)
            elif len(gpus) > 1:
                u, v = to.fetched(u, gpu), to.fetched(v, gpu)
            yield u, v


def _matrix(part: Any, n: int, grid: Backend) -> Matrix:
    """Return the undirected graph whose parts a function returns."""
    data = parts_of(grid).matrix(part, BOOL, (n, n), symmetric=True, apart=True)
    return Matrix._of(data, BOOL, (n, n), grid, "A")


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
    xp: Any, home: Backend, entries: Callable[[], Iterable[Entries]], shape: tuple[int, int],
    shares: int = 1, symmetric: bool | None = None,
) -> Any:  # fmt: skip
    """Return the handle of a part of entries by position; see `sorted_columns`."""
    col_ptr, rows = columns.sorted_columns(xp, entries, columns.even_ends(shape[1], shares))
    return home.matrix_from_csc(col_ptr, rows, np.True_, BOOL, shape, symmetric=symmetric)
