"""Who sees each statement of a program as it runs: one watcher at a time, often none."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

__all__ = ["Watcher", "author", "watching"]

# The notation itself: a statement stands where these were called from.
_NOTATION = frozenset(
    f"lagpu.{name}"
    for name in (
        "collection",
        "expr",
        "indexing",
        "loop",
        "matrix",
        "operators",
        "refusals",
        "scalar",
        "step",
        "trace",
        "transposed",
        "vector",
        "watch",
    )
)


class Watcher(Protocol):
    """What is told of each statement.

    Attributes
    ----------
    level : int
        Iteration of the innermost `loop`, from 0; -1 outside of one. The loop sets it.
    why_eager : str
        Why loops run statement by statement: ``"a trace is on"``.
    """

    level: int
    why_eager: str

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """See the checked statement ``to << call``, and run it by calling `work` once."""


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


def author() -> FrameType | None:
    """Return the frame of whoever wrote the statement that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in _NOTATION:
        frame = frame.f_back
    return frame
