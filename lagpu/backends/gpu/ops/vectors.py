"""Statements that write a vector: each operation with the function that runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.algebra.operators import Monoid, Semiring
from lagpu.algebra.tables import binary
from lagpu.backends.gpu.ops import bitmap, elementwise, spmv
from lagpu.backends.gpu.ops.planner import choose
from lagpu.backends.gpu.profile import Runtime
from lagpu.backends.gpu.storage.forms import is_symmetric
from lagpu.backends.gpu.storage.matrix import CscMatrix, cast_number
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.host.columns import distinct
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
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

Array = np.ndarray[Any, Any]


def _multiply(run: Runtime, w: VectorStore, desc: Descriptor, op: Multiply) -> None:
    _write_product(run, w, desc, op.matrix.csc(), op.operand, op.product)


def _write_product(
    run: Runtime, w: VectorStore, desc: Descriptor, A: CscMatrix, u: VectorStore, product: Product
) -> None:
    """``w<m> = A (+.x) u`` or ``A' (+.x) u``."""
    run.plan = plan = choose(A, u, product, desc)
    mask = elementwise.mask_words(desc)
    dtype = w.dtype if desc.is_fresh else product.result
    t = spmv.multiply(w, A, u, product, plan, mask, dtype, run.edges)
    if desc.is_fresh and (t.dtype is w.dtype or t.values is None):
        if t.iso is not None:
            t.iso = cast_number(t.iso, w.dtype)
        w.adopt(t)
    else:
        elementwise.write(w, desc, t)
        w.stats = t.stats


def _multiply_selection(
    run: Runtime, w: VectorStore, desc: Descriptor, op: MultiplySelection
) -> None:
    f, u, product = op.indices, op.operand, op.product
    run.plan = plan = spmv.choose_selection(product)
    t = spmv.multiply_selection(w, f, u, product, plan, elementwise.mask_words(desc), run.edges)
    if desc.is_fresh and t.dtype is w.dtype:
        w.adopt(t)
    else:
        elementwise.write(w, desc, t)


def _assign_scalar(run: Runtime, w: VectorStore, desc: Descriptor, op: AssignScalar) -> None:
    region = None if op.indices is None else _region(run, w, op.indices[0])
    elementwise.assign_value(w, desc, op.value, region)


def _assign(run: Runtime, w: VectorStore, desc: Descriptor, op: Assign) -> None:
    if op.indices is None:
        elementwise.write(w, desc, op.operand)
        return
    (indices,) = op.indices
    assert indices is not None
    region = _region(run, w, indices)
    u = elementwise.scatter(w, run.device.from_host(indices), op.operand)
    elementwise.write(w, desc, u, region)


def _region(run: Runtime, w: VectorStore, indices: Array | None) -> Any:
    """Return the presence words of a list of indices, or None for all."""
    if indices is None:
        return None
    region = VectorStore(run.device, run.counters, w.dtype, w.size)
    region.set_sparse(run.device.from_host(distinct(indices)), None, w.dtype.numpy.type(0))
    region.to_bitmap()
    return region.words


def _extract(run: Runtime, w: VectorStore, desc: Descriptor, op: Extract) -> None:
    u = op.operand
    if op.indices is not None and op.indices[0] is not None:
        u = elementwise.gather(u, run.device.from_host(op.indices[0]))
    elementwise.write(w, desc, u)


def _extract_column(run: Runtime, w: VectorStore, desc: Descriptor, op: ExtractColumn) -> None:
    A: CscMatrix = op.matrix.csc()
    t = VectorStore(run.device, run.counters, A.dtype, A.shape[1 if op.transposed else 0])
    if op.transposed and not is_symmetric(A):
        chosen = run.device.xp.flatnonzero(A.row_idx == op.column)
        indices = A.columns()[chosen]
        values = None if A.values is None else A.values[chosen]
    else:
        first, last = A.column_range(op.column)
        indices = A.row_idx[first:last].astype(np.int64)
        values = None if A.values is None else A.values[first:last]
    t.set_sparse(indices, values, A.iso)
    elementwise.write(w, desc, t)


def _reduce_rows(run: Runtime, w: VectorStore, desc: Descriptor, op: ReduceRows) -> None:
    """Run a product with a full vector that takes the matrix' value."""
    monoid: Monoid = op.monoid
    if op.transposed and op.matrix.is_bitmap:
        elementwise.write(w, desc, bitmap.reduce_columns(op.matrix.store, monoid))
        return
    A: CscMatrix = op.matrix.csc()
    domain, result = monoid.types(A.dtype)
    ones = VectorStore(run.device, run.counters, domain, A.shape[0 if op.transposed else 1])
    ones.set_full(None, domain.numpy.type(1))
    product = Product(Semiring(monoid, binary.first), domain, result, op.transposed, False)
    _write_product(run, w, desc, A, ones, product)


#: Each operation with the function that runs it: ``run(runtime, w, desc, operation)``.
RUN: dict[type, Callable[[Runtime, VectorStore, Descriptor, Any], None]] = {
    Multiply: _multiply,
    MultiplySelection: _multiply_selection,
    Ewise: lambda _, w, desc, op: elementwise.combine(
        op.kind, w, desc, op.left, op.right, op.op, op.defaults
    ),
    Apply: lambda _, w, desc, op: elementwise.map_entries(w, desc, op.operand, op.function),
    Select: lambda _, w, desc, op: elementwise.select_entries(w, desc, op.operand, op.op, op.thunk),
    Assign: _assign,
    AssignScalar: _assign_scalar,
    Extract: _extract,
    ExtractColumn: _extract_column,
    ReduceRows: _reduce_rows,
}
