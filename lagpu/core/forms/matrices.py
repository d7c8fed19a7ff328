"""What a `Matrix` is made from and what it becomes, beyond triplets and compressed arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import _getframe
from typing import Any, Self

import numpy as np

from lagpu.core.arguments import as_fill, as_size, integer, integer_array, is_present, scalar_dtype
from lagpu.core.compressed import extent
from lagpu.core.expr import OUTPUTS, Call, Updater, assign, is_operand
from lagpu.core.forms.vectors import as_type, filled, split
from lagpu.dtypes import INT64, lookup
from lagpu.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound, InvalidValue

__all__ = ["MatrixForms"]

Array = np.ndarray[Any, Any]


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
