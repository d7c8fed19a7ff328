"""The log that a fused loop writes on the device while it is traced."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.profile.log_rows import (
    BEGINS,
    RECORD,
    Loop,
    rows_of_program,
    rows_of_search,
    vectors_of,
    why_block,
    why_level,
)
from lagpu.backends.gpu.profile.traffic import PieceMoves, SearchMoves
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.profile import LoopRow
from lagpu.backends.protocol import Statement

__all__ = ["CAPACITY", "LogLines", "LoopLog"]

Array = Any
CAPACITY = 1 << 16  # records; 6 MB, and some 65,000 levels of a search
# As in common/log.cuh.
_HEAD, _COUNT, _LOST = 24, 8, 9
_WORDS = RECORD.itemsize // 8


class LoopLog:
    """Records of the loops of one trace on one device, in one buffer.

    Parameters
    ----------
    device : Device
        Where loops run.
    below : callable
        Returns a method of the device, such as ``"to_host"``, that no trace takes note of.
    spare : list of array
        Buffers of logs that are gone, for the next one.
    time_launches : callable
        Has launches timed from then on.

    Attributes
    ----------
    words : array of u64
        For the kernels.
    capacity : int
        Records that fit.
    rows : callable or None
        What returns the rows of the loop that was launched last.
    unlogged : list of str or None
        The methods of that loop's statements, if its kernel keeps no log.
    """

    # of a log that no loop has written to; a device may wait while one is made
    rows: Callable[[], list[LoopRow]] | None = None
    unlogged: list[str] | None = None
    _statements: Sequence[Statement] = ()
    _counts: Sequence[Callable[[], int]] = ()
    _found: Sequence[np.ndarray[Any, Any]] = ()  # records of each loop
    _launched = _lost = 0
    _found_at = 0  # how many loops had been launched

    def __init__(
        self,
        device: Device,
        below: Callable[[str], Callable[[Array], Any]],
        spare: list[Array],
        time_launches: Callable[[], None],
    ) -> None:
        self.capacity = CAPACITY
        self._below, self._spare, self._time_launches = below, spare, time_launches
        count = _HEAD + CAPACITY * _WORDS
        words: Array = spare.pop() if spare else None
        if words is None or len(words) != count:
            device.require(8 * count, "trace", "Use trace(fuse=False), which keeps no log.")
            words = device.xp.empty(count, np.uint64)
        self.words = words

    def __del__(self) -> None:
        if not self._spare and hasattr(self, "words"):  # one is enough
            self._spare.append(self.words)

    def begin(self, statements: list[Statement]) -> None:
        """Note the body of the loop that is launched next."""
        self.rows, self._statements = None, statements

    def leave_out(self, statements: list[Statement]) -> None:
        """Note that the loop launched next keeps no log, so its launches are timed instead."""
        self.unlogged = [s.method for s in statements]
        self._time_launches()

    def end(self) -> None:
        """Keep no vector of a body, whatever became of it."""
        self._statements = ()

    def count(self) -> None:
        """Note how many entries the vectors have before a program; nothing is waited for."""
        self._counts = [
            self.count_of(v) if type(v) is VectorStore else _none
            for v in vectors_of(self._statements).values()
        ]

    def count_of(self, v: VectorStore) -> Callable[[], int]:
        """Return what tells how many entries a vector has now."""
        return v.count_later(self._below("read"))

    @property
    def is_new(self) -> bool:
        """Whether no loop has written to it: nothing in it is set then, so kernels are told."""
        return self._launched == 0

    def ran_traversal(
        self, had: list[Callable[[], int] | None], n: int, alpha: float, beta: float
    ) -> None:
        """Note that it was launched as a traversal, and what directions are chosen by.

        `had` tells for each assignment how many entries its vector had; None for none.
        """
        self._ran_search(had, functools.partial(why_level, n, alpha, beta))

    def ran_block(self, assignments: int, cost: int) -> None:
        """Note that it was launched as a search of a block, which assigns to empty matrices."""
        self._ran_search([None] * assignments, functools.partial(why_block, cost))

    def _ran_search(
        self, had: list[Callable[[], int] | None], why: Callable[[Any, bool], str]
    ) -> None:
        moves = SearchMoves.of(self._statements)
        loop, number = self._next()
        self.rows = lambda: list(rows_of_search(loop, moves, self._records(number), had, why))

    def ran_program(self, one_way: str) -> None:
        """Note that it was launched as a program; `one_way` is why a product may have no choice."""
        moves = [PieceMoves.of(s) for s in self._statements]
        loop, number = self._next()
        counts, self._counts = self._counts, ()
        self.rows = lambda: list(
            rows_of_program(loop, moves, self._records(number), counts, one_way)
        )

    def _next(self) -> tuple[Loop, int]:
        loop = Loop.of(self._statements)
        self._launched += 1
        return loop, self._launched - 1

    @property
    def lost(self) -> int:
        """How many rows did not fit; waits for the loops."""
        self._fetch()
        return self._lost

    def _records(self, number: int) -> np.ndarray[Any, Any]:
        """Return what a loop wrote, the record of its beginning first; none if nothing fitted."""
        self._fetch()
        return self._found[number] if number < len(self._found) else np.empty(0, RECORD)

    def _fetch(self) -> None:
        """Copy what has been written to the host, unless it is there."""
        if self._found_at == self._launched:
            return
        copy = self._below("to_host")
        head = copy(self.words[:_HEAD])
        count = int(head[_COUNT])
        found = copy(self.words[_HEAD : _HEAD + count * _WORDS]).view(RECORD)
        begins = np.flatnonzero(found["how"] == BEGINS)
        self._found = np.split(found, begins[1:]) if count else []
        self._lost, self._found_at = int(head[_LOST]), self._launched


def _none() -> int:
    """Return the entries of a scalar before a loop; none of its rows tells them."""
    return 0


class LogLines:
    """The lines that make the generated kernel of a program log its statements; or none.

    Parameters
    ----------
    statements : int
        How many the body has.
    on : bool
        Whether there is a log.
    """

    def __init__(self, statements: int, on: bool) -> None:
        self.on = on
        self._statements = statements
        self._fills: list[str] = []

    def written(self, total: str, counter: int, how: str, edges: str, leaving: str) -> list[str]:
        """Return lines that count what a statement wrote, and stamp it; `total` writes it."""
        k, many = len(self._fills), self._statements
        self._fills.append(
            f"log->fill({k}, {many}, load_volatile(at + {counter} * kFar), {edges}, {leaving});"
        )
        return [
            f"add_total({total}, now + {counter} * kFar);",
            f"if (global_thread() == 0) log->stamp({k}, {many}, depth, {how});",
        ]

    def params(self) -> list[str]:
        """Return the kernel's last parameters."""
        return self._if_on("u64* log_words", "bool log_is_new")

    def opening(self) -> list[str]:
        """Return the lines before the loop; all statements have been written."""
        return self._if_on(
            "LG_SHARED(LoopLog, log, 1);",
            "if (global_thread() == 0) log->open(log_words, log_is_new);",
            "bool open = false;",
            "const auto flush = [&](const u64* at) {",
            "open = false;",
            "if (global_thread() != 0) return;",
            *self._fills,
            f"log->next({self._statements});",
            "};",
        )

    def at_top(self, counters: int) -> list[str]:
        """Return the lines behind a barrier at the top of an iteration."""
        before = f"counters + (turn + 2) % 3 * {counters} * kFar"
        return self._if_on(f"if (open) flush({before});", "block_sync();")

    def at_end(self) -> list[str]:
        """Return the lines behind a barrier at the end of an iteration."""
        return self._if_on("flush(now);", "block_sync();")

    def behind(self) -> list[str]:
        """Return the last line of an iteration whose counts are not complete yet."""
        return self._if_on("open = true;")

    def closing(self, counters: int) -> list[str]:
        """Return the lines behind the loop."""
        before = f"counters + (turn + 2) % 3 * {counters} * kFar"
        return self._if_on(
            f"if (open) {{ grid_sync(barrier); flush({before}); }}",
            "if (global_thread() == 0) log->close();",
        )

    def _if_on(self, *lines: str) -> list[str]:
        return list(lines) if self.on else []
