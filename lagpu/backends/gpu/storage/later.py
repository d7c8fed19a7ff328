"""How many entries a vector had at some time: asked when somebody wants to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lagpu.backends.gpu.device.protocol import Device, Signal

__all__ = ["Later"]

Array = Any  # numpy.ndarray or cupy.ndarray, by the device


class Later:
    """A number of entries that the device may still be counting; call it for the number.

    Parameters
    ----------
    device : Device
        Which counts.
    known : int or None
        The number, if it is known.
    count : array of u64, or None
        Where it will be.
    signal : Signal or None
        By which a kernel tells it.
    read : callable, optional
        Reads it, in the place of the device.
    """

    __slots__ = ("_count", "_device", "_known", "_read", "_signal")

    def __init__(
        self,
        device: Device,
        known: int | None,
        count: Array,
        signal: Signal | None = None,
        read: Callable[[Array], Any] | None = None,
    ) -> None:
        self._device, self._known, self._count = device, known, count
        self._signal, self._read = signal, read

    def __call__(self) -> int:
        """Return it; this may wait for the device."""
        if self._known is not None:
            return self._known
        if self._signal is not None:
            return self._device.heed(self._signal, self._count)[0]
        return int((self._read or self._device.read)(self._count[:1]))

    @property
    def is_known(self) -> bool:
        """Whether a call would not wait, as far as one can tell."""
        return self._known is not None or (self._signal is not None and self._signal.told)
