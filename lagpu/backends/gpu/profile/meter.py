"""Measure statements and kernels on a device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from lagpu.backends.gpu.device.observer import DeviceObserver, Work
from lagpu.backends.gpu.device.protocol import Device
from lagpu.backends.gpu.profile.log import DeviceLoop, LoopLog, rows_without_log
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, MatrixHandle
from lagpu.backends.gpu.storage.casts import Counters
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.profile import LoopMeasured, Measured
from lagpu.operations import FusedLoop, Multiply, MultiplySelection, Operation, Rejection


class Runtime:
    """The device of a backend, and the plan and measurements of its last product.

    Parameters
    ----------
    device : Device
        Where operations run.

    Attributes
    ----------
    counters : Counters
        Zeroed numbers for kernels.
    plan : Plan or None
        Direction, kernel and reason of this thread's last product; None before the first one.
    edges : array or None
        While a product is measured, the counter of the matrix entries that it looks at.
    product : CscMatrix, BitmapMatrix or None
        While a product of matrices is measured, its result before it was written.
    """

    __slots__ = ("_plans", "counters", "device", "edges", "product")

    def __init__(self, device: Device) -> None:
        self.device = device
        self.counters = Counters(device)
        self._plans = threading.local()
        self.edges: Any = None
        self.product: CscMatrix | BitmapMatrix | None = None

    @property
    def plan(self) -> Any:
        """The plan of this thread's last product, or None."""
        return getattr(self._plans, "last", None)

    @plan.setter
    def plan(self, plan: Any) -> None:
        self._plans.last = plan


# ------------------------------------------------------------------------------------------
# Measure the kernels, copies and compilations of a device under a trace, without waiting.


class MeterPool:
    """Observers and log buffers of stopped meters, for reuse."""

    def __init__(self) -> None:
        self.observers: list[DeviceObserver] = []
        self.logs: list[Any] = []


class GpuMeter:
    """Measures statements on a device; see `Meter`.

    Parameters
    ----------
    runtime : Runtime
        Where operations record the plan of their product.
    traffic : mapping
        The part of its arrays that each kernel moves; see `DeviceObserver`.
    pool : MeterPool
        Reused observers and buffers.
    """

    def __init__(self, runtime: Runtime, traffic: Mapping[str, Any], pool: MeterPool) -> None:
        self._runtime, self._device, self._pool = runtime, runtime.device, pool
        spare = pool.observers
        self._observer = spare.pop() if spare else DeviceObserver(self._device, traffic)
        self._outside = Work()
        self._observer.enter(self._outside)
        self._compiled = self._device.compile_ms  # before, and since then inside statements
        self._log: LoopLog | None = None

    def run(
        self, work: Callable[[], None], out: Any, operation: Operation | None
    ) -> Callable[[], Measured]:
        """Run one statement; see `Meter`. No other thread's work comes between its parts."""
        with self._device.alone():
            return self._run(work, out, operation)

    def _run(
        self, work: Callable[[], None], out: Any, operation: Operation | None
    ) -> Callable[[], Measured]:
        if operation is None and out.known == 0 and out.form == "sparse":
            start = time.perf_counter()  # a first entry: nothing is launched, nor copied
            work()
            first_ms = (time.perf_counter() - start) * 1e3
            return lambda: Measured(0.0, first_ms, bytes=0)
        if isinstance(operation, (Multiply, MultiplySelection)):
            return self._run_product(work, out, operation.operand)
        now = Work()
        _, host_ms = self._observed(now, work, timed=True)
        return lambda: now.measured(host_ms)

    def _run_product(
        self, work: Callable[[], None], out: VectorStore | MatrixHandle, operand: Any
    ) -> Callable[[], Measured]:
        """Run a product; of matrices, the result is counted before it is written."""
        runtime, now = self._runtime, Work()
        runtime.edges = counted = runtime.counters.take()
        before = self.count(operand)
        try:
            _, host_ms = self._observed(now, work, timed=True)
        finally:
            runtime.edges = None
        made, runtime.product = runtime.product, None
        plan, read = runtime.plan, self._observer.unseen("read")
        written: Any = out if isinstance(out, VectorStore) else made
        after = self.count(written)

        def measured() -> Measured:
            with self._device.alone():
                edges = int(read(counted))
            counts = {"edges": edges, "in": before(), "out": after()}
            found = now.measured(host_ms, **counts)._replace(edges=edges)
            if plan is None:
                return found
            return found._replace(direction=plan.direction, kernel=plan.kernel, reason=plan.reason)

        return measured

    def run_loop(
        self, plan: Callable[[], FusedLoop | Rejection]
    ) -> tuple[FusedLoop | Rejection, LoopMeasured | None]:
        """See `Meter`: a kernel that keeps a log has the times; launches of others are timed."""
        now = Work()
        loop, host_ms = self._observed(now, lambda: self._plan_and_run(plan), timed=False)
        if isinstance(loop, Rejection):
            return loop, None
        rows = None if self._log is None else self._log.take_rows()
        if not loop.keeps_log:  # of the loop nothing is kept: it holds matrices
            multiply = [isinstance(s.operation, Multiply) for s in loop.statements]
            rows = lambda: rows_without_log(multiply, now.measured(host_ms).kernel_ms)  # noqa: E731
        if rows is None:  # it had no iteration
            return cast(FusedLoop, loop), None
        return cast(FusedLoop, loop), LoopMeasured(rows, lambda: now.measured(host_ms))

    def _plan_and_run(self, plan: Callable[[], FusedLoop | Rejection]) -> DeviceLoop | Rejection:
        found = plan()
        if isinstance(found, Rejection):
            return found
        loop = cast(DeviceLoop, found)
        if loop.keeps_log:
            loop.run(self.log())
        else:
            self._observer.timed = True
            loop.run()
        return loop

    def log(self) -> LoopLog:
        """Return where the device's loops write records; made at the first call."""
        if self._log is None:
            self._log = LoopLog(self._device, self._observer.unseen, self._pool.logs)
        return self._log

    def _observed(self, now: Work, work: Callable[[], Any], timed: bool) -> tuple[Any, float]:
        """Return what `work` returns, and the milliseconds the host took for it."""
        device, observer = self._device, self._observer
        observer.now, observer.timed = now, timed
        compiled, start = device.compile_ms, time.perf_counter()
        try:
            found = work()
        finally:
            host_ms = (time.perf_counter() - start) * 1e3
            now.compile_ms = device.compile_ms - compiled
            self._compiled += now.compile_ms
            observer.now, observer.timed = self._outside, False  # what is outside has no times
        return found, host_ms

    def unrecorded(self) -> int:
        """See `Meter`."""
        return 0 if self._log is None else self._log.lost

    def count(self, x: VectorStore | MatrixHandle | CscMatrix | BitmapMatrix) -> Callable[[], int]:
        """See `Meter`: a number on the host, or the counter that a kernel will have filled."""
        store = x.store if isinstance(x, MatrixHandle) else x
        v = store.entries if isinstance(store, BitmapMatrix) else store
        if isinstance(v, CscMatrix) or v.known is not None:
            known = v.nvals
            return lambda: known
        with self._device.alone():
            compiled = self._device.compile_ms
            try:
                return v.pending_count(self._observer.unseen("read"))
            finally:  # the count is the trace's, not the program's
                self._compiled += self._device.compile_ms - compiled

    def stop(self) -> Callable[[], Measured]:
        """See `Meter`."""
        with self._device.alone():
            self._observer.leave()
            self._pool.observers.append(self._observer)
            outside = self._outside
            outside.compile_ms = self._device.compile_ms - self._compiled
        return lambda: outside.measured(outside.compile_ms)
