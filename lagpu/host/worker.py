"""Processes that answer calls, and that are ended in the middle of one."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from typing import Any

from lagpu import errors
from lagpu.host.display import one_line

_PREPARING = 300.0  # seconds for work that is not measured: importing, making and reading a graph
_SPAWN = multiprocessing.get_context("spawn")  # a fork would share threads and a CUDA context


class TimeUp(Exception):
    """An answer took too long; the process has been ended."""


class Failed(Exception):
    """A question raised an error of this class, with this message on one line."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Worker:
    """A process that makes one object and calls its methods; it can be ended in the middle."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._here, there = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(there, make), daemon=True)
        with _deaf():
            self.process.start()
        there.close()

    def call(self, method: str, *args: Any, limit: float) -> Any:
        """Return the result of a method in the process, or raise `TimeUp` or `Failed`."""
        try:
            self._here.send((method, args))
            if not self._here.poll(max(limit, 0)):
                self.close()
                raise TimeUp
            done, found = self._here.recv()
        except (EOFError, OSError) as error:
            self.close()
            code = self.process.exitcode
            raise Failed("Died", f"the process ended with exit code {code}") from error
        if not done:
            raise Failed(*found)
        return found

    def require(self, *call: Any) -> Any:
        """Return the result of unmeasured work; an error of lagpu in the process is raised."""
        try:
            return self.call(*call, limit=_PREPARING)
        except Failed as error:
            kind = getattr(errors, error.kind, None)
            if kind is None:
                raise
            raise kind(error.text) from error
        except TimeUp:
            raise Failed("TimeUp", f"the preparation took over {_PREPARING:g} s") from None

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self._here.close()


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that Ctrl-C never reaches; this one gets it after the block."""
    resource_tracker.ensure_running()  # starts another process, and then lets interrupts in
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(there: Any, make: Callable[[], Any]) -> None:
    """Answer calls until the parent closes the pipe."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    served = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            method, args = there.recv()
            try:
                if served is None:
                    served = make()
                answer = True, getattr(served, method)(*args)
            except Exception as error:  # any error becomes the note of a row
                answer = False, (type(error).__name__, one_line(error))
            there.send(answer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
