"""``u + v``, ``2 * u``, ``A == 3``, ``u *= v``: Python's operators as element-wise operations."""

from __future__ import annotations

from typing import Any

from lagpu.algebra.operators import BinaryOp
from lagpu.algebra.registry import SIGNS
from lagpu.algebra.tables import binary, unary
from lagpu.core.expr import mark_used
from lagpu.core.hints import NoTruth, name_of, object_of
from lagpu.core.infix.joined import Joined
from lagpu.core.matmul import MatMul
from lagpu.dtypes import BOOL
from lagpu.errors import DomainMismatch
from lagpu.host.source import author

__all__ = ["UNARY", "WAYS", "Arithmetic", "operator_of"]

#: sign -> element-wise operation on two vectors or two matrices, as python-graphblas has them: what
#: is neutral to a sum is a missing entry; of a product both entries are needed.
WAYS = {
    **{"+": "ewise_add", "^": "ewise_add", "-": "ewise_union"},
    **dict.fromkeys(("*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">="), "ewise_mult"),
}
UNARY = {"-": "ainv", "abs()": "abs", "~": "lnot"}
_LOGIC = {"|": "lor", "^": "lxor", "&": "land"}
_ACCUMULATED = {"+": "plus", "|": "lor", "^": "lxor"}


def operator_of(sign: str) -> BinaryOp:
    """Return the operator of a sign such as ``"+"``.

    Raises
    ------
    DomainMismatch
        If there is none of this name.
    """
    name = SIGNS[sign]
    if name not in binary:
        raise DomainMismatch(
            f"{sign}: there is no binary.{name}. Make one with binary.register({name!r}, python, "
            f"cuda), then use u.apply(binary.{name}, x) or binary.{name}(u & v)."
        )
    return binary[name]


class Arithmetic(NoTruth):
    """The operators of a vector, a matrix or a view of one.

    With a number or a scalar they apply to each entry. Of two objects ``+`` and ``^`` are
    `ewise_add`, ``-`` is `ewise_union` with 0 for a missing entry, and all others are `ewise_mult`.
    ``u | v`` and ``u & v`` wait for an operator: ``binary.plus(u | v)``.
    """

    __slots__ = ()

    def __matmul__(self, other: Any) -> MatMul:
        return MatMul(self, other)

    def __rmatmul__(self, other: Any) -> MatMul:
        return MatMul(other, self)

    def _infix(self: Any, sign: str, other: Any, reflected: bool = False) -> Any:
        if other is None and sign in ("==", "!="):
            word = "is" if sign == "==" else "is not"
            self.refuse(f"has no {sign} with None", f"Write {name_of(self)} {word} None.")
        left, right = (other, self) if reflected else (self, other)
        if sign == "@":  # of an expression that was computed
            return MatMul(left, right)
        if sign in ("|", "&"):
            return Joined(left, right, sign)
        op, way = operator_of(sign), WAYS[sign]
        left, right = object_of(left), object_of(right)
        for x in (left, right) if sign == "^" else ():
            self._require_bool(sign, x)
        if getattr(object_of(other), "ndim", 0) == 0:
            call = self.apply(op, left=left) if reflected else self.apply(op, right)
        elif way == "ewise_union":
            call = left.ewise_union(right, op, False, False)
        else:
            call = getattr(left, way)(right, op)
        by = author()
        return call if by is None else call._written_in(by)

    def _inplace(self: Any, sign: str, other: Any) -> Any:
        op = _ACCUMULATED.get(sign)
        alike = getattr(other, "shape", None) == self.shape
        logic = _LOGIC.get(sign)
        if logic is not None and getattr(object_of(other), "ndim", 0) == 0:
            self._require_bool(f"{sign}=", self)
            self << self.apply(binary[logic], other)
        elif alike and op is not None:
            if op != "plus":
                self._require_bool(f"{sign}=", other)
            self(accum=binary[op]) << other
        else:
            self << self._infix(sign, other)
        return self

    def _require_bool(self, sign: str, x: Any) -> None:
        kind = getattr(x, "dtype", BOOL)
        if kind is not BOOL:
            mark_used(x)
            self.refuse(f"has no {sign} for {kind}", "It is for BOOL alone.")

    def _alone(self: Any, sign: str) -> Any:
        if sign == "~" and self.dtype is not BOOL:
            me = name_of(self)
            self.refuse(
                f"has no ~ for {self.dtype}",
                f"As a mask, write ~{me}.S for where {me} has no entry, ~{me}.V where none but 0.",
            )
        call = self.apply(unary[UNARY[sign]])
        by = author()
        return call if by is None else call._written_in(by)
