"""The threads of the cpu backend's statements, beside the contexts of a program."""

import graphblas
import numpy as np
import pytest
from graphblas.core.ss.context import threadlocal

from lagpu import BOOL, FP64, Matrix, Vector, backends, semiring
from lagpu.backends.cpu import handles, statements
from lagpu.backends.cpu.handles import lib


@pytest.fixture
def two_threads():
    with graphblas.ss.Context(nthreads=2) as context:
        yield context


def is_engaged(context):
    """Whether a context is engaged; it is again afterwards."""
    return lib.GxB_Context_disengage(context) == lib.GxB_Context_engage(context) == 0


def engaged_in(*arguments):
    """Return the contexts of lagpu in a call."""
    return handles.by_threads(*arguments, lambda: list(handles._ENGAGED))


def test_the_context_of_the_program_is_engaged_again(two_threads):
    theirs = two_threads.gb_obj[0]
    assert handles.allowed_threads() == 2
    (one,), (all_of_them,) = engaged_in(1), engaged_in(0)
    assert one != all_of_them
    assert is_engaged(theirs)
    outer, inner = handles.by_threads(0, engaged_in, 1)
    assert (outer, inner) == (all_of_them, one)
    with pytest.raises(ZeroDivisionError):
        handles.by_threads(1, lambda: 1 // 0)
    assert is_engaged(theirs)
    assert threadlocal.context is two_threads


def test_no_more_threads_than_the_program_allows(two_threads):
    two_threads["nthreads"] = 1
    assert engaged_in(8) == engaged_in(1)
    assert backends.get("cpu").capabilities.threads() == 1


def threads_of(monkeypatch, run):
    """Return the threads that `run` has asked for, with 10 entries for each of a pull."""
    asked = []
    monkeypatch.setattr(handles, "by_threads", lambda n, f, *x: asked.append(n) or f(*x))
    monkeypatch.setattr(statements, "_A_THREAD", 10)
    run()
    return asked


@pytest.mark.parametrize(("full", "threads"), [(False, (2 * 400 // 20 + 2) // 10), (True, 1)])
def test_a_pull_has_threads_by_the_entries_that_it_looks_at(monkeypatch, full, threads):
    n = 20  # a complete graph: any row finds the frontier soon if that is large
    A = Matrix.from_dense(np.ones((n, n), bool), backend="cpu")
    u = Vector.from_coo(range(n) if full else [0], True, BOOL, size=n, backend="cpu")
    done = Vector.from_coo(range(18), True, BOOL, size=n, backend="cpu")
    # two rows are wanted; of their entries 1 of 20 is in the frontier, or all are
    w, call = Vector(BOOL, n, backend="cpu"), semiring.any_pair(u @ A, policy="pull")
    assert threads_of(monkeypatch, lambda: w(~done.S, replace=True) << call) == [threads]


def test_a_sum_looks_at_all_entries(monkeypatch):
    A = Matrix.from_dense(np.ones((20, 20)), backend="cpu")
    u = Vector.from_coo([3], [1.0], FP64, size=20, backend="cpu")
    w, call = Vector(FP64, 20, backend="cpu"), semiring.min_plus(u @ A, policy="pull")
    assert threads_of(monkeypatch, lambda: w << call) == [(380 + 20) // 10]


def test_large_vectors_have_a_chunk_of_their_own(monkeypatch):
    def run():
        for n in (1000, 1 << 17):
            v = Vector(FP64, n, backend="cpu")
            v << 2.0
            assert v.reduce().new().value == 2.0 * n

    assert threads_of(monkeypatch, run) == [0, 0]
