"""Scalars in loops: without a value, and where a loop is not one kernel."""

import contextlib

import graphblas
import numpy as np
import pytest
from graphs import matrix
from loop_names import GENERATED, loop_name
from scalar_loops import (
    decides,
    downwards,
    elsewhere,
    emptied,
    emptied_at_the_end,
    filled,
    from_empty,
    indexed,
    lagged,
    lagged_from_nothing,
    nested,
    no_vectors,
    only_scalars,
    outside,
    products,
    read_in_the_body,
    refused_in_the_middle,
    wide,
)

import lagpu
from lagpu import FP64, INT32, INT64, Scalar, Vector, loop
from lagpu.core.recorder import Recorder, current_recorder
from lagpu.errors import DimensionMismatch, DomainMismatch, EmptyObject
from lagpu.operations import Rejection

# --------------------------------------------------------------------------------- without a value


@pytest.mark.parametrize("n", [1, 40, 1025])
def test_a_loop_ends_where_a_scalar_has_no_value(backend, n):
    """Eager and fused raise the same error, and leave the same behind."""
    found = []
    for eagerly in (False, True):
        v = Vector.from_dense(np.zeros(n), backend=backend)
        w = Vector.from_dense(np.full(n, 3.0), backend=backend)
        s, x = Scalar(FP64, name="total"), Vector.from_dense(np.zeros(2), backend=backend)
        how = lagpu.eager() if eagerly else contextlib.nullcontext()
        with how, pytest.raises(EmptyObject, match="the scalar total has no value") as caught:
            from_empty(v, w, s, x)
        assert current_recorder() is None
        found.append((v.to_coo()[1].tolist(), w.nvals, s.value, x.to_coo()[1].tolist()))
        found.append(str(caught.value))
    assert found[:2] == found[2:]
    assert found[0] == ([5.0 * n] * n, 0, None, [3.0, 3.0])


def two_sums(u, v, x, s, t):
    for _ in loop(times=2):
        s << u.reduce("plus")
        t << v.reduce("plus")
        x << x.apply("plus", right=s)
        x << x.apply("plus", right=t)


@pytest.mark.parametrize("without", [0, 1])
def test_the_scalar_without_a_value_is_named(backend, without):
    vectors = [Vector.from_dense(np.ones(9), backend=backend) for _ in "uvx"]
    vectors[without] = Vector(FP64, 9, backend=backend)
    scalars = Scalar(FP64, name="first"), Scalar(FP64, name="second")
    with pytest.raises(EmptyObject, match=f"the scalar {scalars[without].name} has no value"):
        two_sums(*vectors, *scalars)
    assert vectors[2].to_dense().tolist() == [10.0 if without else 1.0] * 9


def test_a_scalar_without_a_value_before_the_loop(backend):
    with pytest.raises(EmptyObject, match="v: the scalar s has no value"):
        lagged_from_nothing(Vector(FP64, 9, backend=backend), Scalar(FP64))


@pytest.mark.parametrize(("function", "left"), [(emptied, 0.0), (emptied_at_the_end, 2.0)])
def test_a_sum_of_nothing_empties_a_scalar(backend, function, left):
    for how in (contextlib.nullcontext, lagpu.eager):
        v = Vector.from_dense(np.zeros(3), backend=backend)
        s = Scalar(FP64, 2.0)
        with how(), pytest.raises(EmptyObject, match="the scalar s has no value"):
            function(v, Vector(FP64, 3, backend=backend), s)
        assert v.to_dense().tolist() == [left] * 3
        assert s.is_empty


def test_what_is_sure_to_have_a_value_is_not_waited_for(place, monkeypatch):
    v, w = Vector.from_dense(np.zeros(3), backend=place), Vector(FP64, 3, backend=place)
    filled(v, w, s := Scalar(FP64))
    monkeypatch.setattr(place.device, "to_host", lambda _: pytest.fail("the host waits"))
    filled(v, w, s)
    monkeypatch.undo()
    assert (s.value, v.to_dense().tolist()) == (1.0, [6.0] * 3)


def test_asking_for_a_scalar_runs_what_was_recorded(place):
    """No body that is recorded does so; a debugger may."""
    v = Vector.from_dense(np.ones(3), backend=place)
    recorder = Recorder(place)
    assert not recorder.is_open
    recorder.open()
    try:
        s = Scalar(FP64, 1.0)
        v << v.apply("plus", right=s)
        s << v.reduce("plus")
        assert len(recorder.statements) == 2
        assert s.value == 6.0
        assert current_recorder() is None
    finally:
        recorder.close()


def test_what_another_backend_writes_waits_for_statements_that_read_it(place):
    v, w = (Vector.from_dense(np.ones(3), backend=on) for on in (place, "cpu"))
    recorder = Recorder(place)
    recorder.open()
    try:
        s = Scalar(FP64, 1.0)
        v << v.apply("plus", right=s)
        w << w.apply("plus", right=4)
        assert len(recorder.statements) == 1  # a vector of cpu is none of theirs
        s << w.reduce("plus")
        assert not recorder.statements
    finally:
        recorder.close()
    assert not recorder.is_open
    assert v.to_dense().tolist() == [2.0] * 3
    assert s.value == 15.0


# -------------------------------------------------------------------------------- what stays eager


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (read_in_the_body, "s.value is read on the host; write s instead"),
        (decides, "an if tests s, which may change"),
        (only_scalars, "the body writes no vector"),
        (indexed, "assign_scalar has several indices, or a mask"),
    ],
)
def test_loops_that_are_not_fused_say_why(place, function, reason):
    args = [Vector.from_dense(np.arange(5.0), backend=place), Scalar(FP64)]
    if function is not only_scalars:
        args.insert(1, Vector(FP64, 5, backend=place))
    function(*args)
    assert place.last_loop.startswith("eager: ")
    assert reason in place.last_loop
    assert args[-1].value == (30.0 if function is only_scalars else 10.0)


def test_a_body_that_names_no_vector_is_on_the_backend_of_its_condition(place):
    v, s = Vector.from_dense(np.ones(3), backend=place), Scalar(INT64)
    no_vectors(v, s)
    assert (place.last_loop, s.value) == ("eager: the body writes no vector", 1)


def test_a_number_that_may_not_fit_is_not_cast_on_the_device(place):
    v = Vector.from_dense(np.arange(5), backend=place)
    w = Vector(INT32, 5, backend=place)
    wide(v, w, Scalar(INT64))
    assert place.last_loop == "eager: s of type INT64 may not fit INT32"
    assert w.to_dense().tolist() == [10] * 5
    with pytest.raises(lagpu.errors.DomainMismatch, match=r"5000000000 does not fit INT32"):
        wide(v.dup().apply("times", right=500_000_000).new(), w, Scalar(INT64))


def outgrown(v):
    for k in loop(times=3):
        v << v * (k * 2**62 + 1)


def test_a_number_of_the_counter_that_outgrows_its_type(backend):
    """It has the type of its first value where the body is recorded, else one of its own."""
    v = Vector.from_dense(np.ones(3, np.int64), backend=backend)
    if backend.capabilities.fuses:
        with pytest.raises(DomainMismatch, match=rf"{2**63 + 1} does not fit INT64"):
            outgrown(v)
        assert v.to_dense().tolist() == [2**62 + 1] * 3  # as if the program had ended there
    else:
        outgrown(v)
        assert v.to_dense().tolist() == [2**63 - 1] * 3
    theirs = graphblas.Vector.from_dense(np.ones(3, np.int64))
    with pytest.raises(OverflowError):
        (theirs * (2**63 + 1)).new()


def test_a_sum_of_a_matrix_is_no_piece(place):
    A = matrix(3, [(0, 1), (1, 2)], place)
    v, s = Vector(INT64, 3, backend=place), Scalar(INT64)
    outside(A, v, s)
    assert place.last_loop == "eager: the operand of reduce is a matrix"
    assert v.to_dense().tolist() == [2, 2, 2]


def test_vectors_of_two_backends(place):
    here = Vector.from_dense(np.arange(5.0), backend=place)
    there = Vector(FP64, 5, backend="cpu")
    elsewhere(here, there, s := Scalar(FP64))
    assert "s is a scalar, and the vectors are on several backends" in place.last_loop
    assert there.to_dense().tolist() == [10.0] * 5
    assert s.value == 10.0


def test_a_sweep_takes_no_scalar(place):
    levels = Vector.from_dense(np.array([0, 1, 2]), backend=place)
    found = Vector(FP64, 3, backend=place)
    downwards(levels, found, s := Scalar(FP64, 0.0))
    assert place.last_loop == "eager: s is a scalar, and a sweep can neither read nor write one"
    assert (found.nvals, s.value) == (2, 4.0)


def test_a_matrix_loop_reads_numbers_when_it_calls(place):
    A = matrix(1025, [(0, 1), (1, 2)], place)  # smaller ones are one kernel
    F, s = A.dup(FP64), Scalar(FP64, 3.0)
    products(A, F, s)
    assert "eager" in place.last_loop
    assert F.nvals == 0
    assert s.value == 3.0


def test_recorded_statements_see_numbers_as_they_are_then(place, monkeypatch):
    """Where a body was recorded in vain: its first pass is run from the record."""
    from lagpu.backends.gpu.fused import plan

    v = Vector.from_dense(np.ones(5), backend=place)
    before, s = Scalar(FP64), Scalar(FP64, 2.0)
    monkeypatch.setattr(plan.run, "generated_loop", lambda *_: Rejection("planted"))
    for watched in (False, True):
        w = Vector(FP64, 5, backend=place)
        s << 2.0
        if watched:
            with lagpu.trace() as t:
                lagged(v, w, before, s)
            assert [row.method for row in t.rows].count("reduce") == 4
        else:
            lagged(v, w, before, s)
        assert place.last_loop == "eager: planted"
        assert (before.value, s.value) == (8.0, 12.0)


def test_an_error_in_the_middle_of_a_body(backend):
    """What stood before it has been done, once."""
    v = Vector.from_dense(np.ones(4), backend=backend)
    s = Scalar(FP64)
    with pytest.raises(DimensionMismatch):
        refused_in_the_middle(v, Vector(FP64, 3, backend=backend), s)
    assert (s.value, v.to_dense().tolist()) == (4.0, [5.0] * 4)
    refused_in_the_middle(v, Vector(FP64, 4, backend=backend), s)
    assert s.value == 500.0


def test_loops_inside_of_a_loop(backend):
    v = Vector.from_dense(np.arange(4.0), backend=backend)
    w, s, total = Vector(FP64, 4, backend=backend), Scalar(FP64), Scalar(FP64, 1.0)
    nested(v, w, s, total)
    assert (s.value, total.value) == (48.0, 64.0)
    assert w.to_dense().tolist() == [0.0, 16.0, 32.0, 48.0]
    if backend.capabilities.fuses:
        assert loop_name(backend) == GENERATED
