"""Statements as calls of the C library, on vectors and on matrices."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, Monoid, UnaryOp
from lagpu.algebra.tables import unary
from lagpu.backends.cpu import workarounds
from lagpu.backends.cpu.directions import (
    LAST,
    Plan,
    after,
    as_bitmap_for,
    choose,
    counts_of,
    make_transposed,
    stored_as_bitmap,
)
from lagpu.backends.cpu.handles import (
    C_NAMES,
    NULL,
    Box,
    binary_operator,
    c_function,
    c_monoid,
    c_scalar,
    c_semiring,
    check,
    compares_in_type_of_entries,
    descriptor,
    ffi,
    gb,
    index_list,
    lib,
    typed_operator,
)
from lagpu.backends.cpu.workarounds import boxed
from lagpu.dtypes import BOOL, DType, lookup
from lagpu.errors import NotSupported
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
    BoundOperator,
    Descriptor,
    Ewise,
    Extract,
    ExtractColumn,
    Indices,
    Kronecker,
    Multiply,
    MultiplySelection,
    Operation,
    Product,
    ReduceRows,
    Select,
    SelectionToMatrix,
    Statement,
    Transposed,
)


def require_no_choice(product: Product, *, has_policies: bool = False) -> None:
    """Raise `NotSupported` if the author names a kernel, or a policy unless there are some."""
    chosen = product.policy if product.kernel is None and not has_policies else product.kernel
    if chosen is not None:
        remedy = (
            "kernel= out, or give policy='push' or 'pull'"
            if has_policies
            else ("kernel= and policy= out")
        )
        raise NotSupported(
            f"cpu: SuiteSparse chooses its own kernels, not {chosen!r}. Leave {remedy}."
        )


def element(x: Box, index: tuple[int, ...]) -> Any:
    """Return the value at an index or two, or None."""
    value = ffi.new(f"{C_NAMES[x.dtype.name]}*")
    info = c_function(f"{x.kind}_extractElement", x.dtype)(value, x.handle, *index)
    if info == lib.GrB_NO_VALUE:
        return None
    check(info, "extractElement")
    return value[0]


def reduced(u: Box, monoid: Monoid) -> Any:
    """Return the sum of all entries, at least one."""
    result = monoid.types(u.dtype)[1]
    value = ffi.new(f"{C_NAMES[result.name]}*")
    call = c_function(f"{u.kind}_reduce", result)
    check(call(value, NULL, c_monoid(monoid, u.dtype), u.handle, NULL), "reduce")
    return value[0]


def selection_matrix(f: Box, nrows: int, transposed: bool) -> Box:
    """Return the matrix of `SelectionToMatrix`.

    GraphBLAS takes over arrays of the transpose by rows, so the transpose needs no sorting.
    """
    indices, values = f.gb.to_coo()
    inside = (values >= 0) & (values < nrows)
    rows = values[inside].astype(np.uint64)
    ptr = np.zeros(f.size + 1, np.uint64)
    ptr[1:][indices[inside]] = 1
    by_row = gb.Matrix.ss.import_csr(
        nrows=f.size, ncols=nrows, indptr=np.cumsum(ptr), col_indices=rows,
        values=np.ones(1, bool), is_iso=True, sorted_cols=True, take_ownership=True,
    )  # fmt: skip
    return boxed(by_row if transposed else by_row.T.new(), BOOL)


# ------------------------------------------------------------------------------------------
# Products.


def multiply(w: Box, desc: Descriptor, op: Multiply, plan: Plan | None = None) -> None:
    """``w<m> = A (+.x) u`` or ``A' (+.x) u``; without a plan, one is chosen and remembered."""
    A, u, product = op.matrix, op.operand, op.product
    if plan is None:
        require_no_choice(product, has_policies=True)
        LAST.plan = plan = choose(A, u, product, desc)
    left = after(A, plan, u.search) if plan.direction else None
    stored, transpose = _form(A, plan, product)
    pulls = plan.direction == "pull"
    method = lib.GxB_AxB_DOT if pulls else lib.GxB_AxB_SAXPY if plan.direction else 0
    if method == lib.GxB_AxB_SAXPY and desc.mask is not None and desc.complement:
        # Left to itself, SuiteSparse takes Gustavson's method from n / 16 products on, which looks
        # at all n places (docs/design/cpu.md).
        method = lib.GxB_AxB_HASH
    with stored_as_bitmap(u) if pulls else nullcontext():
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
    workarounds.without_hyperlists(product.semiring.multiply, A)
    mask, structure = workarounds.mask_handle(desc, A)
    plus = workarounds.accumulator(w, desc.accum, product.result)
    turned = ("" if transpose else "T1") if product.flip else "T0" if transpose else ""
    d = descriptor(desc.replace, structure, desc.complement, turned, method)
    if product.flip:
        return lib.GrB_vxm(w.handle, mask, plus, semiring, u.handle, A.handle, d)
    return lib.GrB_mxv(w.handle, mask, plus, semiring, A.handle, u.handle, d)


def _multiply_selection(w: Box, desc: Descriptor, op: MultiplySelection) -> None:
    """``w<m> = P (+.x) u`` or ``P' (+.x) u``, through P', whose rows need no sorting."""
    product = op.product
    require_no_choice(product)
    nrows = op.operand.size if product.transpose else w.size
    transposed = selection_matrix(op.indices, nrows, True)
    with_transpose = product._replace(transpose=not product.transpose)
    multiply(w, desc, Multiply(transposed, op.operand, with_transpose), _AS_IT_IS)
    LAST.plan = None


_AS_IT_IS = Plan("", "the matrix serves once")


def _matrix_product(op: Multiply, result: DType, shape: tuple[int, ...], desc: Descriptor) -> Box:
    """Return ``A (+.x) B``, only the entries that the mask keeps."""
    A, B, product = op.operand, op.matrix, op.product
    out = _new(result, shape)
    mask, structure = workarounds.mask_handle(desc._replace(accum=None), B)
    turned = _transposes((op.transposed, not product.transpose))
    d = descriptor(False, structure, desc.complement, turned)
    workarounds.without_hyperlists(product.semiring.multiply, A, B)
    plus_times = c_semiring(product.semiring, product.domain)
    check(lib.GrB_mxm(out.handle, mask, NULL, plus_times, A.handle, B.handle, d), "mxm")
    LAST.plan = ITS_OWN
    return out


ITS_OWN = Plan("", "SuiteSparse chooses its own method")


# ------------------------------------------------------------------------------------------
# Other statements, on vectors and matrices alike.


def _written(
    w: Box, desc: Descriptor, result: DType, transposes: str = ""
) -> tuple[tuple[Any, Any, Any], Any]:
    """Return what begins a call, (output, mask, accumulator), and the descriptor, which ends it."""
    mask, structure = workarounds.mask_handle(desc)
    to = w.handle, mask, workarounds.accumulator(w, desc.accum, result)
    return to, descriptor(desc.replace, structure, desc.complement, transposes)


def _at(call: Any, indices: Indices, shape: tuple[int, ...]) -> tuple[Any, list[Any], list[Any]]:
    """Return a C function for these index lists, its arguments for them, and their owners."""
    where, owners = [], []
    for chosen, size in zip(indices or [None] * len(shape), shape, strict=True):
        pointer, count, owner = index_list(chosen, size)
        call = workarounds.at_indices(call, chosen, size)
        where += [pointer, count]
        owners.append(owner)
    return call, where, owners


def _ewise(w: Box, desc: Descriptor, op: Ewise | Kronecker) -> None:
    u, v = op.left, op.right
    domain, result = op.op.types(u.dtype, v.dtype)
    to, d = _written(w, desc, result, _transposes(op.transposed))
    kind = op.kind if isinstance(op, Ewise) else "kronecker"
    call = getattr(lib, _EWISE[kind].format(w.kind))
    operator = binary_operator(op.op, u.dtype, v.dtype)
    if isinstance(op, Ewise) and op.defaults is not None:
        left, right = (c_scalar(x, domain) for x in op.defaults)
        check(call(*to, operator, u.handle, left.handle, v.handle, right.handle, d), kind)
        return
    emptied = workarounds.is_emptied_first(w, desc, u, v)
    try:
        if emptied:
            workarounds.empty(w)
        info = call(*to, operator, u.handle, v.handle, d)
    except BaseException:  # an interrupt: the output may be empty already
        if emptied:
            workarounds.empty(w)
            call(*to, operator, u.handle, v.handle, d)
        raise
    check(info, kind)


_EWISE = {
    "ewise_add": "GrB_{}_eWiseAdd_BinaryOp",
    "ewise_mult": "GrB_{}_eWiseMult_BinaryOp",
    "ewise_union": "GxB_{}_eWiseUnion",
    "kronecker": "GrB_{}_kronecker_BinaryOp",
}


def _apply(w: Box, desc: Descriptor, op: Apply) -> None:
    u, (f, domain, result, left, right) = op.operand, op.function
    to, d = _written(w, desc, result)
    operator = typed_operator(f, domain).gb_obj
    if isinstance(f, UnaryOp):
        info = getattr(lib, f"GrB_{w.kind}_apply")(*to, operator, u.handle, d)
    elif left is not None:
        call = c_function(f"{w.kind}_apply_BinaryOp1st", domain)
        info = call(*to, operator, left.item(), u.handle, d)
    else:
        name = "BinaryOp2nd" if isinstance(f, BinaryOp) else "IndexOp"
        call = c_function(f"{w.kind}_apply_{name}", domain)
        info = call(*to, operator, u.handle, right.item(), d)
    check(info, "apply")


def _apply_identity(w: Box, desc: Descriptor, u: Box) -> None:
    """``w<m> = u`` where to assign a full object is not safe (docs/design/suitesparse.md)."""
    _apply(w, desc, Apply(u, BoundOperator(unary.identity, u.dtype, u.dtype)))


def _select(w: Box, desc: Descriptor, op: Select) -> None:
    u, domain = op.operand, lookup(op.thunk.dtype)
    if compares_in_type_of_entries(op.op, u, op.thunk):
        to, d = _written(w, desc, u.dtype)
        call = c_function(f"{w.kind}_select", domain)
        operator = typed_operator(op.op, domain).gb_obj
        check(call(*to, operator, u.handle, op.thunk.item(), d), "select")
    else:
        kept, chosen = _copy(u, domain), _new(u.dtype, u.shape)
        _select(kept, Descriptor(), Select(kept, op.op, op.thunk))
        _assign(chosen, Descriptor(kept), Assign(u))
        _assign(w, desc, Assign(chosen))


def _assign_scalar(w: Box, desc: Descriptor, op: AssignScalar) -> None:
    to, d = _written(w, desc, w.dtype)
    workarounds.finish_deletions(w, desc)
    call, where, _owners = _at(c_function(f"{w.kind}_assign", w.dtype), op.indices, w.shape)
    with as_bitmap_for(w, desc):
        check(call(*to, op.value.item(), *where, d), "assign")


def _assign(w: Box, desc: Descriptor, op: Assign) -> None:
    u = _transpose(op.operand) if op.transposed else op.operand
    if workarounds.crashes_on_full(desc, u):
        if op.indices is not None:  # scatter first, so that only one call accumulates
            given, u = u, _new(u.dtype, w.shape)
            _assign(u, Descriptor(), Assign(given, op.indices))
        _apply_identity(w, desc, u)
        return
    to, d = _written(w, desc, u.dtype)
    call, where, _owners = _at(getattr(lib, f"GrB_{w.kind}_assign"), op.indices, w.shape)
    with as_bitmap_for(w, desc):
        check(call(*to, u.handle, *where, d), "assign")


def _extract(w: Box, desc: Descriptor, op: Extract) -> None:
    u = op.operand
    to, d = _written(w, desc, u.dtype)
    call, where, _owners = _at(getattr(lib, f"GrB_{w.kind}_extract"), op.indices, u.shape)
    check(call(*to, u.handle, *where, d), "extract")


def _extract_column(w: Box, desc: Descriptor, op: ExtractColumn) -> None:
    A = op.matrix
    to, d = _written(w, desc, A.dtype, "T0" if op.transposed else "")
    where = lib.GrB_ALL, A.shape[op.transposed], op.column
    check(lib.GrB_Col_extract(*to, A.handle, *where, d), "extract")


def _reduce_rows(w: Box, desc: Descriptor, op: ReduceRows) -> None:
    A, result = op.matrix, op.monoid.types(op.matrix.dtype)[1]
    to, d = _written(w, desc, result, "T0" if op.transposed else "")
    info = lib.GrB_Matrix_reduce_Monoid(*to, c_monoid(op.monoid, A.dtype), A.handle, d)
    check(info, "reduce")


#: Each operation with the function that runs it: ``run(w, desc, operation)``.
RUN: dict[type, Callable[[Box, Descriptor, Any], None]] = {
    Multiply: multiply,
    MultiplySelection: _multiply_selection,
    Ewise: _ewise,
    Kronecker: _ewise,
    Apply: _apply,
    Select: _select,
    Assign: _assign,
    AssignScalar: _assign_scalar,
    Extract: _extract,
    ExtractColumn: _extract_column,
    ReduceRows: _reduce_rows,
}


def run_on_matrix(statement: Statement) -> None:
    """Run a statement: ``C<M> = T`` for the result ``T`` of the operation."""
    C, desc, operation, result = statement
    if workarounds.has_no_position(C):
        return
    in_part = isinstance(operation, Assign) and operation.indices is not None
    if in_part or isinstance(operation, AssignScalar):
        out = _copy(C, C.dtype)
        RUN[type(operation)](out, desc, operation)
    else:
        out = _made(operation, result, C.shape, desc)
        if desc.mask is not None or desc.accum is not None:
            T, out = out, _copy(C, C.dtype)
            _apply_identity(out, desc, T)
        elif out.dtype is not C.dtype:
            out = _copy(out, C.dtype)
    C.become(out)


def _made(operation: Operation, result: DType, shape: tuple[int, ...], desc: Descriptor) -> Box:
    """Return the result of an operation as a new matrix."""
    if isinstance(operation, Multiply):
        return _matrix_product(operation, result, shape, desc)
    if isinstance(operation, SelectionToMatrix):
        return selection_matrix(*operation)
    if isinstance(operation, Assign):
        A: Box = operation.operand
        return _transpose(A) if operation.transposed else _copy(A, A.dtype)
    out = _new(result, shape)
    RUN[type(operation)](out, Descriptor(), operation)
    return out


def _new(dtype: DType, shape: tuple[int, ...]) -> Box:
    return Box((gb.Vector if len(shape) == 1 else gb.Matrix)(dtype.name, *shape), dtype)


def _copy(x: Box, dtype: DType) -> Box:
    return boxed(x.gb.dup(dtype.name), dtype)


def _transpose(A: Box) -> Box:
    return boxed(A.gb.T.new(), A.dtype)


def _transposes(transposed: Transposed) -> str:
    """Return the part of a descriptor's name that transposes these operands."""
    return "T0" * transposed[0] + "T1" * transposed[1]
