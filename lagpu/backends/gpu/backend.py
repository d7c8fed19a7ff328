"""The gpu backend: storage, planner and kernels behind the `Backend` protocol.

The same class serves a CUDA device (``gpu``) and the simulated one (``sim``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from lagpu.algebra import binary
from lagpu.backends.base import Applied, Descriptor, Measured, Product, Recorder, Statement
from lagpu.backends.gpu import build, elementwise, products, traversal
from lagpu.backends.gpu.device import Device
from lagpu.backends.gpu.fuse import traversal_of
from lagpu.backends.gpu.plan import Plan, choose
from lagpu.backends.gpu.storage import (
    Counters,
    MatrixStore,
    VectorStore,
    cast_array,
    index_type,
)
from lagpu.dtypes import BOOL, DType, lookup
from lagpu.operators import BinaryOp, IndexUnaryOp, Monoid, Operator, Semiring

__all__ = ["GpuBackend"]

Array = np.ndarray[Any, Any]
LARGE = 1 << 20  # elements from which a vector's memory is asked for before it is allocated


Method = TypeVar("Method", bound=Callable[..., Any])


def _settled(method: Method) -> Method:
    """Let a method that looks at vectors, or changes one at once, run recorded statements first.

    They can only be there if the body of a loop raised: nothing it may contain looks at a vector.
    """

    @functools.wraps(method)
    def settle(self: GpuBackend, *args: Any) -> Any:
        if self.recorder is not None:
            self.recorder.replay()
        return method(self, *args)

    return cast(Method, settle)


class GpuBackend:
    """Vectors and matrices on one device.

    Parameters
    ----------
    name : str
        ``"gpu"`` or ``"sim"``.
    device : Device
        Where they live.

    Attributes
    ----------
    plan : Plan or None
        The plan of the last product.
    """

    def __init__(self, name: str, device: Device) -> None:
        self.name = name
        self.device = device
        self.counters = Counters(device)
        self.plan: Plan | None = None
        self.recorder: Recorder | None = None
        self.last_loop = ""  # how the last loop ran
        self._edges: Any = None  # a counter while a product is measured

    def measure(
        self, method: str, w: VectorStore, desc: Descriptor, args: tuple[Any, ...]
    ) -> Measured:
        """See `Backend`."""
        is_product = method == "mxv"
        self._edges = self.counters.take() if is_product else None
        counted = self._edges
        try:
            with self.device.timer() as timer:
                getattr(self, method)(w, desc, *args)
        finally:
            self._edges = None
        if not is_product or self.plan is None:
            return Measured(timer.elapsed_ms)
        return Measured(timer.elapsed_ms, *self.plan, int(self.device.read(counted)))

    def run_loop(
        self, statements: list[Statement], until_empty: VectorStore, times: int | None
    ) -> bool:
        """See `Backend`."""
        found = traversal_of(statements, until_empty, times)
        if isinstance(found, str):
            self.last_loop = f"eager: {found}"
            return False
        traversal.run(found, times)
        self.last_loop = "fused: one kernel"
        return True

    # ------------------------------------------------------------------ objects: vectors
    def vector(self, dtype: DType, size: int) -> VectorStore:
        """See `Backend`."""
        if size >= LARGE:  # values and presence bits, and those of the next result
            self.device.require(size * (2 * dtype.numpy.itemsize) + size // 4, "Vector")
        return VectorStore(self.device, self.counters, dtype, size)

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> VectorStore:
        """See `Backend`."""
        v = self.vector(dtype, size)
        where = build.on_device(self.device, indices).astype(np.int64, copy=False)
        if np.ndim(values) == 0:
            packed, iso = None, values
        else:
            packed = build.on_device(self.device, values).astype(dtype.numpy, copy=False)
            iso = None
        if size and len(where) == size:
            v.set_full(packed, iso)
        else:
            v.set_sparse(where, packed, iso)
        return v

    @_settled
    def vector_to_coo(self, v: VectorStore) -> tuple[Array, Array]:
        """See `Backend`."""
        indices, values = v.listed()
        where = self.device.to_host(indices)
        if values is None:
            return where, np.full(len(where), v.number, v.dtype.numpy)
        return where, self.device.to_host(values)

    @_settled
    def vector_dup(self, v: VectorStore, dtype: DType) -> VectorStore:
        """See `Backend`."""
        return v.copy(dtype)

    @_settled
    def vector_nvals(self, v: VectorStore) -> int:
        """See `Backend`."""
        return v.nvals

    @_settled
    def vector_get(self, v: VectorStore, i: int) -> Any:
        """See `Backend`."""
        words, values, number = v.readable()
        if (
            words is not None
            and not int(self.device.read(words[i // 32 : i // 32 + 1])) >> i % 32 & 1
        ):
            return None
        return number.item() if values is None else self.device.read(values[i : i + 1])

    @_settled
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

    @_settled
    def vector_remove(self, v: VectorStore, i: int) -> None:
        """See `Backend`."""
        if self.vector_get(v, i) is None:
            return
        known = v.nvals - 1
        v.to_bitmap()
        v.words[i // 32 : i // 32 + 1] &= np.uint32(0xFFFFFFFF ^ 1 << i % 32)
        v.counted(known)

    @_settled
    def vector_clear(self, v: VectorStore) -> None:
        """See `Backend`."""
        v.adopt(VectorStore(self.device, self.counters, v.dtype, v.size))

    @_settled
    def vector_resize(self, v: VectorStore, size: int) -> None:
        """See `Backend`."""
        indices, values = v.listed()
        kept = indices < size
        v.size, v.spare = size, {}
        v.set_sparse(indices[kept], None if values is None else values[kept], v.iso)

    @_settled
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
        return build.from_coo(self.device, rows, cols, values, dtype, shape, dup_op)

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
        ptr = build.on_device(to, _narrow(col_ptr, count))
        idx = build.on_device(to, _narrow(row_idx, shape[0]))
        packed = None if iso is not None else build.on_device(to, values)
        return MatrixStore(to, dtype, shape, ptr, idx, packed, iso)

    def matrix_to_csc(self, A: MatrixStore) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        ptr, idx = (self.device.to_host(x).astype(np.int64) for x in (A.col_ptr, A.row_idx))
        if A.values is None:
            return ptr, idx, np.full(A.nvals, A.number, A.dtype.numpy)
        return ptr, idx, self.device.to_host(A.values)

    def matrix_dup(self, A: MatrixStore, dtype: DType) -> MatrixStore:
        """See `Backend`."""
        cast = cast_array
        values = None if A.values is None else cast(self.device.xp, A.values, dtype)
        iso = None if A.iso is None else cast(np, np.array([A.iso]), dtype)[0]
        return _with_values(A, dtype, values, iso)

    def matrix_nvals(self, A: MatrixStore) -> int:
        """See `Backend`."""
        return A.nvals

    def matrix_get(self, A: MatrixStore, i: int, j: int) -> Any:
        """See `Backend`."""
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
        return build.is_equal(A, B)

    def matrix_transpose(self, A: MatrixStore) -> MatrixStore:
        """See `Backend`."""
        return build.transpose(A)

    def matrix_apply(self, A: MatrixStore, op: Operator, how: Applied) -> MatrixStore:
        """See `Backend`."""
        values = elementwise.apply_entries(self.device, A, op, how, how.result)
        return _with_values(A, how.result, values, None)

    def matrix_select(self, A: MatrixStore, op: IndexUnaryOp, thunk: Any) -> MatrixStore:
        """See `Backend`."""
        how = Applied(lookup(thunk.dtype), BOOL, None, thunk)
        return build.take(A, elementwise.apply_entries(self.device, A, op, how, BOOL))

    @_settled
    def matrix_from_diag(self, v: VectorStore, k: int) -> MatrixStore:
        """See `Backend`."""
        indices, values = v.listed()
        n = v.size + abs(k)
        rows, cols = indices + max(-k, 0), indices + max(k, 0)
        packed = v.number if values is None else values
        return build.from_coo(self.device, rows, cols, packed, v.dtype, (n, n), None)

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
        return build.is_symmetric(A)

    def matrix_reduce(self, A: MatrixStore, monoid: Monoid) -> Any:
        """See `Backend`."""
        if not A.nvals:
            return None
        return elementwise.reduce_values(
            self.device, A.nvals, None, A.values, A.number, A.dtype, monoid
        )

    # --------------------------------------------------------- operations: write a vector
    def mxv(
        self, w: VectorStore, desc: Descriptor, A: MatrixStore, u: VectorStore, how: Product
    ) -> None:
        """See `Backend`."""
        self.plan = plan = choose(A, u, how)
        mask = elementwise.mask_words(desc)
        fresh = desc.accum is None and (desc.replace or desc.mask is None)
        dtype = w.dtype if fresh else how.result
        t = products.multiply(w, A, u, how, plan, mask, dtype, self._edges)
        if fresh and (t.dtype is w.dtype or t.values is None):
            if t.iso is not None:
                t.iso = cast_array(np, np.array([t.iso]), w.dtype)[0]
            w.adopt(t)
        else:
            elementwise.write(w, desc, t)
            w.pulled = t.pulled

    def ewise_add(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, v: VectorStore, op: BinaryOp
    ) -> None:
        """See `Backend`."""
        elementwise.combine("ewise_add", w, desc, u, v, op, None)

    def ewise_mult(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, v: VectorStore, op: BinaryOp
    ) -> None:
        """See `Backend`."""
        elementwise.combine("ewise_mult", w, desc, u, v, op, None)

    def ewise_union(
        self,
        w: VectorStore,
        desc: Descriptor,
        u: VectorStore,
        v: VectorStore,
        op: BinaryOp,
        defaults: tuple[Any, Any],
    ) -> None:
        """See `Backend`."""
        elementwise.combine("ewise_union", w, desc, u, v, op, defaults)

    def apply(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, op: Operator, how: Applied
    ) -> None:
        """See `Backend`."""
        elementwise.map_entries(w, desc, u, op, how)

    def select(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, op: IndexUnaryOp, thunk: Any
    ) -> None:
        """See `Backend`."""
        elementwise.select_entries(w, desc, u, op, thunk)

    def assign_scalar(
        self, w: VectorStore, desc: Descriptor, value: Any, indices: Array | None
    ) -> None:
        """See `Backend`."""
        elementwise.assign_value(w, desc, value, self._region(w, indices))

    def assign(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, indices: Array | None
    ) -> None:
        """See `Backend`."""
        if indices is not None:
            region = self._region(w, indices)
            u = elementwise.scatter(w, self.device.from_host(indices), u)
            elementwise.write(w, desc, u, region)
        else:
            elementwise.write(w, desc, u)

    def _region(self, w: VectorStore, indices: Array | None) -> Any:
        """Return the presence words of a list of indices, or None for all."""
        if indices is None:
            return None
        region = VectorStore(self.device, self.counters, w.dtype, w.size)
        region.set_sparse(self.device.from_host(np.unique(indices)), None, w.dtype.numpy.type(0))
        region.to_bitmap()
        return region.words

    def extract(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, indices: Array | None
    ) -> None:
        """See `Backend`."""
        if indices is not None:
            u = elementwise.gather(u, self.device.from_host(indices))
        elementwise.write(w, desc, u)

    def extract_column(
        self, w: VectorStore, desc: Descriptor, A: MatrixStore, j: int, transpose: bool
    ) -> None:
        """See `Backend`."""
        t = VectorStore(self.device, self.counters, A.dtype, A.shape[1 if transpose else 0])
        if transpose and not build.is_symmetric(A):
            chosen = self.device.xp.flatnonzero(A.row_idx == j)
            indices = A.columns()[chosen]
            values = None if A.values is None else A.values[chosen]
        else:
            first, last = self._column(A, j)
            indices = A.row_idx[first:last].astype(np.int64)
            values = None if A.values is None else A.values[first:last]
        t.set_sparse(indices, values, A.iso)
        elementwise.write(w, desc, t)

    def reduce_vector(
        self, w: VectorStore, desc: Descriptor, A: MatrixStore, monoid: Monoid, transpose: bool
    ) -> None:
        """See `Backend`: a product with a full vector that takes the matrix' value."""
        domain, result = monoid.types(A.dtype)
        ones = VectorStore(self.device, self.counters, domain, A.shape[0 if transpose else 1])
        ones.set_full(None, domain.numpy.type(1))
        how = Product(Semiring(monoid, binary.first), domain, result, transpose, False)
        self.mxv(w, desc, A, ones, how)

    @_settled
    def reduce(self, u: VectorStore, monoid: Monoid) -> Any:
        """See `Backend`."""
        return elementwise.reduce_entries(u, monoid)


def _with_values(A: MatrixStore, dtype: DType, values: Any, iso: Any) -> MatrixStore:
    """Return a matrix with the entries of `A` and other values; the index arrays are shared."""
    return MatrixStore(A.device, dtype, A.shape, A.col_ptr, A.row_idx, values, iso)


def _only_value(values: Any) -> Any:
    """Return the value all have, or None if they differ or there are none."""
    if not len(values):
        return None
    first = values[:1]
    return first.dtype.type(first[0]) if bool((values == first).all()) else None


def _narrow(indices: Any, largest: int) -> Any:
    """Return host indices in the type they are stored in, before they travel."""
    if isinstance(indices, np.ndarray):
        return indices.astype(index_type(largest), copy=False)
    return indices
