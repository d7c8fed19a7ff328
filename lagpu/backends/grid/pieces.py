"""The pieces of this process: their places, their entries by global index, and how these travel."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

import numpy as np

from lagpu.backends.grid.engine import Arrays, Engine
from lagpu.backends.grid.handles import GridHandle, GridMatrix, GridVector
from lagpu.backends.grid.partition import Partition, dealt
from lagpu.backends.grid.together import Changes
from lagpu.backends.protocol import Backend
from lagpu.dtypes import DType
from lagpu.errors import BackendMismatch
from lagpu.host.memory import require
from lagpu.operations import Descriptor, Handle, Operation, Statement

__all__ = [
    "Entries",
    "Pieces",
    "empty",
    "entries_of",
    "from_entries",
    "joined",
    "on_host",
]

Array = np.ndarray[Any, Any]
T = TypeVar("T")
S = TypeVar("S")
Entries = Arrays
"""(indices, values) of a vector or (rows, columns, values) of a matrix: the dealt ones are [-2]."""

_COLLECTED = 40  # bytes of an entry without its values, as it is received, sorted and stored


class Pieces:
    """The engine, and a place for each piece of this process.

    Parameters
    ----------
    engine : Engine
        How pieces reach each other.
    places : sequence of Backend
        The local backend on which each local piece lives; several may share one.
    """

    def __init__(self, engine: Engine, places: Sequence[Backend]) -> None:
        self.engine = engine
        self.places = tuple(places)
        self.changes = Changes(engine)
        self.watch: Callable[[int, Statement], None] | None = None  # a meter's, while it measures

    def __iter__(self) -> Iterator[tuple[int, int, Backend]]:
        """Yield (position among the local pieces, number of the piece, place)."""
        return iter(
            (k, p, place)
            for k, (p, place) in enumerate(zip(self.engine.local, self.places, strict=True))
        )

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """The lock of the first place, which is ready for a fork; other places have theirs too."""
        return self.places[0].lock

    def partition(self, size: int) -> Partition:
        """Return who has the indices of a dimension."""
        return dealt(size, self.engine.size)

    def local_shape(self, shape: tuple[int, ...], piece: int) -> tuple[int, ...]:
        """Return the shape of a piece's part."""
        return (*shape[:-1], self.partition(shape[-1]).count(piece))

    def execute(self, k: int, statement: Statement) -> None:
        """Run the part of a grid's statement on the place of a local piece."""
        if self.watch is None:
            self.places[k].execute(statement)
        else:
            self.watch(k, statement)

    # ------------------------------------------------------------------------------ objects
    def empty(self, dtype: DType, shape: tuple[int, ...]) -> Any:
        """Return an empty vector or matrix."""
        parts = [empty(place, dtype, self.local_shape(shape, p)) for _, p, place in self]
        return _handle(parts, dtype, shape)

    def evaluated(
        self, operations: Sequence[Operation], dtype: DType, shape: tuple[int, ...]
    ) -> Any:
        """Return the vector or matrix whose parts are the results of local operations."""
        out = self.empty(dtype, shape)
        for k, _, place in self:
            place.execute(Statement(out.parts[k], Descriptor(), operations[k], dtype))
        return out

    def made(self, received: Sequence[Entries], dtype: DType, shape: tuple[int, ...]) -> Any:
        """Return the vector or matrix of entries that are with their owners, in any order."""
        parts = []
        for k, p, place in self:
            *rows, indices, values = received[k]
            where = self.partition(shape[-1]).position(indices)
            entries = (*rows, where, values)
            parts.append(from_entries(place, entries, dtype, self.local_shape(shape, p)))
        return _handle(parts, dtype, shape)

    # ------------------------------------------------------------------------------ entries
    def entries(self, x: GridHandle) -> list[Entries]:
        """Return the entries of each local part, by global index and in the order of a list."""
        found = []
        for k, p, place in self:
            *rows, where, values = entries_of(place, x.parts[k], len(x.shape))
            found.append((*rows, self.partition(x.shape[-1]).index(p, where), values))
        return found

    def routed(self, given: Sequence[Entries], size: int) -> list[list[Entries]]:
        """Send entries to their owners in a dimension; the result has a list by sender."""
        parts = []
        for entries in given:
            owner = self.partition(size).owner(entries[-2])
            order = np.argsort(owner, kind="stable")
            ends = np.cumsum(np.bincount(owner, minlength=self.engine.size))[:-1]
            cut = [np.split(array[order], ends) for array in entries]
            parts.append(list(zip(*cut, strict=True)))
        return self.engine.exchange(parts)

    def sent(self, given: Sequence[Entries], dtype: DType, shape: tuple[int, ...]) -> Any:
        """Return the vector or matrix of entries that any piece has; no two have the same index."""
        return self.made(list(map(joined, self.routed(given, shape[-1]))), dtype, shape)

    def collected(self, x: GridHandle) -> list[Entries]:
        """Return, for each local piece, all entries of a vector or matrix, by columns."""
        received = self.engine.gather(self.entries(x))
        return _each_once(received, list(map(id, received)), lambda lists: _sorted(joined(lists)))

    def whole(self, x: GridHandle) -> list[Handle]:
        """Return, for each local piece, a handle of all of a vector or matrix; never written."""
        given = list(zip(self.places, self.collected(x), strict=True))
        return _each_once(
            given,
            [(id(place), id(entries)) for place, entries in given],
            lambda one: from_sorted(*one, x.dtype, x.shape),
        )

    def whole_matrix(self, A: GridMatrix, what: str) -> list[Handle]:
        """Return what `whole` returns, if it fits.

        Raises
        ------
        OutOfMemory
            If the free memory is too small for all of the matrix in each place of this process.
        """
        width = _COLLECTED + 2 * A.dtype.numpy.itemsize
        count = self.nvals(A) * len(set(map(id, self.places))) * self.engine.beside
        remedy = "The grid collects this operand on every piece: use fewer of its rows at once."
        require(width * count, what, remedy)
        return self.whole(A)

    def nvals(self, x: GridHandle) -> int:
        """Return the number of entries of the whole."""
        return int(self.engine.sum([place.nvals(x.parts[k]) for k, _, place in self]))

    def turned(self, A: GridMatrix) -> GridMatrix:
        """Return the transpose, dealt by columns as well; the matrix remembers it."""
        if A.symmetric:
            return A
        if A.turned is not None:
            return A.turned
        m, n = A.shape
        given = [(cols, rows, values) for rows, cols, values in self.entries(A)]
        turned: GridMatrix = self.sent(given, A.dtype, (n, m))
        self.changes.make(lambda: setattr(A, "turned", turned))
        return turned


# ----------------------------------------------------------------------- entries of one place
def empty(place: Backend, dtype: DType, shape: tuple[int, ...]) -> Handle:
    """Return an empty vector or matrix of one place."""
    if len(shape) == 1:
        return place.vector(dtype, shape[0])
    return place.matrix(dtype, cast(tuple[int, int], shape))


def entries_of(place: Backend, x: Handle, ndim: int) -> Entries:
    """Return the entries of one place's vector or matrix, by columns."""
    if ndim == 1:
        return place.vector_to_coo(x)
    col_ptr, rows, values = place.matrix_to_csc(x)
    return rows, np.repeat(np.arange(len(col_ptr) - 1), np.diff(col_ptr)), values


def from_entries(place: Backend, entries: Entries, dtype: DType, shape: tuple[int, ...]) -> Handle:
    """Return one place's vector or matrix of distinct entries in any order."""
    return from_sorted(place, _sorted(entries), dtype, shape)


def from_sorted(place: Backend, entries: Entries, dtype: DType, shape: tuple[int, ...]) -> Handle:
    """Return one place's vector or matrix of distinct entries by columns, rows rising."""
    *rows, indices, values = entries
    if not rows:
        return place.vector_from_coo(indices, values, dtype, shape[0])
    col_ptr = np.zeros(shape[1] + 1, np.int64)
    np.cumsum(np.bincount(indices, minlength=shape[1]), out=col_ptr[1:])
    return place.matrix_from_csc(col_ptr, rows[0], values, dtype, cast(tuple[int, int], shape))


def joined(lists: Sequence[Entries]) -> Entries:
    """Return the entries of several lists as one, in their order."""
    return tuple(map(np.concatenate, zip(*lists, strict=True)))


def on_host(array: Any) -> Any:
    """Return an array of the caller on the host; one on a GPU is never copied silently."""
    if hasattr(array, "__cuda_array_interface__"):
        raise BackendMismatch("grid: the array is on a GPU. Copy it first, e.g. with cupy.asnumpy.")
    return array


def _sorted(entries: Entries) -> Entries:
    """Return entries by columns, rows rising."""
    *rows, indices, _ = entries
    order = np.lexsort((*rows, indices))
    return tuple(array[order] for array in entries)


def _each_once(items: Sequence[T], keys: Sequence[Hashable], make: Callable[[T], S]) -> list[S]:
    """Return what `make` makes of each item: once for equal keys, as pieces of one process have."""
    found: dict[Hashable, S] = {}
    for item, key in zip(items, keys, strict=True):
        if key not in found:
            found[key] = make(item)
    return [found[key] for key in keys]


def _handle(parts: list[Handle], dtype: DType, shape: tuple[int, ...]) -> Any:
    return (GridVector if len(shape) == 1 else GridMatrix)(parts, dtype, shape)
