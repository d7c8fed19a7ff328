"""What ran: one row a statement, recorded while a trace is on, at no cost while it is off."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from lagpu.backends.profile import LoopRow, Measured, Meter
from lagpu.backends.protocol import Backend
from lagpu.core.observer import Observer, current_observer, set_observer
from lagpu.host.files import replacing
from lagpu.host.source import author
from lagpu.observe.trace.rows import Row, Seen, Totals, names_in, row_of
from lagpu.operations import FusedLoop, Operation, Rejection

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Row", "Totals", "Trace", "names_in", "trace"]


# A statement that ran by itself: its level, and what returns entries and measurements.
_Ran = tuple[Seen, int, Callable[[], int], Callable[[], int], Callable[[], Measured]]


def _written(path: str | Path | None, text: str) -> str | None:
    """Return a text, or write it to a file."""
    if path is None:
        return text
    with replacing(Path(path)) as file:
        file.write(text.encode())
    return None


def _row(ran: _Ran) -> Row:
    seen, level, before, after, measured = ran
    return row_of(seen.description(), LoopRow(0, level, before(), after(), measured()), "eager")


class Trace(Observer):
    """The rows of one traced stretch of a program, in order: what is inside ``with``.

    A device is not waited for while it is traced: reading the rows waits.

    Parameters
    ----------
    fuse : bool, default True
        Whether loops that run as one kernel do so; else each statement runs, and is measured, by
        itself.
    """

    def __init__(self, fuse: bool = True) -> None:
        self.why_eager = "" if fuse else "a trace of single statements is on"
        self.level = -1
        self._rows: list[Row] = []
        self._pending: deque[_Ran | Callable[[], Iterable[Row]]] = deque()
        self._meters: dict[int, tuple[Backend, Meter]] = {}
        self._stopped: list[Meter] = []
        self._outside: list[Callable[[], Measured]] = []
        self._recorded: list[tuple[Any, Any, FrameType | None, int]] = []
        self._late: Seen | None = None

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
        frame = author(3)  # called by `_submit`, that by `assign`, that by an object
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
        after = _known(out.nvals) if out.ndim == 0 else meter.count(out.data)
        seen = Seen((to, call), frame, line)
        if inputs:
            seen.description()  # a row keeps no vector alive
        else:
            self._format_later(seen, out)
        self._pending.append((seen, self.level, before, after, measured))

    def entry(
        self, v: Any, describe: Callable[[], tuple[Any, Any]], work: Callable[[], None]
    ) -> None:
        """Record ``v[i] = x`` and run it: a search begins so; see `Observer`."""
        frame = author(2)  # called by a vector, and that by whoever
        seen = Seen(describe, frame, 0 if frame is None else frame.f_lineno)
        self._format_pending()
        meter = self._meter(v.backend)
        measured = meter.run(work, v.data, None)
        self._format_later(seen, v)
        self._pending.append((seen, self.level, _nothing, meter.count(v.data), measured))

    def _format_later(self, seen: Seen, out: Any) -> None:
        """Format a constant's statement when there is time; of it the output alone is kept."""
        seen.let_go(out)
        self._late = seen

    def _format_pending(self) -> None:
        """Format the statement before, if that was put off."""
        if self._late is not None:
            self._late.description()
            self._late = None

    def recorded(self, to: Any, call: Any) -> None:
        """Note a statement of a loop's body; see `Observer`."""
        # Its formula is formatted when the loop is on its way. All statements of a body stand in
        # one frame.
        frame = self._recorded[-1][2] if self._recorded else author(3)
        self._recorded.append((to, call, frame, 0 if frame is None else frame.f_lineno))

    def replay(self, k: int, work: Callable[[], None]) -> None:
        """Run a statement that was recorded in vain; see `Observer`."""
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
        self._outside.append(measured.total)
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
            self._outside.append(meter.stop())
            self._stopped.append(meter)
        self._meters = {}

    # ------------------------------------------------------------------------------ reading
    @property
    def rows(self) -> list[Row]:
        """One row a statement and level, in order; waits for the device."""
        while self._pending:
            next_ = self._pending[0]
            self._rows.extend([_row(next_)] if isinstance(next_, tuple) else next_())
            self._pending.popleft()
        return self._rows

    def totals(self) -> Totals:
        """Return the sums over all rows, with what was copied and compiled between them."""
        rows = self.rows
        parts: list[Any] = [*rows, *(measured() for measured in self._outside)]
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
        return _written(path, json.dumps({"totals": asdict(self.totals()), "rows": rows}))

    def table(self) -> str:
        """Return the rows as a plain text table, with the totals below; long ones are folded."""
        from lagpu.observe.trace.table import plain

        return plain(self.rows, self.totals())

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        title: str = "Trace",
        facts: Mapping[str, object] | None = None,
    ) -> str | None:
        """Return one HTML page that needs no other file: totals, a chart and a list to sort.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it instead; nothing is returned then.
        title : str
            Its heading.
        facts : mapping, optional
            What else to show at its head, such as the graph's name.
        """
        from lagpu.observe.trace.page import page

        return _written(path, page(self.rows, self.totals(), title, facts or {}))

    def plot(self, ax: Any = None) -> Any:
        """Draw kernel time by level, and the entries of the vectors multiplied; return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Raises
        ------
        BackendUnavailable
            If Matplotlib is missing.
        """
        from lagpu.observe.trace.plot import plot

        return plot(self.rows, ax)

    def __rich__(self) -> Table:
        from lagpu.observe.trace.table import rich_table

        return rich_table(self.rows, self.totals())

    def _repr_html_(self) -> str:
        from lagpu.observe.trace.page import summary

        return summary(self.rows, self.totals())

    def __repr__(self) -> str:
        return f"Trace({len(self.rows)} statements)"


def _nothing() -> int:
    return 0


def _known(count: int) -> Callable[[], int]:
    return lambda: count


def trace(*, fuse: bool = True) -> Trace:
    """Record every statement that runs inside: ``with lagpu.trace() as t: ...``.

    What runs is what runs without a trace: a loop that would be one kernel is one, and that kernel
    logs each statement and level; a sweep or a search whose kernel keeps no log has one row a
    statement, for all levels. No device is waited for. A trace inside another one has its
    statements for itself.

    Parameters
    ----------
    fuse : bool, default True
        False for loops that run statement by statement: this shows the kernels that a planner
        chooses and the host's time of each statement, and is slower.

    Returns
    -------
    Trace
        Its ``rows``, ``totals()``, ``table()``, ``to_json()``, ``to_html()`` and ``plot()`` tell
        what ran.

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
