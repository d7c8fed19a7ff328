"""Measurements of a backend for a trace: of single statements, and of fused loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lagpu.operations import FusedLoop, Handle, Operation, Rejection


@dataclass(frozen=True)
class Sent:
    """The messages that pieces of a grid in this process have sent to others in one form.

    The form is ``"list"`` or ``"bitmap"`` of vertices, their ``"values"``, ``"pairs"`` of vertex
    and parent, ``"parents"`` in an order that the receiver knows, or ``"counts"``. Empty messages
    do not count.
    """

    form: str
    messages: int
    bytes: int


@dataclass(frozen=True)
class Phase:
    """A phase of a level of a search on a grid, or the part that one piece has in a level.

    The name is ``"expand"``, ``"share"``, ``"expansion"``, ``"sort"``, ``"fold"``, ``"update"``,
    ``"agree"``; after the last level ``"parents"``. Or it is a piece, ``"piece 0"``. The time is of
    all pieces of this process together; of a piece until it waits for the others.
    """

    name: str
    ms: float
    sent: tuple[Sent, ...] = ()


class Measured(NamedTuple):
    """The measurement of one statement, for a trace.

    Attributes
    ----------
    kernel_ms : float
        Time of the statement's kernels: by events on a GPU, else by the host's clock; in a fused
        loop by the device's clock.
    host_ms : float or None
        Time the host was busy with the statement, without compiling; None in a fused loop.
    compile_ms : float
        Time spent compiling kernels.
    copy_ms, copy_bytes : float, int
        Copies between host and device.
    direction, kernel, reason : str
        The choice made for a product, and why; empty for other operations.
    edges : int or None
        Matrix entries that the product looked at.
    bytes : int or None
        Memory that the kernels moved, estimated (docs/design/trace.md).
    phases : tuple of Phase
        Of a level of a search by a grid's policy (docs/design/grid.md), its phases; of a search of
        pieces, the pieces.
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
    phases: tuple[Phase, ...] = ()


class LoopRow(NamedTuple):
    """One statement in one iteration of a fused loop, or in all if its kernel keeps no log.

    `statement` is its index in the body, `level` the iteration, None for all. `nvals_in` and
    `nvals_out` are the entries of the last input vector before and of the output after; None if
    unknown.
    """

    statement: int
    level: int | None
    nvals_in: int | None
    nvals_out: int | None
    measured: Measured


class LoopMeasured(NamedTuple):
    """The measurement of a launched fused loop, available once the loop has ended.

    `rows` waits for it and returns a row for each statement and iteration, or for each statement if
    the kernel keeps no log. `total` returns the cost of the whole loop: the host's time, compiling,
    copies.
    """

    rows: Callable[[], list[LoopRow]]
    total: Callable[[], Measured]


class Meter(Protocol):
    """Measures the statements of one backend for a trace, without waiting for the device.

    The returned callables are called when the trace is read, and wait then.
    """

    def run(
        self, work: Callable[[], None], out: Handle | None, operation: Operation | None
    ) -> Callable[[], Measured]:
        """Run one statement by calling `work`.

        `out` is the vector or matrix that it writes, None for a scalar; `operation` is None for a
        statement that sets one entry of `out`.
        """

    def run_loop(
        self, plan: Callable[[], FusedLoop | Rejection]
    ) -> tuple[FusedLoop | Rejection, LoopMeasured | None]:
        """Plan a recorded loop by calling `plan`, and run it unless it is rejected."""

    def count(self, x: Handle) -> Callable[[], int]:
        """Return a callable that returns the present number of entries of a vector or matrix."""

    def stop(self) -> Callable[[], Measured]:
        """Stop measuring; return a callable for the measurement outside of statements."""

    def unrecorded(self) -> int:
        """Return the number of rows of fused loops that did not fit the log."""
