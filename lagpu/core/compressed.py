"""Compressed sparse arrays as users pass them: checks, and conversion from rows to columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lagpu.backends.protocol import Backend
from lagpu.core.arguments import as_size, integer_array, outside
from lagpu.core.exchange.arrays_in import array_in
from lagpu.core.expr import is_operand
from lagpu.core.hints import how_to_enter, name_of
from lagpu.dtypes import DType
from lagpu.errors import BackendMismatch, DimensionMismatch, InvalidValue
from lagpu.operations import Assign, Descriptor, Statement

__all__ = ["array_of", "check_compressed", "extent", "from_rows", "transpose_compressed"]

Array = np.ndarray[Any, Any]


def array_of(x: Any, backend: Backend, what: str) -> Any:
    """Return the values of a full vector, or any other array, as an array on a backend.

    What `lagpu.core.exchange.arrays_in.array_in` raises, and:

    Raises
    ------
    BackendMismatch
        If the vector is not on `backend`.
    InvalidValue
        If the vector is not full.
    """
    if not is_operand(x, 1):
        return array_in(x, backend, what)
    if x.backend is not backend:
        usual = f"Give like={name_of(x)}, or move it with .to({backend.name!r})."
        raise BackendMismatch(
            f"{what}: {x.name} is on {x.backend.name}, the new object on {backend.name}. "
            + (how_to_enter(backend, x) or usual)
        )
    if x.nvals != x.size:
        raise InvalidValue(
            f"{what}: {x.name} has {x.nvals} of {x.size} entries. Give a full vector."
        )
    return backend.vector_values(x.data, True)


def transpose_compressed(
    ptr: Array, idx: Array, values: Any, shape: tuple[int, int]
) -> tuple[Array, Array, Any]:
    """Convert compressed rows of a matrix of this shape to compressed columns, sorted."""
    iso = np.ndim(values) == 0
    data = np.broadcast_to(np.int8(1), len(idx)) if iso else values
    other = scipy.sparse.csr_array((data, idx, ptr), shape=shape).tocsc()
    return other.indptr, other.indices, values if iso else other.data


def from_rows(
    backend: Backend, ptr: Any, idx: Any, values: Any, dtype: DType, shape: tuple[int, int]
) -> Any:
    """Return a backend's matrix of checked compressed rows; device arrays stay on the device."""
    if any(hasattr(x, "__cuda_array_interface__") for x in (ptr, idx, values)):
        out = backend.matrix(dtype, shape)
        by_rows = backend.matrix_from_csc(ptr, idx, values, dtype, shape[::-1])
        backend.execute(Statement(out, Descriptor(), Assign(by_rows, None, True), dtype))
        return out
    columns = transpose_compressed(ptr, idx, values, shape)  # needs no device memory
    return backend.matrix_from_csc(*columns, dtype, shape)


def check_compressed(
    ptr: Any, idx: Any, major: int | None, minor: int, what: str
) -> tuple[tuple[int, int], Any, Any]:
    """Check compressed arrays; return ((major, minor), ptr, idx).

    Raises
    ------
    DimensionMismatch
        If the pointer does not have ``major + 1`` elements.
    InvalidValue
        If the pointer does not rise from 0 to ``len(idx)``, or indices do not rise.
    IndexOutOfBound
        If an index is not in ``0 .. minor-1``.
    """
    ptr, idx = integer_array(ptr, what), integer_array(idx, what)
    minor = as_size(minor, what)
    if major is not None and len(ptr) != as_size(major, what) + 1:
        raise DimensionMismatch(f"{what}: the pointer has {len(ptr)} elements != {major} + 1.")
    # Each question to a device is an array until the end, so that it answers once.
    if len(ptr) == 0 or bool((ptr[:1] != 0) | (ptr[-1:] != len(idx)) | (ptr[1:] < ptr[:-1]).any()):
        raise InvalidValue(f"{what}: the pointer must rise from 0 to {len(idx)}.")
    extent(idx, minor, f"{what}: index")
    if len(idx) > 1:
        falls = idx != idx
        falls[1:] = idx[1:] <= idx[:-1]
        falls[ptr % len(idx)] = False  # where a row or column begins; the first never falls
        if bool(falls.any()):
            raise InvalidValue(f"{what}: indices must rise within each row or column.")
    return (len(ptr) - 1, minor), ptr, idx


def extent(indices: Any, size: int | None, what: str) -> int:
    """Return `size`, checked against the indices, or for None the largest index plus one."""
    low, high = (int(indices.min()), int(indices.max())) if len(indices) else (0, -1)
    n = high + 1 if size is None else as_size(size, what)
    if low < 0 or high >= n:
        raise outside(what, low if low < 0 else high, n)
    return n
