"""The page and plot of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lagpu.draw.svg import data, fill, text
from lagpu.errors import BackendUnavailable
from lagpu.observe.trace.rows import Row, Totals
from lagpu.observe.trace.table import KINDS, kind, not_by_level, of_levels, sentences, sums


class _Column(NamedTuple):
    name: str
    field: str
    text: bool = False
    digits: int = 0
    may_lack: bool = False  # left out if it is empty in all rows


_COLUMNS = (
    _Column("level", "level"),
    _Column("statement", "formula", text=True),
    _Column("where", "where", text=True),
    _Column("shapes", "shapes", text=True),
    _Column("in", "nvals_in"),
    _Column("out", "nvals_out"),
    _Column("direction", "direction", text=True, may_lack=True),
    _Column("kernel", "kernel", text=True, may_lack=True),
    _Column("mode", "mode", text=True),
    _Column("edges", "edges", may_lack=True),
    _Column("bytes", "bytes", may_lack=True),
    _Column("kernel", "kernel_ms", digits=4),
    _Column("host", "host_ms", digits=4, may_lack=True),
    _Column("compile", "compile_ms", digits=1, may_lack=True),
    _Column("copy", "copy_ms", digits=4, may_lack=True),
    _Column("copied", "copy_bytes", may_lack=True),
    _Column("why", "reason", text=True, may_lack=True),
)
_BARS = 240  # in a longer search a bar stands for several levels
_LEFT, _ABOVE, _BELOW, _LEAST = 70, 30, 44, 160  # pixels around the bars, and their least width


def page(rows: Sequence[Row], totals: Totals, title: str, facts: Mapping[str, object]) -> str:
    """Return the page, with `facts` below the heading."""
    ran, between = sentences(totals)
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
    lines = "".join(f"<p>{text(line)}</p>" for line in sentences(totals))
    return f"<div>{lines}{_chart(rows)}{_summary(rows)}</div>"


def _packed(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the rows by columns: each text once, and a column of equal values as one value."""
    numbers: dict[str, int] = {}
    columns = []
    for column in _COLUMNS:
        values = [_cell(row, column) for row in rows]
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


def _cell(row: Row, column: _Column) -> Any:
    value = getattr(row, column.field)
    if column.field == "shapes":
        return _shapes(value)
    if column.field == "level":
        return "all" if value is None else None if value < 0 else value
    return round(value, column.digits) if column.digits and value is not None else value


def _shapes(shapes: tuple[tuple[int, ...], ...]) -> str:
    out, *inputs = ("x".join(map(str, shape)) or "1" for shape in shapes)
    return f"{out} << {', '.join(inputs)}" if inputs else out


def _summary(rows: Sequence[Row]) -> str:
    """Return a table with one line for each operation and kernel."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.method, row.direction, row.kernel), []).append(row)
    head = ("operation", "direction", "kernel")
    counts = ("statements", "edges", "kernel ms", "host ms", "bytes")
    lines = [
        "<tr>",
        *(f"<th>{name}</th>" for name in head),
        *(f'<th class="n">{name}</th>' for name in counts),
        "</tr>",
    ]
    for (method, direction, kernel), group in groups.items():
        numbers = (f"{len(group):,}", *sums(group))
        lines += ["<tr>", f"<td>{text(method)}</td>"]
        lines += [
            f'<td class="{text(direction)}">{text(direction)}</td>',
            f"<td>{text(kernel)}</td>",
        ]
        lines += [*(f'<td class="n">{number}</td>' for number in numbers), "</tr>"]
    return "<table>" + "".join(lines) + "</table>"


def _chart(rows: Sequence[Row]) -> str:
    """Return bars of kernel time by level, products coloured by their direction."""
    left_out = not_by_level(rows)
    by_level = of_levels(rows)
    if not by_level:
        return f"<p>{text(left_out)}</p>" if left_out else ""
    last = max(level for level, _ in by_level)
    a_bar = -(-(last + 1) // _BARS)
    bars = [dict.fromkeys(KINDS, 0.0) for _ in range(last // a_bar + 1)]
    for level, row in by_level:
        bars[level // a_bar][kind(row)] += row.kernel_ms
    highest = max(sum(bar.values()) for bar in bars) or 1.0
    width, height = 1130, 140
    each = min(60.0, width / len(bars))
    shapes = [_axes(highest, height, len(bars), each, a_bar)]
    for k, bar in enumerate(bars):
        top = float(height)
        for name, colour in KINDS.items():
            tall = bar[name] / highest * height
            top -= tall
            if tall:
                shapes.append(
                    f'<rect x="{k * each:.1f}" y="{top:.1f}" width="{max(each - 1, 0.5):.1f}" '
                    f'height="{tall:.1f}" fill="{colour}"/>'
                )
    present = [name for name in KINDS if any(bar[name] for bar in bars)]
    legend = ", ".join(f'<b style="color:{KINDS[name]}">{name}</b>' for name in present)
    steps = f"levels 0 to {last}" + (f", {a_bar} per bar" if a_bar > 1 else "")
    wide = max(len(bars) * each, _LEAST)
    return (
        f'<figure><svg viewBox="{-_LEFT} {-_ABOVE} {_LEFT + wide:.0f} {_ABOVE + height + _BELOW}" '
        f'width="{_LEFT + wide:.0f}" height="{_ABOVE + height + _BELOW}" role="img" '
        f'aria-label="kernel time by level">{"".join(shapes)}</svg>'
        f"<figcaption>Kernel time in milliseconds by level, {steps}: "
        f"{legend}.{left_out and ' '}{text(left_out)}</figcaption></figure>"
    )


def _axes(highest: float, height: int, bars: int, each: float, a_bar: int) -> str:
    """Return lines and numbers of both axes, below the bars: milliseconds, and levels."""
    wide = max(bars * each, _LEAST)
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = height - share * height
        parts.append(f'<path d="M0 {y:g}H{wide:.0f}" stroke="#d8dee5"/>')
        parts.append(_number(-6, y + 5, f"{share * highest:.3g}", "end"))
    parts.append(_number(-_LEFT + 2, -14, "kernel ms", "start"))
    every = max(1, -(-bars * 40 // int(wide)))
    for k in range(0, bars, every):
        parts.append(_number((k + 0.5) * each, height + 17, str(k * a_bar), "middle"))
    parts.append(_number(0, height + 36, "level", "start"))
    return "".join(parts)


def _number(x: float, y: float, content: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="14" fill="#5b6775" '
        f'text-anchor="{anchor}">{text(content)}</text>'
    )


# ------------------------------------------------------------------------------------------
# A trace as a plot: kernel time and entries by level.


def plot(traced: Iterable[Row], ax: Any = None) -> Any:
    """Draw bars of kernel time by level, and the entries of multiplied vectors; see `Trace`."""
    if ax is None:
        ax = _pyplot().subplots(layout="constrained")[1]
    rows = of_levels(traced)
    levels = range(max((level for level, _ in rows), default=-1) + 1)
    bottom = [0.0] * len(levels)
    for name, colour in KINDS.items():
        found = [(level, row) for level, row in rows if kind(row) == name]
        if not found:
            continue
        height = [0.0] * len(levels)
        for level, row in found:
            height[level] += row.kernel_ms
        ax.bar(levels, height, bottom=bottom, color=colour, label=name)
        bottom = [a + b for a, b in zip(bottom, height, strict=True)]
    line = {level: max(row.nvals_in or 0, 1) for level, row in rows if row.method == "mxv"}
    if line:
        other = ax.twinx()
        style = "k.-" if len(line) < 100 else "k-"
        other.plot(list(line), list(line.values()), style, lw=0.8)
        other.set_yscale("log")
        other.set_ylabel("entries of the vector multiplied")
    ax.set_xlabel(f"level\n{not_by_level(traced)}".strip())
    ax.set_ylabel("kernel time [ms]")
    if rows:
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(KINDS), frameon=False)
    return ax


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise BackendUnavailable(
            f'plot: Matplotlib is missing ({error}). Install it with: pip install "lagpu[viz]"'
        ) from error
    return pyplot
