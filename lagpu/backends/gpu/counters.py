"""Zeroed numbers on a device, handed out by the thousand and used again."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from lagpu.backends.gpu.device import Device

__all__ = ["Counters"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device


class Counters:
    """Zeroed u64 arrays; a thousand numbers are zeroed by one device operation.

    A block whose arrays are all gone is zeroed and used again, so a long loop allocates nothing.
    """

    _BLOCK = 1024

    def __init__(self, device: Device) -> None:
        self._device = device
        self._blocks: list[tuple[Array, list[weakref.ref[Array]]]] = []  # with what is taken of it
        self._block: Array = None
        self._taken: list[weakref.ref[Array]] = []
        self._used = self._BLOCK

    def take(self, count: int = 1) -> Array:
        """Return `count` counters that hold 0; a part of them does not keep them."""
        first = self._used
        if first + count > self._BLOCK:
            self._block, self._taken = self._fresh()
            first = 0
        self._used = first + count
        taken = self._block[first : first + count]
        self._taken.append(weakref.ref(taken))
        return taken

    def _fresh(self) -> tuple[Array, list[weakref.ref[Array]]]:
        for block, taken in self._blocks:
            if all(one() is None for one in taken):
                block.fill(0)
                taken.clear()
                return block, taken
        self._blocks.append((self._device.xp.zeros(self._BLOCK, np.uint64), []))
        return self._blocks[-1]
