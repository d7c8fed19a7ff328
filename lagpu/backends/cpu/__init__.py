"""The cpu backend: python-graphblas."""

from lagpu.backends.cpu.backend import CpuBackend

__all__ = ["CpuBackend", "make"]


def make() -> CpuBackend:
    """Return the cpu backend."""
    return CpuBackend()
