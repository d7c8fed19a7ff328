"""Columns of edge tables: which are the sources, the targets and the weights."""

from __future__ import annotations

from collections.abc import Sequence

from lagpu.errors import FileFormatError, InvalidValue

__all__ = ["are_columns", "chosen"]

_SOURCES = ("source", "src", "from", "fromnodeid", "from_node", "u", "i", "row", "tail", "node1")
_TARGETS = ("target", "dst", "to", "tonodeid", "to_node", "v", "j", "col", "head", "node2")
_WEIGHTS = ("weight", "w", "value", "wgt", "data")


def are_columns(words: Sequence[str]) -> bool:
    """Return whether words are usual names of columns: one of sources and one of targets."""
    plain = [_plain(word) for word in words]
    return any(word in _SOURCES for word in plain) and any(word in _TARGETS for word in plain)


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
        (``source`` and ``target``, ``src`` and ``dst``, ``from`` and ``to``, and ``weight``), or
        the first two, and a third if there are three.
    name : str
        Name of the file in messages.

    Raises
    ------
    InvalidValue
        If a given column is not there.
    FileFormatError
        If there are fewer than two columns, or more than three and none has a usual name.
    """
    if columns is not None:
        places = [_place(header, column, name) for column in columns]
        return places[0], places[1], places[2] if len(places) == 3 else None
    plain = [_plain(word) for word in header]
    source, target = _first(plain, _SOURCES), _first(plain, _TARGETS)
    weight = _first(plain, _WEIGHTS)
    if source is not None and target is not None:
        if weight is None and len(header) == 3:
            weight = 3 - source - target
        return source, target, weight
    if len(header) in (2, 3):
        return 0, 1, 2 if len(header) == 3 else None
    shown = ", ".join(header[:8])
    raise FileFormatError(
        f"read: {name} has {len(header)} columns ({shown}). Say which are the sources, targets "
        'and weights: columns=("source", "target", "weight").'
        if len(header) > 3
        else f"read: {name} has one column ({shown}), and an edge has two ends."
    )


def _first(words: list[str], usual: tuple[str, ...]) -> int | None:
    return next((k for word in usual for k in [_index(words, word)] if k is not None), None)


def _index(words: list[str], word: str) -> int | None:
    return words.index(word) if word in words else None


def _place(header: Sequence[str], column: str, name: str) -> int:
    found = _index(list(header), column)
    if found is None:
        raise InvalidValue(
            f"read: {name} has no column {column!r}. It has {', '.join(header[:20])}."
        )
    return found
