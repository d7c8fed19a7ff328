"""An object that lives on several backends at once, and what its makers say of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.backends.protocol import Descriptor
from lagpu.crosscheck.host import HostMatrix, Terms
from lagpu.dtypes import BOOL, DType

__all__ = ["MAKING", "Twin", "as_written", "part", "writes_part"]

#: Methods that make an object: its type and shape, from their arguments.
MAKING: dict[str, Callable[..., tuple[DType, tuple[int, ...]]]] = {
    "vector": lambda dtype, size: (dtype, (size,)),
    "vector_from_coo": lambda indices, values, dtype, size: (dtype, (size,)),
    "vector_dup": lambda v, dtype: (dtype, v.shape),
    "matrix_diag": lambda A, k: (A.dtype, (_diagonal(A.shape, k),)),
    "matrix": lambda dtype, shape: (dtype, shape),
    "matrix_from_coo": lambda rows, cols, values, dtype, shape, dup: (dtype, shape),
    "matrix_from_csc": lambda ptr, idx, values, dtype, shape: (dtype, shape),
    "matrix_dup": lambda A, dtype: (dtype, A.shape),
    "matrix_transpose": lambda A: (A.dtype, A.shape[::-1]),
    "matrix_apply": lambda A, op, how: (how.result, A.shape),
    "matrix_select": lambda A, op, thunk: (A.dtype, A.shape),
    "matrix_mxm": lambda A, B, op, turned, desc: (
        op.types(A.dtype, B.dtype)[1],
        (_turned(A, turned[0])[0], _turned(B, turned[1])[1]),
    ),
    **dict.fromkeys(
        ("matrix_ewise_add", "matrix_ewise_mult", "matrix_ewise_union"),
        lambda A, B, op, turned, *defaults: (
            op.types(A.dtype, B.dtype)[1],
            _turned(A, turned[0]),
        ),
    ),
    "matrix_kronecker": lambda A, B, op, turned: (
        op.types(A.dtype, B.dtype)[1],
        (
            A.shape[0 + turned[0]] * B.shape[0 + turned[1]],
            A.shape[1 - turned[0]] * B.shape[1 - turned[1]],
        ),
    ),
    "matrix_extract": lambda A, *lists: (
        A.dtype,
        tuple(n if x is None else len(x) for n, x in zip(A.shape, lists, strict=True)),
    ),
    "matrix_write": lambda C, desc, T: (C.dtype, C.shape),
    "matrix_assign": lambda C, desc, *rest: (C.dtype, C.shape),
    "matrix_assign_scalar": lambda C, desc, *rest: (C.dtype, C.shape),
    "matrix_selection": lambda f, nrows, turned: (
        BOOL,
        (f.shape[0], nrows) if turned else (nrows, f.shape[0]),
    ),
    "matrix_from_diag": lambda v, k: (v.dtype, (v.shape[0] + abs(k),) * 2),
}


def _diagonal(shape: tuple[int, int], k: int) -> int:
    return min(shape[0], shape[1] - k) if k >= 0 else min(shape[0] + k, shape[1])


class Twin:
    """One vector or matrix on each backend.

    Attributes
    ----------
    parts : list
        Its data on each backend, the oracle's first.
    dtype : DType
        Type of the values.
    shape : tuple of int
        Sizes.
    free : bool
        Whether values may depend on what `any` chose.
    may : Terms or None
        What values there may be at each of its indices, if they are free and that is known.
    """

    __slots__ = ("dtype", "free", "host", "may", "parts", "shape")

    def __init__(self, parts: list[Any], dtype: DType, shape: tuple[int, ...]) -> None:
        self.parts, self.dtype, self.shape = parts, dtype, shape
        self.free = False
        self.host: HostMatrix | None = None
        self.may: Terms | None = None


def as_written(
    method: str, args: tuple[Any, ...]
) -> tuple[Twin | None, Descriptor, tuple[Any, ...]]:
    """Return a maker's arguments as those of a method that writes: (output before, how, operands).

    A masked product does not accumulate or replace: `matrix_write` does, behind it.
    """
    if method in ("matrix_write", "matrix_assign", "matrix_assign_scalar"):
        return args[0], args[1], args[2:]
    if method == "matrix_mxm":
        return None, args[-1]._replace(accum=None, replace=False), args[:-1]
    if method == "matrix_from_coo":
        return None, Descriptor(), tuple(map(_on_host, args[:3]))
    return None, Descriptor(), args


def _on_host(x: Any) -> Any:
    return x.get() if hasattr(x, "get") else np.asarray(x)


def writes_part(method: str, args: tuple[Any, ...]) -> bool:
    """Whether an assignment of these operands is to some indices alone."""
    return "assign" in method and any(isinstance(x, np.ndarray) for x in args[1:])


def _turned(A: Twin, turned: bool) -> tuple[int, ...]:
    return A.shape[::-1] if turned else A.shape


def part(x: Any, k: int) -> Any:
    """Return an argument as backend `k` takes it."""
    if isinstance(x, Twin):
        return x.parts[k]
    if isinstance(x, Descriptor) and x.mask is not None:
        return x._replace(mask=x.mask.parts[k])
    return x
