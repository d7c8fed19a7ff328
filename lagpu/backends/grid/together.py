"""One statement on all processes of a grid: done everywhere, or nowhere."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lagpu.backends.grid.engine import Engine
from lagpu.backends.protocol import Backend
from lagpu.host.interrupt import uninterrupted

__all__ = ["Changes", "done_together", "together"]

T = TypeVar("T")
Class = TypeVar("Class", bound=type[Any])

# What asks nothing of other pieces, and changes nothing.
_BY_ITSELF = {"form", "levels", "meter", "plan_loop"}
_SHAPE = {"shape", "size"}  # the parameter of what makes an object, which is given by position


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

    def make(self, change: Callable[[], object]) -> None:
        """Call a function that cannot fail, as soon as no process can fail any more."""
        if self._waiting is None:
            change()
        else:
            self._waiting.append(change)

    def run(self, name: str, work: Callable[[], T], shape: Sequence[int] = ()) -> T:
        """Do some work of a name, with every other process, then make its changes.

        Processes that give another shape are at different places, as those of another name are.
        """
        if self._engine.alone or self._waiting is not None:  # the latter within another one
            return work()
        if shape:
            name = f"{name} of shape {'x'.join(map(str, shape))}"
        self._waiting = []
        try:
            return done_together(self._engine, name, work, self._waiting)
        finally:
            self._waiting = None


def done_together(
    engine: Engine, name: str, work: Callable[[], T], changes: list[Callable[[], object]]
) -> T:
    """Return what `work` returns, if no process fails in it; only then the changes are made.

    Each process calls it. `work` meets the others in the engine's methods, and all meet once more
    behind it; a process where it fails goes to the next meeting and says so.
    """
    agreed = False
    engine.begin(name)
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
    at = next((k for k, name in enumerate(names) if name in _SHAPE), len(names))

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.pieces.engine.alone:
            return method(self, *args, **kwargs)
        work = functools.partial(method, self, *args, **kwargs)
        made = args[at] if at < len(args) else ()  # the shape of the object that it makes
        shape = made if isinstance(made, tuple) else (made,)
        return self.pieces.changes.run(method.__name__, work, shape)

    return run
