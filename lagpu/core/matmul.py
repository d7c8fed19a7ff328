"""Products with ``@``: what waits for its semiring, and the call that it becomes."""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from lagpu.algebra.operators import Semiring
from lagpu.backends.protocol import Product
from lagpu.core.expr import Call, is_operand, told, unfit
from lagpu.core.hints import Deferred, Later, NoTruth, spoken
from lagpu.core.pairs import matrix_product
from lagpu.core.unused import Unfinished
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue, NotSupported
from lagpu.host import display

if TYPE_CHECKING:
    from lagpu.core.matrix import Matrix
    from lagpu.core.vector import Vector
    from lagpu.core.views import TransposedMatrix

__all__ = ["MatMul", "product"]


class MatMul(Unfinished, Deferred):
    """``u @ A``, ``A @ u`` or ``A @ B``: a product that still needs its semiring."""

    __slots__ = ("left", "right")
    _remedy = "{0} has no semiring, and was never used. Write w << semiring.plus_times({0})."
    new, value = Later(), Later()

    def __init__(self, left: Any, right: Any) -> None:
        for operand in (left, right):
            if not (isinstance(operand, NoTruth) and getattr(operand, "ndim", 0) in (1, 2)):
                raise DomainMismatch(
                    f"@: {unfit(operand)} is neither a Vector nor a Matrix. "
                    + (operand._hint if isinstance(operand, Deferred) else "")
                    + "Make one with from_dense or from_coo." * (not isinstance(operand, Deferred))
                )
        self.left = left
        self.right = right
        self._used = False

    @property
    def formula(self) -> tuple[Any, ...]:
        """The product as mathematics."""
        return (self.left, " @ ", self.right)

    @property
    def _hint(self) -> str:  # type: ignore[override]
        return f"Write semiring.plus_times({_spoken(self)}), or another semiring."

    def __repr__(self) -> str:
        return told(self.formula)

    def _repr_html_(self) -> str:
        return display.product_html(self)

    def _output(self, value: Any) -> str:
        w = spoken(value) if is_operand(value, 1) or is_operand(value, 2) else "w"
        return f"Write {w} << semiring.plus_times({_spoken(self)})."

    def __matmul__(self, other: Any) -> NoReturn:
        self.refuse("a second @ needs the first product's result", self._one_each(other))

    def _one_each(self, other: Any) -> str:
        return f"Write w << semiring.plus_times({_spoken(self)}), then w @ {spoken(other)}."

    def times(self, semiring: Semiring, by: FrameType, **options: Any) -> Call:
        """Return the deferred product over `semiring`, written in the frame `by`."""
        self._used = True
        left, right = self.left, self.right
        if left.ndim == right.ndim == 1:
            raise NotSupported(
                f"{semiring!r}: the inner product is not there. "
                "Write u.ewise_mult(v, op), then reduce."
            )
        if left.ndim == right.ndim:
            if options:
                raise InvalidValue(f"mxm: takes no {', '.join(options)}. Leave it out.")
            return matrix_product(left, right, semiring, by)
        if left.ndim == 1:
            return product(right, left, semiring, True, by, **options)
        return product(left, right, semiring, False, by, **options)


def _spoken(pair: MatMul) -> str:
    """Return ``u @ A`` in the author's names, ``A.T`` for a transpose: a line to write."""
    return f"{spoken(pair.left)} @ {spoken(pair.right)}"


def _turned(A: Any, u: Any, flip: bool) -> str:
    """Return the product that fits, for one whose matrix is the wrong way round."""
    a, v = spoken(A), spoken(u)
    turned = a.removesuffix(".T") if a.endswith(".T") else f"{a}.T"
    ways = (f"{v} @ {turned}", f"{a} @ {v}") if flip else (f"{turned} @ {v}", f"{v} @ {a}")
    return f" Is it {ways[0]} you mean, or {ways[1]}?"


def product(
    A: Matrix | TransposedMatrix,
    u: Vector,
    semiring: Semiring,
    flip: bool,
    by: FrameType | None,
    kernel: str | None = None,
    policy: str | None = None,
) -> Call:
    """Return the deferred ``A @ u``, or ``u @ A`` if `flip`, as written in the frame `by`."""
    if not (is_operand(A, 2) and is_operand(u, 1)):
        raise DomainMismatch(
            f"{semiring!r}: takes a Matrix and a Vector, not {unfit(A)} and {unfit(u)}. "
            f"Write {semiring.name}(q @ A)."
        )
    if u.size != (A.nrows if flip else A.ncols):
        op, side = ("vxm", "nrows") if flip else ("mxv", "ncols")
        raise DimensionMismatch(
            f"{op}: {spoken(u)}.size {u.size} != {spoken(A)}.{side} {getattr(A, side)}."
            + (_turned(A, u, flip) if u.size == (A.ncols if flip else A.nrows) else "")
        )
    if kernel is not None and policy is not None:
        op = "vxm" if flip else "mxv"
        raise InvalidValue(f"{op}: give one of kernel={kernel!r} and policy={policy!r}, not both.")
    left, right = (u, A) if flip else (A, u)
    domain, result = semiring.types(left.dtype, right.dtype)
    stored = A.stored
    how = Product(semiring, domain, result, flip is (A is stored), flip, kernel, policy)
    held = getattr(stored, "operand", stored)  # of a selection its vector
    return Call(
        "mxv" if held is stored else "mxv_selection",
        (held, u),
        (held.data, u.data, how),
        result,
        (A.ncols if flip else A.nrows,),
        (left, f" {semiring.name} ", right),
        by,
    )
