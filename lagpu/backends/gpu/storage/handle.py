"""The handle of a matrix, which is stored by columns or as a bitmap matrix."""

from __future__ import annotations

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, fits, stride
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.dtypes import DType

__all__ = ["MatrixHandle", "fit_as_bitmaps", "has_bitmap"]


class MatrixHandle:
    """The front end's object for a matrix; it stays the same when a statement writes the matrix.

    Attributes
    ----------
    store : CscMatrix or BitmapMatrix
        How the matrix is stored now.
    """

    __slots__ = ("store",)

    def __init__(self, store: CscMatrix | BitmapMatrix) -> None:
        self.store = store

    @property
    def device(self) -> Device:
        """Where it lives."""
        return self.store.device

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        return self.store.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """(nrows, ncols)."""
        return self.store.shape

    @property
    def nvals(self) -> int:
        """Number of entries."""
        return self.store.nvals

    @property
    def symmetric(self) -> bool | None:
        """Whether the matrix equals its transpose, if that is known."""
        return None if isinstance(self.store, BitmapMatrix) else self.store.symmetric

    @property
    def is_bitmap(self) -> bool:
        """Whether it is stored as a bitmap matrix."""
        return type(self.store) is BitmapMatrix

    @property
    def may_be_bitmap(self) -> bool:
        """Whether it is stored as a bitmap matrix, or may become one."""
        store = self.store
        return type(store) is BitmapMatrix or fits(store.device, store.dtype, store.shape)

    def csc(self) -> CscMatrix:
        """Return the matrix by columns, to be read."""
        store = self.store
        return store.csc() if isinstance(store, BitmapMatrix) else store

    def bitmap(self, counters: Counters) -> BitmapMatrix:
        """Return it as a bitmap matrix, to be read; a new one is kept in the CSC matrix' cache."""
        store = self.store
        if isinstance(store, BitmapMatrix):
            return store
        if "bitmap" not in store.cache:
            store.cache["bitmap"] = _bitmap_of(counters, store)
        found: BitmapMatrix = store.cache["bitmap"]
        return found

    def own_bitmap(self, counters: Counters) -> BitmapMatrix:
        """Return it as a bitmap matrix to change in place; the caller then sets `store` to it."""
        store = self.store
        return store if isinstance(store, BitmapMatrix) else _bitmap_of(counters, store)


def _bitmap_of(counters: Counters, A: CscMatrix) -> BitmapMatrix:
    each = stride(A.shape[0])
    v = VectorStore(A.device, counters, A.dtype, each * A.shape[1])
    v.set_sparse(A.columns() * np.int64(each) + A.row_idx, A.values, A.number)
    if A.values is not None:
        v.iso = None
    return BitmapMatrix(A.device, A.dtype, A.shape, v)


def has_bitmap(*matrices: MatrixHandle | None) -> bool:
    """Whether one of them is stored as a bitmap matrix."""
    return any(A is not None and A.is_bitmap for A in matrices)


def fit_as_bitmaps(*matrices: MatrixHandle | None) -> bool:
    """Whether all of these have the bits of a bitmap matrix, or may become such matrices."""
    return all(
        A is None
        or (isinstance(A.store, BitmapMatrix) and A.store.entries.form == "bitmap")
        or fits(A.device, A.dtype, A.shape)
        for A in matrices
    )
