"""Recorded figures of other systems, to be put beside rows of this run: `lagpu bench --peers FILE`.

A file has the form of a report of `lagpu bench --json`, so an earlier report of lagpu, from another
machine or commit, is one too. What nobody measured is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lagpu.errors import FileFormatError, FileMissing, InvalidValue
from lagpu.generators.spec import canonical

__all__ = ["is_file", "read", "rows_of"]

Row = dict[str, Any]

_TEXTS = ("graph", "backend", "output")
_NUMBERS = (
    *("roots", "max_ms", "wall_median_ms", "first_ms", "q1_ms", "q3_ms", "gteps", "bytes"),
    *("vertices", "edges"),
)
_REST = {"mode": "recorded"} | dict.fromkeys(
    ("kernel", "policy", "orientation", *_NUMBERS, "checked")
)


def is_file(name: str) -> bool:
    """Return True if a text of ``--peers`` is meant as a file."""
    return name.endswith(".json")


def read(path: str) -> list[Row]:
    """Return the rows of a file, each with all fields of a report.

    Raises
    ------
    FileMissing
        If there is no such file, or it cannot be read.
    FileFormatError
        If it has not the form of a report.
    """
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise FileMissing(f"--peers: {path}: {error.strerror}. Check the name.") from error
    except (ValueError, RecursionError):
        found = None
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(map(_is_row, rows)):
        raise FileFormatError(
            f"--peers: {path} is no report of lagpu bench. Give one whose rows have graph, "
            "backend, output and median_ms, as `lagpu bench --json` writes it."
        )
    return [_REST | row for row in rows]


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(name), str) for name in _TEXTS)
        and all(isinstance(row.get(name), str | None) for name in ("mode", "kernel", "policy"))
        and row.get("checked") in (True, False, None)
        and _is_time(row.get("median_ms"))
        and all(row.get(name) is None or _is_time(row[name]) for name in _NUMBERS)
    )


def _is_time(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and x >= 0


def rows_of(files: Iterable[str], graphs: Sequence[str], outputs: Sequence[str]) -> list[Row]:
    """Return the rows of some files that fit graphs and outputs, under the names given here.

    Raises
    ------
    InvalidValue
        If a file has no row that fits.
    """
    wanted = {canonical(name): name for name in graphs}
    found: list[Row] = []
    for file in files:
        rows = read(file)
        fit = [
            row | {"graph": wanted[canonical(row["graph"])]}
            for row in rows
            if canonical(row["graph"]) in wanted and row["output"] in outputs
        ]
        if not fit:
            known = ", ".join(dict.fromkeys(f"{row['graph']} ({row['output']})" for row in rows))
            raise InvalidValue(
                f"--peers: {file} has none of {', '.join(graphs)} for {', '.join(outputs)}. "
                f"It has {known or 'no row'}."
            )
        found += fit
    return found
