"""The pieces of a grid, statements on them in step, and their sub-clusters."""

from __future__ import annotations

import collections
import functools
import inspect
import operator
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from lagpu import operations as ops
from lagpu.algebra.tables import binary
from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.storage.bitmap import MatrixHandle
from lagpu.backends.gpu.storage.stores import CscMatrix
from lagpu.backends.gpu.storage.workspaces import lengths_of, row_lengths
from lagpu.backends.grid import partition
from lagpu.backends.grid.comm import Arrays, LocalEngine, Messages, MpiEngine
from lagpu.backends.grid.partition import GridHandle, Layout, Need, Partition, Ranks, Shuffle
from lagpu.backends.protocol import Backend, Phase, Sent
from lagpu.dtypes import BOOL, FP64, DType, index_kind
from lagpu.errors import BackendMismatch, InvalidValue, LagpuError
from lagpu.host.interrupt import uninterrupted
from lagpu.host.memory import require
from lagpu.operations import Descriptor, Handle, Operation, Statement

Array = np.ndarray[Any, Any]
T = TypeVar("T")
Class = TypeVar("Class", bound=type[Any])
_MOST_GAPS = 16  # indices of a dimension for each that a vector has, to put it in order unsorted
_REDISTRIBUTED = 100  # bytes of an entry as it is listed, sorted by owner, received and stored
# Methods of the protocol that need nothing of other pieces, and change nothing.
_LOCAL = {"form", "levels", "meter", "plan_loop"}
Given = Mapping[str, Any]
NOTHING: Given = {}
Shape = tuple[int, ...]
Entries = Arrays  #: (indices, values) of a vector or (rows, columns, values) of a matrix.


# ---- One statement on all processes of a grid: done everywhere, or nowhere
def done_together(
    engine: MpiEngine, name: str, work: Callable[[], T],
    changes: Sequence[Callable[[], object]] = (), given: Given = NOTHING,
) -> T:  # fmt: skip
    """Return what `work` returns, if no process fails in it; only then the changes are made.

    Each process calls it. `work` calls collectives, and all synchronize once more after it, if it
    did or there are changes; a process where it fails reports that at the next one.
    """
    agreed = False
    engine.begin(name, given)
    try:
        found = work()
        with uninterrupted():  # an interrupt between the two would leave this process behind
            if changes or not engine.is_silent:
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
        return self.pieces.run(method.__name__, work, dict(zip(names, args, strict=False)) | kwargs)

    return run


class _Locks:
    """Several locks, one after the other; a search takes them five times."""

    __slots__ = ("_enter", "_exit")

    def __init__(self, locks: Sequence[AbstractContextManager[Any]]) -> None:
        self._enter = [lock.__enter__ for lock in locks]
        self._exit = [lock.__exit__ for lock in locks[::-1]]

    def __enter__(self) -> None:
        taken: list[object] = []
        try:  # one call: no interrupt comes between taking a lock and counting it
            taken.extend(map(operator.call, self._enter))
        except BaseException:  # an interrupt
            for leave in self._exit[len(self._exit) - len(taken) :]:
                leave(None, None, None)
            raise

    def __exit__(self, *error: object) -> None:
        left: Any = self._exit
        try:
            left = iter(left)
            for leave in left:
                leave(None, None, None)
        except BaseException:  # an interrupt, after a call
            for leave in left:
                leave(None, None, None)
            raise


class Pieces:
    """The collectives, and a local backend, its *place*, for each piece of this process.

    Several pieces may share a place. `grid` are the rows and columns of pieces, by default one
    column; indices are distributed in the `order` ``"random"``, or ``"degree"``; see `ordered`.
    """

    def __init__(
        self, engine: LocalEngine, places: Sequence[Backend],
        grid: tuple[int, int] | None = None, order: str | None = None,
    ) -> None:  # fmt: skip
        self.engine = engine
        self.places = tuple(places)
        self.devices: list[Any] = [place.device for place in places]
        local = zip(engine.local, self.places, strict=True)
        self._each = [(k, p, place) for k, (p, place) in enumerate(local)]
        self.grid = (engine.size, 1) if grid is None else grid
        # In an order that every grid has: so two grids that list devices in another order never
        # wait for each other.
        locks = [lock for _, lock in sorted({id(by.lock): by.lock for by in self.places}.items())]
        #: The lock of all places.
        self.lock: AbstractContextManager[Any] = locks[0] if len(locks) == 1 else _Locks(locks)
        large = min(getattr(place, "large", 0) for place in self.places)
        #: Vectors of fewer indices are made without the lock, and without parts.
        self.unlocked = large if engine.alone and order != "degree" else 0
        self.order = order
        #: Whether there is one piece, which has each index at its own position.
        self.are_one = engine.alone and engine.size == 1 and order is None
        self.one_kernel = False  # whether one kernel may run on all places, once that was found
        self._ranks: dict[int, Ranks] = {}  # by size
        self.numberings: dict[Partition, Any] = {}  # that programs have used
        self.windows: dict[str, Any] = {}  # of programs without a matrix
        #: What programs of a record share, by the record.
        self.programs: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._alive: weakref.WeakSet[GridHandle] = weakref.WeakSet()  # in the order of degrees
        self.watch: Callable[[int, Statement], None] | None = None  # a meter's, while it measures
        self.phases: list[Phase] = []  # of the statement that it measures
        self.since = 0.0  # the last one's end
        self._sent: dict[str, list[int]] = collections.defaultdict(list)  # bytes by form, in this
        self._changes: list[Callable[[], object]] | None = None  # of the statement that runs
        self._made = 0  # objects, in this statement

    def __iter__(self) -> Iterator[tuple[int, int, Backend]]:
        """Yield (position among the local pieces, number of the piece, place)."""
        return iter(self._each)

    def layout(self, shape: Shape) -> Layout:
        new: tuple[Shuffle | Ranks | None, ...] | None = None
        if self.order == "random":
            new = tuple(map(Shuffle, shape))
        elif self._ranks:
            new = tuple(map(self._ranks.get, shape))
        return partition.layout(shape, self.grid, new)

    def partition(self, size: int) -> Partition:
        return self.layout((size,)).dims[0]

    def all_need(self, size: int) -> Need:
        """Return the need of all of a dimension on every piece."""
        return Need(Partition(size, 1, 1), (0,) * self.engine.size)

    # ---- statements
    def run(self, name: str, work: Callable[[], T], given: Given = NOTHING) -> T:
        """Do some work of a name, `given` the same in every process, then make its changes."""
        engine = self.engine
        if not isinstance(engine, MpiEngine) or self._changes is not None:  # the latter: nested
            return work()
        self._changes, self._made = [], 0
        try:
            return done_together(engine, name, work, self._changes, given)
        finally:
            self._changes = None

    def change(self, change: Callable[[], object]) -> None:
        """Call a function that cannot fail, as soon as no process can fail any more."""
        if self._changes is None:
            change()
        else:
            self._changes.append(change)

    def note(self, given: Messages, bits: Any) -> None:
        """Count messages for a meter; bitmaps among them have the type `bits`."""
        for p, messages in zip(self.engine.local, given if self.watch else (), strict=False):
            for d, arrays in messages.items():
                nbytes = sum(array.nbytes for array in arrays)
                if d != p and nbytes:
                    self._sent["bitmap" if arrays[0].dtype == bits else "list"].append(nbytes)

    def mark(self, name: str, only_if_sent: bool = False) -> None:
        """End a phase of a statement, for a meter."""
        if self.watch is None or (only_if_sent and not self._sent):
            return
        sent = [Sent(form, len(of), sum(of)) for form, of in sorted(self._sent.items())]
        self._sent.clear()
        before, self.since = self.since, time.perf_counter()
        self.phases.append(Phase(name, (self.since - before) * 1e3, tuple(sent)))

    def execute(self, k: int, statement: Statement) -> None:
        """Run the part of a grid's statement on the place of a local piece."""
        if self.watch is None:
            self.places[k].execute(statement)
        else:
            self.watch(k, statement)

    # ---- objects
    def handle(self, parts: Any, dtype: DType, shape: Shape) -> GridHandle:
        made = GridHandle(parts, dtype, shape)
        self._made += 1
        made.number = self.engine.turn << partition.MADE_BITS | self._made
        if self.order == "degree":
            self._alive.add(made)
        return made

    def empty(self, dtype: DType, shape: Shape) -> GridHandle:
        made = self.handle(self.parts_of, dtype, shape)
        if len(shape) > 1 or shape[0] >= self.unlocked:  # for which there may be no memory
            _ = made.parts
        return made

    def parts_of(self, x: GridHandle) -> list[Handle]:
        """Return the parts of an object without entries, or of a vector that has `single`."""
        by = self.layout(x.shape)
        parts = [empty(place, x.dtype, by.shape(p)) for _, p, place in self]
        if x.single is not None:
            i, value = x.single
            owner, at = by.dims[0].located(i)
            for k, p, place in self:
                if p == owner:
                    place.vector_set(parts[k], at, value)
        return parts

    def vector_of(self, indices: Any, values: Any, dtype: DType, size: int) -> GridHandle:
        """Return the vector of entries that every process has; each piece takes its own."""
        by, parts = self.partition(size), []
        for _, p, place in self:
            where, own = None, values
            if indices is not None:
                mine = np.flatnonzero(by.owner(indices) == p)
                where = by.position(indices[mine])
                if not by.rises:
                    order = np.argsort(where)
                    mine, where = mine[order], where[order]
                own = values[mine] if np.ndim(values) else values
            elif np.ndim(values):
                own = by.taken(p, values)
            parts.append(place.vector_from_coo(where, own, dtype, by.count(p)))
        return self.handle(parts, dtype, (size,))

    def ordered(self, A: GridHandle) -> GridHandle:
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
        if self.engine.alone and self.engine.between_devices and n < _IN_KEYS:
            ranks = order_by_degree(A.parts, self.layout(A.shape))
            by = partition.layout(A.shape, self.grid, (ranks, ranks))
            made = self.handle(redistributed(self, A, by), A.dtype, A.shape)
        else:
            here = self.engine.beside * sum(place.nvals(A.parts[k]) for k, _, place in self)
            require(_REDISTRIBUTED * here + 40 * n, "grid", "Leave out the order of degrees.")
            entries = self.entries(A)
            counts = [(np.bincount(np.concatenate(at), minlength=n),) for *at, _ in entries]
            (degrees,) = self.reduced(counts, self.all_need(n), np.add)
            ranks = Ranks.of(degrees)
            by = partition.layout(A.shape, self.grid, (ranks, ranks))
            made = self.sent(entries, A.dtype, A.shape, by)
        made.symmetric = A.symmetric

        def order() -> None:
            before, self._ranks[n] = self._ranks.get(n), ranks
            if before is not None:
                before.forget()
                self.numberings.clear()

        self.change(order)
        return made

    def nvals(self, x: GridHandle) -> int:
        if x.count is not None:
            return x.count
        known: list[Any] = [getattr(part, "known", None) for part in x.parts]
        if self.engine.alone and None not in known:
            return sum(known)
        return int(self.engine.sum([place.nvals(x.parts[k]) for k, _, place in self]))

    def transpose(self, A: GridHandle) -> GridHandle:
        """Return the transpose, distributed by its own shape; the matrix remembers it."""
        if A.symmetric:
            return A
        if A.transpose is not None:
            return A.transpose
        shape = A.shape[::-1]
        if self.engine.alone and self.engine.between_devices and max(shape) < _IN_KEYS:
            parts = redistributed(self, A, self.layout(shape), transposed=True)
            made = self.handle(parts, A.dtype, shape)
        else:
            given = [(cols, rows, values) for rows, cols, values in self.entries(A)]
            made = self.sent(given, A.dtype, shape)
        self.change(lambda: setattr(A, "transpose", made))
        return made

    # ---- entries
    def entries(self, x: GridHandle) -> list[Entries]:
        """Return the entries of each local part, by global index and in the part's order."""
        by, ndim = self.layout(x.shape), len(x.shape)
        return [by.indexed(p, entries_of(place, x.parts[k], ndim)) for k, p, place in self]

    def routed(self, given: Sequence[Arrays], owners: Sequence[Array]) -> list[Arrays]:
        """Send each row of the lists to the piece in `owners`; return what local pieces receive."""
        each = zip(given, owners, strict=True)
        parts = [dict(enumerate(cut(lists, owner, self.engine.size))) for lists, owner in each]
        return [joined([*lists.values()]) for lists in self.engine.exchange(parts)]

    def sent(
        self, given: Sequence[Entries], dtype: DType, shape: Shape, by: Layout | None = None
    ) -> GridHandle:
        """Send entries to their owners; return the object of them. No two have the same index."""
        by = by or self.layout(shape)
        received = self.routed(given, [by.owner(*indices) for *indices, _ in given])
        parts = [
            from_entries(place, by.placed(received[k]), dtype, by.shape(p)) for k, p, place in self
        ]
        return self.handle(parts, dtype, shape)

    def collected(self, x: GridHandle) -> Entries:
        """Return all entries of a vector or matrix, by columns."""
        return by_columns(joined(self.engine.gather(self.entries(x))))

    def own_sums(self, given: Sequence[Arrays], need: Need, ufunc: np.ufunc) -> list[Arrays]:
        """Return, for each local piece, a reduction of values at each of its own indices.

        `given` has, for each local piece, one or several values at each position of the part that
        it needs; those of one index are reduced in the order of the pieces. Without indices of its
        own a piece has no arrays.
        """
        owners, parts = self.partition(need.by.size), []
        for p, values in zip(self.engine.local, given, strict=True):
            to = {}
            for q in range(owners.pieces):
                # A part has all indices of an owner, or none.
                if owners.count(q) and need.by.owner(owners.index(q, 0)) == need.part[p]:
                    at = need.by.position(owners.own(q))
                    to[q] = tuple(array[at] for array in values)
            parts.append(to)
        return [
            tuple(functools.reduce(ufunc, of) for of in zip(*lists.values(), strict=True))
            for lists in self.engine.exchange(parts, among=need.groups)
        ]

    def reduced(self, given: Sequence[Arrays], need: Need, ufunc: np.ufunc) -> list[Array]:
        """Return what `own_sums` does, for all indices and in every process."""
        owners = self.partition(need.by.size)
        found = [np.empty(owners.size, array.dtype) for array in given[0]]
        for p, sums in enumerate(self.engine.gather(self.own_sums(given, need, ufunc))):
            for own, array in zip(sums, found, strict=bool(sums)):
                owners.put(p, own, array)
        return found


# ---- entries of one place
def empty(place: Backend, dtype: DType, shape: Shape) -> Handle:
    if len(shape) == 1:
        return place.vector(dtype, shape[0])
    return place.matrix(dtype, cast(tuple[int, int], shape))


def computed(place: Backend, operation: Operation, dtype: DType, shape: Shape) -> Handle:
    """Return the result of an operation on one place, in a new vector or matrix."""
    out = empty(place, dtype, shape)
    place.execute(Statement(out, Descriptor(), operation, dtype))
    return out


def entries_of(place: Backend, x: Handle, ndim: int) -> Entries:
    if ndim == 1:
        return place.vector_to_coo(x)
    col_ptr, rows, values = place.matrix_to_csc(x)
    return rows, np.repeat(np.arange(len(col_ptr) - 1), np.diff(col_ptr)), values


def from_entries(place: Backend, entries: Entries, dtype: DType, shape: Shape) -> Handle:
    """Return one place's vector or matrix of distinct entries in any order."""
    *rows, indices, values = by_columns(entries)
    if not rows:
        return place.vector_from_coo(indices, values, dtype, shape[0])
    col_ptr = column_offsets(indices, shape[1])
    return place.matrix_from_csc(col_ptr, rows[0], values, dtype, cast(tuple[int, int], shape))


def column_offsets(columns: Array, count: int) -> Array:
    """Return where each of so many columns begins in entries by columns, and the last one ends."""
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(columns, minlength=count), out=offsets[1:])
    return offsets


def joined(lists: Sequence[Entries], xp: Any = np) -> Entries:
    return tuple(map(xp.concatenate, zip(*lists, strict=True)))


def cut(lists: Arrays, owner: Array, count: int) -> list[Arrays]:
    """Return the lists of each owner in ``0 .. count-1``, in their order."""
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=count))[:-1]
    return list(zip(*(np.split(array[order], ends) for array in lists), strict=True))


def on_host(array: Any) -> Any:
    """Return the caller's array, or raise if it is on a GPU: it is never copied silently."""
    if hasattr(array, "__cuda_array_interface__"):
        raise BackendMismatch("grid: the array is on a GPU. Copy it first, e.g. with cupy.asnumpy.")
    return array


def by_columns(entries: Entries) -> Entries:
    """Return distinct entries by columns, rows rising."""
    *at, _ = entries
    order = order_by_columns(*at)
    return tuple(array[order] for array in entries)


def order_by_columns(*at: Array) -> Array:
    """Return the places of distinct entries, which are at ([row,] column), by columns."""
    *rows, indices = at
    size = int(indices.max()) + 1 if len(indices) else 0
    places = np.arange(len(indices), dtype=index_kind(max(size, len(indices))))
    if rows and size:  # SciPy counts: a third of the time of a sort
        shape = int(rows[0].max()) + 1, size
        found = sp.coo_array((places, (rows[0], indices)), shape=shape).tocsc()
        found.sort_indices()
        order: Array = found.data
    elif rows or len(indices) * _MOST_GAPS < size:
        order = np.argsort(indices)
    else:  # many are there: nothing is sorted
        order = np.full(size, -1, places.dtype)
        order[indices] = places
        order = order[order >= 0]
    return order


# ---- Redistribute a matrix from device to device: its transpose, or in the order of degrees
_IN_KEYS = 2**31  # an entry is a key: 32 bits for its row, and 32 for its column
_CHUNK = 1 << 24  # entries at a time
_BYTES_IN_CHUNK = 80  # of an entry of these
_BYTES_PER_ENTRY = 40  # its key as it is given, received and sorted
_LOW = 0xFFFFFFFF


def order_by_degree(parts: Sequence[Any], by: Layout) -> Ranks:
    """Return the order of a square matrix' vertices by their entries, all parts being here."""
    n = by.dims[0].size
    counts = []
    for p, part in enumerate(parts):
        A: CscMatrix = part.csc()
        with A.device.lock, A.device.entered():
            A.device.require(56 * n, "order by degree")
            degrees = A.device.xp.zeros(n, np.int64)
            lengths = [lengths_of(A.device, ptr) for ptr in (row_lengths(A), A.col_ptr)]
            ends = by.on(A.device).index(p, *map(A.device.xp.arange, A.shape))
            for indices, of_end in zip(ends, lengths, strict=True):
                degrees[indices] += of_end
            counts.append(degrees)
    device = parts[0].csc().device
    with device.lock, device.entered():
        xp, degrees = device.xp, counts[0]
        for part, others in zip(parts[1:], counts[1:], strict=True):
            degrees += device.fetched(others, part.csc().device)
        keys = -degrees << 32  # they rise where degrees fall, and then where vertices rise
        keys |= xp.arange(n, dtype=np.int64)
        keys.sort()
        keys &= _LOW
        return Ranks(device.to_host(keys))


def redistributed(
    pieces: Pieces, A: GridHandle, after: Layout, transposed: bool = False
) -> list[Handle]:
    """Return the parts of a matrix by another layout; all are on devices of this process."""
    forms: list[CscMatrix] = [part.csc() for part in A.parts]
    before = pieces.layout(A.shape)
    numbers = {form.iso for form in forms if form.nvals}
    iso: Any = numbers.pop() if len(numbers) == 1 else None  # the one value of all entries
    given = [_keys(form, before, after, p, iso is None, transposed) for p, form in enumerate(forms)]
    received = pieces.engine.exchange(given, on_devices=True)
    given.clear()
    made = []
    for p, place in enumerate(pieces.places):
        with place.device.lock, place.device.entered():
            xp, shape = place.device.xp, after.shape(p)
            keys, *values = joined([*received.pop(0).values()], xp)
            if values:
                order = xp.argsort(keys)  # no two are the same
                keys, iso = keys[order], values[0][order]
            else:
                keys.sort()
            col_ptr = xp.searchsorted(keys, xp.arange(shape[1] + 1, dtype=np.int64) << 32)
            keys &= _LOW
            made.append(place.matrix_from_csc(col_ptr, keys.astype(np.int32), iso, A.dtype, shape))
    return made


def _keys(
    A: CscMatrix, before: Layout, after: Layout, piece: int, valued: bool, transposed: bool
) -> dict[int, Arrays]:
    """Return, for each piece, the keys of its entries: column and row by position; and values."""
    device, xp = A.device, A.device.xp
    with device.lock, device.entered():
        none = (xp.empty(0, np.int64), xp.empty(0, A.dtype.numpy))[: 1 + valued]
        lists = [[none] for _ in range(after.pieces)]
        chunk = min(A.nvals, _CHUNK)
        device.require(_BYTES_PER_ENTRY * A.nvals + _BYTES_IN_CHUNK * chunk, "redistributed")
        here, there = before.on(device), after.on(device)
        for begin in range(0, A.nvals, _CHUNK):
            at = slice(begin, min(begin + _CHUNK, A.nvals))
            positions = A.row_idx[at].astype(np.int64), A.columns(at.start, at.stop)
            indices = here.index(piece, *positions)[:: -1 if transposed else 1]
            owner, (i, j) = there.owner(*indices), there.position(*indices)
            arrays = [j << 32 | i]
            if valued:
                number = xp.full(len(i), A.number, A.dtype.numpy)
                arrays.append(number if A.values is None else A.values[at])
            for p, chunks in enumerate(lists):
                mine = owner == p
                chunks.append(tuple(array[mine] for array in arrays))
        return {p: joined(lists.pop(0), xp) for p in range(after.pieces)}  # which frees the chunks


# ---- Sub-clusters: groups of pieces with a copy of the graph each, which divide the sources.
#
# A group has some pieces of a process, or some processes. Paper: Bernaschi and others 2018,
# section 4.2.

# Bytes of a copy, roughly: an entry in both forms, and as it arrives; a vertex in the pointers
# and in the vectors of a search and its sweep.
_ENTRY, _VERTEX = 24, 120
_GIVEN = 1 << 19  # entries that a piece sends at a time, to all sub-clusters together
_COPIED = 5  # indices of an entry as it arrives and is sorted
_BLOCK = 1 << 26  # entries that are copied at a time from device to device


def cluster_size(pieces: Pieces, A: GridHandle, asked: int | None, free: int) -> int:
    """Return the pieces of a sub-cluster: `asked` for, or the fewest that fit `free` bytes each."""
    count, here = pieces.engine.size, len(pieces.engine.local)
    sizes = [d for d in range(1, here + 1) if here % d == 0]
    sizes += [here * m for m in range(2, count // here + 1) if count // here % m == 0]
    if asked is not None:
        if asked not in sizes:
            raise InvalidValue(
                f"pieces: the graph cannot be shared by {asked} of {count} pieces, "
                f"{here} per process. Use one of {', '.join(map(str, sizes))}."
            )
        return asked
    needed = _ENTRY * pieces.nvals(A) + _VERTEX * A.shape[0]
    on_host = any(device is None or device.name == "sim" for device in pieces.devices)
    # hosts may have more processes and fewer
    most = max(pieces.engine.gather_objects([pieces.engine.beside] * here))
    beside = here * most if on_host else 1
    fitting = [d for d in sizes if 2 * beside * needed // d <= free]
    return fitting[0] if fitting else count


class GridClusters:
    """Sub-clusters with pieces here, which `make` makes of `size` pieces each; see `Clusters`."""

    def __init__(
        self, pieces: Pieces, size: int, make: Callable[[LocalEngine, Sequence[Backend]], Backend]
    ) -> None:
        engine = pieces.engine
        self._pieces, self._size, self._here = pieces, size, len(engine.local)
        first, here = engine.local[0], self._here
        self.count = engine.size // size
        self.numbers: Sequence[int] = range(first // size, (first + max(here, size)) // size)
        self._group = engine.group(size) if isinstance(engine, MpiEngine) and size > here else None
        places = [pieces.places[k : k + size] for k in range(0, here, size)]
        self.backends: Sequence[Backend] = [
            group[0] if size == 1 else make(self._group or LocalEngine(size), group)
            for group in places
        ]

    @property
    def apart(self) -> bool:
        devices = self._pieces.devices
        own = None not in devices and len({id(device) for device in devices}) == len(devices)
        return own and len(self.backends) > 1

    def run(self, work: Callable[[], T]) -> T:
        return self._pieces.run("clusters", work)

    def inside(self, work: Callable[[], T]) -> T:
        if self._group is None:
            return work()
        try:
            return self._group.inside(work)
        except LagpuError as error:
            if error.process is not None:
                self._pieces.engine.barrier()  # where the process with the error reports it
            raise

    def copy(self, A: GridHandle, k: int) -> Handle:
        return self.run(lambda: self._copy(A, k))

    def _copy(self, A: GridHandle, k: int) -> Handle:
        pieces, size = self._pieces, self._size
        if size == 1 and may_gather(pieces, A):
            with pieces.lock:
                found = A.copies.get(k)
                if found is None:
                    home = self.backends[k]
                    found = on_one_device(pieces, A, home)
                    # Kept, with the workspaces of searches, if half of another one would fit.
                    if 2 * home.free_bytes() > found.csc().nbytes:
                        A.copies[k] = found
                return found
        chosen = range(self.count)
        if size <= self._here:
            chosen = range(k, self.count, len(self.numbers))
        new = tuple(map(Shuffle, A.shape)) if pieces.order == "random" and size > 1 else None
        with pieces.lock:
            own = copied(pieces, A, partition.layout(A.shape, (size, 1), new), chosen)
        shape = (A.shape[0], A.shape[1])
        symmetric = A.symmetric or None
        place, first = self.backends[k], self.numbers[k] * size
        parts = place.capabilities.parts
        if parts is None:
            return place.matrix_from_csc(*own.pop(first), np.True_, BOOL, shape, symmetric)

        def part(home: Backend, local: Any, q: int) -> Handle:
            return home.matrix_from_csc(*own.pop(first + q), np.True_, BOOL, local.shape(q))

        return self.inside(lambda: parts.matrix(part, BOOL, shape, symmetric))

    @property
    def add_up(self) -> bool:
        engine = self._pieces.engine
        return self._size == 1 and engine.alone and engine.between_devices

    def total(self, parts: Sequence[Any]) -> Handle:
        pieces = self._pieces
        if self.add_up:
            with pieces.lock:
                return self._added(parts, pieces.partition(parts[0].size))
        given = [
            (parts[p // self._size - self.numbers[0]] if p % self._size == 0 else np.zeros(0),)
            for p in pieces.engine.local
        ]
        received = [of for (of,) in pieces.engine.gather(given)][:: self._size]
        return pieces.vector_of(None, functools.reduce(np.add, received), FP64, len(received[0]))

    def _added(self, parts: Sequence[Any], by: Partition) -> Handle:
        """Return the sum of full vectors, one on the device of each piece; each adds its own."""
        made = []
        for _, p, place in self._pieces:
            total = place.vector_from_coo(None, 0.0, FP64, by.count(p))
            for v in parts:
                with v.device.lock, v.device.entered():
                    _, values, number = v.readable()
                    own = number if values is None else by.taken(p, values)
                with place.device.lock, place.device.entered():
                    if values is not None and place.device is not v.device:
                        own = place.device.fetched(own, v.device)
                    part = ops.Assign(place.vector_from_coo(None, own, FP64, by.count(p)))
                place.execute(Statement(total, Descriptor(accum=binary.plus), part, FP64))
            made.append(total)
        return self._pieces.handle(made, FP64, (by.size,))


# ---- A copy of a graph's pattern for some sub-clusters.
#
# Each piece sends the entries of its part, some at a time, to the owners in every sub-cluster.
def copied(
    pieces: Pieces, A: GridHandle, by: Layout, clusters: Sequence[int]
) -> dict[int, tuple[Array, Array]]:
    """Return the parts (col_ptr, row_idx) of a pattern's copies for local pieces, by number."""
    before, columns = pieces.layout(A.shape), by.dims[1]
    kind = index_kind(max(A.shape))
    own = [(p, *place.matrix_to_csc(A.parts[k], narrow=True)[:2]) for k, p, place in pieces]
    most = max(pieces.engine.gather_objects([len(rows) for _, _, rows in own]))
    here = [p for p in pieces.engine.local if p // by.pieces in clusters]
    share = most * pieces.engine.size * len(here) // by.pieces  # of entries, at most
    each = _COPIED * np.dtype(kind).itemsize * pieces.engine.beside
    require(each * share, "grid: a copy of the graph", "Let more pieces share one.")
    lists: dict[int, list[Arrays]] = {p: [(np.empty(0, kind),) * 2] for p in here}
    chunk = max(1, _GIVEN // len(clusters))
    for first in range(0, most, chunk):
        given = []
        for p, ptr, rows in own:
            chosen = rows[first : first + chunk]
            at = np.searchsorted(ptr, np.arange(first, first + len(chosen)), side="right") - 1
            i, j = before.index(p, chosen, at)
            where = columns.position(j).astype(kind), i.astype(kind)
            of_owner = dict(enumerate(cut(where, columns.owner(j), by.pieces)))
            given.append({c * by.pieces + q: of_owner[q] for c in clusters for q in of_owner})
        for p, messages in zip(pieces.engine.local, pieces.engine.exchange(given), strict=True):
            lists.get(p, []).extend(messages.values())
    return {p: _by_column(lists.pop(p), by.shape(p % by.pieces)) for p in here}


def _by_column(lists: list[Arrays], shape: Shape) -> tuple[Array, Array]:
    """Return (col_ptr, row_idx) of lists of columns and rows, which are emptied."""
    cols, rows = joined(lists)
    lists.clear()
    ones = np.ones(len(rows), np.int8)
    found = sp.coo_array((ones, (rows, cols)), shape=cast(Any, shape)).tocsc()
    found.sort_indices()
    return found.indptr.astype(np.int64), found.indices


# ---- A copy of a graph's pattern on one device, made of the parts on all devices of this process.
#
# Where rows are not cut a part has whole columns, so each part's row indices are copied from
# device to device, some at a time, and written where their columns are.
def may_gather(pieces: Pieces, A: GridHandle) -> bool:
    """Whether the parts of a matrix have whole columns, all on devices of this process."""
    engine = pieces.engine
    here = engine.between_devices and len(engine.local) == engine.size
    return here and pieces.layout(A.shape).dims[0].whole


def columns_of(pieces: Pieces, A: GridHandle, device: Device, piece: int) -> Any:
    by = pieces.layout(A.shape).on(device).dims[1]
    return by.index(piece, device.xp.arange(by.count(piece)))


def by_own_columns(pieces: Pieces, A: GridHandle, k: int, form: CscMatrix) -> MatrixHandle:
    """Return a part's entries in a matrix of the shape of all, or, given that, in a part."""
    device, xp, n = form.device, form.device.xp, A.shape[1]
    with device.lock, device.entered():
        columns = columns_of(pieces, A, device, pieces.engine.local[k])
        lengths = xp.diff(form.col_ptr)
        if form.shape[1] == n:
            lengths = lengths[columns]
        else:
            of_part, lengths = lengths, xp.zeros(n, np.int64)
            lengths[columns] = of_part
        col_ptr, shape = xp.zeros(len(lengths) + 1, np.int64), (A.shape[0], len(lengths))
        col_ptr[1:] = xp.cumsum(lengths)
        made = CscMatrix(device, form.dtype, shape, col_ptr, form.row_idx, form.values, form.iso)
    return MatrixHandle(made)


def on_one_device(
    pieces: Pieces, A: GridHandle, home: Backend, pattern: bool = True
) -> MatrixHandle:
    """Return a matrix that `may_gather` allows on one device, or its pattern; it takes no lock."""
    device = home.device
    parts: list[CscMatrix] = [part.csc() for part in A.parts]
    m, n = A.shape
    nvals = sum(part.nvals for part in parts)
    numbers = {part.number.item() for part in parts if part.nvals}
    iso = all(part.values is None for part in parts if part.nvals) and len(numbers) < 2
    with device.lock, device.entered():
        xp = device.xp
        width = parts[0].row_idx.dtype.itemsize
        width += 0 if pattern or iso else A.dtype.numpy.itemsize
        at_once = 24 * min(_BLOCK, nvals)
        device.require(nvals * width + 32 * n + at_once, "grid: a copy of the graph")
        columns = [columns_of(pieces, A, device, p) for p in pieces.engine.local]
        offsets = [device.fetched(part.col_ptr, part.device).astype(np.int64) for part in parts]
        col_ptr = xp.zeros(n + 1, np.int64)
        for own, ptr in zip(columns, offsets, strict=True):
            col_ptr[own + 1] = xp.diff(ptr)
        col_ptr = xp.cumsum(col_ptr)
        row_idx = xp.empty(nvals, parts[0].row_idx.dtype)
        values = None if pattern or iso else xp.empty(nvals, A.dtype.numpy)
        for part, own, ptr in zip(parts, columns, offsets, strict=True):
            ahead = col_ptr[own] - ptr[:-1]  # from an entry's place in the part to that in the copy
            for begin in range(0, part.nvals, _BLOCK):
                of = slice(begin, min(begin + _BLOCK, part.nvals))
                at = xp.arange(of.start, of.stop)
                at += ahead[xp.searchsorted(ptr, at, side="right") - 1]
                row_idx[at] = device.fetched(part.row_idx[of], part.device)
                if values is not None and part.values is not None:
                    values[at] = device.fetched(part.values[of], part.device)
                elif values is not None:
                    values[at] = part.number
        dtype, number = (BOOL, np.True_) if pattern else (A.dtype, A.dtype.zero)
        if iso and not pattern and numbers:
            number = A.dtype.numpy.type(*numbers)
        only = number if values is None else None
        made = CscMatrix(device, dtype, (m, n), col_ptr, row_idx, values, only)
        made.symmetric = A.symmetric or None
    return MatrixHandle(made)
