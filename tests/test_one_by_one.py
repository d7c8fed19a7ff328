"""Loops that are recorded and not fused: their statements run one by one from the record."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import numpy as np
import pytest

import lagpu
from lagpu import BOOL, FP64, INT32, Matrix, Vector, binary, expr, loop, semiring
from lagpu.backends.gpu import backend as of_gpu
from lagpu.backends.gpu import products
from lagpu.generators import kronecker, path


@pytest.fixture
def written(monkeypatch):
    """The statements that Python wrote, by method."""
    seen, real = [], expr.assign

    def told(to, value):
        seen.append(getattr(value, "method", "assign"))
        real(to, value)

    monkeypatch.setattr(expr.Updater, "__lshift__", lambda to, value: told(to, value))
    return seen


# bodies are functions of their own, without assert, so that pytest leaves their code alone
def searched(A, levels, frontier, times=None):
    for depth in loop(until_empty=frontier, times=times):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)


def copied(A, x, frontier):
    for _ in loop(until_empty=frontier):
        x(frontier.S) << frontier
        frontier(~x.S, replace=True) << semiring.any_pair(frontier @ A)


def chosen(A, levels, frontier):
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A, policy="turbobfs")


def bounded(x):
    for _ in loop(until_unchanged=x):
        x << x.apply(binary.min, right=3)


def everywhere(A, x, frontier):
    for depth in loop(until_empty=frontier):
        x << depth
        frontier << semiring.any_pair(frontier @ A)


def elsewhere(A, x, frontier):
    for depth in loop(until_empty=frontier):
        x(~frontier.S) << depth
        frontier << semiring.any_pair(frontier @ A)


def there_alone(A, x, frontier):
    for depth in loop(until_empty=frontier):
        x(frontier.S, replace=True) << depth
        frontier << semiring.any_pair(frontier @ A)


def added(A, x, frontier):
    for _ in loop(until_empty=frontier):
        x(frontier.V, accum=binary.plus) << 1
        x(frontier.S) << x.apply(binary.plus, right=1)
        frontier << semiring.any_pair(frontier @ A)


def start(place, n=9):
    A = path(n, backend=place)
    frontier = Vector(BOOL, n, like=A)
    frontier[0] = True
    return A, Vector(INT32, n, like=A), frontier


@pytest.mark.parametrize("times", [None, 0, 1, 4])
def test_conditions_and_counter(backend, times):
    A, levels, frontier = start(backend)
    with lagpu.eager():
        searched(A, levels, frontier, times)
    reached = 9 if times is None else times
    assert levels.to_coo()[1].tolist() == list(range(reached))
    assert frontier.nvals == (reached < 9)


@pytest.mark.parametrize("body", [everywhere, elsewhere, there_alone, added])
def test_what_stands_first_is_not_done_behind_the_end(backend, body):
    """Though an eager loop runs ahead of the question whether it goes on."""
    results = []
    for watched in (False, True):
        n = 5
        A = Matrix.from_coo(range(n - 1), range(1, n), nrows=n, ncols=n, backend=backend)
        frontier, x = Vector(BOOL, n, like=A), Vector(INT32, n, like=A)
        frontier[0] = True
        with lagpu.eager(), lagpu.trace() if watched else nullcontext():
            body(A, x, frontier)
        results.append(x)
    assert results[0].isequal(results[1])


@pytest.mark.parametrize(("body", "method"), [(searched, "assign_scalar"), (copied, "assign")])
def test_statements_run_while_the_device_counts(backend, monkeypatch, body, method):
    """What changes nothing once the frontier is empty does not wait until that is known."""
    A, x, frontier = start(backend)
    if not hasattr(A.backend, "last_loop"):
        pytest.skip("cpu records no loops")
    told = []

    def noting(where, name):
        real = getattr(where, name)
        monkeypatch.setattr(where, name, lambda *args: told.append(name) or real(*args))

    noting(A.backend, method)
    noting(products, "arguments")
    noting(products, "start")
    noting(A.backend.device, "heed")
    with lagpu.eager():
        body(A, x, frontier)
    later = told[told.index("heed") - 3 :]
    assert later[:5] == ["start", method, "arguments", "heed", "start"]


@pytest.mark.parametrize("directed", [False, True])
def test_a_repeated_product_goes_the_way_the_planner_would(backend, monkeypatch, directed):
    """It is planned as any other while it has none before it; then only its direction is."""
    if backend.name == "cpu":
        pytest.skip("cpu has no planner")
    A = kronecker(9, 8, seed=3, backend=backend)
    if directed:
        rows, cols, _ = A.to_coo()
        kept = (rows * 7 + cols * 3) % 5 > 0
        A = Matrix.from_coo(rows[kept], cols[kept], nrows=A.nrows, ncols=A.ncols, backend=backend)
    planned, ways = [], []
    choose, run = of_gpu.choose, products.start
    monkeypatch.setattr(of_gpu, "choose", lambda *args: planned.append(1) or choose(*args))

    def told(*args):
        ways.append((args[3].direction, args[3].kernel))
        return run(*args)

    monkeypatch.setattr(products, "start", told)
    found, source = [], int(np.flatnonzero(np.diff(A.to_csc()[0]))[0])
    for watched in (False, True):
        levels, frontier = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
        frontier[source] = True
        with lagpu.eager(), lagpu.trace() if watched else nullcontext():
            searched(A, levels, frontier)
        found.append((levels, planned.copy(), ways.copy()))
        planned.clear()
        ways.clear()
    (levels, few, quick), (same, all_, slow) = found
    assert levels.isequal(same)
    assert quick == slow
    assert {way for way, _ in quick} == {"push", "pull"}
    assert len(few) <= 2 < len(all_) == len(slow)  # the second makes the other form


def test_until_unchanged(backend):
    x = Vector.from_dense(np.array([9, 4, 0]), backend=backend)
    with lagpu.eager():
        bounded(x)
    assert x.to_dense().tolist() == [3, 3, 0]


def test_python_writes_a_recorded_body_once(backend, written):
    A, levels, frontier = start(backend)
    with lagpu.eager():
        searched(A, levels, frontier)
    once = hasattr(A.backend, "last_loop")  # where loops are recorded
    assert len(written) == (2 if once else 2 * 9)
    if once:
        assert A.backend.last_loop == "eager: inside lagpu.eager()"


def test_what_cannot_be_fused_is_written_once_too(backend, written):
    if backend.name == "cpu":
        pytest.skip("cpu has no policies")
    A, levels, frontier = start(backend)
    chosen(A, levels, frontier)
    assert A.backend.last_loop.startswith("eager: the author chose")
    assert (len(written), levels.to_dense().tolist()) == (2, list(range(9)))


def test_whoever_watches_sees_python_run_the_body(backend, written):
    A, levels, frontier = start(backend)
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        with lagpu.eager():
            searched(A, levels, frontier)
    finally:
        sys.settrace(before)
    assert len(written) == 2 * 9
    A, levels, frontier = start(backend)
    with lagpu.trace(fuse=False) as t, lagpu.eager():
        searched(A, levels, frontier)
    assert [row.level for row in t.rows] == [k // 2 for k in range(2 * 9)]


def test_a_statement_that_fails_ends_the_loop(backend, monkeypatch):
    A, levels, frontier = start(backend)
    where, name = (A.backend, "mxv") if backend.name == "cpu" else (products, "start")
    real, runs = getattr(where, name), []

    def failing(*args):
        runs.append(1)
        if len(runs) == 3:
            raise MemoryError("no more")
        return real(*args)

    monkeypatch.setattr(where, name, failing)
    with lagpu.eager(), pytest.raises(MemoryError):
        searched(A, levels, frontier)
    assert levels.to_coo()[1].tolist() == [0, 1, 2]
    assert getattr(A.backend, "recorder", None) is None
    x = Vector.from_dense(np.ones(3), FP64, backend=backend)  # and the next statement runs
    assert x.reduce("plus").new().value == 3
