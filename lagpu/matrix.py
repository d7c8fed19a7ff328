"""`Matrix`: entries at some (row, column) pairs; entry (i, j) is the edge i -> j."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from lagpu import backends
from lagpu.algebra import monoid
from lagpu.backends.base import Backend, Data, Descriptor
from lagpu.dtypes import DType, lookup
from lagpu.errors import (
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
    NotSupported,
)
from lagpu.expr import (
    Call,
    IndexExpr,
    MatMul,
    NoTruth,
    Updater,
    assign,
    product,
)
from lagpu.operands import (
    applied,
    as_semiring,
    as_size,
    as_values,
    binary_operator,
    selected,
    single_index,
)
from lagpu.operators import IndexUnaryOp, Semiring
from lagpu.vector import Vector

__all__ = ["Matrix", "TransposedMatrix"]

Array = np.ndarray[Any, Any]


class Matrix(NoTruth):
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
    """

    __slots__ = ("backend", "data", "dtype", "name", "ncols", "nrows")
    ndim = 2
    _hint = "Use A.nvals, A.to_coo(), A.reduce(op) or A.isequal(B)."

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
        self.dtype: DType = lookup(dtype)
        self.nrows, self.ncols = as_size(nrows, "Matrix"), as_size(ncols, "Matrix")
        self.backend: Backend = like.backend if like is not None else backends.get(backend)
        self.name = name or "A"
        self.data: Data = self.backend.matrix_from_csc(
            np.zeros(self.ncols + 1, np.int64),
            np.empty(0, np.int64),
            np.empty(0, self.dtype.numpy),
            self.dtype,
            self.shape,
        )

    @classmethod
    def _of(
        cls,
        data: Data,
        dtype: DType,
        shape: tuple[int, int],
        backend: Backend,
        name: str | None,
    ) -> Matrix:
        A = cls.__new__(cls)
        A.dtype, A.backend, A.name, A.data = dtype, backend, name or "A", data
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
            Where the entries are, in any order; NumPy arrays, or CuPy arrays for the gpu backend.
        values : array_like, (nvals,), or scalar
            Their values; one scalar makes a matrix that stores no value array.
        dtype : DType, optional
            Type of the values; by default that of `values`.
        nrows, ncols : int, optional
            Shape; by default the largest index plus one.
        dup_op : BinaryOp, optional
            Combines the values of an entry given twice.
        like, backend, name
            As in `Matrix`.

        Raises
        ------
        IndexOutOfBound, DimensionMismatch
            If an index is outside, or the arrays differ in length.
        InvalidValue
            If an entry is given twice and there is no `dup_op`.
        """
        rows, cols = _indices(rows, "from_coo"), _indices(cols, "from_coo")
        if rows.shape != cols.shape:
            raise DimensionMismatch(f"from_coo: {len(rows)} rows != {len(cols)} columns.")
        shape = (_extent(rows, nrows, "row"), _extent(cols, ncols, "column"))
        what, kind = as_values(values, dtype, len(rows), "from_coo")
        op = None if dup_op is None else binary_operator(dup_op)
        place = like.backend if like is not None else backends.get(backend)
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
            Column j holds entries ``col_ptr[j] .. col_ptr[j+1] - 1``.
        row_idx : array_like of int, (nvals,)
            Their rows, rising in each column.
        values : array_like, (nvals,), or scalar
            Their values; one scalar makes a matrix that stores no value array.
        nrows, ncols : int
            Shape.
        dtype, like, backend, name
            As in `from_coo`.

        Raises
        ------
        InvalidValue, IndexOutOfBound, DimensionMismatch
            If the arrays are not a CSC form.
        """
        shape, ptr, idx = _compressed(col_ptr, row_idx, ncols, nrows, "from_csc")
        what, kind = as_values(values, dtype, len(idx), "from_csc")
        place = like.backend if like is not None else backends.get(backend)
        data = place.matrix_from_csc(ptr, idx, what, kind, (shape[1], shape[0]))
        return cls._of(data, kind, (shape[1], shape[0]), place, name)

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
        shape, ptr, idx = _compressed(row_ptr, col_idx, nrows, ncols, "from_csr")
        what, kind = as_values(values, dtype, len(idx), "from_csr")
        ptr, idx, what = transpose_compressed(ptr, idx, what, shape)
        place = like.backend if like is not None else backends.get(backend)
        data = place.matrix_from_csc(ptr, idx, what, kind, shape)
        return cls._of(data, kind, shape, place, name)

    def to_csc(self) -> tuple[Array, Array, Array]:
        """Return (col_ptr, row_idx, values) as NumPy arrays, rows rising in a column."""
        return self.backend.matrix_to_csc(self.data)

    def to_csr(self) -> tuple[Array, Array, Array]:
        """Return (row_ptr, col_idx, values) as NumPy arrays, columns rising in a row."""
        ptr, idx, values = self.to_csc()
        return transpose_compressed(ptr, idx, values, (self.ncols, self.nrows))

    def to_coo(self) -> tuple[Array, Array, Array]:
        """Return (rows, cols, values) as NumPy arrays, by rows and then by columns."""
        ptr, idx, values = self.to_csr()
        return np.repeat(np.arange(self.nrows), np.diff(ptr)), idx, values

    def to(self, backend: str | Backend) -> Matrix:
        """Return a copy on another backend: the only way data moves."""
        place = backends.get(backend)
        data = place.matrix_from_csc(*self.to_csc(), self.dtype, self.shape)
        return Matrix._of(data, self.dtype, self.shape, place, self.name)

    # ------------------------------------------------------------------------ properties
    @property
    def shape(self) -> tuple[int, int]:
        """``(nrows, ncols)``."""
        return (self.nrows, self.ncols)

    @property
    def nvals(self) -> int:
        """Number of entries."""
        return self.backend.matrix_nvals(self.data)

    @property
    def T(self) -> TransposedMatrix:
        """The transpose, as an operand; ``A.T.new()`` makes a matrix of it."""
        return TransposedMatrix(self)

    @property
    def stored(self) -> Matrix:
        """The matrix itself."""
        return self

    @property
    def is_symmetric(self) -> bool:
        """Whether ``A' == A``: an undirected graph."""
        return self.nrows == self.ncols and self.backend.matrix_is_symmetric(self.data)

    def __repr__(self) -> str:
        return (
            f"Matrix({self.dtype}, {self.nrows} x {self.ncols}, {self.nvals} entries, "
            f"{self.backend.name})"
        )

    # -------------------------------------------------------------------------- contents
    def dup(self, dtype: Any = None, *, name: str | None = None) -> Matrix:
        """Return a copy, cast to `dtype` if it is given."""
        kind = self.dtype if dtype is None else lookup(dtype)
        data = self.backend.matrix_dup(self.data, kind)
        return Matrix._of(data, kind, self.shape, self.backend, name or self.name)

    def get(self, row: Any, col: Any, default: Any = None) -> Any:
        """Return the value at (row, col) as a Python number, or `default` if there is no entry."""
        i = single_index(row, self.nrows, f"{self.name} row")
        j = single_index(col, self.ncols, f"{self.name} column")
        found = self.backend.matrix_get(self.data, i, j)
        return default if found is None else found

    def isequal(self, other: Matrix, *, check_dtype: bool = False) -> bool:
        """Whether both have the same shape, the same entries and equal values."""
        if not isinstance(other, Matrix):
            raise DomainMismatch(f"isequal: {type(other).__name__} is not a Matrix.")
        if other.backend is not self.backend:
            other = other.to(self.backend)
        if self.shape != other.shape or (check_dtype and self.dtype is not other.dtype):
            return False
        return self.backend.matrix_isequal(self.data, other.data)

    # ----------------------------------------------------------------------- assignments
    def __call__(self, mask: Any = None, *, accum: Any = None, replace: bool = False) -> Updater:
        """``C(...) << call``."""
        return Updater(self, mask, accum, replace)

    def __lshift__(self, value: Any) -> None:
        assign(Updater(self), value)

    def update(self, value: Any) -> None:
        """Do what ``<<`` does."""
        assign(Updater(self), value)

    def __getitem__(self, where: Any) -> MatrixIndex:
        return MatrixIndex(self, where)

    def __setitem__(self, where: Any, value: Any) -> None:
        raise NotSupported(
            f"{self.name}[...] = ...: assignment into a matrix is not there yet. "
            "Build a new one with Matrix.from_coo."
        )

    @property
    def S(self) -> Any:
        """Matrix masks are not there yet."""
        raise NotSupported(f"{self.name}.S: masks are vectors until there is mxm.")

    V = S

    def _call_for(self, value: Any, to: Updater) -> Call:
        if to.indices is not None:
            self[to.indices] = value
        if isinstance(value, (Matrix, TransposedMatrix)):
            return value._copy()
        if isinstance(value, Call) and len(value.shape) == 2:
            return value
        raise DomainMismatch(f"{self.name} << {value!r}: the right-hand side is not a matrix.")

    def _write(self, call: Call, desc: Descriptor) -> None:
        if desc.accum is not None:
            raise NotSupported(f"{call.method}: a matrix takes no accumulator yet.")
        data = getattr(self.backend, call.method)(*call.args)
        self.data = data if call.dtype is self.dtype else self.backend.matrix_dup(data, self.dtype)

    def _copy(self) -> Call:
        return Call("matrix_dup", (self,), (self.data, self.dtype), self.dtype, self.shape, (self,))

    # ------------------------------------------------------------------------ operations
    def __matmul__(self, other: Any) -> MatMul:
        return MatMul(self, other)

    def mxv(
        self,
        u: Vector,
        op: Semiring | str,
        *,
        kernel: str | None = None,
        policy: str | None = None,
    ) -> Call:
        """``w[i] = (+)_j A[i, j] (x) u[j]``, the same as ``op(A @ u)``.

        Parameters
        ----------
        u : Vector, (ncols,)
            The vector.
        op : Semiring
            The algebra.
        kernel, policy : str, optional
            Strategy or choice of strategies, on a backend that has them.
        """
        return product(self, u, as_semiring(op), False, kernel, policy)

    def apply(self, op: Any, right: Any = None, *, left: Any = None) -> Call:
        """``C[i, j] = f(A[i, j])``; see `Vector.apply`."""
        op, how = applied(self.dtype, op, left, right)
        return Call(
            "matrix_apply",
            (self,),
            (self.data, op, how),
            how.result,
            self.shape,
            (op.name, "(", self, ")"),
        )

    def select(self, op: IndexUnaryOp | str, thunk: Any = 0) -> Call:
        """``C = A`` where `op` of value, row, column and `thunk` holds, as in ``("tril", -1)``."""
        op, number, _ = selected(self.dtype, op, thunk)
        return Call(
            "matrix_select",
            (self,),
            (self.data, op, number),
            self.dtype,
            self.shape,
            (op.name, "(", self, f", {number})"),
        )

    def reduce(self, op: Any = "plus") -> Call:
        """``s = (+)_ij A[i, j]`` over a monoid; empty if there is no entry."""
        found = monoid.lookup(op)
        return Call(
            "matrix_reduce",
            (self,),
            (self.data, found),
            found.types(self.dtype)[1],
            (),
            (found.name, "(", self, ")"),
        )

    reduce_scalar = reduce  # the dialect's name

    def reduce_rowwise(self, op: Any = "plus") -> Call:
        """``w[i] = (+)_j A[i, j]``: no entry for an empty row."""
        return self._reduce_vector(op, self.nrows, False)

    def reduce_columnwise(self, op: Any = "plus") -> Call:
        """``w[j] = (+)_i A[i, j]``: no entry for an empty column."""
        return self._reduce_vector(op, self.ncols, True)

    def _reduce_vector(self, op: Any, size: int, transpose: bool) -> Call:
        found = monoid.lookup(op)
        return Call(
            "reduce_vector",
            (self,),
            (self.data, found, transpose),
            found.types(self.dtype)[1],
            (size,),
            (found.name, "(", self, "')" if transpose else ")"),
        )

    def diag(self, k: int = 0, *, name: str | None = None) -> Vector:
        """Return diagonal `k` as a vector; `k` > 0 lies above the main one."""
        size = min(self.nrows, self.ncols - k) if k >= 0 else min(self.nrows + k, self.ncols)
        if size <= 0:
            raise IndexOutOfBound(
                f"diag: diagonal {k} lies outside a {self.nrows} x {self.ncols} matrix."
            )
        data = self.backend.matrix_diag(self.data, k)
        return Vector._of(data, self.dtype, size, self.backend, name)


class TransposedMatrix(NoTruth):
    """``A.T``: a view of a matrix, for products and for ``A.T.new()``."""

    __slots__ = ("stored",)
    ndim = 2
    _hint = "Use A.T.new() to make a matrix of it."

    def __init__(self, A: Matrix) -> None:
        self.stored = A

    @property
    def name(self) -> str:
        """Name of the matrix with a prime."""
        return f"{self.stored.name}'"

    @property
    def nrows(self) -> int:
        """Number of rows."""
        return self.stored.ncols

    @property
    def ncols(self) -> int:
        """Number of columns."""
        return self.stored.nrows

    @property
    def shape(self) -> tuple[int, int]:
        """``(nrows, ncols)``."""
        return (self.nrows, self.ncols)

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        return self.stored.dtype

    @property
    def backend(self) -> Backend:
        """Where the matrix lives."""
        return self.stored.backend

    @property
    def T(self) -> Matrix:
        """The matrix itself."""
        return self.stored

    def __repr__(self) -> str:
        return f"Transposed{self.stored!r}"

    def __matmul__(self, other: Any) -> MatMul:
        return MatMul(self, other)

    mxv = Matrix.mxv

    def new(self, dtype: Any = None, *, name: str | None = None) -> Matrix:
        """Return the transpose as a matrix of its own."""
        made: Matrix = self._copy().new(dtype, name=name)
        return made

    def _copy(self) -> Call:
        A = self.stored
        return Call("matrix_transpose", (A,), (A.data,), A.dtype, self.shape, (self,))


class MatrixIndex(IndexExpr):
    """``A[i, :]``, ``A[:, j]`` or ``A[i, j]``: read it with ``w << ...``, ``.new()`` or ``.value``."""

    __slots__ = ("matrix", "where")
    _hint = "Use A[i, j].value, A.get(i, j) or A[i, :].new()."

    def __init__(self, A: Matrix, where: Any) -> None:
        self.matrix = A
        self.where = where

    def __repr__(self) -> str:
        return f"{self.matrix.name}[{self.where}]"

    def call(self) -> Call:
        """Return the deferred extraction of a row, a column or one entry."""
        A = self.matrix
        if not (isinstance(self.where, tuple) and len(self.where) == 2):
            raise DimensionMismatch(f"{A.name}[{self.where!r}]: a matrix has two indices.")
        row, col = self.where
        everything = slice(None)
        if row == everything and not isinstance(col, slice):
            j = single_index(col, A.ncols, f"{A.name} column")
            args, size = (A.data, j, False), A.nrows
        elif col == everything and not isinstance(row, slice):
            j = single_index(row, A.nrows, f"{A.name} row")
            args, size = (A.data, j, True), A.ncols
        elif isinstance(row, slice) or isinstance(col, slice) or np.ndim(row) or np.ndim(col):
            raise NotSupported(
                f"{A.name}[{row}, {col}]: only one whole row, one whole column or one entry."
            )
        else:
            i = single_index(row, A.nrows, f"{A.name} row")
            j = single_index(col, A.ncols, f"{A.name} column")
            return Call("matrix_get", (A,), (A.data, i, j), A.dtype, (), (A, f"[{i}, {j}]"))
        return Call("extract_column", (A,), args, A.dtype, (size,), (A, f"[{row}, {col}]"))


# --------------------------------------------------------------------------- compressed forms


def transpose_compressed(
    ptr: Array, idx: Array, values: Any, shape: tuple[int, int]
) -> tuple[Array, Array, Any]:
    """Turn compressed rows of a matrix of this shape into compressed columns, sorted."""
    iso = np.ndim(values) == 0
    data = np.broadcast_to(np.int8(1), len(idx)) if iso else values
    other = scipy.sparse.csr_array((data, idx, ptr), shape=shape).tocsc()
    return other.indptr, other.indices, values if iso else other.data


def _compressed(
    ptr: Any, idx: Any, major: int | None, minor: int, what: str
) -> tuple[tuple[int, int], Any, Any]:
    """Check compressed arrays; return ((major, minor), ptr, idx)."""
    ptr, idx = _indices(ptr, what), _indices(idx, what)
    minor = as_size(minor, what)
    if major is not None and len(ptr) != major + 1:
        raise DimensionMismatch(f"{what}: the pointer has {len(ptr)} elements != {major} + 1.")
    if len(ptr) == 0 or ptr[0] != 0 or ptr[-1] != len(idx) or bool((ptr[1:] < ptr[:-1]).any()):
        raise InvalidValue(f"{what}: the pointer must rise from 0 to {len(idx)}.")
    _extent(idx, minor, "index")
    if len(idx) > 1:
        starts = ptr[1:-1]
        falls = idx[1:] <= idx[:-1]
        falls[starts[(starts > 0) & (starts < len(idx))] - 1] = False
        if bool(falls.any()):
            raise InvalidValue(f"{what}: indices must rise within each row or column.")
    return (len(ptr) - 1, minor), ptr, idx


def _indices(array: Any, what: str) -> Any:
    """Return a list of indices as an integer array, on the device if it is there."""
    if not hasattr(array, "__cuda_array_interface__"):
        array = np.asarray(array)
    if array.ndim != 1:
        raise DimensionMismatch(f"{what}: indices are {array.ndim}-D, not 1-D.")
    if array.dtype.kind not in "iu":
        if len(array):
            raise DomainMismatch(f"{what}: indices are {array.dtype}, not integers.")
        array = array.astype(np.int64)
    return array


def _extent(indices: Any, size: int | None, what: str) -> int:
    """Return the size, checked against the indices, or the largest index plus one."""
    low, high = (int(indices.min()), int(indices.max())) if len(indices) else (0, -1)
    extent = high + 1 if size is None else as_size(size, what)
    if low < 0 or high >= extent:
        raise IndexOutOfBound(f"{what}: {low if low < 0 else high} is outside 0 .. {extent - 1}.")
    return extent
