"""Rules for several sources: per-source or bit-parallel execution, and the batch size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lagpu.algebra.tables import semiring
from lagpu.backends.gpu.device.protocol import has_free
from lagpu.backends.gpu.fused.search_grid import grid_search, levels_only
from lagpu.backends.gpu.ops.strategies import by_inputs
from lagpu.backends.gpu.storage.bitmap import bytes_of
from lagpu.backends.gpu.storage.casts import Counters
from lagpu.backends.gpu.storage.forms import is_symmetric
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.policies import sparse_batch_size
from lagpu.dtypes import BOOL, FP64, INT32, DType
from lagpu.operations import Product, Rejection

#: Largest mean degree for per-source execution. Above it, sources that share each adjacency read
#: are faster.
MOST_DEGREE = 8
_HUB = 4  # a hub has more than so many times MOST_DEGREE entries
# Where hubs have more than this part (1 / _SHARE) of all entries, levels are few.
_SHARE = 8
BLOCKS = 1  # of a multiprocessor: registers for each thread follow from this and its threads
#: A matrix is deep if a search has more than LEVELS levels, and more than one for each EDGES
#: entries. See "Deep or not" in docs/design/bitmap.md for the costs that these follow from.
LEVELS, EDGES = 64, 1 << 15
_PROBE_BYTES = 64  # upper bound, for each vertex, of a grid search and its workspace


class _Hubs(NamedTuple):
    """How many entries the columns of hubs have; kept in a matrix' cache."""

    entries: int
    nbytes: int = 0  # as workspaces have it


def why_not_per_source(A: CscMatrix, k: int) -> str:
    """Return why `k` sources do not run per source on `A`, or an empty string if they do.

    Per-source execution needs at least two sources, and a sparse matrix without hubs.
    """
    if k < 2:
        return "only one source"
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
    """The depth of a matrix as one search measured it; kept in the matrix' cache.

    Attributes
    ----------
    deep : bool
        Whether the search had more levels than the bound.
    why : str
        The comparison, in numbers.
    nbytes : int
        0; every value in the cache has it.
    """

    deep: bool
    why: str
    nbytes: int = 0


def depth_bound(A: CscMatrix) -> int:
    """Return the number of levels that a search of a deep matrix exceeds."""
    return max(LEVELS, A.nvals // EDGES)


def depth_of(counters: Counters, A: CscMatrix, product: Product) -> Depth:
    """Return whether a search from a vertex of most edges is deep; the first call waits for it.

    The search ends at the bound. Its source is not one of the caller's, so the result depends on
    the matrix alone.

    Parameters
    ----------
    counters : Counters
        Of the backend.
    A : CscMatrix, (n, n)
        The matrix; its form by rows is stored, or may be made.
    product : Product
        The product, of any semiring, of which only the direction of the edges counts.
    """
    bound = depth_bound(A)
    along = product.transpose or is_symmetric(A)
    place = f"depth, {bound} levels, {'along' if along else 'against'} the edges"
    if place not in A.cache:
        if not has_free(A.device, _PROBE_BYTES * A.shape[0]):
            return Depth(False, "the search that would count the levels does not fit")
        deep = _exceeds(counters, A, product, bound)
        A.cache[place] = Depth(deep, f"a search has {_in_numbers(A, bound, deep)}")
    found: Depth = A.cache[place]
    return found


def _in_numbers(A: CscMatrix, bound: int, deep: bool) -> str:
    """Return the comparison with the bound, and how the bound was computed."""
    levels = f"more than {bound} levels" if deep else f"at most {bound} levels"
    return levels if bound == LEVELS else f"{levels}, {A.nvals} entries / {EDGES}"


def _exceeds(counters: Counters, A: CscMatrix, product: Product, bound: int) -> bool:
    """Search from the first vertex of most edges; return whether a frontier is left."""
    device, n, form = A.device, A.shape[0], by_inputs(A, product)
    source = int((form.col_ptr[1:] - form.col_ptr[:-1]).argmax())
    f, levels = (VectorStore(device, counters, dtype, n) for dtype in (BOOL, INT32))
    f.set_single(source, np.True_)
    domain, result = semiring.any_pair.types(BOOL, A.dtype)
    product = product._replace(semiring=semiring.any_pair, domain=domain, result=result)
    search = grid_search(levels_only(A, f, levels, product), bound)
    assert not isinstance(search, Rejection)
    search.run()
    return f.nvals > 0


# ---------------------------------------------------------------------------------- batch size
# How many sources to take at once, if their matrices fit. On kron20e16 (H200, 2026-11-21) a source
# takes 1.96 ms by itself and 0.74 ms in a batch of 32 or 64, whether all 64 bits are used or not.
# On a road network of 1429 levels a source takes 16 ms by itself and 0.37 ms in a batch of 128 that
# runs per source; statement by statement each level would take several launches
# (docs/design/sweep.md).
_SHALLOW, _DEEP = (64, 32), (128, 64, 32, 16, 8, 4)
_MOST_SHALLOW_LEVELS = 64
# State of per-source execution for each source and vertex: 35 bytes for the order and ranks of a
# sweep and three vectors in level order (less for a search), and 4 bytes a level, of which there
# may be n.
_PER_SOURCE_BYTES = 39
_SPARE = 4


def batch_size(A: CscMatrix, sources: int, levels: int, live: Sequence[tuple[DType, int]]) -> int:
    """Return how many sources to take at once; see `Backend.batch_size`.

    With few levels 64 or 32, with many levels a power of two from 128 to 4 if the matrix allows
    per-source execution; the largest that the sources fill and whose matrices fit, else 1. If k x n
    matrices are too large for a bitmap, as many as half of the free memory takes.
    """
    device, n = A.device, A.shape[0]
    if bytes_of(FP64, (_SHALLOW[-1], n)) is None:
        return sparse_batch_size(device.free_bytes(), n, A.nvals, sources, levels)
    shallow = levels <= _MOST_SHALLOW_LEVELS
    choices = _SHALLOW if shallow else () if why_not_per_source(A, 2) else _DEEP
    free = device.free_bytes()
    return next(
        (k for k in choices if k <= sources and _fit(live, k, n, free, per_source=not shallow)), 1
    )


def _fit(live: Sequence[tuple[DType, int]], k: int, n: int, free: int, per_source: bool) -> bool:
    """Whether all matrices of k rows fit at once, with the state of per-source execution if any.

    Each matrix counts twice: a statement makes its result before it replaces the old value. Four
    of the widest must fit besides, since a bitmap matrix is made only where it fits four times.
    """
    needed = per_source * _PER_SOURCE_BYTES * k * n
    sizes = [(bytes_of(dtype, (k, n)), count) for dtype, count in live]
    widest = 0
    for size, count in sizes:
        if size is None:
            return False
        needed += 2 * count * size
        widest = max(widest, size)
    return needed + _SPARE * widest <= free
