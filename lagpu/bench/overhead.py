"""Overhead of the cpu backend: `bfs_levels` beside the same search on python-graphblas objects.

Three programs search the same matrix from the same vertex in turn, repeatedly: the algorithm of
lagpu, the same loop written with python-graphblas, and the C calls alone, a lower bound for both.
Their levels are compared in every repetition. The ratio of lagpu to python-graphblas is taken of
runs next to each other, so that other load on the machine affects both.
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
from rich.table import Table
from suitesparse_graphblas import ffi, lib

from lagpu.algorithms import bfs_levels
from lagpu.bench import report
from lagpu.core.matrix import Matrix
from lagpu.errors import CheckFailed, InvalidValue, LagpuError
from lagpu.generators.load import load
from lagpu.host.files import require_writable, write_json
from lagpu.host.sorting import distinct

__all__ = ["app", "measure", "show"]

DEFAULT_GRAPHS = ("kron:16", "road:340")  # the second is as large as luxembourg_osm
SEED = 7

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


# ------------------------------------------------------------------------- the three programs


def lagpu_levels(A: Matrix, source: int) -> Any:
    """Search by lagpu; return the levels as a python-graphblas vector."""
    return bfs_levels(A, source).data.gb


def direct_levels(A: Any, source: int) -> Any:
    """Search by the same loop on python-graphblas objects."""
    any_pair = gb.semiring.any_pair
    levels = gb.Vector("INT32", A.nrows)
    frontier = gb.Vector("BOOL", A.nrows)
    frontier[source] = True
    depth = 0
    while frontier.nvals:
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << any_pair(frontier @ A)
        depth += 1
    return levels


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


# -------------------------------------------------------------------------------- measuring


def measure(
    graph: str,
    *,
    roots: int = 8,
    repeats: int = 9,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Measure one graph.

    Parameters
    ----------
    graph : str
        A file, or a text such as ``kron:16``.
    roots : int
        Number of sources, drawn by a fixed seed from the vertices with an edge.
    repeats : int
        How often the three programs run from each root, after a warm-up.
    clock : callable
        Returns seconds: of the wall, or ``time.process_time`` for those of the processor, of all
        threads together, in which a machine with other work says more.

    Returns
    -------
    dict
        ``graph vertices entries depth lagpu_ms direct_ms c_ms ratio ratio_low ratio_high roots``:
        medians over all repetitions, the quartiles of the ratio, and the same for each root.

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
    rows = [_from_root(A, int(root), repeats, clock) for root in _roots(A, roots)]
    lagpu_ms, direct_ms, c_ms = (np.concatenate([r.pop(key) for r in rows]) for key in _TIMES)
    ratio = lagpu_ms / direct_ms
    return {
        "graph": Path(graph).name,
        "vertices": A.nrows,
        "entries": A.nvals,
        "depth": int(np.median([row["depth"] for row in rows])),
        "lagpu_ms": _rounded(np.median(lagpu_ms)),
        "direct_ms": _rounded(np.median(direct_ms)),
        "c_ms": _rounded(np.median(c_ms)),
        "ratio": _rounded(np.median(ratio)),
        "ratio_low": _rounded(np.quantile(ratio, 0.25)),
        "ratio_high": _rounded(np.quantile(ratio, 0.75)),
        "repeats": repeats,
        "roots": rows,
    }


_TIMES = ("lagpu_times", "direct_times", "c_times")


def _roots(A: Matrix, count: int) -> Any:
    """Return vertices with an edge to another one, drawn by a fixed seed."""
    col_ptr, row_idx, _ = A.to_csc()
    columns = np.repeat(np.arange(A.ncols), np.diff(col_ptr))
    with_edge = distinct(row_idx[row_idx != columns])
    if not len(with_edge):
        raise InvalidValue("bench: the graph has no edge. Give a graph with edges.")
    return np.random.default_rng(SEED).choice(with_edge, min(count, len(with_edge)), replace=False)


def _from_root(A: Matrix, root: int, repeats: int, clock: Callable[[], float]) -> dict[str, Any]:
    """Run the three programs in turn and compare their levels; the first time is a warm-up."""
    stored = A.data.gb
    programs: tuple[tuple[Callable[..., Any], Any], ...] = (
        (lagpu_levels, A),
        (direct_levels, stored),
        (c_levels, stored),
    )
    times = np.empty((repeats + 1, len(programs)))
    for repeat in range(repeats + 1):
        found = []
        for k in range(len(programs)):
            turn = (k + repeat) % len(programs)  # no program is always the first
            levels, times[repeat, turn] = _timed(*programs[turn], root, clock)
            found.append(levels)
        if not all(found[0].isequal(other, check_dtype=True) for other in found[1:]):
            raise CheckFailed(f"bench: the programs found different levels from vertex {root}.")
    timed = times[1:]
    lagpu_ms, direct_ms, c_ms = (float(x) for x in np.median(timed, axis=0))
    return {
        "root": root,
        "depth": int(found[0].reduce("max").new().value),
        "lagpu_ms": _rounded(lagpu_ms),
        "direct_ms": _rounded(direct_ms),
        "c_ms": _rounded(c_ms),
        "ratio": _rounded(np.median(timed[:, 0] / timed[:, 1])),
        **dict(zip(_TIMES, timed.T, strict=True)),
    }


def _timed(
    program: Callable[..., Any], graph: Any, root: int, clock: Callable[[], float]
) -> tuple[Any, float]:
    """Return the complete levels and the milliseconds of the search."""
    gc.collect()
    gc.disable()
    try:
        start = clock()
        levels = program(graph, root)
        levels.wait()
        ms = (clock() - start) * 1e3
    finally:
        gc.enable()
    return levels, ms


def _rounded(number: Any) -> float:
    return round(float(number), 4)


# ----------------------------------------------------------------------------------- running


def show(found: dict[str, Any], out: Console) -> None:
    """Print a report as a table, a line for each graph."""
    table = Table("graph", title=f"bfs_levels on cpu, median ms of the {found['clock']}")
    for head in ("depth", "lagpu", "python-graphblas", "C calls", "ratio", "quartiles"):
        table.add_column(head, justify="right")
    for row in found["rows"]:
        table.add_row(
            row["graph"],
            f"{row['depth']:,}",
            *(f"{row[f'{who}_ms']:.2f}" for who in ("lagpu", "direct", "c")),
            f"{row['ratio']:.3f}",
            f"{row['ratio_low']:.3f} .. {row['ratio_high']:.3f}",
        )
    out.print(table)
    out.print("ratio: lagpu to python-graphblas, of each pair run side by side")


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
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the record here.", show_default=False)
    ] = None,
) -> None:
    """Measure the overhead of the cpu backend over python-graphblas."""
    try:
        require_writable(json_file, "bench")
        found = {"benchmark": "cpu-overhead"} | report.envelope([], {})
        found["threads"] = int(gb.ss.config["nthreads"])
        found["clock"] = "processor" if processor else "wall"
        clock = time.process_time if processor else time.perf_counter
        found["rows"] = [
            measure(graph, roots=roots, repeats=repeats, clock=clock)
            for graph in graphs or DEFAULT_GRAPHS
        ]
        if json_file is not None:
            write_json(found, json_file, "bench")
    except LagpuError as error:
        typer.echo(f"lagpu.bench: {error}", err=True)
        raise typer.Exit(1 if isinstance(error, CheckFailed) else 2) from error
    show(found, Console())


if __name__ == "__main__":
    app()
