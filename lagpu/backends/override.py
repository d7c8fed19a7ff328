"""Override the kernel or the policy of every product of a backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lagpu.backends.protocol import Backend
from lagpu.errors import InvalidValue, NotSupported
from lagpu.operations import FusedLoop, Multiply, Rejection, Statement, Sweep, Until

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
    offered = backend.capabilities.kernels if policy is None else backend.capabilities.policies
    if not offered:
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
        # A loop that runs as one kernel would ignore most choices.
        offered, name = backend.capabilities, (policy or "").partition(":")[0]
        self.capabilities = offered._replace(
            fuses=name in offered.fused_policies, searches=name in offered.systems, clusters=None
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

    def plan_loop(self, body: Sequence[Statement], turns: Until | Sweep) -> FusedLoop | Rejection:
        return self._backend.plan_loop([self._chosen(s) for s in body], turns)

    def _chosen(self, statement: Statement) -> Statement:
        operation = statement.operation
        if not isinstance(operation, Multiply):
            return statement
        product = operation.product._replace(**self._choice)
        return statement._replace(operation=operation._replace(product=product))
