"""Operations on blocks entry by entry: those of the vectors that their entries are."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.kernels.functors import monoid_functor
from lagpu.backends.gpu.ops import elementwise
from lagpu.backends.gpu.storage.bitmap import BlockStore, as_block, described, own, require, stride
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.protocol import Applied, Descriptor
from lagpu.dtypes import DType

__all__ = ["apply", "combine", "dup", "fill", "reduce_columns", "select", "write"]


def _like(A: BlockStore, dtype: DType, what: str) -> VectorStore:
    require(A.device, A.shape, dtype, what)
    return VectorStore(A.device, A.entries.counters, dtype, A.entries.size)


def _make_room(C: BlockStore) -> None:
    """Store bits and values of an output."""
    if C.entries.form != "bitmap" or C.entries.values is None:
        require(C.device, C.shape, C.dtype, "assign")
    C.entries.to_writable()


def _block(A: BlockStore, entries: VectorStore) -> BlockStore:
    return BlockStore(A.device, entries.dtype, A.shape, entries)


def dup(A: BlockStore, dtype: DType) -> BlockStore:
    """Return a copy, cast."""
    if A.entries.form == "bitmap":
        require(A.device, A.shape, None if A.entries.values is None else dtype, "dup")
    made = _block(A, A.entries.copy(dtype))
    made.alive = A.alive
    return made


def write(counters: Counters, C: MatrixStore, desc: Descriptor, T: MatrixStore) -> BlockStore:
    """Return what ``C<M> = T`` makes of `C`, in place."""
    if desc.accum is None and desc.replace and isinstance(T, BlockStore) and T.under is desc:
        T.under = None
        return T if T.dtype is C.dtype else dup(T, C.dtype)
    made = own(counters, C)
    _make_room(made)
    elementwise.write(made.entries, described(counters, desc), as_block(counters, T).entries)
    made.changed()
    return made


def fill(counters: Counters, C: MatrixStore, desc: Descriptor, value: Any) -> BlockStore:
    """Return what ``C<M> = value`` makes of `C`, in place."""
    made, how = own(counters, C), described(counters, desc)
    w, k = made.entries, C.shape[0]
    mask, complement = elementwise.mask_words(how)
    if desc.accum is None and w.known == 0:  # then all entries have one value: it is not stored
        require(C.device, C.shape, None, "assign")
        w.set_empty()
        w.to_bitmap()
        w.iso = value
    else:
        _make_room(made)
    count = counters.take()
    text, macros = elementwise.accum_of(desc.accum, w.dtype, w.dtype)
    run = kernel("bitmap/products.cu", "block_fill", prelude=text, W=w.dtype.ctype, **macros)
    w.device.launch(
        run, len(w.words), len(w.words), stride(k) // 32, k, value, mask, complement,
        desc.replace, w.words, w.values, count,
    )  # fmt: skip
    w.counted(count)
    w.forget()
    made.changed()
    return made


def combine(
    mode: str,
    counters: Counters,
    A: MatrixStore,
    B: MatrixStore,
    op: BinaryOp,
    defaults: tuple[Any, Any] | None = None,
) -> BlockStore:
    """Return ``A (+) B`` or ``A (x) B``."""
    a, b = as_block(counters, A), as_block(counters, B)
    w = _like(a, op.types(A.dtype, B.dtype)[1], mode)
    elementwise.combine(mode, w, Descriptor(), a.entries, b.entries, op, defaults)
    return _block(a, w)


def apply(A: BlockStore, op: Operator, how: Applied) -> BlockStore:
    """Return ``f(A)``, of an operator that does not look at positions."""
    w = _like(A, how.result, "apply")
    elementwise.map_entries(w, Descriptor(), A.entries, op, how)
    return _block(A, w)


def select(A: BlockStore, op: IndexUnaryOp, thunk: Any) -> BlockStore:
    """Return the entries for which an operator of the value alone holds."""
    w = _like(A, A.dtype, "select")
    elementwise.select_entries(w, Descriptor(), A.entries, op, thunk)
    return _block(A, w)


def reduce_columns(A: BlockStore, monoid: Monoid) -> VectorStore:
    """Return ``w[j] = (+)_i A[i, j]``."""
    xp, n = A.device.xp, A.shape[1]
    result = monoid.types(A.dtype)[1]
    add, text = monoid_functor(monoid)
    found, sums = xp.empty(n, bool), xp.empty(n, result.numpy)
    words, values, number = A.entries.readable()
    run = kernel(
        "bitmap/products.cu",
        "block_reduce_columns",
        prelude=text,
        ADD=add,
        U=A.dtype.ctype,
        Z=result.ctype,
    )
    per = stride(A.shape[0]) // 32
    A.device.launch(run, 32 * n, n, per, words, values, number, found, sums)
    where = xp.flatnonzero(found).astype(np.int64)
    w = VectorStore(A.device, A.entries.counters, result, n)
    w.set_sparse(where, sums[where], None)
    return w
