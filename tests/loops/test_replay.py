"""Loops that are recorded and not fused: their statements run one by one from the record."""

from __future__ import annotations

import sys
from contextlib import nullcontext, suppress

import numpy as np
import pytest
from faults import Interrupts

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, UINT32, Matrix, Scalar, Vector, binary, loop, semiring
from lagpu.core import expr
from lagpu.core.recorder import Recorder, current_recorder
from lagpu.generators import kronecker, path
from lagpu.loops import loop as known
from lagpu.operations import Multiply


@pytest.fixture
def written(monkeypatch):
    """The statements that Python wrote, by method, of loops that no test before has made known."""
    monkeypatch.setattr(known, "_known", {})
    seen, real = [], expr.assign

    def recorded(to, value):
        seen.append(getattr(value, "method", "assign"))
        real(to, value)

    monkeypatch.setattr(expr.Updater, "__lshift__", lambda to, value: recorded(to, value))
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
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A, kernel="push_edge")


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


def under_another(A, x, frontier):
    for depth in loop(until_empty=frontier):
        x(frontier.S) << depth
        x(x.S, accum=binary.plus) << 1
        frontier << semiring.any_pair(frontier @ A)


def emptied_first(A, x, frontier):
    for _ in loop(until_empty=frontier):
        frontier(frontier.S) << x
        x(~frontier.S) << 7


def counted(x, y):
    for _ in loop(until_unchanged=x):
        x << x.apply(binary.min, right=3)
        y << y.apply(binary.plus, right=1)


def beside(x, B):
    for _ in loop(until_unchanged=x):
        B << B.apply(binary.plus, right=1)


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


@pytest.mark.parametrize(
    "body", [everywhere, elsewhere, there_alone, added, under_another, emptied_first]
)
def test_what_stands_first_is_not_done_behind_the_end(backend, body):
    """Though the question whether an eager loop goes on is asked as late as it may be."""
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


def left_below_3(x, frontier, s):
    for depth in loop(until_empty=frontier):
        x(frontier.S) << 3 - depth
        frontier << frontier.select("valuegt", depth)


def shared_out(x, frontier, s):
    for depth in loop(until_empty=frontier):
        x(frontier.S) << 1 / (4 - depth)
        frontier << frontier.select("valuegt", depth)


def most_before(x, frontier, s):
    for depth in loop(until_empty=frontier):
        x(frontier.S) << s
        frontier << frontier.select("valuegt", depth)
        s << frontier.reduce("max")


@pytest.mark.parametrize(
    ("body", "dtype"), [(left_below_3, UINT32), (shared_out, FP64), (most_before, INT64)]
)
def test_a_number_of_the_iteration_after_the_last_raises_nothing(backend, body, dtype):
    results = []
    for place in (backend, "cpu"):
        frontier, s = Vector.from_dense([3, 1, 3], backend=place), Scalar(INT64, 5)
        x = Vector(dtype, 3, like=frontier)
        with lagpu.eager():
            body(x, frontier, s)
        results.append((x.to_dict(), frontier.nvals))
    assert results[0] == results[1]


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize(("first", "iterations"), [(2, 1), (3, 1), (7, 2)])
def test_the_iteration_that_changes_nothing_is_the_last(backend, eager, first, iterations):
    x, y = (Vector.from_dense(values, backend=backend) for values in ([1, first], [0, 0]))
    with lagpu.eager() if eager else nullcontext():
        counted(x, y)
    assert x.to_dense().tolist() == [1, min(first, 3)]
    assert y.to_dense().tolist() == [iterations] * 2


def test_a_body_that_writes_matrices_alone_under_a_condition_on_a_vector(place):
    A, x, _ = start(place)
    B = Matrix.from_coo([0], [1], 5, nrows=2, ncols=2, like=A)
    beside(x, B)
    assert place.last_loop == "eager: the body writes vectors and matrices"
    assert B.to_coo()[2].tolist() == [6]


@pytest.mark.parametrize("source", [0, 150, 199])
def test_searches_of_several_depths(backend, source):
    A = path(200, backend=backend)
    levels, frontier = Vector(INT32, 200, like=A), Vector(BOOL, 200, like=A)
    frontier[source] = True
    with lagpu.eager():
        searched(A, levels, frontier)
    assert levels.to_dense().tolist() == [abs(k - source) for k in range(200)]
    assert frontier.nvals == 0


def ranked(A, x, frontier, times=None):
    for depth in loop(until_empty=frontier, times=times):
        x(frontier.S) << depth
        frontier(~x.S, replace=True) << semiring.lor_land(frontier @ A)


def summed(A, x, frontier, times=None):
    for _ in loop(until_empty=frontier, times=times):
        x(frontier.S) << frontier
        frontier(~x.S, replace=True) << semiring.plus_first(frontier @ A)


@pytest.mark.each_value
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
    once = A.backend.capabilities.records  # where loops are recorded
    assert len(written) == (2 if once else 2 * 9)
    if once:
        assert A.backend.last_loop == "eager: inside lagpu.eager()"


def test_what_cannot_be_fused_is_written_once_too(backend, written):
    if not backend.capabilities.fuses:
        pytest.skip("no loop is recorded")
    A, levels, frontier = start(backend)
    chosen(A, levels, frontier)
    assert A.backend.last_loop.startswith("eager: the product names a kernel")
    assert (len(written), levels.to_dense().tolist()) == (2, list(range(9)))


def test_an_observer_sees_python_run_the_body(backend, written):
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
    real, runs = A.backend.execute, []

    def failing(s):
        if isinstance(s.operation, Multiply):
            runs.append(1)
            if len(runs) == 3:
                raise MemoryError("no more")
        real(s)

    monkeypatch.setattr(A.backend, "execute", failing)
    with lagpu.eager(), pytest.raises(MemoryError):
        searched(A, levels, frontier)
    assert levels.to_coo()[1].tolist() == [0, 1, 2]
    assert current_recorder() is None
    x = Vector.from_dense(np.ones(3), backend=backend)  # and the next statement runs
    assert x.reduce("plus").new().value == 3


def added(x, total):
    for _ in loop(times=3):
        total(accum=binary.plus) << x


def swept(levels, x, total):
    for here, above in lagpu.sweep(levels):
        total(here.S, accum=binary.plus) << x
        total(above.S, accum=binary.plus) << x


@pytest.mark.parametrize("sweeps", [False, True])
def test_an_interrupt_when_recording_begins_leaves_no_recorder(place, monkeypatch, sweeps):
    real = Recorder.open

    def opened(recorder):
        real(recorder)
        raise KeyboardInterrupt

    monkeypatch.setattr(Recorder, "open", opened)
    x, total = (Vector.from_dense([1, 2], backend=place) for _ in range(2))
    levels = Vector.from_dense([0, 1], backend=place)
    with pytest.raises(KeyboardInterrupt):
        swept(levels, x, total) if sweeps else added(x, total)
    assert current_recorder() is None
    assert total.to_dense().tolist() == [1, 2]


def test_an_interrupt_after_a_fused_loop_repeats_no_statement(place):
    """At each of the last places where Python looks for signals."""

    def interrupted(at):
        x, total = (Vector.from_dense([1, 2], backend=place) for _ in range(2))
        interrupts = Interrupts(at)
        with suppress(KeyboardInterrupt), interrupts:
            added(x, total)
        return total.to_dense().tolist(), interrupts.seen

    assert interrupted(-1)[0] == [4, 8]
    places = interrupted(-1)[1]
    for at in range(places - 40, places):
        assert interrupted(at)[0] in ([1, 2], [4, 8])  # not begun, or run once
        assert current_recorder() is None


def of_both_kinds(v, M, times):
    for depth in loop(times=times):
        v << v.apply(binary.plus, right=1)
        M(M.S) << depth


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_body_whose_recording_ends_runs_as_often_as_ever(backend, times):
    v = Vector.from_dense([0.0, 0.0], backend=backend)
    M = Matrix.from_coo([0], [1], [7], INT32, nrows=2, ncols=2, backend=backend)
    of_both_kinds(v, M, times)
    assert v.to_dense().tolist() == [times] * 2
    assert M.to_coo()[2].tolist() == [times - 1 if times else 7]
