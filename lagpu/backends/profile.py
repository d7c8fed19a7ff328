"""What a backend measures for a trace: of single statements, and of loops that run as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from lagpu.operations import FusedLoop, Handle, Operation, Rejection

__all__ = ["LoopMeasured", "LoopRow", "Measured", "Meter"]


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


class LoopMeasured(NamedTuple):
    """What a fused loop that has been launched will have done.

    Attributes
    ----------
    rows : callable
        Returns a row for each statement and iteration, or for each statement if its kernel keeps
        no log; waits for the loop.
    total : callable
        Returns what was spent on all of it: the host's time, compiling, copies.
    """

    rows: Callable[[], list[LoopRow]]
    total: Callable[[], Measured]


class Meter(Protocol):
    """Measures statements for a trace, without waiting for the work it measures.

    The callables that it returns are called when the trace is read, and wait then.
    """

    def run(
        self, work: Callable[[], None], out: Handle | None, operation: Operation | None
    ) -> Callable[[], Measured]:
        """Run one statement by calling `work`.

        Parameters
        ----------
        work : callable
            Runs it.
        out : Handle or None
            The vector or matrix that it writes; None if it writes a scalar.
        operation : Operation or None
            What it computes; None if it sets one entry of `out`.
        """

    def run_loop(
        self, plan: Callable[[], FusedLoop | Rejection]
    ) -> tuple[FusedLoop | Rejection, LoopMeasured | None]:
        """Plan a recorded loop by calling `plan`, and run it if that does not reject it."""

    def count(self, x: Handle) -> Callable[[], int]:
        """Return a callable that returns how many entries a vector or matrix has now."""

    def stop(self) -> Callable[[], Measured]:
        """Measure no more; return what was done outside of statements since the meter began."""

    def unrecorded(self) -> int:
        """Return how many rows of fused loops there was no room for."""
