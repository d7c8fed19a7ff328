"""What ran: one row an operation, recorded while a trace is on, at no cost while it is off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Row", "Trace", "trace"]


@dataclass(frozen=True)
class Row:
    """One operation.

    Attributes
    ----------
    level : int
        Iteration of the enclosing `loop`, from 0; -1 outside of one.
    method : str
        Name of the operation.
    formula : str
        What stood in the program.
    nvals_in, nvals_out : int
        Entries of the last input vector before, and of the output after.
    ms : float
        Time of the operation alone, in milliseconds.
    direction, kernel, reason : str
        The choice made for a product, and why.
    edges : int or None
        Matrix entries the product looked at.
    """

    level: int
    method: str
    formula: str
    nvals_in: int
    nvals_out: int
    ms: float
    direction: str
    kernel: str
    reason: str
    edges: int | None


@dataclass
class Trace:
    """The rows of one traced stretch of a program, in order."""

    rows: list[Row] = field(default_factory=list)
    level: int = -1

    def run(self, to: Any, call: Any, desc: Any) -> None:
        """Run a checked call for an `Updater` and record it."""
        out = to.out
        last = call.inputs[-1]
        before = last.nvals if last.ndim == 1 else 0
        measured = call.backend.measure(call.method, out.data, desc, call.args)
        self.rows.append(
            Row(
                level=self.level,
                method=call.method,
                formula=f"{to!r} << {call!r}",
                nvals_in=before,
                nvals_out=out.nvals,
                ms=measured.ms,
                direction=measured.direction,
                kernel=measured.kernel,
                reason=measured.reason,
                edges=measured.edges,
            )
        )


active: Trace | None = None


@contextmanager
def trace() -> Iterator[Trace]:
    """Record every operation that runs inside: ``with lagpu.trace() as t: ...``."""
    global active
    outer, active = active, Trace()
    try:
        yield active
    finally:
        active = outer
