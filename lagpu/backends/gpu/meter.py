"""What a device does while a program is traced: kernels, copies, compiling; nothing is waited for.

While a meter is on, the device's methods are shadowed by its own, so that a device that nobody
watches pays nothing.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lagpu.backends.gpu.device import Signal, Timer
from lagpu.backends.gpu.kernels import Kernel
from lagpu.backends.gpu.looplog import LoopLog
from lagpu.backends.gpu.plan import Plan
from lagpu.backends.gpu.storage import VectorStore
from lagpu.backends.measure import Measured, Whole

if TYPE_CHECKING:
    from lagpu.backends.gpu.backend import GpuBackend

__all__ = ["TRAFFIC", "GpuMeter"]

# What the bytes of an array are proportional to, where not its whole length is read or written:
# the edges looked at, the entries of the vector multiplied, or those of the result.
_EACH_EDGE = {"row_idx": ("edges", 1.0), "values": ("edges", 1.0)}
_PULL = {**_EACH_EDGE, "lengths": ("out", 2.0)}
_PUSH = {
    **_PULL,
    "u_values": ("in", 1.0),
    **dict.fromkeys(("col_ptr", "vertex", "start", "offset", "degree", "groups"), ("in", 2.0)),
    "chunks": ("edges", 2 / 256),  # as in push.cuh: one for 256 edges, written and read
    "shares": ("in", 0.0),
}
_LISTED = dict.fromkeys(("col_ptr", "vertex", "offset"), ("out", 2.0))
#: For each kernel of a product, the arrays that it takes only a part of (docs/design/trace.md).
TRAFFIC: dict[str, dict[str, tuple[str, float]]] = {
    "spmv_csc_scalar": _PULL,
    "spmv_csc_warp": _PULL,
    "spmv_csc_bitmap": _PULL,
    "spmv_csc_edge": {"lengths": ("out", 2.0)},
    "spmv_edge_reset": {},
    "spmv_push_queue": _PUSH,
    "spmv_push_active": _PUSH,
    "spmv_push_virtual": _PUSH,
    "spmv_pull_active": {**_PULL, **_LISTED, "shares": ("in", 0.0)},
}
_SIGNAL = 24  # bytes: two numbers and a serial
_SHADOWED = ("launch", "max_cooperative_blocks", "from_host", "to_host", "read", "heed", "metered")


@functools.lru_cache(maxsize=512)
def _shares(kernel: Kernel) -> tuple[list[int], list[tuple[int, str, float]]]:
    """Return which arguments count whole, and which as so many bytes for each edge or entry."""
    partly = TRAFFIC.get(kernel.name, {})
    arrays = [(k, param) for k, param in enumerate(kernel.params) if param.pointer]
    return [k for k, param in arrays if param.name not in partly], [
        (k, partly[param.name][0], partly[param.name][1] * param.dtype.itemsize)
        for k, param in arrays
        if param.name in partly
    ]


class _Work:
    """What was launched and copied since a moment; times are in events that nobody waits for."""

    def __init__(self, timed: bool = True) -> None:
        self.timed = timed
        self.kernels: list[Timer] = []
        self.copies: list[Timer] = []
        self.copy_bytes = 0
        self.compile_ms = 0.0
        self.bytes = 0
        self.bytes_each = {"edges": 0.0, "in": 0.0, "out": 0.0}

    def add_traffic(self, kernel: Kernel, args: Sequence[Any]) -> None:
        """Add what a launch moves: each array once, or of some only a part; see `TRAFFIC`."""
        whole, partly = _shares(kernel)
        for k in whole:
            if args[k] is not None:
                self.bytes += args[k].nbytes
        for k, what, each in partly:
            if args[k] is not None:
                self.bytes_each[what] += each

    def measured(self, host_ms: float, **counts: int) -> Measured:
        """Return the sums; waits for the work. `counts` are edges, in and out of a product."""
        return Measured(
            kernel_ms=sum((timer.elapsed_ms for timer in self.kernels), 0.0),
            host_ms=host_ms - self.compile_ms,
            compile_ms=self.compile_ms,
            copy_ms=sum((timer.elapsed_ms for timer in self.copies), 0.0),
            copy_bytes=self.copy_bytes,
            bytes=self.bytes + round(sum(self.bytes_each[what] * k for what, k in counts.items())),
        )

    def of_product(
        self,
        host_ms: float,
        plan: Plan | None,
        edges: int,
        before: Callable[[], int],
        after: Callable[[], int],
    ) -> Measured:
        """Return the sums with what is known of a product."""
        found = self.measured(host_ms, edges=edges, **{"in": before(), "out": after()})._replace(
            edges=edges
        )
        if plan is None:
            return found
        return found._replace(direction=plan.direction, kernel=plan.kernel, reason=plan.reason)


class GpuMeter:
    """Measures statements on a device; see `Meter`.

    Parameters
    ----------
    backend : GpuBackend
        Whose statements.
    """

    def __init__(self, backend: GpuBackend) -> None:
        self._backend = backend
        self._device = device = backend.device
        self._outside = self._now = _Work()
        self._mine = _Work(timed=False)  # kernels of the trace, not of the program
        self._log: LoopLog | None = None
        own = vars(device)
        self._before = {name: own.get(name) for name in _SHADOWED}
        self._below: dict[str, Any] = {name: getattr(device, name, None) for name in _SHADOWED}
        own.update(
            launch=self._launch,
            max_cooperative_blocks=self._max_cooperative_blocks,
            from_host=self._from_host,
            to_host=self._to_host,
            read=self._read,
            heed=self._heed,
            metered=self._metered,
        )

    def run(
        self, work: Callable[[], None], method: str, w: VectorStore | None, args: tuple[Any, ...]
    ) -> Callable[[], Measured]:
        """Run one operation; see `Meter`."""
        backend = self._backend
        is_product = w is not None and method == "mxv"
        counted = backend.edges = backend.counters.take() if is_product else None
        before = self.count(args[1]) if is_product else _nothing
        self._now = now = _Work()
        start = time.perf_counter()
        try:
            work()
        finally:
            host_ms = (time.perf_counter() - start) * 1e3
            self._now, backend.edges = self._outside, None
        if w is None or counted is None:
            return lambda: now.measured(host_ms)
        plan, read, after = backend.plan, self._below["read"], self.count(w)
        return lambda: now.of_product(host_ms, plan, int(read(counted)), before, after)

    def run_loop(self, work: Callable[[], bool]) -> Whole | None:
        """See `Meter`: the kernel keeps the times, so launches are not timed."""
        backend, below = self._backend, self._below
        if self._log is None:
            self._log = LoopLog(self._device, below["read"], below["to_host"])
        backend.loop_log = log = self._log
        self._now = now = _Work(timed=False)
        start = time.perf_counter()
        try:
            fused = work()
        finally:
            host_ms = (time.perf_counter() - start) * 1e3
            self._now, backend.loop_log = self._outside, None
        if not fused or log.rows is None:
            return None
        return Whole(log.rows, lambda: now.measured(host_ms))

    def unrecorded(self) -> int:
        """See `Meter`."""
        return 0 if self._log is None else self._log.lost

    def count(self, v: VectorStore) -> Callable[[], int]:
        """See `Meter`: a number on the host, or the counter that a kernel will have filled."""
        now, self._now = self._now, self._mine
        try:
            return v.count_later(self._below["read"])
        finally:
            self._now = now

    def stop(self) -> Callable[[], Measured]:
        """See `Meter`."""
        for name, before in self._before.items():
            if before is None:
                delattr(self._device, name)
            else:
                setattr(self._device, name, before)
        return lambda: self._outside.measured(self._outside.compile_ms)

    # ------------------------------------------------------------- instead of the device's own
    def _launch(self, kernel: Kernel, threads: int, *args: Any, **how: Any) -> None:
        now = self._now
        self._load(kernel, how.get("cooperative", False))
        if not now.timed:
            self._below["launch"](kernel, threads, *args, **how)
            return
        with self._device.timer() as timer:
            self._below["launch"](kernel, threads, *args, **how)
        now.kernels.append(timer)
        now.add_traffic(kernel, args)

    def _metered(self, bound: Any, new: tuple[Any, ...]) -> None:
        """Run a bound launch, which has been loaded and checked."""
        now = self._now
        if not now.timed:
            bound.run(new)
            return
        with self._device.timer() as timer:
            bound.run(new)
        now.kernels.append(timer)
        now.add_traffic(bound.kernel, bound.all(new))

    def _max_cooperative_blocks(self, kernel: Kernel, block: int = 256, shared: int = 0) -> int:
        self._load(kernel, True)
        found: int = self._below["max_cooperative_blocks"](kernel, block, shared)
        return found

    def _load(self, kernel: Kernel, cooperative: bool) -> None:
        start = time.perf_counter()
        if self._device.load(kernel, cooperative):
            self._now.compile_ms += (time.perf_counter() - start) * 1e3

    def _from_host(self, array: np.ndarray[Any, Any]) -> Any:
        return self._copied("from_host", array)

    def _to_host(self, array: Any) -> Any:
        return self._copied("to_host", array)

    def _read(self, array: Any) -> Any:
        return self._copied("read", array)

    def _heed(self, signal: Signal, counts: Any) -> tuple[int, int]:
        self._now.copy_bytes += _SIGNAL  # not timed: the host waits for the kernel, not for a copy
        return cast(tuple[int, int], self._below["heed"](signal, counts))

    def _copied(self, name: str, *args: Any) -> Any:
        now = self._now
        with self._device.timer() as timer:
            made = self._below[name](*args)
        now.copies.append(timer)
        now.copy_bytes += getattr(made, "nbytes", args[0].nbytes)
        return made


def _nothing() -> int:
    return 0
