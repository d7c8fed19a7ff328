"""Overhead of the cpu backend: `bfs_levels` beside the same search on python-graphblas objects.

Three programs search the same matrix from the same vertex in turn: the algorithm of lagpu, the same
loop in python-graphblas, and the C calls alone, a lower bound for both. The ratio of lagpu to
python-graphblas is taken of runs next to each other, so that other load affects both.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import graphblas as gb
import numpy as np
import typer
from rich.console import Console
from suitesparse_graphblas import ffi, lib

from lagpu.algorithms import bfs_levels
from lagpu.bench import harness
from lagpu.bench.graphs import HostGraph
from lagpu.bench.harness import SEED, Report, Row
from lagpu.bench.peers import graphblas_levels as direct_levels
from lagpu.core.matrix import Matrix
from lagpu.errors import CheckFailed, InvalidValue
from lagpu.generators.load import load

DEFAULT_GRAPHS = ("kron:16", "road:340")  # the second is as large as luxembourg_osm
_WHO = {"lagpu": "lagpu", "direct": "python-graphblas", "c": "C calls"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def lagpu_levels(A: Matrix, source: int) -> Any:
    """Search by lagpu; return the levels as a python-graphblas vector."""
    return bfs_levels(A, source).data.gb


def c_levels(A: Any, source: int) -> Any:
    """Search by the calls of the C library alone."""
    levels = gb.Vector("INT32", A.nrows)
    frontier = gb.Vector("BOOL", A.nrows)
    frontier[source] = True
    x, q, a = levels.gb_obj[0], frontier.gb_obj[0], A.gb_obj[0]
    any_pair = gb.semiring.any_pair["BOOL"].gb_obj
    size, null, every = A.nrows, ffi.NULL, lib.GrB_ALL
    count = ffi.new("GrB_Index*", 1)
    depth = 0
    while count[0]:
        lib.GrB_Vector_assign_INT32(x, q, null, depth, every, size, lib.GrB_DESC_S)
        lib.GrB_vxm(q, x, null, any_pair, q, a, lib.GrB_DESC_RSC)
        lib.GrB_Vector_nvals(count, q)
        depth += 1
    return levels


def measure(
    graph: str,
    *,
    roots: int = 8,
    repeats: int = 9,
    clock: Callable[[], float] = time.perf_counter,
) -> Row:
    """Measure one graph; return medians over all repetitions after the first.

    `clock` returns seconds: of the wall, or ``time.process_time`` for those of all threads, which
    say more on a machine with other work.

    Raises
    ------
    CheckFailed
        If the levels of two programs differ.
    InvalidValue
        If the graph has no edge, or a number is not positive.
    """
    if roots < 1 or repeats < 1:
        raise InvalidValue(f"bench: {roots} roots, {repeats} repeats. Give at least 1 of each.")
    A = load(graph, "cpu")
    refusal = "bench: the graph has no edge. Give a graph with edges."
    found, times = [], []
    for root in HostGraph.of(A).roots(roots, SEED, refusal):
        depth, of_root = _from_root(A, root, repeats, clock)
        found.append({"root": root, "depth": depth, **_medians(of_root)})
        times.append(of_root)
    every = np.concatenate(times)
    medians = _medians(every)
    low, high = np.quantile(every[:, 0] / every[:, 1], (0.25, 0.75))
    return {
        "graph": Path(graph).name,
        "vertices": A.nrows,
        "entries": A.nvals,
        "depth": int(np.median([row["depth"] for row in found])),
        **medians,
        "ratio_low": _rounded(low),
        "ratio_high": _rounded(high),
        "repeats": repeats,
        "roots": found,
    }


def _medians(times: Any) -> Row:
    medians = {f"{who}_ms": _rounded(np.median(ms)) for who, ms in zip(_WHO, times.T, strict=True)}
    return medians | {"ratio": _rounded(np.median(times[:, 0] / times[:, 1]))}


def _rounded(number: Any) -> float:
    return round(float(number), 4)


def _from_root(
    A: Matrix, root: int, repeats: int, clock: Callable[[], float]
) -> tuple[int, np.ndarray[Any, Any]]:
    """Run the three programs in turn and compare their levels; return the depth and the times."""
    stored = A.data.gb
    programs = ((lagpu_levels, A), (direct_levels, stored), (c_levels, stored))
    times = np.empty((repeats + 1, len(programs)))
    for repeat in range(repeats + 1):  # the first is a warm-up
        found = []
        for k in range(len(programs)):
            turn = (k + repeat) % len(programs)  # no program is always the first
            program, given = programs[turn]
            gc.collect()
            gc.disable()
            try:
                start = clock()
                levels = program(given, root)
                levels.wait()
                times[repeat, turn] = (clock() - start) * 1e3
            finally:
                gc.enable()
            found.append(levels)
        if not all(found[0].isequal(other, check_dtype=True) for other in found[1:]):
            raise CheckFailed(f"bench: the programs found different levels from vertex {root}.")
    return int(found[0].reduce("max").new().value), times[1:]


_COLUMNS = (
    ("depth", "{depth:,}"),
    *((head, f"{{{who}_ms:.2f}}") for who, head in _WHO.items()),
    ("ratio", "{ratio:.3f}"),
    ("quartiles", "{ratio_low:.3f} .. {ratio_high:.3f}"),
)


@app.command()
def run(
    graphs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[GRAPH]...", help="Files, or such as kron:16.", show_default=False),
    ] = None,
    roots: Annotated[int, typer.Option(help="Vertices to search from.", min=1)] = 8,
    repeats: Annotated[int, typer.Option(help="Repetitions from each.", min=1)] = 9,
    processor: Annotated[
        bool,
        typer.Option(
            "--processor-time", help="Count the processor's time, on a machine with other work."
        ),
    ] = False,
    json_file: harness.JsonFile = None,
) -> None:
    """Measure the overhead of the cpu backend over python-graphblas."""
    with harness.program(json_file) as keep:
        found: Report = {"benchmark": "cpu-overhead"} | harness.envelope([], {})
        found["threads"] = int(gb.ss.config["nthreads"])
        found["clock"] = "processor" if processor else "wall"
        clock = time.process_time if processor else time.perf_counter
        found["rows"] = [
            measure(graph, roots=roots, repeats=repeats, clock=clock)
            for graph in graphs or DEFAULT_GRAPHS
        ]
        keep(found)
    title = f"bfs_levels on cpu, median ms of the {found['clock']}"
    out = Console()
    out.print(harness.table(found["rows"], (("graph", "{graph}"),), _COLUMNS, title=title))
    out.print("ratio: lagpu to python-graphblas, of each pair run side by side")


if __name__ == "__main__":
    app()
