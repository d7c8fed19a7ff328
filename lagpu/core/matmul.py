"""Products with ``@``, and the operations on two matrices: expressions become calls."""

from __future__ import annotations

from sys import _getframe
from types import FrameType
from typing import Any, NoReturn

from lagpu.algebra.operators import Semiring
from lagpu.core.arguments import as_semiring, as_size, binary_operator, with_defaults
from lagpu.core.expr import Call, format_as_written, is_operand, kind_of
from lagpu.core.hints import Deferred, NoTruth, NotYet, name_of, no_operator
from lagpu.core.types import VectorLike
from lagpu.core.unused import Unassigned
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue, NotSupported
from lagpu.host import display
from lagpu.operations import Ewise, Kronecker, Multiply, MultiplySelection, Product

__all__ = ["MatMul", "MatrixOperand", "vector_product"]


class MatMul(Unassigned, Deferred):
    """A product that still needs its semiring: ``u @ A``, ``A @ u`` or ``A @ B``."""

    __slots__ = ("left", "right")
    _remedy = "{0} has no semiring, and was never used. Write w << semiring.plus_times({0})."
    new, value = NotYet(), NotYet()

    def __init__(self, left: Any, right: Any) -> None:
        for operand in (left, right):
            if not (isinstance(operand, NoTruth) and getattr(operand, "ndim", 0) in (1, 2)):
                raise DomainMismatch(
                    f"@: {kind_of(operand)} is neither a Vector nor a Matrix. "
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
        return f"Write semiring.plus_times({_as_line(self)}), or another semiring."

    def __repr__(self) -> str:
        return format_as_written(self.formula)

    def _repr_html_(self) -> str:
        return display.product_html(self)

    def _output(self, value: Any) -> str:
        w = name_of(value) if is_operand(value, 1) or is_operand(value, 2) else "w"
        return f"Write {w} << semiring.plus_times({_as_line(self)})."

    def __matmul__(self, other: Any) -> NoReturn:
        self.refuse("a second @ needs the first product's result", self._one_each(other))

    def _one_each(self, other: Any) -> str:
        return f"Write w << semiring.plus_times({_as_line(self)}), then w @ {name_of(other)}."

    def times(self, semiring: Semiring, by: FrameType, **options: Any) -> Call:
        """Return the deferred product over `semiring`, written in the frame `by`."""
        self._mark_used()
        left, right = self.left, self.right
        if left.ndim == right.ndim == 1:
            raise NotSupported(
                f"{semiring!r}: there is no inner product of two vectors. "
                "Write u.ewise_mult(v, op), then reduce."
            )
        if left.ndim == right.ndim:
            if options:
                raise InvalidValue(f"mxm: takes no {', '.join(options)}. Leave it out.")
            return _matrix_product(left, right, semiring, by)
        if left.ndim == 1:
            return vector_product(right, left, semiring, True, by, **options)
        return vector_product(left, right, semiring, False, by, **options)


def _as_line(pair: MatMul) -> str:
    """Return ``u @ A`` in the author's names, with ``A.T`` for a transpose."""
    return f"{name_of(pair.left)} @ {name_of(pair.right)}"


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
        The author's choice, where the backend offers one.
    """
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
    indices = getattr(stored, "operand", None)  # the vector of a selection
    operation: Multiply | MultiplySelection
    if indices is None:
        source, operation = stored, Multiply(stored.data, u.data, product)
    else:
        source, operation = indices, MultiplySelection(indices.data, u.data, product)
    size = A.ncols if flip else A.nrows
    formula = (left, f" {semiring.name} ", right)
    return Call(operation, (source, u), result, (size,), formula, by)


class MatrixOperand(NoTruth):
    """A matrix or a view of one, as the left operand of an operation on two matrices."""

    __slots__ = ()

    def mxm(self: Any, B: Any, op: Semiring | str) -> Call:
        """Multiply by a matrix, as ``op(A @ B)``: ``C[i, j] = ⊕ₖ A[i, k] ⊗ B[k, j]``.

        Parameters
        ----------
        B : Matrix or its transpose, (ncols, m)
            The right operand.
        op : Semiring
            The algebra.
        """
        _require_matrix("mxm", B)
        return _matrix_product(self, B, as_semiring(op), _getframe(1))

    def ewise_add(self: Any, other: Any, op: Any = None) -> Call:
        """Combine on the union, ``C = A ⊕ B``; an entry of one side alone stays as it is."""
        return _ewise(_getframe(1), "ewise_add", self, other, op, " ⊕ ")

    def ewise_mult(self: Any, other: Any, op: Any = None) -> Call:
        """Combine on the intersection, ``C = A ⊗ B``."""
        return _ewise(_getframe(1), "ewise_mult", self, other, op, " ⊗ ")

    def ewise_union(self: Any, other: Any, op: Any, left_default: Any, right_default: Any) -> Call:
        """Combine on the union, ``C = A ⊕ B``, with a default in place of a missing entry."""
        _require_matrix("ewise_union", other)
        given = left_default, right_default
        found, defaults = with_defaults(op, self.dtype, other.dtype, given)
        return _ewise(_getframe(1), "ewise_union", self, other, found, " ⊕ ", defaults)

    def kronecker(self: Any, B: Any, op: Any) -> Call:
        """Return the Kronecker product with a matrix `B` of shape (p, q).

        ``C[i p + k, j q + l] = A[i, j] ⊗ B[k, l]``
        """
        found = binary_operator(op)
        _require_matrix("kronecker", B)
        shape = (
            as_size(self.nrows * B.nrows, "kronecker"),
            as_size(self.ncols * B.ncols, "kronecker"),
        )
        left, right, transposed = _stored(self, B)
        operation = Kronecker(left.data, right.data, found, transposed)
        result = found.types(self.dtype, B.dtype)[1]
        formula = (found.name, " kronecker(", self, ", ", B, ")")
        return Call(operation, (left, right), result, shape, formula, _getframe(1))


def _matrix_product(A: Any, B: Any, semiring: Semiring, by: FrameType) -> Call:
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


def _require_matrix(what: str, B: Any) -> None:
    if not is_operand(B, 2):
        raise DomainMismatch(f"{what}: {kind_of(B)} is not a Matrix.")


def _ewise(
    by: FrameType, kind: str, A: Any, B: Any, op: Any, sign: str, defaults: Any = None
) -> Call:
    _require_matrix(kind, B)
    found = no_operator(kind, A, B) if op is None else binary_operator(op)
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
