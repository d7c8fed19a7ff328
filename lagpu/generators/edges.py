"""The edges of random graphs by number, drawn in any parts, and the memory that graphs need."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lagpu import backends
from lagpu.backends.protocol import Backend
from lagpu.errors import InvalidValue, NotSupported
from lagpu.host import columns, memory

Array = Any  # numpy.ndarray or cupy.ndarray, by the device

LARGEST_SCALE = 31  # vertices are numbered in 32 bits
_ROUNDS = 4
_LABELS = 1 << 32  # the stream of the numbers of `labels`; edges have the streams below


def key(seed: int) -> Array:
    """Return the key of a seed, (2,), UINT64: NumPy mixes its bits."""
    return np.random.SeedSequence(seed).generate_state(2, np.uint64)


def words(device: Any, key: Array, stream: int, first: int, count: int) -> Array:
    """Return the numbers ``first .. first + count - 1`` of a stream, (count,), UINT32.

    They are made on a device, or on the host for None; `key` is from the function `key`.
    """
    if device is not None:
        return device.random_words(key, stream, first, count)
    block, skipped = divmod(first, 8)
    generator = np.random.Philox(key=key, counter=[block, stream, 0, 0])
    blocks = -(-(skipped + count) // 8)
    return generator.random_raw(4 * blocks).view(np.uint32)[skipped : skipped + count]


def labels(key: Array, bits: int) -> columns.Permutation:
    """Return a random permutation of ``0 .. 2**bits - 1``, for at most 32 bits."""
    added = words(None, key, _LABELS, 0, _ROUNDS)
    times = words(None, key, _LABELS + 1, 0, _ROUNDS) | np.uint32(1)
    return columns.Permutation(bits, added.tolist(), times.tolist())


# Graph500: the probabilities of the quadrants (0, 0), (0, 1), (1, 0); the rest is for (1, 1).
PROBABILITIES = (0.57, 0.19, 0.19)
_LIMITS = tuple(np.uint32(round(limit * 2**32)) for limit in np.cumsum(PROBABILITIES).tolist())


class Edges:
    """The edges of a random graph of ``2**scale`` vertices, self-loops and repeated ones included.

    The same seed gives the same edges; they are drawn on a device, or on the host for None.
    """

    def __init__(self, scale: int, seed: int, device: Any = None) -> None:
        self._scale, self._key, self._device = scale, key(seed), device

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
        self._labels = labels(self._key, scale)

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


def both_ways(u: Array, v: Array) -> Iterator[columns.Entries]:
    """Yield edges {u, v} in each direction: rows, columns, and which are no self-loops."""
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


def is_on_gpu(place: Backend) -> bool:
    """Return True for a backend whose arrays are on a GPU; sim has them on the host."""
    return place.device is not None and place.device.xp is not np


def require(
    what: str, n: int, edges: int, extra: int = 0, backend: str | Backend | None = "cpu"
) -> None:
    """Raise if a graph of `n` vertices and at most `edges` edges, each stored twice, cannot fit.

    On a grid every process makes the whole, so all are asked before one of them begins.
    """
    nbytes, place = 24 * edges + 60 * n + extra, backends.get(backend)  # the peak, measured
    if place.capabilities.parts is None:
        memory.require(nbytes, what)
    else:
        require_of_pieces(place, what, nbytes)
    require_numbers(what, n)


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

    def owner(self, _i: Array, _j: Array) -> int:
        """See the layout of a grid."""
        return 0

    def shape(self, _piece: int) -> tuple[int, int]:
        """See the layout of a grid."""
        return self.n, self.n

    def matrix(self, part: Any, _dtype: Any, shape: tuple[int, int], **_how: bool) -> Any:
        """See `Parts`."""
        (home,) = self.homes
        made = part(home, replace(self, n=shape[0]), 0)
        pool = getattr(home.device.xp, "get_default_memory_pool", None)
        if pool is not None:  # free the memory of sorting
            with home.device.alone():
                pool().free_all_blocks()
        return made


def parts_of(place: Backend) -> Any:
    """Return the `Parts` of a grid, or one device as such."""
    return place.capabilities.parts or _OneDevice((place,))


def require_of_pieces(
    grid: Backend,
    what: str,
    whole: int = 0,
    of_piece: Callable[[Any, int], tuple[int, int]] | None = None,
) -> None:
    """Ask for memory in all processes of a grid before one of them takes any.

    Every process calls this. Each takes `whole` bytes on the host, whatever its pieces, and
    ``of_piece(device, piece)`` returns the bytes that are taken while a part is made, one after the
    other, and how many of them stay; `device` is that of a GPU, or None for the host. If a process
    or its device has not so much, every process raises `OutOfMemory` with the number of that one.
    """
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


def size_of(what: str, scale: int, edge_factor: int, most: int = 60) -> tuple[int, int]:
    """Return (vertices, edges to draw) of a random graph of a scale up to `most`.

    The caller checks the memory: beyond LARGEST_SCALE the error should be OutOfMemory.
    """
    n = 2 ** count(what, "scale", scale, 0, most)
    return n, n * count(what, "edge_factor", edge_factor, 1)


def require_numbers(what: str, n: int) -> None:
    """Raise if there are more vertices than numbers for them."""
    if n > 2**LARGEST_SCALE:
        raise NotSupported(f"{what}: {n} vertices > 2**31. Make a smaller graph.")
