"""The per-source search, each source by one thread block; and when several sources run so."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.tables import semiring
from lagpu.backends.gpu.device.protocol import has_free
from lagpu.backends.gpu.fused.match import MAX_ASSIGNMENTS, SearchBody, why_no_values
from lagpu.backends.gpu.fused.search_grid import grid_search, levels_only, unused_outputs
from lagpu.backends.gpu.fused.search_space import Prepared, may_last, run_whole
from lagpu.backends.gpu.kernels import Kernel, kernel
from lagpu.backends.gpu.kernels.source import Prelude, macros_of
from lagpu.backends.gpu.ops.strategies import by_inputs
from lagpu.backends.gpu.profile import LoopLog
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, MatrixHandle, bytes_of, stride
from lagpu.backends.gpu.storage.forms import is_symmetric, why_no_csr
from lagpu.backends.gpu.storage.matrix import Counters, CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import index_types, push_space
from lagpu.backends.policies import sparse_batch_size
from lagpu.dtypes import BOOL, FP64, INT32, DType
from lagpu.operations import Product, Rejection

#: Largest mean degree for per-source execution. Above it, sources that share each adjacency read
#: are faster.
MOST_DEGREE = 8
_HUB = 4  # a hub has more than so many times MOST_DEGREE entries
# Where hubs have more than this part (1 / _SHARE) of all entries, levels are few.
_SHARE = 8
BLOCKS = 1  # of a multiprocessor: registers for each thread follow from this and its threads
#: A matrix is deep if a search has more than LEVELS levels, and more than one for each EDGES
#: entries. See "Deep or not" in docs/design/bitmap.md for the costs that these follow from.
LEVELS, EDGES = 64, 1 << 15
_PROBE_BYTES = 64  # upper bound, for each vertex, of a fused search and its workspace


def why_not_per_source(A: CscMatrix, k: int) -> str:
    """Return why `k` sources do not run per source on `A`, or an empty string if they do.

    Per-source execution needs at least two sources, and a sparse matrix without hubs.
    """
    if k < 2:
        return "only one source"
    if A.nvals > MOST_DEGREE * A.shape[0]:
        return f"mean degree {A.nvals / A.shape[0]:.1f} > {MOST_DEGREE}"
    longest = _HUB * MOST_DEGREE

    def entries_of_hubs() -> int:
        lengths = A.col_ptr[1:] - A.col_ptr[:-1]
        return int(lengths[lengths > longest].sum())

    entries = A.fact(f"columns of more than {longest} entries", entries_of_hubs)
    return (
        f"hubs have {entries} entries > {A.nvals} / {_SHARE}" if entries * _SHARE > A.nvals else ""
    )


# ------------------------------------------------------------------------------ deep or shallow
class Depth(NamedTuple):
    """The depth of a matrix as one search measured it."""

    deep: bool  #: Whether the search had more levels than the bound.
    why: str  #: The comparison, in numbers.


def depth_bound(A: CscMatrix) -> int:
    """Return the number of levels that a search of a deep matrix exceeds."""
    return max(LEVELS, A.nvals // EDGES)


def depth_of(counters: Counters, A: CscMatrix, product: Product) -> Depth:
    """Return whether a search from a vertex of most edges is deep; the first call waits for it.

    The search ends at the bound. Its source is not one of the caller's, so the result depends on
    the matrix alone, and of the product only on the direction of the edges.
    """
    bound = depth_bound(A)
    along = product.transpose or is_symmetric(A)
    name = f"depth, {bound} levels, {'along' if along else 'against'} the edges"
    if name not in A.facts and not has_free(A.device, _PROBE_BYTES * A.shape[0]):
        return Depth(False, "the search that would count the levels does not fit")
    deep: bool = A.fact(name, lambda: _exceeds(counters, A, product, bound))
    counted = "" if bound == LEVELS else f", {A.nvals} entries / {EDGES}"
    return Depth(deep, f"a search has {'more than' if deep else 'at most'} {bound} levels{counted}")


def _exceeds(counters: Counters, A: CscMatrix, product: Product, bound: int) -> bool:
    """Search from the first vertex of most edges; return whether a frontier is left."""
    device, n, form = A.device, A.shape[0], by_inputs(A, product)
    source = int((form.col_ptr[1:] - form.col_ptr[:-1]).argmax())
    f, levels = (VectorStore(device, counters, dtype, n) for dtype in (BOOL, INT32))
    f.set_single(source, np.True_)
    domain, result = semiring.any_pair.types(BOOL, A.dtype)
    product = product._replace(semiring=semiring.any_pair, domain=domain, result=result)
    search = grid_search(levels_only(A, f, levels, product), bound)
    assert not isinstance(search, Rejection)
    search.run()
    return f.nvals > 0


# ---------------------------------------------------------------------------------- batch size
# How many sources to take at once, if their matrices fit. On kron20e16 (H200, 2026-11-21) a source
# takes 1.96 ms by itself and 0.74 ms in a batch of 32 or 64, whether all 64 bits are used or not.
# On a road network of 1429 levels a source takes 16 ms by itself and 0.37 ms in a batch of 128 that
# runs per source; statement by statement each level would take several launches
# (docs/design/sweep.md).
_SHALLOW, _DEEP = (64, 32), (128, 64, 32, 16, 8, 4)
_MOST_SHALLOW_LEVELS = 64
# State of per-source execution for each source and vertex: 35 bytes for the order and ranks of a
# sweep and three vectors in level order (less for a search), and 4 bytes a level; there
# may be n.
_PER_SOURCE_BYTES = 39
_SPARE = 4


def batch_size(A: CscMatrix, sources: int, levels: int, live: Sequence[tuple[DType, int]]) -> int:
    """Return how many sources to take at once; see `Backend.batch_size`.

    With few levels 64 or 32, with many levels a power of two from 128 to 4 if the matrix allows
    per-source execution; the largest that the sources fill and whose matrices fit, else 1. If k x n
    matrices are too large for a bitmap, as many as half of the free memory takes.
    """
    device, n = A.device, A.shape[0]
    if bytes_of(FP64, (_SHALLOW[-1], n)) is None:
        return sparse_batch_size(device.free_bytes(), n, A.nvals, sources, levels)
    shallow = levels <= _MOST_SHALLOW_LEVELS
    choices = _SHALLOW if shallow else () if why_not_per_source(A, 2) else _DEEP
    free = device.free_bytes()
    return next(
        (k for k in choices if k <= sources and _fit(live, k, n, free, per_source=not shallow)), 1
    )


def _fit(live: Sequence[tuple[DType, int]], k: int, n: int, free: int, per_source: bool) -> bool:
    """Whether all matrices of k rows fit at once, with the state of per-source execution if any.

    Each matrix counts twice: a statement makes its result before it replaces the old value. Four
    of the widest must fit besides, since a bitmap matrix is made only where it fits four times.
    """
    needed = per_source * _PER_SOURCE_BYTES * k * n
    sizes = [(bytes_of(dtype, (k, n)), count) for dtype, count in live]
    widest = 0
    for size, count in sizes:
        if size is None:
            return False
        needed += 2 * count * size
        widest = max(widest, size)
    return needed + _SPARE * widest <= free


LOOK = 1  # look at a vertex before claiming it: a load more, but fewer atomics; 0: claim at once
SOLO = 2048  # vertices of a level in shared memory
EARLY = 256  # vertices of a level up to which each load is made as soon as it can be
NO_LIMIT = 2**31 - 1


def per_source_search(
    counters: Counters, body: SearchBody, times: int | None
) -> PerSourceSearch | Rejection:
    """Return the per-source search of a frontier that carries values, or why there is none."""
    A, f, product = body.A, body.frontier, body.product
    why = why_not_per_source(A, f.shape[0])
    if why:
        return Rejection(f"the frontier carries values, and no per-source search fits: {why}")
    why, many = why_no_values(body, sums=False, keep=True), len(body.assignments)
    if not why and many > MAX_ASSIGNMENTS:
        why = f"{many} assignments; at most {MAX_ASSIGNMENTS} fit"
    why = why or why_no_values(body, body.sums, keep=False)
    if why:
        return Rejection(why)
    lacking = why_no_csr(A) if product.transpose else ""
    if lacking:
        return Rejection(f"a per-source search needs the matrix by rows too, and {lacking}")
    made = PerSourceSearch(counters, body, times, None, "the frontier carries values")
    if not has_free(A.device, made.nbytes):
        return Rejection("the workspace of a per-source search does not fit")
    return made


class PerSourceSearch:
    """A search of k sources, each by one thread block; see search/per_source.cu and `FusedLoop`.

    `number` is the value of each entry that a product makes; None if values vary and are stored.
    With a number the body must not assign the frontier; without, its assignments come before the
    product.
    """

    name = "per-source search"
    keeps_log = False

    def __init__(
        self, counters: Counters, body: SearchBody, times: int | None, number: Any, why: str
    ) -> None:
        self._counters, self._body, self._times, self._number = counters, body, times, number
        self.why, self.statements = why, body.statements
        self._keep = number is None
        self._sums = self._keep and body.sums
        self._form = by_inputs(body.A, body.product)
        self._device = body.A.device
        self._stops = may_last(body.A)

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`."""
        k, n = self._body.frontier.shape
        size = stride(k) * n
        made = [a.target.dtype.numpy.itemsize for a in self._body.assignments]
        if self._times is not None:
            made.append(self._value_bytes())
        outputs: int = sum(size * each + 4 * nwords(size) for each in made)
        lists = n * (8 + int(self._form.col_ptr.itemsize)) + 4 * push_space(self._form).num_chunks
        state: int = k * n * (4 + self._value_bytes())
        return int(state + self._blocks(self._search_kernel()) * lists + outputs)

    def _value_bytes(self) -> int:
        """Return the bytes of a value that is stored."""
        each: int = self._body.frontier.dtype.numpy.itemsize
        return each if self._keep else 0

    def _search_kernel(self) -> Kernel:
        macros = {
            "KEEP": str(int(self._keep)),
            "LOOK": str(LOOK),
            "BITS": str(int(self._has_bits())),
            "BLOCK": str(self._device.limits.row_block),
            "BLOCKS": str(BLOCKS),
            **index_types(self._form),
        }
        if not self._keep:
            return kernel("search/per_source.cu", "per_source_search", **macros)
        prelude = Prelude()
        types, _ = macros_of(
            self._body.product, self._body.frontier.dtype, self._body.A.dtype, prelude
        )
        types = {name: types[name] for name in ("ADD", "MUL", "U", "A", "T", "Z")}
        return kernel(
            "search/per_source.cu",
            "per_source_search",
            prelude=prelude.text,
            SUM=str(int(self._sums)),
            **types,
            **macros,
        )

    def _write_kernel(self) -> Kernel:
        macros = {"KEEP": str(int(self._keep)), "REST": str(int(self._times is not None))}
        macros["X0"] = "0"
        if self._keep:
            macros["U"] = self._body.frontier.dtype.ctype
        for q, a in enumerate(self._body.assignments):
            macros |= {f"X{q}": str(a.what), f"X{q}_T": a.target.dtype.ctype}
        return kernel("search/per_source.cu", "per_source_write", **macros)

    def _shared(self) -> tuple[int, int]:
        """Return (vertices of a level that shared memory holds, its bytes)."""
        each = self._listed_bytes()
        solo = min(SOLO, self._device.dynamic_shared_bytes // each)
        return solo, solo * each + (self._bits_bytes() if self._has_bits() else 0)

    def _listed_bytes(self) -> int:
        """Return the bytes of a vertex in the lists of two levels in shared memory."""
        return 2 * (8 + int(self._form.col_ptr.itemsize))

    def _bits_bytes(self) -> int:
        return 4 * nwords(self._body.frontier.shape[1])

    def _has_bits(self) -> bool:
        """Whether a row's visited bits are kept in shared memory, beside lists of full length.

        Where products are summed, the kernel loads a vertex' level in any case.
        """
        free = self._device.dynamic_shared_bytes - SOLO * self._listed_bytes()
        return not self._sums and self._bits_bytes() <= free

    def _blocks(self, code: Kernel) -> int:
        """Return how many rows are searched at once."""
        block = self._device.limits.row_block
        most = self._device.max_cooperative_blocks(code, block, self._shared()[1])
        return int(min(most, self._body.frontier.shape[0]))

    def run(self, _log: LoopLog | None = None) -> None:
        """Run the loop to its end; the host waits only if `times` or an interrupt may end it."""
        outputs: list[BitmapMatrix] = [
            a.target.own_bitmap(self._counters) for a in self._body.assignments
        ]
        written = [made.entries for made in outputs]
        prepare = functools.partial(self._prepared, outputs)
        run_whole(self._device, self.name, written, prepare, self._stops)

    def _prepared(self, outputs: list[BitmapMatrix]) -> Prepared:
        body, counters, times, device = self._body, self._counters, self._times, self._device
        (k, n), form, xp = body.frontier.shape, self._form, device.xp
        code, (solo, shared), block = (
            self._search_kernel(), self._shared(), device.limits.row_block,
        )  # fmt: skip
        blocks, most_large = self._blocks(code), push_space(form).num_chunks
        device.require(self.nbytes, self.name, "Take fewer rows at a time.")
        frontier = _sources(counters, body.frontier, self._keep)
        excluded = _excluded(counters, body.excluded)
        last = np.int32(NO_LIMIT if times is None else min(times, NO_LIMIT - 1))
        found_in, sums, stopped = xp.empty(k * n, np.int32), self._values(k * n), counters.take()
        # No thread block waits for another. The launch is cooperative only because the device
        # counts resident thread blocks, and allows much shared memory, for such launches alone.
        launch = functools.partial(
            device.launch, code, blocks * block, block=block, cooperative=True, shared=shared,
            n=n, k=k, stride=stride(k), ptr=form.col_ptr, idx=form.row_idx,
            values=form.values if self._keep else None,
            iso=form.number if self._keep else False, v_words=excluded, **frontier,
            assigns_after=not body.assigns_first, times=last, solo=solo,
            early=0 if self._has_bits() else EARLY, found_in=found_in, sums=sums,
            vertex=xp.empty(blocks * n, np.int32), start=xp.empty(blocks * n, form.col_ptr.dtype),
            degree=xp.empty(blocks * n, np.uint32),
            large=xp.empty(blocks * most_large, np.int32), most_large=most_large,
            stop=device.stop[0] if self._stops else None, stopped=stopped,
        )  # fmt: skip
        dtype = body.frontier.dtype
        rest = VectorStore(device, counters, dtype, stride(k) * n)
        f_words, f_values = None, None
        if times is not None:
            f_words, f_values = xp.empty(nwords(rest.size), np.uint32), self._values(rest.size)
        write = self._writer(
            outputs, found_in=found_in, sums=sums, times=last, f_words=f_words, f_values=f_values
        )

        def settle() -> bool:
            if self._stops and device.read(stopped):
                return True
            left = counters.take()
            write(left=left)
            for a, made in zip(body.assignments, outputs, strict=True):
                a.target.store = made
            if f_words is not None:
                count = int(device.read(left))
                if count:
                    rest.set_bitmap(f_words, f_values, self._number, count)
            body.frontier.store = BitmapMatrix(device, dtype, (k, n), rest)
            return False

        return launch, settle

    def _values(self, count: int) -> Any:
        """Return room for `count` values, or None if no values are stored."""
        dtype = self._body.frontier.dtype.numpy
        return self._device.xp.empty(count, dtype) if self._keep else None

    def _writer(self, outputs: list[BitmapMatrix], **given: Any) -> Callable[..., None]:
        """Make room in the outputs; return what assigns the levels and values found to them.

        It takes ``left``, a counter of the entries that are left in the frontier.
        """
        body, (k, n) = self._body, self._body.frontier.shape
        given |= dict.fromkeys((f"number{q}" for q in range(MAX_ASSIGNMENTS)), np.int32(0))
        given |= unused_outputs(len(outputs))
        blank = 0
        for q, (a, made) in enumerate(zip(body.assignments, outputs, strict=True)):
            w = made.entries
            if w.to_blank():
                blank |= 1 << q
            else:
                w.to_writable()
            given[f"number{q}"] = w.dtype.numpy.type(0) if a.number is None else a.number
            given |= {f"x{q}": w.values, f"x{q}_words": w.words}
            made.changed()
            w.changes()
        per, run = stride(k) // 32, self._write_kernel()
        self._device.load(run)
        return functools.partial(
            self._device.launch, run, n * per * 8,
            n=n, k=k, per=per, assigns_after=not body.assigns_first, **given,
            blank=np.uint32(blank),
        )  # fmt: skip


def _sources(counters: Counters, f: MatrixHandle, keep: bool) -> dict[str, Any]:
    """Return the frontier as the kernel takes it: either a list or words, the other one None."""
    entries = f.bitmap(counters).entries
    if entries.form == "sparse" and entries.nvals <= f.shape[1]:  # each block reads all of a list
        listed, values = entries.listed()
        found = {"f_words": None, "num_listed": len(listed), "listed": listed}
    else:
        entries.to_bitmap()
        found, values = {"f_words": entries.words, "num_listed": 0, "listed": None}, entries.values
    found["f_values"] = values if keep else None
    return found | {"f_iso": entries.number if keep else False}


def _excluded(counters: Counters, v: MatrixHandle) -> Any:
    """Return the presence words of the entries excluded from the search, or None."""
    entries = v.bitmap(counters).entries
    if entries.form == "sparse" and not entries.nvals:
        return None
    entries.to_bitmap()
    return entries.words
