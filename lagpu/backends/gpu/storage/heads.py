"""Where the columns of a matrix begin among its entries: what sums of all entries need."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import has_free
from lagpu.backends.gpu.kernels import constant
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import nwords

__all__ = ["Heads", "heads_of"]

Array = Any
TILE = constant("kSumTile")


class Heads(NamedTuple):
    """The first entries of columns; see kernels/spmv/sums.cuh.

    Attributes
    ----------
    bits : array of u32
        A bit for each entry, for whole tiles: whether a column begins with it.
    before : array of u32
        How many do before each tile of entries; in the end all.
    column : array of i32
        The columns that have entries.
    there : array of u32
        Presence bits of these.
    """

    bits: Array
    before: Array
    column: Array
    there: Array

    @property
    def nbytes(self) -> int:
        """Bytes of all these."""
        return sum(int(x.nbytes) for x in self)


def heads_of(form: CscMatrix) -> Heads | None:
    """Return the heads of a form's columns, made at the first call.

    None where memory is short, or where a lane cannot load four entries at once.
    """
    if "heads" not in form.cache:
        # A byte an entry, then its bit; of the columns lengths, numbers and first entries.
        wanted = form.nvals + form.nvals // 4 + 32 * form.shape[1]
        loads = form.nvals and max(form.shape) < 2**31 and _by_fours(form)
        if not (loads and has_free(form.device, wanted)):
            return None
        form.cache["heads"] = _heads(form)
    found: Heads = form.cache["heads"]
    return found


def _by_fours(form: CscMatrix) -> bool:
    """Whether the arrays begin at multiples of 16 bytes; those of a caller may not."""
    for array in (form.row_idx, form.values):
        if array is not None:
            found = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
            if found["data"][0] % 16:
                return False
    return True


def _heads(form: CscMatrix) -> Heads:
    xp, n = form.device.xp, form.shape[1]
    there = xp.diff(form.col_ptr) > 0
    column = xp.flatnonzero(there)
    starts = form.col_ptr[column]
    tiles = (form.nvals + TILE - 1) // TILE
    ends = xp.minimum(xp.arange(tiles + 1, dtype=np.int64) * TILE, form.nvals)
    before = xp.searchsorted(starts, ends.astype(starts.dtype)).astype(np.uint32)
    begins = xp.zeros(tiles * TILE, np.bool_)
    begins[starts] = True
    return Heads(
        xp.packbits(begins, bitorder="little").view(np.uint32),
        before,
        column.astype(np.int32),
        _words(xp, there, n),
    )


def _words(xp: Any, there: Array, n: int) -> Array:
    """Return presence words."""
    whole = xp.zeros(32 * nwords(n), np.bool_)
    whole[:n] = there
    return xp.packbits(whole, bitorder="little").view(np.uint32)
