"""Operations on bitmap matrices, entry by entry: those of the vectors that store their entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.kernels.functors import Prelude, accum_macros
from lagpu.backends.gpu.ops import elementwise
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, require, stride
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.handle import MatrixHandle
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.dtypes import DType
from lagpu.operations import BoundOperator, Descriptor

__all__ = ["apply", "combine", "fill", "on_entries", "reduce_columns", "select", "write"]


def on_entries(counters: Counters, desc: Descriptor) -> Descriptor:
    """Return a descriptor whose mask is the vector that stores the entries of the mask."""
    if desc.mask is None:
        return desc
    return desc._replace(mask=desc.mask.bitmap(counters).entries)


def _like(A: BitmapMatrix, dtype: DType, what: str) -> VectorStore:
    require(A.device, A.shape, dtype, what)
    return VectorStore(A.device, A.entries.counters, dtype, A.entries.size)


def _make_room(C: BitmapMatrix) -> None:
    """Store bits and values of an output."""
    if C.entries.form != "bitmap" or C.entries.values is None:
        require(C.device, C.shape, C.dtype, "assign")
    C.entries.to_writable()


def _matrix(A: BitmapMatrix, entries: VectorStore) -> BitmapMatrix:
    return BitmapMatrix(A.device, entries.dtype, A.shape, entries)


def write(counters: Counters, C: MatrixHandle, desc: Descriptor, T: BitmapMatrix) -> None:
    """``C<M> = T``, in place."""
    made = C.own_bitmap(counters)
    _make_room(made)
    mask = on_entries(counters, desc)
    made.changed()
    elementwise.write(made.entries, mask, T.entries)
    C.store = made


def fill(counters: Counters, C: MatrixHandle, desc: Descriptor, value: Any) -> None:
    """``C<M> = value``, in place."""
    made = C.own_bitmap(counters)
    w, k = made.entries, C.shape[0]
    mask, complement = elementwise.mask_words(on_entries(counters, desc))
    if desc.accum is None and w.known == 0:  # then all entries have one value: it is not stored
        require(C.device, C.shape, None, "assign")
        w.set_empty()
        w.to_bitmap()
        w.iso = value
    else:
        _make_room(made)
    count, prelude = counters.take(), Prelude()
    macros = accum_macros(desc.accum, w.dtype, w.dtype, prelude)
    file, text = "bitmap/products.cu", prelude.text
    run = kernel(file, "bitmap_fill", prelude=text, W=w.dtype.ctype, **macros)
    made.changed()
    w.changes()
    w.device.launch(
        run, len(w.words), len(w.words), stride(k) // 32, k, value, mask, complement,
        desc.replace, w.words, w.values, count,
    )  # fmt: skip
    w.counted(count)
    C.store = made


def combine(
    kind: str,
    A: BitmapMatrix,
    B: BitmapMatrix,
    op: BinaryOp,
    defaults: tuple[Any, Any] | None = None,
) -> BitmapMatrix:
    """Return ``A (+) B`` or ``A (x) B``."""
    w = _like(A, op.types(A.dtype, B.dtype)[1], kind)
    elementwise.combine(kind, w, Descriptor(), A.entries, B.entries, op, defaults)
    return _matrix(A, w)


def apply(A: BitmapMatrix, function: BoundOperator) -> BitmapMatrix:
    """Return ``f(A)``, of an operator that does not look at positions."""
    w = _like(A, function.result, "apply")
    elementwise.map_entries(w, Descriptor(), A.entries, function)
    return _matrix(A, w)


def select(A: BitmapMatrix, op: IndexUnaryOp, thunk: Any) -> BitmapMatrix:
    """Return the entries for which an operator of the value alone holds."""
    w = _like(A, A.dtype, "select")
    elementwise.select_entries(w, Descriptor(), A.entries, op, thunk)
    return _matrix(A, w)


def reduce_columns(A: BitmapMatrix, monoid: Monoid) -> VectorStore:
    """Return ``w[j] = (+)_i A[i, j]``."""
    xp, n = A.device.xp, A.shape[1]
    result, prelude = monoid.types(A.dtype)[1], Prelude()
    macros = {"ADD": prelude.functor(monoid), "U": A.dtype.ctype, "Z": result.ctype}
    found, sums = xp.empty(n, bool), xp.empty(n, result.numpy)
    words, values, number = A.entries.readable()
    file, text = "bitmap/products.cu", prelude.text
    run = kernel(file, "bitmap_reduce_columns", prelude=text, **macros)
    per = stride(A.shape[0]) // 32
    A.device.launch(run, 32 * n, n, per, words, values, number, found, sums)
    where = xp.flatnonzero(found).astype(np.int64)
    w = VectorStore(A.device, A.entries.counters, result, n)
    w.set_sparse(where, sums[where], None)
    return w
