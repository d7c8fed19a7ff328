"""Random numbers made on a device; see `lagpu.generators.stream`."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.gpu.kernels import kernel

__all__ = ["random_words"]


def random_words(
    device: Any, key: np.ndarray[Any, Any], stream: int, first: int, count: int
) -> Any:
    """Return the numbers ``first .. first + count - 1`` of a stream, (count,), UINT32."""
    out = device.xp.empty(count, np.uint32)
    run = kernel("random/philox.cu", "random_words")
    with device.alone():
        device.launch(run, count // 8 + 1, first, count, *key, np.uint64(stream), out)
    return out
