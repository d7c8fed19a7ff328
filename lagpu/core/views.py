"""Parts of objects, ``w[I]`` and ``A[i, :]``, and views: ``A.T`` and ``f.selection()``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from sys import _getframe
from typing import Any, NoReturn

import numpy as np

from lagpu import operations as ops
from lagpu.algebra.tables import binary
from lagpu.core import arguments, expr
from lagpu.core.expr import OUTPUTS, Call, Expression, Mask, Updater
from lagpu.core.hints import ComputedForms, NoTruth, is_operand, name_of, part_of
from lagpu.core.infix import Arithmetic, MatrixOperand, as_column, described, made
from lagpu.core.recorder import current_recorder, flush, why_unreadable
from lagpu.dtypes import BOOL, Array, DType, as_array
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue, NotComputed
from lagpu.host import display
from lagpu.host.columns import all_distinct, distinct


class IndexExpr(Expression):
    """A part of an object, ``w[I]`` or ``A[i, :]``, to be read or written."""

    # of: the object; within: what it is a part of, if that cannot be written
    __slots__ = ("_result", "indices", "of", "within")

    def __init__(self, of: Any, indices: Any) -> None:
        self.of = of
        checked = tuple(_checked(of, *each) for each in _each(of, indices))
        self.indices = checked[0] if of.ndim == 1 else checked

    @property
    def value(self) -> Any:
        """One entry as a Python number, or None."""
        if self.ndim:
            raise NotComputed(f"{self!r}: is a vector, not one entry. Use .new().")
        return self._computed().value

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        return self.of.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions: 0 for one entry."""
        return sum(not _is_one(index) for index, _, _ in _each(self.of, self.indices))

    def __repr__(self) -> str:
        indices = self.indices if self.of.ndim == 2 else (self.indices,)
        return f"{name_of(self.of)}[{', '.join(map(_format_index, indices))}]"

    def call(self) -> Call:
        """Return the deferred extraction of one entry, a row, a column or a smaller object."""
        x, indices = self.of, self.indices
        each = list(_each(x, indices))
        single = [_is_one(index) for index, _, _ in each]
        if all(single):
            place: Any = tuple(np.int64(arguments.single_index(*one)) for one in each)
            formula = (x, f"[{', '.join(map(str, place))}]")
            return Call(ops.ExtractElement(x.data, place), (x,), x.dtype, (), formula)
        if any(single):
            return _row_or_column(x, *indices)
        lists = _index_lists(x, indices)
        formula = x, "[I]" if x.ndim == 1 else "[I, J]"
        return Call(ops.Extract(x.data, lists), (x,), x.dtype, _shape_of_part(x, lists), formula)

    def new(
        self, dtype: Any = None, *, mask: Any = None, input_mask: Any = None,
        name: str | None = None, is_cscalar: bool | None = None,
    ) -> Any:  # fmt: skip
        """Return the part as a new object; see `Call.new`. `input_mask` is for the whole object."""
        if input_mask is not None:
            mask = self.masked(input_mask, mask)
        return self.call().new(dtype, mask=mask, name=name)

    def masked(self, input_mask: Any, mask: Any = None) -> Mask:
        """Return the mask of this part, of a mask of the whole object or of its row or column."""
        x, where = self.of, self.indices
        if mask is not None:
            raise DomainMismatch(f"{self!r}: takes one of mask= and input_mask=, not both.")
        given = expr.as_mask(x, input_mask)
        single = [_is_one(index) for index, _, _ in _each(x, where)]
        if all(single):
            raise InvalidValue(f"{self!r}: is one entry, which takes no input_mask=. Leave it out.")
        shape = x.shape
        if given.vector.ndim < x.ndim:
            if not any(single):
                raise DomainMismatch(
                    f"{self!r}: the input_mask {given!r} is of a vector. Give one of a matrix."
                )
            k = int(single[0])
            where, shape = where[k], (shape[k],)
        if given.vector.shape != shape:
            raise (DimensionMismatch if given.vector.ndim == len(shape) else DomainMismatch)(
                f"{self!r}: the input_mask {given!r} has shape {given.vector.shape} != {shape}."
            )
        return Mask(given.new()[where].new(), True)

    def _inplace(self, sign: str, other: Any) -> Any:
        return self._infix(sign, other)  # Python then assigns it, as in w[0] += 1

    def _updater(self, mask: Any = None, accum: Any = None, replace: bool = False) -> Updater:
        """Return the updater of this part; one of an expression, whose result is lost, refuses."""
        within = getattr(self, "within", None)
        if within is not None:
            self.refuse(
                f"{name_of(within)} cannot be written to, nor can its parts",
                "Write to a part of a vector or a matrix, as in A[J, I] << B.T.",
            )
        if mask is not None:
            if not self.ndim:
                raise DomainMismatch(f"{self!r}: is one entry, which takes no mask. Leave it out.")
            # The mask of the whole object keeps all outside of this part.
            whole = type(self.of)(BOOL, *self.of.shape, like=self.of)
            whole << True
            whole[self.indices] << expr.as_mask(self.of, mask).new()
            mask = Mask(whole, True)
        return Updater(self.of, mask, accum, replace, self.indices)

    def __call__(
        self, *given: Any, mask: Any = None, accum: Any = None, replace: bool = False
    ) -> Updater:
        """Return the updater of ``w[I](mask, accum=op) << call``; the mask is for the part."""
        return self._updater(*described(self.of, given, mask, accum, replace))

    def update(self, value: Any) -> None:
        """Do what ``<<`` does."""
        expr.assign(self._updater(), value)

    __lshift__ = update


class MaskedInput:
    """An output that waits for a part of an object whose mask is given: ``w(input_mask=m)``."""

    def __init__(self, mask: Any, *options: Any) -> None:
        self.mask, self.options = expr.as_mask(options[0], mask), options

    def update(self, part: Any) -> None:
        """Write ``w(mask) << u[I]`` where the mask is the part `I` of that of `u`."""
        out, *options = self.options
        if not isinstance(part, IndexExpr):
            raise DomainMismatch(
                f"{name_of(out)}(input_mask=...): {expr.kind_of(part)} is no part of an object. "
                f"Write {name_of(out)}(mask) << x."
            )
        expr.assign(Updater(out, part.masked(self.mask), *options), part)

    __lshift__ = update


class VectorIndex(IndexExpr):
    """A part ``w[I]``: read it with ``.new()`` or ``w[i].value``, write it with ``w[I] << x``."""

    __slots__ = ()
    _hint = "Use w[i].value, w.get(i) or w[I].new()."


class Gather(VectorIndex):
    """The values of a vector at the indices that are the values of another: ``u[p]``.

    It has the size of `p`, and an entry where `p` has one and `u` has one at that index.
    """

    __slots__ = ()
    indices: Any
    ndim = 1

    def __init__(self, of: Any, indices: Any) -> None:
        self.of, self.indices = of, indices

    def __repr__(self) -> str:
        return f"{name_of(self.of)}[{name_of(self.indices)}]"

    def call(self) -> Call:
        """Return the deferred gather; before it, statements that raise for an index outside."""
        u, first = self.of, binary.first
        p: Any = self.indices
        ends = [p.reduce(op).new() for op in ("min", "max")]
        least, most = (x.ewise_add(0, first).new() for x in ends)  # 0 if p is empty
        inside = least.select("valuege", 0), most.select("valuelt", u.size)
        both = inside[0].new().ewise_mult(inside[1].new(), first).new()

        def now(_: ops.ScalarValue) -> Any:
            if both.data.get() is None:
                i = next(x for x in (e.data.get() for e in ends) if not 0 <= x < u.size)
                raise arguments.outside(f"{u.name}[{p.name}]: index", int(i), u.size)
            return both.data.get()

        checked = ops.ScalarRef(both.data, both.dtype, repr(self), now)
        expr.constant(checked, both.dtype).new()
        gathered: Call = p.selection(nrows=u.size).T.mxv(u, "any_second")
        return gathered._written_in(_getframe(1), (u, "[", p, "]"))

    def _refused(self, *_: Any) -> NoReturn:
        _require_indices(self.of, self.indices)  # it raises: at a vector one only reads
        raise AssertionError

    masked: Any = _refused
    _updater: Any = _refused


class MatrixIndex(IndexExpr):
    """A part of a matrix: ``A[i, :]``, ``A[:, j]``, ``A[I, J]`` or ``A[i, j]``.

    Read it with ``w << ...``, ``.new()`` or ``.value``; write it with ``A[I, J] << x``.
    """

    __slots__ = ()
    _hint = "Use A[i, j].value, A.get(i, j) or A[i, :].new()."


class TransposedIndex(MatrixIndex):
    """A row, a column or an entry of ``A.T``: one of the matrix, but for its input mask."""

    __slots__ = ()

    def masked(self, input_mask: Any, mask: Any = None) -> Mask:
        """Return the mask of this part; see `IndexExpr.masked`."""
        given = expr.as_mask(self.of, input_mask)
        if given.vector.ndim == 2:
            given = Mask(given.new().T.new(), True)
        return super().masked(given, mask)


def _row_or_column(A: Any, row: Any, col: Any) -> Call:
    is_row = _is_one(row)
    rest = col if is_row else row
    if not (isinstance(rest, slice) and rest == slice(None)):
        part = (A[[row], col].call() if is_row else A[row, [col]].call()).new()
        call: Call = (part[0, :] if is_row else part[:, 0]).call()
        return call._written_in(None, (A, f"[{row}, J]" if is_row else f"[I, {col}]"))
    index, size, what = list(_each(A, (row, col)))[0 if is_row else 1]
    k = arguments.single_index(index, size, what)
    formula = (A, f"[{k}, :]" if is_row else f"[:, {k}]")
    return Call(ops.ExtractColumn(A.data, k, is_row), (A,), A.dtype, (A.shape[is_row],), formula)


def _each(x: Any, indices: Any) -> Iterable[tuple[Any, int, str]]:
    """Return the index, the size and the name of each dimension; ``...`` is all of an object."""
    if indices is Ellipsis:
        indices = slice(None) if x.ndim == 1 else (slice(None), slice(None))
    if x.ndim == 1:
        _require_indices(x, indices)
        return [(indices, x.size, x.name)]
    return zip(_two(x, indices), x.shape, (f"{x.name} row", f"{x.name} column"), strict=True)


def _format_index(index: Any) -> str:
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

    Lists and arrays become integer arrays of the part's own, which is read later than it is
    written. Whether all of a list lie inside is looked at when it is used.
    """
    if type(index) is int:
        return arguments.single_index(index, size, what)
    if isinstance(index, slice):
        if index != slice(None):
            arguments.index_array(slice(index.start, index.stop, index.step), size, what)
        return index
    _require_indices(x, index)
    if type(index) is list or np.ndim(index):
        return arguments.integer_array(index, what).copy()
    return arguments.single_index(index, size, what)


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
    if is_operand(indices, 1):
        u = name_of(indices)
        to_write = f"{u}.to_coo()[0] for its indices, {u}.to_coo()[1] for its values"
        if w.ndim == 1:
            to_write = (
                f"{name}({u}.S) << x to write where {u} has entries, {name}(binary.second) << "
                f"semiring.any_second({u}.selection({w.size}) @ x) to write at its values"
            )
        raise DomainMismatch(f"{name}[{u}]: a vector is not an index. Write {to_write}.")


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


def _index_lists(x: Any, indices: Any) -> Any:
    """Return an INT64 array for each dimension, or None for all; None alone for all of a vector."""
    lists = tuple(
        np.array([arguments.single_index(*each)])
        if _is_one(each[0])
        else arguments.index_array(*each)
        for each in _each(x, indices)
    )
    return None if x.ndim == 1 and lists[0] is None else lists


def _shape_of_part(x: Any, lists: Any) -> tuple[int, ...]:
    if lists is None:
        return x.shape
    return tuple(n if i is None else len(i) for n, i in zip(x.shape, lists, strict=True))


def _is_one(index: Any) -> bool:
    return not isinstance(index, slice) and np.ndim(index) == 0


_NUMBERS = frozenset((int, float, ops.Counter))


def assignment(out: Any, value: Any, indices: Any) -> Call:
    """Return the call that assigns the right side of ``<<`` to an object, or to a part of it."""
    if indices is None and type(value) is type(out):  # assignments in loops: the fast path
        whole = ops.new(ops.Assign, (value.data, None, False))
        return Call(whole, (value,), value.dtype, value.shape, (value,))
    if indices is None and type(value) in _NUMBERS:
        return _number_assignment(out, value, None)
    if listed := isinstance(value, (list, tuple, np.ndarray)):
        value = _from_array(value, out, indices)
    elif isinstance(value, Expression):
        value = value.call()
    elif isinstance(value, Mask):
        value.refuse("is not a result")
    lists = None if indices is None else _index_lists(out, indices)
    if isinstance(value, Call):
        if indices is None and len(value.shape) >= out.ndim:
            return value
        if indices is None and value.shape:
            value._mark_used()
            raise _not_a_row(out, value)
        value = value._computed()
    if is_operand(value, 1) and out.ndim == 2:
        of_one = [] if indices is None else [_is_one(index) for index in _two(out, indices)]
        if of_one.count(True) != 1:
            raise _not_a_row(out, value)
        value = as_column(value).T.new() if of_one[0] else as_column(value)
    if getattr(value, "ndim", 0) == 0:
        return _number_assignment(out, value, lists, indices is not None)
    if not is_operand(value, out.ndim):
        kind = OUTPUTS[out.ndim].__name__
        raise DomainMismatch(
            f"{out.name} << {expr.kind_of(value)}: is neither a {kind.lower()} nor a number. "
            f"Make a {kind.lower()} with {kind}.from_dense or from_coo."
        )
    if indices is None and out.ndim == 2:
        return value.copying()
    shape = _shape_of_part(out, lists)
    if indices is not None and value.shape != shape:
        part = IndexExpr(out, indices).ndim
        fact = f"{value.name} has shape {value.shape} != {shape} of the indices"
        if out.ndim == 1:
            fact = f"{value.name}.size {value.size} != {shape[0]} indices"
        kind = DimensionMismatch if listed or value.ndim == part else DomainMismatch
        raise kind(f"assign: {fact}.")
    if not all(where is None or all_distinct(where) for where in lists or ()):
        raise InvalidValue("assign: an index is given twice. Give each index once.")
    stored = (value := made(value)).stored if out.ndim == 2 else value
    operation = ops.Assign(stored.data, lists, value is not stored)
    return Call(operation, (stored,), value.dtype, value.shape, (value,))


def _number_assignment(
    out: Any, value: Any, lists: tuple[Any, ...] | None, at: bool = False
) -> Call:
    """Return the call that assigns a number; an index given twice counts once.

    At indices a scalar without a value deletes, unless a loop records the statement.
    """
    if at and isinstance(value, OUTPUTS[0]) and current_recorder() is None and value.is_empty:
        shape = _shape_of_part(out, lists)
        none = type(out)(out.dtype, *shape, like=out)
        return Call(ops.Assign(none.data, lists), (none,), out.dtype, shape, (value,))
    number = arguments.scalar_value(value, out.dtype, out.name)
    where = None
    if lists is not None and any(x is not None for x in lists):
        where = tuple(None if x is None else distinct(x) for x in lists)
    shown = value if type(value) is ops.Counter else number
    return Call(ops.new(ops.AssignScalar, (number, where)), (out,), out.dtype, out.shape, (shown,))


def _from_array(array: Any, like: Any, indices: Any) -> Any:
    """Return a list or an array for the part `indices` of an object, where that lives."""
    dense = as_array(array)
    if dense.ndim == 0:
        return dense[()]
    fits = (1, 2) if indices is None else (IndexExpr(like, indices).ndim,)
    if not fits[0]:
        raise DomainMismatch(f"{like.name} << array: one entry takes a number, not an array.")
    if dense.ndim not in fits:
        wanted = " or ".join(f"{n}-D" for n in fits)
        raise DimensionMismatch(f"{like.name} << array: it is {dense.ndim}-D. Give {wanted}.")
    return OUTPUTS[dense.ndim].from_dense(dense, like=like)


def _not_a_row(out: Any, value: Any) -> DomainMismatch:
    me = name_of(out)
    return DomainMismatch(
        f"{out.name} << {value!r}: {value.shape} is not the shape of a matrix. "
        f"Write {me}[i, :] << v for a row, {me}[:, j] << v for a column."
    )


# ---- Views that are read as matrices: the transpose ``A.T``, and the selection ``f.selection()``.
class MatrixView(Arithmetic, MatrixOperand, ComputedForms):
    """An object that is read as a matrix and stored as something else."""

    __slots__ = ()
    ndim = 2
    copying: Callable[..., Call]  # returns the deferred copy of the entries as a matrix
    _why_unreadable = why_unreadable

    __repr__ = display.matrix_text
    _repr_html_ = display.matrix_html

    def _output(self, value: Any) -> str:
        return "It is a view. Write to the viewed object instead."

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse ``A.T(mask) << C``."""
        self.refuse("cannot be written to", MatrixView._output(self, None))

    def new(self, dtype: Any = None, *, mask: Mask | None = None, name: str | None = None) -> Any:
        """Return a new `Matrix` with the entries that the view has now, or those under a mask."""
        return self.copying().new(dtype, mask=mask, name=name)

    _computed = new  # for what a view itself does not have

    def __getitem__(self, where: Any) -> Any:
        return part_of(self, self._computed()[where])


def _exchanged(name: str) -> Any:
    """Return the method that calls `name` of the matrix, whose rows are the columns of a view."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        found = getattr(self._matrix, name)(*args, **options)
        return found._written_in(_getframe(1)) if isinstance(found, Call) else found

    method.__doc__ = f"Do what ``{name}`` of the matrix itself does."
    return method


class TransposedMatrix(MatrixView):
    """The transpose ``A.T``: a view of a matrix, for products and for ``A.T.new()``."""

    __slots__ = ("__weakref__", "stored")
    stored: Any
    _hint = "Use A.T.new() to make a matrix of it."

    def __init__(self, A: Any) -> None:
        self.stored = A

    @property
    def name(self) -> str:
        """Name of the matrix with a prime."""
        return f"{self.stored.name}'"

    @property
    def shape(self) -> Any:
        """``(nrows, ncols)``."""
        return self.stored.shape[::-1]

    T = property(attrgetter("stored"))
    nvals, dtype = property(attrgetter("stored.nvals")), property(attrgetter("stored.dtype"))
    backend = property(attrgetter("stored.backend"))

    def _output(self, value: Any) -> str:
        it = name_of(value)
        if is_operand(value, 2):
            it = it.removesuffix(".T") if it.endswith(".T") else f"{it}.T"
        return f"It is a view. Write {name_of(self.stored)} << {it}."

    def copying(self) -> Any:
        """Return the deferred transpose."""
        return self.stored.copying(transposed=True)

    @property
    def _matrix(self) -> Any:
        """The matrix whose transpose this is; of a selection, one is made."""
        stored = self.stored
        return stored if hasattr(stored, "to_coo") else stored.new()

    reduce_rowwise: Callable[..., Call] = _exchanged("reduce_columnwise")
    reduce_columnwise: Callable[..., Call] = _exchanged("reduce_rowwise")
    to_csr, to_csc = _exchanged("to_csc"), _exchanged("to_csr")
    to_dcsr, to_dcsc = _exchanged("to_dcsc"), _exchanged("to_dcsr")
    reduce = reduce_scalar = _exchanged("reduce")

    def to_coo(
        self, dtype: Any = None, *, rows: bool = True, columns: bool = True,
        values: bool = True, sort: bool = True,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        """Return (rows, columns, values), in the order of the matrix; see `Matrix.to_coo`."""
        found = self._matrix.to_coo(dtype, rows=columns, columns=rows, values=values, sort=sort)
        return found[1], found[0], found[2]

    def __getitem__(self, where: Any) -> Any:
        if isinstance(where, tuple) and len(where) == 2:
            kinds = [isinstance(index, slice) or np.ndim(index) > 0 for index in where]
            if not all(kinds):  # a row, a column or one entry
                part = TransposedIndex(self._matrix, where[::-1])
                return part if isinstance(self.stored, OUTPUTS[2]) else part_of(self, part)
        return part_of(self, MatrixIndex(self.new(), where))

    def __contains__(self, where: Any) -> bool:
        return where[::-1] in self._matrix

    def get(self, row: Any, col: Any, default: Any = None) -> Any:
        """Return the value at (row, col), or `default`; see `Matrix.get`."""
        return self._matrix.get(col, row, default)

    def diag(self, k: int = 0, **options: Any) -> Any:
        """Return diagonal `k` as a vector; see `Matrix.diag`."""
        return self._matrix.diag(-k, **options)

    def to_dense(self, fill_value: Any = None, dtype: Any = None) -> Any:
        """Return a NumPy array of the transpose; see `Matrix.to_dense`."""
        return self._matrix.to_dense(fill_value, dtype).T

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
    dtype = BOOL
    backend = property(attrgetter("operand.backend"))
    _hint = "Use P.new() to make a matrix of it."

    def __init__(self, f: Any, nrows: Any = None) -> None:
        if f.dtype.is_float or f.dtype.is_bool:
            raise DomainMismatch(
                f"selection: {name_of(f)} is of type {f.dtype}, and row numbers are integers. "
                f"Convert it with {name_of(f)}.dup('INT64')."
            )
        self.operand = f
        self._nrows = None if nrows is None else arguments.as_size(nrows, "selection")

    @property
    def name(self) -> str:
        """``selection(f)`` with the name of the vector."""
        return f"selection({self.operand.name})"

    @property
    def shape(self) -> tuple[int, int]:
        """``(nrows, ncols)``; the columns are as many as the size of the vector."""
        return (self.operand.size if self._nrows is None else self._nrows, self.operand.size)

    @property
    def nvals(self) -> int:
        """Number of entries now: the entries of the vector whose value is a row."""
        flush(self.backend)
        return len(self._rows(self.operand.backend.vector_to_coo(self.operand.data)[1])[1])

    @property
    def T(self) -> TransposedSelection:
        """The transpose: another view of the same vector."""
        return TransposedSelection(self)

    def copying(self, transposed: bool = False) -> Call:
        """Return the deferred copy of the entries as a matrix, or its transpose."""
        f, shape = self.operand, self.shape[::-1] if transposed else self.shape
        operation = ops.SelectionToMatrix(f.data, self.nrows, transposed)
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
        cols, values = self.operand.backend.vector_head(self.operand.data, ncols)
        inside, rows = self._rows(values)
        cols = cols[inside]
        kept = (rows < nrows) & (cols < ncols)
        return rows[kept], cols[kept], np.ones(np.count_nonzero(kept), bool)


class TransposedSelection(TransposedMatrix):
    """The transpose ``P.T`` of a selection `P`: a view of the same vector."""

    __slots__ = ()
    _output = MatrixView._output
