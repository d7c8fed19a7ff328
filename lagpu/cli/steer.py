"""A backend told which kernel or policy to use in every product."""

from __future__ import annotations

from typing import Any, cast

from lagpu.backends.base import Backend, Data, Descriptor, Product
from lagpu.errors import NotSupported

__all__ = ["steered"]


def steered(backend: Backend, kernel: str | None, policy: str | None) -> Backend:
    """Return a backend whose products run as if each one named the kernel or policy.

    Raises
    ------
    NotSupported
        If the backend offers no choice.
    """
    if kernel is None and policy is None:
        return backend
    if not hasattr(backend, "device"):
        raise NotSupported(
            f"--kernel: the {backend.name} backend has no kernels to choose from. "
            "Use --backend gpu or sim, or leave out --kernel and --policy."
        )
    return cast(Backend, _Steered(backend, kernel, policy))


class _Steered:
    def __init__(self, backend: Backend, kernel: str | None, policy: str | None) -> None:
        self._backend = backend
        self._choice: dict[str, Any] = {"kernel": kernel, "policy": policy}

    def __getattr__(self, name: str) -> Any:
        if name == "last_loop":  # a loop that runs as one kernel would take no notice of the choice
            raise AttributeError(name)
        return getattr(self._backend, name)

    def mxv(self, w: Data, desc: Descriptor, A: Data, u: Data, how: Product) -> None:
        self._backend.mxv(w, desc, A, u, how._replace(**self._choice))
