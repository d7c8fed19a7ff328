"""Waiting statements, and other threads and processes that meet them."""

import contextlib
import os
import threading
import time

import pytest
from batches import full, place  # noqa: F401

from lagpu import FP64, Scalar, Vector, monoid
from lagpu.backends.gpu.fused.program import batch as program_batch
from lagpu.core import recorder
from lagpu.errors import EmptyObject


def test_another_thread_sees_what_this_one_wrote(place):
    u, w, found = full(place), Vector(FP64, 70, backend=place), []
    w << u
    w << u * 2

    def read():
        found.append(w.get(3))

    other = threading.Thread(target=read)
    other.start()
    other.join()
    assert found == [6]
    w << u  # from now on nothing waits
    assert not recorder.queue.statements


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("write", [False, True])
def test_a_thread_waits_while_another_one_runs_its_statements(place, monkeypatch, write, fails):
    u, w, s, begun = full(place), Vector(FP64, 70, backend=place), Scalar(FP64), threading.Event()
    right = recorder.run_statement

    def slowly(*args):
        begun.set()
        time.sleep(0.05)
        right(*args)

    monkeypatch.setattr(program_batch, "AFTER", 10**9)
    monkeypatch.setattr(recorder, "run_statement", slowly)
    w << u
    w << u * 2
    s << w.reduce(monoid.plus)
    if fails:
        s << Vector(FP64, 70, backend=place).reduce(monoid.plus)
        w << s

    def error():
        return pytest.raises(EmptyObject) if fails else contextlib.nullcontext()

    def read():
        with error():
            w.wait()

    other = threading.Thread(target=read)
    other.start()
    begun.wait()
    with error():
        if write:
            s << 7
            w << 7
        else:
            assert s.value == 69 * 70
    other.join()
    if write:
        expected = (None, 138) if fails else (7, 7)
        assert (s.value, w.reduce(monoid.max).new().value) == expected


@pytest.mark.parametrize("then", [lambda w: w.nvals, lambda w: w << 7], ids=["read", "write"])
def test_an_error_is_raised_in_the_thread_of_its_statement(place, then):
    """And in the one that runs the statements, as the first one may have ended."""
    u, w, s, found = full(place), Vector(FP64, 70, backend=place), Scalar(FP64), []
    w << u
    s << Vector(FP64, 70, backend=place).reduce(monoid.min)
    w << s

    def read():
        with pytest.raises(EmptyObject, match="the scalar s has no value"):
            u.wait()
        found.append(u.nvals)

    other = threading.Thread(target=read)
    other.start()
    other.join()
    assert found == [70]
    with pytest.raises(EmptyObject, match="the scalar s has no value"):
        then(w)
    then(w)  # it came once
    w.clear()
    w << u
    assert w.isequal(u)


def test_an_error_of_a_thread_that_has_ended(place):
    w, s = Vector(FP64, 70, backend=place), Scalar(FP64)

    def write():
        s << w.reduce(monoid.min)
        w << s

    other = threading.Thread(target=write)
    other.start()
    other.join()
    with pytest.raises(EmptyObject, match="the scalar s has no value"):
        w.wait()
    assert not recorder.queue.errors  # for another thread of the same number
    assert not w.nvals


def test_a_fork_has_nothing_that_waits(place):
    u, w = full(place), Vector(FP64, 70, backend=place)
    w << u
    child = os.fork()
    if child == 0:
        os._exit(len(recorder.queue.statements) or Scalar(FP64, 3).value != 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert w.get(2) == 2
