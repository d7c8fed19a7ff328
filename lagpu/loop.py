"""`loop`: the one loop construct, that a backend may run as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lagpu import watch
from lagpu.backends.base import Counter, Recorder
from lagpu.errors import DomainMismatch, InvalidValue
from lagpu.loopsite import Site, site_of
from lagpu.operands import integer
from lagpu.vector import Vector

__all__ = ["eager", "loop"]


def loop(
    *,
    until_empty: Vector | None = None,
    until_unchanged: Vector | None = None,
    times: int | None = None,
) -> Iterator[int]:
    """Yield 0, 1, 2, ... until a condition on a vector holds.

    Parameters
    ----------
    until_empty : Vector
        Stop before an iteration in which this vector would have no entry.
    until_unchanged : Vector
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
        If a condition is not on a `Vector`, or `times` is not an integer.
    """
    if until_empty is not None and until_unchanged is not None:
        raise InvalidValue("loop: give one of until_empty= and until_unchanged=, not both.")
    if until_empty is None and until_unchanged is None and times is None:
        raise InvalidValue("loop: give until_empty=, until_unchanged= or times=.")
    for vector in (until_empty, until_unchanged):
        if vector is not None and not isinstance(vector, Vector):
            raise DomainMismatch(f"loop: {type(vector).__name__} is not a Vector. Give one.")
    if times is not None:
        times = integer(times, "loop: times")
        if times < 0:
            raise InvalidValue(f"loop: times {times} < 0. Give 0 or more.")
    for vector in (until_empty, until_unchanged):
        if vector is not None and hasattr(vector.backend, "last_loop"):
            why = _why_eager() or ("" if until_empty is not None else "it is until_unchanged")
            if not why and vector.backend.recorder is None and until_empty is not None:
                return _iterate_as_one(until_empty, times, site_of(sys._getframe(1)))
            vector.backend.last_loop = f"eager: {why or 'it stands in a recorded body'}"
    return _iterate(until_empty, until_unchanged, times)


@contextmanager
def eager() -> Iterator[None]:
    """Run every loop statement by statement, inside ``with lagpu.eager(): ...``."""
    token = _eager.set(True)
    try:
        yield
    finally:
        _eager.reset(token)


_eager: ContextVar[bool] = ContextVar("lagpu_eager", default=False)


def _why_eager() -> str:
    """Return why somebody wants to see each statement run, or nothing."""
    if watch.active is not None:
        return watch.active.why_eager
    return "inside lagpu.eager()" if _eager.get() else ""


def _iterate_as_one(until_empty: Vector, times: int | None, site: Site) -> Iterator[int]:
    """Record the body once and let the backend run the whole loop; else iterate as usual."""
    backend = until_empty.backend
    if not site.statements:
        backend.last_loop = f"eager: {site.reason}"  # type: ignore[attr-defined]
        yield from _iterate(until_empty, None, times)
        return
    if times == 0 or not until_empty.nvals:
        return
    backend.recorder = recorder = Recorder(backend)
    try:
        yield Counter(0)
        backend.recorder = None
        statements = recorder.statements
        if len(statements) == site.statements and backend.run_loop(
            statements, until_empty.data, times
        ):
            recorder.statements = []
            return
    finally:  # also when the body raised: what stood before has been done then
        recorder.replay()
    yield from _iterate(until_empty, None, times, 1)


def _iterate(
    until_empty: Vector | None, until_unchanged: Vector | None, times: int | None, done: int = 0
) -> Iterator[int]:
    watcher = watch.active
    outer = -1 if watcher is None else watcher.level
    try:
        while done != times and (until_empty is None or until_empty.nvals):
            before = until_unchanged.dup() if until_unchanged is not None else None
            if watcher is not None:
                watcher.level = done
            yield done
            done += 1
            if before is not None and before.isequal(until_unchanged):  # type: ignore[arg-type]
                return
    finally:
        if watcher is not None:
            watcher.level = outer
