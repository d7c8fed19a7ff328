"""Who sees each statement of a program as it runs: one watcher at a time, often none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lagpu.backends.protocol import Backend

__all__ = ["Watcher", "author", "watching"]

# The notation itself: a statement stands where these packages were called from.
_NOTATION = tuple(f"lagpu.{name}." for name in ("algebra", "core", "host", "loops", "observe"))
_PACKAGES = frozenset(name.removesuffix(".") for name in _NOTATION)


def _is_notation(module: str) -> bool:
    return module.startswith(_NOTATION) or module in _PACKAGES


class Watcher:
    """What is told of each statement.

    Attributes
    ----------
    level : int
        Iteration of the innermost `loop`, from 0; -1 outside of one. The loop sets it.
    why_eager : str
        Why loops run statement by statement, such as ``"it is stepped through"``; empty if they
        need not, and then their statements are `recorded`.
    """

    level: int = -1
    why_eager: str = ""

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """See the checked statement ``to << call``, and run it by calling `work` once."""
        work()

    def entry(self, v: Any, say: Callable[[], tuple[Any, Any]], work: Callable[[], None]) -> None:
        """See ``v[i] = x`` for one number, which `say` returns as a statement, and run it so."""
        self.statement(*say(), work)

    def recorded(self, to: Any, call: Any) -> None:
        """See a statement of a loop's body that may not run by itself."""

    def replay(self, k: int, work: Callable[[], None]) -> None:
        """Run the k-th of the statements recorded after all, by calling `work` once."""
        work()

    def run_loop(self, backend: Backend, work: Callable[[], bool]) -> bool:
        """Run the loop of the statements recorded by calling `work` once; return what it does."""
        return work()

    def forget(self) -> None:
        """Forget the statements recorded: the loop is over, or goes on without them."""


active: Watcher | None = None


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Let `watcher` see every statement that runs inside; one around it sees none of them."""
    global active
    outer, active = active, watcher
    try:
        yield
    finally:
        active = outer


def author(inside: int = 0) -> FrameType | None:
    """Return the frame of whoever wrote the statement that is running.

    Parameters
    ----------
    inside : int
        How many callers are known to be the notation itself, the caller of this first: they are
        not looked at.
    """
    frame: FrameType | None = sys._getframe(1 + inside)
    while frame is not None and _is_notation(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame
