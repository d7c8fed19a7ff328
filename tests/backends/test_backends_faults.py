"""A statement or a loop that fails, at any call, leaves what was before; the next one is right."""

import contextlib
import threading
import types

import numpy as np
import pytest
from faults import LOOPS, STATEMENTS, Interrupts, Objects

import lagpu
from lagpu import INT64, Matrix, Vector, binary, loop, semiring, unary
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.core.recorder import Observer, current_observer, current_recorder
from lagpu.errors import DimensionMismatch, KernelCompileError, OutOfMemory

STEP = 97  # of some hundred places each test takes one in so many; the exhaustive ones take all
EACH = [STEP, pytest.param(1, marks=pytest.mark.exhaustive)]


class Faulty(SimDevice):
    """A simulated device on which one call fails: before it does anything, or right behind it."""

    def __init__(self):
        super().__init__()
        self.calls, self.at, self.error, self.behind = 0, None, None, False
        self.xp = types.SimpleNamespace(
            **{name: getattr(np, name) for name in np.__all__ if hasattr(np, name)}
        )
        for name in ("empty", "zeros", "full", "ones", "arange", "concatenate", "cumsum"):
            setattr(self.xp, name, self.failing(getattr(np, name)))
        for name in ("run", "_function", "_from_host", "_to_host", "_read", "_wait_for"):
            setattr(self, name, self.failing(getattr(self, name)))

    def failing(self, call):
        def checked(*args, **kwargs):
            self.calls += 1
            fails = self.calls - 1 == self.at
            if fails and not self.behind:
                raise self.error
            found = call(*args, **kwargs)
            if fails:
                raise self.error
            return found

        return checked


def is_quiet(place):
    """Nothing is recorded, observed or locked."""
    assert current_recorder() is None
    assert current_observer() is None
    free = []

    def take():
        free.append(place.lock.acquire(timeout=10))
        place.lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert free == [True]


class Stop(Observer):
    """Ends a loop in its first pass, behind a statement."""

    def __init__(self, behind):
        self.behind = behind

    def noted(self, to, call):
        self.behind -= 1
        if not self.behind:
            raise KeyboardInterrupt


def between(place, program):
    """Return the states between two statements of a loop's first pass, in which Python runs it."""
    found = []
    while True:
        o, stop = Objects(place), Stop(1 + len(found))
        try:
            with stop:
                program(o)
        except KeyboardInterrupt:
            found.append(o.seen())
        else:
            return found


def outcomes(place, program):
    o = Objects(place)
    before = o.seen()
    program(o)
    return before, o.seen()


def swept(place, program, attempt, step, offset=0):
    """Let every `step`-th place fail: the objects hold a state between two statements."""
    before, after = outcomes(place, program)
    states = [before, after, *between(place, program)]
    at = offset
    while True:
        o = Objects(place)
        error, ended = attempt(o, at)
        if error is None and ended:
            assert o.seen() == after
            return
        is_quiet(place)
        found = o.seen()
        assert found in states
        assert o.w.apply("plus", 0).new().isequal(o.w)
        if found == before:  # the same again, on the same objects
            program(o)
            assert o.seen() == after
        at += step


# ------------------------------------------------------------------------- errors of the device
@pytest.mark.few_on_sim(3)
@pytest.mark.each_value
@pytest.mark.parametrize("step", [53, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", [*STATEMENTS, *LOOPS])
@pytest.mark.parametrize("kind", ["memory", "interrupt", "interrupt behind"])
def test_a_device_fails(name, kind, step):
    device = Faulty()
    device.behind = kind == "interrupt behind"
    place = GpuBackend("sim", device)
    program = {**STATEMENTS, **LOOPS}[name]

    def attempt(o, at):
        device.error = MemoryError("injected") if kind == "memory" else KeyboardInterrupt("x")
        device.calls, device.at = 0, at
        error = None
        try:
            program(o)
        except BaseException as raised:
            error = raised
        ended, device.at = device.calls <= at, None
        if kind == "memory":
            assert error is None or type(error) is OutOfMemory
            assert error is None or error.__cause__ is device.error
        else:
            assert error is None or error is device.error
        return error, ended

    if name in LOOPS and device.behind:
        step = 1  # one of these calls is that of the loop's kernel
    swept(place, program, attempt, step)


# --------------------------------------------------------------------------------- interrupts
def interrupted(program):
    def attempt(o, at):
        error, interrupts = None, Interrupts(at)
        try:
            with interrupts:
                program(o)
        except KeyboardInterrupt as raised:
            error = raised
        return error, interrupts.seen <= at

    return attempt


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("step", EACH)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_interrupted(backend, name, step):
    swept(backend, STATEMENTS[name], interrupted(STATEMENTS[name]), step, len(name) % step)


@pytest.mark.parametrize("step", [7, *EACH[1:]])
@pytest.mark.parametrize("size", [20, 60])
def test_a_resize_is_interrupted(backend, size, step):
    """The front end and the backend have one size."""

    def program(o):
        o.w.resize(size)

    swept(backend, program, interrupted(program), step, size % step)


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("step", EACH)
@pytest.mark.parametrize("name", LOOPS)
def test_a_fused_loop_is_interrupted(place, name, step):
    swept(place, LOOPS[name], interrupted(LOOPS[name]), step * 3, len(name) % step)


# ---------------------------------------------------------------------------- errors have names
def _no_code(x):
    return x.no_such_method()  # which no compiler of numbers knows


def _add_and_apply(u, w, op):
    for _ in loop(times=2):
        w(accum=binary.plus) << u.apply("plus", 1)
        u << w.apply(op)


def test_an_operator_that_does_not_compile(backend):
    """As a statement, and in a loop that may run as one program."""
    name = f"uncompiled_{backend.name}".replace(":", "_")
    op = unary.register(name, _no_code, "no_such_function(x)")
    u = Vector.from_coo([1, 3], [4, 5], size=5, backend=backend)
    w = Vector.from_coo([0, 1], [1, 2], size=5, like=u)
    before = [x.to_coo()[1].tolist() for x in (u, w)]
    with pytest.raises(KernelCompileError) as raised:
        w << u.apply(op)
    assert backend.name != "cpu" or raised.value.__cause__ is not None
    with pytest.raises(KernelCompileError), lagpu.trace() as t:
        _add_and_apply(u, w, op)
    is_quiet(backend)
    after = [x.to_coo()[1].tolist() for x in (u, w)]
    # As one program nothing has run; statement by statement, those before the error.
    assert after in (before, [before[0], [1, 7, 6]])
    assert not backend.capabilities.fuses or after == before
    w << u.apply("plus", 1)
    assert w.to_coo()[1].tolist() == [5, 6]
    assert len(t.rows) == (0 if backend.capabilities.fuses else 1)


def _follow(q, x, A, op):
    for _ in loop(until_empty=q):
        x(q.S) << q
        q(~x.S, replace=True) << op(q @ A)


def test_an_operator_that_does_not_compile_leaves_a_search_as_it_was(place):
    """Outputs without entries are replaced, so they are made new before the kernel is compiled."""
    multiply = binary.register("uncompiled_times", lambda x, y: x, "no_such_function(x, y)")
    op = semiring.register("min", multiply)
    A = Matrix.from_coo([0, 1], [1, 2], [1, 2], nrows=3, ncols=3, backend=place)
    q, x = Vector.from_coo([0], [1], size=3, like=A), Vector(INT64, 3, like=A)
    with pytest.raises(KernelCompileError):
        _follow(q, x, A, op)
    assert (x.nvals, q.to_coo()[0].tolist()) == (0, [0])
    for depth in loop(until_empty=q):
        x(q.S) << depth
        q(~x.S, replace=True) << semiring.any_pair(q @ A)
    assert x.to_dense().tolist() == [0, 1, 2]


def _misfit(u, short):
    for _ in loop(times=2):
        u << u.apply("plus", 1)
        short << u


def test_a_body_that_raises_leaves_nothing_behind(backend):
    u, short = (Vector.from_dense(range(k), backend=backend) for k in (3, 2))
    for traced in (False, True):
        with lagpu.trace() if traced else contextlib.nullcontext():
            with pytest.raises(DimensionMismatch):
                _misfit(u, short)
            u << u.apply("minus", 1)
        is_quiet(backend)
    assert u.to_dense().tolist() == [0, 1, 2]


@pytest.mark.parametrize("ends", ["close", "throw", "del"])
def test_a_loop_ends_in_its_first_pass(backend, ends):
    """Its statements have run, and nothing but the given error reaches the caller."""
    u = Vector.from_dense([1, 2, 3], backend=backend)
    turns = loop(times=3)
    for _ in turns:
        u << u.apply("plus", 1)
        if ends == "throw":
            with pytest.raises(KeyboardInterrupt):
                turns.throw(KeyboardInterrupt)
        elif ends == "close":
            turns.close()
        break
    del turns
    assert u.to_dense().tolist() == [2, 3, 4]
    is_quiet(backend)
