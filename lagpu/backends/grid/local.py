"""The local engine: every piece of the grid is in this process."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.grid.engine import Arrays

T = TypeVar("T")


class LocalEngine:
    """Hands arrays from piece to piece of one process, without a copy. See `Engine`.

    Parameters
    ----------
    size : int
        The number of pieces, at least 1.
    devices : sequence of Device, optional
        The device of each piece, if each has one whose memory kernels of the others can address.
    """

    alone = True
    beside = 1
    turn = 0

    def __init__(self, size: int, devices: Sequence[Device] = ()) -> None:
        self.size = size
        self._devices = tuple(devices)
        self.local: Sequence[int] = range(size)
        self.devices: Sequence[int] = range(size)
        self.sent = 0
        self.between_devices = bool(devices)

    def begin(self, method: str, given: Mapping[str, Any]) -> None:
        """See `Engine`: there is no other process."""

    def agree(self) -> None:
        """See `Engine`: there is no other process."""

    def fail(self, error: BaseException) -> None:
        """See `Engine`: there is no other process."""

    def gather(self, parts: Sequence[Arrays]) -> list[list[Arrays]]:
        """See `Engine`: one list for all."""
        self.sent += (self.size - 1) * sum(map(_nbytes, parts))
        return [list(parts)] * self.size

    def exchange(
        self, parts: Sequence[Sequence[Arrays]], among: Sequence[Sequence[int]] | None = None
    ) -> list[list[Arrays]]:
        """See `Engine`: nothing is gained by knowing who gives nothing."""
        pieces = self.local
        self.sent += sum(_nbytes(parts[s][d]) for s in pieces for d in pieces if s != d)
        return [[parts[s][d] for s in pieces] for d in pieces]

    def hand(
        self, parts: Sequence[Sequence[tuple[Any, ...]]], among: Sequence[Sequence[int]]
    ) -> list[list[tuple[Any, ...]]]:
        """See `Engine`: a copy from device to device for each that takes an array of another."""
        found: list[list[tuple[Any, ...]]] = [[] for _ in parts]
        for group in among:
            for at, d in enumerate(group):
                with self._devices[d].alone():
                    found[d] = [
                        parts[s][at] if s == d else self._fetched(d, s, parts[s][at]) for s in group
                    ]
        return found

    def _fetched(self, d: int, s: int, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
        self.sent += _nbytes(arrays)
        return tuple(self._devices[d].fetched(array, self._devices[s]) for array in arrays)

    def sum(self, numbers: Sequence[float]) -> float:
        """See `Engine`: one after the other, where `sum` of Python 3.12 corrects the rounding."""
        return functools.reduce(operator.add, numbers)

    def window(self, nbytes: int) -> Sequence[Any] | None:
        """See `Engine`: an array of u64 on the device of each piece, if there are devices."""
        if not self._devices:
            return None
        made = []
        for device in self._devices:
            with device.alone():
                made.append(device.shared_zeros(-(-nbytes // 8)))
        return made

    def group(self, pieces: int) -> LocalEngine:
        """See `Engine`: there is no other process."""
        return self

    def inside(self, work: Callable[[], T]) -> T:
        """See `Engine`: there is no other process."""
        return work()

    def barrier(self) -> None:
        """See `Engine`: there is no other process."""

    def abort(self, why: str) -> None:
        """See `Engine`: there is no other process."""

    def close(self) -> None:
        """See `Engine`: it holds nothing."""


def _nbytes(arrays: Arrays) -> int:
    return sum(array.nbytes for array in arrays)
