"""A loop that one kernel runs to its end, or that leaves everything as it was."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

from lagpu.backends.gpu.device.protocol import Device, Limits, has_free, named_error
from lagpu.backends.gpu.ops.planner import LONG_SEARCH_DEGREE
from lagpu.backends.gpu.profile import LoopLog
from lagpu.backends.gpu.storage.stores import CscMatrix, VectorStore
from lagpu.errors import LagpuError
from lagpu.host.interrupt import heard, raises_by_default
from lagpu.operations import Rejection, Statements

#: (what launches the kernel of the loop, what takes its results over; that returns True if the
#: kernel was stopped, and what it wrote is of no use)
Prepared = tuple[Callable[[], None], Callable[[], bool | None]]


def may_last(A: CscMatrix) -> bool:
    """Whether a search may take so long that a user wants to stop it: the host waits for it."""
    return lasts(A.shape[0], A.nvals, A.device.limits)


def lasts(n: int, nvals: int, limits: Limits) -> bool:
    """Whether a search of a graph of `n` vertices and `nvals` edges may; see `may_last`."""
    if limits.lasts_by_entries:
        return n + nvals > limits.lasts
    return n > limits.lasts and nvals <= LONG_SEARCH_DEGREE * n


class KernelLoop(abc.ABC):
    """A loop that one kernel runs; see `FusedLoop`.

    An interrupt (Ctrl-C) may come between any two lines of Python. After the launch of the loop's
    kernel there is no way back, so what is left to do is done before the interrupt goes on. While
    the host waits for a kernel, no line of Python sees one: the kernel itself looks for it.
    """

    name: str
    why: str
    keeps_log = False  #: Whether its kernel writes records; else the loop is timed as a whole.
    statements: Statements
    device: Device
    written: Sequence[VectorStore]  #: In place.
    #: Whether the kernel looks at `Device.stop`, which an interrupt sets. Then the host waits for
    #: the end of the loop, here or where it waits for the device next.
    stops = False
    #: Whether what the kernel writes is of use wherever it was stopped, so that the host may go on:
    #: if Python itself raises an interrupt, and no observer measures the loop.
    may_run_on = False
    final = True  #: Whether values stay as the kernel leaves them, unless it is stopped.

    @property
    def nbytes(self) -> int:
        return sum(x.bytes_to_write for x in self.written)

    def _outputs(self) -> Sequence[VectorStore]:
        return self.written

    @abc.abstractmethod
    def _prepare(self, log: LoopLog | None) -> Prepared | None:
        """Allocate, compile, and change the form of vectors; return (launch, settle).

        Entries that the kernel will replace may be dropped. `settle` may run twice: the second
        time it finishes what an interrupt has left. None if the loop has no iteration.
        """

    def run(self, log: LoopLog | None = None, meanwhile: Callable[[], None] | None = None) -> None:
        """Run the loop to its end; the host waits only if the loop may be stopped.

        It calls `meanwhile` before that, when the kernel has been launched.
        After `KeyboardInterrupt` the vectors are what they were after some whole iteration, or
        before the loop; after any other error, which comes before the kernel ran, what they were.
        """
        device, waits = self.device, False
        steps: Prepared | None = None
        before = [(x, x.state()) for x in self._outputs()]
        launched = ended = False
        try:
            prepared = self._prepare(log)
            if prepared is None:
                return
            device.began = False
            steps = prepared
            if self.stops:
                may = self.may_run_on and device.returns_early and device.observer is None
                waits = log is not None or not (may and raises_by_default())
                (device.rearm if waits else device.let_run)()
            with heard(device.stop[1]) if waits else device.lock:  # which the caller has
                steps[0]()
                launched = True
                if meanwhile is not None:
                    meanwhile()
                _end(device if waits else None, steps[1], before)
                ended = True
        except BaseException as error:
            if steps is None or not device.began:
                _restore(before)
            elif not ended and not (launched and isinstance(error, LagpuError)):
                _end(device if waits else None, steps[1], before)
            named = named_error(device, error, self.name) if isinstance(error, Exception) else None
            if named is None:
                raise
            raise named from error


def _restore(before: list[tuple[VectorStore, Any]]) -> None:
    for x, state in before:
        x.restore(state)


def _end(waited: Device | None, settle: Any, before: list[tuple[VectorStore, Any]]) -> None:
    """Take the results over when a loop has ended, for which the host waits on a device."""
    if waited is not None:
        waited.wait_in_loop()
    if settle():
        _restore(before)


def if_fits(loop: KernelLoop, what: str = "") -> KernelLoop | Rejection:
    """Return a loop if the device has the bytes it needs, else why it has not."""
    if has_free(loop.device, loop.nbytes):
        return loop
    return Rejection(f"the workspace of a {what or loop.name} does not fit")
