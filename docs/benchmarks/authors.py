"""Loops as authors write them, and how each runs; `statements.py` measures them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import lagpu
from lagpu import (
    BOOL,
    FP64,
    INT32,
    Matrix,
    Scalar,
    Vector,
    algorithms,
    binary,
    loop,
    monoid,
    semiring,
    unary,
)
from lagpu.bench.harness import Row

# ---- bodies that authors write; each returns what it computes. A is (n, n), FP64, with columns
# ---- that add up to at most 1.


def _full(A: Matrix, value: float = 1.0) -> Vector:
    return Vector.from_scalar(value, A.nrows, FP64, like=A)


def normalised(A: Matrix) -> Vector:
    x, y = _full(A), _full(A)
    for _ in loop(times=6):
        y << semiring.plus_times(x @ A)
        x << y / y.reduce()
    return x


def dot(A: Matrix) -> Vector:
    x, s = _full(A), Scalar(FP64)
    for _ in loop(times=6):
        x << semiring.plus_times(x @ A)
        s << x @ x
        x << x + s
        x << x * 0.01
    return x


def in_place(A: Matrix) -> Vector:
    x = _full(A)
    for _ in loop(times=6):
        x += semiring.plus_times(x @ A)
        x /= x.reduce(monoid.max)
    return x


def damped(A: Matrix) -> Vector:
    x = _full(A)
    for _ in loop(times=6):
        x << 0.85 * semiring.plus_times(x @ A) + 0.15
    return x


def two_frontiers(A: Matrix) -> Vector:
    seen, f, g = (Vector(BOOL, A.nrows, like=A) for _ in range(3))
    f[0] = g[A.nrows - 1] = True
    for _ in loop(until_empty=f, times=20):
        seen(f.S) << True
        seen(g.S) << True
        f(~seen.S, replace=True) << semiring.any_pair(f @ A)
        g(~seen.S, replace=True) << semiring.any_pair(A @ g)
    return seen


def two_products(A: Matrix) -> Vector:
    x, y = _full(A), _full(A)
    for _ in loop(times=6):
        y << semiring.plus_times(x @ A)
        x << semiring.plus_times(A @ y)
        x << x * 0.1
    return x


def gathered(A: Matrix) -> Vector:
    parents = Vector.from_dense(np.arange(A.nrows) // 2, like=A)
    for _ in loop(until_unchanged=parents):
        parents << semiring.any_first(parents @ parents.selection())
    return parents


def until_close(A: Matrix) -> Vector:
    x, y, off = _full(A), _full(A), Vector(FP64, A.nrows, like=A)
    off << 1.0
    for _ in loop(until_empty=off, times=100):
        y << 0.5 * semiring.plus_times(x @ A) + 0.5
        off << abs(y - x)
        off << off.select("valuegt", 1e-4)
        x << y
    return x


def registered(A: Matrix) -> Vector:
    halved = unary.authors_half if "authors_half" in unary else _register()
    x = _full(A)
    for _ in loop(times=6):
        x << semiring.plus_times(x @ A)
        x << x.apply(halved)
    return x


def _register() -> Any:
    return unary.register("authors_half", numpy=lambda x: x / 2, cuda="x / 2")


def rows(A: Matrix) -> Matrix:
    k, n = 8, A.nrows
    seen, f = Matrix(BOOL, k, n, like=A), Matrix(BOOL, k, n, like=A)
    f << Matrix.from_coo(np.arange(k), np.arange(k), True, nrows=k, ncols=n, like=A)
    for _ in loop(until_empty=f):
        seen(f.S) << True
        f(~seen.S, replace=True) << semiring.any_pair(f @ A)
    return seen


# ---- from here on each has something that is no statement


def counter_plus_one(A: Matrix) -> Vector:
    levels, q = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    q[0] = True
    for d in loop(until_empty=q):
        levels(q.S) << d + 1
        q(~levels.S, replace=True) << semiring.any_pair(q @ A)
    return levels


def heat(A: Matrix) -> Vector:
    x, total = _full(A), _full(A)
    for k in loop(times=8):
        x << semiring.plus_times(x @ A)
        x << x * (2.0 / (k + 1))
        total(binary.plus) << x
    return total


def found(A: Matrix) -> Vector:
    levels, q = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    q[0] = True
    for d in loop(until_empty=q):
        levels(q.S) << d
        q(~levels.S, replace=True) << semiring.any_pair(q @ A)
        if q.nvals > A.nrows // 2:
            break
    return levels


def tolerance(A: Matrix) -> Vector:
    x, y, d = (_full(A) for _ in range(3))
    changes = []
    for _ in range(100):
        y << 0.5 * semiring.plus_times(x @ A) + 0.5
        d << abs(y - x)
        x << y
        changes.append(d.reduce(monoid.plus).get())
        if changes[-1] < 1e-4:
            break
    return x


def constant_test(A: Matrix) -> Vector:
    x = _full(A)
    for _ in loop(times=8):
        if A.nrows > 5:
            x << semiring.plus_times(x @ A)
        x << x * 0.9 + 0.1
    return x


def helper(A: Matrix) -> Vector:
    def step(x: Vector) -> Any:
        return semiring.plus_times(x @ A)

    x = _full(A)
    for _ in loop(times=8):
        x << step(x)
        x << x * 0.9 + 0.1
    return x


def mean(A: Matrix) -> Vector:
    x, s = _full(A), Scalar(FP64)
    for _ in loop(times=8):
        x << semiring.plus_times(x @ A)
        s << x.reduce(lagpu.agg.mean)
        x << x + s
    return x


def one_index(A: Matrix) -> Vector:
    x = _full(A)
    for _ in loop(times=8):
        x << 0.5 * semiring.plus_times(x @ A)
        x[0] << 1.0
    return x


def truss(A: Matrix) -> Matrix:
    C = A.apply(unary.one).new()
    for _ in loop(times=3):
        C(C.S, replace=True) << semiring.plus_pair(C @ C.T)
        C << C.select("valuege", 1)
    return C


BODIES: tuple[Callable[[Matrix], Any], ...] = (
    *(normalised, dot, in_place, damped, two_frontiers, two_products, gathered, until_close),
    *(registered, rows, counter_plus_one, heat, found, tolerance, constant_test, helper, mean),
    *(one_index, truss),
)


def scaled(A: Matrix) -> Matrix:
    """Return a graph as these bodies take it: each column adds up to 1."""
    values = A.apply(unary.one).new(FP64)
    degree = values.reduce_columnwise(monoid.plus).new().apply(unary.minv).new()
    return semiring.any_times(values @ degree.diag()).new()


# ---- how each runs
class Launches:
    """Counts the kernels that a device launches; see `Device`."""

    def __init__(self, device: Any) -> None:
        self.names: list[str] = []
        self._device = device
        for name in ("_from_host", "_to_host", "_read", "_wait_for"):
            setattr(self, name, getattr(device, name))

    def run(self, kernel: Any, *given: Any) -> None:
        self.names.append(kernel.name)
        self._device.run(kernel, *given)

    def run_prepared(self, launch: Any, new: Any) -> None:
        self.names.append(launch.kernel.name)
        launch.run(new)


def _run(A: Matrix, body: Callable[[Matrix], Any]) -> tuple[list[str], str]:
    """Return the kernels that a body launches, and how its loop ran."""
    place: Any = A.backend
    seen, place.last_loop = Launches(place.device), ""
    place.device.observer = seen
    try:
        body(A).wait()
    finally:
        place.device.observer = None
    return seen.names, place.last_loop


def bodies(A: Matrix) -> Iterator[Row]:
    """Yield a row for each body: as one kernel, with one launch an iteration, or by statement."""
    for body in BODIES:
        for _ in range(9):  # until lines are known to be repeated, and programs are made
            names, how = _run(A, body)
        fused = bool(how) and not how.startswith("eager")
        programs = names.count("program")
        one_each = programs > 1 and len(names) - programs < 8
        way = "one kernel" if fused else "one launch an iteration" if one_each else "statements"
        ms = median_ms(lambda body=body: body(A).wait(), 10)
        yield {"what": "body", "name": body.__name__, "runs": way, "launches": len(names),
               "programs": programs, "ms": ms, "loop": how}  # fmt: skip


# ---- what Python costs
def python_pagerank(A: Matrix) -> tuple[Vector, int]:
    """Return the ranks by a loop that reads the change in Python, and its iterations."""
    n, alpha = A.nrows, 0.85
    ones, ranks, new = (Vector.from_scalar(x, n, FP64, like=A) for x in (1.0, 1 / n, 0.0))
    left, out = (Vector(FP64, n, like=A) for _ in range(2))
    lost = Scalar(FP64)
    out << semiring.plus_second(A @ ones)
    rate = out.apply("truediv", left=alpha).new()
    sent = ones.apply("times", right=alpha / n).new()
    jump, k = (1 - alpha) / n, 0
    while True:
        k += 1
        left(~rate.S, replace=True) << ranks
        lost << 0
        lost(accum=binary.plus) << left.reduce("plus")
        new << ranks.ewise_mult(rate, binary.times)
        new << semiring.plus_first(new @ A)
        new(accum=binary.plus) << sent.apply("times", right=lost)
        new(accum=binary.plus) << jump
        ranks << ranks.ewise_mult(new, binary.minus)
        ranks << abs(ranks)
        moved = ranks.reduce("plus")
        if moved.get() < min(n * 1e-6, 1e-3):
            ranks << new
            return ranks, k
        ranks << new


def python_levels(A: Matrix, source: int) -> Vector:
    """Return the levels by a plain loop."""
    levels, q = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    q[source] = True
    depth = 0
    while q.nvals:
        levels(q.S) << depth
        q(~levels.S, replace=True) << semiring.any_pair(q @ A)
        depth += 1
    return levels


def median_ms(run: Callable[[], Any], count: int = 30) -> float:
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - begun))
    return statistics.median(times)


def whole(A: Matrix, name: str) -> Iterator[Row]:
    """Yield a row for PageRank and for levels: by Python's loop and as one kernel."""
    source = int(A.reduce_rowwise(monoid.plus).new().reduce(lagpu.agg.argmax).get())
    pairs = {
        "pagerank": (lambda: python_pagerank(A)[0], lambda: algorithms.pagerank(A, weight=False)),
        "levels": (lambda: python_levels(A, source), lambda: algorithms.bfs_levels(A, source)),
    }
    for what, ways in pairs.items():
        python, fused = (lambda way=way: way().wait() for way in ways)
        for _ in range(5):
            python()
        fused()
        same = ways[0]().isclose(ways[1](), rel_tol=1e-3)
        by = {"python_ms": median_ms(python), "fused_ms": median_ms(fused)}
        with lagpu.eager():
            by["eager_ms"] = median_ms(python, 10)
        yield {"what": what, "graph": name, **by, "ratio": by["python_ms"] / by["fused_ms"],
               "same": same}  # fmt: skip
