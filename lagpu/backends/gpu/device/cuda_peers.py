"""Several GPUs of one host: whether each addresses the others' memory, and memory for that."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["own_zeros", "why_apart"]

_ENABLED_BEFORE = 704  # cudaErrorPeerAccessAlreadyEnabled


def why_apart(cupy: Any, numbers: Sequence[int]) -> str:
    """Return why GPUs cannot run one kernel together, or an empty string.

    Each then addresses the memory of the others, as far as it was allocated by `own_zeros`.

    Parameters
    ----------
    cupy : module
        CuPy.
    numbers : sequence of int
        The GPUs.
    """
    if len(set(numbers)) < len(numbers):
        return "two pieces are on one GPU, where one kernel would wait for the other to begin"
    if os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"):
        return "CUDA_LAUNCH_BLOCKING is set, so that one kernel runs at a time"
    runtime = cupy.cuda.runtime
    for one, other in itertools.permutations(numbers, 2):
        if not runtime.deviceCanAccessPeer(one, other):
            return f"GPU {one} has no access to the memory of GPU {other}"
    for one, other in itertools.permutations(numbers, 2):
        with cupy.cuda.Device(one):
            try:
                runtime.deviceEnablePeerAccess(other)
            except runtime.CUDARuntimeError as error:
                if error.status != _ENABLED_BEFORE:
                    return f"GPU {one} is refused access to the memory of GPU {other}: {error}"
    return ""


def own_zeros(cupy: Any, count: int) -> Any:
    """Return zeroed u64 of the current GPU that its peers may address once all work is done.

    Not from CuPy's pool, which a program may have replaced by one that peers have no access to.
    """
    memory = cupy.cuda.memory.Memory(8 * max(count, 1))
    made = cupy.ndarray(count, np.uint64, cupy.cuda.MemoryPointer(memory, 0))
    made.fill(0)
    return made
