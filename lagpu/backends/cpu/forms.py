"""Counts of a stored matrix, its transpose where one is kept, and forms of vectors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from lagpu.backends.cpu.handles import (
    NULL,
    Box,
    check,
    ffi,
    gb,
    lib,
    store_as,
    usual_forms,
)
from lagpu.backends.cpu.workarounds import boxed
from lagpu.errors import NotSupported
from lagpu.host.memory import available_bytes, require
from lagpu.operations import Descriptor

__all__ = [
    "as_bitmap_for",
    "counts_of",
    "degree_sum",
    "longest",
    "make_transposed",
    "memory_of",
    "stored_as_bitmap",
    "transposed",
    "why_no_transpose",
]

# Bytes of a transpose and of making it: an entry without its value, and a row or column; measured,
# docs/design/memory.md.
_ENTRY, _VERTEX = 9, 32
_LARGE = 1 << 16  # entries from which free memory is asked for


class Counts:
    """Counts of a matrix, made when a product asks, and dropped when the matrix is written.

    Attributes
    ----------
    nvals : int
        Entries.
    lacked : int
        Entries that products looked at because the matrix lacks its transpose.
    degrees : dict
        Entries of each row (True) and of each column (False), as full python-graphblas vectors.
    most : dict
        Entries of the longest row (True) and of the longest column (False).
    shape : tuple of int
        Rows and columns.
    """

    __slots__ = ("degrees", "lacked", "most", "nvals", "shape")

    def __init__(self, A: Box) -> None:
        self.nvals = int(A.gb.nvals)
        self.shape: tuple[int, int] = A.gb.shape
        self.lacked = 0
        self.degrees: dict[bool, Any] = {}
        self.most: dict[bool, int] = {}


def counts_of(A: Box) -> Counts:
    """Return the counts of a matrix."""
    if A.counts is None:
        A.counts = Counts(A)
    found: Counts = A.counts
    return found


def degrees(A: Box, by_row: bool) -> Any:
    """Return the entries of each row, or of each column, as a python-graphblas vector."""
    known = counts_of(A).degrees
    if by_row not in known:
        count = A.gb.reduce_rowwise("count") if by_row else A.gb.reduce_columnwise("count")
        full = gb.Vector("INT64", counts_of(A).shape[not by_row])
        full[:] = 0
        full(gb.binary.plus) << count
        known[by_row] = full
    return known[by_row]


def longest(A: Box, by_row: bool) -> int:
    """Return the entries of the longest row, or of the longest column."""
    most: dict[bool, int] = counts_of(A).most
    if by_row not in most:
        most[by_row] = int(degrees(A, by_row).reduce("max").new().value or 0)
    return most[by_row]


def degree_sum(A: Box, u: Box, by_row: bool) -> int:
    """Return the number of entries of the rows, or of the columns, at which a vector has some."""
    met = u.gb.inner(degrees(A, by_row), gb.semiring.plus_second["INT64"]).new()
    return int(met.value or 0)


# ---------------------------------------------------------------------------- the transpose
def transposed(A: Box) -> Box | None:
    """Return the transpose of a matrix if it is there; a symmetric matrix is its own."""
    return A if A.symmetric else A.transposed


def why_no_transpose(A: Box) -> str:
    """Return why the transpose of a matrix may not be made, or an empty string."""
    if not A.may_transpose:
        return "its orientation is csc"
    need, free = _bytes(A), available_bytes()
    if need > free and counts_of(A).nvals >= _LARGE:
        return f"making it needs {need / 1e6:,.1f} MB, {free / 1e6:,.1f} MB free"
    return ""


def make_transposed(A: Box) -> Box:
    """Return the transpose of a matrix, made now and kept; a symmetric matrix is its own.

    Raises
    ------
    NotSupported
        If the matrix may not keep it, or it does not fit.
    """
    known = transposed(A)
    if known is not None:
        return known
    if why := why_no_transpose(A):
        remedy = "free some memory" if A.may_transpose else "set orientation to auto"
        raise NotSupported(
            f"cpu: the other direction needs the matrix transposed, and {why}. "
            f"Use policy='auto', or {remedy}."
        )
    other = transpose_of(A)
    if A.symmetric is None:
        A.symmetric = A.gb.nrows == A.gb.ncols and bool(A.gb.isequal(other.gb))
    A.transposed = None if A.symmetric else other
    return A if A.symmetric else other


def transpose_of(A: Box) -> Box:
    """Return a new matrix, the transpose."""
    if counts_of(A).nvals >= _LARGE:
        require(_bytes(A), "transpose")
    new = gb.Matrix(A.dtype.name, A.gb.ncols, A.gb.nrows)
    new.ss.config["format"] = "by_row"
    check(lib.GrB_transpose(new.gb_obj[0], NULL, NULL, A.handle, NULL), "transpose")
    check(lib.GrB_Matrix_wait(new.gb_obj[0], lib.GrB_MATERIALIZE), "wait")
    return boxed(new, A.dtype)


def _bytes(A: Box) -> int:
    """Return the bytes that making the transpose takes."""
    counts = counts_of(A)
    return counts.nvals * (_ENTRY + A.width) + _VERTEX * sum(counts.shape)


def memory_of(A: Box) -> str:
    """Return a line on what a matrix holds: its form by rows, and that by columns if it is kept."""
    columns = "" if A.transposed is None else f", by columns {_held(A.transposed)}"
    return f"by rows {_held(A)}{columns}"


def _held(A: Box) -> str:
    nbytes = ffi.new("size_t*")
    check(lib.GxB_Matrix_memoryUsage(nbytes, A.handle), "memoryUsage")
    return f"{nbytes[0] / 1e6:,.1f} MB"


# ------------------------------------------------------------------------- forms of vectors
@contextmanager
def stored_as_bitmap(v: Box) -> Iterator[None]:
    """Store a vector as bitmap or full, and let SuiteSparse choose its form again afterwards."""
    store_as(v.gb, lib.GxB_BITMAP | (lib.GxB_FULL if v.full else 0))
    try:
        yield
    finally:
        store_as(v.gb, usual_forms(v))


def as_bitmap_for(w: Box, desc: Descriptor) -> Any:
    """Store the output of an assignment as bitmap if its mask is a large frontier.

    Such a mask is a bitmap too. Into a sparse output, SuiteSparse writes each entry as a pending
    one, and sorts them later (docs/design/cpu.md).
    """
    mask = desc.mask
    if mask is None or mask.search is None or not mask.search.large or desc.accum is not None:
        return _AS_IT_IS
    return stored_as_bitmap(w)


_AS_IT_IS = nullcontext()
