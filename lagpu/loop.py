"""`loop`: the one loop construct, that a backend may run as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from lagpu import trace
from lagpu.errors import DomainMismatch, InvalidValue
from lagpu.operands import integer
from lagpu.vector import Vector

__all__ = ["loop"]


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
    return _iterate(until_empty, until_unchanged, times)


def _iterate(
    until_empty: Vector | None, until_unchanged: Vector | None, times: int | None
) -> Iterator[int]:
    tracing = trace.active
    outer = -1 if tracing is None else tracing.level
    done = 0
    try:
        while done != times and (until_empty is None or until_empty.nvals):
            before = until_unchanged.dup() if until_unchanged is not None else None
            if tracing is not None:
                tracing.level = done
            yield done
            done += 1
            if before is not None and before.isequal(until_unchanged):  # type: ignore[arg-type]
                return
    finally:
        if tracing is not None:
            tracing.level = outer
