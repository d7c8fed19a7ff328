"""A trace as a table for a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.filesize import decimal
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from lagpu.observe.trace.rows import Row, Totals

_FIRST, _LAST = 40, 10  # rows of a long table
_RIGHT = {"level", "in", "out", "edges", "bytes", "kernel ms", "host ms"}
_COLUMNS = (
    "level", "statement", "in", "out", "kernel", "edges", "kernel ms", "host ms",
    "bytes", "direction", "where", "why",
)  # fmt: skip
#: The kinds of statements in a chart, each with its colour.
KINDS = {
    "push": "#c05a00",
    "pull": "#14659e",
    "other products": "#4b7f52",
    "other statements": "#8a94a0",
}
_NARROW = 7  # so many columns fit a terminal


def rich_table(rows: Sequence[Row], totals: Totals, *, whole: bool = False) -> Table:
    """Return a table of the rows, the middle of a long one folded, totals in the caption.

    Unless `whole` is True, only the columns that fit a terminal are shown.
    """
    columns = _COLUMNS if whole else _COLUMNS[:_NARROW]
    table = Table(box=box.SIMPLE, caption="\n".join(sentences(totals)))
    table.caption_justify = "left"
    for name in columns:
        right = name in _RIGHT
        table.add_column(name, justify="right" if right else "left", no_wrap=right)
    short = len(rows) <= _FIRST + _LAST + 1
    for row in rows if short else rows[:_FIRST]:
        table.add_row(*map(Text, _cells(row)[: len(columns)]))
    if not short:
        table.add_row(*map(Text, _folded(rows[_FIRST:-_LAST])[: len(columns)]))
        for row in rows[-_LAST:]:
            table.add_row(*map(Text, _cells(row)[: len(columns)]))
    return table


def plain(rows: Sequence[Row], totals: Totals) -> str:
    """Return the whole table as text, as wide as needed."""
    table = rich_table(rows, totals, whole=True)
    out = Console(file=io.StringIO(), width=10_000, color_system=None)
    wide = Measurement.get(out, out.options, table).maximum
    longest = max(len(line) for line in sentences(totals))
    out.width = max(wide, longest + 2)
    with out.capture() as captured:
        out.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n")


def sentences(totals: Totals) -> tuple[str, str]:
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


def kind(row: Row) -> str:
    """Return the kind of a statement, one of `KINDS`."""
    if row.direction in KINDS:
        return row.direction
    is_product = row.method in ("mxv", "mxv_selection", "matrix_mxm")
    return "other products" if is_product else "other statements"


def of_levels(rows: Iterable[Row]) -> list[tuple[int, Row]]:
    """Return (level, row) for the rows that belong to one level, as a chart by level shows them."""
    return [(row.level, row) for row in rows if row.level is not None and row.level >= 0]


def not_by_level(rows: Iterable[Row]) -> str:
    """Return a sentence on the loops that a chart by level leaves out, or an empty string."""
    times = [row.kernel_ms for row in rows if row.level is None]
    if not times:
        return ""
    return f"Not by level: {sum(times):.4f} ms of loops whose kernels keep no log."


def _cells(row: Row) -> Sequence[str]:
    level = "all" if row.level is None else "-" if row.level < 0 else str(row.level)
    return (
        level,
        row.formula,
        _count(row.nvals_in),
        _count(row.nvals_out),
        row.kernel or "-",
        *sums([row]),
        row.direction or "-",
        row.where,
        row.reason,
    )


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def sums(rows: Sequence[Row]) -> Sequence[str]:
    """Return edges, kernel ms, host ms and bytes, summed over rows; ``-`` if no row knows."""
    edges = [row.edges for row in rows if row.edges is not None]
    host_ms = [row.host_ms for row in rows if row.host_ms is not None]
    moved = [row.bytes for row in rows if row.bytes is not None]
    return (
        f"{sum(edges):,}" if edges else "-",
        f"{sum(row.kernel_ms for row in rows):.3f}",
        f"{sum(host_ms):.3f}" if host_ms else "-",
        decimal(sum(moved)) if moved else "-",
    )


def _folded(rows: Sequence[Row]) -> Sequence[str]:
    """Return one row that stands for many, with their sums."""
    return (
        "...",
        f"{len(rows):,} more statements",
        "",
        "",
        "",
        *sums(rows),
        "",
        "",
        "",
    )
