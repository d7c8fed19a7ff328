"""What met at each entry of a matrix; see `terms`, which does the same for vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, Semiring
from lagpu.backends.matrices import Turned
from lagpu.crosscheck.candidates import bound, either, sources
from lagpu.crosscheck.host import Entries, HostMatrix, Terms
from lagpu.dtypes import DType, cast

__all__ = ["matrix_terms"]

Array = np.ndarray[Any, Any]


def matrix_terms(
    method: str, args: tuple[Any, ...], wanted: Array, result: DType, nrows: int
) -> Terms:
    """Return the values that an operation has at the indices `wanted` of the matrix it makes.

    Parameters
    ----------
    method : str
        Name of the `Backend` method.
    args : tuple
        Its arguments without output and descriptor, matrices as `HostMatrix`.
    wanted : ndarray of int, (count,)
        Indices of entries of the result, rising: ``column * nrows + row``.
    result : DType
        Type of the operation's result, before it is written.
    nrows : int
        Rows of the result.
    """
    if method == "matrix_mxm":
        found = _product_terms(wanted, nrows, *args)
    elif method == "matrix_from_coo":
        found = _triplets(wanted, nrows, *args)
    elif method == "matrix_kronecker":
        found = _blocks(wanted, nrows, *args)
    elif method.startswith("matrix_ewise"):
        A, B, op, turned, *defaults = args
        x, y = (M.entries(turn).at(wanted) for M, turn in zip((A, B), turned, strict=True))
        found = either(op, A, B, x, y, *defaults)
    elif method == "matrix_apply":
        found = bound(args[0].entries().at(wanted), args[2])
    else:
        found = _assigned(wanted, nrows, method, *args)
    return Terms(found.at, np.atleast_1d(cast(found.values, result)))


def _product_terms(
    wanted: Array, nrows: int, A: HostMatrix, B: HostMatrix, semiring: Semiring, turned: Turned
) -> Terms:
    """Return the products ``A[i, k] (x) B[k, j]`` of each result: all there are, less the rest.

    An entry of `A` meets a row of `B`: of a frontier on the left no more is looked at than it has.
    """
    left = A.entries(turned[0])
    i, k = _row_and_column(left.indices, left.nrows)
    at, j, y = B.lines(k, columns=turned[1])
    met, place = _among(wanted, j * nrows + i[at])
    at, j, y = at[met], j[met], y[met]
    op = semiring.multiply
    if op.positional:
        return Terms(place, {"i": i[at], "k": k[at], "j": j}[op.positional])
    domain, _ = semiring.types(A.dtype, B.dtype)
    return Terms(place, np.atleast_1d(op.evaluate(domain, left.values[at], y)))


def _triplets(wanted: Array, nrows: int, rows: Array, cols: Array, values: Any) -> Terms:
    """Return the values that triplets give each entry."""
    met, place = _among(wanted, cols.astype(np.int64) * nrows + rows)
    return Terms(place, np.broadcast_to(values, len(rows))[met])


def _blocks(
    wanted: Array, nrows: int, A: HostMatrix, B: HostMatrix, op: BinaryOp, turned: Turned
) -> Terms:
    """Return both entries that meet in a Kronecker product."""
    left, right = A.entries(turned[0]), B.entries(turned[1])
    i, j = _row_and_column(wanted, nrows)
    height = right.nrows
    width = right.size // height
    x = left.at(j // width * left.nrows + i // height)
    y = right.at(j % width * height + i % height)
    return either(op, A, B, x, y)


def _assigned(wanted: Array, nrows: int, method: str, source: Any, *more: Any) -> Terms:
    """Return what is written into a matrix, or a part of it."""
    if method == "matrix_write":
        there, x = source.entries().at(wanted)
        return Terms(np.flatnonzero(there), x[there])
    *turned, rows, cols = more
    i, j = _row_and_column(wanted, nrows)
    (in_rows, i), (in_cols, j) = sources(rows, i), sources(cols, j)
    inside = in_rows & in_cols
    if method == "matrix_assign_scalar":
        return Terms(np.flatnonzero(inside), np.full(np.count_nonzero(inside), source))
    part: Entries = source.entries(*turned)
    there, x = part.at(j * part.nrows + i)
    there &= inside
    return Terms(np.flatnonzero(there), x[there])


def _row_and_column(indices: Array, nrows: int) -> tuple[Array, Array]:
    return indices % nrows, indices // nrows


def _among(wanted: Array, keys: Array) -> tuple[Array, Array]:
    """Return (which keys are wanted, and the place of each of those among the wanted)."""
    place = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    met = wanted[place] == keys
    return met, place[met]
