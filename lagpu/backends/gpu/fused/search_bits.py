"""Running a fused search of many sources: its workspace and one cooperative launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import VARIES, Bound, Device
from lagpu.backends.gpu.fused.log import LoopLog
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, kernel
from lagpu.backends.gpu.ops.bitmap_mxm import Chunks, chunks_of
from lagpu.backends.gpu.storage.bitmap import BlockStore, as_block, own, require, stride
from lagpu.backends.gpu.storage.blockorder import batches, ranked
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import index_types, pull_space

__all__ = ["BlockAssignment", "BlockSearch", "bytes_of", "run"]

COUNTERS = 3 * 5 * 16  # one of five is a log's
RESULTS = 64  # as kResults in search/bits_state.cuh
FOREVER = 2**32 - 1
PUSH_COST = 4  # of an edge that is pushed, against one that is pulled (docs/design/blocks.md)
NEW_LOG = 2  # beside whether assignments come first
# Threads a block, and blocks a multiprocessor: registers for each thread follow from both.
BLOCK, BLOCKS, SIM_BLOCK = 1024, 1, 64


@dataclass(frozen=True)
class BlockAssignment:
    """``x(f.S) << depth`` or ``x(f.S) << number``.

    Attributes
    ----------
    x : MatrixStore
        What is assigned.
    number : NumPy scalar or None
        The constant; None for the depth.
    out : object
        Whose attribute `data` is to be `x` as it is after the loop.
    """

    x: MatrixStore
    number: Any
    out: Any


@dataclass(frozen=True)
class BlockSearch:
    """A loop over blocks that one kernel runs; see search/bits.cu.

    Attributes
    ----------
    forms : tuple of MatrixStore
        The columns of the first are a vertex' predecessors, of the second its successors.
    A : MatrixStore
        What keeps the workspace.
    f, v : MatrixStore
        The frontier, and the matrix whose entries are not searched again.
    f_out : object
        Whose attribute `data` is to be the frontier after the loop.
    number : NumPy scalar
        The value of the entries of a frontier that is left.
    assignments : tuple of BlockAssignment
        What is assigned to the frontier's entries.
    before : bool
        Whether the assignments stand before the product.
    why : str
        Why its rows are not searched apart, if that was asked.
    """

    forms: tuple[MatrixStore, MatrixStore]
    A: MatrixStore
    f: MatrixStore
    v: MatrixStore
    f_out: Any
    number: Any
    assignments: tuple[BlockAssignment, ...]
    before: bool
    why: str = ""

    @property
    def said(self) -> str:
        """What it is called, and why it was chosen."""
        return f"a search of a block: {self.why}" if self.why else "a search of a block"

    @property
    def assigns_anew(self) -> bool:
        """Whether no matrix that is assigned has an entry, as far as the host knows."""
        return all(
            (a.x.entries.known if isinstance(a.x, BlockStore) else a.x.nvals) == 0
            for a in self.assignments
        )


class Workspace:
    """What searches of one matrix, and of so many words a vertex, need; made once and kept.

    Attributes
    ----------
    words, some : list of array
        Three frontiers, zero between searches, and for each a bit for every word that is not.
    visited : array
        The bits that are not searched again.
    open : array
        A bit for every word that the last pull of all words left without bits it looked for.
    result : array
        What the last search told: [1] entries left, [2], [3] levels pushed and pulled, [4] chunks
        looked at, [5] levels; [7] when it began, in ns; from [8] on when the first level began and
        when each of the first 55 ended.
    launches : dict
        What has been launched with it, bound.
    nbytes : int
        Bytes of all these.
    """

    def __init__(self, device: Device, size: int, word: int) -> None:
        xp, count = device.xp, nwords(size)
        items = nwords(size // word)
        self.nbytes = 4 * (4 * count + 4 * items) + 8 * COUNTERS
        device.require(self.nbytes, "block search", "Take fewer rows at a time.")
        self.words = [xp.zeros(count, np.uint32) for _ in range(3)]
        self.some = [xp.zeros(items, np.uint32) for _ in range(3)]
        self.visited = xp.empty(count, np.uint32)
        self.open = xp.empty(items, np.uint32)
        self.counters = xp.zeros(COUNTERS, np.uint64)
        self.barrier = xp.zeros(GRID_BARRIER, np.uint32)
        self.result = xp.zeros(RESULTS, np.uint64)
        self.launches: dict[Any, Bound] = {}


def bytes_of(
    A: MatrixStore, f: MatrixStore, assignments: tuple[BlockAssignment, ...], times: int | None
) -> int:
    """Return the bytes that a search will ask for."""
    size = stride(f.shape[0]) * f.shape[1]
    words = 4 * nwords(size)
    made = 0 if _place(f) in A.spaces else 5 * words
    values = sum(size * a.x.dtype.numpy.itemsize + words for a in assignments)
    return made + words * (_planes(f.shape[1], times) + (times is not None)) + values


def _planes(n: int, times: int | None) -> int:
    """Return how many bits a depth may need."""
    return (n if times is None else min(n, times)).bit_length()


def _word(k: int) -> tuple[str, int]:
    """Return the type of a word, and its bits."""
    return ("u64", 64) if stride(k) % 64 == 0 else ("u32", 32)


def _place(f: MatrixStore) -> str:
    """Return the name of the workspace that serves such frontiers."""
    each = stride(f.shape[0])
    return f"block search, {each} bits a vertex"


def _space(s: BlockSearch, size: int) -> Workspace:
    place = _place(s.f)
    if place not in s.A.spaces:
        s.A.spaces[place] = Workspace(s.A.device, size, _word(s.f.shape[0])[1])
    space: Workspace = s.A.spaces[place]
    return space


def _kernel(s: BlockSearch, block: int, records: int) -> Kernel:
    k = s.f.shape[0]
    word, bits = _word(k)
    logs = {"LOG": str(records), "ROWS": str(1 + len(s.assignments))} if records else {}
    macros = {"WORD": word, "GROUPS": str(stride(k) // bits), **index_types(s.forms[0])}
    macros |= {"BLOCK": str(block), "BLOCKS": str(BLOCKS), **logs}
    return kernel("search/bits.cu", "block_search", **macros)


def _listed(chunks: Chunks) -> tuple[Any, ...]:
    return len(chunks.column), chunks.column, chunks.start


def run(s: BlockSearch, counters: Counters, times: int | None, log: LoopLog | None = None) -> None:
    """Run the loop to its end; nothing is waited for unless `times` may have ended it.

    With a log, the search must be one that `assigns_anew`.
    """
    device, (k, n) = s.A.device, s.f.shape
    frontier, v = as_block(counters, s.f).entries, as_block(counters, s.v).entries
    outputs = [_output(counters, a.x) for a in s.assignments]
    size = frontier.size
    space = _space(s, size)
    excluded = _excluded(s, frontier, v)
    sources, listed, source_words = _sources(frontier)
    count = _planes(n, times)
    device.require(4 * count * nwords(size), "block search", "Take fewer rows at a time.")
    planes = device.xp.empty(count * nwords(size), np.uint32)
    f_words = None if times is None else device.xp.empty(nwords(size), np.uint32)
    result = space.result if log is None else log.words
    before = s.before + NEW_LOG * (log is not None and log.is_new)
    _launch(s, space, 0 if log is None else log.capacity)(
        sources, listed, source_words, excluded, before, FOREVER if times is None else times,
        count, planes, f_words, result,
    )  # fmt: skip
    if log is not None:
        log.ran_block(len(outputs), PUSH_COST)
    for assignment, made in zip(s.assignments, outputs, strict=True):
        _expand(assignment, made, space, planes, result, counters)
        assignment.out.data = made
    left = 0 if times is None else int(device.to_host(result[:8])[1])
    rest = VectorStore(device, counters, s.f.dtype, size)
    if left:
        rest.set_bitmap(f_words, None, s.number, left)
    s.f_out.data = BlockStore(device, s.f.dtype, (k, n), rest)


def _launch(s: BlockSearch, space: Workspace, records: int) -> Bound:
    """Return the launch of such searches on this matrix; what stands is bound, and kept."""
    key = s.forms[0] is s.A, len(s.assignments) if records else 0, records
    found = space.launches.get(key)
    if found is None:
        found = space.launches[key] = _bound(s, space, records)
    return found


def _bound(s: BlockSearch, space: Workspace, records: int) -> Bound:
    """Bind what is the same in each search of such a block on this matrix; see `run`."""
    device, (predecessors, successors) = s.A.device, s.forms
    pull = pull_space(predecessors, successors)
    block = SIM_BLOCK if device.name == "sim" else BLOCK
    code = _kernel(s, block, records)
    bits = stride(s.f.shape[0])
    order = batches(predecessors, bits // _word(s.f.shape[0])[1])
    ranks = ranked(predecessors, successors, bits // 8)
    return device.bound(
        code, device.max_cooperative_blocks(code, block) * block,
        s.f.shape[1], s.A.nvals, predecessors.col_ptr, predecessors.row_idx, successors.col_ptr,
        successors.row_idx, pull.hint, pull.empty, order, *ranks,
        *_listed(chunks_of(predecessors)), *_listed(chunks_of(successors)), *(VARIES,) * 6,
        PUSH_COST, VARIES, space.visited, VARIES, *space.words, *space.some, space.open, VARIES,
        space.counters, space.barrier, VARIES, block=block, cooperative=True,
    )  # fmt: skip


def _excluded(s: BlockSearch, frontier: VectorStore, v: VectorStore) -> Any:
    """Return the bits that are not searched, or None: v's, but those assigned in the beginning."""
    if v.form == "sparse" and not v.nvals:
        return None
    words = v.readable()[0]
    assert words is not None
    if not s.before:
        return words.copy()
    frontier.to_bitmap()
    return words & ~frontier.words


def _sources(frontier: VectorStore) -> tuple[int, Any, Any]:
    """Return (entries, where they stand, words): either a list or words, the other one None."""
    if frontier.form == "sparse":
        listed, _ = frontier.listed()
        return len(listed), listed, None
    return 0, None, frontier.readable()[0]


def _output(counters: Counters, x: MatrixStore) -> BlockStore:
    """Return an output as a block; if it has no entry, nothing is written to it."""
    made = own(counters, x)
    require(made.device, made.shape, made.dtype, "assign")
    return made


def _expand(
    a: BlockAssignment,
    made: BlockStore,
    space: Workspace,
    planes: Any,
    result: Any,
    counters: Counters,
) -> None:
    """Assign what the search has found."""
    w = made.entries
    blank = w.to_blank()
    if not blank:
        w.to_writable()
    count = counters.take()
    launch = space.launches.get(w.dtype)
    if launch is None:
        run, words = kernel("bitmap/expand.cu", "block_expand", X=w.dtype.ctype), len(w.words)
        launch = space.launches[w.dtype] = w.device.bound(
            run, words, words, space.visited, *(VARIES,) * 8
        )
    number = w.dtype.numpy.type(0) if a.number is None else a.number
    launch(planes, result, blank, a.number is None, number, w.words, w.values, count)
    w.counted(count)
    w.forget()
    made.changed()
