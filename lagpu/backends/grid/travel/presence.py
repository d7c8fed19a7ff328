"""Sets of positions in a part as messages: a list or a bitmap, whichever is shorter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lagpu.backends.profile import Sent

__all__ = ["FORMS", "form_of", "length", "packed", "summed", "unpacked"]

Array = np.ndarray[Any, Any]

#: How a set of positions travels; "shorter" decides for each message.
FORMS = ("shorter", "list", "bitmap")
_NARROW = 2**32  # positions that a number of 4 bytes can mean


def packed(vertices: Array, size: int, form: str = "shorter", used: int | None = None) -> Array:
    """Return a set of positions, to be sent.

    Numbers of a list and words of a bitmap are u32, or u64 if there are more than 2**32 positions.

    Parameters
    ----------
    vertices : array of int
        Distinct positions in a part.
    size : int
        The number of the part's positions: the bits of a bitmap.
    form : str
        One of `FORMS`. The shorter one is a list only if it is shorter than the bitmap, so the
        length of a message tells what it is.
    used : int, optional
        A bitmap has so many bits alone if no vertex is behind them.
    """
    number = _number(size)
    words = _words(size if used is None else used, number)
    if form == "list" or (form == "shorter" and len(vertices) < words):
        return np.sort(vertices).astype(number)
    bits = 8 * number.itemsize
    if len(vertices) and vertices.max() >= words * bits:
        words = _words(size, number)
    there = np.zeros(words * bits, bool)
    there[vertices] = True
    return np.packbits(there, bitorder="little").view(number)


def unpacked(message: Array, size: int, form: str = "shorter", used: int | None = None) -> Array:
    """Return the positions of a message as `packed` has made it, rising."""
    if form_of(message, size, form, used) == "list":
        return message.astype(np.int64)
    bits = np.unpackbits(message.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits)


def length(count: float, size: int) -> float:
    """Return the bytes of the shorter message of so many positions."""
    number = _number(size)
    return min(count, _words(size, number)) * number.itemsize


def summed(messages: Iterable[tuple[str, int]]) -> tuple[Sent, ...]:
    """Return the messages of a phase by form, from the (form, bytes) of each."""
    found: dict[str, tuple[int, int]] = {}
    for form, nbytes in messages:
        if nbytes:
            count, total = found.get(form, (0, 0))
            found[form] = count + 1, total + nbytes
    return tuple(Sent(form, *found[form]) for form in sorted(found))


def form_of(message: Array, size: int, form: str, used: int | None = None) -> str:
    """Return whether a message that `packed` has made is a ``"list"`` or a ``"bitmap"``."""
    if form != "shorter":
        return form
    words = _words(size if used is None else used, _number(size))
    return "bitmap" if size and len(message) >= words else "list"


def _number(size: int) -> np.dtype[Any]:
    """Return the type of a number in a list, and of a word."""
    return np.dtype(np.uint32 if size <= _NARROW else np.uint64)


def _words(size: int, number: np.dtype[Any]) -> int:
    return -(-size // (8 * number.itemsize))
