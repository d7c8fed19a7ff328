"""An experiment as a table and sentences for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.text import Text

from lagpu.host.fitting import FittingTable

__all__ = ["lines_of", "table_of"]

_NONE = "-"
_SPARE = ("runs as", "mode", "entries", "degrees", "GTEPS", "paper")


def table_of(experiment: dict[str, Any]) -> FittingTable:
    """Return the rows of an experiment of a report as a table.

    `degrees` are maximum, mean and standard deviation; a paper without numbers has no column.
    """
    title = f"{experiment['part']}: {experiment['title']}"
    rows = experiment["rows"]
    texts = {
        "graph": [row["graph"] for row in rows],
        "made from": [row["made_from"] + ("*" if row["stand_in"] else "") for row in rows],
        "variant": [row["variant"] for row in rows],
        "runs as": [row["runs_as"] for row in rows],
        "mode": [row["mode"] for row in rows],
    }
    numbers = {
        "entries": [f"{row['entries']:,}" for row in rows],
        "degrees": ["/".join(f"{x:.0f}" for x in row["degrees"]) for row in rows],
        experiment["metric"]: [_number(row["value"]) for row in rows],
        "paper": [_number(row["reported"]) for row in rows],
        "median ms": [f"{row['median_ms']:,.3f}" for row in rows],
        "GTEPS": [_number(row["gteps"], 3) for row in rows],
    }
    if {*numbers["paper"]} == {_NONE}:
        del numbers["paper"]
    table = FittingTable(*texts, title=title, spare=_SPARE)
    for name in (*numbers, "checked"):
        table.add_column(name, justify="right")
    checked = [Text("yes", "green") if row["checked"] else Text("NO", "red") for row in rows]
    for cells in zip(*texts.values(), *numbers.values(), checked, strict=True):
        table.add_row(*cells)
    return table


def _number(value: float | None, digits: int = 4) -> str:
    """Return so many digits, all of a whole number's, or a dash."""
    if value is None:
        return _NONE
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def lines_of(experiment: dict[str, Any]) -> Iterator[str]:
    """Yield what is to be read below the table of an experiment, a line each."""
    said = f"{experiment['metric']}: {experiment['definition']}"
    if any(row["reported"] is not None for row in experiment["rows"]):
        said += f"; paper: its figure on {experiment['measured_on']}"
    yield f"{said}."
    for why in dict.fromkeys(row["stand_in"] for row in experiment["rows"] if row["stand_in"]):
        of = dict.fromkeys(row["graph"] for row in experiment["rows"] if row["stand_in"] == why)
        yield f"* {', '.join(of)}: {why}; --graph NAME=FILE gives the paper's."
    yield from experiment["notes"]
    yield from experiment["says"]
    yield from (f"missing: {text}" for text in experiment["missing"])
