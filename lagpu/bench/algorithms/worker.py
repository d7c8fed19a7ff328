"""A process in which one system answers; it can be ended in the middle of a question."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
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
    """A process that holds one object and calls its methods.

    Parameters
    ----------
    make : callable
        Makes the object there, without arguments; a class or function of a module.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._here, there = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(there, make), daemon=True)
        self._process.start()
        there.close()

    def call(self, method: str, *args: Any, limit: float) -> Any:
        """Return what a method returns.

        Parameters
        ----------
        method : str
            Its name.
        *args : object
            What it takes; these and the result are pickled.
        limit : float
            Seconds to wait.

        Raises
        ------
        TimeUp
            If they are over.
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
        """Whether it can be asked."""
        return self._process.is_alive()

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self._here.close()


def _serve(there: Any, make: Callable[[], Any]) -> None:
    """Answer until there is nobody to ask."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asker is told, and ends this process
    threading.Thread(target=_end_with_asker, daemon=True).start()
    held = None
    with contextlib.suppress(EOFError, OSError):
        while True:
            method, args = there.recv()
            try:
                if held is None:
                    held = make()
                answer = True, getattr(held, method)(*args)
            except Exception as error:  # whatever it is, a row has to tell it
                text = " ".join(str(error).split())
                answer = False, (type(error).__name__, text)
            there.send(answer)


def _end_with_asker() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
