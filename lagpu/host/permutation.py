"""A permutation that is computed and not stored, and looks random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Permutation"]


class Permutation:
    """A permutation of ``0 .. 2**bits - 1``.

    A round adds a number, multiplies by an odd one, both modulo ``2**bits``, and mixes the high
    half of the bits into the low one. Each of these steps can be undone. Graph500's reference code
    scrambles its vertices so as well.

    Parameters
    ----------
    bits : int
        0 to 64.
    added, times : sequence of int
        The numbers of each round; `times` are odd.
    """

    def __init__(self, bits: int, added: Sequence[int], times: Sequence[int]) -> None:
        self.bits = bits
        self._mask = (1 << bits) - 1
        self._shift = max(1, bits // 2)
        # Numbers that fit the type of what is permuted.
        self._rounds = [(a & self._mask, t & self._mask) for a, t in zip(added, times, strict=True)]

    def forward(self, x: Any) -> Any:
        """Return where each number goes.

        Parameters
        ----------
        x : array of UINT32 or UINT64
            Numbers below ``2**bits``, which fit the type; overwritten.
        """
        for added, times in self._rounds:
            x += x.dtype.type(added)
            x *= x.dtype.type(times)
            x &= x.dtype.type(self._mask)
            x ^= x >> x.dtype.type(self._shift)
        return x

    def backward(self, x: Any) -> Any:
        """Return what goes to each number: the inverse of `forward`, which says more."""
        for added, times in reversed(self._rounds):
            high = x >> x.dtype.type(self._shift)
            for _ in range(self.bits // self._shift):
                x ^= high
                high >>= x.dtype.type(self._shift)
            x *= x.dtype.type(pow(times, -1, self._mask + 1))
            x -= x.dtype.type(added)
            x &= x.dtype.type(self._mask)
        return x
