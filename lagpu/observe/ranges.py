"""`ranges`: a profiler such as Nsight Systems shows each statement and loop by its text."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from lagpu.backends.protocol import Backend
from lagpu.core.recorder import Observer, observing, set_observer
from lagpu.host.source import line_of_author
from lagpu.operations import FusedLoop, Rejection


class Ranges(Observer):
    """Runs each statement, and each loop that is one kernel, in a range that has its text."""

    def __init__(self) -> None:
        self._recorded: list[tuple[Backend | None, str]] = []

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """See `Observer`."""
        with _range(call.backend, _text()):
            work()

    def entry(
        self, v: Any, describe: Callable[[], tuple[Any, Any]], work: Callable[[], None]
    ) -> None:
        """See `Observer`."""
        with _range(v.backend, _text()):
            work()

    def recorded(self, to: Any, call: Any) -> None:
        """See `Observer`."""
        self._recorded.append((call.backend, _text()))

    def replay(self, k: int, work: Callable[[], None]) -> None:
        """See `Observer`."""
        with _range(*self._recorded[k]):
            work()

    def run_loop(
        self, backend: Backend, plan: Callable[[], FusedLoop | Rejection]
    ) -> FusedLoop | Rejection:
        """See `Observer`."""
        loop = plan()
        if not isinstance(loop, Rejection):
            texts = dict.fromkeys(text for _, text in self._recorded)
            with _range(backend, f"{loop.name}: {'; '.join(texts)}"):
                loop.run()
        return loop

    def forget(self) -> None:
        """See `Observer`."""
        self._recorded.clear()


def _text() -> str:
    """Return the source text of the running statement, and its place."""
    file, line, text = line_of_author()
    return f"{text} ({Path(file).name}:{line})"


def _range(backend: Backend | None, name: str) -> AbstractContextManager[Any]:
    device = None if backend is None else backend.device
    named: AbstractContextManager[Any] = nullcontext() if device is None else device.range(name)
    return named


def ranges() -> AbstractContextManager[None]:
    """Name statements and loops for a profiler: ``with lagpu.ranges(): ...``.

    On ``gpu`` each statement, and each loop that runs as one kernel, is an NVTX range named by its
    text, as ``nsys profile`` shows it: ``levels(frontier.S) << depth (search.py:12)``. Loops run
    as they do without, by the same kernels; a loop that is not fused is not replayed from its
    record, so that every statement is seen. Nothing is measured, and other backends show nothing.

    The environment variable ``LAGPU_RANGES=1`` does the same for a whole program.

    Returns
    -------
    context manager
        For the thread that enters it. Of ranges and a trace, the inner one sees the statements.

    Examples
    --------
    >>> from lagpu.algorithms import bfs_levels
    >>> from lagpu.generators import path
    >>> with ranges():
    ...     bfs_levels(path(3, backend="cpu"), 0).to_dict()
    {0: 0, 1: 1, 2: 2}
    """
    return observing(Ranges())


if os.environ.get("LAGPU_RANGES", "0") not in ("", "0"):  # for a program that is not to change
    set_observer(Ranges())
