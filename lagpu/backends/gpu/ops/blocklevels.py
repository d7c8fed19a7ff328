"""The levels in a block: each of them cut out as bits, and the vertices of each row by level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.ops.bitmap import dup
from lagpu.backends.gpu.storage.bitmap import BlockStore, as_block, require, stride
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.dtypes import BOOL

__all__ = ["BlockLevels", "Ordered"]

Array = Any
ORDER_BLOCK, SIM_BLOCK = 1024, 64


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
        Where each vertex stands in the order of its row; -1 if it has no level.
    """

    order: Array
    offsets: Array
    last: Array
    ranks: Array


class BlockLevels:
    """See `lagpu.backends.levels.Levels`.

    Attributes
    ----------
    shape : tuple of int
        Of the block, (k, n).
    """

    def __init__(self, counters: Counters, A: MatrixStore) -> None:
        self._counters, self._device, self.shape = counters, A.device, A.shape
        # Levels are read once, and a body may write them: blocks are changed in place.
        self._block = as_block(counters, A)
        if self._block is A:
            self._block = dup(self._block, A.dtype)
        self.lowest, self.deepest = self._ends()

    def _ends(self) -> tuple[int, int]:
        v = self._block.entries
        if v.form == "sparse" and not v.nvals:
            return 0, -1
        bounds = np.iinfo(v.dtype.numpy)
        none = np.array([bounds.max, bounds.min], v.dtype.numpy)
        ends = self._device.from_host(none)
        run = kernel("sweep/order.cu", "level_ends", U=v.dtype.ctype)
        self._device.launch(run, v.size, v.size, *v.readable(), ends)
        lowest, deepest = self._device.to_host(ends).tolist()
        return (0, -1) if lowest > deepest else (lowest, deepest)

    def cut(self, d: int) -> BlockStore:
        """See `lagpu.backends.levels.Levels`."""
        v = self._block.entries
        require(self._device, self.shape, None, "sweep")
        made = VectorStore(self._device, self._counters, BOOL, v.size)
        words, count = made.spare_words(), self._counters.take()
        run = kernel("sweep/order.cu", "cut_level", U=v.dtype.ctype)
        level = v.dtype.numpy.type(d)
        self._device.launch(run, v.size, v.size, *v.readable(), level, words, count)
        made.set_bitmap(words, None, np.True_, count)
        return BlockStore(self._device, BOOL, self.shape, made)

    def order_bytes(self) -> int:
        """Return the bytes of what `ordered` makes."""
        k, n = self.shape
        return 4 * k * (2 * n + self.deepest + 3)

    def ordered(self) -> Ordered:
        """Sort the vertices of each row by level; they rise nearly in each."""
        xp, (k, n), v = self._device.xp, self.shape, self._block.entries
        made = Ordered(
            xp.empty(k * n, np.int32),
            xp.empty(k * (self.deepest + 2), np.int32),
            xp.empty(k, np.int32),
            xp.empty(k * n, np.int32),
        )
        per = stride(k) // 32
        run = kernel("sweep/order.cu", "level_rows", U=v.dtype.ctype)
        self._device.launch(run, n * per * 8, k, n, per, *v.readable(), made.ranks)
        block = SIM_BLOCK if self._device.name == "sim" else ORDER_BLOCK
        run = kernel("sweep/order.cu", "order_rows")
        self._device.launch(run, k * block, k, n, self.deepest, *made, block=block)
        return made
