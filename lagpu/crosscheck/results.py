"""The parts of an algorithm's result: vectors, matrices, arrays, numbers and strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lagpu.core.matrix import Matrix
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector
from lagpu.core.views import SelectionMatrix, TransposedMatrix, TransposedSelection
from lagpu.crosscheck.host import Entries
from lagpu.dtypes import DType, lookup
from lagpu.errors import DomainMismatch

__all__ = ["can_compare", "entries_of", "leaves"]

_NUMBERS = (bool, int, float, complex, np.generic)


def leaves(x: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield (name, part) of a result; lists, tuples and dicts are taken apart."""
    if isinstance(x, (list, tuple)):
        for k, one in enumerate(x):
            yield from leaves(one, f"{name}[{k}]")
    elif isinstance(x, dict):
        for key, one in x.items():
            yield from leaves(one, f"{name}[{key!r}]")
    elif isinstance(x, (SelectionMatrix, TransposedSelection)):
        yield name, x.stored.operand
    elif isinstance(x, TransposedMatrix):
        yield name, x.stored
    else:
        yield name, x


def can_compare(x: Any) -> bool:
    """Return True if parts like `x` can be compared, unlike generators and an author's objects."""
    if isinstance(x, np.ndarray):
        return not x.dtype.hasobject
    return x is None or isinstance(x, (Vector, Matrix, Scalar, *_NUMBERS, str, bytes))


def entries_of(x: Any) -> Entries | None:
    """Return a part as entries; None if it has no values of lagpu's types."""
    if isinstance(x, Vector):
        return Entries(*x.to_coo(), x.dtype, x.size)
    if isinstance(x, Matrix):
        ptr, idx, values = x.to_csc()
        keys = np.repeat(np.arange(x.ncols), np.diff(ptr)) * x.nrows + idx
        return Entries(keys, values, x.dtype, x.nrows * x.ncols, x.nrows)
    if isinstance(x, Scalar):
        return _number(x.value, x.dtype)
    if not isinstance(x, (np.ndarray, *_NUMBERS)):
        return None
    array = np.asarray(x)
    try:
        dtype = lookup(array.dtype)
    except DomainMismatch:
        return None
    if array.ndim == 0:
        return _number(x, dtype)
    nrows = array.shape[0] if array.ndim == 2 else 0
    values = array.ravel(order="F")  # in the order of the indices of a matrix
    return Entries(np.arange(len(values)), values, dtype, len(values), nrows)


def _number(value: Any, dtype: DType) -> Entries:
    where = np.zeros(int(value is not None), np.int64)
    return Entries(where, np.full(len(where), value or 0, dtype.numpy), dtype, 0)
