"""The base of `Vector` and `Matrix`: assignment, apply, select, reduce, copies."""

from __future__ import annotations

from sys import _getframe
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from lagpu.algebra.operators import IndexUnaryOp, Monoid
from lagpu.algebra.tables import binary, monoid
from lagpu.backends.protocol import Backend
from lagpu.core.aggregates import agg, aggregate
from lagpu.core.arguments import all_close, bound_operator, check_how, selected
from lagpu.core.exchange import taken_apart
from lagpu.core.expr import (
    OUTPUTS,
    Call,
    Mask,
    Updater,
    as_mask,
    assign,
    constant,
    is_operand,
    kind_of,
    mask_does_not_fit,
    mixed_backends,
)
from lagpu.core.hints import NoTruth, object_of
from lagpu.core.infix import Arithmetic, described
from lagpu.core.recorder import flush, why_unreadable
from lagpu.dtypes import DType, lookup
from lagpu.errors import DomainMismatch, InvalidValue
from lagpu.operations import Apply, Handle, Reduce, Select

#: What to write instead of attributes of python-graphblas that are not here.
_INSTEAD = {
    "ss": "SuiteSparse is behind the cpu backend alone. Use to_csr, to_csc, to_coo, from_csr, "
    "from_csc, A.orientation, or dup for a copy.",
    "gb_obj": "Objects of the C library are the cpu backend's own. Use to_coo or to_csr.",
}


class Collection(Arithmetic):
    """The base of `Vector` and `Matrix`: entries of one type on one backend."""

    __slots__ = ("backend", "data", "dtype", "name")
    backend: Backend
    data: Handle
    dtype: DType
    name: str
    ndim: ClassVar[int]
    _why_unreadable = why_unreadable

    if not TYPE_CHECKING:  # a type checker knows the real attributes alone

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                f"{type(self).__name__}: there is no {name!r}. {_INSTEAD.get(name, '')}".rstrip()
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        raise NotImplementedError

    @property
    def nvals(self) -> int:
        """Number of entries."""
        return self._flushed().nvals(self.data)

    def wait(self, how: str = "materialize") -> Self:
        """Return this object when all operations that make it have ended, for measuring time.

        A backend may run behind the program; reading an object waits in any case.

        Parameters
        ----------
        how : {"materialize", "complete"}
            Accepted as in python-graphblas; both wait for the same.
        """
        check_how(how)
        self._flushed().wait(self.data)
        return self

    def _flushed(self) -> Backend:
        """Run the recorded statements, on which this object may depend; return the backend."""
        flush(self.backend)
        return self.backend

    @property
    def S(self) -> Mask:
        """The mask of all positions with an entry, whatever its value."""
        return Mask(self, True)

    @property
    def V(self) -> Mask:
        """The mask of all positions with an entry that is not zero."""
        return Mask(self, False)

    def to_coo(self) -> Any:
        """Return the indices and the values of the entries as arrays."""
        raise NotImplementedError

    # ------------------------------------------------------------------------ copies
    def dup(
        self,
        dtype: Any = None,
        *,
        clear: bool = False,
        mask: Mask | None = None,
        name: str | None = None,
    ) -> Self:
        """Return a copy, cast to `dtype` if it is given.

        Parameters
        ----------
        dtype : DType, optional
            Type of the values of the copy.
        clear : bool
            Whether to leave out all entries, for an object of the same size and type.
        mask : Mask, optional
            Copy only the entries that the mask keeps.
        name : str, optional
            Name of the copy.
        """
        kind = self.dtype if dtype is None else lookup(dtype)
        if clear or mask is not None:
            new = type(self)(kind, *self.shape, like=self, name=name or self.name)  # type: ignore[call-arg]
            if not clear:
                assign(Updater(new, mask), self)
            return new
        data = self._flushed().dup(self.data, kind)
        return self._holding(data, kind, name or self.name)

    def _require_empty(self, clear: bool) -> None:
        """Raise `InvalidValue` if `build` would lose entries."""
        if self.nvals and not clear:
            raise InvalidValue(f"build: {self.name} has entries. Clear it, or give clear=True.")

    def _holding(self, data: Handle, dtype: DType, name: str) -> Self:
        """Return an object of this kind and shape that holds the data."""
        raise NotImplementedError

    def __copy__(self) -> Any:
        return self.dup()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.dup()

    def __reduce__(self) -> tuple[Any, ...]:
        return taken_apart(self)

    # ------------------------------------------------------------------------ comparison
    def isequal(self, other: Any, *, check_dtype: bool = False) -> bool:
        """Whether both have the same shape, the same entries and equal values.

        Parameters
        ----------
        other : Vector or Matrix, as this object, or an expression or a view of one
            The other object, on the same backend.
        check_dtype : bool
            Whether the types must be the same too.

        Raises
        ------
        DomainMismatch, BackendMismatch
            If `other` is something else, or lives elsewhere.
        """
        other = self._alike(other, "isequal", check_dtype)
        return other is not None and self._flushed().isequal(self.data, other.data)

    def isclose(
        self,
        other: Any,
        *,
        rel_tol: float = 1e-7,
        abs_tol: float = 0.0,
        check_dtype: bool = False,
    ) -> bool:
        """Whether both have the same entries, with values equal up to a tolerance; see `isequal`.

        Parameters
        ----------
        other : Vector or Matrix, as this object, or an expression or a view of one
            The other object, on the same backend.
        rel_tol, abs_tol : float
            Two values are close if they are equal, or differ by ``rel_tol`` times the greater or by
            `abs_tol` at most, as in ``math.isclose``. NaN is close to nothing.
        check_dtype : bool
            Whether the types must be the same too.
        """
        other = self._alike(other, "isclose", check_dtype)
        if other is None:
            return False
        (*where, x), (*there, y) = self.to_coo(), other.to_coo()
        same = all(np.array_equal(i, j) for i, j in zip(where, there, strict=True))
        return same and all_close(x, y, rel_tol, abs_tol)

    def _alike(self, other: Any, what: str, check_dtype: bool) -> Any:
        """Return an object to compare with; None if its shape, or type if it counts, differs."""
        if type(other) is not type(self):  # an expression, a view, or something else
            other = object_of(other)
            if not is_operand(other, self.ndim):
                kind = OUTPUTS[self.ndim].__name__
                raise DomainMismatch(f"{what}: {kind_of(other)} is not a {kind}.")
        if other.backend is not self.backend:
            raise mixed_backends(what, (self, other))
        if self.shape != other.shape or (check_dtype and self.dtype is not other.dtype):
            return None
        return other if isinstance(other, Collection) else other.new()

    # ----------------------------------------------------------------------- assignments
    def __call__(
        self,
        first: Any = None,
        *more: Any,
        mask: Any = None,
        accum: Any = None,
        replace: bool = False,
    ) -> Updater:
        """Return the updater of ``w(mask, accum=op, replace=True) << call``.

        Mask, accumulator and `lagpu.replace` may be given by position, in any order.
        """
        if more or mask is not None or (first is not None and type(first) is not Mask):
            first, accum, replace = described(self, (first, *more), mask, accum, replace)
        return Updater(self, first, accum, replace)

    def update(self, value: Any) -> None:
        """Do what ``<<`` does."""
        assign(Updater(self), value)

    __lshift__ = update

    # ------------------------------------------------------------------------ operations
    def apply(self, op: Any, right: Any = None, *, left: Any = None) -> Call:
        """Apply an operator to each entry: ``w[i] = f(u[i])`` or ``C[i, j] = f(A[i, j])``.

        Parameters
        ----------
        op : UnaryOp, BinaryOp or IndexUnaryOp
            The operator: ``f(x)``; ``f(x, right)`` or ``f(left, x)``; ``f(x, i, j, right)``.
        right, left : scalar, optional
            The bound operand of a `BinaryOp`, or the thunk of an `IndexUnaryOp` (default 0).
        """
        left, right = object_of(left), object_of(right)
        function = bound_operator(self.dtype, op, left, right)
        before = () if left is None else (function.left, ", ")
        after = () if right is None else (", ", function.right)
        return Call(
            Apply(self.data, function),
            (self,),
            function.result,
            self.shape,
            (function.op.name, "(", *before, self, *after, ")"),
            _getframe(1),
        )

    def select(self, op: IndexUnaryOp | str, thunk: Any = None) -> Call:
        """Keep the entries for which `op` of value, index and `thunk` is true.

        Parameters
        ----------
        op : IndexUnaryOp
            An operator with a BOOL result, as in ``u.select("valuegt", 3)``; or a mask or a BOOL
            object of the same shape, as in ``u.select(u > v)``, which keeps the entries there.
        thunk : scalar
            The operator's last operand, as in ``A.select("tril", -1)``; by default 0. A mask has
            none.
        """
        if isinstance(op, NoTruth):
            if thunk is not None:
                raise InvalidValue(f"select: a mask takes no thunk, here {thunk!r}. Leave it out.")
            return self._where(op)._written_in(_getframe(1))
        op, number, _ = selected(self.dtype, op, 0 if thunk is None else thunk)
        return Call(
            Select(self.data, op, number),
            (self,),
            self.dtype,
            self.shape,
            (op.name, "(", self, f", {number})"),
            _getframe(1),
        )

    def _where(self, x: Any) -> Call:
        """Return the deferred selection of the entries where a mask or a BOOL object is true."""
        if isinstance(x, Call) and x.compared is not None and x.inputs[0] is self:
            return x.kept()
        mask = as_mask(self, x)
        if mask.vector.shape != self.shape:
            raise mask_does_not_fit(mask, self)
        kept: Any = mask.new()
        call: Call = kept.ewise_mult(self, binary.second)
        call.formula = ("select(", self, ", ", x, ")")
        return call

    def reduce(self, op: Any = "plus", *, allow_empty: bool = True) -> Call:
        """Return the sum of all entries over a monoid, ``s = ⊕ᵢ u[i]``; empty if none.

        Parameters
        ----------
        op : Monoid, Aggregator or str
            The monoid, or an aggregator such as ``agg.mean``, whose statements run at once.
        allow_empty : bool
            With False the sum is computed now, and without entries it is the identity of the
            monoid.

        Raises
        ------
        InvalidValue
            If `allow_empty` is False and an aggregator is more than a monoid.
        """
        aggregator = None if type(op) is Monoid else agg.named(op)
        if aggregator is not None and aggregator.monoid is None:
            if not allow_empty:
                raise InvalidValue(
                    f"reduce: {aggregator!r} has no identity. Leave out allow_empty=False."
                )
            return aggregate(self, aggregator, "reduce", _getframe(1))
        found = (aggregator and aggregator.monoid) or monoid.lookup(op)
        result = found.types(self.dtype)[1]
        call = Call(
            Reduce(self.data, found),
            (self,),
            result,
            (),
            (found.name, "(", self, ")"),
            _getframe(1),
        )
        if allow_empty:
            return call
        total = call.new()
        return constant(found.identity(result) if total.is_empty else total._value, result)
