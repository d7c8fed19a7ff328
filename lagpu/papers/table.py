"""An experiment as a table and sentences for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from lagpu.host.fitting import FittingTable

__all__ = ["lines_of", "table_of"]

_SPARE = ("runs as", "entries", "GTEPS", "paper")


def table_of(experiment: dict[str, Any]) -> FittingTable:
    """Return the rows of an experiment of a report as a table."""
    title = f"{experiment['part']}: {experiment['title']}"
    table = FittingTable("graph", "made from", title=title, spare=_SPARE)
    table.add_column("entries", justify="right")
    for name in ("variant", "runs as"):
        table.add_column(name)
    for name in (experiment["metric"], "paper", "median ms", "GTEPS", "checked"):
        table.add_column(name, justify="right")
    for row in experiment["rows"]:
        table.add_row(
            row["graph"],
            row["made_from"] + ("*" if row["stand_in"] else ""),
            f"{row['entries']:,}",
            row["variant"],
            row["runs_as"],
            _number(row["value"]),
            _number(row["reported"]),
            f"{row['median_ms']:,.3f}",
            f"{row['gteps']:.3g}",
            Text("yes", "green") if row["checked"] else Text("NO", "red"),
        )
    return table


def _number(value: float | None) -> str:
    """Return four digits, or a dash."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def lines_of(experiment: dict[str, Any]) -> Iterator[str]:
    """Yield what is to be read below the table of an experiment, a line each."""
    where = f" on {experiment['measured_on']}" if experiment["measured_on"] else ""
    yield f"{experiment['metric']}: {experiment['definition']}; paper: its figure{where}."
    for why in dict.fromkeys(row["stand_in"] for row in experiment["rows"] if row["stand_in"]):
        of = dict.fromkeys(row["graph"] for row in experiment["rows"] if row["stand_in"] == why)
        yield f"* {', '.join(of)}: {why}; --graph NAME=FILE gives the paper's."
    yield from experiment["notes"]
    yield from experiment["says"]
    yield from (f"missing: {text}" for text in experiment["missing"])
