"""The cpu backend: python-graphblas, which is the oracle of all others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lagpu import operations as ops
from lagpu.algebra.operators import BinaryOp
from lagpu.algebra.tables import binary
from lagpu.backends.cpu import csgraph, handles, statements
from lagpu.backends.cpu.handles import LOCK, NULL, Box, c_function, check, gb, lib, on_host
from lagpu.backends.cpu.workarounds import at_indices, boxed
from lagpu.backends.guard import guarded
from lagpu.backends.policies import sparse_batch_size
from lagpu.backends.protocol import Capabilities, LoopMeasured, Measured, Meter
from lagpu.dtypes import DType
from lagpu.errors import InvalidValue, OutOfMemory
from lagpu.host.memory import available_bytes, require


class CpuMeter:
    """Times statements by the host's clock; see `Meter`."""

    def run(
        self, work: Callable[[], None], out: ops.Handle | None, operation: ops.Operation | None
    ) -> Callable[[], Measured]:
        with LOCK:
            w: Any = None if out is None or out.kind == "Matrix" else out
            product: Any = operation
            multiplies = isinstance(product, (ops.Multiply, ops.MultiplySelection))
            edges = before = 0
            if w is not None and multiplies:
                edges, before = _edges(w, product), int(product.operand.gb.nvals)
            start = time.perf_counter()
            work()
            if w is not None:
                handles.finish(w)
            ms = (time.perf_counter() - start) * 1e3
            found = Measured(kernel_ms=ms, host_ms=ms)
            if multiplies:
                by = statements.LAST.plan or statements.ITS_OWN
                found = Measured(ms, ms, direction=by.direction, kernel=by.kernel, reason=by.reason)
            if w is not None and multiplies:
                A, u = product[:2]
                moved = (8 + A.width) * edges + (16 + u.width) * before + (8 + w.width) * w.gb.nvals
                found = found._replace(edges=edges, bytes=int(moved))
            return lambda: found

    def run_loop(self, plan: Callable[[], ops.Planned]) -> tuple[ops.Planned, LoopMeasured | None]:
        return plan(), None

    def count(self, x: Box) -> Callable[[], int]:
        with LOCK:
            known = int(x.gb.nvals)
        return lambda: known

    def stop(self) -> Callable[[], Measured]:
        return Measured

    def unrecorded(self) -> int:
        return 0


def _edges(w: Box, operation: ops.Multiply | ops.MultiplySelection) -> int:
    """Count the matrix entries that meet an entry of the vector."""
    if isinstance(operation, ops.Multiply):
        A, u, product, *_ = operation
        return statements.degree_sum(A, u, product.transpose)
    f, u, product = operation
    columns, rows = f.gb.to_coo()
    inner, nrows = (rows, u.gb.size) if product.transpose else (columns, w.gb.size)
    there = np.isin(inner, u.gb.to_coo(values=False)[0])
    return int(np.count_nonzero(there & (rows >= 0) & (rows < nrows)))


# ------------------------------ The cpu backend: the `Backend` protocol on python-graphblas objects
Array = np.ndarray[Any, Any]
# Bytes that GraphBLAS and python-graphblas take beside their arguments, for an entry without its
# value, a value, and a vertex; measured, docs/design/memory.md.
_FROM_CSC, _FROM_COO, _TO_CSC = (18, 2, 17), (67, 0, 0), (14, 2, 17)
_SHARED = 1 << 17  # entries from which SuiteSparse by itself takes two threads
_LARGE = 1 << 16  # entries or vertices from which free memory is read


def _signed(indices: Array) -> Array:
    """Return indices of SuiteSparse, UINT64 below 2**60, as INT64 without a copy."""
    return indices.view(np.int64) if indices.dtype == np.uint64 else indices.astype(np.int64)


@guarded(handles.named_error)
class CpuBackend:
    """python-graphblas: the oracle, and the default where there is no GPU. See `Backend`."""

    name = "cpu"
    capabilities = Capabilities(
        policies=tuple(statements.POLICIES),
        threads=handles.allowed_threads,
        patience=csgraph.patience,
        by_rows=True,
    )
    device = None
    lock = LOCK
    enter = None
    last_loop = ""

    def __repr__(self) -> str:
        return f"<lagpu backend {self.name}>"

    @property
    def last_product(self) -> statements.Plan | None:
        return getattr(statements.LAST, "plan", None)

    # --------------------------------------------------------------------------- statements
    def execute(self, statement: ops.Statement) -> None:
        w, desc, operation, _ = statement
        if w.kind == "Matrix":
            statements.run_on_matrix(statement)
            return
        kind = type(operation)
        if kind is not ops.Multiply:
            w.stats = None
        run = statements.RUN[kind]
        try:
            if w.size >= _SHARED or (
                isinstance(operation, ops.Multiply)
                and statements.counts_of(operation.matrix).nvals >= _SHARED
            ):
                handles.by_threads(0, run, w, desc, operation)
            else:  # one thread in any case
                run(w, desc, operation)
        except OutOfMemory as error:
            if lib.GrB_Vector_nvals(handles.COUNT, w.handle) == lib.GrB_INVALID_OBJECT:
                lost = f"{error} The entries of the output are lost. Make it again."
                raise OutOfMemory(lost) from error
            raise

    def evaluate(self, operation: ops.Operation) -> Any:
        if isinstance(operation, ops.ExtractElement):
            return statements.element(operation.operand, operation.position)
        assert isinstance(operation, ops.Reduce)
        u = operation.operand
        if not handles.count_entries(u):
            return None
        if u.shape[0] < _SHARED:
            return statements.reduced(u, operation.monoid)
        return handles.by_threads(0, statements.reduced, u, operation.monoid)

    def explain(self, operation: ops.Operation) -> list[str]:
        if isinstance(operation, ops.MultiplySelection):
            statements.require_no_choice(operation.product)
            how = "multiplies by the matrix, which is built from the vector"
            return [f"SuiteSparse:GraphBLAS {how}"]
        assert isinstance(operation, ops.Multiply)
        A, u, product = operation.matrix, operation.operand, operation.product
        statements.require_no_choice(product, has_policies=True)
        if u.kind == "Matrix":
            return ["SuiteSparse:GraphBLAS chooses its own method and does not report it"]
        plan = statements.choose(A, u, product)
        chosen = f"{plan.direction}, {plan.kernel}" if plan.direction else plan.kernel
        return [f"{chosen}: {plan.reason}", statements.memory_of(A)]

    def plan_loop(self, body: ops.Statements, turns: ops.Turns) -> ops.Planned:
        return csgraph.plan_whole(body, turns)

    def batch_size(
        self, A: Box, sources: int, levels: int, live: Sequence[tuple[DType, int]]
    ) -> int:
        if csgraph.is_long(A, levels):  # one at a time is one call, at any number of levels
            return 1
        return sparse_batch_size(self.free_bytes(), A.gb.nrows, A.gb.nvals, sources, levels)

    def meter(self) -> Meter:
        return CpuMeter()

    def free_bytes(self) -> int:
        return available_bytes()

    # ------------------------------------------------------------------- objects: made, read
    def vector(self, dtype: DType, size: int) -> Box:
        return boxed(handles.made(dtype, size), dtype)

    def matrix(self, dtype: DType, shape: tuple[int, int]) -> Box:
        A = handles.made(dtype, *shape)
        A.ss.config["format"] = "by_row"
        return boxed(A, dtype)

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> Box:
        if indices is None:
            return boxed(gb.Vector.from_dense(on_host(values), dtype=dtype.name), dtype)
        if np.ndim(values):
            v = gb.Vector.from_coo(on_host(indices), on_host(values), dtype.name, size=size)
            return boxed(v, dtype)
        out = self.vector(dtype, size)
        if len(indices):
            where, count, _owner = handles.index_list(on_host(indices), size)
            one = dtype.numpy.type(values).item()
            call = at_indices(c_function("Vector_assign", dtype), indices, size)
            check(call(out.handle, NULL, NULL, one, where, count, NULL), "assign")
        return out

    def matrix_from_coo(
        self, rows: Any, cols: Any, values: Any, dtype: DType,
        shape: tuple[int, int], dup_op: BinaryOp | None,
    ) -> Box:  # fmt: skip
        _require(_FROM_COO, len(rows), 0, dtype, "from_coo")
        if np.ndim(values) == 0:  # python-graphblas takes no dup_op with a scalar
            values = np.broadcast_to(dtype.numpy.type(values), len(rows))
            dup_op = binary.first if dup_op is None else dup_op
        if dup_op is not None and not dtype.is_bool and dup_op.types(dtype) != (dtype, dtype):
            # GraphBLAS casts the values of entries that are given once, too.
            entries = on_host(rows), on_host(cols), on_host(values)
            (rows, cols, values), dup_op = dup_op.merged(*entries, dtype), None
        dup = None if dup_op is None else handles.typed_operator(dup_op, dup_op.types(dtype)[0])
        try:
            A = gb.Matrix.from_coo(
                on_host(rows), on_host(cols), on_host(values), dtype.name,
                nrows=shape[0], ncols=shape[1], dup_op=dup,
            )  # fmt: skip
        except ValueError as error:
            twice = "from_coo: an entry is given twice. Give dup_op=, e.g. binary.plus."
            raise InvalidValue(twice) from error
        return boxed(A, dtype)

    def matrix_from_csc(
        self, col_ptr: Any, row_idx: Any, values: Any, dtype: DType,
        shape: tuple[int, int], symmetric: bool | None = None, by_rows: bool = False,
    ) -> Box:  # fmt: skip
        """See `Backend`; these may be compressed rows, as those of a symmetric matrix are."""
        _require(_FROM_CSC, len(row_idx), shape[1], dtype if np.ndim(values) else None, "Matrix")

        def made() -> Any:
            ptr, idx = (np.array(on_host(x), np.uint64) for x in (col_ptr, row_idx))
            given: dict[str, Any] = {
                "values": np.array(on_host(values), dtype.numpy, ndmin=1),
                "is_iso": np.ndim(values) == 0, "take_ownership": True, "dtype": dtype.name,
                "nrows": shape[0], "ncols": shape[1], "indptr": ptr,
            }  # fmt: skip
            new = gb.Matrix.ss
            if by_rows or symmetric:
                return new.import_csr(col_indices=idx, sorted_cols=True, **given)
            A = new.import_csc(row_indices=idx, sorted_rows=True, **given)
            A.ss.config["format"] = "by_row"  # the form in which a sparse frontier pushes
            return A

        box = boxed(handles.by_threads(0, made), dtype)
        box.symmetric = symmetric
        return box

    def matrix_from_diagonal(self, v: Box, k: int) -> Box:
        return boxed(v.gb.diag(k), v.dtype)

    def diagonal(self, A: Box, k: int, rows: Any = None) -> Box:
        if rows is None:
            return boxed(A.gb.diag(k), A.dtype)
        col_ptr, row_idx, values = self.matrix_to_csc(A)
        cols = np.repeat(np.arange(len(rows)), np.diff(col_ptr))
        there = np.flatnonzero(row_idx == rows[cols])
        return self.vector_from_coo(cols[there], values[there], A.dtype, len(rows))

    def dup(self, x: Box, dtype: DType) -> Box:
        copy = boxed(x.gb.dup(dtype.name), dtype)
        copy.symmetric = x.symmetric or None  # a cast may make it so
        return copy

    def adopt(self, obj: Any, dtype: DType) -> Box:
        """Return the handle of a python-graphblas object, which loses its entries to it."""
        with LOCK:
            new = type(obj)(dtype.name, *obj.shape)
            new.gb_obj, obj.gb_obj = obj.gb_obj, new.gb_obj
            if new.ndim == 2:
                new.ss.config["format"] = "by_row"
            return boxed(new, dtype)

    def release(self, x: Box) -> Any:
        """Return the python-graphblas object of a handle, which is left without entries."""
        with LOCK:
            found = x.gb
            x.become(boxed(type(found)(x.dtype.name, *x.shape), x.dtype))
            return found

    def vector_to_coo(self, v: Box) -> tuple[Array, Array]:
        indices, values = v.gb.to_coo()
        return _signed(indices), values

    def matrix_to_csc(
        self, A: Box, on_device: bool = False, narrow: bool = False
    ) -> tuple[Array, Array, Array]:
        _require(_TO_CSC, A.gb.nvals, A.gb.ncols, A.dtype, "to_csc")
        ptr, idx, values = A.gb.to_csc()
        return _signed(ptr), _signed(idx), values

    def vector_values(self, v: Box, on_device: bool = False) -> Array:
        return v.gb.to_coo(indices=False)[1]

    def set_values(self, x: Box, values: Array) -> None:
        if x.kind == "Vector":
            x.become(self.vector_from_coo(self.vector_to_coo(x)[0], values, x.dtype, x.size))
        else:
            ptr, idx, _ = self.matrix_to_csc(x)
            x.become(self.matrix_from_csc(ptr, idx, values, x.dtype, x.gb.shape))

    def vector_head(self, v: Box, count: int) -> tuple[Array, Array]:
        indices, values = v.gb.ss.head(count, sort=True)
        return _signed(indices[:count]), values[:count]

    def nvals(self, x: Box) -> int:
        return handles.count_entries(x)

    def form(self, x: Box) -> str:
        return str(x.gb.ss.format) + ", iso" * bool(x.gb.nvals and x.gb.ss.is_iso)

    def isequal(self, x: Box, y: Box) -> bool:
        return bool(x.gb.isequal(y.gb))

    def levels(self, x: Box) -> None:
        return None

    def is_symmetric(self, A: Box) -> bool:
        if A.symmetric is None:
            A.symmetric = bool(A.gb.isequal(A.gb.T.new()))
            A.transposed = None if A.symmetric else A.transposed
        return A.symmetric

    def wait(self, x: Box) -> None:
        handles.finish(x)

    # ----------------------------------------------------------------------- objects: changed
    def vector_set(self, v: Box, i: int, value: Any) -> None:
        v.stats = None
        check(c_function("Vector_setElement", v.dtype)(v.handle, value.item(), i), "setElement")

    def vector_remove(self, v: Box, i: int) -> None:
        v.stats = None
        check(lib.GrB_Vector_removeElement(v.handle, i), "removeElement")

    def vector_clear(self, v: Box) -> None:
        v.stats = None
        v.gb.clear()

    def may_keep_csr(self, A: Box, allowed: bool | None) -> bool:
        if allowed is not None:
            A.may_transpose = allowed
            if not allowed:
                A.transposed = None
        return A.may_transpose


def _require(cost: Sequence[int], nvals: int, ncols: int, dtype: DType | None, what: str) -> None:
    """Raise `OutOfMemory` if a matrix takes more than is free; no `dtype` is one value for all."""
    if nvals + ncols >= _LARGE:
        entry, value, vertex = cost
        width = 0 if dtype is None else value * dtype.numpy.itemsize
        require(nvals * (entry + width) + ncols * vertex, what)
