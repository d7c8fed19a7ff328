"""Run a sweep over the levels of a vector as one cooperative kernel; see sweep/levels.cuh."""

from __future__ import annotations

import numpy as np

from lagpu.backends.gpu.fused.emit_sweep import Frame, SweepText
from lagpu.backends.gpu.fused.sweepmatch import Matched, match
from lagpu.backends.gpu.kernels import GRID_BARRIER, Kernel, from_source
from lagpu.backends.gpu.storage.levels import VectorLevels
from lagpu.backends.gpu.storage.vector import VectorStore, nwords
from lagpu.backends.protocol import Statement

__all__ = ["Sweep", "sweep_of"]

# One block a multiprocessor; a level that one block runs alone has a vertex a thread.
BLOCK, SIM_BLOCK = 1024, 256
_PARAMS = (
    "i64 count", "i64 deepest", "const i32* order", "const i32* level", "const i64* offsets",
    "i64 num_words", "i64 num_marks", "u32* marks", "u32* entries", "i64* reached",
    "GridBarrier* barrier",
)  # fmt: skip
# An entry is noted by its vertex' mark.
_MADE = "if ({x}.there) {{ {x}_values[at] = {x}.value; s.at.marks[v] = At::Mark(d); }}"


def sweep_of(
    statements: list[Statement], here: VectorStore, above: VectorStore, levels: VectorLevels
) -> Sweep | str:
    """Return the sweep that these statements are, or why they are none."""
    body = match(statements, here, above)
    return body if isinstance(body, str) else Sweep(body, here, above, levels)


def _mark(deepest: int) -> tuple[str, int]:
    """Return the narrowest type that holds every level, and its bytes: more fit into a cache."""
    if deepest < 1 << 8:
        return "unsigned char", 1
    return ("unsigned short", 2) if deepest < 1 << 16 else ("u32", 4)


class Sweep:
    """A kernel, its arguments, and the vectors it writes.

    Parameters
    ----------
    body : Matched
        The statements.
    here, above : VectorStore
        The masks that they name.
    levels : VectorLevels
        The levels; at least two.
    """

    said = "one kernel, a sweep"

    def __init__(
        self, body: Matched, here: VectorStore, above: VectorStore, levels: VectorLevels
    ) -> None:
        self._text, self._levels = SweepText(body, here, above), levels
        self._device = here.device

    def run(self) -> None:
        """Run the sweep to its end; nothing is waited for."""
        device, xp, levels = self._device, self._device.xp, self._levels
        self._text.make_room()
        kernel = self._kernel()
        block = SIM_BLOCK if device.name == "sim" else BLOCK
        grid = device.max_cooperative_blocks(kernel, block)
        size = -(-levels.size * _mark(levels.deepest)[1] // 4)
        marks, entries = (xp.empty(k, np.uint32) for k in (size, levels.deepest + 1))
        device.launch(
            kernel, grid * block, *self._text.args, np.int64(len(levels.order)),
            np.int64(levels.deepest), levels.order, levels.level.astype(np.int32, copy=False),
            levels.offsets, np.int64(nwords(levels.size)), np.int64(size), marks, entries,
            xp.empty(1, np.int64), xp.zeros(GRID_BARRIER, np.uint32),
            block=block, cooperative=True,
        )  # fmt: skip
        self._text.changed()

    def _kernel(self) -> Kernel:
        text = self._text.write(self._frame)
        block = SIM_BLOCK if self._device.name == "sim" else BLOCK
        return from_source(
            text, "sweep", file="sweep.cu", prelude=self._text.prelude, BLOCK=str(block)
        )

    def _frame(self, text: SweepText) -> Frame:
        return Frame(
            params=_PARAMS,
            bounds="LG_BLOCK, 1",
            at=f"AtVertex<{_mark(self._levels.deepest)[0]}>",
            swept="order, offsets, entries, At{reinterpret_cast<At::Mark*>(marks)}",
            made=_MADE,
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
