"""Guards of a backend: calls in step with other threads, and overrides of its planner."""

from __future__ import annotations

import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from lagpu.backends.protocol import Backend
from lagpu.errors import BackendUnavailable, InvalidValue, LagpuError, NotSupported, OutOfMemory
from lagpu.operations import Multiply, Planned, Statement, Statements, Turns

Guarded = TypeVar("Guarded", bound=type[Any])
Named = Callable[[Any, Exception, str], LagpuError | None]

_METHODS = {
    name
    for name, method in vars(Backend).items()
    if inspect.isfunction(method) and not name.startswith("_")
}


def guarded(named: Named, host: Sequence[str] = ()) -> Callable[[Guarded], Guarded]:
    """Return a class decorator for backends.

    Each method of the protocol that the class defines holds the backend's `lock` while it runs. It
    calls the backend's `enter` first unless that is None, or the method is in `host`, and enters by
    itself. ``named(backend, error, method)`` returns lagpu's error for an exception of a library,
    which is then raised from it, or None for one that passes as it is.
    """

    def guard(cls: Guarded) -> Guarded:
        for name, method in list(vars(cls).items()):
            if inspect.isfunction(method) and name in _METHODS:
                setattr(cls, name, _guarded(method, named, name not in host))
        return cls

    return guard


_LEFT_OUT = object()


def _guarded(method: Callable[..., Any], named: Named, enters: bool) -> Callable[..., Any]:
    run: Callable[..., Any]
    given = inspect.signature(method).parameters.values()
    if len(given) in (2, 3, 4) and all(x.default is x.empty for x in given):
        # Without keywords, as `execute` and `vector`: quicker than any arguments.

        @functools.wraps(method)
        def run(self: Any, x: Any, y: Any = _LEFT_OUT, z: Any = _LEFT_OUT) -> Any:
            try:
                with self.lock:
                    if enters and self.enter is not None:
                        self.enter()
                    if y is _LEFT_OUT:
                        return method(self, x)
                    return method(self, x, y) if z is _LEFT_OUT else method(self, x, y, z)
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
    fact = " ".join(str(error).split()).rstrip(".") or "an allocation failed"
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
        """Do nothing: no thread enters."""


_locked: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
_registering = threading.Lock()


def refuse_after_fork(owner: Any, name: str) -> None:
    """Make `owner.lock` raise in a forked process, with the backend's `name`."""
    with _registering:
        _locked[owner] = name


def _refuse() -> None:
    for owner, name in list(_locked.items()):
        owner.lock = _Refusal(name)


os.register_at_fork(after_in_child=_refuse)


# ---------------------------------- Override the kernel or the policy of every product of a backend
def overridden(backend: Backend, kernel: str | None, policy: str | None) -> Backend:
    """Return a backend that runs every product as if the author had named the kernel or policy."""
    if kernel is None and policy is None:
        return backend
    if kernel is not None and policy is not None:
        raise InvalidValue("--policy: --kernel leaves nothing to choose. Give one of the two.")
    option = "--kernel" if policy is None else "--policy"
    offered = backend.capabilities.kernels if policy is None else backend.capabilities.policies
    if not offered:
        raise NotSupported(
            f"{option}: the {backend.name} backend has no kernels to choose from. "
            f"Use --backend gpu or sim, or leave out {option}."
        )
    return cast(Backend, _Overridden(backend, kernel, policy, option))


def is_overridden(backend: Backend) -> bool:
    return isinstance(backend, _Overridden)


class _Overridden:
    """A backend whose products use one kernel or policy; everything else is delegated."""

    def __init__(
        self, backend: Backend, kernel: str | None, policy: str | None, option: str
    ) -> None:
        self._backend, self._option = backend, option
        self._choice: dict[str, Any] = {"kernel": kernel, "policy": policy}
        # A loop that runs as one kernel would ignore most choices.
        offered, name = backend.capabilities, (policy or "").partition(":")[0]
        self.capabilities = offered._replace(
            fuses=name in offered.fused_policies,
            searches=name in offered.systems,
            clusters=None,
            batches=None,
            patience=None,
        )
        self.last_loop = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def execute(self, statement: Statement) -> None:
        operation = statement.operation
        if isinstance(operation, Multiply) and len(operation.operand.shape) == 2:
            raise NotSupported(
                f"{self._option}: a product of matrices has no kernels to choose from. "
                f"Leave out {self._option}, or take one source at a time."
            )
        self._backend.execute(self._chosen(statement))

    def plan_loop(self, body: Statements, turns: Turns) -> Planned:
        return self._backend.plan_loop([self._chosen(s) for s in body], turns)

    def _chosen(self, statement: Statement) -> Statement:
        operation = statement.operation
        if not isinstance(operation, Multiply):
            return statement
        product = operation.product._replace(**self._choice)
        return statement._replace(operation=operation._replace(product=product))
