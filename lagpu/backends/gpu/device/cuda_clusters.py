"""How many clusters of thread blocks fit on a GPU at once, which CuPy does not ask the driver."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from lagpu.backends.gpu.kernels import Kernel

__all__ = ["blocks_of_cluster", "most"]

_FIRST = 90  # compute capability that knows clusters
_BLOCKS = 8  # that every such GPU takes in one


def blocks_of_cluster(capability: int) -> int:
    """Return the thread blocks of a cluster on a GPU of a compute capability; 1 if it has none."""
    return _BLOCKS if capability >= _FIRST else 1


class _Launch(ctypes.Structure):
    """``CUlaunchConfig`` of the driver; the kernel's own text has the size of its clusters."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


@functools.cache
def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def most(function: int, kernel: Kernel, block: int, shared: int) -> int:
    """Return how many clusters of a kernel fit on the current GPU; 0 if the driver cannot tell.

    Parameters
    ----------
    function : int
        The kernel, loaded.
    kernel : Kernel
        Whose text says how many blocks a cluster has.
    block, shared : int
        Threads of a block, and bytes of the shared memory that its launch asks for.
    """
    launch = _Launch((kernel.cluster, 1, 1), (block, 1, 1), shared, None, None, 0)
    found = ctypes.c_int()
    failed = _driver().cuOccupancyMaxActiveClusters(
        ctypes.byref(found), ctypes.c_void_p(function), ctypes.byref(launch)
    )
    return 0 if failed else found.value
