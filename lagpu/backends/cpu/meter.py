"""What a statement costs on the cpu backend, by the host's clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.backends.cpu.handles import Box, gb, lib
from lagpu.backends.profile import Measured, Whole
from lagpu.backends.protocol import Product

__all__ = ["CpuMeter"]


class CpuMeter:
    """Times statements by the host's clock; see `Meter`."""

    def run(
        self, work: Callable[[], None], method: str, w: Box | None, args: tuple[Any, ...]
    ) -> Callable[[], Measured]:
        """Run one operation to its end, and time it."""
        edges = None
        if method == "mxv":
            edges = _edges(*args)
        elif method == "mxv_selection" and w is not None:
            edges = _edges_of_selection(w, *args)
        found, before = Measured(), 0
        if edges is not None or method == "matrix_mxm":
            found = Measured(kernel="SuiteSparse", reason="SuiteSparse chooses inside", edges=edges)
        if edges is not None:
            before = int(args[1].gb.nvals)
        start = time.perf_counter()
        work()
        if w is not None:
            lib.GrB_Vector_wait(w.handle, lib.GrB_MATERIALIZE)
        ms = (time.perf_counter() - start) * 1e3
        if w is not None and edges is not None:
            A, u, _ = args
            moved = (8 + A.width) * edges + (16 + u.width) * before + (8 + w.width) * w.gb.nvals
            found = found._replace(bytes=int(moved))
        found = found._replace(kernel_ms=ms, host_ms=ms)
        return lambda: found

    def run_loop(self, work: Callable[[], bool]) -> Whole | None:
        """See `Meter`: no loop runs as one here."""
        return None

    def count(self, x: Box) -> Callable[[], int]:
        """See `Meter`."""
        known = int(x.gb.nvals)
        return lambda: known

    def stop(self) -> Callable[[], Measured]:
        """See `Meter`: here nothing is copied, nor compiled outside of statements."""
        return Measured

    def unrecorded(self) -> int:
        """See `Meter`: nothing is."""
        return 0


def _edges_of_selection(w: Box, f: Box, u: Box, how: Product) -> int:
    """Count the entries of a selection matrix that meet an entry of the vector."""
    columns, rows = f.gb.to_coo()
    inner, nrows = (rows, u.gb.size) if how.transpose else (columns, w.gb.size)
    there = np.isin(inner, u.gb.to_coo(values=False)[0])
    return int(np.count_nonzero(there & (rows >= 0) & (rows < nrows)))


def _edges(A: Box, u: Box, how: Product) -> int:
    """Count the matrix entries that meet an entry of the vector."""
    by_row = how.transpose
    if by_row not in A.degrees:
        count = A.gb.reduce_rowwise("count") if by_row else A.gb.reduce_columnwise("count")
        A.degrees[by_row] = count.new()
    met = A.degrees[by_row].ewise_mult(u.gb, gb.binary.first["INT64"]).new()
    return int(met.reduce("plus").new().value or 0)
