"""The edges of random graphs by number: any part can be drawn alone, on the host or on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from lagpu.generators.stream import key, labels, words
from lagpu.host.columns import Entries

Array = Any  # numpy.ndarray or cupy.ndarray, by the device

# Graph500: the probabilities of the quadrants (0, 0), (0, 1), (1, 0); the rest is for (1, 1).
PROBABILITIES = (0.57, 0.19, 0.19)
_LIMITS = tuple(np.uint32(round(limit * 2**32)) for limit in np.cumsum(PROBABILITIES).tolist())


class Edges(Protocol):
    """The edges of a random graph; see `KroneckerEdges`."""

    def __init__(self, scale: int, seed: int, device: Any = None) -> None: ...

    def __call__(self, first: int, count: int) -> tuple[Array, Array]:
        """Return both endpoints of some edges, (count,), INT32."""


class KroneckerEdges:
    """The edges of `lagpu.generators.kronecker`, self-loops and repeated ones included.

    Number e of stream b chooses the quadrant of edge e at bit b of its endpoints, counted from the
    highest; the endpoints are then relabelled by `lagpu.generators.stream.labels`.

    Parameters
    ----------
    scale : int
        There are ``2**scale`` vertices.
    seed : int
        The same seed gives the same edges.
    device : Device, optional
        Where they are drawn; by default on the host.
    """

    def __init__(self, scale: int, seed: int, device: Any = None) -> None:
        self._scale = scale
        self._key = key(seed)
        self._labels = labels(self._key, scale)
        self._device = device

    def __call__(self, first: int, count: int) -> tuple[Array, Array]:
        """Return both endpoints of some edges, (count,), INT32."""
        ends = self.unlabelled(first, count)
        u, v = (self._labels.forward(x).view(np.int32) for x in ends)
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


class UniformEdges:
    """The edges of `lagpu.generators.uniform`, self-loops and repeated ones included.

    The highest bits of number e of the streams 0 and 1 are the endpoints of edge e.

    Parameters
    ----------
    scale, seed, device
        As of `KroneckerEdges`.
    """

    def __init__(self, scale: int, seed: int, device: Any = None) -> None:
        self._scale = scale
        self._key = key(seed)
        self._device = device

    def __call__(self, first: int, count: int) -> tuple[Array, Array]:
        """Return both endpoints of some edges, (count,), INT32."""
        u, v = (self._ends(words(self._device, self._key, k, first, count)) for k in (0, 1))
        return u, v

    def _ends(self, draw: Array) -> Array:
        draw >>= 31 - self._scale  # in two steps: no shift takes all 32 bits away
        draw >>= 1
        return draw.view(np.int32)


def endpoints(xp: Any, edges: Edges, first: int, count: int, chunk: int) -> tuple[Array, Array]:
    """Return both endpoints of some edges, (count,), INT32, drawn `chunk` at a time."""
    u, v = (xp.empty(count, np.int32) for _ in range(2))
    for start in range(0, count, chunk):
        part = slice(start, min(start + chunk, count))
        u[part], v[part] = edges(first + start, part.stop - start)
    return u, v


def both_ways(u: Array, v: Array) -> Iterator[Entries]:
    """Yield edges {u, v} in each direction: rows, columns, and which are no self-loops."""
    apart = u != v
    yield u, v, apart
    yield v, u, apart
