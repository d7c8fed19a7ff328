"""Edge lists whose vertices have names: lines ``name name`` or ``name name weight``."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.errors import FileFormatError
from lagpu.io.budget import Budget
from lagpu.io.formats.columns import are_columns, chosen
from lagpu.io.reading import Edges
from lagpu.io.renumber import BYTES_OF_NAME, Names
from lagpu.io.text import PIECE, data_lines, line_number, pieces, show
from lagpu.io.words import COMMENT, Malformed, fits, is_number, number, numbers_of, shape_of

__all__ = ["parse"]

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
