"""Sparse matrices on one pattern: as vectors over the positions where any of them has an entry.

So mask, accumulator, replace and the element-wise combinations are the vectors' own kernels: what
lies outside these positions has no entry before and none after.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.ops import elementwise
from lagpu.backends.gpu.ops.masked import AtMask
from lagpu.backends.gpu.storage.casts import Counters
from lagpu.backends.gpu.storage.forms import has_same_pattern
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.dtypes import DType
from lagpu.errors import NotSupported
from lagpu.operations import Descriptor

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


class Pattern:
    """The positions over which matrices become vectors.

    Parameters
    ----------
    forms : tuple of CscMatrix
        Matrices with entries at exactly these positions.
    numbers : array of INT64, optional
        The positions, which rise; those of the forms if not given.

    Attributes
    ----------
    forms : tuple of CscMatrix
        As given.
    """

    def __init__(self, forms: tuple[CscMatrix, ...], numbers: Array = None) -> None:
        self.forms = forms
        self._numbers = numbers

    def __len__(self) -> int:
        return self.forms[0].nvals if self.forms else len(self._numbers)

    @property
    def numbers(self) -> Array:
        """The positions."""
        if self._numbers is None:
            self._numbers = positions(self.forms[0])
        return self._numbers


def _union(A: CscMatrix, B: CscMatrix) -> Pattern:
    """Return the positions of both; nothing is sorted if one has all positions of the other."""
    A.device.require((A.nvals + B.nvals) * 96, "matrix operation", "Use fewer or smaller matrices.")
    if has_same_pattern(A, B):
        return Pattern((A, B))
    xp, a, b = A.device.xp, positions(A), positions(B)
    if _within(xp, b, a):
        return Pattern((A,), a)
    if _within(xp, a, b):
        return Pattern((B,), b)
    return Pattern((), xp.unique(xp.concatenate([a, b])))


def _within(xp: Any, part: Array, whole: Array) -> bool:
    """Whether numbers that rise are all among others."""
    if len(part) == 0 or len(part) > len(whole):
        return len(part) == 0
    at = xp.minimum(xp.searchsorted(whole, part), len(whole) - 1)
    return bool((whole[at] == part).all())


def _on_pattern(counters: Counters, A: CscMatrix, pattern: Pattern) -> VectorStore:
    """Return `A` as a vector over `pattern`, which has all of its positions."""
    v = VectorStore(A.device, counters, A.dtype, len(pattern))
    if any(A is form for form in pattern.forms):
        v.set_full(A.values, A.iso)
    else:
        at = A.device.xp.searchsorted(pattern.numbers, positions(A))
        v.set_sparse(at, A.values, A.iso)
    return v


def _masking(counters: Counters, M: CscMatrix, pattern: Pattern) -> VectorStore:
    """Return a mask as a vector over `pattern`; its entries elsewhere keep nothing."""
    v = VectorStore(M.device, counters, M.dtype, len(pattern))
    if pattern.forms and has_same_pattern(M, pattern.forms[0]):
        v.set_full(M.values, M.iso)
    elif len(pattern):
        xp, numbers, own = M.device.xp, pattern.numbers, positions(M)
        at = xp.searchsorted(numbers, own)
        here = xp.flatnonzero(numbers[xp.minimum(at, len(numbers) - 1)] == own)
        v.set_sparse(at[here], None if M.values is None else M.values[here], M.iso)
    return v


def _from_pattern(v: VectorStore, pattern: Pattern, shape: tuple[int, int]) -> CscMatrix:
    """Return a vector over `pattern` as a matrix."""
    if pattern.forms and v.nvals == v.size:
        iso = v.iso if v.values is None else None
        form = pattern.forms[0]
        return CscMatrix(v.device, v.dtype, shape, form.col_ptr, form.row_idx, v.values, iso)
    indices, values = v.listed()
    return at_positions(v.device, v.dtype, shape, pattern.numbers[indices], values, v.iso)


def accumulate(counters: Counters, C: CscMatrix, desc: Descriptor, product: AtMask) -> CscMatrix:
    """Return `C` with a product at a mask's entries, which are those of `C`, accumulated to it."""
    w, v = (VectorStore(C.device, counters, x.dtype, C.nvals) for x in (C, product))
    w.set_full(None if C.values is None else C.values.copy(), C.iso)  # it is written to
    v.set_bitmap(product.found, product.values, None, None)
    elementwise.write(w, Descriptor(accum=desc.accum), v)
    return _from_pattern(w, Pattern((C,)), C.shape)


def combine(
    kind: str,
    counters: Counters,
    A: CscMatrix,
    B: CscMatrix,
    op: BinaryOp,
    defaults: tuple[Any, Any] | None = None,
) -> CscMatrix:
    """Return ``A (+) B`` or ``A (x) B``."""
    pattern = _union(A, B)
    w = VectorStore(A.device, counters, op.types(A.dtype, B.dtype)[1], len(pattern))
    u, v = _on_pattern(counters, A, pattern), _on_pattern(counters, B, pattern)
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
    pattern = _union(C, T)
    if desc.mask is not None:
        mask = _masking(counters, desc.mask, pattern)
        if not desc.structure and desc.mask.values is None and not desc.mask.number:
            mask.set_empty()  # all its entries are zero, so none is kept
        desc = desc._replace(mask=mask)
    w, v = _on_pattern(counters, C, pattern), _on_pattern(counters, T, pattern)
    w.values = None if w.values is None else w.values.copy()  # it is written to
    elementwise.write(w, desc, v, _region(counters, C, pattern, rows, cols))
    return _from_pattern(w, pattern, C.shape)


def _region(
    counters: Counters, C: CscMatrix, pattern: Pattern, rows: Array | None, cols: Array | None
) -> Array | None:
    """Return presence words of the positions in these rows and columns, or None for all."""
    if rows is None and cols is None:
        return None
    xp, nrows = C.device.xp, max(C.shape[0], 1)
    inside = xp.ones(len(pattern), bool)
    if cols is not None:
        inside &= xp.isin(pattern.numbers // nrows, cols)
    if rows is not None:
        inside &= xp.isin(pattern.numbers % nrows, rows)
    region = VectorStore(C.device, counters, C.dtype, len(pattern))
    region.set_sparse(xp.flatnonzero(inside), None, C.dtype.numpy.type(0))
    region.to_bitmap()
    return region.words
