"""What ran: one row a statement, recorded while a trace is on, at no cost while it is off."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from lagpu.backends.base import Backend, Counter
from lagpu.backends.measure import LoopRow, Measured, Meter
from lagpu.expr import spell
from lagpu.watch import Watcher, author, watching

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Row", "Totals", "Trace", "names_in", "trace"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """One statement in one iteration.

    Attributes
    ----------
    level : int
        Iteration of the enclosing `loop`, from 0; -1 outside of one.
    method : str
        Name of the operation.
    formula : str
        What stood in the program, with the author's names.
    where : str
        ``file.py:line``.
    shapes : tuple of tuple of int
        Of the output, then of the inputs.
    nvals_in, nvals_out : int
        Entries of the last input vector before, or of the first matrix where a matrix is made; and
        of the output after.
    direction, kernel, reason : str
        The choice made for a product, and why; empty for other operations. In a loop that ran as
        one kernel, that is ``"fused"``.
    edges : int or None
        Matrix entries the product looked at.
    bytes : int or None
        Memory moved, estimated (docs/design/trace.md); None in a fused loop.
    kernel_ms : float
        Time of the statement's kernels: by events on a GPU, else by the host's clock; in a fused
        loop by the device's own clock.
    host_ms : float or None
        Time the host was busy with the statement, compiling apart; None in a fused loop.
    compile_ms : float
        Time spent compiling kernels for it.
    copy_ms, copy_bytes : float, int
        Copies between host and device for it.
    mode : str
        ``"fused"`` if it ran as a part of a kernel that is the whole loop, else ``"eager"``.
    """

    level: int
    method: str
    formula: str
    where: str
    shapes: tuple[Shape, ...]
    nvals_in: int
    nvals_out: int
    direction: str
    kernel: str
    reason: str
    edges: int | None
    bytes: int | None
    kernel_ms: float
    host_ms: float | None
    compile_ms: float
    copy_ms: float
    copy_bytes: int
    mode: str = "eager"


@dataclass(frozen=True)
class Totals:
    """Sums over a trace; copies and compiling include those outside of statements.

    Attributes
    ----------
    statements, edges, bytes : int
        Rows, matrix entries looked at, and bytes moved as far as they are estimated.
    kernel_ms, host_ms : float
        Of the statements, and of launching fused loops.
    compile_ms, copy_ms, copy_bytes : float, float, int
        Of the whole traced stretch.
    fused, unrecorded : int
        Rows of statements in fused loops, and how many more there was no room for.
    """

    statements: int
    edges: int
    bytes: int
    kernel_ms: float
    host_ms: float
    compile_ms: float
    copy_ms: float
    copy_bytes: int
    fused: int = 0
    unrecorded: int = 0


class _Statement(NamedTuple):
    """What a row says of a statement whatever it did; a formula may lack the loop's counter."""

    method: str
    formula: str
    where: str
    shapes: tuple[Shape, ...]
    is_counter: bool


class _Recorded(NamedTuple):
    """A statement and where it stands."""

    to: Any
    call: Any
    frame: FrameType | None
    where: str


class Trace(Watcher):
    """The rows of one traced stretch of a program, in order.

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
        self._pending: deque[Callable[[], Iterable[Row]]] = deque()
        self._meters: dict[int, tuple[Backend, Meter]] = {}
        self._stopped: list[Meter] = []
        self._outside: list[Callable[[], Measured]] = []
        self._recorded: list[_Recorded] = []

    # ---------------------------------------------------------------------------- recording
    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """Run a checked statement and record it; see `lagpu.watch.Watcher`."""
        frame = author()
        self._run(_Recorded(to, call, frame, _place(frame)), work)

    def _run(self, which: _Recorded, work: Callable[[], None]) -> None:
        to, call = which.to, which.call
        meter = self._meter(call.backend)
        out = to.out
        is_vector = out.ndim == 1
        before = _nothing
        if call.inputs and call.inputs[-1].ndim == 1:
            before = meter.count(call.inputs[-1].data)
        elif call.inputs and out.ndim == 2:
            before = _known(call.inputs[0].nvals)
        measured = meter.run(work, call.method, out.data if is_vector else None, call.args)
        after = meter.count(out.data) if is_vector else _known(out.nvals)
        said, level = _statement(which), self.level  # a row keeps no vector alive
        self._pending.append(
            lambda: [_row(said, LoopRow(0, level, before(), after(), measured()), "eager")]
        )

    def recorded(self, to: Any, call: Any) -> None:
        """Note a statement of a loop's body; see `lagpu.watch.Watcher`."""
        frame = author()
        self._recorded.append(_Recorded(to, call, frame, _place(frame)))

    def replay(self, k: int, work: Callable[[], None]) -> None:
        """Run a statement that was recorded in vain; see `lagpu.watch.Watcher`."""
        self._run(self._recorded[k], work)

    def run_loop(self, backend: Backend, work: Callable[[], bool]) -> bool:
        """Run a loop that was recorded, and what it logs; see `lagpu.watch.Watcher`."""
        whole = self._meter(backend).run_loop(work)
        if whole is None:
            return False
        body = [_statement(found) for found in self._recorded]  # while the device is at work
        self._pending.append(
            lambda: [_row(body[row.statement], row, "fused") for row in whole.rows()]
        )
        self._outside.append(whole.measured)
        return True

    def forget(self) -> None:
        """Forget what was recorded; see `lagpu.watch.Watcher`."""
        self._recorded.clear()

    def _meter(self, backend: Backend) -> Meter:
        found = self._meters.get(id(backend))
        if found is None:
            found = self._meters[id(backend)] = backend, backend.meter()
        return found[1]

    def _stop(self) -> None:
        for _, meter in reversed(self._meters.values()):
            self._outside.append(meter.stop())
            self._stopped.append(meter)
        self._meters = {}

    # ------------------------------------------------------------------------------ reading
    @property
    def rows(self) -> list[Row]:
        """One row a statement, in order; waits for the device."""
        while self._pending:
            self._rows.extend(self._pending[0]())
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
            unrecorded=sum(meter.unrecorded() for meter in meters),
        )

    def to_json(self) -> str:
        """Return rows and totals as one JSON object."""
        rows = [asdict(row) for row in self.rows]
        return json.dumps({"totals": asdict(self.totals()), "rows": rows})

    def table(self) -> str:
        """Return the rows as a plain text table, with the totals below; long ones are folded."""
        from lagpu.tracetable import plain

        return plain(self)

    def to_html(self, title: str = "Trace", facts: Mapping[str, object] | None = None) -> str:
        """Return one HTML page that needs no other file: totals, a chart and a list to sort.

        Parameters
        ----------
        title : str
            Its heading.
        facts : mapping, optional
            What else to show at its head, such as the graph's name.
        """
        from lagpu.tracepage import page

        return page(self, title, facts or {})

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
        from lagpu.traceplot import plot

        return plot(self, ax)

    def __rich__(self) -> Table:
        from lagpu.tracetable import rich_table

        return rich_table(self)

    def _repr_html_(self) -> str:
        from lagpu.tracepage import summary

        return summary(self)

    def __repr__(self) -> str:
        return f"Trace({len(self.rows)} statements)"


def _nothing() -> int:
    return 0


def _known(count: int) -> Callable[[], int]:
    return lambda: count


def _statement(which: _Recorded) -> _Statement:
    """Spell a statement, with the names that its objects have in the author's frame."""
    to, call, frame, where = which
    names, is_counter = names_in(frame), type(call.formula[0]) is Counter
    right = "" if is_counter else spell(call.formula, names)
    shapes = (to.out.shape, *(x.shape for x in call.inputs))
    return _Statement(
        call.method, f"{spell(to.formula, names)} << {right}", where, shapes, is_counter
    )


def _row(said: _Statement, row: LoopRow, mode: str) -> Row:
    return Row(
        level=row.level,
        method=said.method,
        formula=said.formula + str(row.level) * said.is_counter,
        where=said.where,
        shapes=said.shapes,
        nvals_in=row.nvals_in,
        nvals_out=row.nvals_out,
        mode=mode,
        **row.measured._asdict(),
    )


def _place(frame: FrameType | None) -> str:
    if frame is None:
        return ""
    file = frame.f_code.co_filename.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{file}:{frame.f_lineno}"


def names_in(frame: FrameType | None) -> dict[int, str]:
    """Return the ``id`` of each vector, matrix and scalar of a frame with its name there."""
    if frame is None:
        return {}
    return {
        id(value): name
        for name, value in reversed(frame.f_locals.items())
        if hasattr(type(value), "_call_for")
    }


@contextmanager
def trace(*, fuse: bool = True) -> Iterator[Trace]:
    """Record every statement that runs inside: ``with lagpu.trace() as t: ...``.

    What runs is what runs without a trace: a loop that would be one kernel is one, and that kernel
    logs each statement and level. No device is waited for. A trace inside another one has its
    statements for itself.

    Parameters
    ----------
    fuse : bool, default True
        False for loops that run statement by statement: this shows the kernels that a planner
        chooses, bytes, and the host's time of each statement, and is slower.

    Yields
    ------
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
    found = Trace(fuse)
    with watching(found):
        try:
            yield found
        finally:
            found._stop()
