"""Permute bitmap matrices into the level order of a sweep: each row by itself, level after level.

A bitmap matrix is stored vertex by vertex, so most of a cache line that one row loads belongs to
other rows, at other levels. In level order a level's entries lie side by side; see
sweep/permute.cu.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.storage.bitmap import stride
from lagpu.backends.gpu.storage.levels import Ordered
from lagpu.backends.gpu.storage.vector import VectorStore

Array = Any


class Permuted(NamedTuple):
    """The entries of a matrix in level order.

    Attributes
    ----------
    has : array of BOOL, (k * n,)
        Presence.
    values : array, (k * n,), or None
        None if all are the vector's `iso`.
    """

    has: Array
    values: Array


class LevelOrder:
    """Permutes the matrices of a sweep into level order, and those it writes back.

    Parameters
    ----------
    device : Device
        The device of the matrices.
    shape : tuple of int
        Of the matrices, (k, n).
    kept : list of VectorStore
        Vectors that keep their entries from iteration to iteration: permuted there and back.
    read : list of VectorStore
        Vectors that are only read: permuted there.
    x : VectorStore
        The operand of the product: it has entries only while the sweep runs, and is not permuted.
    """

    def __init__(
        self,
        device: Device,
        shape: tuple[int, int],
        kept: list[VectorStore],
        read: list[VectorStore],
        x: VectorStore,
    ) -> None:
        self._device, self._shape = device, shape
        self._kept, self._read, self._x = kept, read, x
        self._permuted: dict[int, Permuted] = {}
        self._ranks: Array = None

    @property
    def nbytes(self) -> int:
        """Bytes that `permute` allocates."""
        k, n = self._shape
        stored = [*self._kept, self._x, *(v for v in self._read if v.values is not None)]
        of_all = len(self._kept) + len(self._read) + 1 + sum(v.dtype.numpy.itemsize for v in stored)
        return k * n * of_all

    def permute(self, ordered: Ordered) -> None:
        """Make the permuted arrays, before anything else is allocated."""
        xp, (k, n) = self._device.xp, self._shape
        self._ranks = ordered.ranks
        deepest = ordered.offsets.size // k - 2
        for v in (*self._kept, *self._read, self._x):
            of_one_value = v.values is None and any(v is u for u in self._read)
            values = None if of_one_value else xp.empty(k * n, v.dtype.numpy)
            self._permuted[id(v)] = Permuted(xp.empty(k * n, np.bool_), values)
        for v in (*self._kept, *self._read):
            run = kernel("sweep/permute.cu", "to_level_order", U=v.dtype.ctype)
            self._device.launch(
                run, n, n=n, k=k, stride=stride(k), deepest=deepest, order=ordered.order,
                offsets=ordered.offsets, **v.arguments(), has=self.of(v).has, own=self.of(v).values,
            )  # fmt: skip

    def load(self) -> None:
        """Compile what `restore` launches: behind the sweep nothing may fail."""
        for v in self._kept:
            self._device.load(kernel("sweep/permute.cu", "from_level_order", U=v.dtype.ctype))

    def restore(self) -> None:
        """Write the entries of kept matrices back to their bitmaps, which must be allocated."""
        k, n = self._shape
        per = stride(k) // 32
        for v in self._kept:
            run = kernel("sweep/permute.cu", "from_level_order", U=v.dtype.ctype)
            self._device.launch(
                run, n * per * 8, n=n, k=k, per=per, ranks=self._ranks, has=self.of(v).has,
                own=self.of(v).values, words=v.words, values=v.values,
            )  # fmt: skip

    def of(self, v: VectorStore) -> Permuted:
        """Return the permuted entries of a matrix, once `permute` has run."""
        return self._permuted[id(v)]
