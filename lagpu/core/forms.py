"""Constructors and stored forms: from coordinates, CSC, CSR, dense arrays, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import _getframe
from typing import Any, Self

import numpy as np
import scipy.sparse

from lagpu.backends.protocol import Backend
from lagpu.core.arguments import (
    as_fill,
    as_size,
    integer,
    integer_array,
    is_present,
    outside,
    scalar_dtype,
)
from lagpu.core.exchange.arrays_in import array_in
from lagpu.core.expr import OUTPUTS, Call, Updater, assign, is_operand
from lagpu.core.hints import how_to_enter, name_of, part_of
from lagpu.core.indexing import MatrixIndex
from lagpu.dtypes import INT64, DType, cast, lookup
from lagpu.errors import (
    BackendMismatch,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
)
from lagpu.operations import Assign, Descriptor, Statement

Array = np.ndarray[Any, Any]


def array_of(x: Any, backend: Backend, what: str) -> Any:
    """Return the values of a full vector, or any other array, as an array on a backend.

    What `lagpu.core.exchange.arrays_in.array_in` raises, and:

    Raises
    ------
    BackendMismatch
        If the vector is not on `backend`.
    InvalidValue
        If the vector is not full.
    """
    if not is_operand(x, 1):
        return array_in(x, backend, what)
    if x.backend is not backend:
        usual = f"Give like={name_of(x)}, or move it with .to({backend.name!r})."
        raise BackendMismatch(
            f"{what}: {x.name} is on {x.backend.name}, the new object on {backend.name}. "
            + (how_to_enter(backend, x) or usual)
        )
    if x.nvals != x.size:
        raise InvalidValue(
            f"{what}: {x.name} has {x.nvals} of {x.size} entries. Give a full vector."
        )
    return backend.vector_values(x.data, True)


def transpose_compressed(
    ptr: Array, idx: Array, values: Any, shape: tuple[int, int]
) -> tuple[Array, Array, Any]:
    """Convert compressed rows of a matrix of this shape to compressed columns, sorted."""
    iso = np.ndim(values) == 0
    data = np.broadcast_to(np.int8(1), len(idx)) if iso else values
    other = scipy.sparse.csr_array((data, idx, ptr), shape=shape).tocsc()
    return other.indptr, other.indices, values if iso else other.data


def from_rows(
    backend: Backend, ptr: Any, idx: Any, values: Any, dtype: DType, shape: tuple[int, int]
) -> Any:
    """Return a backend's matrix of checked compressed rows; device arrays stay on the device."""
    if any(hasattr(x, "__cuda_array_interface__") for x in (ptr, idx, values)):
        out = backend.matrix(dtype, shape)
        by_rows = backend.matrix_from_csc(ptr, idx, values, dtype, shape[::-1])
        backend.execute(Statement(out, Descriptor(), Assign(by_rows, None, True), dtype))
        return out
    columns = transpose_compressed(ptr, idx, values, shape)  # needs no device memory
    return backend.matrix_from_csc(*columns, dtype, shape)


def check_compressed(
    ptr: Any, idx: Any, major: int | None, minor: int, what: str
) -> tuple[tuple[int, int], Any, Any]:
    """Check compressed arrays; return ((major, minor), ptr, idx).

    Raises
    ------
    DimensionMismatch
        If the pointer does not have ``major + 1`` elements.
    InvalidValue
        If the pointer does not rise from 0 to ``len(idx)``, or indices do not rise.
    IndexOutOfBound
        If an index is not in ``0 .. minor-1``.
    """
    ptr, idx = integer_array(ptr, what), integer_array(idx, what)
    minor = as_size(minor, what)
    if major is not None and len(ptr) != as_size(major, what) + 1:
        raise DimensionMismatch(f"{what}: the pointer has {len(ptr)} elements != {major} + 1.")
    # Each question to a device is an array until the end, so that it answers once.
    if len(ptr) == 0 or bool((ptr[:1] != 0) | (ptr[-1:] != len(idx)) | (ptr[1:] < ptr[:-1]).any()):
        raise InvalidValue(f"{what}: the pointer must rise from 0 to {len(idx)}.")
    extent(idx, minor, f"{what}: index")
    if len(idx) > 1:
        falls = idx != idx
        falls[1:] = idx[1:] <= idx[:-1]
        falls[ptr % len(idx)] = False  # where a row or column begins; the first never falls
        if bool(falls.any()):
            raise InvalidValue(f"{what}: indices must rise within each row or column.")
    return (len(ptr) - 1, minor), ptr, idx


def extent(indices: Any, size: int | None, what: str) -> int:
    """Return `size`, checked against the indices, or for None the largest index plus one."""
    low, high = (int(indices.min()), int(indices.max())) if len(indices) else (0, -1)
    n = high + 1 if size is None else as_size(size, what)
    if low < 0 or high >= n:
        raise outside(what, low if low < 0 else high, n)
    return n


# ------------------------------------------------------------------------------------------
# What a `Vector` is made from and what it becomes, beyond indices and values.


def filled(out: Any, value: Any) -> Any:
    """Return `out` with `value` at every position."""
    assign(Updater(out), value)
    return out


def as_type(values: Any, dtype: Any) -> Any:
    """Return an array cast to `dtype`, or as it is for None."""
    return values if dtype is None else np.asarray(cast(values, lookup(dtype)))


class VectorForms:
    """Constructors and conversions of `Vector`."""

    __slots__ = ()

    @classmethod
    def from_scalar(cls, value: Any, size: int, dtype: Any = None, **where: Any) -> Self:
        """Return a full vector of one value.

        Parameters
        ----------
        value : scalar
            The value of every entry.
        size : int
            Length.
        dtype : DType, optional
            Type of the values; by default that of `value`.
        **where
            ``like``, ``backend`` and ``name``, as in `Vector`.
        """
        kind = scalar_dtype(value, INT64, "from_scalar") if dtype is None else dtype
        new: Self = filled(cls(kind, size, **where), value)  # type: ignore[call-arg]
        return new

    @classmethod
    def from_pairs(
        cls, pairs: Iterable[tuple[int, Any]], dtype: Any = None, **options: Any
    ) -> Self:
        """Return a vector of (index, value) pairs.

        Parameters
        ----------
        pairs : iterable of (int, scalar)
            The entries.
        dtype : DType, optional
            Type of the values; by default that of the values.
        **options
            ``size``, ``dup_op``, ``like``, ``backend`` and ``name``, as in `from_coo`.

        Raises
        ------
        DomainMismatch, IndexOutOfBound, InvalidValue
            As `from_coo` raises them.
        """
        indices, values = split(pairs, 2)
        new: Self = cls.from_coo(indices, values, dtype, **options)  # type: ignore[attr-defined]
        return new

    @classmethod
    def from_dict(cls, entries: Mapping[int, Any], dtype: Any = None, **options: Any) -> Self:
        """Return a vector of a dict ``{index: value}``; options as in `from_pairs`."""
        return cls.from_pairs(entries.items(), dtype, **options)

    def to_dict(self) -> dict[int, Any]:
        """Return ``{index: value}`` with Python numbers, indices rising."""
        indices, values = self.to_coo()  # type: ignore[attr-defined]
        return dict(zip(indices.tolist(), values.tolist(), strict=True))

    def __iter__(self) -> Iterator[int]:
        """Yield the indices of the entries, rising."""
        return iter(self.to_coo()[0].tolist())  # type: ignore[attr-defined]

    def reposition(self: Any, offset: int, *, size: int | None = None) -> Call:
        """Move the entries: ``w[i + offset] = u[i]``; an entry outside of `w` is left out.

        Parameters
        ----------
        offset : int
            How far each entry moves to the right; a negative number moves to the left.
        size : int, optional
            Length of the result; by default that of this vector.
        """
        by = integer(offset, "reposition: offset")
        n = self.size if size is None else as_size(size, "reposition")
        first, last = max(0, -by), min(self.size, n - by)
        new = type(self)(self.dtype, n, like=self, name=self.name)
        if first < last:
            new[first + by : last + by] = self[first:last].new()
        return Call(Assign(new.data), (new,), new.dtype, new.shape, (new,), _getframe(1))


def split(rows: Iterable[Any], width: int) -> list[list[Any]]:
    """Return the columns of an iterable of tuples of this width."""
    listed = [tuple(row) for row in rows]
    return [list(column) for column in zip(*listed, strict=True)] if listed else [[]] * width


# ------------------------------------------------------------------------------------------
# What a `Matrix` is made from and what it becomes, beyond triplets and compressed arrays.


def _by_rows(order: str) -> bool:
    """Return whether an order is by rows, as python-graphblas names orders."""
    if order not in ("rowwise", "columnwise", "C", "F", "R", "row", "col", "column"):
        raise InvalidValue(f"order: there is no {order!r}. Use rowwise or columnwise.")
    return order in ("rowwise", "C", "R", "row")


class MatrixForms:
    """Constructors and conversions of `Matrix`."""

    __slots__ = ()

    @classmethod
    def from_scalar(
        cls, value: Any, nrows: int, ncols: int, dtype: Any = None, **where: Any
    ) -> Self:
        """Return a matrix with one value at every position.

        Parameters
        ----------
        value : scalar
            The value of every entry.
        nrows, ncols : int
            Shape; a gpu or sim matrix stores the position of each entry.
        dtype : DType, optional
            Type of the values; by default that of `value`.
        **where
            ``like``, ``backend`` and ``name``, as in `Matrix`.
        """
        kind = scalar_dtype(value, INT64, "from_scalar") if dtype is None else dtype
        new: Self = filled(cls(kind, nrows, ncols, **where), value)  # type: ignore[call-arg]
        return new

    @classmethod
    def from_dense(
        cls, values: Any, missing_value: Any = None, *, dtype: Any = None, **where: Any
    ) -> Self:
        """Return a matrix of a dense array, without entries where it equals `missing_value`.

        Parameters
        ----------
        values : array_like, (nrows, ncols)
            The array.
        missing_value : scalar, optional
            The value that stands for no entry; by default every position has an entry.
        dtype : DType, optional
            Type of the values; by default that of `values`.
        **where
            ``like``, ``backend`` and ``name``, as in `Matrix`.

        Raises
        ------
        DimensionMismatch
            If the array is not two-dimensional.
        """
        array = np.asarray(values)
        if array.ndim != 2:
            raise DimensionMismatch(
                f"from_dense: the array is {array.ndim}-D, not 2-D. "
                + "Write Vector.from_dense for a vector." * (array.ndim == 1)
            )
        kept = is_present(array, missing_value)
        rows, cols = np.nonzero(kept)
        size = dict(zip(("nrows", "ncols"), array.shape, strict=True))
        new: Self = cls.from_coo(  # type: ignore[attr-defined]
            rows, cols, array[rows, cols], dtype, **size, **where
        )
        return new

    @classmethod
    def from_edgelist(
        cls, edgelist: Any, values: Any = None, dtype: Any = None, **options: Any
    ) -> Self:
        """Return a matrix of (row, column) pairs or (row, column, value) triples.

        Parameters
        ----------
        edgelist : array_like of int, (nvals, 2), or iterable of tuples
            The positions; a list of triples has the values too.
        values : array_like, (nvals,), or scalar, optional
            Values of the entries; by default those of the triples, or 1.0.
        dtype : DType, optional
            Type of the values; by default that of the values.
        **options
            ``nrows``, ``ncols``, ``dup_op``, ``like``, ``backend`` and ``name``, as in `from_coo`.

        Raises
        ------
        DimensionMismatch
            If the list is not of pairs or of triples, or an array does not have two columns.
        InvalidValue
            If values are given twice.
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
                raise InvalidValue("from_edgelist: triples have values. Leave out values=.")
            values = columns.pop()
        new: Self = cls.from_coo(  # type: ignore[attr-defined]
            *columns, 1.0 if values is None else values, dtype, **options
        )
        return new

    @classmethod
    def from_dicts(
        cls,
        nested: Mapping[int, Mapping[int, Any]] | Sequence[Mapping[int, Any]],
        dtype: Any = None,
        *,
        order: str = "rowwise",
        nrows: int | None = None,
        ncols: int | None = None,
        **where: Any,
    ) -> Self:
        """Return a matrix of dicts ``{row: {column: value}}``, or of a list of dicts by row.

        Parameters
        ----------
        nested : dict or list of dict
            The entries.
        dtype : DType, optional
            Type of the values; by default that of the values.
        order : {"rowwise", "columnwise"}
            Whether the outer keys are rows or columns.
        nrows, ncols : int, optional
            Shape; by default the largest index plus one, also where its dict is empty.
        **where
            ``like``, ``backend`` and ``name``, as in `Matrix`.
        """
        rowwise = _by_rows(order)
        given: Any = nested
        outer = dict(given if isinstance(nested, Mapping) else enumerate(given))
        triples = [(i, j, x) for i, inner in outer.items() for j, x in inner.items()]
        first, second, values = split(triples, 3)
        rows, cols = (first, second) if rowwise else (second, first)
        if rowwise:
            nrows = extent(integer_array(list(outer), "from_dicts"), nrows, "from_dicts: row")
        else:
            ncols = extent(integer_array(list(outer), "from_dicts"), ncols, "from_dicts: column")
        new: Self = cls.from_coo(  # type: ignore[attr-defined]
            rows, cols, values, dtype, nrows=nrows, ncols=ncols, **where
        )
        return new

    @classmethod
    def from_dcsr(
        cls, compressed_rows: Any, indptr: Any, col_indices: Any, values: Any = 1.0,
        dtype: Any = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Return a matrix of compressed rows of which only those with entries are listed.

        Parameters
        ----------
        compressed_rows : array_like of int, (r,)
            The rows with entries, rising.
        indptr : array_like of int, (r + 1,)
            Row ``compressed_rows[k]`` has entries ``indptr[k] .. indptr[k+1] - 1``.
        col_indices : array_like of int, (nvals,)
            Columns of the entries.
        values : array_like, (nvals,), or scalar
            Values of the entries.
        dtype : DType, optional
            Type of the values; by default that of `values`.
        **options
            ``nrows``, ``ncols``, ``like``, ``backend`` and ``name``, as in `from_coo`.
        """
        rows, nrows = _expanded(compressed_rows, indptr, options.pop("nrows", None), "from_dcsr")
        new: Self = cls.from_coo(  # type: ignore[attr-defined]
            rows, col_indices, values, dtype, nrows=nrows, **options
        )
        return new

    @classmethod
    def from_dcsc(
        cls, compressed_cols: Any, indptr: Any, row_indices: Any, values: Any = 1.0,
        dtype: Any = None, **options: Any,
    ) -> Self:  # fmt: skip
        """Return a matrix of compressed columns; see `from_dcsr`."""
        cols, ncols = _expanded(compressed_cols, indptr, options.pop("ncols", None), "from_dcsc")
        new: Self = cls.from_coo(  # type: ignore[attr-defined]
            row_indices, cols, values, dtype, ncols=ncols, **options
        )
        return new

    # ---------------------------------------------------------------------------------- out
    def to_dcsr(self: Any, dtype: Any = None) -> tuple[Array, Array, Array, Array]:
        """Return (compressed_rows, indptr, col_indices, values); see `from_dcsr`."""
        return _nonempty(self.to_csr(), dtype)

    def to_dcsc(self: Any, dtype: Any = None) -> tuple[Array, Array, Array, Array]:
        """Return (compressed_cols, indptr, row_indices, values); see `from_dcsc`."""
        return _nonempty(self.to_csc(), dtype)

    def to_dense(self: Any, fill_value: Any = None, dtype: Any = None) -> Array:
        """Return a NumPy array, (nrows, ncols), with `fill_value` where there is no entry.

        Raises
        ------
        InvalidValue
            If entries are missing and there is no `fill_value`.
        """
        rows, cols, values = self.to_coo()
        size = self.nrows * self.ncols
        if fill_value is None:
            if len(values) < size:
                raise InvalidValue(
                    f"to_dense: {self.name} has {len(values)} of {size} entries. "
                    "Give fill_value= for the missing ones."
                )
            fill_value = 0
        kind = self.dtype if dtype is None else lookup(dtype)
        dense = np.full(self.shape, as_fill(fill_value, kind), kind.numpy)
        dense[rows, cols] = as_type(values, kind)
        return dense

    def to_edgelist(
        self: Any, dtype: Any = None, *, values: bool = True, sort: bool = True
    ) -> tuple[Array, Array | None]:
        """Return (positions of shape (nvals, 2); values, or None without `values`), by rows."""
        rows, cols, found = self.to_coo(dtype, values=values, sort=sort)
        return np.column_stack([rows, cols]), found

    def to_dicts(self: Any, order: str = "rowwise") -> dict[int, dict[int, Any]]:
        """Return ``{row: {column: value}}`` with Python numbers, or by columns."""
        rows, cols, values = (part.tolist() for part in self.to_coo())
        nested: dict[int, dict[int, Any]] = {}
        by_rows = _by_rows(order)
        for i, j, x in zip(rows, cols, values, strict=True):
            outer, inner = (i, j) if by_rows else (j, i)
            nested.setdefault(outer, {})[inner] = x
        return nested

    def __iter__(self: Any) -> Iterator[tuple[int, int]]:
        """Yield the (row, column) of the entries, by rows."""
        rows, cols, _ = self.to_coo()
        return zip(rows.tolist(), cols.tolist(), strict=True)

    def __contains__(self: Any, where: Any) -> bool:
        """Whether there is an entry at (row, column)."""
        if not (isinstance(where, tuple) and len(where) == 2):
            raise DomainMismatch(f"in {self.name}: {where!r} is not a pair. Write (i, j) in A.")
        return self.get(*where) is not None

    # -------------------------------------------------------------------------------- changes
    def clear(self: Any) -> None:
        """Delete all entries."""
        assign(Updater(self), type(self)(self.dtype, *self.shape, like=self))

    def resize(self: Any, nrows: int, ncols: int) -> None:
        """Change the shape; entries outside of the new one are deleted."""
        new = self.reposition(0, 0, nrows=nrows, ncols=ncols).new()
        self._flushed()
        self.data, self.nrows, self.ncols = new.data, new.nrows, new.ncols

    def build(
        self: Any,
        rows: Any,
        cols: Any,
        values: Any = True,
        *,
        dup_op: Any = None,
        clear: bool = False,
    ) -> None:
        """Fill an empty matrix with (row, column, value) triplets; see `from_coo`."""
        if self.nvals and not clear:
            raise InvalidValue(f"build: {self.name} has entries. Clear it, or give clear=True.")
        size = {"nrows": self.nrows, "ncols": self.ncols}
        new = type(self).from_coo(rows, cols, values, self.dtype, dup_op=dup_op, like=self, **size)
        assign(Updater(self), new)

    def __delitem__(self: Any, where: Any) -> None:
        """Delete the entry at (row, column) if there is one."""
        if where not in self:
            return
        one = type(self).from_coo(*([i] for i in where), True, nrows=self.nrows, ncols=self.ncols,
                                  like=self)  # fmt: skip
        assign(Updater(self, ~one.S, None, True), self.dup())

    def setdiag(self: Any, values: Any, k: int = 0, *, mask: Any = None, accum: Any = None) -> None:
        """Replace diagonal `k`: ``A[i, i + k] = values[i]``.

        Parameters
        ----------
        values : scalar, Vector, or array_like
            The values, as many as the diagonal has places; where a vector has no entry the
            diagonal has none either, unless there is an accumulator.
        k : int
            The diagonal; `k` > 0 lies above the main one.
        mask : Mask of a vector, optional
            The places of the diagonal that are written.
        accum : BinaryOp, optional
            Combines old and new values.

        Raises
        ------
        DimensionMismatch
            If there are more or fewer values than places.
        """
        new = self.diag(k)
        if np.ndim(values) and not is_operand(values, 1):
            values = OUTPUTS[1].from_dense(values, like=self)
        if is_operand(values, 1) and values.size != new.size:
            raise DimensionMismatch(
                f"setdiag: {values.size} values != {new.size} places of diagonal {k}."
            )
        assign(Updater(new, mask, accum), values)
        i, x = new.to_coo()
        rest = self.select("offdiag", k).new()
        below = max(0, -integer(k, "setdiag: diagonal"))
        size = {"nrows": self.nrows, "ncols": self.ncols}
        on = type(self).from_coo(i + below, i + below + k, x, self.dtype, like=self, **size)
        assign(Updater(self), rest.ewise_add(on, "first"))

    def reposition(
        self: Any,
        row_offset: int,
        column_offset: int,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
    ) -> Call:
        """Move the entries: ``C[i + r, j + c] = A[i, j]``; one outside of `C` is left out.

        Parameters
        ----------
        row_offset, column_offset : int
            How far each entry moves down and to the right; negative numbers move the other way.
        nrows, ncols : int, optional
            Shape of the result; by default that of this matrix.
        """
        by = [integer(x, "reposition: offset") for x in (row_offset, column_offset)]
        shape = [
            n if given is None else as_size(given, "reposition")
            for given, n in zip((nrows, ncols), self.shape, strict=True)
        ]
        rows, cols, values = self.to_coo()
        rows, cols = rows + by[0], cols + by[1]
        inside = (rows >= 0) & (rows < shape[0]) & (cols >= 0) & (cols < shape[1])
        triplets = (part[inside] for part in (rows, cols, values))
        size = {"nrows": shape[0], "ncols": shape[1]}
        new = type(self).from_coo(*triplets, self.dtype, like=self, name=self.name, **size)
        call: Call = new.copying()
        return call._written_in(_getframe(1))


def _columns(edges: Iterable[Any]) -> list[Any]:
    rows = [tuple(edge) for edge in edges]
    widths = {len(row) for row in rows}
    if not widths <= {2} and not widths <= {3}:
        raise DimensionMismatch(
            "from_edgelist: the edges have different lengths, or not 2 or 3. "
            "Give pairs (i, j) or triples (i, j, x)."
        )
    return split(rows, 2)


def _expanded(majors: Any, indptr: Any, size: int | None, what: str) -> tuple[Array, int]:
    """Return the row of each entry of compressed rows, and how many rows there are."""
    majors, ptr = integer_array(majors, what), integer_array(indptr, what)
    if len(ptr) != len(majors) + 1:
        raise DimensionMismatch(f"{what}: {len(ptr)} elements of the pointer != {len(majors)} + 1.")
    counts = np.diff(ptr)
    if len(counts) and counts.min() < 0:
        raise IndexOutOfBound(f"{what}: the pointer falls. Give one that rises.")
    return np.repeat(majors, counts), extent(majors, size, f"{what}: index")


def _nonempty(
    compressed: tuple[Array, Array, Array], dtype: Any
) -> tuple[Array, Array, Array, Array]:
    ptr, idx, values = compressed
    kept = np.flatnonzero(np.diff(ptr))
    return kept, np.append(ptr[kept], ptr[-1:]), idx, as_type(values, dtype)


# ------------------------------------------------------------------------------------------
# What the transpose ``A.T`` is asked: the matrix answers with rows and columns exchanged.


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
