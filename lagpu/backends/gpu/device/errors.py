"""The errors of the libraries under a device, by lagpu's names."""

from __future__ import annotations

from typing import Any

from lagpu.backends.guard import out_of_memory
from lagpu.errors import KernelLaunchError, LagpuError

__all__ = ["launch_error", "named_error"]

_NO_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY, and cudaErrorMemoryAllocation


def named_error(device: Any, error: Exception, what: str) -> LagpuError | None:
    """Return lagpu's error for one of CuPy or NumPy, or None for any other; `what` has failed."""
    if isinstance(error, LagpuError):
        return None
    if isinstance(error, MemoryError):
        return out_of_memory(error, what, device.name)
    if isinstance(error, device.errors):
        if _lacks_memory(error):
            return out_of_memory(error, what, device.name)
        return KernelLaunchError(f"{what}: {error}. Report it as a bug.")
    return None


def launch_error(device: Any, error: Exception, kernel: Any) -> LagpuError:
    """Return lagpu's error for one of the driver, which has not begun to run a kernel."""
    if _lacks_memory(error):
        return out_of_memory(error, repr(kernel), device.name)
    return KernelLaunchError(f"{kernel!r}: {error}.")


def _lacks_memory(error: Exception) -> bool:
    """Whether the driver had none left, as for a kernel's code where other processes have it."""
    return getattr(error, "status", None) == _NO_MEMORY
