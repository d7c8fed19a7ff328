"""Whole matrices on the cpu backend: each operation is one or two GraphBLAS C calls."""

from __future__ import annotations

from typing import Any

import graphblas as gb
import numpy as np
from suitesparse_graphblas import lib

from lagpu.algebra import unary
from lagpu.backends.base import Applied, Descriptor
from lagpu.backends.cpu import (
    NULL,
    Box,
    CpuBackend,
    _binary,
    _check,
    _descriptor,
    _function,
    _mask,
    _operator,
    _pointer,
    _scalar,
    _semiring,
)
from lagpu.backends.matrices import Turned
from lagpu.dtypes import DType
from lagpu.operators import BinaryOp, Semiring

__all__ = ["WholeCpuBackend"]

Array = np.ndarray[Any, Any]


class WholeCpuBackend(CpuBackend):
    """The cpu backend with all operations on whole matrices."""

    def matrix_mxm(
        self, A: Box, B: Box, semiring: Semiring, turned: Turned, desc: Descriptor
    ) -> Box:
        """See `MatrixOperations`."""
        domain, result = semiring.types(A.dtype, B.dtype)
        out = _matrix(result, _shape(A, turned[0])[0], _shape(B, turned[1])[1])
        mask = NULL if desc.mask is None else desc.mask.handle
        d = _descriptor(False, desc.structure, desc.complement, _turns(turned))
        plus_times = _semiring(semiring, domain)
        _check(lib.GrB_mxm(out.handle, mask, NULL, plus_times, A.handle, B.handle, d), "mxm")
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
        left, right = (_scalar(x, domain) for x in defaults)
        info = lib.GxB_Matrix_eWiseUnion(
            out.handle, NULL, NULL, _operator(op, domain).gb_obj,
            A.handle, left.handle, B.handle, right.handle, _turning(turned),
        )  # fmt: skip
        _check(info, "ewise_union")
        return out

    def matrix_kronecker(self, A: Box, B: Box, op: BinaryOp, turned: Turned) -> Box:
        """See `MatrixOperations`."""
        (m, n), (p, q) = _shape(A, turned[0]), _shape(B, turned[1])
        out = _matrix(op.types(A.dtype, B.dtype)[1], m * p, n * q)
        operator = _binary(op, A.dtype, B.dtype)
        d = _turning(turned)
        info = lib.GrB_Matrix_kronecker_BinaryOp(
            out.handle, NULL, NULL, operator, A.handle, B.handle, d
        )
        _check(info, "kronecker")
        return out

    def matrix_extract(self, A: Box, rows: Array | None, cols: Array | None) -> Box:
        """See `MatrixOperations`."""
        nrows, ncols = _shape(A, False)
        i, m, _i = _pointer(rows, nrows)
        j, n, _j = _pointer(cols, ncols)
        out = _matrix(
            A.dtype, nrows if rows is None else len(rows), ncols if cols is None else len(cols)
        )
        call = lib.GrB_Matrix_extract
        _check(call(out.handle, NULL, NULL, A.handle, i, m, j, n, NULL), "extract")
        return out

    def matrix_write(self, C: Box, desc: Descriptor, T: Box) -> Box:
        """See `MatrixOperations`: an identity, as assigning a full matrix is not safe (cpu.md)."""
        out = _changeable(self, C, desc)
        mask, accum, d = _how(out, desc, T.dtype)
        how = Applied(T.dtype, T.dtype)
        self._apply("Matrix", out, mask, accum, d, T, unary.identity, how)
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
        out = _changeable(self, C, desc)
        mask, accum, d = _how(out, desc, A.dtype)
        i, m, _i = _pointer(rows, out.gb.nrows)
        j, n, _j = _pointer(cols, out.gb.ncols)
        call = lib.GrB_Matrix_assign
        _check(call(out.handle, mask, accum, A.handle, i, m, j, n, d), "assign")
        return out

    def matrix_assign_scalar(
        self, C: Box, desc: Descriptor, value: Any, rows: Array | None, cols: Array | None
    ) -> Box:
        """See `MatrixOperations`."""
        out = _changeable(self, C, desc)
        mask, accum, d = _how(out, desc, out.dtype)
        i, m, _i = _pointer(rows, out.gb.nrows)
        j, n, _j = _pointer(cols, out.gb.ncols)
        call = _function("Matrix_assign", out.dtype)
        _check(call(out.handle, mask, accum, value.item(), i, m, j, n, d), "assign")
        return out


def _matrix(dtype: DType, nrows: int, ncols: int) -> Box:
    return Box(gb.Matrix(dtype.name, nrows, ncols), dtype)


def _shape(A: Box, turned: bool) -> tuple[int, int]:
    m, n = A.gb.nrows, A.gb.ncols
    return (n, m) if turned else (m, n)


def _turns(turned: Turned) -> str:
    return "T0" * turned[0] + "T1" * turned[1]


def _turning(turned: Turned) -> Any:
    return _descriptor(False, False, False, _turns(turned))


def _combined(call: Any, A: Box, B: Box, op: BinaryOp, turned: Turned) -> Box:
    """Return an element-wise combination."""
    out = _matrix(op.types(A.dtype, B.dtype)[1], *_shape(A, turned[0]))
    operator = _binary(op, A.dtype, B.dtype)
    info = call(out.handle, NULL, NULL, operator, A.handle, B.handle, _turning(turned))
    _check(info, "ewise")
    return out


def _changeable(backend: CpuBackend, C: Box, desc: Descriptor) -> Box:
    """Return a copy to write into; never a full one if something is added to it (cpu.md)."""
    out = backend.matrix_dup(C, C.dtype)
    if desc.accum is not None:
        form = lib.GxB_SPARSE | lib.GxB_BITMAP
        info = lib.GrB_Matrix_set_INT32(out.handle, form, lib.GxB_SPARSITY_CONTROL)
        _check(info, "accumulate")
    return out


def _how(out: Box, desc: Descriptor, result: DType) -> tuple[Any, Any, Any]:
    """Return (mask, accumulator, descriptor) as C handles."""
    return (
        _mask(desc),
        NULL if desc.accum is None else _binary(desc.accum, out.dtype, result),
        _descriptor(desc.replace, desc.structure, desc.complement, ""),
    )
