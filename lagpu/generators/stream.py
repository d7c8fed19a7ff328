"""The random numbers of generated graphs, by position: any part can be drawn alone, anywhere.

Number i of a stream depends on the seed, the stream and i, so a graph is the same on every backend,
in whatever parts it is made. The function is Philox4x64-10 (Salmon, Moraes, Dror and Shaw, SC 2011)
as NumPy has it; a device has it as a kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["key", "shuffled", "words"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device

_ROUNDS = 4
_LABELS = 1 << 32  # the stream of the numbers of `shuffled`; edges have the streams below


def key(seed: int) -> Array:
    """Return the key of a seed, (2,), UINT64: NumPy mixes its bits."""
    return np.random.SeedSequence(seed).generate_state(2, np.uint64)


def words(device: Any, key: Array, stream: int, first: int, count: int) -> Array:
    """Return the numbers ``first .. first + count - 1`` of a stream, (count,), UINT32.

    Parameters
    ----------
    device : Device or None
        Where they are made; None for the host.
    key : ndarray of UINT64, (2,)
        From `key`.
    stream : int
        Which stream.
    first, count : int
        Which numbers.
    """
    if device is not None:
        return device.random_words(key, stream, first, count)
    block, skipped = divmod(first, 8)
    generator = np.random.Philox(key=key, counter=[block, stream, 0, 0])
    blocks = -(-(skipped + count) // 8)
    return generator.random_raw(4 * blocks).view(np.uint32)[skipped : skipped + count]


def shuffled(key: Array, x: Array, bits: int) -> Array:
    """Return random, distinct labels in ``0 .. 2**bits - 1`` of such numbers.

    A permutation that needs no table: each step of a round, an addition and a product with an odd
    number modulo ``2**bits``, and the high half mixed into the low one, can be undone. Graph500's
    reference code scrambles its vertices so as well.

    Parameters
    ----------
    key : ndarray of UINT64, (2,)
        From `key`.
    x : array of UINT32
        The numbers; overwritten.
    bits : int
        0 to 32.
    """
    mask = np.uint32((1 << bits) - 1)
    added = words(None, key, _LABELS, 0, _ROUNDS)
    times = words(None, key, _LABELS + 1, 0, _ROUNDS) | np.uint32(1)
    for k in range(_ROUNDS):
        x += added[k]
        x *= times[k]
        x &= mask
        x ^= x >> max(1, bits // 2)
    return x
