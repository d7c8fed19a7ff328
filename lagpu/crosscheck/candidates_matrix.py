"""The candidates at each entry of a matrix; see `terms` in `candidates` for vectors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lagpu.crosscheck.candidates import bound, either, sources
from lagpu.crosscheck.host import Terms
from lagpu.dtypes import DType, cast
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
    Ewise,
    Kronecker,
    Multiply,
    Operation,
)

__all__ = ["Triplets", "matrix_terms"]

Array = np.ndarray[Any, Any]


class Triplets(NamedTuple):
    """The triplets of a matrix on the host; `values` is an array or one scalar."""

    rows: Array
    cols: Array
    values: Any


def matrix_terms(
    operation: Operation | Triplets, wanted: Array, result: DType, nrows: int
) -> Terms:
    """Return the candidates of an operation at the indices `wanted` of its result, a matrix.

    Parameters
    ----------
    operation : Operation or Triplets
        The operation, with matrices as `HostMatrix`.
    wanted : ndarray of int, (count,)
        Indices of entries of the result, rising: ``column * nrows + row``.
    result : DType
        Type of the operation's result, before it is written.
    nrows : int
        Rows of the result.
    """
    if isinstance(operation, Multiply):
        found = _product_terms(wanted, nrows, operation)
    elif isinstance(operation, Triplets):
        found = _triplets(wanted, nrows, operation)
    elif isinstance(operation, Kronecker):
        found = _kronecker_terms(wanted, nrows, operation)
    elif isinstance(operation, Ewise):
        A, B = operation.left, operation.right
        x, y = (
            M.entries(transposed).at(wanted)
            for M, transposed in zip((A, B), operation.transposed, strict=True)
        )
        found = either(operation, A, B, x, y)
    elif isinstance(operation, Apply):
        found = bound(operation.operand.entries().at(wanted), operation.function)
    else:
        assert isinstance(operation, (Assign, AssignScalar))  # others are computed, then assigned
        found = _assigned(wanted, nrows, operation)
    return Terms(found.at, np.atleast_1d(cast(found.values, result)))


def _product_terms(wanted: Array, nrows: int, operation: Multiply) -> Terms:
    """Return the products ``A[i, k] (x) B[k, j]`` of each result.

    All products are formed, from each entry of `A` and its row of `B`, and the wanted ones kept: so
    a frontier on the left costs only its own entries.
    """
    product, B = operation.product, operation.matrix
    left = operation.operand.entries(operation.transposed)
    i, k = _row_and_column(left.indices, left.nrows)
    at, j, y = B.lines(k, columns=not product.transpose)
    met, place = _among(wanted, j * nrows + i[at])
    at, j, y = at[met], j[met], y[met]
    op = product.semiring.multiply
    if op.positional:
        return Terms(place, {"i": i[at], "k": k[at], "j": j}[op.positional])
    return Terms(place, np.atleast_1d(op.evaluate(product.domain, left.values[at], y)))


def _triplets(wanted: Array, nrows: int, triplets: Triplets) -> Terms:
    """Return the values of the triplets of each entry."""
    rows, cols, values = triplets
    met, place = _among(wanted, cols.astype(np.int64) * nrows + rows)
    return Terms(place, np.broadcast_to(values, len(rows))[met])


def _kronecker_terms(wanted: Array, nrows: int, operation: Kronecker) -> Terms:
    """Return both factors of each entry of a Kronecker product."""
    A, B, _, transposed = operation
    left, right = A.entries(transposed[0]), B.entries(transposed[1])
    i, j = _row_and_column(wanted, nrows)
    height = right.nrows
    width = right.size // height
    x = left.at(j // width * left.nrows + i // height)
    y = right.at(j % width * height + i % height)
    return either(operation, A, B, x, y)


def _assigned(wanted: Array, nrows: int, operation: Assign | AssignScalar) -> Terms:
    """Return the values that are assigned to a matrix or a part of it."""
    rows, cols = operation.indices or (None, None)
    i, j = _row_and_column(wanted, nrows)
    (in_rows, i), (in_cols, j) = sources(rows, i), sources(cols, j)
    inside = in_rows & in_cols
    if isinstance(operation, AssignScalar):
        return Terms(np.flatnonzero(inside), np.full(np.count_nonzero(inside), operation.value))
    source = operation.operand.entries(operation.transposed)
    there, x = source.at(j * source.nrows + i)
    there &= inside
    return Terms(np.flatnonzero(there), x[there])


def _row_and_column(indices: Array, nrows: int) -> tuple[Array, Array]:
    return indices % nrows, indices // nrows


def _among(wanted: Array, keys: Array) -> tuple[Array, Array]:
    """Return (which keys are wanted, the place of each of these keys in `wanted`)."""
    place = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    met = wanted[place] == keys
    return met, place[met]
