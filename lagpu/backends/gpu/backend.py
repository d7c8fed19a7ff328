"""The gpu backend: storage, planner and kernels behind the `Backend` protocol.

The same class serves a CUDA device (``gpu``) and the simulated one (``sim``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator, Semiring
from lagpu.algebra.tables import binary
from lagpu.backends.gpu.device.observer import Shadow
from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.fused import search_bits, search_grid, search_per_source
from lagpu.backends.gpu.fused.blockfuse import search_of
from lagpu.backends.gpu.fused.log import LoopLog
from lagpu.backends.gpu.fused.match import traversal_of
from lagpu.backends.gpu.fused.program import program_of
from lagpu.backends.gpu.fused.program_bitmap import blockprogram_of
from lagpu.backends.gpu.fused.rowsweep import RowSweep, rowsweep_of
from lagpu.backends.gpu.fused.search_bits import BlockSearch
from lagpu.backends.gpu.fused.search_per_source import RowSearch
from lagpu.backends.gpu.fused.sweep import Sweep, sweep_of
from lagpu.backends.gpu.matrices import Matrices
from lagpu.backends.gpu.objects import settled
from lagpu.backends.gpu.ops import bitmap, elementwise, selection, spmv
from lagpu.backends.gpu.ops.blocklevels import BlockLevels
from lagpu.backends.gpu.ops.planner import choose
from lagpu.backends.gpu.ops.repeated import RepeatedProduct, repeats
from lagpu.backends.gpu.profile.meter import GpuMeter
from lagpu.backends.gpu.storage import forms
from lagpu.backends.gpu.storage.bitmap import BlockStore
from lagpu.backends.gpu.storage.casts import cast_number
from lagpu.backends.gpu.storage.levels import VectorLevels
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.protocol import Applied, Descriptor, Product, Statement
from lagpu.core.distinct import distinct

__all__ = ["GpuBackend"]

Array = np.ndarray[Any, Any]


class GpuBackend(Matrices):
    """Vectors and matrices on one device.

    Parameters
    ----------
    name : str
        ``"gpu"`` or ``"sim"``.
    device : Device
        Where they live.
    """

    def __init__(self, name: str, device: Device) -> None:
        self.name = name
        super().__init__(device)
        self.plan = self.edges = self.product = None  # where attributes are quickest found
        self.last_loop = ""  # how the last loop ran
        self.loop_log: LoopLog | None = None  # while loops are traced
        self.shadows: list[Shadow] = []  # of traces that have ended, for the next
        self.logs: list[Any] = []  # their buffers

    def __repr__(self) -> str:
        return f"<lagpu backend {self.name}>"

    def meter(self) -> GpuMeter:
        """See `Backend`."""
        return GpuMeter(self)

    def explain(self, A: MatrixStore, u: VectorStore, how: Product) -> list[str]:
        """See `Backend`."""
        plan = choose(A, u, how)
        return [f"{plan.direction}, {plan.kernel}: {plan.reason}", spmv.memory_of(A)]

    def explain_selection(self, f: VectorStore, u: VectorStore, how: Product) -> list[str]:
        """See `Backend`."""
        plan = selection.choose(how)
        return [f"{plan.direction}, {plan.kernel}: {plan.reason}"]

    def free_bytes(self) -> int:
        """See `Backend`."""
        return self.device.free_bytes()

    def run_loop(
        self,
        statements: list[Statement],
        until_empty: Any,
        unchanged: Any,
        times: int | None,
    ) -> bool:
        """See `Backend`."""
        log = self.loop_log
        if log is not None:
            log.begin(statements)
        if isinstance(statements[0].w, MatrixStore):
            return self._run_block_loop(statements, until_empty, unchanged, times)
        if until_empty is not None:
            found = traversal_of(statements, until_empty, times)
            if not isinstance(found, str):
                search_grid.run(found, times, log)
                self.last_loop = "fused: one kernel, a traversal"
                return True
        made = program_of(statements, until_empty, unchanged)
        if isinstance(made, str):
            self.last_loop = f"eager: {made}"
            return False
        made.run(times, log)
        self.last_loop = "fused: one kernel, a program"
        return True

    def repeated(self, s: Statement) -> Callable[..., None] | None:
        """See `Backend`: products between which the host decides."""
        return RepeatedProduct(self, s.args[0], s.args[2]) if repeats(s) else None

    def _run_block_loop(
        self,
        statements: list[Statement],
        until_empty: MatrixStore | None,
        unchanged: MatrixStore | None,
        times: int | None,
    ) -> bool:
        """Run a loop that writes matrices; see `run_loop`."""
        log = self.loop_log
        search: BlockSearch | RowSearch | str = ""
        if until_empty is not None:
            search = search_of(self.counters, statements, until_empty, times)
        if isinstance(search, str):
            made = blockprogram_of(self.counters, statements, until_empty, unchanged)
            if isinstance(made, str):
                self.last_loop = f"eager: {made}"
                return False
            if log is not None:
                log.begin(made.statements)
            made.run(times, log)
            self.last_loop = "fused: one kernel, a program over blocks"
            return True
        if log is not None and not _is_logged(search):
            log.leave_out(statements)
            log = None
        if isinstance(search, RowSearch):
            search_per_source.run(search, self.counters, times)
        else:
            search_bits.run(search, self.counters, times, log)
        self.last_loop = f"fused: one kernel, {search.said}"
        return True

    @settled
    def vector_levels(self, v: VectorStore) -> VectorLevels:
        """See `Backend`."""
        return VectorLevels(self.counters, v)

    def block_levels(self, A: MatrixStore) -> BlockLevels | None:
        """See `Backend`."""
        return BlockLevels(self.counters, A) if self._fit(A) else None

    def run_sweep(
        self, statements: list[Statement], here: Any, above: Any, levels: VectorLevels | BlockLevels
    ) -> bool:
        """See `Backend`."""
        found: Sweep | RowSweep | str
        if isinstance(levels, BlockLevels):
            found = rowsweep_of(self.counters, statements, here, above, levels)
        else:
            found = sweep_of(statements, here, above, levels)
        if isinstance(found, str):
            self.last_loop = f"eager: {found}"
            return False
        if self.loop_log is not None:
            self.loop_log.leave_out(statements)
        found.run()
        self.last_loop = f"fused: {found.said}"
        return True

    # --------------------------------------------------------- operations: write a vector
    def mxv(
        self, w: VectorStore, desc: Descriptor, A: MatrixStore, u: VectorStore, how: Product
    ) -> None:
        """See `Backend`."""
        self.plan = plan = choose(A, u, how, desc)
        mask = elementwise.mask_words(desc)
        dtype = w.dtype if desc.is_fresh else how.result
        t = spmv.multiply(w, A, u, how, plan, mask, dtype, self.edges)
        if desc.is_fresh and (t.dtype is w.dtype or t.values is None):
            if t.iso is not None:
                t.iso = cast_number(t.iso, w.dtype)
            w.adopt(t)
        else:
            elementwise.write(w, desc, t)
            w.trail = t.trail and t.trail._replace(counts=None)  # w may have more entries

    def mxv_selection(
        self, w: VectorStore, desc: Descriptor, f: VectorStore, u: VectorStore, how: Product
    ) -> None:
        """See `Backend`."""
        self.plan = plan = selection.choose(how)
        t = selection.multiply(w, f, u, how, plan, elementwise.mask_words(desc), self.edges)
        if desc.is_fresh and t.dtype is w.dtype:
            w.adopt(t)
        else:
            elementwise.write(w, desc, t)

    def ewise_add(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, v: VectorStore, op: BinaryOp
    ) -> None:
        """See `Backend`."""
        elementwise.combine("ewise_add", w, desc, u, v, op, None)

    def ewise_mult(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, v: VectorStore, op: BinaryOp
    ) -> None:
        """See `Backend`."""
        elementwise.combine("ewise_mult", w, desc, u, v, op, None)

    def ewise_union(
        self,
        w: VectorStore,
        desc: Descriptor,
        u: VectorStore,
        v: VectorStore,
        op: BinaryOp,
        defaults: tuple[Any, Any],
    ) -> None:
        """See `Backend`."""
        elementwise.combine("ewise_union", w, desc, u, v, op, defaults)

    def apply(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, op: Operator, how: Applied
    ) -> None:
        """See `Backend`."""
        elementwise.map_entries(w, desc, u, op, how)

    def select(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, op: IndexUnaryOp, thunk: Any
    ) -> None:
        """See `Backend`."""
        elementwise.select_entries(w, desc, u, op, thunk)

    def assign_scalar(
        self, w: VectorStore, desc: Descriptor, value: Any, indices: Array | None
    ) -> None:
        """See `Backend`."""
        region = None if indices is None else self._region(w, indices)
        elementwise.assign_value(w, desc, value, region)

    def assign(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, indices: Array | None
    ) -> None:
        """See `Backend`."""
        if indices is not None:
            region = self._region(w, indices)
            u = elementwise.scatter(w, self.device.from_host(indices), u)
            elementwise.write(w, desc, u, region)
        else:
            elementwise.write(w, desc, u)

    def _region(self, w: VectorStore, indices: Array | None) -> Any:
        """Return the presence words of a list of indices, or None for all."""
        if indices is None:
            return None
        region = VectorStore(self.device, self.counters, w.dtype, w.size)
        region.set_sparse(self.device.from_host(distinct(indices)), None, w.dtype.numpy.type(0))
        region.to_bitmap()
        return region.words

    def extract(
        self, w: VectorStore, desc: Descriptor, u: VectorStore, indices: Array | None
    ) -> None:
        """See `Backend`."""
        if indices is not None:
            u = elementwise.gather(u, self.device.from_host(indices))
        elementwise.write(w, desc, u)

    def extract_column(
        self, w: VectorStore, desc: Descriptor, A: MatrixStore, j: int, transpose: bool
    ) -> None:
        """See `Backend`."""
        t = VectorStore(self.device, self.counters, A.dtype, A.shape[1 if transpose else 0])
        if transpose and not forms.is_symmetric(A):
            chosen = self.device.xp.flatnonzero(A.row_idx == j)
            indices = A.columns()[chosen]
            values = None if A.values is None else A.values[chosen]
        else:
            first, last = self._column(A, j)
            indices = A.row_idx[first:last].astype(np.int64)
            values = None if A.values is None else A.values[first:last]
        t.set_sparse(indices, values, A.iso)
        elementwise.write(w, desc, t)

    def reduce_vector(
        self, w: VectorStore, desc: Descriptor, A: MatrixStore, monoid: Monoid, transpose: bool
    ) -> None:
        """See `Backend`: a product with a full vector that takes the matrix' value."""
        if transpose and isinstance(A, BlockStore):
            elementwise.write(w, desc, bitmap.reduce_columns(A, monoid))
            return
        domain, result = monoid.types(A.dtype)
        ones = VectorStore(self.device, self.counters, domain, A.shape[0 if transpose else 1])
        ones.set_full(None, domain.numpy.type(1))
        how = Product(Semiring(monoid, binary.first), domain, result, transpose, False)
        self.mxv(w, desc, A, ones, how)

    @settled
    def reduce(self, u: VectorStore, monoid: Monoid) -> Any:
        """See `Backend`."""
        return elementwise.reduce_entries(u, monoid)


def _is_logged(search: BlockSearch | RowSearch) -> bool:
    """Whether a log tells what a search does; of entries that are there before, it does not."""
    return isinstance(search, BlockSearch) and search.assigns_anew
