"""Arrays as bytes: what one process sends to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.backends.grid.engine import Arrays

__all__ = ["Bytes", "packed", "unpacked"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_WORD = 8  # each array begins at a multiple of so many bytes, as the widest type needs


def packed(lists: Sequence[Arrays]) -> Bytes:
    """Return some pieces' arrays as one array of bytes, which tells their types and lengths.

    It begins with the number of pieces and the number of arrays of each; then come the type and
    the length of every array, and the arrays.
    """
    arrays = [np.ascontiguousarray(array) for one in lists for array in one]
    head = np.array([len(lists), len(lists[0])], np.int64)
    types = np.array([array.dtype.str.encode() for array in arrays], f"S{_WORD}")
    lengths = np.array([len(array) for array in arrays], np.int64)
    parts = [part.view(np.uint8) for part in (head, types.view(np.int64), lengths)]
    for array in arrays:
        parts += [array.view(np.uint8), np.zeros(-array.nbytes % _WORD, np.uint8)]
    return np.concatenate(parts)


def unpacked(message: Bytes) -> list[Arrays]:
    """Return the pieces' arrays, which share the message's memory and are read only."""
    pieces, width = message[: 2 * _WORD].view(np.int64).tolist()
    count = pieces * width
    types, lengths = message[2 * _WORD : (2 + 2 * count) * _WORD].reshape(2, -1)
    at, arrays = (2 + 2 * count) * _WORD, []
    for name, length in zip(types.view(f"S{_WORD}"), lengths.view(np.int64), strict=True):
        dtype = np.dtype(name.decode())
        array = message[at : at + length * dtype.itemsize].view(dtype)
        array.flags.writeable = False
        arrays.append(array)
        at += array.nbytes + -array.nbytes % _WORD
    return [tuple(arrays[p * width : (p + 1) * width]) for p in range(pieces)]
