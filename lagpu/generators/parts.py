"""Random graphs made part by part on the pieces of a grid: no process and no device has the whole.

Each piece draws every edge, some at a time, and keeps the entries that it owns: nothing is sent.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.dtypes import BOOL
from lagpu.generators.device import is_on_gpu
from lagpu.generators.edges import Edges
from lagpu.generators.sizes import LARGEST_SCALE, count
from lagpu.host import memory

__all__ = ["drawn"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device

_CHUNK_ON_HOST, _CHUNK_ON_GPU = 1 << 16, 1 << 24  # edges at a time
_BYTES_PER_ENTRY = 40  # of a part: keys, their sorted copy, rows
_BYTES_PER_DRAWN = 100  # of the edges at a time
_LOW = 0xFFFFFFFF


def drawn(
    what: str, kind: type[Edges], scale: int, edge_factor: int, seed: int, grid: Backend
) -> Matrix:
    """Return a random graph on a grid.

    Parameters
    ----------
    what : str
        The generator, for messages.
    kind : type
        Draws the edges.
    scale, edge_factor, seed
        As in `lagpu.generators.kronecker`, and so are result and errors.
    grid : Backend
        A backend that makes objects from parts.
    """
    n = 1 << count(what, "scale", scale, 0, LARGEST_SCALE)
    draws = n * count(what, "edge_factor", edge_factor, 1)

    def part(home: Backend, layout: Any, piece: int) -> Any:
        shuffled = not all(by.rises for by in layout.dims)  # computed on the host
        device = home.device if is_on_gpu(home) and not shuffled else None
        chunk = min(draws, _CHUNK_ON_HOST if device is None else _CHUNK_ON_GPU)
        needed = _BYTES_PER_ENTRY * (2 * draws // layout.pieces) + _BYTES_PER_DRAWN * chunk
        (memory.require if device is None else device.require)(needed, what)
        edges = kind(scale, seed, device)
        xp = np if device is None else device.xp
        with nullcontext() if device is None else device.alone():
            keys = [
                _own(xp, layout, piece, *edges(start, min(chunk, draws - start)))
                for start in range(0, draws, chunk)
            ]
            return _part(xp, home, keys, layout.shape(piece))

    assert grid.capabilities.from_parts is not None
    data = grid.capabilities.from_parts(part, BOOL, (n, n), symmetric=True)
    return Matrix._of(data, BOOL, (n, n), grid, "A")


def _own(xp: Any, layout: Any, piece: int, u: Array, v: Array) -> Array:
    """Return one INT64 for each entry that a piece owns, by position: column, row in 32 bits."""
    apart = u != v
    u, v = (x[apart].astype(np.int64) for x in (u, v))
    rows, cols = xp.concatenate((u, v)), xp.concatenate((v, u))
    mine = layout.owner(rows, cols) == piece
    i, j = layout.position(rows[mine], cols[mine])
    return j << 32 | i


def _part(xp: Any, home: Backend, lists: list[Array], shape: tuple[int, int]) -> Any:
    """Return the handle of a part; the lists are emptied so that they can be freed."""
    keys = xp.concatenate(lists)
    lists.clear()
    keys.sort()
    new = xp.ones(len(keys), bool)
    new[1:] = keys[1:] != keys[:-1]
    keys = keys[new]
    col_ptr = xp.searchsorted(keys, xp.arange(shape[1] + 1, dtype=np.int64) << 32)
    rows = (keys & _LOW).astype(np.int32)
    return home.matrix_from_csc(col_ptr, rows, np.True_, BOOL, shape)
