"""What the text of authors costs: statements, loops that Python runs, known loops, first calls.

    python docs/benchmarks/statements.py kron20e16 --backend gpu --json statements.json
    OMP_NUM_THREADS=1 python docs/benchmarks/statements.py -b cpu --what line --size 10

`line`
    The host's time for one statement beside python-graphblas running the same text. Both libraries
    run it by turns, in one process; a ratio is the median over the turns, a time that of the
    quickest turn. The clock is the processor's. On a GPU it is the wall's, and a turn begins when
    the device is idle and ends when its statements are launched.
`statement`
    A statement of a loop that Python runs, which waits for others where the backend has batches,
    and a level of a search with its read of ``nvals``: median and quickest of some turns.
`known`
    `bfs_levels` from the vertex of most edges, when its loop is known: wall, and on the device.
`loop`, `body`
    Loops that read numbers in Python beside the same as one kernel, and how authors' bodies run.
`first`
    The first call of each algorithm in a fresh process.

With ``--host`` nothing is launched, and `statement` and `known` are times of Python alone: run it
on two trees by turns to compare them where there is no GPU.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import authors
import first_calls
import graphblas
import numpy as np
import typer

import lagpu
from lagpu import BOOL, FP64, INT32, Vector, algorithms, backends, binary, semiring, unary
from lagpu.backends.gpu.device.cuda import Packed
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.fused.program import batch
from lagpu.backends.protocol import Backend
from lagpu.bench.harness import Clock, Report, Row, devices_of, envelope
from lagpu.generators.load import load
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


def lines(place: Backend, size: int, turns: int, count: int) -> Iterator[Row]:
    """Yield a row for each line, on vectors of one size."""
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
                "what": "line",
                "backend": place.name,
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


# ---- what waits, and what is known
@contextmanager
def idle(place: Any) -> Iterator[None]:
    """Have nothing launched and each count be 1, so that a time is that of Python alone."""

    def one(*_: Any) -> tuple[int, int]:
        return 1, 1

    stubs = (SimDevice, "run"), (Packed, "launch"), (type(place.device), "_wait_for")
    with ExitStack() as stack:
        for stub in stubs:
            stack.enter_context(mock.patch.object(*stub, one))
        yield


def statements(place: Backend, turns: int, host: bool = False, n: int = 1000) -> Iterator[Row]:
    """Yield the time of a statement outside of a fused loop, or of a level, in microseconds."""
    u, w, x = (Vector.from_scalar(float(k), n, FP64, backend=place) for k in (1, 2, 3))
    few = Vector.from_coo(np.arange(0, n, 3), 1.0, FP64, size=n, backend=place)
    A = load("kron:8:8", place)
    levels, q = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    q[0] = True

    def union(times: range) -> None:
        for _ in times:
            w << u.ewise_add(x, binary.plus)
            w << u.ewise_add(w, binary.plus)
            w << w.ewise_add(x, binary.plus)
            w << u.ewise_add(x, binary.plus)

    def numbers(times: range) -> None:
        for k in times:
            w << u * k
            w << w + 1.0
            w << 0.5 * x
            w << w / 3.0

    def masks(times: range) -> None:
        for _ in times:
            w(few.S) << x
            w(~few.S) << u
            w(few.S, accum=binary.plus) << x
            w(few.S, replace=True) << u

    def calls(times: range) -> None:
        for _ in times:
            w << u.select("valuegt", 0.5)
            w << u.apply(unary.ainv)
            w(accum=binary.plus) << 3.0
            w << u.ewise_mult(x, binary.times)

    def level(times: range) -> None:
        for depth in times:
            if q.nvals < 0:
                break
            levels(q.S) << depth
            q(~levels.S, replace=True) << semiring.any_pair(q @ A)

    for run in (union, numbers, masks, calls, level):
        for _ in range(6):  # until lines are known to be repeated, and programs are made
            run(range(20))
        w.wait()
        with idle(place) if host else lagpu.use(place):
            found = _microseconds(place, run, turns, 1 if run is level else 4)
        row = {"what": "statement", "backend": place.name, "name": run.__name__, "host": host}
        if not host:
            with lagpu.eager():
                eager = _microseconds(place, run, turns, 1 if run is level else 4)
            row["eager_us"] = eager["us"]
        yield row | found


def _microseconds(
    place: Backend, run: Callable[[range], None], turns: int, each: int
) -> dict[str, float]:
    """Return the median time of one statement, of `each` in a round, and the least."""
    found, times = [], range(20)
    for _ in range(turns):
        for device in devices_of(place):
            device.synchronize()
        began = time.perf_counter()
        run(times)
        found.append((time.perf_counter() - began) / (each * len(times)) * 1e6)
    return {"us": float(np.median(found)), "least_us": min(found)}


def known(place: Backend, graph: str, turns: int, host: bool = False) -> Iterator[Row]:
    """Yield the milliseconds of a search whose loop has been recorded before."""
    A, clock = load(graph, place), Clock(place)
    source = int(A.reduce_rowwise("plus").new().reduce(lagpu.agg.argmax).get())
    search = lambda: algorithms.bfs_levels(A, source)  # noqa: E731
    for _ in range(4):
        clock.wall(search)
    row = {"what": "known", "backend": place.name, "graph": graph, "host": host}
    with idle(place) if host else lagpu.use(place):
        wall = [clock.wall(search)[0] for _ in range(turns)]
        row |= {"wall_ms": float(np.median(wall)), "least_wall_ms": min(wall)}
        if clock.has_device and not host:
            row["device_ms"] = float(np.median(clock.repeat(clock.queued, search)[0]))
    yield row


def first(place: Backend, graph: str, jobs: int) -> Iterator[Row]:
    """Yield a row for the first call of each algorithm, with the kernels that lagpu brings."""
    for row in first_calls.rows(place.name, graph, True, jobs):
        yield {"what": "first"} | row


KINDS = ("line", "statement", "known", "loop", "body", "first")
BESIDE = KINDS[:2]  # of a host beside a GPU


@app.command()
def main(
    graph: Annotated[str, typer.Argument(help="Of `known` and `loop`.")] = "kron20e16",
    backend: Annotated[list[str], typer.Option("--backend", "-b")] = ["gpu"],  # noqa: B006
    what: Annotated[list[str], typer.Option(help="Kinds of rows.")] = [*KINDS],  # noqa: B006
    size: Annotated[list[int], typer.Option(help="Sizes of the vectors of lines.")] = [10],  # noqa: B006
    turns: Annotated[int, typer.Option(help="Turns of each measurement.")] = 101,
    count: Annotated[int, typer.Option(help="Statements in a turn of a line.")] = 100,
    small: Annotated[str, typer.Option(help="Of `body` and `first`.")] = "kron:12:8",
    host: Annotated[bool, typer.Option(help="Launch nothing.")] = False,
    jobs: Annotated[int, typer.Option(help="Processes of `first` at once.")] = 4,
    json: Annotated[Path | None, typer.Option(help="Write the report here.")] = None,
) -> None:
    """Print a row for each backend and kind."""
    require_writable(json, "bench")
    batch.WAITS = True  # programs are made at once, and later runs have them
    places = [backends.get(name) for name in backend]
    found: Report = envelope(places, {}) | {"rows": []}
    for place in places:
        on_device = bool(devices_of(place)) or place.capabilities.fuses
        ways: dict[str, Callable[[], Iterator[Row]]] = {
            "line": lambda at=place: (row for n in size for row in lines(at, n, turns, count)),
            "statement": lambda at=place: statements(at, turns, host),
            "known": lambda at=place: known(at, graph, turns, host),
            "loop": lambda at=place: authors.whole(load(graph, at), graph),
            "body": lambda at=place: authors.bodies(authors.scaled(load(small, at))),
            "first": lambda at=place: first(at, small, jobs),
        }
        for kind in what:
            if not on_device and (kind == "body" or (kind not in BESIDE and len(places) > 1)):
                continue  # it counts launches, or would be no figure beside a GPU's
            for row in ways[kind]():
                print(row, flush=True)
                found["rows"].append(row)
                if json is not None:
                    write_json(found, json, "bench")


if __name__ == "__main__":
    gc.disable()
    app()
