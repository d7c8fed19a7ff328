"""`loop`: repeat statements until a condition holds; a backend may run the loop as a whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

from lagpu.backends.protocol import Backend
from lagpu.core.arguments import integer
from lagpu.core.hints import name_of
from lagpu.core.matrix import Matrix
from lagpu.core.observer import current_observer
from lagpu.core.recorder import Recorder, current_recorder
from lagpu.core.vector import Vector
from lagpu.errors import DomainMismatch, InvalidValue
from lagpu.loops.counted import Counted
from lagpu.loops.known import find_known, keep_known
from lagpu.loops.purity import LoopBody, backend_of, read_body
from lagpu.loops.replay import replay
from lagpu.operations import Counter, FusedLoop, RecordedBody, Rejection, Statement, Sweep, Until

__all__ = ["BY_ITSELF", "IN_A_BODY", "eager", "loop", "run_recorded", "why_eager"]


def loop(
    *unnamed: Any,
    until_empty: Vector | Matrix | None = None,
    until_unchanged: Vector | Matrix | None = None,
    times: int | None = None,
) -> Iterator[int]:
    """Yield 0, 1, 2, ... until a condition on a vector or a matrix holds.

    Parameters
    ----------
    until_empty : Vector or Matrix
        Stop before an iteration in which this object would have no entry.
    until_unchanged : Vector or Matrix
        Stop after an iteration that left this object unchanged.
    times : int
        Stop after this many iterations; alone or as a bound beside another condition.

    Yields
    ------
    int
        The number of iterations done so far.

    Raises
    ------
    InvalidValue
        If there is no condition, or both `until_empty` and `until_unchanged`, or `times` is
        negative.
    DomainMismatch
        If a condition is on neither a `Vector` nor a `Matrix`, `times` is not an integer, or an
        argument is not given by name.
    """
    if unnamed:
        name = "until_empty" if isinstance(unnamed[0], (Vector, Matrix)) else "times"
        raise DomainMismatch(
            f"loop: {name_of(unnamed[0])} is given without a name. "
            f"Write loop({name}={name_of(unnamed[0])})."
        )
    if until_empty is not None and until_unchanged is not None:
        raise InvalidValue("loop: give one of until_empty= and until_unchanged=, not both.")
    if until_empty is None and until_unchanged is None and times is None:
        raise InvalidValue("loop: give until_empty=, until_unchanged= or times=.")
    for vector in (until_empty, until_unchanged):
        if vector is not None and not isinstance(vector, (Vector, Matrix)):
            kind = type(vector).__name__
            raise DomainMismatch(f"loop: {kind} is neither a Vector nor a Matrix. Give one.")
    if times is not None:
        times = integer(times, "loop: times")
        if times < 0:
            raise InvalidValue(f"loop: times {times} < 0. Give 0 or more.")
    until = _Until(until_empty, until_unchanged, times)
    watched = until_unchanged if until_empty is None else until_empty
    frame = sys._getframe(1)
    backend = backend_of(read_body(frame), frame) if watched is None else watched.backend
    if backend is None:
        return _iterate(until)
    if not backend.capabilities.records:
        backend.last_loop = BY_ITSELF
        return _iterate(until)
    why = _why_not_recorded() or ("" if current_recorder() is None else IN_A_BODY)
    if isinstance(watched, Matrix):
        why = why or why_eager()  # not even the first iteration is recorded
    if why:
        backend.last_loop = f"eager: {why}"
        return _iterate(until)
    recorded = find_known(frame, backend)
    if recorded is not None:
        _run_known(backend, until, recorded)
        return iter(())
    body = read_body(frame)
    if body.scalar and backend_of(body, frame) is not backend:
        why = f"{body.scalar} is a scalar, and the vectors are on several backends"
        body = LoopBody(0, (), why)
    counted = Counted(body.counter, frame.f_globals) if body.counter else None
    learn = partial(keep_known, frame, frame.f_lineno, backend, body)
    return _record_and_run(backend, until, body, not _eager.get(), counted, learn)


class _Until(NamedTuple):
    """The conditions that end a loop, on the front end's objects."""

    empty: Vector | Matrix | None
    unchanged: Vector | Matrix | None
    times: int | None

    def handles(self) -> Until:
        """Return the conditions on handles, for a backend."""
        empty, unchanged, times = self
        return Until(
            None if empty is None else empty.data,
            None if unchanged is None else unchanged.data,
            times,
        )


@contextmanager
def eager() -> Iterator[None]:
    """Run every loop statement by statement, inside ``with lagpu.eager(): ...``.

    A body of lagpu statements alone is recorded once; then each statement runs by itself, in every
    iteration. Under a debugger, and while statements are traced, Python runs the body.
    """
    token = _eager.set(True)
    try:
        yield
    finally:
        _eager.reset(token)


_eager: ContextVar[bool] = ContextVar("lagpu_eager", default=False)
_INSIDE = "inside lagpu.eager()"
BY_ITSELF = "eager: this backend runs each statement by itself"
IN_A_BODY = "it is inside the recorded body of another loop"


def why_eager() -> str:
    """Return why each statement is to run by itself, or an empty string."""
    observer = current_observer()
    observed = "" if observer is None else observer.why_eager
    return observed or (_INSIDE if _eager.get() else "")


def _why_not_recorded() -> str:
    """Return why an observer wants to see each statement run, or an empty string."""
    return "" if current_observer() is None else why_eager()


def _run_known(backend: Backend, until: _Until, body: RecordedBody) -> None:
    """Run a whole loop whose body was recorded before; nobody looks on."""
    if until.times == 0 or (until.empty is not None and not until.empty.nvals):
        backend.last_loop = "no iteration"
    elif _eager.get():
        backend.last_loop = f"eager: {_INSIDE}"
        replay(backend, body, *until)
    elif not _run_whole(backend, partial(backend.plan_loop, body, until.handles())):
        replay(backend, body, *until)


def _record_and_run(
    backend: Backend,
    until: _Until,
    body: LoopBody,
    fuse: bool,
    counted: Counted | None,
    learn: Callable[[list[Statement]], None],
) -> Iterator[int]:
    """Record the body once and run the whole loop from the record; if impossible, iterate.

    `learn` takes the record.
    """
    if until.times == 0 or (until.empty is not None and not until.empty.nvals):
        backend.last_loop = "no iteration"
        return
    if not fuse or not body.statements:
        backend.last_loop = f"eager: {body.reason if fuse else _INSIDE}"
    if not body.statements:
        yield from _iterate(until)
        return
    observer = current_observer()
    outer = -1 if observer is None else observer.level
    watched = until.unchanged if until.empty is None else until.empty
    ndim = None if watched is None else watched.ndim
    copies: list[Any] = []  # of `unchanged`, before the first iteration has written it

    def copy() -> None:
        if until.unchanged is not None and not copies:
            copies.append(until.unchanged.dup())

    recorder = Recorder(backend, ndim, None if observer is None else observer.replay, copy)
    try:
        recorder.open()
        if observer is not None:
            observer.level = 0  # of statements that run by themselves after all
        yield Counter(0)
        recorder.close()
        statements = recorder.statements
        if (len(statements), recorder.temporaries) == (body.statements, 0):
            learn(statements)
        if len(statements) == body.statements + recorder.temporaries:
            if fuse and run_recorded(recorder, until.handles(), counted):
                return
            if observer is None and sys.gettrace() is None:
                recorder.statements = []
                done = replay(backend, statements, *until)
                if counted is not None:
                    counted.leave(done - 1)
                return
        elif fuse:
            why = "a line of the body writes nothing"
            if recorder.mixed and body.scalar:
                why = f"{body.scalar} is a scalar, and a loop over matrices cannot write a scalar"
            elif recorder.mixed:
                why = "the body writes vectors and matrices"
            elif not statements:
                why = "a line of the body reads a value on the host"
            backend.last_loop = f"eager: {why}"
    except GeneratorExit:  # nothing else leaves a body that can be recorded
        if fuse:
            backend.last_loop = "eager: the body raised an error"
        raise
    finally:  # also when the body raised: the statements before the error have run then
        recorder.flush()
        if observer is not None:
            observer.level = outer
            observer.forget()
    if not copies or not copies[0].isequal(until.unchanged):
        yield from _iterate(until, 1)


def run_recorded(recorder: Recorder, turns: Until | Sweep, counted: Counted | None = None) -> bool:
    """Run a recorded loop or sweep as one program and return True, unless the backend rejects it.

    The statements of the recorder are those that are left to run.
    """
    backend = recorder.backend
    _fetch_scalars(recorder.statements, backend.device)
    plan = partial(backend.plan_loop, recorder.statements, turns)
    if counted is not None:
        plan = partial(counted.plan, backend, recorder, turns)
    try:
        if not _run_whole(backend, plan):
            return False
        if counted is not None:
            counted.leave()
        recorder.statements = []
        return True
    except BaseException:  # an interrupt after the loop has run, too: no statement runs again
        recorder.statements = []
        raise


def _fetch_scalars(statements: Sequence[Statement], device: Any) -> None:
    """Bring scalars that another device holds to the host: this one cannot read its memory.

    No lock is held, as that takes the other device's.
    """
    for s in statements:
        scalars = [ref.scalar for ref in s.scalars]
        for x in [*scalars, s.out] if s.writes_scalar else scalars:
            if x.holder is not None and x.holder is not device:
                x.get()


def _run_whole(backend: Backend, plan: Callable[[], FusedLoop | Rejection]) -> bool:
    """Plan a loop and run it as one program; return False if the plan is a rejection.

    `Backend.last_loop` is set to the name and the reason; an observer sees the loop as a whole.
    """
    observer = current_observer()
    with backend.lock:  # what a plan has found holds until the loop has run
        if observer is not None:
            loop = observer.run_loop(backend, plan)
        else:
            loop = plan()
            if not isinstance(loop, Rejection):
                loop.run()
    if isinstance(loop, Rejection):
        backend.last_loop = f"eager: {loop.why}"
        return False
    backend.last_loop = f"{loop.name}: {loop.why}"
    return True


def _iterate(until: _Until, done: int = 0) -> Iterator[int]:
    observer = current_observer()
    outer = -1 if observer is None else observer.level
    empty, unchanged, times = until
    try:
        while done != times and (empty is None or empty.nvals):
            before = None if unchanged is None else unchanged.dup()
            if observer is not None:
                observer.level = done
            yield done
            done += 1
            if before is not None and before.isequal(unchanged):
                return
    finally:
        if observer is not None:
            observer.level = outer
