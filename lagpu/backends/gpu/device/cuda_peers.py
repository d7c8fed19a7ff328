"""Several GPUs of one host: whether each addresses the others' memory; memory and copies."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.cuda_launch import driver

__all__ = ["fetched", "has_atomics", "own_zeros", "why_apart"]

_ATOMICS = 3  # CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED
_ENABLED_BEFORE = 704  # cudaErrorPeerAccessAlreadyEnabled


def why_apart(cupy: Any, numbers: Sequence[int], share: int = 1) -> str:
    """Return why GPUs cannot run one kernel together, or an empty string.

    Each then addresses the memory of the others, as far as it was allocated by `own_zeros`.

    Parameters
    ----------
    cupy : module
        CuPy.
    numbers : sequence of int
        The GPU of each piece.
    share : int, default 1
        How many pieces may be on one GPU, each with its share of the thread blocks.
    """
    if max(map(numbers.count, numbers)) > share:
        return "two pieces are on one GPU, where one kernel would wait for the other to begin"
    if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        return "CUDA_LAUNCH_BLOCKING is set, so that one kernel runs at a time"
    runtime, numbers = cupy.cuda.runtime, sorted(set(numbers))
    for one, other in itertools.permutations(numbers, 2):
        if not runtime.deviceCanAccessPeer(one, other):
            return f"GPU {one} has no access to the memory of GPU {other}"
        if not has_atomics(one, other):
            return f"GPU {one} has no atomic operations on the memory of GPU {other}"
    for one, other in itertools.permutations(numbers, 2):
        with cupy.cuda.Device(one):
            try:
                runtime.deviceEnablePeerAccess(other)
            except runtime.CUDARuntimeError as error:
                if error.status != _ENABLED_BEFORE:
                    return f"GPU {one} is refused access to the memory of GPU {other}: {error}"
    return ""


def has_atomics(one: int, other: int) -> bool:
    """Whether a GPU's atomic operations on the memory of another one are one step, as by NVLink."""
    found = ctypes.c_int()
    failed = driver().cuDeviceGetP2PAttribute(ctypes.byref(found), _ATOMICS, one, other)
    return not failed and bool(found.value)


def fetched(cupy: Any, array: Any, sender: int, here: int) -> Any:
    """Return a copy on the current GPU, `here`, of an array of GPU `sender`.

    By the wire between them if they are peers; else the driver takes the way by the host. Each
    GPU's stream waits for the other's, so that the array is there, and is not overwritten too soon.
    """
    if sender == here:
        return array.copy()
    stream = cupy.cuda.get_current_stream()
    with cupy.cuda.Device(sender):
        theirs = cupy.cuda.get_current_stream()
        stream.wait_event(theirs.record())
    made = cupy.empty_like(array)
    cupy.cuda.runtime.memcpyPeerAsync(
        made.data.ptr, here, array.data.ptr, sender, array.nbytes, stream.ptr
    )
    theirs.wait_event(stream.record())
    return made


def own_zeros(cupy: Any, count: int) -> Any:
    """Return zeroed u64 of the current GPU that its peers may address once all work is done.

    Not from CuPy's pool, which a program may have replaced by one that peers have no access to; the
    pool gives back what it holds unused if there is no other memory.
    """
    nbytes = 8 * max(count, 1)
    try:
        memory = cupy.cuda.memory.Memory(nbytes)
    except cupy.cuda.runtime.CUDARuntimeError:
        cupy.get_default_memory_pool().free_all_blocks()
        memory = cupy.cuda.memory.Memory(nbytes)
    made = cupy.ndarray(count, np.uint64, cupy.cuda.MemoryPointer(memory, 0))
    made.fill(0)
    return made
