"""Running a fused traversal: its workspace, its macros and one cooperative launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.device.protocol import VARIES, Bound, Device
from lagpu.backends.gpu.fused.log import LoopLog
from lagpu.backends.gpu.kernels import Kernel, kernel
from lagpu.backends.gpu.kernels.functors import monoid_functor, operator_functor, reads
from lagpu.backends.gpu.storage import forms
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import (
    index_types,
    num_chunks,
    pull_bytes,
    pull_space,
    push_bytes,
    push_space,
)
from lagpu.backends.protocol import Product

__all__ = ["Assignment", "Traversal", "kept_bytes", "run"]

# When to pull and when to push again, as Beamer, Asanovic and Patterson 2012, section 5.1, have it.
# They take 14 and 24. On an H200, 2026-11-21: alpha 30 brought the slowest of 32 roots of kron20e16
# from 0.23 to 0.19 ms at the same median, but delaunay20 from 2.3 to 3.1 ms, so long searches keep
# 14; and mycielskian17, where a pull without a hit looks at a thousand predecessors, from 0.21 at
# alpha 4 to 0.50 ms, again at the same median. Beta 64, 2026-11-22: what is nearly done is pulled
# to its end, kron24e16 in 0.493 instead of 0.512 ms. A pull that sums looks at all edges, so it is
# dearer: with its own alpha the slowest path count of mycielskian17 takes 0.42 ms and not 3.18.
ALPHA, LONG_ALPHA, DENSE_ALPHA, BETA = (np.float32(x) for x in (30, 14, 4, 64))
SUM_ALPHA, DENSE_SUM_ALPHA = np.float32(14), np.float32(2)
COUNTERS = 3 * 5 * 16
DEPTH, VALUE = 1, 2  # what is assigned, as LG_X0 has it
FOREVER = 2**32 - 1
MOST = 3  # assignments
VARYING = 6 + 1 + 2 * MOST + 2  # arguments side by side: sources, values, outputs, flags, words
NEW_LOG = 8  # beside the bits of outputs that are blank
SOLO = 512  # frontier that one block searches alone
# Threads a block, one block a multiprocessor: many hide the latency of large frontiers; on a road
# network, where levels are short, 512 took 13.9 ms and 1024 17.8 (road2048, H200, 2026-11-21).
FULL_BLOCK, SHORT_BLOCK, SIM_BLOCK = 1024, 512, 256
SHORT_DEGREE = 8  # mean degree up to which levels are taken to be short
DENSE_DEGREE = 128  # mean degree from which a miss of a pull is dear


class Assignment(NamedTuple):
    """``x(f.S) << depth`` or ``x(f.S) << f``."""

    x: VectorStore
    what: int


class Traversal(NamedTuple):
    """A loop that one kernel runs; see search/grid.cu.

    Attributes
    ----------
    A, f, v : MatrixStore, VectorStore, VectorStore
        Matrix, frontier, and the vector whose entries are not searched again.
    how : Product
        The product ``f(~v.S, replace=True) << f (+.x) A``.
    assignments : tuple of Assignment
        What each vertex of the frontier is assigned.
    before : bool
        Whether the assignments stand before the product.
    sums : bool
        Whether the products of one level add up.
    iso : bool
        Whether every product is 1.
    keep : bool
        Whether the frontier's values are stored.
    """

    A: MatrixStore
    f: VectorStore
    v: VectorStore
    how: Product
    assignments: tuple[Assignment, ...]
    before: bool
    sums: bool
    iso: bool
    keep: bool


class Workspace:
    """What a traversal of one matrix needs besides the vectors; made once and kept.

    Attributes
    ----------
    empty, hint : array
        As in `PullSpace`.
    nbytes : int
        Bytes of the workspace, without what single products share with it.
    """

    def __init__(self, successors: MatrixStore, predecessors: MatrixStore) -> None:
        device, xp = successors.device, successors.device.xp
        n, words = successors.shape[0], nwords(successors.shape[0])
        push = push_space(successors)
        pull = pull_space(predecessors, successors)
        kind = successors.col_ptr.dtype
        entry = 8 + kind.itemsize  # a vertex with the place of its edges
        self.nbytes = _own_bytes(n, kind.itemsize, push.num_chunks)
        device.require(self.nbytes, "traversal")
        self.empty, self.hint = pull.empty, pull.hint
        self.words = [xp.empty(words, np.uint32) for _ in range(3)]
        self.lists = [
            push.vertex, xp.empty(n, np.int32),
            push.start, xp.empty(n, kind),
            push.degree, xp.empty(n, np.uint32),
        ]  # fmt: skip
        self.chunks = [push.chunks, xp.empty(push.num_chunks, np.uint64)]
        self.counters = xp.zeros(COUNTERS, np.uint64)
        self.barrier = push.barrier
        self.result = xp.zeros(8, np.uint64)
        self.launches: dict[Any, Bound] = {}
        self._levels: Any = None
        short = successors.nvals <= SHORT_DEGREE * n
        self.block = SIM_BLOCK if device.name == "sim" else SHORT_BLOCK if short else FULL_BLOCK
        dense = successors.nvals >= DENSE_DEGREE * n
        self.alpha = LONG_ALPHA if short else DENSE_ALPHA if dense else ALPHA
        self.solo = np.uint32(min(SOLO, device.dynamic_shared_bytes // (2 * entry)))
        self.shared = 2 * entry * int(self.solo)

    def alpha_of(self, t: Traversal) -> np.float32:
        """Return how many times the edges that leave the frontier are weighed against the rest."""
        if not t.sums:
            return self.alpha
        return DENSE_SUM_ALPHA if self.alpha == DENSE_ALPHA else SUM_ALPHA

    def levels(self, device: Device, n: int) -> Any:
        """Return room for the level each vertex is found in; made at the first call."""
        if self._levels is None:
            device.require(4 * n, "traversal")
            self._levels = device.xp.empty(n, np.int32)
            self.nbytes += 4 * n
        return self._levels


def _own_bytes(n: int, width: int, chunks: int) -> int:
    """Return the bytes of a `Workspace`: words three times, and the second lists and chunks."""
    return 12 * nwords(n) + (8 + width) * n + 8 * chunks


def kept_bytes(out_degree: Any, width: int) -> int:
    """Return the bytes that a search for levels keeps with its matrix, shared lists included.

    Parameters
    ----------
    out_degree : array of int, (n,)
        Entries of each row.
    width : int
        Bytes of a place of an entry.
    """
    n, chunks = len(out_degree), num_chunks(out_degree)
    return push_bytes(n, width, chunks) + pull_bytes(n) + _own_bytes(n, width, chunks)


def _forms(A: MatrixStore, how: Product) -> tuple[MatrixStore, MatrixStore]:
    """Return (successors, predecessors): the columns of each are a vertex' neighbours."""
    return (forms.by_rows(A), A) if how.transpose else (A, forms.by_rows(A))


def _launch(
    t: Traversal,
    forms: tuple[MatrixStore, MatrixStore],
    space: Workspace,
    log: LoopLog | None,
    blank: int,
) -> Bound:
    """Return the launch of this structure; what stands is bound, and kept for later loops."""
    assigned = tuple((a.what, a.x.dtype) for a in t.assignments)
    most, had = 0, False
    if log is not None:
        most, had = log.capacity, blank != (1 << len(assigned)) - 1  # then new entries are counted
    key = (
        t.how.semiring, t.how.flip, t.how.domain, t.f.dtype, assigned, t.before, t.sums, t.iso,
        t.keep, most, had,
    )  # fmt: skip
    found = space.launches.get(key)
    if found is None:
        logs = {"LOG": str(most), "HAD": str(int(had))} if most else {}
        found = space.launches[key] = _bound(t, forms, space, logs)
    return found


def _bound(
    t: Traversal,
    forms: tuple[MatrixStore, MatrixStore],
    space: Workspace,
    logs: dict[str, str],
) -> Bound:
    """Bind what is the same in each loop of this structure on this matrix; see `run`."""
    successors, predecessors = forms
    device, (n, _) = predecessors.device, predecessors.shape
    made = _specialise(
        t, predecessors, tuple((a.what, a.x.dtype.ctype) for a in t.assignments), space.block, logs
    )
    grid = device.max_cooperative_blocks(made, space.block, space.shared)
    reads_matrix = not t.iso and reads(t.how.semiring.multiply)[1 if t.how.flip else 0]
    hint = None if t.sums or (reads_matrix and predecessors.values is not None) else space.hint
    matrix, inverse = (
        (form.col_ptr, form.row_idx, None if t.iso else form.values)
        for form in (successors, predecessors)
    )
    found_in = space.levels(device, n) if t.sums else None
    return device.bound(
        made, grid * space.block,
        np.int64(n), np.uint64(t.A.nvals), *matrix, *inverse, False if t.iso else t.A.number,
        hint, space.empty, *(VARIES,) * VARYING, np.uint32(t.before), VARIES, space.solo,
        space.alpha_of(t), BETA, space.words[0], found_in, *space.words[1:], *space.lists,
        *space.chunks, space.counters, space.barrier, VARIES,
        block=space.block, cooperative=True, shared=space.shared,
    )  # fmt: skip


def _specialise(
    t: Traversal,
    A: MatrixStore,
    assigned: tuple[tuple[int, str], ...],
    block: int,
    logs: dict[str, str],
) -> Kernel:
    macros = index_types(A)
    prelude = ""
    if not t.iso:
        add, prelude = monoid_functor(t.how.semiring.monoid)
        mul, text = operator_functor(t.how.semiring.multiply)
        prelude += text
        macros |= {"ADD": add, "MUL": mul, "T": t.how.domain.ctype, "Z": t.how.result.ctype}
        macros |= {"FLIP": str(int(t.how.flip)), "A": A.dtype.ctype, "U": t.f.dtype.ctype}
        macros |= {"ISO": "0"}
    macros |= {"BLOCK": str(block)}
    for k, (what, ctype) in enumerate(assigned):
        macros |= {f"X{k}": str(what), f"X{k}_T": ctype}
    macros |= logs
    macros |= {"F": t.f.dtype.ctype, "SUM": str(int(t.sums)), "KEEP": str(int(t.keep))}
    return kernel("search/grid.cu", "traverse", prelude=prelude, **macros)


def run(t: Traversal, times: int | None, log: LoopLog | None = None) -> None:
    """Run the loop to its end; nothing is waited for unless `times` may have ended it."""
    if times == 0:
        return
    A, f, device = t.A, t.f, t.A.device
    successors, predecessors = forms = _forms(A, t.how)
    forward = t.how.transpose or successors is predecessors
    place = "traversal" if forward else "traversal against the edges"
    if place not in A.spaces:
        A.spaces[place] = Workspace(successors, predecessors)
    space: Workspace = A.spaces[place]
    result = space.result if log is None else log.words
    num_sources, source = f.nvals, f.single
    sources, source_values = (None, None) if source >= 0 else f.listed()
    v_words = None
    if t.v.nvals:
        t.v.to_bitmap()
        v_words = t.v.words.copy()  # it is written while it is read
    blank, values, words, had = _outputs(t, log)
    f_values = f.spare_values(f.dtype) if t.keep else None
    f_words = None if times is None else f.spare_words()
    flags = blank if log is None or not log.is_new else blank | NEW_LOG
    _launch(t, forms, space, log, blank)(
        v_words, sources, source_values, f.number, source, num_sources, f_values, *values, *words,
        flags, f_words, FOREVER if times is None else times, result,
    )  # fmt: skip
    if log is not None:
        log.ran_traversal(had, A.shape[0], float(space.alpha_of(t)), float(BETA))
    left = 0 if f_words is None else int(device.to_host(result[:8])[1])
    if left:
        f.set_bitmap(f_words, f_values, None if t.keep else f.dtype.numpy.type(1), left)
    else:
        f.set_empty()


def _outputs(
    t: Traversal, log: LoopLog | None
) -> tuple[int, list[Any], list[Any], list[Callable[[], int] | None]]:
    """Return (bits of the outputs whose words are not set, values, words) of the assigned.

    And, if there is a log, what tells how many entries each has; None for none.
    """
    blank = 0
    had: list[Callable[[], int] | None] = []
    values: list[Any] = [None] * MOST
    words: list[Any] = [None] * MOST
    for k, assignment in enumerate(t.assignments):
        x = assignment.x
        new = x.to_blank()
        if new:
            blank |= 1 << k
        else:
            x.to_writable()
        if log is not None:
            had.append(None if new else log.count_of(x))
        values[k], words[k] = x.values, x.words
        x.counted(None)
    return blank, values, words, had
