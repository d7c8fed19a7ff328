"""Operations on two matrices, as methods of `Matrix` and of its transpose."""

from __future__ import annotations

from sys import _getframe
from types import FrameType
from typing import Any

from lagpu.algebra.operators import Semiring
from lagpu.core.arguments import as_semiring, as_size, binary_operator, scalar_value
from lagpu.core.expr import Call, is_operand, unfit
from lagpu.core.hints import NoTruth, no_operator, spoken
from lagpu.errors import DimensionMismatch, DomainMismatch

__all__ = ["MatrixOperand", "matrix_product"]


class MatrixOperand(NoTruth):
    """A matrix or its transpose, as the left one of two."""

    __slots__ = ()

    def mxm(self: Any, B: Any, op: Semiring | str) -> Call:
        """``C[i, j] = (+)_k A[i, k] (x) B[k, j]``, the same as ``op(A @ B)``.

        Parameters
        ----------
        B : Matrix or its transpose, (ncols, m)
            The right operand.
        op : Semiring
            The algebra.
        """
        _require_matrix("mxm", B)
        return matrix_product(self, B, as_semiring(op), _getframe(1))

    def ewise_add(self: Any, other: Any, op: Any = None) -> Call:
        """``C = A (+) B`` on the union; an entry of one side alone stays as it is."""
        return _ewise(_getframe(1), "ewise_add", self, other, op, " (+) ")

    def ewise_mult(self: Any, other: Any, op: Any = None) -> Call:
        """``C = A (x) B`` on the intersection."""
        return _ewise(_getframe(1), "ewise_mult", self, other, op, " (x) ")

    def ewise_union(self: Any, other: Any, op: Any, left_default: Any, right_default: Any) -> Call:
        """``C = A (+) B`` on the union; a default stands where one side has no entry."""
        found = binary_operator(op)
        _require_matrix("ewise_union", other)
        domain, _ = found.types(self.dtype, other.dtype)
        left = scalar_value(left_default, domain, "ewise_union")
        right = scalar_value(right_default, domain, "ewise_union")
        by = _getframe(1)
        return _ewise(by, "ewise_union", self, other, found, " (+) ", (left, right))

    def kronecker(self: Any, B: Any, op: Any) -> Call:
        """``C[i p + k, j q + l] = A[i, j] (x) B[k, l]`` for a matrix `B` of shape (p, q)."""
        found = binary_operator(op)
        _require_matrix("kronecker", B)
        shape = (
            as_size(self.nrows * B.nrows, "kronecker"),
            as_size(self.ncols * B.ncols, "kronecker"),
        )
        result = found.types(self.dtype, B.dtype)[1]
        formula = (found.name, " kronecker(", self, ", ", B, ")")
        by = _getframe(1)
        return _call(by, "matrix_kronecker", self, B, found, result, shape, formula)


def matrix_product(A: Any, B: Any, semiring: Semiring, by: FrameType) -> Call:
    """Return the deferred ``A @ B``, as written in the frame `by`."""
    if A.ncols != B.nrows:
        raise DimensionMismatch(
            f"mxm: {spoken(A)}.ncols {A.ncols} != {spoken(B)}.nrows {B.nrows}."
            + (f" Is it {_turned(B)} you mean?" if A.ncols == B.ncols else "")
        )
    result = semiring.types(A.dtype, B.dtype)[1]
    formula = (A, f" {semiring.name} ", B)
    return _call(by, "matrix_mxm", A, B, semiring, result, (A.nrows, B.ncols), formula)


def _turned(A: Any) -> str:
    """Return how the author writes the transpose of `A`."""
    return f"{spoken(A)}.T" if A.stored is A else spoken(A.stored)


def _require_matrix(what: str, B: Any) -> None:
    if not is_operand(B, 2):
        raise DomainMismatch(f"{what}: {unfit(B)} is not a Matrix.")


def _call(
    by: FrameType,
    method: str,
    A: Any,
    B: Any,
    op: Any,
    result: Any,
    shape: tuple[int, int],
    formula: tuple[Any, ...],
    *more: Any,
) -> Call:
    """Return the deferred operation on what `A` and `B` are stored as."""
    left, right = A.stored, B.stored
    turned = (A is not left, B is not right)
    args = (left.data, right.data, op, turned, *more)
    return Call(method, (left, right), args, result, shape, formula, by)


def _ewise(by: FrameType, method: str, A: Any, B: Any, op: Any, sign: str, *more: Any) -> Call:
    _require_matrix(method, B)
    found = no_operator(method, A, B) if op is None else binary_operator(op)
    if A.shape != B.shape:
        raise DimensionMismatch(
            f"{method}: {spoken(A)} has shape {A.shape} != {B.shape} of {spoken(B)}."
            + (f" Is it {_turned(B)} you mean?" if A.shape == B.shape[::-1] else "")
        )
    result = found.types(A.dtype, B.dtype)[1]
    formula = (found.name, "(", A, sign, B, ")")
    return _call(by, "matrix_" + method, A, B, found, result, A.shape, formula, *more)
