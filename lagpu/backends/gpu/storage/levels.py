"""The entries of an integer vector in one ordering by level, from which each level is cut."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any

import numpy as np

from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.stats import Listing
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.dtypes import BOOL

__all__ = ["LevelList", "VectorLevels"]

Array = Any


class VectorLevels:
    """See `lagpu.backends.levels.Levels`.

    Attributes
    ----------
    size : int
        Of the vector.
    order : array of INT32, INT64 past 2**31
        The vertices by level, rising in each.
    level : array
        Their levels.
    """

    def __init__(self, counters: Counters, v: VectorStore) -> None:
        self._counters, self._device, self.size = counters, v.device, v.size
        xp = v.device.xp
        indices, values = v.listed()
        where = indices.astype(np.int32 if v.size < 2**31 else np.int64, copy=False)
        if values is None:  # all of one level, or none
            self.order, self.level = where, xp.full(len(where), v.number)
        else:
            by_level = xp.argsort(values, kind="stable")
            self.order, self.level = where[by_level], values[by_level]
        self.lowest, self.deepest = 0, -1
        if len(where):
            ends = self._device.to_host(self.level[:: max(1, len(where) - 1)])
            self.lowest, self.deepest = int(ends[0]), int(ends[-1])
        self._lists: tuple[weakref.ref[MatrixStore], Array] | None = None

    @cached_property
    def offsets(self) -> Array:
        """Where each level begins in `order`, INT64, (deepest + 2,); on the device."""
        xp = self._device.xp
        bounds = xp.arange(self.deepest + 2, dtype=np.int64)
        return xp.searchsorted(self.level.astype(np.int64, copy=False), bounds).astype(np.int64)

    @cached_property
    def starts(self) -> list[int]:
        """The same on the host."""
        found: list[int] = self._device.to_host(self.offsets).tolist()
        return found

    def cut(self, d: int) -> VectorStore:
        """See `lagpu.backends.levels.Levels`."""
        made = VectorStore(self._device, self._counters, BOOL, self.size)
        vertices = self.order[self.starts[d] : self.starts[d + 1]]
        if len(vertices) == self.size:
            made.set_full(None, np.True_)
        else:
            made.set_sparse(vertices.astype(np.int64), None, np.True_)
        made.listing = LevelList(self, d)
        return made

    def listing(self, d: int, form: MatrixStore) -> Listing | None:
        """Return level d with the entries of a matrix before each of its columns.

        The columns of all levels are summed by one scan, at the first call.
        """
        if self.order.dtype != np.int32 or not len(self.order):
            return None
        if self._lists is None or self._lists[0]() is not form:
            xp, ptr = self._device.xp, form.col_ptr
            before = xp.zeros(len(self.order) + 1, ptr.dtype)
            before[1:] = xp.cumsum(ptr[self.order + 1] - ptr[self.order])
            self._lists = weakref.ref(form), before
        first, last = self.starts[d], self.starts[d + 1]
        if first == last:
            return None
        before = self._lists[1][first:last]
        return Listing(weakref.ref(form), self.order[first:last], before - before[0])


class LevelList:
    """What the mask of a level has instead of a `Listing`: it is made when a product asks for it.

    Parameters
    ----------
    levels : VectorLevels
        All levels.
    d : int
        Which one.
    """

    def __init__(self, levels: VectorLevels, d: int) -> None:
        self._levels, self._d = levels, d

    def of(self, form: MatrixStore) -> Listing | None:
        """Return the level's list of the columns of `form`."""
        return self._levels.listing(self._d, form)
