"""The engine protocol: what pieces of a grid tell each other, as arrays and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

T = TypeVar("T")
Arrays = tuple[np.ndarray[Any, Any], ...]
"""What one piece gives to another: arrays whose number and types are the same from each piece."""


class Engine(Protocol):
    """The pieces of a grid, and how they reach each other.

    A process has one piece, or several, or all. Each method but `abort` and `close` is collective:
    every process calls it, in the same order. What a piece receives is in the order of the pieces,
    so that every process computes the same bits; it is read only, since pieces of one process may
    share it.

    Attributes
    ----------
    size : int
        The number of pieces.
    local : sequence of int
        The numbers of the pieces of this process, rising, from ``0 .. size-1``.
    sent : int
        Bytes that pieces of this process have given to other pieces so far.
    alone : bool
        Whether all pieces are in this process, so that there is nobody to agree with.
    devices : sequence of int
        The number of the device of each local piece, among those of this host.
    beside : int
        The number of processes of the grid on this host, which share its memory.
    between_devices : bool
        Whether it shares arrays of the pieces' devices.
    """

    size: int
    local: Sequence[int]
    sent: int
    alone: bool
    devices: Sequence[int]
    beside: int
    between_devices: bool

    @property
    def turn(self) -> int:
        """The number of the statement that runs."""

    def begin(self, method: str, given: Mapping[str, Any]) -> None:
        """Start a statement of a name, which every process starts, and gives the same.

        Where one gives something else, the first collective call raises an error in all.
        """

    def agree(self) -> None:
        """Return when no process has failed in the statement; raise what another one has said."""

    def fail(self, error: BaseException) -> None:
        """Tell the other processes, at their next collective call, that this one has failed."""

    def gather(self, parts: Sequence[Arrays]) -> list[list[Arrays]]:
        """Return, for each local piece, what every piece gives; `parts` has the local ones'."""

    def exchange(
        self, parts: Sequence[Sequence[Arrays]], among: Sequence[Sequence[int]] | None = None
    ) -> list[list[Arrays]]:
        """Return, for each local piece, what every piece gives to it.

        ``parts[k][d]`` is what the local piece `k` gives to piece `d`; ``result[k][s]`` is what it
        receives from piece `s`.

        Parameters
        ----------
        parts : sequence of sequence of Arrays
            What each local piece gives to each piece.
        among : sequence of sequence of int, optional
            Groups of pieces, such as the rows of a checkerboard: each piece is in one of them, and
            gives only empty arrays to pieces of others. An engine may use this to send no message
            from group to group, or ignore it; the result is the same.
        """

    def hand(
        self, parts: Sequence[Sequence[tuple[Any, ...]]], among: Sequence[Sequence[int]]
    ) -> list[list[tuple[Any, ...]]]:
        """Return, for each local piece, what each piece of its group gives to it, on its device.

        Only an engine `between_devices` does so.

        Parameters
        ----------
        parts : sequence of sequence of tuple of array
            Arrays of each local piece's device, as many for each piece of its group, in the
            group's order.
        among : sequence of sequence of int
            Groups of pieces; each piece is in one of them. What a piece receives is in the order
            of its group.
        """

    def sum(self, numbers: Sequence[float]) -> float:
        """Return the sum of a number from each piece, added in their order."""

    def window(self, nbytes: int) -> Sequence[Any] | None:
        """Return memory of each piece that all pieces can address, or None if there is no such."""

    def group(self, pieces: int) -> Engine:
        """Return the engine of so many pieces that follow each other, this process' among them.

        ``pieces`` divides the number of all, and is a multiple of those of a process. The engine is
        used by `inside`.
        """

    def inside(self, work: Callable[[], T]) -> T:
        """Do some work in which the processes of a group meet by themselves, not with others.

        An error of one ends the work of all; it is raised as told in those whose error it is not.
        """

    def barrier(self) -> None:
        """Return when every process has called it."""

    def abort(self, why: str) -> None:
        """End the other processes too, because of an error in this one."""

    def close(self) -> None:
        """Give back what the engine holds; it is not used again."""


def to_each(
    parts: Sequence[tuple[Any, ...]], local: Sequence[int], among: Sequence[Sequence[int]]
) -> list[list[tuple[Any, ...]]]:
    """Return what each local piece gives, for `Engine.hand`: the same to each of its group."""
    size = {p: len(group) for group in among for p in group}
    return [[arrays] * size[p] for arrays, p in zip(parts, local, strict=True)]
