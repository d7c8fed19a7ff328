"""Statements that the front end hands to a backend: checked, typed and frozen.

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
"""An index list for each dimension, None for all its indices; None alone for the whole object."""
Transposed = tuple[bool, bool]
"""For each of two matrices, whether the operation uses its transpose."""


class Descriptor(NamedTuple):
    """Mask, accumulator and replace: how a result is written.

    Attributes
    ----------
    mask : Handle or None
        The mask: a vector for a vector, a matrix for a matrix.
    structure : bool
        Whether the mask keeps every position at which it has an entry; else only those at which
        the entry is not zero.
    complement : bool
        Whether the mask keeps the other positions instead.
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
        """Whether the statement discards the output's earlier content."""
        return self.accum is None and (self.replace or self.mask is None)


class Product(NamedTuple):
    """The algebra of a product of a matrix with a vector, ``w = A u`` or ``w = A' u``.

    Attributes
    ----------
    semiring : Semiring
        Addition and multiplication.
    domain, result : DType
        Operands are cast to `domain`, products to `result`, the type of the sums.
    transpose : bool
        Use ``A'``: ``w[j] = (+)_i A[i, j] u[i]``.
    flip : bool
        Whether the vector is the left operand of the multiplication, as in ``u @ A``.
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
        Entries and the bound operand are cast to `domain`; the output has the type `result`.
    left, right : NumPy scalar, ScalarRef or None
        The bound operand of a `BinaryOp`, or in `right` the thunk of an `IndexUnaryOp`; its type
        is `domain`.
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
        The vector ``u``, or the left one of two matrices, ``Q``, whose rows are such vectors.
    product : Product
        The algebra; for two matrices `transpose` and `flip` are as in ``u @ A``, so `transpose` is
        False for ``Q A'``.
    transposed : bool
        Whether the transpose of the operand, a matrix, is used.
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
        The vector f, of an integer type; a value outside of P's rows makes no entry.
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
        ``"ewise_add"``: on the union, where an entry of one side alone stays as it is;
        ``"ewise_mult"``: on the intersection; ``"ewise_union"``: on the union, with a default in
        place of a missing entry.
    left, right : Handle
        The operands.
    op : BinaryOp
        The operator.
    defaults : tuple or None
        The defaults of ``ewise_union`` for the left and the right side, in the operator's domain.
    transposed : tuple of bool
        Whether the transpose of the left and of the right matrix is used.
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
    """The entries for which an operator of value, index and thunk is true.

    Attributes
    ----------
    operand : Handle
        The vector or matrix.
    op : IndexUnaryOp
        The operator, with a BOOL result.
    thunk : NumPy scalar or ScalarRef
        The operator's last operand, in its domain.
    """

    operand: Handle
    op: IndexUnaryOp
    thunk: Any


class Assign(NamedTuple):
    """``w(I) = u`` or ``C(I, J) = A``; the indices of a list are distinct."""

    operand: Handle
    indices: Indices = None
    transposed: bool = False


class AssignScalar(NamedTuple):
    """``w(I) = value`` or ``C(I, J) = value``; the indices of a list rise.

    Attributes
    ----------
    value : NumPy scalar, ScalarRef or CounterRef
        The number, of the output's type.
    indices : Indices
        The positions that are assigned.
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


# For each operation, the fields with the handles that it reads.
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
# The operations with a field that may be a ScalarRef or a CounterRef.
_MAY_REFER = frozenset({Ewise, Apply, Select, AssignScalar, Constant})
# The name of each operation in messages and traces, on vectors and on matrices.
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
    """A checked operation and its output.

    Attributes
    ----------
    out : Handle or ScalarValue
        The output.
    desc : Descriptor
        How the output is written.
    operation : Operation
        The right-hand side.
    dtype : DType
        Type of the operation's result, before the cast to the type of the output.
    """

    out: Any
    desc: Descriptor
    operation: Operation
    dtype: DType

    @property
    def assigns_counter(self) -> bool:
        """Whether the statement assigns the counter of the loop that records it."""
        operation = self.operation
        return (
            isinstance(operation, (AssignScalar, Constant)) and type(operation.value) is CounterRef
        )

    @property
    def scalars(self) -> list[ScalarRef]:
        """The scalars whose values are read when the statement runs."""
        operation = self.operation
        return list(refs_in(operation)) if type(operation) in _MAY_REFER else []

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
    if type(operation) not in _MAY_REFER:
        return operation
    found: Operation = read(operation, depth)
    return found
