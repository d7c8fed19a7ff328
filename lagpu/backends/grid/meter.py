"""Measure the statements of a grid by the host's clock, and what its pieces exchange."""

from __future__ import annotations

import time
from collections.abc import Callable

from lagpu.backends.grid.handles import GridHandle
from lagpu.backends.grid.pieces import Pieces
from lagpu.backends.profile import LoopMeasured, Measured
from lagpu.operations import FusedLoop, Multiply, MultiplySelection, Operation, Rejection

__all__ = ["GridMeter"]


class GridMeter:
    """Times statements to their end on every local piece; see `Meter`.

    Parameters
    ----------
    pieces : Pieces
        The pieces.
    count : callable
        Returns the number of entries of a vector or matrix.
    """

    def __init__(self, pieces: Pieces, count: Callable[[GridHandle], int]) -> None:
        self._pieces = pieces
        self._count = count

    def run(
        self, work: Callable[[], None], out: GridHandle | None, operation: Operation | None
    ) -> Callable[[], Measured]:
        """Run one statement to its end, and time it; other threads' bytes do not count."""
        with self._pieces.lock:
            return self._run(work, out, operation)

    def _run(
        self, work: Callable[[], None], out: GridHandle | None, operation: Operation | None
    ) -> Callable[[], Measured]:
        engine = self._pieces.engine
        before, start = engine.sent, time.perf_counter()
        work()
        if out is not None:
            for k, _, place in self._pieces:
                place.wait(out.parts[k])
        ms = (time.perf_counter() - start) * 1e3
        found = Measured(kernel_ms=ms, host_ms=ms)
        if isinstance(operation, (Multiply, MultiplySelection)):
            reason = f"{engine.size} pieces; {engine.sent - before} bytes sent"
            found = found._replace(kernel="grid", reason=reason)
        return lambda: found

    def run_loop(
        self, plan: Callable[[], FusedLoop | Rejection]
    ) -> tuple[FusedLoop | Rejection, LoopMeasured | None]:
        """See `Meter`: the grid fuses no loop."""
        return plan(), None

    def count(self, x: GridHandle) -> Callable[[], int]:
        """See `Meter`."""
        known = self._count(x)
        return lambda: known

    def stop(self) -> Callable[[], Measured]:
        """See `Meter`: nothing is measured outside of statements."""
        return Measured

    def unrecorded(self) -> int:
        """See `Meter`: there is no log that could be full."""
        return 0
