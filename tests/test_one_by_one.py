"""Loops that are recorded and not fused: their statements run one by one from the record."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import numpy as np
import pytest

import lagpu
from lagpu import BOOL, FP64, INT32, Matrix, Vector, binary, loop, semiring
from lagpu.backends.gpu import backend as of_gpu
from lagpu.backends.gpu.device.protocol import Signal
from lagpu.backends.gpu.ops import spmv
from lagpu.backends.gpu.storage.stats import EXPLORED, PULLED
from lagpu.core import expr
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
def test_the_next_levels_do_not_wait_for_this_one(backend, monkeypatch, body, method):
    """Answers are waited for where the last loop ended, and behind that one iteration later."""
    A, x, frontier = start(backend)
    if not hasattr(A.backend, "last_loop"):
        pytest.skip("cpu records no loops")
    monkeypatch.setattr(Signal, "told", False)  # the device takes its time
    told = []

    def noting(where, name):
        real = getattr(where, name)
        monkeypatch.setattr(where, name, lambda *args: told.append(name) or real(*args))

    noting(A.backend, method)
    noting(spmv, "arguments")
    noting(A.backend.device, "heed")
    once = [method, "arguments"]
    with lagpu.eager():
        body(A, x, frontier)
        assert told == 2 * once + 8 * ["heed", *once] + ["heed"]
        assert (frontier.nvals, x.nvals) == (0, 9)
        for source, seen in [
            (0, 9 * once + 9 * ["heed"]),  # as foreseen
            (4, 9 * once + 5 * ["heed"]),  # shorter
            (0, 5 * once + 5 * ["heed"] + 2 * once + 3 * ["heed", *once] + ["heed"]),  # longer
        ]:
            told.clear()
            found, begin = Vector(x.dtype, 9, like=A), Vector(BOOL, 9, like=A)
            begin[source] = True
            body(A, found, begin)
            assert told == seen
            assert (begin.nvals, found.nvals) == (0, 9)


def test_an_answer_that_is_there_ends_the_loop(backend, monkeypatch):
    """However many iterations the last loop on the matrix needed."""
    A, levels, frontier = start(backend)
    if not hasattr(A.backend, "last_loop"):
        pytest.skip("cpu records no loops")
    calls, real = [], A.backend.assign_scalar
    monkeypatch.setattr(A.backend, "assign_scalar", lambda *args: calls.append(1) or real(*args))
    monkeypatch.setattr(Signal, "told", True)
    with lagpu.eager():
        searched(A, levels, frontier)
        calls.clear()
        levels, frontier = Vector(INT32, 9, like=A), Vector(BOOL, 9, like=A)
        frontier[4] = True
        searched(A, levels, frontier)
    assert (len(calls), levels.nvals) == (5, 9)


@pytest.mark.parametrize("late", [False, True])
def test_searches_of_other_depths_than_foreseen(backend, monkeypatch, late):
    A = path(200, backend=backend)
    if late and hasattr(A.backend, "last_loop"):
        monkeypatch.setattr(Signal, "told", False)
    for source in (0, 150, 3, 199, 199, 100):
        levels, frontier = Vector(INT32, 200, like=A), Vector(BOOL, 200, like=A)
        frontier[source] = True
        with lagpu.eager():
            searched(A, levels, frontier)
        assert levels.to_dense().tolist() == [abs(k - source) for k in range(200)]
        assert frontier.nvals == 0


@pytest.mark.parametrize("kind", ["undirected", "directed", "path"])
def test_the_device_goes_the_way_the_planner_would(backend, monkeypatch, kind):
    if backend.name == "cpu":
        pytest.skip("cpu has no planner")
    # On a path, what is explored already decides near its end.
    A = path(64, backend=backend) if kind == "path" else kronecker(9, 8, seed=3, backend=backend)
    if kind == "directed":
        rows, cols, _ = A.to_coo()
        kept = (rows * 7 + cols * 3) % 5 > 0
        A = Matrix.from_coo(rows[kept], cols[kept], nrows=A.nrows, ncols=A.ncols, backend=backend)
    planned, counted = [], []
    choose, arguments = of_gpu.choose, spmv.arguments

    def told(*args):
        counted.append(arguments(*args))
        return counted[-1]

    monkeypatch.setattr(spmv, "arguments", told)
    monkeypatch.setattr(
        of_gpu, "choose", lambda *args: planned.append(choose(*args)) or planned[-1]
    )
    found, source = [], int(np.flatnonzero(np.diff(A.to_csc()[0]))[0])
    for watched in (False, True):
        planned.clear()
        counted.clear()
        levels, frontier = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
        frontier[source] = True
        with lagpu.eager(), lagpu.trace() if watched else nullcontext():
            searched(A, levels, frontier)
        counts = [A.backend.device.to_host(given.counts).tolist() for given in counted]
        found.append((levels, [plan.direction == "pull" for plan in planned], counts))
    (levels, few, counts), (same, all_, _) = found
    pulled, explored = [c[PULLED] == 1 for c in counts], [c[EXPLORED] for c in counts]
    assert levels.isequal(same)
    asked = len(few)
    assert asked <= 2 < len(all_)  # the second makes the other form
    assert few + pulled[asked : len(all_)] == all_
    assert set(all_) == {False, True}
    degrees, depths = np.bincount(A.to_coo()[0], minlength=A.nrows), levels.to_dense(-1)
    first = A.nvals // A.nrows  # of a vector that no product made, mean columns are counted
    for k in range(asked, len(all_)):
        seen = first + degrees[(depths > 0) & (depths <= k)].sum()
        assert explored[k] == seen


def ranked(A, x, frontier, times=None):
    for depth in loop(until_empty=frontier, times=times):
        x(frontier.S) << depth
        frontier(~x.S, replace=True) << semiring.lor_land(frontier @ A)


def summed(A, x, frontier, times=None):
    for _ in loop(until_empty=frontier, times=times):
        x(frontier.S) << frontier
        frontier(~x.S, replace=True) << semiring.plus_first(frontier @ A)


@pytest.mark.parametrize("body", [ranked, summed])
@pytest.mark.parametrize("dtype", [INT32, FP64, BOOL])
def test_a_repeated_product_has_the_type_of_its_output(backend, body, dtype):
    found = []
    for place in (backend, "cpu"):
        A = kronecker(6, 4, seed=5, backend=place)
        source = int(np.flatnonzero(np.diff(A.to_csc()[0]))[0])
        for times in (2, None):
            frontier, x = Vector(dtype, A.nrows, like=A), Vector(FP64, A.nrows, like=A)
            frontier[source] = 3 if dtype is not BOOL else True
            with lagpu.eager():
                body(A, x, frontier, times)
            left = frontier.to_coo()[1]
            assert left.dtype == dtype.numpy
            assert bool(len(left)) == (times is not None)
            found.append((x.to_dense(-1), frontier.to_dense(0)))
    for ours, right in zip(found[:2], found[2:], strict=True):
        assert np.array_equal(ours, right)


def grown(A, q, r):
    for _ in loop(times=4):
        q(~q.S) << semiring.any_pair(q @ A)
        r << semiring.any_pair(q @ A)


def test_what_a_product_adds_to_a_vector_is_not_all_of_it(backend):
    """In the end it adds nothing, and the vector has entries all the same."""
    found = []
    for place in (backend, "cpu"):
        A = kronecker(5, 4, seed=2, backend=place)
        q, r = Vector(BOOL, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
        q[int(np.flatnonzero(np.diff(A.to_csc()[0]))[0])] = True
        with lagpu.eager():
            grown(A, q, r)
        found.append((q.to_dense(False), r.to_dense(False)))
    assert found[0][1].any()
    assert np.array_equal(found[0], found[1])


def test_a_frontier_that_times_leaves_is_planned_again(backend):
    """What the device counted while it decided serves the next loop, and any product."""
    A = kronecker(7, 8, seed=3, backend=backend)
    found = []
    for parts in ((2, 2, 9), (13,)):
        levels, frontier = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
        frontier[1] = True
        for times in parts:
            with lagpu.eager():
                found_first(A, levels, frontier, times)
        found.append(levels.to_dense(-1))
        w = Vector(BOOL, A.nrows, like=A)
        w << semiring.any_pair(frontier @ A)
        assert w.nvals == 0
    assert np.array_equal(*found)


def found_first(A, levels, frontier, times):
    for _ in loop(until_empty=frontier, times=times):
        levels(frontier.S) << 1
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)


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
    where, name = (A.backend, "mxv") if backend.name == "cpu" else (spmv, "arguments")
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
