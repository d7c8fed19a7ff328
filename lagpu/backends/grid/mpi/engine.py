"""The engine of a grid whose pieces are in the processes of a job."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.mpi.messages import packed, unpacked
from lagpu.backends.grid.mpi.processes import Processes
from lagpu.errors import NotSupported

__all__ = ["MpiEngine"]

T = TypeVar("T")


class MpiEngine:
    """Sends arrays from process to process; each has as many pieces. See `Engine`.

    Parameters
    ----------
    processes : Processes
        The processes of the job.
    pieces : int
        The number of pieces in each process.
    first_device : int
        The number, on this host, of the first local piece's device.
    """

    alone = False
    between_devices = False

    def __init__(self, processes: Processes, pieces: int = 1, first_device: int = 0) -> None:
        self._processes = processes
        self._pieces = pieces
        self.size = processes.size * pieces
        self.local: Sequence[int] = range(processes.rank * pieces, (processes.rank + 1) * pieces)
        self.devices: Sequence[int] = range(first_device, first_device + pieces)
        self.beside = processes.beside
        self.sent = 0
        self.begin, self.agree, self.fail = processes.begin, processes.agree, processes.fail

    @property
    def turn(self) -> int:
        """See `Engine`."""
        return self._processes.turn

    def gather(self, parts: Sequence[Arrays]) -> list[list[Arrays]]:
        """See `Engine`: one list for all local pieces."""
        message = packed(parts)
        self.sent += (self._processes.size - 1) * len(message)
        lists = [piece for one in self._processes.share(message) for piece in unpacked(one)]
        return [lists] * self._pieces

    def exchange(
        self, parts: Sequence[Sequence[Arrays]], among: Sequence[Sequence[int]] | None = None
    ) -> list[list[Arrays]]:
        """See `Engine`: one call of all processes, in which those of other groups get nothing."""
        starts = range(0, self.size, self._pieces)
        messages = [
            packed([to for one in parts for to in one[d : d + self._pieces]]) for d in starts
        ]
        rank = self._processes.rank
        self.sent += sum(len(message) for p, message in enumerate(messages) if p != rank)
        lists = [unpacked(message) for message in self._processes.swap(messages)]
        return [
            [piece for one in lists for piece in one[d :: self._pieces]]
            for d in range(self._pieces)
        ]

    def hand(
        self, parts: Sequence[Sequence[tuple[Any, ...]]], among: Sequence[Sequence[int]]
    ) -> list[list[tuple[Any, ...]]]:
        """See `Engine`: what MPI sends is on the host."""
        raise NotSupported("grid: MPI hands over no arrays of devices. Exchange them on the host.")

    def sum(self, numbers: Sequence[float]) -> float:
        """See `Engine`: numbers are whole if they are so on every piece."""
        given = self.gather([(np.array([number]),) for number in numbers])[0]
        total: float = functools.reduce(operator.add, [number.item() for (number,) in given])
        return total

    def window(self, nbytes: int) -> Sequence[Any] | None:
        """See `Engine`: a process does not address the memory of another one."""
        return None

    def group(self, pieces: int) -> MpiEngine:
        """See `Engine`."""
        group = self._processes.group(pieces // self._pieces)
        return MpiEngine(group, self._pieces, self.devices[0])

    def inside(self, work: Callable[[], T]) -> T:
        """See `Engine`."""
        return self._processes.inside(work)

    def barrier(self) -> None:
        """See `Engine`."""
        self._processes.agree()

    def abort(self, why: str) -> None:
        """See `Engine`."""
        print(f"lagpu: {why}", file=sys.stderr, flush=True)
        self._processes.abort()

    def close(self) -> None:
        """See `Engine`: other grids may still use the processes, which part at their end."""
