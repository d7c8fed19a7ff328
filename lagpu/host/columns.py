"""Compress and permute entries that come in any order: sorted columns, distinct numbers."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray or cupy.ndarray, by the device
Entries = tuple[Array, Array, Any]  # rows, columns, and which of them there are

_SORTED = 26  # bytes of an entry while its share is sorted: keys, their copy, what is distinct
_JOINED = 8  # of each entry while several shares are joined: its row twice
_MOST_SHARES = 64
# Of a share: CuPy selects from fewer than 2**31 entries, and shares are not quite even.
_MOST_ENTRIES = 2**31 - 2**28
_LOW = 0xFFFFFFFF


def bytes_of(entries: int, shares: int = 1) -> int:
    """Return the bytes that `sorted_columns` takes for some entries."""
    return _SORTED * entries // shares + (_JOINED * entries if shares > 1 else 0)


def least_bytes(entries: int) -> int:
    """Return the fewest bytes with which some entries can be sorted."""
    return bytes_of(entries, _MOST_SHARES)


def shares_for(entries: int, free: int) -> int:
    """Return the fewest shares that can be sorted in `free` bytes; the most, if none can."""
    shares = 1
    while shares < _MOST_SHARES and (
        bytes_of(entries, shares) > free or entries > _MOST_ENTRIES * shares
    ):
        shares += 1
    return shares


def keeps(entries: int, free: int, kept: int) -> bool:
    """Whether keeping entries in `kept` bytes is better than making them again for each share.

    Less memory is free then, so there are more shares. Up to twice as many pay, if reading entries
    again takes less than half of the time of making them.
    """
    if free < kept:
        return False
    shares = shares_for(entries, free - kept)
    return bytes_of(entries, shares) <= free - kept and shares <= 2 * shares_for(entries, free)


def even_ends(ncols: int, shares: int) -> list[int]:
    """Return where shares of as many columns each begin and end."""
    return [ncols * s // shares for s in range(shares + 1)]


def sorted_columns(
    xp: Any, drawn: Callable[[], Iterable[Entries]], ends: Sequence[int]
) -> tuple[Array, Array]:
    """Return column pointers, INT64, and rows, INT32, of the distinct entries, all rising.

    `drawn` yields (rows, columns, which of them there are, or True), and is called once for each
    share of the columns; shares are sorted one by one, and begin and end at `ends`.
    """
    pointers, rows, total, ncols = [], [], 0, ends[-1]
    for first, last in itertools.pairwise(ends):
        keys = _keys(xp, drawn(), first, last, ncols)
        keys.sort()
        keys = keys[firsts(xp, keys)]
        pointers.append(xp.searchsorted(keys, xp.arange(first, last, dtype=np.int64) << 32) + total)
        total += len(keys)
        keys &= _LOW
        rows.append(keys.astype(np.int32))
        del keys
    pointers.append(xp.full(1, total, np.int64))
    return xp.concatenate(pointers), rows[0] if len(rows) == 1 else xp.concatenate(rows)


def _keys(xp: Any, drawn: Iterable[Entries], first: int, last: int, ncols: int) -> Array:
    """Return an INT64 for each entry of columns first .. last: column, row in 32 bits."""
    lists = []
    for i, j, there in drawn:
        if last - first < ncols:
            there = there & (first <= j) & (j < last)
        keys = j.astype(np.int64, copy=False) << 32 | i
        lists.append(keys if there is True else keys[there])
    return xp.concatenate(lists) if lists else xp.empty(0, np.int64)


def listed(ptr: Array, at: Array) -> tuple[Array, Array]:
    """Return the number of entries of each of some rows, and the places of all of them."""
    begin = ptr[at].astype(np.int64)
    counts = ptr[at + 1] - begin
    shift = np.repeat(begin - (np.cumsum(counts) - counts), counts)
    return counts, shift + np.arange(len(shift))


# ---- Distinct numbers of an array, by sorting.
def distinct(values: Array) -> Array:
    """Return each number of an array of integers once, in ascending order.

    `numpy.unique` does the same with a hash table: for two million numbers it took 70 times as long
    (NumPy 2.5, 2026-11-22).
    """
    ordered = np.sort(values, axis=None)
    return ordered[firsts(np, ordered)]


def all_distinct(values: Array) -> bool:
    return bool(firsts(np, np.sort(values, axis=None)).all())


def firsts(xp: Any, ordered: Array) -> Array:
    """Return, for sorted numbers, whether each differs from the one before."""
    first = xp.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return first


# ---- A permutation that is computed and not stored, and looks random.
class Permutation:
    """A permutation of ``0 .. 2**bits - 1``, for 0 to 64 bits.

    Each round adds a number, multiplies by an odd one, both modulo ``2**bits``, and mixes the high
    half of the bits into the low one; each step can be undone. Graph500's reference code scrambles
    its vertices in this way.
    """

    def __init__(self, bits: int, added: Sequence[int], times: Sequence[int]) -> None:
        self.bits = bits
        self._mask = (1 << bits) - 1
        self._shift = max(1, bits // 2)
        # Numbers that fit the type of what is permuted.
        self._rounds = [(a & self._mask, t & self._mask) for a, t in zip(added, times, strict=True)]

    def forward(self, x: Any) -> Any:
        """Return where each number of an array of UINT32 or UINT64 goes; it is overwritten."""
        for added, times in self._rounds:
            x += x.dtype.type(added)
            x *= x.dtype.type(times)
            x &= x.dtype.type(self._mask)
            x ^= x >> x.dtype.type(self._shift)
        return x

    def backward(self, x: Any) -> Any:
        """Return what goes to each number: the inverse of `forward`."""
        for added, times in reversed(self._rounds):
            high = x >> x.dtype.type(self._shift)
            for _ in range(self.bits // self._shift):
                x ^= high
                high >>= x.dtype.type(self._shift)
            x *= x.dtype.type(pow(times, -1, self._mask + 1))
            x -= x.dtype.type(added)
            x &= x.dtype.type(self._mask)
        return x
