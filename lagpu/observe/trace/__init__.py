"""`trace`: record a row for each statement that runs; without a trace there is no cost."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from lagpu.backends.profile import LoopRow, Measured, Meter
from lagpu.backends.protocol import Backend
from lagpu.core.recorder import Observer, current_observer, set_observer
from lagpu.host.display import Lines
from lagpu.host.files import return_or_write
from lagpu.host.source import author
from lagpu.observe.trace.rows import Row, Seen, Totals, names_in, row_of
from lagpu.operations import FusedLoop, Operation, Rejection

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Row", "Totals", "Trace", "names_in", "trace"]


class Trace(Observer):
    """The rows of the statements that ran inside ``with``, in order.

    A traced program does not wait for the device; reading the rows does.

    Parameters
    ----------
    fuse : bool, default True
        Whether a loop may run as one kernel; else each statement runs and is measured by itself.
    """

    def __init__(self, fuse: bool = True) -> None:
        self.why_eager = "" if fuse else "a trace of single statements is on"
        self.level = -1
        self._rows: list[Row] = []
        self._pending: deque[Callable[[], list[Row]]] = deque()
        self._meters: dict[int, tuple[Backend, Meter]] = {}
        self._stopped: list[Meter] = []
        self._between: list[Callable[[], Measured]] = []  # measured outside of single statements
        self._recorded: list[tuple[Any, Any, FrameType | None, int]] = []
        self._unformatted: Seen | None = None

    # ---------------------------------------------------------------------------- recording
    def __enter__(self) -> Trace:
        self._outer = current_observer()
        set_observer(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            self._stop()
        finally:
            set_observer(self._outer)

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """Run a checked statement and record it; see `Observer`."""
        frame = author(2)  # the callers are `assign`, and a method of an object or the author
        self._run(to, call, work, frame, 0 if frame is None else frame.f_lineno)

    def _run(
        self, to: Any, call: Any, work: Callable[[], None], frame: FrameType | None, line: int
    ) -> None:
        self._format_pending()
        out, inputs = to.out, call.inputs
        meter = self._meter(call.backend)
        before = _nothing
        if inputs and inputs[-1].ndim == 1:
            before = meter.count(inputs[-1].data)
        elif inputs and out.ndim != 1:
            before = meter.count(inputs[0].stored.data)
        operation: Operation = call.operation
        measured = meter.run(work, None if out.ndim == 0 else out.data, operation)
        count: int = out.nvals if out.ndim == 0 else 0
        after = (lambda: count) if out.ndim == 0 else meter.count(out.data)
        seen = Seen((to, call), frame, line)
        if inputs:
            seen.description()  # so that the row keeps no vector alive
        else:
            self._format_later(seen, out)
        self._later(seen, before, after, measured)

    def entry(
        self, v: Any, describe: Callable[[], tuple[Any, Any]], work: Callable[[], None]
    ) -> None:
        """Record ``v[i] = x``, with which a search begins, and run it; see `Observer`."""
        frame = author(2)  # the callers are a vector and the author
        seen = Seen(describe, frame, 0 if frame is None else frame.f_lineno)
        self._format_pending()
        meter = self._meter(v.backend)
        measured = meter.run(work, v.data, None)
        self._format_later(seen, v)
        self._later(seen, _nothing, meter.count(v.data), measured)

    def _later(
        self,
        seen: Seen,
        before: Callable[[], int],
        after: Callable[[], int],
        measured: Callable[[], Measured],
    ) -> None:
        """Put off the row of a statement that ran by itself until its measurement is read."""
        level = self.level

        def rows() -> list[Row]:
            row = LoopRow(0, level, before(), after(), measured())
            return [row_of(seen.description(), row, "eager")]

        self._pending.append(rows)

    def _format_later(self, seen: Seen, out: Any) -> None:
        """Put off formatting a statement that assigns a constant; keep only its output's name."""
        seen.release_frame(out)
        self._unformatted = seen

    def _format_pending(self) -> None:
        """Format the statement before, if that was put off."""
        if self._unformatted is not None:
            self._unformatted.description()
            self._unformatted = None

    def recorded(self, to: Any, call: Any) -> None:
        """Note a statement of a loop's body; see `Observer`."""
        # The formula is formatted once the loop runs. All statements of a body have one frame.
        frame = self._recorded[-1][2] if self._recorded else author(2)
        self._recorded.append((to, call, frame, 0 if frame is None else frame.f_lineno))

    def replay(self, k: int, work: Callable[[], None]) -> None:
        """Run a recorded statement by itself after all; see `Observer`."""
        to, call, frame, line = self._recorded[k]
        if call.backend is None:  # a number for a scalar has no row
            work()
            return
        self._run(to, call, work, frame, line)

    def run_loop(
        self, backend: Backend, plan: Callable[[], FusedLoop | Rejection]
    ) -> FusedLoop | Rejection:
        """Run a loop that was recorded, and record its rows; see `Observer`."""
        loop, measured = self._meter(backend).run_loop(plan)
        if measured is None:
            return loop
        self._format_pending()  # while the device is at work
        body = [
            Seen((to, call), frame, line).description() for to, call, frame, line in self._recorded
        ]
        self._pending.append(
            lambda: [row_of(body[row.statement], row, "fused") for row in measured.rows()]
        )
        self._between.append(measured.total)
        return loop

    def forget(self) -> None:
        """Forget what was recorded; see `Observer`."""
        self._recorded.clear()

    def _meter(self, backend: Backend) -> Meter:
        found = self._meters.get(id(backend))
        if found is None:
            found = self._meters[id(backend)] = backend, backend.meter()
        return found[1]

    def _stop(self) -> None:
        self._format_pending()
        for _, meter in reversed(self._meters.values()):
            self._between.append(meter.stop())
            self._stopped.append(meter)
        self._meters = {}

    # ------------------------------------------------------------------------------ reading
    @property
    def rows(self) -> list[Row]:
        """A row for each statement and level, in order; waits for the device."""
        while self._pending:
            self._rows.extend(self._pending[0]())
            self._pending.popleft()  # after it was read: an interrupted read can be repeated
        return self._rows

    def totals(self) -> Totals:
        """Return the sums over all rows, and over copies and compiling between statements."""
        rows = self.rows
        parts: list[Any] = [*rows, *(measured() for measured in self._between)]
        meters = [*self._stopped, *(meter for _, meter in self._meters.values())]
        return Totals(
            statements=len(rows),
            edges=sum(row.edges or 0 for row in rows),
            bytes=sum(row.bytes or 0 for row in rows),
            kernel_ms=sum(row.kernel_ms for row in rows),
            host_ms=sum(part.host_ms or 0.0 for part in parts),
            compile_ms=sum(part.compile_ms for part in parts),
            copy_ms=sum(part.copy_ms for part in parts),
            copy_bytes=sum(part.copy_bytes for part in parts),
            fused=sum(row.mode == "fused" for row in rows),
            unlogged=sum(row.level is None for row in rows),
            unrecorded=sum(meter.unrecorded() for meter in meters),
        )

    def to_json(self, path: str | Path | None = None) -> str | None:
        """Return rows and totals as one JSON object, or write it to the file `path`."""
        rows = [asdict(row) for row in self.rows]
        return return_or_write(path, json.dumps({"totals": asdict(self.totals()), "rows": rows}))

    def table(self) -> str:
        """Return the rows as a plain text table, a long one folded, with the totals below."""
        from lagpu.observe.trace.page import plain

        return Lines(plain(self.rows, self.totals()))

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        title: str = "Trace",
        facts: Mapping[str, object] | None = None,
    ) -> str | None:
        """Return one self-contained HTML page: totals, a chart and a table to sort.

        It is written to the file `path` instead if that is given; `facts` are names and values to
        show below the heading, such as the name of the graph.
        """
        from lagpu.observe.trace.page import page

        return return_or_write(path, page(self.rows, self.totals(), title, facts or {}))

    def plot(self, ax: Any = None) -> Any:
        """Draw kernel time by level, and the entries of the multiplied vectors; return the axes.

        They are `ax`, or those of a new figure. Without Matplotlib `BackendUnavailable` is raised.
        """
        from lagpu.observe.trace.page import plot

        return plot(self.rows, ax)

    def __rich__(self) -> Table:
        from lagpu.observe.trace.page import rich_table

        return rich_table(self.rows, self.totals())

    def _repr_html_(self) -> str:
        from lagpu.observe.trace.page import summary

        return summary(self.rows, self.totals())

    def __repr__(self) -> str:
        return f"Trace({len(self.rows)} statements)"


def _nothing() -> int:
    return 0


def trace(*, fuse: bool = True) -> Trace:
    """Record every statement that runs inside: ``with lagpu.trace() as t: ...``.

    The program runs as it does without a trace: a loop that runs as one kernel still does, and the
    kernel logs each statement and level; a sweep or a search whose kernel keeps no log has one row
    for each statement, for all levels together. The program does not wait for the device. A trace
    inside another trace takes its statements from the outer one.

    Parameters
    ----------
    fuse : bool, default True
        False runs loops statement by statement: slower, but with the kernel that the planner
        chose and the host's time for each statement.

    Returns
    -------
    Trace
        An object with ``rows``, ``totals()``, ``table()``, ``to_json()``, ``to_html()`` and
        ``plot()``.

    Examples
    --------
    >>> from lagpu.algorithms import bfs_levels
    >>> from lagpu.generators import path
    >>> with trace() as t:
    ...     levels = bfs_levels(path(3, backend="cpu"), 0)
    >>> for row in t.rows[:3]:
    ...     print(row.level, row.formula, row.nvals_out, row.edges)
    -1 frontier[0] << True 1 None
    0 levels(frontier.S) << 0 1 None
    0 frontier(~levels.S, replace) << frontier any_pair A 1 1
    """
    return Trace(fuse)
