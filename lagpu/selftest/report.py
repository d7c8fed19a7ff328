"""Print a report as a table."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from lagpu.host.fitting import FittingTable

__all__ = ["show"]


def show(report: dict[str, Any], out: Console) -> None:
    """Print the machine, a line for each kind of case, and every failure."""
    facts = {
        "backend": report["backend"],
        **report["device"],
        **{name: version or "missing" for name, version in report["versions"].items()},
        "sources": report["sources_hash"][:16],
        "commit": report["commit"] or "unknown",
    }
    width = max(map(len, facts))
    for name, text in facts.items():
        out.print(f"{name:>{width}}  {text}", markup=False, soft_wrap=True)
    out.print(_table(report["rows"]))
    for row in report["rows"]:
        if not row["passed"]:
            line = f"FAILED {row['group']}: {row['case']}: {row['detail']}"
            out.print(line, markup=False, soft_wrap=True)
    totals = report["totals"]
    out.print(
        f"{totals['passed']} of {totals['cases']} passed, {totals['failed']} failed, "
        f"in {totals['seconds']} s"
    )


def _table(rows: list[dict[str, Any]]) -> FittingTable:
    table = FittingTable("group", "of", title="self-test against python-graphblas")
    for name in ("passed", "failed", "ms"):
        table.add_column(name, justify="right")
    kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault((row["group"], row["case"].split()[0].rstrip(",")), []).append(row)
    for (group, kind), members in kinds.items():
        passed = sum(row["passed"] for row in members)
        failed = len(members) - passed
        ms = sum(row["ms"] for row in members)
        colour = "red" if failed else "green"
        counts = (Text(str(count), colour) for count in (passed, failed))
        table.add_row(group, kind, *counts, f"{ms:,.0f}")
    return table
