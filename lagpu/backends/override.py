"""Override the kernel or the policy of every product of a backend."""

from __future__ import annotations

from typing import Any, cast

from lagpu.backends.protocol import Backend
from lagpu.errors import InvalidValue, NotSupported
from lagpu.operations import Multiply, Statement

__all__ = ["is_overridden", "overridden"]


def overridden(backend: Backend, kernel: str | None, policy: str | None) -> Backend:
    """Return a backend that runs every product as if the author had named the kernel or policy.

    Raises
    ------
    InvalidValue
        If both are named.
    NotSupported
        If the backend offers no choice; products of matrices raise it too, when they run.
    """
    if kernel is None and policy is None:
        return backend
    if kernel is not None and policy is not None:
        raise InvalidValue("--policy: --kernel leaves nothing to choose. Give one of the two.")
    option = "--kernel" if policy is None else "--policy"
    if not backend.capabilities.kernels:
        raise NotSupported(
            f"{option}: the {backend.name} backend has no kernels to choose from. "
            f"Use --backend gpu or sim, or leave out {option}."
        )
    return cast(Backend, _Overridden(backend, kernel, policy, option))


def is_overridden(backend: Backend) -> bool:
    """Return True for a backend that `overridden` returned."""
    return isinstance(backend, _Overridden)


class _Overridden:
    """A backend whose products use one kernel or policy; everything else is delegated."""

    def __init__(
        self, backend: Backend, kernel: str | None, policy: str | None, option: str
    ) -> None:
        self._backend, self._option = backend, option
        self._choice: dict[str, Any] = {"kernel": kernel, "policy": policy}
        # A loop that runs as one kernel would ignore the choice.
        self.capabilities = backend.capabilities._replace(fuses=False, searches=False)
        self.last_loop = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def execute(self, statement: Statement) -> None:
        operation = statement.operation
        if isinstance(operation, Multiply):
            if len(operation.operand.shape) == 2:
                raise NotSupported(
                    f"{self._option}: a product of matrices has no kernels to choose from. "
                    f"Leave out {self._option}, or take one source at a time."
                )
            product = operation.product._replace(**self._choice)
            statement = statement._replace(operation=operation._replace(product=product))
        self._backend.execute(statement)
