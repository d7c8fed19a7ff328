"""Measure the statements of a grid: its time and what it sends, and the work of its places."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from lagpu.backends.gpu.profile.log import rows_without_log
from lagpu.backends.grid.fused import GridLoop
from lagpu.backends.grid.handles import GridHandle
from lagpu.backends.grid.pieces import Pieces
from lagpu.backends.grid.systems import SystemLoop
from lagpu.backends.profile import LoopMeasured, Measured
from lagpu.operations import (
    FusedLoop,
    Multiply,
    MultiplySelection,
    Operation,
    Rejection,
    Statement,
)

__all__ = ["GridMeter"]


class GridMeter:
    """Times statements to their end on every local piece; see `Meter`.

    The time is the host's, of all pieces together; edges, bytes, compiling and copies are the sums
    of what the places' own meters find, and the kernel is that of the first piece.

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
        own = {id(place): place.meter() for place in pieces.places}
        self._own = list(own.values())
        self._of_piece = [own[id(place)] for place in pieces.places]

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
        with self._watched() as parts:
            work()
        if out is not None:
            for k, _, place in self._pieces:
                place.wait(out.parts[k])
        ms = (time.perf_counter() - start) * 1e3
        exchanged = f"{engine.size} pieces; {engine.sent - before} bytes sent"
        said = exchanged if isinstance(operation, (Multiply, MultiplySelection)) else ""
        return lambda: _together([part() for part in parts], ms, said)

    @contextmanager
    def _watched(self) -> Iterator[list[Callable[[], Measured]]]:
        """Measure each part of a statement by the meter of its place, in their order."""
        parts: list[Callable[[], Measured]] = []

        def watch(k: int, statement: Statement) -> None:
            place = self._pieces.places[k]
            run = self._of_piece[k].run
            parts.append(run(lambda: place.execute(statement), statement.out, statement.operation))

        self._pieces.watch = watch
        try:
            yield parts
        finally:
            self._pieces.watch = None

    def run_loop(
        self, plan: Callable[[], FusedLoop | Rejection]
    ) -> tuple[FusedLoop | Rejection, LoopMeasured | None]:
        """See `Meter`: a kernel of all pieces keeps no log, so that loop is timed as a whole."""
        with self._pieces.lock:
            compiled, start = self._compile_ms(), time.perf_counter()
            loop = plan()
            if isinstance(loop, Rejection):
                return loop, None
            with self._watched() as parts:
                loop.run()  # it waits for its end
            ms = (time.perf_counter() - start) * 1e3
            compile_ms = self._compile_ms() - compiled
        if isinstance(loop, SystemLoop):
            by_level = loop
            return loop, LoopMeasured(
                lambda: by_level.rows([part() for part in parts]),
                lambda: Measured(host_ms=ms - compile_ms, compile_ms=compile_ms),
            )
        multiply = [isinstance(s.operation, Multiply) for s in cast(GridLoop, loop).statements]
        whole = Measured(kernel_ms=ms - compile_ms, host_ms=ms - compile_ms, compile_ms=compile_ms)
        rows = rows_without_log(multiply, whole.kernel_ms)
        return loop, LoopMeasured(lambda: rows, lambda: whole)

    def _compile_ms(self) -> float:
        devices = {id(d): d for d in (place.device for place in self._pieces.places) if d}
        return float(sum(device.compile_ms for device in devices.values()))

    def count(self, x: GridHandle) -> Callable[[], int]:
        """See `Meter`."""
        known = self._count(x)
        return lambda: known

    def stop(self) -> Callable[[], Measured]:
        """See `Meter`: what the places' meters found outside of statements."""
        found = [meter.stop() for meter in self._own]
        return lambda: _together([part() for part in found], 0.0, "")

    def unrecorded(self) -> int:
        """See `Meter`: there is no log that could be full, as no loop is fused."""
        return 0


def _together(parts: Sequence[Measured], ms: float, said: str) -> Measured:
    """Return the measurement of a statement from those of its parts."""
    found = Measured(
        kernel_ms=ms,
        host_ms=ms,
        compile_ms=sum(part.compile_ms for part in parts),
        copy_ms=sum(part.copy_ms for part in parts),
        copy_bytes=sum(part.copy_bytes for part in parts),
    )
    if not parts:
        return found._replace(reason=said)
    first = parts[0]
    # Behind the pieces' products there may be an assignment of their sums.
    counted = [part for part in parts if part.kernel or not first.kernel]
    return found._replace(
        direction=first.direction,
        kernel=first.kernel,
        reason="; ".join(filter(None, (said, first.reason))),
        edges=_total([part.edges for part in counted]),
        bytes=_total([part.bytes for part in counted]),
    )


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
