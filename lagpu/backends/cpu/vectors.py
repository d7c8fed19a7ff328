"""Operations on vectors, and products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lagpu.algebra.tables import unary
from lagpu.backends.cpu.directions import (
    LAST,
    Plan,
    Search,
    after,
    as_bitmap_for,
    choose,
    counts_of,
    make_transposed,
    stored_as_bitmap,
)
from lagpu.backends.cpu.handles import (
    Box,
    binary_operator,
    c_function,
    c_monoid,
    c_scalar,
    c_semiring,
    check,
    compares_in_type_of_entries,
    descriptor,
    gb,
    index_list,
    lib,
    method_descriptor,
    typed_operator,
)
from lagpu.backends.cpu.matrices import selection_matrix
from lagpu.backends.cpu.shared import (
    apply_into,
    require_no_choice,
    require_no_kernel,
    select_into,
    written_as,
)
from lagpu.backends.cpu.workarounds import (
    accumulator,
    at_indices,
    boxed,
    crashes_on_full,
    empty,
    finish_deletions,
    is_emptied_first,
    mask_handle,
    without_hyperlists,
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
    Product,
    ReduceRows,
    Select,
)


def multiply(w: Box, desc: Descriptor, op: Multiply, plan: Plan | None = None) -> None:
    """``w<m> = A (+.x) u`` or ``A' (+.x) u``; without a plan, one is chosen and remembered."""
    A, u, product = op.matrix, op.operand, op.product
    if plan is None:
        require_no_kernel(product)
        LAST.plan = plan = choose(A, u, product, desc)
    left: Search | None = after(A, plan, u.search) if plan.direction else None
    stored, transpose = _form(A, plan, product)
    if plan.direction == "pull":
        with stored_as_bitmap(u):
            info = _call(w, desc, stored, u, product, transpose, lib.GxB_AxB_DOT)
    else:
        # Left to itself, SuiteSparse takes Gustavson's method from n / 16 products on, which looks
        # at all n places (docs/design/cpu.md).
        hashes = plan.direction and desc.mask is not None and desc.complement
        method = lib.GxB_AxB_HASH if hashes else lib.GxB_AxB_SAXPY if plan.direction else 0
        info = _call(w, desc, stored, u, product, transpose, method)
    if info:
        check(info, "mxv")
    w.search = left


def _form(A: Box, plan: Plan, product: Product) -> tuple[Box, bool]:
    """Return the matrix to multiply by, and whether it is used transposed."""
    if plan.lacks:
        counts = counts_of(A)
        counts.lacked += max(plan.edges, counts.shape[not product.transpose])
    if not plan.direction or product.transpose is (plan.direction == "push"):
        return A, product.transpose
    return make_transposed(A), not product.transpose


def _call(
    w: Box, desc: Descriptor, A: Box, u: Box, product: Product, transpose: bool, method: int
) -> Any:
    """Return the status of the call."""
    semiring = c_semiring(product.semiring, product.domain)
    without_hyperlists(product.semiring.multiply, A)
    mask, structure = mask_handle(desc, A)
    plus = accumulator(w, desc.accum, product.result)
    turned = ("" if transpose else "T1") if product.flip else "T0" if transpose else ""
    how = desc.replace, structure, desc.complement, turned
    d = method_descriptor(*how, method) if method else descriptor(*how)
    if product.flip:
        return lib.GrB_vxm(w.handle, mask, plus, semiring, u.handle, A.handle, d)
    return lib.GrB_mxv(w.handle, mask, plus, semiring, A.handle, u.handle, d)


# ------------------------------------------------------------------------------------------
# Statements that write a vector, each by one GraphBLAS C call.


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
