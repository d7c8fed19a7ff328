"""Products with ``@``, and the operations on two matrices: expressions become calls."""

from __future__ import annotations

from sys import _getframe
from types import FrameType
from typing import Any

from lagpu.algebra.operators import Semiring
from lagpu.algebra.tables import binary, monoid, semiring
from lagpu.core.arguments import (
    as_semiring,
    as_size,
    binary_operator,
    integer,
    with_defaults,
)
from lagpu.core.expr import OUTPUTS, Call, is_operand, kind_of, temporary
from lagpu.core.hints import NoTruth, name_of, object_of
from lagpu.core.infix.broadcast import broadcast
from lagpu.core.infix.pair import Pair
from lagpu.core.types import VectorLike
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue
from lagpu.operations import Ewise, Kronecker, Multiply, MultiplySelection, Product

__all__ = ["MatMul", "MatrixOperand", "vector_product"]


_PLUS_TIMES = semiring.plus_times


class MatMul(Pair):
    """A product that still needs its semiring, plus_times if none comes: ``u @ A``, ``A @ B``.

    The semiring counts for a chain ``A @ B @ C`` too.
    """

    __slots__ = ("ndim_of_result",)
    _remedy = "{0} has no semiring, and was never used. Write w << semiring.plus_times({0})."
    sign, wanted, takes = "@", "semiring", "times"

    def __init__(self, left: Any, right: Any) -> None:
        sides = [x if isinstance(x, MatMul) else object_of(x) for x in (left, right)]
        ndims = [getattr(x, "ndim_of_result", getattr(x, "ndim", 0)) for x in sides]
        for operand, ndim in zip((left, right), ndims, strict=True):
            if not isinstance(operand, NoTruth) or not ndim:
                raise DomainMismatch(
                    f"@: {kind_of(operand)} is neither a Vector nor a Matrix. "
                    "Make one with from_dense or from_coo."
                )
        self.ndim_of_result = sum(ndims) - 2
        self._begin(*sides)

    def _infix(self, sign: str, other: Any, reflected: bool = False) -> Any:
        if sign == "@":
            return MatMul(other, self) if reflected else MatMul(self, other)
        return super()._infix(sign, other, reflected)

    @property
    def example(self) -> str:
        """The product with a semiring, in the author's names."""
        return f"semiring.plus_times({self.as_line})"

    @property
    def _hint(self) -> str:  # type: ignore[override]
        return f"Write {self.example}, or another semiring."

    def call(self, by: FrameType | None = None) -> Call:
        """Return the deferred product over plus_times, as in linear algebra."""
        return self.times(_PLUS_TIMES, by)

    def times(self, semiring: Semiring, by: FrameType | None, **options: Any) -> Call:
        """Return the deferred product over `semiring`, written in the frame `by`."""
        chosen = options if self.ndim_of_result == 1 else {}
        left, right, semiring = self._operands(semiring, **chosen)
        if left.ndim == right.ndim:
            if options and by is not None:  # they are for the products of a vector in a chain
                raise InvalidValue(f"mxm: takes no {', '.join(options)}. Leave it out.")
            product = inner_product if left.ndim == 1 else _matrix_product
            return product(left, right, semiring, by)
        if left.ndim == 1:
            return vector_product(right, left, semiring, True, by, **options)
        return vector_product(left, right, semiring, False, by, **options)


def inner_product(u: Any, v: Any, semiring: Semiring, by: FrameType | None) -> Call:
    """Return the deferred ``u @ v``: the sum over the indices at which both have an entry.

    The products are computed now; their sum waits.
    """
    if u.size != v.size:
        raise DimensionMismatch(f"inner: {name_of(u)}.size {u.size} != {name_of(v)}.size {v.size}.")
    domain, result = semiring.types(u.dtype, v.dtype)
    products = temporary(u.ewise_mult(v, semiring.multiply[domain]), result)
    total = products.reduce(semiring.monoid)
    formula = (u, f" {semiring.name} ", v)
    return Call(total.operation, (products,), result, (), formula, by)


def _other_ways(A: Any, u: Any, flip: bool) -> str:
    """Return the hint with the two products that would fit if A were transposed."""
    a, v = name_of(A), name_of(u)
    transposed = a.removesuffix(".T") if a.endswith(".T") else f"{a}.T"
    ways = (f"{v} @ {transposed}", f"{a} @ {v}") if flip else (f"{transposed} @ {v}", f"{v} @ {a}")
    return f" Did you mean {ways[0]} or {ways[1]}?"


def vector_product(
    A: Any,
    u: VectorLike,
    semiring: Semiring,
    flip: bool,
    by: FrameType | None,
    kernel: str | None = None,
    policy: str | None = None,
) -> Call:
    """Return the deferred ``A @ u``, or ``u @ A`` if `flip`, as written in the frame `by`.

    Parameters
    ----------
    A : Matrix, its transpose, or a selection
        The matrix.
    u : Vector
        The vector.
    semiring : Semiring
        The algebra.
    flip : bool
        Whether the vector is the left operand.
    by : FrameType, optional
        The author's frame.
    kernel, policy : str, optional
        The author's choice, where the backend offers one; a policy may have arguments, as in
        ``"hiragushi:alpha=48,beta=20"``.
    """
    if not (is_operand(A, 2) and is_operand(u, 1)):
        A, u = object_of(A), object_of(u)
    if not (is_operand(A, 2) and is_operand(u, 1)):
        raise DomainMismatch(
            f"{semiring!r}: takes a Matrix and a Vector, not {kind_of(A)} and {kind_of(u)}. "
            f"Write {semiring.name}(q @ A)."
        )
    if u.size != (A.nrows if flip else A.ncols):
        op, side = ("vxm", "nrows") if flip else ("mxv", "ncols")
        raise DimensionMismatch(
            f"{op}: {name_of(u)}.size {u.size} != {name_of(A)}.{side} {getattr(A, side)}."
            + (_other_ways(A, u, flip) if u.size == (A.ncols if flip else A.nrows) else "")
        )
    if kernel is not None and policy is not None:
        op = "vxm" if flip else "mxv"
        raise InvalidValue(f"{op}: give one of kernel={kernel!r} and policy={policy!r}, not both.")
    left, right = (u, A) if flip else (A, u)
    domain, result = semiring.types(left.dtype, right.dtype)
    stored = A.stored
    product = Product(semiring, domain, result, flip is (A is stored), flip, kernel, policy)
    operation: Multiply | MultiplySelection
    if isinstance(stored, OUTPUTS[2]):
        source, operation = stored, Multiply(stored.data, u.data, product)
    else:
        source = stored.operand  # the vector of a selection
        operation = MultiplySelection(source.data, u.data, product)
    size = A.ncols if flip else A.nrows
    formula = (left, f" {semiring.name} ", right)
    return Call(operation, (source, u), result, (size,), formula, by)


class MatrixOperand(NoTruth):
    """A matrix or a view of one, as the left operand of an operation on two matrices."""

    __slots__ = ()

    def mxm(self: Any, B: Any, op: Semiring | str = _PLUS_TIMES) -> Call:
        """Multiply by a matrix, as ``op(A @ B)``: ``C[i, j] = ⊕ₖ A[i, k] ⊗ B[k, j]``.

        Parameters
        ----------
        B : Matrix or its transpose, (ncols, m)
            The right operand.
        op : Semiring
            The algebra.
        """
        B = _require_matrix("mxm", B)
        return _matrix_product(self, B, as_semiring(op), _getframe(1))

    def ewise_add(self: Any, other: Any, op: Any = monoid.plus) -> Call:
        """Combine on the union, ``C = A ⊕ B``; an entry of one side alone stays as it is."""
        return _ewise(_getframe(1), "ewise_add", self, other, op, " ⊕ ")

    def ewise_mult(self: Any, other: Any, op: Any = binary.times) -> Call:
        """Combine on the intersection, ``C = A ⊗ B``."""
        return _ewise(_getframe(1), "ewise_mult", self, other, op, " ⊗ ")

    def ewise_union(self: Any, other: Any, op: Any, left_default: Any, right_default: Any) -> Call:
        """Combine on the union, ``C = A ⊕ B``, with a default in place of a missing entry."""
        other = object_of(other)
        if not isinstance(other, NoTruth):
            _require_matrix("ewise_union", other)
        given = left_default, right_default
        found, defaults = with_defaults(op, self.dtype, other.dtype, given)
        return _ewise(_getframe(1), "ewise_union", self, other, found, " ⊕ ", defaults)

    def kronecker(self: Any, B: Any, op: Any = binary.times) -> Call:
        """Return the Kronecker product with a matrix `B` of shape (p, q).

        ``C[i p + k, j q + l] = A[i, j] ⊗ B[k, l]``
        """
        found = binary_operator(op)
        B = _require_matrix("kronecker", B)
        shape = (
            as_size(self.nrows * B.nrows, "kronecker"),
            as_size(self.ncols * B.ncols, "kronecker"),
        )
        left, right, transposed = _stored(self, B)
        operation = Kronecker(left.data, right.data, found, transposed)
        result = found.types(self.dtype, B.dtype)[1]
        formula = (found.name, " kronecker(", self, ", ", B, ")")
        return Call(operation, (left, right), result, shape, formula, _getframe(1))

    def power(self: Any, n: int, op: Semiring | str = _PLUS_TIMES) -> Call:
        """Return the product of `n` times this square matrix, ``A @ A @ ... @ A``.

        Raises
        ------
        InvalidValue
            If `n` is less than 1.
        DimensionMismatch
            If the matrix is not square.
        """
        semiring, n = as_semiring(op), integer(n, "power: n")
        if n < 1:
            raise InvalidValue(f"power: n is {n} < 1. Give 1 or more.")
        square, done = self, None
        while n > 1:  # by the bits of n: few products
            if n % 2:
                done = square if done is None else temporary(done.mxm(square, semiring))
            square, n = temporary(square.mxm(square, semiring)), n // 2
        call: Call = square.copying() if done is None else done.mxm(square, semiring)
        return call._written_in(_getframe(1))


def _matrix_product(A: Any, B: Any, semiring: Semiring, by: FrameType | None) -> Call:
    """Return the deferred ``A @ B``, as written in the frame `by`."""
    if A.ncols != B.nrows:
        raise DimensionMismatch(
            f"mxm: {name_of(A)}.ncols {A.ncols} != {name_of(B)}.nrows {B.nrows}."
            + (f" Did you mean {_transpose_of(B)}?" if A.ncols == B.ncols else "")
        )
    domain, result = semiring.types(A.dtype, B.dtype)
    left, right, (left_transposed, right_transposed) = _stored(A, B)
    product = Product(semiring, domain, result, not right_transposed, True)
    operation = Multiply(right.data, left.data, product, left_transposed)
    formula = (A, f" {semiring.name} ", B)
    return Call(operation, (left, right), result, (A.nrows, B.ncols), formula, by)


def _stored(A: Any, B: Any) -> tuple[Any, Any, tuple[bool, bool]]:
    """Return the stored matrices of two operands, and whether each operand is the transpose."""
    left, right = A.stored, B.stored
    return left, right, (A is not left, B is not right)


def _transpose_of(A: Any) -> str:
    """Return the author's name for the transpose of `A`."""
    return f"{name_of(A)}.T" if A.stored is A else name_of(A.stored)


def _require_matrix(what: str, B: Any) -> Any:
    """Return `B`, computed if it is an expression, if that is a matrix."""
    found = object_of(B)
    if not is_operand(found, 2):
        raise DomainMismatch(f"{what}: {kind_of(found)} is not a Matrix.")
    return found


def _ewise(
    by: FrameType, kind: str, A: Any, B: Any, op: Any, sign: str, defaults: Any = None
) -> Call:
    found, B = binary_operator(op), object_of(B)
    if is_operand(B, 1):
        return broadcast(kind, A, B, found, defaults, by)
    _require_matrix(kind, B)
    if A.shape != B.shape:
        raise DimensionMismatch(
            f"{kind}: {name_of(A)} has shape {A.shape} != {B.shape} of {name_of(B)}."
            + (f" Did you mean {_transpose_of(B)}?" if A.shape == B.shape[::-1] else "")
        )
    left, right, transposed = _stored(A, B)
    operation = Ewise(kind, left.data, right.data, found, defaults, transposed)
    result = found.types(A.dtype, B.dtype)[1]
    formula = (found.name, "(", A, sign, B, ")")
    return Call(operation, (left, right), result, A.shape, formula, by)
