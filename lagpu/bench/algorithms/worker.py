"""A process for one system, which can be ended in the middle of a question."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from typing import Any

__all__ = ["Failed", "TimeUp", "Worker"]

_SPAWN = multiprocessing.get_context("spawn")  # a fork would share threads and a CUDA context


class TimeUp(Exception):
    """An answer took too long; the process has been ended."""


class Failed(Exception):
    """A question raised an error.

    Attributes
    ----------
    kind, text : str
        The error's class, and its message on one line.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind, self.text = kind, text


class Worker:
    """A process that has one object and calls its methods.

    Parameters
    ----------
    make : callable
        Makes the object in the process, without arguments; a class or function of a module.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._here, there = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(there, make), daemon=True)
        with _deaf():
            self._process.start()
        there.close()

    def call(self, method: str, *args: Any, limit: float) -> Any:
        """Call a method of the object in the process and return the result.

        Parameters
        ----------
        method : str
            Name of the method.
        *args : object
            Arguments; these and the result are pickled.
        limit : float
            Seconds to wait.

        Raises
        ------
        TimeUp
            If the method takes longer.
        Failed
            If the method raised, or the process died.
        """
        try:
            self._here.send((method, args))
            if not self._here.poll(max(limit, 0)):
                self.end()
                raise TimeUp
            done, found = self._here.recv()
        except (EOFError, OSError) as error:
            self.end()
            code = self._process.exitcode
            raise Failed("Died", f"the process ended with exit code {code}") from error
        if not done:
            raise Failed(*found)
        return found

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self._process.is_alive()

    def end(self) -> None:
        """End the process immediately."""
        self._process.kill()
        self._process.join()
        self._here.close()


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, from their first instruction on.

    This process gets it behind the block; what ends this one ends its workers.
    """
    resource_tracker.ensure_running()  # starts another process, and lets interrupts in behind it
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
                text = " ".join(str(error).split())
                answer = False, (type(error).__name__, text)
            there.send(answer)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
