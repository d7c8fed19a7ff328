"""Some of a matrix' entries, as bits in the order of its columns, and the matrix of these."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.storage.casts import are_nonzero
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.workspaces import index_types

__all__ = ["no_places", "take", "take_true"]

Array = Any


def no_places(device: Device, nvals: int) -> Array:
    """Return room for a bit for each of so many entries, in the order of their columns."""
    return device.xp.empty(-(-nvals // 32), np.uint32)


def take(A: CscMatrix, kept: Array) -> CscMatrix:
    """Return the entries whose bits are set; index arrays are shared if these are all."""
    device, xp = A.device, A.device.xp
    if not A.nvals:
        return A.with_values(A.dtype, A.values, A.iso)
    counts = xp.empty(len(kept), np.int64)
    run = kernel("elementwise/take.cu", "count_places")
    device.launch(run, len(kept), len(kept), kept, counts)
    upto = xp.cumsum(counts)
    count = int(device.read(upto[-1:]))
    if count == A.nvals:
        return A.with_values(A.dtype, A.values, A.iso)
    ptr, idx = xp.empty_like(A.col_ptr), xp.empty(count, A.row_idx.dtype)
    values = None if A.values is None else xp.empty(count, A.values.dtype)
    types = index_types(A) | ({} if values is None else {"U": A.dtype.ctype})
    device.launch(
        kernel("elementwise/take.cu", "take_entries", **types), max(A.nvals, A.shape[1] + 1),
        A.nvals, A.shape[1], kept, upto, A.col_ptr, A.row_idx, A.values, ptr, idx, values,
    )  # fmt: skip
    return CscMatrix(device, A.dtype, A.shape, ptr, idx, values, A.iso)


def take_true(A: CscMatrix) -> CscMatrix:
    """Return the entries whose value is true, as a mask by value keeps them."""
    if A.values is None:
        everything = A.nvals == 0 or bool(are_nonzero(np.array([A.number]))[0])
        return A if everything else _without_entries(A)
    kept = no_places(A.device, A.nvals)
    run = kernel("elementwise/take.cu", "true_places")
    A.device.launch(run, A.nvals, A.nvals, are_nonzero(A.values), kept)
    return take(A, kept)


def _without_entries(A: CscMatrix) -> CscMatrix:
    xp = A.device.xp
    ptr, idx = xp.zeros_like(A.col_ptr), xp.empty(0, A.row_idx.dtype)
    return CscMatrix(A.device, A.dtype, A.shape, ptr, idx, None, A.number)
