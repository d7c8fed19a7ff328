"""The bit-parallel search: many sources at once, a bit for each, as one cooperative kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import CheckedLaunch, Device, has_free
from lagpu.backends.gpu.fused.match import DEPTH, Assignment, SearchBody
from lagpu.backends.gpu.fused.search_space import Prepared, may_last, run_whole
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, constant, kernel
from lagpu.backends.gpu.ops.planner import SEARCH_PUSH_COST
from lagpu.backends.gpu.profile import LoopLog, SearchRows, why_push_cost
from lagpu.backends.gpu.storage import workspaces
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, require, stride
from lagpu.backends.gpu.storage.forms import csr_of
from lagpu.backends.gpu.storage.matrix import Counters, CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.operations import Rejection

NO_LIMIT = 2**32 - 1
NEW_LOG = constant("kNewLog")  # beside whether assignments come first
BLOCKS = 1  # a multiprocessor: registers for each thread follow from this and its threads
HEAVY, ENOUGH = constant("kHeavy"), 16


def bit_parallel_search(
    counters: Counters, body: SearchBody, times: int | None, number: Any, why: str
) -> BitParallelSearch | Rejection:
    """Return the bit-parallel search of a matrix' rows, or why it does not fit."""
    made = BitParallelSearch(counters, body, times, number, why)
    if not has_free(body.A.device, made.nbytes):
        return Rejection("the workspace of a bit-parallel search does not fit")
    return made


class Workspace:
    """Arrays for the bit-parallel searches of one matrix and one width; made once and kept.

    There are three frontiers, zero between searches, and for each a bit for every word that is not
    zero; `open` has a bit for every word that still lacked bits after the last pull of all words.
    `result` is the report of the last search: [0] the largest depth, [1] entries left, [2], [3]
    levels pushed and pulled, [4] chunks looked at.
    """

    def __init__(self, device: Device, size: int, word: int) -> None:
        xp, count = device.xp, nwords(size)
        items = nwords(size // word)
        self.nbytes = 4 * (4 * count + 4 * items) + 8 * workspaces.SEARCH_COUNTERS
        device.require(self.nbytes, "bit-parallel search", "Take fewer rows at a time.")
        self.words = [xp.zeros(count, np.uint32) for _ in range(3)]
        self.some = [xp.zeros(items, np.uint32) for _ in range(3)]
        self.visited = xp.empty(count, np.uint32)
        self.open = xp.empty(items, np.uint32)
        self.counters = xp.zeros(workspaces.SEARCH_COUNTERS, np.uint64)
        self.barrier = xp.zeros(GRID_BARRIER, np.uint32)
        self.result = xp.zeros(constant("kResults"), np.uint64)
        self.launches: dict[Any, CheckedLaunch] = {}


def _planes(n: int, times: int | None) -> int:
    """Return how many bits a depth may need."""
    return (n if times is None else min(n, times)).bit_length()


def _word(k: int) -> tuple[str, int]:
    """Return the type of a word, and its bits."""
    return ("u64", 64) if stride(k) % 64 == 0 else ("u32", 32)


def _form(side: str, form: CscMatrix) -> dict[str, Any]:
    """Return a form and the chunks of its long columns as the kernel names them."""
    chunks = workspaces.chunks_of(form)
    return {
        f"{side}_ptr": form.col_ptr,
        f"{side}_idx": form.row_idx,
        f"{side}_chunks": len(chunks.column),
        f"{side}_column": chunks.column,
        f"{side}_start": chunks.start,
    }


class BitParallelSearch:
    """A search of k sources that one kernel runs; see search/bits.cu and `FusedLoop`.

    Parameters are those of `bit_parallel_search`.
    """

    name = "bit-parallel search"

    def __init__(
        self, counters: Counters, body: SearchBody, times: int | None, number: Any, why: str
    ) -> None:
        self._counters, self._body, self._times, self._number = counters, body, times, number
        self.why, self.statements = why, body.statements
        self._leaves = times is not None or may_last(body.A)  # whether a frontier may be left
        # A log has no counts of entries that outputs had before the loop.
        self.keeps_log = all(_known_entries(a) == 0 for a in body.assignments)
        A = body.A
        # The columns of the first are a vertex' predecessors, of the second its successors.
        self._forms = (A, csr_of(A)) if body.product.transpose else (csr_of(A), A)

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`."""
        k, n = self._body.frontier.shape
        size = stride(k) * n
        words = 4 * nwords(size)
        made = 0 if self._place in self._body.A.cache else 5 * words
        targets = [a.target for a in self._body.assignments]
        values: int = sum(size * x.dtype.numpy.itemsize + words for x in targets)
        return made + words * (_planes(n, self._times) + self._leaves) + values

    @property
    def _place(self) -> str:
        """The cache key of the workspace for frontiers of this width."""
        return f"bit-parallel search, {stride(self._body.frontier.shape[0])} bits a vertex"

    def run(self, log: LoopLog | None = None) -> None:
        """Run the loop to its end; the host waits only if a frontier may be left."""
        outputs = [_output(self._counters, a) for a in self._body.assignments]
        written = [made.entries for made in outputs]
        prepare = functools.partial(self._prepared, log, outputs)
        run_whole(self._body.A.device, self.name, written, prepare, self._leaves)

    def _prepared(self, log: LoopLog | None, outputs: list[BitmapMatrix]) -> Prepared:
        body, counters, times = self._body, self._counters, self._times
        device, (k, n) = body.A.device, body.frontier.shape
        frontier = body.frontier.bitmap(counters).entries
        size = frontier.size
        space = self._workspace(size)
        excluded = self._excluded(frontier)
        count = _planes(n, times)
        device.require(4 * count * nwords(size), self.name, "Take fewer rows at a time.")
        planes = device.xp.empty(count * nwords(size), np.uint32)
        f_words = device.xp.empty(nwords(size), np.uint32) if self._leaves else None
        result = space.result if log is None else log.words
        flags = body.assigns_first + NEW_LOG * (log is not None and log.is_new)
        given = {
            **_sources(frontier), "v_words": excluded, "before": flags,
            "times": NO_LIMIT if times is None else times, "plane_count": count, "planes": planes,
            "f_words": f_words, "stop": device.stop[0] if self._leaves else None, "result": result,
        }  # fmt: skip
        run = self._launch(space, 0 if log is None else log.capacity)
        launch = functools.partial(run, given)
        expansions = [
            _expansion(assignment, made, space, planes, result, counters)
            for assignment, made in zip(body.assignments, outputs, strict=True)
        ]

        def settle() -> None:
            for expand in expansions:
                expand()
            left = workspaces.entries_left(device, result) if self._leaves else 0
            dtype = body.frontier.dtype
            rest = VectorStore(device, counters, dtype, size)
            if left:
                rest.set_bitmap(f_words, None, self._number, left)
            body.frontier.store = BitmapMatrix(device, dtype, (k, n), rest)
            if log is not None:
                why = functools.partial(why_push_cost, SEARCH_PUSH_COST)
                log.ran(SearchRows(body.statements, [None] * len(outputs), why))

        return launch, settle

    def _workspace(self, size: int) -> Workspace:
        A, word = self._body.A, _word(self._body.frontier.shape[0])[1]
        return A.kept(self._place, lambda: Workspace(A.device, size, word))

    def _launch(self, space: Workspace, records: int) -> CheckedLaunch:
        """Return the prepared launch of such searches on this matrix; it is kept."""
        assigned = len(self._body.assignments)
        key = self._forms[0] is self._body.A, assigned if records else 0, records
        found = space.launches.get(key)
        if found is None:
            found = space.launches[key] = self._bound(space, records)
        return found

    def _bound(self, space: Workspace, records: int) -> CheckedLaunch:
        """Prepare the launch with the arguments that every such search on this matrix shares."""
        body, (predecessors, successors) = self._body, self._forms
        device, (k, n) = body.A.device, body.frontier.shape
        pull = workspaces.pull_space(predecessors, successors)
        block = device.limits.row_block
        code = self._kernel(block, records)
        bits = stride(k)
        order = workspaces.batches(predecessors, bits // _word(k)[1])
        ranks = workspaces.ranked(predecessors, successors, bits // 8)
        words_a, words_b, words_c = space.words
        some_a, some_b, some_c = space.some
        return device.prepare(
            code, device.max_cooperative_blocks(code, block) * block, block=block, cooperative=True,
            n=n, nvals=body.A.nvals, **_form("in", predecessors), **_form("out", successors),
            hint=pull.hint, empty=pull.empty, order=order, rank=ranks.rank, ranked_idx=ranks.idx,
            ranked_words=ranks.words, heavy=workspaces.heaviest(predecessors, ranks),
            push_cost=SEARCH_PUSH_COST, enough=min(n, HEAVY) // ENOUGH, visited=space.visited,
            words_a=words_a, words_b=words_b, words_c=words_c,
            some_a=some_a, some_b=some_b, some_c=some_c,
            open=space.open, counters=space.counters, barrier=space.barrier,
        )  # fmt: skip

    def _kernel(self, block: int, records: int) -> Kernel:
        k = self._body.frontier.shape[0]
        word, bits = _word(k)
        rows = 1 + len(self._body.assignments)
        logs = {"LOG": str(records), "ROWS": str(rows)} if records else {}
        macros = {
            "WORD": word,
            "GROUPS": str(stride(k) // bits),
            **workspaces.index_types(self._forms[0]),
        }
        macros |= {"BLOCK": str(block), "BLOCKS": str(BLOCKS), **logs}
        return kernel("search/bits.cu", "bits_search", **macros)

    def _excluded(self, frontier: VectorStore) -> Any:
        """Return the excluded bits, or None; without the frontier's if it is assigned first."""
        v = self._body.excluded.bitmap(self._counters).entries
        if v.form == "sparse" and not v.nvals:
            return None
        words = v.readable()[0]
        assert words is not None
        if not self._body.assigns_first:
            return words.copy()
        frontier.to_bitmap()
        return words & ~frontier.words


def _known_entries(a: Assignment) -> int | None:
    """Return how many entries an output has, if the host knows."""
    store = a.target.store
    return store.entries.known if isinstance(store, BitmapMatrix) else store.nvals


def _sources(frontier: VectorStore) -> dict[str, Any]:
    """Return the sources as the kernel takes them: either a list or words, the other one None."""
    if frontier.form == "sparse":
        listed, _ = frontier.listed()
        return {"sources": len(listed), "listed": listed, "source_words": None}
    return {"sources": 0, "listed": None, "source_words": frontier.readable()[0]}


def _output(counters: Counters, a: Assignment) -> BitmapMatrix:
    """Return an output as a bitmap matrix; if it has no entry, nothing is written to it."""
    made: BitmapMatrix = a.target.own_bitmap(counters)
    require(made.device, made.shape, made.dtype, "assign")
    return made


def _expansion(
    a: Assignment,
    made: BitmapMatrix,
    space: Workspace,
    planes: Any,
    result: Any,
    counters: Counters,
) -> Callable[[], None]:
    """Make room in one output; return what assigns the depths found, or a number, to it."""
    w = made.entries
    blank = w.to_blank()
    if not blank:
        w.to_writable()
    launch = space.launches.get(w.dtype)
    if launch is None:
        run, words = kernel("bitmap/expand.cu", "bitmap_expand", X=w.dtype.ctype), len(w.words)
        launch = space.launches[w.dtype] = w.device.prepare(
            run, words, nwords=words, assigned=space.visited
        )
        w.device.load(run)
    number = w.dtype.numpy.type(0) if a.number is None else a.number
    made.changed()
    w.changes()

    def expand() -> None:
        count = counters.take()
        launch({
            "planes": planes, "result": result, "blank": blank, "is_depth": a.what == DEPTH,
            "number": number, "words": w.words, "values": w.values, "nvals": count,
        })  # fmt: skip
        w.counted(count)
        a.target.store = made

    return expand
