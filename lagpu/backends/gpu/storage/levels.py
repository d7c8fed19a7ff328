"""The levels of a search, of a vector or a bitmap matrix: ordered, and cut out one by one."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, MatrixHandle, require, stride
from lagpu.backends.gpu.storage.casts import Counters
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import EdgeOffsets, VectorStore
from lagpu.dtypes import BOOL

Array = Any


class VectorLevels:
    """See `lagpu.operations.Levels`.

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
        self._lists: tuple[weakref.ref[CscMatrix], Array] | None = None

    @cached_property
    def offsets(self) -> Array:
        """Where each level begins in `order`, INT64, (deepest + 2,); on the device."""
        xp = self._device.xp
        bounds = xp.arange(self.deepest + 2, dtype=np.int64)
        return xp.searchsorted(self.level.astype(np.int64, copy=False), bounds).astype(np.int64)

    @cached_property
    def starts(self) -> list[int]:
        """`offsets` on the host."""
        found: list[int] = self._device.to_host(self.offsets).tolist()
        return found

    def cut(self, d: int) -> VectorStore:
        """See `lagpu.operations.Levels`."""
        with self._device.alone():
            return self._cut(d)

    def _cut(self, d: int) -> VectorStore:
        made = VectorStore(self._device, self._counters, BOOL, self.size)
        vertices = self.order[self.starts[d] : self.starts[d + 1]]
        if len(vertices) == self.size:
            made.set_full(None, np.True_)
        else:
            made.set_sparse(vertices.astype(np.int64), None, np.True_)
        made.edge_offsets = LevelOffsets(self, d)
        return made

    def edge_offsets(self, d: int, form: CscMatrix) -> EdgeOffsets | None:
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
        return EdgeOffsets(weakref.ref(form), self.order[first:last], before - before[0])


class LevelOffsets:
    """The edge offsets of one level, computed when a product first needs them.

    Parameters
    ----------
    levels : VectorLevels
        All levels.
    d : int
        Which one.
    """

    def __init__(self, levels: VectorLevels, d: int) -> None:
        self._levels, self._d = levels, d

    def of(self, form: CscMatrix) -> EdgeOffsets | None:
        """Return the edge offsets of the level for the columns of `form`."""
        return self._levels.edge_offsets(self._d, form)


class Ordered(NamedTuple):
    """The vertices of each row by level.

    Attributes
    ----------
    order : array of INT32, (k * n,)
        Row i begins at ``i * n``.
    offsets : array of INT32, (k * (deepest + 2),)
        Where each level begins in its row.
    last : array of INT32, (k,)
        The deepest level of each row; -1 if it has none.
    ranks : array of INT32, (k * n,)
        The place of each vertex in the order of its row; -1 if it has no level.
    """

    order: Array
    offsets: Array
    last: Array
    ranks: Array


class BitmapLevels:
    """See `lagpu.operations.Levels`.

    Attributes
    ----------
    shape : tuple of int
        Of the matrix, (k, n).
    """

    def __init__(self, counters: Counters, A: MatrixHandle) -> None:
        self._counters, self._device, self.shape = counters, A.device, A.shape
        # Levels are read once, and a body may write them: bitmap matrices are changed in place.
        self._bitmap = A.bitmap(counters)
        if self._bitmap is A.store:
            self._bitmap = self._bitmap.copy(A.dtype)
        self.lowest, self.deepest = self._ends()

    def _ends(self) -> tuple[int, int]:
        v = self._bitmap.entries
        if v.form == "sparse" and not v.nvals:
            return 0, -1
        bounds = np.iinfo(v.dtype.numpy)
        none = np.array([bounds.max, bounds.min], v.dtype.numpy)
        ends = self._device.from_host(none)
        run = kernel("sweep/order.cu", "level_ends", U=v.dtype.ctype)
        self._device.launch(run, v.size, v.size, *v.readable(), ends)
        lowest, deepest = self._device.to_host(ends).tolist()
        return (0, -1) if lowest > deepest else (lowest, deepest)

    def cut(self, d: int) -> MatrixHandle:
        """See `lagpu.operations.Levels`."""
        with self._device.alone():
            return self._cut(d)

    def _cut(self, d: int) -> MatrixHandle:
        v = self._bitmap.entries
        require(self._device, self.shape, None, "sweep")
        made = VectorStore(self._device, self._counters, BOOL, v.size)
        words, count = made.spare_words(), self._counters.take()
        run = kernel("sweep/order.cu", "cut_level", U=v.dtype.ctype)
        level = v.dtype.numpy.type(d)
        self._device.launch(
            run, v.size, count=v.size, **v.arguments(), d=level, out=words, nvals=count
        )
        made.set_bitmap(words, None, np.True_, count)
        return MatrixHandle(BitmapMatrix(self._device, BOOL, self.shape, made))

    def order_bytes(self) -> int:
        """Return the bytes of the arrays that `ordered` makes."""
        k, n = self.shape
        return 4 * k * (2 * n + self.deepest + 3)

    def ordered(self) -> Ordered:
        """Sort the vertices of each row by level; within a level they are nearly sorted."""
        xp, (k, n), v = self._device.xp, self.shape, self._bitmap.entries
        made = Ordered(
            xp.empty(k * n, np.int32),
            xp.empty(k * (self.deepest + 2), np.int32),
            xp.empty(k, np.int32),
            xp.empty(k * n, np.int32),
        )
        per = stride(k) // 32
        run = kernel("sweep/order.cu", "level_rows", U=v.dtype.ctype)
        self._device.launch(
            run, n * per * 8, rows=k, n=n, per=per, **v.arguments(), levels=made.ranks
        )
        block = self._device.limits.order_block
        run = kernel("sweep/order.cu", "order_rows")
        self._device.launch(
            run, k * block, block=block, rows=k, n=n, deepest=self.deepest, **made._asdict()
        )
        return made
