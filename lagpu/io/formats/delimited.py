"""Tables of edges with commas, tabs or semicolons: columns by name or by place.

The first line has the names of the columns if none of its fields is a number, and is an edge if all
are. Numbers are parsed many lines at a time; names, quotes and gaps are left to Python's ``csv``.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io.csc import CSC
from lagpu.io.edge_list import comments_of
from lagpu.io.formats.named_edges import are_columns, chosen, is_header
from lagpu.io.reading import NAMES_HINT, Budget, Edges, Options, Parsed, graph_of
from lagpu.io.renumber import BYTES_OF_NAME, Names, whole_numbers
from lagpu.io.text import (
    PIECE,
    Malformed,
    data_lines,
    is_number,
    line_number,
    numbers,
    numbers_of,
    pieces,
    show,
    write_rows,
)

Array = np.ndarray[Any, Any]

_SEPARATORS = (b"\t", b",", b";")
_LARGEST = 2**53  # FP64 represents whole numbers up to this exactly
_ROWS = 1 << 16  # at a time


class Table(NamedTuple):
    """The form of a file.

    Attributes
    ----------
    data : bytes
        Its content.
    start : int
        Where the first line begins that is no comment, or below the header.
    separator : bytes
        What stands between fields.
    width : int
        Fields of a line.
    places : tuple
        The columns of sources, targets and weights; None for no weights.
    name : str
        Name of the file in messages.
    nodes, undirected : int, bool
        What the comments on top say.
    """

    data: bytes
    start: int
    separator: bytes
    width: int
    places: tuple[int, int, int | None]
    name: str
    nodes: int = 0
    undirected: bool = False

    def rows(self) -> Iterator[list[str]]:
        """Return an iterator over the rows that are not blank."""
        return (row for _, row in self.numbered())

    def numbered(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the last line and the fields of each of these rows."""
        lines = io.TextIOWrapper(io.BytesIO(self.data), "utf-8", newline="")
        lines.seek(self.start)
        rows = csv.reader(lines, delimiter=self.separator.decode(), skipinitialspace=True)
        above = line_number(self.data, self.start) - 1
        try:
            for row in rows:
                if row:
                    yield above + rows.line_num, row
        except csv.Error:  # which has no other one for lines as `parse` takes them
            raise FileFormatError(
                f"read: {self.name}, line {above + rows.line_num}: a field is longer than "
                f"{csv.field_size_limit():,} characters. Close its quotes."
            ) from None

    def fault(self, k: int, why: str) -> FileFormatError:
        """Return the error for a row, counted from 0 below the header."""
        line, row = next(itertools.islice(self.numbered(), k, None))
        shown = self.separator.decode().join(row)
        shown = repr(shown if len(shown) <= 60 else shown[:57] + "...")
        return FileFormatError(f"read: {self.name}, line {line}: {shown} {why}.")


def is_table(data: bytes) -> bool:
    """Return whether a text is a table of edges, by its first line that is no comment."""
    first = next(data_lines(data), (0, b""))[1][:PIECE]
    if b"," in first or b";" in first:
        return True
    return b"\t" in first and are_columns(first.decode("utf-8", "replace").split("\t"))


def parse(data: bytes, budget: Budget, options: Options) -> Parsed:
    """Return the graph of a table.

    Parameters
    ----------
    data : bytes
        Content of the file; its last line has an end.
    budget : Budget
        Name of the file in messages, and the memory that it may take.
    options : Options
        `header`, `columns`, `renumber` and `dup_op`.

    Raises
    ------
    FileFormatError
        If a row is no edge, with its line, or there is no row; if the first line may be names of
        columns or an edge.
    InvalidValue
        If there is no such column.
    OutOfMemory, LimitExceeded
        If the graph does not fit.
    """
    name = budget.name
    offset, first = next(data_lines(data), (len(data), b""))
    if not first:
        raise FileFormatError(f"read: {name} has no edges, only blank lines and comments.")
    if data.count(b"\r") != data.count(b"\r\n"):  # each library would see other lines
        raise FileFormatError(
            f"read: {name} has a carriage return alone. End its lines by a line feed."
        )
    try:
        table = form_of(data, offset, first, options, name)
        ask = data.count(b"\n") * 16 * (table.width + 1) + 32 * min(len(data), PIECE)
        budget.require(ask, "its lines", held=len(data))
        try:
            edges, ids = _of_numbers(table), None
        except Malformed:  # names, quotes, or a fault
            edges, ids = _of_words(table, options, budget)
    except UnicodeDecodeError:
        raise FileFormatError(f"read: {name} is not UTF-8. Convert the file to UTF-8.") from None
    held = len(data) + 16 * len(edges.u)
    n, undirected = table.nodes, table.undirected
    return graph_of(edges, budget, options, held=held, n=n, ids=ids, undirected=undirected)


def form_of(data: bytes, offset: int, first: bytes, options: Options, name: str) -> Table:
    """Return the form of a file, by its first line that is no comment and maybe the next one.

    Parameters
    ----------
    data : bytes
        Whole lines, at least these two.
    offset, first : int, bytes
        Where the first line begins, and the line.
    options, name
        As in `parse`.
    """
    line = data[offset : data.find(b"\n", offset)]
    counts = {mark: line.count(mark) for mark in _SEPARATORS}
    separator = max(counts, key=counts.__getitem__) if any(counts.values()) else b","
    nodes, undirected = comments_of(data, offset, name)
    draft = Table(data, offset, separator, 0, (0, 1, None), name, nodes or 0, undirected)
    rows = draft.numbered()
    last, top = next(rows, (0, []))
    top = [field.strip() for field in top]
    where = f"read: {name}, line {line_number(data, offset)}: {show(first)}"
    draft = draft._replace(width=len(top))
    if not _has_header(top, next(rows, (0, None))[1], options, where):
        if options.columns is not None:
            raise InvalidValue(f"read: {name} has no header, so columns have no names.")
        if len(top) not in (2, 3):
            raise FileFormatError(
                f"{where} has {len(top)} fields and no names of columns. Write "
                f"source,target{',weight' * (len(top) > 2)} and the like above the first edge."
            )
        return draft._replace(places=(0, 1, 2 if len(top) == 3 else None))
    below = offset
    for _ in range(last + 1 - line_number(data, offset)):  # more than one if a name has a line end
        below = data.find(b"\n", below) + 1 or len(data)
    return draft._replace(start=below, places=chosen(top, options.columns, name))


def _has_header(top: list[str], below: list[str] | None, options: Options, where: str) -> bool:
    """Return whether the first row has the names of the columns."""
    if options.header is not None:
        return options.header
    if options.columns is not None or are_columns(top):
        return True
    found = is_header(top)
    if found and not below:
        raise FileFormatError(f"{where} is the only line, and no edge.")
    if below and found and options.renumber and not all(is_number(x.encode()) for x in below[:2]):
        raise FileFormatError(
            f"{where} may be names of columns or an edge. Write source,target above the first "
            "edge, or give io.read header=True or header=False."
        )
    if found is None and not options.renumber:  # else the number is a name, or a weight
        raise FileFormatError(
            f"{where} is neither names of columns nor an edge of numbers. Correct it, or give "
            f"header=True if it has names of columns. {NAMES_HINT}."
        )
    return bool(found)


def _of_numbers(table: Table) -> Edges:
    """Return the edges of a table of numbers.

    Raises
    ------
    Malformed
        If anything else is there, or a vertex is not 0, 1, 2, ... below 2**53.
    """
    return Edges.join([edges_of(text, table) for _, text in pieces(table.data, table.start)])


def edges_of(text: bytes, table: Table) -> Edges:
    """Return the edges of whole lines of a table of numbers.

    Raises
    ------
    Malformed
        If anything else is there, or a vertex is not 0, 1, 2, ... below 2**53.
    """
    source, target, weight = table.places
    grid = _grid(text, table.separator, table.width)
    if not len(grid):
        return Edges.join([])
    ends = grid[:, [source, target]]
    if not (ends.min() >= 0 and ends.max() < _LARGEST and (ends == np.floor(ends)).all()):
        raise Malformed
    kind = np.int32 if ends.max() < 2**31 - 1 else np.int64
    u, v = ends[:, 0].astype(kind), ends[:, 1].astype(kind)
    return Edges(u, v, None if weight is None else grid[:, weight].copy())


def _grid(text: bytes, separator: bytes, width: int) -> Array:
    """Return the numbers of whole lines, (lines, width)."""
    if len(text) > PIECE:  # one line
        raise Malformed
    raw = np.frombuffer(text, np.uint8)
    is_separator = raw == separator[0]
    full = (raw > 32) & ~is_separator
    begins = full.copy()
    begins[1:] &= ~full[:-1]
    line = np.cumsum(raw == 10, dtype=np.int32)[begins]  # the line of each number
    before = np.cumsum(is_separator, dtype=np.int32)[begins]
    if line.size == 0 and not is_separator.any():
        return np.empty((0, width), np.int64)
    if line.size == 0 or line.size % width:
        raise Malformed
    lines = line.reshape(-1, width)
    if (lines[:, 0] != lines[:, -1]).any() or (np.diff(lines[:, 0]) <= 0).any():
        raise Malformed
    place = np.arange(line.size)  # numbers and separators take turns
    if (before != place - place // width).any() or before[-1] != is_separator.sum():
        raise Malformed
    plain = text.replace(separator, b" ")
    found = numbers(plain, np.frombuffer(plain, np.uint8))
    if found.size != line.size:  # pragma: no cover (should NumPy ever split otherwise)
        raise Malformed
    return found.reshape(-1, width)


def _of_words(table: Table, options: Options, budget: Budget) -> tuple[Edges, Array | None]:
    """Return the edges of any table, and the ids of its vertices if they are renumbered."""
    names, found, done = Names(), [], 0
    rows = table.rows()
    source, target, weight = table.places
    while part := list(itertools.islice(rows, _ROWS)):
        have = len(table.data) + len(names) * BYTES_OF_NAME + 48 * done
        budget.require((2 * BYTES_OF_NAME + 100 * table.width) * _ROWS, "its names", held=have)
        for k, row in enumerate(part):
            if len(row) != table.width:
                raise table.fault(done + k, f"has {len(row)} fields, not {table.width}")
        ends = [[row[place].strip() for row in part] for place in (source, target)]
        for column in ends:
            if "" in column:
                raise table.fault(done + column.index(""), "has an empty end")
        weights = None
        if weight is not None:
            weights = _weights([row[weight].strip() for row in part], table, done)
        if options.renumber:
            u, v = (names.codes(column, len(part)) for column in ends)
        else:
            u, v = (_vertices(column, table, done) for column in ends)
        found.append(Edges(u, v, weights))
        done += len(part)
    edges = Edges.join(found)
    if not options.renumber:
        return edges, None
    u, v, ids = names.ordered(edges.u, edges.v)
    return Edges(u, v, edges.weights), ids


def _vertices(column: list[str], table: Table, done: int) -> Array:
    """Return vertices, or raise for the first row without a number."""
    found = whole_numbers(column)
    if found is not None and found.min() >= 0 and found.max() < _LARGEST:
        return found.astype(np.int64)
    for k, word in enumerate(column):
        one = whole_numbers([word])
        if one is None or not 0 <= one[0] < _LARGEST:
            why = f"has the vertex {word[:60]!r}, not a whole number 0, 1, 2, ... "
            raise table.fault(done + k, f"{why}below 2**53. {NAMES_HINT}")
    raise AssertionError("a column of vertices is none of them")  # pragma: no cover


def _weights(column: list[str], table: Table, done: int) -> Array:
    """Return weights, or raise for the first row without a number."""
    try:
        return numbers_of([word.encode() for word in column])
    except Malformed:
        for k, word in enumerate(column):
            try:
                if not is_number(word.encode()):
                    raise Malformed
                numbers_of([word.encode()])
            except Malformed:
                why = f"has the weight {word[:60]!r}, which is no number of 64 bits"
                raise table.fault(done + k, why) from None
        raise  # pragma: no cover (each is a number, and all together are)


def dump_commas(csc: CSC, file: IO[bytes]) -> None:
    """Write ``source,target``, and ``weight`` unless all values are True."""
    _dump(csc, file, ",")


def dump_tabs(csc: CSC, file: IO[bytes]) -> None:
    """Write the same with tabs."""
    _dump(csc, file, "\t")


def _dump(csc: CSC, file: IO[bytes], separator: str) -> None:
    columns = [csc.row_idx, csc.columns()]
    names = ["source", "target"]
    if not csc.is_pattern:
        columns, names = [*columns, csc.dense_values()], [*names, "weight"]
    file.write((separator.join(names) + "\n").encode())
    write_rows(file, columns, separator)
