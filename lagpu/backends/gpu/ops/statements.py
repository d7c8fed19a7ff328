"""Statements: each operation with the function that runs it, on a vector or on a matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu import operations as ops
from lagpu.algebra.operators import IndexUnaryOp, Monoid, Operator, Semiring
from lagpu.algebra.tables import binary, indexunary, unary
from lagpu.backends.gpu.ops import bits, elementwise, sparse, spmv, strategies
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.profile import Runtime
from lagpu.backends.gpu.storage import bitmap, forms, stores
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, MatrixHandle
from lagpu.backends.gpu.storage.stores import CscMatrix, VectorStore
from lagpu.dtypes import BOOL, INT64, DType
from lagpu.operations import Descriptor, Product

Store = CscMatrix | BitmapMatrix
# The part of its arrays that each kernel of a product moves, for traces.
TRAFFIC = {**strategies.TRAFFIC, **spmv.SELECTION_TRAFFIC, **bits.TRAFFIC, **sparse.TRAFFIC}


def _there(runtime: Runtime, indices: np.ndarray[Any, Any] | None) -> Any:
    return None if indices is None else runtime.device.from_host(indices)


# ------------------------------------------------------------------------------- of vectors
def _copy(runtime: Runtime, w: VectorStore, desc: Descriptor, op: ops.Assign) -> None:
    if op.indices is None:
        elementwise.write(w, desc, op.operand)
        return
    u = elementwise.scatter(w, _there(runtime, op.indices[0]), op.operand)
    elementwise.write(w, desc, u, elementwise.region_of(w, op.indices))


def _gather(runtime: Runtime, w: VectorStore, desc: Descriptor, op: ops.Extract) -> None:
    u = op.operand
    if op.indices is not None and op.indices[0] is not None:
        u = elementwise.gather(u, runtime.device.from_host(op.indices[0]))
    elementwise.write(w, desc, u)


def _column(runtime: Runtime, w: VectorStore, desc: Descriptor, op: ops.ExtractColumn) -> None:
    A: CscMatrix = op.matrix.csc()
    if op.transposed and not forms.is_symmetric(A):
        rows = stores.filled(runtime.device, A.shape[1], INT64, op.column)
        t = forms.diagonal(A, 0, runtime.counters, rows)
    else:
        t = VectorStore(runtime.device, runtime.counters, A.dtype, A.shape[0])
        chosen = slice(*A.column_range(op.column))
        indices = stores.as_type(runtime.device, A.row_idx[chosen], np.int64)
        t.set_sparse(indices, None if A.values is None else A.values[chosen], A.iso)
    elementwise.write(w, desc, t)


def _reduce_rows(runtime: Runtime, w: VectorStore, desc: Descriptor, op: ops.ReduceRows) -> None:
    """Run a product with a full vector that takes the matrix' value."""
    monoid: Monoid = op.monoid
    if op.transposed and op.matrix.is_bitmap:
        elementwise.write(w, desc, bits.reduce_columns(op.matrix.store, monoid))
        return
    domain, result = monoid.types(op.matrix.dtype)
    size = op.matrix.shape[0 if op.transposed else 1]
    ones = VectorStore(runtime.device, runtime.counters, domain, size)
    ones.set_full(None, domain.numpy.type(1))
    product = Product(Semiring(monoid, binary.first), domain, result, op.transposed, False)
    spmv.write_product(runtime, w, desc, ops.Multiply(op.matrix, ones, product))


#: Each operation with the function that writes its result into a vector.
ON_VECTORS: dict[type, Callable[[Runtime, VectorStore, Descriptor, Any], None]] = {
    ops.Multiply: spmv.write_product,
    ops.MultiplySelection: spmv.write_selection,
    ops.Ewise: elementwise.combine,
    ops.Apply: elementwise.apply,
    ops.Select: elementwise.select,
    ops.Assign: _copy,
    ops.AssignScalar: elementwise.assign_value,
    ops.Extract: _gather,
    ops.ExtractColumn: _column,
    ops.ReduceRows: _reduce_rows,
}


# ------------------------------------------------------------------------------ of matrices
def write_matrix(runtime: Runtime, C: MatrixHandle, desc: Descriptor, op: ops.Operation) -> None:
    """Run a statement: ``C<M> = T`` for the result ``T`` of the operation."""
    if isinstance(op, ops.AssignScalar):
        _fill_matrix(runtime, C, desc, op)
        return
    if isinstance(op, ops.Assign) and op.indices is not None:
        _assign(runtime, C, desc, op)
        return
    T: Store | sparse.AtMask
    if isinstance(op, ops.Multiply):
        T, masked = _multiply(runtime, desc, op), True
    else:
        T, masked = _MAKE[type(op)](runtime, op), False
    if isinstance(T, sparse.AtMask):
        # what a mask keeps may be accumulated to a matrix with the mask's own entries
        if desc.accum and not C.is_bitmap and forms.has_same_pattern(C.csc(), T.whole):
            C.store = sparse.accumulate(runtime.counters, C.csc(), desc, T)
            return
        T = T.csc()
    if desc.mask is not None or desc.accum is not None:
        _write(runtime, C, desc, T, masked)
    else:
        C.store = _cast(T, C.dtype)


def _cast(T: Store, dtype: DType) -> Store:
    return T if T.dtype is dtype else T.copy(dtype)


def _write(runtime: Runtime, C: MatrixHandle, desc: Descriptor, T: Store, masked: bool) -> None:
    """``C<M> = T``, with accumulator and replace; `masked` if the mask has been applied to `T`."""
    replaces = desc.replace and desc.accum is None
    result = MatrixHandle(T)
    if bitmap.has_bitmap(C, result) and bitmap.fit_as_bitmaps(C, result, desc.mask):
        if masked and replaces and isinstance(T, BitmapMatrix):
            C.store = _cast(T, C.dtype)
        else:
            bits.write(runtime.counters, C, desc, result.bitmap(runtime.counters))
        return
    if masked and (C.nvals == 0 or replaces):
        C.store = _cast(T, C.dtype)
        return
    if masked and desc.accum is not None and not desc.replace:
        desc = desc._replace(mask=None)  # all entries of T are kept, and so is the rest of C
    C.store = sparse.write(runtime.counters, C.csc(), _by_columns(desc), result.csc())


def _by_columns(desc: Descriptor) -> Descriptor:
    return desc if desc.mask is None else desc._replace(mask=desc.mask.csc())


def _assign(runtime: Runtime, C: MatrixHandle, desc: Descriptor, op: ops.Assign) -> None:
    rows, cols = (_there(runtime, x) for x in op.indices or ())
    if rows is None and cols is None and not op.transposed:
        _write(runtime, C, desc, op.operand.store, masked=False)
        return
    A = sparse.form_of(op.operand, op.transposed)
    i, j = A.row_idx, A.columns()
    i = i if rows is None else stores.gather(A.device, rows, i)
    j = j if cols is None else stores.gather(A.device, cols, j)
    values = A.number if A.values is None else A.values
    T = forms.from_coo(runtime.device, i, j, values, A.dtype, C.shape, None)
    C.store = sparse.write(runtime.counters, C.csc(), _by_columns(desc), T, (rows, cols))


def _fill_matrix(runtime: Runtime, C: MatrixHandle, desc: Descriptor, op: ops.AssignScalar) -> None:
    """``C<M>(I, J) = value``: at the mask's entries, or without one at all positions."""
    both = C, desc.mask
    if op.indices is None and bitmap.has_bitmap(*both) and bitmap.fit_as_bitmaps(*both):
        bits.fill(runtime.counters, C, desc, op.value)
        return
    rows, cols = (_there(runtime, x) for x in op.indices or (None, None))
    desc = _by_columns(desc)
    if desc.mask is not None and not desc.complement:
        T = desc.mask.with_values(C.dtype, None, op.value)
        if desc.structure and op.indices is None and C.nvals == 0:
            C.store = T
            return
    else:
        where = _all_positions(runtime, C.shape, rows, cols)
        T = forms.at_positions(runtime.device, C.dtype, C.shape, where, None, op.value)
    C.store = sparse.write(runtime.counters, C.csc(), desc, T, (rows, cols))


def _all_positions(runtime: Runtime, shape: tuple[int, int], rows: Any, cols: Any) -> Any:
    """Return all positions in these rows and columns, rising."""
    device = runtime.device
    sparse.require_numbered(shape)
    m, n = (size if x is None else len(x) for size, x in zip(shape, (rows, cols), strict=True))
    device.require(m * n * 96, "assign", "Give a mask that is not complemented.")
    count_up = functools.partial(stores.count_up, device, kind=np.int64)
    i, j = (count_up(k) if x is None else x for k, x in ((m, rows), (n, cols)))
    b, a = stores.split_positions(device, count_up(m * n), max(m, 1))
    return stores.join_positions(device, shape[0], j, i, b, stores.as_type(device, a, np.int64))


# ---------------------------------------------------------------- operations that make a matrix
def _multiply(runtime: Runtime, desc: Descriptor, op: ops.Multiply) -> Store | sparse.AtMask:
    """Return ``A (+.x) B``: only the entries that the mask keeps."""
    T: Store | sparse.AtMask
    if _as_bitmaps(op, desc.mask):
        T = bits.multiply(runtime, desc, op)
    else:
        T = sparse.multiply(runtime, _by_columns(desc), op)
        made = None if isinstance(T, sparse.AtMask) else MatrixHandle(T)
        if op.matrix.is_bitmap and made is not None and made.may_be_bitmap(2):
            T = made.own_bitmap(runtime.counters)  # as a matrix whose rows are scaled: it stays one
    if runtime.edges is not None:
        runtime.product = T.csc() if isinstance(T, sparse.AtMask) else T
    return T


def _as_bitmaps(op: ops.Multiply, mask: MatrixHandle | None = None) -> bool:
    """Whether a product is one of bitmap matrices: its left operand or its mask is stored so."""
    A, B = op.operand, op.matrix
    if not bitmap.has_bitmap(A, mask) or op.transposed or not bitmap.fit_as_bitmaps(A):
        return False
    return bitmap.fits(A.device, A.dtype, (A.shape[0], B.shape[1 if op.product.transpose else 0]))


def explain_product(runtime: Runtime, op: ops.Multiply) -> Plan:
    return bits.prepared(runtime, op)[-1] if _as_bitmaps(op) else sparse.plan(op)


def _on_entries(
    A: BitmapMatrix, dtype: DType, what: str, runtime: Runtime, op: Any, **operands: VectorStore
) -> BitmapMatrix:
    """Run an operation on bitmap matrices like `A` as one on the vectors of their entries."""
    bitmap.require(A.device, A.shape, dtype, what)
    w = VectorStore(A.device, runtime.counters, dtype, A.entries.size)
    ON_VECTORS[type(op)](runtime, w, Descriptor(), op._replace(**operands))
    return BitmapMatrix(A.device, dtype, A.shape, w)


def _ewise(runtime: Runtime, op: ops.Ewise) -> Store:
    A, B, counters = op.left, op.right, runtime.counters
    if bitmap.has_bitmap(A, B) and not any(op.transposed) and bitmap.fit_as_bitmaps(A, B):
        one, other = A.bitmap(counters), B.bitmap(counters)
        dtype = op.op.types(A.dtype, B.dtype)[1]
        return _on_entries(one, dtype, op.kind, runtime, op, left=one.entries, right=other.entries)
    return sparse.combine(runtime, op)


def _extract(runtime: Runtime, op: ops.Extract) -> Store:
    rows, cols = (_there(runtime, x) for x in op.indices or (None, None))
    return sparse.extract(op.operand.csc(), rows, cols)


def _apply(runtime: Runtime, op: ops.Apply) -> Store:
    function, store, dtype = op.function, op.operand.store, op.function.result
    if isinstance(store, BitmapMatrix) and not isinstance(function.op, IndexUnaryOp):
        return _on_entries(store, dtype, "apply", runtime, op, operand=store.entries)
    A: CscMatrix = op.operand.csc()
    by_position = _by_position(function.op)
    if function.op is unary.one or (A.values is None and not by_position):
        made = A.with_values(dtype, None, _of_one_value(A, function))
    else:
        made = A.with_values(dtype, elementwise.apply_entries(A, function, dtype), None)
    made.symmetric = None if by_position else A.symmetric or None  # of the same values
    return made


def _by_position(op: Operator) -> bool:
    return isinstance(op, IndexUnaryOp) and (bool(op.body) or not op.uses_value)


def _of_one_value(A: CscMatrix, function: ops.BoundOperator) -> Any:
    """Return an operator's result for the one value of all entries of a matrix."""
    if function.op is unary.one:
        return function.result.numpy.type(1)
    ptr, idx = A.device.from_host(np.array([0, 1], np.int32)), A.device.xp.zeros(1, np.int32)
    one = CscMatrix(A.device, A.dtype, (1, 1), ptr, idx, None, A.number)
    value = A.device.read(elementwise.apply_entries(one, function, function.result))
    return function.result.numpy.type(value)


def _select(runtime: Runtime, op: ops.Select) -> Store:
    store = op.operand.store
    if isinstance(store, BitmapMatrix) and op.op.name.startswith("value"):
        return _on_entries(store, store.dtype, "select", runtime, op, operand=store.entries)
    A: CscMatrix = op.operand.csc()
    mirrored, known = op.op in _MIRRORED and not op.thunk, f"{op.op.name} keeps all"
    if mirrored and A.facts.get(known):
        made = A.with_values(A.dtype, A.values, A.iso)
    else:
        made = forms.take(A, elementwise.kept_places(A, op.op, op.thunk))
        if mirrored:
            A.facts[known] = made.nvals == A.nvals
    if A.symmetric and (mirrored or not _by_position(op.op)):
        made.symmetric = True
    return made


# The operators that keep (i, j) and (j, i), or neither, if the thunk is 0.
_MIRRORED = frozenset({indexunary.diag, indexunary.offdiag})


def _copy_matrix(_runtime: Runtime, op: ops.Assign) -> Store:
    A: MatrixHandle = op.operand
    return forms.transpose(A.csc()) if op.transposed else A.store.copy(A.dtype)


def _selection(runtime: Runtime, op: ops.SelectionToMatrix) -> Store:
    f, nrows, device = op.indices, op.nrows, runtime.device
    device.require(f.nvals * 58 + 17 * f.size, "matrix_selection")
    cols, packed = f.listed()
    rows = stores.as_type(device, stores.spread(f, packed), np.int64)
    inside = stores.within(device, rows, 0, nrows)
    if len(inside) < len(rows):
        rows, cols = (stores.gather(device, x, inside) for x in (rows, cols))
    ptr = stores.pointer(device, cols, f.size)
    made = CscMatrix(device, BOOL, (nrows, f.size), ptr, rows, None, np.True_)
    return forms.transpose(made) if op.transposed else made


_MAKE: dict[type, Callable[[Runtime, Any], Store]] = {
    ops.Ewise: _ewise,
    ops.Kronecker: sparse.kronecker,
    ops.Extract: _extract,
    ops.Apply: _apply,
    ops.Select: _select,
    ops.Assign: _copy_matrix,
    ops.SelectionToMatrix: _selection,
}
