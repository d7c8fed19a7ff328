"""Measure the statements of the cpu backend by the host's clock."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from lagpu.backends.cpu.directions import LAST
from lagpu.backends.cpu.forms import degree_sum
from lagpu.backends.cpu.handles import LOCK, Box, lib
from lagpu.backends.profile import LoopMeasured, Measured
from lagpu.operations import (
    FusedLoop,
    Handle,
    Multiply,
    MultiplySelection,
    Operation,
    Product,
    Rejection,
)

__all__ = ["CpuMeter"]


class CpuMeter:
    """Times statements by the host's clock; see `Meter`."""

    def run(
        self, work: Callable[[], None], out: Handle | None, operation: Operation | None
    ) -> Callable[[], Measured]:
        """Run one statement to its end, and time it."""
        with LOCK:
            return self._run(work, out, operation)

    def _run(
        self, work: Callable[[], None], out: Handle | None, operation: Operation | None
    ) -> Callable[[], Measured]:
        w = None if out is None or out.gb.ndim == 2 else out
        edges, before, found = None, 0, Measured()
        if isinstance(operation, (Multiply, MultiplySelection)):
            edges = None if w is None else _edges(w, operation)
            before = 0 if w is None else int(operation.operand.gb.nvals)
            found = Measured(kernel="SuiteSparse", reason="SuiteSparse chooses its own method")
        start = time.perf_counter()
        work()
        if w is not None:
            lib.GrB_Vector_wait(w.handle, lib.GrB_MATERIALIZE)
        ms = (time.perf_counter() - start) * 1e3
        plan = LAST.plan if w is not None and isinstance(operation, Multiply) else None
        if plan is not None:
            found = Measured(direction=plan.direction, kernel=plan.kernel, reason=plan.reason)
        found = found._replace(edges=edges)
        if w is not None and edges is not None:
            A, u = _operands(operation)
            moved = (8 + A.width) * edges + (16 + u.width) * before + (8 + w.width) * w.gb.nvals
            found = found._replace(bytes=int(moved))
        found = found._replace(kernel_ms=ms, host_ms=ms)
        return lambda: found

    def run_loop(
        self, plan: Callable[[], FusedLoop | Rejection]
    ) -> tuple[FusedLoop | Rejection, LoopMeasured | None]:
        """See `Meter`: the cpu backend fuses no loop."""
        return plan(), None

    def count(self, x: Box) -> Callable[[], int]:
        """See `Meter`."""
        with LOCK:
            known = int(x.gb.nvals)
        return lambda: known

    def stop(self) -> Callable[[], Measured]:
        """See `Meter`: nothing is copied, and nothing is compiled outside of statements."""
        return Measured

    def unrecorded(self) -> int:
        """See `Meter`: there is no log that could be full."""
        return 0


def _operands(operation: Operation | None) -> tuple[Box, Box]:
    """Return (the matrix of a product, or the vector of a selection; the operand)."""
    if isinstance(operation, MultiplySelection):
        return operation.indices, operation.operand
    assert isinstance(operation, Multiply)
    return operation.matrix, operation.operand


def _edges(w: Box, operation: Multiply | MultiplySelection) -> int:
    """Count the matrix entries that meet an entry of the vector."""
    if isinstance(operation, MultiplySelection):
        return _edges_of_selection(w, operation.indices, operation.operand, operation.product)
    return degree_sum(operation.matrix, operation.operand, operation.product.transpose)


def _edges_of_selection(w: Box, f: Box, u: Box, product: Product) -> int:
    """Count the entries of a selection matrix that meet an entry of the vector."""
    columns, rows = f.gb.to_coo()
    inner, nrows = (rows, u.gb.size) if product.transpose else (columns, w.gb.size)
    there = np.isin(inner, u.gb.to_coo(values=False)[0])
    return int(np.count_nonzero(there & (rows >= 0) & (rows < nrows)))
