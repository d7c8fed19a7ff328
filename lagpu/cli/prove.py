"""``lagpu check`` and ``lagpu selftest``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from lagpu import check as checkers
from lagpu.algorithms.source import source_vertex
from lagpu.cli.console import busy, console, print_json
from lagpu.cli.graphs import load
from lagpu.errors import FileMissing, InvalidValue
from lagpu.io.vectors import read_vector

__all__ = ["prove", "prove_installation"]


def prove(
    graph: str,
    source: int,
    files: dict[str, Path],
    *,
    directed: bool | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Check the results in some files, and print what was proved.

    Raises
    ------
    CheckFailed
        At the first rule broken.
    """
    if not files:
        raise InvalidValue(
            "check: there is nothing to check. Give --levels, --parents, --paths or --distances."
        )
    A = load(graph, "cpu", directed=directed, seed=seed)
    source_vertex(A, source)
    results = {name: read_vector(path) for name, path in files.items()}
    levels = results.get("levels")
    with busy("checking"):
        reports = {}
        if levels is not None:
            reports["levels"] = checkers.check_levels(A, source, levels)
        if "parents" in results:
            reports["parents"] = checkers.check_parents(A, source, results["parents"], levels)
        if "paths" in results:
            reports["paths"] = checkers.check_paths(A, source, results["paths"], levels)
        if "distances" in results:
            reports["distances"] = checkers.check_distances(A, source, results["distances"])
    one = next(iter(reports.values()))
    found: dict[str, Any] = {
        "graph": graph,
        "source": source,
        "checked": True,
        "reached": one.reached,
        "depth": one.depth,
        "edges_traversed": one.edges,
        "rules": {name: list(report.rules) for name, report in reports.items()},
    }
    if as_json:
        print_json(found)
        return
    out = console()
    for name, report in reports.items():
        out.print(f"{name}: passed", markup=False)
        for rule in report.rules:
            out.print(f"  {rule}", markup=False, soft_wrap=True)
    out.print(f"{one.reached:,} vertices reached, depth {one.depth:,}")


def prove_installation(backend: str, json_file: Path | None) -> None:
    """Run the self-test, print its table, and end with 1 if anything fails."""
    from lagpu import selftest
    from lagpu.jsonfile import write

    if json_file is not None and not json_file.parent.is_dir():  # told before minutes of work
        raise FileMissing(f"selftest: there is no folder {json_file.parent}. Make it first.")
    report = selftest.run(backend)
    if json_file is not None:
        write(report, json_file, "selftest")
    selftest.show(report, console())
    if report["totals"]["failed"]:
        raise typer.Exit(1)
