"""Zeroed counters on a device, allocated in blocks and reused."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import Device

__all__ = ["Counters"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device


class Counters:
    """Zeroed u64 arrays; one device operation zeroes those of a whole block of memory.

    A block whose arrays nobody else holds is zeroed and reused with its array objects: a long loop
    allocates nothing, neither on the device nor on the host.
    """

    _ARRAYS = 256  # a block

    def __init__(self, device: Device) -> None:
        self._device = device
        self._blocks: dict[int, list[tuple[Array, list[Array]]]] = {}  # memory, and its arrays
        self._free: dict[int, list[Array]] = {}

    def take(self, count: int = 1) -> Array:
        """Return an array of `count` zeros; a view of the array does not keep it from reuse."""
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
