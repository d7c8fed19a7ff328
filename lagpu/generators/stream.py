"""The random numbers of generated graphs, by position: any part can be drawn alone, anywhere.

Number i of a stream depends on the seed, the stream and i, so a graph is the same on every backend,
in whatever parts it is made. The function is Philox4x64-10 (Salmon, Moraes, Dror and Shaw, SC 2011)
as NumPy has it; a device has it as a kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.host.columns import Permutation

Array = Any  # numpy.ndarray or cupy.ndarray, by the device

_ROUNDS = 4
_LABELS = 1 << 32  # the stream of the numbers of `labels`; edges have the streams below


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


def labels(key: Array, bits: int) -> Permutation:
    """Return a random permutation of ``0 .. 2**bits - 1``, for at most 32 bits.

    Parameters
    ----------
    key : ndarray of UINT64, (2,)
        From `key`.
    bits : int
        0 to 32.
    """
    added = words(None, key, _LABELS, 0, _ROUNDS)
    times = words(None, key, _LABELS + 1, 0, _ROUNDS) | np.uint32(1)
    return Permutation(bits, added.tolist(), times.tolist())
