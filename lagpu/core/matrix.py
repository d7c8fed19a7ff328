"""`Matrix`: entries at some (row, column) pairs; entry (i, j) is the edge i -> j."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from sys import _getframe
from typing import Any

import numpy as np

from lagpu import backends
from lagpu.backends.protocol import Backend
from lagpu.core import arguments, expr
from lagpu.core.collection import Aggregator, Collection, adder, aggregate
from lagpu.core.expr import OUTPUTS, Call, Mask, Updater, assign
from lagpu.core.hints import is_operand
from lagpu.core.infix import MatrixOperand
from lagpu.core.vector import Vector
from lagpu.core.views import MatrixIndex, TransposedMatrix
from lagpu.dtypes import INT64, Array, as_array, lookup
from lagpu.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound, InvalidValue
from lagpu.host import display
from lagpu.operations import Assign, Descriptor, Extract, ExtractElement, ReduceRows, Statement


class Matrix(Collection, MatrixOperand):
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

    __slots__ = ()
    shape: tuple[int, int]
    ndim = 2
    _unnamed = display.Unnamed("A")
    _hint = "Use A.nvals, A.to_coo(), A.reduce(op) or A.isequal(B)."
    _truth = "Use {0}.nvals to ask for entries, {0}.isequal(B) to compare."
    _items = "Use {0}.nrows, {0}.nvals, {0}[i, :].new() for a row, or {0}.to_coo() for all entries."
    _dense = "Use {0}.to_coo(), or lagpu.io.to_scipy({0}).toarray() if it fits."

    def __init__(
        self, dtype: Any, nrows: int = 0, ncols: int = 0, *, like: Any = None,
        backend: str | Backend | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self.dtype = arguments.dtype_for(dtype, "Matrix")
        self.shape = (arguments.as_size(nrows, "Matrix"), arguments.as_size(ncols, "Matrix"))
        self.backend = backends.choose(like, backend)
        self.name = name or self._unnamed
        self.data = self.backend.matrix(self.dtype, self.shape)

    # -------------------------------------------------------------------------------- in and out
    @classmethod
    def from_coo(
        cls, rows: Any, cols: Any, values: Any = True, dtype: Any = None, *,
        nrows: int | None = None, ncols: int | None = None, dup_op: Any = None,
        like: Any = None, backend: str | Backend | None = None, name: str | None = None,
    ) -> Matrix:  # fmt: skip
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
        arrays = (arguments.array_of(x, place, "from_coo") for x in (rows, cols, values))
        rows, cols, values = arrays
        rows, cols = (arguments.integer_array(x, "from_coo") for x in (rows, cols))
        if rows.shape != cols.shape:
            raise DimensionMismatch(f"from_coo: {len(rows)} rows != {len(cols)} columns.")
        arguments.require_size(rows, nrows, ncols)
        nrows = arguments.extent(rows, nrows, "from_coo: row")
        ncols = arguments.extent(cols, ncols, "from_coo: column")
        what, kind = arguments.as_values(values, dtype, len(rows), "from_coo")
        op = None if dup_op is None else arguments.binary_operator(dup_op)
        data = place.matrix_from_coo(rows, cols, what, kind, (nrows, ncols), op)
        return cls._of(data, kind, (nrows, ncols), place, name)

    @classmethod
    def from_csc(
        cls, col_ptr: Any, row_idx: Any, values: Any = True, *,
        nrows: int | None = None, ncols: int | None = None, dtype: Any = None,
        like: Any = None, backend: str | Backend | None = None, name: str | None = None,
    ) -> Matrix:  # fmt: skip
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
        nrows, ncols : int, optional
            Shape; by default the largest row plus one, and the columns of `col_ptr`.
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
        cls, place: Backend, arrays: tuple[Any, Any, Any], shape: tuple[int | None, int | None],
        dtype: Any, name: str | None = None, symmetric: bool | None = None, by_rows: bool = False,
    ) -> Matrix:  # fmt: skip
        """Do what `from_csc` does; `symmetric` is True if that is known, and is not tested."""
        what, (m, n) = ("from_csr", shape[::-1]) if by_rows else ("from_csc", shape)
        ptr, idx, values = (arguments.array_of(x, place, what) for x in arrays)
        (n, m), ptr, idx = arguments.check_compressed(ptr, idx, n, m, what, place.device)
        values, kind = arguments.as_values(values, dtype, len(idx), what)
        if by_rows:
            data, size = arguments.from_rows(place, ptr, idx, values, kind, (n, m)), (n, m)
        else:
            size = m, n
            data = place.matrix_from_csc(ptr, idx, values, kind, size, symmetric)
        return cls._of(data, kind, size, place, name)

    @classmethod
    def from_csr(
        cls, row_ptr: Any, col_idx: Any, values: Any = True, *,
        ncols: int | None = None, nrows: int | None = None, dtype: Any = None,
        like: Any = None, backend: str | Backend | None = None, name: str | None = None,
    ) -> Matrix:  # fmt: skip
        """Return a matrix of compressed sparse rows; see `from_csc`."""
        place, arrays = backends.choose(like, backend), (row_ptr, col_idx, values)
        return cls._from_csc(place, arrays, (nrows, ncols), dtype, name, by_rows=True)

    @classmethod
    def from_dcsr(
        cls, compressed_rows: Any, indptr: Any, col_indices: Any, values: Any = 1.0,
        dtype: Any = None, **options: Any,
    ) -> Matrix:  # fmt: skip
        """Return a matrix of compressed rows; only rows with entries are listed.

        Parameters
        ----------
        compressed_rows : array_like of int, (r,)
            The rows with entries, rising.
        indptr : array_like of int, (r + 1,)
            Row ``compressed_rows[k]`` has entries ``indptr[k] .. indptr[k+1] - 1``.
        col_indices, values : array_like, (nvals,)
            Columns and values of the entries; one scalar is the value of all.
        dtype, **options
            As in `from_coo`.
        """
        rows, nrows = _expanded(compressed_rows, indptr, options.pop("nrows", None), "from_dcsr")
        return cls.from_coo(rows, col_indices, values, dtype, nrows=nrows, **options)

    @classmethod
    def from_dcsc(
        cls, compressed_cols: Any, indptr: Any, row_indices: Any, values: Any = 1.0,
        dtype: Any = None, **options: Any,
    ) -> Matrix:  # fmt: skip
        """Return a matrix of compressed columns; see `from_dcsr`."""
        cols, ncols = _expanded(compressed_cols, indptr, options.pop("ncols", None), "from_dcsc")
        return cls.from_coo(row_indices, cols, values, dtype, ncols=ncols, **options)

    @classmethod
    def from_dense(
        cls, values: Any, missing_value: Any = None, *, dtype: Any = None, **where: Any
    ) -> Matrix:
        """Return a matrix of a dense array, without entries where it equals `missing_value`.

        Parameters
        ----------
        values : array_like, (nrows, ncols)
            The array.
        missing_value : scalar, optional
            The value of a missing entry; by default every position has an entry.
        dtype, **where
            As in `from_coo`: ``like``, ``backend`` and ``name``.
        """
        array = as_array(values)
        arguments.require_ndim(array, 2)
        rows, cols = np.nonzero(arguments.is_present(array, missing_value))
        where |= dict(zip(("nrows", "ncols"), array.shape, strict=True))
        return cls.from_coo(rows, cols, array[rows, cols], dtype, **where)

    @classmethod
    def from_edgelist(
        cls, edgelist: Any, values: Any = None, dtype: Any = None, **options: Any
    ) -> Matrix:
        """Return a matrix of (row, column) pairs or (row, column, value) triples.

        Parameters
        ----------
        edgelist : array_like of int, (nvals, 2), or iterable of tuples
            The positions; a list of triples has the values too.
        values : array_like, (nvals,), or scalar, optional
            Values of the entries; by default those of the triples, or 1.0.
        dtype, **options
            As in `from_coo`.

        Raises
        ------
        DimensionMismatch
            If the list is not of pairs or of triples, or an array does not have two columns.
        DomainMismatch
            If triples are given, and `values` too.
        """
        if isinstance(edgelist, np.ndarray):
            if edgelist.ndim != 2 or edgelist.shape[1] != 2:
                raise DimensionMismatch(
                    f"from_edgelist: the array has shape {edgelist.shape}, not (edges, 2). "
                    "Give the values by themselves, as values=."
                )
            columns: list[Any] = list(edgelist.T)
        else:
            columns = _columns(edgelist)
        if len(columns) == 3:
            if values is not None:
                raise DomainMismatch("from_edgelist: triples have values. Leave out values=.")
            values = columns.pop()
        rows, cols = columns
        return cls.from_coo(rows, cols, 1.0 if values is None else values, dtype, **options)

    @classmethod
    def from_dicts(
        cls, nested: Mapping[int, Mapping[int, Any]] | Sequence[Mapping[int, Any]],
        dtype: Any = None, *, order: str = "rowwise", nrows: int | None = None,
        ncols: int | None = None, **where: Any,
    ) -> Matrix:  # fmt: skip
        """Return a matrix of dicts ``{row: {column: value}}``, or of a list of dicts by row.

        With `order` ``"columnwise"`` the outer keys are columns. `nrows` and `ncols` are by default
        the largest index plus one, also where its dict is empty; the rest is as in `from_coo`.
        """
        rowwise = _by_rows(order)
        given: Any = nested
        outer = dict(given if isinstance(nested, Mapping) else enumerate(given))
        triples = [(i, j, x) for i, inner in outer.items() for j, x in inner.items()]
        rows, cols, values = arguments.split(triples, 3)
        side, size = ("row", nrows) if rowwise else ("column", ncols)
        keys = arguments.integer_array(list(outer), "from_dicts")
        size = arguments.extent(keys, size, f"from_dicts: {side}")
        if rowwise:
            nrows = size
        else:
            rows, cols, ncols = cols, rows, size
        return cls.from_coo(rows, cols, values, dtype, nrows=nrows, ncols=ncols, **where)

    @classmethod
    def from_scalar(
        cls, value: Any, nrows: int, ncols: int, dtype: Any = None, **where: Any
    ) -> Matrix:
        """Return a matrix of one value at every position, of type `dtype` or else that of `value`.

        A gpu or sim matrix stores the position of each entry. ``like``, ``backend`` and ``name``
        are as in `Matrix`.
        """
        kind = arguments.scalar_dtype(value, INT64, "from_scalar") if dtype is None else dtype
        made = cls(kind, nrows, ncols, **where)
        made << value
        return made

    def to_coo(
        self, dtype: Any = None, *, rows: bool = True,
        columns: bool = True, values: bool = True, sort: bool = True,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """Return (rows, cols, values) as NumPy arrays, by rows and then by columns.

        Parameters
        ----------
        dtype : DType, optional
            Type of the values; by default that of the matrix.
        rows, columns, values : bool
            With False the result has None for this array.
        sort : bool
            Accepted as in python-graphblas; the entries always come in order.
        """
        ptr, idx, what = self.to_csr(dtype)
        found = np.repeat(np.arange(self.nrows), np.diff(ptr)) if rows else None
        return found, idx if columns else None, what if values else None

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
        return ptr, idx, arguments.as_type(values, dtype)

    def to_csr(self, dtype: Any = None, *, sort: bool = True) -> tuple[Array, Array, Array]:
        """Return (row_ptr, col_idx, values) as NumPy arrays, columns rising in a row."""
        ptr, idx, values = self.to_csc(dtype)
        return arguments.transpose_compressed(ptr, idx, values, (self.ncols, self.nrows))

    def to_dcsr(self, dtype: Any = None) -> tuple[Array, Array, Array, Array]:
        """Return (compressed_rows, indptr, col_indices, values); see `from_dcsr`."""
        return _nonempty(self.to_csr(), dtype)

    def to_dcsc(self, dtype: Any = None) -> tuple[Array, Array, Array, Array]:
        """Return (compressed_cols, indptr, row_indices, values); see `from_dcsc`."""
        return _nonempty(self.to_csc(), dtype)

    def to_dense(self, fill_value: Any = None, dtype: Any = None) -> Array:
        """Return a NumPy array, (nrows, ncols), with `fill_value` where there is no entry."""
        rows, cols, values = self.to_coo()
        kind = arguments.dense_type(self, fill_value, dtype)
        if fill_value is None:
            arguments.require_full(self, len(values))
            fill_value = 0
        dense = np.full(self.shape, arguments.as_fill(fill_value, kind), kind.numpy)
        dense[rows, cols] = arguments.as_type(values, kind)
        return dense

    def to_edgelist(
        self, dtype: Any = None, *, values: bool = True, sort: bool = True
    ) -> tuple[Array, Array | None]:
        """Return (positions of shape (nvals, 2); values, or None without `values`), by rows."""
        rows, cols, found = self.to_coo(dtype, values=values, sort=sort)
        return np.column_stack([rows, cols]), found

    def to_dicts(self, order: str = "rowwise") -> dict[int, dict[int, Any]]:
        """Return ``{row: {column: value}}`` with Python numbers, or by columns."""
        rows, cols, values = (part.tolist() for part in self.to_coo())
        ends = (rows, cols) if _by_rows(order) else (cols, rows)
        nested: dict[int, dict[int, Any]] = {}
        for outer, inner, x in zip(*ends, values, strict=True):
            nested.setdefault(outer, {})[inner] = x
        return nested

    def to(self, backend: str | Backend) -> Matrix:
        """Return a copy on another backend: the only way data moves."""
        place = backends.get(backend)
        arrays = self.to_csc()
        known = getattr(self.data, "symmetric", None) and self.is_symmetric  # perhaps to the bit
        data = place.matrix_from_csc(*arrays, self.dtype, self.shape, known or None)
        return Matrix._of(data, self.dtype, self.shape, place, self.name)

    # -------------------------------------------------------------------------------- properties
    @property
    def T(self) -> TransposedMatrix:
        """The transpose as an operand; ``A.T.new()`` is a matrix."""
        return TransposedMatrix(self)

    @property
    def is_symmetric(self) -> bool:
        """Whether ``A.T`` equals ``A``, as for an undirected graph; never with NaN."""
        return self.nrows == self.ncols and self._flushed().is_symmetric(self.data)

    @property
    def orientation(self) -> str:
        """The storage forms that are kept: ``"auto"``, or ``"csc"`` for the columns alone.

        A backend makes the second form of a directed matrix, by rows on gpu and by columns on cpu,
        when products profit from it and memory allows; ``A.orientation = "csc"`` forbids the second
        form and drops an existing one. A symmetric matrix needs none. Setting another value raises
        `InvalidValue`.
        """
        return "auto" if self.backend.may_keep_csr(self.data, None) else "csc"

    @orientation.setter
    def orientation(self, wanted: str) -> None:
        if wanted not in ("auto", "csc"):
            raise InvalidValue(f"orientation: there is no {wanted!r}. Use auto or csc.")
        self.backend.may_keep_csr(self.data, wanted == "auto")

    __repr__ = display.matrix_text
    _repr_html_ = display.matrix_html

    def _preview(self, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """Return (rows, columns, values) of the entries in the first rows and columns."""
        place, shape = self.backend, (nrows, ncols)
        corner = place.matrix(self.dtype, shape)
        first = Extract(self.data, (*map(np.arange, shape),))
        place.execute(Statement(corner, Descriptor(), first, self.dtype))
        ptr, rows, values = place.matrix_to_csc(corner)
        return rows, np.repeat(np.arange(ncols), np.diff(ptr)), values

    # ---------------------------------------------------------------------------------- contents
    def get(self, row: Any, col: Any, default: Any = None) -> Any:
        """Return the value at (row, col) as a Python number, or `default` if there is no entry."""
        i = arguments.single_index(row, self.nrows, f"{self.name} row")
        j = arguments.single_index(col, self.ncols, f"{self.name} column")
        found = self._flushed().evaluate(ExtractElement(self.data, (i, j)))
        return default if found is None else found

    def __contains__(self, where: Any) -> bool:
        """Whether there is an entry at (row, column)."""
        if not (isinstance(where, tuple) and len(where) == 2):
            raise DomainMismatch(f"in {self.name}: {where!r} is not a pair. Write (i, j) in A.")
        return self.get(*where) is not None

    def clear(self) -> None:
        """Delete all entries."""
        assign(Updater(self), type(self)(self.dtype, *self.shape, like=self))

    def resize(self, nrows: int, ncols: int) -> None:
        """Change the shape; entries outside of the new one are deleted."""
        new = self.reposition(0, 0, nrows=nrows, ncols=ncols).new()
        self._flushed()
        self.data, self.shape = new.data, new.shape

    def build(
        self, rows: Any, cols: Any, values: Any = True, *, dup_op: Any = None,
        clear: bool = False, nrows: int | None = None, ncols: int | None = None,
    ) -> None:  # fmt: skip
        """Fill an empty matrix with triplets, and resize it first; see `from_coo`."""
        self._require_empty(clear)
        if nrows is not None or ncols is not None:
            given = zip((nrows, ncols), self.shape, strict=True)
            self.resize(*(old if new is None else new for new, old in given))
        assign(Updater(self), self._alike_with(rows, cols, values, dup_op))

    def _alike_with(self, rows: Any, cols: Any, values: Any, dup_op: Any = None) -> Matrix:
        nrows, ncols = self.shape
        return type(self).from_coo(
            rows, cols, values, self.dtype, nrows=nrows, ncols=ncols, dup_op=dup_op, like=self
        )

    def setdiag(self, values: Any, k: int = 0, *, mask: Any = None, accum: Any = None) -> None:
        """Replace diagonal `k`: ``A[i, i + k] = values[i]``.

        Parameters
        ----------
        values : scalar, Vector, or array_like
            The values, as many as the diagonal has places; where a vector has no entry the diagonal
            has none either, unless there is an accumulator.
        k : int
            The diagonal; `k` > 0 lies above the main one.
        mask, accum : Mask of a vector or of a matrix of this shape, BinaryOp, optional
            The places of the diagonal that are written, and what combines old and new values.

        Raises
        ------
        DimensionMismatch
            If there are more or fewer values than places.
        """
        new = self.diag(k)
        if k and not new.size:
            raise IndexOutOfBound(
                f"setdiag: diagonal {k} lies outside a {self.nrows} x {self.ncols} matrix."
            )
        if np.ndim(values) and not is_operand(values, 1):
            values = OUTPUTS[1].from_dense(values, like=self)
        if is_operand(values, 1) and values.size != new.size:
            raise DimensionMismatch(
                f"setdiag: {values.size} values != {new.size} places of diagonal {k}."
            )
        if isinstance(mask, Mask) and mask.vector.shape == self.shape:
            mask = Mask(mask.new().diag(k), True)
        elif isinstance(mask, Mask) and mask.vector.ndim == 2:
            raise expr.mask_does_not_fit(mask, self)
        assign(Updater(new, mask, accum), values)
        i, x = new.to_coo()
        rest = self.select("offdiag", k).new()
        below = max(0, -arguments.integer(k, "setdiag: diagonal"))
        on = self._alike_with(i + below, i + below + k, x)
        assign(Updater(self), rest.ewise_add(on, "first"))

    def reposition(
        self, row_offset: int, column_offset: int, *,
        nrows: int | None = None, ncols: int | None = None,
    ) -> Call:  # fmt: skip
        """Move the entries: ``C[i + r, j + c] = A[i, j]``; one outside of `C` is left out.

        The result is `nrows` x `ncols`, by default as large as this matrix.
        """
        given = zip((nrows, ncols), self.shape, strict=True)
        m, n = (old if new is None else arguments.as_size(new, "reposition") for new, old in given)
        rows, cols, values = self.to_coo()
        rows = rows + arguments.integer(row_offset, "reposition: offset")
        cols = cols + arguments.integer(column_offset, "reposition: offset")
        inside = (rows >= 0) & (rows < m) & (cols >= 0) & (cols < n)
        triplets = rows[inside], cols[inside], values[inside]
        where: dict[str, Any] = {"nrows": m, "ncols": n, "like": self, "name": self.name}
        new = type(self).from_coo(*triplets, self.dtype, **where)
        return new.copying()._written_in(_getframe(1))

    # ------------------------------------------------------------------------- parts of a matrix
    def __getitem__(self, where: Any) -> MatrixIndex:
        return MatrixIndex(self, where)

    def __setitem__(self, where: Any, value: Any) -> None:
        assign(Updater(self, indices=where), value)

    # -------------------------------------------------------------------------------- operations
    reduce_scalar = Collection.reduce  # the name in python-graphblas

    def copying(self, transposed: bool = False) -> Call:
        """Return the deferred copy, or the deferred transpose."""
        shape, shown = (self.shape[::-1], self.T) if transposed else (self.shape, self)
        return Call(Assign(self.data, None, transposed), (self,), self.dtype, shape, (shown,))

    def reduce_rowwise(self, op: Any = "plus") -> Call:
        """Return the sum of each row, ``w[i] = ⊕_j A[i, j]``; no entry for an empty row."""
        return self._reduce_vector(op, self.nrows, False)

    def reduce_columnwise(self, op: Any = "plus") -> Call:
        """Return the sum of each column, ``w[j] = ⊕_i A[i, j]``; no entry for an empty column."""
        return self._reduce_vector(op, self.ncols, True)

    def _reduce_vector(self, op: Any, size: int, transpose: bool) -> Call:
        found = adder(op)
        if isinstance(found, Aggregator):
            way = "reduce_columnwise" if transpose else "reduce_rowwise"
            return aggregate(self, found, way, _getframe(2))
        formula = (found.name, "(", self, "')" if transpose else ")")
        operation = ReduceRows(self.data, found, transpose)
        return Call(operation, (self,), found.types(self.dtype)[1], (size,), formula, _getframe(2))

    def diag(self, k: int = 0, dtype: Any = None, *, name: str | None = None) -> Vector:
        """Return diagonal `k` as a vector of `dtype`; `k` > 0 lies above the main one.

        A diagonal beyond the corners has size 0.
        """
        k = arguments.integer(k, "diag: diagonal")
        size = min(self.nrows, self.ncols - k) if k >= 0 else min(self.nrows + k, self.ncols)
        if size <= 0:
            return Vector(self.dtype if dtype is None else dtype, 0, like=self, name=name)
        data = self._flushed().diagonal(self.data, k)
        found = Vector._of(data, self.dtype, (size,), self.backend, name)
        return found if dtype is None else found.dup(dtype)


def _by_rows(order: str) -> bool:
    if order not in ("rowwise", "columnwise", "C", "F", "R", "row", "col", "column", "colwise"):
        raise InvalidValue(f"order: there is no {order!r}. Use rowwise or columnwise.")
    return order in ("rowwise", "C", "R", "row")


def _columns(edges: Iterable[Any]) -> list[Any]:
    rows = [tuple(edge) for edge in edges]
    widths = {len(row) for row in rows}
    if not widths <= {2} and not widths <= {3}:
        raise DimensionMismatch(
            "from_edgelist: the edges have different lengths, or not 2 or 3. "
            "Give pairs (i, j) or triples (i, j, x)."
        )
    return arguments.split(rows, 2)


def _expanded(majors: Any, indptr: Any, size: int | None, what: str) -> tuple[Array, int]:
    """Return the row of each entry of compressed rows, and how many rows there are."""
    majors, ptr = arguments.integer_array(majors, what), arguments.integer_array(indptr, what)
    if len(ptr) != len(majors) + 1:
        kind = DimensionMismatch if len(ptr) else InvalidValue
        raise kind(f"{what}: {len(ptr)} elements of the pointer != {len(majors)} + 1.")
    counts = np.diff(ptr)
    if len(counts) and counts.min() < 0:
        raise IndexOutOfBound(f"{what}: the pointer falls. Give one that rises.")
    return np.repeat(majors, counts), arguments.extent(majors, size, f"{what}: index")


def _nonempty(
    compressed: tuple[Array, Array, Array], dtype: Any
) -> tuple[Array, Array, Array, Array]:
    ptr, idx, values = compressed
    kept = np.flatnonzero(np.diff(ptr))
    return kept, np.append(ptr[kept], ptr[-1:]), idx, arguments.as_type(values, dtype)


OUTPUTS[2] = Matrix
