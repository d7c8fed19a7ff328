"""Whether searches of a matrix take many small levels: one search says so, once for a matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import has_free
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.gpu.fused.search_grid import DEPTH, Assignment, Traversal
from lagpu.backends.gpu.ops.spmv_launch import by_inputs
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.forms import is_symmetric
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.protocol import Product
from lagpu.dtypes import BOOL, INT32

__all__ = ["Depth", "bound_of", "depth_of"]

#: A matrix is deep if a search of it has more levels than either: so many, and one for so many
#: entries. See "Deep or not" in docs/design/blocks.md for the costs that these follow from.
LEVELS, EDGES = 64, 1 << 15
_BYTES = 64  # a vertex, that a search and its workspace ask for at most


class Depth(NamedTuple):
    """What the search has told of a matrix.

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


def bound_of(A: MatrixStore) -> int:
    """Return how many levels a search of a deep matrix exceeds."""
    return max(LEVELS, A.nvals // EDGES)


def depth_of(counters: Counters, A: MatrixStore, how: Product) -> Depth:
    """Return whether a search from a vertex of most edges is deep; the first call waits for it.

    The search ends at the bound. It starts neither where the caller's do nor anew for each of
    them, so what is found depends on the matrix alone.

    Parameters
    ----------
    counters : Counters
        Of the backend.
    A : MatrixStore, (n, n)
        Its rows are there, or may be made.
    how : Product
        Of any semiring: `how.transpose` says which way the edges are followed.
    """
    bound = bound_of(A)
    along = how.transpose or is_symmetric(A)
    place = f"depth, {bound} levels, {'along' if along else 'against'} the edges"
    if place not in A.spaces:
        if not has_free(A.device, _BYTES * A.shape[0]):
            return Depth(False, "a search that tells its levels does not fit")
        deep = _exceeds(counters, A, how, bound)
        A.spaces[place] = Depth(deep, f"a search has {_said(A, bound, deep)}")
    found: Depth = A.spaces[place]
    return found


def _said(A: MatrixStore, bound: int, deep: bool) -> str:
    """Return the bound, and where it comes from."""
    levels = f"more than {bound} levels" if deep else f"at most {bound} levels"
    return levels if bound == LEVELS else f"{levels}, {A.nvals} entries / {EDGES}"


def _exceeds(counters: Counters, A: MatrixStore, how: Product, bound: int) -> bool:
    """Search from the first vertex of most edges; return whether a frontier is left."""
    device, n, form = A.device, A.shape[0], by_inputs(A, how)
    source = int((form.col_ptr[1:] - form.col_ptr[:-1]).argmax())
    f, levels = (VectorStore(device, counters, dtype, n) for dtype in (BOOL, INT32))
    f.set_single(source, np.True_)
    alone = (Assignment(levels, DEPTH),)
    found = Traversal(A, f, levels, how, alone, before=True, sums=False, iso=True, keep=False)
    search_grid.run(found, bound)
    return f.nvals > 0
