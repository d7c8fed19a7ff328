"""The errors of the libraries under a device, by lagpu's names."""

from __future__ import annotations

from typing import Any

from lagpu.backends.guard import out_of_memory
from lagpu.errors import KernelLaunchError, LagpuError

__all__ = ["named_error"]


def named_error(device: Any, error: Exception, what: str) -> LagpuError | None:
    """Return lagpu's error for one of CuPy or NumPy, or None for any other; `what` has failed."""
    if isinstance(error, LagpuError):
        return None
    if isinstance(error, MemoryError):
        return out_of_memory(error, what, device.name)
    if isinstance(error, device.errors):
        return KernelLaunchError(f"{what}: {error}. Report it as a bug.")
    return None
