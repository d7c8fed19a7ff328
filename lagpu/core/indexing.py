"""Indexing: ``w[I]``, ``A[i, :]``, ``A[i, j]``, and what may stand right of ``<<``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lagpu.backends.protocol import Counter
from lagpu.core.arguments import index_array, require_distinct, scalar_value, single_index
from lagpu.core.distinct import distinct
from lagpu.core.expr import Call, Mask, Updater, assign, is_operand, unfit
from lagpu.core.hints import Deferred, NoTruth, spoken
from lagpu.core.matmul import MatMul
from lagpu.errors import DimensionMismatch, DomainMismatch, NotSupported
from lagpu.host import display

if TYPE_CHECKING:
    from lagpu.core.matrix import Matrix
    from lagpu.core.vector import Vector

__all__ = ["IndexExpr", "MatrixIndex", "VectorIndex", "assignment", "index_lists"]


class IndexExpr(Deferred):
    """``w[I]`` or ``A[i, :]``: part of an object, to be read or written."""

    __slots__ = ()

    def call(self) -> Call:
        """Return the deferred extraction."""
        raise NotImplementedError

    def new(self, dtype: Any = None, *, mask: Mask | None = None, name: str | None = None) -> Any:
        """Return the part as a new vector, or one entry as a `Scalar`."""
        return self.call().new(dtype, mask=mask, name=name)

    @property
    def value(self) -> Any:
        """One entry as a Python number, or None."""
        call = self.call()
        if call.shape:
            raise DomainMismatch(f"{self!r}: is a vector, not one entry. Use .new().")
        return call.new().value

    def _instead(self, sign: str, other: Any, reflected: bool) -> str:
        if sign[-1] == "=" and sign[:-1] in ("+", "-", "*", "&", "|"):
            return ""
        pair = f"{spoken(other)} {sign} {self!r}.value" if reflected else f"{self!r}.value {sign} "
        return f"For one entry, write {pair}{'' if reflected else spoken(other)}."

    def __int__(self) -> int:
        self.refuse("is no number", f"For one entry, write {self!r}.value.")

    __index__ = __float__ = __int__


class VectorIndex(IndexExpr):
    """``w[I]``: read it with ``.new()`` or ``w[i].value``, write it with ``w[I] << x``."""

    __slots__ = ("indices", "vector")
    _hint = "Use w[i].value, w.get(i) or w[I].new()."

    def __init__(self, vector: Vector, indices: Any) -> None:
        self.vector = vector
        self.indices = indices

    def __repr__(self) -> str:
        return f"{spoken(self.vector)}[{_shown(self.indices)}]"

    def _repr_html_(self) -> str:
        return display.part_html(self, self.vector)

    def call(self) -> Call:
        """Return the deferred extraction: of a scalar for one index, else of a vector."""
        u = self.vector
        _require_indices(u, self.indices)
        if not isinstance(self.indices, slice) and np.ndim(self.indices) == 0:
            i = single_index(self.indices, u.size, u.name)
            return Call("vector_get", (u,), (u.data, i), u.dtype, (), (u, f"[{i}]"))
        where = index_array(self.indices, u.size, u.name)
        size = u.size if where is None else len(where)
        return Call("extract", (u,), (u.data, where), u.dtype, (size,), (u, "[I]"))

    def __lshift__(self, value: Any) -> None:
        assign(Updater(self.vector, indices=self.indices), value)

    def update(self, value: Any) -> None:
        """Do what ``<<`` does."""
        self << value


class MatrixIndex(IndexExpr):
    """``A[i, :]``, ``A[:, j]``, ``A[I, J]`` or ``A[i, j]``: part of a matrix.

    Read it with ``w << ...``, ``.new()`` or ``.value``; write it with ``A[I, J] << x``.
    """

    __slots__ = ("matrix", "where")
    _hint = "Use A[i, j].value, A.get(i, j) or A[i, :].new()."

    def __init__(self, A: Matrix, where: Any) -> None:
        self.matrix = A
        self.where = where

    def __repr__(self) -> str:
        two = self.where if isinstance(self.where, tuple) else (self.where,)
        return f"{spoken(self.matrix)}[{', '.join(_shown(index) for index in two)}]"

    def _repr_html_(self) -> str:
        return display.part_html(self, self.matrix)

    def __lshift__(self, value: Any) -> None:
        assign(Updater(self.matrix, indices=self.where), value)

    def call(self) -> Call:
        """Return the deferred extraction of a row, a column, a submatrix or one entry."""
        A = self.matrix
        row, col = _two(A, self.where)
        if _is_one(row) and _is_one(col):
            i = single_index(row, A.nrows, f"{A.name} row")
            j = single_index(col, A.ncols, f"{A.name} column")
            return Call("matrix_get", (A,), (A.data, i, j), A.dtype, (), (A, f"[{i}, {j}]"))
        if _is_all(row) and _is_one(col):
            j = single_index(col, A.ncols, f"{A.name} column")
            args, size, formula = (A.data, j, False), A.nrows, f"[:, {j}]"
        elif _is_one(row) and _is_all(col):
            i = single_index(row, A.nrows, f"{A.name} row")
            args, size, formula = (A.data, i, True), A.ncols, f"[{i}, :]"
        elif _is_one(row) or _is_one(col):
            raise NotSupported(
                f"{A.name}[{row}, {col}]: part of a row or column. "
                "Write lists for a matrix, as in A[[i], J], or take the whole row first."
            )
        else:
            rows, cols = index_lists(A, self.where)
            shape = (
                A.nrows if rows is None else len(rows),
                A.ncols if cols is None else len(cols),
            )
            args = (A.data, rows, cols)
            return Call("matrix_extract", (A,), args, A.dtype, shape, (A, "[I, J]"))
        return Call("extract_column", (A,), args, A.dtype, (size,), (A, formula))


def _shown(index: Any) -> str:
    """Return an index as one writes it."""
    if isinstance(index, slice):
        ends = ("" if x is None else str(x) for x in (index.start, index.stop))
        return ":".join(ends) + ("" if index.step is None else f":{index.step}")
    if isinstance(index, NoTruth):
        return spoken(index)
    many = isinstance(index, (list, tuple, np.ndarray)) and len(index) > 8
    return "I" if many else "..." if index is Ellipsis else repr(index)


def _require_indices(w: Vector, indices: Any) -> None:
    """Raise DomainMismatch for what looks like a choice of indices elsewhere, and is none here."""
    if indices is not Ellipsis and not isinstance(indices, NoTruth):
        return
    name = spoken(w)
    if indices is Ellipsis:
        raise DomainMismatch(f"{w.name}[...]: is not an index. Write {name}[:], or {name} << x.")
    if isinstance(indices, Mask):
        raise DomainMismatch(
            f"{w.name}[{indices!r}]: a mask is no index. Write {name}({indices!r}) << x to write "
            "there."
        )
    if is_operand(indices, 1):
        u = spoken(indices)
        raise DomainMismatch(
            f"{w.name}[{u}]: a vector is no index. Write {name}({u}.S) << x to write where {u} has "
            f"entries, {name}[{u}.to_coo()[0]] for its indices, {name}[{u}.to_coo()[1]] for its "
            "values."
        )


def _two(A: Matrix, where: Any) -> tuple[Any, Any]:
    if not (isinstance(where, tuple) and len(where) == 2):
        raise DimensionMismatch(f"{A.name}[{where!r}]: a matrix has two indices.")
    return where


def index_lists(A: Matrix, where: Any) -> tuple[Any, Any]:
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


def assignment(out: Vector, value: Any, indices: Any) -> Call:
    """Return the call that assigns `value` to ``out[indices]``, or to all of `out` for None.

    Parameters
    ----------
    out : Vector
        The output.
    value : scalar, Vector, Call or IndexExpr
        What stands right of ``<<``.
    indices : int, slice, array_like of int, or None
        Where it goes.
    """
    if indices is None and type(value) is type(out):  # what loops assign, at once
        return Call("assign", (value,), (value.data, None), value.dtype, value.shape, (value,))
    if indices is None and (type(value) is int or type(value) is Counter):
        number = scalar_value(value, out.dtype, out.name)
        shown = number if type(value) is int else value  # a recorder looks for the counter
        return Call("assign_scalar", (out,), (number, None), out.dtype, out.shape, (shown,))
    if isinstance(value, IndexExpr):
        value = value.call()
    if isinstance(value, (MatMul, Mask)):
        value.refuse("is not a result")
    if indices is not None:
        _require_indices(out, indices)
    if indices is None:
        where = None
    elif _is_one(indices):
        where = np.array([single_index(indices, out.size, out.name)])
    else:
        where = index_array(indices, out.size, out.name)
    if isinstance(value, Call):
        if where is None and value.shape:
            return value
        value = value.new()
    if type(value) is list or type(value) is tuple:
        kind = type(value).__name__
        raise DomainMismatch(
            f"{out.name} << {kind}: a {kind} is not a number. Write {spoken(out)} << "
            "Vector.from_dense(x, like=w)."
        )
    if getattr(value, "ndim", 0) == 0:
        number = scalar_value(value, out.dtype, out.name)
        if where is not None:  # the same value twice is that value once, also with an accumulator
            where = distinct(where)
        shown = value if type(value) is Counter else number
        return Call("assign_scalar", (out,), (number, where), out.dtype, out.shape, (shown,))
    if not is_operand(value, 1):
        raise DomainMismatch(
            f"{out.name} << {unfit(value)}: is neither vector nor number. "
            "Make a vector with Vector.from_dense or from_coo."
        )
    if where is not None and value.size != len(where):
        raise DimensionMismatch(f"assign: {value.name}.size {value.size} != {len(where)} indices.")
    require_distinct(where, "assign")
    return Call("assign", (value,), (value.data, where), value.dtype, value.shape, (value,))
