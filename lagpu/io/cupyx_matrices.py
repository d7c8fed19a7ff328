"""Convert matrices from and to `cupyx.scipy.sparse`, whose arrays are on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu import backends
from lagpu.backends.protocol import Backend
from lagpu.core.exchange.arrays_in import array_in
from lagpu.core.matrix import Matrix
from lagpu.dtypes import BOOL, FP32, FP64
from lagpu.errors import (
    BackendMismatch,
    BackendUnavailable,
    DomainMismatch,
    InvalidValue,
    LimitExceeded,
)

__all__ = ["from_cupyx", "to_cupyx"]

_MOST = 2**31 - 1  # cupyx counts in 32 bits


def from_cupyx(S: Any, *, backend: str | Backend | None = None) -> Matrix:
    """Return the matrix of a `cupyx.scipy.sparse` matrix, of any format.

    On the gpu backend nothing goes through the host. There a sorted ``csc_matrix`` is not even
    copied: the matrix has the same memory, so do not write to the arrays of `S` afterwards, or give
    ``S.copy()``. Rows (``csr_matrix``) and triplets (``coo_matrix``) are sorted by columns on the
    device.

    Parameters
    ----------
    S : csc_matrix, csr_matrix, coo_matrix or another one, (nrows, ncols)
        Stored zeros stay entries; duplicates are summed. `S` itself is not changed.
    backend : str or Backend, optional
        Where the matrix will live; a backend on the host gets a copy.

    Raises
    ------
    DomainMismatch
        If `S` is not a sparse matrix, or lagpu lacks the type of its values.
    """
    kind = getattr(S, "format", None)
    if kind is None or not hasattr(S, "tocoo"):
        raise DomainMismatch(
            f"from_cupyx: {type(S).__name__} is not a sparse matrix. "
            "Wrap it in cupyx.scipy.sparse.coo_matrix."
        )
    place = backends.get(backend)
    nrows, ncols = map(int, S.shape)
    if kind not in ("csc", "csr"):
        S = S.tocoo()
        rows, cols, values = (_taken(x, place) for x in (S.row, S.col, S.data))
        dup_op = "lor" if values.dtype == bool else "plus"
        return Matrix.from_coo(
            rows, cols, values, nrows=nrows, ncols=ncols, dup_op=dup_op, backend=place
        )
    if not S.has_canonical_format:
        S = S.copy()  # the next line sorts in place
        S.sum_duplicates()
    ptr, idx, values = (_taken(x, place) for x in (S.indptr, S.indices, S.data))
    make = Matrix.from_csc if kind == "csc" else Matrix.from_csr
    return make(ptr, idx, values, nrows=nrows, ncols=ncols, backend=place)


def _taken(array: Any, place: Backend) -> Any:
    return array_in(array, place, "from_cupyx", copies=True)


def to_cupyx(A: Matrix, *, format: str = "csc") -> Any:
    """Return a matrix on a GPU as a `cupyx.scipy.sparse` matrix; nothing goes through the host.

    Parameters
    ----------
    A : Matrix, (nrows, ncols)
        A matrix on the gpu backend, of type BOOL, FP32 or FP64.
    format : str
        ``"csc"``, ``"csr"`` or ``"coo"``. ``"csc"`` is a copy of the columns that the backend
        stores; the others are made of it on the device.

    Raises
    ------
    BackendMismatch
        If the matrix is not on a GPU.
    DomainMismatch
        If it is of an integer type, which cupyx lacks.
    LimitExceeded
        If it has more rows, columns or entries than 32 bits count.
    InvalidValue
        If there is no such format.
    BackendUnavailable
        If CuPy is not installed.
    """
    if format not in ("csc", "csr", "coo"):
        raise InvalidValue(f"to_cupyx: there is no format {format!r}. Use csc, csr or coo.")
    place = A.backend
    if place.device is None or not _has_cupy_arrays(place):
        raise BackendMismatch(
            f"to_cupyx: {A.name} is on {place.name}. Move it first: A.to('gpu'), or use to_scipy."
        )
    if A.dtype not in (BOOL, FP32, FP64):
        raise DomainMismatch(
            f"to_cupyx: cupyx has no matrices of {A.dtype}. Convert it: A.dup('FP64')."
        )
    if max(A.nrows, A.ncols, A.nvals) > _MOST:
        raise LimitExceeded(
            f"to_cupyx: {A.nrows} x {A.ncols} with {A.nvals} entries; cupyx counts in 32 bits. "
            "Take a part, A[I, J], or use to_scipy."
        )
    try:
        import cupyx.scipy.sparse as cs
    except ImportError as error:
        raise BackendUnavailable("to_cupyx: needs CuPy. Install lagpu[gpu].") from error
    if format == "csr":  # the columns of the transpose are the rows
        A = A.T.new()
    ptr, idx, values = A.to_csc(on_device=True)
    if format == "csc":
        return cs.csc_matrix((values, idx, ptr), shape=A.shape)
    if format == "csr":
        return cs.csr_matrix((values, idx, ptr), shape=A.shape[::-1])
    xp = place.device.xp
    cols = xp.searchsorted(ptr, xp.arange(len(idx), dtype=ptr.dtype), side="right") - 1
    return cs.coo_matrix((values, (idx, cols)), shape=A.shape)


def _has_cupy_arrays(place: Backend) -> bool:
    return place.device.xp is not np
