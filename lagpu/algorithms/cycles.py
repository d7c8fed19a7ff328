"""Find a cycle among parents, for the error of a graph that should have none."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["cycle_of"]


def cycle_of(parents: np.ndarray[Any, Any]) -> list[int]:
    """Return the vertices of a cycle along the edges parent -> child, or an empty list.

    Parameters
    ----------
    parents : ndarray of int, (n,)
        Parent of each vertex, -1 where there is none.

    Notes
    -----
    Pointer doubling: after k rounds `jump` is 2**k parents up; n parents up is a cycle.
    """
    n = len(parents)
    jump = np.append(np.where(parents < 0, n, parents), n)
    for _ in range(n.bit_length()):
        jump = jump[jump]
    on_cycle = jump[jump < n]
    if not on_cycle.size:
        return []
    start = int(on_cycle.min())
    cycle, v = [start], int(parents[start])
    while v != start:
        cycle.append(v)
        v = int(parents[v])
    return [start, *cycle[:0:-1]]
