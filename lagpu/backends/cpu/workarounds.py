"""Workarounds for bugs of SuiteSparse 9.4.5 (docs/design/cpu.md), each with its test."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.cpu.handles import NULL, Box, check, gb, lib
from lagpu.backends.cpu.operators import binary_operator
from lagpu.dtypes import DType
from lagpu.operations import Descriptor

__all__ = [
    "accumulator",
    "at_indices",
    "crashes_on_full",
    "empty_first",
    "mask_handle",
    "without_hyperlists",
]

Array = np.ndarray[Any, Any]


def accumulator(w: Box, accum: BinaryOp | None, result: DType) -> Any:
    """Return the C operator that accumulates a result into a vector or matrix `w`, or NULL.

    Accumulating into a full object, SuiteSparse 9.4.5 fails in three ways: a few masked entries end
    the process, values that need a cast are read without it, and sums of no products fail. So an
    output with an accumulator is stored as sparse or bitmap.
    """
    if accum is None:
        return NULL
    if w.full:
        _store_as(w.gb, lib.GxB_SPARSE | lib.GxB_BITMAP)
        w.full = False
    return binary_operator(accum, w.dtype, result)


def mask_handle(desc: Descriptor) -> Any:
    """Return the mask's C handle, or NULL.

    SuiteSparse 9.4.5 ends the process when it accumulates into a sparse output under a mask in full
    form: in this case the mask is a sparse copy.
    """
    mask = desc.mask
    if mask is None:
        return NULL
    if desc.accum is None or mask.gb.nvals < math.prod(mask.gb.shape):
        return mask.handle
    mask.mask_copy = mask.gb.dup()
    _store_as(mask.mask_copy, lib.GxB_SPARSE)
    return mask.mask_copy.gb_obj[0]


def crashes_on_full(desc: Descriptor) -> bool:
    """Return True if SuiteSparse 9.4.5 may crash when it assigns a full vector, by the mask."""
    return desc.mask is not None and desc.accum is not None


def empty_first(w: Box, desc: Descriptor, u: Box, v: Box) -> None:
    """Clear an output that is written as a whole and is not an operand.

    SuiteSparse 9.4.5 writes out of bounds when it combines two vectors into a full one of equal
    values.
    """
    if desc.mask is None and desc.accum is None and w is not u and w is not v:
        check(lib.GrB_Vector_clear(w.handle), "clear")


def without_hyperlists(multiply: BinaryOp, *matrices: Box) -> None:
    """Store the matrices of a product that returns row or column numbers with their empty rows.

    In ``firsti`` and ``secondj``, SuiteSparse 9.4.5 may return the position of a row in the list of
    a hypersparse matrix as the number of the row.
    """
    if multiply.positional in ("i", "j"):
        for A in matrices:
            _store_as(A.gb, lib.GxB_SPARSE | lib.GxB_BITMAP | lib.GxB_FULL)


def at_indices(call: Any, indices: Array | None, size: int) -> Any:
    """Return a C function that is safe to call with a list of indices below `size`.

    SuiteSparse 9.4.5 hashes a list shorter than size / 256. With several threads and 3072 to 4095
    indices, 5120 to 6143 and so on, this reports out of memory and leaves an invalid output, or
    ends the process: for such lengths the returned function uses one thread.
    """
    if indices is None or not 2048 <= len(indices) <= size // 256:
        return call
    return functools.partial(_by_one_thread, call)


def _by_one_thread(call: Any, *arguments: Any) -> int:
    """Call a C function with one thread, whatever context the user has engaged."""
    with gb.ss.Context(nthreads=1):
        return int(call(*arguments))


def _store_as(x: Any, forms: int) -> None:
    """Restrict a python-graphblas vector or matrix to these storage forms."""
    kind = "Vector" if x.ndim == 1 else "Matrix"
    call = getattr(lib, f"GrB_{kind}_set_INT32")
    check(call(x.gb_obj[0], forms, lib.GxB_SPARSITY_CONTROL), f"{kind}: form")
