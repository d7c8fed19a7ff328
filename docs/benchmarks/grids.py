"""Algorithms on grids of pieces, beside one device of the same host.

Each graph is made on each backend by itself, never on this host, so graphs may be as large as the
devices hold. Results are compared with those of the first backend that holds the graph, for every
root, by sums over their entries that the devices add up.

    python docs/benchmarks/grids.py kron24e16 kron26e16 -b gpu -b grid:2:gpu --json grids.json
"""

from __future__ import annotations

import functools
import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from lagpu import algorithms, backends
from lagpu.algebra.tables import binary, indexunary, monoid
from lagpu.backends.protocol import Backend
from lagpu.bench.harness import SEED, Clock, Report, Row, envelope, used_bytes
from lagpu.catalog import FINDS
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import INT64
from lagpu.errors import InvalidValue, LagpuError, LimitExceeded, OutOfMemory
from lagpu.generators.load import load
from lagpu.host.files import require_writable, write_json
from lagpu.host.job import first_reports, owner, speaks
from lagpu.loops.loop import eager

Runs = dict[int, Callable[[], Vector]]
_SEARCHES = FINDS | {"distances": "sssp"}
_ALGORITHMS = _SEARCHES | {
    "ranks": "pagerank",
    "components": "connected_components",
    "betweenness": "betweenness_centrality",
}
_SOURCES = 4, 64  # of betweenness
_TIMES = ("median_ms", "max_ms", "wall_median_ms", "wall_max_ms")
_SAME = 1e-9  # relative, of sums that are added in another order
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def roots_of(A: Matrix, count: int) -> list[int]:
    """Return distinct random vertices from which a search reaches others."""
    rng, found = np.random.default_rng(SEED), []
    for _ in range(1000 * count):
        root = int(rng.integers(A.nrows))
        if root not in found and algorithms.bfs_levels(A, root).nvals > 1:
            found.append(root)
        if len(found) == count:
            return found
    raise InvalidValue(f"bench: fewer than {count} vertices with an edge were met.")


def _numbers(A: Matrix) -> Vector:
    """Return the vertices' numbers, from 1 on."""
    every = Vector(INT64, A.nrows, backend=A.backend)
    every << 0
    numbers: Vector = every.apply(indexunary.rowindex, 1).new()
    return numbers


def _digest(result: Vector, numbers: Vector, values: bool) -> tuple[float, ...]:
    """Return the count of the entries and the sum of their vertices' numbers.

    With `values` also the sums of the values and of the products of both.
    """
    where = numbers.ewise_mult(result, binary.first).new()
    summed = [where, result, numbers.ewise_mult(result, binary.times).new()] if values else [where]
    return result.nvals, *(x.reduce(monoid.plus).new().value for x in summed)


def _agree(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether two digests are of the same result; floats may have been added in another order."""
    return all(
        x == y or (isinstance(x, float) and math.isclose(x, y, rel_tol=_SAME))
        for x, y in zip(one, other, strict=True)
    )


def runs_of(A: Matrix, what: str, roots: list[int]) -> dict[str, Runs]:
    """Return the calls of an algorithm by their root; of betweenness for each `pieces`.

    An algorithm without a root is called as often.
    """
    algorithm = functools.partial(getattr(algorithms, _ALGORITHMS[what]), A)
    if what in _SEARCHES:
        return {what: {root: functools.partial(algorithm, root) for root in roots}}
    if what != "betweenness":
        return {what: dict.fromkeys(roots, algorithm)}
    parts = A.backend.capabilities.parts
    made: dict[str, Runs] = {}
    for pieces in [None] if parts is None else sorted({1, parts.count}):
        for count in _SOURCES:
            several = f", each on {pieces}" if pieces is not None and pieces > 1 else ""
            run = functools.partial(algorithm, count, seed=SEED, pieces=pieces)
            made[f"betweenness of {count} sources{several}"] = {count: run}
    return made


def measured(
    A: Matrix, what: str, runs: Runs, fused: bool, numbers: Vector, known: dict[int, Any]
) -> Row:
    """Make all calls and return a row.

    The first backend stores the digest of each result in `known`, the others compare. Parents,
    which may differ, are compared by the vertices that have one.
    """
    samples, same, clock = [], True, Clock(A.backend)
    with nullcontext() if fused else eager():
        for run in [*runs.values(), *runs.values()][:2]:  # compiles, makes what is kept
            run()
        for root, run in runs.items():
            sample, result = clock.measure(run)
            samples.append(sample)
            found = _digest(result, numbers, what != "parents")
            same = same and _agree(known.setdefault(root, found), found)
    device_ms, wall_ms = (np.array([x[k] for x in samples]) for k in (0, 1))
    return {
        "what": what,
        "loop": A.backend.last_loop,
        "roots": len(runs),
        "median_ms": float(np.median(device_ms)),
        "max_ms": float(device_ms.max()),
        "wall_median_ms": float(np.median(wall_ms)),
        "wall_max_ms": float(wall_ms.max()),
        "same": same,
    }


def _row(A: Matrix, label: str, *given: Any) -> Row:
    """Return what `measured` does, or why the graph has no such result."""
    try:
        return measured(A, label, *given) | {"bytes": used_bytes(A.backend)}
    except LimitExceeded as error:
        return {"what": label, "median_ms": None, "note": f"over FP64: {error}"}


def _rows(
    name: str, place: Backend, roots: list[int], count: int, modes: list[bool],
    known: dict[str, dict[int, Any]],
) -> Iterator[Row]:  # fmt: skip
    """Measure on one backend what `known` names; the first one finds the roots."""
    gc.collect()
    facts: Row = {"graph": name, "backend": place.name}
    try:
        begin = time.perf_counter()
        A = load(name, place)
        facts |= {"vertices": A.nrows, "entries": A.nvals}
        facts["made_s"] = time.perf_counter() - begin
        roots += [] if roots else roots_of(A, count)
        numbers = _numbers(A)
        for what, digests in known.items():
            for label, runs in runs_of(A, what, roots).items():
                for fused in modes:
                    yield facts | _row(A, label, runs, fused, numbers, digests)
    except OutOfMemory as error:
        yield {"graph": name, "backend": place.name, "what": f"refused: {error}"}


@app.command()
@first_reports()
def main(
    graphs: Annotated[list[str], typer.Argument(help="Graphs such as kron24e16.")],
    backend: Annotated[list[str], typer.Option("-b", help="Such as gpu and grid:2:gpu.")],
    roots: Annotated[int, typer.Option(help="Searches of each graph.")] = 16,
    output: Annotated[list[str], typer.Option(help=", ".join(_ALGORITHMS))] = ["levels"],  # noqa: B006
    by_statement: Annotated[bool, typer.Option(help="Statement by statement too.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the report here.")] = None,
) -> None:
    """Measure algorithms on grids, beside one device.

    Of a job of `mpirun` or `srun` the first process prints and writes.
    """
    try:
        require_writable(json, "bench")
        places = [backends.get(name) for name in backend]
        modes = [True, False] if by_statement else [True]
        found: Report = envelope(places, {}) | {"rows": []}
        for name in graphs:
            starts: list[int] = []
            known: dict[str, dict[int, Any]] = {what: {} for what in output}
            for row in chain.from_iterable(
                _rows(name, place, starts, roots, modes, known) for place in places
            ):
                print(_line(row), flush=True)
                found["rows"].append(row)
                if json is not None:  # whole after each row, should the machine's time end
                    write_json(found, json, "bench")
    except LagpuError as error:
        raise SystemExit(f"lagpu: {owner(error)}{error}" if speaks(error) else 1) from None


def _line(row: Row) -> str:
    """Return a row as a line of text."""
    where = f"{row['graph']} {row['backend']} {row['what']}"
    if "same" not in row:
        return f"{where}: {row['note']}" if "note" in row else where
    times = (f"{name} {row[name]:.4g}" for name in _TIMES if name in row)
    memory = f"{row['bytes'] / 1e9:.4g} GB, made in {row['made_s']:.3g} s"
    same = "" if row["same"] else "; NOT the result of the first backend"
    return f"{where}: {', '.join(times)}; {memory}; {row['loop'].partition(':')[0]}{same}"


if __name__ == "__main__":
    app()
