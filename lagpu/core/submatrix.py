"""What may be assigned to a matrix or to a part of it: ``C << x``, ``C[I, J] << x``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lagpu.backends.protocol import Counter
from lagpu.core.arguments import require_distinct, scalar_value
from lagpu.core.distinct import distinct
from lagpu.core.expr import Call, Mask, is_operand
from lagpu.core.indexing import IndexExpr, index_lists
from lagpu.core.matmul import MatMul
from lagpu.errors import DimensionMismatch, DomainMismatch

if TYPE_CHECKING:
    from lagpu.core.matrix import Matrix

__all__ = ["assignment"]


def assignment(out: Matrix, value: Any, indices: Any) -> Call:
    """Return the call that assigns `value` to ``out[indices]``, or to all of `out` for None.

    Parameters
    ----------
    out : Matrix
        The output.
    value : scalar, Matrix or its transpose, Call or IndexExpr
        What stands right of ``<<``.
    indices : pair of int, slice or array_like of int, or None
        Rows and columns where it goes.
    """
    if isinstance(value, IndexExpr):
        value = value.call()
    if isinstance(value, (MatMul, Mask)):
        value.refuse("is not a result")
    rows, cols = (None, None) if indices is None else index_lists(out, indices)
    if isinstance(value, Call):
        if len(value.shape) == 1:
            value._used = True
            raise DimensionMismatch(
                f"{out.name} << {value!r}: {value.shape} is no matrix's shape. "
                "Make a matrix of one row or column with Matrix.from_coo."
            )
        if indices is None and value.shape:
            return value
        value = value.new()
    if getattr(value, "ndim", 0) == 0 and not isinstance(value, (list, tuple, str)):
        number = scalar_value(value, out.dtype, out.name)
        rows, cols = (None if x is None else distinct(x) for x in (rows, cols))
        where = (number, rows, cols)
        shown = value if type(value) is Counter else number  # a recorder looks for it
        return Call("matrix_assign_scalar", (out,), where, out.dtype, out.shape, (shown,))
    if not is_operand(value, 2):
        raise DomainMismatch(
            f"{out.name} << {type(value).__name__}: is not a matrix. Use Matrix.from_coo."
        )
    if indices is None:
        call: Call = value.copying()
        return call
    m = out.nrows if rows is None else len(rows)
    n = out.ncols if cols is None else len(cols)
    if value.shape != (m, n):
        raise DimensionMismatch(
            f"assign: {value.name} has shape {value.shape} != {(m, n)} of the indices."
        )
    require_distinct(rows, "assign")
    require_distinct(cols, "assign")
    stored = value.stored
    args = (stored.data, value is not stored, rows, cols)
    return Call("matrix_assign", (stored,), args, value.dtype, value.shape, (value,))
