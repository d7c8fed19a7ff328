"""A share of a file: what a piece of a grid reads of text, NumPy archives and Parquet tables."""

from __future__ import annotations

import gzip
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np

from lagpu import dtypes
from lagpu.errors import FileFormatError, LagpuError
from lagpu.host import memory
from lagpu.io import edge_list, matrix_market
from lagpu.io.formats import delimited, parquet, table
from lagpu.io.formats.kinds import kind_of_text
from lagpu.io.formats.table import Format
from lagpu.io.npz import Archive, errors_named, require_version
from lagpu.io.reading import Budget, Edges, Extent, Options
from lagpu.io.text import PIECE, Fault, Malformed, data_lines, is_binary

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


# ------------------------------------------------------------------------------------------
# Edge lists, tables of numbers and Matrix Market files, read in shares.


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


# ------------------------------------------------------------------------------------------
# lagpu's NumPy archives, read in shares: their arrays are in the file as they are in memory.


Array = np.ndarray[Any, Any]

_MOST = 1 << 22  # entries at a time
_LOCAL = struct.Struct("<4s22xHH")  # of a member: signature, lengths of its name and of the rest


def sliced_archive(stream: IO[bytes], file: Path, budget: Budget) -> Sliced | None:
    """Return an archive of which pieces can read shares, or None: it is packed, or not lagpu's.

    Raises
    ------
    FileFormatError
        If it is damaged, or its arrays are not those of a matrix.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            stored = all(of.compress_type == zipfile.ZIP_STORED for of in archive.infolist())
            if not stored or "lagpu_format.npy" not in archive.namelist():
                return None
    except (zipfile.BadZipFile, OSError):  # the reader of whole files says it
        return None
    return _Sliced(stream, file, budget)


class _Sliced:
    """An archive as `lagpu.io.npz` writes it; see `Sliced`.

    A share has as many entries as the others, and these of the column pointers that it needs. The
    check sums of the archive are those of whole arrays, and are not looked at.

    Parameters
    ----------
    stream : binary file
        The archive, from its first byte.
    file : Path
        Its path.
    budget : Budget
        The name of the file in messages.

    Raises
    ------
    FileFormatError
        If it is damaged.
    """

    undirected, mirror, head = False, 0, 0

    def __init__(self, stream: IO[bytes], file: Path, budget: Budget) -> None:
        self._name = f"read: {budget.name} is not a matrix archive"
        with errors_named(self._name):
            archive = Archive(stream, None)
            require_version(archive)
            self._nrows, self._ncols = archive.shape()
            self.kind: np.dtype[Any] | None = dtypes.lookup(archive.word("dtype")).numpy
            self._iso = archive["iso"].astype(self.kind)[()] if "iso" in archive else None
            self.pattern = self._iso is not None and self.kind == np.bool_ and bool(self._iso)
            self._ptr = _mapped(stream, file, archive, "col_ptr")
            self._rows = _mapped(stream, file, archive, "row_idx")
            self._values = _mapped(stream, file, archive, "values") if self._iso is None else None
            self._check()

    def _check(self) -> None:
        ptr, rows = self._ptr, self._rows
        if ptr.shape != (self._ncols + 1,) or rows.ndim != 1:
            raise ValueError(f"col_ptr {ptr.shape} != ({self._ncols + 1},)")
        if self._values is not None and self._values.shape != rows.shape:
            raise ValueError(f"{self._values.shape} values != {rows.shape} rows")
        if ptr[0] != 0 or ptr[-1] != len(rows):
            raise ValueError("col_ptr does not rise from 0 to the number of entries")

    def bytes_of(self, count: int) -> int:
        """See `Sliced`."""
        return (32 * len(self._rows) + 16 * len(self._ptr)) // count

    def chunks(self, pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        """See `Sliced`."""
        with errors_named(self._name):
            for piece in pieces:
                self._require_rising(piece, count)
                first, last = (len(self._rows) * (piece + k) // count for k in (0, 1))
                for k, start in enumerate(range(first, last, _MOST)):
                    edges = self._edges(start, min(start + _MOST, last))
                    yield piece, Chunk(piece << 32 | k, 0, edges)

    def _require_rising(self, piece: int, count: int) -> None:
        """Raise if the column pointers of a share do not rise."""
        first, last = (self._ncols * (piece + k) // count for k in (0, 1))
        own = self._ptr[first : last + 1]
        if (own[1:] < own[:-1]).any():
            raise ValueError("col_ptr does not rise from 0 to the number of entries")

    def _edges(self, start: int, stop: int) -> Edges:
        """Return a run of the entries."""
        first = int(np.searchsorted(self._ptr, start, "right")) - 1
        last = int(np.searchsorted(self._ptr, stop, "left"))
        ends = np.clip(self._ptr[first : last + 1], start, stop).astype(np.int64)
        cols = np.repeat(np.arange(first, last), np.diff(ends))
        rows = self._rows[start:stop].astype(np.int64)
        if len(cols) != len(rows):
            raise ValueError("col_ptr does not rise from 0 to the number of entries")
        if len(rows) and not 0 <= rows.min() <= rows.max() < self._nrows:
            raise ValueError(f"a row outside 0 .. {self._nrows - 1}")
        before = max(start - 1, 0)
        rising = self._rows[before + 1 : stop] > self._rows[before : stop - 1]
        begins = self._ptr[first : last + 1].astype(np.int64) - before - 1
        rising[begins[(begins >= 0) & (begins < len(rising))]] = True  # a new column begins
        if not rising.all():
            raise ValueError("rows that do not rise within a column")
        values = None
        if self._values is not None:
            values = self._values[start:stop].astype(self.kind)
        elif not self.pattern:
            values = np.full(len(rows), self._iso)
        return Edges(rows, cols, values)

    def shape(self, extent: Extent) -> tuple[int, int, Edges]:
        """See `Sliced`."""
        return self._nrows, self._ncols, Edges.join([])


def _mapped(stream: IO[bytes], file: Path, archive: Archive, name: str) -> Array:
    """Return an array of an archive as a view of the file, from which nothing is read yet."""
    member = archive.member(name)
    shape, dtype = archive.headers[name]
    if dtype.kind not in "biuf":
        raise ValueError(f"{name} has the type {dtype}")
    stream.seek(member.header_offset)
    signature, *lengths = _LOCAL.unpack(stream.read(_LOCAL.size))
    if signature != b"PK\x03\x04":
        raise ValueError(f"{name} is not where the archive says")
    size = int(np.prod(shape)) * dtype.itemsize
    at = member.header_offset + _LOCAL.size + sum(lengths) + member.file_size - size
    if not size:
        return np.zeros(shape, dtype)
    return np.memmap(file, dtype, "r", at, shape)


# ------------------------------------------------------------------------------------------
# Parquet tables of edges, read in shares: the pieces take the groups of rows by turns.


_MOST_parquet_groups = 1 << 20  # rows at a time
_LARGEST = 2**53  # vertices are below, as in the reader of whole files


def sliced_parquet(file: Path, options: Options, budget: Budget) -> Sliced | None:
    """Return a table of which pieces can read shares, or None.

    None also where the reader of whole files has something to say of its columns: vertices that are
    no whole numbers, a column that is not there, a damaged file, or a library that is missing.
    """
    try:
        table = parquet.opened(file, budget.name)
        columns = parquet.columns_of(table, options, budget.name)
    except LagpuError:
        return None
    kinds = [parquet.kind_of(kind) for _, kind in columns]
    if any(kind is None or kind.kind not in "iu" for kind in kinds[:2]):
        return None
    known = {of.numpy for of in dtypes.ALL}  # narrow ones are widened once they are added up
    if any(kind is None or kind not in known for kind in kinds[2:]):
        return None
    return _Table(table, [name for name, _ in columns], kinds, budget.name)


class _Table:
    """A table of edges; see `Sliced`.

    Parameters
    ----------
    table : pyarrow.parquet.ParquetFile
        The file.
    titles : list of str
        The columns of sources, targets, and weights if there are any.
    kinds : list of dtype
        Their types.
    name : str
        Name of the file in messages.
    """

    undirected, mirror, head = False, 0, 0

    def __init__(self, table: Any, titles: list[str], kinds: list[Any], name: str) -> None:
        self._table, self._titles, self._name = table, titles, name
        self.pattern = len(titles) == 2
        self.kind: np.dtype[Any] | None = None if self.pattern else kinds[2]
        self._vertices = parquet.vertices(table)
        groups = range(table.metadata.num_row_groups)
        self._rows = [table.metadata.row_group(g).num_rows for g in groups]

    def bytes_of(self, count: int) -> int:
        """See `Sliced`."""
        most = max((sum(self._rows[piece::count]) for piece in range(count)), default=0)
        return 48 * most

    def chunks(self, pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        """See `Sliced`."""
        for group in range(len(self._rows)):
            if group % count in pieces:
                with parquet.damage_named(self._name):
                    batches = self._table.iter_batches(_MOST_parquet_groups, [group], self._titles)
                    for k, batch in enumerate(batches):
                        yield group % count, self._chunk(group << 32 | k, batch)

    def _chunk(self, key: int, batch: Any) -> Chunk:
        columns = [batch.column(batch.schema.get_field_index(title)) for title in self._titles]
        nothing = Edges.join([])
        if any(column.null_count for column in columns):
            return Chunk(key, 0, nothing, whole=True)
        u, v, *weights = (column.to_numpy(zero_copy_only=False) for column in columns)
        if len(u) and not 0 <= min(u.min(), v.min()) <= max(u.max(), v.max()) < _LARGEST:
            return Chunk(key, 0, nothing, whole=True)
        u, v = u.astype(np.int64), v.astype(np.int64)
        return Chunk(key, 0, Edges(u, v, weights[0] if weights else None))

    def shape(self, extent: Extent) -> tuple[int, int, Edges]:
        """See `Sliced`."""
        n = max(self._vertices, 1 + max(extent.top))
        return n, n, Edges.join([])
