"""Sparse matrices on one pattern: as vectors over the positions where any of them has an entry.

So mask, accumulator, replace and the element-wise combinations are the vectors' own kernels: what
lies outside these positions has no entry before and none after.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.ops import elementwise
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.dtypes import DType
from lagpu.errors import NotSupported
from lagpu.operations import Descriptor

__all__ = ["at_positions", "combine", "positions", "require_numbered", "write"]

Array = Any


def positions(A: CscMatrix) -> Array:
    """Return the entries' positions column by column, as single numbers that rise."""
    require_numbered(A.shape)
    return A.columns() * np.int64(A.shape[0]) + A.row_idx


def require_numbered(shape: tuple[int, int]) -> None:
    """Raise unless each position of a matrix has an INT64 number."""
    if shape[0] * shape[1] >= 2**63:
        raise NotSupported(
            f"gpu: a {shape[0]} x {shape[1]} result has 2**63 positions or more. "
            "Use the cpu backend, or a smaller shape."
        )


def at_positions(
    device: Device, dtype: DType, shape: tuple[int, int], where: Array, values: Any, iso: Any
) -> CscMatrix:
    """Return the matrix with entries at rising positions."""
    xp, nrows = device.xp, max(shape[0], 1)
    cols = where // nrows
    ptr = xp.searchsorted(cols, xp.arange(shape[1] + 1, dtype=np.int64)).astype(np.int64)
    return CscMatrix(device, dtype, shape, ptr, where - cols * nrows, values, iso)


class Pattern(NamedTuple):
    """The positions over which matrices become vectors.

    Attributes
    ----------
    numbers : array of INT64
        They rise.
    form : CscMatrix or None
        A matrix with entries at exactly these positions, if there is one.
    """

    numbers: Array
    form: CscMatrix | None


def _union(A: CscMatrix, B: CscMatrix, a: Array, b: Array) -> Pattern:
    """Return the positions of both; nothing is sorted if one has all positions of the other."""
    A.device.require((len(a) + len(b)) * 96, "matrix operation", "Use fewer or smaller matrices.")
    xp = A.device.xp
    if _within(xp, b, a):
        return Pattern(a, A)
    if _within(xp, a, b):
        return Pattern(b, B)
    return Pattern(xp.unique(xp.concatenate([a, b])), None)


def _within(xp: Any, part: Array, whole: Array) -> bool:
    """Whether numbers that rise are all among others."""
    if len(part) == 0 or len(part) > len(whole):
        return len(part) == 0
    at = xp.minimum(xp.searchsorted(whole, part), len(whole) - 1)
    return bool((whole[at] == part).all())


def _on_pattern(counters: Counters, A: CscMatrix, own: Array, pattern: Pattern) -> VectorStore:
    """Return `A`, whose positions are `own`, as a vector over `pattern`, which has all of them."""
    v = VectorStore(A.device, counters, A.dtype, len(pattern.numbers))
    if own is pattern.numbers:
        v.set_full(A.values, A.iso)
    else:
        v.set_sparse(A.device.xp.searchsorted(pattern.numbers, own), A.values, A.iso)
    return v


def _masking(counters: Counters, M: CscMatrix, pattern: Pattern) -> VectorStore:
    """Return a mask as a vector over `pattern`; its entries elsewhere keep nothing."""
    xp, numbers, own = M.device.xp, pattern.numbers, positions(M)
    v = VectorStore(M.device, counters, M.dtype, len(numbers))
    if len(numbers):
        at = xp.searchsorted(numbers, own)
        here = xp.flatnonzero(numbers[xp.minimum(at, len(numbers) - 1)] == own)
        v.set_sparse(at[here], None if M.values is None else M.values[here], M.iso)
    return v


def _from_pattern(v: VectorStore, pattern: Pattern, shape: tuple[int, int]) -> CscMatrix:
    """Return a vector over `pattern` as a matrix."""
    form = pattern.form
    if form is not None and v.nvals == v.size:
        iso = v.iso if v.values is None else None
        return CscMatrix(v.device, v.dtype, shape, form.col_ptr, form.row_idx, v.values, iso)
    indices, values = v.listed()
    return at_positions(v.device, v.dtype, shape, pattern.numbers[indices], values, v.iso)


def combine(
    kind: str,
    counters: Counters,
    A: CscMatrix,
    B: CscMatrix,
    op: BinaryOp,
    defaults: tuple[Any, Any] | None = None,
) -> CscMatrix:
    """Return ``A (+) B`` or ``A (x) B``."""
    a, b = positions(A), positions(B)
    pattern = _union(A, B, a, b)
    w = VectorStore(A.device, counters, op.types(A.dtype, B.dtype)[1], len(pattern.numbers))
    u, v = _on_pattern(counters, A, a, pattern), _on_pattern(counters, B, b, pattern)
    elementwise.combine(kind, w, Descriptor(), u, v, op, defaults)
    return _from_pattern(w, pattern, A.shape)


def write(
    counters: Counters,
    C: CscMatrix,
    desc: Descriptor,
    T: CscMatrix,
    rows: Array | None = None,
    cols: Array | None = None,
) -> CscMatrix:
    """Return what ``C<M> = T`` makes of `C`; only in some rows and columns, if they are given.

    `desc` has the mask, a matrix by columns.
    """
    c, t = positions(C), positions(T)
    pattern = _union(C, T, c, t)
    if desc.mask is not None:
        mask = _masking(counters, desc.mask, pattern)
        if not desc.structure and desc.mask.values is None and not desc.mask.number:
            mask.set_empty()  # all its entries are zero, so none is kept
        desc = desc._replace(mask=mask)
    w, v = _on_pattern(counters, C, c, pattern), _on_pattern(counters, T, t, pattern)
    w.values = None if w.values is None else w.values.copy()  # it is written to
    elementwise.write(w, desc, v, _region(counters, C, pattern.numbers, rows, cols))
    return _from_pattern(w, pattern, C.shape)


def _region(
    counters: Counters, C: CscMatrix, pattern: Array, rows: Array | None, cols: Array | None
) -> Array | None:
    """Return presence words of the positions in these rows and columns, or None for all."""
    if rows is None and cols is None:
        return None
    xp, nrows = C.device.xp, max(C.shape[0], 1)
    inside = xp.ones(len(pattern), bool)
    if cols is not None:
        inside &= xp.isin(pattern // nrows, cols)
    if rows is not None:
        inside &= xp.isin(pattern % nrows, rows)
    region = VectorStore(C.device, counters, C.dtype, len(pattern))
    region.set_sparse(xp.flatnonzero(inside), None, C.dtype.numpy.type(0))
    region.to_bitmap()
    return region.words
