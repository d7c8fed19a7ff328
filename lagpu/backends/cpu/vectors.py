"""Statements that write a vector, each by one GraphBLAS C call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lagpu.algebra.tables import unary
from lagpu.backends.cpu.directions import LAST, Plan
from lagpu.backends.cpu.forms import as_bitmap_for
from lagpu.backends.cpu.handles import (
    Box,
    c_function,
    c_scalar,
    check,
    gb,
    index_list,
    lib,
)
from lagpu.backends.cpu.matrices import selection_matrix
from lagpu.backends.cpu.operators import (
    binary_operator,
    c_monoid,
    compares_in_type_of_entries,
    typed_operator,
)
from lagpu.backends.cpu.products import multiply
from lagpu.backends.cpu.shared import apply_into, require_no_choice, select_into, written_as
from lagpu.backends.cpu.workarounds import (
    at_indices,
    boxed,
    crashes_on_full,
    empty,
    finish_deletions,
    is_emptied_first,
)
from lagpu.dtypes import DType, lookup
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
    BoundOperator,
    Descriptor,
    Ewise,
    Extract,
    ExtractColumn,
    Multiply,
    MultiplySelection,
    ReduceRows,
    Select,
)

__all__ = ["RUN"]


def _multiply_selection(w: Box, desc: Descriptor, op: MultiplySelection) -> None:
    """``w<m> = P (+.x) u`` or ``P' (+.x) u``, by way of P', whose rows need no sorting."""
    product = op.product
    require_no_choice(product)
    nrows = op.operand.size if product.transpose else w.size
    transposed = selection_matrix(op.indices, nrows, True)
    with_transpose = product._replace(transpose=not product.transpose)
    multiply(w, desc, Multiply(transposed, op.operand, with_transpose), _AS_IT_IS)
    LAST.plan = None


_AS_IT_IS = Plan("", "the matrix serves once")


def _ewise(w: Box, desc: Descriptor, op: Ewise) -> None:
    u, v = op.left, op.right
    domain, result = op.op.types(u.dtype, v.dtype)
    mask, accum, d = written_as(w, desc, result)
    if op.kind == "ewise_union":
        assert op.defaults is not None
        left, right = (c_scalar(x, domain) for x in op.defaults)
        info = lib.GxB_Vector_eWiseUnion(
            w.handle, mask, accum, typed_operator(op.op, domain).gb_obj,
            u.handle, left.handle, v.handle, right.handle, d,
        )  # fmt: skip
    else:
        added = op.kind == "ewise_add"
        call = lib.GrB_Vector_eWiseAdd_BinaryOp if added else lib.GrB_Vector_eWiseMult_BinaryOp
        operator = binary_operator(op.op, u.dtype, v.dtype)
        emptied = is_emptied_first(w, desc, u, v)
        try:
            if emptied:
                empty(w)
            info = call(w.handle, mask, accum, operator, u.handle, v.handle, d)
        except BaseException:  # an interrupt: the output may be empty already
            if emptied:
                empty(w)
                call(w.handle, mask, accum, operator, u.handle, v.handle, d)
            raise
    check(info, op.kind)


def _apply(w: Box, desc: Descriptor, op: Apply) -> None:
    mask, accum, d = written_as(w, desc, op.function.result)
    apply_into(w, mask, accum, d, op.operand, op.function)


def _select(w: Box, desc: Descriptor, op: Select) -> None:
    u = op.operand
    if compares_in_type_of_entries(op.op, u, op.thunk):
        mask, accum, d = written_as(w, desc, u.dtype)
        select_into(w, mask, accum, d, u, op.op, op.thunk)
    else:
        kept = boxed(u.gb.dup(lookup(op.thunk.dtype).name), lookup(op.thunk.dtype))
        _select(kept, Descriptor(), Select(kept, op.op, op.thunk))
        chosen = _vector(u.dtype, u.size)
        _assign(chosen, Descriptor(kept), Assign(u))
        _assign(w, desc, Assign(chosen))


def _assign_scalar(w: Box, desc: Descriptor, op: AssignScalar) -> None:
    mask, accum, d = written_as(w, desc, w.dtype)
    indices = None if op.indices is None else op.indices[0]
    finish_deletions(w, desc)
    where, count, _owner = index_list(indices, w.size)
    call = at_indices(c_function("Vector_assign", w.dtype), indices, w.size)
    with as_bitmap_for(w, desc):
        check(call(w.handle, mask, accum, op.value.item(), where, count, d), "assign")


def _assign(w: Box, desc: Descriptor, op: Assign) -> None:
    u, indices = op.operand, None if op.indices is None else op.indices[0]
    if crashes_on_full(desc) and u.gb.nvals == u.size:
        if indices is not None:
            given, u = u, _vector(u.dtype, w.size)
            _assign(u, Descriptor(), Assign(given, op.indices))
        _apply(w, desc, Apply(u, BoundOperator(unary.identity, u.dtype, u.dtype)))
        return
    mask, accum, d = written_as(w, desc, u.dtype)
    where, count, _owner = index_list(indices, w.size)
    call = at_indices(lib.GrB_Vector_assign, indices, w.size)
    with as_bitmap_for(w, desc):
        check(call(w.handle, mask, accum, u.handle, where, count, d), "assign")


def _extract(w: Box, desc: Descriptor, op: Extract) -> None:
    u, indices = op.operand, None if op.indices is None else op.indices[0]
    mask, accum, d = written_as(w, desc, u.dtype)
    where, count, _owner = index_list(indices, u.size)
    call = at_indices(lib.GrB_Vector_extract, indices, u.size)
    check(call(w.handle, mask, accum, u.handle, where, count, d), "extract")


def _extract_column(w: Box, desc: Descriptor, op: ExtractColumn) -> None:
    A = op.matrix
    mask, accum, d = written_as(w, desc, A.dtype, "T0" if op.transposed else "")
    size = A.gb.ncols if op.transposed else A.gb.nrows
    info = lib.GrB_Col_extract(w.handle, mask, accum, A.handle, lib.GrB_ALL, size, op.column, d)
    check(info, "extract")


def _reduce_rows(w: Box, desc: Descriptor, op: ReduceRows) -> None:
    A, result = op.matrix, op.monoid.types(op.matrix.dtype)[1]
    mask, accum, d = written_as(w, desc, result, "T0" if op.transposed else "")
    operator = c_monoid(op.monoid, A.dtype)
    info = lib.GrB_Matrix_reduce_Monoid(w.handle, mask, accum, operator, A.handle, d)
    check(info, "reduce")


def _vector(dtype: DType, size: int) -> Box:
    return Box(gb.Vector(dtype.name, size), dtype)


#: Each operation with the function that runs it: ``run(w, desc, operation)``.
RUN: dict[type, Callable[[Box, Descriptor, Any], None]] = {
    Multiply: multiply,
    MultiplySelection: _multiply_selection,
    Ewise: _ewise,
    Apply: _apply,
    Select: _select,
    Assign: _assign,
    AssignScalar: _assign_scalar,
    Extract: _extract,
    ExtractColumn: _extract_column,
    ReduceRows: _reduce_rows,
}
