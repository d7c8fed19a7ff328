"""What a device does while a program is traced: kernels, copies, compiling; nothing waits."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lagpu.backends.gpu.device.observer import TRAFFIC, Shadow, Work
from lagpu.backends.gpu.fused.log import LoopLog
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.profile.unlogged import rows_of_all
from lagpu.backends.gpu.storage.bitmap import BlockStore
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.profile import Measured, Whole

if TYPE_CHECKING:
    from lagpu.backends.gpu.backend import GpuBackend

__all__ = ["TRAFFIC", "GpuMeter"]


class GpuMeter:
    """Measures statements on a device; see `Meter`.

    Parameters
    ----------
    backend : GpuBackend
        Whose statements.
    """

    def __init__(self, backend: GpuBackend) -> None:
        self._backend = backend
        spare = backend.shadows
        self._shadow = spare.pop() if spare else Shadow(backend.device)
        self._outside = Work()
        self._shadow.enter(self._outside)
        self._compiled = backend.device.compile_ms  # before, and since then inside statements
        self._log: LoopLog | None = None

    def run(
        self, work: Callable[[], None], method: str, w: VectorStore | None, args: tuple[Any, ...]
    ) -> Callable[[], Measured]:
        """Run one operation; see `Meter`."""
        if method == "set" and w is not None and w.known == 0 and w.form == "sparse":
            start = time.perf_counter()  # a first entry: nothing is launched, nor copied
            work()
            first_ms = (time.perf_counter() - start) * 1e3
            return lambda: Measured(0.0, first_ms, bytes=0)
        shadow = self._shadow
        shadow.see_launches(True)
        if method in ("mxv", "mxv_selection") and w is not None:
            return self._run_product(work, w, args[1])
        if method == "matrix_mxm":
            return self._run_product(work, None, args[0])
        shadow.now = now = Work()
        try:
            _, host_ms = self._clock(now, work)
        finally:
            shadow.now = self._outside
        return lambda: now.measured(host_ms)

    def _run_product(
        self, work: Callable[[], None], w: VectorStore | None, u: VectorStore | MatrixStore
    ) -> Callable[[], Measured]:
        """Run a product of `u`, into the vector `w` or a new matrix."""
        backend, shadow = self._backend, self._shadow
        backend.edges = counted = backend.counters.take()
        before = self.count(u)
        shadow.now = now = Work()
        try:
            host_ms = self._clock(now, work)[1]
        finally:
            shadow.now, backend.edges = self._outside, None
        made, backend.product = backend.product, None
        plan, read = backend.plan, shadow.below("read")
        written = made if w is None else w
        after = (lambda: 0) if written is None else self.count(written)
        return lambda: _of_product(now, host_ms, plan, int(read(counted)), before, after)

    def run_loop(self, work: Callable[[], bool]) -> Whole | None:
        """See `Meter`: the kernel keeps the times, so launches are not timed; or it has no log."""
        backend, shadow = self._backend, self._shadow
        if self._log is None:
            time_launches = functools.partial(shadow.see_launches, True)
            self._log = LoopLog(backend.device, shadow.below, backend.logs, time_launches)
        backend.loop_log = log = self._log
        log.unlogged = None
        shadow.now = now = Work()
        shadow.see_launches(False)
        try:
            fused, host_ms = self._clock(now, work)
        finally:
            shadow.now, backend.loop_log = self._outside, None
            log.end()
        rows, log.rows = log.rows, None
        methods = log.unlogged
        if methods is not None:
            rows = lambda: rows_of_all(methods, now.measured(host_ms).kernel_ms)  # noqa: E731
        if not fused or rows is None:
            return None
        return Whole(rows, lambda: now.measured(host_ms))

    def _clock(self, now: Work, work: Callable[[], Any]) -> tuple[Any, float]:
        """Return what `work` does, and the milliseconds the host took for it."""
        device = self._backend.device
        compiled, start = device.compile_ms, time.perf_counter()
        try:
            found = work()
        finally:
            host_ms = (time.perf_counter() - start) * 1e3
            now.compile_ms = device.compile_ms - compiled
            self._compiled += now.compile_ms
        return found, host_ms

    def unrecorded(self) -> int:
        """See `Meter`."""
        return 0 if self._log is None else self._log.lost

    def count(self, x: VectorStore | MatrixStore) -> Callable[[], int]:
        """See `Meter`: a number on the host, or the counter that a kernel will have filled."""
        v = x.entries if isinstance(x, BlockStore) else x
        if isinstance(v, MatrixStore) or v.known is not None:
            known = v.nvals
            return lambda: known
        shadow, device = self._shadow, self._backend.device
        shadow.timed, compiled = False, device.compile_ms  # of the trace, not of the program
        try:
            return v.count_later(shadow.below("read"))
        finally:
            shadow.timed = True
            self._compiled += device.compile_ms - compiled

    def stop(self) -> Callable[[], Measured]:
        """See `Meter`."""
        self._shadow.leave()
        self._backend.shadows.append(self._shadow)
        outside = self._outside
        outside.compile_ms = self._backend.device.compile_ms - self._compiled
        return lambda: outside.measured(outside.compile_ms)


def _of_product(
    work: Work,
    host_ms: float,
    plan: Plan | None,
    edges: int,
    before: Callable[[], int],
    after: Callable[[], int],
) -> Measured:
    """Return what was measured, with what is known of a product."""
    counts = {"edges": edges, "in": before(), "out": after()}
    found = work.measured(host_ms, **counts)._replace(edges=edges)
    if plan is None:
        return found
    return found._replace(direction=plan.direction, kernel=plan.kernel, reason=plan.reason)
