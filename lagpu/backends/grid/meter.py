"""Measure the statements of a grid: its time and what it sends, and the work of its places."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from lagpu.backends.gpu.kernels import constant
from lagpu.backends.gpu.profile import GpuMeter
from lagpu.backends.grid.handles import GridHandle
from lagpu.backends.grid.pieces import Pieces
from lagpu.backends.grid.search import GridLoop, Logged
from lagpu.backends.grid.systems import SystemLoop
from lagpu.backends.profile import LoopMeasured, LoopRow, Measured, Phase, Sent
from lagpu.operations import FusedLoop, Multiply, MultiplySelection, Operation, Rejection, Statement

Array = np.ndarray[Any, Any]
_MEETS = constant("kWaitsForAll")


class GridMeter:
    """Times statements to their end on every local piece; see `Meter`.

    The time is the host's, of all pieces; edges, bytes, compiling and copies are sums over the
    places' own meters, and the kernel is that of the first piece. `count` returns the number of
    entries of a vector or matrix.
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
        engine = self._pieces.engine
        with self._pieces.lock:
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
        """See `Meter`: a kernel of all pieces has a log on each device."""
        with self._pieces.lock:
            compiled, start = self._compile_ms(), time.perf_counter()
            loop = plan()
            if isinstance(loop, Rejection):
                return loop, None
            with self._watched() as parts:  # it waits for its end
                if isinstance(loop, GridLoop):
                    loop.run([cast(GpuMeter, meter).log() for meter in self._of_piece])
                else:
                    loop.run()
            ms = (time.perf_counter() - start) * 1e3
            compile_ms = self._compile_ms() - compiled
        if isinstance(loop, SystemLoop):
            by_level = loop
            return loop, LoopMeasured(
                lambda: by_level.rows([part() for part in parts]),
                lambda: Measured(host_ms=ms - compile_ms, compile_ms=compile_ms),
            )
        logged = cast(GridLoop, loop).logged
        if logged is None:  # it had no iteration
            return loop, None
        whole = Measured(kernel_ms=ms - compile_ms, host_ms=ms - compile_ms, compile_ms=compile_ms)
        return loop, LoopMeasured(functools.partial(_rows, logged), lambda: whole)

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
        """See `Meter`: the levels for which a device's log had no room."""
        return max(meter.unrecorded() for meter in self._own)


# ------------------------------------------------------------------ records of several pieces
def _rows(logged: Logged) -> list[LoopRow]:
    """Return the rows of a search of pieces: a level of all, and in it each piece as a phase."""
    levels, meets = [], []
    for read in logged.records:
        records = read()
        is_barrier = records["how"] == _MEETS
        levels.append(records[~is_barrier])
        meets.append(records[is_barrier])
    rows = logged.rows(_merged(levels, meets, logged.had, logged.rows.assigns_after))
    found, at = [], 0
    for row in rows:
        if row.measured.direction:  # the product's
            at += 1
            phases = _phases(at, meets, logged.value_bytes)
            row = row._replace(measured=row.measured._replace(phases=phases))
        found.append(row)
    return found


def _merged(
    levels: Sequence[Array], meets: Sequence[Array], had: Any, assigns_after: bool
) -> Array:
    """Return the records of all pieces as those of one device: what each has counted is added.

    All have the same records but for the edges that they have looked at, and the new entries of
    outputs that had some; in a part without entries before, all that the piece has found are new.
    """
    merged = levels[0].copy()
    merged["edges"] = sum(records["edges"] for records in levels)
    merged["added"] = 0
    for records, met, counts in zip(levels, meets, had, strict=True):
        found = np.cumsum(met["out"][1 if assigns_after else 0 :])[: len(records) - 1]
        for k, count in enumerate(counts):
            merged["added"][1:, k] += found if count is None else records["added"][1:, k]
    return merged


def _phases(at: int, meets: Sequence[Array], value_bytes: int) -> tuple[Phase, ...]:
    """Return, for each piece, how long its part of a level took, and what it sent to the others."""
    phases, others = [], len(meets) - 1
    for p, met in enumerate(meets):
        ms = max(int(met["other"][at]) - int(met["ns"][at - 1]), 0) / 1e6
        words, found = int(met["in"][at]), int(met["out"][at])
        forms = {"bitmap": 4 * words} if words else {"list": 4 * found}
        if value_bytes:
            forms["values"] = value_bytes * found
        sent = [Sent(form, others if size else 0, others * size) for form, size in forms.items()]
        phases.append(Phase(f"piece {p}", ms, tuple(sent)))
    return tuple(phases)


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
    # After the pieces' products there may be an assignment of their sums.
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
