"""Milliseconds on cpu of each algorithm that ``lagpu bench`` leaves out, its result checked.

    OMP_NUM_THREADS=1 python docs/benchmarks/cpu_algorithms.py email-Enron.txt.gz --json FILE

Times are those of the processor, since other programs run on the machine. Algorithms that search
from each vertex, or whose result is a full matrix, are measured on smaller graphs.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

import lagpu
from lagpu import catalog
from lagpu.bench.algorithms import Backend
from lagpu.bench.graphs import HostGraph, make
from lagpu.bench.harness import Report, Row, envelope
from lagpu.errors import LagpuError
from lagpu.host.files import require_writable, write_json

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
SMALLER = ("kron:8", "delaunay:9", "grid:16x16")
#: Their checkers look at all pairs of vertices, or take minutes.
LONG = {"betweenness_estimate", "laplacian_matrix", "modularity", "square_clustering"}
TURNS, ENOUGH = 5, 5.0  # calls of an algorithm; seconds after which it is not called again


def left_out() -> list[catalog.Algorithm]:
    """Return the first row of each algorithm that has no row that ``lagpu bench`` measures."""
    measured = {row.name for row in catalog.ALGORITHMS if not row.measured_as}
    rows = {row.name: row for row in reversed(catalog.ALGORITHMS) if row.name not in measured}
    return [*reversed(rows.values())]


def measured(graph: str, rows: list[catalog.Algorithm]) -> list[Row]:
    """Return a row of the report for each algorithm on a graph."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        facts = make(graph, lagpu.backends.get("cpu"), catalog.SEED, Path(folder))
        system = Backend("cpu", HostGraph.read(Path(folder)))
        for row in rows:
            run, _ = system.prepare(row)
            ms: list[float] = []
            note = row.why_not(facts)
            try:
                while not note and len(ms) < TURNS and sum(ms) < 1e3 * ENOUGH:
                    begin = time.process_time()
                    result = run()
                    ms.append(1e3 * (time.process_time() - begin))
            except LagpuError as error:
                note = type(error).__name__
            if not note:
                row.prove(run.args[0], facts, result)
            found.append(
                {
                    "graph": facts.graph, "vertices": facts.vertices, "edges": facts.edges,
                    "algorithm": row.name, "options": row.label, "system": "cpu",
                    "median_ms": float(f"{statistics.median(ms):.3g}") if not note else None,
                    "checked": row.check is not None and not note, "note": note,
                }
            )  # fmt: skip
            print(*found[-1].values(), sep="  ", flush=True)
    return found


@app.command()
def main(
    graphs: Annotated[list[str], typer.Argument(help="Files, or such as kron:16.")],
    json: Annotated[Path | None, typer.Option(help="Write the report here.")] = None,
) -> None:
    """Print a row for each algorithm and graph."""
    require_writable(json, "bench")
    found: Report = {"benchmark": "cpu-algorithms"}
    found |= envelope([lagpu.backends.get("cpu")], {})
    slow = [row for row in left_out() if row.slow or row.name in LONG]
    other = [row for row in left_out() if row not in slow]
    found["rows"] = [
        one for names, rows in ((graphs, other), (SMALLER, slow)) for name in names
        for one in measured(name, rows)
    ]  # fmt: skip
    if json is not None:
        write_json(found, json, "bench")


if __name__ == "__main__":
    app()
