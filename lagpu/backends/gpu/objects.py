"""Vectors and matrices of the gpu backend: made, read, compared and changed as objects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator
from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.ops import bitmap, elementwise
from lagpu.backends.gpu.storage import forms, preview
from lagpu.backends.gpu.storage.bitmap import BlockStore, fits, of_few, stride
from lagpu.backends.gpu.storage.casts import cast_array, index_type
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.protocol import Applied
from lagpu.backends.recording import Recorder
from lagpu.dtypes import BOOL, DType, lookup

__all__ = ["Objects", "settled"]

Array = np.ndarray[Any, Any]
LARGE = 1 << 20  # elements from which a vector's memory is asked for before it is allocated

Method = TypeVar("Method", bound=Callable[..., Any])


def settled(method: Method) -> Method:
    """Let a method that looks at vectors, or changes one at once, run recorded statements first.

    They can only be there if the body of a loop raised: nothing it may contain looks at a vector.
    """

    @functools.wraps(method)
    def settle(self: Objects, *args: Any) -> Any:
        if self.recorder is not None:
            self.recorder.replay()
        return method(self, *args)

    return cast(Method, settle)


class Objects:
    """The methods of `Backend` that make, read and change objects.

    Parameters
    ----------
    device : Device
        Where they live.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.counters = Counters(device)
        self.recorder: Recorder | None = None

    # ------------------------------------------------------------------ objects: vectors
    def vector(self, dtype: DType, size: int) -> VectorStore:
        """See `Backend`."""
        if size >= LARGE:  # values and presence bits, and those of the next result
            self.device.require(size * (2 * dtype.numpy.itemsize) + size // 4, "Vector")
        return VectorStore(self.device, self.counters, dtype, size)

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> VectorStore:
        """See `Backend`."""
        v = self.vector(dtype, size)
        if indices is None:
            if size:
                v.set_full(self._own(values, dtype.numpy))
            return v
        where = self._own(indices, np.int64)
        if np.ndim(values) == 0:
            packed, iso = None, values
        else:
            packed, iso = self._own(values, dtype.numpy), None
        if size and len(where) == size:
            v.set_full(packed, iso)
        else:
            v.set_sparse(where, packed, iso)
        return v

    def _own(self, array: Any, kind: Any) -> Array:
        """Return an array on the device that nobody else has: vectors are written in place."""
        made: Array = forms.on_device(self.device, array).astype(kind, copy=False)
        return made.copy() if made is array else made

    @settled
    def vector_to_coo(self, v: VectorStore) -> tuple[Array, Array]:
        """See `Backend`."""
        indices, values = v.listed()
        where = self.device.to_host(indices)
        if values is None:
            return where, np.full(len(where), v.number, v.dtype.numpy)
        return where, self.device.to_host(values)

    @settled
    def vector_values(self, v: VectorStore) -> Any:
        """See `Backend`."""
        indices, values = v.listed()
        xp = self.device.xp
        return xp.full(len(indices), v.number, v.dtype.numpy) if values is None else values.copy()

    @settled
    def vector_head(self, v: VectorStore, count: int) -> tuple[Array, Array]:
        """See `Backend`."""
        return preview.head(v, count)

    @settled
    def vector_form(self, v: VectorStore) -> str:
        """See `Backend`."""
        return preview.vector_form(v)

    @settled
    def vector_dup(self, v: VectorStore, dtype: DType) -> VectorStore:
        """See `Backend`."""
        return v.copy(dtype)

    def vector_nvals(self, v: VectorStore) -> int:
        """See `Backend`."""
        if self.recorder is not None:  # as `settled`; loops ask for it at each level
            self.recorder.replay()
        return v.nvals

    @settled
    def vector_wait(self, v: VectorStore) -> None:
        """See `Backend`: work of a device ends in the order in which it began."""
        self.device.synchronize()

    @settled
    def vector_get(self, v: VectorStore, i: int) -> Any:
        """See `Backend`."""
        words, values, number = v.readable()
        if (
            words is not None
            and not int(self.device.read(words[i // 32 : i // 32 + 1])) >> i % 32 & 1
        ):
            return None
        return number.item() if values is None else self.device.read(values[i : i + 1])

    @settled
    def vector_set(self, v: VectorStore, i: int, value: Any) -> None:
        """See `Backend`."""
        if v.form == "sparse" and v.nvals == 0:
            v.set_single(i, value)
            return
        known = v.nvals + (self.vector_get(v, i) is None)
        v.to_writable()
        v.words[i // 32 : i // 32 + 1] |= np.uint32(1 << i % 32)
        v.values[i : i + 1] = value
        v.counted(known)
        v.forget()

    @settled
    def vector_remove(self, v: VectorStore, i: int) -> None:
        """See `Backend`."""
        if self.vector_get(v, i) is None:
            return
        known = v.nvals - 1
        v.to_bitmap()
        v.words[i // 32 : i // 32 + 1] &= np.uint32(0xFFFFFFFF ^ 1 << i % 32)
        v.counted(known)
        v.forget()

    @settled
    def vector_clear(self, v: VectorStore) -> None:
        """See `Backend`."""
        v.adopt(VectorStore(self.device, self.counters, v.dtype, v.size))

    @settled
    def vector_resize(self, v: VectorStore, size: int) -> None:
        """See `Backend`."""
        indices, values = v.listed()
        kept = indices < size
        v.size, v.spare = size, {}
        v.set_sparse(indices[kept], None if values is None else values[kept], v.iso)

    @settled
    def vector_isequal(self, u: VectorStore, v: VectorStore) -> bool:
        """See `Backend`."""
        xp = self.device.xp
        if u.nvals != v.nvals:
            return False
        (i, x), (j, y) = u.listed(), v.listed()
        if not bool(xp.all(i == j)):
            return False
        if x is None and y is None:
            return len(i) == 0 or bool(u.number == v.number)
        return bool(xp.all((u.number if x is None else x) == (v.number if y is None else y)))

    # ----------------------------------------------------------------- objects: matrices
    def matrix(self, dtype: DType, shape: tuple[int, int]) -> MatrixStore:
        """See `Backend`."""
        device = self.device
        if fits(device, dtype, shape):
            size = stride(shape[0]) * shape[1]
            entries = VectorStore(device, self.counters, dtype, size)
            return BlockStore(device, dtype, shape, entries)
        device.require(4 * shape[1], "Matrix")
        none = device.xp.empty(0, np.int32)
        ptr = device.xp.zeros(shape[1] + 1, np.int32)
        return MatrixStore(device, dtype, shape, ptr, none, None, dtype.numpy.type(0))

    def matrix_from_coo(
        self,
        rows: Any,
        cols: Any,
        values: Any,
        dtype: DType,
        shape: tuple[int, int],
        dup_op: BinaryOp | None,
    ) -> MatrixStore:
        """See `Backend`."""
        few = of_few(self.device, self.counters, rows, cols, values, dtype, shape)
        if few is not None:
            return few
        return forms.from_coo(self.device, rows, cols, values, dtype, shape, dup_op)

    def matrix_from_csc(
        self, col_ptr: Any, row_idx: Any, values: Any, dtype: DType, shape: tuple[int, int]
    ) -> MatrixStore:
        """See `Backend`."""
        count = len(row_idx)
        iso = values if np.ndim(values) == 0 else _only_value(values)
        item = dtype.numpy.itemsize if iso is None else 0
        width = np.dtype(index_type(shape[0])).itemsize + item
        self.device.require(count * width + len(col_ptr) * 8, "Matrix")
        to = self.device
        ptr = forms.on_device(to, _narrow(col_ptr, count))
        idx = forms.on_device(to, _narrow(row_idx, shape[0]))
        packed = None if iso is not None else forms.on_device(to, values)
        return MatrixStore(to, dtype, shape, ptr, idx, packed, iso)

    def matrix_to_csc(self, A: MatrixStore) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        ptr, idx = (self.device.to_host(x).astype(np.int64) for x in (A.col_ptr, A.row_idx))
        if A.values is None:
            return ptr, idx, np.full(A.nvals, A.number, A.dtype.numpy)
        return ptr, idx, self.device.to_host(A.values)

    def matrix_corner(self, A: MatrixStore, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        return preview.corner(A, nrows, ncols)

    def matrix_form(self, A: MatrixStore) -> str:
        """See `Backend`."""
        return preview.matrix_form(A)

    def matrix_dup(self, A: MatrixStore, dtype: DType) -> MatrixStore:
        """See `Backend`."""
        if isinstance(A, BlockStore):
            return bitmap.dup(A, dtype)
        cast = cast_array
        values = None if A.values is None else cast(self.device.xp, A.values, dtype)
        iso = None if A.iso is None else cast(np, np.array([A.iso]), dtype)[0]
        return _with_values(A, dtype, values, iso)

    def matrix_nvals(self, A: MatrixStore) -> int:
        """See `Backend`."""
        return A.nvals

    def matrix_get(self, A: MatrixStore, i: int, j: int) -> Any:
        """See `Backend`."""
        if isinstance(A, BlockStore):
            return self.vector_get(A.entries, j * stride(A.shape[0]) + i)
        first, last = self._column(A, j)
        at = int(self.device.xp.searchsorted(A.row_idx[first:last], i)) + first
        if at == last or int(A.row_idx[at]) != i:
            return None
        return A.number.item() if A.values is None else self.device.read(A.values[at : at + 1])

    def _column(self, A: MatrixStore, j: int) -> tuple[int, int]:
        """Return where column `j` begins and ends."""
        first, last = self.device.to_host(A.col_ptr[j : j + 2]).tolist()
        return first, last

    def matrix_isequal(self, A: MatrixStore, B: MatrixStore) -> bool:
        """See `Backend`."""
        return forms.is_equal(A, B)

    def matrix_transpose(self, A: MatrixStore) -> MatrixStore:
        """See `Backend`."""
        return forms.transpose(A)

    def matrix_apply(self, A: MatrixStore, op: Operator, how: Applied) -> MatrixStore:
        """See `Backend`."""
        if isinstance(A, BlockStore) and not isinstance(op, IndexUnaryOp):
            return bitmap.apply(A, op, how)
        values = elementwise.apply_entries(self.device, A, op, how, how.result)
        return _with_values(A, how.result, values, None)

    def matrix_select(self, A: MatrixStore, op: IndexUnaryOp, thunk: Any) -> MatrixStore:
        """See `Backend`."""
        if isinstance(A, BlockStore) and op.name.startswith("value"):
            return bitmap.select(A, op, thunk)
        how = Applied(lookup(thunk.dtype), BOOL, None, thunk)
        return forms.take(A, elementwise.apply_entries(self.device, A, op, how, BOOL))

    @settled
    def matrix_selection(self, f: VectorStore, nrows: int, turned: bool) -> MatrixStore:
        """See `Backend`."""
        cols, packed = f.listed()
        rows = self.device.xp.full(len(cols), f.number) if packed is None else packed
        rows = rows.astype(np.int64, copy=False)  # 2**63 and more become negative
        inside = (rows >= 0) & (rows < nrows)
        rows, cols, shape = rows[inside], cols[inside], (nrows, f.size)
        if turned:
            rows, cols, shape = cols, rows, shape[::-1]
        return forms.from_coo(self.device, rows, cols, np.True_, BOOL, shape, None)

    @settled
    def matrix_from_diag(self, v: VectorStore, k: int) -> MatrixStore:
        """See `Backend`."""
        indices, values = v.listed()
        n = v.size + abs(k)
        rows, cols = indices + max(-k, 0), indices + max(k, 0)
        packed = v.number if values is None else values
        return forms.from_coo(self.device, rows, cols, packed, v.dtype, (n, n), None)

    def matrix_diag(self, A: MatrixStore, k: int) -> VectorStore:
        """See `Backend`."""
        cols = A.columns()
        chosen = self.device.xp.flatnonzero(cols - A.row_idx == k)
        size = min(A.shape[0], A.shape[1] - k) if k >= 0 else min(A.shape[0] + k, A.shape[1])
        v = VectorStore(self.device, self.counters, A.dtype, size)
        values = None if A.values is None else A.values[chosen]
        v.set_sparse(cols[chosen] - max(k, 0), values, A.iso)
        return v

    def matrix_is_symmetric(self, A: MatrixStore) -> bool:
        """See `Backend`."""
        return forms.equals_transpose(A)

    def matrix_turnable(self, A: MatrixStore, allowed: bool | None) -> bool:
        """See `Backend`."""
        if allowed is not None:
            A.turnable = allowed
            if not allowed:
                A.rows = None
                A.spaces.clear()
        return A.turnable

    def matrix_reduce(self, A: MatrixStore, monoid: Monoid) -> Any:
        """See `Backend`."""
        if isinstance(A, BlockStore):
            return elementwise.reduce_entries(A.entries, monoid)
        if not A.nvals:
            return None
        return elementwise.reduce_values(
            self.device, A.nvals, None, A.values, A.number, A.dtype, monoid
        )


def _with_values(A: MatrixStore, dtype: DType, values: Any, iso: Any) -> MatrixStore:
    """Return a matrix with the entries of `A` and other values; the index arrays are shared."""
    return MatrixStore(A.device, dtype, A.shape, A.col_ptr, A.row_idx, values, iso)


def _only_value(values: Any) -> Any:
    """Return the value all have, or None if they differ or there are none."""
    if not len(values):
        return None
    first = values[:1]
    return first.dtype.type(first[0].item()) if bool((values == first).all()) else None


def _narrow(indices: Any, largest: int) -> Any:
    """Return host indices in the type they are stored in, before they travel."""
    if isinstance(indices, np.ndarray):
        return indices.astype(index_type(largest), copy=False)
    return indices
