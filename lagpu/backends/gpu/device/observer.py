"""What stands before a device's methods while a meter is on, and notes what they do.

A device that nobody watches pays nothing: its own methods are in nobody's way.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from lagpu.backends.gpu.device.protocol import Device, Signal, Timer
from lagpu.backends.gpu.kernels import Kernel
from lagpu.backends.profile import Measured

__all__ = ["TRAFFIC", "Shadow", "Work"]

# What the bytes of an array are proportional to, where not its whole length is read or written:
# the edges looked at, the entries of the vector multiplied, or those of the result.
_EACH_EDGE = {"row_idx": ("edges", 1.0), "values": ("edges", 1.0)}
_PULL = {**_EACH_EDGE, "lengths": ("out", 2.0)}
_PUSH = {
    **_PULL,
    "u_values": ("in", 1.0),
    **dict.fromkeys(("col_ptr", "vertex", "start", "offset", "degree", "groups"), ("in", 2.0)),
    "chunks": ("edges", 2 / 256),  # as in spmv/push.cuh: one for 256 edges, written and read
    "shares": ("in", 0.0),
}
_LISTED = dict.fromkeys(("col_ptr", "vertex", "offset"), ("out", 2.0))
_SUMS = {
    **dict.fromkeys(("row_idx", "a_values"), ("edges", 1.0)),
    "q_values": ("in", 1.0),
    "out": ("out", 1.0),
}
_NOTHING = dict.fromkeys(  # it goes through these beside another launch, which counts them
    ("col_ptr", "row_idx", "a_values", "q_words", "q_values", "m_words", "lengths", "out_words",
     "out", "counts", "edges"), ("in", 0.0),
)  # fmt: skip
_GATHERED = dict.fromkeys(("a_values", "b_values", "b_rows"), ("edges", 1.0))
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
    "selection_gather": {"u_values": ("out", 1.0), "w_values": ("out", 1.0)},
    "selection_scatter": {"u_values": ("edges", 1.0), "w_values": ("out", 1.0)},
    "selection_reset": {},
    "block_bits": {"idx": ("edges", 1.0)},
    "block_sums": _SUMS,
    "block_sums_long": _NOTHING,
    "sum_products": _GATHERED,
    "dot_products": dict.fromkeys(("a_idx", "b_idx", "a_values", "b_values"), ("edges", 0.5)),
}
_SIGNAL = 24  # bytes: two numbers and a serial


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


class Work:
    """What was launched and copied since a moment; times are in events that nobody waits for."""

    __slots__ = ("bytes", "compile_ms", "copies", "copy_bytes", "each", "kernels")

    def __init__(self) -> None:
        self.kernels: list[Timer] = []
        self.copies: list[Timer] = []
        self.copy_bytes = self.bytes = 0
        self.compile_ms = 0.0
        self.each: list[tuple[str, float]] = []  # bytes for each edge, or entry

    def add_traffic(self, kernel: Kernel, args: Sequence[Any]) -> None:
        """Add what a launch moves: each array once, or of some only a part; see `TRAFFIC`."""
        whole, partly = _shares(kernel)
        for k in whole:
            if args[k] is not None:
                self.bytes += args[k].nbytes
        self.each += [(what, each) for k, what, each in partly if args[k] is not None]

    def measured(self, host_ms: float, **counts: int) -> Measured:
        """Return the sums; waits for the work. `counts` are edges, in and out of a product."""
        return Measured(
            kernel_ms=sum((timer.elapsed_ms for timer in self.kernels), 0.0),
            host_ms=host_ms - self.compile_ms,
            compile_ms=self.compile_ms,
            copy_ms=sum((timer.elapsed_ms for timer in self.copies), 0.0),
            copy_bytes=self.copy_bytes,
            bytes=self.bytes + round(sum(counts.get(what, 0) * each for what, each in self.each)),
        )


class Shadow:
    """The methods that stand before those of a device, until `leave`; used again after that.

    Parameters
    ----------
    device : Device
        Whose.

    Attributes
    ----------
    now : Work
        Where things are noted.
    timed : bool
        Whether launches are timed now.
    """

    def __init__(self, device: Device) -> None:
        self.now = Work()
        self.timed = True
        self._sees = False
        self._device = device
        self._before: dict[str, Any] = {}
        self._below: dict[str, Any] = {}  # of those that were asked for since `enter`
        self._copies = {
            "from_host": self._from_host,
            "to_host": self._to_host,
            "read": self._read,
            "heed": self._heed,
        }
        self._launches = {"launch": self._launch, "metered": self._metered}
        self._names = frozenset((*self._copies, *self._launches))

    def enter(self, now: Work) -> None:
        """Stand before the device's methods that copy, and before whatever stands there."""
        own = vars(self._device)
        if not self._names.isdisjoint(own):
            self._before = {name: own[name] for name in self._names & own.keys()}
        self._below = {}  # a trace that has ended may have asked since
        self.now = now
        own.update(self._copies)

    def leave(self) -> None:
        """Let the device be as it was."""
        self.see_launches(False)
        self._give_back(self._copies)
        self._before, self._below = {}, {}

    def see_launches(self, wanted: bool) -> None:
        """Stand before the methods that launch, too; or not."""
        if wanted != self._sees:
            self._sees = wanted
            if wanted:
                vars(self._device).update(self._launches)
            else:
                self._give_back(self._launches)

    def _give_back(self, names: Iterable[str]) -> None:
        own, before = vars(self._device), self._before
        for name in names:
            if name in before:
                own[name] = before[name]
            else:
                del own[name]

    def below(self, name: str) -> Any:
        """Return the device's own method, or what another one has put in its place."""
        found = self._below.get(name)
        if found is None:
            own = getattr(type(self._device), name).__get__(self._device)
            found = self._below[name] = self._before.get(name, own)
        return found

    # ------------------------------------------------------------- instead of the device's own
    def _launch(self, kernel: Kernel, threads: int, *args: Any, **how: Any) -> None:
        if not self.timed:
            self.below("launch")(kernel, threads, *args, **how)
            return
        self._device.load(kernel, how.get("cooperative", False))
        with self._device.timer() as timer:
            self.below("launch")(kernel, threads, *args, **how)
        self.now.kernels.append(timer)
        self.now.add_traffic(kernel, args)

    def _metered(self, bound: Any, new: tuple[Any, ...]) -> None:
        """Run a bound launch, which has been loaded and checked."""
        if not self.timed:
            bound.run(new)
            return
        with self._device.timer() as timer:
            bound.run(new)
        self.now.kernels.append(timer)
        self.now.add_traffic(bound.kernel, bound.all(new))

    def _from_host(self, array: np.ndarray[Any, Any]) -> Any:
        return self._copied("from_host", array)

    def _to_host(self, array: Any) -> Any:
        return self._copied("to_host", array)

    def _read(self, array: Any) -> Any:
        return self._copied("read", array)

    def _heed(self, signal: Signal, counts: Any) -> tuple[int, int]:
        self.now.copy_bytes += _SIGNAL  # not timed: the host waits for the kernel, not for a copy
        return cast(tuple[int, int], self.below("heed")(signal, counts))

    def _copied(self, name: str, *args: Any) -> Any:
        now = self.now
        with self._device.timer() as timer:
            made = self.below(name)(*args)
        now.copies.append(timer)
        now.copy_bytes += getattr(made, "nbytes", args[0].nbytes)
        return made
