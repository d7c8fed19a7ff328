"""A copy of a graph's pattern on one device, made of the parts on all devices of this process.

Where rows are not cut a part has whole columns, so each part's row indices are moved from device to
device, some at a time, and written where their columns are; nothing passes the host but the
numbers of the columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.storage.handle import MatrixHandle
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.grid.handles import GridMatrix
from lagpu.backends.grid.pieces import Pieces
from lagpu.backends.protocol import Backend
from lagpu.dtypes import BOOL

__all__ = ["may_gather", "on_one_device"]

Array = Any
_BLOCK = 1 << 26  # entries that move at a time


def may_gather(pieces: Pieces, A: GridMatrix) -> bool:
    """Whether the parts of a matrix have whole columns, all on devices of this process."""
    here = pieces.engine.between_devices and len(pieces.engine.local) == pieces.engine.size
    return here and pieces.layout(A.shape).dims[0].whole


def on_one_device(pieces: Pieces, A: GridMatrix, home: Backend) -> MatrixHandle:
    """Return the pattern of a matrix, BOOL, on the device of one of its pieces.

    Parameters
    ----------
    pieces : Pieces
        The pieces, with locks held.
    A : GridMatrix, (m, n)
        A matrix that `may_gather` allows.
    home : Backend
        The place that gets the copy.
    """
    assert isinstance(home, GpuBackend)
    device, by = home.device, pieces.layout(A.shape).dims[1]
    parts: list[CscMatrix] = [part.csc() for part in A.parts]
    m, n = A.shape
    nvals = sum(part.nvals for part in parts)
    with device.alone():
        xp = device.xp
        width = parts[0].row_idx.dtype.itemsize
        at_once = 24 * min(_BLOCK, nvals)
        device.require(nvals * width + 32 * n + at_once, "grid: a copy of the graph")
        columns = [device.from_host(by.own(p)) for p in pieces.engine.local]
        offsets = [device.fetched(part.col_ptr, part.device).astype(np.int64) for part in parts]
        col_ptr = xp.zeros(n + 1, np.int64)
        for own, ptr in zip(columns, offsets, strict=True):
            col_ptr[own + 1] = xp.diff(ptr)
        col_ptr = xp.cumsum(col_ptr)
        row_idx = xp.empty(nvals, parts[0].row_idx.dtype)
        for part, own, ptr in zip(parts, columns, offsets, strict=True):
            ahead = col_ptr[own] - ptr[:-1]  # from an entry's place in the part to that in the copy
            for begin in range(0, part.nvals, _BLOCK):
                end = min(begin + _BLOCK, part.nvals)
                at = xp.arange(begin, end)
                at += ahead[xp.searchsorted(ptr, at, side="right") - 1]
                row_idx[at] = device.fetched(part.row_idx[begin:end], part.device)
        made = CscMatrix(device, BOOL, (m, n), col_ptr, row_idx, None, np.True_)
        made.symmetric = True if A.symmetric else None
    return MatrixHandle(made)
