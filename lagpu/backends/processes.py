"""What each process of a backend has for itself, told to all of them."""

from __future__ import annotations

import numpy as np

from lagpu.backends.protocol import Backend

__all__ = ["of_all"]


def of_all(backend: Backend, *numbers: float) -> list[list[float]]:
    """Return the numbers that each process of a backend has, in one order, the same in all.

    Every process calls it, with as many numbers. Where one decides by what it alone knows, as its
    clock, its free memory or a number that it has drawn, others may decide otherwise, and then wait
    for what it does not do.
    """
    parts = backend.capabilities.parts
    if parts is None or len(parts.homes) == parts.count:
        return [list(numbers)]
    mine = np.array(numbers)
    return [its.tolist() for (its,) in parts.gather(lambda _home, _piece: (mine,))]
