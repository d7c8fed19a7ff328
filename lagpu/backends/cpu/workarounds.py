"""Workarounds for faults of SuiteSparse 9.4.5 (docs/design/suitesparse.md), each with its test."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.cpu import handles
from lagpu.backends.cpu.handles import NULL, Box, check, ffi, gb, lib
from lagpu.dtypes import DType
from lagpu.operations import Descriptor


def accumulator(w: Box, accum: BinaryOp | None, result: DType) -> Any:
    """Return the C operator that accumulates a result into a vector or matrix `w`, or NULL.

    Accumulating into a full object, SuiteSparse 9.4.5 fails in three ways: a few masked entries end
    the process, values that need a cast are read without it, and sums of no products fail. So an
    output with an accumulator is stored as sparse or bitmap.
    """
    if accum is None:
        return NULL
    if w.full:
        w.full = False
        handles.store_as(w.gb, handles.usual_forms(w))
    return handles.binary_operator(accum, w.dtype, result)


def mask_handle(desc: Descriptor, multiplied_by: Box | None = None) -> tuple[Any, bool]:
    """Return (the mask's C handle or NULL, whether only its structure counts).

    The mask is a copy in three cases. SuiteSparse 9.4.5 takes -0.0 for true: of a mask of floats by
    value, the copy has the entries that are not zero. It ends the process when it accumulates into
    a sparse output under a mask in full form, and it never returns from some products, by a matrix
    `multiplied_by`, under a bitmap mask: there the copy is sparse.
    """
    mask, structure = desc.mask, desc.structure
    if mask is None:
        return NULL, True
    has_signed_zeros = not structure and mask.dtype.is_float
    accumulates = desc.accum is not None and mask.gb.nvals == math.prod(mask.shape)
    hangs = not (multiplied_by is None or desc.complement) and _never_returns(mask, multiplied_by)
    if not (has_signed_zeros or accumulates or hangs):
        return mask.handle, structure
    mask.mask_copy = mask.gb.dup() if structure else gb.select.valuene(mask.gb, 0).new()
    if accumulates or hangs:
        handles.store_as(mask.mask_copy, lib.GxB_SPARSE)
    return mask.mask_copy.gb_obj[0], True


def _never_returns(mask: Box, A: Box) -> bool:
    """Return True if SuiteSparse 9.4.5 may multiply by `A` for ever.

    Under a mask in bitmap form that is not complemented, it counts rows of more than 256 entries as
    no work, and gives the sums a hash table that is too small for them.
    """
    if A.has_hub is False:
        return False
    form = ffi.new("int32_t*")
    handles.finish(mask)  # may change the form
    call = handles.method(mask.kind, "get_INT32")
    check(call(mask.handle, form, lib.GxB_SPARSITY_STATUS), "form")
    if form[0] not in (lib.GxB_BITMAP, lib.GxB_FULL):
        return False
    if A.has_hub is None:
        counts = (A.gb.reduce_rowwise("count"), A.gb.reduce_columnwise("count"))
        longest = (int(count.new().reduce("max").new().value or 0) for count in counts)
        A.has_hub = A.gb.nvals > 256 and max(longest) > 256
    return A.has_hub


def boxed(obj: Any, dtype: DType) -> Box:
    """Return the handle of a vector or a matrix; one with a size of 0 is made again.

    SuiteSparse 9.4.5 stores such an object in full form, with one value: its sums and products then
    have entries, and a product under a mask may never return.
    """
    box = Box(obj, dtype)
    if 0 in box.shape:
        box = Box(handles.made(dtype, *box.shape), dtype)
        handles.store_as(box.gb, lib.GxB_SPARSE)
    return box


def crashes_on_full(desc: Descriptor, u: Box) -> bool:
    """Return True if SuiteSparse 9.4.5 may crash when it accumulates a full `u` by assigning it."""
    if desc.accum is None:
        return False
    return u.kind == "Matrix" or (desc.mask is not None and u.gb.nvals == u.size)


def is_emptied_first(w: Box, desc: Descriptor, u: Box, v: Box) -> bool:
    """Return True for an output that is written as a whole and is not an operand: `empty` it first.

    SuiteSparse 9.4.5 writes out of bounds as it combines vectors into a full one of equal values.
    """
    return desc.mask is None and desc.accum is None and w is not u and w is not v


def empty(w: Box) -> None:
    check(handles.method(w.kind, "clear")(w.handle), "clear")


def finish_deletions(w: Box, desc: Descriptor) -> None:
    """Remove deleted entries from a vector before a number is assigned to all of its places.

    SuiteSparse 9.4.5 makes a full vector of such an output, and still subtracts the entries that it
    had yet to remove from the number of entries.
    """
    if desc.mask is None and desc.accum is None:
        handles.finish(w)


def without_hyperlists(multiply: BinaryOp, *matrices: Box) -> None:
    """Store the matrices of a product that returns row or column numbers with their empty rows.

    In ``firsti`` and ``secondj``, SuiteSparse 9.4.5 may return the position of a row in the list of
    a hypersparse matrix as the number of the row.
    """
    if multiply.positional in ("i", "j"):
        for A in matrices:
            handles.store_as(A.gb, lib.GxB_SPARSE | lib.GxB_BITMAP | lib.GxB_FULL)


def at_indices(call: Any, indices: np.ndarray[Any, Any] | None, size: int) -> Any:
    """Return a C function that is safe to call with a list of indices below `size`.

    SuiteSparse 9.4.5 hashes a list shorter than size / 256. With several threads and 3072 to 4095
    indices, 5120 to 6143 and so on, this reports out of memory and leaves an invalid output, or
    ends the process: for such lengths the returned function uses one thread.
    """
    if indices is None or not 2048 <= len(indices) <= size // 256:
        return call
    return functools.partial(handles.by_threads, 1, call)
