"""`loop`: the one loop construct, that a backend may run as a whole."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from lagpu.backends.protocol import Backend, Counter, Data, Statement
from lagpu.backends.recording import Recorder, latest, runner
from lagpu.core import observer
from lagpu.core.arguments import integer, scalar_value
from lagpu.core.hints import spoken
from lagpu.core.matrix import Matrix
from lagpu.core.vector import Vector
from lagpu.dtypes import DType, lookup
from lagpu.errors import DomainMismatch, EmptyObject, InvalidValue
from lagpu.loops.purity import Site, backend_of, site_of

__all__ = ["eager", "loop", "why_eager"]


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
        Stop before an iteration in which this vector would have no entry.
    until_unchanged : Vector or Matrix
        Stop after an iteration that left this vector as it was.
    times : int
        Stop after this many iterations; alone or as a bound beside another condition.

    Yields
    ------
    int
        The number of iterations done so far.

    Raises
    ------
    InvalidValue
        If there is no condition, or two on vectors, or `times` is negative.
    DomainMismatch
        If a condition is on neither a `Vector` nor a `Matrix`, or `times` is not an integer, or
        either is not named.
    """
    if unnamed:
        name = "until_empty" if isinstance(unnamed[0], (Vector, Matrix)) else "times"
        raise DomainMismatch(
            f"loop: does not tell what to do with {spoken(unnamed[0])}. "
            f"Write loop({name}={spoken(unnamed[0])})."
        )
    if until_empty is not None and until_unchanged is not None:
        raise InvalidValue("loop: give one of until_empty= and until_unchanged=, not both.")
    if until_empty is None and until_unchanged is None and times is None:
        raise InvalidValue("loop: give until_empty=, until_unchanged= or times=.")
    for vector in (until_empty, until_unchanged):
        if vector is not None and not isinstance(vector, (Vector, Matrix)):
            kind = type(vector).__name__
            raise DomainMismatch(f"loop: {kind} is not a Vector or a Matrix. Give one.")
    if times is not None:
        times = integer(times, "loop: times")
        if times < 0:
            raise InvalidValue(f"loop: times {times} < 0. Give 0 or more.")
    until = _Until(until_empty, until_unchanged, times)
    watched = until_unchanged if until_empty is None else until_empty
    if watched is not None and not hasattr(watched.backend, "last_loop"):
        return _iterate(until)
    frame = sys._getframe(1)
    backend = backend_of(site_of(frame), frame) if watched is None else watched.backend
    if backend is None or not hasattr(backend, "last_loop"):
        return _iterate(until)
    why = _why_eager() or ("" if backend.recorder is None else "it stands in a recorded body")
    if isinstance(watched, Matrix):
        why = why or why_eager()  # not even the first iteration is recorded
    if why:
        backend.last_loop = f"eager: {why}"
        return _iterate(until)
    site = site_of(frame)
    if site.scalar and backend_of(site, frame) is not backend:
        site = Site(0, (), f"{site.scalar} is a scalar, and the vectors are on several backends")
    return _iterate_as_one(backend, until, site, not _eager.get())


class _Until(NamedTuple):
    """When a loop ends."""

    empty: Vector | Matrix | None
    unchanged: Vector | Matrix | None
    times: int | None


@contextmanager
def eager() -> Iterator[None]:
    """Run every loop statement by statement, inside ``with lagpu.eager(): ...``.

    A body that is nothing but statements is checked once; then each of them runs by itself, in
    every iteration. Under a debugger, and while statements are traced, Python runs the body.
    """
    token = _eager.set(True)
    try:
        yield
    finally:
        _eager.reset(token)


_eager: ContextVar[bool] = ContextVar("lagpu_eager", default=False)


def why_eager() -> str:
    """Return why each statement is to run by itself, or nothing."""
    watched = "" if observer.active is None else observer.active.why_eager
    return watched or (_INSIDE if _eager.get() else "")


def _why_eager() -> str:
    """Return why somebody wants to see each statement run, or nothing."""
    watcher = observer.active
    return "" if watcher is None else watcher.why_eager or (_INSIDE if _eager.get() else "")


_INSIDE = "inside lagpu.eager()"


def _iterate_as_one(backend: Backend, until: _Until, site: Site, fuse: bool) -> Iterator[int]:
    """Record the body once and run the whole loop from there; else iterate as usual."""
    if until.times == 0 or (until.empty is not None and not until.empty.nvals):
        backend.last_loop = "no iteration"
        return
    if not fuse:
        backend.last_loop = f"eager: {_INSIDE}"
    if not site.statements:
        backend.last_loop = f"eager: {site.reason if fuse else _INSIDE}"
        yield from _iterate(until)
        return
    watcher = observer.active
    outer = -1 if watcher is None else watcher.level
    watched = until.unchanged if until.empty is None else until.empty
    ndim = None if watched is None else watched.ndim
    replay_one = None if watcher is None else watcher.replay
    backend.recorder = recorder = Recorder(backend, replay_one, ndim)
    latest.set(recorder)
    before = None
    if watcher is not None:
        watcher.level = 0  # of what is replayed
    try:
        yield Counter(0)
        backend.recorder = None
        statements = recorder.statements
        if len(statements) == site.statements:
            if fuse and _run_recorded(backend, recorder, until):
                return
            looked_at = watcher is not None or sys.gettrace() is not None
            if not (looked_at or recorder.ndim == 2):  # the data of matrices are others each time
                recorder.statements = []
                _run_one_by_one(backend, statements, until)
                return
        elif fuse:
            silent = "a line of the body writes nothing"
            why = silent if statements else "the body writes vectors and matrices"
            backend.last_loop = f"eager: {f'{site.scalar} is a scalar' if site.scalar else why}"
        before = until.unchanged.dup() if until.unchanged is not None else None
    except GeneratorExit:  # nothing else leaves a body that can be recorded
        if fuse:
            backend.last_loop = "eager: its body raised"
        raise
    finally:  # also when the body raised: what stood before has been done then
        recorder.replay()
        if latest.get() is recorder:  # nothing is kept
            latest.set(None)
        if watcher is not None:
            watcher.level = outer
            watcher.forget()
    if before is None or not before.isequal(until.unchanged):  # type: ignore[arg-type]
        yield from _iterate(until, 1)


def _run_recorded(backend: Backend, recorder: Recorder, until: _Until) -> bool:
    """Let the backend run the loop that was taken; what it has run is taken no more."""
    try:
        ran = _run_as_one(backend, recorder.statements, until)
    except EmptyObject:  # a statement's own, in the loop
        recorder.statements = []
        raise
    if ran:
        recorder.statements = []
    return ran


def _run_as_one(backend: Backend, statements: list[Statement], until: _Until) -> bool:
    """Let the backend run the recorded loop; a watcher sees it as a whole."""

    def work() -> bool:
        how = _data(until.empty), _data(until.unchanged), until.times
        return backend.run_loop(statements, *how)

    return work() if observer.active is None else observer.active.run_loop(backend, work)


def _run_one_by_one(backend: Backend, statements: list[Statement], until: _Until) -> None:
    """Run the recorded body again and again, each statement by itself.

    It has been checked, and says the same in every iteration but for the counter. Whether the loop
    goes on is asked as late as it may be: the device works while the next statements are called.
    """
    work = [_Step.of(backend, s) for s in statements]
    empty, unchanged, times = until
    if empty is not None and all(_is_idle(step, empty) for step in work):
        _run_ahead(work, empty, times)
        return
    early = 0 if empty is None else _early(work, empty)
    first, others = work[:early], work[early:]
    done = 0
    while done != times:
        _run(first, done)
        if empty is not None and not empty.nvals:
            return
        before = None if unchanged is None else unchanged.dup()
        _run(others, done)
        done += 1
        if before is not None and before.isequal(unchanged):  # type: ignore[arg-type]
            return


def _run_ahead(work: list[_Step], empty: Vector | Matrix, times: int | None) -> None:
    """Run iterations that change nothing once `empty` has no entry; ask about it some later.

    Answers that are there are looked at. One is waited for where the loop ended the last time, and
    behind that, when the next iteration has been called: docs/design/speed.md.
    """
    asked: deque[Any] = deque()
    product = next((step.run for step in work if step.w is empty.data), None)
    foreseen = min(getattr(product, "foreseen", 0), _FORESEEN)
    done = 0
    while done != times:
        _run(work, done)
        done += 1
        asked.append(empty.data.count_later())
        unanswered = done if done < foreseen else 0 if done == foreseen else _AHEAD
        while asked and (len(asked) > unanswered or asked[0].is_known):
            if asked.popleft()():
                continue
            if product is not None:
                product.took(done - len(asked))
            return


_AHEAD = 1  # iterations called before it is known whether they are needed
_FORESEEN = 64  # the most of them, where the last loop had so many


def _early(work: list[_Step], empty: Vector | Matrix) -> int:
    """Return how many of the first statements change nothing once `empty` has no entry."""
    for k, step in enumerate(work):
        if not _is_masked_by(step, empty):
            return k
    return len(work)


def _is_masked_by(step: _Step, empty: Vector | Matrix) -> bool:
    """Whether a statement changes another object, and that only where `empty` has entries."""
    desc = step.desc
    where = desc.mask is empty.data and not desc.complement and not desc.replace
    return where and step.w is not empty.data


def _is_idle(step: _Step, empty: Vector | Matrix) -> bool:
    """Whether a statement that asks nothing changes nothing once `empty` has no entry."""
    if step.w is empty.data:
        return getattr(step.run, "runs_ahead", False) and step.args[1] is empty.data
    return _is_masked_by(step, empty)


class _Step(NamedTuple):
    """A statement of a recorded body: ``run(w, desc, *args)``."""

    run: Any
    w: Data
    desc: Any
    args: tuple[Any, ...]
    counts: DType | None  # the type of its first argument, if that is the loop's counter

    @classmethod
    def of(cls, backend: Backend, s: Statement) -> _Step:
        """Return the step of a statement that will run often."""
        counts = lookup(s.args[0].dtype) if s.is_counter else None
        return cls(runner(backend, s, often=True), s.w, s.desc, s.args, counts)


def _run(work: list[_Step], done: int) -> None:
    """Run statements of the iteration `done`."""
    for run, w, desc, args, counts in work:
        if counts is not None:
            args = (scalar_value(done, counts, "loop"), *args[1:])
        run(w, desc, *args)


def _data(vector: Vector | Matrix | None) -> Data | None:
    return None if vector is None else vector.data


def _iterate(until: _Until, done: int = 0) -> Iterator[int]:
    watcher = observer.active
    outer = -1 if watcher is None else watcher.level
    empty, unchanged, times = until
    try:
        while done != times and (empty is None or empty.nvals):
            before = None if unchanged is None else unchanged.dup()
            if watcher is not None:
                watcher.level = done
            yield done
            done += 1
            if before is not None and before.isequal(unchanged):  # type: ignore[arg-type]
                return
    finally:
        if watcher is not None:
            watcher.level = outer
