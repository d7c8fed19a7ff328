"""Parts of objects, ``w[I]`` and ``A[i, :]``, and views: ``A.T`` and ``f.selection()``."""

from __future__ import annotations

from collections.abc import Iterator
from sys import _getframe
from typing import Any, NoReturn

import numpy as np

from lagpu.algebra.operators import Semiring
from lagpu.algebra.tables import semiring
from lagpu.backends.protocol import Backend
from lagpu.core.arguments import (
    as_size,
    index_array,
    integer_array,
    require_distinct,
    scalar_value,
    single_index,
)
from lagpu.core.exchange import as_type
from lagpu.core.expr import (
    OUTPUTS,
    Call,
    Expression,
    Mask,
    Updater,
    as_mask,
    assign,
    is_operand,
    kind_of,
    temporary,
)
from lagpu.core.hints import ComputedForms, NoTruth, name_of, part_of
from lagpu.core.infix import (
    Arithmetic,
    MatrixOperand,
    as_column,
    as_row,
    described,
    vector_product,
)
from lagpu.core.recorder import flush, why_unreadable
from lagpu.dtypes import BOOL, DType
from lagpu.errors import DimensionMismatch, DomainMismatch, NotSupported
from lagpu.host import display
from lagpu.host.columns import distinct
from lagpu.operations import (
    Assign,
    AssignScalar,
    Counter,
    Extract,
    ExtractColumn,
    ExtractElement,
    SelectionToMatrix,
)

Array = np.ndarray[Any, Any]


class IndexExpr(Expression):
    """A part of an object, ``w[I]`` or ``A[i, :]``, to be read or written."""

    __slots__ = ("_result", "within")  # within: what it is a part of, if that cannot be written

    @property
    def value(self) -> Any:
        """One entry as a Python number, or None."""
        found = self._computed()
        if found.ndim:
            raise DomainMismatch(f"{self!r}: is a vector, not one entry. Use .new().")
        return found.value

    def _to(self) -> tuple[Any, Any]:
        """Return (the object, the indices), for an assignment."""
        raise NotImplementedError

    def _written(self) -> tuple[Any, Any]:
        """Return what `_to` returns, or refuse a part of an expression, whose result is lost."""
        within = getattr(self, "within", None)
        if within is not None:
            self.refuse(
                f"{name_of(within)} cannot be written to, nor can its parts",
                "Write to a part of a vector or a matrix, as in A[J, I] << B.T.",
            )
        return self._to()

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        found: DType = self._to()[0].dtype
        return found

    def __call__(
        self, *given: Any, mask: Any = None, accum: Any = None, replace: bool = False
    ) -> Updater:
        """Return the updater of ``w[I](mask, accum=op) << call``; the mask is for the part."""
        out, indices = self._written()
        mask, accum, replace = described(out, given, mask, accum, replace)
        if mask is not None:
            mask = whole_mask(self, as_mask(out, mask))
        return Updater(out, mask, accum, replace, indices)

    def update(self, value: Any) -> None:
        """Do what ``<<`` does."""
        out, indices = self._written()
        assign(Updater(out, indices=indices), value)

    __lshift__ = update


class VectorIndex(IndexExpr):
    """A part ``w[I]``: read it with ``.new()`` or ``w[i].value``, write it with ``w[I] << x``."""

    __slots__ = ("indices", "vector")
    _hint = "Use w[i].value, w.get(i) or w[I].new()."

    def __init__(self, vector: Any, indices: Any) -> None:
        self.vector = vector
        every = slice(None) if indices is Ellipsis else indices
        self.indices = _checked(vector, every, vector.size, vector.name)

    def _to(self) -> tuple[Any, Any]:
        return self.vector, self.indices

    def __repr__(self) -> str:
        return f"{name_of(self.vector)}[{_format_index(self.indices)}]"

    def _repr_html_(self) -> str:
        return display.part_html(self, self.vector)

    def call(self) -> Call:
        """Return the deferred extraction: of a scalar for one index, else of a vector."""
        u = self.vector
        _require_indices(u, self.indices)
        if not isinstance(self.indices, slice) and np.ndim(self.indices) == 0:
            i = single_index(self.indices, u.size, u.name)
            return Call(ExtractElement(u.data, (i,)), (u,), u.dtype, (), (u, f"[{i}]"))
        where = index_array(self.indices, u.size, u.name)
        indices, size = (None, u.size) if where is None else ((where,), len(where))
        return Call(Extract(u.data, indices), (u,), u.dtype, (size,), (u, "[I]"))


class MatrixIndex(IndexExpr):
    """A part of a matrix: ``A[i, :]``, ``A[:, j]``, ``A[I, J]`` or ``A[i, j]``.

    Read it with ``w << ...``, ``.new()`` or ``.value``; write it with ``A[I, J] << x``.
    """

    __slots__ = ("matrix", "where")
    _hint = "Use A[i, j].value, A.get(i, j) or A[i, :].new()."

    def __init__(self, A: Any, where: Any) -> None:
        self.matrix = A
        row, col = (slice(None), slice(None)) if where is Ellipsis else _two(A, where)
        self.where = (
            _checked(A, row, A.nrows, f"{A.name} row"),
            _checked(A, col, A.ncols, f"{A.name} column"),
        )

    def _to(self) -> tuple[Any, Any]:
        return self.matrix, self.where

    def __repr__(self) -> str:
        return f"{name_of(self.matrix)}[{', '.join(map(_format_index, self.where))}]"

    def _repr_html_(self) -> str:
        return display.part_html(self, self.matrix)

    def call(self) -> Call:
        """Return the deferred extraction of a row, a column, a submatrix or one entry."""
        A = self.matrix
        row, col = _two(A, self.where)
        if _is_one(row) and _is_one(col):
            i = single_index(row, A.nrows, f"{A.name} row")
            j = single_index(col, A.ncols, f"{A.name} column")
            return Call(ExtractElement(A.data, (i, j)), (A,), A.dtype, (), (A, f"[{i}, {j}]"))
        if _is_all(row) and _is_one(col):
            j = single_index(col, A.ncols, f"{A.name} column")
            column, size, formula = ExtractColumn(A.data, j), A.nrows, f"[:, {j}]"
        elif _is_one(row) and _is_all(col):
            i = single_index(row, A.nrows, f"{A.name} row")
            column, size, formula = ExtractColumn(A.data, i, True), A.ncols, f"[{i}, :]"
        elif _is_one(row) or _is_one(col):
            part = temporary(A[[row], col].call() if _is_one(row) else A[row, [col]].call())
            call: Call = (part[0, :] if _is_one(row) else part[:, 0]).call()
            call.formula = (A, f"[{row}, J]" if _is_one(row) else f"[I, {col}]")
            return call
        else:
            rows, cols = _index_lists(A, self.where)
            shape = (
                A.nrows if rows is None else len(rows),
                A.ncols if cols is None else len(cols),
            )
            return Call(Extract(A.data, (rows, cols)), (A,), A.dtype, shape, (A, "[I, J]"))
        return Call(column, (A,), A.dtype, (size,), (A, formula))


def _format_index(index: Any) -> str:
    """Return an index as Python text."""
    if isinstance(index, slice):
        ends = ("" if x is None else str(x) for x in (index.start, index.stop))
        return ":".join(ends) + ("" if index.step is None else f":{index.step}")
    if isinstance(index, NoTruth):
        return name_of(index)
    if np.ndim(index) == 0:
        return repr(index)
    return "I" if len(index) > 8 else repr(np.asarray(index).tolist())


def _checked(x: Any, index: Any, size: int, what: str) -> Any:
    """Return an index of one dimension, after refusing what can never be one, where it is written.

    Lists become integer arrays. Whether all of a list lie inside is looked at when it is used.
    """
    if type(index) is int:
        return single_index(index, size, what)
    if isinstance(index, slice):
        if index != slice(None):
            index_array(slice(index.start, index.stop, index.step), size, what)
        return index
    _require_indices(x, index)
    if type(index) is list or np.ndim(index):
        return integer_array(index, what)
    return single_index(index, size, what)


def _require_indices(w: Any, indices: Any) -> None:
    """Raise `DomainMismatch` for ``...``, a mask or a vector, which are not indices in lagpu."""
    if indices is not Ellipsis and not isinstance(indices, NoTruth):
        return
    name = name_of(w)
    if indices is Ellipsis:
        every = "[:]" if w.ndim == 1 else "[:, :]"
        raise DomainMismatch(f"{name}[...]: is not an index. Write {name}{every}, or {name} << x.")
    if isinstance(indices, Mask):
        there = f"Write {name}({indices!r}) << x to write there."
        fits = indices.vector.shape == w.shape
        raise DomainMismatch(
            f"{name}[{indices!r}]: a mask is not an index. {there if fits else 'Give integers.'}"
        )
    if is_operand(indices, 1) and w.ndim == 2:
        u = name_of(indices)
        raise DomainMismatch(
            f"{name}[{u}]: a vector is not an index. Write {u}.to_coo()[0] for its indices, "
            f"{u}.to_coo()[1] for its values."
        )
    if is_operand(indices, 1):
        u = name_of(indices)
        raise DomainMismatch(
            f"{name}[{u}]: a vector is not an index. Write {name}({u}.S) << x to write where {u} "
            f"has entries, {name}[{u}.to_coo()[0]] for its indices, {name}[{u}.to_coo()[1]] for "
            "its values."
        )


def _two(A: Any, where: Any) -> tuple[Any, Any]:
    if not (isinstance(where, tuple) and len(where) == 2):
        _require_indices(A, where)
        shown = ", ".join(map(_format_index, where if isinstance(where, tuple) else (where,)))
        name = name_of(A)
        raise DimensionMismatch(
            f"{name}[{shown}]: a matrix has two indices. Write {name}[i, :] for a row, "
            f"{name}[:, j] for a column, {name}[i, j] for an entry."
        )
    return where


def _index_lists(A: Any, where: Any) -> tuple[Any, Any]:
    """Return rows and columns of ``A[I, J]`` as INT64 arrays, or None for all of them."""
    sizes = zip(_two(A, where), A.shape, ("row", "column"), strict=True)
    rows, cols = (_index_list(index, size, f"{A.name} {what}") for index, size, what in sizes)
    return rows, cols


def _index_list(index: Any, size: int, what: str) -> Any:
    if _is_one(index):
        return np.array([single_index(index, size, what)])
    return index_array(index, size, what)


def _is_one(index: Any) -> bool:
    return not isinstance(index, slice) and np.ndim(index) == 0


def _is_all(index: Any) -> bool:
    return isinstance(index, slice) and index == slice(None)


def whole_mask(part: IndexExpr, mask: Mask) -> Mask:
    """Return the mask of a whole object that keeps in a part what `mask` keeps, and all outside."""
    out, indices = part._to()
    whole = type(out)(BOOL, *out.shape, like=out)
    whole << True
    whole[indices] << mask.new()
    return Mask(whole, True)


def vector_assignment(out: Any, value: Any, indices: Any) -> Call:
    """Return the call that assigns the right side of ``<<`` to a vector, or to a part of it."""
    if indices is None and type(value) is type(out):  # assignments in loops: the fast path
        return Call(Assign(value.data), (value,), value.dtype, value.shape, (value,))
    if indices is None and (type(value) is int or type(value) is Counter):
        return _number_assignment(out, value, None)
    value = _right_side(out, value)
    where = None if indices is None else _index_list(_some(out, indices), out.size, out.name)
    if isinstance(value, Call):
        if where is None and value.shape:
            return value
        value = temporary(value)
    if getattr(value, "ndim", 0) == 0:
        return _number_assignment(out, value, None if where is None else (where,))
    if not is_operand(value, 1):
        raise DomainMismatch(
            f"{out.name} << {kind_of(value)}: is neither a vector nor a number. "
            "Make a vector with Vector.from_dense or from_coo."
        )
    if where is not None and value.size != len(where):
        raise DimensionMismatch(f"assign: {value.name}.size {value.size} != {len(where)} indices.")
    require_distinct(where, "assign")
    operation = Assign(value.data, None if where is None else (where,))
    return Call(operation, (value,), value.dtype, value.shape, (value,))


def _right_side(out: Any, value: Any) -> Any:
    """Return what is assigned as an object, a call or a number."""
    if isinstance(value, Expression):
        return value.call()
    if isinstance(value, Mask):
        value.refuse("is not a result")
    return _from_array(value, out) if isinstance(value, (list, tuple, np.ndarray)) else value


def _some(out: Any, indices: Any) -> Any:
    """Return the indices of a part of a vector, where ``...`` is all of it."""
    if indices is Ellipsis:
        return slice(None)
    _require_indices(out, indices)
    return indices


def _number_assignment(out: Any, value: Any, lists: tuple[Any, ...] | None) -> Call:
    """Return the call that assigns a number; an index given twice counts once."""
    number = scalar_value(value, out.dtype, out.name)
    where = None
    if lists is not None and any(x is not None for x in lists):
        where = tuple(None if x is None else distinct(x) for x in lists)
    shown = value if type(value) is Counter else number
    return Call(AssignScalar(number, where), (out,), out.dtype, out.shape, (shown,))


def matrix_assignment(out: Any, value: Any, indices: Any) -> Call:
    """Return the call that assigns the right side of ``<<`` to a matrix, or to a part of it."""
    value = _right_side(out, value)
    if indices is Ellipsis:
        indices = (slice(None), slice(None))
    rows, cols = (None, None) if indices is None else _index_lists(out, indices)
    if isinstance(value, Call):
        if indices is None and len(value.shape) == 2:
            return value
        if indices is None and value.shape:
            value._mark_used()
            raise _not_a_row(out, value)
        value = temporary(value)
    if is_operand(value, 1):
        value = _one_row_or_column(out, value, indices)
    if getattr(value, "ndim", 0) == 0 and not isinstance(value, str):
        return _number_assignment(out, value, (rows, cols))
    if not is_operand(value, 2):
        raise DomainMismatch(
            f"{out.name} << {type(value).__name__}: is not a matrix. Use Matrix.from_coo."
        )
    if indices is None:
        call: Call = value.copying()
        return call
    m = out.nrows if rows is None else len(rows)
    n = out.ncols if cols is None else len(cols)
    if value.shape != (m, n):
        raise DimensionMismatch(
            f"assign: {value.name} has shape {value.shape} != {(m, n)} of the indices."
        )
    require_distinct(rows, "assign")
    require_distinct(cols, "assign")
    stored = value.stored
    operation = Assign(stored.data, (rows, cols), value is not stored)
    return Call(operation, (stored,), value.dtype, value.shape, (value,))


def _from_array(array: Any, like: Any) -> Any:
    """Return a list or an array of numbers as a vector or a matrix where `like` lives."""
    dense = np.asarray(array)
    if dense.ndim == 0:
        return dense[()]
    if dense.ndim > 2:
        raise DimensionMismatch(f"{like.name} << array: it is {dense.ndim}-D. Give 1-D or 2-D.")
    return OUTPUTS[dense.ndim].from_dense(dense, like=like)


def _one_row_or_column(out: Any, v: Any, indices: Any) -> Any:
    """Return a vector as the matrix of the one row or column that `indices` name."""
    row, col = (None, None) if indices is None else _two(out, indices)
    if indices is not None and _is_one(row) and not _is_one(col):
        return as_row(v)
    if indices is not None and _is_one(col) and not _is_one(row):
        return as_column(v)
    raise _not_a_row(out, v)


def _not_a_row(out: Any, value: Any) -> DimensionMismatch:
    me = name_of(out)
    return DimensionMismatch(
        f"{out.name} << {value!r}: {value.shape} is not the shape of a matrix. "
        f"Write {me}[i, :] << v for a row, {me}[:, j] << v for a column."
    )


# ------------------------------------------------------------------------------------------
# Views that are read as matrices: the transpose ``A.T``, and the selection ``f.selection()``.


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
    return vector_product(self, u, semiring.lookup(op), False, _getframe(1), kernel, policy)


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

    `f` has row numbers, of an integer type; a value outside ``0 .. nrows-1`` selects nothing: its
    column is empty. `nrows` is by default the size of `f`. A product reads `f` as it is when the
    statement runs; nothing is stored. ``u @ P`` is a gather, ``w[j] = u[f[j]]``; ``P @ u`` a
    scatter, where w[i] is the sum over all j with ``f[j] = i``.
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
