"""Tables of edges and lists of named edges: which columns are sources, targets and weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io.reading import Budget, Edges
from lagpu.io.renumber import BYTES_OF_NAME, Names
from lagpu.io.text import (
    COMMENT,
    PIECE,
    Malformed,
    data_lines,
    fits,
    is_number,
    line_number,
    number,
    numbers_of,
    pieces,
    shape_of,
    show,
)

_SOURCES = ("source", "src", "from", "fromnodeid", "from_node", "u", "i", "row", "tail", "node1")
_TARGETS = ("target", "dst", "to", "tonodeid", "to_node", "v", "j", "col", "head", "node2")
_WEIGHTS = ("weight", "w", "value", "wgt", "data", "cost", "distance", "length")
_INDEX = re.compile(r"(unnamed: ?[0-9]+|__index_level_[0-9]+__)?")  # as pandas writes its own


def is_header(words: Sequence[str]) -> bool | None:
    """Return whether a first line has names of columns; None for some names and some numbers."""
    found = {is_number(word.encode()) for word in words}
    return None if len(found) > 1 else found == {False}


def are_columns(words: Sequence[str]) -> bool:
    """Return whether words are usual names of columns: one of sources and one of targets."""
    plain = {_plain(word) for word in words}
    return bool(is_header(words) and plain & {*_SOURCES} and plain & {*_TARGETS})


def _plain(word: str) -> str:
    return word.strip().lower()


def chosen(
    header: Sequence[str], columns: tuple[str, ...] | None, name: str
) -> tuple[int, int, int | None]:
    """Return the places of the columns of sources, targets and weights, or None for no weights.

    Parameters
    ----------
    header : sequence of str
        Names of all columns.
    columns : tuple of str, optional
        Names given by the user, two or three. By default the columns with usual names
        (``source`` and ``target``, ``src`` and ``dst``, ``from`` and ``to``, and ``weight``). If
        just two columns are not called as weights are, these are the ends, in their order. The
        columns of an index, such as pandas writes, do not count.
    name : str
        Name of the file in messages.

    Raises
    ------
    InvalidValue
        If a given column is not there, or twice.
    FileFormatError
        If the names do not say which columns are the ends, or two columns have the same name.
    """
    if columns is not None:
        places = [_place(header, column, name) for column in columns]
        return places[0], places[1], places[2] if len(places) == 3 else None
    plain = [_plain(word) for word in header]
    source, target, weight = (_first(plain, usual) for usual in (_SOURCES, _TARGETS, _WEIGHTS))
    if source is None or target is None:
        names = [k for k, word in enumerate(plain) if not _INDEX.fullmatch(word)]
        ends = [k for k in names if k != weight]
        shown = ", ".join(header[k] for k in names[:8])
        if len(names) < 2:
            raise FileFormatError(
                f"read: {name} has one column ({shown}), and an edge has two ends."
            )
        if len(ends) != 2 or source not in (None, ends[0]) or target not in (None, ends[1]):
            raise FileFormatError(
                f"read: {name} has {len(names)} columns ({shown}). Say which are the sources, "
                'targets and weights: columns=("source", "target", "weight").'
            )
        source, target = ends
    for k in (source, target, weight):
        if k is not None and plain.count(plain[k]) > 1:
            raise FileFormatError(
                f"read: {name}: two columns are called {header[k]!r}. Rename one of them."
            )
    return source, target, weight


def _first(words: list[str], usual: tuple[str, ...]) -> int | None:
    return next((words.index(word) for word in usual if word in words), None)


def _place(header: Sequence[str], column: str, name: str) -> int:
    count = header.count(column)
    if count == 1:
        return header.index(column)
    if count:
        raise InvalidValue(f"read: {name}: two columns are called {column!r}. Rename one of them.")
    raise InvalidValue(f"read: {name} has no column {column!r}. It has {', '.join(header[:20])}.")


# ------------------------------------------------------------------------------------------
# Edge lists whose vertices have names: lines ``name name`` or ``name name weight``.


Array = np.ndarray[Any, Any]


def parse(
    data: bytes, offset: int, first: bytes, budget: Budget, header: bool | None
) -> tuple[Edges, Array]:
    """Return the edges between renumbered vertices, and the id of each vertex.

    Parameters
    ----------
    data : bytes
        Content of the file; its last line has an end.
    offset : int
        Where the first line begins that is neither blank nor a comment.
    first : bytes
        That line.
    budget : Budget
        Name of the file in messages, and the memory that it may take.
    header : bool or None
        Whether the first line is a header; None if it has usual names of columns.

    Raises
    ------
    FileFormatError
        If a line is no edge, with its number, or a name is not UTF-8.
    OutOfMemory, LimitExceeded
        If the names do not fit.
    """
    begin, top = offset, first.decode("utf-8", "replace").split()
    if header is None and are_columns(top):
        header = True
        if chosen(top, None, budget.name) != (0, 1, 2 if len(top) == 3 else None):
            raise FileFormatError(
                f"read: {budget.name}, line {line_number(data, offset)}: {show(first)} has names "
                "of columns in another order than source target weight. Write it with commas."
            )
    if header:
        begin = data.find(b"\n", offset) + 1 or len(data)
    names = Names()
    found: list[Edges] = []
    for at, text in pieces(data, begin):
        new = 2 * text.count(b"\n") * BYTES_OF_NAME + 16 * len(text)
        have = len(data) + len(names) * BYTES_OF_NAME + sum(48 * len(p.u) for p in found)
        budget.require(new, "its names", held=have)
        try:
            if len(text) > PIECE:  # one line
                raise Malformed
            part = _edges(text, names)
            if len(part.u) and found and (part.weights is None) != (found[0].weights is None):
                raise Malformed
        except Malformed:
            raise _first_fault(data, begin, at, budget.name) from None
        if len(part.u):
            found.append(part)
    edges = Edges.join(found)
    try:
        u, v, ids = names.ordered(edges.u, edges.v, utf8=True)
    except UnicodeDecodeError as error:
        raise FileFormatError(
            f"read: {budget.name}: {show(bytes(error.object))} is not UTF-8. Convert the file to "
            "UTF-8."
        ) from None
    return Edges(u, v, edges.weights), ids


def _edges(text: bytes, names: Names) -> Edges:
    """Return the edges of whole lines; new names are added to `names`."""
    if b"#" in text or b"%" in text:
        text = COMMENT.sub(b"", text)
    count, width = shape_of(np.frombuffer(text, np.uint8))
    words = text.split()
    weights = numbers_of(words[2::3]) if width == 3 and count else None
    return Edges(names.codes(words[::width], count), names.codes(words[1::width], count), weights)


def _first_fault(data: bytes, begin: int, at: int, name: str) -> FileFormatError:
    """Return the error for the first line from an offset on that is no edge between names."""
    width = len(next(data_lines(data, begin))[1].split(None, 3))
    if width not in (2, 3):
        at, width = begin, 2
    for where, line in data_lines(data, at):
        fault = _why(line, width)
        if fault:
            return FileFormatError(
                f"read: {name}, line {line_number(data, where)}: {show(line)} {fault}."
            )
    return FileFormatError(f"read: {name} is not an edge list.")  # pragma: no cover (no such file)


def _why(line: bytes, width: int) -> str:
    if len(line) > PIECE:
        return f"is longer than {PIECE} bytes"
    words = line.split()
    if len(words) != width:
        return f"has {len(words)} words, not {width}"
    if width == 2:
        return ""
    if not is_number(words[2]):
        return f"has the weight {show(words[2])}, which is no number"
    value = number(words[2])
    return "has a weight beyond 64 bits" if isinstance(value, int) and not fits(value) else ""
