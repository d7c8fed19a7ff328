"""Searches of many sources at once: a bit for each source, or a thread block for each."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lagpu.algebra.tables import semiring
from lagpu.backends import match
from lagpu.backends.gpu.device.protocol import CheckedLaunch, Device, has_free
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.gpu.fused.loop import KernelLoop, Prepared, if_fits, may_last
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, constant, kernel, macros_of
from lagpu.backends.gpu.ops.planner import SEARCH_PUSH_COST
from lagpu.backends.gpu.ops.strategies import by_inputs
from lagpu.backends.gpu.profile import LoopLog, SearchRows, why_edges
from lagpu.backends.gpu.storage import workspaces
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, bytes_of, require, stride, words_of
from lagpu.backends.gpu.storage.forms import csr_of, is_symmetric, why_no_csr
from lagpu.backends.gpu.storage.stores import Counters, CscMatrix, VectorStore, nwords
from lagpu.backends.match import MAX_ASSIGNMENTS, Assignment, SearchBody
from lagpu.dtypes import BOOL, FP64, INT32, DType
from lagpu.operations import Product, Rejection

#: Largest mean degree for per-source execution. Above it, sources that share each adjacency read
#: are faster.
MOST_DEGREE = 8
_HUB = 4  # a hub has more than so many times MOST_DEGREE entries
_SHARE = 8  # Where hubs have more than this part (1 / _SHARE) of all entries, levels are few.
#: A matrix is deep if a search has more than LEVELS levels, and more than one for each EDGES
#: entries. See "Deep or not" in docs/design/bitmap.md for the costs that these follow from.
LEVELS, EDGES = 64, 1 << 15
_PROBE_BYTES = 64  # upper bound, for each vertex, of a fused search and its workspace
BLOCKS = 1  # of a multiprocessor: registers for each thread follow from this and its threads
LOOK = 1  # look at a vertex before claiming it: a load more, but fewer atomics; 0: claim at once
SOLO = 2048  # vertices of a level in shared memory
EARLY = 256  # vertices of a level up to which each load is made as soon as it can be
HEAVY, ENOUGH = constant("kHeavy"), 16


def why_not_per_source(A: CscMatrix, k: int) -> str:
    """Return why `k` sources do not run per source on `A`: it must be sparse, without hubs."""
    if k < 2:
        return "only one source"
    if A.nvals > MOST_DEGREE * A.shape[0]:
        return f"mean degree {A.nvals / A.shape[0]:.1f} > {MOST_DEGREE}"
    longest = _HUB * MOST_DEGREE
    of_hubs = lambda: workspaces.count_parts(A.device, A.col_ptr, longest, 1)  # noqa: E731
    entries = A.fact(f"columns of more than {longest} entries", of_hubs)
    fits = entries * _SHARE <= A.nvals
    return "" if fits else f"hubs have {entries} entries > {A.nvals} / {_SHARE}"


# ------------------------------------------------------------------------------ deep or shallow
def depth_bound(A: CscMatrix) -> int:
    """Return the number of levels that a search of a deep matrix exceeds."""
    return max(LEVELS, A.nvals // EDGES)


def depth_of(counters: Counters, A: CscMatrix, product: Product) -> tuple[bool, str]:
    """Return whether a search from a vertex of most edges is deep, and why in numbers.

    The first call waits for a search, which ends at the bound. Its source is not one of the
    caller's, so the result depends on the matrix alone, and on the direction of the edges.
    """
    bound = depth_bound(A)
    along = product.transpose or is_symmetric(A)
    name = f"depth, {bound} levels, {'along' if along else 'against'} the edges"
    if name not in A.facts and not has_free(A.device, _PROBE_BYTES * A.shape[0]):
        return False, "the search that would count the levels does not fit"
    deep: bool = A.fact(name, lambda: _exceeds(counters, A, product, bound))
    counted = "" if bound == LEVELS else f", {A.nvals} entries / {EDGES}"
    return deep, f"a search has {'more than' if deep else 'at most'} {bound} levels{counted}"


def _exceeds(counters: Counters, A: CscMatrix, product: Product, bound: int) -> bool:
    """Search from the first vertex of most edges; return whether a frontier is left."""
    device, n, form = A.device, A.shape[0], by_inputs(A, product)
    by_length = device.order_of(workspaces.lengths_of(device, form.col_ptr, -1))
    f, levels = (VectorStore(device, counters, dtype, n) for dtype in (BOOL, INT32))
    f.set_single(int(device.read(by_length[:1])), np.True_)
    domain, result = semiring.any_pair.types(BOOL, A.dtype)
    product = product._replace(semiring=semiring.any_pair, domain=domain, result=result)
    levels_only = SearchBody(A, f, levels, product, (Assignment(levels, match.DEPTH),), True, ())
    search: Any = search_grid.grid_search(levels_only, bound)
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
    per-source execution; the largest that the sources fill and whose matrices fit, else 1. A
    bitmap matrix is wide, so of a small matrix half of the rows at most.
    """
    device, n = A.device, A.shape[0]
    if bytes_of(FP64, (_SHALLOW[-1], n)) is None:
        return max(1, min(sources, n // 2))
    shallow = levels <= _MOST_SHALLOW_LEVELS
    choices = _SHALLOW if shallow else () if why_not_per_source(A, 2) else _DEEP
    free = device.free_bytes()
    fits = (k for k in choices if k <= sources and _fit(live, k, n, free, per_source=not shallow))
    return next(fits, 1)


def _fit(live: Sequence[tuple[DType, int]], k: int, n: int, free: int, per_source: bool) -> bool:
    """Whether all matrices of k rows fit at once, with the state of per-source execution if any."""
    # Each counts twice: a statement makes its result before it replaces the old value. Four of the
    # widest must fit besides, since a bitmap matrix is made only where it fits four times.
    needed = per_source * _PER_SOURCE_BYTES * k * n
    sizes = [(bytes_of(dtype, (k, n)), count) for dtype, count in live]
    widest = 0
    for size, count in sizes:
        if size is None:
            return False
        needed += 2 * count * size
        widest = max(widest, size)
    return needed + _SPARE * widest <= free


# ------------------------------------------------------------------------------------ searches
class ManySources(KernelLoop):
    """A search from each row of a frontier, whose outputs are bitmap matrices."""

    def __init__(
        self, counters: Counters, body: SearchBody, times: int | None, number: Any, why: str
    ) -> None:
        self.device, self.statements, self.why = body.A.device, body.statements, why
        self._counters, self._body, self._times, self._number = counters, body, times, number
        self._k, self._n = body.frontier.shape
        self._size = stride(self._k) * self._n
        self._made: list[BitmapMatrix] = []
        self._set_up()

    @abc.abstractmethod
    def _set_up(self) -> None:
        """Set `stops`, and what else depends on the body."""

    def _outputs(self) -> list[VectorStore]:
        self._made = [a.target.own_bitmap(self._counters) for a in self._body.assignments]
        return [made.entries for made in self._made]

    def _blank_outputs(self) -> tuple[int, dict[str, Any]]:
        """Make room in the outputs; return which have no words yet, a bit each, and arguments."""
        blank, arguments, _ = search_grid.outputs_of([made.entries for made in self._made])
        for made in self._made:
            made.changed()
        return blank, arguments

    def _sources(self, most: int) -> tuple[Any, Any, Any, Any]:
        """Return the frontier's (words or None, list of at most `most` or None, values, number)."""
        entries = self._body.frontier.bitmap(self._counters).entries
        if entries.form == "sparse" and entries.nvals <= most:
            return None, *entries.listed(), entries.number
        entries.to_bitmap()
        return entries.words, None, entries.values, entries.number

    def _excluded(self) -> Any:
        entries = self._body.excluded.bitmap(self._counters).entries
        if entries.form == "sparse" and not entries.nvals:
            return None
        entries.to_bitmap()
        return entries.words

    def _store(self, f_words: Any, f_values: Any, left: int) -> None:
        """Store the outputs, and the entries that are left in the frontier."""
        f = self._body.frontier
        rest = VectorStore(self.device, self._counters, f.dtype, self._size)
        if left:
            rest.set_bitmap(f_words, f_values, self._number, left)
        for a, made in zip(self._body.assignments, self._made, strict=True):
            a.target.store = made
        f.store = BitmapMatrix(self.device, f.dtype, f.shape, rest)


def _number_of(a: Assignment) -> Any:
    """Return the number that is assigned, or a 0 of the output's type."""
    return a.target.dtype.numpy.type(0) if a.number is None else a.number


# ------------------------------------------------------------------------- a bit for each source
class Workspace:
    """Arrays for the bit-parallel searches of one matrix and one width; made once and kept.

    There are three frontiers, zero between searches, and for each a bit for every word that is not
    zero; `open` has a bit for every word that still lacked bits after the last pull of all words.
    `result` is the report of the last search: [0] the largest depth, [1] entries left, [2], [3]
    levels pushed and pulled, [4] chunks looked at.
    """

    def __init__(self, device: Device, size: int, items: int) -> None:
        xp, count, items = device.xp, nwords(size), nwords(items)
        self.nbytes = 4 * (4 * count + 4 * items) + 8 * workspaces.SEARCH_COUNTERS
        device.require(self.nbytes, "bit-parallel search", "Take fewer rows at a time.")
        shared = {"visited": xp.empty(count, np.uint32), "open": xp.empty(items, np.uint32)}
        for side in "abc":
            shared[f"words_{side}"] = xp.zeros(count, np.uint32)
            shared[f"some_{side}"] = xp.zeros(items, np.uint32)
        shared["counters"] = xp.zeros(workspaces.SEARCH_COUNTERS, np.uint64)
        shared["barrier"] = xp.zeros(GRID_BARRIER, np.uint32)
        self.shared = shared  # by the names of the kernel's parameters
        self.result = xp.zeros(constant("kResults"), np.uint64)
        self.launches: dict[Any, CheckedLaunch] = {}


def _form(side: str, form: CscMatrix) -> dict[str, Any]:
    """Return a form and the chunks of its long columns as the kernel names them."""
    chunks = workspaces.chunks_of(form)
    named = {"ptr": form.col_ptr, "idx": form.row_idx, "chunks": len(chunks.column)}
    named |= {"column": chunks.column, "start": chunks.start}
    return {f"{side}_{name}": x for name, x in named.items()}


class BitParallelSearch(ManySources):
    """A search of k sources, a bit each, as one cooperative kernel; see search/bits.cu."""

    name = "bit-parallel search"

    def _set_up(self) -> None:
        body, times, A = self._body, self._times, self._body.A
        self.stops = times is not None or may_last(A)  # whether a frontier may be left
        # A log has no counts of entries that outputs had before the loop.
        stores = [a.target.store for a in body.assignments]
        counts = [x.entries.known if isinstance(x, BitmapMatrix) else x.nvals for x in stores]
        self.keeps_log = all(count == 0 for count in counts)
        # The columns of the first are a vertex's predecessors, of the second its successors.
        self._forms = (A, csr_of(A)) if body.product.transpose else (csr_of(A), A)
        self._word, self._groups = words_of(self._k)
        most = self._n if times is None else min(self._n, times)  # how many bits a depth may need
        self._planes = most.bit_length()
        self._place = f"bit-parallel search, {stride(self._k)} bits a vertex"  # in A.cache

    @property
    def nbytes(self) -> int:
        words = 4 * nwords(self._size)
        made = 0 if self._place in self._body.A.cache else 5 * words
        targets = [a.target for a in self._body.assignments]
        values = sum(self._size * x.dtype.numpy.itemsize + words for x in targets)
        return int(made + words * (self._planes + self.stops) + values)

    def _outputs(self) -> list[VectorStore]:
        """Return the outputs' entries; to an output without any nothing is written."""
        found = super()._outputs()
        for made in self._made:
            require(self.device, made.shape, made.dtype, "assign")
        return found

    def _prepare(self, log: LoopLog | None) -> Prepared:
        body, times, device, words = self._body, self._times, self.device, nwords(self._size)
        A, sizes = body.A, (self._size, self._n * self._groups)
        space = A.kept(self._place, lambda: Workspace(device, *sizes))
        excluded = self._excluded()
        if excluded is not None and body.assigns_first:
            frontier = body.frontier.bitmap(self._counters).entries
            frontier.to_bitmap()
            excluded = excluded & ~frontier.words
        elif excluded is not None:
            excluded = self.device.copy_of(excluded)  # it is written while it is read
        source_words, listed, _, _ = self._sources(self._size)
        device.require(4 * self._planes * words, self.name, "Take fewer rows at a time.")
        planes = device.xp.empty(self._planes * words, np.uint32)
        f_words = device.xp.empty(words, np.uint32) if self.stops else None
        result, most = space.result if log is None else log.words, search_grid.NO_LIMIT
        given = {
            "sources": 0 if listed is None else len(listed), "listed": listed,
            "source_words": source_words, "v_words": excluded,
            "before": body.assigns_first + search_grid.NEW_LOG * (log is not None and log.is_new),
            "times": most if times is None else min(times, most), "plane_count": self._planes,
            "planes": planes, "f_words": f_words, "result": result,
            "stop": device.stop[0] if self.stops else None,
        }  # fmt: skip
        records = 0 if log is None else log.capacity
        key = self._forms[0] is A, len(body.assignments) if records else 0, records
        if key not in space.launches:
            space.launches[key] = self._bound(space, records)
        launch = functools.partial(space.launches[key], given)
        blank, _ = self._blank_outputs()
        expansions = [
            self._expansion(space, a, made.entries, planes, result, bool(blank >> q & 1))
            for q, (a, made) in enumerate(zip(body.assignments, self._made, strict=True))
        ]

        def settle() -> None:
            for expand in expansions:
                expand()
            self._store(f_words, None, workspaces.entries_left(device, result) if self.stops else 0)
            if log is not None:
                why = lambda r, _: why_edges(r, r["other"], SEARCH_PUSH_COST)  # noqa: E731
                log.ran(SearchRows(body.statements, [None] * len(expansions), why))

        return launch, settle

    def _bound(self, space: Workspace, records: int) -> CheckedLaunch:
        device, (predecessors, successors), n = self.device, self._forms, self._n
        pull = workspaces.pull_space(predecessors, successors)
        block = device.limits.row_block
        macros = workspaces.index_types(predecessors) | {
            "WORD": self._word, "GROUPS": str(self._groups), "BLOCK": str(block),
            "BLOCKS": str(BLOCKS),
        }  # fmt: skip
        if records:
            macros |= {"LOG": str(records), "ROWS": str(1 + len(self._body.assignments))}
        code = kernel("search/bits.cu", "bits_search", **macros)
        order = workspaces.batches(predecessors, self._groups)
        ranks = workspaces.ranked(predecessors, successors, stride(self._k) // 8)
        return device.prepare(
            code, device.max_cooperative_blocks(code, block) * block, block=block, cooperative=True,
            n=n, nvals=self._body.A.nvals, **_form("in", predecessors), **_form("out", successors),
            hint=pull.hint, empty=pull.empty, order=order, rank=ranks.rank, ranked_idx=ranks.idx,
            ranked_words=ranks.words, heavy=ranks.heavy,
            push_cost=SEARCH_PUSH_COST, enough=min(n, HEAVY) // ENOUGH, **space.shared,
        )  # fmt: skip

    def _expansion(
        self, space: Workspace, a: Assignment, w: VectorStore, planes: Any, result: Any, blank: bool
    ) -> Callable[[], None]:
        """Return what assigns the depths found, or a number, to an output."""
        if w.dtype not in space.launches:
            run, words = kernel("bitmap/expand.cu", "bitmap_expand", X=w.dtype.ctype), len(w.words)
            self.device.load(run)  # nothing may fail after the search
            given = {"nwords": words, "assigned": space.shared["visited"]}
            space.launches[w.dtype] = self.device.prepare(run, words, **given)
        launch = space.launches[w.dtype]

        def expand() -> None:
            count = self._counters.take()
            launch({
                "planes": planes, "result": result, "blank": blank,
                "is_depth": a.what == match.DEPTH, "number": _number_of(a),
                "words": w.words, "values": w.values, "nvals": count,
            })  # fmt: skip
            w.counted(count)

        return expand


# ------------------------------------------------------------------ a thread block for each source
_NO_LIMIT = 2**31 - 1


def per_source_search(
    counters: Counters, body: SearchBody, times: int | None
) -> KernelLoop | Rejection:
    """Return the per-source search of a frontier that carries values, or why there is none."""
    A, product, many = body.A, body.product, len(body.assignments)
    why = why_not_per_source(A, body.frontier.shape[0])
    if why:
        return Rejection(f"the frontier carries values, and no per-source search fits: {why}")
    lacking = why_no_csr(A) if product.transpose else ""
    why = (
        match.why_no_values(body, body.sums, keep=True)
        or ("" if many <= MAX_ASSIGNMENTS else f"{many} assignments; at most {MAX_ASSIGNMENTS} fit")
        or (lacking and f"a per-source search needs the matrix by rows too, and {lacking}")
    )
    if why:
        return Rejection(why)
    return if_fits(PerSourceSearch(counters, body, times, None, "the frontier carries values"))


class PerSourceSearch(ManySources):
    """A search of k sources, each by one thread block; see search/per_source.cu.

    A body with a number must not assign the frontier; without, it assigns before the product.
    """

    name = "per-source search"

    def _set_up(self) -> None:
        body = self._body
        self.stops = may_last(body.A)
        self._keep = self._number is None
        self._sums = self._keep and body.sums
        self._form = by_inputs(body.A, body.product)
        #: Bytes of a vertex in the lists of two levels in shared memory.
        self._each = 2 * (8 + int(self._form.col_ptr.itemsize))
        self._block = self.device.limits.row_block

    @property
    def nbytes(self) -> int:
        n, size, form = self._n, self._size, self._form
        value = self._body.frontier.dtype.numpy.itemsize if self._keep else 0
        made = [a.target.dtype.numpy.itemsize for a in self._body.assignments]
        if self._times is not None:
            made.append(value)
        outputs = sum(size * each + 4 * nwords(size) for each in made)
        lists = n * (8 + form.col_ptr.itemsize) + 4 * workspaces.push_space(form).num_chunks
        state = self._k * n * (4 + value)
        return int(state + self._blocks(self._search_kernel()) * lists + outputs)

    def _search_kernel(self) -> Kernel:
        macros, prelude = workspaces.index_types(self._form), ""
        if self._keep:
            body = self._body
            types, prelude = macros_of(body.product, body.frontier.dtype, body.A.dtype)
            macros |= {name: types[name] for name in ("ADD", "MUL", "U", "A", "T", "Z")}
            macros["SUM"] = str(int(self._sums))
        macros |= {"KEEP": str(int(self._keep)), "LOOK": str(LOOK)}
        macros["BITS"] = str(int(self._has_bits()))
        macros |= {"BLOCK": str(self._block), "BLOCKS": str(BLOCKS)}
        return kernel("search/per_source.cu", "per_source_search", prelude=prelude, **macros)

    def _write_kernel(self) -> Kernel:
        macros = {"KEEP": str(int(self._keep)), "REST": str(int(self._times is not None))}
        macros["X0"] = "0"
        if self._keep:
            macros["U"] = self._body.frontier.dtype.ctype
        for q, a in enumerate(self._body.assignments):
            macros |= {f"X{q}": search_grid.WHAT[a.what], f"X{q}_T": a.target.dtype.ctype}
        return kernel("search/per_source.cu", "per_source_write", **macros)

    def _shared(self) -> tuple[int, int]:
        """Return (vertices of a level that shared memory holds, its bytes)."""
        solo = min(SOLO, self.device.dynamic_shared_bytes // self._each)
        return solo, solo * self._each + (4 * nwords(self._n) if self._has_bits() else 0)

    def _has_bits(self) -> bool:
        """Whether a row's visited bits are in shared memory; sums load a level in any case."""
        free = self.device.dynamic_shared_bytes - SOLO * self._each
        return not self._sums and 4 * nwords(self._n) <= free

    def _blocks(self, code: Kernel) -> int:
        most = self.device.max_cooperative_blocks(code, self._block, self._shared()[1])
        return int(min(most, self._k))

    def _prepare(self, log: LoopLog | None) -> Prepared:
        body, device, form, keep = self._body, self.device, self._form, self._keep
        xp, times, k, n, size = device.xp, self._times, self._k, self._n, self._size
        code, (solo, shared), block = self._search_kernel(), self._shared(), self._block
        blocks, most_large = self._blocks(code), workspaces.push_space(form).num_chunks
        device.require(self.nbytes, self.name, "Take fewer rows at a time.")
        words, listed, values, number = self._sources(n)  # each block reads all of a list
        after, stopped = not body.assigns_first, self._counters.take()
        found_in, sums = xp.empty(k * n, np.int32), self._values(k * n)
        last = np.int32(_NO_LIMIT if times is None else min(times, _NO_LIMIT - 1))
        # No thread block waits for another. The launch is cooperative only because the device
        # counts resident thread blocks, and allows much shared memory, for such launches alone.
        launch = functools.partial(
            device.launch, code, blocks * block, block=block, cooperative=True, shared=shared,
            n=n, k=k, stride=stride(k), ptr=form.col_ptr, idx=form.row_idx,
            values=form.values if keep else None, iso=form.number if keep else False,
            v_words=self._excluded(), f_words=words, listed=listed,
            num_listed=0 if listed is None else len(listed), f_values=values if keep else None,
            f_iso=number if keep else False, assigns_after=after, times=last, solo=solo,
            early=0 if self._has_bits() else EARLY, found_in=found_in, sums=sums,
            vertex=xp.empty(blocks * n, np.int32), start=xp.empty(blocks * n, form.col_ptr.dtype),
            degree=xp.empty(blocks * n, np.uint32),
            large=xp.empty(blocks * most_large, np.int32), most_large=most_large,
            stop=device.stop[0] if self.stops else None, stopped=stopped,
        )  # fmt: skip
        left_words, left_values = None, None
        if times is not None:
            left_words, left_values = xp.empty(nwords(size), np.uint32), self._values(size)
        (blank, outputs), per, run = self._blank_outputs(), stride(k) // 32, self._write_kernel()
        numbers: dict[str, Any] = {f"number{q}": np.int32(0) for q in range(MAX_ASSIGNMENTS)}
        numbers |= {f"number{q}": _number_of(a) for q, a in enumerate(body.assignments)}
        device.load(run)
        write = functools.partial(
            device.launch, run, n * per * 8, n=n, k=k, per=per, assigns_after=after, times=last,
            found_in=found_in, sums=sums, f_words=left_words, f_values=left_values,
            blank=np.uint32(blank), **outputs, **numbers,
            **search_grid.unused_outputs(len(body.assignments)),
        )  # fmt: skip

        def settle() -> bool:
            if self.stops and device.read(stopped):
                return True
            left = self._counters.take()
            write(left=left)
            self._store(left_words, left_values, 0 if times is None else int(device.read(left)))
            return False

        return launch, settle

    def _values(self, count: int) -> Any:
        return self.device.xp.empty(count, self._body.frontier.dtype.numpy) if self._keep else None


def search_without_values(
    counters: Counters, body: SearchBody, times: int | None, number: Any
) -> KernelLoop | Rejection:
    """Return a search without values: per source if the matrix is deep, else bit-parallel."""
    A = body.A
    lacking = why_no_csr(A)
    if lacking:
        return Rejection(f"a bit-parallel search needs the matrix by rows too, and {lacking}")
    (k, n), many, bound = body.frontier.shape, len(body.assignments), depth_bound(A)
    why = (
        why_not_per_source(A, k)
        or (f"{many} assignments > {MAX_ASSIGNMENTS}" if many > MAX_ASSIGNMENTS else "")
        or (f"at most {times} levels <= {bound}" if times is not None and times <= bound else "")
        or (f"{n} vertices have at most {bound} levels" if n <= bound else "")
    )
    if not why:
        deep, why = depth_of(counters, A, body.product)
        if deep:
            search = PerSourceSearch(counters, body, times, number, why)
            if has_free(A.device, search.nbytes):
                return search
            why = f"{why}, but the lists of a per-source search do not fit"
    return if_fits(BitParallelSearch(counters, body, times, number, why))
