"""Convert matrices from and to SciPy, and from arrays on the host or a device."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from lagpu import backends
from lagpu.backends.protocol import Backend
from lagpu.core.arguments import array_in
from lagpu.core.matrix import Matrix
from lagpu.dtypes import lookup
from lagpu.errors import DomainMismatch, InvalidValue
from lagpu.io.csc import compress


def from_scipy(
    S: Any,
    *,
    dtype: Any = None,
    backend: str | Backend | None = None,
    name: str | None = None,
) -> Matrix:
    """Return the matrix of a SciPy sparse array or matrix, of any format.

    Parameters
    ----------
    S : scipy.sparse array or matrix, (nrows, ncols)
        Stored zeros stay entries; duplicates are summed. `S` itself is not changed.
    dtype : DType, optional
        Type of the values; by default that of `S`.
    backend : str or Backend, optional
        Where the matrix will live.
    name : str, optional
        Name of the matrix.

    Raises
    ------
    DomainMismatch
        If `S` is not a sparse array, or lagpu lacks the type of its values.
    """
    sparse: bool = sp.issparse(S)
    if not sparse or S.ndim != 2:
        raise DomainMismatch(
            f"from_scipy: {type(S).__name__} is not a 2-D sparse array. "
            "Wrap it in scipy.sparse.coo_array."
        )
    columns = S.tocsc()
    if columns is S and not S.has_canonical_format:
        columns = S.copy()  # `compress` sorts in place
    return named(compress(columns).matrix(backend), dtype, name)


def named(A: Matrix, dtype: Any, name: str | None) -> Matrix:
    """Return a new matrix with a type and a name, if they are given."""
    if dtype is not None and lookup(dtype) is not A.dtype:
        A = A.dup(dtype)
    if name is not None:
        A.name = name
    return A


def to_scipy(A: Matrix, *, format: str = "csc") -> sp.csc_array | sp.csr_array | sp.coo_array:
    """Return a matrix as a SciPy array, with a value for each entry also if all are equal.

    Parameters
    ----------
    A : Matrix, (nrows, ncols)
        A matrix on any backend.
    format : str
        ``"csc"``, ``"csr"`` or ``"coo"``. Entries are sorted, and stored zeros stay.

    Raises
    ------
    InvalidValue
        If there is no such format.
    """
    if format == "csc":
        col_ptr, row_idx, values = A.to_csc()
        return sp.csc_array((values, row_idx, col_ptr), shape=A.shape)
    if format == "csr":
        row_ptr, col_idx, values = A.to_csr()
        return sp.csr_array((values, col_idx, row_ptr), shape=A.shape)
    if format == "coo":
        rows, cols, values = A.to_coo()
        return sp.coo_array((values, (rows, cols)), shape=A.shape)
    raise InvalidValue(f"to_scipy: there is no format {format!r}. Use csc, csr or coo.")


def to_scipy_sparse(A: Matrix, format: str = "csr") -> sp.csc_array | sp.csr_array | sp.coo_array:
    """Return a matrix as a SciPy array, by default by rows; python-graphblas' name of `to_scipy`.

    Parameters
    ----------
    A : Matrix, (nrows, ncols)
        A matrix on any backend.
    format : str
        ``"csc"``, ``"csr"`` or ``"coo"``.

    Raises
    ------
    InvalidValue
        If there is no such format.
    """
    return to_scipy(A, format=format)


def from_arrays(
    rows: Any,
    cols: Any,
    values: Any = None,
    *,
    nrows: int | None = None,
    ncols: int | None = None,
    backend: str | Backend | None = None,
) -> Matrix:
    """Return the matrix of (row, column, value) triplets in arrays of any library.

    Parameters
    ----------
    rows, cols : array, (nvals,)
        NumPy or CuPy arrays, sequences, or anything with ``__cuda_array_interface__`` or
        ``__dlpack__`` (PyTorch, JAX, cuDF, Numba). For the gpu backend device arrays stay on the
        device; for other backends they are copied to the host.
    values : array, (nvals,), or scalar, optional
        Values of the entries; without values the matrix is BOOL.
    nrows, ncols : int, optional
        Shape; by default the largest index plus one.
    backend : str or Backend, optional
        Where the matrix will live.

    Raises
    ------
    BackendUnavailable
        If an array is on a device and CuPy is not installed.
    IndexOutOfBound, DimensionMismatch, InvalidValue
        As `Matrix.from_coo` raises them; no entry may be given twice.
    """
    place = backends.get(backend)
    rows, cols, values = (
        array_in(x, place, "from_arrays", copies=True)
        for x in (rows, cols, True if values is None else values)
    )
    return Matrix.from_coo(
        rows,
        cols,
        values,
        nrows=nrows,
        ncols=ncols,
        backend=place,
    )
