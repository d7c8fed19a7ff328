"""The number of searches at once for backends whose k x n matrices cost memory by the entry."""

from __future__ import annotations

__all__ = ["sparse_batch_size"]

_ENTRY_BYTES = 96  # of an entry of a product being sorted, and of a vertex in all matrices together
_TOUCHED = 2**24  # most entries that a batch touches; larger batches are not faster


def sparse_batch_size(free_bytes: int, n: int, nvals: int, sources: int, levels: int) -> int:
    """Return `sources`, or the largest power of two that fits; see `Backend.batch_size`.

    The batch must fit half of the free memory even if in the widest level every edge is on a
    shortest path from each source, and must touch at most 2**24 entries, in the widest product and
    in writing each level to its matrix.
    """
    fit = free_bytes // 2 // (_ENTRY_BYTES * (nvals + n))
    room = min(fit, _TOUCHED // (nvals + n + levels * n))
    return sources if room >= sources else 1 << max(0, room.bit_length() - 1)
