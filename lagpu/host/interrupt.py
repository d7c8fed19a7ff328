"""The end of a command by Ctrl-C: at once, without a traceback, and nothing left behind.

Python raises an interrupt wherever the program is, inside an import, a destructor or a callback of
another library too, and some of these swallow or print it. A command therefore does not unwind: its
first import installs a handler that cleans up and ends the process. Programs that use lagpu get a
KeyboardInterrupt as usual. This module imports little, since nothing protects what comes before it.
"""

from __future__ import annotations

# The functions that `signal` wraps: it makes an enum of each handler, which takes microseconds.
import _signal  # type: ignore[import-not-found]
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["INTERRUPTED", "before_end", "end", "end_commands", "removed", "uninterrupted"]

INTERRUPTED = 128 + signal.SIGINT
_SIGINT = int(signal.SIGINT)
_SHOW_CURSOR = b"\x1b[?25h"  # a progress display hides the cursor
_cleaners: list[Callable[[], object]] = []
_folders: list[str] = []
_ends: list[bool] = []


def before_end(clean: Callable[[], object]) -> None:
    """Have a function called before `end` ends the process; it must not wait long."""
    _cleaners.append(clean)


@contextmanager
def removed(folder: str) -> Iterator[None]:
    """Have a folder removed, if the process ends by `end` meanwhile."""
    _folders.append(folder)
    try:
        yield
    finally:
        _folders.remove(folder)


def end(_signal: object = None, _frame: object = None) -> None:
    """Clean up, say on stderr that the process was interrupted, and end it."""
    if _ends:  # a second Ctrl-C, or the other thread: the first goes on
        return
    _ends.append(True)
    for clean in (*_cleaners, _remove_folders):
        with suppress(BaseException):  # whatever fails, the process ends
            clean()
    try:
        shown = _SHOW_CURSOR if os.isatty(2) else b""
        os.write(2, shown + b"lagpu: interrupted.\n")
    finally:
        os._exit(INTERRUPTED)


def _remove_folders() -> None:
    for folder in tuple(_folders):
        for place, folders, files in os.walk(folder, topdown=False):
            for name in files:
                os.unlink(os.path.join(place, name))  # noqa: PTH108, PTH118
            for name in folders:
                os.rmdir(os.path.join(place, name))  # noqa: PTH106, PTH118
        os.rmdir(folder)  # noqa: PTH106


def end_commands() -> None:
    """Install `end` for Ctrl-C if this process is the command ``lagpu``, and it is not ignored."""
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)


def _is_command() -> bool:
    """Whether the process was started as ``lagpu`` or as ``python -m lagpu``."""
    name = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119
    if name != "-m":
        return name == "lagpu"
    words = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]  # up to the module's name
    return words[-1] in ("lagpu", "-mlagpu")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Have a KeyboardInterrupt raised behind the block, not in it.

    What ends the process at once does so in the block too, and only the main thread is interrupted.
    """
    seen: list[bool] = []

    def note(_signal: int, _frame: FrameType | None) -> None:
        seen.append(True)

    try:
        deferred = _signal.getsignal(_SIGINT) is signal.default_int_handler
        if deferred:
            _signal.signal(_SIGINT, note)
    except ValueError:  # not the main thread
        deferred = False
    try:
        yield
    finally:
        if deferred:
            _signal.signal(_SIGINT, signal.default_int_handler)
            if seen:
                raise KeyboardInterrupt
