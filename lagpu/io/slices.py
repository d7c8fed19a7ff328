"""Files that the pieces of a grid read in shares, so that no process has the whole graph."""

from __future__ import annotations

import gzip
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu import dtypes
from lagpu.backends.processes import require_alike
from lagpu.backends.protocol import Backend, Parts
from lagpu.core.matrix import Matrix
from lagpu.dtypes import BOOL, lookup
from lagpu.errors import FileFormatError, InvalidValue, LagpuError
from lagpu.host import memory
from lagpu.io import edge_list, formats, matrix_market, parquet
from lagpu.io.csc import CSC, bytes_for_entries, different, from_entries, united
from lagpu.io.formats import Format
from lagpu.io.npz import Archive, require_version
from lagpu.io.reading import (
    NUMBERS_HINT,
    Budget,
    Edges,
    Extent,
    Options,
    errors_named,
    kind_of,
    kind_of_text,
)
from lagpu.io.text import PIECE, Fault, data_lines, is_binary

Array = np.ndarray[Any, Any]

HEAD = 1 << 16  # bytes that tell what a text is; a shorter one is not worth sharing
_BLOCK = 1 << 16  # bytes in which the end of a line is looked for
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TEMPORARY = 20  # bytes for one of a text, as it is parsed
_BYTES_OF_ENTRY = 120  # as it is put together, sorted by owner, sent, received and stored
_FACTS = 9  # numbers that the processes exchange about each chunk
_ENTRIES = 1 << 22  # of an archive at a time
_ROWS = 1 << 20  # of a Parquet table at a time
_LOCAL = struct.Struct("<4s22xHH")  # of a member: signature, lengths of its name and of the rest


class Chunk(NamedTuple):
    """Some whole lines of a text, or entries of an archive or a table.

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


@dataclass(frozen=True)
class Source:
    """A file that is read in shares, as its first bytes describe it; the same in every process.

    Attributes
    ----------
    chunks : callable
        Yields (piece, chunk) of the shares of (some pieces, of how many), each in its order.
    shape : callable
        Returns (nrows, ncols, entries of the head) for the extent of all shares.
    bytes_of : callable
        Returns how many bytes reading one of so many shares takes, at most.
    pattern : bool
        Whether there are no values: every entry is True.
    kind : dtype, optional
        The type of the values; by default INT64 if all shares have whole numbers, else FP64.
    undirected : bool
        As in `lagpu.io.reading.Parsed`.
    mirror : int
        As in `lagpu.io.matrix_market.Sizes`.
    head : int
        Lines before those that are shared out.
    """

    chunks: Callable[[Sequence[int], int], Iterator[tuple[int, Chunk]]]
    shape: Callable[[Extent], tuple[int, int, Edges]]
    bytes_of: Callable[[int], int]
    pattern: bool
    kind: np.dtype[Any] | None = None
    undirected: bool = False
    mirror: int = 0
    head: int = 0


# ------------------------------------------------------------------------------------------
# Texts: edge lists and Matrix Market.


class Text:
    """The lines of a text file from an offset on, in as many shares as there are pieces.

    A file as it is has a share of its bytes for each piece, from the first line that begins there
    on. One that is packed by gzip cannot be entered in the middle: each process unpacks all of it,
    some megabytes at a time, and the pieces take these in turn.
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
        """Return where the first line begins at or after the nominal start of a share."""
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
                raise FileFormatError(f"read: {self.name} became shorter while it was read.")
            if first + len(block) < last:
                block = block[: self._last_line_of(block, PIECE)]
                stream.seek(first + len(block))
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
                    cut = self._last_line_of(block, 2 * PIECE)
                    rest = block[cut:]
                    if cut:
                        yield block[:cut]
                if rest:
                    yield _ended(rest)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileFormatError(f"read: {self.name} is truncated or damaged: {error}") from error

    def _last_line_of(self, block: bytes, most: int) -> int:
        """Return where the last whole line of a block ends; 0 if it may be longer, up to `most`."""
        cut = block.rfind(b"\n") + 1
        if not cut and len(block) >= most:
            raise FileFormatError(
                f"read: {self.name} has a line that is longer than {PIECE} bytes."
            )
        return cut


def _ended(text: bytes) -> bytes:
    return text if text.endswith(b"\n") else text + b"\n"


def text_source(
    stream: IO[bytes], file: Path, options: Options, asked: Format | None, name: str
) -> Source | None:
    """Return a text that pieces can read in shares, or None if it is of another kind."""
    packed = stream.read(2) == _GZIP
    stream.seek(0)
    try:
        head = (gzip.GzipFile(fileobj=stream) if packed else stream).read(HEAD)
    except (EOFError, OSError, zlib.error):  # the reader of whole files says it
        return None
    skipped = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    if len(head) < HEAD or options.columns:
        return None
    head = head[skipped : head.rfind(b"\n") + 1]
    if not head or is_binary(head):
        return None
    form = asked or formats.of_text(head, file)
    if form.guessed and asked is None and kind_of_text(head):
        return None

    def of(start: int, parse: Callable[[bytes], Edges], **facts: Any) -> Source:
        text = Text(file, skipped + start, packed)

        def chunks(pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
            for piece, key, part in text.texts(pieces, count):
                memory.require(_TEMPORARY * len(part), f"read: {name}")
                lines = part.count(b"\n")
                try:
                    yield piece, Chunk(key, lines, parse(part))
                except Fault as fault:
                    nothing = Edges.join([])
                    yield piece, Chunk(key, lines, nothing, (fault.line, fault.why))

        def bytes_of(count: int) -> int:
            # A line of 4 bytes is an entry of 8, one of 6 with a value one of 16, twice at most.
            share = text.nbytes // count
            return 6 * share + _TEMPORARY * min(share, PIECE)

        above = head.count(b"\n", 0, start)
        return Source(chunks, bytes_of=bytes_of, head=above, **facts)

    if form.read is matrix_market.parse:
        if not matrix_market.has_sizes(head):
            return None
        sizes = matrix_market.sizes_of(head, name)

        def counted(extent: Extent) -> tuple[int, int, Edges]:
            matrix_market.require_count(sizes, extent.size, name)
            return sizes.nrows, sizes.ncols, Edges.join([])

        pattern = sizes.field == "pattern"
        return of(
            sizes.start,
            lambda text: matrix_market.edges_of(text, sizes),
            shape=counted,
            pattern=pattern,
            kind=None if pattern else np.dtype(matrix_market.KINDS[sizes.field]),
            mirror=sizes.mirror,
        )
    top = edge_list.top_of(head, name)
    if form.read is not edge_list.parse or next(data_lines(head, len(top.text)), None) is None:
        return None

    def settled(extent: Extent) -> tuple[int, int, Edges]:
        n, first = edge_list.settled(top, extent, name, options)
        return n, n, first

    return of(
        len(top.text),
        lambda text: edge_list.edges_of(text, top.width),
        shape=settled,
        pattern=top.width == 2,
        undirected=top.undirected,
    )


# ------------------------------------------------------------------------------------------
# lagpu's NumPy archives: their arrays are in the file as they are in memory. A share has as many
# entries as the others, and those of the column pointers that it needs. The check sums of the
# archive are those of whole arrays, and are not verified.


def archive_source(stream: IO[bytes], file: Path, budget: Budget) -> Source | None:
    """Return an archive that pieces can read in shares, or None if it is packed or not lagpu's.

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
    fault = f"read: {budget.name} is not a matrix archive"
    with errors_named(fault):
        arrays = Archive(stream, None)
        require_version(arrays)
        nrows, ncols = arrays.shape()
        kind: np.dtype[Any] = lookup(arrays.word("dtype")).numpy
        iso = arrays["iso"].astype(kind)[()] if "iso" in arrays else None
        pattern = iso is not None and kind == np.bool_ and bool(iso)
        ptr, rows = (_mapped(stream, file, arrays, name) for name in ("col_ptr", "row_idx"))
        values = _mapped(stream, file, arrays, "values") if iso is None else None
        if ptr.shape != (ncols + 1,) or rows.ndim != 1:
            raise ValueError(f"col_ptr {ptr.shape} != ({ncols + 1},)")
        if values is not None and values.shape != rows.shape:
            raise ValueError(f"{values.shape} values != {rows.shape} rows")
        _require_rising(ptr[[0, -1]], ptr[0] == 0 and ptr[-1] == len(rows))

    def chunks(pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        with errors_named(fault):
            for piece in pieces:
                first, last = (ncols * (piece + k) // count for k in (0, 1))
                _require_rising(ptr[first : last + 1])
                first, last = (len(rows) * (piece + k) // count for k in (0, 1))
                for k, start in enumerate(range(first, last, _ENTRIES)):
                    stop = min(start + _ENTRIES, last)
                    i, j = _run(ptr, rows, nrows, start, stop)
                    weights = None
                    if values is not None:
                        weights = values[start:stop].astype(kind)
                    elif not pattern:
                        weights = np.full(len(i), iso)
                    yield piece, Chunk(piece << 32 | k, 0, Edges(i, j, weights))

    return Source(
        chunks,
        shape=lambda extent: (nrows, ncols, Edges.join([])),
        bytes_of=lambda count: (32 * len(rows) + 16 * len(ptr)) // count,
        pattern=pattern,
        kind=kind,
    )


def _require_rising(ptr: Array, others: bool = True) -> None:
    if not others or (ptr[1:] < ptr[:-1]).any():
        raise ValueError("col_ptr does not rise from 0 to the number of entries")


def _run(ptr: Array, rows: Array, nrows: int, start: int, stop: int) -> tuple[Array, Array]:
    """Return the rows and columns of a run of entries."""
    first = int(np.searchsorted(ptr, start, "right")) - 1
    last = int(np.searchsorted(ptr, stop, "left"))
    ends = np.clip(ptr[first : last + 1], start, stop).astype(np.int64)
    cols = np.repeat(np.arange(first, last), np.diff(ends))
    own = rows[start:stop].astype(np.int64)
    _require_rising(ends, len(cols) == len(own))
    if len(own) and not 0 <= own.min() <= own.max() < nrows:
        raise ValueError(f"a row outside 0 .. {nrows - 1}")
    before = max(start - 1, 0)
    rising = rows[before + 1 : stop] > rows[before : stop - 1]
    begins = ptr[first : last + 1].astype(np.int64) - before - 1
    rising[begins[(begins >= 0) & (begins < len(rising))]] = True  # a new column begins
    if not rising.all():
        raise ValueError("rows that do not rise within a column")
    return own, cols


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
    return np.memmap(file, dtype, "r", at, shape) if size else np.zeros(shape, dtype)


# ------------------------------------------------------------------------------------------
# Parquet tables of edges: the pieces take the groups of rows in turn.


def parquet_source(file: Path, options: Options, budget: Budget) -> Source | None:
    """Return a table that pieces can read in shares, or None.

    None also where the reader of whole files has something to say of its columns: vertices that are
    no whole numbers, a column that is not there, a damaged file, or a library that is missing.
    """
    try:
        table = parquet.opened(file, budget.name)
        columns = parquet.columns_of(table, options, budget.name)
    except LagpuError:
        return None
    titles, kinds = [name for name, _ in columns], [parquet.kind_of(kind) for _, kind in columns]
    known = {of.numpy for of in dtypes.ALL}  # narrow ones are widened once they are added up
    if any(kind is None or kind.kind not in "iu" for kind in kinds[:2]):
        return None
    if any(kind not in known for kind in kinds[2:]):
        return None
    least, groups = parquet.vertices(table), table.metadata.num_row_groups
    rows = [table.metadata.row_group(g).num_rows for g in range(groups)]

    def chunks(pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        for group in range(groups):
            if group % count in pieces:
                with parquet.damage_named(budget.name):
                    batches = table.iter_batches(_ROWS, [group], titles)
                    for k, batch in enumerate(batches):
                        yield group % count, _batch(group << 32 | k, batch, titles)

    def shape(extent: Extent) -> tuple[int, int, Edges]:
        n = max(least, 1 + max(extent.top))
        return n, n, Edges.join([])

    return Source(
        chunks,
        shape=shape,
        bytes_of=lambda count: 48 * max((sum(rows[k::count]) for k in range(count)), default=0),
        pattern=len(titles) == 2,
        kind=kinds[2] if len(titles) == 3 else None,
    )


def _batch(key: int, batch: Any, titles: list[str]) -> Chunk:
    columns = [batch.column(batch.schema.get_field_index(title)) for title in titles]
    if not any(column.null_count for column in columns):
        u, v, *weights = (column.to_numpy(zero_copy_only=False) for column in columns)
        if not len(u) or 0 <= min(u.min(), v.min()) <= max(u.max(), v.max()) < 2**53:
            edges = Edges(u.astype(np.int64), v.astype(np.int64), *weights)
            return Chunk(key, 0, edges)
    return Chunk(key, 0, Edges.join([]), whole=True)


# ------------------------------------------------------------------------------------------
# Each piece reads its share, and sends the entries to their owners.


def read(
    file: Path,
    options: Options,
    asked: Format | None,
    directed: bool | None,
    grid: Backend,
    opened: Callable[[Path], Any],
) -> Matrix | None:
    """Return the graph in a file; each process has read only its share.

    Parameters
    ----------
    file : Path
        The file, which every process of the grid sees.
    options, asked, directed
        As the reader of whole files has them.
    grid : Backend
        A backend that makes objects from parts.
    opened : callable
        Opens a file, with the errors of `lagpu.io.read`.

    Returns
    -------
    matrix : Matrix or None
        None if the file is short, of a format that is not read in shares, or has what only the
        reader of whole files understands.

    Raises
    ------
    FileMissing
        If a process does not see the file.
    FileFormatError
        If it is malformed, or not the same file in every process.
    OutOfMemory, LimitExceeded
        If the shares do not fit; every process is asked before any of them takes memory.
    """
    parts = grid.capabilities.parts
    assert parts is not None
    kind = None if asked is None else asked.name
    require_alike(grid, "read", file=file.name, options=options, format=kind, directed=directed)
    reading = _Reading(file, options, parts)
    source = reading.begin(asked, opened)
    if source is None or not reading.read_shares(source):
        return None
    return reading.matrix(source, grid, directed)


class _Reading:
    """One file, step by step; in each step the processes agree before the next one."""

    def __init__(self, file: Path, options: Options, parts: Parts) -> None:
        self._name = f"read: {file.name}"
        self._file, self._options, self._parts = file, options, parts
        self._pieces: list[int] = []  # of this process
        self._budget = Budget(file.name, 0, np.inf)
        self._chunks: dict[int, list[Chunk]] = {}
        self._order: Array = np.zeros(0, np.int64)  # keys of all chunks, rising

    def begin(self, asked: Format | None, opened: Callable[[Path], Any]) -> Source | None:
        """Have each process inspect the file, and ask for the memory of its shares."""
        source, facts = None, (0, 0, 0)  # size, first bytes, whether it is read in shares

        def inspect(_home: Backend, piece: int) -> tuple[Array, ...]:
            nonlocal source, facts
            if not self._pieces:
                with opened(self._file) as stream:
                    state = os.fstat(stream.fileno())
                    if stat.S_ISREG(state.st_mode):
                        self._budget = Budget.of(self._file.name, stream)
                        head = stream.read(HEAD)
                        stream.seek(0)
                        source = self._source(stream, head, asked)
                        facts = state.st_size, zlib.crc32(head), source is not None
            self._pieces.append(piece)
            return (np.array(facts, np.int64),)

        found = [tuple(facts.tolist()) for (facts,) in self._parts.gather(inspect)]
        other = next((p for p, facts in enumerate(found) if facts != found[0]), None)
        if other is not None:
            raise FileFormatError(
                f"{self._name}: piece {other} sees another file ({found[other][0]:,} bytes) than "
                f"piece 0 ({found[0][0]:,} bytes). Give every process the same file."
            )
        if source is not None:
            self._require(source.bytes_of(self._parts.count), "its share")
        return source

    def _source(self, stream: IO[bytes], head: bytes, asked: Format | None) -> Source | None:
        options, budget = self._options, self._budget
        if options.renumber or (len(head) < HEAD and not head.startswith(_GZIP)):
            return None
        form = formats.of_start(head)
        if form is None:
            if kind_of(head) or (asked is not None and asked.magic):
                return None
            return text_source(stream, self._file, options, asked, budget.name)
        if asked not in (None, form):
            return None
        if form.read is parquet.parse:
            return parquet_source(self._file, options, budget)
        if form.suffixes != (".npz",) or options.columns:
            return None
        return archive_source(stream, self._file, budget)

    def _require(self, nbytes: int, part: str, hint: str = "Use more processes") -> None:
        """Ask in every process for the bytes of a piece, for all pieces of its host."""

        def ask(_home: Backend, piece: int) -> tuple[()]:
            if piece == self._pieces[0]:
                share = self._parts.beside / self._parts.count
                own = self._budget._replace(limit=self._budget.limit * share)
                own.require(nbytes * self._parts.beside, part, hint)
            return ()

        self._parts.gather(ask)

    def read_shares(self, source: Source) -> bool:
        """Have each piece read its share and report it to all; raise the first fault of all.

        Returns False if the whole is to be read instead.
        """
        self._chunks = {piece: [] for piece in self._pieces}

        def share(_home: Backend, piece: int) -> tuple[Array, ...]:
            if piece == self._pieces[0]:
                for of, chunk in source.chunks(self._pieces, self._parts.count):
                    self._chunks[of].append(chunk)
            own = self._chunks[piece]
            fault = next((chunk.fault[1] for chunk in own if chunk.fault is not None), "")
            return _facts(own), np.frombuffer(fault.encode("utf-8", "replace"), np.uint8)

        gathered = self._parts.gather(share)
        found = [(facts.reshape(-1, _FACTS), text) for facts, text in gathered]
        facts = np.concatenate([of for of, _ in found])
        facts = facts[np.argsort(facts[:, 0])]
        if facts[:, 8].any():
            return False
        self._order = facts[:, 0].copy()
        faulty = np.flatnonzero(facts[:, 7])
        if len(faulty):
            at = int(faulty[0])
            line = source.head + int(facts[:at, 1].sum() + facts[at, 7])
            text = next(bytes(text) for of, text in found if facts[at, 0] in of[:, 0])
            raise FileFormatError(f"{self._name}, line {line}: {text.decode()}.")
        some = facts[facts[:, 2] > 0]
        self._extent = Extent(
            int(facts[:, 2].sum()),
            (int(some[:, 3].max(initial=-1)), int(some[:, 4].max(initial=-1))),
            int(some[:, 5].min()) if len(some) else 0,
        )
        self._is_real = bool(some[:, 6].any())
        self._most = max(int(of[:, 2].sum()) for of, _ in found)
        return True

    def matrix(self, source: Source, grid: Backend, directed: bool | None) -> Matrix:
        """Return the matrix, once every entry is with its owner."""
        parts, extent = self._parts, self._extent
        nrows, ncols, first = source.shape(extent)
        both = directed is False or (source.undirected and directed is None)
        if both and nrows != ncols:
            raise InvalidValue(
                f"{self._name}: nrows {nrows} != ncols {ncols}, so edges have no reverse. "
                "Leave `directed` out."
            )
        times = 2 if both or source.mirror else 1
        count = times * max(self._most, -(-extent.size // parts.count))
        made = bytes_for_entries(0, ncols, values=not source.pattern) // parts.count
        size = f"{nrows} x {ncols}" if nrows != ncols else f"{ncols} vertices"
        self._require(_BYTES_OF_ENTRY * count + made, size, NUMBERS_HINT)
        if len(first.u) and 0 in self._chunks:
            self._chunks[0].insert(0, Chunk(-1, 0, first))
        real = self._is_real or (first.weights is not None and first.weights.dtype.kind == "f")
        usual = source.kind or np.dtype(np.float64 if real else np.int64)
        kind = None if source.pattern else usual

        def entries(_home: Backend, piece: int) -> tuple[Array, ...]:
            return self._listed(self._chunks.pop(piece), source.mirror, both, kind)

        own = parts.owned(entries, (nrows, ncols))
        exact = kind is None or kind.kind != "f"
        symmetric = both or (source.mirror == 1 and self._options.dup_op is None)
        dtype = BOOL if kind is None else lookup(kind)

        def part(home: Backend, layout: Any, piece: int) -> Any:
            csc = self._part(own.pop(piece), layout, piece, both)
            return home.matrix_from_csc(
                csc.col_ptr, csc.row_idx, csc.values, dtype, (csc.nrows, csc.ncols)
            )

        data = parts.matrix(part, dtype, (nrows, ncols), True if symmetric and exact else None)
        return Matrix._of(data, dtype, (nrows, ncols), grid, None)

    def _listed(
        self, chunks: list[Chunk], mirror: int, both: bool, kind: np.dtype[Any] | None
    ) -> tuple[Array, ...]:
        """Return the (rows, columns) of a share, and with values these and where each was read.

        That is the chunk, from 1 on; below 0 for the reverse of an edge.
        """
        edges = Edges.join([chunk.edges for chunk in chunks])
        rows, cols, values = edges.mirrored(mirror)
        ends = rows, cols
        if both:
            ends = np.concatenate([rows, cols]), np.concatenate([cols, rows])
        if kind is None:
            return ends
        values = (np.zeros(0) if values is None else values).astype(kind)
        place = np.repeat(
            2 + np.searchsorted(self._order, [chunk.key for chunk in chunks]),
            [len(chunk.edges.u) for chunk in chunks],
        )
        if chunks and chunks[0].key < 0:
            place[: len(chunks[0].edges.u)] = 1
        if mirror:
            place = np.concatenate([place, place[edges.u != edges.v]])
        if both:
            values, place = np.concatenate([values, values]), np.concatenate([place, -place])
        return *ends, values, place

    def _part(self, lists: tuple[Array, ...], layout: Any, piece: int, both: bool) -> CSC:
        """Return a part, from the entries that its piece owns, by position."""
        shape, op = layout.shape(piece), self._options.dup_op
        if len(lists) == 2:
            return from_entries(lists[0], lists[1], None, shape[0], shape[1])
        order = np.argsort(np.abs(lists[3]), kind="stable")  # as the file has them
        rows, cols, values, place = (x[order] for x in lists)
        given = place > 0
        own = from_entries(rows[given], cols[given], values[given], shape[0], shape[1], op)
        if not both:
            return own
        back = from_entries(rows[~given], cols[~given], values[~given], shape[0], shape[1], op)
        merged, conflict = united(own, back)
        if conflict is not None:
            i, j, value, other = conflict
            i, j = layout.index(piece, i, j)
            raise InvalidValue(f"{self._name}: {different(i, j, value, other)}")
        return merged


def _facts(chunks: list[Chunk]) -> Array:
    """Return a row for each chunk: key, lines, extent, real values, line at fault, whole."""
    found = np.zeros((len(chunks), _FACTS), np.int64)
    for row, (key, lines, edges, fault, whole) in zip(found, chunks, strict=True):
        extent = edges.extent()
        real = edges.weights is not None and edges.weights.dtype.kind == "f"
        line = 0 if fault is None else fault[0]
        row[:] = key, lines, extent.size, *extent.top, extent.least, real, line, whole
    return found.ravel()
