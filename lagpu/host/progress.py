"""Progress of long work on a terminal or in a notebook: its share done, and the time left."""

from __future__ import annotations

import importlib
import io
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import parent_process
from typing import Any, TypeVar

from lagpu.errors import plain
from lagpu.host.job import launched

T = TypeVar("T")
V = TypeVar("V")

AFTER = 2.0  # seconds until work is shown
_VARIABLE = "LAGPU_PROGRESS"  # 0 for never
_PAUSE = 0.2  # seconds between two texts in a notebook
_WIDTH = 80  # of these
clock = time.monotonic
_lock = threading.RLock()
_shown: list[_Display] = []  # one at most, with a line for each task


@contextmanager
def bar(what: str, total: int | None = None, *, after: float = AFTER) -> Iterator[Task]:
    """Show what is done, if it takes longer than some seconds, on stderr or in a notebook.

    Yields a function that is called with the number of steps done of `total`, and with ``what=``
    for another description. Without a total only the time is shown. Nothing is shown if stderr is
    no terminal, in a process that another one of lagpu has started, or if ``LAGPU_PROGRESS`` is 0.
    """
    task = Task(what, total, after)
    try:
        yield task
    finally:  # Ctrl-C too: the line is removed, and the cursor is there again
        task.close()


def over(items: Sequence[T], what: str) -> Iterator[T]:
    """Yield items one by one to a ``for`` statement, and show how many are done."""
    with bar(what, len(items)) as done:
        for k, item in enumerate(items):
            yield item
            done(k + 1)


def each(of: Callable[[T], V], items: Sequence[T], what: str) -> list[V]:
    """Return a value for each item, and show how many are done."""
    # In a comprehension the traceback of an error would hold `over`, and so its line.
    found: list[V] = []
    with bar(what, len(items)) as done:
        for item in items:
            found.append(of(item))
            done(len(found))
    return found


class Task:
    """Some work, which may be shown."""

    def __init__(self, what: str, total: int | None, after: float) -> None:
        self._what, self._total, self._line = plain(what), total, -1
        self._begun = clock()
        self._from = self._begun + after
        if after <= 0:
            self()

    def __call__(self, done: int | None = None, *, what: str | None = None) -> None:
        """Note how many steps are done, or another description."""
        self._what = self._what if what is None else plain(what)
        if clock() < self._from or self._from < 0:
            return
        with _lock:
            if self._line < 0 and not _shown and (made := _display()) is not None:
                _shown.append(made)
            if not _shown:
                self._from = -1.0  # nothing is ever shown
                return
            display = _shown[0]
            if self._line < 0:
                self._line = display.begin(self._what, self._total, self._begun)
            display.update(self._line, self._what, done)

    def close(self) -> None:
        with _lock:
            if self._line >= 0 and _shown and _shown[0].end(self._line):
                _shown.clear()
            self._line, self._from = -1, -1.0


class _Display:
    """The lines of all tasks, by rich; in a notebook as a text, for which rich needs ipywidgets."""

    def __init__(self, bars: Any, write: Callable[[str], None] | None) -> None:
        self._bars, self._write, self._next = bars, write, 0.0
        if write is None:
            bars.start()

    def begin(self, what: str, total: int | None, begun: float) -> int:
        line = int(self._bars.add_task(what, total=total))
        self._bars.tasks[-1].start_time = begun
        return line

    def update(self, line: int, what: str, done: int | None) -> None:
        self._bars.update(line, description=what, completed=done)
        if self._write is not None and clock() >= self._next:
            self._next = clock() + _PAUSE
            out = io.StringIO()
            width = {"width": _WIDTH, "color_system": None}
            console = type(self._bars.console)(file=out, force_jupyter=False, **width)
            console.print(self._bars.get_renderable())
            self._write(out.getvalue())

    def end(self, line: int) -> bool:
        """Remove a line; return whether it was the last one."""
        self._bars.remove_task(line)
        if self._bars.tasks:
            return False
        if self._write is None:
            self._bars.stop()
        else:
            self._write("")
        return True


def _display() -> _Display | None:
    if launched() is not None or parent_process() is not None or os.environ.get(_VARIABLE) == "0":
        return None
    # Imported here, as it takes as long as all of lagpu.
    from rich import progress
    from rich.console import Console
    from rich.table import Column

    console = Console(stderr=True)
    write = None
    if console.is_jupyter:
        notebook: Any = importlib.import_module("IPython.display")  # it is there in a notebook
        handle = notebook.display({"text/plain": ""}, raw=True, display_id=True)
        write = lambda text: handle.update({"text/plain": text}, raw=True)  # noqa: E731
    elif not console.is_terminal:
        return None
    known = (progress.BarColumn(20), progress.TaskProgressColumn(), progress.TimeRemainingColumn())
    column: Any
    for column in known:  # they show nothing of a task whose total is not known
        column.render = lambda task, of=column.render: "" if task.total is None else of(task)
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")  # of the line: times are never cut
    text = progress.TextColumn("{task.description}", markup=False, table_column=rest)
    columns = (progress.SpinnerColumn(), text, *known, progress.TimeElapsedColumn())
    how: Any = {"console": console, "transient": True, "get_time": clock, "expand": True}
    return _Display(progress.Progress(*columns, **how), write)
