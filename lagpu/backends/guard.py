"""Let one thread at a time into a backend, and give the errors of its libraries lagpu's names."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lagpu.backends.protocol import Backend
from lagpu.errors import BackendUnavailable, LagpuError, OutOfMemory

__all__ = ["guarded", "out_of_memory", "refuse_after_fork"]

Guarded = TypeVar("Guarded", bound=type[Any])
Named = Callable[[Any, Exception, str], LagpuError | None]

_METHODS = {
    name
    for name, method in vars(Backend).items()
    if inspect.isfunction(method) and not name.startswith("_")
}


def guarded(named: Named, host: Sequence[str] = ()) -> Callable[[Guarded], Guarded]:
    """Return a class decorator for backends.

    Each method of the protocol that the class defines holds the backend's `lock` while it runs, and
    calls the backend's `enter` first unless that is None.

    Parameters
    ----------
    named : callable
        ``named(backend, error, method)`` returns lagpu's error for an exception of a library, which
        is then raised from it; None for one that it does not know, which passes as it is. It is not
        asked about lagpu's own errors.
    host : sequence of str
        Methods that do not call `enter`, as they need no device, or enter it themselves.
    """

    def guard(cls: Guarded) -> Guarded:
        for name, method in list(vars(cls).items()):
            if inspect.isfunction(method) and name in _METHODS:
                setattr(cls, name, _guarded(method, named, name not in host))
        return cls

    return guard


def _guarded(method: Callable[..., Any], named: Named, enters: bool) -> Callable[..., Any]:
    run: Callable[..., Any]
    if len(inspect.signature(method).parameters) == 2:  # as `execute`: quicker than any arguments

        @functools.wraps(method)
        def run(self: Any, x: Any) -> Any:
            try:
                with self.lock:
                    if enters and self.enter is not None:
                        self.enter()
                    return method(self, x)
            except Exception as error:
                _raise_named(self, error, method.__name__, named)
                raise

    else:

        @functools.wraps(method)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                with self.lock:
                    if enters and self.enter is not None:
                        self.enter()
                    return method(self, *args, **kwargs)
            except Exception as error:
                _raise_named(self, error, method.__name__, named)
                raise

    return run


def _raise_named(backend: Any, error: Exception, method: str, named: Named) -> None:
    """Raise lagpu's error for one that a method raised; return if there is none."""
    other = None if isinstance(error, LagpuError) else named(backend, error, method)
    if other is not None:
        raise other from error


def out_of_memory(error: Exception, what: str, where: str) -> OutOfMemory:
    """Return the error for a library that could not allocate; `where` names the backend."""
    fact = " ".join(str(error).split()) or "an allocation failed"
    return OutOfMemory(f"{what}: {where} is out of memory: {fact}. Free objects, or use fewer.")


# ------------------------------------------------------------------------------- after a fork
class _Refusal:
    """The lock of a backend in a process that was forked after the backend was made."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        raise BackendUnavailable(
            f"{self._name}: this process was forked after its parent had made the backend, whose "
            "device it cannot share. Start processes by multiprocessing.get_context('spawn') or "
            "'forkserver'."
        )

    def __exit__(self, *exc_info: object) -> None:
        """Do nothing: nobody enters."""


_locked: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
_registering = threading.Lock()


def refuse_after_fork(owner: Any, name: str) -> None:
    """Let whoever takes `owner.lock` in a forked process be told so, by the backend's `name`."""
    with _registering:
        _locked[owner] = name


def _refuse() -> None:
    for owner, name in list(_locked.items()):
        owner.lock = _Refusal(name)


os.register_at_fork(after_in_child=_refuse)
