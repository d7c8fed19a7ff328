"""Statements: what the front end hands to a backend, checked, typed and frozen.

A statement is an output, a descriptor (mask, accumulator, replace) and an operation. The operation
is the same record for a vector and for a matrix of k rows. Operands are *handles*: a backend's own
objects for vectors and matrices, which stay the same however often they are written.

A backend obeys the GraphBLAS rule: with ``T`` the operation's result,

- ``Z = T``, or with an accumulator ``Z = W (+) T`` (entries of only one side stay as they are);
- where the mask holds, ``W`` becomes ``Z`` (an entry that ``Z`` lacks is deleted);
- elsewhere ``W`` stays, or is deleted if `replace` is set.

The output may be one of the operands.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator, Semiring
from lagpu.dtypes import DType
from lagpu.operations.scalar import CounterRef, ScalarRef, ScalarValue, read, refs_in

__all__ = [
    "Apply",
    "Assign",
    "AssignScalar",
    "BoundOperator",
    "Constant",
    "Descriptor",
    "Ewise",
    "Extract",
    "ExtractColumn",
    "ExtractElement",
    "Handle",
    "Kronecker",
    "Multiply",
    "MultiplySelection",
    "Operation",
    "Product",
    "Reduce",
    "ReduceRows",
    "Select",
    "SelectionToMatrix",
    "Statement",
    "Transposed",
    "method_of",
    "operands_of",
    "resolved",
]

Array = np.ndarray[Any, Any]
Handle = Any
"""A backend's own object for a vector or a matrix; it stays the same when it is written."""
Indices = tuple[Array | None, ...] | None
"""One index list a dimension, None for all indices of it; None alone for the whole object."""
Transposed = tuple[bool, bool]
"""For each of two matrices, whether its transpose is meant."""


class Descriptor(NamedTuple):
    """How a result is written: mask, accumulator, replace.

    Attributes
    ----------
    mask : Handle or None
        The mask: a vector for a vector, a matrix for a matrix.
    structure : bool
        The mask keeps where it has an entry; else where it has an entry that is not zero.
    complement : bool
        The mask keeps the other positions.
    accum : BinaryOp or None
        The accumulator.
    replace : bool
        Delete the output's entries outside the mask.
    """

    mask: Handle | None = None
    structure: bool = True
    complement: bool = False
    accum: BinaryOp | None = None
    replace: bool = False

    @property
    def is_fresh(self) -> bool:
        """Whether nothing stays of what the output had before."""
        return self.accum is None and (self.replace or self.mask is None)


class Product(NamedTuple):
    """The algebra of a product of a matrix with a vector, ``w = A u`` or ``w = A' u``.

    Attributes
    ----------
    semiring : Semiring
        Addition and multiplication.
    domain, result : DType
        Operands are cast to `domain`, each product to `result`, the type of sums and result.
    transpose : bool
        Use ``A'``: ``w[j] = (+)_i A[i, j] u[i]``.
    flip : bool
        The vector is the left operand of the multiplication, as in ``u @ A``.
    kernel, policy : str or None
        The author's choice for this product, where a backend offers one.
    """

    semiring: Semiring
    domain: DType
    result: DType
    transpose: bool
    flip: bool
    kernel: str | None = None
    policy: str | None = None


class BoundOperator(NamedTuple):
    """An operator of one operand: unary, binary with one operand bound, or index-unary.

    Attributes
    ----------
    op : Operator
        The operator.
    domain, result : DType
        Entries and the bound operand are cast to `domain`; the outcome is of type `result`.
    left, right : NumPy scalar, ScalarRef or None
        The bound operand of a `BinaryOp`, or the thunk of an `IndexUnaryOp` in `right`; of type
        `domain`.
    """

    op: Operator
    domain: DType
    result: DType
    left: Any = None
    right: Any = None


# ------------------------------------------------------------------------------- operations
class Multiply(NamedTuple):
    """``w = A u``, ``w = A' u``, or the same for each row of a matrix: ``C = Q A``.

    Attributes
    ----------
    matrix : Handle
        ``A``.
    operand : Handle
        The vector ``u``, or the left one of two matrices, each row of which is such a vector.
    product : Product
        The algebra; for two matrices `transpose` and `flip` are as in ``u @ A``, so `transpose` is
        False where ``A'`` is meant.
    transposed : bool
        Whether the operand, a matrix, is meant transposed.
    """

    matrix: Handle
    operand: Handle
    product: Product
    transposed: bool = False


class MultiplySelection(NamedTuple):
    """``w = P u`` or ``w = P' u``, where P has an entry (f[j], j) for each entry j of a vector f.

    Attributes
    ----------
    indices : Handle
        The vector f, of an integer type; a value that is no row of P has no entry there.
    operand : Handle
        The vector u.
    product : Product
        The algebra.
    """

    indices: Handle
    operand: Handle
    product: Product


class Ewise(NamedTuple):
    """An element-wise combination ``u (+) v`` or ``u (x) v``.

    Attributes
    ----------
    kind : str
        ``"ewise_add"``: on the union, an entry of one side alone as it is; ``"ewise_mult"``: on the
        intersection; ``"ewise_union"``: on the union, a default standing for the missing side.
    left, right : Handle
        The operands.
    op : BinaryOp
        The operator.
    defaults : tuple or None
        Of ``ewise_union``, for the left and the right side, of the operator's domain.
    transposed : tuple of bool
        Of matrices.
    """

    kind: str
    left: Handle
    right: Handle
    op: BinaryOp
    defaults: tuple[Any, Any] | None = None
    transposed: Transposed = (False, False)


class Kronecker(NamedTuple):
    """The Kronecker product: ``A[i, j] (x) B`` in the place of each entry of ``A``."""

    left: Handle
    right: Handle
    op: BinaryOp
    transposed: Transposed = (False, False)


class Apply(NamedTuple):
    """``f(u)``, entry by entry."""

    operand: Handle
    function: BoundOperator


class Select(NamedTuple):
    """The entries for which an operator of value, index and thunk holds.

    Attributes
    ----------
    operand : Handle
        The vector or matrix.
    op : IndexUnaryOp
        The operator, with a BOOL result.
    thunk : NumPy scalar or ScalarRef
        Its last operand, of the operator's domain.
    """

    operand: Handle
    op: IndexUnaryOp
    thunk: Any


class Assign(NamedTuple):
    """``w(I) = u`` or ``C(I, J) = A``; indices are distinct in each list."""

    operand: Handle
    indices: Indices = None
    transposed: bool = False


class AssignScalar(NamedTuple):
    """``w(I) = value`` or ``C(I, J) = value``; indices rise in each list.

    Attributes
    ----------
    value : NumPy scalar, ScalarRef or CounterRef
        The number, of the output's type.
    indices : Indices
        Where it goes.
    """

    value: Any
    indices: Indices = None


class Extract(NamedTuple):
    """``u(I)`` or ``A(I, J)``; indices may repeat."""

    operand: Handle
    indices: Indices = None


class ExtractColumn(NamedTuple):
    """``A(:, j)``, or ``A(j, :)'`` if `transposed`, as a vector."""

    matrix: Handle
    column: int
    transposed: bool = False


class ReduceRows(NamedTuple):
    """``w[i] = (+)_j A[i, j]``, or over the rows of ``A'`` if `transposed`."""

    matrix: Handle
    monoid: Monoid
    transposed: bool = False


class SelectionToMatrix(NamedTuple):
    """The BOOL matrix with an entry (f[j], j) for each entry j of f, or (j, f[j]) if `transposed`.

    Values of `indices` outside ``0 .. nrows-1`` have no entry.
    """

    indices: Handle
    nrows: int
    transposed: bool = False


class Reduce(NamedTuple):
    """The sum of all entries: a scalar, empty if there are none."""

    operand: Handle
    monoid: Monoid


class ExtractElement(NamedTuple):
    """``u[i]`` or ``A[i, j]``: a scalar, empty if there is no entry."""

    operand: Handle
    position: tuple[int, ...]


class Constant(NamedTuple):
    """A number for a scalar: a NumPy scalar, ScalarRef or CounterRef."""

    value: Any


Operation = (
    Multiply
    | MultiplySelection
    | Ewise
    | Kronecker
    | Apply
    | Select
    | Assign
    | AssignScalar
    | Extract
    | ExtractColumn
    | ReduceRows
    | SelectionToMatrix
    | Reduce
    | ExtractElement
    | Constant
)


# For each operation the fields that are handles it reads, and its name in messages and traces:
# where it makes a vector (or reduces one), and where it makes a matrix (or reduces one).
_READS: dict[type, tuple[str, ...]] = {
    Multiply: ("matrix", "operand"),
    MultiplySelection: ("indices", "operand"),
    Ewise: ("left", "right"),
    Kronecker: ("left", "right"),
    Apply: ("operand",),
    Select: ("operand",),
    Assign: ("operand",),
    AssignScalar: (),
    Extract: ("operand",),
    ExtractColumn: ("matrix",),
    ReduceRows: ("matrix",),
    SelectionToMatrix: ("indices",),
    Reduce: ("operand",),
    ExtractElement: ("operand",),
    Constant: (),
}
_NAMES: dict[type, tuple[str, str]] = {
    Multiply: ("mxv", "matrix_mxm"),
    MultiplySelection: ("mxv_selection", ""),
    Kronecker: ("", "matrix_kronecker"),
    Apply: ("apply", "matrix_apply"),
    Select: ("select", "matrix_select"),
    Assign: ("assign", "matrix_assign"),
    AssignScalar: ("assign_scalar", "matrix_assign_scalar"),
    Extract: ("extract", "matrix_extract"),
    ExtractColumn: ("extract_column", ""),
    ReduceRows: ("reduce_vector", ""),
    SelectionToMatrix: ("", "matrix_selection"),
    Reduce: ("reduce", "matrix_reduce"),
    ExtractElement: ("vector_get", "matrix_get"),
    Constant: ("constant", "constant"),
}


def operands_of(operation: Operation) -> tuple[Handle, ...]:
    """Return the vectors and matrices that an operation reads, in the order of its fields."""
    return tuple(getattr(operation, name) for name in _READS[type(operation)])


def method_of(operation: Operation, ndim: int) -> str:
    """Return an operation's name in messages and traces, on vectors (1) or matrices (2)."""
    if isinstance(operation, Ewise):
        return operation.kind if ndim == 1 else f"matrix_{operation.kind}"
    if isinstance(operation, Assign) and ndim == 2 and operation.indices is None:
        return "matrix_transpose" if operation.transposed else "matrix_dup"
    return _NAMES[type(operation)][ndim - 1]


class Statement(NamedTuple):
    """One checked operation with its output.

    Attributes
    ----------
    out : Handle or ScalarValue
        What is written.
    desc : Descriptor
        How it is written.
    operation : Operation
        What is computed.
    dtype : DType
        Type of the operation's result, before it is cast to that of the output.
    """

    out: Any
    desc: Descriptor
    operation: Operation
    dtype: DType

    @property
    def assigns_counter(self) -> bool:
        """Whether the number that is assigned is the counter of the loop that records it."""
        operation = self.operation
        return (
            isinstance(operation, (AssignScalar, Constant)) and type(operation.value) is CounterRef
        )

    @property
    def scalars(self) -> list[ScalarRef]:
        """The scalars whose values are read when the statement runs."""
        return list(refs_in(self.operation))

    @property
    def writes_scalar(self) -> bool:
        """Whether the output is a scalar."""
        return type(self.out) is ScalarValue


def resolved(operation: Operation, depth: int = 0) -> Operation:
    """Return an operation with the values that its scalars have now, in iteration `depth`.

    Raises
    ------
    EmptyObject
        If a scalar has no value.
    """
    found: Operation = read(operation, depth)
    return found
