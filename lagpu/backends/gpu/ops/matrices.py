"""Statements that write a matrix: the operation makes a matrix, which is then written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import IndexUnaryOp, Operator
from lagpu.algebra.tables import indexunary, unary
from lagpu.backends.gpu.ops import bitmap, elementwise, sparse, spmv
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.profile import Runtime
from lagpu.backends.gpu.storage.bitmap import (
    BitmapMatrix,
    MatrixHandle,
    fit_as_bitmaps,
    fits,
    has_bitmap,
)
from lagpu.backends.gpu.storage.forms import from_coo, has_same_pattern, rows_of, take, transpose
from lagpu.backends.gpu.storage.matrix import CscMatrix, cast_array, cast_number
from lagpu.dtypes import BOOL, DType
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
    Product,
    Select,
    SelectionToMatrix,
    Transposed,
)

Array = np.ndarray[Any, Any]


class _Made(NamedTuple):
    """The result of an operation."""

    store: CscMatrix | BitmapMatrix  #: The matrix, which nothing else holds.
    masked: bool = False  #: Whether the mask has been applied to it.


def run(runtime: Runtime, C: MatrixHandle, desc: Descriptor, operation: Operation) -> None:
    """Run a statement: ``C<M> = T`` for the result ``T`` of the operation."""
    if isinstance(operation, AssignScalar):
        _assign_scalar(runtime, C, desc, operation)
        return
    if isinstance(operation, Assign) and operation.indices is not None:
        _assign(runtime, C, desc, operation)
        return
    made = _MAKE[type(operation)](runtime, operation, desc)
    if isinstance(made, sparse.AtMask):
        if _accumulates(C, desc, made.mask):
            C.store = sparse.accumulate(runtime.counters, C.csc(), desc, made)
            return
        made = _Made(made.csc(), True)
    if desc.mask is not None or desc.accum is not None:
        _write(runtime, C, desc, made)
    else:
        C.store = _cast(made.store, C.dtype)


def _accumulates(C: MatrixHandle, desc: Descriptor, mask: CscMatrix) -> bool:
    """Whether what a mask keeps is accumulated to a matrix with the mask's own entries."""
    return desc.accum is not None and not C.is_bitmap and has_same_pattern(C.csc(), mask)


def _cast(T: CscMatrix | BitmapMatrix, dtype: DType) -> CscMatrix | BitmapMatrix:
    return T if T.dtype is dtype else copy(T, dtype)


def copy(T: CscMatrix | BitmapMatrix, dtype: DType) -> CscMatrix | BitmapMatrix:
    """Return a copy, cast to `dtype`; index arrays, which do not change, are shared."""
    if isinstance(T, BitmapMatrix):
        return T.copy(dtype)
    values = None if T.values is None else cast_array(T.device, T.values, dtype)
    iso = None if T.iso is None else cast_number(T.iso, dtype)
    copied = T.with_values(dtype, values, iso)
    copied.symmetric = T.symmetric or None  # a cast may make it so
    return copied


def _write(runtime: Runtime, C: MatrixHandle, desc: Descriptor, made: _Made) -> None:
    """``C<M> = T``, with accumulator and replace."""
    T, is_masked = made
    replaces = desc.replace and desc.accum is None
    result = MatrixHandle(T)
    if has_bitmap(C, result) and fit_as_bitmaps(C, result, desc.mask):
        if is_masked and replaces and isinstance(T, BitmapMatrix):
            C.store = _cast(T, C.dtype)
        else:
            bitmap.write(runtime.counters, C, desc, result.bitmap(runtime.counters))
        return
    if is_masked and (C.nvals == 0 or replaces):
        C.store = _cast(T, C.dtype)
        return
    if is_masked and desc.accum is not None and not desc.replace:
        desc = desc._replace(mask=None)  # all entries of T are kept, and so is the rest of C
    desc = _by_columns(desc)
    C.store = sparse.write(runtime.counters, C.csc(), desc, result.csc())


def _by_columns(desc: Descriptor) -> Descriptor:
    """Return a descriptor whose mask is a matrix by columns."""
    return desc if desc.mask is None else desc._replace(mask=desc.mask.csc())


def _assign(runtime: Runtime, C: MatrixHandle, desc: Descriptor, op: Assign) -> None:
    """``C<M>(I, J) = A``."""
    assert op.indices is not None
    rows, cols = op.indices
    device = runtime.device
    if rows is None and cols is None and not op.transposed:
        _write(runtime, C, desc, _Made(op.operand.store))
        return
    A = op.operand.csc()
    A = rows_of(A) if op.transposed else A
    in_rows, in_cols = _there(runtime, rows), _there(runtime, cols)
    i = A.row_idx if in_rows is None else in_rows[A.row_idx]
    j = A.columns() if in_cols is None else in_cols[A.columns()]
    values = A.number if A.values is None else A.values
    T = from_coo(device, i, j, values, A.dtype, C.shape, None)
    counters, by_columns = runtime.counters, _by_columns(desc)
    C.store = sparse.write(counters, C.csc(), by_columns, T, in_rows, in_cols)


def _assign_scalar(runtime: Runtime, C: MatrixHandle, desc: Descriptor, op: AssignScalar) -> None:
    """``C<M>(I, J) = value``: at the mask's entries, or without one at all positions."""
    if op.indices is None and has_bitmap(C, desc.mask) and fit_as_bitmaps(C, desc.mask):
        bitmap.fill(runtime.counters, C, desc, op.value)
        return
    in_rows, in_cols = (_there(runtime, x) for x in op.indices or (None, None))
    desc = _by_columns(desc)
    if desc.mask is not None and not desc.complement:
        T = desc.mask.with_values(C.dtype, None, op.value)
        if desc.structure and op.indices is None and C.nvals == 0:
            C.store = T
            return
    else:
        where = _all_positions(runtime, C.shape, in_rows, in_cols)
        T = sparse.at_positions(runtime.device, C.dtype, C.shape, where, None, op.value)
    C.store = sparse.write(runtime.counters, C.csc(), desc, T, in_rows, in_cols)


def _all_positions(runtime: Runtime, shape: tuple[int, int], rows: Any, cols: Any) -> Any:
    """Return all positions in these rows and columns, rising."""
    xp = runtime.device.xp
    sparse.require_numbered(shape)
    m, n = (size if x is None else len(x) for size, x in zip(shape, (rows, cols), strict=True))
    runtime.device.require(m * n * 96, "assign", "Give a mask that is not complemented.")
    i = xp.arange(m, dtype=np.int64) if rows is None else rows
    j = xp.arange(n, dtype=np.int64) if cols is None else cols
    return (j[:, None] * np.int64(shape[0]) + i[None, :]).ravel()


# -------------------------------------------------------------------- operations that make one
def _multiply(runtime: Runtime, op: Multiply, desc: Descriptor) -> _Made | sparse.AtMask:
    """Return ``A (+.x) B``: only the entries that the mask keeps."""
    edges = runtime.edges
    if _as_bitmaps(op, desc.mask):
        Q, B, product = _bitmap_product(runtime, op)
        iso = _iso(Q, B, product)
        runtime.plan = plan = bitmap.choose(Q, B, product, iso)
        made = bitmap.multiply(runtime.counters, Q, B, product, iso, plan, desc, edges)
        runtime.product = None if edges is None else made
        return _Made(made, True)
    left, right = _operands(op)
    found, runtime.plan = sparse.mxm(left, right, op.product, _by_columns(desc), edges)
    if edges is not None:
        runtime.product = found.csc() if isinstance(found, sparse.AtMask) else found
    return found if isinstance(found, sparse.AtMask) else _Made(found, True)


def _as_bitmaps(op: Multiply, mask: MatrixHandle | None = None) -> bool:
    """Whether a product is one of bitmap matrices: its left operand or its mask is stored so."""
    A, B = op.operand, op.matrix
    if not has_bitmap(A, mask) or op.transposed or not fit_as_bitmaps(A):
        return False
    shape = (A.shape[0], B.shape[1 if op.product.transpose else 0])
    return fits(A.device, A.dtype, shape)


def _bitmap_product(runtime: Runtime, op: Multiply) -> tuple[BitmapMatrix, CscMatrix, Product]:
    """Return the operands and the algebra of a product of a bitmap matrix."""
    B, product = op.matrix.csc(), op.product
    if not product.transpose and not B.may_keep_csr:  # its transpose lasts for this product only
        B, product = transpose(B), product._replace(transpose=True)
    return op.operand.bitmap(runtime.counters), B, product


def _iso(Q: BitmapMatrix, B: CscMatrix, product: Product) -> Any:
    return spmv.iso_result(B, Q.entries.values is not None, Q.entries.number, product)


def _operands(op: Multiply) -> tuple[sparse.Left, CscMatrix]:
    """Return both matrices as the product means them, the right one by columns."""
    right = op.matrix.csc()
    right = right if op.product.transpose else rows_of(right)
    return sparse.Left.of(op.operand.csc(), op.transposed), right


def _pair(A: MatrixHandle, B: MatrixHandle, transposed: Transposed) -> tuple[CscMatrix, CscMatrix]:
    left, right = A.csc(), B.csc()
    return (
        rows_of(left) if transposed[0] else left,
        rows_of(right) if transposed[1] else right,
    )


def explain_product(runtime: Runtime, op: Multiply) -> tuple[Plan, CscMatrix]:
    """Return how a product of matrices would run without a mask, and the matrix of `memory_of`."""
    if not _as_bitmaps(op):
        return sparse.plan(*_operands(op)), op.matrix.csc()
    Q, B, product = _bitmap_product(runtime, op)
    return bitmap.choose(Q, B, product, _iso(Q, B, product)), op.matrix.csc()


def _ewise(runtime: Runtime, op: Ewise, _desc: Descriptor) -> _Made:
    A, B, counters = op.left, op.right, runtime.counters
    if has_bitmap(A, B) and not any(op.transposed) and fit_as_bitmaps(A, B):
        both = A.bitmap(counters), B.bitmap(counters)
        return _Made(bitmap.combine(op.kind, *both, op.op, op.defaults))
    pair = _pair(A, B, op.transposed)
    return _Made(sparse.combine(op.kind, counters, *pair, op.op, op.defaults))


def _kronecker(_runtime: Runtime, op: Kronecker, _desc: Descriptor) -> _Made:
    return _Made(sparse.kronecker(*_pair(op.left, op.right, op.transposed), op.op))


def _extract(runtime: Runtime, op: Extract, _desc: Descriptor) -> _Made:
    rows, cols = (_there(runtime, x) for x in op.indices or (None, None))
    return _Made(sparse.extract(op.operand.csc(), rows, cols))


def _apply(_runtime: Runtime, op: Apply, _desc: Descriptor) -> _Made:
    function, store = op.function, op.operand.store
    if isinstance(store, BitmapMatrix) and not isinstance(function.op, IndexUnaryOp):
        return _Made(bitmap.apply(store, function))
    A, dtype, by_position = op.operand.csc(), function.result, _by_position(function.op)
    if function.op is unary.one or (A.values is None and not by_position):
        made = A.with_values(dtype, None, _of_one_value(A, function))
    else:
        made = A.with_values(dtype, elementwise.apply_entries(A, function, dtype), None)
    made.symmetric = None if by_position else A.symmetric or None  # of the same values
    return _Made(made)


def _by_position(op: Operator) -> bool:
    return isinstance(op, IndexUnaryOp) and (bool(op.body) or not op.uses_value)


def _of_one_value(A: CscMatrix, function: BoundOperator) -> Any:
    """Return what an operator makes of the value that all entries of a matrix have."""
    ptr, idx = A.device.xp.arange(2), A.device.xp.zeros(1, np.int32)
    one = CscMatrix(A.device, A.dtype, (1, 1), ptr, idx, None, A.number)
    value = A.device.read(elementwise.apply_entries(one, function, function.result))
    return function.result.numpy.type(value)


def _select(_runtime: Runtime, op: Select, _desc: Descriptor) -> _Made:
    store = op.operand.store
    if isinstance(store, BitmapMatrix) and op.op.name.startswith("value"):
        return _Made(bitmap.select(store, op.op, op.thunk))
    A = op.operand.csc()
    made = take(A, elementwise.kept_places(A, op.op, op.thunk))
    mirrored = op.op in _MIRRORED and not op.thunk
    if A.symmetric and (mirrored or not _by_position(op.op)):
        made.symmetric = True
    return _Made(made)


# The operators that keep (i, j) and (j, i), or neither, if the thunk is 0.
_MIRRORED = frozenset({indexunary.diag, indexunary.offdiag})


def _copy(_runtime: Runtime, op: Assign, _desc: Descriptor) -> _Made:
    A = op.operand
    return _Made(transpose(A.csc()) if op.transposed else copy(A.store, A.dtype))


def _selection(runtime: Runtime, op: SelectionToMatrix, _desc: Descriptor) -> _Made:
    f, nrows, device = op.indices, op.nrows, runtime.device
    cols, packed = f.listed()
    rows = device.xp.full(len(cols), f.number) if packed is None else packed
    rows = rows.astype(np.int64, copy=False)  # 2**63 and more become negative
    inside = (rows >= 0) & (rows < nrows)
    rows, cols, shape = rows[inside], cols[inside], (nrows, f.size)
    if op.transposed:
        rows, cols, shape = cols, rows, shape[::-1]
    return _Made(from_coo(device, rows, cols, np.True_, BOOL, shape, None))


_MAKE: dict[type, Callable[[Runtime, Any, Descriptor], _Made | sparse.AtMask]] = {
    Multiply: _multiply,
    Ewise: _ewise,
    Kronecker: _kronecker,
    Extract: _extract,
    Apply: _apply,
    Select: _select,
    Assign: _copy,
    SelectionToMatrix: _selection,
}


def _there(runtime: Runtime, indices: Array | None) -> Any:
    return None if indices is None else runtime.device.from_host(indices)
