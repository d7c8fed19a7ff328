"""`trace`, `ranges` and `explain`: the cost of statements, their names in a profiler, plans."""

from __future__ import annotations

import io
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from lagpu import operations
from lagpu.backends.protocol import Backend, LoopRow, Measured, Meter, Phase
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.expr import Call, format_formula, mark_used
from lagpu.core.infix import MatMul
from lagpu.core.recorder import Observer, set_observer
from lagpu.core.views import SelectionMatrix
from lagpu.draw import look
from lagpu.draw.look import SvgCanvas, data, fill, text
from lagpu.errors import DomainMismatch
from lagpu.host import source
from lagpu.host.display import Lines
from lagpu.host.files import return_or_write
from lagpu.operations import Planned, Rejection

Shape = tuple[int, ...]
Count = Callable[[], int]


@dataclass(frozen=True)
class Row:
    """One statement in one iteration, or in all iterations of a loop whose kernel keeps no log.

    Attributes
    ----------
    level : int or None
        Iteration of the enclosing `loop`, from 0; -1 outside of a loop; None for all iterations.
    method, formula, where : str
        Name of the operation; the statement as mathematics, with the author's names;
        ``file.py:line``.
    shapes : tuple of tuple of int
        Shape of the output, then of the inputs.
    nvals_in, nvals_out : int or None
        Entries of the last input vector before the statement, or of the first matrix where a matrix
        is made; and entries of the output after it. None in a row for all iterations.
    direction, kernel, reason : str
        The choice made for a product, and why; empty for other operations. The kernel of a
        statement in a loop that ran as one kernel is ``"fused"``.
    edges, bytes : int or None
        Matrix entries that the product looked at, and memory moved, estimated
        (docs/design/trace.md). Bytes are None in a row for all iterations, and on cpu for
        statements other than products.
    kernel_ms : float
        Time of the statement's kernels: by events on a GPU, else by the host's clock; in a fused
        loop by the device's own clock. Among rows for all iterations, the product's row has the
        time of the whole loop, by events.
    host_ms, compile_ms, copy_ms, copy_bytes : float or None, float, float, int
        For the statement, the time of the host without compiling, None in a fused loop; of
        compiling; of copies between host and device; and their bytes.
    mode : str
        ``"fused"`` if the statement ran as part of one kernel for the whole loop, else ``"eager"``.
    phases : tuple of Phase
        The phases of a product on a grid; of one level of a search, the pieces, each with what it
        sent (docs/design/grid.md).
    """

    level: int | None
    method: str
    formula: str
    where: str
    shapes: tuple[Shape, ...]
    nvals_in: int | None
    nvals_out: int | None
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
    phases: tuple[Phase, ...] = ()


@dataclass(frozen=True)
class Totals:
    """Sums over a trace; copies and compiling include those outside of statements.

    Attributes
    ----------
    statements, edges, bytes : int
        Rows, matrix entries looked at, and bytes moved as far as they are estimated.
    kernel_ms, host_ms : float
        Times of the statements, and of launching fused loops.
    compile_ms, copy_ms, copy_bytes : float, float, int
        Sums over everything inside the trace.
    fused, unlogged, unrecorded : int
        Rows of statements in fused loops; how many of these rows are for all iterations, without
        known edges and bytes; and how many more rows did not fit the log.
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
    unlogged: int = 0
    unrecorded: int = 0


def _described(to: Any, call: Any, frame: FrameType | None, line: int) -> dict[str, Any]:
    """Return the fields of a row that are known before the statement runs, and its `counter`.

    The formula of a statement that assigns the loop's counter ends in ``<< ``; `counter` is the
    author's name of it, else empty.
    """
    where = "" if frame is None else f"{source.file_name(frame.f_code.co_filename)}:{line}"
    left, right = to.formula, call.formula
    counter = ""
    if type(right[0]) is operations.Counter and right[0].formula is None:
        named = () if frame is None else frame.f_locals.items()
        counter = next((name for name, x in named if x is right[0]), "iteration")
    parts = (*left, " << ") if counter else (*left, " << ", *right)
    formula = format_formula(parts, names_in(frame))
    # A number assigned to a scalar has no row, so a constant is the x of ``v[i] = x``.
    method = "set" if isinstance(call.operation, operations.Constant) else call.method
    known = {"method": method.replace("vxm", "mxv"), "formula": formula, "where": where}
    return known | {"shapes": (to.out.shape, *(x.shape for x in call.inputs)), "counter": counter}


def row_of(description: dict[str, Any], row: LoopRow, mode: str) -> Row:
    """Return the row of a statement in one iteration, or in all."""
    known = description | row.measured._asdict()
    counter = known.pop("counter")
    known["formula"] += str(row.level) if counter and row.level is not None else counter
    return Row(level=row.level, nvals_in=row.nvals_in, nvals_out=row.nvals_out, mode=mode, **known)


def names_in(frame: FrameType | None) -> dict[int, str]:
    """Return the variables of a frame that hold vectors, matrices and scalars, by ``id``."""
    held = () if frame is None else reversed(frame.f_locals.items())
    return {id(x): name for name, x in held if isinstance(x, _NAMED)}


_NAMED = (Vector, Matrix, Scalar, SelectionMatrix)


# ---- The rows as a table for a terminal, on a page, and as a chart.

_FIRST, _LAST = 40, 10  # rows of a long table
#: The kinds of statements in a chart, each with its colour.
_KINDS = {
    "push": look.VERMILION,
    "pull": look.BLUE,
    "other products": look.GREEN,
    "other statements": look.GREY,
}
_BARS = 240  # in a longer search a bar shows several levels
_LEFT, _ABOVE, _BELOW, _LEAST = 70, 30, 44, 160  # pixels around the bars, and their least width


class _Column(NamedTuple):
    """A column of the table and of the page: the field of a row, its name and its form."""

    field: str
    name: str
    text: bool = False
    digits: int = 0
    may_lack: bool = False  # left out of a page if it is empty in all rows


_COLUMNS = (
    _Column("level", "level"),
    _Column("formula", "statement", text=True),
    _Column("where", "where", text=True),
    _Column("shapes", "shapes", text=True),
    _Column("nvals_in", "in"),
    _Column("nvals_out", "out"),
    _Column("direction", "direction", text=True, may_lack=True),
    _Column("kernel", "kernel", text=True, may_lack=True),
    _Column("mode", "mode", text=True),
    _Column("edges", "edges", may_lack=True),
    _Column("bytes", "bytes", may_lack=True),
    _Column("kernel_ms", "kernel", digits=4),
    _Column("host_ms", "host", digits=4, may_lack=True),
    _Column("compile_ms", "compile", digits=1, may_lack=True),
    _Column("copy_ms", "copy", digits=4, may_lack=True),
    _Column("copy_bytes", "copied", may_lack=True),
    _Column("reason", "why", text=True, may_lack=True),
)
_SUMS = ("edges", "kernel_ms", "host_ms", "bytes")
_IN_TABLE = ("level", "formula", "nvals_in", "nvals_out", "kernel", *_SUMS, "direction", "where",
             "reason")  # fmt: skip
_NARROW = 7  # columns that fit a terminal


def _name(field: str) -> str:
    column = next(column for column in _COLUMNS if column.field == field)
    return f"{column.name} ms" if column.digits else column.name


def _cell(rows: Sequence[Row], field: str) -> str:
    """Return a field of a row, or of many rows that are folded into one."""
    row = rows[0]
    if field in _SUMS or (field.startswith("nvals") and len(rows) == 1):
        return _sum(rows, field)
    if len(rows) > 1:
        return {"level": "...", "formula": f"{len(rows):,} more statements"}.get(field, "")
    if field == "level":
        return "all" if row.level is None else "-" if row.level < 0 else str(row.level)
    return getattr(row, field) or ("-" if field in ("kernel", "direction") else "")


def _known(rows: Iterable[Any], field: str) -> list[Any]:
    return [value for row in rows if (value := getattr(row, field)) is not None]


def _sum(rows: Iterable[Row], field: str) -> str:
    """Return a number summed over rows; ``-`` if no row knows it."""
    known = _known(rows, field)
    if not known:
        return "-"
    total = sum(known)
    if field == "bytes":
        return _size(total)
    return f"{total:.3f}" if field.endswith("_ms") else f"{total:,}"


def _size(nbytes: int) -> str:
    from rich.filesize import decimal

    return decimal(nbytes)


def _sentences(totals: Totals) -> tuple[str, str]:
    """Return the totals as two sentences: the statements, and the compiling and copying."""
    launching = ", the launches of fused loops included" if totals.fused else ""
    ran = (
        f"{totals.statements:,} statements looked at {totals.edges:,} edges and moved an estimated "
        f"{_size(totals.bytes)}: {totals.kernel_ms:.3f} ms in kernels, "
        f"{totals.host_ms:.3f} ms on the host{launching}. "
    )
    eager = totals.statements - totals.fused
    if totals.fused:
        ran += f"{totals.fused:,} statements ran inside fused loops, {eager:,} by themselves."
    else:
        ran += "Each statement ran by itself."
    if totals.unlogged:
        ran += (
            f" {totals.unlogged:,} of them stand for all levels of loops whose kernels keep no "
            "log: entries, edges and bytes are not known."
        )
    if totals.unrecorded:
        ran += f" The log was full: {totals.unrecorded:,} more rows are missing."
    between = (
        f"In addition: compiling {totals.compile_ms:.1f} ms, "
        f"copies between host and device {totals.copy_ms:.3f} ms for {_size(totals.copy_bytes)}."
    )
    return ran, between


def _packed(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the rows by columns: each text once, and a column of equal values as one value."""
    numbers: dict[str, int] = {}
    columns = []
    for column in _COLUMNS:
        values = [_value(row, column) for row in rows]
        if column.may_lack and not any(values):
            continue
        if column.text:
            values = [numbers.setdefault(value, len(numbers)) for value in values]
        packed: dict[str, Any] = {"name": column.name, "digits": column.digits, "text": column.text}
        if len(set(values)) == 1:
            packed["all"] = values[0]
        else:
            packed["values"] = values
        columns.append(packed)
    return {"strings": list(numbers), "columns": columns, "count": len(rows)}


def _value(row: Row, column: _Column) -> Any:
    value = getattr(row, column.field)
    if column.field == "shapes":
        out, *inputs = ("x".join(map(str, shape)) or "1" for shape in value)
        return f"{out} << {', '.join(inputs)}" if inputs else out
    if column.field == "level":
        return "all" if value is None else None if value < 0 else value
    return round(value, column.digits) if column.digits and value is not None else value


def _summary(rows: Sequence[Row]) -> str:
    """Return a table with one line for each operation and kernel."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.method, row.direction, row.kernel), []).append(row)
    head = "".join(f"<th>{name}</th>" for name in ("operation", "direction", "kernel"))
    for name in ("statements", *map(_name, _SUMS)):
        head += f'<th class="n">{name}</th>'
    lines = [f"<tr>{head}</tr>"]
    for (method, direction, kernel), group in groups.items():
        cells = f'<td>{text(method)}</td><td class="{text(direction)}">{text(direction)}</td>'
        cells += f"<td>{text(kernel)}</td>"
        for number in (f"{len(group):,}", *(_sum(group, field) for field in _SUMS)):
            cells += f'<td class="n">{number}</td>'
        lines.append(f"<tr>{cells}</tr>")
    return "<table>" + "".join(lines) + "</table>"


# ------------------------------------------------------------------------------- charts


def _stacks(rows: Iterable[Row]) -> tuple[dict[str, Any], str]:
    """Return kernel ms by level, (levels,), of each kind of statement; and what is left out."""
    rows = list(rows)
    unknown = [row.kernel_ms for row in rows if row.level is None]
    left_out = f"Not by level: {sum(unknown):.4f} ms of loops whose kernels keep no log."
    count = max((row.level for row in rows if row.level is not None), default=-1) + 1
    stacks = {name: np.zeros(count) for name in _KINDS}
    for row in rows:
        if row.level is not None and row.level >= 0:
            is_product = row.method in ("mxv", "mxv_selection", "matrix_mxm")
            other = "other products" if is_product else "other statements"
            stacks[row.direction if row.direction in _KINDS else other][row.level] += row.kernel_ms
    return {k: times for k, times in stacks.items() if times.any()}, left_out if unknown else ""


def _chart(rows: Sequence[Row]) -> str:
    """Return bars of kernel time by level, products coloured by their direction."""
    stacks, left_out = _stacks(rows)
    if not stacks:
        return f"<p>{text(left_out)}</p>" if left_out else ""
    levels = len(next(iter(stacks.values())))
    a_bar = -(-levels // _BARS)
    starts = np.arange(0, levels, a_bar)
    bars = {name: np.add.reduceat(times, starts) for name, times in stacks.items()}
    highest = float(sum(bars.values()).max()) or 1.0  # type: ignore[union-attr]
    width, height = 1130, 140
    each = min(60.0, width / len(starts))
    canvas, wide = SvgCanvas(), max(len(starts) * each, _LEAST)
    for share in (0.0, 0.5, 1.0):
        y = height - share * height
        canvas.path(f"M0 {y:g}H{wide:.0f}", 'stroke="#d8dee5"')
        canvas.words((-6, y), f"{share * highest:.3g}", 14, look.MUTED, "right")
    canvas.words((-_LEFT + 2, -19), "kernel ms", 14, look.MUTED, "left")
    for at in range(0, len(starts), max(1, -(-len(starts) * 40 // int(wide)))):
        canvas.words(((at + 0.5) * each, height + 12), str(at * a_bar), 14, look.MUTED)
    canvas.words((0, height + 31), "level", 14, look.MUTED, "left")
    top = np.full(len(starts), float(height))
    for name, times in bars.items():
        tall = times / highest * height
        top -= tall
        for k in np.flatnonzero(tall):
            canvas.parts.append(
                f'<rect x="{k * each:.1f}" y="{top[k]:.1f}" width="{max(each - 1, 0.5):.1f}" '
                f'height="{tall[k]:.1f}" fill="{_KINDS[name]}"/>'
            )
    named = ", ".join(f'<b style="color:{_KINDS[name]}">{name}</b>' for name in bars)
    shown = f"levels 0 to {levels - 1}" + (f", {a_bar} per bar" if a_bar > 1 else "")
    canvas.grow_to(wide - 4, height + _BELOW - 4)
    drawn = canvas.svg(f"kernel time by level: {', '.join(bars)}", left=-_LEFT, top=-_ABOVE)
    return (
        f"<figure>{drawn}<figcaption>Kernel time in milliseconds by level, {shown}: "
        f"{named}.{left_out and ' '}{text(left_out)}</figcaption></figure>"
    )


# ---- What records them.


class Trace(Observer):
    """The rows of the statements that ran inside ``with``, in order; see `trace`.

    A traced program does not wait for the device; reading the rows does.
    """

    def __init__(self, fuse: bool = True) -> None:
        self.why_eager = "" if fuse else "a trace of single statements is on"
        self._rows: list[Row] = []
        self._pending: deque[Callable[[], list[Row]]] = deque()
        self._meters: dict[int, tuple[Backend, Meter]] = {}
        self._stopped: list[Meter] = []
        self._between: list[Callable[[], Measured]] = []  # measured outside of single statements

    # ---------------------------------------------------------------------------- recording
    def __exit__(self, *exc_info: object) -> None:
        try:
            for _, meter in reversed(self._meters.values()):
                self._between.append(meter.stop())
                self._stopped.append(meter)
            self._meters = {}
        finally:
            super().__exit__()

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """Run a checked statement and record it; see `Observer`."""
        frame = source.author(2)
        self._run(to, call, work, frame, getattr(frame, "f_lineno", 0))

    def _run(
        self, to: Any, call: Any, work: Callable[[], None], frame: FrameType | None, line: int
    ) -> None:
        out, inputs, level = to.out, call.inputs, self.level
        meter = self._meter(call.backend or out.backend)
        before: Count = int  # int() is 0
        if inputs and inputs[-1].ndim == 1:
            before = meter.count(inputs[-1].data)
        elif inputs and out.ndim != 1:
            before = meter.count(inputs[0].stored.data)
        of_one = isinstance(call.operation, operations.Constant)  # ``v[i] = x``
        operation = None if of_one else call.operation
        measured = meter.run(work, None if out.ndim == 0 else out.data, operation)
        count: int = out.nvals if out.ndim == 0 else 0
        after: Count = (lambda: count) if out.ndim == 0 else meter.count(out.data)
        known = _described(to, call, frame, line)  # now, so that the row keeps no vector alive

        def rows() -> list[Row]:
            return [row_of(known, LoopRow(0, level, before(), after(), measured()), "eager")]

        self._pending.append(rows)

    def noted(self, to: Any, call: Any) -> tuple[Any, Any, FrameType | None, int]:
        """Return what the row of a recorded statement needs; see `Observer`."""
        # The formula is formatted once the loop runs. All statements of a body have one frame.
        frame = self.notes[-1][2] if self.notes else source.author(2)
        return to, call, frame, getattr(frame, "f_lineno", 0)

    def replay(self, note: Any, work: Callable[[], None]) -> None:
        """Run a recorded statement by itself after all; see `Observer`."""
        to, call, frame, line = note
        if call.backend is None:  # a number for a scalar has no row
            work()
            return
        self._run(to, call, work, frame, line)

    def run_loop(self, backend: Backend, plan: Callable[[], Planned]) -> Planned:
        """Run a loop that was recorded, and record its rows; see `Observer`."""
        loop, measured = self._meter(backend).run_loop(plan)
        if measured is None:
            return loop
        body = [_described(*each) for each in self.notes]  # while the device is at work
        self._pending.append(
            lambda: [
                row_of(body[row.statement], row, "fused")
                for row in measured.rows()
                if row.statement < len(body)  # others are not the author's: masks of a sweep
            ]
        )
        self._between.append(measured.total)
        return loop

    def _meter(self, backend: Backend) -> Meter:
        found = self._meters.get(id(backend))
        if found is None:
            found = self._meters[id(backend)] = backend, backend.meter()
        return found[1]

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
        sums = {field: sum(_known(rows, field)) for field in ("edges", "bytes", "kernel_ms")}
        for field in ("host_ms", "compile_ms", "copy_ms", "copy_bytes"):
            sums[field] = sum(_known(parts, field))
        return Totals(
            len(rows), **sums, fused=sum(row.mode == "fused" for row in rows),
            unlogged=sum(row.level is None for row in rows),
            unrecorded=sum(meter.unrecorded() for meter in meters),
        )  # fmt: skip

    def to_json(self, path: str | Path | None = None) -> str | None:
        """Return rows and totals as one JSON object, or write it to the file `path`."""
        rows = [asdict(row) for row in self.rows]
        return return_or_write(path, json.dumps({"totals": asdict(self.totals()), "rows": rows}))

    def table(self) -> str:
        """Return the rows as a plain text table, a long one folded, with the totals below."""
        from rich.console import Console

        out = Console(file=io.StringIO(), width=10_000, color_system=None)
        with out.capture() as captured:
            out.print(self._table(whole=True))
        return Lines("\n".join([line.rstrip() for line in captured.get().splitlines()]).strip("\n"))

    def __rich__(self) -> Any:
        return self._table(whole=False)

    def _table(self, whole: bool) -> Any:
        """Return a table of the rows, the middle of a long one folded, totals in the caption."""
        # Unless it is `whole`, only the columns that fit a terminal are shown.
        from rich import box
        from rich.table import Table
        from rich.text import Text

        rows, fields = self.rows, _IN_TABLE if whole else _IN_TABLE[:_NARROW]
        table = Table(box=box.SIMPLE, caption="\n".join(_sentences(self.totals())))
        table.caption_justify = "left"
        for field in fields:
            number = field in ("level", "nvals_in", "nvals_out", *_SUMS)
            table.add_column(_name(field), justify="right" if number else "left", no_wrap=number)
        groups = [[row] for row in rows]
        if len(rows) > _FIRST + _LAST + 1:
            groups[_FIRST:-_LAST] = [rows[_FIRST:-_LAST]]
        for group in groups:
            table.add_row(*(Text(_cell(group, field)) for field in fields))
        return table

    def to_html(
        self, path: str | Path | None = None, *, title: str = "Trace",
        facts: Mapping[str, object] | None = None,
    ) -> str | None:  # fmt: skip
        """Return one self-contained HTML page: totals, a chart and a table to sort.

        It is written to the file `path` instead if that is given; `facts` are names and values to
        show below the heading, such as the name of the graph.
        """
        ran, between = _sentences(self.totals())
        named = (facts or {}).items()
        page = fill(
            "trace.html", title=text(title), ran=text(ran), between=text(between),
            facts="".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in named),
            chart=_chart(self.rows), summary=_summary(self.rows), data=data(_packed(self.rows)),
        )  # fmt: skip
        return return_or_write(path, page)

    def plot(self, ax: Any = None) -> Any:
        """Draw kernel time by level, and the entries of the multiplied vectors; return the axes.

        They are `ax`, or those of a new figure. Without Matplotlib `BackendUnavailable` is raised.
        """
        if ax is None:
            ax = look.pyplot("plot").subplots(figsize=(5.2, 3.9), layout="constrained")[1]
        stacks, left_out = _stacks(self.rows)
        bottom: Any = 0.0
        for name, times in stacks.items():
            ax.bar(range(len(times)), times, bottom=bottom, color=_KINDS[name], label=name)
            bottom = bottom + times
        line = {row.level: max(row.nvals_in or 0, 1) for row in self.rows
                if row.method == "mxv" and row.level is not None and row.level >= 0}  # fmt: skip
        if line:
            other = ax.twinx()
            style = ".-" if len(line) < 100 else "-"
            other.plot(list(line), list(line.values()), style, color=look.INK, lw=0.8)
            other.set_yscale("log")
            other.yaxis.set_major_formatter("{x:,.0f}")
            other.set_ylabel("line: entries of the vector multiplied")
        ax.set_xlabel(f"level\n{left_out}".strip())
        ax.set_ylabel("kernel time [ms]")
        if stacks:
            ax.xaxis.get_major_locator().set_params(integer=True)
            ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(_KINDS), frameon=False)
        return ax

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{text(line)}</p>" for line in _sentences(self.totals()))
        return f"<div>{lines}{_chart(self.rows)}{_summary(self.rows)}</div>"

    def __repr__(self) -> str:
        return f"Trace({len(self.rows)} statements)"


def trace(*, fuse: bool = True) -> Trace:
    """Record every statement that runs inside: ``with lagpu.trace() as t: ...``.

    The program runs as it does without a trace: a loop that runs as one kernel still does, and the
    kernel logs each statement and level; a sweep or a search whose kernel keeps no log has one row
    for each statement, for all levels together. The program does not wait for the device. Of two
    traces, the inner one has the statements.

    Without `fuse` loops run statement by statement: slower, but with the kernel that the planner
    chose and the host's time for each statement. The trace has ``rows``, ``totals()``, ``table()``,
    ``to_json()``, ``to_html()`` and ``plot()``.

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


# ---- The text of each statement and loop for a profiler, such as Nsight Systems.


class Ranges(Observer):
    """Runs each statement, and each loop that is one kernel, in a range that has its text."""

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """See `Observer`."""
        with _range(call.backend or to.out.backend, _text()):
            work()

    def noted(self, to: Any, call: Any) -> tuple[Backend | None, str]:
        """See `Observer`."""
        return call.backend, _text()

    def replay(self, note: Any, work: Callable[[], None]) -> None:
        """See `Observer`."""
        with _range(*note):
            work()

    def run_loop(self, backend: Backend, plan: Callable[[], Planned]) -> Planned:
        """See `Observer`."""
        loop = plan()
        if not isinstance(loop, Rejection):
            texts = dict.fromkeys(text for _, text in self.notes)
            with _range(backend, f"{loop.name}: {'; '.join(texts)}"):
                loop.run()
        return loop


def _text() -> str:
    """Return the source text of the running statement, and its place."""
    file, line, text = source.line_of_author()
    return f"{text} ({Path(file).name}:{line})"


def _range(backend: Backend | None, name: str) -> AbstractContextManager[Any]:
    device = None if backend is None else backend.device
    return nullcontext() if device is None else device.range(name)


def ranges() -> AbstractContextManager[Any]:
    """Name statements and loops for a profiler: ``with lagpu.ranges(): ...``.

    On ``gpu`` each statement, and each loop that runs as one kernel, is an NVTX range named by its
    text, as ``nsys profile`` shows it: ``levels(frontier.S) << depth (search.py:12)``. Fused loops
    run as usual; other loops run each statement from the source, so that each has its range.
    Nothing is measured, and other backends show nothing. The statements are those of the thread
    that enters the block; of ranges and a trace, the inner one has them.

    The environment variable ``LAGPU_RANGES=1`` does the same for a whole program.

    Examples
    --------
    >>> from lagpu.algorithms import bfs_levels
    >>> from lagpu.generators import path
    >>> with ranges():
    ...     bfs_levels(path(3, backend="cpu"), 0).to_dict()
    {0: 0, 1: 1, 2: 2}
    """
    return Ranges()


if os.environ.get("LAGPU_RANGES", "0") not in ("", "0"):  # for a program that does not call it
    set_observer(Ranges())


# ---- How a product would run.


def explain(call: Any) -> str:
    """Return how a deferred product would run: direction, kernel, the reason in numbers, memory.

    Parameters
    ----------
    call : Call
        A product with its semiring, such as ``semiring.any_pair(q @ A)``, of a vector or of a
        matrix. It is not run, and may be assigned afterwards.

    Returns
    -------
    str
        A few lines, which a prompt shows as `print` does. A mask belongs to the assignment, so the
        lines are about the product without a mask; for matrices a mask may change the choice.

    Raises
    ------
    DomainMismatch
        If it is not a deferred product.
    InvalidValue, NotSupported
        If the product names a kernel or a policy that is unknown or cannot run it.

    Examples
    --------
    >>> import lagpu
    >>> A = lagpu.generators.path(9, backend="cpu").dup(name="A")
    >>> q = lagpu.Vector.from_coo([0], True, size=9, backend="cpu", name="q")
    >>> explain(lagpu.semiring.any_pair(q @ A))
    q any_pair A on cpu
    push, SuiteSparse saxpy: edges 1 <= unexplored 15 / 8
    by rows 0.0 MB
    """
    mark_used(call)
    if isinstance(call, MatMul):
        fact, remedy = f"{call!r} has no semiring", f"Write semiring.any_pair({call!r})"
        raise DomainMismatch(f"explain: {fact}. {remedy}.")
    products = (operations.Multiply, operations.MultiplySelection)
    if not isinstance(call, Call) or not isinstance(call.operation, products):
        kind = type(call).__name__
        fact = f"{call!r} is not a product" if isinstance(call, Call) else f"{kind} is not a Call"
        raise DomainMismatch(f"explain: {fact}. Give a product such as semiring.any_pair(q @ A).")
    backend: Any = call.backend
    return Lines("\n".join([f"{call!r} on {backend.name}", *backend.explain(call.operation)]))
