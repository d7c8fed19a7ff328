"""A vector beside a matrix: on the left it counts for the rows, on the right for the columns."""

from __future__ import annotations

import functools
from types import FrameType
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, Semiring
from lagpu.algebra.tables import monoid, semiring
from lagpu.core.expr import OUTPUTS, Call, is_operand
from lagpu.core.hints import name_of
from lagpu.errors import DimensionMismatch

__all__ = ["as_column", "as_row", "broadcast", "outer_product"]


@functools.lru_cache(maxsize=256)  # one object for each: backends remember semirings by identity
def _any_of(op: BinaryOp) -> Semiring:
    """Return the semiring that multiplies by `op`, for products of one term in each sum."""
    name = f"any_{op.name}"
    known = op.dtype is None and not op.body and name in semiring
    return semiring[name] if known else Semiring(monoid.any, op)


def as_row(v: Any) -> Any:
    """Return the 1 x n matrix with the entries of a vector."""
    return as_column(v).T.new()


def as_column(v: Any) -> Any:
    """Return the n x 1 matrix with the entries of a vector; the host sees none of a full one."""
    place = v._flushed()
    if v.nvals == v.size:
        indices, values = (place.vector_values(x.data, True) for x in (v.apply("index").new(), v))
    else:
        indices, values = v.to_coo()
    ptr = np.array([0, len(indices)])
    shape = (v.size, 1)
    data = place.matrix_from_csc(ptr, indices, values, v.dtype, shape)
    return OUTPUTS[2]._of(data, v.dtype, shape, place, None)


def outer_product(u: Any, v: Any, op: BinaryOp) -> Call:
    """Return the deferred matrix ``C[i, j] = u[i] (x) v[j]``."""
    column = as_column(u)
    row = column.T if v is u else as_column(v).T
    call: Call = column.mxm(row, _any_of(op))
    call.formula = (op.name, " outer(", u, ", ", v, ")")
    return call


def broadcast(kind: str, x: Any, y: Any, op: BinaryOp, defaults: Any, by: FrameType | None) -> Call:
    """Return the deferred element-wise operation on a vector and a matrix.

    On the intersection it is a product with a diagonal matrix. On the union each entry of the
    vector is written into its whole row or column, so the result has up to that many entries.

    Parameters
    ----------
    kind : str
        ``"ewise_add"``, ``"ewise_mult"`` or ``"ewise_union"``.
    x, y : Vector and Matrix, or Matrix and Vector
        The operands. A vector on the left has an entry for each row, on the right for each column.
    op : BinaryOp
        The operator.
    defaults : tuple or None
        The defaults of ``ewise_union``.
    by : FrameType, optional
        The author's frame.
    """
    left = is_operand(x, 1)
    v, A = (x, y) if left else (y, x)
    size = A.nrows if left else A.ncols
    if v.size != size:
        side = "nrows" if left else "ncols"
        raise DimensionMismatch(
            f"{kind}: {name_of(v)}.size {v.size} != {name_of(A)}.{side} {size}. A vector on the "
            "left counts for the rows of a matrix, on the right for its columns."
        )
    if kind == "ewise_mult":
        ways = (v.diag(), A) if left else (A, v.diag())
        call: Call = ways[0].mxm(ways[1], _any_of(op))
    else:
        ones = OUTPUTS[1](v.dtype, A.ncols if left else A.nrows, like=v)
        ones << 1
        full = outer_product(v, ones, semiring.any_first.multiply) if left else (
            outer_product(ones, v, semiring.any_second.multiply)
        )  # fmt: skip
        whole = full.new()
        parts = (whole, A) if left else (A, whole)
        more = (op,) if defaults is None else (op, *defaults)
        call = getattr(parts[0], kind)(parts[1], *more)
    sign = " ⊗ " if kind == "ewise_mult" else " ⊕ "
    call.formula = (op.name, "(", x, sign, y, ")")
    return call if by is None else call._written_in(by)
