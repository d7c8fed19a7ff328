"""Rules of types: from the type of the operands to the domain, and from it to the result."""

from __future__ import annotations

from collections.abc import Callable

from lagpu.dtypes import BOOL, FP64, INT64, DType
from lagpu.errors import DomainMismatch

__all__ = ["Rule", "arithmetic", "index", "integral", "integral64", "logical", "real", "same"]

Rule = Callable[[DType], DType]


def same(dtype: DType) -> DType:
    """Return `dtype` itself."""
    return dtype


def arithmetic(dtype: DType) -> DType:
    """Return INT64 for BOOL, and a numeric type itself."""
    return INT64 if dtype.is_bool else dtype


def real(dtype: DType) -> DType:
    """Return FP64 for integers and BOOL, and a float type itself."""
    return dtype if dtype.is_float else FP64


def integral(dtype: DType) -> DType:
    """Return INT64 for BOOL, and an integer type itself.

    Raises
    ------
    DomainMismatch
        For a float, which has no bits that count.
    """
    if dtype.is_float:
        raise DomainMismatch(f"it takes integers, not {dtype}. Convert with x.dup('INT64').")
    return arithmetic(dtype)


def integral64(dtype: DType) -> DType:
    """Return INT64 for BOOL and any integer type; raise as `integral` does."""
    integral(dtype)
    return INT64


def logical(_dtype: DType) -> DType:
    """Return BOOL, in which every value but zero is true."""
    return BOOL


def index(_dtype: DType) -> DType:
    """Return INT64, the type of positions."""
    return INT64
