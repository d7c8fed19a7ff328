"""A trace as a table for a terminal, as a page, and as a plot."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from lagpu.draw import look
from lagpu.draw.look import SvgCanvas, data, fill, text
from lagpu.observe.trace.rows import Row, Totals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
_NARROW = 7  # so many columns fit a terminal


def _name(field: str) -> str:
    column = next(column for column in _COLUMNS if column.field == field)
    return f"{column.name} ms" if column.digits else column.name


# ----------------------------------------------------------------------------- the table


def rich_table(rows: Sequence[Row], totals: Totals, *, whole: bool = False) -> Table:
    """Return a table of the rows, the middle of a long one folded, totals in the caption.

    Unless `whole` is True, only the columns that fit a terminal are shown.
    """
    fields = _IN_TABLE if whole else _IN_TABLE[:_NARROW]
    table = Table(box=box.SIMPLE, caption="\n".join(_sentences(totals)))
    table.caption_justify = "left"
    for field in fields:
        number = field in ("level", "nvals_in", "nvals_out", *_SUMS)
        table.add_column(_name(field), justify="right" if number else "left", no_wrap=number)
    groups = [[row] for row in rows]
    if len(rows) > _FIRST + _LAST + 1:
        groups[_FIRST:-_LAST] = [list(rows[_FIRST:-_LAST])]
    for group in groups:
        table.add_row(*(Text(_cell(group, field)) for field in fields))
    return table


def _cell(rows: Sequence[Row], field: str) -> str:
    """Return a field of a row, or of many rows that are folded into one."""
    row = rows[0]
    if field in _SUMS or (field.startswith("nvals") and len(rows) == 1):
        return _sum(rows, field)
    if len(rows) > 1:
        return {"level": "...", "formula": f"{len(rows):,} more statements"}.get(field, "")
    if field == "level":
        return "all" if row.level is None else "-" if row.level < 0 else str(row.level)
    value: str = getattr(row, field)
    return value or ("-" if field in ("kernel", "direction") else "")


def _sum(rows: Iterable[Row], field: str) -> str:
    """Return a number summed over rows; ``-`` if no row knows it."""
    known = [value for row in rows if (value := getattr(row, field)) is not None]
    if not known:
        return "-"
    total = sum(known)
    if field == "bytes":
        return decimal(total)
    return f"{total:.3f}" if field.endswith("_ms") else f"{total:,}"


def plain(rows: Sequence[Row], totals: Totals) -> str:
    """Return the whole table as text, as wide as needed."""
    table = rich_table(rows, totals, whole=True)
    out = Console(file=io.StringIO(), width=10_000, color_system=None)
    wide = Measurement.get(out, out.options, table).maximum
    longest = max(len(line) for line in _sentences(totals))
    out.width = max(wide, longest + 2)
    with out.capture() as captured:
        out.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")


def _sentences(totals: Totals) -> tuple[str, str]:
    """Return the totals as two sentences: the statements, and the compiling and copying."""
    launching = ", the launches of fused loops included" if totals.fused else ""
    ran = (
        f"{totals.statements:,} statements looked at {totals.edges:,} edges and moved an estimated "
        f"{decimal(totals.bytes)}: {totals.kernel_ms:.3f} ms in kernels, "
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
        f"copies between host and device {totals.copy_ms:.3f} ms for {decimal(totals.copy_bytes)}."
    )
    return ran, between


# ------------------------------------------------------------------------------ the page


def page(rows: Sequence[Row], totals: Totals, title: str, facts: Mapping[str, object]) -> str:
    """Return the page, with `facts` below the heading."""
    ran, between = _sentences(totals)
    return fill(
        "trace.html",
        title=text(title),
        facts="".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in facts.items()),
        ran=text(ran),
        between=text(between),
        chart=_chart(rows),
        summary=_summary(rows),
        data=data(_packed(rows)),
    )


def summary(rows: Sequence[Row], totals: Totals) -> str:
    """Return totals, chart and sums by kernel as HTML for a notebook."""
    lines = "".join(f"<p>{text(line)}</p>" for line in _sentences(totals))
    return f"<div>{lines}{_chart(rows)}{_summary(rows)}</div>"


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
            kind = row.direction if row.direction in _KINDS else other
            stacks[kind][row.level] += row.kernel_ms
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
    canvas = SvgCanvas()
    _axes(canvas, highest, height, len(starts), each, a_bar)
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
    canvas.grow_to(max(len(starts) * each, _LEAST) - 4, height + _BELOW - 4)
    drawn = canvas.svg(f"kernel time by level: {', '.join(bars)}", left=-_LEFT, top=-_ABOVE)
    return (
        f"<figure>{drawn}<figcaption>Kernel time in milliseconds by level, {shown}: "
        f"{named}.{left_out and ' '}{text(left_out)}</figcaption></figure>"
    )


def _axes(
    canvas: SvgCanvas, highest: float, height: int, bars: int, each: float, a_bar: int
) -> None:
    """Draw lines and numbers of both axes, below the bars: milliseconds, and levels."""
    wide = max(bars * each, _LEAST)
    for share in (0.0, 0.5, 1.0):
        y = height - share * height
        canvas.path(f"M0 {y:g}H{wide:.0f}", 'stroke="#d8dee5"')
        canvas.words((-6, y), f"{share * highest:.3g}", 14, look.MUTED, "right")
    canvas.words((-_LEFT + 2, -19), "kernel ms", 14, look.MUTED, "left")
    for k in range(0, bars, max(1, -(-bars * 40 // int(wide)))):
        canvas.words(((k + 0.5) * each, height + 12), str(k * a_bar), 14, look.MUTED)
    canvas.words((0, height + 31), "level", 14, look.MUTED, "left")


def plot(rows: Sequence[Row], ax: Axes | None = None) -> Axes:
    """Draw bars of kernel time by level, and the entries of multiplied vectors; see `Trace`."""
    if ax is None:
        ax = look.pyplot("plot").subplots(layout="constrained")[1]
    stacks, left_out = _stacks(rows)
    bottom: Any = 0.0
    for name, times in stacks.items():
        ax.bar(range(len(times)), times, bottom=bottom, color=_KINDS[name], label=name)
        bottom = bottom + times
    line = {row.level: max(row.nvals_in or 0, 1) for row in rows
            if row.method == "mxv" and row.level is not None and row.level >= 0}  # fmt: skip
    if line:
        other = ax.twinx()
        style = ".-" if len(line) < 100 else "-"
        other.plot(list(line), list(line.values()), style, color=look.INK, lw=0.8)
        other.set_yscale("log")
        other.set_ylabel("entries of the vector multiplied")
    ax.set_xlabel(f"level\n{left_out}".strip())
    ax.set_ylabel("kernel time [ms]")
    if stacks:
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(_KINDS), frameon=False)
    return ax
