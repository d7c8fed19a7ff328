"""``u | v`` and ``u & v``: two operands that wait for an operator, as in ``binary.plus(u | v)``."""

from __future__ import annotations

from types import FrameType
from typing import Any

from lagpu.algebra.operators import BinaryOp
from lagpu.algebra.tables import binary
from lagpu.core.expr import Call, Mask
from lagpu.core.hints import NoTruth
from lagpu.core.infix.pair import Pair
from lagpu.dtypes import BOOL

__all__ = ["Joined"]

_WAYS = {"|": ("ewise_add", "plus", "lor"), "&": ("ewise_mult", "times", "land")}


class Joined(Pair):
    """Two operands on the union, ``u | v``, or on the intersection, ``u & v``.

    Without an operator they are those of logic, for BOOL alone.
    """

    __slots__ = ("sign",)
    _remedy = "{0} has no operator, and was never used. Write w << binary.plus({0})."
    wanted, takes = "operator", "combined"

    def __init__(self, left: Any, right: Any, sign: str) -> None:
        self.sign = sign
        self._begin(left, right)
        for operand in (left, right):
            if isinstance(operand, Joined) and operand.sign != sign:
                self.refuse(f"{sign} beside {operand.sign} has two meanings", operand._hint)
            if isinstance(operand, Mask) or not isinstance(operand, NoTruth):
                self.refuse(
                    f"{type(operand).__name__} is neither a Vector nor a Matrix",
                    f"With a number, write binary.{_WAYS[sign][1]}(u, x).",
                )

    @property
    def _hint(self) -> str:  # type: ignore[override]
        return f"Write {self.example}, or another operator."

    @property
    def example(self) -> str:
        """The expression with an operator, in the author's names."""
        return f"binary.{_WAYS[self.sign][1]}({self.as_line})"

    def combined(self, op: BinaryOp, by: FrameType | None, **defaults: Any) -> Call:
        """Return the deferred element-wise operation with `op`, written in the frame `by`.

        Parameters
        ----------
        op : BinaryOp or Monoid
            The operator, of a chain ``u | v | w`` too.
        by : FrameType, optional
            The author's frame.
        **defaults
            ``left_default=`` and ``right_default=``, both: in place of a missing entry of a union.
        """
        left, right, op = self._operands(op, *defaults.values(), **defaults)
        if defaults:
            if self.sign == "&" or set(defaults) != {"left_default", "right_default"}:
                self.refuse(
                    f"takes no {', '.join(defaults)}",
                    "Give both left_default= and right_default= to the operator of u | v.",
                )
            call: Call = left.ewise_union(right, op, *(defaults[f"{k}_default"] for k in _SIDES))
        else:
            call = getattr(left, _WAYS[self.sign][0])(right, op)
        return call if by is None else call._written_in(by)

    def call(self, by: FrameType | None = None) -> Call:
        """Return the deferred ``or`` or ``and`` of BOOL operands."""
        parts = [x.call() if isinstance(x, Pair) else x for x in (self.left, self.right)]
        kinds = [x.dtype for x in parts]
        if any(kind is not BOOL for kind in kinds):
            for part in parts:
                getattr(part, "_mark_used", lambda: None)()
            self.refuse(
                f"{self.as_line} has no operator, and its types {kinds[0]} and {kinds[1]} are not "
                "both BOOL"
            )
        return self.combined(binary[_WAYS[self.sign][2]], by)

    def _infix(self, sign: str, other: Any, reflected: bool = False) -> Any:
        if sign in ("|", "&"):
            return Joined(other, self, sign) if reflected else Joined(self, other, sign)
        return super()._infix(sign, other, reflected)


_SIDES = ("left", "right")
