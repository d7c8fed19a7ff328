"""Operations on two matrices, as methods of `Matrix` and of its transpose."""

from __future__ import annotations

from typing import Any

from lagpu.errors import DimensionMismatch, DomainMismatch
from lagpu.expr import Call, is_operand
from lagpu.operands import as_semiring, as_size, binary_operator, scalar_value
from lagpu.operators import Semiring
from lagpu.refusals import NoTruth

__all__ = ["MatrixOperand"]


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
        found = as_semiring(op)
        _require_matrix("mxm", B)
        if self.ncols != B.nrows:
            raise DimensionMismatch(
                f"mxm: {_name(self)}.ncols {self.ncols} != {_name(B)}.nrows {B.nrows}."
                + (f" Is it {_turned_name(B)} you mean?" if self.ncols == B.ncols else "")
            )
        result = found.types(self.dtype, B.dtype)[1]
        formula = (self, f" {found.name} ", B)
        return _call("matrix_mxm", self, B, found, result, (self.nrows, B.ncols), formula)

    def ewise_add(self: Any, other: Any, op: Any) -> Call:
        """``C = A (+) B`` on the union; an entry of one side alone stays as it is."""
        return _ewise("ewise_add", self, other, op, " (+) ")

    def ewise_mult(self: Any, other: Any, op: Any) -> Call:
        """``C = A (x) B`` on the intersection."""
        return _ewise("ewise_mult", self, other, op, " (x) ")

    def ewise_union(self: Any, other: Any, op: Any, left_default: Any, right_default: Any) -> Call:
        """``C = A (+) B`` on the union; a default stands where one side has no entry."""
        found = binary_operator(op)
        _require_matrix("ewise_union", other)
        domain, _ = found.types(self.dtype, other.dtype)
        left = scalar_value(left_default, domain, "ewise_union")
        right = scalar_value(right_default, domain, "ewise_union")
        return _ewise("ewise_union", self, other, found, " (+) ", (left, right))

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
        return _call("matrix_kronecker", self, B, found, result, shape, formula)


def _name(A: Any) -> str:
    return str(A.name)


def _turned_name(A: Any) -> str:
    return f"{A.name}.T" if A.stored is A else _name(A.stored)


def _require_matrix(what: str, B: Any) -> None:
    if not is_operand(B, 2):
        raise DomainMismatch(f"{what}: {type(B).__name__} is not a Matrix.")


def _call(
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
    return Call(method, (left, right), args, result, shape, formula)


def _ewise(method: str, A: Any, B: Any, op: Any, sign: str, *more: Any) -> Call:
    found = binary_operator(op)
    _require_matrix(method, B)
    if A.shape != B.shape:
        raise DimensionMismatch(
            f"{method}: {_name(A)} has shape {A.shape} != {B.shape} of {_name(B)}."
            + (f" Is it {_turned_name(B)} you mean?" if A.shape == B.shape[::-1] else "")
        )
    result = found.types(A.dtype, B.dtype)[1]
    formula = (found.name, "(", A, sign, B, ")")
    return _call("matrix_" + method, A, B, found, result, A.shape, formula, *more)
