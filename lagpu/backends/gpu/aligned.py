"""Matrices lined up: as vectors over the positions where any of them has an entry.

So mask, accumulator, replace and the element-wise combinations are the vectors' own kernels: what
lies outside these positions has no entry before and none after.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.base import Descriptor
from lagpu.backends.gpu import elementwise
from lagpu.backends.gpu.counters import Counters
from lagpu.backends.gpu.device import Device
from lagpu.backends.gpu.storage import MatrixStore, VectorStore
from lagpu.dtypes import DType
from lagpu.errors import NotSupported
from lagpu.operators import BinaryOp

__all__ = ["at_positions", "combine", "positions", "require_numbered", "write"]

Array = Any


def positions(A: MatrixStore) -> Array:
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
) -> MatrixStore:
    """Return the matrix with entries at rising positions."""
    xp, nrows = device.xp, max(shape[0], 1)
    cols = where // nrows
    ptr = xp.searchsorted(cols, xp.arange(shape[1] + 1, dtype=np.int64)).astype(np.int64)
    return MatrixStore(device, dtype, shape, ptr, where - cols * nrows, values, iso)


def _lined_up(counters: Counters, A: MatrixStore, own: Array, places: Array) -> VectorStore:
    """Return `A`, whose positions are `own`, as a vector over `places`; other entries are left."""
    xp = A.device.xp
    v = VectorStore(A.device, counters, A.dtype, len(places))
    at = xp.searchsorted(places, own)
    at = at[: len(at) if len(places) else 0]
    here = xp.flatnonzero(places[xp.minimum(at, len(places) - 1)] == own[: len(at)])
    v.set_sparse(at[here], None if A.values is None else A.values[here], A.iso)
    return v


def _back(v: VectorStore, places: Array, shape: tuple[int, int]) -> MatrixStore:
    """Return a vector over `places` as a matrix."""
    indices, values = v.listed()
    return at_positions(v.device, v.dtype, shape, places[indices], values, v.iso)


def _union(A: MatrixStore, a: Array, b: Array) -> Array:
    A.device.require((len(a) + len(b)) * 96, "matrix operation", "Use fewer or smaller matrices.")
    return A.device.xp.unique(A.device.xp.concatenate([a, b]))


def combine(
    mode: str,
    counters: Counters,
    A: MatrixStore,
    B: MatrixStore,
    op: BinaryOp,
    defaults: tuple[Any, Any] | None = None,
) -> MatrixStore:
    """Return ``A (+) B`` or ``A (x) B``."""
    a, b = positions(A), positions(B)
    places = _union(A, a, b)
    w = VectorStore(A.device, counters, op.types(A.dtype, B.dtype)[1], len(places))
    u, v = _lined_up(counters, A, a, places), _lined_up(counters, B, b, places)
    elementwise.combine(mode, w, Descriptor(), u, v, op, defaults)
    return _back(w, places, A.shape)


def write(
    counters: Counters,
    C: MatrixStore,
    desc: Descriptor,
    T: MatrixStore,
    rows: Array | None = None,
    cols: Array | None = None,
) -> MatrixStore:
    """Return what ``C<M> = T`` makes of `C`; only in some rows and columns, if they are given."""
    c, t = positions(C), positions(T)
    places = _union(C, c, t)
    if desc.mask is not None:
        mask = _lined_up(counters, desc.mask, positions(desc.mask), places)
        if not desc.structure and desc.mask.values is None and not desc.mask.number:
            mask.set_empty()  # all its entries are zero, so none is kept
        desc = desc._replace(mask=mask)
    w, v = _lined_up(counters, C, c, places), _lined_up(counters, T, t, places)
    elementwise.write(w, desc, v, _region(counters, C, places, rows, cols))
    return _back(w, places, C.shape)


def _region(
    counters: Counters, C: MatrixStore, places: Array, rows: Array | None, cols: Array | None
) -> Array | None:
    """Return presence words of the positions in these rows and columns, or None for all."""
    if rows is None and cols is None:
        return None
    xp, nrows = C.device.xp, max(C.shape[0], 1)
    inside = xp.ones(len(places), bool)
    if cols is not None:
        inside &= xp.isin(places // nrows, cols)
    if rows is not None:
        inside &= xp.isin(places % nrows, rows)
    region = VectorStore(C.device, counters, C.dtype, len(places))
    region.set_sparse(xp.flatnonzero(inside), None, C.dtype.numpy.type(0))
    region.to_bitmap()
    return region.words
