"""Operations that write a vector: each is one GraphBLAS C call."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator
from lagpu.algebra.tables import unary
from lagpu.backends.cpu.handles import (
    Box,
    c_function,
    c_scalar,
    check,
    descriptor,
    index_list,
    lib,
)
from lagpu.backends.cpu.objects import Objects
from lagpu.backends.cpu.operators import (
    binary_operator,
    c_monoid,
    c_semiring,
    compares_in_type_of_entries,
    typed_operator,
)
from lagpu.backends.cpu.shared import (
    apply_into,
    how_written,
    reduced,
    require_no_choice,
    select_into,
)
from lagpu.backends.cpu.workarounds import (
    accumulator,
    at_indices,
    crashes_on_full,
    empty_first,
    mask_handle,
)
from lagpu.backends.protocol import Applied, Descriptor, Product
from lagpu.dtypes import lookup

__all__ = ["VectorOperations"]

Array = np.ndarray[Any, Any]


class VectorOperations(Objects):
    """Products, combinations, parts and sums that end in a vector; see `Backend`."""

    def mxv(self, w: Box, desc: Descriptor, A: Box, u: Box, how: Product) -> None:
        """See `Backend`."""
        require_no_choice(how)
        _, structure, complement, accum, replace = desc
        semiring = c_semiring(how.semiring, how.domain)
        target = mask_handle(desc)
        plus = accumulator(w, accum, how.result)
        if how.flip:
            d = descriptor(replace, structure, complement, "" if how.transpose else "T1")
            info = lib.GrB_vxm(w.handle, target, plus, semiring, u.handle, A.handle, d)
        else:
            d = descriptor(replace, structure, complement, "T0" if how.transpose else "")
            info = lib.GrB_mxv(w.handle, target, plus, semiring, A.handle, u.handle, d)
        if info:
            check(info, "mxv")

    def mxv_selection(self, w: Box, desc: Descriptor, f: Box, u: Box, how: Product) -> None:
        """See `Backend`: with P', as its rows need no sorting."""
        nrows = u.gb.size if how.transpose else w.gb.size
        turned = self.matrix_selection(f, nrows, True)
        self.mxv(w, desc, turned, u, how._replace(transpose=not how.transpose))

    def ewise_add(self, w: Box, desc: Descriptor, u: Box, v: Box, op: BinaryOp) -> None:
        """See `Backend`."""
        _ewise(lib.GrB_Vector_eWiseAdd_BinaryOp, w, desc, u, v, op)

    def ewise_mult(self, w: Box, desc: Descriptor, u: Box, v: Box, op: BinaryOp) -> None:
        """See `Backend`."""
        _ewise(lib.GrB_Vector_eWiseMult_BinaryOp, w, desc, u, v, op)

    def ewise_union(
        self,
        w: Box,
        desc: Descriptor,
        u: Box,
        v: Box,
        op: BinaryOp,
        defaults: tuple[Any, Any],
    ) -> None:
        """See `Backend`."""
        domain, result = op.types(u.dtype, v.dtype)
        mask, accum, d = how_written(w, desc, result)
        left, right = (c_scalar(x, domain) for x in defaults)
        info = lib.GxB_Vector_eWiseUnion(
            w.handle, mask, accum, typed_operator(op, domain).gb_obj,
            u.handle, left.handle, v.handle, right.handle, d,
        )  # fmt: skip
        check(info, "ewise_union")

    def apply(self, w: Box, desc: Descriptor, u: Box, op: Operator, how: Applied) -> None:
        """See `Backend`."""
        mask, accum, d = how_written(w, desc, how.result)
        apply_into("Vector", w, mask, accum, d, u, op, how)

    def select(self, w: Box, desc: Descriptor, u: Box, op: IndexUnaryOp, thunk: Any) -> None:
        """See `Backend`."""
        if compares_in_type_of_entries(op, u, thunk):
            mask, accum, d = how_written(w, desc, u.dtype)
            select_into("Vector", w, mask, accum, d, u, op, thunk)
        else:
            kept = self.vector_dup(u, lookup(thunk.dtype))
            self.select(kept, Descriptor(), kept, op, thunk)
            chosen = self.vector(u.dtype, u.gb.size)
            self.assign(chosen, Descriptor(kept), u, None)
            self.assign(w, desc, chosen, None)

    def assign_scalar(self, w: Box, desc: Descriptor, value: Any, indices: Array | None) -> None:
        """See `Backend`."""
        mask, accum, d = how_written(w, desc, w.dtype)
        where, count, _owner = index_list(indices, w.gb.size)
        call = at_indices(c_function("Vector_assign", w.dtype), indices, w.gb.size)
        check(call(w.handle, mask, accum, value.item(), where, count, d), "assign")

    def assign(self, w: Box, desc: Descriptor, u: Box, indices: Array | None) -> None:
        """See `Backend`."""
        if crashes_on_full(desc) and self.vector_nvals(u) == u.gb.size:
            if indices is not None:
                u, given = self.vector(u.dtype, w.gb.size), u
                self.assign(u, Descriptor(), given, indices)
            self.apply(w, desc, u, unary.identity, Applied(u.dtype, u.dtype))
            return
        mask, accum, d = how_written(w, desc, u.dtype)
        where, count, _owner = index_list(indices, w.gb.size)
        call = at_indices(lib.GrB_Vector_assign, indices, w.gb.size)
        check(call(w.handle, mask, accum, u.handle, where, count, d), "assign")

    def extract(self, w: Box, desc: Descriptor, u: Box, indices: Array | None) -> None:
        """See `Backend`."""
        mask, accum, d = how_written(w, desc, u.dtype)
        where, count, _owner = index_list(indices, u.gb.size)
        call = at_indices(lib.GrB_Vector_extract, indices, u.gb.size)
        check(call(w.handle, mask, accum, u.handle, where, count, d), "extract")

    def extract_column(self, w: Box, desc: Descriptor, A: Box, j: int, transpose: bool) -> None:
        """See `Backend`."""
        mask, accum, d = how_written(w, desc, A.dtype, "T0" if transpose else "")
        size = A.gb.ncols if transpose else A.gb.nrows
        info = lib.GrB_Col_extract(w.handle, mask, accum, A.handle, lib.GrB_ALL, size, j, d)
        check(info, "extract")

    def reduce_vector(
        self, w: Box, desc: Descriptor, A: Box, monoid: Monoid, transpose: bool
    ) -> None:
        """See `Backend`."""
        mask, accum, d = how_written(w, desc, monoid.types(A.dtype)[1], "T0" if transpose else "")
        operator = c_monoid(monoid, A.dtype)
        info = lib.GrB_Matrix_reduce_Monoid(w.handle, mask, accum, operator, A.handle, d)
        check(info, "reduce")

    def reduce(self, u: Box, monoid: Monoid) -> Any:
        """See `Backend`."""
        return reduced("Vector", u, monoid) if self.vector_nvals(u) else None


def _ewise(call: Any, w: Box, desc: Descriptor, u: Box, v: Box, op: BinaryOp) -> None:
    mask, accum, d = how_written(w, desc, op.types(u.dtype, v.dtype)[1])
    operator = binary_operator(op, u.dtype, v.dtype)
    empty_first(w, desc, u, v)
    check(call(w.handle, mask, accum, operator, u.handle, v.handle, d), "ewise")
