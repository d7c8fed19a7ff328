"""Vectors and matrices on the cpu backend: made, read, copied, changed entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.cpu.handles import (
    NULL,
    Box,
    c_function,
    check,
    ffi,
    gb,
    index_list,
    lib,
    on_host,
)
from lagpu.backends.cpu.operators import typed_operator
from lagpu.backends.cpu.shared import element
from lagpu.backends.cpu.workarounds import at_indices
from lagpu.dtypes import BOOL, DType
from lagpu.errors import InvalidValue, NotSupported

__all__ = ["Objects"]

Array = np.ndarray[Any, Any]
_COUNT = ffi.new("GrB_Index*")


class Objects:
    """What a backend does with one vector or matrix; see `Backend`."""

    # ------------------------------------------------------------------------- vectors
    def vector(self, dtype: DType, size: int) -> Box:
        """See `Backend`."""
        return Box(gb.Vector(dtype.name, size), dtype)

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> Box:
        """See `Backend`."""
        if indices is None:
            return Box(gb.Vector.from_dense(on_host(values), dtype=dtype.name), dtype)
        if np.ndim(values):
            v = gb.Vector.from_coo(on_host(indices), on_host(values), dtype.name, size=size)
            return Box(v, dtype)
        out = self.vector(dtype, size)
        if len(indices):
            where, count, _owner = index_list(on_host(indices), size)
            one = dtype.numpy.type(values).item()
            call = at_indices(c_function("Vector_assign", dtype), indices, size)
            check(call(out.handle, NULL, NULL, one, where, count, NULL), "assign")
        return out

    def vector_to_coo(self, v: Box) -> tuple[Array, Array]:
        """See `Backend`."""
        indices, values = v.gb.to_coo()
        return indices.astype(np.int64, copy=False), values

    def vector_values(self, v: Box) -> Array:
        """See `Backend`."""
        return self.vector_to_coo(v)[1]

    def vector_head(self, v: Box, count: int) -> tuple[Array, Array]:
        """See `Backend`."""
        indices, values = v.gb.ss.head(count, sort=True)
        return indices[:count].astype(np.int64, copy=False), values[:count]

    def vector_form(self, v: Box) -> str:
        """See `Backend`: SuiteSparse may store an object otherwise after each operation."""
        return str(v.gb.ss.format) + ", iso" * bool(v.gb.nvals and v.gb.ss.is_iso)

    def vector_dup(self, v: Box, dtype: DType) -> Box:
        """See `Backend`."""
        return Box(v.gb.dup(dtype.name), dtype)

    def vector_nvals(self, v: Box) -> int:
        """See `Backend`."""
        lib.GrB_Vector_nvals(_COUNT, v.handle)
        return int(_COUNT[0])

    def vector_wait(self, v: Box) -> None:
        """See `Backend`."""
        check(lib.GrB_Vector_wait(v.handle, lib.GrB_MATERIALIZE), "wait")

    def vector_get(self, v: Box, i: int) -> Any:
        """See `Backend`."""
        return element("Vector", v, i)

    def vector_set(self, v: Box, i: int, value: Any) -> None:
        """See `Backend`."""
        check(c_function("Vector_setElement", v.dtype)(v.handle, value.item(), i), "setElement")

    def vector_remove(self, v: Box, i: int) -> None:
        """See `Backend`."""
        check(lib.GrB_Vector_removeElement(v.handle, i), "removeElement")

    def vector_clear(self, v: Box) -> None:
        """See `Backend`."""
        v.gb.clear()

    def vector_resize(self, v: Box, size: int) -> None:
        """See `Backend`."""
        v.gb.resize(size)

    def vector_isequal(self, u: Box, v: Box) -> bool:
        """See `Backend`."""
        return bool(u.gb.isequal(v.gb))

    # ------------------------------------------------------------------------ matrices
    def matrix_from_coo(
        self,
        rows: Any,
        cols: Any,
        values: Any,
        dtype: DType,
        shape: tuple[int, int],
        dup_op: BinaryOp | None,
    ) -> Box:
        """See `Backend`."""
        if np.ndim(values) == 0:  # GraphBLAS takes no dup_op beside a scalar
            values = np.broadcast_to(dtype.numpy.type(values), len(rows))
        dup = None if dup_op is None else typed_operator(dup_op, dup_op.types(dtype)[0])
        try:
            A = gb.Matrix.from_coo(
                on_host(rows), on_host(cols), on_host(values), dtype.name,
                nrows=shape[0], ncols=shape[1], dup_op=dup,
            )  # fmt: skip
        except ValueError as error:
            twice = "from_coo: an entry is given twice. Give dup_op=, e.g. binary.plus."
            raise InvalidValue(twice) from error
        return Box(A, dtype)

    def matrix(self, dtype: DType, shape: tuple[int, int]) -> Box:
        """See `Backend`."""
        A = gb.Matrix(dtype.name, *shape)
        A.ss.config["format"] = "by_row"
        return Box(A, dtype)

    def matrix_from_csc(
        self, col_ptr: Any, row_idx: Any, values: Any, dtype: DType, shape: tuple[int, int]
    ) -> Box:
        """See `Backend`."""
        if np.ndim(values) == 0:
            values = dtype.numpy.type(values)
        A = gb.Matrix.from_csc(
            on_host(col_ptr), on_host(row_idx), on_host(values), dtype.name, nrows=shape[0]
        )
        A.ss.config["format"] = "by_row"  # the form in which a sparse frontier pushes
        return Box(A, dtype)

    def matrix_to_csc(self, A: Box) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        ptr, idx, values = A.gb.to_csc()
        return ptr.astype(np.int64, copy=False), idx.astype(np.int64, copy=False), values

    def matrix_corner(self, A: Box, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        rows, cols, values = A.gb[:nrows, :ncols].new().to_coo()
        return rows.astype(np.int64, copy=False), cols.astype(np.int64, copy=False), values

    matrix_form = vector_form

    def matrix_dup(self, A: Box, dtype: DType) -> Box:
        """See `Backend`."""
        return Box(A.gb.dup(dtype.name), dtype)

    def matrix_nvals(self, A: Box) -> int:
        """See `Backend`."""
        return int(A.gb.nvals)

    def matrix_get(self, A: Box, i: int, j: int) -> Any:
        """See `Backend`."""
        return element("Matrix", A, i, j)

    def matrix_isequal(self, A: Box, B: Box) -> bool:
        """See `Backend`."""
        return bool(A.gb.isequal(B.gb))

    def matrix_transpose(self, A: Box) -> Box:
        """See `Backend`."""
        return Box(A.gb.T.new(), A.dtype)

    def matrix_selection(self, f: Box, nrows: int, turned: bool) -> Box:
        """See `Backend`: GraphBLAS takes over the arrays of the transpose, by rows."""
        indices, values = f.gb.to_coo()
        inside = (values >= 0) & (values < nrows)
        rows = values[inside].astype(np.uint64)
        ptr = np.zeros(f.gb.size + 1, np.uint64)
        ptr[1:][indices[inside]] = 1
        by_row = gb.Matrix.ss.import_csr(
            nrows=f.gb.size, ncols=nrows, indptr=np.cumsum(ptr), col_indices=rows,
            values=np.ones(1, bool), is_iso=True, sorted_cols=True, take_ownership=True,
        )  # fmt: skip
        return Box(by_row if turned else by_row.T.new(), BOOL)

    def matrix_from_diag(self, v: Box, k: int) -> Box:
        """See `Backend`."""
        return Box(v.gb.diag(k), v.dtype)

    def matrix_diag(self, A: Box, k: int) -> Box:
        """See `Backend`."""
        return Box(A.gb.diag(k), A.dtype)

    def matrix_is_symmetric(self, A: Box) -> bool:
        """See `Backend`."""
        if A.symmetric is None:
            A.symmetric = bool(A.gb.isequal(A.gb.T.new()))
        return A.symmetric

    def matrix_turnable(self, A: Any, allowed: bool | None) -> bool:
        """See `Backend`."""
        if allowed is not None:
            raise NotSupported("orientation: SuiteSparse:GraphBLAS keeps the forms it likes.")
        return True
