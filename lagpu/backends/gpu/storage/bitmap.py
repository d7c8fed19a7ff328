"""Blocks: matrices of few rows and many columns, stored column by column as a vector is stored.

A row is a source of a search, a column a vertex, so one gather takes the bits of 64 sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.storage.casts import index_type
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.protocol import Descriptor
from lagpu.dtypes import DType

__all__ = [
    "BlockStore",
    "as_block",
    "bytes_of",
    "described",
    "fits",
    "is_block",
    "of_few",
    "own",
    "require",
    "stride",
]

MOST_ROWS = 1024
_COLUMN_FORM = ("col_ptr", "row_idx", "values", "iso")


def stride(nrows: int) -> int:
    """Return the positions a column takes: whole 32-bit words, or pairs of them past 32 rows."""
    return 32 if nrows <= 32 else -(-nrows // 64) * 64


def bytes_of(dtype: DType, shape: tuple[int, int]) -> int | None:
    """Return the bytes of a block of this shape, or None if it cannot be one: it must be wide."""
    k, n = shape
    if not 1 <= k <= MOST_ROWS or n < 2 * k:
        return None
    return n * stride(k) * dtype.numpy.itemsize + n * stride(k) // 8


def fits(device: Device, dtype: DType, shape: tuple[int, int]) -> bool:
    """Whether a matrix of this shape may be a block: wide, and bits and values fit twice.

    Once will do where nothing has to be asked for; to ask the driver takes longer than a level.
    """
    needed = bytes_of(dtype, shape)
    if needed is None:
        return False
    small = needed <= 1 << 25 or needed <= device.pooled_bytes()
    return small or 4 * needed <= device.free_bytes()


def require(device: Device, shape: tuple[int, int], dtype: DType | None, what: str) -> None:
    """Raise OutOfMemory unless a block's bits fit, and with a type its values."""
    size = stride(shape[0]) * shape[1]
    values = 0 if dtype is None else size * dtype.numpy.itemsize
    device.require(size // 8 + values, what, "Take fewer rows at a time.")


class BlockStore(MatrixStore):
    """A block; what asks for its column form (`col_ptr` and so on) gets it, made once.

    Unlike other matrices it is changed in place, so nothing else may hold it.

    Attributes
    ----------
    entries : VectorStore
        Entry (i, j) stands at ``j * stride(nrows) + i``; the positions past nrows are empty.
    alive : array of u64 or None
        The rows that have entries, a bit each, 32 or 64 a number as the products take them.
    """

    def __init__(
        self, device: Device, dtype: DType, shape: tuple[int, int], entries: VectorStore
    ) -> None:
        self.device, self.dtype, self.shape, self.entries = device, dtype, shape, entries
        self.turnable = True
        self.kernels: dict[Any, Any] = {}
        self.spaces: dict[str, Any] = {}
        self.changed()

    def __getattr__(self, name: str) -> Any:
        if name == "nvals":
            return self.entries.nvals
        if name not in _COLUMN_FORM:
            raise AttributeError(name)
        self._make_columns()
        return self.__dict__[name]

    @property
    def nbytes(self) -> int:
        """Bytes of the block."""
        v = self.entries
        return sum(x.nbytes for x in (v.words, v.values, v.indices) if x is not None)

    def _make_columns(self) -> None:
        xp, n = self.device.xp, self.shape[1]
        self.device.require(48 * self.entries.nvals + 16 * n, "block as columns")
        positions, self.values = self.entries.listed()
        each = np.int64(stride(self.shape[0]))
        cols = positions // each
        ptr = xp.searchsorted(cols, xp.arange(n + 1, dtype=np.int64))
        self.col_ptr = ptr.astype(index_type(len(positions)))
        self.row_idx = (positions - cols * each).astype(index_type(self.shape[0]))
        self.iso = self.entries.number if self.values is None else None

    def changed(self) -> None:
        """Forget what was derived from the entries."""
        for name in _COLUMN_FORM:
            self.__dict__.pop(name, None)
        self.symmetric: bool | None = None
        self.rows: MatrixStore | None = None
        self.spaces.clear()
        self.under: Descriptor | None = None
        self.alive: Any = None


def of_few(
    device: Device,
    counters: Counters,
    rows: Any,
    cols: Any,
    values: Any,
    dtype: DType,
    shape: tuple[int, int],
) -> BlockStore | None:
    """Return a block of triplets that the host has, at most one a row: the sources of searches.

    None if there are more of them, or two of one place, or they are on the device, or no block
    fits.
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
    return BlockStore(device, dtype, shape, v)


def is_block(*matrices: MatrixStore | None) -> bool:
    """Whether one of them is a block."""
    return any(isinstance(A, BlockStore) for A in matrices)


def as_block(counters: Counters, A: MatrixStore) -> BlockStore:
    """Return `A` as a block to be read, kept beside its column form."""
    if isinstance(A, BlockStore):
        return A
    if "block" not in A.spaces:
        A.spaces["block"] = _made(counters, A)
    found: BlockStore = A.spaces["block"]
    return found


def own(counters: Counters, C: MatrixStore) -> BlockStore:
    """Return the output `C` as a block to be changed."""
    return C if isinstance(C, BlockStore) else _made(counters, C)


def _made(counters: Counters, A: MatrixStore) -> BlockStore:
    each = stride(A.shape[0])
    v = VectorStore(A.device, counters, A.dtype, each * A.shape[1])
    v.set_sparse(A.columns() * np.int64(each) + A.row_idx, A.values, A.number)
    if A.values is not None:
        v.iso = None
    return BlockStore(A.device, A.dtype, A.shape, v)


def described(counters: Counters, desc: Descriptor) -> Descriptor:
    """Return a descriptor whose mask is the vector that a block's entries are."""
    if desc.mask is None:
        return desc
    return desc._replace(mask=as_block(counters, desc.mask).entries)
