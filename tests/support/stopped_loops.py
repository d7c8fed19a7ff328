"""Loops of every kind that one kernel runs, long or endless, to be interrupted.

Functions of their own, without assert, so that pytest leaves their code alone. Run as a program,
``stopped_loops.py BACKEND NAME WHERE``, one of them is interrupted by a signal while it runs in the
main thread or in another one, and what came of it is printed; a test runs that under a limit.
"""

import json
import os
import signal
import sys
import threading
import time

import numpy as np
from late import late

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Matrix, Vector, binary, loop, semiring


def path(backend, n, back=False):
    """A path, with edges back if it has none of one direction, else a cycle."""
    at = np.arange(n)
    ends = (at, (at + 1) % n)
    rows, cols = (np.r_[ends[0], ends[1]], np.r_[ends[1], ends[0]]) if back else ends
    return Matrix.from_coo(rows, cols, nrows=n, ncols=n, dup_op=binary.lor, backend=backend)


def random(backend, n):
    rng = np.random.default_rng(3)
    ends = rng.integers(0, n, (2, 2 * n))
    return Matrix.from_coo(*ends, nrows=n, ncols=n, dup_op=binary.lor, backend=backend)


def cliques(backend, count, size=10):
    """A chain of cliques, neither sparse nor shallow."""
    at = np.arange(count * size)
    inside = (at.repeat(size), (at // size * size).repeat(size) + np.tile(np.arange(size), len(at)))
    rows, cols = (np.r_[x, y] for x, y in zip(inside, (at[:-1], at[1:]), strict=True))
    n = count * size
    return Matrix.from_coo(rows, cols, nrows=n, ncols=n, dup_op=binary.lor, backend=backend)


def vectors(A, *dtypes):
    return [Vector(dtype, A.nrows, like=A) for dtype in dtypes]


def frontier(A, dtype=BOOL, value=True):
    f = Vector(dtype, A.nrows, like=A)
    f[0] = value
    return f


def rows(A, dtype, value, k=3):
    """k x n: row r has one entry."""
    return Matrix.from_coo(
        np.arange(k), 7 * np.arange(k), np.full(k, value, dtype.numpy), dtype,
        nrows=k, ncols=A.ncols, like=A,
    )  # fmt: skip


# ---- endless: the bug that everybody writes once
def mask_forgotten(A, times=None):
    f = frontier(A)
    turns, one = vectors(A, INT64, INT64)
    turns[:] << 0
    one[:] << 1

    def run():
        for _ in loop(until_empty=f, times=times):
            turns << turns.ewise_add(one, "plus")
            f << semiring.any_pair(f @ A)

    return run, [f, turns]


def never_unchanged(A, times=None):
    x = Vector.from_dense(np.arange(A.nrows), like=A)

    def run():
        for _ in loop(until_unchanged=x, times=times):
            x << semiring.min_second(A @ x)

    return run, [x]


def without_products(A, times=None):
    x = Vector.from_dense(np.arange(A.nrows), like=A)

    def run():
        for depth in loop(times=10**15 if times is None else times):
            x(accum=binary.plus) << depth

    return run, [x]


def held(A, times=None):
    """Small vectors are in registers, and no turn has a barrier."""
    x, f = Vector(INT64, 5, like=A), Vector(INT64, 5, like=A)
    f[2] = 4

    def run():
        for depth in loop(until_empty=f, times=times):
            x << depth
            f << f.apply("plus", right=3)

    return run, [x, f]


def rows_without_mask(A, times=None):
    F, X = rows(A, BOOL, True), Matrix(INT32, 3, A.ncols, like=A)

    def run():
        for depth in loop(until_empty=F, times=times):
            X(F.S) << depth
            F << semiring.any_pair(F @ A)

    return run, [F, X]


# ---- searches
def search(A, times=None):
    f, (levels,) = frontier(A), vectors(A, INT32)

    def run():
        for depth in loop(until_empty=f, times=times):
            levels(f.S) << depth
            f(~levels.S, replace=True) << semiring.any_pair(f @ A)

    return run, [f, levels]


def search_behind(A, times=None):
    f, (levels,) = frontier(A), vectors(A, INT32)

    def run():
        for depth in loop(until_empty=f, times=times):
            f(~levels.S, replace=True) << semiring.any_pair(f @ A)
            levels(f.S) << depth

    return run, [f, levels]


def parents(A, times=None):
    f, (levels, found) = frontier(A, INT64, 0), vectors(A, INT32, INT64)

    def run():
        for depth in loop(until_empty=f, times=times):
            levels(f.S) << depth
            found(f.S) << f
            f(~levels.S, replace=True) << semiring.min_secondi(f @ A)

    return run, [f, levels, found]


def paths(A, times=None):
    f, (levels, counts) = frontier(A, FP64, 1), vectors(A, INT32, FP64)

    def run():
        for depth in loop(until_empty=f, times=times):
            levels(f.S) << depth
            counts(f.S) << f
            f(~levels.S, replace=True) << semiring.plus_first(f @ A)

    return run, [f, levels, counts]


def over_full(A, times=None):
    """An output that has entries everywhere keeps them at the vertices that are left."""
    f, (levels, seen) = frontier(A), vectors(A, INT32, INT64)
    seen[:] << -7

    def run():
        for depth in loop(until_empty=f, times=times):
            seen(f.S) << depth
            levels(f.S) << depth
            f(~levels.S, replace=True) << semiring.any_pair(f @ A)

    return run, [f, levels, seen]


def rows_of_levels(A, times=None):
    F, levels = rows(A, BOOL, True), Matrix(INT32, 3, A.ncols, like=A)

    def run():
        for depth in loop(until_empty=F, times=times):
            levels(F.S) << depth
            F(~levels.S, replace=True) << semiring.any_pair(F @ A)

    return run, [F, levels]


def rows_of_paths(A, times=None):
    F, levels = rows(A, FP64, 1), Matrix(INT32, 3, A.ncols, like=A)
    counts = Matrix(FP64, 3, A.ncols, like=A)

    def run():
        for depth in loop(until_empty=F, times=times):
            levels(F.S) << depth
            counts(F.S) << F
            F(~levels.S, replace=True) << semiring.plus_first(F @ A)

    return run, [F, levels, counts]


def relaxation(A, times=None):
    f, (d, worse) = frontier(A, INT64, 0), vectors(A, INT64, BOOL)

    def run():
        for _ in loop(until_empty=f, times=times):
            f(~worse.V, replace=True) << f
            d(f.S) << f
            f << semiring.min_plus(f @ A)
            worse << f.ewise_mult(d, binary.ge)

    return run, [f, d, worse]


#: How each runs, and whether it ends as before the loop, not as after some whole iteration.
ENDLESS = {
    mask_forgotten: "generated loop",
    never_unchanged: "generated loop",
    without_products: "generated loop",
    held: "generated loop",
    rows_without_mask: "generated loop",
}
SEARCHES = {
    search: "grid search",
    search_behind: "grid search",
    parents: "grid search",
    paths: "grid search",
    over_full: "grid search",
}
TAKEN_BACK = {
    rows_of_levels: "per-source search",  # on a path; on cliques it is a bit-parallel search
    rows_of_paths: "per-source search",
    relaxation: "relaxation",
}


def state(objects):
    """What objects hold, in the same form for each backend."""
    return [[part.tolist() for part in x.to_coo()] for x in objects]


# ------------------------------------------------------------------- interrupted by a real signal
def _interrupted(run, read, where):
    """Run a loop, interrupt it after a while; return what was raised in its thread and in main.

    That is what the loop raises, or what reads its objects if the host goes on while it runs.
    """
    raised = []

    def work():
        try:
            run()
            read()
            raised.append(None)
        except BaseException as error:
            raised.append(type(error).__name__)

    def interrupt():
        time.sleep(1.5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    if where == "main":
        work()
        return raised
    thread = threading.Thread(target=work)
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        thread.join()
        raised.append("KeyboardInterrupt")
    return raised


def main(backend, name, where):
    make, backend = globals()[name], late() if backend == "late" else backend
    n = 21 if make in ENDLESS else 10_000_000 if "gpu" in str(backend) else 100_000
    A = path(backend, n)
    first, _ = make(path(backend, n), times=3)  # compiled before the interrupt
    first()
    started = time.monotonic()
    run, objects = make(A)
    before = state(objects)
    raised = _interrupted(run, objects[0].wait, where)
    seconds = time.monotonic() - started
    how = "before" if state(objects) == before else "after"
    again, found = search(A, times=4)
    again()
    right = found[1].to_coo()[1].tolist() == [0, 1, 2, 3]
    print(json.dumps([raised, how, seconds, right]))
    if how == "after" and make is mask_forgotten:
        turns = objects[1].to_coo()[1].tolist()
        print(json.dumps([turns, objects[0].to_coo()[0].tolist()]))


if __name__ == "__main__":
    with lagpu.use("cpu"):
        main(*sys.argv[1:])


def halved(x):
    """Halve each entry until all are 0, in a loop that might have no end."""
    for _ in loop(until_unchanged=x):
        x << x.apply("floordiv", 2)


def counted_to_200(x):
    """Add 200 to each entry, in a loop that ends soon by itself."""
    for _ in loop(times=200):
        x << x.apply("plus", 1)
