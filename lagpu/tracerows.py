"""The rows of a trace, their sums, and what they say of a statement."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

from lagpu.backends.base import Counter
from lagpu.backends.measure import LoopRow
from lagpu.expr import spell

__all__ = ["Late", "Row", "Said", "Seen", "Totals", "names_in", "row_of", "spelled"]

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """One statement in one iteration.

    Attributes
    ----------
    level : int
        Iteration of the enclosing `loop`, from 0; -1 outside of one.
    method : str
        Name of the operation.
    formula : str
        What stood in the program, with the author's names.
    where : str
        ``file.py:line``.
    shapes : tuple of tuple of int
        Of the output, then of the inputs.
    nvals_in, nvals_out : int
        Entries of the last input vector before, or of the first matrix where a matrix is made; and
        of the output after.
    direction, kernel, reason : str
        The choice made for a product, and why; empty for other operations. In a loop that ran as
        one kernel, that is ``"fused"``.
    edges : int or None
        Matrix entries the product looked at.
    bytes : int or None
        Memory moved, estimated (docs/design/trace.md); None in a fused loop.
    kernel_ms : float
        Time of the statement's kernels: by events on a GPU, else by the host's clock; in a fused
        loop by the device's own clock.
    host_ms : float or None
        Time the host was busy with the statement, compiling apart; None in a fused loop.
    compile_ms : float
        Time spent compiling kernels for it.
    copy_ms, copy_bytes : float, int
        Copies between host and device for it.
    mode : str
        ``"fused"`` if it ran as a part of a kernel that is the whole loop, else ``"eager"``.
    """

    level: int
    method: str
    formula: str
    where: str
    shapes: tuple[Shape, ...]
    nvals_in: int
    nvals_out: int
    direction: str
    kernel: str
    reason: str
    edges: int | None
    bytes: int | None
    kernel_ms: float
    host_ms: float | None
    compile_ms: float
    copy_ms: float
    copy_bytes: int
    mode: str = "eager"


@dataclass(frozen=True)
class Totals:
    """Sums over a trace; copies and compiling include those outside of statements.

    Attributes
    ----------
    statements, edges, bytes : int
        Rows, matrix entries looked at, and bytes moved as far as they are estimated.
    kernel_ms, host_ms : float
        Of the statements, and of launching fused loops.
    compile_ms, copy_ms, copy_bytes : float, float, int
        Of the whole traced stretch.
    fused, unrecorded : int
        Rows of statements in fused loops, and how many more there was no room for.
    """

    statements: int
    edges: int
    bytes: int
    kernel_ms: float
    host_ms: float
    compile_ms: float
    copy_ms: float
    copy_bytes: int
    fused: int = 0
    unrecorded: int = 0


class Said(NamedTuple):
    """What a row says of a statement whatever it did; a formula may lack the loop's counter."""

    method: str
    formula: str
    where: str
    shapes: tuple[Shape, ...]
    is_counter: bool


class Seen(NamedTuple):
    """A statement and where it stands: file, line, and the variables in sight."""

    to: Any
    call: Any
    file: str
    line: int
    frame: FrameType | None
    named: dict[str, Any] | None = None  # instead of the frame's

    @classmethod
    def now(cls, to: Any, call: Any, frame: FrameType | None) -> Seen:
        """Return it where the frame stands now."""
        if frame is None:
            return cls(to, call, "", 0, None)
        return cls(to, call, frame.f_code.co_filename, frame.f_lineno, frame)


class Late:
    """What a row says of a statement, spelled when it is asked for."""

    def __init__(self, which: Seen) -> None:
        self._which: Seen | None = which
        self._said: Said | None = None

    def let_go(self) -> None:
        """Keep nothing of the author's frame but the names of the output."""
        seen = self._which
        if seen is not None and seen.frame is not None:
            out = seen.to.out
            named = {name: x for name, x in seen.frame.f_locals.items() if x is out}
            self._which = seen._replace(frame=None, named=named)

    def said(self) -> Said:
        """Return it; afterwards no vector is kept."""
        if self._said is None:
            assert self._which is not None
            self._said, self._which = spelled(self._which), None
        return self._said


def spelled(which: Seen) -> Said:
    """Spell a statement, with the names that its objects have in the author's frame."""
    to, call, file, line, frame, named = which
    left, right = to.formula, call.formula
    is_counter = type(right[0]) is Counter
    parts = (*left, " << ") if is_counter else (*left, " << ", *right)
    formula = spell(parts, _names_of(parts, frame.f_locals if named is None and frame else named))
    shapes = (to.out.shape, *(x.shape for x in call.inputs))
    return Said(call.method, formula, _place(file, line), shapes, is_counter)


def row_of(said: Said, row: LoopRow, mode: str) -> Row:
    """Return the row of a statement in one iteration."""
    return Row(
        level=row.level,
        method=said.method,
        formula=said.formula + str(row.level) * said.is_counter,
        where=said.where,
        shapes=said.shapes,
        nvals_in=row.nvals_in,
        nvals_out=row.nvals_out,
        mode=mode,
        **row.measured._asdict(),
    )


def _place(file: str, line: int) -> str:
    name = file.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{name}:{line}" if name else ""


def _names_of(parts: tuple[Any, ...], named: dict[str, Any] | None) -> dict[int, str]:
    """Return what `names_in` does for the objects of a formula alone: quicker."""
    if named is None:
        return {}
    wanted = {id(getattr(x, "stored", x)) for x in parts if type(x) is not str}
    return {id(x): name for name, x in reversed(named.items()) if id(x) in wanted}


def names_in(frame: FrameType | None) -> dict[int, str]:
    """Return the ``id`` of each vector, matrix and scalar of a frame with its name there."""
    if frame is None:
        return {}
    return {
        id(value): name
        for name, value in reversed(frame.f_locals.items())
        if hasattr(type(value), "_call_for")
    }
