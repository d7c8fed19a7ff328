"""Data in and out of vectors and matrices: checked arrays, dense arrays, DLPack, pickles."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
import scipy.sparse

from lagpu import backends
from lagpu.backends.protocol import Backend
from lagpu.core.arguments import array_in, as_fill, as_size, integer_array, outside
from lagpu.core.expr import Updater, assign, is_operand
from lagpu.core.hints import how_to_enter, name_of
from lagpu.dtypes import DType, cast, lookup
from lagpu.errors import BackendMismatch, DimensionMismatch, InvalidValue
from lagpu.operations import Assign, AssignScalar, Descriptor, Statement

Array = np.ndarray[Any, Any]
T = TypeVar("T")
_HOST, _CUDA = 1, 2  # kDLCPU, kDLCUDA
_LARGE = 1 << 18  # entries: from here on it pays to have a device put them in their places


def array_of(x: Any, backend: Backend, what: str) -> Any:
    """Return the values of a full vector on a backend, or what `array_in` makes of an array."""
    if not is_operand(x, 1):
        return array_in(x, backend, what)
    if x.backend is not backend:
        usual = f"Give like={name_of(x)}, or move it with .to({backend.name!r})."
        raise BackendMismatch(
            f"{what}: {x.name} is on {x.backend.name}, the new object on {backend.name}. "
            + (how_to_enter(backend, x) or usual)
        )
    require_full(x, x.nvals, what, "Give a full vector.")
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
    """Return ((major, minor), ptr, idx), or raise what is wrong with compressed arrays."""
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


def filled(out: T, value: Any) -> T:
    """Return `out` with `value` at every position."""
    assign(Updater(out), value)
    return out


def as_type(values: Any, dtype: Any) -> Any:
    """Return an array cast to `dtype`, or as it is for None."""
    return values if dtype is None else np.asarray(cast(values, lookup(dtype)))


def split(rows: Iterable[Any], width: int) -> list[list[Any]]:
    """Return the columns of an iterable of tuples of this width."""
    listed = [tuple(row) for row in rows]
    return [list(column) for column in zip(*listed, strict=True)] if listed else [[]] * width


# ------------------------------------------------------------------------------------------
# A vector as a dense array: on the host, on its device, and through DLPack.


def to_dense(v: Any, fill_value: Any, dtype: Any, on_device: bool) -> Any:
    """Do what `Vector.to_dense` does."""
    place, nvals = v.backend, v.nvals
    kind = v.dtype if dtype is None else lookup(dtype)
    fill = None if fill_value is None else as_fill(fill_value, kind)
    by_device = on_device or (place.device is not None and v.size >= _LARGE)
    if nvals == v.size:
        if not by_device:
            return cast(place.vector_values(v.data), kind)
        data = v.data if kind is v.dtype else place.dup(v.data, kind)
        return place.vector_values(data, on_device)
    if fill is None:
        require_full(v, nvals)
    if not by_device:
        indices, values = v.to_coo()
        found = np.full(v.size, fill, kind.numpy)
        found[indices] = cast(values, kind)
        return found
    dense = place.vector(kind, v.size)
    place.execute(Statement(dense, Descriptor(), AssignScalar(fill), kind))
    place.execute(Statement(dense, Descriptor(v.data), Assign(v.data), v.dtype))
    return place.vector_values(dense, on_device)


def require_full(
    x: Any,
    nvals: int,
    what: str = "to_dense",
    remedy: str = "Give fill_value= for the missing ones.",
) -> None:
    """Raise `InvalidValue` if an object has no entry somewhere; {0} of `remedy` is its name."""
    size = math.prod(x.shape)
    if nvals < size:
        name = name_of(x)
        raise InvalidValue(f"{what}: {name} has {nvals} of {size} entries. {remedy.format(name)}")


def dlpack(
    self: Any,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    """Return a DLPack capsule of a copy of all values, where they live.

    ``torch.from_dlpack(v)``, ``jax.dlpack.from_dlpack(v)``, ``cupy.from_dlpack(v)`` and
    ``numpy.from_dlpack(v)`` call it.

    Raises
    ------
    InvalidValue
        If an entry is missing, or with ``copy=False``.
    """
    if copy is False:
        raise InvalidValue(
            "__dlpack__: hands out a copy, since a vector's memory changes with each statement. "
            "Leave out copy=False."
        )
    require_full(self, self.nvals, "__dlpack__", "Hand out {0}.to_dense(fill_value) instead.")
    wanted = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
    given = {name: value for name, value in wanted.items() if value is not None}
    return self.backend.vector_values(self.data, True).__dlpack__(**given)


def dlpack_device(self: Any) -> tuple[int, int]:
    """Return DLPack's (kind, number) of the device where the values live."""
    device = self.backend.device
    if device is None or device.xp is np:
        return _HOST, 0
    return _CUDA, int(device.name.rpartition(":")[2])


# ------------------------------------------------------------------------------------------
# Pickles, for multiprocessing, joblib or dask: entries as host arrays, and a backend's name.


def taken_apart(x: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return what ``x.__reduce__`` returns, for a `Vector` or a `Matrix`."""
    place = backends.name_elsewhere(x.backend)
    *where, values = x.to_coo() if x.ndim == 1 else x.to_csc()
    if x.ndim == 1 and len(values) == x.size:
        where = [None]
    return _put_together, (type(x), x.shape, x.dtype, where, _one_if_alike(values), place, x.name)


def _put_together(
    kind: Any, shape: Any, dtype: Any, where: list[Any], values: Any, place: str, name: str
) -> Any:
    """Return the vector or matrix; see `lagpu.backends.found_again` for where it lives."""
    backend = backends.found_again(place)
    if len(shape) == 2:
        col_ptr, row_idx = where
        data = backend.matrix_from_csc(col_ptr, row_idx, values, dtype, shape)
    else:
        (size,), (indices,) = shape, where
        if indices is None and np.ndim(values) == 0:
            indices = np.arange(size)
        data = backend.vector_from_coo(indices, values, dtype, size)
    return kind._of(data, dtype, shape, backend, name)


def _one_if_alike(values: Array) -> Any:
    """Return the one number that all values are to the bit, or else the values: NaN, -0.0."""
    if len(values) < 2:
        return values
    bits = values.view(f"u{values.itemsize}")
    return values[0] if bool((bits == bits[0]).all()) else values
