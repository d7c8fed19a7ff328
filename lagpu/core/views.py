"""Views that are read as matrices: the transpose ``A.T``, and the selection ``f.selection()``.

A selection is the matrix that selects the rows listed by a vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import _getframe
from typing import Any, NoReturn

import numpy as np

from lagpu.algebra.operators import Semiring
from lagpu.algebra.tables import semiring
from lagpu.backends.protocol import Backend
from lagpu.core.arguments import as_semiring, as_size
from lagpu.core.exchange import as_type
from lagpu.core.expr import OUTPUTS, Call, Mask, is_operand, temporary
from lagpu.core.hints import ComputedForms, name_of, part_of
from lagpu.core.indexing import MatrixIndex
from lagpu.core.infix import Arithmetic, MatrixOperand, vector_product
from lagpu.core.recorder import flush, why_unreadable
from lagpu.dtypes import BOOL, DType
from lagpu.errors import DomainMismatch, NotSupported
from lagpu.host import display
from lagpu.operations import SelectionToMatrix

Array = np.ndarray[Any, Any]


def mxv(
    self: Any,
    u: Any,
    op: Semiring | str = semiring.plus_times,
    *,
    kernel: str | None = None,
    policy: str | None = None,
) -> Call:
    """Multiply by a vector, as ``op(A @ u)``: ``w[i] = ⊕ⱼ A[i, j] ⊗ u[j]``.

    Parameters
    ----------
    u : Vector, (ncols,)
        The vector.
    op : Semiring
        The algebra.
    kernel, policy : str, optional
        The strategy, or the rule that chooses one, on a backend that offers them.
    """
    return vector_product(self, u, as_semiring(op), False, _getframe(1), kernel, policy)


class MatrixView(Arithmetic, MatrixOperand, ComputedForms):
    """An object that is read as a matrix and stored as something else."""

    __slots__ = ()
    ndim = 2
    _why_unreadable = why_unreadable

    __repr__ = display.matrix_text
    _repr_html_ = display.matrix_html

    @property
    def nrows(self) -> int:
        """Number of rows."""
        raise NotImplementedError

    @property
    def ncols(self) -> int:
        """Number of columns."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """``(nrows, ncols)``."""
        return (self.nrows, self.ncols)

    def _output(self, value: Any) -> str:
        return "It is a view. Write to the viewed object instead."

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse ``A.T(mask) << C``."""
        self.refuse("cannot be written to", MatrixView._output(self, None))

    mxv = mxv

    def new(self, dtype: Any = None, *, mask: Mask | None = None, name: str | None = None) -> Any:
        """Return a new `Matrix` with the entries that the view has now, or those under a mask."""
        return self.copying().new(dtype, mask=mask, name=name)

    def copying(self) -> Call:
        """Return the deferred copy of the entries as a matrix."""
        raise NotImplementedError

    def _computed(self) -> Any:
        """Return the entries as a matrix, for what a view itself does not have."""
        return temporary(self.copying())

    def __getitem__(self, where: Any) -> Any:
        return part_of(self, self._computed()[where])


class TransposedMatrix(MatrixView):
    """The transpose ``A.T``: a view of a matrix, for products and for ``A.T.new()``."""

    __slots__ = ("stored",)
    _hint = "Use A.T.new() to make a matrix of it."

    def __init__(self, A: Any) -> None:
        self.stored = A

    @property
    def name(self) -> str:
        """Name of the matrix with a prime."""
        return f"{self.stored.name}'"

    @property
    def nrows(self) -> int:
        """Number of rows."""
        return int(self.stored.ncols)

    @property
    def ncols(self) -> int:
        """Number of columns."""
        return int(self.stored.nrows)

    @property
    def nvals(self) -> int:
        """Number of entries."""
        return int(self.stored.nvals)

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        found: DType = self.stored.dtype
        return found

    @property
    def backend(self) -> Backend:
        """Where the matrix lives."""
        found: Backend = self.stored.backend
        return found

    @property
    def T(self) -> Any:
        """The matrix itself."""
        return self.stored

    def _output(self, value: Any) -> str:
        it = name_of(value)
        if is_operand(value, 2):
            it = it.removesuffix(".T") if it.endswith(".T") else f"{it}.T"
        return f"It is a view. Write {name_of(self.stored)} << {it}."

    def copying(self) -> Call:
        """Return the deferred transpose."""
        call: Call = self.stored.copying(transposed=True)
        return call

    @property
    def _matrix(self) -> Any:
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

    def __getitem__(self, where: Any) -> Any:
        if isinstance(where, tuple) and len(where) == 2:
            kinds = [isinstance(index, slice) or np.ndim(index) > 0 for index in where]
            if not all(kinds):  # a row, a column or one entry
                part = MatrixIndex(self._matrix, where[::-1])
                return part if isinstance(self.stored, OUTPUTS[2]) else part_of(self, part)
        return part_of(self, MatrixIndex(self.new(), where))

    def __contains__(self, where: Any) -> bool:
        return where[::-1] in self._matrix

    def __iter__(self) -> Iterator[tuple[int, int]]:
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


class SelectionMatrix(MatrixView):
    """A BOOL matrix with an entry (f[j], j) for each entry j of a vector: ``f.selection(nrows)``.

    A value of `f` outside ``0 .. nrows-1`` selects nothing: its column is empty.
    A product reads `f` as it is when the statement runs; nothing is stored.

    Parameters
    ----------
    f : Vector, (ncols,)
        Row numbers, of an integer type.
    nrows : int, optional
        Number of rows, by default the size of `f`.

    Raises
    ------
    DomainMismatch
        If `f` is not of an integer type.

    Notes
    -----
    ``u @ P`` is a gather, ``w[j] = u[f[j]]``; ``P @ u`` a scatter, where w[i] is the sum over all j
    with ``f[j] = i``.
    """

    __slots__ = ("_nrows", "operand")
    _hint = "Use P.new() to make a matrix of it."

    def __init__(self, f: Any, nrows: Any = None) -> None:
        if f.dtype.is_float or f.dtype.is_bool:
            raise DomainMismatch(
                f"selection: {name_of(f)} is of type {f.dtype}, and row numbers are integers. "
                f"Convert it with {name_of(f)}.dup('INT64')."
            )
        self.operand = f
        self._nrows = None if nrows is None else as_size(nrows, "selection")

    @property
    def name(self) -> str:
        """``selection(f)`` with the name of the vector."""
        return f"selection({self.operand.name})"

    @property
    def nrows(self) -> int:
        """Number of rows."""
        return int(self.operand.size) if self._nrows is None else self._nrows

    @property
    def ncols(self) -> int:
        """Number of columns: the size of the vector."""
        return int(self.operand.size)

    @property
    def nvals(self) -> int:
        """Number of entries now: the entries of the vector whose value is a row."""
        flush(self.backend)
        f = self.operand
        return len(self._rows(f.backend.vector_to_coo(f.data)[1])[1])

    @property
    def dtype(self) -> DType:
        """Type of the values, BOOL."""
        return BOOL

    @property
    def backend(self) -> Backend:
        """Where the vector lives."""
        found: Backend = self.operand.backend
        return found

    @property
    def T(self) -> TransposedSelection:
        """The transpose: another view of the same vector."""
        return TransposedSelection(self)

    @property
    def stored(self) -> SelectionMatrix:
        """The view itself."""
        return self

    @property
    def data(self) -> NoReturn:
        """Raise `NotSupported`: a selection has no matrix to hand to a backend."""
        me = name_of(self)
        raise NotSupported(
            f"{me}: is a view of {name_of(self.operand)}, only for products with a vector. "
            f"Make a matrix with {me}.new()."
        )

    def copying(self, transposed: bool = False) -> Call:
        """Return the deferred copy of the entries as a matrix, or its transpose."""
        f, shape = self.operand, self.shape[::-1] if transposed else self.shape
        operation = SelectionToMatrix(f.data, self.nrows, transposed)
        return Call(operation, (f,), BOOL, shape, (self.T if transposed else self,))

    def _rows(self, values: Array) -> tuple[Array, Array]:
        """Return (which values are row numbers, those row numbers)."""
        rows = values.astype(np.int64)  # 2**63 and more become negative
        inside = (rows >= 0) & (rows < self.nrows)
        return inside, rows[inside]

    # A view has no storage of its own, so `display` calls these two.
    def _form(self) -> str:
        return f"selection of {self.operand.name}"

    def _preview(self, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """Return (rows, columns, values) of the entries in the first rows and columns."""
        f = self.operand
        cols, values = f.backend.vector_head(f.data, ncols)
        inside, rows = self._rows(values)
        cols = cols[inside]
        kept = (rows < nrows) & (cols < ncols)
        return rows[kept], cols[kept], np.ones(np.count_nonzero(kept), bool)


class TransposedSelection(TransposedMatrix):
    """The transpose ``P.T`` of a selection `P`: a view of the same vector."""

    __slots__ = ()
    _output = MatrixView._output
