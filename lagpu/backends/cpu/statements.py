"""Statements as calls of the C library, on vectors and on matrices."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, UnaryOp
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
    method_descriptor,
    typed_operator,
)
from lagpu.backends.cpu.workarounds import (
    accumulator,
    at_indices,
    boxed,
    crashes_on_full,
    empty,
    finish_deletions,
    has_no_position,
    is_emptied_first,
    mask_handle,
    without_hyperlists,
)
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
    Kronecker,
    Multiply,
    MultiplySelection,
    Operation,
    Product,
    ReduceRows,
    Select,
    SelectionToMatrix,
    Transposed,
)


def require_no_choice(product: Product) -> None:
    """Raise `NotSupported` if the author names a kernel or a policy for a product."""
    chosen = product.policy if product.kernel is None else product.kernel
    if chosen is not None:
        raise NotSupported(
            f"cpu: SuiteSparse chooses its own kernels, not {chosen!r}. "
            "Leave kernel= and policy= out."
        )


def require_no_kernel(product: Product) -> None:
    """Raise `NotSupported` if the author names a kernel for a product."""
    if product.kernel is not None:
        raise NotSupported(
            f"cpu: SuiteSparse chooses its own kernels, not {product.kernel!r}. "
            "Leave kernel= out, or give policy='push' or 'pull'."
        )


def written_as(
    w: Box, desc: Descriptor, result: DType, transpose: str = ""
) -> tuple[Any, Any, Any]:
    """Return (mask, accumulator, descriptor) as C handles."""
    mask, structure = mask_handle(desc)
    return (
        mask,
        accumulator(w, desc.accum, result),
        descriptor(desc.replace, structure, desc.complement, transpose),
    )


def element(x: Box, index: tuple[int, ...]) -> Any:
    """Return the value at an index or two, or None."""
    value = ffi.new(f"{C_NAMES[x.dtype.name]}*")
    info = c_function(f"{x.kind}_extractElement", x.dtype)(value, x.handle, *index)
    if info == lib.GrB_NO_VALUE:
        return None
    check(info, "extractElement")
    return value[0]


def apply_into(w: Box, mask: Any, accum: Any, d: Any, u: Box, function: BoundOperator) -> None:
    """``w<m> = f(u)``."""
    op, domain, _, left, right = function
    operator = typed_operator(op, domain).gb_obj
    if isinstance(op, UnaryOp):
        info = getattr(lib, f"GrB_{w.kind}_apply")(w.handle, mask, accum, operator, u.handle, d)
    elif left is not None:
        call = c_function(f"{w.kind}_apply_BinaryOp1st", domain)
        info = call(w.handle, mask, accum, operator, left.item(), u.handle, d)
    else:
        name = "BinaryOp2nd" if isinstance(op, BinaryOp) else "IndexOp"
        call = c_function(f"{w.kind}_apply_{name}", domain)
        info = call(w.handle, mask, accum, operator, u.handle, right.item(), d)
    check(info, "apply")


def select_into(
    w: Box, mask: Any, accum: Any, d: Any, u: Box, op: IndexUnaryOp, thunk: Any
) -> None:
    """``w<m> = u`` where `op` holds."""
    domain = lookup(thunk.dtype)
    operator = typed_operator(op, domain).gb_obj
    call = c_function(f"{w.kind}_select", domain)
    check(call(w.handle, mask, accum, operator, u.handle, thunk.item(), d), "select")


def reduced(u: Box, monoid: Monoid) -> Any:
    """Return the sum of all entries, at least one."""
    result = monoid.types(u.dtype)[1]
    value = ffi.new(f"{C_NAMES[result.name]}*")
    call = c_function(f"{u.kind}_reduce", result)
    check(call(value, NULL, c_monoid(monoid, u.dtype), u.handle, NULL), "reduce")
    return value[0]


def ewise_into(kind: str, w: Box, mask: Any, accum: Any, d: Any, op: Ewise) -> int:
    """``w<m> = u (+) v`` or ``u (x) v``, of a ``"Vector"`` or a ``"Matrix"``; return the status."""
    u, v, call = op.left, op.right, _ewise_call(kind, op.kind)
    if op.kind != "ewise_union":
        operator = binary_operator(op.op, u.dtype, v.dtype)
        return int(call(w.handle, mask, accum, operator, u.handle, v.handle, d))
    assert op.defaults is not None
    domain = op.op.types(u.dtype, v.dtype)[0]
    left, right = (c_scalar(x, domain) for x in op.defaults)
    operands = u.handle, left.handle, v.handle, right.handle
    return int(call(w.handle, mask, accum, typed_operator(op.op, domain).gb_obj, *operands, d))


@functools.cache
def _ewise_call(kind: str, way: str) -> Any:
    names = {
        "ewise_add": f"GrB_{kind}_eWiseAdd_BinaryOp",
        "ewise_mult": f"GrB_{kind}_eWiseMult_BinaryOp",
        "ewise_union": f"GxB_{kind}_eWiseUnion",
    }
    return getattr(lib, names[way])


def selection_matrix(f: Box, nrows: int, transposed: bool) -> Box:
    """Return the matrix of `SelectionToMatrix`.

    GraphBLAS takes over arrays of the transpose by rows, so the transpose needs no sorting.
    """
    indices, values = f.gb.to_coo()
    inside = (values >= 0) & (values < nrows)
    rows = values[inside].astype(np.uint64)
    ptr = np.zeros(f.gb.size + 1, np.uint64)
    ptr[1:][indices[inside]] = 1
    by_row = gb.Matrix.ss.import_csr(
        nrows=f.gb.size, ncols=nrows, indptr=np.cumsum(ptr), col_indices=rows,
        values=np.ones(1, bool), is_iso=True, sorted_cols=True, take_ownership=True,
    )  # fmt: skip
    return boxed(by_row if transposed else by_row.T.new(), BOOL)


# ------------------------------------------------------------------------------------------
# Statements that write a vector.


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


def _ewise(w: Box, desc: Descriptor, op: Ewise) -> None:
    u, v = op.left, op.right
    how = written_as(w, desc, op.op.types(u.dtype, v.dtype)[1])
    emptied = op.kind != "ewise_union" and is_emptied_first(w, desc, u, v)
    try:
        if emptied:
            empty(w)
        info = ewise_into("Vector", w, *how, op)
    except BaseException:  # an interrupt: the output may be empty already
        if emptied:
            empty(w)
            ewise_into("Vector", w, *how, op)
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


# ------------------------------------------------------------------------------------------
# Statements that write a matrix: the operation makes a matrix, then the output is written.


def run_on_matrix(C: Box, desc: Descriptor, operation: Operation) -> None:
    """Run a statement: ``C<M> = T`` for the result ``T`` of the operation."""
    if has_no_position(C):
        return
    whole = isinstance(operation, Assign) and operation.indices is None
    if isinstance(operation, (Assign, AssignScalar)) and not whole:
        _matrix_assign(C, desc, operation)
    else:
        T = _MAKE[type(operation)](operation, desc)
        if desc.mask is not None or desc.accum is not None:
            _write(C, desc, T)
        else:
            C.become(T if T.dtype is C.dtype else boxed(T.gb.dup(C.dtype.name), C.dtype))


def _write(C: Box, desc: Descriptor, T: Box) -> None:
    """``C<M> = T``, by applying `identity`: to assign a full one is not safe (suitesparse.md)."""
    out = Box(C.gb.dup(C.dtype.name), C.dtype)
    mask, accum, d = written_as(out, desc, T.dtype)
    apply_into(out, mask, accum, d, T, BoundOperator(unary.identity, T.dtype, T.dtype))
    C.become(out)


def _matrix_assign(C: Box, desc: Descriptor, op: Assign | AssignScalar) -> None:
    """``C<M>(I, J) = A`` or ``C<M>(I, J) = value``."""
    rows, cols = op.indices or (None, None)
    if isinstance(op, AssignScalar):
        call, dtype, value = c_function("Matrix_assign", C.dtype), C.dtype, op.value.item()
    else:
        A = _transpose(op.operand) if op.transposed else op.operand
        if desc.accum is not None:  # scatter first, so that only one call accumulates
            T = _matrix(A.dtype, *_shape(C, False))
            _matrix_assign(T, Descriptor(), Assign(A, op.indices))
            _write(C, desc, T)
            return
        call, dtype, value = lib.GrB_Matrix_assign, A.dtype, A.handle
    out = Box(C.gb.dup(C.dtype.name), C.dtype)
    mask, accum, d = written_as(out, desc, dtype)
    i, m, _i = index_list(rows, out.gb.nrows)
    j, n, _j = index_list(cols, out.gb.ncols)
    call = at_indices(at_indices(call, rows, out.gb.nrows), cols, out.gb.ncols)
    check(call(out.handle, mask, accum, value, i, m, j, n, d), "assign")
    C.become(out)


# --------------------------------------------------------------- operations that make a matrix
def _matrix_multiply(op: Multiply, desc: Descriptor) -> Box:
    """Return ``A (+.x) B``, only the entries that the mask keeps."""
    A, B, product = op.operand, op.matrix, op.product
    transposed = op.transposed, not product.transpose
    out = _matrix(product.result, _shape(A, transposed[0])[0], _shape(B, transposed[1])[1])
    mask, structure = mask_handle(desc._replace(accum=None), B)
    d = descriptor(False, structure, desc.complement, _transposes(transposed))
    without_hyperlists(product.semiring.multiply, A, B)
    plus_times = c_semiring(product.semiring, product.domain)
    check(lib.GrB_mxm(out.handle, mask, NULL, plus_times, A.handle, B.handle, d), "mxm")
    LAST.plan = _ITS_OWN
    return out


_ITS_OWN = Plan("", "SuiteSparse chooses its own method")


def _matrix_ewise(op: Ewise, _desc: Descriptor) -> Box:
    A, B = op.left, op.right
    out = _matrix(op.op.types(A.dtype, B.dtype)[1], *_shape(A, op.transposed[0]))
    d = descriptor(False, False, False, _transposes(op.transposed))
    check(ewise_into("Matrix", out, NULL, NULL, d, op), op.kind)
    return out


def _kronecker(op: Kronecker, _desc: Descriptor) -> Box:
    A, B = op.left, op.right
    (m, n), (p, q) = _shape(A, op.transposed[0]), _shape(B, op.transposed[1])
    out = _matrix(op.op.types(A.dtype, B.dtype)[1], m * p, n * q)
    operator = binary_operator(op.op, A.dtype, B.dtype)
    d = descriptor(False, False, False, _transposes(op.transposed))
    call = lib.GrB_Matrix_kronecker_BinaryOp
    check(call(out.handle, NULL, NULL, operator, A.handle, B.handle, d), "kronecker")
    return out


def _matrix_extract(op: Extract, _desc: Descriptor) -> Box:
    A, (rows, cols) = op.operand, op.indices or (None, None)
    nrows, ncols = _shape(A, False)
    i, m, _i = index_list(rows, nrows)
    j, n, _j = index_list(cols, ncols)
    out = _matrix(
        A.dtype, nrows if rows is None else len(rows), ncols if cols is None else len(cols)
    )
    call = at_indices(at_indices(lib.GrB_Matrix_extract, rows, nrows), cols, ncols)
    check(call(out.handle, NULL, NULL, A.handle, i, m, j, n, NULL), "extract")
    return out


def _matrix_apply(op: Apply, _desc: Descriptor) -> Box:
    A = op.operand
    out = _matrix(op.function.result, A.gb.nrows, A.gb.ncols)
    apply_into(out, NULL, NULL, NULL, A, op.function)
    return out


def _matrix_select(op: Select, desc: Descriptor) -> Box:
    A = op.operand
    out = _matrix(A.dtype, A.gb.nrows, A.gb.ncols)
    if compares_in_type_of_entries(op.op, A, op.thunk):
        select_into(out, NULL, NULL, NULL, A, op.op, op.thunk)
    else:
        wide = boxed(A.gb.dup(lookup(op.thunk.dtype).name), lookup(op.thunk.dtype))
        kept = _matrix_select(Select(wide, op.op, op.thunk), desc)
        shape = (lib.GrB_ALL, A.gb.nrows, lib.GrB_ALL, A.gb.ncols)
        where = (out.handle, kept.handle, NULL, A.handle, *shape, lib.GrB_DESC_S)
        check(lib.GrB_Matrix_assign(*where), "select")
    return out


def _copy(op: Assign, _desc: Descriptor) -> Box:
    return _transpose(op.operand) if op.transposed else boxed(op.operand.gb.dup(), op.operand.dtype)


_MAKE: dict[type, Callable[[Any, Descriptor], Box]] = {
    Multiply: _matrix_multiply,
    Ewise: _matrix_ewise,
    Kronecker: _kronecker,
    Extract: _matrix_extract,
    Apply: _matrix_apply,
    Select: _matrix_select,
    Assign: _copy,
    SelectionToMatrix: lambda op, _desc: selection_matrix(*op),
}


def _transpose(A: Box) -> Box:
    return boxed(A.gb.T.new(), A.dtype)


def _matrix(dtype: DType, nrows: int, ncols: int) -> Box:
    return Box(gb.Matrix(dtype.name, nrows, ncols), dtype)


def _shape(A: Box, transposed: bool) -> tuple[int, int]:
    m, n = A.gb.nrows, A.gb.ncols
    return (n, m) if transposed else (m, n)


def _transposes(transposed: Transposed) -> str:
    """Return the part of a descriptor's name that transposes these operands."""
    return "T0" * transposed[0] + "T1" * transposed[1]
