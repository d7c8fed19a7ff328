"""Partitions and layouts: which piece has which indices of a dimension, or of an object."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lagpu.host.columns import Permutation

Array = np.ndarray[Any, Any]

_LONGEST_RUN = 1024  # indices: 32 words of presence bits, which are one line of a GPU's memory
_RUNS_A_PIECE = 4  # at least, if the dimension has so many indices


class Partition(Protocol):
    """Who has the indices ``0 .. size-1`` of a dimension.

    Each index has one owner, and a position among the owner's indices. Indices are 64-bit. The
    owner is called a piece here; in a `Layout` it may be several pieces of the grid.

    Attributes
    ----------
    size : int
        The number of indices.
    pieces : int
        The number of pieces; some may own no index.
    rises : bool
        Whether the indices of a piece rise with their positions.
    whole : bool
        Whether one piece has each index at its own position.
    """

    @property
    def size(self) -> int:
        """See above."""

    @property
    def pieces(self) -> int:
        """See above."""

    @property
    def rises(self) -> bool:
        """See above."""

    @property
    def whole(self) -> bool:
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
        """Return all indices of a piece, by position."""

    def taken(self, piece: int, values: Array) -> Array:
        """Return a piece's own of a value for each index, (size,), by position."""

    def put(self, piece: int, own: Array, values: Array) -> None:
        """Put a piece's own, by position, among the values of all indices: undo `taken`."""

    def used(self, piece: int) -> int:
        """Return how many of a piece's first positions have vertices with edges, as far as known.

        Those behind them had none when the numbering was made.
        """


@dataclass(frozen=True)
class Dealt:
    """Runs of `run` indices, dealt to the pieces by turns. See `Partition`."""

    size: int
    pieces: int
    run: int
    rises = True

    @property
    def whole(self) -> bool:
        """See `Partition`."""
        return self.pieces == 1

    def owner(self, indices: Any) -> Any:
        """See `Partition`."""
        return _over(indices, self.run) % self.pieces

    def position(self, indices: Any) -> Any:
        """See `Partition`."""
        turn, run = _over(indices, self.run * self.pieces), _over(indices, self.run)
        return indices + (turn - run) * self.run

    def index(self, piece: int, positions: Any) -> Any:
        """See `Partition`."""
        others = _over(positions, self.run) * (self.pieces - 1) + piece  # runs that are before
        return positions + others * self.run

    def count(self, piece: int) -> int:
        """See `Partition`."""
        runs, rest = divmod(self.size, self.run)
        whole = len(range(piece, runs, self.pieces)) * self.run
        return whole + (rest if runs % self.pieces == piece else 0)

    def own(self, piece: int) -> Array:
        """See `Partition`."""
        first = np.arange(piece * self.run, self.size, self.pieces * self.run, dtype=np.int64)
        found: Array = (first[:, None] + np.arange(self.run)).reshape(-1)
        return found[: self.count(piece)]

    def taken(self, piece: int, values: Array) -> Array:
        """See `Partition`."""
        runs, rest = self._runs(piece, values)
        return np.concatenate([runs.reshape(-1), rest])

    def put(self, piece: int, own: Array, values: Array) -> None:
        """See `Partition`."""
        runs, rest = self._runs(piece, values)
        runs[:] = own[: runs.size].reshape(runs.shape)
        rest[:] = own[runs.size :]

    def _runs(self, piece: int, values: Array) -> tuple[Array, Array]:
        """Return views of a piece's own values: the runs of whole turns, and what is behind."""
        turn = self.run * self.pieces
        whole = self.size // turn
        runs = values[: whole * turn].reshape(whole, self.pieces, self.run)[:, piece]
        first = whole * turn + piece * self.run
        return runs, values[first : first + self.run]

    def used(self, piece: int) -> int:
        """See `Partition`: nothing is known."""
        return self.count(piece)


def _over(x: Any, divisor: int) -> Any:
    """Return ``x // divisor`` of numbers that are not negative; shifts are quicker by far."""
    return x // divisor if divisor & (divisor - 1) else x >> (divisor.bit_length() - 1)


@functools.lru_cache(maxsize=1024)
def dealt(size: int, pieces: int) -> Dealt:
    """Return the partition of a dimension.

    A run is a power of two, at most 1024: so hubs, whose numbers are often near each other, are
    spread, and a word of presence bits has one owner. Where a piece would have fewer than four such
    runs they are shorter, down to one index, so that small dimensions are spread as well.
    """
    most = max(1, size // (_RUNS_A_PIECE * pieces))
    return Dealt(size, pieces, min(_LONGEST_RUN, 1 << (most.bit_length() - 1)))


class Numbering(Protocol):
    """New numbers of the indices ``0 .. size-1`` of a dimension, by which these are dealt."""

    @property
    def size(self) -> int:
        """The number of indices."""

    @property
    def used(self) -> int:
        """The first so many new numbers have vertices with edges, as far as that is known."""

    def number(self, indices: Any) -> Any:
        """Return the new number of each index."""

    def index(self, numbers: Any) -> Any:
        """Return the index that has each new number: the inverse of `number`."""


@dataclass(frozen=True)
class Shuffle:
    """A permutation of ``0 .. size-1`` that looks random, and is computed from the size alone.

    A `Permutation` of the next power of two; what comes out beyond the size is put in again, so all
    sizes are served. The numbers are below twice the size, so that is less than once on average.
    """

    size: int

    @property
    def used(self) -> int:
        """See `Numbering`: nothing is known."""
        return self.size

    def number(self, indices: Any) -> Any:
        """See `Numbering`."""
        return self._walked(indices, _permutation(self.size).forward)

    def index(self, numbers: Any) -> Any:
        """See `Numbering`."""
        return self._walked(numbers, _permutation(self.size).backward)

    def _walked(self, given: Any, step: Callable[[Array], Array]) -> Any:
        found = step(np.array(given, np.uint64).reshape(-1))
        beyond = np.flatnonzero(found >= self.size)
        while len(beyond):
            again = step(found[beyond])
            found[beyond] = again
            beyond = beyond[again >= self.size]
        numbers = found.astype(np.int64).reshape(np.shape(given))
        return numbers if np.ndim(given) else int(numbers)


@functools.lru_cache(maxsize=1024)
def _permutation(size: int) -> Permutation:
    bits = max(1, (size - 1).bit_length())
    return Permutation(bits, _NUMBERS, [number | 1 for number in _NUMBERS[::-1]])


_NUMBERS = tuple(0x9E3779B97F4A7C15 * (k + 1) % 2**64 for k in range(4))  # a round has one


class Ranks:
    """The vertices in the order of their degrees, those without an edge last. See `Numbering`.

    Two tables of a number for each vertex, of 4 bytes, or 8 from 2**31 vertices on.

    Parameters
    ----------
    order : array of int, (size,)
        The vertices in this order.
    used : int
        How many have an edge.

    Attributes
    ----------
    indices, numbers : array, (size,)
        The vertex of each new number, and the new number of each vertex.
    """

    def __init__(self, order: Array, used: int) -> None:
        self.size, self.used = len(order), used
        kind = np.int32 if self.size < 2**31 else np.int64
        self.indices = order.astype(kind)
        self.numbers = np.empty_like(self.indices)
        self.numbers[self.indices] = np.arange(self.size, dtype=kind)

    @classmethod
    def of(cls, degrees: Array) -> Ranks:
        """Return the order by these degrees; vertices of the same one stay in their order."""
        return cls(np.argsort(-degrees, kind="stable"), int(np.count_nonzero(degrees)))

    def number(self, indices: Any) -> Any:
        """See `Numbering`."""
        return _looked_up(self.numbers, indices)

    def index(self, numbers: Any) -> Any:
        """See `Numbering`."""
        return _looked_up(self.indices, numbers)

    def forget(self) -> None:
        """Give back the tables: nothing is dealt by these numbers any more."""
        self.indices = self.numbers = self.indices[:0].copy()


def _looked_up(table: Array, at: Any) -> Any:
    found = table[at].astype(np.int64)
    return found if np.ndim(at) else int(found)


@dataclass(frozen=True)
class Relabelled:
    """A partition of new numbers of the indices; nobody else sees these. See `Partition`."""

    new: Numbering
    by: Dealt
    rises = whole = False

    @property
    def size(self) -> int:
        """See `Partition`."""
        return self.by.size

    @property
    def pieces(self) -> int:
        """See `Partition`."""
        return self.by.pieces

    def owner(self, indices: Any) -> Any:
        """See `Partition`."""
        return self.by.owner(self.new.number(indices))

    def position(self, indices: Any) -> Any:
        """See `Partition`."""
        return self.by.position(self.new.number(indices))

    def index(self, piece: int, positions: Any) -> Any:
        """See `Partition`."""
        return self.new.index(self.by.index(piece, positions))

    def count(self, piece: int) -> int:
        """See `Partition`."""
        return self.by.count(piece)

    def own(self, piece: int) -> Array:
        """See `Partition`."""
        found: Array = self.new.index(self.by.own(piece))
        return found

    def taken(self, piece: int, values: Array) -> Array:
        """See `Partition`."""
        return values[self.own(piece)]

    def put(self, piece: int, own: Array, values: Array) -> None:
        """See `Partition`."""
        values[self.own(piece)] = own

    def used(self, piece: int) -> int:
        """See `Partition`."""
        return dataclasses.replace(self.by, size=self.new.used).count(piece)


@dataclass(frozen=True)
class Layout:
    """Who has which entries of a vector or a matrix: a partition of each dimension.

    A part of each dimension is a piece's: with `C` parts of the rows and `R` of the columns there
    are `R` times `C` pieces, and piece `p` has part ``p // R`` of the rows and ``p % R`` of the
    columns.

    Attributes
    ----------
    dims : tuple of Partition
        The partition of each dimension.
    """

    dims: tuple[Partition, ...]

    def parts(self, piece: int) -> tuple[int, ...]:
        """Return the number of a piece's part of each dimension."""
        found: tuple[int, ...] = ()
        for by in reversed(self.dims):
            piece, part = divmod(piece, by.pieces)
            found = (part, *found)
        return found

    @property
    def pieces(self) -> int:
        """The number of pieces."""
        return math.prod(by.pieces for by in self.dims)

    def owner(self, *indices: Any) -> Any:
        """Return the piece that has each entry, from its index in each dimension."""
        found = 0
        for by, of_dim in zip(self.dims, indices, strict=True):
            found = found * by.pieces + by.owner(of_dim)
        return found

    def position(self, *indices: Any) -> tuple[Any, ...]:
        """Return the position of each entry in its owner's part, in each dimension."""
        return tuple(by.position(i) for by, i in zip(self.dims, indices, strict=True))

    def index(self, piece: int, *positions: Any) -> tuple[Any, ...]:
        """Return the index at each position of a piece, in each dimension."""
        each = zip(self.dims, self.parts(piece), positions, strict=True)
        return tuple(by.index(part, where) for by, part, where in each)

    def shape(self, piece: int) -> tuple[int, ...]:
        """Return the shape of a piece's part."""
        return self._shapes[piece]

    @functools.cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        return [
            tuple(by.count(q) for by, q in zip(self.dims, self.parts(piece), strict=True))
            for piece in range(self.pieces)
        ]


@functools.lru_cache(maxsize=1024)
def layout(
    shape: tuple[int, ...],
    grid: tuple[int, int],
    new: tuple[Numbering | None, ...] | None = None,
) -> Layout:
    """Return the layout of an object on R x C pieces.

    The last dimension is dealt to all pieces. If there are several columns of pieces, a matrix with
    at least half as many rows as columns is cut in both dimensions instead: a column of pieces has
    the rows, and a row of pieces has the columns, whose vector entries are with one of its pieces.

    Parameters
    ----------
    shape : tuple of int
        The shape of the vector or matrix.
    grid : tuple of int
        (R, C), the rows and columns of pieces.
    new : tuple of Numbering or None, optional
        For each dimension the new numbers by which its indices are dealt if it is cut, or would be
        if there were a second piece. `Ranks` are dealt one by one, since a run of the first ones
        would have all hubs.
    """
    R, C = grid

    def by(dim: int, parts: int, runs: int = 1) -> Partition:
        numbering = new[dim] if new is not None and (parts > 1 or R * C == 1) else None
        run = 1 if isinstance(numbering, Ranks) else dealt(shape[dim], R * C).run
        plain = Dealt(shape[dim], parts, run * runs)
        return plain if numbering is None else Relabelled(numbering, plain)

    if len(shape) == 1:
        return Layout((by(0, R * C),))
    if C == 1 or 2 * shape[0] < shape[1]:
        return Layout((Dealt(shape[0], 1, 1), by(1, R * C)))
    return Layout((by(0, C, R), by(1, R)))
