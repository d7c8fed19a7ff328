"""Tables of edges with commas, tabs or semicolons: columns by name or by place.

The first line has the names of the columns if none of its fields is a number, and is an edge if all
are. Numbers are parsed many lines at a time; names, quotes and gaps are left to Python's ``csv``.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io.edge_list import are_columns, chosen, comments_of, is_header
from lagpu.io.reading import (
    BYTES_OF_NAME,
    NAMES_HINT,
    Budget,
    Edges,
    Names,
    Options,
    Parsed,
    graph_of,
    whole_numbers,
)
from lagpu.io.text import (
    PIECE,
    Malformed,
    data_lines,
    is_number,
    line_number,
    numbers_of,
    pieces,
    show,
    table,
)

Array = np.ndarray[Any, Any]

_SEPARATORS = ("\t", ",", ";")
_ROWS = 1 << 16  # at a time


class Form(NamedTuple):
    """The form of a file.

    Attributes
    ----------
    data : bytes
        Its content.
    name : str
        Its name in messages.
    start : int
        Where the first line begins that is no comment, or below the header.
    separator : str
        What separates fields.
    width : int
        Fields of a line.
    places : tuple
        The columns of sources, targets and weights; None for no weights.
    """

    data: bytes
    name: str
    start: int
    separator: str
    width: int = 0
    places: tuple[int, int, int | None] = (0, 1, None)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the last line and the fields of each row that is not blank."""
        lines = io.TextIOWrapper(io.BytesIO(self.data), "utf-8", newline="")
        lines.seek(self.start)
        rows = csv.reader(lines, delimiter=self.separator, skipinitialspace=True)
        above = line_number(self.data, self.start) - 1
        try:
            for row in rows:
                fields = [field.strip() for field in row]
                if fields not in ([], [""]):
                    yield above + rows.line_num, fields
        except csv.Error:  # which has no other one for lines as `parse` takes them
            raise FileFormatError(
                f"read: {self.name}, line {above + rows.line_num}: a field is longer than "
                f"{csv.field_size_limit():,} characters. Close its quotes."
            ) from None

    def fault(self, k: int, why: str) -> FileFormatError:
        """Return the error for a row, counted from 0 below the header."""
        line, row = next(itertools.islice(self.rows(), k, None))
        shown = self.separator.join(row)
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
    nodes, undirected = comments_of(data, offset, name)
    ids = None
    try:
        form = _form_of(data, offset, first, options, name)
        ask = data.count(b"\n") * 16 * (form.width + 1) + 32 * min(len(data), PIECE)
        budget.require(ask, "its lines", held=len(data))
        try:
            edges = Edges.join(
                [
                    Edges.of(table(text, form.separator), form.width, form.places)
                    for _, text in pieces(data, form.start)
                ]
            )
        except Malformed:  # names, quotes, or a fault
            edges, ids = _of_words(form, options, budget)
    except UnicodeDecodeError:
        raise FileFormatError(f"read: {name} is not UTF-8. Convert the file to UTF-8.") from None
    held, n = len(data) + 16 * len(edges.u), nodes or 0
    return graph_of(edges, budget, options, held=held, n=n, ids=ids, undirected=undirected)


def _form_of(data: bytes, offset: int, first: bytes, options: Options, name: str) -> Form:
    """Return the form of a file, by its first line that is no comment and maybe the next one."""
    line = data[offset : data.find(b"\n", offset)]
    counts = {mark: line.count(mark.encode()) for mark in _SEPARATORS}
    separator = max(counts, key=counts.__getitem__) if any(counts.values()) else ","
    draft = Form(data, name, offset, separator)
    rows = draft.rows()
    last, top = next(rows, (0, []))
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


def _of_words(form: Form, options: Options, budget: Budget) -> tuple[Edges, Array | None]:
    """Return the edges of any table, and the ids of its vertices if they are renumbered."""
    names, found, done = Names(), [], 0
    rows = (row for _, row in form.rows())
    *ends, weight = form.places
    while part := list(itertools.islice(rows, _ROWS)):
        have = len(form.data) + len(names) * BYTES_OF_NAME + 48 * done
        budget.require((2 * BYTES_OF_NAME + 100 * form.width) * _ROWS, "its names", held=have)
        for k, row in enumerate(part):
            if len(row) != form.width:
                raise form.fault(done + k, f"has {len(row)} fields, not {form.width}")
        columns = [[row[place] for row in part] for place in ends]
        for column in columns:
            if "" in column:
                raise form.fault(done + column.index(""), "has an empty end")
        weights = None if weight is None else _weights([row[weight] for row in part], form, done)
        if options.renumber:
            u, v = (names.codes(column, len(part)) for column in columns)
        else:
            u, v = (_vertices(column, form, done) for column in columns)
        found.append(Edges(u, v, weights))
        done += len(part)
    edges = Edges.join(found)
    if not options.renumber:
        return edges, None
    u, v, ids = names.ordered(edges.u, edges.v)
    return Edges(u, v, edges.weights), ids


def _vertices(column: list[str], form: Form, done: int) -> Array:
    """Return vertices, or raise for the first row without a number."""
    found = whole_numbers(column)
    if found is not None and found.min() >= 0 and found.max() < 2**53:
        return found.astype(np.int64)
    for k, word in enumerate(column):
        one = whole_numbers([word])
        if one is None or not 0 <= one[0] < 2**53:
            why = f"has the vertex {word[:60]!r}, not a whole number 0, 1, 2, ... "
            raise form.fault(done + k, f"{why}below 2**53. {NAMES_HINT}")
    raise AssertionError("a column of vertices is none of them")  # pragma: no cover


def _weights(column: list[str], form: Form, done: int) -> Array:
    """Return weights, or raise for the first row without a number."""
    words = [word.encode() for word in column]
    try:
        return numbers_of(words)
    except Malformed:
        for k, word in enumerate(words):
            try:
                numbers_of([word])
            except Malformed:
                why = f"has the weight {column[k][:60]!r}, which is no number of 64 bits"
                raise form.fault(done + k, why) from None
        raise  # pragma: no cover (each is a number, and all together are)
