"""Run a sweep over the levels in a block, each row by one block of threads."""

from __future__ import annotations

import numpy as np

from lagpu.backends.gpu.device.protocol import has_free
from lagpu.backends.gpu.fused import rowsapart
from lagpu.backends.gpu.fused.body import OnEntries, on_entries
from lagpu.backends.gpu.fused.emit_sweep import Frame, SweepText
from lagpu.backends.gpu.fused.level_order import InOrder
from lagpu.backends.gpu.fused.sweepmatch import Matched, match
from lagpu.backends.gpu.kernels import Kernel, from_source
from lagpu.backends.gpu.ops.blocklevels import BlockLevels
from lagpu.backends.gpu.storage.bitmap import BlockStore, bytes_of, stride
from lagpu.backends.gpu.storage.counters import Counters
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.protocol import Statement

__all__ = ["RowSweep", "rowsweep_of"]

_PARAMS = (
    "i64 rows", "i64 vertices", "i64 stride", "i64 deepest", "const i32* order",
    "const i32* offsets", "const i32* last", "const i32* ranks",
)  # fmt: skip
# An entry is noted where it stands in order; one of the last turn has its value in the block too.
_MADE = (
    "{x}_has[at] = {x}.there; if ({x}.there) {x}_made[at] = {x}.value; "
    "if ({x}.there && d == 1) {x}_values[in_block] = {x}.value;"
)


def rowsweep_of(
    counters: Counters,
    statements: list[Statement],
    here: BlockStore,
    above: BlockStore,
    levels: BlockLevels,
) -> RowSweep | str:
    """Return the sweep that these statements on blocks are, or why they are none."""
    found = on_entries(counters, statements, (here, above), here.shape)
    if isinstance(found, str):
        return found
    body = match(found.statements, here.entries, above.entries)
    if isinstance(body, str):
        return body
    A = body.product.args[0]
    if not rowsapart.rows_apart(A, here.shape[0]):
        return rowsapart.WHY_NOT
    made = RowSweep(body, found, here, above, levels)
    if not has_free(A.device, made.nbytes):
        return "the workspace of a sweep of rows apart does not fit"
    return made


class RowSweep:
    """A kernel, its arguments, and the blocks it writes.

    Parameters
    ----------
    body : Matched
        The statements, on entries.
    found : OnEntries
        Where they come from.
    here, above : BlockStore
        The masks that they name.
    levels : BlockLevels
        The levels; at least two.

    Attributes
    ----------
    nbytes : int
        Bytes that it asks for: the ordering, blocks that are not there yet, and what is
        brought into the order of levels.
    """

    said = "one kernel, a sweep of rows apart"

    def __init__(
        self,
        body: Matched,
        found: OnEntries,
        here: BlockStore,
        above: BlockStore,
        levels: BlockLevels,
    ) -> None:
        self._text = text = SweepText(body, here.entries, above.entries)
        self._outputs, self._levels, self._device = found.outputs, levels, here.device
        self._inorder = InOrder(self._device, levels.shape, text.kept, text.read, text.x)
        self.nbytes = levels.order_bytes() + self._inorder.nbytes
        self.nbytes += sum(self._bytes_to_make(x) for x in text.written)
        self.nbytes += sum(self._bytes_to_make(x) for x in text.read if x.form == "sparse")

    def _bytes_to_make(self, x: VectorStore) -> int:
        if x.form == "bitmap" and x.values is not None:
            return 0
        return bytes_of(x.dtype, self._levels.shape) or 0

    def run(self) -> None:
        """Run the sweep to its end; nothing is waited for."""
        device, (k, n) = self._device, self._levels.shape
        ordered = self._levels.ordered()
        self._inorder.bring(ordered)
        self._text.make_room()
        for x in self._text.blank:  # rows share words, and there is no barrier between them
            x.words.fill(0)
        kernel = self._kernel()
        block = rowsapart.block_size(device)
        device.launch(
            kernel, k * block, *self._text.args, np.int64(k), np.int64(n), np.int64(stride(k)),
            np.int64(self._levels.deepest), *ordered, block=block,
        )  # fmt: skip
        self._inorder.back()
        self._text.changed()
        for out, made in self._outputs:
            made.changed()
            out.data = made

    def _kernel(self) -> Kernel:
        text = self._text.write(_frame, self._inorder)
        macros = {"BLOCK": rowsapart.block_size(self._device), "BLOCKS": rowsapart.BLOCKS}
        return from_source(
            text,
            "sweep",
            file="rowsweep.cu",
            prelude=self._text.prelude,
            **{name: str(value) for name, value in macros.items()},
        )


def _frame(text: SweepText) -> Frame:
    """Return what stands around the function of a vertex, for each row of a block."""
    has = text.name_of(text.x) + "_has"
    at = f"At{{ranks, starts, {has}, row * vertices, stride, i32(row)}}"
    return Frame(
        params=_PARAMS,
        bounds="LG_BLOCK, LG_BLOCKS",
        at="InOrder",
        swept=f"order + row * vertices, starts, nullptr, {at}",
        made=_MADE,
        before=(
            "for (i64 row = block_index(); row < rows; row += grid_blocks()) {",
            "const i32* const starts = offsets + row * (deepest + 2);",
        ),
        after=("visit_row(s, last[row], later, visit, fetch);", "}"),
    )
