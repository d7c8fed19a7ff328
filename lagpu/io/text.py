"""Lines of text files as bytes, for edge lists and Matrix Market files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np

__all__ = [
    "PIECE",
    "Fault",
    "data_lines",
    "is_binary",
    "line_number",
    "pieces",
    "show",
    "write_rows",
]

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
