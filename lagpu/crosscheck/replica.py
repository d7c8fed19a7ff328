"""Replicas: vectors and matrices on several backends at once, and records with replicas in them.

Statements are records, so a walk over their fields replaces replicas by one backend's handles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lagpu.crosscheck.host import HostMatrix, Terms
from lagpu.dtypes import DType

__all__ = ["Replica", "part", "replaced", "replicas_in"]


class Replica:
    """The handle of a vector or matrix on several backends, with each backend's handle.

    Attributes
    ----------
    parts : list
        The backends' handles, the oracle's first.
    dtype : DType
        Type of the values.
    shape : tuple of int
        The size of each dimension.
    free : bool
        Whether values may depend on choices of `any`.
    possible : Terms or None
        The possible values at each index, if `free` and known.
    host : HostMatrix or None
        The oracle's matrix on the host, until the matrix is written.
    """

    __slots__ = ("dtype", "free", "host", "parts", "possible", "shape")

    def __init__(self, parts: list[Any], dtype: DType, shape: tuple[int, ...]) -> None:
        self.parts, self.dtype, self.shape = parts, dtype, shape
        self.free = False
        self.possible: Terms | None = None
        self.host: HostMatrix | None = None

    @property
    def ndim(self) -> int:
        """1 for a vector, 2 for a matrix."""
        return len(self.shape)

    @property
    def kind(self) -> str:
        """``"vector"`` or ``"matrix"``."""
        return "vector" if self.ndim == 1 else "matrix"


def replaced(x: Any, change: Callable[[Replica], Any]) -> Any:
    """Return a record in which `change` has replaced each replica."""
    if isinstance(x, Replica):
        return change(x)
    if not isinstance(x, tuple):
        return x
    parts = [replaced(one, change) for one in x]
    if all(new is old for new, old in zip(parts, x, strict=True)):
        return x
    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)


def part(x: Any, k: int) -> Any:
    """Return a record with the handles of backend `k`."""
    return replaced(x, lambda replica: replica.parts[k])


def replicas_in(x: Any) -> Iterator[Replica]:
    """Yield the replicas in a record."""
    if isinstance(x, Replica):
        yield x
    elif isinstance(x, tuple):
        for one in x:
            yield from replicas_in(one)
