"""What users pass, checked and typed: scalars, sizes, indices, values, operators."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from lagpu.algebra import binary, indexunary, semiring, unary
from lagpu.backends.base import Applied
from lagpu.dtypes import BOOL, FP64, INT64, DType, lookup
from lagpu.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound, InvalidValue
from lagpu.operators import BinaryOp, IndexUnaryOp, Monoid, Semiring, UnaryOp

__all__ = [
    "applied",
    "as_semiring",
    "as_size",
    "as_values",
    "binary_operator",
    "combine",
    "index_array",
    "require_distinct",
    "scalar_dtype",
    "scalar_value",
    "selected",
    "single_index",
    "sorted_distinct",
]

Array = np.ndarray[Any, Any]


def scalar_value(value: Any, dtype: DType, what: str) -> Any:
    """Return `value` as a NumPy scalar of `dtype`.

    Raises
    ------
    DomainMismatch
        If it is no number, or an integer that `dtype` does not hold.
    """
    kind = scalar_dtype(value, dtype, what)
    number = getattr(value, "value", value)
    if kind.is_float and not dtype.is_float:
        return cast_scalar(number, dtype)
    if dtype.numpy.kind in "iu" and not dtype.smallest <= number <= dtype.largest:
        raise DomainMismatch(f"{what}: {number} does not fit {dtype}.")
    return dtype.numpy.type(number)


def cast_scalar(number: float, dtype: DType) -> Any:
    """Cast a float as GraphBLAS does: toward zero, saturating, NaN to 0."""
    if dtype.is_bool:
        return np.bool_(number != 0)
    if np.isnan(number):
        return dtype.numpy.type(0)
    if number >= dtype.largest:
        return dtype.largest
    return dtype.smallest if number <= dtype.smallest else dtype.numpy.type(int(number))


def scalar_dtype(value: Any, like: DType, what: str) -> DType:
    """Return the type of a scalar beside operands of type `like`.

    Python numbers are weak, as in NumPy 2: an ``int`` beside INT32 is INT32 if it fits.
    """
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, int):
        if like.is_bool or like.is_float:
            return like if like.is_float else INT64
        return like if like.smallest <= value <= like.largest else INT64
    if isinstance(value, float) and not isinstance(value, np.floating):
        return like if like.is_float else FP64
    if isinstance(value, np.generic):
        return lookup(value.dtype)
    dtype = getattr(value, "dtype", None)
    if isinstance(dtype, DType) and getattr(value, "ndim", None) == 0:
        return dtype
    raise DomainMismatch(f"{what}: {type(value).__name__} is not a number.")


def as_size(size: Any, what: str) -> int:
    """Return a size as an int that is not negative."""
    try:
        n = int(size.__index__())
    except AttributeError:
        raise DomainMismatch(f"{what}: size {size!r} is not an integer.") from None
    if n < 0:
        raise DimensionMismatch(f"{what}: size {n} < 0.")
    return n


def single_index(i: Any, size: int, what: str) -> int:
    """Return `i` as an int in ``0 .. size-1``.

    Raises
    ------
    DomainMismatch
        If it is not an integer.
    IndexOutOfBound
        If it lies outside; negative ones do, as in GraphBLAS.
    """
    if isinstance(i, (bool, np.bool_)):
        raise DomainMismatch(f"{what}: index {i!r} is not an integer.")
    try:
        i = operator.index(i)
    except TypeError:
        raise DomainMismatch(f"{what}: index {i!r} is not an integer.") from None
    if not 0 <= i < size:
        raise IndexOutOfBound(f"{what}: index {i} is outside 0 .. {size - 1}.")
    return int(i)


def index_array(indices: Any, size: int, what: str) -> Array | None:
    """Return a list of indices as INT64, or None for all of them in order.

    Raises
    ------
    DomainMismatch, IndexOutOfBound
        As `single_index`.
    """
    if isinstance(indices, slice):
        chosen = range(*indices.indices(size))
        return None if chosen == range(size) else np.arange(chosen.start, chosen.stop, chosen.step)
    array = np.asarray(indices)
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DomainMismatch(
            f"{what}: indices are {array.ndim}-D {array.dtype}, not a list of integers."
        )
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= size:
        raise IndexOutOfBound(
            f"{what}: index {low if low < 0 else high} is outside 0 .. {size - 1}."
        )
    return array.astype(np.int64, copy=False)


def require_distinct(indices: Array | None, what: str) -> None:
    """Raise `InvalidValue` if an index is given twice."""
    if indices is not None and len(np.unique(indices)) != len(indices):
        raise InvalidValue(f"{what}: an index is given twice, so its value is not defined.")


def as_values(values: Any, dtype: Any, count: int, what: str) -> tuple[Any, DType]:
    """Return values as an array or a NumPy scalar of one type, and the type."""
    if np.ndim(values) == 0:
        kind = lookup(dtype) if dtype is not None else scalar_dtype(values, INT64, what)
        return scalar_value(values, kind, what), kind
    array = values if hasattr(values, "dtype") else np.asarray(values)
    kind = lookup(array.dtype if dtype is None else dtype)
    if array.shape != (count,):
        raise DimensionMismatch(f"{what}: {count} indices != values of shape {array.shape}.")
    lookup(array.dtype)  # no objects, no complex numbers
    return array.astype(kind.numpy, copy=False), kind


def sorted_distinct(indices: Array, values: Any, kind: DType, dup_op: Any) -> tuple[Array, Any]:
    """Sort pairs by index and combine those of one index."""
    if len(indices) < 2 or (np.diff(indices) > 0).all():
        return indices, values
    order = np.argsort(indices, kind="stable")
    indices = indices[order]
    if np.ndim(values):
        values = values[order]
    first = np.concatenate(([True], np.diff(indices) > 0))
    if first.all():
        return indices, values
    if dup_op is None:
        twice = int(indices[~first][0])
        raise InvalidValue(
            f"from_coo: index {twice} is given twice. Give dup_op=, e.g. binary.plus."
        )
    dense = np.broadcast_to(values, indices.shape)
    return indices[first], combine(dense, np.flatnonzero(first), binary_operator(dup_op), kind)


def combine(values: Array, starts: Array, op: BinaryOp, kind: DType) -> Array:
    """Combine runs of values that begin at `starts`, each from left to right."""
    total: Array = values[starts].copy()
    ends = np.append(starts[1:], len(values))
    for step in range(1, int((ends - starts).max(initial=0))):
        more = starts + step < ends
        total[more] = op.numpy(total[more], values[starts[more] + step]).astype(kind.numpy)
    return total


def binary_operator(op: Any) -> BinaryOp:
    """Return the operator that `op`, a monoid or a name means, if it reads values.

    Raises
    ------
    DomainMismatch
        If it is positional, or no binary operator.
    """
    found = op.op if isinstance(op, Monoid) else binary.lookup(op)
    if found.positional:
        raise DomainMismatch(f"{found!r}: reads the indices of a product; use it in a semiring.")
    return found


def as_semiring(op: Semiring | str) -> Semiring:
    """Return the semiring itself, or the one of this name."""
    return semiring.lookup(op)


def applied(dtype: DType, op: Any, left: Any, right: Any) -> tuple[Any, Applied]:
    """Return the operator and how `apply` uses it on entries of type `dtype`."""
    if isinstance(op, str):
        table = next((t for t in (unary, binary, indexunary) if op in t), unary)
        op = table[op]
    if isinstance(op, UnaryOp):
        if left is not None or right is not None:
            raise InvalidValue(f"apply: {op!r} takes no further operand.")
        return op, Applied(*op.types(dtype))
    if isinstance(op, IndexUnaryOp):
        _, thunk, domain = selected(dtype, op, 0 if right is None else right, applies=True)
        return op, Applied(domain, op.result(domain), None, thunk)
    op = binary_operator(op)
    if (left is None) == (right is None):
        raise InvalidValue(f"apply: {op!r} needs one of left= and right=.")
    bound = right if left is None else left
    domain, result = op.types(dtype, scalar_dtype(bound, dtype, "apply"))
    number = scalar_value(bound, domain, "apply")
    return op, Applied(domain, result, *((None, number) if left is None else (number, None)))


def selected(
    dtype: DType, op: Any, thunk: Any, *, applies: bool = False
) -> tuple[IndexUnaryOp, Any, DType]:
    """Return the operator, its thunk as a NumPy scalar, and its domain."""
    found = indexunary.lookup(op)
    if not applies and found.result(found.domain(dtype)) is not BOOL:
        raise DomainMismatch(f"select: {found!r} has no BOOL result. Use apply.")
    if not found.uses_value:
        return found, scalar_value(thunk, INT64, found.name), INT64
    domain, _ = found.types(dtype, scalar_dtype(thunk, dtype, found.name))
    return found, scalar_value(thunk, domain, found.name), domain
