"""Lines of text files as bytes, and their words as numbers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

Array = np.ndarray[Any, Any]

_LINES = 1 << 16  # written at a time
PIECE = 1 << 24  # bytes; the temporaries of a piece are small compared with a large file
# Control characters that no text has: all but tab, line feed, vertical tab, form feed, return.
_CONTROL = bytes([*range(9), *range(14, 32), 127])


class Fault(Exception):
    """A line of a part of a text is malformed; whoever knows the rest of the file names it.

    Attributes
    ----------
    line : int
        Its number in the part, from 1.
    why : str
        The line and what is wrong with it.
    """

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line, self.why = line, why


def is_binary(start: bytes) -> bool:
    """Return True if the first bytes of a file include characters that no text has."""
    return len(start.translate(None, _CONTROL)) != len(start)


def pieces(data: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, bytes) of consecutive pieces of whole lines.

    A piece has some megabytes at most, unless it is one line that is longer.
    """
    while start < len(data):
        stop = len(data)
        if stop - start > PIECE:
            cut = data.rfind(b"\n", start, start + PIECE)
            cut = data.find(b"\n", start) if cut < 0 else cut
            stop = stop if cut < 0 else cut + 1
        yield start, data[start:stop]
        start = stop


def data_lines(data: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) of the lines that are neither blank nor comments (``#``, ``%``)."""
    while start < len(data):
        stop = data.find(b"\n", start)
        stop = len(data) if stop < 0 else stop
        line = data[start:stop].strip()
        if line and not line.startswith((b"#", b"%")):
            yield start, line
        start = stop + 1


def line_number(data: bytes, offset: int) -> int:
    """Return the number, from 1, of the line at an offset."""
    return data.count(b"\n", 0, offset) + 1


def show(line: bytes) -> str:
    """Return a line as text for a message, shortened to 60 characters."""
    text = line[:240].decode("utf-8", "replace")
    return repr(text if len(text) <= 60 else text[:57] + "...")


def write_rows(file: IO[bytes], columns: list[Array], separator: str, prefix: str = "") -> None:
    """Write arrays of equal length as the columns of a table, after a prefix.

    BOOL is written as 0 and 1, and objects as texts.
    """
    plain = [column.astype(np.int8) if column.dtype.kind == "b" else column for column in columns]
    line = (
        prefix
        + separator.join("%s" if column.dtype.kind == "O" else "%r" for column in plain)
        + "\n"
    )
    for k in range(0, len(plain[0]), _LINES):
        part = [column[k : k + _LINES].tolist() for column in plain]
        # Formatting many lines at once is several times faster than line by line.
        numbers = [number for row in zip(*part, strict=True) for number in row]
        file.write((line * len(part[0]) % tuple(numbers)).encode())


# ------------------------------------------------------------------------------------------
# Words of text lines as numbers, many lines at a time.


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
