"""Files that the pieces of a grid read in shares, so that no process has the whole graph."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu import dtypes
from lagpu.backends.protocol import Backend, Parts, require_alike
from lagpu.core import Matrix
from lagpu.dtypes import BOOL, Array, lookup
from lagpu.errors import FileFormatError, InvalidValue, LagpuError
from lagpu.host import memory
from lagpu.io import edge_list, formats, matrix_market, npz, parquet, reading
from lagpu.io.csc import CSC, bytes_for_entries, different, from_entries, require_reverses, united
from lagpu.io.formats import Format
from lagpu.io.opening import damage_named, opened, packing_of, unpacked
from lagpu.io.reading import BYTE_ORDER_MARK, Budget, Edges, Extent, Fault, Options

HEAD = 1 << 16  # bytes that show what a text is; a shorter one is not worth sharing
_BLOCK = 1 << 16  # bytes in which the end of a line is looked for
_TEMPORARY = 20  # bytes for one of a text, as it is parsed
_BYTES_OF_ENTRY = 120  # as it is put together, sorted by owner, sent, received and stored
_ENTRIES = 1 << 22  # of an archive at a time
_ROWS = 1 << 20  # of a Parquet table at a time
_OF_THE_WHOLE = -1  # the line at fault where only the reader of whole files can say what is wrong


class Chunk(NamedTuple):
    """Some whole lines of a text, or entries of an archive or a table."""

    key: int  # chunks with smaller keys are before it in the file
    edges: Edges  # its entries; none if a line is malformed
    lines: int = 0  # of a text
    line: int = 0  # the malformed one, from 1, or 0 if there is none
    why: str = ""  # this line, and what is wrong with it

    def facts(self) -> list[int]:
        """Return the facts that processes exchange about it, besides a malformed line."""
        extent, weights = self.edges.extent(), self.edges.weights
        real = weights is not None and weights.dtype.kind == "f"
        return [self.key, self.lines, extent.size, *extent.top, extent.least, real, self.line]


@dataclass(frozen=True)
class Source:
    """A file that is read in shares, as its first bytes describe it; the same in every process."""

    # Yields (piece, chunk) of the shares of (some pieces, of how many), each in its order.
    chunks: Callable[[Sequence[int], int], Iterator[tuple[int, Chunk]]]
    # Returns (nrows, ncols, entries of the head) for the extent of all shares.
    shape: Callable[[Extent], tuple[int, int, Edges]]
    bytes_of: Callable[[int], int]  # the most that reading one of `count` shares takes
    pattern: bool  # whether every entry is True
    kind: np.dtype[Any] | None = None  # of the values; by default INT64 if all are whole, else FP64
    undirected: bool = False  # as in `lagpu.io.reading.Parsed`
    mirror: int = 0  # as in `lagpu.io.matrix_market.Sizes`
    head: int = 0  # lines before those that are shared out


# ---- Texts: edge lists and Matrix Market.


class Text:
    """The lines of a text file from an offset on, in as many shares as there are pieces.

    A file as it is has a share of its bytes for each piece, from the first line that begins there
    on. One that is packed by gzip cannot be entered in the middle: each process unpacks all of it,
    some megabytes at a time, and the pieces take these in turn.
    """

    def __init__(
        self, file: Path, start: int, packed: bool, parse: Callable[[bytes], Edges]
    ) -> None:
        self._file, self._start, self._packed, self._parse = file, start, packed, parse
        self.name, self.nbytes = file.name, file.stat().st_size

    def chunks(self, pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        """Yield (piece, chunk) of the shares of some pieces of `count`."""
        for piece, key, part in self.texts(pieces, count):
            memory.require(_TEMPORARY * len(part), f"read: {self.name}")
            lines = part.count(b"\n")
            try:
                yield piece, Chunk(key, self._parse(part), lines)
            except Fault as fault:
                yield piece, Chunk(key, Edges.join([]), lines, fault.line, fault.why)

    def bytes_of(self, count: int) -> int:
        """Return the bytes that one of `count` shares takes."""
        # A line of 4 bytes is an entry of 8, one of 6 with a value one of 16, twice at most.
        share = self.nbytes // count
        return 6 * share + _TEMPORARY * min(share, reading.PIECE)

    def texts(self, pieces: Sequence[int], count: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield (piece, key, whole lines) of the shares of some pieces of `count`."""
        with self._file.open("rb") as stream:
            if self._packed:
                with damage_named(self.name), unpacked(stream) as text:
                    skip = self._start
                    while skip and (over := text.read(min(skip, reading.PIECE))):
                        skip -= len(over)
                    for key, part in enumerate(self._whole_lines(text)):
                        if key % count in pieces:
                            yield key % count, key, part
                return
            for piece in pieces:
                first, last = (self._line_at(stream, piece + k, count) for k in (0, 1))
                stream.seek(first)
                for k, part in enumerate(self._whole_lines(stream, last - first)):
                    yield piece, piece << 32 | k, part

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

    def _whole_lines(self, stream: IO[bytes], left: int | None = None) -> Iterator[bytes]:
        """Yield whole lines of a stream, of its next `left` bytes if that is given."""
        rest = b""
        while block := stream.read(reading.PIECE if left is None else min(reading.PIECE, left)):
            left = None if left is None else left - len(block)
            block = rest + block
            cut = block.rfind(b"\n") + 1
            if not cut and len(block) >= 2 * reading.PIECE:
                raise FileFormatError(
                    f"read: {self.name} has a line that is longer than {reading.PIECE} bytes."
                )
            rest = block[cut:]
            if cut:
                yield block[:cut]
        if left:
            raise FileFormatError(f"read: {self.name} became shorter while it was read.")
        if rest:
            yield rest + b"\n"


def text_source(
    stream: IO[bytes], file: Path, options: Options, asked: Format | None, name: str
) -> Source | None:
    """Return a text that pieces can read in shares, or None if it is of another kind."""
    with damage_named(name):
        whole = unpacked(stream)
        head, packed = whole.read(HEAD), whole is not stream
    skipped = len(BYTE_ORDER_MARK) if head.startswith(BYTE_ORDER_MARK) else 0
    if len(head) < HEAD or options.columns:
        return None
    head = head[skipped : head.rfind(b"\n") + 1]
    form = formats.of_content(head, file, asked, name)

    parse: Callable[..., Edges]
    if form.read is matrix_market.parse:
        sizes = matrix_market.sizes_of(head, name)
        start, kind, mirror, undirected = sizes.start, sizes.kind, sizes.mirror, False
        pattern = kind is None
        parse = functools.partial(matrix_market.edges_of, sizes=sizes)

        def shape(extent: Extent) -> tuple[int, int, Edges]:
            matrix_market.require_count(sizes, extent.size, name)
            return sizes.nrows, sizes.ncols, Edges.join([])
    else:
        top = edge_list.top_of(head, name)
        if form.read is not edge_list.parse or not top.second[1]:
            return None
        start, kind, mirror, undirected = len(top.text), None, 0, top.undirected
        pattern = top.width == 2
        parse = functools.partial(edge_list.edges_of, width=top.width)

        def shape(extent: Extent) -> tuple[int, int, Edges]:
            n, first = edge_list.settled(top, extent, name, options)
            return n, n, first

    text, above = Text(file, skipped + start, packed, parse), head.count(b"\n", 0, start)
    return Source(text.chunks, shape, text.bytes_of, pattern, kind, undirected, mirror, above)


# ---- lagpu's NumPy archives: their arrays are in the file as they are in memory. A share has as
# many entries as the others, and those of the column pointers that it needs. The check sums of the
# archive are those of whole arrays, and are not verified.


def archive_source(stream: IO[bytes], name: str) -> Source:
    """Return an archive that pieces can read in shares; an error if it is packed or not lagpu's."""
    fault = f"read: {name} is not a matrix archive"
    with reading.errors_named(fault):
        nrows, ncols, kind, ptr, rows, values = npz.columns_of(npz.Archive(stream, None))
        if ptr.shape != (ncols + 1,):
            raise ValueError(f"col_ptr {ptr.shape} != ({ncols + 1},)")
        ends = ptr[[0, -1]] if ncols else ptr
        reading.require_rising("col_ptr does", ends, len(ends) - 1, len(rows))
    pattern = not values.ndim and kind == np.bool_ and bool(values)

    def chunks(pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        with reading.errors_named(fault):
            for piece in pieces:
                first, last = (ncols * (piece + k) // count for k in (0, 1))
                own = ptr[first : last + 1]
                if (own[1:] < own[:-1]).any():
                    raise ValueError(f"col_ptr does not rise from 0 to {len(rows)}")
                first, last = (len(rows) * (piece + k) // count for k in (0, 1))
                for k, start in enumerate(range(first, last, _ENTRIES)):
                    stop = min(start + _ENTRIES, last)
                    i, j = _run(ptr, rows, nrows, start, stop)
                    weights = values[start:stop] if values.ndim else np.full(len(i), values)
                    edges = Edges(i, j, None if pattern else weights.astype(kind))
                    yield piece, Chunk(piece << 32 | k, edges)

    return Source(
        chunks,
        shape=lambda extent: (nrows, ncols, Edges.join([])),
        bytes_of=lambda count: (32 * len(rows) + 16 * len(ptr)) // count,
        pattern=pattern,
        kind=kind,
    )


def _run(ptr: Array, rows: Array, nrows: int, start: int, stop: int) -> tuple[Array, Array]:
    """Return the rows and columns of a run of entries."""
    first = int(np.searchsorted(ptr, start, "right")) - 1
    last = int(np.searchsorted(ptr, stop, "left"))
    own = rows[start:stop].astype(np.int64)
    ends = np.clip(ptr[first : last + 1], start, stop).astype(np.int64) - start
    npz.require_columns(nrows, last - first, ends, own)
    if ptr[first] < start and rows[start - 1] >= own[0]:
        raise ValueError("rows that do not rise within a column")
    return own, np.repeat(np.arange(first, last), np.diff(ends))


# ---- Parquet tables of edges: the pieces take the groups of rows in turn.


def parquet_source(file: Path, options: Options, name: str) -> Source | None:
    """Return a table that pieces can read in shares."""
    # None if vertices are not whole numbers: then the reader of whole files raises the error.
    table = parquet.opened(file, name)
    columns = parquet.columns_of(table, options, name)
    titles, kinds = [name for name, _ in columns], [parquet.kind_of(kind) for _, kind in columns]
    known = {of.numpy for of in dtypes.ALL}  # narrow ones are widened once they are added up
    ends_are_whole = all(kind is not None and kind.kind in "iu" for kind in kinds[:2])
    if not ends_are_whole or any(kind not in known for kind in kinds[2:]):
        return None
    least, groups = parquet.vertices(table), table.metadata.num_row_groups
    rows = [table.metadata.row_group(g).num_rows for g in range(groups)]

    def chunks(pieces: Sequence[int], count: int) -> Iterator[tuple[int, Chunk]]:
        for group in range(groups):
            if group % count in pieces:
                with parquet.damage_named(name):
                    for k, batch in enumerate(table.iter_batches(_ROWS, [group], titles)):
                        yield group % count, _batch(group << 32 | k, batch, titles)

    def shape(extent: Extent) -> tuple[int, int, Edges]:
        n = max(least, 1 + max(extent.top))
        return n, n, Edges.join([])

    def bytes_of(count: int) -> int:
        return 48 * max((sum(rows[k::count]) for k in range(count)), default=0)

    return Source(chunks, shape, bytes_of, len(titles) == 2, kinds[2] if kinds[2:] else None)


def _batch(key: int, batch: Any, titles: list[str]) -> Chunk:
    columns = [batch.column(batch.schema.get_field_index(title)) for title in titles]
    if not any(column.null_count for column in columns):
        u, v, *weights = map(reading.array_of, columns)
        if not len(u) or 0 <= min(u.min(), v.min()) <= max(u.max(), v.max()) < 2**53:
            return Chunk(key, Edges(u.astype(np.int64), v.astype(np.int64), *weights))
    return Chunk(key, Edges.join([]), line=_OF_THE_WHOLE)


# ---- Each piece reads its share, and sends the entries to their owners.


def read(
    file: Path, options: Options, asked: Format | None, directed: bool | None, grid: Backend
) -> Matrix | None:
    """Return the graph in a file; each process, which must see it, has read only its share."""
    # None if the file is short, of a format that is not read in shares, or needs the reader of
    # whole files, for its content or for an error. All processes check the memory before one takes
    # any.
    parts = grid.capabilities.parts
    assert parts is not None
    kind = None if asked is None else asked.name
    require_alike(grid, "read", file=file.name, options=options, format=kind, directed=directed)
    reader = _Reader(file, options, parts)
    source = reader.begin(asked)
    if source is None:
        return None
    extent = reader.read_shares(source)
    return None if extent is None else reader.matrix(source, extent, grid, directed)


class _Reader:
    """One file, step by step; in each step the processes agree before the next one."""

    def __init__(self, file: Path, options: Options, parts: Parts) -> None:
        self._name = f"read: {file.name}"
        self._file, self._options, self._parts = file, options, parts
        self._budget = Budget(file.name, 0, np.inf)
        self._chunks: dict[int, list[Chunk]] = {}  # of the pieces of this process

    def begin(self, asked: Format | None) -> Source | None:
        """Have each process inspect the file and check the memory for its shares."""
        source, facts = None, (0, 0, 0)  # size, first bytes, whether it is read in shares

        def inspect(_home: Backend, piece: int) -> tuple[Array, ...]:
            nonlocal source, facts
            if not self._chunks:
                with opened(self._file) as (stream, _, budget):
                    if budget.size < np.inf:
                        self._budget = budget
                        head = stream.read(HEAD)
                        stream.seek(0)
                        source = self._source(stream, head, asked)
                        facts = int(budget.size), zlib.crc32(head), source is not None
            self._chunks[piece] = []
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
        """Return what the first bytes describe, or None; errors are left to the other reader."""
        options, name = self._options, self._budget.name
        if options.renumber or (len(head) < HEAD and packing_of(head) is None):
            return None
        try:
            form = formats.of_start(head, name)
            if form is None:
                return text_source(stream, self._file, options, asked, name)
            if asked in (None, form) and form.read is parquet.parse:
                return parquet_source(self._file, options, name)
            if asked in (None, form) and form.read is npz.parse and not options.columns:
                return archive_source(stream, name)
        except LagpuError:
            pass
        return None

    def _require(self, nbytes: int, part: str, hint: str = "Use more processes") -> None:
        """Ask in every process for the bytes of a piece, for all pieces of its host."""

        def ask(_home: Backend, piece: int) -> tuple[()]:
            if piece == next(iter(self._chunks)):
                share = self._parts.beside / self._parts.count
                own = self._budget._replace(limit=self._budget.limit * share)
                own.require(nbytes * self._parts.beside, part, hint)
            return ()

        self._parts.gather(ask)

    def read_shares(self, source: Source) -> Extent | None:
        """Have each piece read its share, and return the extent of all; raise the first fault."""
        # Returns None if the whole is to be read instead.

        def share(_home: Backend, piece: int) -> tuple[Array, ...]:
            if piece == next(iter(self._chunks)):
                for of, chunk in source.chunks([*self._chunks], self._parts.count):
                    self._chunks[of].append(chunk)
            own = self._chunks[piece]
            why = next((chunk.why for chunk in own if chunk.line), "")
            facts = np.array([chunk.facts() for chunk in own], np.int64)
            return facts.ravel(), np.frombuffer(why.encode("utf-8", "replace"), np.uint8)

        gathered = self._parts.gather(share)
        found = [facts.reshape(-1, 8) for facts, _ in gathered]
        self._most = max(int(facts[:, 2].sum()) for facts in found)
        facts = np.concatenate(found)
        facts = facts[np.argsort(facts[:, 0])]
        key, lines, size, source_top, target_top, least, real, line = facts.T
        if (line == _OF_THE_WHOLE).any():
            return None
        if line.any():
            at = int(np.flatnonzero(line)[0])
            above = source.head + int(lines[:at].sum())
            of_piece = next(p for p, facts in enumerate(found) if key[at] in facts[:, 0])
            why = bytes(gathered[of_piece][1]).decode()
            raise FileFormatError(f"{self._name}, line {above + line[at]}: {why}.")
        self._is_real = bool(real.any())
        top = int(source_top.max(initial=-1)), int(target_top.max(initial=-1))
        return Extent(int(size.sum()), top, int(least.min(initial=2**53)))

    def matrix(
        self, source: Source, extent: Extent, grid: Backend, directed: bool | None
    ) -> Matrix:
        """Return the matrix, once every entry is with its owner."""
        parts = self._parts
        nrows, ncols, first = source.shape(extent)
        both = directed is False or (source.undirected and directed is None)
        if both:
            require_reverses(self._name, nrows, ncols)
        times = 2 if both or source.mirror else 1
        count = times * max(self._most, -(-extent.size // parts.count))
        made = bytes_for_entries(0, ncols, values=not source.pattern) // parts.count
        size = f"{nrows} x {ncols}" if nrows != ncols else f"{ncols} vertices"
        self._require(_BYTES_OF_ENTRY * count + made, size, reading.NUMBERS_HINT)
        if len(first.u) and 0 in self._chunks:
            self._chunks[0].insert(0, Chunk(-1, first))
        real = self._is_real or (first.weights is not None and first.weights.dtype.kind == "f")
        usual = source.kind or np.dtype(np.float64 if real else np.int64)
        kind = None if source.pattern else usual

        def entries(_home: Backend, piece: int) -> tuple[Array, ...]:
            return _listed(self._chunks.pop(piece), source.mirror, both, kind)

        own = parts.owned(entries, (nrows, ncols))
        exact = kind is None or kind.kind != "f"
        symmetric = both or (source.mirror == 1 and self._options.dup_op is None)
        dtype = BOOL if kind is None else lookup(kind)

        def part(home: Backend, layout: Any, piece: int) -> Any:
            csc = self._part(own.pop(piece), layout, piece, both)
            arrays = csc.col_ptr, csc.row_idx, csc.values
            return home.matrix_from_csc(*arrays, dtype, (csc.nrows, csc.ncols))

        data = parts.matrix(part, dtype, (nrows, ncols), True if symmetric and exact else None)
        return Matrix._of(data, dtype, (nrows, ncols), grid, None)

    def _part(self, lists: tuple[Array, ...], layout: Any, piece: int, both: bool) -> CSC:
        """Return a part, from the entries that its piece owns, by position."""
        (m, n), op = layout.shape(piece), self._options.dup_op
        if len(lists) == 2:
            return from_entries(lists[0], lists[1], None, m, n)
        order = np.argsort(np.abs(lists[3]), kind="stable")  # as the file has them
        rows, cols, values, place = (x[order] for x in lists)
        signs = (place > 0, place < 0)
        given, back = (from_entries(rows[x], cols[x], values[x], m, n, op) for x in signs)
        if not both:
            return given
        merged, conflict = united(given, back)
        if conflict is not None:
            i, j, value, other = conflict
            i, j = layout.index(piece, i, j)
            raise InvalidValue(f"{self._name}: {different(i, j, value, other)}")
        return merged


def _listed(
    chunks: list[Chunk], mirror: int, both: bool, kind: np.dtype[Any] | None
) -> tuple[Array, ...]:
    """Return the (rows, columns) of a share, and with values these and the place of each."""
    # The place is above 0 and rises with that of the chunk in the file; of the reverse of an edge
    # it is below 0.
    parts = [chunk.edges.mirrored(mirror) for chunk in chunks]
    rows, cols, values = Edges.join(parts)
    ends = (np.r_[rows, cols], np.r_[cols, rows]) if both else (rows, cols)
    if kind is None:
        return ends
    values = (np.zeros(0) if values is None else values).astype(kind)
    keys = np.array([chunk.key for chunk in chunks], np.int64)
    place = np.repeat(keys + 2, [len(part.u) for part in parts])  # that of the head is -1
    if both:
        values, place = np.concatenate([values, values]), np.concatenate([place, -place])
    return *ends, values, place
