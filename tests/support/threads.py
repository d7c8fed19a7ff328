"""Programs that many threads run at once, each with its right answer."""

import contextlib
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import lagpu
from lagpu import FP64, INT64, Matrix, Vector, algorithms, binary, generators, semiring

#: Runs of one case: some in the test-suite, 10,000 by hand.
RUNS = int(os.environ.get("LAGPU_THREAD_RUNS", "24"))
NUMBERS = 6  # that programs begin with, as sources


def _edges(seed, n=40, count=160):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n, count), rng.integers(0, n, count), rng.integers(1, 9, count)


def directed(seed, backend):
    """A random graph whose rows are not its columns, so that both forms are made on first use."""
    rows, cols, values = _edges(seed)
    return Matrix.from_coo(
        rows, cols, values, INT64, nrows=40, ncols=40, dup_op=binary.min, backend=backend
    )


def undirected(seed, backend):
    return generators.kronecker(6, seed=seed, backend=backend)


def _levels(A, s):
    return algorithms.bfs_levels(A, s).to_dense(-1).tolist()


def _against(A, s):
    """A product and its transpose, an iso vector read as a mask, and statements on matrices."""
    q = Vector.from_coo([s], True, size=A.nrows, like=A)
    w, u = (Vector(INT64, A.nrows, like=A) for _ in range(2))
    w(~q.S) << semiring.min_plus(A @ q)
    u(accum=binary.plus) << semiring.plus_pair(q @ A)
    C = semiring.plus_pair(A @ A).new(mask=A.S)
    return w.to_dense(-1).tolist(), u.to_dense(-1).tolist(), C.reduce().new().value


def _many(A, s):
    sources = [s, (s + 1) % A.nrows, (s + 7) % A.nrows]
    return [x.tolist() for x in algorithms.bfs_levels_multi(A, sources).to_coo()]


def _distances(A, s):
    return algorithms.bellman_ford(A.dup(FP64), s).to_dense(np.inf).tolist()


def _between(A, s):
    return algorithms.betweenness_centrality(A, 2, seed=s).to_dense(0).round(6).tolist()


def _labels(A, s):
    return algorithms.connected_components(A).to_dense(-1).tolist()


#: name -> (program of a graph and a number, maker of a graph)
PROGRAMS = {
    "levels": (_levels, undirected),
    "directed": (_levels, directed),
    "products": (_against, directed),
    "many": (_many, undirected),
    "distances": (_distances, directed),
    "between": (_between, undirected),
    "labels": (_labels, undirected),
}


def answers(name, graphs, mode, count=NUMBERS):
    """Return the right answers, as one thread gets them, by (graph, number)."""
    program, _ = PROGRAMS[name]
    with mode():
        return {(g, s): program(A, s) for g, A in enumerate(graphs) for s in range(count)}


@contextlib.contextmanager
def switching():
    """Let threads switch as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(tasks, workers=8):
    """Run callables from several threads that begin at the same time; return what went wrong."""
    wrong = []
    ready = threading.Barrier(min(workers, len(tasks)))

    def run(task):
        try:
            found = task()
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        if found is not None:
            wrong.append(found)

    def first():
        ready.wait(60)

    with switching(), ThreadPoolExecutor(ready.parties) as pool:
        list(pool.map(lambda _: first(), range(ready.parties)))
        list(pool.map(run, tasks))
    return wrong


MODES = [
    pytest.param(contextlib.nullcontext, id="fused"),
    pytest.param(lagpu.eager, id="eager"),
]
