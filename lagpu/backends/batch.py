"""How many searches fit at once where each row of a k x n matrix costs what its entries cost."""

from __future__ import annotations

__all__ = ["sparse_batch_size"]

_ENTRY_BYTES = (
    96  # of a product's entry while it is sorted, and of a vertex in all vectors together
)
_TOUCHED = 2**24  # entries of a batch; more do not run faster


def sparse_batch_size(free_bytes: int, n: int, nvals: int, sources: int, levels: int) -> int:
    """Return `sources`, or the largest power of two that fits; see `Backend.batch_size`.

    As many fit as half of the free memory holds if in the widest level every edge of each source
    is on a shortest path; and they touch at most 2**24 entries, in the widest product and where
    each level is written into its matrix.
    """
    fit = free_bytes // 2 // (_ENTRY_BYTES * (nvals + n))
    room = min(fit, _TOUCHED // (nvals + n + levels * n))
    return sources if room >= sources else 1 << max(0, room.bit_length() - 1)
