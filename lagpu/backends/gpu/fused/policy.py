"""How the searches of several sources run: rows together or apart, and how many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lagpu.backends.batch import sparse_batch_size
from lagpu.backends.gpu.device.protocol import Device, has_free
from lagpu.backends.gpu.fused.search_grid import grid_search, levels_only
from lagpu.backends.gpu.ops.strategies import by_inputs
from lagpu.backends.gpu.storage.bitmap import bytes_of
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.forms import is_symmetric
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.dtypes import BOOL, FP64, INT32, DType
from lagpu.operations import Product, Rejection

__all__ = [
    "BLOCKS",
    "Depth",
    "batch_size",
    "block_size",
    "depth_bound",
    "depth_of",
    "why_not_per_source",
]

#: Mean entries of a column up to which each source is searched by itself: of more, the rows of a
#: level had better share a look at each.
MOST_DEGREE = 8
_HUB = 4  # times as many entries make a hub; where hubs have an eighth of all, levels are few
_SHARE = 8
# Threads of a block, and blocks of a multiprocessor: registers for each thread follow from both.
BLOCK, BLOCKS, SIM_BLOCK = 1024, 1, 64
#: A matrix is deep if a search of it has more levels than either: so many, and one for so many
#: entries. See "Deep or not" in docs/design/bitmap.md for the costs that these follow from.
LEVELS, EDGES = 64, 1 << 15
_PROBE_BYTES = 64  # a vertex, that a search and its workspace ask for at most


class _Hubs(NamedTuple):
    """How many entries stand in columns of hubs; kept with a matrix."""

    entries: int
    nbytes: int = 0  # as workspaces have it


def block_size(device: Device) -> int:
    """Return the threads of a block that works on one row alone."""
    return SIM_BLOCK if device.name == "sim" else BLOCK


def why_not_per_source(A: CscMatrix, k: int) -> str:
    """Return why `k` rows are not worked on apart, a block of threads each, or nothing.

    They are where there are two or more, and the matrix `A` is sparse and without hubs.
    """
    if k < 2:
        return "one row alone"
    if A.nvals > MOST_DEGREE * A.shape[0]:
        return f"mean degree {A.nvals / A.shape[0]:.1f} > {MOST_DEGREE}"
    longest = _HUB * MOST_DEGREE
    place = f"columns of more than {longest} entries"
    if place not in A.cache:
        lengths = A.col_ptr[1:] - A.col_ptr[:-1]
        A.cache[place] = _Hubs(int(lengths[lengths > longest].sum()))
    hubs: _Hubs = A.cache[place]
    if hubs.entries * _SHARE > A.nvals:
        return f"hubs have {hubs.entries} entries > {A.nvals} / {_SHARE}"
    return ""


# ------------------------------------------------------------------------------ deep or shallow
class Depth(NamedTuple):
    """What one search has told of a matrix; kept with it.

    Attributes
    ----------
    deep : bool
        Whether it had more levels than the bound.
    why : str
        That in numbers.
    nbytes : int
        0, as workspaces have it.
    """

    deep: bool
    why: str
    nbytes: int = 0


def depth_bound(A: CscMatrix) -> int:
    """Return how many levels a search of a deep matrix exceeds."""
    return max(LEVELS, A.nvals // EDGES)


def depth_of(counters: Counters, A: CscMatrix, product: Product) -> Depth:
    """Return whether a search from a vertex of most edges is deep; the first call waits for it.

    The search ends at the bound. It starts neither where the caller's do nor anew for each of
    them, so what is found depends on the matrix alone.

    Parameters
    ----------
    counters : Counters
        Of the backend.
    A : CscMatrix, (n, n)
        Its rows are there, or may be made.
    product : Product
        Of any semiring: `transpose` says which way the edges are followed.
    """
    bound = depth_bound(A)
    along = product.transpose or is_symmetric(A)
    place = f"depth, {bound} levels, {'along' if along else 'against'} the edges"
    if place not in A.cache:
        if not has_free(A.device, _PROBE_BYTES * A.shape[0]):
            return Depth(False, "a search that tells its levels does not fit")
        deep = _exceeds(counters, A, product, bound)
        A.cache[place] = Depth(deep, f"a search has {_in_numbers(A, bound, deep)}")
    found: Depth = A.cache[place]
    return found


def _in_numbers(A: CscMatrix, bound: int, deep: bool) -> str:
    """Return the bound, and where it comes from."""
    levels = f"more than {bound} levels" if deep else f"at most {bound} levels"
    return levels if bound == LEVELS else f"{levels}, {A.nvals} entries / {EDGES}"


def _exceeds(counters: Counters, A: CscMatrix, product: Product, bound: int) -> bool:
    """Search from the first vertex of most edges; return whether a frontier is left."""
    device, n, form = A.device, A.shape[0], by_inputs(A, product)
    source = int((form.col_ptr[1:] - form.col_ptr[:-1]).argmax())
    f, levels = (VectorStore(device, counters, dtype, n) for dtype in (BOOL, INT32))
    f.set_single(source, np.True_)
    search = grid_search(levels_only(A, f, levels, product), bound)
    assert not isinstance(search, Rejection)
    search.run()
    return f.nvals > 0


# ---------------------------------------------------------------------------------- batch size
# How many sources to take together, if so many matrices fit. On an H200, 2026-11-21, of kron20e16
# one source takes 1.96 ms by itself and 0.74 among 32 or 64, whether all 64 bits are used or not.
# Of a road network of 1429 levels, k rows level by level take a launch for each statement and
# level; one source by itself takes 16 ms, and 0.37 among 128 that are worked on apart
# (docs/design/sweep.md).
_SHALLOW, _DEEP = (64, 32), (128, 64, 32, 16, 8, 4)
_MOST_SHALLOW_LEVELS = 64
# Of a row worked on apart, a vertex: a sweep's order and ranks, with three vectors in order, are
# 35, a search's less; and 4 a level, of which there may be as many as vertices.
_APART_BYTES = 39
_SPARE = 4


def batch_size(A: CscMatrix, sources: int, levels: int, live: Sequence[tuple[DType, int]]) -> int:
    """Return how many sources to take at once; see `Backend.batch_size`.

    64 or 32, if there are so many sources, all matrices fit and levels are few; if they are many,
    128 or a smaller power of two down to 4 where rows are worked on apart; else 1. Where k x n
    matrices are stored by columns, as many as half of the free memory takes.
    """
    device, n = A.device, A.shape[0]
    if bytes_of(FP64, (_SHALLOW[-1], n)) is None:
        return sparse_batch_size(device.free_bytes(), n, A.nvals, sources, levels)
    shallow = levels <= _MOST_SHALLOW_LEVELS
    choices = _SHALLOW if shallow else () if why_not_per_source(A, 2) else _DEEP
    free = device.free_bytes()
    return next(
        (k for k in choices if k <= sources and _fit(live, k, n, free, apart=not shallow)), 1
    )


def _fit(live: Sequence[tuple[DType, int]], k: int, n: int, free: int, apart: bool) -> bool:
    """Whether all matrices of k rows fit together, with what rows that are apart need besides.

    Each has a buffer for its next value, or is the result of a statement before it is written; and
    since a bitmap matrix is made where it fits four times, four of the widest are to spare.
    """
    needed = apart * _APART_BYTES * k * n
    sizes = [(bytes_of(dtype, (k, n)), count) for dtype, count in live]
    widest = 0
    for size, count in sizes:
        if size is None:
            return False
        needed += 2 * count * size
        widest = max(widest, size)
    return needed + _SPARE * widest <= free
