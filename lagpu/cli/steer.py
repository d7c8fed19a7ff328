"""A backend told which kernel or policy to use in every product."""

from __future__ import annotations

from typing import Any, cast

from lagpu.backends.base import Backend, Data, Descriptor, Product
from lagpu.dtypes import DType
from lagpu.errors import InvalidValue, NotSupported

__all__ = ["steered"]


def steered(backend: Backend, kernel: str | None, policy: str | None) -> Backend:
    """Return a backend whose products run as if each one named the kernel or policy.

    Raises
    ------
    InvalidValue
        If both are given.
    NotSupported
        If the backend offers no choice.
    """
    if kernel is None and policy is None:
        return backend
    if kernel is not None and policy is not None:
        raise InvalidValue("--kernel: give one of --kernel and --policy, not both.")
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

    def block_bytes(self, dtype: DType, nrows: int, ncols: int) -> int:
        """Return more than any device has: no kernel of a block can be chosen, so none is made."""
        return 2**63

    def matrix_mxm(self, *operands: Any) -> Data:
        raise NotSupported(
            "--kernel: this multiplies two matrices, where no kernel can be chosen. "
            "Leave out --kernel and --policy."
        )

    def mxv(self, w: Data, desc: Descriptor, A: Data, u: Data, how: Product) -> None:
        self._backend.mxv(w, desc, A, u, how._replace(**self._choice))
