"""Edge lists, tables of numbers and Matrix Market files, read in shares."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from lagpu.errors import LagpuError
from lagpu.host import memory
from lagpu.io import edge_list, matrix_market
from lagpu.io.budget import Budget
from lagpu.io.formats import delimited, table
from lagpu.io.formats.kinds import kind_of_text
from lagpu.io.formats.table import Format
from lagpu.io.reading import Edges, Extent, Options
from lagpu.io.slices.share import Chunk, Sliced, Text, parsed
from lagpu.io.text import PIECE, data_lines, is_binary
from lagpu.io.words import Malformed

__all__ = ["GZIP", "HEAD", "sliced_text"]

HEAD = 1 << 16  # bytes that tell what a text is; a shorter one is not worth sharing
GZIP = b"\x1f\x8b"
_TEMPORARY = 20  # bytes for each of a text that is parsed
_KINDS = {"integer": np.int64, "unsigned-integer": np.uint64, "real": np.float64}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def sliced_text(
    stream: IO[bytes], file: Path, options: Options, asked: Format | None, budget: Budget
) -> Sliced | None:
    """Return a text of which pieces can read shares, or None.

    Parameters
    ----------
    stream : binary file
        The file, at its beginning.
    file : Path
        Its path.
    options : Options
        Those of the caller.
    asked : Format, optional
        The format that the caller has named.
    budget : Budget
        The name of the file in messages.

    Raises
    ------
    FileFormatError, NotSupported
        If the first lines are already wrong.
    """
    packed = stream.read(len(GZIP)) == GZIP
    stream.seek(0)
    head = _first_lines(stream, packed)
    skipped = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    head = head[skipped:]
    if not head or is_binary(head):
        return None
    form = asked or table.of_text(head, file)
    if form.guessed and asked is None and kind_of_text(head):
        return None
    if options.columns and "columns" not in form.heeds:
        return None
    make: Any = _MAKERS.get(form.suffixes[0])
    return None if make is None else make(head, file, options, packed, budget.name, skipped)


def _first_lines(stream: Any, packed: bool) -> bytes:
    """Return the whole lines within the first bytes of a text; none if the text has no more."""
    source = gzip.GzipFile(fileobj=stream) if packed else stream
    try:
        head: bytes = source.read(HEAD)
    except (EOFError, OSError):  # damaged: the reader of whole files says so
        return b""
    return b"" if len(head) < HEAD else head[: head.rfind(b"\n") + 1]


class _Lines:
    """What both kinds of text share; see `Sliced`."""

    kind: np.dtype[Any] | None = None
    temporary = _TEMPORARY

    def __init__(self, text: Text, head: bytes) -> None:
        self._text = text
        self.head = head.count(b"\n")

    def bytes_of(self, count: int) -> int:
        """See `Sliced`: a line of 4 bytes is an entry of 8, one of 6 with a value one of 16.

        They are there once more where they are put together. Who unpacks asks as it goes on.
        """
        share = self._text.nbytes // count
        return 6 * share + self.temporary * min(share, PIECE)

    def _parse(self, text: bytes) -> Edges:
        raise NotImplementedError

    def chunks(self, pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        """See `Sliced`."""
        for piece, key, text in self._text.texts(pieces, count):
            memory.require(_TEMPORARY * len(text), f"read: {self._text.name}")
            yield piece, parsed(key, text, self._parse)


class _EdgeList(_Lines):
    """An edge list; see `Sliced`."""

    mirror = 0

    def __init__(self, text: Text, top: edge_list.Top, options: Options, name: str) -> None:
        super().__init__(text, top.text)
        self._top, self._options, self._name = top, options, name
        self.undirected = top.undirected
        self.pattern = top.width == 2

    def _parse(self, text: bytes) -> Edges:
        return edge_list.edges_of(text, self._top.width)

    def shape(self, extent: Extent) -> tuple[int, int, Edges]:
        """See `Sliced`: the first line is an edge, or else the header."""
        n, first = edge_list.settled(self._top, extent, self._name, self._options)
        return n, n, first


class _Market(_Lines):
    """A Matrix Market file; see `Sliced`."""

    undirected = False

    def __init__(self, text: Text, sizes: matrix_market.Sizes, head: bytes, name: str) -> None:
        super().__init__(text, head)
        self._sizes, self._name = sizes, name
        self.mirror = {"symmetric": 1, "skew-symmetric": -1}.get(sizes.symmetry, 0)
        self.pattern = sizes.field == "pattern"
        self.kind = None if self.pattern else np.dtype(_KINDS[sizes.field])

    def _parse(self, text: bytes) -> Edges:
        return matrix_market.edges_of(text, self._sizes)

    def shape(self, extent: Extent) -> tuple[int, int, Edges]:
        """See `Sliced`."""
        matrix_market.require_count(self._sizes, extent.size, self._name)
        return self._sizes.nrows, self._sizes.ncols, Edges.join([])


class _Delimited(_Lines):
    """A table with commas, tabs or semicolons; see `Sliced`.

    Of quotes, gaps and names in a line the reader of whole files knows more: a quoted field may go
    on in the next line, which another piece has.
    """

    mirror = 0
    temporary = 36  # numbers and separators have a place in their lines

    def __init__(self, text: Text, form: delimited.Table) -> None:
        super().__init__(text, form.data[: form.start])
        self._form = form._replace(data=b"")
        self.undirected = form.undirected
        self.pattern = form.places[2] is None

    def chunks(self, pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        """See `Sliced`."""
        for piece, key, text in self._text.texts(pieces, count):
            memory.require(self.temporary * len(text), f"read: {self._text.name}")
            lines = text.count(b"\n")
            try:
                if text.count(b"\r") != text.count(b"\r\n"):
                    raise Malformed
                yield piece, Chunk(key, lines, delimited.edges_of(text, self._form))
            except Malformed:
                yield piece, Chunk(key, lines, Edges.join([]), whole=True)

    def shape(self, extent: Extent) -> tuple[int, int, Edges]:
        """See `Sliced`."""
        n = max(self._form.nodes, 1 + max(extent.top))
        return n, n, Edges.join([])


def _edge_list(
    head: bytes, file: Path, options: Options, packed: bool, name: str, skipped: int
) -> Sliced | None:
    top = edge_list.top_of(head, name)
    if top is None:
        return None
    return _EdgeList(Text(file, skipped + len(top.text), packed), top, options, name)


def _market(
    head: bytes, file: Path, options: Options, packed: bool, name: str, skipped: int
) -> Sliced | None:
    sizes = matrix_market.sizes_of(head, name)
    if sizes is None:
        return None
    own = head[: sizes.start]
    return _Market(Text(file, skipped + sizes.start, packed), sizes, own, name)


def _delimited(
    head: bytes, file: Path, options: Options, packed: bool, name: str, skipped: int
) -> Sliced | None:
    offset, first = next(data_lines(head), (0, b""))
    if head.count(b"\n", offset) < 2:
        return None
    try:
        form = delimited.form_of(head, offset, first, options, name)
    except (LagpuError, UnicodeDecodeError):  # the reader of whole files says it
        return None
    return _Delimited(Text(file, skipped + form.start, packed), form)


_MAKERS = {
    ".mtx": _market,
    ".txt": _edge_list,
    ".el": _edge_list,
    ".wel": _edge_list,
    ".csv": _delimited,
    ".tsv": _delimited,
}
