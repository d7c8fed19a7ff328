"""Each piece of a grid reads its share of a file, and sends the entries to their owners."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from lagpu.backends.processes import require_alike
from lagpu.backends.protocol import Backend, Parts
from lagpu.core.matrix import Matrix
from lagpu.dtypes import BOOL, lookup
from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io.csc import CSC, bytes_for_entries, different, from_entries, united
from lagpu.io.formats import table
from lagpu.io.formats.kinds import kind_of
from lagpu.io.formats.table import Format
from lagpu.io.reading import NUMBERS_HINT, Budget, Edges, Extent, Options
from lagpu.io.slices.share import (
    GZIP,
    HEAD,
    Chunk,
    Sliced,
    sliced_archive,
    sliced_parquet,
    sliced_text,
)

Array = np.ndarray[Any, Any]
Opened = Callable[[Path], Any]

_TRAVEL = 120  # bytes of an entry as it is put together, sorted by owner, sent, received and stored
_FACTS = 9  # numbers that are told of each chunk


def read(
    file: Path,
    options: Options,
    asked: Format | None,
    directed: bool | None,
    grid: Backend,
    opened: Opened,
) -> Matrix | None:
    """Return the graph in a file, of which no process has read more than its share.

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
    reading.begin(asked, opened)
    if reading.source is None:
        return None
    return reading.matrix(grid, directed) if reading.read_shares() else None


class _Reading:
    """One file, step by step; in each step the processes agree before the next one.

    Parameters
    ----------
    file : Path
        The file.
    options : Options
        Those of the caller.
    parts : Parts
        The pieces.
    """

    def __init__(self, file: Path, options: Options, parts: Parts) -> None:
        self._name = f"read: {file.name}"
        self._file, self._options, self._parts = file, options, parts
        self.source: Sliced | None = None
        self._pieces: list[int] = []  # of this process
        self._budget = Budget(file.name, 0, np.inf)
        self._chunks: dict[int, list[Chunk]] = {}
        self._order: Array = np.zeros(0, np.int64)  # keys of all chunks, rising

    # ---------------------------------------------------------------------------- the beginning
    def begin(self, asked: Format | None, opened: Opened) -> None:
        """Have each process look at the file, and ask for the memory of its shares."""

        def look(_home: Backend, piece: int) -> tuple[Array, ...]:
            if not self._pieces:
                with opened(self._file) as stream:
                    self._facts = self._looked(stream, asked)
            self._pieces.append(piece)
            return (np.array(self._facts, np.int64),)

        told = [tuple(facts.tolist()) for (facts,) in self._parts.gather(look)]
        other = next((p for p, facts in enumerate(told) if facts != told[0]), None)
        if other is not None:
            raise FileFormatError(
                f"{self._name}: piece {other} sees another file ({told[other][0]:,} bytes) than "
                f"piece 0 ({told[0][0]:,} bytes). Give every process the same file."
            )
        if self.source is not None:
            self._require(self.source.bytes_of(self._parts.count), "its share")

    def _looked(self, stream: IO[bytes], asked: Format | None) -> tuple[int, int, int]:
        """Return what must be the same in every process: size, first bytes, whether in shares."""
        facts = os.fstat(stream.fileno())
        if not stat.S_ISREG(facts.st_mode):
            return 0, 0, 0
        self._budget = Budget.of(self._file.name, stream)
        head = stream.read(HEAD)
        stream.seek(0)
        self.source = self._source(stream, head, asked)
        return facts.st_size, zlib.crc32(head), self.source is not None

    def _source(self, stream: IO[bytes], head: bytes, asked: Format | None) -> Sliced | None:
        if self._options.renumber:
            return None
        if len(head) < HEAD and not head.startswith(GZIP):
            return None
        form = table.of_start(head)
        if form is not None:
            if asked not in (None, form):
                return None
            if form.suffixes == (".parquet",):
                return sliced_parquet(self._file, self._options, self._budget)
            if form.suffixes != (".npz",) or self._options.columns:
                return None
            return sliced_archive(stream, self._file, self._budget)
        if kind_of(head) or (asked is not None and asked.magic):
            return None
        return sliced_text(stream, self._file, self._options, asked, self._budget)

    def _require(self, nbytes: int, part: str, hint: str = "Use more processes") -> None:
        """Ask in every process for the bytes of a piece, for all pieces of its host."""

        def ask(_home: Backend, piece: int) -> tuple[()]:
            if piece == self._pieces[0]:
                share = self._parts.beside / self._parts.count
                own = self._budget._replace(limit=self._budget.limit * share)
                own.require(nbytes * self._parts.beside, part, hint)
            return ()

        self._parts.gather(ask)

    # ------------------------------------------------------------------------------- the shares
    def read_shares(self) -> bool:
        """Have each piece read its share, and all tell what they have found.

        Returns False if the whole is to be read instead.
        """
        source = self.source
        assert source is not None
        self._chunks = {piece: [] for piece in self._pieces}

        def share(_home: Backend, piece: int) -> tuple[Array, ...]:
            if piece == self._pieces[0]:
                for of, chunk in source.chunks(self._pieces, self._parts.count):
                    self._chunks[of].append(chunk)
            own = self._chunks[piece]
            return _facts(own), _fault(own)

        return self._take(self._parts.gather(share))

    def _take(self, told: list[tuple[Array, ...]]) -> bool:
        """Put together what the pieces say of their chunks; raise the first fault of all."""
        source = self.source
        assert source is not None
        found = [(facts.reshape(-1, _FACTS), text) for facts, text in told]
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

    # ------------------------------------------------------------------------------- the matrix
    def matrix(self, grid: Backend, directed: bool | None) -> Matrix:
        """Return the matrix, once every entry is with its owner."""
        source, parts, extent = self.source, self._parts, self._extent
        assert source is not None
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
        self._require(_TRAVEL * count + made, size, NUMBERS_HINT)
        if len(first.u) and 0 in self._chunks:
            self._chunks[0].insert(0, Chunk(-1, 0, first))
        kind = self._kind(first)

        def entries(_home: Backend, piece: int) -> tuple[Array, ...]:
            return self._listed(self._chunks.pop(piece), both, kind)

        own = parts.owned(entries, (nrows, ncols))
        exact = kind is None or kind.kind != "f"
        symmetric = both or (source.mirror == 1 and self._options.dup_op is None)
        dtype = BOOL if kind is None else lookup(kind)

        def part(home: Backend, layout: Any, piece: int) -> Any:
            csc = self._part(own.pop(piece), layout, piece, both, kind)
            return home.matrix_from_csc(
                csc.col_ptr, csc.row_idx, csc.values, dtype, (csc.nrows, csc.ncols)
            )

        data = parts.matrix(part, dtype, (nrows, ncols), True if symmetric and exact else None)
        return Matrix._of(data, dtype, (nrows, ncols), grid, None)

    def _kind(self, first: Edges) -> np.dtype[Any] | None:
        """Return the type of the values in every piece; None if there are none."""
        source = self.source
        assert source is not None
        if source.pattern:
            return None
        if source.kind is not None:
            return source.kind
        real = self._is_real or (first.weights is not None and first.weights.dtype.kind == "f")
        return np.dtype(np.float64 if real else np.int64)

    def _listed(
        self, chunks: list[Chunk], both: bool, kind: np.dtype[Any] | None
    ) -> tuple[Array, ...]:
        """Return the (rows, columns) of a share, and with values these and where each was read.

        That is the chunk, from 1 on; below 0 for an edge's reverse, which is added as it were.
        """
        source = self.source
        assert source is not None
        edges = Edges.join([chunk.edges for chunk in chunks])
        u, v = edges.u, edges.v
        across = np.flatnonzero(u != v) if source.mirror else np.zeros(0, np.int64)
        rows, cols = np.concatenate([u, v[across]]), np.concatenate([v, u[across]])
        if kind is None:
            if both:
                rows, cols = np.concatenate([rows, cols]), np.concatenate([cols, rows])
            return rows, cols
        values = np.zeros(0) if edges.weights is None else edges.weights
        values = values.astype(kind)
        place = np.repeat(
            2 + np.searchsorted(self._order, [chunk.key for chunk in chunks]),
            [len(chunk.edges.u) for chunk in chunks],
        )
        if chunks and chunks[0].key < 0:
            place[: len(chunks[0].edges.u)] = 1
        values = np.concatenate([values, values[across] * source.mirror])
        place = np.concatenate([place, place[across]])
        if both:
            rows, cols = np.concatenate([rows, cols]), np.concatenate([cols, rows])
            values, place = np.concatenate([values, values]), np.concatenate([place, -place])
        return rows, cols, values, place

    def _part(
        self,
        lists: tuple[Array, ...],
        layout: Any,
        piece: int,
        both: bool,
        kind: np.dtype[Any] | None,
    ) -> CSC:
        """Return a part, from the entries that its piece owns, by position."""
        shape, op = layout.shape(piece), self._options.dup_op
        rows, cols, *more = lists
        if kind is None:
            return from_entries(rows, cols, None, *shape)
        values, place = more
        order = np.argsort(np.abs(place), kind="stable")  # as the file has them
        rows, cols, values, place = (x[order] for x in (rows, cols, values, place))
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


def _fault(chunks: list[Chunk]) -> Array:
    """Return the text of the first fault."""
    text = next((chunk.fault[1] for chunk in chunks if chunk.fault is not None), "")
    return np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
