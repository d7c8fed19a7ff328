"""Whether the rows of a block are worked on apart, each by one block of threads alone."""

from __future__ import annotations

from typing import NamedTuple

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.storage.vector import MatrixStore

__all__ = ["BLOCKS", "MOST_DEGREE", "WHY_NOT", "block_size", "rows_apart"]

#: Mean entries of a column up to which rows are worked on apart: of more, the rows of a level had
#: better share a look at each.
MOST_DEGREE = 8
_HUB = 4  # times as many entries make a hub; where hubs have an eighth of all, levels are few
_SHARE = 8
#: What to say where they are not.
WHY_NOT = "rows are worked on apart if there are two, of a sparse matrix without hubs"
# Threads of a block, and blocks of a multiprocessor: registers for each thread follow from both.
BLOCK, BLOCKS, SIM_BLOCK = 1024, 1, 64


class _Hubs(NamedTuple):
    """How many entries stand in columns of hubs."""

    entries: int
    nbytes: int = 0  # as workspaces have it


def rows_apart(A: MatrixStore, k: int) -> bool:
    """Whether `k` rows are worked on apart where `A` is the matrix: sparse, and without hubs."""
    if k < 2 or A.nvals > MOST_DEGREE * A.shape[0]:
        return False
    longest = _HUB * MOST_DEGREE
    place = f"columns of more than {longest} entries"
    if place not in A.spaces:
        lengths = A.col_ptr[1:] - A.col_ptr[:-1]
        A.spaces[place] = _Hubs(int(lengths[lengths > longest].sum()))
    hubs: _Hubs = A.spaces[place]
    return hubs.entries * _SHARE <= A.nvals


def block_size(device: Device) -> int:
    """Return the threads of a block."""
    return SIM_BLOCK if device.name == "sim" else BLOCK
