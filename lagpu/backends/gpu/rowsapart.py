"""Whether the rows of a block are worked on apart, each by one block of threads alone."""

from __future__ import annotations

from lagpu.backends.gpu.device import Device
from lagpu.backends.gpu.storage import MatrixStore

__all__ = ["BLOCKS", "MOST_DEGREE", "block_size", "rows_apart"]

#: Mean entries of a column up to which rows are worked on apart: of more, the rows of a level had
#: better share a look at each.
MOST_DEGREE = 8
# Threads of a block, and blocks of a multiprocessor: registers for each thread follow from both.
BLOCK, BLOCKS, SIM_BLOCK = 1024, 1, 64


def rows_apart(A: MatrixStore, k: int) -> bool:
    """Whether `k` rows are worked on apart where `A` is the matrix."""
    return k >= 2 and A.nvals <= MOST_DEGREE * A.shape[0]


def block_size(device: Device) -> int:
    """Return the threads of a block."""
    return SIM_BLOCK if device.name == "sim" else BLOCK
