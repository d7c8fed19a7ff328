"""Ctrl-C: the end of a command, at once and with nothing left behind, or of a loop on a device.

Python raises an interrupt wherever the program is, inside an import, a destructor or a callback of
another library too, and some of these swallow or print it. A command therefore does not unwind: its
first import installs a handler that cleans up and ends the process. Programs that use lagpu get a
KeyboardInterrupt as usual. This module imports little, since nothing protects what comes before it.
"""

# The functions that `signal` wraps: it makes an enum of each handler, which takes microseconds.
import _signal  # type: ignore[import-not-found]
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT
_SIGINT = int(signal.SIGINT)
# A display of progress hides the cursor, and leaves a line.
_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"
_cleaners: list[Callable[[], object]] = []
_ends: list[bool] = []


def before_end(clean: Callable[[], object]) -> None:
    """Have a function called before `end` ends the process; it must not wait long."""
    _cleaners.append(clean)


@contextmanager
def removed(folder: str) -> Iterator[None]:
    """Have a folder removed if `end` ends the process in the block."""
    import shutil  # as `tempfile` has, which made it

    _cleaners.append(remove := partial(shutil.rmtree, folder, ignore_errors=True))
    try:
        yield
    finally:
        _cleaners.remove(remove)


def end(_signal: object = None, _frame: object = None) -> None:
    """Clean up, say on stderr that the process was interrupted, and end it."""
    if _ends:  # a second Ctrl-C, or the other thread: the first goes on
        return
    _ends.append(True)
    for clean in tuple(_cleaners):
        with suppress(BaseException):  # whatever fails, the process ends
            clean()
    try:
        os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + b"lagpu: interrupted.\n")
    finally:
        os._exit(INTERRUPTED)


def end_commands() -> None:
    """Install `end` for Ctrl-C if this process is the command ``lagpu``, and it is not ignored."""
    if is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)


def is_command() -> bool:
    """Whether the process was started as ``lagpu`` or as ``python -m lagpu``."""
    name = os.path.basename(sys.argv[0]) if sys.argv else ""  # noqa: PTH119
    if name != "-m":
        return name == "lagpu"
    words = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]  # up to the module's name
    return words[-1] in ("lagpu", "-mlagpu")


@contextmanager
def deaf() -> Iterator[None]:
    """Start processes that Ctrl-C never reaches; this one gets it after the block."""
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # starts another process, and then lets interrupts in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class uninterrupted:  # noqa: N801 (it is called as a function is)
    """Defers a KeyboardInterrupt of the main thread to the end of the ``with`` block."""

    __slots__ = ("_deferred", "_seen")

    def __enter__(self) -> None:
        self._seen = False
        self._deferred = _signal.getsignal(_SIGINT) is signal.default_int_handler
        if self._deferred:
            try:
                _signal.signal(_SIGINT, self._note)
            except ValueError:  # not the main thread
                self._deferred = False

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._seen = True

    def __exit__(self, *error: object) -> None:
        if self._deferred:
            _signal.signal(_SIGINT, signal.default_int_handler)
            if self._seen:
                raise KeyboardInterrupt


# ----------------------------------------------------------- while the main thread sees no signal
class _Watcher:
    """A thread that sees signals while the main thread is in a long call of compiled code.

    Python's own handler in C writes the number of each signal into a pipe, which this thread reads.
    A program may have such a file itself, as asyncio has: then it gets what comes in the meantime,
    and has its file back after the block. The listeners are called when an interrupt comes.
    """

    def __init__(self) -> None:
        self._receive, self._send = os.pipe()
        os.set_blocking(self._receive, False)
        os.set_blocking(self._send, False)
        self._theirs = -1
        self.lock = threading.Lock()
        self.listeners: list[Callable[[], object]] = []
        threading.Thread(target=self._watch, name="lagpu interrupt", daemon=True).start()

    def _watch(self) -> None:
        while True:
            select.select([self._receive], [], [])
            with self.lock:
                self.report()

    def report(self) -> None:
        """Read what has come, and call the listeners if it was an interrupt; under the lock."""
        try:
            seen = os.read(self._receive, 4096)
        except BlockingIOError:  # the other thread was quicker
            return
        if self._theirs >= 0:
            with suppress(OSError):
                os.write(self._theirs, seen)
        if signal.SIGINT in seen:
            for listener in self.listeners:
                listener()

    def attach(self) -> bool:
        """Have signals written into the pipe; return whether `detach` is to be called."""
        theirs = signal.set_wakeup_fd(self._send, warn_on_full_buffer=False)
        replaces = theirs not in (-1, self._send)
        if replaces:
            self._theirs = theirs
        return replaces

    def detach(self) -> None:
        """Give a program its own file back; without one the pipe stays, for loops in threads."""
        signal.set_wakeup_fd(self._theirs)
        self._theirs = -1

    def forget(self) -> None:
        """Close the pipe in the child of a fork, which shares it but does not have the thread."""
        now = signal.set_wakeup_fd(self._theirs)
        if now not in (-1, self._send):
            signal.set_wakeup_fd(now)
        os.close(self._receive)
        os.close(self._send)


_watchers: list[_Watcher] = []  # one at most
_making = threading.Lock()


def _watcher() -> _Watcher:
    with _making:
        if not _watchers:
            _watchers.append(_Watcher())
        return _watchers[0]


def _forget() -> None:
    for watcher in _watchers:
        with suppress(ValueError, OSError):
            watcher.forget()
    _watchers.clear()


os.register_at_fork(after_in_child=_forget)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def listen() -> None:
    """Watch for interrupts from now on, also for the blocks of other threads.

    Only the main thread can do this, and a program that has a file for signals keeps it.
    """
    if _in_main_thread() and _watcher().attach():
        _watcher().detach()


@contextmanager
def on_interrupt(listener: Callable[[], object]) -> Iterator[None]:
    """Have a function called, by another thread, as soon as an interrupt comes in the block.

    So it is called while the main thread is in a call of compiled code. In a block of another
    thread it is called if the main thread has called `listen`, or is in such a block itself.
    """
    watcher = _watcher()
    with watcher.lock:
        watcher.report()  # the listener is not called for an interrupt that came before
        watcher.listeners.append(listener)
    replaces = _in_main_thread() and watcher.attach()
    try:
        yield
    finally:
        with watcher.lock:
            watcher.listeners.remove(listener)
        if replaces:
            watcher.detach()


def raises_by_default() -> bool:
    """Whether Python itself raises an interrupt in this thread: the main one, without a handler."""
    return _in_main_thread() and _signal.getsignal(_SIGINT) is signal.default_int_handler


@contextmanager
def heard(*words: memoryview) -> Iterator[None]:
    """Set words to 1 when an interrupt comes in the block, and raise KeyboardInterrupt after it.

    Loops of a device look at such a word and end early. The program cannot use their results, so
    the error is raised in any thread, and whatever handler the program has.
    """

    def stop() -> None:
        for word in words:
            word[0] = 1

    for word in words:
        word[0] = 0
    with on_interrupt(stop):
        yield
    if any(word[0] for word in words):
        raise KeyboardInterrupt
