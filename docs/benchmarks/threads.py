"""Searches on cpu by one thread, by threads as SuiteSparse counts them, and as lagpu does.

The three run by turns, with a number of processes beside them that keep a core busy.

    python docs/benchmarks/threads.py kron:16 kron:20 --busy 0 --busy 2 --json threads.json
"""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path
from typing import Annotated, Any

import graphblas
import numpy as np
import typer

from lagpu import algorithms, backends
from lagpu.algebra.tables import monoid
from lagpu.backends.cpu import handles
from lagpu.bench.harness import Report, Row, envelope
from lagpu.core.matrix import Matrix
from lagpu.generators.load import load
from lagpu.host.files import require_writable, write_json

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def spin() -> None:
    """Keep a core busy."""
    while True:
        pass


def times_of(A: Matrix, root: int, turns: int, all_threads: int) -> Row:
    """Return the median milliseconds of the wall and of the processors, for each way."""
    rule, found = handles.by_threads, {}
    ways: dict[str, tuple[int, Any]] = {
        "one_thread": (1, rule),
        "suitesparse": (all_threads, lambda _, call, *arguments: call(*arguments)),
        "lagpu": (all_threads, rule),
    }
    for turn in range(-1, turns):
        for way, (threads, how) in ways.items():
            graphblas.ss.config["nthreads"], handles.by_threads = threads, how
            time.sleep(0.05)  # until idle threads of the search before have stopped spinning
            wall, cpu = time.perf_counter(), time.process_time()
            algorithms.bfs_levels(A, root)
            ms = (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3
            found.setdefault(way, []).extend([ms] if turn >= 0 else [])
    graphblas.ss.config["nthreads"], handles.by_threads = all_threads, rule
    row: Row = {}
    for way, samples in found.items():
        row[f"{way}_ms"], row[f"{way}_cpu_ms"] = np.median(samples, axis=0).tolist()
    return row


@app.command()
def main(
    graphs: Annotated[list[str], typer.Argument(help="Graphs such as kron:16.")],
    busy: Annotated[list[int], typer.Option(help="Numbers of busy processes.")] = [0, 2],  # noqa: B006
    turns: Annotated[int, typer.Option(help="Searches by each way.")] = 15,
    json: Annotated[Path | None, typer.Option(help="Write the report here.")] = None,
) -> None:
    """Print a row for each graph and number of busy processes; a search begins at the hub."""
    require_writable(json, "bench")
    place = backends.get("cpu")
    found: Report = envelope([place], {}) | {"rows": []}
    for name in graphs:
        A = load(name, place)
        degrees = A.reduce_rowwise(monoid.plus).new().to_dense(0)
        for count in busy:
            spawn = multiprocessing.get_context("spawn").Process
            others = [spawn(target=spin, daemon=True) for _ in range(count)]
            for other in others:
                other.start()
            time.sleep(1)
            row = {"graph": name, "entries": A.nvals, "busy": count, "load": os.getloadavg()[0]}
            row |= times_of(A, int(np.argmax(degrees)), turns, handles.allowed_threads())
            for other in others:
                other.kill()
            print(row, flush=True)
            found["rows"].append(row)
    if json is not None:
        write_json(found, json, "bench")


if __name__ == "__main__":
    app()
