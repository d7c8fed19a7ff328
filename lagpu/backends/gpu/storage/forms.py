"""Matrices made of other matrices or of triplets: sorting, merging, transposing on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.gpu.device.protocol import Device, format_bytes, has_free
from lagpu.backends.gpu.storage.casts import cast_array
from lagpu.backends.gpu.storage.vector import MatrixStore
from lagpu.dtypes import DType
from lagpu.errors import InvalidValue

__all__ = [
    "by_rows",
    "can_turn",
    "equals_transpose",
    "from_coo",
    "is_equal",
    "is_symmetric",
    "take",
    "transpose",
    "why_no_rows",
    "why_not_turned",
]

Array = Any


def from_coo(
    device: Device,
    rows: Array,
    cols: Array,
    values: Any,
    dtype: DType,
    shape: tuple[int, int],
    dup_op: BinaryOp | None,
) -> MatrixStore:
    """Return a matrix of triplets in any order; see `Backend.matrix_from_coo`."""
    xp = device.xp
    device.require(len(rows) * 48, "from_coo")  # keys, their order, and the sorted copies
    rows, cols = (on_device(device, x).astype(np.int64, copy=False) for x in (rows, cols))
    order = _by_column(xp, rows, cols, shape)
    rows, cols = rows[order], cols[order]
    iso = values if np.ndim(values) == 0 else None
    packed = None if iso is not None else on_device(device, values)[order]
    first = xp.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
    if not bool(first.all()):
        if dup_op is None:
            raise InvalidValue("from_coo: an entry is given twice. Give dup_op=, e.g. binary.plus.")
        starts = xp.flatnonzero(first)
        if packed is None:
            packed, iso = xp.full(len(rows), iso, dtype.numpy), None
        packed = _merge(xp, packed, starts, dup_op, dtype)
        rows, cols = rows[starts], cols[starts]
    return MatrixStore(device, dtype, shape, _pointer(xp, cols, shape[1]), rows, packed, iso)


def _by_column(xp: Any, rows: Array, cols: Array, shape: tuple[int, int]) -> Array:
    """Return the stable order by column and then by row."""
    if shape[0] * shape[1] < 2**63:
        return xp.argsort(cols * np.int64(shape[0]) + rows, kind="stable")
    return xp.lexsort(xp.stack([rows, cols]))


def _pointer(xp: Any, cols: Array, ncols: int) -> Array:
    """Return where each column begins among sorted column indices."""
    return xp.searchsorted(cols, xp.arange(ncols + 1, dtype=np.int64)).astype(np.int64)


def _merge(xp: Any, values: Array, starts: Array, op: BinaryOp, dtype: DType) -> Array:
    """Combine the runs of values that begin at `starts`, each from left to right."""
    ends = xp.append(starts[1:], len(values))
    total = values[starts].copy()
    domain = op.types(dtype)[0]
    for step in range(1, int((ends - starts).max())):
        more = xp.flatnonzero(starts + step < ends)
        x = cast_array(xp, total[more], domain)
        y = cast_array(xp, values[starts[more] + step], domain)
        total[more] = cast_array(xp, op.numpy(x, y), dtype)
    return total


def on_device(device: Device, array: Any) -> Array:
    """Return an array on the device; one that is there already does not move."""
    if isinstance(array, device.xp.ndarray):
        return device.xp.ascontiguousarray(array)  # a step of a longer one is copied
    if hasattr(array, "get"):  # a CuPy array bound for the sim device
        array = array.get()
    return device.from_host(np.asarray(array))


def transpose(
    A: MatrixStore,
    what: str = "transpose",
    remedy: str = "Use A.T in a product instead of A.T.new().",
) -> MatrixStore:
    """Return ``A'``: entries sorted by row, columns rising; `what` and `remedy` are for errors."""
    xp = A.device.xp
    A.device.require(_bytes_beside(A), what, remedy)
    order = xp.argsort(A.row_idx, kind="stable")  # columns rise in A, so they rise in each row
    ptr = _pointer(xp, A.row_idx[order].astype(np.int64), A.shape[0])
    cols = A.columns()[order]
    values = None if A.values is None else A.values[order]
    return MatrixStore(A.device, A.dtype, (A.shape[1], A.shape[0]), ptr, cols, values, A.iso)


def take(A: MatrixStore, kept: Array) -> MatrixStore:
    """Return the entries where the Boolean array `kept` holds."""
    xp = A.device.xp
    before = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(kept, dtype=np.int64)])
    chosen = xp.flatnonzero(kept)
    values = None if A.values is None else A.values[chosen]
    return MatrixStore(
        A.device, A.dtype, A.shape, before[A.col_ptr], A.row_idx[chosen], values, A.iso
    )


def is_equal(A: MatrixStore, B: MatrixStore) -> bool:
    """Whether two matrices of one shape have the same entries with equal values."""
    xp = A.device.xp
    if A.nvals != B.nvals:
        return False
    if not bool((A.col_ptr == B.col_ptr).all()) or not bool((A.row_idx == B.row_idx).all()):
        return False
    if A.values is None and B.values is None:
        return A.nvals == 0 or bool(A.iso == B.iso)
    return bool(xp.all(A.all_values() == B.all_values()))


def is_symmetric(A: MatrixStore) -> bool:
    """Whether ``A' == A`` is known, or can be found out: False where memory does not let one look.

    Then products do with one form, as those of a directed matrix whose second one does not fit.
    """
    if A.symmetric is None and A.rows is None and not has_free(A.device, _bytes_beside(A)):
        return False
    return equals_transpose(A)


def equals_transpose(A: MatrixStore) -> bool:
    """Whether ``A' == A``; the answer is remembered.

    Raises
    ------
    OutOfMemory
        If it is not known, and there is no room for the transpose.
    """
    if A.symmetric is None:
        A.symmetric = A.shape[0] == A.shape[1] and is_equal(A, A.rows or _rows(A))
    return A.symmetric


def by_rows(A: MatrixStore) -> MatrixStore:
    """Return ``A'``, made at the first call and kept; `A` itself if it is symmetric."""
    square = A.shape[0] == A.shape[1]
    if square and A.symmetric is None and A.rows is None and has_free(A.device, _bytes_beside(A)):
        rows = _rows(A)  # what tells whether it is needed
        A.symmetric = is_equal(A, rows)
        A.rows = None if A.symmetric else rows
    if is_symmetric(A):
        return A
    if A.rows is None:
        A.rows = _rows(A)
    return A.rows


def _rows(A: MatrixStore) -> MatrixStore:
    """Return ``A'`` for a search, whose author wrote no transpose."""
    return transpose(A, "rows of the matrix", "")


def can_turn(A: MatrixStore) -> bool:
    """Whether the second form of a matrix may be made: it is allowed, and there is room."""
    return A.turnable and has_free(A.device, A.nbytes + _bytes_beside(A))


def why_not_turned(A: MatrixStore) -> str:
    """Return why `can_turn` says no."""
    if not A.turnable:
        return "its orientation is csc"
    need, free = A.nbytes + _bytes_beside(A), A.device.free_bytes()
    return f"to make it needs {format_bytes(need)}, {format_bytes(free)} free"


def why_no_rows(A: MatrixStore) -> str:
    """Return why the form by rows of a matrix is not to be had, or nothing."""
    there = A.symmetric or A.rows is not None or can_turn(A) or is_symmetric(A)
    return "" if there else why_not_turned(A)


def _bytes_beside(A: MatrixStore) -> int:
    """Return the bytes that sorting the entries by row takes, beside the result."""
    return 32 * A.nvals
