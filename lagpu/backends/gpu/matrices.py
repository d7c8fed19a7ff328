"""Whole matrices on the gpu backend: products, combinations, parts, and the way of writing."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, Semiring
from lagpu.backends.gpu.fused.rowsapart import rows_apart
from lagpu.backends.gpu.objects import Objects
from lagpu.backends.gpu.ops import bitmap, bitmap_mxm, pattern, spgemm, spmv
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.storage import forms
from lagpu.backends.gpu.storage.bitmap import BlockStore, as_block, bytes_of, fits, is_block
from lagpu.backends.gpu.storage.vector import MatrixStore
from lagpu.backends.matrices import Turned
from lagpu.backends.protocol import Descriptor
from lagpu.dtypes import DType

__all__ = ["Matrices"]

Array = np.ndarray[Any, Any]


class Matrices(Objects):
    """The methods of `MatrixOperations`.

    Attributes
    ----------
    plan : Plan or None
        The plan of the last product.
    edges : array or None
        While a product is measured, where what it looks at is counted.
    product : MatrixStore or None
        Then what the last product of matrices was.
    """

    plan: Plan | None = None
    edges: Array | None = None
    product: MatrixStore | None = None

    def matrix_mxm(
        self,
        A: MatrixStore,
        B: MatrixStore,
        semiring: Semiring,
        turned: Turned,
        desc: Descriptor,
    ) -> MatrixStore:
        """See `MatrixOperations`."""
        shape = (A.shape[0], B.shape[0 if turned[1] else 1])
        if is_block(A, desc.mask) and not turned[0] and self._fit(A) and self._fits(A, shape):
            turn = turned[1] and B.turnable
            B = spgemm.turn(B) if turned[1] and not turn else B
            Q, how = as_block(self.counters, A), bitmap_mxm.product_of(A, B, semiring, turn)
            iso = spmv.iso_result(B, Q.entries, how)
            self.plan = bitmap_mxm.choose(Q, B, how, iso)
            made: MatrixStore = bitmap_mxm.multiply(
                self.counters, Q, B, how, iso, self.plan, desc, self.edges
            )
        else:
            left, right = _turned(A, B, turned)
            its_rows = A if turned[0] else None
            made, self.plan = spgemm.mxm(left, its_rows, right, semiring, desc, self.edges)
            made.under = desc
        self.product = None if self.edges is None else made
        return made

    def explain_mxm(
        self, A: MatrixStore, B: MatrixStore, semiring: Semiring, turned: Turned
    ) -> list[str]:
        """See `MatrixOperations`."""
        shape = (A.shape[0], B.shape[0 if turned[1] else 1])
        if is_block(A) and not turned[0] and self._fit(A) and self._fits(A, shape):
            how = bitmap_mxm.product_of(A, B, semiring, turned[1] and B.turnable)
            Q = as_block(self.counters, A)
            plan = bitmap_mxm.choose(Q, B, how, spmv.iso_result(B, Q.entries, how))
        else:
            plan = spgemm.plan(*_turned(A, B, turned))
        said = f"{plan.direction}, {plan.kernel}" if plan.direction else plan.kernel
        return [f"{said}: {plan.reason}", spmv.memory_of(B)]

    def matrix_ewise_add(
        self, A: MatrixStore, B: MatrixStore, op: BinaryOp, turned: Turned
    ) -> MatrixStore:
        """See `MatrixOperations`."""
        return self._combine("ewise_add", A, B, op, turned)

    def matrix_ewise_mult(
        self, A: MatrixStore, B: MatrixStore, op: BinaryOp, turned: Turned
    ) -> MatrixStore:
        """See `MatrixOperations`."""
        return self._combine("ewise_mult", A, B, op, turned)

    def matrix_ewise_union(
        self,
        A: MatrixStore,
        B: MatrixStore,
        op: BinaryOp,
        turned: Turned,
        defaults: tuple[Any, Any],
    ) -> MatrixStore:
        """See `MatrixOperations`."""
        return self._combine("ewise_union", A, B, op, turned, defaults)

    def _combine(
        self,
        mode: str,
        A: MatrixStore,
        B: MatrixStore,
        op: BinaryOp,
        turned: Turned,
        defaults: tuple[Any, Any] | None = None,
    ) -> MatrixStore:
        if is_block(A, B) and not any(turned) and self._fit(A, B):
            return bitmap.combine(mode, self.counters, A, B, op, defaults)
        return pattern.combine(mode, self.counters, *_turned(A, B, turned), op, defaults)

    def matrix_kronecker(
        self, A: MatrixStore, B: MatrixStore, op: BinaryOp, turned: Turned
    ) -> MatrixStore:
        """See `MatrixOperations`."""
        return spgemm.kronecker(*_turned(A, B, turned), op)

    def matrix_extract(self, A: MatrixStore, rows: Array | None, cols: Array | None) -> MatrixStore:
        """See `MatrixOperations`."""
        return spgemm.extract(A, self._there(rows), self._there(cols))

    def matrix_write(self, C: MatrixStore, desc: Descriptor, T: MatrixStore) -> MatrixStore:
        """See `MatrixOperations`."""
        if is_block(C, T) and self._fit(C, T, desc.mask):
            return bitmap.write(self.counters, C, desc, T)
        kept, T.under = T.under is desc, None
        if kept and (C.nvals == 0 or (desc.replace and desc.accum is None)):
            return T if T.dtype is C.dtype else self.matrix_dup(T, C.dtype)
        if kept and desc.accum is not None and not desc.replace:
            desc = desc._replace(mask=None)  # all that is kept is added
        return pattern.write(self.counters, C, desc, T)

    def matrix_assign(
        self,
        C: MatrixStore,
        desc: Descriptor,
        A: MatrixStore,
        turned: bool,
        rows: Array | None,
        cols: Array | None,
    ) -> MatrixStore:
        """See `MatrixOperations`."""
        if rows is None and cols is None and not turned:
            return self.matrix_write(C, desc, A)
        A = spgemm.turn(A) if turned else A
        in_rows, in_cols = self._there(rows), self._there(cols)
        i = A.row_idx if in_rows is None else in_rows[A.row_idx]
        j = A.columns() if in_cols is None else in_cols[A.columns()]
        values = A.number if A.values is None else A.values
        T = forms.from_coo(self.device, i, j, values, A.dtype, C.shape, None)
        return pattern.write(self.counters, C, desc, T, in_rows, in_cols)

    def matrix_assign_scalar(
        self,
        C: MatrixStore,
        desc: Descriptor,
        value: Any,
        rows: Array | None,
        cols: Array | None,
    ) -> MatrixStore:
        """See `MatrixOperations`: at the mask's entries, or where it has none, at all positions."""
        if rows is None and cols is None and is_block(C, desc.mask) and self._fit(C, desc.mask):
            return bitmap.fill(self.counters, C, desc, value)
        in_rows, in_cols = self._there(rows), self._there(cols)
        if desc.mask is not None and not desc.complement:
            where = pattern.positions(desc.mask)
        else:
            where = self._block(C.shape, in_rows, in_cols)
        T = pattern.at_positions(self.device, C.dtype, C.shape, where, None, value)
        return pattern.write(self.counters, C, desc, T, in_rows, in_cols)

    def _block(self, shape: tuple[int, int], rows: Any, cols: Any) -> Any:
        """Return all positions in these rows and columns, rising."""
        xp = self.device.xp
        pattern.require_numbered(shape)
        m, n = (size if x is None else len(x) for size, x in zip(shape, (rows, cols), strict=True))
        self.device.require(m * n * 96, "assign", "Give a mask that is not complemented.")
        i = xp.arange(m, dtype=np.int64) if rows is None else rows
        j = xp.arange(n, dtype=np.int64) if cols is None else cols
        return (j[:, None] * np.int64(shape[0]) + i[None, :]).ravel()

    def _fit(self, *matrices: MatrixStore | None) -> bool:
        """Whether all of these are blocks, or may become such."""
        return all(
            A is None
            or (isinstance(A, BlockStore) and A.entries.form == "bitmap")
            or self._fits(A, A.shape)
            for A in matrices
        )

    def _fits(self, A: MatrixStore, shape: tuple[int, int]) -> bool:
        return fits(self.device, A.dtype, shape)

    def block_bytes(self, dtype: DType, nrows: int, ncols: int) -> int | None:
        """See `Backend`."""
        return bytes_of(dtype, (nrows, ncols))

    def rows_apart(self, A: MatrixStore, k: int) -> bool:
        """See `Backend`."""
        return rows_apart(A, k)

    def _there(self, indices: Array | None) -> Any:
        return None if indices is None else self.device.from_host(indices)


def _turned(A: MatrixStore, B: MatrixStore, turned: Turned) -> tuple[MatrixStore, MatrixStore]:
    return spgemm.turn(A) if turned[0] else A, spgemm.turn(B) if turned[1] else B
