"""Tables of the rows, one per graph: algorithms down, systems across; printed and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lagpu.host.fitting import FittingTable

__all__ = ["markdown", "tables"]

Row = dict[str, Any]


def tables(rows: Sequence[Row]) -> Iterator[FittingTable]:
    """Yield a table of milliseconds for each graph; a cell without a time says why."""
    for graph, members in _by(rows, "graph").items():
        systems = list(_by(members, "system"))
        first = members[0]
        title = f"{graph}: {first['vertices']:,} vertices, {first['edges']:,} edges; ms"
        found = FittingTable("algorithm", title=title)
        for name in systems:
            found.add_column(name, justify="right")
        found.add_column("loop")
        found.add_column("checked")
        for label, cells, asked in _lines(members, systems):
            measured = [row for row in asked if row["median_ms"] is not None]
            checked = bool(measured) and all(row["checked"] for row in measured)
            found.add_row(label, *cells, _loop(asked), "yes" if checked else "-")
        yield found


def markdown(report: dict[str, Any]) -> str:
    """Return the tables of a report as Markdown, with the names of the graphs as headings.

    Parameters
    ----------
    report : dict
        A report of `lagpu.bench.algorithms.run`.

    Returns
    -------
    str
        Median milliseconds, with the time on a GPU in brackets; a question mark means that no other
        system confirms the answer.
    """
    parts = []
    for graph, members in _by(report["rows"], "graph").items():
        systems = list(_by(members, "system"))
        first = members[0]
        lines = [
            f"### {graph}",
            "",
            f"{first['vertices']:,} vertices, {first['edges']:,} edges.",
            "",
            _line(["algorithm", *systems, "loop"]),
            _line(["---", *["---:"] * len(systems), "---"]),
        ]
        for label, cells, asked in _lines(members, systems):
            lines.append(_line([label, *cells, _loop(asked)]))
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _by(rows: Sequence[Row], name: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found


def _lines(
    rows: Sequence[Row], systems: Sequence[str]
) -> Iterator[tuple[str, list[str], list[Row]]]:
    """Yield each question's label, a cell for each system, and its rows."""
    asked: dict[str, list[Row]] = {}
    for row in rows:
        label = f"{row['algorithm']}, {row['options']}" if row["options"] else row["algorithm"]
        asked.setdefault(label, []).append(row)
    for label, members in asked.items():
        known = {row["system"]: row for row in members}
        yield label, [_cell(known[s]) if s in known else "-" for s in systems], members


def _cell(row: Row) -> str:
    if row["median_ms"] is None:
        return str(row["note"]).partition(":")[0]
    on_device = "" if row["device_ms"] is None else f" ({_ms(row['device_ms'])})"
    unconfirmed = "" if row["checked"] else " ?"
    return f"{_ms(row['median_ms'])}{on_device}{unconfirmed}"


def _ms(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def _loop(rows: Sequence[Row]) -> str:
    """Return how the loop ran on a backend that fuses loops, or an empty string."""
    return next((row["loop"].partition(":")[0] for row in rows if row["loop"]), "")
