"""The cpu backend: python-graphblas."""

from lagpu.backends.cpu.backend import CpuBackend

__all__ = ["CpuBackend"]
