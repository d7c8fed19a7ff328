"""Operands of a statement on the host: vectors and matrices as NumPy arrays."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lagpu.dtypes import DType

__all__ = ["Entries", "HostMatrix", "HostSelection", "Terms", "nothing"]

Array = np.ndarray[Any, Any]


class Entries(NamedTuple):
    """A vector on the host.

    Attributes
    ----------
    indices, values : ndarray, (nvals,)
        The entries, indices rising.
    dtype : DType
        Type of the values.
    size : int
        Length of the vector.
    nrows : int
        0 for a vector; for a matrix its rows, where (row, column) has the index
        ``column * nrows + row``.
    """

    indices: Array
    values: Array
    dtype: DType
    size: int
    nrows: int = 0

    def at(self, where: Array) -> tuple[Array, Array]:
        """Return (whether there is an entry, its value or else any value) for each index."""
        if not len(self.indices):
            return np.zeros(len(where), bool), np.zeros(len(where), self.dtype.numpy)
        place = np.minimum(np.searchsorted(self.indices, where), len(self.indices) - 1)
        return self.indices[place] == where, self.values[place]


class HostMatrix:
    """A matrix on the host, compressed by columns or by rows, as a statement needs it.

    Attributes
    ----------
    dtype : DType
        Type of the values.
    shape : tuple of int
        (nrows, ncols).
    """

    def __init__(
        self, csc: tuple[Array, Array, Array], dtype: DType, shape: tuple[int, int]
    ) -> None:
        self.dtype, self.shape = dtype, shape
        self._forms: dict[bool, tuple[Array, Array, Array]] = {True: csc}

    @property
    def values(self) -> Array:
        """Values of all entries, by columns."""
        _, idx, values = self._forms[True]
        return np.broadcast_to(values, idx.shape)

    def lines(self, where: Array, columns: bool) -> tuple[Array, Array, Array]:
        """Return the entries of some columns, or rows.

        Returns
        -------
        at, other, values : ndarray, (entries,)
            The position in `where` of each entry's line; the other index; the value.
        """
        ptr, idx, values = self._form(columns)
        starts = ptr[where].astype(np.int64)
        counts = ptr[where + 1] - starts
        at = np.repeat(np.arange(len(where)), counts)
        ends = np.cumsum(counts)
        chosen = np.arange(len(at)) + np.repeat(starts - (ends - counts), counts)
        return at, idx[chosen].astype(np.int64), np.broadcast_to(values, idx.shape)[chosen]

    def entries(self, transposed: bool = False) -> Entries:
        """Return all entries by index, those of the transpose if `transposed`."""
        ptr, idx, values = self._form(not transposed)
        nrows = self.shape[1 if transposed else 0]
        keys = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)) * nrows + idx
        size = self.shape[0] * self.shape[1]
        return Entries(keys, np.broadcast_to(values, idx.shape), self.dtype, size, nrows)

    def _form(self, columns: bool) -> tuple[Array, Array, Array]:
        if columns not in self._forms:
            ptr, idx, values = self._forms[True]
            places: Any = (np.arange(len(idx)), idx, ptr)  # SciPy would drop values of 0
            rows = sp.csc_array(places, shape=self.shape).tocsr()
            dense = np.broadcast_to(values, idx.shape)
            self._forms[columns] = rows.indptr, rows.indices, dense[rows.data]
        return self._forms[columns]


class HostSelection:
    """The selection matrix of a vector on the host, with the `lines` of a `HostMatrix`."""

    def __init__(self, f: Entries) -> None:
        self._columns, self._rows = f.indices, f.values.astype(np.int64)

    def lines(self, where: Array, columns: bool) -> tuple[Array, Array, Array]:
        """Return the entries of some columns, or rows; see `HostMatrix.lines`."""
        mine, other = self._rows, self._columns
        if columns:
            mine, other = other, mine
        place = np.searchsorted(where, mine)
        inside = place < len(where)
        inside[inside] = where[place[inside]] == mine[inside]
        found = place[inside]
        return found, other[inside], np.ones(len(found), bool)


class Terms(NamedTuple):
    """Candidates: value ``values[k]`` at the index ``wanted[at[k]]`` of a result."""

    at: Array
    values: Array


def nothing(dtype: DType, shape: tuple[int, ...]) -> Entries:
    """Return a vector or a matrix without entries."""
    rows = shape[0] if len(shape) == 2 else 0
    return Entries(np.zeros(0, np.int64), np.zeros(0, dtype.numpy), dtype, math.prod(shape), rows)
