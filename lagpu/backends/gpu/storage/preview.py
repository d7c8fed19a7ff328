"""The first entries of an object, for display: no conversion, and small transfers only."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from lagpu.backends.gpu.storage.bitmap import BitmapMatrix
from lagpu.backends.gpu.storage.handle import MatrixHandle
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore

__all__ = ["corner", "head", "matrix_form", "vector_form"]

Array = np.ndarray[Any, Any]
FIRST, MOST = 1 << 10, 1 << 20  # presence words looked at in one step


def head(v: VectorStore, count: int) -> tuple[Array, Array]:
    """Return (indices, values) of the first `count` entries; the vector keeps its form."""
    to = v.device
    if v.form == "bitmap":
        indices = _first_bits(v, count)
        values = None if v.values is None else v.values[to.from_host(indices)]
    elif v.form == "full":
        indices = np.arange(min(count, v.size))
        values = None if v.values is None else v.values[:count]
    elif v.indices is None:  # one entry whose index has not left the host, or none
        indices, values = np.array([v.single] * bool(v.nvals), np.int64), v.values
    else:
        indices = to.to_host(v.indices[:count])
        values = None if v.values is None else v.values[:count]
    if values is None:
        return indices, np.full(len(indices), v.number, v.dtype.numpy)
    return indices, to.to_host(values)


def _first_bits(v: VectorStore, count: int) -> Array:
    """Return the first indices whose presence bit is set, looked for by growing steps."""
    xp, to = v.device.xp, v.device
    found: list[int] = []
    start, step = 0, FIRST
    while start < len(v.words) and len(found) < count:
        words = v.words[start : start + step]
        places = xp.flatnonzero(words)[:count]
        for place, word in zip(to.to_host(places), to.to_host(words[places]), strict=True):
            first = (start + int(place)) * 32
            found += [first + bit for bit in range(32) if int(word) >> bit & 1]
        start, step = start + step, min(4 * step, MOST)
    return np.array(found[:count], np.int64)


def corner(A: CscMatrix, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
    """Return (rows, columns, values) of the entries in the first rows and columns."""
    to = A.device
    ends = to.to_host(A.col_ptr[: ncols + 1]).tolist()
    rows, cols, values = [], [], []
    for j, (first, last) in enumerate(itertools.pairwise(ends)):
        last = min(last, first + nrows)  # rows rise, so no later entry is in the corner
        here = to.to_host(A.row_idx[first:last]) if last > first else np.empty(0, np.int64)
        here = here[here < nrows]
        if not len(here):
            continue
        rows.append(here)
        cols.append(np.full(len(here), j))
        if A.values is None:
            values.append(np.full(len(here), A.number, A.dtype.numpy))
        else:
            values.append(to.to_host(A.values[first : first + len(here)]))
    if not rows:
        none = np.empty(0, np.int64)
        return none, none, np.empty(0, A.dtype.numpy)
    return np.concatenate(rows), np.concatenate(cols), np.concatenate(values)


def vector_form(v: VectorStore) -> str:
    """Return the form of a vector, and whether it is iso."""
    return v.form + ", iso" * (v.values is None and v.nvals > 0)


def matrix_form(A: MatrixHandle) -> str:
    """Return the forms that are stored of a matrix, and whether it is iso."""
    store = A.store
    if isinstance(store, BitmapMatrix):
        return "bitmap" + ", iso" * (store.entries.values is None and store.nvals > 0)
    both = "csc and csr" if store.csr is not None else "csc"
    return both + ", iso" * (store.values is None and store.nvals > 0)
