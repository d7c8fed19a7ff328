"""Vectors, and matrices by columns, as stored on a device; casts of values; counters."""

from __future__ import annotations

import functools
import itertools
import operator
import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lagpu.algebra.operators import Monoid, Operator
from lagpu.backends.gpu.device.protocol import Device, HostNotification
from lagpu.backends.gpu.kernels import Kernel, Prelude, constant, kernel
from lagpu.dtypes import DType, cast, index_kind, lookup

Array = Any  # numpy.ndarray or cupy.ndarray, by the device
HostArray = np.ndarray[Any, Any]


def cast_number(number: Any, dtype: DType) -> Any:
    """Return a NumPy scalar cast as `cast_array` casts; quickly if it has the type."""
    return number if number.dtype == dtype.numpy else cast(number, dtype)


def cast_array(device: Device, array: Array, dtype: DType) -> Array:
    """Return a copy cast as GraphBLAS casts: saturating, NaN to 0, to BOOL what is not 0."""
    return device.copy_of(array) if array.dtype == dtype.numpy else _resized(device, array, dtype)


def bits(array: Array) -> Array:
    """Return floats as unsigned integers of their bits, other values as they are."""
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "f" else array


def _resized(device: Device, array: Array, dtype: DType) -> Array:
    array = device.xp.ascontiguousarray(array)
    made = device.xp.empty(array.shape, dtype.numpy)
    run = specialised("elementwise/map.cu", "cast_values", U=lookup(array.dtype), W=dtype)
    device.launch(run, array.size, array.size, array, made)
    return made


# CuPy compiles a kernel for each of the next steps, for each type, in each process without a cache:
# a tenth of a second that kernels of lagpu, shipped compiled, do not take.


def as_type(device: Device, array: Array, kind: Any) -> Array:
    """Return an array in another type; itself if it has the type."""
    kind = np.dtype(kind)
    return array if array.dtype == kind else _resized(device, array, lookup(kind))


def count_up(device: Device, count: int, kind: Any) -> Array:
    return shifted(device, None, 0, device.xp.empty(count, kind))


def shifted(device: Device, at: Array, by: int, out: Array = None) -> Array:
    """Return INT64 numbers, or for None those from 0 on, with a number added."""
    out = device.xp.empty(len(at), np.int64) if out is None else out
    device.launch(_step("count_up", T=out), len(out), len(out), by, at, out)
    return out


def fill(device: Device, out: Array, value: Any) -> Array:
    """Set all elements of an array to a number, and return it."""
    device.launch(filling(lookup(out.dtype)), out.size, out.size, out.dtype.type(value), out)
    return out


def filled(device: Device, count: int, dtype: DType, value: Any) -> Array:
    return fill(device, device.xp.empty(count, dtype.numpy), value)


def filling(dtype: DType) -> Kernel:
    return specialised("elementwise/arrays.cu", "fill_array", T=dtype)


def gather(device: Device, array: Array, at: Array, kind: Any = None) -> Array:
    """Return the elements at some places, in the type `kind` if it is given."""
    out = device.xp.empty(len(at), kind or array.dtype)
    into = out
    if out.dtype == array.dtype != bool:  # a kernel for each width, not for each type
        into, array = (x.view(f"u{x.dtype.itemsize}") for x in (out, array))
    device.launch(_step("gather", T=into, U=array, I=at), len(at), len(at), at, array, into)
    return out


def bounds(
    device: Device, rising: Array, wanted: Array | range,
    upto: bool = False, minus: Array | None = None, kind: Any = np.int64,
) -> Array:  # fmt: skip
    """Return how many elements are below each number, or `upto` it, less `minus`."""
    count, first, given = len(wanted), 0, wanted
    if isinstance(wanted, range):
        first, given = wanted.start, None
    out = device.xp.empty(count, kind)
    run = _step("bounds", T=rising, I=given, U=out)
    device.launch(run, count, count, len(rising), rising, first, given, upto, minus, out)
    return out


def pointer(device: Device, cols: Array, ncols: int) -> Array:
    """Return the column pointer of entries whose columns rise."""
    return bounds(device, cols, range(ncols + 1), kind=index_kind(len(cols)))


def found(device: Device, wanted: Array, rising: Array, complement: bool = False) -> Array:
    """Return the places of the INT64 numbers that are among others, or are not."""
    return list_bits(device, bits_of(device, wanted, rising, complement))[0]


def bits_of(device: Device, wanted: Array, rising: Array, complement: bool = False) -> Array:
    """Return a bit for each of the INT64 numbers: whether it is among others, or is not."""
    return _bits(device, "find_bits", len(wanted), wanted, len(rising), rising, complement)


def run_starts(device: Device, x: Array, y: Array | None = None) -> Array:
    """Return the places where an INT64 number, or its partner, differs from the one before."""
    return _where(device, "run_bits", len(x), x, y)


def within(device: Device, x: Array, low: int, high: int) -> Array:
    """Return the places of the numbers from `low` to before `high`."""
    return _where(device, "range_bits", len(x), x, low, high, T=x)


def _where(device: Device, name: str, count: int, *given: Any, **types: Array) -> Array:
    return list_bits(device, _bits(device, name, count, *given, **types))[0]


def _bits(device: Device, name: str, count: int, *given: Any, **types: Array) -> Array:
    words = device.xp.empty(nwords(count), np.uint32)
    device.launch(_step(name, **types), count, count, *given, words)
    return words


def list_bits(device: Device, words: Array, values: Array | None = None) -> tuple[Array, Any]:
    """Return the places of set bits, INT64, and the values there: count, scan, write."""
    xp, count = device.xp, len(words)
    groups = -(-count // constant("kGroupWords"))
    counts = xp.zeros(groups + 1, np.int64)
    if count:
        run = kernel("elementwise/bitmap.cu", "count_groups")
        device.launch(run, groups * 256, count, words, counts[1:])
    starts = device.running_sum(counts)
    indices = xp.empty(int(starts[-1]), np.int64)
    packed = None if values is None else xp.empty(len(indices), values.dtype)
    if len(indices):
        kind = None if values is None else lookup(values.dtype)
        run = specialised("elementwise/bitmap.cu", "list_bits", U=kind)
        device.launch(run, groups * 256, count, words, starts, indices, values, packed)
    return indices, packed


def last(device: Device, sums: Array) -> int:
    """Return the last of running sums, which is that of all; waits for the device."""
    return int(device.read(sums[-1:])) if len(sums) else 0


def expanded(
    device: Device, starts: Array, ends: Array, count: int | None = None
) -> tuple[Array, Array]:
    """Return (k, place) of the places from ``starts[k]`` on, ``ends[k]`` up to those of k."""
    count = last(device, ends) if count is None else count
    owner, place = (device.xp.empty(count, np.int64) for _ in range(2))
    device.launch(_step("expand"), count, count, len(ends), ends, starts, owner, place)
    return owner, place


def merged(device: Device, x: Array, y: Array) -> Array:
    """Return the numbers of two INT64 arrays that rise and share none, rising."""
    out = device.xp.empty(len(x) + len(y), np.int64)
    for own, other in ((x, y), (y, x)):
        device.launch(_step("merge"), len(own), len(own), own, len(other), other, out)
    return out


def join_positions(
    device: Device, each: int, high: Array, low: Array,
    a: Array | None = None, b: Array | None = None,
) -> Array:  # fmt: skip
    """Return ``high[a] * each + low[b]``, INT64; None has all places."""
    count = len(high if a is None else a)
    out, run = device.xp.empty(count, np.int64), _step("join_positions", T=high, U=low)
    device.launch(run, count, count, each, high, a, low, b, out)
    return out


def split_positions(device: Device, at: Array, each: int) -> tuple[Array, Array]:
    """Return the columns and the rows of positions; a column has `each` of them."""
    cols, rows = device.xp.empty(len(at), np.int64), device.xp.empty(len(at), index_kind(each))
    device.launch(_step("split_positions", T=rows), len(at), len(at), each, at, cols, rows)
    return cols, rows


def are_equal(device: Device, x: Array, y: Array) -> bool:
    differences = device.xp.zeros(1, np.uint64)
    run = specialised("elementwise/forms.cu", "count_differences", U=lookup(x.dtype))
    device.launch(run, len(x), len(x), x, y, differences)
    return not device.read(differences)


def have_equal_values(*both: tuple[VectorStore | CscMatrix, Array | None]) -> bool:
    """Whether objects with entries at the same places have equal values, packed or None for iso."""
    (x, a), (y, b) = both
    if x.nvals == 0 or (a is None and b is None):
        return x.nvals == 0 or bool(x.number == y.number)
    kind = np.result_type(x.dtype.numpy, y.dtype.numpy)
    return are_equal(x.device, *(as_type(x.device, spread(z, c), kind) for z, c in both))


def spread(x: VectorStore | CscMatrix, values: Array | None) -> Array:
    """Return packed values, a new array for None, where all have one value."""
    return values if values is not None else filled(x.device, x.nvals, x.dtype, x.number)


def _step(name: str, **arrays: Array | None) -> Kernel:
    types = {macro: x if x is None else lookup(x.dtype) for macro, x in arrays.items()}
    return specialised("elementwise/arrays.cu", name, **types)


@functools.lru_cache(maxsize=1024)
def specialised(file: str, name: str, **by: Operator | Monoid | DType | str | None) -> Kernel:
    """Return a kernel with a functor, a type or a word for each macro; None leaves one out."""
    prelude, macros = Prelude(), {}
    for macro, x in by.items():
        if isinstance(x, (Operator, Monoid)):
            macros[macro] = prelude.functor(x)
        elif x is not None:
            macros[macro] = x if isinstance(x, str) else x.ctype
    return kernel(file, name, prelude=prelude.text, **macros)


class Counters:
    """Zeroed u64 arrays; one device operation zeroes those of a whole block of memory.

    A block whose arrays nothing else holds is zeroed and reused with its array objects: a long loop
    allocates nothing, neither on the device nor on the host.
    """

    _ARRAYS = 256  # a block

    def __init__(self, device: Device) -> None:
        self.device = device
        self._blocks: dict[int, list[tuple[Array, list[Array]]]] = {}  # memory, and its arrays
        self._free: dict[int, list[Array]] = {}
        #: Words and values for the next vector of a kind, see `allocate_ahead`.
        self.ahead: dict[tuple[DType, int], tuple[Array, Array]] = {}

    def allocate_ahead(self, vectors: Sequence[VectorStore]) -> None:
        """Allocate the next buffers of such vectors, unless large, while the device works."""
        if self.are_small(vectors):
            with suppress(MemoryError):
                self.ahead = {x.kind: (x.spare_words(), x.spare_values(x.dtype)) for x in vectors}

    def are_small(self, vectors: Sequence[VectorStore]) -> bool:
        return sum([bytes_of(x.size, x.dtype) for x in vectors]) <= self.device.unasked

    def take(self, count: int = 1) -> Array:
        """Return an array of `count` zeros; a view of the array does not keep it from reuse."""
        free = self._free.get(count)
        if not free:
            free = self._free[count] = self._fresh(count)
        return free.pop()

    def _fresh(self, count: int) -> list[Array]:
        blocks = self._blocks.setdefault(count, [])
        for block, arrays in blocks:
            # references: of the list, of this loop, of getrefcount
            if all(sys.getrefcount(one) == 3 for one in arrays):
                block.fill(0)
                return arrays.copy()
        block = self.device.xp.zeros(self._ARRAYS * count, np.uint64)
        arrays = [block[k : k + count] for k in range(0, len(block), count)]
        blocks.append((block, arrays))
        return arrays.copy()


T = TypeVar("T")
STAMPS = itertools.count()


class CscMatrix:
    """A matrix by columns, which does not change; of equal values only one is kept."""

    def __init__(
        self, device: Device, dtype: DType, shape: tuple[int, int],
        col_ptr: Array, row_idx: Array, values: Array | None, iso: Any = None,
    ) -> None:  # fmt: skip
        self.device, self.dtype = device, dtype
        self.shape = shape  #: (nrows, ncols)
        self.nvals = len(row_idx)
        #: INT32 while they hold every offset and every row, else INT64; rows rise in a column.
        self.col_ptr = as_type(device, col_ptr, index_kind(self.nvals))
        self.row_idx = as_type(device, row_idx, index_kind(shape[0]))
        self.values = values  #: None if all entries have the value `iso`
        self.iso = iso
        self.symmetric: bool | None = None  #: whether it equals its transpose, once known
        self.csr: CscMatrix | None = None  #: the transpose by columns, that is, this by rows
        self.may_keep_csr = True  #: whether `csr` may be made
        self.multiplied = False  #: whether a product has run with it
        self.kernels: dict[Any, Any] = {}  #: launches, by what they were specialised for
        self.cache: dict[str, Any] = {}  #: workspaces that kernels keep between runs, by kind
        self.facts: dict[str, Any] = {}  #: properties that were computed, by name
        self.of_pattern: dict[str, Array] = {}  #: made of the index arrays, shared with these
        self.stamp = next(STAMPS)  #: changes whenever a workspace is dropped

    @property
    def number(self) -> Any:
        """`iso` as the kernels take it: any number of the type where values are stored."""
        return self.dtype.zero if self.iso is None else self.iso

    @property
    def widths(self) -> tuple[int, int]:
        return self.col_ptr.itemsize, self.row_idx.itemsize

    @property
    def nbytes(self) -> int:
        values = 0 if self.values is None else self.values.nbytes
        return int(self.col_ptr.nbytes + self.row_idx.nbytes + values)

    def arguments(self) -> dict[str, Any]:
        """Return the sizes and index arrays as kernels name them."""
        indices = {"col_ptr": self.col_ptr, "row_idx": self.row_idx}
        return {"nvals": self.nvals, "ncols": self.shape[1], **indices}

    def columns(self, begin: int = 0, end: int | None = None, kind: Any = np.int64) -> Array:
        """Return the columns of the entries from `begin` to before `end`, or of all."""
        entries = range(begin, self.nvals if end is None else end)
        return bounds(self.device, self.col_ptr[1:], entries, upto=True, kind=kind)

    def column_range(self, j: int) -> tuple[int, int]:
        first, last = self.device.to_host(self.col_ptr[j : j + 2]).tolist()
        return first, last

    def kept(self, place: str, make: Callable[[], T]) -> T:
        if place not in self.cache:
            self.cache[place] = make()
        return self.cache[place]

    def forget(self) -> None:
        """Drop the transpose, the workspaces and the launches."""
        self.csr = None
        self.cache.clear()
        self.kernels.clear()
        self.stamp = next(STAMPS)

    def fact(self, name: str, compute: Callable[[], T]) -> T:
        if name not in self.facts:
            self.facts[name] = compute()
        return self.facts[name]

    def with_values(self, dtype: DType, values: Array | None, iso: Any) -> CscMatrix:
        """Return a matrix of the same entries with other values; the index arrays are shared."""
        made = CscMatrix(self.device, dtype, self.shape, self.col_ptr, self.row_idx, values, iso)
        made.of_pattern = self.of_pattern
        return made

    def copy(self, dtype: DType) -> CscMatrix:
        """Return a copy, cast to `dtype`; index arrays, which do not change, are shared."""
        values = None if self.values is None else cast_array(self.device, self.values, dtype)
        iso = None if self.iso is None else cast_number(self.iso, dtype)
        copied = self.with_values(dtype, values, iso)
        copied.symmetric = self.symmetric or None  # a cast may make it so
        return copied


class ProductStats(NamedTuple):
    """Statistics that a product attaches to its result, for the planner of the next product."""

    matrix: weakref.ref[CscMatrix]  #: A weak reference to the matrix of the product.
    #: Whether the product pulled; not if it looked at all entries of its columns, top-down.
    pulled: bool
    #: Vertices and edges of the frontiers before this one, as far as the host knows.
    visited: int
    explored: int


class EdgeOffsets(NamedTuple):
    """The prefix sum of a frontier's degrees: its vertices, and where their edges begin."""

    #: A weak reference to the form of the matrix that has these columns.
    form: weakref.ref[CscMatrix]
    #: array: the columns, rising, and the number of matrix entries before each.
    vertex: Array
    offset: Array

    def of(self, form: CscMatrix) -> EdgeOffsets | None:
        return self if self.form() is form else None


def nwords(n: int) -> int:
    return (n + 31) // 32


def bytes_of(size: int, dtype: DType) -> int:
    """Return the bytes of presence words and values of `size` entries."""
    return 4 * nwords(size) + size * dtype.numpy.itemsize


# The contents of a vector.
_CONTENTS = (
    "form", "indices", "words", "values", "iso", "known",
    "_count", "_notification", "single", "stats", "frontier_edges", "edge_offsets",
)  # fmt: skip
_STATE = operator.attrgetter(*_CONTENTS)
_PLAIN = (None, None, -1, None, None, None)  # the second half, of a vector that no product made


def on_host(x: VectorStore | CscMatrix, values: Array | None, count: int) -> HostArray:
    """Return values on the host; for None the one value of all, `count` times."""
    return np.full(count, x.number, x.dtype.numpy) if values is None else x.device.to_host(values)


class VectorStore:
    """A vector in one of three forms.

    ``sparse`` has `indices` (INT64, rising) and `values` packed beside them; ``bitmap`` has
    `words`, a presence bit for each index, and `values` for each index; ``full`` has `values`
    alone, as every entry is there. In each form `values` is None if all entries have the one value
    `iso`: a Boolean frontier carries no values.

    `single` is the index of the only entry of a sparse vector whose list is not on the device yet,
    else -1. `stats` are those of the product that made the vector, from which the planner chooses
    the next direction. `frontier_edges` are the matrix entries in the columns of its entries, if a
    product counted them; ``edge_offsets(form)`` returns their offsets, if a product was to keep
    them or the vector is a level. What the text of a program depends on is `kind`: type and size.
    `stamp` becomes a number that no other vector had whenever the form or an array is replaced.
    """

    __slots__ = (*_CONTENTS, "counters", "device", "dtype", "kind", "size", "spare", "stamp")

    form: str
    known: int | None  #: `nvals`, if it needs no asking.

    def __init__(self, device: Device, counters: Counters, dtype: DType, size: int) -> None:
        self.device, self.counters, self.dtype, self.size = device, counters, dtype, size
        self.kind = dtype, size
        self.spare: dict[str, Array] = {}
        self.restore(("sparse", None, None, None, dtype.zero, 0, *_PLAIN))

    def state(self) -> tuple[Any, ...]:
        """Return all that `restore` needs, as long as no kernel writes to the arrays."""
        return _STATE(self)

    def restore(self, state: tuple[Any, ...]) -> None:
        """Become what the vector was when `state` returned this.

        An interrupt may come at any call. So what changes the contents calls nothing meanwhile.
        """
        (
            self.form, self.indices, self.words, self.values, self.iso, self.known,
            self._count, self._notification, self.single, self.stats, self.frontier_edges,
            self.edge_offsets,
        ) = state  # fmt: skip
        self.stamp = next(STAMPS)

    def set_sparse(self, indices: Array, values: Array | None, iso: Any = None) -> None:
        """Become this list of entries; `iso` is the value of all if `values` is None."""
        self.restore(("sparse", indices, None, values, iso, len(indices), *_PLAIN))

    def set_single(self, i: int, value: Any) -> None:
        """Become the one entry `i`; its index stays on the host until it is needed."""
        self.restore(("sparse", None, None, None, value, 1, None, None, i, None, None, None))

    def set_empty(self) -> None:
        """Become a vector without entries; buffers stay for the next result."""
        self.restore(("sparse", None, None, None, self.dtype.zero, 0, *_PLAIN))

    def set_bitmap(
        self, words: Array, values: Array | None, iso: Any, count: Array | int | None,
        notification: HostNotification | None = None, stats: ProductStats | None = None,
    ) -> None:  # fmt: skip
        """Become these presence bits; see `counted` for the counts."""
        nvals, counter = (count, None) if isinstance(count, int) else (None, count)
        made = "bitmap", None, words, values, iso, nvals
        self.restore((*made, counter, notification, -1, stats, None, None))

    def set_full(self, values: Array | None, iso: Any = None) -> None:
        """Become a vector with every entry."""
        self.restore(("full", None, None, values, iso, self.size, *_PLAIN))

    def become(self, change: Callable[..., None], *made: Any) -> None:
        """Change by a method such as `set_full`; the buffers it replaces stay for the next one."""
        spare = self.spare
        if self.form == "bitmap":
            spare = {"words": self.words}
            if self.values is not None:
                spare["values"] = self.values
        change(*made)
        self.spare = spare

    def counted(
        self, count: Array | int | None, notification: HostNotification | None = None
    ) -> None:
        """Note the number of entries: known, on the device, or (None) to be counted.

        With a notification it is two numbers: the second is `frontier_edges`.
        """
        nvals, counter = (count, None) if isinstance(count, int) else (None, count)
        self.known, self._count, self._notification = nvals, counter, notification

    def changes(self) -> None:
        """Forget counts and statistics, before a kernel writes the vector in place."""
        self.known = self._count = self._notification = None
        self.stats = self.frontier_edges = self.edge_offsets = None

    def adopt(self, other: VectorStore) -> None:
        """Become `other`; the buffers it replaces stay for the next result."""
        self.become(self.restore, _STATE(other))

    @property
    def nvals(self) -> int:
        if self.known is None:
            if self._count is None:
                self._start_count()
            count, notification = self._count, self._notification
            if notification is None:
                self.known = int(self.device.read(count))
            else:
                self.known, self.frontier_edges = self.device.wait_for(notification, count)
            self._count = self._notification = None
        return self.known

    def pending_count(self, read: Callable[[Array], Any] | None = None) -> Callable[[], int]:
        """Return a function that reads the present number of entries by `read`; only that waits."""
        if self.known is None and self._count is None:
            self._start_count()
        device, known, count = self.device, self.known, self._count
        notification = self._notification if read is None else None

        def number() -> int:
            if known is not None:
                return known
            with device.lock, device.entered():
                if notification is not None:
                    return device.wait_for(notification, count)[0]
                return int((read or device.read)(count[:1]))

        return number

    def _start_count(self) -> None:
        self._count = self.counters.take()
        self._run("count_bits", nwords(self.size), self.words, len(self.words), self._count)

    @property
    def number(self) -> Any:
        return self.dtype.zero if self.iso is None else self.iso

    def _run(self, name: str, threads: int, *args: Any, typed: bool = False) -> None:
        macros = {"U": self.dtype.ctype} if typed else {}
        self.device.launch(kernel("elementwise/bitmap.cu", name, **macros), threads, *args)

    def spare_words(self) -> Array:
        """Return uninitialised presence words, from the spare ones if there are any."""
        found, count = self.spare.pop("words", None), nwords(self.size)
        if found is None or len(found) != count:
            found = self.device.xp.empty(count, np.uint32)
        return found

    def spare_values(self, dtype: DType) -> Array:
        """Return uninitialised values for each index, from the spare ones if they fit."""
        found = self.spare.pop("values", None)
        if found is None or found.dtype != dtype.numpy or len(found) != self.size:
            found = self.device.xp.empty(self.size, dtype.numpy)
        return found

    def to_bitmap(self) -> None:
        """Take the form ``bitmap``; a full vector becomes one with all bits set."""
        if self.form == "bitmap":
            return
        count, packed, edge_offsets = self.known, self.values, self.edge_offsets
        words, values = self.spare_words(), packed
        if self.form == "full":
            self._run("set_all_bits", nwords(self.size), self.size, words)
        elif self.single >= 0:
            self._run("single_entry", nwords(self.size), self.size, self.single, words)
        else:
            words.fill(0)
            values = None if packed is None else self.spare_values(self.dtype)
            if count:
                self._upload()
                given = count, self.indices, packed, words, values
                self._run("scatter_entries", count, *given, typed=True)
        self.set_bitmap(words, values, self.iso, count)
        self.edge_offsets = edge_offsets  # of the same entries

    def _upload(self) -> None:
        """Put the index list of a sparse vector on the device, if it is not there."""
        if self.form == "sparse" and self.indices is None:
            where = [self.single] if self.known else []
            self.indices = self.device.from_host(np.array(where, np.int64))

    def to_blank(self) -> bool:
        """Take the form ``bitmap``, words and values not set; False if there are entries."""
        if self.known != 0:
            return False
        room = self.counters.ahead.pop(self.kind, None)
        words, values = room or (self.spare_words(), self.spare_values(self.dtype))
        self.restore(("bitmap", None, words, values, None, None, *_PLAIN))
        return True

    def to_writable(self) -> None:
        """Take the form ``bitmap`` with values stored, as an element-wise kernel writes it."""
        if self.form == "bitmap" and self.values is not None:
            return
        self.to_bitmap()
        if self.values is None:
            values = self.spare_values(self.dtype)
            if self.iso is not None and self.known != 0:
                fill(self.device, values, self.iso)
            self.values, self.iso, self.stamp = values, None, next(STAMPS)

    @property
    def bytes_to_write(self) -> int:
        words = 0 if self.form == "bitmap" else 4 * nwords(self.size)
        has_values = self.form == "bitmap" and self.values is not None
        return words + (0 if has_values else self.size * self.dtype.numpy.itemsize)

    def readable(self) -> tuple[Array | None, Array | None, Any]:
        """Return (words or None for full, values or None for iso, iso) for a kernel that reads."""
        if self.form == "sparse":
            self.to_bitmap()
        return self.words, self.values, self.number

    def arguments(self, prefix: str = "") -> dict[str, Any]:
        """Return what `readable` does by the names of kernels: ``words``, ``values``, ``iso``."""
        words, values, number = self.readable()
        return {f"{prefix}words": words, f"{prefix}values": values, f"{prefix}iso": number}

    @property
    def is_number(self) -> bool:
        """Whether all entries are there and have one value, which is not stored for each."""
        return self.form == "full" and self.values is None

    def listed(self) -> tuple[Array, Array | None]:
        """Return (indices, rising; packed values or None for iso) whatever the form."""
        if self.form == "sparse":
            self._upload()
            return self.indices, self.values
        if self.form == "full":
            return count_up(self.device, self.size, np.int64), self.values
        return list_bits(self.device, self.words, self.values)

    def set_values(self, packed: Array) -> None:
        """Replace the values of all entries, by index; the statistics of a product stay."""
        if self.form == "bitmap":
            at, values = list_bits(self.device, self.words)[0], self.spare_values(self.dtype)
            self._run("scatter_entries", len(at), len(at), at, packed, None, values, typed=True)
            packed = values
        else:
            self._upload()
        self.values, self.iso, self.stamp = packed, None, next(STAMPS)

    def copy_entries(self, words: Array, values: Array) -> None:
        """Take, in the form ``bitmap``, those of `values` whose bit is set in `words`."""
        self._run("copy_entries", self.size, self.size, words, values, self.values, typed=True)

    def copy(self, dtype: DType) -> VectorStore:
        """Return a copy, cast to `dtype`, in the same form."""
        made = VectorStore(self.device, self.counters, dtype, self.size)
        given = self.indices, self.words
        indices, words = (None if x is None else self.device.copy_of(x) for x in given)
        values = None if self.values is None else cast_array(self.device, self.values, dtype)
        iso = None if self.iso is None else cast_number(self.iso, dtype)
        # What a product has counted is read, since it plans the next one; no other count is.
        nvals = self.known if self._notification is None else self.nvals
        kept = self.single, self.stats, self.frontier_edges, self.edge_offsets
        made.restore((self.form, indices, words, values, iso, nvals, None, None, *kept))
        return made

    # ------------------------------------------------------------------------- single entries
    @property
    def shape(self) -> tuple[int]:
        return (self.size,)

    def get(self, i: int) -> Any:
        """Return entry `i` as a Python scalar, or None."""
        words, values, number = self.readable()
        device = self.device
        if words is not None and not int(device.read(words[i // 32 : i // 32 + 1])) >> i % 32 & 1:
            return None
        return number.item() if values is None else device.read(values[i : i + 1])

    def set(self, i: int, value: Any) -> None:
        """Set entry `i` to a NumPy scalar of the vector's type."""
        if self.form == "sparse" and self.nvals == 0:
            self.set_single(i, value)
            return
        known = self.nvals + (self.get(i) is None)
        self.to_writable()
        self.changes()
        fill(self.device, self.values[i : i + 1], value)
        at = self.device.from_host(np.array([i]))
        self._run("scatter_entries", 1, 1, at, None, self.words, None)
        self.counted(known)

    def remove(self, i: int) -> None:
        if self.get(i) is None:
            return
        known = self.nvals - 1
        self.to_bitmap()
        self.changes()
        self.words[i // 32 : i // 32 + 1] &= np.uint32(0xFFFFFFFF ^ 1 << i % 32)
        self.counted(known)

    def isequal(self, other: VectorStore) -> bool:
        """Whether a vector of the same size has the same entries with equal values."""
        if self.nvals != other.nvals:
            return False
        (i, x), (j, y) = self.listed(), other.listed()
        return are_equal(self.device, i, j) and have_equal_values((self, x), (other, y))
