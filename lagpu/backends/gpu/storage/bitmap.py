"""Bitmap matrices: few rows and many columns, stored position by position as a vector is.

A row is a source of a search, a column a vertex, so one load takes the bits of 64 sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.kernels import constant
from lagpu.backends.gpu.storage.casts import index_type
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.dtypes import DType

__all__ = ["BitmapMatrix", "bytes_of", "fits", "from_few_entries", "require", "stride", "words_of"]

MOST_ROWS = constant("kMostRows")


def stride(nrows: int) -> int:
    """Return the positions a column takes: whole 32-bit words, or pairs of them past 32 rows."""
    return 32 if nrows <= 32 else -(-nrows // 64) * 64


def words_of(nrows: int) -> tuple[str, int]:
    """Return the type of the words that products of bits take, and how many a column has."""
    each = stride(nrows)
    return ("u32", 1) if each == 32 else ("u64", each // 64)


def bytes_of(dtype: DType, shape: tuple[int, int]) -> int | None:
    """Return the bytes of a bitmap matrix of this shape; None if the shape is not wide enough."""
    k, n = shape
    if not 1 <= k <= MOST_ROWS or n < 2 * k:
        return None
    return n * stride(k) * dtype.numpy.itemsize + n * stride(k) // 8


def fits(device: Device, dtype: DType, shape: tuple[int, int]) -> bool:
    """Whether a matrix of this shape may be a bitmap: wide, and bits and values fit four times.

    If the memory pool already holds one copy, that is enough: querying the driver costs more than
    a level of a search.
    """
    needed = bytes_of(dtype, shape)
    if needed is None:
        return False
    small = needed <= 1 << 25 or needed <= device.pooled_bytes()
    return small or 4 * needed <= device.free_bytes()


def require(device: Device, shape: tuple[int, int], dtype: DType | None, what: str) -> None:
    """Raise OutOfMemory unless the bits of a bitmap matrix fit, and with a type its values."""
    size = stride(shape[0]) * shape[1]
    values = 0 if dtype is None else size * dtype.numpy.itemsize
    device.require(size // 8 + values, what, "Take fewer rows at a time.")


class BitmapMatrix:
    """A matrix stored position by position. It is changed in place, so nothing else may hold it.

    Attributes
    ----------
    shape : tuple of int
        (k, n).
    entries : VectorStore
        Entry (i, j) is at ``j * stride(k) + i``; the positions past k are empty.
    alive : array of u64 or None
        The rows that have entries, a bit each, 32 or 64 a number as the products take them.
    """

    def __init__(
        self, device: Device, dtype: DType, shape: tuple[int, int], entries: VectorStore
    ) -> None:
        self.device, self.dtype, self.shape, self.entries = device, dtype, shape, entries
        self.changed()

    @property
    def nvals(self) -> int:
        """Number of entries."""
        return self.entries.nvals

    @property
    def nbytes(self) -> int:
        """Bytes of bits and values."""
        v = self.entries
        return sum(x.nbytes for x in (v.words, v.values, v.indices) if x is not None)

    def changed(self) -> None:
        """Forget what was derived from the entries."""
        self._csc: CscMatrix | None = None
        self.alive: Any = None

    def copy(self, dtype: DType) -> BitmapMatrix:
        """Return a copy, cast to `dtype`."""
        if self.entries.form == "bitmap":
            require(self.device, self.shape, None if self.entries.values is None else dtype, "dup")
        made = BitmapMatrix(self.device, dtype, self.shape, self.entries.copy(dtype))
        made.alive = self.alive
        return made

    def csc(self) -> CscMatrix:
        """Return the matrix by columns; made at the first call after a change, and kept."""
        if self._csc is None:
            self._csc = self._made_csc()
        return self._csc

    def _made_csc(self) -> CscMatrix:
        xp, (k, n) = self.device.xp, self.shape
        self.device.require(48 * self.entries.nvals + 16 * n, "bitmap matrix by columns")
        positions, values = self.entries.listed()
        each = np.int64(stride(k))
        cols = positions // each
        ptr = xp.searchsorted(cols, xp.arange(n + 1, dtype=np.int64))
        rows = (positions - cols * each).astype(index_type(k))
        iso = self.entries.number if values is None else None
        return CscMatrix(self.device, self.dtype, self.shape, ptr, rows, values, iso)


def from_few_entries(
    device: Device,
    counters: Counters,
    rows: Any,
    cols: Any,
    values: Any,
    dtype: DType,
    shape: tuple[int, int],
) -> BitmapMatrix | None:
    """Return a bitmap matrix of triplets on the host, at most one a row: the sources of searches.

    None if there are more of them, or two of one position, or they are on the device, or a bitmap
    matrix does not fit.
    """
    if len(rows) > shape[0] or not all(isinstance(x, np.ndarray) for x in (rows, cols)):
        return None
    iso = np.ndim(values) == 0
    if not (iso or isinstance(values, np.ndarray)) or not fits(device, dtype, shape):
        return None
    each = stride(shape[0])
    positions = cols.astype(np.int64) * each + rows
    order = np.argsort(positions)
    positions = positions[order]
    if bool((positions[1:] == positions[:-1]).any()):
        return None
    v = VectorStore(device, counters, dtype, each * shape[1])
    packed = None if iso else device.from_host(values[order])
    v.set_sparse(device.from_host(positions), packed, values if iso else None)
    return BitmapMatrix(device, dtype, shape, v)
