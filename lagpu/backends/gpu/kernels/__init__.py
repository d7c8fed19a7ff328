"""Kernel sources: read, specialised by macros, and their signatures known."""

from lagpu.backends.gpu.kernels.source import (
    GRID_BARRIER,
    Kernel,
    Param,
    constant,
    from_source,
    kernel,
    sources_hash,
)

__all__ = ["GRID_BARRIER", "Kernel", "Param", "constant", "from_source", "kernel", "sources_hash"]
