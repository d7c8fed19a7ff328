"""Sub-clusters of a grid: groups of pieces with a copy of the graph each, which share out sources.

Paper: Bernaschi and others 2018, section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from lagpu.backends.grid.handles import GridMatrix
from lagpu.backends.grid.pieces import Pieces
from lagpu.backends.protocol import Backend
from lagpu.errors import InvalidValue

__all__ = ["GridClusters", "cluster_size"]

Array = np.ndarray[Any, Any]
T = TypeVar("T")

# Bytes of a copy, roughly: an entry in both forms, and as it is collected; a vertex in the pointers
# and in the vectors of a search and its sweep.
_ENTRY, _VERTEX = 24, 120


def cluster_size(pieces: Pieces, A: GridMatrix, asked: int | None, free: int) -> int:
    """Return the number of pieces of a sub-cluster: as asked for, or the smallest that fits.

    A sub-cluster is a part of a process, or it is the whole grid.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    A : GridMatrix
        The graph.
    asked : int or None
        The number.
    free : int
        Free bytes of the piece that has least.

    Raises
    ------
    InvalidValue
        If there are no sub-clusters of so many pieces.
    """
    count, here = pieces.engine.size, len(pieces.engine.local)
    sizes = [d for d in range(1, here + 1) if here % d == 0]
    sizes += [count] * (count not in sizes)
    if asked is not None:
        if asked not in sizes:
            raise InvalidValue(
                f"pieces: the graph cannot be shared by {asked} of {count} pieces, of which each "
                f"process has {here}. Use one of {', '.join(map(str, sizes))}."
            )
        return asked
    needed = _ENTRY * pieces.nvals(A) + _VERTEX * A.shape[0]
    devices = [place.device for place in pieces.places]
    on_host = any(device is None or device.name == "sim" for device in devices)
    beside = here * pieces.engine.beside if on_host else 1
    fitting = [d for d in sizes if 2 * beside * needed // d <= free]
    return fitting[0] if fitting else count


class GridClusters:
    """The sub-clusters of a grid of which this process has some; see `Clusters`.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    size : int
        Pieces of a sub-cluster: a divisor of those of a process.
    make : callable
        Returns the backend over some places.
    """

    def __init__(
        self, pieces: Pieces, size: int, make: Callable[[Sequence[Backend]], Backend]
    ) -> None:
        self._pieces, self._size = pieces, size
        first, here = pieces.engine.local[0], len(pieces.engine.local)
        self.count = pieces.engine.size // size
        self.numbers: Sequence[int] = range(first // size, (first + here) // size)
        places = [pieces.places[k : k + size] for k in range(0, here, size)]
        self.backends: Sequence[Backend] = [
            group[0] if size == 1 else make(group) for group in places
        ]

    @property
    def apart(self) -> bool:
        """See `Clusters`."""
        devices = [place.device for place in self._pieces.places]
        return None not in devices and len({id(device) for device in devices}) == len(devices)

    def run(self, work: Callable[[], T]) -> T:
        """See `Clusters`."""
        return self._pieces.changes.run("clusters", work)

    def total(self, parts: Sequence[Array]) -> Array:
        """See `Clusters`."""
        nothing = np.zeros(0)
        given = [
            (parts[k // self._size] if k % self._size == 0 else nothing,)
            for k in range(len(self._pieces.engine.local))
        ]
        received = [of for (of,) in self._pieces.engine.gather(given)[0]][:: self._size]
        total = np.zeros_like(received[0])
        for of in received:
            total += of
        return total
