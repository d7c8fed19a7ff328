"""The first call of each algorithm in a fresh process, with nothing cached.

Each call has a process with empty caches, of lagpu, CuPy and the driver. The graph is made on the
host before; the call ends when the device has ended.

    python docs/benchmarks/first_calls.py kron:12:8 -b gpu --json first-calls.json
"""

from __future__ import annotations

import functools
import json as text
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
_CACHES = ("LAGPU_CACHE_DIR", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME")
_SLOW = "kron:6:8"  # the graph of algorithms that search from each vertex


def call(backend: str, key: str, graph: str, shipped: bool) -> dict[str, Any]:
    """Call an algorithm; return a row."""
    began = time.perf_counter()
    from lagpu import backends
    from lagpu.backends.gpu.device import compiled
    from lagpu.bench.harness import Clock
    from lagpu.catalog import ALGORITHMS
    from lagpu.generators.load import load
    from lagpu.selftest.algorithms import Inputs

    row = next(row for row in ALGORITHMS if row.key == key)
    known = Inputs.of(load(_SLOW if row.slow else graph, backends.get("cpu")), 1)
    if not shipped:
        compiled.FOLDER = Path(os.environ["LAGPU_CACHE_DIR"]) / "none"
    imported = time.perf_counter()
    place = backends.get(backend)
    graphs = {kind: A.to(place) for kind, A in known.graphs.items()}
    opened = time.perf_counter()
    device: Any = place.device
    before = len(device._functions), device.compile_ms
    if device.xp.__name__ == "cupy":
        import cupy.cuda.compiler as theirs

        own, programs = theirs._NVRTCProgram.compile, []

        def counted(self: Any, *given: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return own(self, *given, **named)
            finally:
                programs.append(time.perf_counter() - start)

        theirs._NVRTCProgram.compile = counted
    else:
        programs = []
    inputs = Inputs(graphs, known.source, known.target, known.sources)
    run = functools.partial(row.run, inputs.graphs[row.graph], inputs)
    profile = os.environ.get("FIRST_CALLS_PROFILE")
    if profile:
        import cProfile

        profiler = cProfile.Profile()
        profiler.enable()
    start = time.perf_counter()
    ms, found = Clock.wall(_Clock(device), run)
    again = Clock.wall(_Clock(device), run)[0]
    if profile:
        import pstats

        profiler.disable()
        pstats.Stats(profiler).dump_stats(f"{profile}/{key.replace(' ', '_').replace('/', '_')}-{shipped}.prof")
    del start, found
    return {
        "algorithm": key,
        "graph": _SLOW if row.slow else graph,
        "shipped": shipped,
        "call_ms": ms,
        "again_ms": again,
        "compile_ms": device.compile_ms - before[1],
        "kernels": len(device._functions) - before[0],
        "cupy_programs": len(programs),
        "cupy_ms": 1e3 * sum(programs),
        "import_ms": 1e3 * (imported - began),
        "open_ms": 1e3 * (opened - imported),
    }


class _Clock:
    """What `Clock.wall` asks: a device, and no other kernel than those of the call."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def _synchronize(self) -> None:
        with self._device.alone():
            self._device.synchronize()


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


@app.command()
def main(
    graph: Annotated[str, typer.Argument(help="Such as kron:12:8.")] = "kron:12:8",
    backend: Annotated[str, typer.Option("-b", help="gpu or sim.")] = "gpu",
    json: Annotated[Path | None, typer.Option(help="Write the report here.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Keys of algorithms.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes at once.")] = 1,
    shipped: Annotated[bool | None, typer.Option(help="With or without; else both.")] = None,
    one: Annotated[str, typer.Option(hidden=True)] = "",
) -> None:
    """Measure first calls."""
    if one:
        print(text.dumps(call(backend, one, graph, bool(shipped))))
        return
    from lagpu import backends
    from lagpu.bench.harness import envelope
    from lagpu.catalog import ALGORITHMS
    from lagpu.host.files import require_writable, write_json

    require_writable(json, "bench")
    keys = only or list(dict.fromkeys(row.key for row in ALGORITHMS if row.call is None))
    rows = []
    for how in (True, False) if shipped is None else (shipped,):
        with ThreadPoolExecutor(jobs) as pool:
            for row in pool.map(lambda key: in_process(backend, graph, key, how), keys):  # noqa: B023
                rows.append(row)
                print(row, flush=True)
    if json is not None:
        write_json(json, envelope([backends.get(backend)], {}) | {"rows": rows})


if __name__ == "__main__":
    app()
