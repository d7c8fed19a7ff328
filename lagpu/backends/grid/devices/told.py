"""The parts of a vector as messages from device to device: presence bits or lists, and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.backends.grid.dealing import Dealt, Partition, Relabelled
from lagpu.backends.grid.pieces import Pieces
from lagpu.dtypes import DType

__all__ = ["BITS", "Told", "groups_of", "heads", "run_of_turns", "told_by"]

Array = Any
BITS = 32  # of a word


class Told(NamedTuple):
    """What a piece tells of its part: presence bits or a list of indices, whichever is shorter.

    Attributes
    ----------
    is_list : bool
        Whether `where` has indices, INT64, with packed values; else presence words, with a value
        for each index.
    where : array
        As above.
    values : array or None
        None if all are `number`.
    number : NumPy scalar
        The one value, where there is one.
    nvals : int
        How many entries there are.
    """

    is_list: bool
    where: Array
    values: Array | None
    number: Any
    nvals: int

    @property
    def arrays(self) -> tuple[Array, ...]:
        """What travels."""
        return (self.where,) if self.values is None else (self.where, self.values)


def groups_of(by: Partition, part: Sequence[int]) -> list[list[int]]:
    """Return the pieces that need each part."""
    return [[p for p, q in enumerate(part) if q == r] for r in range(by.pieces)]


def run_of_turns(own: Partition, by: Partition, part: Sequence[int]) -> int:
    """Return the indices that the pieces with a part have by turns in its order; 0 if they do not.

    Parameters
    ----------
    own : Partition
        Whose entries they are.
    by : Partition
        The parts.
    part : sequence of int
        The part that each piece needs.
    """
    if isinstance(own, Relabelled) and isinstance(by, Relabelled) and own.new == by.new:
        own, by = own.by, by.by  # both deal the same new numbers
    if not isinstance(own, Dealt) or not isinstance(by, Dealt):
        return 0
    together, given = len(part) // by.pieces, list(part)
    if by.whole:
        return own.run
    if by.run == own.run * together and given == [p // together for p in range(len(part))]:
        return own.run
    if by.run == own.run and given == [p % by.pieces for p in range(len(part))]:
        return own.run
    return 0


def told_by(v: VectorStore, run: int) -> Told:
    """Return the shorter form of a part, which is kept: the next one asks for it again."""
    each = 0 if v.values is None else v.dtype.numpy.itemsize
    if run % BITS or v.nvals * (8 + each) < 4 * nwords(v.size) + each * v.size:
        indices, values = v.listed()
        return Told(True, indices, values, v.number, v.nvals)
    v.to_bitmap()
    return Told(False, v.words, v.values, v.number, v.nvals)


def heads(pieces: Pieces, own_told: list[Told], is_stored: bool, dtype: DType) -> list[Told] | None:
    """Return what every piece tells, without the arrays of other processes.

    None if some piece has no such part, which all processes learn alike.
    """
    if pieces.engine.alone:
        return own_told if is_stored else None
    given = [
        (np.array([m.is_list, m.nvals, is_stored], np.int64), np.array([m.number], dtype.numpy))
        for m in own_told
    ]
    absent = (np.zeros(3, np.int64), np.zeros(1, dtype.numpy))
    given += [absent] * (len(pieces.engine.local) - len(given))
    found = pieces.engine.gather(given)[0]
    if not all(head[2] for head, _ in found):
        return None
    return [Told(bool(head[0]), None, None, number[0], int(head[1])) for head, number in found]
