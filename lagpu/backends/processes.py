"""Per-process values of a backend, gathered on all its processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from lagpu.backends.protocol import Backend

T = TypeVar("T")


def of_all(backend: Backend, *numbers: float) -> list[list[float]]:
    """Return the numbers that each process of a backend has, in one order, the same in all.

    Every process calls it, with as many numbers. A process that decided by its own clock, free
    memory or random numbers could decide otherwise, and the others wait for it forever.
    """
    parts = backend.capabilities.parts
    if parts is None or len(parts.homes) == parts.count:
        return [list(numbers)]
    mine = np.array(numbers)
    return [its.tolist() for (its,) in parts.gather(lambda _home, _piece: (mine,))]


def require_alike(backend: Backend, what: str, **given: Any) -> None:
    """Raise `ProcessFailed` in every process of a backend unless all give the same, by name.

    Statements do so by themselves: this is for what decides what a process does with its own part.
    """
    parts = backend.capabilities.parts
    if parts is not None:
        parts.require_alike(what, given)


def in_step(backend: Backend, work: Callable[[], T]) -> T:
    """Return the result of what each process does without the backend; all raise one's error."""
    parts = backend.capabilities.parts
    if parts is None or len(parts.homes) == parts.count:
        return work()
    done: list[T] = []

    def once(_home: Backend, _piece: int) -> tuple[()]:
        if not done:
            done.append(work())
        return ()

    parts.gather(once)
    return done[0]
