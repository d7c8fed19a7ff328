"""What kernels need beside a matrix and vectors: made once for a form of a matrix, and kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.gpu.kernels import GRID_BARRIER, kernel
from lagpu.backends.gpu.storage.vector import MatrixStore, nwords

__all__ = [
    "PullSpace",
    "PushSpace",
    "index_types",
    "num_chunks",
    "pull_bytes",
    "pull_space",
    "push_bytes",
    "push_space",
]

SMALL, CHUNK = 32, 256  # as in spmv/push.cuh
MOST_BLOCKS = 4096  # of a cooperative launch
Array = Any


class PushSpace:
    """Lists of columns, for the strategies that start from a vector's entries.

    Attributes
    ----------
    vertex, start, degree : array, (ncols,)
        A listed column, and the place and number of its entries; `start` serves as offsets too.
    chunks : array of u64
        Room for the chunks of all long columns.
    barrier, shares : array
        The barrier of the grid, and two numbers a block.
    nbytes : int
        Bytes of all these.
    """

    def __init__(self, A: MatrixStore) -> None:
        xp, n = A.device.xp, A.shape[1]
        self._lengths = A.col_ptr[1:] - A.col_ptr[:-1]
        self._ncols = n
        self.device = A.device
        count = self.num_chunks = num_chunks(self._lengths)
        kind = A.col_ptr.dtype
        self.nbytes = push_bytes(n, kind.itemsize, count)
        A.device.require(self.nbytes, "product workspace")
        self.vertex = xp.empty(n, np.int32)
        self.start = xp.empty(n, kind)
        self.degree = xp.empty(n, np.uint32)
        self.chunks = xp.empty(count, np.uint64)
        self.barrier = xp.zeros(GRID_BARRIER, np.uint32)
        self.shares = xp.empty(2 * MOST_BLOCKS, np.uint64)
        self._groups: dict[int, Array] = {}

    def groups(self, size: int) -> Array:
        """Return room for all groups of `size` entries, as ``push_virtual`` lists them."""
        found = self._groups.get(size)
        if found is None:
            count = _num_parts(self._lengths, 0, size)
            self.device.require(8 * count, "push_virtual")
            found = self._groups[size] = self.device.xp.empty(count, np.uint64)
            self.nbytes += 8 * count
        return found


class PullSpace:
    """What is known of columns that a pull goes to.

    Attributes
    ----------
    empty : array of u32
        Bits of the columns without entries.
    hint : array of i32
        For each column one of its rows, of those that have the most entries; -1 if there is none.
    nbytes : int
        Bytes of both.
    """

    def __init__(self, A: MatrixStore, lengths: Array) -> None:
        device, n = A.device, A.shape[1]
        self.nbytes = pull_bytes(n)
        device.require(self.nbytes, "product workspace")
        types = index_types(A)
        self.empty = device.xp.empty(nwords(n), np.uint32)
        run = kernel("elementwise/bitmap.cu", "empty_columns", PTR=types["PTR"])
        device.launch(run, n, n, A.col_ptr, self.empty)
        self.hint = device.xp.empty(n, np.int32)
        device.launch(
            kernel("elementwise/bitmap.cu", "heaviest_rows", **types),
            32 * n, n, A.col_ptr, A.row_idx, lengths.astype(A.col_ptr.dtype, copy=False), self.hint,
        )  # fmt: skip


def _num_parts(lengths: Array, shortest: int, size: int) -> int:
    """Return how many parts of `size` entries all columns longer than `shortest` have."""
    long = lengths[lengths > shortest].astype(np.int64)
    return int(((long + size - 1) // size).sum()) + 1


def num_chunks(lengths: Array) -> int:
    """Return how many chunks columns of such lengths have at most."""
    return _num_parts(lengths, SMALL, CHUNK)


def push_bytes(n: int, width: int, chunks: int) -> int:
    """Return the bytes of the lists of `n` columns, whose places have `width` bytes."""
    return (8 + width) * n + 8 * chunks


def pull_bytes(n: int) -> int:
    """Return the bytes of what is known of `n` columns that a pull goes to."""
    return 4 * (nwords(n) + n)


def index_types(A: MatrixStore) -> dict[str, str]:
    """Return the macros for the types of a matrix' index arrays."""
    return {
        "PTR": "i32" if A.col_ptr.dtype == np.int32 else "i64",
        "IDX": "i32" if A.row_idx.dtype == np.int32 else "i64",
    }


def push_space(A: MatrixStore) -> PushSpace:
    """Return the lists of `A`, made at the first call."""
    if "push" not in A.spaces:
        A.spaces["push"] = PushSpace(A)
    space: PushSpace = A.spaces["push"]
    return space


def pull_space(A: MatrixStore, rows: MatrixStore | None) -> PullSpace:
    """Return what is known of the columns of `A`, made at the first call.

    Parameters
    ----------
    A : MatrixStore
        The matrix by the columns that are pulled into.
    rows : MatrixStore or None
        The same matrix by rows, if it is there: it has the rows' lengths.
    """
    if "pull" not in A.spaces:
        A.spaces["pull"] = PullSpace(A, _row_lengths(A) if rows is None else rows.col_ptr)
    space: PullSpace = A.spaces["pull"]
    return space


def _row_lengths(A: MatrixStore) -> Array:
    """Return where each row would begin if they stood one behind the other."""
    xp = A.device.xp
    before = xp.zeros(A.shape[0] + 1, A.col_ptr.dtype)
    before[1:] = xp.cumsum(xp.bincount(A.row_idx, minlength=A.shape[0]))
    return before
