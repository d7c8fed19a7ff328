"""Lines of text files: their numbers by NumPy's parser, and the first line at fault."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar

import numpy as np

from lagpu.errors import FileFormatError

Array = np.ndarray[Any, Any]
T = TypeVar("T")

_LINES = 1 << 16  # written at a time
PIECE = 1 << 24  # bytes; the temporaries of a piece are small compared with a large file
# Control characters that no text has: all but tab, line feed, vertical tab, form feed, return.
_CONTROL = bytes([*range(9), *range(14, 32), 127])
# A return inside a line is a space; Python's other separators are not.
_PLAIN = bytes.maketrans(b"\r\x1c\x1d\x1e\x1f", b" \0\0\0\0")
_WHOLE = b"0123456789+-,; \t\n\v\f"  # all characters of whole numbers and what separates them
COMMENT = re.compile(rb"^[ \t]*[#%][^\n]*", re.MULTILINE)
_REAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(nan|inf)", re.IGNORECASE)
_FORTRAN = re.compile(rb"(?<=[0-9.])[dD](?=[+-]?[0-9]+[ \t\r]*$)", re.MULTILINE)


class Malformed(Exception):
    """Some words are not what a format needs; its reader then finds the line."""


class Fault(Exception):
    """A line of a part of a text is malformed.

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

    def named(self, name: str, above: int = 0) -> FileFormatError:
        """Return the error of a file that has some lines above the part."""
        return FileFormatError(f"read: {name}, line {above + self.line}: {self.why}.")


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


def parsed(data: bytes, start: int, parse: Callable[[bytes], T], name: str) -> list[T]:
    """Return what a parser makes of each piece of a text, or raise its `Fault` by the line."""
    found = []
    for at, text in pieces(data, start):
        try:
            require_short(next(data_lines(text), (0, b""))[1])
            found.append(parse(text))
        except Fault as fault:
            raise fault.named(name, line_number(data, at) - 1) from None
    return found


def require_short(line: bytes) -> None:
    """Raise `Fault` for a line that is longer than a piece of a text."""
    if len(line) > PIECE:
        raise Fault(1, f"{show(line)} is longer than {PIECE} bytes")


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


def fault_in(text: bytes, parse: Callable[[bytes], Any], why: Callable[[bytes], str]) -> Fault:
    """Return the fault of the first line of a text that a parser refuses, by bisection."""
    lines = text.split(b"\n")
    low, high = 0, len(lines)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            parse(b"\n".join(lines[low:middle]) + b"\n")
        except Malformed:
            high = middle
        else:
            low = middle
    line = lines[low].strip()
    return Fault(low + 1, f"{show(line)} {why(line)}")


def write_rows(file: IO[bytes], columns: list[Array], separator: str, prefix: str = "") -> None:
    """Write arrays of equal length as the columns of a table, after a prefix.

    BOOL is written as 0 and 1, and objects as texts.
    """
    plain = [column.astype(np.int8) if column.dtype.kind == "b" else column for column in columns]
    words = separator.join("%s" if column.dtype.kind == "O" else "%r" for column in plain)
    line = f"{prefix}{words}\n"
    for k in range(0, len(plain[0]), _LINES):
        part = [column[k : k + _LINES].tolist() for column in plain]
        # Formatting many lines at once is several times faster than line by line.
        numbers = [number for row in zip(*part, strict=True) for number in row]
        file.write((line * len(part[0]) % tuple(numbers)).encode())


# ------------------------------------------------------------------------------------------
# Numbers.


def table(text: bytes, separator: str | None = None) -> Array:
    """Return the numbers of lines, (lines, numbers of each), blank lines aside.

    They are INT64, or FP64 if one is not a whole number.

    Raises
    ------
    Malformed
        If lines have different numbers of words, a word is not a number, or one is beyond 64 bits
        where all are whole.
    """
    if not text.strip():
        return np.empty((0, 0), np.int64)
    plain = text.translate(_PLAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a fraction that is to be an integer
        for kind in ("i8", "f8"):
            if kind == "f8" and not plain.translate(None, _WHOLE):
                break
            with contextlib.suppress(ValueError):
                lines = io.BytesIO(plain)
                found: Array = np.loadtxt(
                    lines, kind, comments=None, delimiter=separator, ndmin=2, encoding="ascii"
                )
                return found
    raise Malformed


def numbers_of(words: list[bytes]) -> Array:
    """Return weights as INT64, or FP64 if necessary; raise `Malformed` if one is no number."""
    found = table(fortran(b"\n".join(words)))
    if words and found.shape != (len(words), 1):
        raise Malformed
    return found.ravel()


def fortran(text: bytes) -> bytes:
    """Return a text whose lines may end in numbers as Fortran has them, 1.5D+01, with e for D."""
    return _FORTRAN.sub(b"e", text) if b"D" in text or b"d" in text else text


def is_number(word: bytes) -> bool:
    """Return whether a word may be a weight."""
    return _REAL.fullmatch(fortran(word.strip())) is not None


def are_vertices(words: list[bytes]) -> bool:
    """Return whether words are numbers as vertices may be written, without a Fortran exponent."""
    return all(map(_REAL.fullmatch, words))


def number(word: bytes) -> int | float:
    """Return the number of a word that `is_number`."""
    if re.fullmatch(rb"[+-]?[0-9]{1,1000}", word):  # Python converts up to 4300 digits
        return int(word)
    return float(fortran(word))


def fits(value: int | float) -> bool:
    """Return whether a number is one of INT64, as far as its size goes."""
    return -(2**63) <= value < 2**63
