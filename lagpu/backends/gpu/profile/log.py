"""The log that a fused loop writes on the device while it is traced: records, in one buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.kernels import constant
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.profile import LoopRow, Measured
from lagpu.operations import FusedLoop, Statement

__all__ = ["CAPACITY", "RECORD", "DeviceLoop", "LoopLog", "rows_without_log"]

Array = Any
CAPACITY = 1 << 16  # records; 6 MB, and some 65,000 levels of a search
_HEAD, _COUNT, _LOST = constant("kLogHead"), constant("kLogCount"), constant("kLogLost")
# As ``Record`` in common/log.cuh.
_FIELDS = ("how", "statement", "iteration", "in", "out", "edges", "frontier_edges", "other", "ns")
RECORD = np.dtype([*((name, np.uint64) for name in _FIELDS), ("added", np.uint64, 3)])
_WORDS = RECORD.itemsize // 8


class DeviceLoop(FusedLoop, Protocol):
    """A `FusedLoop` of this backend."""

    @property
    def keeps_log(self) -> bool:
        """Whether its kernel writes records; else the loop is timed as a whole."""

    @property
    def statements(self) -> Sequence[Statement]:
        """The loop's body."""

    def run(self, log: LoopLog | None = None) -> None:
        """See `FusedLoop`; `log` is None unless the loop is traced and keeps one."""


class LoopLog:
    """Records of the loops of one trace on one device, in one buffer.

    Parameters
    ----------
    device : Device
        Where loops run.
    unseen : callable
        Returns a method of the device, such as ``"to_host"``, whose calls no trace shows.
    spare : list of array
        Buffers of earlier logs, for reuse.

    Attributes
    ----------
    words : array of u64
        For the kernels.
    capacity : int
        Records that fit.
    """

    def __init__(
        self,
        device: Device,
        unseen: Callable[[str], Callable[[Array], Any]],
        spare: list[Array],
    ) -> None:
        self.capacity = CAPACITY
        self._device, self._unseen, self._spare = device, unseen, spare
        self._rows: Callable[[], list[LoopRow]] | None = None
        self._found: Sequence[np.ndarray[Any, Any]] = ()  # records of each loop
        self._launched = self._lost = 0
        self._found_at = 0  # how many loops had been launched
        count = _HEAD + CAPACITY * _WORDS
        words: Array = spare.pop() if spare else None
        if words is None or len(words) != count:
            device.require(8 * count, "trace", "Use trace(fuse=False), which keeps no log.")
            words = device.xp.empty(count, np.uint64)
        self.words = words

    def __del__(self) -> None:
        if hasattr(self, "words") and not self._spare:  # one is enough
            self._spare.append(self.words)

    @property
    def is_new(self) -> bool:
        """Whether no loop has written to the log; its words are not initialised then."""
        return self._launched == 0

    def count_of(self, v: VectorStore) -> Callable[[], int]:
        """Return a callable that returns how many entries a vector has now; nothing waits yet."""
        return v.pending_count(self._unseen("read"))

    def ran(self, rows_of: Callable[[np.ndarray[Any, Any]], list[LoopRow]]) -> None:
        """Note that a loop was launched; `rows_of` makes its rows of its records."""
        records = self.launched()
        self._rows = lambda: rows_of(records())

    def launched(self) -> Callable[[], np.ndarray[Any, Any]]:
        """Note that a loop was launched; return what fetches its records."""
        number = self._launched
        self._launched += 1
        return lambda: self._records(number)

    def take_rows(self) -> Callable[[], list[LoopRow]] | None:
        """Return the maker of the rows of the loop launched since the last call, or None."""
        rows, self._rows = self._rows, None
        return rows

    @property
    def lost(self) -> int:
        """How many rows did not fit; waits for the loops."""
        self._fetch()
        return self._lost

    def _records(self, number: int) -> np.ndarray[Any, Any]:
        """Return the records of a loop, that of its beginning first; none if none fitted."""
        self._fetch()
        return self._found[number] if number < len(self._found) else np.empty(0, RECORD)

    def _fetch(self) -> None:
        """Copy the records to the host, unless they are there."""
        if self._found_at == self._launched:
            return
        copy = self._unseen("to_host")
        with self._device.alone():
            head = copy(self.words[:_HEAD])
            count = int(head[_COUNT])
            found = copy(self.words[_HEAD : _HEAD + count * _WORDS]).view(RECORD)
        begins = np.flatnonzero(found["how"] == constant("kBegins"))
        self._found = np.split(found, begins[1:]) if count else []
        self._lost, self._found_at = int(head[_LOST]), self._launched


def rows_without_log(are_products: Sequence[bool], kernel_ms: float) -> list[LoopRow]:
    """Return a row for each statement of the body, for all iterations together.

    Parameters
    ----------
    are_products : sequence of bool
        Which statements multiply.
    kernel_ms : float
        The time of all launches; it is on the product's row.
    """
    why = "one kernel for all levels, which keeps no log"
    timed = Measured(kernel_ms, None, kernel="fused", reason=why)
    untimed = Measured(0.0, None, kernel="fused", reason=f"{why}; timed with the product")
    return [
        LoopRow(k, None, None, None, timed if is_product else untimed)
        for k, is_product in enumerate(are_products)
    ]
