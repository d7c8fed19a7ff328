"""The host's time for one statement, beside python-graphblas running the same line of text.

Both libraries run a line by turns, in one process; a ratio is the median over the turns, a time
that of the quickest turn. The clock is the processor's. On a GPU it is the wall's, and a turn
begins when the device is idle and ends when its statements are launched.

    OMP_NUM_THREADS=1 python docs/benchmarks/statements.py -b cpu --size 10 --json statements.json
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import graphblas
import numpy as np
import typer

import lagpu
from lagpu import backends
from lagpu.bench.harness import Report, Row, devices_of, envelope
from lagpu.host.files import require_writable, write_json

LINES = {
    "ewise_add": "w << u.ewise_add(v, binary.plus)",
    "new ewise_add": "u.ewise_add(v, binary.plus).new()",
    "u + u": "w << u + u",
    "new u + u": "(u + u).new()",
    "new vector": "Vector(dtypes.FP64, n)",
    "product": "w << semiring.plus_times(u @ A)",
    "masked product": "q(~p.S, replace=True) << semiring.any_pair(q @ A)",
    "masked assign": "w(q.S) << 1.0",
    "accumulate": "w(accum=binary.plus) << u",
    "apply": "w << u.apply(unary.abs)",
    "reduce": "s << u.reduce(monoid.plus)",
    "nvals": "u.nvals",
}
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def names_of(library: Any, n: int) -> dict[str, Any]:
    """Return the objects that the lines name: vectors of size `n`, and a ring of `n` edges."""
    i = np.arange(n)
    u = library.Vector.from_coo(i, np.linspace(1, 2, n))
    A = library.Matrix.from_coo(i, (i + 1) % n, np.ones(n))
    q = library.Vector.from_coo([0], [True], size=n)
    vectors = {"u": u, "v": u.dup(), "w": u.dup(), "q": q, "p": q.dup(), "A": A, "n": n}
    words = ("Vector", "binary", "dtypes", "monoid", "semiring", "unary")
    return (
        vectors | {"s": library.Scalar("FP64")} | {name: getattr(library, name) for name in words}
    )


def timer(
    line: str, names: dict[str, Any], clock: Callable[[], float] = time.process_time
) -> Callable[[int], float]:
    """Return a function that runs a line some times, and returns the microseconds of one."""
    text = f"def run(clock, times):\n b = clock()\n for _ in times:\n  {line}\n return clock() - b"
    made = dict(names)
    exec(text, made)
    run = made["run"]
    return lambda count: float(run(clock, range(count)) / count * 1e6)


def rows_of(name: str, size: int, turns: int, count: int) -> Iterator[Row]:
    """Yield a row for each statement on a backend."""
    place = backends.get(name)
    clock = time.perf_counter if devices_of(place) else time.process_time
    with lagpu.use(place):
        ours = names_of(lagpu, size)
        others = names_of(graphblas, size)
        for what, line in LINES.items():
            pair = timer(line, ours, clock), timer(line, others, clock)
            found = []
            for turn in range(-3, turns):
                for device in devices_of(place):
                    device.synchronize()
                both = [run(count) for run in pair]
                if turn >= 0:  # before, operators and kernels are compiled
                    found.append(both)
            us, other_us = np.min(found, axis=0).tolist()
            low, middle, high = np.percentile([a / b for a, b in found], (25, 50, 75)).tolist()
            yield {
                "backend": name,
                "statement": what,
                "line": line,
                "size": size,
                "us": us,
                "graphblas_us": other_us,
                "ratio": middle,
                "ratio_low": low,
                "ratio_high": high,
                "turns": turns,
            }


@app.command()
def main(
    backend: Annotated[list[str], typer.Option("-b", help="Such as cpu, gpu.")] = ["cpu"],  # noqa: B006
    size: Annotated[list[int], typer.Option(help="Sizes of the vectors.")] = [10],  # noqa: B006
    turns: Annotated[int, typer.Option(help="Turns of both libraries.")] = 101,
    count: Annotated[int, typer.Option(help="Statements in a turn.")] = 100,
    json: Annotated[Path | None, typer.Option(help="Write the report here.")] = None,
) -> None:
    """Print a row for each backend, size and statement."""
    require_writable(json, "bench")
    places = [backends.get(name) for name in backend]
    found: Report = envelope(places, {}) | {"rows": []}
    for name in backend:
        for n in size:
            for row in rows_of(name, n, turns, count):
                text = "{backend} {size:>6} {statement:<15} {us:7.2f} us  {graphblas_us:7.2f}"
                print((text + "  ratio {ratio:.2f}").format_map(row), flush=True)
                found["rows"].append(row)
    if json is not None:
        write_json(found, json, "bench")


if __name__ == "__main__":
    gc.disable()
    app()
