"""Zeroed numbers on a device, handed out by the thousand and used again."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import Device

__all__ = ["Counters"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device


class Counters:
    """Zeroed u64 arrays; those of a whole block are zeroed by one device operation.

    A block whose arrays nobody else holds is zeroed and used again, arrays and all: a long loop
    allocates nothing, on the device or off it.
    """

    _ARRAYS = 256  # a block

    def __init__(self, device: Device) -> None:
        self._device = device
        self._blocks: dict[int, list[tuple[Array, list[Array]]]] = {}  # memory, and its arrays
        self._free: dict[int, list[Array]] = {}

    def take(self, count: int = 1) -> Array:
        """Return `count` counters that hold 0; a part of them does not keep them."""
        free = self._free.get(count)
        if not free:
            free = self._free[count] = self._fresh(count)
        return free.pop()

    def _fresh(self, count: int) -> list[Array]:
        blocks = self._blocks.setdefault(count, [])
        for block, arrays in blocks:
            # held by the list, by this loop, and by the question
            if all(sys.getrefcount(one) == 3 for one in arrays):
                block.fill(0)
                return arrays.copy()
        block = self._device.xp.zeros(self._ARRAYS * count, np.uint64)
        arrays = [block[k : k + count] for k in range(0, len(block), count)]
        blocks.append((block, arrays))
        return arrays.copy()
