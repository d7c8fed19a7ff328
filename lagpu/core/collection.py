"""What `Vector` and `Matrix` share: assignment, apply, select, reduce."""

from __future__ import annotations

from sys import _getframe
from typing import Any

from lagpu.algebra.operators import IndexUnaryOp
from lagpu.algebra.tables import monoid
from lagpu.backends.protocol import Backend, Data
from lagpu.core.arguments import applied, selected
from lagpu.core.expr import Call, Mask, Updater, assign
from lagpu.core.hints import NoTruth, spoken
from lagpu.core.matmul import MatMul
from lagpu.dtypes import DType
from lagpu.errors import DomainMismatch

__all__ = ["Collection"]


class Collection(NoTruth):
    """Entries of one type on one backend."""

    __slots__ = ("backend", "data", "dtype", "name")
    backend: Backend
    data: Data
    dtype: DType
    name: str
    _prefix = ""  # of the names of backend methods

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        raise NotImplementedError

    @property
    def S(self) -> Mask:
        """Mask: where there is an entry, whatever its value."""
        return Mask(self, True)

    @property
    def V(self) -> Mask:
        """Mask: where there is an entry that is not zero."""
        return Mask(self, False)

    # ----------------------------------------------------------------------- assignments
    def __call__(
        self, mask: Mask | None = None, *more: Any, accum: Any = None, replace: bool = False
    ) -> Updater:
        """``w(mask, accum=op, replace=True) << call``: how the result is to be written."""
        if more:
            raise DomainMismatch(
                f"{spoken(self)}(...): takes one mask, not {1 + len(more)}. "
                "Write an operator as accum=binary.plus, and replace=True by its name."
            )
        return Updater(self, mask, accum, replace)

    def __lshift__(self, value: Any) -> None:
        assign(Updater(self), value)

    def update(self, value: Any) -> None:
        """Do what ``<<`` does."""
        assign(Updater(self), value)

    # ------------------------------------------------------------------------ operations
    def __matmul__(self, other: Any) -> MatMul:
        return MatMul(self, other)

    def __rmatmul__(self, other: Any) -> MatMul:
        return MatMul(other, self)

    def apply(self, op: Any, right: Any = None, *, left: Any = None) -> Call:
        """``w[i] = f(u[i])`` or ``C[i, j] = f(A[i, j])``: every entry by itself.

        Parameters
        ----------
        op : UnaryOp, BinaryOp or IndexUnaryOp
            The operator: ``f(x)``; ``f(x, right)`` or ``f(left, x)``; ``f(x, i, j, right)``.
        right, left : scalar, optional
            The bound operand of a `BinaryOp`, or the thunk of an `IndexUnaryOp` (default 0).
        """
        op, how = applied(self.dtype, op, left, right)
        before = () if left is None else (how.left, ", ")
        behind = () if right is None else (", ", how.right)
        return Call(
            self._prefix + "apply",
            (self,),
            (self.data, op, how),
            how.result,
            self.shape,
            (op.name, "(", *before, self, *behind, ")"),
            _getframe(1),
        )

    def select(self, op: IndexUnaryOp | str, thunk: Any = 0) -> Call:
        """Keep the entries for which `op` of value, index and `thunk` holds.

        Parameters
        ----------
        op : IndexUnaryOp
            An operator with a BOOL result, as in ``u.select("valuegt", 3)``.
        thunk : scalar
            Its last operand, as in ``A.select("tril", -1)``.
        """
        op, number, _ = selected(self.dtype, op, thunk)
        return Call(
            self._prefix + "select",
            (self,),
            (self.data, op, number),
            self.dtype,
            self.shape,
            (op.name, "(", self, f", {number})"),
            _getframe(1),
        )

    def reduce(self, op: Any = "plus") -> Call:
        """``s = (+)_i u[i]``: the sum of all entries over a monoid; empty if there is none."""
        found = monoid.lookup(op)
        return Call(
            self._prefix + "reduce",
            (self,),
            (self.data, found),
            found.types(self.dtype)[1],
            (),
            (found.name, "(", self, ")"),
            _getframe(1),
        )
