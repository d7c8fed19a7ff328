"""The observer of a program, which sees each statement as it runs; at most one, often none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import get_ident
from typing import Any

from lagpu.backends.protocol import Backend
from lagpu.operations import FusedLoop, Rejection

__all__ = ["Observer", "current_observer", "observing", "set_observer"]


class Observer:
    """Base of a trace, a stepper and a crosscheck: sees each statement before it runs, and runs it.

    Attributes
    ----------
    level : int
        Iteration of the innermost `loop`, from 0; -1 outside of a loop. The loop sets it.
    why_eager : str
        Why loops run statement by statement, such as ``"it is stepped through"``; an empty string
        if they need not, and then their statements are `recorded`.
    thread : int
        The thread whose statements it sees.
    """

    level: int = -1
    thread: int = 0
    why_eager: str = ""

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """See the checked statement ``to << call``, and run it by calling `work` once."""
        work()

    def entry(
        self, v: Any, describe: Callable[[], tuple[Any, Any]], work: Callable[[], None]
    ) -> None:
        """See ``v[i] = x`` for one number, and run it by calling `work` once.

        `describe` returns the same as a statement: an updater and a call.
        """
        self.statement(*describe(), work)

    def recorded(self, to: Any, call: Any) -> None:
        """See a recorded statement of a loop's body, which runs later or as part of the loop."""

    def replay(self, k: int, work: Callable[[], None]) -> None:
        """Run the k-th recorded statement by itself after all, by calling `work` once."""
        work()

    def run_loop(
        self, backend: Backend, plan: Callable[[], FusedLoop | Rejection]
    ) -> FusedLoop | Rejection:
        """Plan the recorded loop by calling `plan`, run it unless rejected, and return the plan."""
        loop = plan()
        if not isinstance(loop, Rejection):
            loop.run()
        return loop

    def forget(self) -> None:
        """Forget the recorded statements: the loop is over, or goes on without them."""


_current: ContextVar[Observer | None] = ContextVar("lagpu_observer", default=None)


def current_observer() -> Observer | None:
    """Return the observer of this thread or task, or None.

    `asyncio.to_thread` copies the context of a task into another thread, which the observer does
    not see: its level and its recorded statements are those of one thread.
    """
    observer = _current.get()
    if observer is None or observer.thread == get_ident():
        return observer
    return None


def set_observer(observer: Observer | None) -> None:
    """Let `observer`, or for None nobody, see every statement of this thread from now on."""
    if observer is not None:
        observer.thread = get_ident()
    _current.set(observer)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Let `observer` see every statement inside ``with``, hidden from an outer observer."""
    outer = current_observer()
    set_observer(observer)
    try:
        yield
    finally:
        set_observer(outer)
