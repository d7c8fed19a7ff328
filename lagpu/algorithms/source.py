"""The vertex an algorithm starts from, checked."""

from __future__ import annotations

from typing import Any

from lagpu.dtypes import INT32, INT64, DType
from lagpu.errors import DimensionMismatch, DomainMismatch
from lagpu.matrix import Matrix
from lagpu.operands import single_index

__all__ = ["index_type", "source_vertex"]


def source_vertex(A: Any, source: Any) -> int:
    """Return `source` as an int that is a vertex of the square matrix `A`.

    Raises
    ------
    DomainMismatch
        If `A` is no matrix, or `source` no integer.
    DimensionMismatch
        If `A` is not square.
    IndexOutOfBound
        If `source` is not in ``0 .. n-1``.
    """
    if not isinstance(A, Matrix):
        raise DomainMismatch(f"graph: {type(A).__name__} is not a Matrix. See lagpu.io.")
    if A.nrows != A.ncols:
        raise DimensionMismatch(
            f"graph: {A.nrows} rows != {A.ncols} columns; an adjacency matrix is square."
        )
    return single_index(source, A.nrows, "source")


def index_type(A: Matrix) -> DType:
    """Return the smallest signed type that holds every vertex of `A`."""
    return INT32 if A.nrows <= 2**31 else INT64
