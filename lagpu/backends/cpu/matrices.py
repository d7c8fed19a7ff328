"""Statements that write a matrix: the operation makes a matrix, then the output is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.algebra.tables import unary
from lagpu.backends.cpu.directions import LAST, Plan
from lagpu.backends.cpu.handles import (
    NULL,
    Box,
    binary_operator,
    c_function,
    c_scalar,
    c_semiring,
    check,
    compares_in_type_of_entries,
    descriptor,
    gb,
    index_list,
    lib,
    typed_operator,
)
from lagpu.backends.cpu.shared import apply_into, select_into, written_as
from lagpu.backends.cpu.workarounds import (
    at_indices,
    boxed,
    has_no_position,
    mask_handle,
    without_hyperlists,
)
from lagpu.dtypes import BOOL, DType, lookup
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
    BoundOperator,
    Descriptor,
    Ewise,
    Extract,
    Kronecker,
    Multiply,
    Operation,
    Select,
    SelectionToMatrix,
    Transposed,
)


def run(C: Box, desc: Descriptor, operation: Operation) -> None:
    """Run a statement: ``C<M> = T`` for the result ``T`` of the operation."""
    if has_no_position(C):
        return
    if isinstance(operation, AssignScalar):
        _assign_scalar(C, desc, operation)
    elif isinstance(operation, Assign) and operation.indices is not None:
        _assign(C, desc, operation)
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


def _assign(C: Box, desc: Descriptor, op: Assign) -> None:
    """``C<M>(I, J) = A``."""
    assert op.indices is not None
    rows, cols = op.indices
    A = _transpose(op.operand) if op.transposed else op.operand
    if desc.accum is not None:  # scatter first, so that only one call accumulates
        T = _matrix(A.dtype, *_shape(C, False))
        _assign(T, Descriptor(), Assign(A, op.indices))
        _write(C, desc, T)
        return
    out = Box(C.gb.dup(C.dtype.name), C.dtype)
    mask, accum, d = written_as(out, desc, A.dtype)
    i, m, _i = index_list(rows, out.gb.nrows)
    j, n, _j = index_list(cols, out.gb.ncols)
    call = at_indices(lib.GrB_Matrix_assign, rows, out.gb.nrows)
    call = at_indices(call, cols, out.gb.ncols)
    check(call(out.handle, mask, accum, A.handle, i, m, j, n, d), "assign")
    C.become(out)


def _assign_scalar(C: Box, desc: Descriptor, op: AssignScalar) -> None:
    """``C<M>(I, J) = value``."""
    rows, cols = op.indices or (None, None)
    out = Box(C.gb.dup(C.dtype.name), C.dtype)
    mask, accum, d = written_as(out, desc, out.dtype)
    i, m, _i = index_list(rows, out.gb.nrows)
    j, n, _j = index_list(cols, out.gb.ncols)
    call = at_indices(c_function("Matrix_assign", out.dtype), rows, out.gb.nrows)
    call = at_indices(call, cols, out.gb.ncols)
    check(call(out.handle, mask, accum, op.value.item(), i, m, j, n, d), "assign")
    C.become(out)


# --------------------------------------------------------------- operations that make a matrix
def _multiply(op: Multiply, desc: Descriptor) -> Box:
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


def _ewise(op: Ewise, _desc: Descriptor) -> Box:
    A, B = op.left, op.right
    domain, result = op.op.types(A.dtype, B.dtype)
    out = _matrix(result, *_shape(A, op.transposed[0]))
    d = descriptor(False, False, False, _transposes(op.transposed))
    if op.kind == "ewise_union":
        assert op.defaults is not None
        left, right = (c_scalar(x, domain) for x in op.defaults)
        info = lib.GxB_Matrix_eWiseUnion(
            out.handle, NULL, NULL, typed_operator(op.op, domain).gb_obj,
            A.handle, left.handle, B.handle, right.handle, d,
        )  # fmt: skip
    else:
        added = op.kind == "ewise_add"
        call = lib.GrB_Matrix_eWiseAdd_BinaryOp if added else lib.GrB_Matrix_eWiseMult_BinaryOp
        operator = binary_operator(op.op, A.dtype, B.dtype)
        info = call(out.handle, NULL, NULL, operator, A.handle, B.handle, d)
    check(info, op.kind)
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


def _extract(op: Extract, _desc: Descriptor) -> Box:
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


def _apply(op: Apply, _desc: Descriptor) -> Box:
    A = op.operand
    out = _matrix(op.function.result, A.gb.nrows, A.gb.ncols)
    apply_into(out, NULL, NULL, NULL, A, op.function)
    return out


def _select(op: Select, desc: Descriptor) -> Box:
    A = op.operand
    out = _matrix(A.dtype, A.gb.nrows, A.gb.ncols)
    if compares_in_type_of_entries(op.op, A, op.thunk):
        select_into(out, NULL, NULL, NULL, A, op.op, op.thunk)
    else:
        wide = boxed(A.gb.dup(lookup(op.thunk.dtype).name), lookup(op.thunk.dtype))
        kept = _select(Select(wide, op.op, op.thunk), desc)
        shape = (lib.GrB_ALL, A.gb.nrows, lib.GrB_ALL, A.gb.ncols)
        where = (out.handle, kept.handle, NULL, A.handle, *shape, lib.GrB_DESC_S)
        check(lib.GrB_Matrix_assign(*where), "select")
    return out


def _copy(op: Assign, _desc: Descriptor) -> Box:
    return _transpose(op.operand) if op.transposed else boxed(op.operand.gb.dup(), op.operand.dtype)


def _selection(op: SelectionToMatrix, _desc: Descriptor) -> Box:
    return selection_matrix(op.indices, op.nrows, op.transposed)


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


_MAKE: dict[type, Callable[[Any, Descriptor], Box]] = {
    Multiply: _multiply,
    Ewise: _ewise,
    Kronecker: _kronecker,
    Extract: _extract,
    Apply: _apply,
    Select: _select,
    Assign: _copy,
    SelectionToMatrix: _selection,
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
