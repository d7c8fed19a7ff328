"""The first call of each algorithm in a fresh process, where nothing is cached.

    python docs/benchmarks/first_calls.py kron:12:8 -b gpu --json first-calls.json

Each call has a process of its own, with empty caches of lagpu, CuPy and the driver; the graph is
made on the host before, and the call ends when the device has ended. It is measured with the
kernels that lagpu brings compiled, and with NVRTC for all of them.
"""

from __future__ import annotations

import functools
import json as text
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
_CACHES = ("LAGPU_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME")
_SMALL = "kron:6:8"  # the graph of algorithms that search from each vertex


def call(backend: str, key: str, graph: str, compiled_before: bool) -> dict[str, Any]:
    """Call an algorithm twice, in a process that has called nothing; return a row."""
    began = time.perf_counter()
    from lagpu import algorithms, backends
    from lagpu.backends.gpu.device import compiled
    from lagpu.bench.harness import Clock
    from lagpu.catalog import ALGORITHMS
    from lagpu.generators.load import load
    from lagpu.selftest.algorithms import Inputs

    row = next(row for row in ALGORITHMS if row.key == key)
    name = _SMALL if row.slow else graph
    A = load(name, backends.get("cpu"))
    reached = algorithms.bfs_levels(A, 1).to_coo()[0]
    known = Inputs.of(A[reached, reached].new(), 0)  # all of it is connected
    if not compiled_before:
        compiled.FOLDER = Path(os.environ["LAGPU_CACHE_DIR"]) / "none"
    imported = time.perf_counter()
    place = backends.get(backend)
    graphs = {kind: A.to(place) for kind, A in known.graphs.items()}
    opened = time.perf_counter()
    device: Any = place.device
    loaded, before = len(device._functions), device.compile_ms
    theirs = _programs_of_cupy() if device.xp.__name__ == "cupy" else []
    inputs = Inputs(graphs, known.source, known.target, known.sources)
    search = functools.partial(row.run, inputs.graphs[row.graph], inputs)
    ms = [Clock(place).wall(search)[0] for _ in range(2)]
    return {
        "algorithm": key, "graph": name, "shipped": compiled_before,
        "first_ms": ms[0], "second_ms": ms[1],
        "load_ms": device.compile_ms - before, "kernels": len(device._functions) - loaded,
        "cupy_ms": sum(theirs), "cupy_programs": len(theirs),
        "import_ms": 1e3 * (imported - began), "open_ms": 1e3 * (opened - imported),
    }  # fmt: skip


def _programs_of_cupy() -> list[float]:
    """Return where the milliseconds of each program that CuPy compiles will be."""
    from cupy.cuda import compiler

    own, programs = compiler._NVRTCProgram.compile, []

    def timed(*given: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return own(*given, **named)
        finally:
            programs.append(1e3 * (time.perf_counter() - began))

    compiler._NVRTCProgram.compile = timed
    return programs


def in_process(backend: str, graph: str, key: str, shipped: bool) -> dict[str, Any]:
    """Return the row of a call in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name in _CACHES:
            (Path(folder) / name).mkdir(mode=0o700)
        env = os.environ | {name: str(Path(folder) / name) for name in _CACHES}
        given = [sys.executable, __file__, graph, "-b", backend, "--one", key]
        given += ["--shipped"] if shipped else ["--no-shipped"]
        ran = subprocess.run(given, env=env, capture_output=True, text=True, check=False)
    if ran.returncode:
        return {"algorithm": key, "shipped": shipped, "error": ran.stderr[-2000:]}
    found: dict[str, Any] = text.loads(ran.stdout.splitlines()[-1])
    return found


def rows(
    backend: str, graph: str, shipped: bool, jobs: int, only: list[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the row of each algorithm in turn, or of `only` some; so many processes at once."""
    from lagpu.catalog import ALGORITHMS

    keys = only or list(dict.fromkeys(row.key for row in ALGORITHMS))
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(functools.partial(in_process, backend, graph, shipped=shipped), keys)


@app.command()
def main(
    graph: Annotated[str, typer.Argument(help="Such as kron:12:8.")] = "kron:12:8",
    backend: Annotated[str, typer.Option("-b", help="gpu or sim.")] = "gpu",
    json: Annotated[Path | None, typer.Option(help="Write the report here.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Keys of algorithms.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes at once.")] = 1,
    shipped: Annotated[bool | None, typer.Option(help="One of both ways.")] = None,
    one: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Measure first calls."""
    if one:
        print(text.dumps(call(backend, one, graph, bool(shipped))))
        return
    from lagpu import backends
    from lagpu.bench.harness import envelope
    from lagpu.host.files import require_writable, write_json

    require_writable(json, "bench")
    made = []
    for how in (True, False) if shipped is None else (shipped,):
        for row in rows(backend, graph, how, jobs, only):
            made.append(row)
            print(row, flush=True)
    if json is not None:
        found = envelope([backends.get(backend)], {}) | {"processes_at_once": jobs, "rows": made}
        write_json(found, json, "bench")


if __name__ == "__main__":
    app()
