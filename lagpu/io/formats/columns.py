"""Columns of edge tables: which are the sources, the targets and the weights."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lagpu.errors import FileFormatError, InvalidValue
from lagpu.io.words import is_number

__all__ = ["are_columns", "chosen", "is_header"]

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
