"""Number vertices from 0 that have names, or numbers with gaps.

The ids ascend: numbers by value, text by its characters. So ids 0 .. n-1 keep their numbers, and
``np.searchsorted(ids, id)`` finds a vertex. Ids that have no order among each other, as ``1`` and
``"a"``, are in the order of first sight.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from lagpu.host.columns import distinct

# Measured, docs/design/memory.md: a name of some characters in the tables, while it is ordered too.
BYTES_OF_NAME = 250

Array = np.ndarray[Any, Any]

_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")


def renumbered(u: Array, v: Array) -> tuple[Array, Array, Array]:
    """Return the ends of edges as numbers from 0, and the id of each number, ascending.

    Parameters
    ----------
    u, v : ndarray of numbers, (k,)
        Ids of the ends.
    """
    ids = distinct(np.concatenate([u, v]))
    if ids.dtype.kind in "iu" and ids.dtype.itemsize < 8:
        ids = ids.astype(np.int64)
    return _narrow(np.searchsorted(ids, u), ids), _narrow(np.searchsorted(ids, v), ids), ids


def _narrow(numbers: Array, ids: Array) -> Array:
    return numbers.astype(np.int32 if len(ids) < 2**31 else np.int64, copy=False)


class Names:
    """Numbers for names, which come part by part."""

    def __init__(self) -> None:
        self._place: defaultdict[Hashable, int] = defaultdict()
        self._place.default_factory = self._place.__len__

    def __len__(self) -> int:
        return len(self._place)

    def __iter__(self) -> Any:
        return iter(self._place)

    def codes(self, names: Iterable[Hashable], count: int) -> Array:
        """Return the number of each name, (count,), in the order of first sight so far."""
        return np.fromiter(map(self._place.__getitem__, names), np.int64, count)

    def ordered(self, u: Array, v: Array, *, utf8: bool = False) -> tuple[Array, Array, Array]:
        """Return the ends of edges as final numbers, and the id of each number.

        The names are forgotten, to take less memory.

        Parameters
        ----------
        u, v : ndarray of INT64, (k,)
            Results of `codes`.
        utf8 : bool
            Whether the names are bytes, and the ids are to be texts.

        Returns
        -------
        u, v : ndarray of int, (k,)
            Numbers from 0.
        ids : ndarray, (n,)
            INT64 or UINT64 if all names are whole numbers, also in text; FP64 if all are numbers;
            else objects.

        Raises
        ------
        UnicodeDecodeError
            If a name is not UTF-8.
        """
        names: list[Any] = list(self._place)
        self._place.clear()
        if utf8:
            names = [name.decode() for name in names]
        numbers = whole_numbers(names)
        if numbers is None:
            ids = _objects(names)
            order = _order(names)
            if order is None:
                return u, v, ids
            rank = np.empty(len(ids), np.int64)
            rank[order] = np.arange(len(ids))
            ids = ids[order]
        else:  # names that are written differently may be the same number
            ids = distinct(numbers)
            rank = np.searchsorted(ids, numbers)
        return _narrow(rank[u], ids), _narrow(rank[v], ids), ids


def whole_numbers(names: list[Any]) -> Array | None:
    """Return names as numbers if all are whole and fit 64 bits (or all are floats), else None."""
    if all(isinstance(name, str) for name in names):
        if not all(_WHOLE.fullmatch(name) for name in names):
            return None
        names = [int(name) for name in names]
    elif any(isinstance(name, bool | np.bool_) for name in names):
        return None
    elif all(isinstance(name, float | np.floating) for name in names):
        return np.array(names, np.float64)
    elif not all(isinstance(name, int | np.integer) for name in names):
        return None
    least, most = min(names, default=0), max(names, default=0)
    if least >= -(2**63) and most < 2**63:
        return np.array(names, np.int64)
    return np.array(names, np.uint64) if least >= 0 and most < 2**64 else None


def _objects(names: list[Any]) -> Array:
    return np.fromiter(names, object, len(names))


def _order(names: list[Any]) -> list[int] | None:
    try:
        return sorted(range(len(names)), key=names.__getitem__)
    except TypeError:
        return None
