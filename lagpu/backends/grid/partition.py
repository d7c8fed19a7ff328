"""Distributed objects: the owner of each index and entry, and the handles of their parts."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lagpu.dtypes import DType, index_kind
from lagpu.host.columns import Permutation
from lagpu.operations import Handle

Array = np.ndarray[Any, Any]

BITS = 32  # of a word
_LONGEST_BLOCK = 1024  # indices: 32 words of presence bits, which are one line of a GPU's memory
_BLOCKS_A_PIECE = 4  # at least, if the dimension has so many indices


@dataclass(frozen=True)
class Shuffle:
    """A permutation of ``0 .. size-1`` that looks random, and is computed from the size alone.

    A `Permutation` of the next power of two; what comes out beyond the size is put in again. The
    numbers are below twice the size, so that is less than once on average.
    """

    size: int

    def number(self, indices: Any) -> Any:
        """Return the new number of each index."""
        return self._walked(indices, _permutation(self.size).forward)

    def index(self, numbers: Any) -> Any:
        """Return the index that has each new number: the inverse of `number`."""
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


_NUMBERS = tuple(0x9E3779B97F4A7C15 * (k + 1) % 2**64 for k in range(4))  # one for each round


class Ranks:
    """The vertices in the order of their degrees, those without an edge last.

    The tables `indices`, the vertex of each new number, and `numbers`, the new number of each
    vertex, have 4 bytes an entry, or 8 from 2**31 vertices on.
    """

    def __init__(self, order: Array) -> None:
        self.size = len(order)
        kind = index_kind(self.size)
        self.indices: Any = order.astype(kind)
        self.numbers: Any = np.empty_like(self.indices)
        self.numbers[self.indices] = np.arange(self.size, dtype=kind)

    @classmethod
    def of(cls, degrees: Array) -> Ranks:
        """Return the order by these degrees; vertices of the same one stay in their order."""
        return cls(np.argsort(-degrees, kind="stable"))

    def number(self, indices: Any) -> Any:
        return _looked_up(self.numbers, indices)

    def index(self, numbers: Any) -> Any:
        return _looked_up(self.indices, numbers)

    def on(self, device: Any) -> Ranks:
        """Return a copy whose tables are on a device."""
        copy = object.__new__(Ranks)
        copy.size = self.size
        copy.indices, copy.numbers = map(device.from_host, (self.indices, self.numbers))
        return copy

    def forget(self) -> None:
        """Free the tables: no object is distributed by these numbers any more."""
        self.indices = self.numbers = self.indices[:0].copy()


def _looked_up(table: Any, at: Any) -> Any:
    found = table[at].astype(np.int64)
    return found if np.ndim(at) else int(found)


@dataclass(frozen=True)
class Partition:
    """Ownership of the indices of a dimension: blocks of `block`, block-cyclic over the pieces.

    Each index has one owner, and a position among the owner's indices. Indices are 64-bit. In a
    `Layout` a piece of a partition may be several pieces of the grid, or own no index.
    """

    size: int  #: Indices.
    pieces: int
    block: int  #: Indices of a block.
    new: Shuffle | Ranks | None = None  #: New numbers, by which indices are distributed.

    @property
    def rises(self) -> bool:
        """Whether the indices of a piece rise with their positions."""
        return self.new is None

    @property
    def in_words(self) -> bool:
        """Whether each block of indices fills words, so that indices are in order in these."""
        return self.new is None and self.block % BITS == 0

    @property
    def whole(self) -> bool:
        """Whether one piece has each index at its own position."""
        return self.pieces == 1 and self.new is None

    def owner(self, indices: Any) -> Any:
        """Return the piece that has each index."""
        return _over(self._number(indices), self.block) % self.pieces

    def position(self, indices: Any) -> Any:
        """Return the position of each index among those of its owner."""
        numbers = self._number(indices)
        turn, block = _over(numbers, self.block * self.pieces), _over(numbers, self.block)
        return numbers + (turn - block) * self.block

    def located(self, i: int) -> tuple[int, int]:
        """Return (owner, position) of one index."""
        block, at = divmod(i if self.new is None else self.new.number(i), self.block)
        turn, owner = divmod(block, self.pieces)
        return owner, turn * self.block + at

    def index(self, piece: int, positions: Any) -> Any:
        """Return the index at each position of a piece: the inverse of `position`."""
        others = _over(positions, self.block) * (self.pieces - 1) + piece  # blocks that are before
        numbers = positions + others * self.block
        return numbers if self.new is None else self.new.index(numbers)

    def _number(self, indices: Any) -> Any:
        return indices if self.new is None else self.new.number(indices)

    def count(self, piece: int) -> int:
        blocks, rest = divmod(self.size, self.block)
        whole = len(range(piece, blocks, self.pieces)) * self.block
        return whole + (rest if blocks % self.pieces == piece else 0)

    def own(self, piece: int) -> Array:
        first = np.arange(piece * self.block, self.size, self.pieces * self.block, dtype=np.int64)
        found: Array = (first[:, None] + np.arange(self.block)).reshape(-1)[: self.count(piece)]
        if self.new is not None:
            found = self.new.index(found)
        return found

    def taken(self, piece: int, values: Array) -> Array:
        """Return a piece's own of a value for each index, (size,), by position."""
        if self.new is not None:
            return values[self.own(piece)]
        blocks, rest = self._blocks(piece, values)
        if not rest.size:
            return blocks.copy().reshape(-1)
        return np.concatenate([blocks.reshape(-1), rest])

    def put(self, piece: int, own: Array, values: Array) -> None:
        """Put a piece's own, by position, among the values of all indices: undo `taken`."""
        if self.new is not None:
            values[self.own(piece)] = own
            return
        blocks, rest = self._blocks(piece, values)
        blocks[:] = own[: blocks.size].reshape(blocks.shape)
        rest[:] = own[blocks.size :]

    def _blocks(self, piece: int, values: Array) -> tuple[Array, Array]:
        """Return views of a piece's own values: full blocks, and the one that is cut off."""
        turn = self.block * self.pieces
        whole = self.size // turn
        blocks = values[: whole * turn].reshape(whole, self.pieces, self.block)[:, piece]
        first = whole * turn + piece * self.block
        return blocks, values[first : first + self.block]


def _over(x: Any, divisor: int) -> Any:
    """Return ``x // divisor`` of numbers that are not negative; shifts are quicker by far."""
    return x // divisor if divisor & (divisor - 1) else x >> (divisor.bit_length() - 1)


@functools.lru_cache(maxsize=1024)
def block_cyclic(size: int, pieces: int) -> Partition:
    """Return the partition of a dimension.

    A block is a power of two, at most 1024: so hubs, whose numbers are often near each other, are
    spread, and a word of presence bits has one owner. Where a piece would have fewer than four such
    blocks they are shorter, down to one index, so that small dimensions are spread as well.
    """
    most = max(1, size // (_BLOCKS_A_PIECE * pieces))
    return Partition(size, pieces, min(_LONGEST_BLOCK, 1 << (most.bit_length() - 1)))


@dataclass(frozen=True)
class Layout:
    """Ownership of the entries of a vector or a matrix: a partition of each dimension.

    With `C` parts of the rows and `R` of the columns there are `R` times `C` pieces, and piece `p`
    has part ``p // R`` of the rows and ``p % R`` of the columns. So all pieces of column ``p // R``
    of the grid have the same rows of a matrix; all of row ``p % R`` have the same columns.
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

    def indexed(self, piece: int, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a piece's entries, (positions in each dimension, values), by index."""
        *positions, values = entries
        return (*self.index(piece, *positions), values)

    def placed(self, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return entries, (indices in each dimension, values), by position at their owners."""
        *indices, values = entries
        return (*self.position(*indices), values)

    def shape(self, piece: int) -> Any:  # a tuple of as many as there are dimensions
        return self._shapes[piece]

    @functools.cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        return [
            tuple(by.count(q) for by, q in zip(self.dims, self.parts(piece), strict=True))
            for piece in range(self.pieces)
        ]

    def on(self, device: Any) -> Layout:
        """Return the same layout for indices on a device: tables of ranks are copied there."""
        ranks: dict[Any, Ranks] = {
            by.new: by.new.on(device) for by in self.dims if isinstance(by.new, Ranks)
        }
        dims = [dataclasses.replace(by, new=ranks.get(by.new, by.new)) for by in self.dims]
        return Layout(tuple(dims))


@functools.lru_cache(maxsize=1024)
def layout(
    shape: tuple[int, ...],
    grid: tuple[int, int],
    new: tuple[Shuffle | Ranks | None, ...] | None = None,
) -> Layout:
    """Return the layout of an object on R x C pieces.

    The last dimension is distributed to all pieces. If there are several columns of pieces, a
    matrix with at least half as many rows as columns is cut in both dimensions instead: a column of
    pieces has the rows, and a row of pieces has the columns, whose vector entries are with one of
    its pieces. `grid` is (R, C).

    `new` has for each dimension the new numbers by which its indices are distributed if it is cut,
    or would be if there were a second piece. `Ranks` have blocks of one index, since a block of the
    first ones would have all hubs.
    """
    R, C = grid

    def by(dim: int, parts: int, blocks: int = 1) -> Partition:
        numbering = new[dim] if new is not None and (parts > 1 or R * C == 1) else None
        block = 1 if isinstance(numbering, Ranks) else block_cyclic(shape[dim], R * C).block
        return Partition(shape[dim], parts, block * blocks, numbering)

    if len(shape) == 1:
        return Layout((by(0, R * C),))
    if C == 1 or 2 * shape[0] < shape[1]:
        return Layout((Partition(shape[0], 1, 1), by(1, R * C)))
    return Layout((by(0, C, R), by(1, R)))


@dataclass(frozen=True)
class Need:
    """What each piece needs of a dimension: the part ``part[piece]`` of the partition `by`."""

    by: Partition
    part: tuple[int, ...]

    @functools.cached_property
    def groups(self) -> list[list[int]]:
        return [[p for p, q in enumerate(self.part) if q == r] for r in range(self.by.pieces)]

    def group(self, piece: int) -> list[int]:
        """Return the pieces that need the same part as this one."""
        return self.groups[self.part[piece]]


@functools.lru_cache(maxsize=1024)
def needed(layout: Layout, dim: int) -> Need:
    """Return the need of every piece for the indices of its part of a dimension."""
    return Need(layout.dims[dim], tuple(layout.parts(p)[dim] for p in range(layout.pieces)))


MADE_BITS = 20  # of an object's number, for those that one statement makes


class GridHandle:
    """A vector or a matrix whose last dimension is distributed to the pieces."""

    __slots__ = (
        "__weakref__", "_parts", "copies", "count", "dtype", "number", "shape", "single",
        "symmetric", "transpose",
    )  # fmt: skip

    def __init__(self, parts: Any, dtype: DType, shape: tuple[int, ...]) -> None:
        self.dtype = dtype  #: Type of the values.
        self.shape = shape  #: The size of each dimension of the whole.
        #: In a job the same in every process: the statement that made the object, and its number
        #: among the objects of that statement.
        self.number = 0
        self.take(parts)

    def take(self, parts: Any) -> None:
        """Have other parts, or what makes those of an object without entries."""
        #: The entries of the whole where that needs no message: of a new object, and of one entry.
        self.count = 0 if callable(parts) else None
        #: (index, value) of the only entry of a vector that was new before, or None.
        self.single: tuple[int, Any] | None = None
        self.symmetric: bool | None = None  #: Whether the matrix equals its transpose, once known.
        self.transpose: GridHandle | None = None  #: The transpose, once an operation has needed it.
        #: The copy on each sub-cluster of one device, by its number, where there was room.
        self.copies: dict[int, Handle] = {}
        self._parts = parts

    @property
    def parts(self) -> list[Handle]:
        """For each local piece its part, a handle of its place.

        Of a vector it has the entries, of a matrix the columns that the piece owns, numbered by
        their positions there. Those of a new object are made when they are first asked for.
        """
        if callable(self._parts):
            self._parts = self._parts(self)
        return self._parts

    def become(self, other: GridHandle) -> None:
        """Take the parts of a new handle, or what makes them."""
        self.take(other._parts)

    @property
    def size(self) -> int:
        return self.shape[0]

    @property
    def kind(self) -> tuple[Any, ...]:
        return self.dtype, self.shape

    def knows(self, symmetric: bool) -> None:
        """Remember whether the matrix equals its transpose, which is then not needed."""
        self.symmetric = symmetric
        if symmetric:
            self.transpose = None


def take_all(new: Sequence[tuple[GridHandle, Any]]) -> None:
    """Have each handle take its new parts, all of them even if interrupted."""
    try:
        for x, parts in new:
            x.take(parts)
    except BaseException:  # an interrupt between two of them
        take_all(new)
        raise
