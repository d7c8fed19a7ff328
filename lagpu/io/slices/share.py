"""A share of a file: what a piece of a grid reads of it, and where the shares of a text begin."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np

from lagpu.errors import FileFormatError
from lagpu.io.reading import Edges, Extent
from lagpu.io.text import PIECE, Fault

__all__ = ["Chunk", "Sliced", "Text", "parsed"]

_BLOCK = 1 << 16  # bytes in which the end of a line is looked for


class Chunk(NamedTuple):
    """Some whole lines of a text, or entries of an archive.

    Attributes
    ----------
    key : int
        Chunks with smaller keys are before it in the file.
    lines : int
        The lines that it has; 0 where there are none.
    edges : Edges
        The entries of these; none if one is malformed.
    fault : tuple of (int, str), optional
        The line in this chunk, from 1, that is malformed, and why.
    whole : bool
        Whether only the reader of whole files can say what this is.
    """

    key: int
    lines: int
    edges: Edges
    fault: tuple[int, str] | None = None
    whole: bool = False


class Sliced(Protocol):
    """A file that is read in shares, as its first bytes describe it; the same in every process.

    Attributes
    ----------
    undirected : bool
        As in `lagpu.io.reading.Parsed`.
    mirror : int
        1: each entry is there across the diagonal too; -1: with the other sign; 0: it is not.
    pattern : bool
        Whether there are no values: every entry is True.
    kind : dtype or None
        The type of the values; None: INT64 if all shares have whole numbers, else FP64.
    head : int
        Lines before those that are shared out.
    """

    undirected: bool
    mirror: int
    pattern: bool
    kind: np.dtype[Any] | None
    head: int

    def bytes_of(self, count: int) -> int:
        """Return how many bytes reading one of `count` shares takes, at most."""

    def chunks(self, pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        """Yield (piece, chunk) of the shares of some pieces of `count`, each in its order."""

    def shape(self, extent: Extent) -> tuple[int, int, Edges]:
        """Return (nrows, ncols, entries of the head), once all shares are read."""


class Text:
    """The lines of a text file from an offset on, in as many shares as there are pieces.

    A file as it is has a share of its bytes for each piece, from the first line that begins there
    on. One that is packed by gzip cannot be entered in the middle: each process unpacks all of it,
    some megabytes at a time, and the pieces take these by turns.

    Parameters
    ----------
    file : Path
        The file.
    start : int
        Where the lines begin, in bytes of the text.
    packed : bool
        Whether it is packed by gzip.
    """

    def __init__(self, file: Path, start: int, packed: bool) -> None:
        self._file, self._start, self._packed = file, start, packed
        self.name, self.nbytes = file.name, file.stat().st_size

    def texts(self, pieces: Sequence[int], count: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield (piece, key, whole lines) of the shares of some pieces of `count`."""
        with self._file.open("rb") as stream:
            if self._packed:
                for key, text in enumerate(self._unpacked(stream)):
                    if key % count in pieces:
                        yield key % count, key, text
                return
            for piece in pieces:
                first, last = (self._line_at(stream, piece + k, count) for k in (0, 1))
                for k, text in enumerate(self._lines(stream, first, last)):
                    yield piece, piece << 32 | k, text

    def _line_at(self, stream: IO[bytes], piece: int, count: int) -> int:
        """Return where the first line begins at or behind the nominal start of a share."""
        at = self._start + max(0, self.nbytes - self._start) * piece // count
        if at == self._start:
            return at
        stream.seek(at - 1)
        while block := stream.read(_BLOCK):
            end = block.find(b"\n")
            if end >= 0:
                return stream.tell() - len(block) + end + 1
        return self.nbytes

    def _lines(self, stream: IO[bytes], first: int, last: int) -> Iterator[bytes]:
        stream.seek(first)
        while first < last:
            block = stream.read(min(PIECE, last - first))
            if not block:
                raise FileFormatError(f"read: {self._file.name} became shorter while it was read.")
            if first + len(block) < last:
                cut = _last_line_of(block, self._file.name, PIECE)
                block = block[:cut]
                stream.seek(first + cut)
            first += len(block)
            yield _ended(block)

    def _unpacked(self, stream: Any) -> Iterator[bytes]:
        try:
            with gzip.GzipFile(fileobj=stream) as text:
                skip, rest = self._start, b""
                while skip and (over := text.read(min(skip, PIECE))):
                    skip -= len(over)
                while block := text.read(PIECE):
                    block = rest + block
                    cut = _last_line_of(block, self._file.name, 2 * PIECE)
                    rest = block[cut:]
                    if cut:
                        yield block[:cut]
                if rest:
                    yield _ended(rest)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileFormatError(
                f"read: {self._file.name} is truncated or damaged: {error}"
            ) from error


def _last_line_of(block: bytes, name: str, most: int) -> int:
    """Return where the last whole line of a block ends; 0 if it may be longer, up to `most`."""
    cut = block.rfind(b"\n") + 1
    if not cut and len(block) >= most:
        raise FileFormatError(f"read: {name} has a line that is longer than {PIECE} bytes.")
    return cut


def _ended(text: bytes) -> bytes:
    return text if text.endswith(b"\n") else text + b"\n"


def parsed(key: int, text: bytes, parse: Callable[[bytes], Edges]) -> Chunk:
    """Return the chunk of some lines; `parse` returns the edges of a text, or raises `Fault`."""
    lines = text.count(b"\n")
    try:
        return Chunk(key, lines, parse(text))
    except Fault as fault:
        return Chunk(key, lines, Edges.join([]), (fault.line, fault.why))
