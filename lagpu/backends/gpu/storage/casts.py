"""Arrays and numbers cast as GraphBLAS casts, and the type that holds an index."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.dtypes import DType

__all__ = ["cast_array", "cast_number", "index_type"]

Array = Any  # numpy.ndarray or cupy.ndarray


def index_type(largest: int) -> type[np.signedinteger[Any]]:
    """Return INT32 if it holds 0 .. `largest`, else INT64."""
    return np.int32 if largest < 2**31 else np.int64


def cast_number(number: Any, dtype: DType) -> Any:
    """Return a NumPy scalar cast as `cast_array` casts."""
    if number.dtype == dtype.numpy:
        return number
    return cast_array(np, np.array([number]), dtype)[0]


def cast_array(xp: Any, array: Array, dtype: DType) -> Array:
    """Return a copy cast as GraphBLAS casts: saturating, NaN to 0, to BOOL what is not 0."""
    kind = dtype.numpy
    if array.dtype.kind != "f" or kind.kind == "f":
        with np.errstate(over="ignore"):  # a large double is an infinite float
            return array.astype(kind)
    if kind.kind == "b":
        return array != 0
    info = np.iinfo(kind)
    low, high = array <= info.min, array >= info.max
    safe = xp.where(low | high | xp.isnan(array), 0, array)
    return xp.where(low, info.min, xp.where(high, info.max, safe.astype(kind))).astype(kind)
