"""One statement on all processes of a grid: done everywhere, or nowhere."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lagpu.backends.grid.engine import Engine
from lagpu.backends.grid.handles import MADE_BITS
from lagpu.backends.protocol import Backend
from lagpu.host.interrupt import uninterrupted

T = TypeVar("T")
Class = TypeVar("Class", bound=type[Any])

# What asks nothing of other pieces, and changes nothing.
_BY_ITSELF = {"form", "levels", "meter", "plan_loop"}
NOTHING: Mapping[str, Any] = {}


class Changes:
    """What a statement changes once it has been done: at once, if every piece is in this process.

    Parameters
    ----------
    engine : Engine
        How pieces reach each other.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[Callable[[], object]] | None = None
        self._made = 0  # objects, in this statement

    def next_number(self) -> int:
        """Return the number of the next object that a statement makes; see `GridHandle`."""
        self._made += 1
        return self._engine.turn << MADE_BITS | self._made

    def make(self, change: Callable[[], object]) -> None:
        """Call a function that cannot fail, as soon as no process can fail any more."""
        if self._waiting is None:
            change()
        else:
            self._waiting.append(change)

    def run(self, name: str, work: Callable[[], T], given: Mapping[str, Any] = NOTHING) -> T:
        """Do some work of a name, with every other process, then make its changes.

        What is `given`, by name, must be the same in all of them.
        """
        if self._engine.alone or self._waiting is not None:  # the latter within another one
            return work()
        self._waiting, self._made = [], 0
        try:
            return done_together(self._engine, name, work, self._waiting, given)
        finally:
            self._waiting = None


def done_together(
    engine: Engine,
    name: str,
    work: Callable[[], T],
    changes: list[Callable[[], object]],
    given: Mapping[str, Any] = NOTHING,
) -> T:
    """Return what `work` returns, if no process fails in it; only then the changes are made.

    Each process calls it. `work` meets the others in the engine's methods, and all meet once more
    behind it; a process where it fails goes to the next meeting and says so.
    """
    agreed = False
    engine.begin(name, given)
    try:
        found = work()
        with uninterrupted():  # an interrupt between the two would leave this process behind
            engine.agree()
            agreed = True
            for change in changes:
                change()
    except BaseException as error:
        if not agreed:
            engine.fail(error)
        raise
    return found


def together(cls: Class) -> Class:
    """Have each method of the protocol that a grid's backend defines run with every process."""
    for name, method in list(vars(cls).items()):
        shared = name in vars(Backend) and not name.startswith("_") and name not in _BY_ITSELF
        if shared and inspect.isfunction(method):
            setattr(cls, name, _together(method))
    return cls


def _together(method: Callable[..., Any]) -> Callable[..., Any]:
    names = [*inspect.signature(method).parameters][1:]

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.pieces.engine.alone:
            return method(self, *args, **kwargs)
        work = functools.partial(method, self, *args, **kwargs)
        given = dict(zip(names, args, strict=False)) | kwargs
        return self.pieces.changes.run(method.__name__, work, given)

    return run
