"""The seven value types, each with its GraphBLAS name, NumPy dtype and one-word C type."""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import Any

import numpy as np

from lagpu.errors import DomainMismatch, UnknownType

#: An array of the host.
Array = np.ndarray[Any, Any]


class DType:
    """A value type: its name in GraphBLAS, such as ``"INT32"``, and the same type in NumPy.

    `ctype` is the same type in a kernel: one word, as in ``-DLG_X=i32``. NumPy scalars of the type
    are its `zero`, `smallest` and `largest` value, ``-inf`` and ``inf`` for floats.
    """

    def __init__(self, name: str, numpy: np.dtype[Any], ctype: str) -> None:
        self.name, self.numpy, self.ctype = name, numpy, ctype
        self.is_bool, self.is_float, self.zero = numpy.kind == "b", numpy.kind == "f", numpy.type(0)
        ends: tuple[Any, Any] = (-np.inf, np.inf)
        if not self.is_float:
            ends = (0, 1) if self.is_bool else (np.iinfo(numpy).min, np.iinfo(numpy).max)
        self.smallest, self.largest = map(numpy.type, ends)

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        """Whether `other` means this type, as ``int`` and ``"INT64"`` mean INT64."""
        if self is other or other is None or isinstance(other, DType):
            return self is other
        try:
            return lookup(other) is self
        except DomainMismatch:
            return False

    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return lookup, (self.name,)  # one object a type, also after unpickling

    def instead_for(self, number: int) -> str:
        """Return what to write where a whole number does not fit this integer type."""
        return f"Use a {'signed' if number < 0 <= int(self.smallest) else 'wider'} type."


BOOL = DType("BOOL", np.dtype(np.bool_), "bool")
INT32 = DType("INT32", np.dtype(np.int32), "i32")
INT64 = DType("INT64", np.dtype(np.int64), "i64")
UINT32 = DType("UINT32", np.dtype(np.uint32), "u32")
UINT64 = DType("UINT64", np.dtype(np.uint64), "u64")
FP32 = DType("FP32", np.dtype(np.float32), "f32")
FP64 = DType("FP64", np.dtype(np.float64), "f64")

ALL: tuple[DType, ...] = (BOOL, INT32, INT64, UINT32, UINT64, FP32, FP64)

_BY_NAME = {t.name: t for t in ALL}
_BY_NUMPY = {t.numpy: t for t in ALL}
# Narrow types widen without loss; wider and complex types are not supported.
_WIDENED = {"int8": INT32, "int16": INT32, "uint8": UINT32, "uint16": UINT32, "float16": FP32}


def lookup(dtype: Any) -> DType:
    """Return the `DType` that a name, a NumPy dtype or a Python type means.

    Parameters
    ----------
    dtype : DType, str, numpy.dtype or type
        ``INT32``, ``"INT32"``, ``"int32"``, ``numpy.int32``, ``int`` (INT64), ``float`` (FP64).
        8- and 16-bit types, as ``"UINT8"``, widen to the 32-bit type that holds them.

    Raises
    ------
    UnknownType
        For any other type; it is a `DomainMismatch` and a ValueError.
    """
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, str):
        named = _BY_NAME.get(dtype.upper()) or _WIDENED.get(dtype.lower())
        if named is not None:
            return named
    wanted = np.dtype(object)
    if isinstance(dtype, (str, type, np.dtype)):  # not what only has a type, as an array has
        with suppress(TypeError, ValueError):
            wanted = np.dtype(dtype)
    found = _BY_NUMPY.get(wanted.newbyteorder("=")) or _WIDENED.get(wanted.name)
    if found is None:
        shown = dtype is None or isinstance(dtype, (str, type, np.dtype, int, float))
        given = repr(dtype) if shown else f"an object of {type(dtype).__name__}"
        raise UnknownType(f"dtype: {given} is not a lagpu type. Use one of {', '.join(_BY_NAME)}.")
    return found


@functools.cache
def unify(a: DType, b: DType) -> DType:
    """Return the smallest type that holds both, by NumPy's promotion rules."""
    return a if a is b else lookup(np.promote_types(a.numpy, b.numpy))


def index_kind(size: int) -> type[np.signedinteger[Any]]:
    """Return NumPy's INT32 if it holds ``0 .. size``, else INT64."""
    return np.int32 if size < 2**31 else np.int64


def as_array(values: Any) -> np.ndarray[Any, Any]:
    """Return values as an array, of UINT64 if only that has all of these whole numbers.

    NumPy rounds a list of them to FP64 if a smaller one is among them.
    """
    array = np.asarray(values)
    if array.dtype == np.float64 and not hasattr(values, "dtype") and (array >= 2.0**63).any():
        listed = np.asarray(values, object)
        if all(isinstance(x, int | np.integer) for x in listed.flat) and listed.min() >= 0:
            return listed.astype(np.uint64)
    return array


def cast(values: Any, dtype: DType) -> Any:
    """Return an array or NumPy scalar cast as GraphBLAS casts.

    Floats become integers toward zero, saturating, and NaN becomes 0; integers wrap; as BOOL every
    value but zero is True. (In C, and so in NumPy, the cast of a float outside the range is
    undefined.)
    """
    values = np.asarray(values)
    if values.dtype == dtype.numpy:
        return values[()]
    if dtype.is_bool:
        return (values != 0)[()]
    # A large FP64 is inf in FP32, and so are the bounds of integers in NumPy's float16.
    with np.errstate(over="ignore"):
        if values.dtype.kind != "f" or dtype.is_float:
            return values.astype(dtype.numpy)[()]
        low, high = values <= float(dtype.smallest), values >= float(dtype.largest)
    inside = np.where(low | high | np.isnan(values), 0, values).astype(dtype.numpy)
    return np.where(high, dtype.largest, np.where(low, dtype.smallest, inside))[()]
