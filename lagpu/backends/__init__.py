"""The registry of backends, each of which is imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from lagpu.backends.protocol import Backend
from lagpu.errors import BackendUnavailable, DomainMismatch, InvalidValue

__all__ = ["available", "bytes_on_gpu", "choose", "get", "names", "register", "use"]

# name -> (module, function that makes the backend)
_MAKERS: dict[str, tuple[str, str]] = {
    "cpu": ("lagpu.backends.cpu", "make"),
    "gpu": ("lagpu.backends.gpu", "make_gpu"),
    "sim": ("lagpu.backends.gpu", "make_sim"),
}
_loaded: dict[str, Backend] = {}
_default: ContextVar[str | Backend] = ContextVar("lagpu_backend", default="auto")


def names() -> tuple[str, ...]:
    """Return the names that `get` accepts, besides ``"auto"``."""
    return tuple(name for name in dict.fromkeys((*_MAKERS, *_loaded)) if name != "auto")


def get(backend: str | Backend | None = None) -> Backend:
    """Return a backend.

    Parameters
    ----------
    backend : str or Backend, optional
        ``"cpu"``, ``"gpu"``, ``"sim"``, a registered name, or ``"auto"``: gpu if there is a device,
        else cpu. None means the default that `use` sets, initially ``"auto"``. A `Backend` is
        returned as it is.

    Raises
    ------
    BackendUnavailable
        If the backend's package, device or compiler is missing; the message says what to install.
    InvalidValue
        If there is no backend of this name.
    """
    if backend is None:
        backend = _default.get()
    if not isinstance(backend, str):
        if not hasattr(backend, "plan_loop"):
            raise DomainMismatch(
                f"backend: {type(backend).__name__} is neither a name nor a Backend. "
                f"Use one of auto, {', '.join(names())}."
            )
        return backend
    found = _loaded.get(backend)
    return found if found is not None else _load(backend)


def choose(like: Any, backend: str | Backend | None) -> Backend:
    """Return the backend of `like`, or the one that `backend` names.

    Raises
    ------
    InvalidValue
        If both are given and differ.
    """
    if like is None:
        return get(backend)
    place = getattr(like, "backend", None)
    if place is None:
        raise DomainMismatch(f"like: {type(like).__name__} is neither a Vector nor a Matrix.")
    if backend is not None and get(backend) is not place:
        raise InvalidValue(f"like: is on {place.name}, not on {backend}. Give one of the two.")
    return get(place)


def _load(name: str) -> Backend:
    if name == "auto":
        try:
            _loaded["auto"] = get("gpu")
        except BackendUnavailable:
            _loaded["auto"] = get("cpu")
    elif name in _MAKERS:
        module, function = _MAKERS[name]
        make = cast(Callable[[], Backend], getattr(importlib.import_module(module), function))
        _loaded[name] = make()
    else:
        raise InvalidValue(f"backend: there is no {name!r}. Use one of auto, {', '.join(names())}.")
    return _loaded[name]


def register(backend: Backend) -> None:
    """Add a backend under its own name.

    Raises
    ------
    InvalidValue
        If the name is taken.
    """
    if backend.name in (*names(), "auto"):
        raise InvalidValue(f"backend: {backend.name!r} is taken. Choose another name.")
    _loaded[backend.name] = backend


def available() -> dict[str, str]:
    """Return each backend's name with ``"yes"``, or with the reason why it is unavailable."""
    found = {}
    for name in names():
        try:
            get(name)
            found[name] = "yes"
        except BackendUnavailable as error:
            found[name] = str(error)
    return found


def bytes_on_gpu(out_degree: Any, symmetric: bool) -> tuple[int, int]:
    """Estimate, without a GPU, a graph's bytes on a GPU: (the graph, the graph and a search).

    Parameters
    ----------
    out_degree : array of int, (n,)
        Entries of each row.
    symmetric : bool
        Whether the rows equal the columns; else a search reads both.
    """
    estimate = importlib.import_module("lagpu.backends.gpu.fused.search_grid").estimated_bytes
    return cast(tuple[int, int], estimate(out_degree, symmetric))


@contextmanager
def use(backend: str | Backend) -> Iterator[Backend]:
    """Set the default backend of new objects, inside ``with lagpu.use("gpu"): ...``."""
    place = get(backend)
    token = _default.set(place)
    try:
        yield place
    finally:
        _default.reset(token)
