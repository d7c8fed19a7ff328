"""Workspaces: arrays on a device that operations keep and share."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import Device, has_free
from lagpu.backends.gpu.kernels import GRID_BARRIER, constant, kernel
from lagpu.backends.gpu.storage import stores
from lagpu.dtypes import index_kind

SMALL, CHUNK, LONG = constant("kSmall"), constant("kChunk"), constant("kLongColumn")
#: Counters of a search, for all turns.
SEARCH_COUNTERS = constant("kTurns") * constant("kSearchCounters") * constant("kCounterStride")
MOST_BLOCKS = 4096  # of a cooperative launch
MOST_ALONE = 16 * 512  # vertices of a frontier that a cluster of thread blocks searches alone
_SORTING = 56  # bytes an entry that sorting by a key takes, with the result
Array = Any


class PushSpace:
    """Lists of columns, for the strategies that start from a vector's entries.

    `start` and `degree`, (ncols,), have the place and the number of a column's entries, made at the
    first use; `start` serves as offsets too.
    """

    def __init__(self, A: stores.CscMatrix) -> None:
        xp, n = A.device.xp, A.shape[1]
        self.device, self._col_ptr = A.device, A.col_ptr
        count = self.num_chunks = count_parts(A.device, A.col_ptr, SMALL, CHUNK) + 1
        self.nbytes = push_bytes(n, count)
        A.device.require(self.nbytes, "product workspace")
        self.vertex = xp.empty(list_room(n), np.int32)  #: A listed column.
        self.chunks = xp.empty(count, np.uint64)  #: Those of all long columns, and one more.
        self.barrier = xp.zeros(GRID_BARRIER, np.uint32)
        self.shares = xp.empty(2 * MOST_BLOCKS, np.uint64)  #: Two numbers a block.
        self._groups: dict[int, Array] = {}

    @functools.cached_property
    def start(self) -> Array:
        return self._room(self._col_ptr.dtype)

    @functools.cached_property
    def degree(self) -> Array:
        return self._room(np.dtype(np.uint32))

    def _room(self, kind: np.dtype[Any]) -> Array:
        n = len(self._col_ptr) - 1
        self.device.require(kind.itemsize * n, "product workspace")
        self.nbytes += kind.itemsize * n
        return self.device.xp.empty(n, kind)

    def groups(self, size: int) -> Array:
        """Return room for all groups of `size` entries, as ``push_virtual`` lists them."""
        found = self._groups.get(size)
        if found is None:
            count = count_parts(self.device, self._col_ptr, 0, size) + 1
            self.device.require(8 * count, "push_virtual")
            found = self._groups[size] = self.device.xp.empty(count, np.uint64)
            self.nbytes += 8 * count
        return found


def _room(
    A: stores.CscMatrix, name: str, count: int, kind: Any, what: str, remedy: str = ""
) -> Array:
    """Return uninitialised memory that stays with a matrix, made at the first call."""

    def made() -> Array:
        A.device.require(count * np.dtype(kind).itemsize, what, remedy)
        return A.device.xp.empty(count, kind)

    return A.kept(name, made)


def nbytes_of(space: Any) -> int:
    """Return the bytes of what stays with a matrix: a workspace, an array, or a tuple of these."""
    arrays = space if isinstance(space, tuple) else (space,)
    return sum(int(x.nbytes) for x in arrays if x is not None)


def edge_frontier(A: stores.CscMatrix, sums: bool) -> dict[str, Array | None]:
    """Return room for all entries that a push follows, one after the other, by parameter.

    It has the row of each; only for `sums` its column and, unless values are equal, its place.
    """
    kinds = {"edge_row": A.row_idx.dtype}
    if sums:
        kinds["edge_column"] = np.dtype(np.int32)
    if sums and A.values is not None:
        kinds["edge_place"] = A.col_ptr.dtype
    what = "edge frontier", "Use push_queue, which keeps no edges."
    rooms = {name: _room(A, name, A.nvals, kind, *what) for name, kind in kinds.items()}
    return {"edge_column": None, "edge_place": None, **rooms}


def scatter_space(A: stores.CscMatrix) -> dict[str, Array]:
    """Return room for ``push_scatter``: the number of an entry of each row, and a list of those."""
    sizes = A.shape[0], A.col_ptr.dtype, "push_scatter"
    return {name: _room(A, name, *sizes) for name in ("map", "chosen")}


class PullSpace:
    """Empty columns and hint neighbours of a matrix, for pulls.

    `empty` has bits of the columns without entries, `hint` for each column one of its rows, of
    those that have the most entries (common/hint.cuh); `targets` columns have entries.
    """

    def __init__(self, A: stores.CscMatrix, lengths: Array) -> None:
        device, n = A.device, A.shape[1]
        self.nbytes = pull_bytes(n)
        device.require(self.nbytes, "product workspace")
        types = index_types(A)
        self.empty = device.xp.empty(stores.nwords(n), np.uint32)
        run = kernel("elementwise/bitmap.cu", "empty_columns", PTR=types["PTR"])
        device.launch(run, n, n, A.col_ptr, self.empty)
        self.targets = count_parts(device, A.col_ptr, 0, max(A.nvals, 1))
        self.hint = device.xp.empty(n, np.int32)
        device.launch(
            kernel("elementwise/bitmap.cu", "heaviest_rows", **types),
            32 * n, n=n, col_ptr=A.col_ptr, row_idx=A.row_idx, hint=self.hint,
            lengths_ptr=stores.as_type(device, lengths, A.col_ptr.dtype),
        )  # fmt: skip


def count_parts(device: Device, col_ptr: Array, shortest: int, size: int) -> int:
    """Return the parts of `size` entries of all columns longer than `shortest`."""
    total, n = device.xp.zeros(1, np.uint64), len(col_ptr) - 1
    run = kernel("elementwise/forms.cu", "count_parts", PTR=index_ctype(col_ptr))
    device.launch(run, n, n, col_ptr, shortest, size, total)
    return int(device.read(total))


def shared_parts(A: stores.CscMatrix) -> int:
    """Return the parts of columns that all blocks share in a pull; 0 where entries lie evenly."""
    device, n, limits = A.device, A.shape[1], A.device.limits
    if A.nvals <= limits.spread_entries:
        return 0
    windows = np.minimum(np.arange(0, n + 1024, 1024), n).astype(index_kind(n))
    upto = device.to_host(stores.gather(device, A.col_ptr, device.from_host(windows)))
    most = np.diff(upto).max()
    if most <= max(limits.spread_entries, A.nvals // limits.spread_share):
        return 0
    # A small part is looked at in vain if it is of another component, which has a hub of its own.
    even = most <= A.nvals // 3 and _hubs_apart(A, limits.spread) < 2
    return 0 if even else 1 + count_parts(device, A.col_ptr, limits.spread // 8, limits.spread // 8)


def _hubs_apart(A: stores.CscMatrix, long: int) -> int:
    """Return how many columns are longer than `long`, and than those of their own rows."""
    hint = A.device.to_host(pull_space(A, None).hint)
    lengths = np.diff(A.device.to_host(A.col_ptr))
    leads = lengths >= lengths[np.maximum(hint, -2 - hint)]
    return int(np.count_nonzero((lengths > long) & leads))


def entries_of(device: Device, words: Array, col_ptr: Array) -> int:
    """Return the number of entries of the columns whose bits are set."""
    total, n = device.xp.zeros(1, np.uint64), len(col_ptr) - 1
    run = kernel("elementwise/forms.cu", "count_entries", PTR=index_ctype(col_ptr))
    device.launch(run, n, n, words, col_ptr, total)
    return int(device.read(total))


def near_words(device: Device, n: int) -> int:
    """Return the words of shared memory for the bits of `n` vertices, a power of two; 0: none."""
    most = min(device.limits.near_bytes, device.dynamic_shared_bytes) // 4
    return min(_power_above(stores.nwords(n)), _power_above(most + 1) // 2)


def _power_above(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()


def num_chunks(lengths: np.ndarray[Any, Any]) -> int:
    """Return the `PushSpace.num_chunks` of columns of such lengths, which are on the host."""
    long = lengths[lengths > SMALL].astype(np.int64)
    return int(((long + CHUNK - 1) // CHUNK).sum()) + 1


def push_bytes(n: int, chunks: int) -> int:
    return 4 * list_room(n) + 8 * chunks


def list_room(n: int) -> int:
    """Return the places of a list of `n` columns, which a search's frontiers share.

    A frontier and its successor have `n` vertices at most. A cluster that searches alone, and has
    no room for what it finds, needs room for that twice.
    """
    return min(2 * n, max(n, 2 * SMALL * MOST_ALONE))


def pull_bytes(n: int) -> int:
    return 4 * (stores.nwords(n) + n)


def index_types(A: stores.CscMatrix, prefix: str = "") -> dict[str, str]:
    return {f"{prefix}PTR": index_ctype(A.col_ptr), f"{prefix}IDX": index_ctype(A.row_idx)}


def index_ctype(indices: Array) -> str:
    """Return the type of an index array as kernels name it."""
    return "i32" if indices.dtype == np.int32 else "i64"


def entries_left(device: Device, result: Array) -> int:
    """Return how many entries a search has left in its frontier; waits for the search."""
    left = constant("kLeft")
    return int(device.read(result[left : left + 1]))


def push_space(A: stores.CscMatrix) -> PushSpace:
    return A.kept("push", lambda: PushSpace(A))


def pull_space(A: stores.CscMatrix, rows: stores.CscMatrix | None) -> PullSpace:
    """Return the `PullSpace` of `A`, made at the first call; `rows` has their lengths, if there."""
    return A.kept("pull", lambda: PullSpace(A, rows.col_ptr if rows else row_lengths(A)))


def rows_by_degree(A: stores.CscMatrix) -> Array:
    """Return the row indices once more, in each column those of most entries first.

    Only pulls that end with the first row that has an entry take them, as matrix values stay in
    their places. A row counts by the entries of its own column, the in-degree of its vertex, as
    Hiragushi and Takahashi 2013, section 3.4, have it; in a matrix that is not square by its own
    entries. Equal ones stay in rising order.
    """

    def ordered() -> Array:
        device, take = A.device, functools.partial(stores.gather, A.device)
        device.require(_SORTING * A.nvals, "rows by degree", "Leave out :order.")
        sizes = lengths_of(device, A.col_ptr if A.shape[0] == A.shape[1] else row_lengths(A), -1)
        order = device.order_of(take(sizes, A.row_idx))
        by_column = device.order_of(take(A.columns(kind=index_kind(A.shape[1])), order))
        return take(A.row_idx, take(order, by_column))

    return A.kept("rows by degree", ordered)


def row_lengths(A: stores.CscMatrix) -> Array:
    device = A.device
    counts = device.xp.zeros(A.shape[0] + 1, np.int64)
    run = kernel("elementwise/forms.cu", "count_row_entries", IDX=index_ctype(A.row_idx))
    device.launch(run, A.nvals, A.nvals, A.row_idx, counts)
    return stores.as_type(device, device.running_sum(counts), A.col_ptr.dtype)


def lengths_of(device: Device, col_ptr: Array, sign: int = 1) -> Array:
    n = len(col_ptr) - 1
    lengths = device.xp.empty(n, col_ptr.dtype)
    run = kernel("elementwise/forms.cu", "column_lengths", PTR=index_ctype(col_ptr))
    device.launch(run, n, n, col_ptr, sign, lengths)
    return lengths


def columns_of(A: stores.CscMatrix) -> Array:
    """Return the column of each entry, made at the first call: with `row_idx` that is COOC."""

    def made() -> Array:
        kind = np.dtype(index_kind(A.shape[1]))
        A.device.require(kind.itemsize * A.nvals, "columns of the entries")
        return A.columns(kind=kind)

    return A.kept("columns", made)


class Chunks(NamedTuple):
    """The long columns of a matrix, and the chunks they are cut into, first chunks first."""

    columns: Any
    column: Any
    start: Any


def chunks_of(form: stores.CscMatrix) -> Chunks:
    """Return the chunks of a form's long columns, made at the first call."""

    def cut() -> Chunks:
        device, n = form.device, form.shape[1]
        found = device.xp.zeros(1 + 3 * (form.nvals // LONG), np.int64)
        run = kernel("elementwise/forms.cu", "list_long", PTR=index_ctype(form.col_ptr))
        device.launch(run, n, n, form.col_ptr, found)
        count = int(device.read(found[:1]))
        long = device.to_host(found[1 : 1 + 3 * count]).reshape(count, 3)
        columns, starts, lengths = long[np.argsort(long[:, 0])].T
        counts = (lengths + LONG - 1) // LONG
        owner = np.repeat(np.arange(count), counts)
        part = np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]
        order = np.argsort(part, kind="stable")  # later ones skip what a first chunk finds
        start = starts[owner] + part * LONG
        return Chunks(*map(device.from_host, (columns, columns[owner][order], start[order])))

    return form.kept("chunks", cut)


ROUND = 128  # entries that a warp loads at once


def batches(form: stores.CscMatrix, groups: int) -> Array:
    """Return the batches of 32 words, those with most entries first, u32; made at the first call.

    So thread blocks have equal work, and the last batches are short. Long columns do not count, as
    they are taken by chunks. `groups` are words a vertex.
    """

    def sorted_batches() -> Array:
        device, n, count = form.device, form.shape[1], stores.nwords(form.shape[1] * groups)
        lengths, rounds = device.xp.zeros(n + 1, np.int64), device.xp.empty(count, np.int64)
        run = kernel("elementwise/forms.cu", "short_lengths", PTR=index_ctype(form.col_ptr))
        device.launch(run, n, n, form.col_ptr, lengths)
        before = device.running_sum(lengths)
        run = kernel("elementwise/forms.cu", "batch_rounds")
        device.launch(run, count, n, count, groups, ROUND, before, rounds)
        return stores.as_type(device, device.order_of(rounds), np.uint32)

    return form.kept(f"batches, {groups} words a vertex", sorted_batches)


class Ranked(NamedTuple):
    """Vertices by out-degree, the largest first, whose words share lines of L1; None if no use."""

    rank: Array | None  #: array of i32: of each vertex.
    idx: Array | None  #: array: the matrix's row indices by ranks.
    words: Array | None  #: array of u32: room for a frontier's words by ranks.
    heavy: Array | None  #: array of i32: the ``kHeavy`` vertices of highest rank.


NO_RANKS = Ranked(None, None, None, None)
#: In the cache of a form whose rows are by out-degree already, in slots of pieces: the position,
#: i32, of each of the own ones.
ORDER = "own rows by degree"


def ranked(form: stores.CscMatrix, rows: stores.CscMatrix | None, each: int) -> Ranked:
    """Return the vertices by ranks, made at the first call, which may wait for the device."""
    return form.kept(f"ranks, {each} bytes a vertex", lambda: _rank(form, rows, each))


def _rank(form: stores.CscMatrix, rows: stores.CscMatrix | None, each: int) -> Ranked:
    """Rank, unless degrees are too even or memory is short: see `Ranked` for what it takes."""
    device, xp, n, idx = form.device, form.device.xp, form.shape[0], form.row_idx
    room = 8 * (int(idx.nbytes) + each * n)
    if ORDER in form.cache or not form.nvals or not has_free(device, room):
        return NO_RANKS
    lengths = lengths_of(device, row_lengths(form) if rows is None else rows.col_ptr, -1)
    _, rank, heavy, entries = by_length(device, lengths, device.limits.cached // each)
    if 4 * entries < form.nvals:  # those whose words fit L1 (docs/design/bitmap.md)
        return NO_RANKS
    words = xp.empty((n * each + 3) // 4, np.uint32)
    return Ranked(rank, stores.gather(device, rank, idx, idx.dtype), words, heavy)


def by_length(device: Device, lengths: Array, most: int) -> tuple[Array, Array, Array, int]:
    """Return vertices in the order of `lengths`, which are negative, INT64, and the ranks, i32.

    Also the first ``kHeavy`` ones, and the sum of the first `most` lengths.
    """
    xp, n, order = device.xp, len(lengths), device.order_of(lengths)
    rank, heavy = xp.empty(n, np.int32), xp.empty(min(n, constant("kHeavy")), np.int32)
    run = kernel("elementwise/forms.cu", "rank_vertices", PTR=index_ctype(lengths))
    total = xp.zeros(1, np.uint64)
    device.launch(run, n, n, most, order, lengths, rank, heavy, total)
    return order, rank, heavy, int(device.read(total))


TILE = constant("kSumTile")


class Heads(NamedTuple):
    """The first entries of columns; see kernels/spmv/sums.cuh."""

    #: array of u32: a bit for each entry, for whole tiles: whether a column begins with it.
    bits: Array
    before: Array  #: array of u32: how many do before each tile of entries; in the end all.
    column: Array  #: array of i32: the columns that have entries.
    there: Array  #: array of u32: presence bits of these.
    are_short: np.bool_  #: Whether no column has more than ``kSmall`` entries.


def heads_of(form: stores.CscMatrix) -> Heads | None:
    """Return the heads of a form's columns, kept; None if memory is short or loads not aligned."""
    if "heads" not in form.cache:
        # A bit an entry; of the columns numbers, bits and counts of these, and a sum of each tile.
        loads = form.nvals and max(form.shape) < 2**31 and _by_fours(form)
        if not (loads and has_free(form.device, form.nvals // 4 + 8 * form.shape[1])):
            return None
    return form.kept("heads", lambda: _heads(form))


def _by_fours(form: stores.CscMatrix) -> bool:
    """Whether the arrays begin at multiples of 16 bytes; those of a caller may not."""
    for array in (form.row_idx, form.values):
        if array is not None:
            found = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
            if found["data"][0] % 16:
                return False
    return True


def _heads(form: stores.CscMatrix) -> Heads:
    device, xp, n, ptr = form.device, form.device.xp, form.shape[1], form.col_ptr
    types, words = {"PTR": index_ctype(ptr)}, stores.nwords(n)
    tiles = (form.nvals + TILE - 1) // TILE
    bits, there = xp.zeros(tiles * TILE // 32, np.uint32), xp.empty(words, np.uint32)
    run = kernel("elementwise/forms.cu", "find_heads", **types)
    device.launch(run, 32 * words, n, ptr, there, bits)
    counts = xp.empty(words, np.int64)
    device.launch(kernel("elementwise/take.cu", "count_places"), words, words, there, counts)
    upto = device.running_sum(counts)
    column = xp.empty(int(device.read(upto[-1:])), np.int32)
    before = xp.empty(tiles + 1, np.uint32)
    device.launch(
        kernel("elementwise/forms.cu", "list_heads", **types), max(n, tiles + 1),
        n, form.nvals, tiles, TILE, ptr, there, upto, column, before,
    )  # fmt: skip
    return Heads(bits, before, column, there, np.bool_(not count_parts(device, ptr, SMALL, CHUNK)))
