"""Sparse matrices on a device, by columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.storage.casts import index_type
from lagpu.dtypes import DType

Array = Any  # numpy.ndarray or cupy.ndarray, by the device


class CscMatrix:
    """A matrix by columns, which does not change; of equal values only one is kept.

    Attributes
    ----------
    shape : tuple of int
        (nrows, ncols).
    col_ptr, row_idx : array
        INT32 while they hold every offset and every row, else INT64; rows rise in a column.
    values : array or None
        None if all entries have the value `iso`.
    symmetric : bool or None
        Whether the matrix equals its transpose, once known.
    csr : CscMatrix or None
        The transpose by columns, which is this matrix by rows; made when a product needs it.
    may_keep_csr : bool
        Whether `csr` may be made.
    kernels : dict
        Launches that ran on this form, by what they were specialised for.
    cache : dict
        Workspaces that kernels keep between runs, by their kind.
    """

    def __init__(
        self,
        device: Device,
        dtype: DType,
        shape: tuple[int, int],
        col_ptr: Array,
        row_idx: Array,
        values: Array | None,
        iso: Any = None,
    ) -> None:
        self.device = device
        self.dtype = dtype
        self.shape = shape
        self.nvals = len(row_idx)
        self.col_ptr = col_ptr.astype(index_type(self.nvals), copy=False)
        self.row_idx = row_idx.astype(index_type(shape[0]), copy=False)
        self.values = values
        self.iso = iso
        self.symmetric: bool | None = None
        self.csr: CscMatrix | None = None
        self.may_keep_csr = True
        self.kernels: dict[Any, Any] = {}
        self.cache: dict[str, Any] = {}

    @property
    def number(self) -> Any:
        """`iso` as the kernels take it: any number of the type where values are stored."""
        return self.dtype.zero if self.iso is None else self.iso

    @property
    def nbytes(self) -> int:
        """Bytes of the column form."""
        values = 0 if self.values is None else self.values.nbytes
        return int(self.col_ptr.nbytes + self.row_idx.nbytes + values)

    def all_values(self) -> Array:
        """Return a value for each entry, also where only one is kept."""
        if self.values is not None:
            return self.values
        return self.device.xp.full(self.nvals, self.number, self.dtype.numpy)

    def columns(self, begin: int = 0, end: int | None = None) -> Array:
        """Return the columns of the entries from `begin` to before `end`, or of all; INT64."""
        xp = self.device.xp
        entries = xp.arange(begin, self.nvals if end is None else end, dtype=self.col_ptr.dtype)
        return (xp.searchsorted(self.col_ptr, entries, side="right") - 1).astype(np.int64)

    def column_range(self, j: int) -> tuple[int, int]:
        """Return where the entries of column `j` begin and end."""
        first, last = self.device.to_host(self.col_ptr[j : j + 2]).tolist()
        return first, last

    def with_values(self, dtype: DType, values: Array | None, iso: Any) -> CscMatrix:
        """Return a matrix of the same entries with other values; the index arrays are shared."""
        return CscMatrix(self.device, dtype, self.shape, self.col_ptr, self.row_idx, values, iso)
