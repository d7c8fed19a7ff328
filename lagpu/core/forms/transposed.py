"""What the transpose ``A.T`` is asked: the matrix answers with rows and columns exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from sys import _getframe
from typing import Any

import numpy as np

from lagpu.core.expr import OUTPUTS, Call
from lagpu.core.forms.vectors import as_type
from lagpu.core.hints import part_of
from lagpu.core.indexing import MatrixIndex

__all__ = ["TransposedForms"]

Array = np.ndarray[Any, Any]


class TransposedForms:
    """Reductions, parts and conversions of ``A.T``."""

    __slots__ = ()

    @property
    def _matrix(self: Any) -> Any:
        """The matrix whose transpose this is; of a selection, one is made."""
        stored = self.stored
        return stored if hasattr(stored, "to_coo") else stored.new()

    def reduce_rowwise(self, op: Any = "plus") -> Call:
        """Return the sum of each row, as `Matrix.reduce_columnwise` of the matrix itself."""
        call: Call = self._matrix.reduce_columnwise(op)
        return call._written_in(_getframe(1))

    def reduce_columnwise(self, op: Any = "plus") -> Call:
        """Return the sum of each column, as `Matrix.reduce_rowwise` of the matrix itself."""
        call: Call = self._matrix.reduce_rowwise(op)
        return call._written_in(_getframe(1))

    def reduce(self, op: Any = "plus", **options: Any) -> Call:
        """Return the sum of all entries, as `Matrix.reduce`."""
        call: Call = self._matrix.reduce(op, **options)
        return call._written_in(_getframe(1))

    reduce_scalar = reduce

    def __getitem__(self: Any, where: Any) -> Any:
        if isinstance(where, tuple) and len(where) == 2:
            kinds = [isinstance(index, slice) or np.ndim(index) > 0 for index in where]
            if not all(kinds):  # a row, a column or one entry
                part = MatrixIndex(self._matrix, where[::-1])
                return part if isinstance(self.stored, OUTPUTS[2]) else part_of(self, part)
        return part_of(self, MatrixIndex(self.new(), where))

    def __contains__(self, where: Any) -> bool:
        return where[::-1] in self._matrix

    def __iter__(self: Any) -> Iterator[tuple[int, int]]:
        rows, cols, _ = self.to_coo()
        return zip(rows.tolist(), cols.tolist(), strict=True)

    def get(self, row: Any, col: Any, default: Any = None) -> Any:
        """Return the value at (row, col), or `default`; see `Matrix.get`."""
        return self._matrix.get(col, row, default)

    def diag(self, k: int = 0, **options: Any) -> Any:
        """Return diagonal `k` as a vector; see `Matrix.diag`."""
        return self._matrix.diag(-k, **options)

    def to_csr(self, dtype: Any = None) -> tuple[Array, Array, Array]:
        """Return (row_ptr, col_idx, values) of the transpose."""
        ptr, idx, values = self._matrix.to_csc()
        return ptr, idx, as_type(values, dtype)

    def to_csc(self, dtype: Any = None) -> tuple[Array, Array, Array]:
        """Return (col_ptr, row_idx, values) of the transpose."""
        ptr, idx, values = self._matrix.to_csr()
        return ptr, idx, as_type(values, dtype)

    def to_dense(self, fill_value: Any = None, dtype: Any = None) -> Array:
        """Return a NumPy array of the transpose; see `Matrix.to_dense`."""
        dense: Array = self._matrix.to_dense(fill_value, dtype).T
        return dense

    def to_dcsr(self, dtype: Any = None) -> Any:
        """Return the compressed rows of the transpose that have entries; see `Matrix.to_dcsr`."""
        return self._matrix.to_dcsc(dtype)

    def to_dcsc(self, dtype: Any = None) -> Any:
        """Return the compressed columns of the transpose that have entries."""
        return self._matrix.to_dcsr(dtype)

    def wait(self, how: str = "materialize") -> Any:
        """Return this when all operations that make the matrix have ended; see `Matrix.wait`."""
        self._matrix.wait(how)
        return self
