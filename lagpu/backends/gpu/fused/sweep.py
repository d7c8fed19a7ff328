"""Sweeps over the levels of a search, the deepest first, as one kernel each.

A sweep over a vector is a cooperative kernel; in a sweep over a matrix one thread block sweeps each
row alone. See sweep/levels.cuh.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from lagpu.backends.gpu.device.protocol import has_free
from lagpu.backends.gpu.fused import policy
from lagpu.backends.gpu.fused.emit_sweep import Frame, SweepText
from lagpu.backends.gpu.fused.entries import OnEntries, on_entries
from lagpu.backends.gpu.fused.level_order import LevelOrder
from lagpu.backends.gpu.fused.match import SweepBody, match_sweep
from lagpu.backends.gpu.fused.whole import Prepared, run_whole
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, from_source
from lagpu.backends.gpu.profile.log import LoopLog
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, bytes_of, stride
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.handle import MatrixHandle
from lagpu.backends.gpu.storage.levels import BitmapLevels, VectorLevels
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.operations import Rejection, Statement

__all__ = ["PerSourceSweep", "VectorSweep", "per_source_sweep", "vector_sweep"]

# One thread block a multiprocessor; in a level that one thread block runs alone, each thread has
# at most one vertex.
BLOCK, SIM_BLOCK = 1024, 256


def vector_sweep(
    statements: Sequence[Statement], here: VectorStore, above: VectorStore, levels: VectorLevels
) -> VectorSweep | Rejection:
    """Return the sweep over a vector's levels, or why the statements do not fit."""
    body = match_sweep(statements, here, above)
    return (
        body if isinstance(body, Rejection) else VectorSweep(statements, body, here, above, levels)
    )


_VECTOR_PARAMS = (
    "i64 count", "i64 deepest", "const i32* order", "const i32* level", "const i64* offsets",
    "i64 num_words", "i64 num_marks", "u32* marks", "u32* entries", "i64* reached",
    "GridBarrier* barrier",
)  # fmt: skip
# The mark of a vertex records its entry.
_VECTOR_MADE = "if ({x}.there) {{ {x}_values[at] = {x}.value; s.at.marks[v] = At::Mark(d); }}"


def _mark(deepest: int) -> tuple[str, int]:
    """Return the narrowest type that holds every level, and its bytes: more fit into a cache."""
    if deepest < 1 << 8:
        return "unsigned char", 1
    return ("unsigned short", 2) if deepest < 1 << 16 else ("u32", 4)


class VectorSweep:
    """A kernel, its arguments, and the vectors it writes; see `FusedLoop`.

    Parameters
    ----------
    statements : sequence of Statement
        The loop's body.
    body : SweepBody
        The parts of the body.
    here, above : VectorStore
        The masks of the sweep.
    levels : VectorLevels
        The levels; at least two.
    """

    name, why = "sweep", "the levels are a vector"
    keeps_log = False

    def __init__(
        self,
        statements: Sequence[Statement],
        body: SweepBody,
        here: VectorStore,
        above: VectorStore,
        levels: VectorLevels,
    ) -> None:
        self.statements = statements
        self._text, self._levels = SweepText(body, here, above), levels
        self._device = here.device

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: a mark a vertex, and the vectors written."""
        marks: int = self._levels.size * _mark(self._levels.deepest)[1]
        return marks + sum(int(x.bytes_to_write) for x in self._text.written)

    def run(self, _log: LoopLog | None = None) -> None:
        """Run the sweep to its end; the host does not wait."""
        run_whole(self._device, self.name, self._text.written, self._prepared)

    def _prepared(self) -> Prepared:
        device, xp, levels = self._device, self._device.xp, self._levels
        self._text.make_room()
        kernel = self._kernel()
        block = SIM_BLOCK if device.name == "sim" else BLOCK
        grid = device.max_cooperative_blocks(kernel, block)
        size = -(-levels.size * _mark(levels.deepest)[1] // 4)
        marks, entries = (xp.empty(k, np.uint32) for k in (size, levels.deepest + 1))
        launch = functools.partial(
            device.launch, kernel, grid * block,
            *self._text.arguments(), np.int64(len(levels.order)), np.int64(levels.deepest),
            levels.order, levels.level.astype(np.int32, copy=False),
            levels.offsets, np.int64(nwords(levels.size)), np.int64(size), marks, entries,
            xp.empty(1, np.int64), xp.zeros(GRID_BARRIER, np.uint32),
            block=block, cooperative=True,
        )  # fmt: skip
        self._text.changed()
        return launch, lambda: None

    def _kernel(self) -> Kernel:
        text, block = self._text.write(self._frame), BLOCK
        if self._device.name == "sim":
            block = SIM_BLOCK
        prelude = self._text.params.prelude.text
        return from_source(text, "sweep", file="sweep.cu", prelude=prelude, BLOCK=str(block))

    def _frame(self, text: SweepText) -> Frame:
        return Frame(
            params=_VECTOR_PARAMS,
            bounds="LG_BLOCK, 1",
            at=f"AtVertex<{_mark(self._levels.deepest)[0]}>",
            swept="order, offsets, entries, At{reinterpret_cast<At::Mark*>(marks)}",
            made=_VECTOR_MADE,
            before=(
                "const i64 thread = global_thread(), threads = global_threads();",
                "for (i64 k = thread; k < num_marks; k += threads) marks[k] = 0;",
                "for (i64 k = thread; k <= deepest; k += threads) entries[k] = 0;",
                "for (i64 k = thread; k < num_words; k += threads) {",
                *(f"{name}_words[k] = 0;" for name in text.names_of_blank()),
                "}",
            ),
            after=(
                "visit_levels(s, level, count, deepest, reached, later, barrier, visit, fetch);",
            ),
        )


# ------------------------------------------------------------------------ over a matrix, by rows
_ROW_PARAMS = (
    "i64 rows", "i64 vertices", "i64 stride", "i64 deepest", "const i32* order",
    "const i32* offsets", "const i32* last", "const i32* ranks",
)  # fmt: skip
# An entry is stored in level order; that of the last iteration in the bitmap matrix too.
_ROW_MADE = (
    "{x}_has[at] = {x}.there; if ({x}.there) {x}_made[at] = {x}.value; "
    "if ({x}.there && d == 1) {x}_values[in_bitmap] = {x}.value;"
)


def per_source_sweep(
    counters: Counters,
    statements: Sequence[Statement],
    here: MatrixHandle,
    above: MatrixHandle,
    levels: BitmapLevels,
) -> PerSourceSweep | Rejection:
    """Return the sweep over a matrix' levels, or why the statements do not fit."""
    found = on_entries(counters, statements, (here, above), here.shape)
    if isinstance(found, Rejection):
        return found
    masks = [found.bitmaps[id(A)] for A in (here, above)]
    body = match_sweep(found.statements, masks[0].entries, masks[1].entries)
    if isinstance(body, Rejection):
        return body
    A = body.multiply.matrix.csc()
    why = policy.why_not_per_source(A, here.shape[0])
    if why:
        return Rejection(f"no per-source sweep: {why}")
    made = PerSourceSweep(body, found, masks, levels)
    if not has_free(A.device, made.nbytes):
        return Rejection("the workspace of a per-source sweep does not fit")
    return made


class PerSourceSweep:
    """A kernel, its arguments, and the bitmap matrices it writes; see `FusedLoop`.

    Parameters
    ----------
    body : SweepBody
        The body, on entries.
    found : OnEntries
        The statements on entries, and the bitmap matrices that store the entries.
    masks : list of BitmapMatrix
        The masks of the sweep, here and above.
    levels : BitmapLevels
        The levels; at least two.
    """

    name, why = "per-source sweep", "the levels are a matrix, of a sparse graph without hubs"
    keeps_log = False

    def __init__(
        self, body: SweepBody, found: OnEntries, masks: list[BitmapMatrix], levels: BitmapLevels
    ) -> None:
        self.statements = found.statements
        self._text = text = SweepText(body, masks[0].entries, masks[1].entries)
        self._found, self._levels, self._device = found, levels, masks[0].device
        self._order = LevelOrder(self._device, levels.shape, text.kept, text.read, text.x)

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: the level order, the permuted entries, and new bitmap matrices."""
        text = self._text
        made = [*text.written, *(x for x in text.read if x.form == "sparse")]
        needed = self._levels.order_bytes() + self._order.nbytes
        return needed + sum(self._bytes_to_make(x) for x in made)

    def _bytes_to_make(self, x: VectorStore) -> int:
        if x.form == "bitmap" and x.values is not None:
            return 0
        return bytes_of(x.dtype, self._levels.shape) or 0

    def run(self, _log: LoopLog | None = None) -> None:
        """Run the sweep to its end; the host does not wait."""
        run_whole(self._device, self.name, self._text.written, self._prepared)

    def _prepared(self) -> Prepared:
        device, (k, n) = self._device, self._levels.shape
        ordered = self._levels.ordered()
        self._order.permute(ordered)
        self._text.make_room()
        for x in self._text.blank:  # rows share words, and there is no barrier between them
            x.words.fill(0)
        kernel = self._kernel()
        block = policy.block_size(device)
        self._order.load()
        self._text.changed()
        launch = functools.partial(
            device.launch, kernel, k * block,
            *self._text.arguments(), np.int64(k), np.int64(n),
            np.int64(stride(k)), np.int64(self._levels.deepest), *ordered, block=block,
        )  # fmt: skip
        return launch, self._settle

    def _settle(self) -> None:
        """Take over what the kernel has written."""
        self._order.restore()
        self._found.store()

    def _kernel(self) -> Kernel:
        text = self._text.write(_row_frame, self._order)
        macros = {"BLOCK": policy.block_size(self._device), "BLOCKS": policy.BLOCKS}
        return from_source(
            text,
            "sweep",
            file="rowsweep.cu",
            prelude=self._text.params.prelude.text,
            **{name: str(value) for name, value in macros.items()},
        )


def _row_frame(text: SweepText) -> Frame:
    """Return the frame of a kernel that sweeps each row of a matrix."""
    has = text.name_of(text.x) + "_has"
    at = f"At{{ranks, starts, {has}, row * vertices, stride, i32(row)}}"
    return Frame(
        params=_ROW_PARAMS,
        bounds="LG_BLOCK, LG_BLOCKS",
        at="InLevelOrder",
        swept=f"order + row * vertices, starts, nullptr, {at}",
        made=_ROW_MADE,
        before=(
            "for (i64 row = block_index(); row < rows; row += grid_blocks()) {",
            "const i32* const starts = offsets + row * (deepest + 2);",
        ),
        after=("visit_row(s, last[row], later, visit, fetch);", "}"),
    )
