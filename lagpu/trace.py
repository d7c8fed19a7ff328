"""What ran: one row a statement, recorded while a trace is on, at no cost while it is off."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from lagpu.backends.base import Backend, Measured, Meter
from lagpu.expr import spell
from lagpu.watch import author, watching

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
        The choice made for a product, and why; empty for other operations.
    edges : int or None
        Matrix entries the product looked at.
    bytes : int or None
        Memory moved, estimated (docs/design/trace.md).
    kernel_ms : float
        Time of the statement's kernels: by events on a GPU, else by the host's clock.
    host_ms : float
        Time the host was busy with the statement, compiling apart.
    compile_ms : float
        Time spent compiling kernels for it.
    copy_ms, copy_bytes : float, int
        Copies between host and device for it.
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
    host_ms: float
    compile_ms: float
    copy_ms: float
    copy_bytes: int


@dataclass(frozen=True)
class Totals:
    """Sums over a trace; copies and compiling include those outside of statements.

    Attributes
    ----------
    statements, edges, bytes : int
        Rows, matrix entries looked at, and bytes moved as far as they are estimated.
    kernel_ms, host_ms : float
        Of the statements.
    compile_ms, copy_ms, copy_bytes : float, float, int
        Of the whole traced stretch.
    """

    statements: int
    edges: int
    bytes: int
    kernel_ms: float
    host_ms: float
    compile_ms: float
    copy_ms: float
    copy_bytes: int


class Trace:
    """The rows of one traced stretch of a program, in order.

    A device is not waited for while it is traced: reading the rows waits.
    """

    why_eager = "a trace is on"

    def __init__(self) -> None:
        self.level = -1
        self._rows: list[Row] = []
        self._pending: deque[Callable[[], Row]] = deque()
        self._meters: dict[int, tuple[Backend, Meter]] = {}
        self._outside: list[Callable[[], Measured]] = []

    # ---------------------------------------------------------------------------- recording
    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """Run a checked statement and record it; see `lagpu.watch.Watcher`."""
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
        frame, level, method = author(), self.level, call.method  # a row keeps no vector alive
        names = names_in(frame)
        formula = f"{spell(to.formula, names)} << {spell(call.formula, names)}"
        where = "" if frame is None else _place(frame)
        shapes = (out.shape, *(x.shape for x in call.inputs))
        self._pending.append(
            lambda: Row(
                level,
                method,
                formula,
                where,
                shapes,
                before(),
                after(),
                **measured()._asdict(),
            )
        )

    def _meter(self, backend: Backend) -> Meter:
        found = self._meters.get(id(backend))
        if found is None:
            found = self._meters[id(backend)] = backend, backend.meter()
        return found[1]

    def _stop(self) -> None:
        for _, meter in reversed(self._meters.values()):
            self._outside.append(meter.stop())
        self._meters = {}

    # ------------------------------------------------------------------------------ reading
    @property
    def rows(self) -> list[Row]:
        """One row a statement, in order; waits for the device."""
        while self._pending:
            self._rows.append(self._pending.popleft()())
        return self._rows

    def totals(self) -> Totals:
        """Return the sums over all rows, with what was copied and compiled between them."""
        rows = self.rows
        parts: list[Any] = [*rows, *(measured() for measured in self._outside)]
        return Totals(
            statements=len(rows),
            edges=sum(row.edges or 0 for row in rows),
            bytes=sum(row.bytes or 0 for row in rows),
            kernel_ms=sum(row.kernel_ms for row in rows),
            host_ms=sum(row.host_ms for row in rows),
            compile_ms=sum(part.compile_ms for part in parts),
            copy_ms=sum(part.copy_ms for part in parts),
            copy_bytes=sum(part.copy_bytes for part in parts),
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
        return f"Trace({len(self._rows) + len(self._pending)} statements)"


def _nothing() -> int:
    return 0


def _known(count: int) -> Callable[[], int]:
    return lambda: count


def _place(frame: FrameType) -> str:
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
def trace() -> Iterator[Trace]:
    """Record every statement that runs inside: ``with lagpu.trace() as t: ...``.

    Loops run statement by statement inside, and no device is waited for. A trace inside another
    one has its statements for itself.

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
    found = Trace()
    with watching(found):
        try:
            yield found
        finally:
            found._stop()
