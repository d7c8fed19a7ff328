"""Attributes that a product adds to its vectors: statistics, edge offsets, a pending count."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from lagpu.backends.gpu.device.protocol import Device, HostNotification
from lagpu.backends.gpu.storage.matrix import CscMatrix

__all__ = ["EdgeOffsets", "OffsetsSource", "PendingCount", "ProductStats"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device


class ProductStats(NamedTuple):
    """Statistics that a product attaches to its result: the planner of the next product reads them.

    Attributes
    ----------
    matrix : callable
        A weak reference to the matrix of the product.
    pulled : bool
        Whether the product pulled; not if it looked at all entries of its columns, top-down.
    visited, explored : int
        Vertices and edges of the frontiers before this one, as far as the host knows.
    """

    matrix: weakref.ref[CscMatrix]
    pulled: bool
    visited: int
    explored: int


class EdgeOffsets(NamedTuple):
    """The prefix sum of a frontier's degrees: its vertices, and where their edges begin.

    Attributes
    ----------
    form : callable
        A weak reference to the form of the matrix that has these columns.
    vertex, offset : array
        The columns, rising, and the number of matrix entries before each.
    """

    form: weakref.ref[CscMatrix]
    vertex: Array
    offset: Array

    def of(self, form: CscMatrix) -> EdgeOffsets | None:
        """Return these offsets if they are of the columns of `form`."""
        return self if self.form() is form else None


class OffsetsSource(Protocol):
    """An object that has the edge offsets of a vector, or computes them on demand."""

    def of(self, form: CscMatrix) -> EdgeOffsets | None:
        """Return the edge offsets for the columns of `form`, or None."""


class PendingCount:
    """A number of entries that the device may still be counting; call it for the number.

    Parameters
    ----------
    device : Device
        The device.
    known : int or None
        The number, if it is known.
    count : array of u64, or None
        Where it will be.
    notification : HostNotification or None
        Where a kernel writes it.
    read : callable, optional
        Reads `count`, instead of the device.
    """

    __slots__ = ("_count", "_device", "_known", "_notification", "_read")

    def __init__(
        self,
        device: Device,
        known: int | None,
        count: Array,
        notification: HostNotification | None = None,
        read: Callable[[Array], Any] | None = None,
    ) -> None:
        self._device, self._known, self._count = device, known, count
        self._notification, self._read = notification, read

    def __call__(self) -> int:
        """Return the number; this may wait for the device."""
        if self._known is not None:
            return self._known
        with self._device.alone():
            if self._notification is not None:
                return self._device.wait_for(self._notification, self._count)[0]
            return int((self._read or self._device.read)(self._count[:1]))
