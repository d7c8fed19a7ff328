"""A report as a table, and as a JSON file."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lagpu.errors import InvalidValue

__all__ = ["show", "write"]


def write(report: dict[str, Any], path: Path, what: str = "selftest") -> None:
    """Write a report under a temporary name and rename it.

    Parameters
    ----------
    report : dict
        Ready for JSON.
    path : Path
        The file.
    what : str
        Who writes, as the message of an error begins.

    Raises
    ------
    InvalidValue
        If the file cannot be written.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise InvalidValue(f"{what}: {path}: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def show(report: dict[str, Any], out: Console) -> None:
    """Print what ran where, a line for each kind of case, and every failure."""
    facts = {
        "backend": report["backend"],
        **report["device"],
        **{name: version or "not there" for name, version in report["versions"].items()},
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


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table("group", "of", title="self-test against python-graphblas")
    for name in ("passed", "failed", "ms"):
        table.add_column(name, justify="right")
    kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault((row["group"], row["case"].split()[0]), []).append(row)
    for (group, kind), members in kinds.items():
        passed = sum(row["passed"] for row in members)
        failed = len(members) - passed
        ms = sum(row["ms"] for row in members)
        colour = "red" if failed else "green"
        table.add_row(group, kind, f"[{colour}]{passed}", f"[{colour}]{failed}", f"{ms:,.0f}")
    return table
