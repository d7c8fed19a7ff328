"""The grid: one vector or matrix in pieces, each piece on a backend of its own."""

from collections.abc import Sequence

from lagpu.backends.grid.backend import GridBackend
from lagpu.backends.grid.local import LocalEngine
from lagpu.backends.protocol import Backend

__all__ = ["GridBackend", "make"]


def make(name: str, places: Sequence[Backend]) -> GridBackend:
    """Return the grid of a piece on each of these places, all in this process."""
    return GridBackend(name, LocalEngine(len(places)), places)
