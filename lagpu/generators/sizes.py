"""Check the sizes of graphs before anything is allocated."""

from __future__ import annotations

import operator
from typing import Any

from lagpu.errors import InvalidValue, NotSupported
from lagpu.host import memory

__all__ = ["LARGEST_SCALE", "count", "drawn", "require", "require_numbers"]

LARGEST_SCALE = 31  # vertices are numbered in 32 bits
_BYTES_PER_EDGE = 24  # peak memory, measured
_BYTES_PER_VERTEX = 60


def count(what: str, name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a number of the caller as an int, or raise if it is not whole or out of range."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidValue(f"{what}: {name} {value!r} is not a whole number.") from None
    if number < least or (most is not None and number > most):
        limit = f">= {least}" if most is None else f"in {least} .. {most}"
        raise InvalidValue(f"{what}: {name} {number} is not {limit}.")
    return number


def require(what: str, n: int, edges: int, extra: int = 0) -> None:
    """Raise if a graph of `n` vertices and at most `edges` edges, each stored twice, cannot fit."""
    memory.require(_BYTES_PER_EDGE * edges + _BYTES_PER_VERTEX * n + extra, what)
    require_numbers(what, n)


def drawn(what: str, scale: int, edge_factor: int) -> tuple[int, int]:
    """Return (vertices, edges to draw) of a random graph; the caller asks for their memory."""
    # Beyond LARGEST_SCALE the error should be OutOfMemory, so `count` allows more here.
    n = 2 ** count(what, "scale", scale, 0, 60)
    return n, n * count(what, "edge_factor", edge_factor, 1)


def require_numbers(what: str, n: int) -> None:
    """Raise if there are more vertices than numbers for them."""
    if n > 2**LARGEST_SCALE:
        raise NotSupported(f"{what}: {n} vertices > 2**31. Make a smaller graph.")
