"""Sets of vertices and lists of numbers between the pieces of a row or of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lagpu.backends.grid.dealing import Layout, Partition
from lagpu.backends.grid.engine import Arrays
from lagpu.backends.grid.pieces import Pieces
from lagpu.backends.grid.travel import needed
from lagpu.backends.grid.travel.presence import form_of, packed, summed, unpacked
from lagpu.backends.profile import Sent

__all__ = ["COLUMN", "ROW", "Exchange"]

Array = np.ndarray[Any, Any]

COLUMN, ROW = 0, 1  # pieces with the same sources; pieces with the same targets


class Exchange:
    """Sends messages among the pieces of each row or column, and notes what was sent.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    layout : Layout
        Of the matrix.
    by : Partition
        Of the vertices.
    """

    def __init__(self, pieces: Pieces, layout: Layout, by: Partition) -> None:
        self._pieces, self._by = pieces, by
        self._groups = [needed(layout, dim).groups() for dim in (COLUMN, ROW)]
        self._mates = [
            {p: [q for q in group if q != p] for group in groups for p in group}
            for groups in self._groups
        ]
        self._noted: list[tuple[str, int]] = []

    def mates(self, piece: int, along: int) -> list[int]:
        """Return the other pieces of a piece's column or row, rising."""
        return self._mates[along][piece]

    def noted(self) -> tuple[Sent, ...]:
        """Return what was sent since the last call, by form."""
        noted, self._noted = self._noted, []
        return summed(noted)

    def sets(
        self, given: Sequence[Mapping[int, Array]], along: int, form: str, of_receiver: bool
    ) -> list[dict[int, Array]]:
        """Send each mate a set of vertices; return, by sender, what each local piece receives.

        Parameters
        ----------
        given : sequence of mapping
            For each local piece, by receiver, the positions of vertices.
        along : int
            `COLUMN` or `ROW`.
        form : str
            See `packed`.
        of_receiver : bool
            Whether the vertices, and the bits of a bitmap, are the receiver's own; else they are
            the sender's.
        """
        parts = []
        for p, lists in zip(self._pieces.engine.local, given, strict=True):
            to: dict[int, Arrays] = {}
            for d in self.mates(p, along):
                size = self._sizes(d if of_receiver else p)
                message = packed(lists[d], size[0], form, size[1])
                self._noted.append((form_of(message, size[0], form, size[1]), message.nbytes))
                to[d] = (message,)
            parts.append(to)
        received = self._lists(parts, along, 1)
        return [
            {
                s: self._unpacked(message, p if of_receiver else s, form)
                for s, (message,) in lists.items()
            }
            for p, lists in zip(self._pieces.engine.local, received, strict=True)
        ]

    def _sizes(self, piece: int) -> tuple[int, int]:
        """Return the vertices of a piece, and how many of the first ones may have edges."""
        return self._by.count(piece), self._by.used(piece)

    def _unpacked(self, message: Array, piece: int, form: str) -> Array:
        size, used = self._sizes(piece)
        return unpacked(message, size, form, used)

    def told(self, own: Sequence[Array], along: int, form: str) -> list[dict[int, Array]]:
        """Send all mates one set of own vertices of each local piece; see `sets`."""
        local = zip(self._pieces.engine.local, own, strict=True)
        given = [dict.fromkeys(self.mates(p, along), vertices) for p, vertices in local]
        return self.sets(given, along, form, of_receiver=False)

    def numbers(
        self, given: Sequence[Mapping[int, Arrays]], along: int, width: int, name: str
    ) -> list[dict[int, Arrays]]:
        """Send each mate as many lists of numbers below 2**32; return, by sender, INT64."""
        parts = []
        for p, lists in zip(self._pieces.engine.local, given, strict=True):
            short = {d: tuple(x.astype(np.uint32) for x in lists[d]) for d in self.mates(p, along)}
            self._noted += [(name, sum(x.nbytes for x in arrays)) for arrays in short.values()]
            parts.append(short)
        return [
            {s: tuple(x.astype(np.int64) for x in arrays) for s, arrays in lists.items()}
            for lists in self._lists(parts, along, width)
        ]

    def _lists(
        self, given: Sequence[Mapping[int, Arrays]], along: int, width: int
    ) -> list[dict[int, Arrays]]:
        """Send each mate `width` arrays of u32, uncounted; return, by sender, what each gets."""
        nothing = (np.zeros(0, np.uint32),) * width
        size, local = self._pieces.engine.size, self._pieces.engine.local
        parts = [[to.get(d, nothing) for d in range(size)] for to in given]
        received = self._pieces.engine.exchange(parts, self._groups[along])
        return [
            {s: one[s] for s in self.mates(p, along)}
            for p, one in zip(local, received, strict=True)
        ]

    def totals(self, numbers: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the sums over all pieces of the numbers of each local one."""
        given = [(np.array(of_piece, np.int64),) for of_piece in numbers]
        others = self._pieces.engine.size - 1
        self._noted += [("counts", counts.nbytes) for (counts,) in given for _ in range(others)]
        received = self._pieces.engine.gather(given)[0]
        return [int(total) for total in np.sum([counts for (counts,) in received], axis=0)]
