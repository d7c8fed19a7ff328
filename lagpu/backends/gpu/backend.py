"""The gpu backend, of a CUDA device or of the simulated one (``sim``): its methods delegate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu import operations as ops
from lagpu.algebra.operators import BinaryOp
from lagpu.backends.gpu.device.protocol import Device, named_error
from lagpu.backends.gpu.fused.plan import FUSED_POLICIES, plan_loop
from lagpu.backends.gpu.fused.program.batch import Batches
from lagpu.backends.gpu.fused.search_many import batch_size
from lagpu.backends.gpu.kernels import sources_hash
from lagpu.backends.gpu.ops import elementwise, spmv, statements, strategies
from lagpu.backends.gpu.ops.planner import POLICIES, choose
from lagpu.backends.gpu.profile import GpuMeter, Runtime
from lagpu.backends.gpu.storage import bitmap, forms, stores
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, MatrixHandle
from lagpu.backends.gpu.storage.stores import CscMatrix, VectorStore, on_host
from lagpu.backends.guard import guarded, refuse_after_fork
from lagpu.backends.protocol import Capabilities
from lagpu.dtypes import DType
from lagpu.host import memory

Array = np.ndarray[Any, Any]
Handle = VectorStore | MatrixHandle
LARGE = 1 << 20  # elements from which free memory is checked, on any device


@guarded(
    lambda backend, error, method: named_error(backend.device, error, method),
    host=("vector", "vector_set", "nvals"),
)
class GpuBackend:
    """Vectors and matrices on one device. See `Backend` for the methods."""

    def __init__(self, name: str, device: Device) -> None:
        self.name, self.device, self.runtime = name, device, Runtime(device)
        self.capabilities = Capabilities(
            fuses=True,
            kernels=tuple(strategies.STRATEGIES),
            policies=tuple(POLICIES),
            fused_policies=FUSED_POLICIES,
            sources_hash=sources_hash(),
            batches=Batches(self.runtime.counters),
        )
        #: Indices of a vector from which free memory is checked; 17 bytes of each are the most.
        self.large = max(LARGE, device.unasked // 17)
        self.lock, self.enter = device.lock, device.enter
        refuse_after_fork(self, name)

    def __repr__(self) -> str:
        return f"<lagpu backend {self.name}>"

    @property
    def last_loop(self) -> str:
        return self.runtime.last.loop

    @last_loop.setter
    def last_loop(self, how: str) -> None:
        self.runtime.last.loop = how

    @property
    def last_product(self) -> Any:
        return self.runtime.last.plan

    def _enter(self) -> None:
        """Make the device current in this thread, for a method that rarely needs it."""
        if self.enter is not None:
            self.enter()

    # --------------------------------------------------------------------------- statements
    def execute(self, statement: ops.Statement) -> None:
        out, desc, operation, _ = statement
        if type(out) is VectorStore:
            statements.ON_VECTORS[type(operation)](self.runtime, out, desc, operation)
        else:
            statements.write_matrix(self.runtime, out, desc, operation)

    def evaluate(self, operation: ops.Operation) -> Any:
        assert isinstance(operation, (ops.ExtractElement, ops.Reduce))
        x = operation.operand
        entries = x if isinstance(x, VectorStore) else x.store.entries if x.is_bitmap else None
        if isinstance(operation, ops.Reduce):
            if entries is None:
                return elementwise.reduce_matrix(x.csc(), operation.monoid)
            return elementwise.reduce_entries(entries, operation.monoid)
        i, j = map(int, (*operation.position, 0)[:2])  # CuPy does not take NumPy's
        if entries is None:
            return forms.entry(x.csc(), i, j)
        return entries.get(j * bitmap.stride(x.shape[0]) + i)

    def explain(self, operation: ops.Operation) -> list[str]:
        if isinstance(operation, ops.MultiplySelection):
            plan, memory = spmv.choose_selection(operation.product), []
        else:
            assert isinstance(operation, ops.Multiply)
            matrix, u = operation.matrix.csc(), operation.operand
            if isinstance(u, VectorStore):
                plan = choose(matrix, u, operation.product)
            else:
                plan = statements.explain_product(self.runtime, operation)
            memory = [spmv.memory_of(matrix)]
        chosen = f"{plan.direction}, {plan.kernel}" if plan.direction else plan.kernel
        return [f"{chosen}: {plan.reason}", *memory]

    def plan_loop(self, body: ops.Statements, turns: ops.Turns) -> ops.Planned:
        return plan_loop(self.runtime.counters, body, turns)

    def batch_size(
        self, A: MatrixHandle, sources: int, levels: int, live: Sequence[tuple[DType, int]]
    ) -> int:
        return batch_size(A.csc(), sources, levels, live)

    def meter(self) -> GpuMeter:
        return GpuMeter(self.runtime, statements.TRAFFIC)

    def free_bytes(self) -> int:
        return self.device.free_bytes()

    # ------------------------------------------------------------------- objects: made, read
    def vector(self, dtype: DType, size: int) -> VectorStore:
        if size >= self.large:  # values and presence bits, and those of the next result
            self._enter()
            self.device.require(size * (2 * dtype.numpy.itemsize) + size // 4, "Vector")
        return VectorStore(self.device, self.runtime.counters, dtype, size)

    def matrix(self, dtype: DType, shape: tuple[int, int]) -> MatrixHandle:
        if not bitmap.fits(self.device, dtype, shape):
            return MatrixHandle(forms.empty(self.device, dtype, shape))
        size = bitmap.stride(shape[0]) * shape[1]
        entries = VectorStore(self.device, self.runtime.counters, dtype, size)
        return MatrixHandle(BitmapMatrix(self.device, dtype, shape, entries))

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> VectorStore:
        v, own = self.vector(dtype, size), forms.own_on_device
        on_host = isinstance(indices, np.ndarray) and isinstance(values, (np.ndarray, np.generic))
        if on_host and len(indices) == 1 < size:  # it stays there until a kernel needs it
            v.set_single(int(indices[0]), dtype.numpy.type(np.ravel(values)[0]))
            return v
        iso = values if np.ndim(values) == 0 else None
        packed = own(self.device, values, dtype.numpy) if iso is None else None
        if indices is not None and len(indices) < size:
            v.set_sparse(own(self.device, indices, np.int64), packed, iso)
        elif size:
            v.set_full(packed, iso)
        return v

    def matrix_from_coo(
        self, rows: Any, cols: Any, values: Any, dtype: DType,
        shape: tuple[int, int], dup_op: BinaryOp | None,
    ) -> MatrixHandle:  # fmt: skip
        few = bitmap.from_few_entries(self.runtime.counters, rows, cols, values, dtype, shape)
        made = few or forms.from_coo(self.device, rows, cols, values, dtype, shape, dup_op)
        return MatrixHandle(made)

    def matrix_from_csc(
        self, col_ptr: Any, row_idx: Any, values: Any, dtype: DType,
        shape: tuple[int, int], symmetric: bool | None = None,
    ) -> MatrixHandle:  # fmt: skip
        made = forms.from_csc(self.device, col_ptr, row_idx, values, dtype, shape)
        made.symmetric = symmetric
        return MatrixHandle(made)

    def matrix_from_diagonal(self, v: VectorStore, k: int) -> MatrixHandle:
        n = v.size + abs(k)
        self.device.require(v.nvals * (32 + v.dtype.numpy.itemsize) + 17 * n, "from_diagonal")
        indices, values = v.listed()
        rows, cols = (
            stores.shifted(self.device, indices, by) if by > 0 else indices for by in (-k, k)
        )
        ptr = stores.pointer(self.device, cols, n)
        packed = None if values is None else self.device.copy_of(values)
        iso = v.number if values is None else None
        made = CscMatrix(self.device, v.dtype, (n, n), ptr, rows, packed, iso)
        if not k:
            made.symmetric = made.facts[forms.DIAGONAL] = True
        return MatrixHandle(made)

    def diagonal(self, A: MatrixHandle, k: int, rows: Any = None) -> VectorStore:
        return forms.diagonal(A.csc(), k, self.runtime.counters, rows)

    def dup(self, x: Handle, dtype: DType) -> Handle:
        return x.copy(dtype) if isinstance(x, VectorStore) else MatrixHandle(x.store.copy(dtype))

    def vector_to_coo(self, v: VectorStore) -> tuple[Array, Array]:
        indices, values = v.listed()
        return self.device.to_host(indices), on_host(v, values, len(indices))

    def matrix_to_csc(
        self, A: MatrixHandle, on_device: bool = False, narrow: bool = False
    ) -> tuple[Array, Array, Array]:
        form = A.csc()
        if on_device:
            self.device.require(form.nbytes, "to_csc")
            copy, values = self.device.copy_of, form.values
            made = stores.spread(form, None) if values is None else copy(values)
            return copy(form.col_ptr), copy(form.row_idx), made
        if form.nvals + A.shape[1] >= LARGE:  # memory of the host, wider copies included
            width = form.row_idx.itemsize + 8 * (not narrow) + form.dtype.numpy.itemsize
            memory.require(form.nvals * width + 13 * A.shape[1], "to_csc")
        ptr, idx = (self.device.to_host(x) for x in (form.col_ptr, form.row_idx))
        ptr = ptr.astype(np.int64, copy=False)
        if not narrow:
            idx = idx.astype(np.int64, copy=False)
        return ptr, idx, on_host(form, form.values, form.nvals)

    def vector_values(self, v: VectorStore, on_device: bool = False) -> Any:
        values = v.values if v.form != "sparse" and v.nvals == v.size else v.listed()[1]
        if not on_device:
            return on_host(v, values, v.nvals)
        return stores.spread(v, None) if values is None else self.device.copy_of(values)

    def set_values(self, x: Handle, values: Array) -> None:
        new = self.device.from_host(values)
        if isinstance(x, VectorStore):
            x.set_values(new)
        elif isinstance(x.store, BitmapMatrix):
            x.store.entries.set_values(new)
            x.store.changed()
        else:
            x.store = x.store.with_values(x.store.dtype, new, None)

    def vector_head(self, v: VectorStore, count: int) -> tuple[Array, Array]:
        return bitmap.head(v, count)

    def nvals(self, x: Handle) -> int:
        known: int | None = x.known if isinstance(x, VectorStore) else None
        if known is None:
            self._enter()
            known = int(x.nvals)
        return known

    def form(self, x: Handle) -> str:
        store = x if isinstance(x, VectorStore) else x.store
        if isinstance(store, CscMatrix):
            form, values = "csc and csr" if store.csr is not None else "csc", store.values
        else:
            entries = store.entries if isinstance(store, BitmapMatrix) else store
            form, values = "bitmap" if entries is not store else entries.form, entries.values
        return form + ", iso" * (values is None and store.nvals > 0)

    def isequal(self, x: Any, y: Any) -> bool:
        return x.isequal(y) if isinstance(x, VectorStore) else forms.is_equal(x.csc(), y.csc())

    def levels(self, x: Handle) -> bitmap.VectorLevels | bitmap.BitmapLevels | None:
        if isinstance(x, VectorStore):
            return bitmap.VectorLevels(self.runtime.counters, x)
        return bitmap.BitmapLevels(self.runtime.counters, x) if bitmap.fit_as_bitmaps(x) else None

    def is_symmetric(self, A: MatrixHandle) -> bool:
        return forms.equals_transpose(A.csc())

    def wait(self, x: Handle) -> None:
        self.device.synchronize()

    # ----------------------------------------------------------------------- objects: changed
    def vector_set(self, v: VectorStore, i: int, value: Any) -> None:
        if v.form != "sparse" or v.known != 0:
            self._enter()
        v.set(i, value)

    def vector_remove(self, v: VectorStore, i: int) -> None:
        v.remove(i)

    def vector_clear(self, v: VectorStore) -> None:
        v.adopt(VectorStore(self.device, self.runtime.counters, v.dtype, v.size))

    def may_keep_csr(self, A: MatrixHandle, allowed: bool | None) -> bool:
        form = A.csc()
        if allowed is not None:
            form.may_keep_csr = allowed
            if not allowed:
                form.forget()
        return form.may_keep_csr
