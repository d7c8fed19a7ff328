"""`Pair`: two operands that wait for their operator, which comes by a call: ``op(u | v)``."""

from __future__ import annotations

import functools
from types import FrameType
from typing import Any

from lagpu.core.arguments import scalar_dtype
from lagpu.core.expr import Call, Mask, compute, format_as_written
from lagpu.core.hints import Deferred, name_of, object_of
from lagpu.core.unused import Unassigned
from lagpu.dtypes import DType, unify
from lagpu.host import display

__all__ = ["Pair"]


class Pair(Unassigned, Deferred):
    """Two operands and a sign: ``u @ A``, ``u | v`` or ``u & v``.

    Attributes
    ----------
    left, right : Vector, Matrix, their views or expressions
        The operands.
    sign : str
        The sign between them.
    wanted : str
        What they wait for, in messages.
    takes : str
        The method by which it comes.
    """

    __slots__ = ("_result", "left", "right")
    sign: str
    wanted = takes = ""

    def _begin(self, left: Any, right: Any) -> None:
        for operand in (left, right):
            getattr(operand, "_mark_used", lambda: None)()
        self.left, self.right = left, right
        self._used = False

    def call(self, by: FrameType | None = None) -> Call:
        """Return the deferred operation with the operator that is usual for the sign."""
        raise NotImplementedError

    def _operands(self, op: Any, *numbers: Any, **options: Any) -> tuple[Any, Any, Any]:
        """Return (left, right, operator): an operand of the same sign is computed with it too.

        The operator of such a chain counts in the common type of all its operands and `numbers`.
        """
        self._mark_used()
        if isinstance(self.left, Pair) or isinstance(self.right, Pair):
            kinds = self._dtypes()
            kind = functools.reduce(unify, kinds)
            for number in numbers:
                kind = unify(kind, scalar_dtype(number, kind, self.takes))
            if getattr(op, "op", op).dtype is None and {*kinds} != {kind}:
                op = op[kind]
        left, right = (
            object_of(getattr(x, self.takes)(op, None, **options) if _joins(x, self.sign) else x)
            for x in (self.left, self.right)
        )
        return left, right, op

    def _dtypes(self) -> list[DType]:
        """Return the types of all operands of a chain."""
        sides = self.left, self.right
        return [
            kind
            for x in sides
            for kind in (x._dtypes() if _joins(x, self.sign) else [object_of(x).dtype])
        ]

    def _computed(self) -> Any:
        return compute(self, self.call)

    def new(self, dtype: Any = None, *, mask: Mask | None = None, name: str | None = None) -> Any:
        """Return the result with the usual operator, as a new object."""
        return self.call().new(dtype, mask=mask, name=name)

    @property
    def formula(self) -> tuple[Any, ...]:
        """The pair as mathematics."""
        return (self.left, f" {self.sign} ", self.right)

    @property
    def as_line(self) -> str:
        """The pair in the author's names, with ``A.T`` for a transpose."""
        return f"{name_of(self.left)} {self.sign} {name_of(self.right)}"

    @property
    def example(self) -> str:
        """The expression with its operator, in the author's names."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return format_as_written(self.formula)

    def _repr_html_(self) -> str:
        return display.pair_html(self)

    def _output(self, value: Any) -> str:
        w = name_of(value) if getattr(value, "ndim", 0) else "w"
        return f"Write {w} << {self.example}."


def _joins(x: Any, sign: str) -> bool:
    """Whether `x` waits for the operator of the pair of this sign that it is an operand of."""
    return isinstance(x, Pair) and x.sign == sign
