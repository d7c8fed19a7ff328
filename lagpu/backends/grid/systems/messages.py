"""Messages of a search: a set of a piece's vertices as a list or as a bitmap, and their count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from lagpu.backends.profile import Sent

__all__ = ["FORMS", "form_of", "packed", "summed", "unpacked"]

Array = np.ndarray[Any, Any]

#: How a set of vertices travels; "shorter" decides for each message.
FORMS = ("shorter", "list", "bitmap")
BITS = 32  # of a word, and of a number in a list


def packed(vertices: Array, size: int, form: str, used: int | None = None) -> Array:
    """Return a set of vertices as u32, to be sent.

    Parameters
    ----------
    vertices : array of int
        Distinct positions in a piece.
    size : int
        The number of the piece's vertices: the bits of a bitmap.
    form : str
        One of `FORMS`. The shorter one is a list only if it is shorter than the bitmap, so the
        length of a message tells what it is.
    used : int, optional
        A bitmap has so many bits alone if no vertex is behind them.
    """
    words = _words(size if used is None else used)
    if form == "list" or (form == "shorter" and len(vertices) < words):
        return np.sort(vertices).astype(np.uint32)
    if len(vertices) and vertices.max() >= words * BITS:
        words = _words(size)
    bits = np.zeros(words * BITS, bool)
    bits[vertices] = True
    return np.packbits(bits, bitorder="little").view(np.uint32)


def unpacked(message: Array, size: int, form: str, used: int | None = None) -> Array:
    """Return the vertices of a message as `packed` has made it, rising."""
    if form_of(message, size, form, used) == "list":
        return message.astype(np.int64)
    bits = np.unpackbits(message.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits)


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
    return "bitmap" if size and len(message) >= _words(size if used is None else used) else "list"


def _words(size: int) -> int:
    return -(-size // BITS)
