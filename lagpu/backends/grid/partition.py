"""Partitions: which piece has which index of a dimension, and where."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

__all__ = ["Dealt", "Partition", "dealt"]

Array = np.ndarray[Any, Any]

_LONGEST_RUN = 1024  # indices: 32 words of presence bits, which are one line of a GPU's memory
_RUNS_A_PIECE = 4  # at least, if the dimension has so many indices


class Partition(Protocol):
    """Who has the indices ``0 .. size-1`` of a dimension.

    Each index has one owner, and a position among the owner's indices, which rise with their
    positions. Indices are 64-bit.

    Attributes
    ----------
    size : int
        The number of indices.
    pieces : int
        The number of pieces; some may own no index.
    """

    @property
    def size(self) -> int:
        """See above."""

    @property
    def pieces(self) -> int:
        """See above."""

    def owner(self, indices: Any) -> Any:
        """Return the piece that has each index."""

    def position(self, indices: Any) -> Any:
        """Return the position of each index among those of its owner."""

    def index(self, piece: int, positions: Any) -> Any:
        """Return the index at each position of a piece: the inverse of `position`."""

    def count(self, piece: int) -> int:
        """Return the number of indices that a piece has."""

    def own(self, piece: int) -> Array:
        """Return all indices of a piece, rising."""


@dataclass(frozen=True)
class Dealt:
    """Runs of `run` indices, dealt to the pieces by turns. See `Partition`."""

    size: int
    pieces: int
    run: int

    def owner(self, indices: Any) -> Any:
        """See `Partition`."""
        return indices // self.run % self.pieces

    def position(self, indices: Any) -> Any:
        """See `Partition`."""
        return indices // (self.run * self.pieces) * self.run + indices % self.run

    def index(self, piece: int, positions: Any) -> Any:
        """See `Partition`."""
        return (positions // self.run * self.pieces + piece) * self.run + positions % self.run

    def count(self, piece: int) -> int:
        """See `Partition`."""
        runs, rest = divmod(self.size, self.run)
        whole = len(range(piece, runs, self.pieces)) * self.run
        return whole + (rest if runs % self.pieces == piece else 0)

    def own(self, piece: int) -> Array:
        """See `Partition`."""
        found: Array = self.index(piece, np.arange(self.count(piece), dtype=np.int64))
        return found


@functools.lru_cache(maxsize=1024)
def dealt(size: int, pieces: int) -> Dealt:
    """Return the partition of a dimension.

    A run is a power of two, at most 1024: so hubs, whose numbers are often near each other, are
    spread, and a word of presence bits has one owner. Where a piece would have fewer than four such
    runs they are shorter, down to one index, so that small dimensions are spread as well.
    """
    most = max(1, size // (_RUNS_A_PIECE * pieces))
    return Dealt(size, pieces, min(_LONGEST_RUN, 1 << (most.bit_length() - 1)))
