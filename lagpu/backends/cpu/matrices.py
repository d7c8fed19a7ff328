"""Operations that make a matrix: each is one or two GraphBLAS C calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator, Semiring
from lagpu.algebra.tables import unary
from lagpu.backends.cpu.handles import (
    NULL,
    Box,
    c_function,
    c_scalar,
    check,
    descriptor,
    gb,
    index_list,
    lib,
)
from lagpu.backends.cpu.objects import Objects
from lagpu.backends.cpu.operators import (
    binary_operator,
    c_semiring,
    compares_in_type_of_entries,
    typed_operator,
)
from lagpu.backends.cpu.shared import apply_into, how_written, reduced, select_into
from lagpu.backends.cpu.workarounds import at_indices
from lagpu.backends.matrices import Turned
from lagpu.backends.protocol import Applied, Descriptor
from lagpu.dtypes import DType, lookup

__all__ = ["WholeMatrices"]

Array = np.ndarray[Any, Any]


class WholeMatrices(Objects):
    """Products, combinations, parts and writes of matrices; see `MatrixOperations`."""

    def matrix_mxm(
        self, A: Box, B: Box, semiring: Semiring, turned: Turned, desc: Descriptor
    ) -> Box:
        """See `MatrixOperations`."""
        domain, result = semiring.types(A.dtype, B.dtype)
        out = _matrix(result, _shape(A, turned[0])[0], _shape(B, turned[1])[1])
        mask = NULL if desc.mask is None else desc.mask.handle
        d = descriptor(False, desc.structure, desc.complement, _turns(turned))
        plus_times = c_semiring(semiring, domain)
        check(lib.GrB_mxm(out.handle, mask, NULL, plus_times, A.handle, B.handle, d), "mxm")
        return out

    def matrix_ewise_add(self, A: Box, B: Box, op: BinaryOp, turned: Turned) -> Box:
        """See `MatrixOperations`."""
        return _combined(lib.GrB_Matrix_eWiseAdd_BinaryOp, A, B, op, turned)

    def matrix_ewise_mult(self, A: Box, B: Box, op: BinaryOp, turned: Turned) -> Box:
        """See `MatrixOperations`."""
        return _combined(lib.GrB_Matrix_eWiseMult_BinaryOp, A, B, op, turned)

    def matrix_ewise_union(
        self, A: Box, B: Box, op: BinaryOp, turned: Turned, defaults: tuple[Any, Any]
    ) -> Box:
        """See `MatrixOperations`."""
        domain, result = op.types(A.dtype, B.dtype)
        out = _matrix(result, *_shape(A, turned[0]))
        left, right = (c_scalar(x, domain) for x in defaults)
        info = lib.GxB_Matrix_eWiseUnion(
            out.handle, NULL, NULL, typed_operator(op, domain).gb_obj,
            A.handle, left.handle, B.handle, right.handle, _turning(turned),
        )  # fmt: skip
        check(info, "ewise_union")
        return out

    def matrix_kronecker(self, A: Box, B: Box, op: BinaryOp, turned: Turned) -> Box:
        """See `MatrixOperations`."""
        (m, n), (p, q) = _shape(A, turned[0]), _shape(B, turned[1])
        out = _matrix(op.types(A.dtype, B.dtype)[1], m * p, n * q)
        operator = binary_operator(op, A.dtype, B.dtype)
        d = _turning(turned)
        info = lib.GrB_Matrix_kronecker_BinaryOp(
            out.handle, NULL, NULL, operator, A.handle, B.handle, d
        )
        check(info, "kronecker")
        return out

    def matrix_extract(self, A: Box, rows: Array | None, cols: Array | None) -> Box:
        """See `MatrixOperations`."""
        nrows, ncols = _shape(A, False)
        i, m, _i = index_list(rows, nrows)
        j, n, _j = index_list(cols, ncols)
        out = _matrix(
            A.dtype, nrows if rows is None else len(rows), ncols if cols is None else len(cols)
        )
        call = at_indices(at_indices(lib.GrB_Matrix_extract, rows, nrows), cols, ncols)
        check(call(out.handle, NULL, NULL, A.handle, i, m, j, n, NULL), "extract")
        return out

    def matrix_write(self, C: Box, desc: Descriptor, T: Box) -> Box:
        """See `MatrixOperations`: an identity, as assigning a full matrix is not safe (cpu.md)."""
        out = self.matrix_dup(C, C.dtype)
        mask, accum, d = how_written(out, desc, T.dtype)
        how = Applied(T.dtype, T.dtype)
        apply_into("Matrix", out, mask, accum, d, T, unary.identity, how)
        return out

    def matrix_assign(
        self, C: Box, desc: Descriptor, A: Box, turned: bool, rows: Array | None, cols: Array | None
    ) -> Box:
        """See `MatrixOperations`."""
        if turned:
            A = self.matrix_transpose(A)
        if desc.accum is not None:  # first to its place, so that only one call accumulates
            blank = _matrix(A.dtype, *_shape(C, False))
            plain = Descriptor()
            return self.matrix_write(
                C, desc, self.matrix_assign(blank, plain, A, False, rows, cols)
            )
        out = self.matrix_dup(C, C.dtype)
        mask, accum, d = how_written(out, desc, A.dtype)
        i, m, _i = index_list(rows, out.gb.nrows)
        j, n, _j = index_list(cols, out.gb.ncols)
        call = at_indices(lib.GrB_Matrix_assign, rows, out.gb.nrows)
        call = at_indices(call, cols, out.gb.ncols)
        check(call(out.handle, mask, accum, A.handle, i, m, j, n, d), "assign")
        return out

    def matrix_assign_scalar(
        self, C: Box, desc: Descriptor, value: Any, rows: Array | None, cols: Array | None
    ) -> Box:
        """See `MatrixOperations`."""
        out = self.matrix_dup(C, C.dtype)
        mask, accum, d = how_written(out, desc, out.dtype)
        i, m, _i = index_list(rows, out.gb.nrows)
        j, n, _j = index_list(cols, out.gb.ncols)
        call = at_indices(c_function("Matrix_assign", out.dtype), rows, out.gb.nrows)
        call = at_indices(call, cols, out.gb.ncols)
        check(call(out.handle, mask, accum, value.item(), i, m, j, n, d), "assign")
        return out

    def matrix_apply(self, A: Box, op: Operator, how: Applied) -> Box:
        """See `Backend`."""
        C = gb.Matrix(how.result.name, A.gb.nrows, A.gb.ncols)
        out = Box(C, how.result)
        apply_into("Matrix", out, NULL, NULL, NULL, A, op, how)
        return out

    def matrix_select(self, A: Box, op: IndexUnaryOp, thunk: Any) -> Box:
        """See `Backend`."""
        out = Box(gb.Matrix(A.dtype.name, A.gb.nrows, A.gb.ncols), A.dtype)
        if compares_in_type_of_entries(op, A, thunk):
            select_into("Matrix", out, NULL, NULL, NULL, A, op, thunk)
        else:
            kept = self.matrix_select(self.matrix_dup(A, lookup(thunk.dtype)), op, thunk)
            shape = (lib.GrB_ALL, A.gb.nrows, lib.GrB_ALL, A.gb.ncols)
            where = (out.handle, kept.handle, NULL, A.handle, *shape, lib.GrB_DESC_S)
            check(lib.GrB_Matrix_assign(*where), "select")
        return out

    def matrix_reduce(self, A: Box, monoid: Monoid) -> Any:
        """See `Backend`."""
        return reduced("Matrix", A, monoid) if A.gb.nvals else None


def _matrix(dtype: DType, nrows: int, ncols: int) -> Box:
    return Box(gb.Matrix(dtype.name, nrows, ncols), dtype)


def _shape(A: Box, turned: bool) -> tuple[int, int]:
    m, n = A.gb.nrows, A.gb.ncols
    return (n, m) if turned else (m, n)


def _turns(turned: Turned) -> str:
    return "T0" * turned[0] + "T1" * turned[1]


def _turning(turned: Turned) -> Any:
    return descriptor(False, False, False, _turns(turned))


def _combined(call: Any, A: Box, B: Box, op: BinaryOp, turned: Turned) -> Box:
    """Return an element-wise combination."""
    out = _matrix(op.types(A.dtype, B.dtype)[1], *_shape(A, turned[0]))
    operator = binary_operator(op, A.dtype, B.dtype)
    info = call(out.handle, NULL, NULL, operator, A.handle, B.handle, _turning(turned))
    check(info, "ewise")
    return out
