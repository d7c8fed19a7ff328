"""``lagpu bench`` and ``lagpu graph500``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lagpu.bench import algorithms, graph500, suite
from lagpu.bench.graphs import SMALL_SUITE, SUITE
from lagpu.cli.console import console, tell_written, telling
from lagpu.errors import CheckFailed, InvalidValue
from lagpu.host.files import require_writable, write_json


def measure(plan: suite.Plan, json_file: Path | None) -> None:
    """Run a benchmark, print its table, and write its report.

    Raises
    ------
    CheckFailed
        At the end, if any row is not checked.
    """
    require_writable(json_file, "bench")
    with telling("beginning") as tell:
        found, refusals = suite.run(plan, tell)
    try:
        if json_file is not None:
            write_json(found, json_file, "bench")
    finally:  # show the result even if writing it fails
        out = console()
        out.print(suite.table(found["rows"]))
        out.print(
            "ms is device time if there is a device, wall ms ends when the device has ended",
            soft_wrap=True,
        )
        if not plan.graphs and {row["graph"] for row in found["rows"]} <= {*SMALL_SUITE}:
            out.print(
                "These are small graphs, since no GPU takes part. On one, the default is "
                f"{' '.join(SUITE)}; any of them can be named here too.",
                soft_wrap=True,
            )
    tell_written({"--json": json_file})
    _refuse(refusals)


def measure_family(
    what: tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]],
    times: dict[str, Any],
    seed: int | None,
    json_file: Path | None,
) -> None:
    """Measure every algorithm, write the report after each graph, and print a table for each.

    Parameters
    ----------
    what : tuple of sequences of str
        Graphs, algorithms, backends and peers.
    times : dict
        ``repeats seconds limit budget renumber``, as far as they are given.
    seed : int, optional
        Seed of generated graphs and of the choice of sources.
    json_file : Path, optional
        The file of the report, which is complete at any time.

    Raises
    ------
    CheckFailed
        If two systems contradict each other; at the end, if a measurement raised an error.
    """
    require_writable(json_file, "bench")

    def keep(found: dict[str, Any]) -> None:
        if json_file is not None:
            write_json(found, json_file, "bench")

    with telling("beginning") as tell:
        found, failures = algorithms.run(algorithms.Plan(*what, **times, seed=seed), tell, keep)
    out = console()
    for table in algorithms.tables(found["rows"]):
        out.print(table)
    out.print(
        "ms until the device has ended, device time in brackets; ? if no other system confirms "
        "the answer",
        soft_wrap=True,
    )
    tell_written({"--json": json_file})
    _refuse(failures)


def only(when: str, options: dict[str, Any]) -> None:
    """Raise `InvalidValue` if an option is given that belongs to another kind of measurement."""
    for name, value in options.items():
        if value not in (None, []):
            raise InvalidValue(f"--{name}: is only for lagpu bench {when}. Leave it out.")


def _refuse(refusals: Sequence[str]) -> None:
    if refusals:
        more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
        raise CheckFailed(f"bench: {refusals[0]}{more}")


def measure_graph500(
    scale: int,
    edge_factor: int,
    *,
    backend: str,
    roots: int | None,
    seed: int | None,
    json_file: Path | None,
) -> None:
    """Run Graph500, print the required fields, and write the report.

    Raises
    ------
    CheckFailed
        If a search is invalid; nothing is written then.
    """
    require_writable(json_file, "graph500")
    with telling("beginning") as tell:
        found = graph500.run(scale, edge_factor, backend=backend, roots=roots, seed=seed, tell=tell)
    try:
        if json_file is not None:
            write_json(_without_nan(found), json_file, "graph500")
    finally:
        print("\n".join(graph500.lines(found["fields"])))


def _without_nan(found: dict[str, Any]) -> dict[str, Any]:
    """Return a report for JSON, in which NaN is null."""
    fields = {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in found["fields"].items()
    }
    return json.loads(json.dumps(found | {"fields": fields}))  # type: ignore[no-any-return]
