"""A backend told which kernel or policy to use in every product."""

from __future__ import annotations

from typing import Any, cast

from lagpu.backends.protocol import Backend, Data, Descriptor, Product
from lagpu.errors import InvalidValue, NotSupported

__all__ = ["is_steered", "steered"]


def steered(backend: Backend, kernel: str | None, policy: str | None) -> Backend:
    """Return a backend whose products run as if each one named the kernel or policy.

    Raises
    ------
    InvalidValue
        If both are named.
    NotSupported
        If the backend offers no choice; products of matrices raise it, too.
    """
    if kernel is None and policy is None:
        return backend
    if kernel is not None and policy is not None:
        raise InvalidValue("--policy: --kernel leaves it nothing to choose. Give one of them.")
    option = "--kernel" if policy is None else "--policy"
    if not hasattr(backend, "device"):
        raise NotSupported(
            f"{option}: the {backend.name} backend has no kernels to choose from. "
            f"Use --backend gpu or sim, or leave out {option}."
        )
    return cast(Backend, _Steered(backend, kernel, policy, option))


def is_steered(backend: Backend) -> bool:
    """Whether a backend was told how to run its products."""
    return isinstance(backend, _Steered)


class _Steered:
    def __init__(
        self, backend: Backend, kernel: str | None, policy: str | None, option: str
    ) -> None:
        self._backend, self._option = backend, option
        self._choice: dict[str, Any] = {"kernel": kernel, "policy": policy}

    def __getattr__(self, name: str) -> Any:
        if name == "last_loop":  # a loop that runs as one kernel would take no notice of the choice
            raise AttributeError(name)
        return getattr(self._backend, name)

    def mxv(self, w: Data, desc: Descriptor, A: Data, u: Data, how: Product) -> None:
        self._backend.mxv(w, desc, A, u, how._replace(**self._choice))

    def matrix_mxm(self, *_operands: Any) -> Data:
        raise NotSupported(
            f"{self._option}: a product of matrices has no kernels to choose from. "
            f"Leave out {self._option}, or take one source at a time."
        )
