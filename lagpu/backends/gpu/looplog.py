"""The log that a fused loop writes on the device while it is traced, and the rows it stands for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.base import Statement
from lagpu.backends.gpu.blockproducts import PUSH_COST
from lagpu.backends.gpu.device import Device
from lagpu.backends.gpu.selections import reason
from lagpu.backends.gpu.storage import VectorStore
from lagpu.backends.gpu.unlogged import PRODUCTS
from lagpu.backends.measure import LoopRow, Measured

__all__ = ["CAPACITY", "LogLines", "LoopLog"]

Array = Any
CAPACITY = 1 << 16  # records; 6 MB, and some 65,000 levels of a search
PULL_FIRST, PULL_SUMS = 14, 3  # as kPullFirst and kPullSums in program.cuh
# As in looplog.cuh.
_HEAD, _COUNT, _LOST = 24, 8, 9
_FIELDS = ("how", "statement", "iteration", "in", "out", "edges", "leaving", "other", "ns")
_RECORD = np.dtype([*((name, np.uint64) for name in _FIELDS), ("added", np.uint64, 3)])
_WORDS = _RECORD.itemsize // 8
_BEGINS, _WRITES, _PUSHES, _PUSHES_ALONE, _PULLS = range(5)
_UNKNOWN = 2**64 - 1


class Loop(NamedTuple):
    """What the host knows of a fused loop, to make rows of its records.

    Attributes
    ----------
    methods : list of str
        Of its statements.
    writes, reads : list of int
        Which vector each writes, and which goes in and is counted; its own if there is none.
    bounds : dict
        For each product the entries of its matrix, and how many times the edges that leave the
        vector must exceed them for a program to pull.
    """

    methods: list[str]
    writes: list[int]
    reads: list[int]
    bounds: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, statements: Sequence[Statement]) -> Loop:
        """Return it."""
        place = {key: k for k, key in enumerate(_vectors(statements))}
        return cls(
            [s.method for s in statements],
            [place[id(s.w)] for s in statements],
            [place[id(_counted_input(s))] for s in statements],
            {k: _bound(s) for k, s in enumerate(statements) if s.method == "mxv"},
        )


def _vectors(statements: Sequence[Statement]) -> dict[int, Any]:
    """Return the vectors and scalars that are counted, by their ``id``."""
    return {id(v): v for s in statements for v in (s.w, _counted_input(s))}


def _counted_input(s: Statement) -> Any:
    """Return the vector whose entries are counted: of a block's statement the first, else the last.

    A constant goes into the output itself.
    """
    found = [x for x in s.args if type(x) is VectorStore]
    return found[-1 if s.out is None else 0] if found else s.w


def _bound(s: Statement) -> tuple[int, int]:
    """Return what a product's edges must exceed for a program to pull, and how many times."""
    A, _, how = s.args
    if s.out is None:
        return A.nvals, PULL_FIRST if how.semiring.monoid.name == "any" else PULL_SUMS
    return A.nvals * (s.w.size // A.shape[1 if how.transpose else 0] // 32), PUSH_COST


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
            for v in _vectors(self._statements).values()
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
        self._ran_search(had, functools.partial(_why, n, alpha, beta))

    def ran_block(self, assignments: int, cost: int) -> None:
        """Note that it was launched as a search of a block, which assigns to empty matrices."""
        self._ran_search([None] * assignments, functools.partial(_why_block, cost))

    def _ran_search(
        self, had: list[Callable[[], int] | None], why: Callable[[Any, bool], str]
    ) -> None:
        loop, number = self._next()
        self.rows = lambda: list(_rows_of_search(loop, self._records(number), had, why))

    def ran_program(self, one_way: str) -> None:
        """Note that it was launched as a program; `one_way` is why a product may have no choice."""
        loop, number = self._next()
        counts, self._counts = self._counts, ()
        self.rows = lambda: list(_rows_of_program(loop, self._records(number), counts, one_way))

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
        return self._found[number] if number < len(self._found) else np.empty(0, _RECORD)

    def _fetch(self) -> None:
        """Copy what has been written to the host, unless it is there."""
        if self._found_at == self._launched:
            return
        copy = self._below("to_host")
        head = copy(self.words[:_HEAD])
        count = int(head[_COUNT])
        found = copy(self.words[_HEAD : _HEAD + count * _WORDS]).view(_RECORD)
        begins = np.flatnonzero(found["how"] == _BEGINS)
        self._found = np.split(found, begins[1:]) if count else []
        self._lost, self._found_at = int(head[_LOST]), self._launched


def _none() -> int:
    """Return the entries of a scalar before a loop; none of its rows tells them."""
    return 0


def _rows_of_search(
    loop: Loop,
    records: np.ndarray[Any, Any],
    had: list[Callable[[], int] | None],
    why: Callable[[Any, bool], str],
) -> Iterator[LoopRow]:
    """Yield the rows of each level: one record stands for all statements."""
    product = next(k for k, method in enumerate(loop.methods) if method in PRODUCTS)
    behind = product == 0
    others = [k for k in range(len(loop.methods)) if k != product]
    before = [0 if count is None else count() for count in had]
    last, reached, pulled = list(before), 0, False
    made = Measured(0.0, None, kernel="fused", reason="made with the level's product")
    for r, ms in _timed(records):
        entered, found = int(r["in"]), int(r["out"])
        assigned = found if behind else entered
        reached += assigned
        level, pulls = int(r["iteration"]), r["how"] == _PULLS
        rows = []
        for k, statement in enumerate(others):
            into = last[k] if loop.reads[statement] == loop.writes[statement] else assigned
            last[k] = before[k] + (reached if had[k] is None else int(r["added"][k]))
            rows.append(LoopRow(statement, level, into, last[k], made))
        measured = Measured(
            ms,
            None,
            direction="pull" if pulls else "push",
            kernel="fused",
            reason=why(r, pulled),
            edges=_known(r["edges"]),
        )
        rows.insert(product, LoopRow(product, level, entered, found, measured))
        pulled = pulls
        yield from rows


def _why(n: int, alpha: float, beta: float, r: Any, pulled: bool) -> str:
    """Return why a level went in its direction, in numbers."""
    if r["how"] == _PUSHES_ALONE:
        return f"vertices {r['in']}, few for some levels: one block alone"
    if pulled:
        sign = ">=" if r["how"] == _PULLS else "<"
        return f"pulled before; vertices {r['in']} {sign} {n} / {beta:g}"
    sign = ">" if r["how"] == _PULLS else "<="
    return f"edges {r['leaving']} {sign} unexplored {r['other']} / {alpha:g}"


def _why_block(cost: int, r: Any, pulled: bool) -> str:
    return f"edges {r['leaving']} {'>' if r['how'] == _PULLS else '<='} {r['other']} / {cost}"


def _rows_of_program(
    loop: Loop, records: np.ndarray[Any, Any], before: Sequence[Callable[[], int]], one_way: str
) -> Iterator[LoopRow]:
    """Yield the rows of a program: a record a statement and iteration."""
    counts = [count() for count in before]
    for r, ms in _timed(records):
        k = int(r["statement"])
        measured = Measured(ms, None, kernel="fused", reason="a piece of one program")
        if k in loop.bounds:
            measured = _product(measured, r, *loop.bounds[k], one_way)
        if loop.methods[k] == "mxv_selection":
            direction = "pull" if r["how"] == _PULLS else "push"
            measured = measured._replace(
                direction=direction, reason=reason(direction), edges=_known(r["edges"])
            )
        if loop.methods[k] == "constant":
            continue  # a number for a scalar has no row, as it has none in an eager loop
        entered = counts[loop.reads[k]]
        counts[loop.writes[k]] = int(r["out"])
        yield LoopRow(k, int(r["iteration"]), entered, int(r["out"]), measured)


def _product(measured: Measured, r: Any, nvals: int, factor: int, one_way: str) -> Measured:
    pulled, leaving, why = r["how"] == _PULLS, _known(r["leaving"]), one_way
    if leaving is not None:
        why = f"edges {leaving} {'>' if pulled else '<='} {nvals} / {factor}"
    direction = "pull" if pulled else "push"
    return measured._replace(direction=direction, reason=why, edges=_known(r["edges"]))


def _timed(records: np.ndarray[Any, Any]) -> Iterator[tuple[Any, float]]:
    """Yield each record behind the first with the milliseconds since the one before it."""
    ns = records["ns"].astype(np.int64)
    for k in range(1, len(records)):
        yield records[k], max(int(ns[k] - ns[k - 1]), 0) / 1e6


def _known(number: Any) -> int | None:
    return None if number == _UNKNOWN else int(number)


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
