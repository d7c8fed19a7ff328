"""Words of text lines as numbers, many lines at a time."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

__all__ = [
    "COMMENT",
    "REAL",
    "WHOLE",
    "Malformed",
    "fits",
    "fortran",
    "is_number",
    "number",
    "numbers",
    "numbers_of",
    "shape_of",
]

Array = np.ndarray[Any, Any]

COMMENT = re.compile(rb"^[ \t]*[#%][^\n]*", re.MULTILINE)
WHOLE = re.compile(rb"[+-]?[0-9]+")
REAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(nan|inf)", re.IGNORECASE)
_FORTRAN = re.compile(rb"(?<=[0-9.])[dD](?=[+-]?[0-9]+[ \t\r]*$)", re.MULTILINE)
_INTEGER = np.zeros(256, bool)
_INTEGER[list(b"0123456789- \t\n\v\f\r")] = True


class Malformed(Exception):
    """Some words are not what a format needs; its reader then finds the line."""


def shape_of(raw: Array) -> tuple[int, int]:
    """Return how many lines are not blank, and how many words each of them has, 2 or 3.

    Parameters
    ----------
    raw : ndarray of UINT8
        Whole lines without comments.

    Raises
    ------
    Malformed
        If lines differ, or have another number of words.
    """
    full = raw > 32
    begins = full.copy()
    begins[1:] &= ~full[:-1]
    line = np.cumsum(raw == 10, dtype=np.int32)[begins]  # the line of each word
    if line.size == 0:
        return 0, 2
    width = int(np.searchsorted(line, line[0], side="right"))
    if width not in (2, 3) or line.size % width:
        raise Malformed
    grid = line.reshape(-1, width)
    if (grid[:, 0] != grid[:, -1]).any() or (np.diff(grid[:, 0]) <= 0).any():
        raise Malformed
    return line.size // width, width


def numbers(text: bytes, raw: Array) -> Array:
    """Return the words of a text as INT64, or FP64 if one is no whole number.

    Raises
    ------
    Malformed
        If a word is no number, or is a whole number beyond 64 bits among whole numbers.
    """
    whole = bool(_INTEGER[raw].all())
    if whole:
        minus = np.flatnonzero(raw == ord("-"))
        after = raw[np.minimum(minus + 1, raw.size - 1)]
        if (after < ord("0")).any():  # a "-" alone, which NumPy parses as 0
            raise Malformed
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy < 2.3 warns instead of raising
        try:
            found = np.fromstring(text, np.int64 if whole else np.float64, sep=" ")
        except (ValueError, DeprecationWarning):
            raise Malformed from None
    limits = np.iinfo(np.int64)
    if whole and found.size and (found.max() == limits.max or found.min() == limits.min):
        words = text.split()  # the parser saturates, so the text decides what is out of range
        last = np.flatnonzero((found == limits.max) | (found == limits.min)).tolist()
        if not all(fits(number(words[k])) for k in last):
            raise Malformed
    return found


def numbers_of(words: list[bytes]) -> Array:
    """Return weights as INT64, or FP64 if necessary; raise `Malformed` if one is no number."""
    text = fortran(b"\n".join(words))
    found = numbers(text, np.frombuffer(text, np.uint8))
    if len(found) != len(words):
        raise Malformed
    return found


def fortran(text: bytes) -> bytes:
    """Return a text whose lines may end in numbers as Fortran has them, 1.5D+01, with e for D."""
    return _FORTRAN.sub(b"e", text) if b"D" in text or b"d" in text else text


def is_number(word: bytes) -> bool:
    """Return whether a word may be a weight."""
    return REAL.fullmatch(fortran(word.strip())) is not None


def number(token: bytes) -> int | float:
    """Return the number of a word that `is_number`."""
    if WHOLE.fullmatch(token) and len(token) < 1000:  # Python converts up to 4300 digits
        return int(token)
    return float(fortran(token))


def fits(value: int | float) -> bool:
    """Return whether a number is one of INT64, as far as its size goes."""
    return -(2**63) <= value < 2**63
