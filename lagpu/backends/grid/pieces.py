"""The pieces of this process: their local backends, statements of all processes, and entries."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

import numpy as np

from lagpu.backends.grid.comm import Arrays, Engine, MpiEngine
from lagpu.backends.grid.handles import MADE_BITS, GridHandle, GridMatrix, GridVector
from lagpu.backends.grid.partition import Layout, Partition, Ranks, Shuffle, layout
from lagpu.backends.grid.redistribute import order_by_degree, redistributed
from lagpu.backends.protocol import Backend
from lagpu.dtypes import DType
from lagpu.errors import BackendMismatch
from lagpu.host.interrupt import uninterrupted
from lagpu.host.memory import require
from lagpu.operations import Descriptor, Handle, Operation, Statement

Array = np.ndarray[Any, Any]
T = TypeVar("T")
S = TypeVar("S")
Class = TypeVar("Class", bound=type[Any])
_MOST_GAPS = 16  # indices of a dimension for each that a vector has, to put it in order unsorted
_REDISTRIBUTED = 100  # bytes of an entry as it is listed, sorted by owner, received and stored
# Methods of the protocol that need nothing of other pieces, and change nothing.
_LOCAL = {"form", "levels", "meter", "plan_loop"}
NOTHING: Mapping[str, Any] = {}
Entries = Arrays
"""(indices, values) of a vector or (rows, columns, values) of a matrix."""


# ------------------------------------------------------------------------------------------
# One statement on all processes of a grid: done everywhere, or nowhere.


class Changes:
    """The changes of a statement, made once no process can fail; see `done_together`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[Callable[[], object]] | None = None
        self._made = 0  # objects, in this statement

    def next_number(self) -> int:
        """Return the number of the next object that a statement makes; see `GridHandle`."""
        self._made += 1
        return self._engine.turn << MADE_BITS | self._made

    def make(self, change: Callable[[], object]) -> None:
        """Call a function that cannot fail, as soon as no process can fail any more."""
        if self._waiting is None:
            change()
        else:
            self._waiting.append(change)

    def run(self, name: str, work: Callable[[], T], given: Mapping[str, Any] = NOTHING) -> T:
        """Do some work of a name, with every other process, then make its changes.

        What is `given`, by name, must be the same in all of them.
        """
        engine = self._engine
        if not isinstance(engine, MpiEngine) or self._waiting is not None:  # the latter: nested
            return work()
        self._waiting, self._made = [], 0
        try:
            return done_together(engine, name, work, self._waiting, given)
        finally:
            self._waiting = None


def done_together(
    engine: MpiEngine,
    name: str,
    work: Callable[[], T],
    changes: list[Callable[[], object]],
    given: Mapping[str, Any] = NOTHING,
) -> T:
    """Return what `work` returns, if no process fails in it; only then the changes are made.

    Each process calls it. `work` calls collectives, and all synchronize once more after it; a
    process where it fails goes to the next synchronization and reports that.
    """
    agreed = False
    engine.begin(name, given)
    try:
        found = work()
        with uninterrupted():  # an interrupt between the two would leave this process behind
            engine.agree()
            agreed = True
            for change in changes:
                change()
    except BaseException as error:
        if not agreed:
            engine.fail(error)
        raise
    return found


def collective(cls: Class) -> Class:
    """Have each method of the protocol that a grid's backend defines run with every process."""
    for name, method in list(vars(cls).items()):
        shared = name in vars(Backend) and not name.startswith("_") and name not in _LOCAL
        if shared and inspect.isfunction(method):
            setattr(cls, name, _collective(method))
    return cls


def _collective(method: Callable[..., Any]) -> Callable[..., Any]:
    names = [*inspect.signature(method).parameters][1:]

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.pieces.engine.alone:
            return method(self, *args, **kwargs)
        work = functools.partial(method, self, *args, **kwargs)
        given = dict(zip(names, args, strict=False)) | kwargs
        return self.pieces.changes.run(method.__name__, work, given)

    return run


# ------------------------------------------------------------------------------------------


class Pieces:
    """The collectives, and a local backend, its *place*, for each piece of this process.

    Parameters
    ----------
    engine : Engine
        The collectives.
    places : sequence of Backend
        The local backend of each local piece; several may share one.
    grid : tuple of int, optional
        The rows and columns of pieces; by default one column of all.
    order : str, optional
        The order in which indices are distributed: ``"random"``, or ``"degree"``; see `ordered`.
    """

    def __init__(
        self,
        engine: Engine,
        places: Sequence[Backend],
        grid: tuple[int, int] | None = None,
        order: str | None = None,
    ) -> None:
        self.engine = engine
        self.places = tuple(places)
        local = zip(engine.local, self.places, strict=True)
        self._each = [(k, p, place) for k, (p, place) in enumerate(local)]
        self.changes = Changes(engine)
        self.grid = (engine.size, 1) if grid is None else grid
        # One place of each lock, in an order that every grid has: so two grids that list devices
        # in another order never wait for each other.
        locked = [by for _, by in sorted({id(by.lock): by for by in self.places}.items())]
        self.lock: AbstractContextManager[Any] = _Locks(locked)
        self.order = order
        self.one_kernel = False  # whether one kernel may run on all places, once that was found
        self._ranks: dict[int, Ranks] = {}  # by size
        self._alive: weakref.WeakSet[GridHandle] = weakref.WeakSet()  # in the order of degrees
        self.watch: Callable[[int, Statement], None] | None = None  # a meter's, while it measures

    def __iter__(self) -> Iterator[tuple[int, int, Backend]]:
        """Yield (position among the local pieces, number of the piece, place)."""
        return iter(self._each)

    def layout(self, shape: tuple[int, ...]) -> Layout:
        """Return the ownership of an object of this shape."""
        new: tuple[Shuffle | Ranks | None, ...] | None = None
        if self.order == "random":
            new = tuple(map(Shuffle, shape))
        elif self._ranks:
            new = tuple(map(self._ranks.get, shape))
        return layout(shape, self.grid, new)

    def partition(self, size: int) -> Partition:
        """Return the ownership of a vector's indices."""
        return self.layout((size,)).dims[0]

    def execute(self, k: int, statement: Statement) -> None:
        """Run the part of a grid's statement on the place of a local piece."""
        if self.watch is None:
            self.places[k].execute(statement)
        else:
            self.watch(k, statement)

    # ------------------------------------------------------------------------------ objects
    def handle(self, parts: Sequence[Handle], dtype: DType, shape: tuple[int, ...]) -> Any:
        """Return the handle of a vector or matrix of these parts."""
        made = (GridVector if len(shape) == 1 else GridMatrix)(parts, dtype, shape)
        made.number = self.changes.next_number()
        if self.order == "degree":
            self._alive.add(made)
        return made

    def empty(self, dtype: DType, shape: tuple[int, ...]) -> Any:
        """Return an empty vector or matrix."""
        by = self.layout(shape)
        parts = [empty(place, dtype, by.shape(p)) for _, p, place in self._each]
        return self.handle(parts, dtype, shape)

    def ordered(self, A: GridMatrix) -> GridMatrix:
        """Return a matrix that was just made, in the order of its vertices' degrees if that is due.

        The first square matrix of a size sets the order of all objects of this size; a later one
        does where none of these is left, which is decided by their number in all processes.
        """
        n = A.shape[0]
        if self.order != "degree" or A.shape[1] != n:
            return A
        others = sum(n in x.shape for x in self._alive if x is not A)
        if self.engine.sum([others if k == 0 else 0 for k, _, _place in self]):
            return A
        # Between devices an entry is a key of 32 bits for its row and 32 for its column.
        if self.engine.alone and self.engine.between_devices and n < 2**31:
            before = self.layout(A.shape)
            ranks = order_by_degree(A.parts, before)
            by = layout(A.shape, self.grid, (ranks, ranks))
            parts = redistributed(self.engine, self.places, A.parts, A.dtype, before, by)
            made: GridMatrix = self.handle(parts, A.dtype, A.shape)
        else:
            here = self.engine.beside * sum(place.nvals(A.parts[k]) for k, _, place in self)
            require(_REDISTRIBUTED * here + 40 * n, "grid", "Leave out the order of degrees.")
            entries = self.entries(A)
            ranks = Ranks.of(self._degrees(entries, n))
            by = layout(A.shape, self.grid, (ranks, ranks))
            made = self.sent(entries, A.dtype, A.shape, by)
        made.symmetric = A.symmetric
        self.changes.make(lambda: self._order_by(ranks))
        return made

    def _order_by(self, ranks: Ranks) -> None:
        before, self._ranks[ranks.size] = self._ranks.get(ranks.size), ranks
        if before is not None:
            before.forget()

    def _degrees(self, entries: Sequence[Entries], n: int) -> Array:
        """Return how many entries each vertex has in its row and in its column, on every piece."""
        by, given = self.partition(n), []
        for rows, cols, _ in entries:
            counts = np.bincount(rows, minlength=n) + np.bincount(cols, minlength=n)
            given.append({d: (counts[by.own(d)],) for d in range(by.pieces)})
        received = self.engine.exchange(given)
        sums = [(np.sum([of for (of,) in lists.values()], axis=0),) for lists in received]
        degrees = np.empty(n, np.int64)
        for p, (of,) in enumerate(self.engine.gather(sums)[0]):
            degrees[by.own(p)] = of
        return degrees

    # ------------------------------------------------------------------------------ entries
    def entries(self, x: GridHandle) -> list[Entries]:
        """Return the entries of each local part, by global index and in the part's order."""
        by, found = self.layout(x.shape), []
        for k, p, place in self:
            *where, values = entries_of(place, x.parts[k], len(x.shape))
            found.append((*by.index(p, *where), values))
        return found

    def routed(self, given: Sequence[Arrays], owners: Sequence[Array]) -> list[Arrays]:
        """Send each number of a list to the piece in `owners`; return what local pieces receive."""
        size = self.engine.size
        parts = [
            dict(enumerate(cut(lists, owner, size)))
            for lists, owner in zip(given, owners, strict=True)
        ]
        return [joined([*lists.values()]) for lists in self.engine.exchange(parts)]

    def sent(
        self,
        given: Sequence[Entries],
        dtype: DType,
        shape: tuple[int, ...],
        by: Layout | None = None,
    ) -> Any:
        """Return the vector or matrix of entries that any piece has; no two have the same index.

        Its layout is that of its shape, unless it is given.
        """
        by = by or self.layout(shape)
        owners = [by.owner(*indices) for *indices, _ in given]
        parts = []
        received = self.routed(given, owners)
        for (_, p, place), (*where, values) in zip(self, received, strict=True):
            entries = (*by.position(*where), values)
            parts.append(from_entries(place, entries, dtype, by.shape(p)))
        return self.handle(parts, dtype, shape)

    def collected(self, x: GridHandle) -> list[Entries]:
        """Return, for each local piece, all entries of a vector or matrix, by columns."""
        received = self.engine.gather(self.entries(x))
        return each_once(received, list(map(id, received)), lambda lists: by_columns(joined(lists)))

    def nvals(self, x: GridHandle) -> int:
        """Return the number of entries of the whole."""
        return int(self.engine.sum([place.nvals(x.parts[k]) for k, _, place in self]))

    def turned(self, A: GridMatrix) -> GridMatrix:
        """Return the transpose, distributed by its own shape; the matrix remembers it."""
        if A.symmetric:
            return A
        if A.turned is not None:
            return A.turned
        m, n = A.shape
        given = [(cols, rows, values) for rows, cols, values in self.entries(A)]
        turned: GridMatrix = self.sent(given, A.dtype, (n, m))
        self.changes.make(lambda: setattr(A, "turned", turned))
        return turned


class _Locks:
    """The locks of several places; a forked process replaces them, so they are read each time."""

    def __init__(self, places: Sequence[Backend]) -> None:
        self._places, self._backwards = list(places), [*reversed(places)]

    def __enter__(self) -> None:
        taken = 0
        try:
            for place in self._places:
                place.lock.__enter__()
                taken += 1
        except BaseException:
            for place in reversed(self._places[:taken]):
                place.lock.__exit__(None, None, None)
            raise

    def __exit__(self, *error: object) -> None:
        for place in self._backwards:
            place.lock.__exit__(None, None, None)


# ----------------------------------------------------------------------- entries of one place
def empty(place: Backend, dtype: DType, shape: tuple[int, ...]) -> Handle:
    """Return an empty vector or matrix of one place."""
    if len(shape) == 1:
        return place.vector(dtype, shape[0])
    return place.matrix(dtype, cast(tuple[int, int], shape))


def computed(place: Backend, operation: Operation, dtype: DType, shape: tuple[int, ...]) -> Handle:
    """Return the result of an operation on one place, in a new vector or matrix."""
    out = empty(place, dtype, shape)
    place.execute(Statement(out, Descriptor(), operation, dtype))
    return out


def entries_of(place: Backend, x: Handle, ndim: int) -> Entries:
    """Return the entries of one place's vector or matrix, by columns."""
    if ndim == 1:
        return place.vector_to_coo(x)
    col_ptr, rows, values = place.matrix_to_csc(x)
    return rows, np.repeat(np.arange(len(col_ptr) - 1), np.diff(col_ptr)), values


def from_entries(place: Backend, entries: Entries, dtype: DType, shape: tuple[int, ...]) -> Handle:
    """Return one place's vector or matrix of distinct entries in any order."""
    *rows, indices, values = by_columns(entries)
    if not rows:
        return place.vector_from_coo(indices, values, dtype, shape[0])
    col_ptr = np.zeros(shape[1] + 1, np.int64)
    np.cumsum(np.bincount(indices, minlength=shape[1]), out=col_ptr[1:])
    return place.matrix_from_csc(col_ptr, rows[0], values, dtype, cast(tuple[int, int], shape))


def joined(lists: Sequence[Entries]) -> Entries:
    """Return the entries of several lists as one, in their order."""
    return tuple(map(np.concatenate, zip(*lists, strict=True)))


def cut(lists: Arrays, owner: Array, count: int) -> list[Arrays]:
    """Return the lists of each owner in ``0 .. count-1``, in their order."""
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=count))[:-1]
    return list(zip(*(np.split(array[order], ends) for array in lists), strict=True))


def on_host(array: Any) -> Any:
    """Return an array of the caller on the host; one on a GPU is never copied silently."""
    if hasattr(array, "__cuda_array_interface__"):
        raise BackendMismatch("grid: the array is on a GPU. Copy it first, e.g. with cupy.asnumpy.")
    return array


def by_columns(entries: Entries) -> Entries:
    """Return distinct entries by columns, rows rising."""
    *rows, indices, _ = entries
    order = np.lexsort((*rows, indices)) if rows else _rising(indices)
    return tuple(array[order] for array in entries)


def _rising(indices: Array) -> Array:
    """Return the order in which distinct indices rise; nothing is sorted where many are there."""
    size = int(indices.max()) + 1 if len(indices) else 0
    if len(indices) * _MOST_GAPS < size:
        return np.argsort(indices)
    place: Array = np.full(size, -1, np.int32 if size < 2**31 else np.int64)
    place[indices] = np.arange(len(indices), dtype=place.dtype)
    return cast(Array, place[place >= 0])


def each_once(items: Sequence[T], keys: Sequence[Hashable], make: Callable[[T], S]) -> list[S]:
    """Return what `make` makes of each item: once for equal keys, as pieces of one process have."""
    found: dict[Hashable, S] = {}
    for item, key in zip(items, keys, strict=True):
        if key not in found:
            found[key] = make(item)
    return [found[key] for key in keys]
