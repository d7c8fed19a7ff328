"""What a backend measures for a trace: of single statements, and of loops that run as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

__all__ = ["LoopRow", "Measured", "Meter", "Whole"]

Data = Any


class Measured(NamedTuple):
    """What one statement did, for a trace.

    Attributes
    ----------
    kernel_ms : float
        Time of its kernels: by events on a GPU, else by the host's clock; in a fused loop by the
        device's clock.
    host_ms : float or None
        Time the host was busy with it, compiling apart; None in a fused loop, where it was not.
    compile_ms : float
        Time spent compiling kernels.
    copy_ms, copy_bytes : float, int
        Copies between host and device.
    direction, kernel, reason : str
        The choice made for a product, and why; empty for other operations.
    edges : int or None
        Matrix entries the product looked at.
    bytes : int or None
        Memory the kernels moved, estimated (docs/design/trace.md).
    """

    kernel_ms: float = 0.0
    host_ms: float | None = 0.0
    compile_ms: float = 0.0
    copy_ms: float = 0.0
    copy_bytes: int = 0
    direction: str = ""
    kernel: str = ""
    reason: str = ""
    edges: int | None = None
    bytes: int | None = None


class LoopRow(NamedTuple):
    """One statement in one iteration of a fused loop, or in all of one that keeps no log.

    Attributes
    ----------
    statement : int
        Its place in the body.
    level : int or None
        The iteration; None for all.
    nvals_in, nvals_out : int or None
        Entries of its last input vector before, and of its output after; None if unknown.
    measured : Measured
        What it did.
    """

    statement: int
    level: int | None
    nvals_in: int | None
    nvals_out: int | None
    measured: Measured


class Whole(NamedTuple):
    """A fused loop that has been launched.

    Attributes
    ----------
    rows : callable
        Returns a row for each statement and iteration, or for each statement if its kernel keeps
        no log; waits for the loop.
    measured : callable
        Returns what was spent on all of it: the host's time, compiling, copies.
    """

    rows: Callable[[], list[LoopRow]]
    measured: Callable[[], Measured]


class Meter(Protocol):
    """Measures statements for a trace, without waiting for the work it measures.

    What is returned is asked for when the trace is read, and waits then.
    """

    def run(
        self, work: Callable[[], None], method: str, w: Data | None, args: tuple[Any, ...]
    ) -> Callable[[], Measured]:
        """Run one operation by calling `work`; `w` is the vector it writes, if any."""

    def run_loop(self, work: Callable[[], bool]) -> Whole | None:
        """Run a recorded loop by calling `work`; None if that returns False."""

    def count(self, x: Data) -> Callable[[], int]:
        """Return what will say how many entries a vector or a matrix has now."""

    def stop(self) -> Callable[[], Measured]:
        """Measure no more; what was done outside of statements since the meter began."""

    def unrecorded(self) -> int:
        """Return how many rows of fused loops there was no room for."""
