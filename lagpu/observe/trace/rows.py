"""The rows of a trace, the totals over rows, and the descriptions of statements."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

from lagpu.backends.profile import LoopRow, Phase
from lagpu.core.expr import format_formula
from lagpu.core.matrix import Matrix
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector
from lagpu.core.views import SelectionMatrix
from lagpu.host import source
from lagpu.operations import Constant, Counter

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """One statement in one iteration, or in all iterations of a loop whose kernel keeps no log.

    Attributes
    ----------
    level : int or None
        Iteration of the enclosing `loop`, from 0; -1 outside of a loop; None for all iterations.
    method, formula, where : str
        Name of the operation; the statement as mathematics, with the author's names;
        ``file.py:line``.
    shapes : tuple of tuple of int
        Shape of the output, then of the inputs.
    nvals_in, nvals_out : int or None
        Entries of the last input vector before the statement, or of the first matrix where a matrix
        is made; and entries of the output after it. None in a row for all iterations.
    direction, kernel, reason : str
        The choice made for a product, and why; empty for other operations. The kernel of a
        statement in a loop that ran as one kernel is ``"fused"``.
    edges, bytes : int or None
        Matrix entries that the product looked at, and memory moved, estimated
        (docs/design/trace.md). Bytes are None in a row for all iterations, and on cpu for
        statements other than products.
    kernel_ms : float
        Time of the statement's kernels: by events on a GPU, else by the host's clock; in a fused
        loop by the device's own clock. Among rows for all iterations, the product's row has the
        time of the whole loop, by events.
    host_ms, compile_ms, copy_ms, copy_bytes : float or None, float, float, int
        For the statement, the time of the host without compiling, None in a fused loop; of
        compiling; of copies between host and device; and their bytes.
    mode : str
        ``"fused"`` if the statement ran as part of one kernel for the whole loop, else ``"eager"``.
    phases : tuple of Phase
        Of a level of a search by a grid's policy, the phases, and of a search of pieces, the
        pieces, with what was sent (docs/design/grid.md).
    """

    level: int | None
    method: str
    formula: str
    where: str
    shapes: tuple[Shape, ...]
    nvals_in: int | None
    nvals_out: int | None
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
    phases: tuple[Phase, ...] = ()


@dataclass(frozen=True)
class Totals:
    """Sums over a trace; copies and compiling include those outside of statements.

    Attributes
    ----------
    statements, edges, bytes : int
        Rows, matrix entries looked at, and bytes moved as far as they are estimated.
    kernel_ms, host_ms : float
        Times of the statements, and of launching fused loops.
    compile_ms, copy_ms, copy_bytes : float, float, int
        Sums over everything inside the trace.
    fused, unlogged, unrecorded : int
        Rows of statements in fused loops; how many of these rows are for all iterations, without
        known edges and bytes; and how many more rows did not fit the log.
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
    unlogged: int = 0
    unrecorded: int = 0


class Description(NamedTuple):
    """The fields of a row that are known before the statement runs.

    The formula of a statement that assigns the loop's counter ends in ``<< ``; `counter` is the
    author's name of it, else empty.
    """

    method: str
    formula: str
    where: str
    shapes: tuple[Shape, ...]
    counter: str


class Seen:
    """A statement, or a callable that returns it, whose description is formatted on demand.

    Construction costs next to nothing: the device may be waiting for the loop that follows.
    """

    _named: dict[str, Any] | None = None
    _description: Description | None = None

    def __init__(self, of: Any, frame: FrameType | None, line: int) -> None:
        self._of = of
        self._frame = frame
        self._file = "" if frame is None else frame.f_code.co_filename
        self._line = line

    def release_frame(self, out: Any) -> None:
        """Drop the author's frame, but keep the name of the output."""
        frame, self._frame = self._frame, None
        self._named = {}
        for name, x in () if frame is None else frame.f_locals.items():
            if x is out:
                self._named[name] = x
                return

    def description(self) -> Description:
        """Return the description; once it is formatted, no vector is referenced any more."""
        if self._description is None:
            named = self._named if self._frame is None else self._frame.f_locals
            to, call = self._of() if callable(self._of) else self._of
            self._description = _described(to, call, named, _place(self._file, self._line))
            self._of = self._frame = self._named = None
        return self._description


def _described(to: Any, call: Any, named: dict[str, Any] | None, where: str) -> Description:
    left, right = to.formula, call.formula
    counter = ""
    if type(right[0]) is Counter:
        counter = next((name for name, x in (named or {}).items() if x is right[0]), "iteration")
    parts = (*left, " << ") if counter else (*left, " << ", *right)
    shapes = (to.out.shape, *(x.shape for x in call.inputs))
    formula = format_formula(parts, _names_of(parts, named))
    # A number assigned to a scalar has no row, so a constant is the x of ``v[i] = x``.
    method = "set" if isinstance(call.operation, Constant) else call.method
    return Description(method, formula, where, shapes, counter)


def row_of(description: Description, row: LoopRow, mode: str) -> Row:
    """Return the row of a statement in one iteration, or in all."""
    counter = description.counter
    if counter and row.level is not None:
        counter = str(row.level)
    return Row(
        level=row.level,
        method=description.method,
        formula=description.formula + counter,
        where=description.where,
        shapes=description.shapes,
        nvals_in=row.nvals_in,
        nvals_out=row.nvals_out,
        mode=mode,
        **row.measured._asdict(),
    )


def _place(file: str, line: int) -> str:
    name = source.file_name(file)
    return f"{name}:{line}" if name else ""


def _names_of(parts: tuple[Any, ...], named: dict[str, Any] | None) -> dict[int, str]:
    """Return the names of a formula's objects by ``id``; faster than `names_in`."""
    if named is None:
        return {}
    wanted = {id(getattr(x, "stored", x)) for x in parts if type(x) is not str}
    return {id(x): name for name, x in reversed(named.items()) if id(x) in wanted}


def names_in(frame: FrameType | None) -> dict[int, str]:
    """Return the variables of a frame that hold vectors, matrices and scalars, by ``id``."""
    return source.names_in(frame, lambda x: isinstance(x, _NAMED))


_NAMED = (Vector, Matrix, Scalar, SelectionMatrix)
