"""`Matrix`: entries at some (row, column) pairs; entry (i, j) is the edge i -> j."""

from __future__ import annotations

from sys import _getframe
from typing import Any, Self

import numpy as np

from lagpu import backends
from lagpu.algebra.operators import Monoid
from lagpu.algebra.tables import monoid
from lagpu.backends.protocol import Backend
from lagpu.core.aggregates import agg, aggregate
from lagpu.core.arguments import (
    as_size,
    as_values,
    binary_operator,
    integer,
    integer_array,
    single_index,
)
from lagpu.core.collection import Collection
from lagpu.core.exchange.foreign import dtype_for
from lagpu.core.expr import OUTPUTS, Call, Updater, assign
from lagpu.core.forms import (
    MatrixForms,
    array_of,
    as_type,
    check_compressed,
    extent,
    from_rows,
    transpose_compressed,
)
from lagpu.core.indexing import MatrixIndex, matrix_assignment
from lagpu.core.infix import MatrixOperand
from lagpu.core.vector import Vector
from lagpu.core.views import TransposedMatrix, mxv
from lagpu.dtypes import DType, lookup
from lagpu.errors import DimensionMismatch, IndexOutOfBound, InvalidValue
from lagpu.host import display
from lagpu.operations import Assign, ExtractElement, Handle, ReduceRows

_UNNAMED = display.Unnamed("A")

Array = np.ndarray[Any, Any]


class Matrix(MatrixForms, Collection, MatrixOperand):
    """A sparse matrix on one backend.

    Parameters
    ----------
    dtype : DType or anything `lagpu.dtypes.lookup` takes
        Type of the values.
    nrows, ncols : int
        Shape.
    like : Vector or Matrix, optional
        Live on the backend of this object.
    backend : str or Backend, optional
        Live on this backend; without `like` and `backend`, on the default one.
    name : str, optional
        Name in formulas and messages.

    Notes
    -----
    ``copy.copy`` and ``copy.deepcopy`` give a copy on the same backend, as `dup` does. A pickle has
    the entries, on the host, and the name of the backend. The unpickled matrix lives on the backend
    of that name. Where there is none, it lives on the one that ``with lagpu.use(...)`` has chosen;
    without such a choice that is a `BackendUnavailable`.
    """

    __slots__ = ("ncols", "nrows")
    ndim = 2
    _hint = "Use A.nvals, A.to_coo(), A.reduce(op) or A.isequal(B)."
    _truth = "Use {0}.nvals to ask for entries, {0}.isequal(B) to compare."
    _items = "Use {0}.nrows, {0}.nvals, {0}[i, :].new() for a row, or {0}.to_coo() for all entries."
    _dense = "Use {0}.to_coo(), or lagpu.io.to_scipy({0}).toarray() if it fits."

    def __init__(
        self,
        dtype: Any,
        nrows: int = 0,
        ncols: int = 0,
        *,
        like: Any = None,
        backend: str | Backend | None = None,
        name: str | None = None,
    ) -> None:
        self.dtype = dtype_for(dtype, "Matrix")
        self.nrows, self.ncols = as_size(nrows, "Matrix"), as_size(ncols, "Matrix")
        self.backend = backends.choose(like, backend)
        self.name = name or _UNNAMED
        self.data = self.backend.matrix(self.dtype, self.shape)

    @classmethod
    def _of(
        cls,
        data: Handle,
        dtype: DType,
        shape: tuple[int, int],
        backend: Backend,
        name: str | None,
    ) -> Self:
        A = cls.__new__(cls)
        A.dtype, A.backend, A.name, A.data = dtype, backend, name or _UNNAMED, data
        A.nrows, A.ncols = shape
        return A

    # ------------------------------------------------------------------------ in and out
    @classmethod
    def from_coo(
        cls,
        rows: Any,
        cols: Any,
        values: Any = True,
        dtype: Any = None,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
        dup_op: Any = None,
        like: Any = None,
        backend: str | Backend | None = None,
        name: str | None = None,
    ) -> Matrix:
        """Return a matrix of (row, column, value) triplets.

        Parameters
        ----------
        rows, cols : array_like of int, (nvals,)
            Positions of the entries, in any order; arrays of any library that has
            ``__dlpack__`` or ``__cuda_array_interface__``, those on a GPU for the gpu backend, or
            full vectors of the same backend, which are not copied to the host.
        values : array_like, (nvals,), or scalar
            Values of the entries; one scalar makes a matrix without a value array.
        dtype : DType, optional
            Type of the values; by default that of `values`.
        nrows, ncols : int, optional
            Shape; by default the largest index plus one.
        dup_op : BinaryOp, optional
            Combines the values of an entry given twice. Where all entries have one value, none is
            needed: the two are one entry.
        like, backend, name
            As in `Matrix`.

        Raises
        ------
        IndexOutOfBound, DimensionMismatch
            If an index is out of bounds, or the arrays differ in length.
        InvalidValue
            If an entry is given twice, with values of an array, and there is no `dup_op`.
        """
        place = backends.choose(like, backend)
        rows, cols, values = (array_of(x, place, "from_coo") for x in (rows, cols, values))
        rows, cols = integer_array(rows, "from_coo"), integer_array(cols, "from_coo")
        if rows.shape != cols.shape:
            raise DimensionMismatch(f"from_coo: {len(rows)} rows != {len(cols)} columns.")
        shape = (extent(rows, nrows, "from_coo: row"), extent(cols, ncols, "from_coo: column"))
        what, kind = as_values(values, dtype, len(rows), "from_coo")
        op = None if dup_op is None else binary_operator(dup_op)
        data = place.matrix_from_coo(rows, cols, what, kind, shape, op)
        return cls._of(data, kind, shape, place, name)

    @classmethod
    def from_csc(
        cls,
        col_ptr: Any,
        row_idx: Any,
        values: Any = True,
        *,
        nrows: int,
        ncols: int | None = None,
        dtype: Any = None,
        like: Any = None,
        backend: str | Backend | None = None,
        name: str | None = None,
    ) -> Matrix:
        """Return a matrix of compressed sparse columns.

        Parameters
        ----------
        col_ptr : array_like of int, (ncols + 1,)
            Column j has entries ``col_ptr[j] .. col_ptr[j+1] - 1``; arrays as in `from_coo`. Those
            on the backend's device, on sim NumPy's, may be kept and not copied: do not write to
            them afterwards.
        row_idx : array_like of int, (nvals,)
            Rows of the entries, rising in each column.
        values : array_like, (nvals,), or scalar
            Values of the entries; one scalar makes a matrix without a value array.
        nrows, ncols : int
            Shape.
        dtype, like, backend, name
            As in `from_coo`.

        Raises
        ------
        InvalidValue, IndexOutOfBound, DimensionMismatch
            If the arrays are not a valid CSC form.
        """
        place = backends.choose(like, backend)
        return cls._from_csc(place, (col_ptr, row_idx, values), (nrows, ncols), dtype, name)

    @classmethod
    def _from_csc(
        cls,
        place: Backend,
        arrays: tuple[Any, Any, Any],
        shape: tuple[int, int | None],
        dtype: Any,
        name: str | None = None,
        symmetric: bool | None = None,
    ) -> Matrix:
        """Return what `from_csc` returns; `symmetric` is True if that is known, and is believed."""
        ptr, idx, values = (array_of(x, place, "from_csc") for x in arrays)
        (n, m), ptr, idx = check_compressed(ptr, idx, shape[1], shape[0], "from_csc")
        what, kind = as_values(values, dtype, len(idx), "from_csc")
        data = place.matrix_from_csc(ptr, idx, what, kind, (m, n), symmetric)
        return cls._of(data, kind, (m, n), place, name)

    @classmethod
    def from_csr(
        cls,
        row_ptr: Any,
        col_idx: Any,
        values: Any = True,
        *,
        ncols: int,
        nrows: int | None = None,
        dtype: Any = None,
        like: Any = None,
        backend: str | Backend | None = None,
        name: str | None = None,
    ) -> Matrix:
        """Return a matrix of compressed sparse rows; see `from_csc`."""
        place = backends.choose(like, backend)
        ptr, idx, values = (array_of(x, place, "from_csr") for x in (row_ptr, col_idx, values))
        shape, ptr, idx = check_compressed(ptr, idx, nrows, ncols, "from_csr")
        what, kind = as_values(values, dtype, len(idx), "from_csr")
        data = from_rows(place, ptr, idx, what, kind, shape)
        return cls._of(data, kind, shape, place, name)

    def to_csc(
        self, dtype: Any = None, *, sort: bool = True, on_device: bool = False
    ) -> tuple[Array, Array, Array]:
        """Return (col_ptr, row_idx, values), copies, with rows rising in a column.

        They are NumPy arrays, INT64 but for the values. With `on_device` they are CuPy arrays where
        the backend has a GPU, INT32 where that holds all indices.
        """
        place = self._flushed()
        if on_device:
            cast = self.data if dtype is None else place.dup(self.data, lookup(dtype))
            return place.matrix_to_csc(cast, True)
        ptr, idx, values = place.matrix_to_csc(self.data)
        return ptr, idx, as_type(values, dtype)

    def to_csr(self, dtype: Any = None, *, sort: bool = True) -> tuple[Array, Array, Array]:
        """Return (row_ptr, col_idx, values) as NumPy arrays, columns rising in a row."""
        ptr, idx, values = self.to_csc(dtype)
        return transpose_compressed(ptr, idx, values, (self.ncols, self.nrows))

    def to_coo(
        self,
        dtype: Any = None,
        *,
        rows: bool = True,
        columns: bool = True,
        values: bool = True,
        sort: bool = True,
    ) -> tuple[Any, Any, Any]:
        """Return (rows, cols, values) as NumPy arrays, by rows and then by columns.

        Parameters
        ----------
        dtype : DType, optional
            Type of the values; by default that of the matrix.
        rows, columns, values : bool
            Whether to return each array; None stands for one that is not wanted.
        sort : bool
            Accepted as in python-graphblas; the entries always come in order.
        """
        ptr, idx, what = self.to_csr(dtype)
        found = np.repeat(np.arange(self.nrows), np.diff(ptr)) if rows else None
        return found, idx if columns else None, what if values else None

    def to(self, backend: str | Backend) -> Matrix:
        """Return a copy on another backend: the only way data moves."""
        place = backends.get(backend)
        arrays = self.to_csc()
        known = getattr(self.data, "symmetric", None) or None  # of a backend that says so
        data = place.matrix_from_csc(*arrays, self.dtype, self.shape, known)
        return Matrix._of(data, self.dtype, self.shape, place, self.name)

    # ------------------------------------------------------------------------ properties
    @property
    def shape(self) -> tuple[int, int]:
        """``(nrows, ncols)``."""
        return (self.nrows, self.ncols)

    @property
    def T(self) -> TransposedMatrix:
        """The transpose as an operand; ``A.T.new()`` is a matrix."""
        return TransposedMatrix(self)

    @property
    def stored(self) -> Matrix:
        """The matrix itself."""
        return self

    @property
    def is_symmetric(self) -> bool:
        """Whether ``A' == A``, as for an undirected graph."""
        return self.nrows == self.ncols and self._flushed().is_symmetric(self.data)

    @property
    def orientation(self) -> str:
        """The storage forms that are kept: ``"auto"``, or ``"csc"`` for the columns alone.

        A backend makes the second form of a directed matrix, by rows on gpu and by columns on cpu,
        when products profit from it and memory allows; ``A.orientation = "csc"`` forbids the second
        form and drops an existing one. A symmetric matrix needs none.

        Raises
        ------
        InvalidValue
            If it is set to another value.
        """
        return "auto" if self.backend.may_keep_csr(self.data, None) else "csc"

    @orientation.setter
    def orientation(self, wanted: str) -> None:
        if wanted not in ("auto", "csc"):
            raise InvalidValue(f"orientation: there is no {wanted!r}. Use auto or csc.")
        self.backend.may_keep_csr(self.data, wanted == "auto")

    def __repr__(self) -> str:
        return display.matrix_text(self)

    def _repr_html_(self) -> str:
        return display.matrix_html(self)

    # -------------------------------------------------------------------------- contents
    def _holding(self, data: Handle, dtype: DType, name: str) -> Self:
        return type(self)._of(data, dtype, self.shape, self.backend, name)

    def get(self, row: Any, col: Any, default: Any = None) -> Any:
        """Return the value at (row, col) as a Python number, or `default` if there is no entry."""
        i = single_index(row, self.nrows, f"{self.name} row")
        j = single_index(col, self.ncols, f"{self.name} column")
        found = self._flushed().evaluate(ExtractElement(self.data, (i, j)))
        return default if found is None else found

    # ------------------------------------------------------------------ parts of a matrix
    def __getitem__(self, where: Any) -> MatrixIndex:
        return MatrixIndex(self, where)

    def __setitem__(self, where: Any, value: Any) -> None:
        assign(Updater(self, indices=where), value)

    def _call_for(self, value: Any, to: Updater) -> Call:
        return matrix_assignment(self, value, to.indices)

    # ------------------------------------------------------------------------ operations
    mxv = mxv

    reduce_scalar = Collection.reduce  # the name in python-graphblas

    def copying(self, transposed: bool = False) -> Call:
        """Return the deferred copy, or the deferred transpose."""
        shape, shown = (self.shape[::-1], self.T) if transposed else (self.shape, self)
        return Call(Assign(self.data, None, transposed), (self,), self.dtype, shape, (shown,))

    def reduce_rowwise(self, op: Any = "plus") -> Call:
        """Return the sum of each row, ``w[i] = ⊕ⱼ A[i, j]``; no entry for an empty row."""
        return self._reduce_vector(op, self.nrows, False)

    def reduce_columnwise(self, op: Any = "plus") -> Call:
        """Return the sum of each column, ``w[j] = ⊕ᵢ A[i, j]``; no entry for an empty column."""
        return self._reduce_vector(op, self.ncols, True)

    def _reduce_vector(self, op: Any, size: int, transpose: bool) -> Call:
        aggregator = None if type(op) is Monoid else agg.named(op)
        if aggregator is not None:
            way = "reduce_columnwise" if transpose else "reduce_rowwise"
            return aggregate(self, aggregator, way, _getframe(2))
        found = monoid.lookup(op)
        return Call(
            ReduceRows(self.data, found, transpose),
            (self,),
            found.types(self.dtype)[1],
            (size,),
            (found.name, "(", self, "')" if transpose else ")"),
            _getframe(2),
        )

    def diag(self, k: int = 0, *, name: str | None = None) -> Vector:
        """Return diagonal `k` as a vector; `k` > 0 lies above the main one."""
        k = integer(k, "diag: diagonal")
        size = min(self.nrows, self.ncols - k) if k >= 0 else min(self.nrows + k, self.ncols)
        if size <= 0:
            raise IndexOutOfBound(
                f"diag: diagonal {k} lies outside a {self.nrows} x {self.ncols} matrix."
            )
        data = self._flushed().diagonal(self.data, k)
        return Vector._of(data, self.dtype, size, self.backend, name)


OUTPUTS[2] = Matrix
