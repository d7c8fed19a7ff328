"""Bitmap matrices, the handle of a matrix in any form, and the levels of a search."""

from __future__ import annotations

import operator
import weakref
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.kernels import constant, kernel
from lagpu.backends.gpu.storage import stores
from lagpu.backends.gpu.storage.stores import Counters, CscMatrix, HostArray, VectorStore
from lagpu.dtypes import BOOL, DType, index_kind

Array = Any  # numpy.ndarray or cupy.ndarray, by the device
MOST_ROWS = constant("kMostRows")


def stride(nrows: int) -> int:
    """Return the positions a column takes: whole 32-bit words, or pairs of them past 32 rows."""
    return 32 if nrows <= 32 else -(-nrows // 64) * 64


def words_of(nrows: int) -> tuple[str, int]:
    """Return the type of the words that products of bits take, and how many a column has."""
    each = stride(nrows)
    return ("u32", 1) if each == 32 else ("u64", each // 64)


def bytes_of(dtype: DType, shape: tuple[int, int], wide: int = 2) -> int | None:
    """Return the bytes of a bitmap matrix of this shape; None without `wide` times more columns."""
    k, n = shape
    if not 1 <= k <= MOST_ROWS or n < wide * k:
        return None
    return n * stride(k) * dtype.numpy.itemsize + n * stride(k) // 8


def fits(device: Device, dtype: DType, shape: tuple[int, int], wide: int = 2) -> bool:
    """Whether a matrix of this shape may be a bitmap: `wide`, and bits and values fit four times.

    One copy in the memory pool is enough: asking the driver costs more than a level of a search.
    """
    needed = bytes_of(dtype, shape, wide)
    if needed is None:
        return False
    small = needed <= 1 << 25 or needed <= device.pooled_bytes()
    return small or 4 * needed <= device.free_bytes()


def require(device: Device, shape: tuple[int, int], dtype: DType | None, what: str) -> None:
    """Raise OutOfMemory unless the bits of a bitmap matrix fit, and with a type its values."""
    size = stride(shape[0]) * shape[1]
    values = 0 if dtype is None else size * dtype.numpy.itemsize
    device.require(size // 8 + values, what, "Take fewer rows at a time.")


class BitmapMatrix:
    """A matrix stored position by position. It is changed in place, so nothing else may hold it.

    Entry (i, j) is at ``j * stride(k) + i`` of `entries`; the positions past k are empty. `alive`,
    if not None, has a bit for each row with entries, 32 or 64 a number, as products take them.
    """

    def __init__(
        self, device: Device, dtype: DType, shape: tuple[int, int], entries: VectorStore
    ) -> None:
        self.device, self.dtype, self.shape, self.entries = device, dtype, shape, entries
        self.changed()

    @property
    def nvals(self) -> int:
        return self.entries.nvals

    @property
    def nbytes(self) -> int:
        v = self.entries
        return sum(x.nbytes for x in (v.words, v.values, v.indices) if x is not None)

    def changed(self) -> None:
        """Forget what was derived from the entries."""
        self.by_columns: CscMatrix | None = None
        self.alive: Any = None

    def copy(self, dtype: DType) -> BitmapMatrix:
        if self.entries.form == "bitmap":
            require(self.device, self.shape, None if self.entries.values is None else dtype, "dup")
        made = BitmapMatrix(self.device, dtype, self.shape, self.entries.copy(dtype))
        made.alive = self.alive
        return made

    def csc(self) -> CscMatrix:
        """Return the matrix by columns; made at the first call after a change, and kept."""
        if self.by_columns is None:
            device, (k, n) = self.device, self.shape
            with device.lock, device.entered():  # a grid asks for those of several devices
                device.require(48 * self.entries.nvals + 16 * n, "bitmap matrix by columns")
                positions, values = self.entries.listed()
                cols, rows = stores.split_positions(device, positions, stride(k))
                ptr = stores.pointer(device, cols, n)
                iso = self.entries.number if values is None else None
                self.by_columns = CscMatrix(device, self.dtype, self.shape, ptr, rows, values, iso)
        return self.by_columns


def from_few_entries(
    counters: Counters, rows: Any, cols: Any, values: Any, dtype: DType, shape: tuple[int, int]
) -> BitmapMatrix | None:
    """Return a bitmap matrix of triplets on the host, one a row at most, as of sources; or None."""
    if len(rows) > shape[0] or not all(isinstance(x, np.ndarray) for x in (rows, cols)):
        return None
    device, iso = counters.device, np.ndim(values) == 0
    if not (iso or isinstance(values, np.ndarray)) or not fits(device, dtype, shape):
        return None
    each = stride(shape[0])
    positions = cols.astype(np.int64) * each + rows
    order = np.argsort(positions)
    positions = positions[order]
    if bool((positions[1:] == positions[:-1]).any()):
        return None
    v = VectorStore(device, counters, dtype, each * shape[1])
    packed = None if iso else device.from_host(values[order])
    v.set_sparse(device.from_host(positions), packed, values if iso else None)
    return BitmapMatrix(device, dtype, shape, v)


class MatrixHandle:
    """The front end's object for a matrix; a statement that writes the matrix replaces `store`."""

    __slots__ = ("store",)

    def __init__(self, store: CscMatrix | BitmapMatrix) -> None:
        self.store = store

    device = property(operator.attrgetter("store.device"))
    dtype = property(operator.attrgetter("store.dtype"))
    shape = property(operator.attrgetter("store.shape"))
    nvals = property(operator.attrgetter("store.nvals"))

    @property
    def kind(self) -> tuple[Any, ...]:
        return self.store.dtype, *self.store.shape

    @property
    def symmetric(self) -> bool | None:
        return None if isinstance(self.store, BitmapMatrix) else self.store.symmetric

    @property
    def is_bitmap(self) -> bool:
        return type(self.store) is BitmapMatrix

    def may_be_bitmap(self, wide: int) -> bool:
        """Whether it is stored as a bitmap matrix, or may become one; `wide` as in `fits`."""
        store = self.store
        return type(store) is BitmapMatrix or fits(store.device, store.dtype, store.shape, wide)

    def csc(self) -> CscMatrix:
        """Return the matrix by columns, to be read."""
        return self.store.csc() if isinstance(self.store, BitmapMatrix) else self.store

    @property
    def stamp(self) -> Any:
        """A value that changes when the arrays of either form, or a workspace, are replaced."""
        store = self.store
        form = store.by_columns if isinstance(store, BitmapMatrix) else store
        return form and (form.stamp, form.csr and form.csr.stamp)

    def bitmap(self, counters: Counters) -> BitmapMatrix:
        """Return it as a bitmap matrix, to be read; a new one is kept in the CSC matrix' cache."""
        store = self.store
        if isinstance(store, BitmapMatrix):
            return store
        return store.kept("bitmap", lambda: _bitmap_of(counters, store))

    def own_bitmap(self, counters: Counters) -> BitmapMatrix:
        """Return it as a bitmap matrix to change in place; the caller then sets `store` to it."""
        store = self.store
        return store if isinstance(store, BitmapMatrix) else _bitmap_of(counters, store)


def _bitmap_of(counters: Counters, A: CscMatrix) -> BitmapMatrix:
    each = stride(A.shape[0])
    v = VectorStore(A.device, counters, A.dtype, each * A.shape[1])
    v.set_sparse(stores.join_positions(A.device, each, A.columns(), A.row_idx), A.values, A.iso)
    return BitmapMatrix(A.device, A.dtype, A.shape, v)


def has_bitmap(*matrices: MatrixHandle | None) -> bool:
    return any(A is not None and A.is_bitmap for A in matrices)


def fit_as_bitmaps(*matrices: MatrixHandle | None) -> bool:
    """Whether all of these have the bits of a bitmap matrix, or may become such matrices."""
    return all(
        A is None
        or (isinstance(A.store, BitmapMatrix) and A.store.entries.form == "bitmap")
        or fits(A.device, A.dtype, A.shape)
        for A in matrices
    )


def head(v: VectorStore, count: int) -> tuple[HostArray, HostArray]:
    """Return (indices, values) of the first `count` entries; the vector keeps its form."""
    device, there = v.device, slice(count)
    if v.form == "bitmap":
        at = device.xp.flatnonzero(v.words)[:count]  # of words with an entry or more
        each = device.to_host(v.words[at]).view(np.uint8).reshape(-1, 4)
        word, bit = np.nonzero(np.unpackbits(each, axis=1, bitorder="little"))
        indices = (device.to_host(at)[word] * 32 + bit)[:count]
        there = device.from_host(indices)
    elif v.form == "full":
        indices = np.arange(min(count, v.size))
    elif v.indices is None:  # one entry whose index has not left the host, or none
        indices = np.array([v.single] * bool(v.nvals), np.int64)
    else:
        indices = device.to_host(v.indices[:count])
    return indices, stores.on_host(v, None if v.values is None else v.values[there], len(indices))


class VectorLevels:
    """See `lagpu.operations.Levels`: `order` has the vertices by level, `level` their levels."""

    def __init__(self, counters: Counters, v: VectorStore) -> None:
        self._counters, self._device, self.size = counters, v.device, v.size
        self.vector = v
        indices, values = v.listed()
        kind = index_kind(v.size)
        if values is None:  # all of one level, or none
            self.order = stores.as_type(v.device, indices, kind)
            self.level = stores.filled(v.device, len(indices), v.dtype, v.number)
        else:
            by_level = v.device.order_of(values)
            self.order = stores.gather(v.device, indices, by_level, kind)
            self.level = stores.gather(v.device, values, by_level)
        self._lists: tuple[weakref.ref[CscMatrix], Array] | None = None

    @cached_property
    def _ends(self) -> list[int]:
        """The least level and the largest, for which the host waits."""
        if not len(self.level):
            return [0, -1]
        with self._device.lock, self._device.entered():
            return [int(self._device.read(x)) for x in (self.level[:1], self.level[-1:])]

    @property
    def lowest(self) -> int:
        return self._ends[0]

    @property
    def deepest(self) -> int:
        return self._ends[-1]

    @cached_property
    def offsets(self) -> Array:
        """Where each level begins in `order`, INT64, (deepest + 2,); on the device."""
        return stores.bounds(self._device, self.level, range(self.deepest + 2))

    @cached_property
    def starts(self) -> list[int]:
        return self._device.to_host(self.offsets).tolist()

    def mask(self) -> VectorStore:
        """Return an empty vector in place of a level, for a sweep whose body is known."""
        return VectorStore(self._device, self._counters, BOOL, self.size)

    def cut(self, d: int) -> VectorStore:
        made = self.mask()
        with self._device.lock, self._device.entered():
            vertices = self.order[self.starts[d] : self.starts[d + 1]]
            if len(vertices) == self.size:
                made.set_full(None, np.True_)
            else:
                made.set_sparse(stores.as_type(self._device, vertices, np.int64), None, np.True_)
        made.edge_offsets = partial(self.edge_offsets, d)
        return made

    def edge_offsets(self, d: int, form: CscMatrix) -> stores.EdgeOffsets | None:
        """Return level d with the entries of a matrix before each column, by one scan for all."""
        if self.order.dtype != np.int32 or not len(self.order):
            return None
        if self._lists is None or self._lists[0]() is not form:
            xp, ptr = self._device.xp, form.col_ptr
            before = xp.zeros(len(self.order) + 1, ptr.dtype)
            before[1:] = xp.cumsum(ptr[self.order + 1] - ptr[self.order])
            self._lists = weakref.ref(form), before
        first, last = self.starts[d], self.starts[d + 1]
        if first == last:
            return None
        before = self._lists[1][first:last]
        return stores.EdgeOffsets(weakref.ref(form), self.order[first:last], before - before[0])


class Ordered(NamedTuple):
    """The vertices of each row by level."""

    order: Array  #: array of INT32, (k * n,): row i begins at ``i * n``.
    offsets: Array  #: array of INT32, (k * (deepest + 2),): where each level begins in its row.
    last: Array  #: array of INT32, (k,): the deepest level of each row; -1 if it has none.
    #: array of INT32, (k * n,): the place of each vertex in the order of its row; -1 if it has no
    #: level.
    ranks: Array


class BitmapLevels:
    """See `lagpu.operations.Levels`; `shape` is that of the matrix, (k, n)."""

    def __init__(self, counters: Counters, A: MatrixHandle) -> None:
        self._counters, self._device, self.shape = counters, A.device, A.shape
        # Levels are read once, and a body may write them: bitmap matrices are changed in place.
        self._bitmap = A.bitmap(counters)
        if self._bitmap is A.store:
            self._bitmap = self._bitmap.copy(A.dtype)
        v, (self.lowest, self.deepest) = self._bitmap.entries, (0, -1)
        if v.form == "sparse" and not v.nvals:
            return
        bounds = np.iinfo(v.dtype.numpy)
        ends = self._device.from_host(np.array([bounds.max, bounds.min], v.dtype.numpy))
        run = kernel("sweep/order.cu", "level_ends", U=v.dtype.ctype)
        self._device.launch(run, v.size, v.size, *v.readable(), ends)
        lowest, deepest = self._device.to_host(ends).tolist()
        if lowest <= deepest:
            self.lowest, self.deepest = lowest, deepest

    def cut(self, d: int) -> MatrixHandle:
        v = self._bitmap.entries
        made = VectorStore(self._device, self._counters, BOOL, v.size)
        run = kernel("sweep/order.cu", "cut_level", U=v.dtype.ctype)
        with self._device.lock, self._device.entered():
            require(self._device, self.shape, None, "sweep")
            words, count = made.spare_words(), self._counters.take()
            given = v.arguments() | {"d": v.dtype.numpy.type(d)}
            self._device.launch(run, v.size, count=v.size, **given, out=words, nvals=count)
        made.set_bitmap(words, None, np.True_, count)
        return MatrixHandle(BitmapMatrix(self._device, BOOL, self.shape, made))

    def order_bytes(self) -> int:
        k, n = self.shape
        return int(4 * k * (2 * n + self.deepest + 3))

    def ordered(self) -> Ordered:
        """Sort the vertices of each row by level; within a level they are nearly sorted."""
        xp, (k, n), v = self._device.xp, self.shape, self._bitmap.entries
        sizes = k * n, k * (self.deepest + 2), k, k * n
        made = Ordered(*(xp.empty(size, np.int32) for size in sizes))
        per, block, launch = stride(k) // 32, self._device.limits.order_block, self._device.launch
        run = kernel("sweep/order.cu", "level_rows", U=v.dtype.ctype)
        launch(run, n * per * 8, rows=k, n=n, per=per, **v.arguments(), levels=made.ranks)
        run = kernel("sweep/order.cu", "order_rows")
        launch(run, k * block, block=block, rows=k, n=n, deepest=self.deepest, **made._asdict())
        return made
