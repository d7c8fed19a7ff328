"""Ways round the faults of SuiteSparse 9.4.5 (docs/design/cpu.md); tests/test_cpu.py shows each."""

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

__all__ = ["accumulator", "at_indices", "crashes_on_full", "empty_first", "mask_handle"]

Array = np.ndarray[Any, Any]


def accumulator(w: Box, accum: BinaryOp | None, result: DType) -> Any:
    """Return the C operator that adds a result to `w`, a vector or a matrix, or NULL.

    Adding to a full one, SuiteSparse 9.4.5 is wrong in three ways: a few masked entries end the
    process, values that need a cast are read without it, and sums of no products fail. So what
    something is added to is stored as sparse or bitmap.
    """
    if accum is None:
        return NULL
    if w.full:
        _store_as(w.gb, lib.GxB_SPARSE | lib.GxB_BITMAP)
        w.full = False
    return binary_operator(accum, w.dtype, result)


def mask_handle(desc: Descriptor) -> Any:
    """Return the mask's C handle, or NULL.

    SuiteSparse 9.4.5 ends the process when something is added to a sparse output at a mask that is
    stored as a full one: the mask is then a sparse copy.
    """
    mask = desc.mask
    if mask is None:
        return NULL
    if desc.accum is None or mask.gb.nvals < math.prod(mask.gb.shape):
        return mask.handle
    mask.twin = mask.gb.dup()
    _store_as(mask.twin, lib.GxB_SPARSE)
    return mask.twin.gb_obj[0]


def crashes_on_full(desc: Descriptor) -> bool:
    """Whether SuiteSparse 9.4.5 may crash at assigning a full vector: if the mask is sparse."""
    return desc.mask is not None and desc.accum is not None


def empty_first(w: Box, desc: Descriptor, u: Box, v: Box) -> None:
    """Empty an output that is written as a whole and is no operand.

    SuiteSparse 9.4.5 writes out of bounds of a full vector of equal values when it combines two
    others into it.
    """
    if desc.mask is None and desc.accum is None and w is not u and w is not v:
        check(lib.GrB_Vector_clear(w.handle), "clear")


def at_indices(call: Any, indices: Array | None, size: int) -> Any:
    """Return a C function as it may be called with a list of indices below `size`.

    SuiteSparse 9.4.5 puts a list into a hash where it is short of size / 256. With several threads
    and 3072 to 4095 indices, 5120 to 6143 and so on, that claims to be out of memory, leaving an
    output that is none, or ends the process: lists of such lengths are worked on by one thread.
    """
    if indices is None or not 2048 <= len(indices) <= size // 256:
        return call
    return functools.partial(_by_one_thread, call)


def _by_one_thread(call: Any, *arguments: Any) -> int:
    """Call a C function with one thread, in whatever context the user has engaged."""
    with gb.ss.Context(nthreads=1):
        return int(call(*arguments))


def _store_as(x: Any, forms: int) -> None:
    """Have a python-graphblas vector or matrix stored in one of these forms from now on."""
    kind = "Vector" if x.ndim == 1 else "Matrix"
    call = getattr(lib, f"GrB_{kind}_set_INT32")
    check(call(x.gb_obj[0], forms, lib.GxB_SPARSITY_CONTROL), f"{kind}: form")
