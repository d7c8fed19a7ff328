"""The energy of a search, read from the counter of a GPU through NVML."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from lagpu.backends.protocol import Backend
from lagpu.errors import BackendUnavailable

__all__ = ["EnergyCounter"]

#: The counter moves some ten times a second, so searches are repeated for about as long as this.
_SECONDS = 2.0


class EnergyCounter:
    """The counter of the energy that the GPU of a backend has taken, all of it, idle power too.

    Parameters
    ----------
    place : Backend
        The backend.

    Raises
    ------
    BackendUnavailable
        If the backend has no GPU, NVML's package is missing, or the GPU has no such counter.
    """

    def __init__(self, place: Backend) -> None:
        xp: Any = None if place.device is None else place.device.xp
        if not hasattr(xp, "cuda"):
            raise _unavailable(f"the {place.name} backend has no GPU")
        try:
            import pynvml
        except ImportError:
            raise _unavailable('NVML\'s package is missing: pip install "lagpu[energy]"') from None
        self._nvml: Any = pynvml
        self._synchronize = place.device.synchronize
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByPciBusId(xp.cuda.Device().pci_bus_id)
            self._read()
        except pynvml.NVMLError as error:
            raise _unavailable(f"NVML: {error}") from None

    def joules(self, run: Callable[[], int], seconds: float = _SECONDS) -> float:
        """Return the energy of a search.

        Parameters
        ----------
        run : callable
            Searches, and returns how often.
        seconds : float
            For how long it is repeated.
        """
        self._synchronize()
        begin, before, searches = time.perf_counter(), self._read(), 0
        while not searches or time.perf_counter() - begin < seconds:
            searches += run()
        self._synchronize()
        return (self._read() - before) / searches

    def _read(self) -> float:
        """Return the joules since the driver was loaded."""
        return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3


def _unavailable(why: str) -> BackendUnavailable:
    return BackendUnavailable(
        f"paper: energy cannot be read: {why}. Take a figure of times instead, as --figure 1."
    )
