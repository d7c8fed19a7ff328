"""Who sees each statement of a program as it runs: at most one observer, often none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from lagpu.backends.protocol import Backend
from lagpu.operations import FusedLoop, Rejection

__all__ = ["Observer", "current_observer", "observing", "set_observer"]


class Observer:
    """Sees each statement before it runs, and runs it.

    Attributes
    ----------
    level : int
        Iteration of the innermost `loop`, from 0; -1 outside of one. The loop sets it.
    why_eager : str
        Why loops run statement by statement, such as ``"it is stepped through"``; an empty string
        if they need not, and then their statements are `recorded`.
    """

    level: int = -1
    why_eager: str = ""

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """See the checked statement ``to << call``, and run it by calling `work` once."""
        work()

    def entry(
        self, v: Any, describe: Callable[[], tuple[Any, Any]], work: Callable[[], None]
    ) -> None:
        """See ``v[i] = x`` for one number, and run it by calling `work` once.

        `describe` returns it as a statement: an updater and a call.
        """
        self.statement(*describe(), work)

    def recorded(self, to: Any, call: Any) -> None:
        """See a statement of a loop's body, which runs later, or as a part of the whole loop."""

    def replay(self, k: int, work: Callable[[], None]) -> None:
        """Run the k-th of the statements recorded, by itself after all, by calling `work` once."""
        work()

    def run_loop(
        self, backend: Backend, plan: Callable[[], FusedLoop | Rejection]
    ) -> FusedLoop | Rejection:
        """Plan the loop of the statements recorded by calling `plan`, and run it if there is one.

        Returns what `plan` returned.
        """
        loop = plan()
        if not isinstance(loop, Rejection):
            loop.run()
        return loop

    def forget(self) -> None:
        """Forget the statements recorded: the loop is over, or goes on without them."""


_current: ContextVar[Observer | None] = ContextVar("lagpu_observer", default=None)

#: The observer of this thread or task, or None.
current_observer: Callable[[], Observer | None] = _current.get


def set_observer(observer: Observer | None) -> None:
    """Let `observer` see every statement from here on, or nobody."""
    _current.set(observer)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Let `observer` see every statement that runs inside; one around it sees none of them."""
    outer = current_observer()
    set_observer(observer)
    try:
        yield
    finally:
        set_observer(outer)
