"""The generated loop: one cooperative kernel for the recorded body of any loop over vectors.

The kernel of a known loop is kept with its record, so that its text is not written again.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.gpu.fused.emit import Run
from lagpu.backends.gpu.fused.match import matched, method
from lagpu.backends.gpu.fused.program.operands import Operands
from lagpu.backends.gpu.fused.program.text import Program, ProgramText, signature
from lagpu.backends.gpu.fused.scalars import LoopScalars, why_no_scalars
from lagpu.backends.gpu.fused.search_space import Prepared, run_whole
from lagpu.backends.gpu.kernels import GRID_BARRIER, constant
from lagpu.backends.gpu.ops import selection
from lagpu.backends.gpu.ops.planner import PULL_FIRST, PULL_SUMS
from lagpu.backends.gpu.profile.log import LoopLog, ProgramRows
from lagpu.backends.gpu.storage.vector import VectorStore, bytes_of
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
    Constant,
    Ewise,
    Extract,
    Handle,
    Multiply,
    MultiplySelection,
    RecordedBody,
    Reduce,
    Rejection,
    Select,
    Statement,
    once,
    operands_of,
)

NO_LIMIT = 2**64 - 1
_FLAGS = 2  # words beside the counters, by which all threads hear that the loop is stopped
MOST_PROGRAMS = 256  # that are kept by signatures; then they are written anew

_programs: dict[tuple[Any, ...], list[Program]] = {}


def generated_loop(
    statements: Sequence[Statement],
    empty: VectorStore | None,
    unchanged: VectorStore | None,
    times: int | None,
    why: str,
) -> GeneratedLoop | Rejection:
    """Return the kernel of a loop over vectors, or why there is none; `why` no other one fits."""
    lacking = once(statements, why_not_generated)
    if lacking:
        return Rejection(lacking)
    return GeneratedLoop(statements, empty, unchanged, times, why)


def why_not_generated(statements: Sequence[Statement]) -> str:
    """Return why statements cannot be lines of one kernel, or an empty string."""
    for s in statements:
        why = _why_not(s)
        if why:
            return why
    if all(s.writes_scalar for s in statements):
        return "the body writes no vector"
    return why_no_scalars(statements)


def _why_not(s: Statement) -> str:
    """Return why a statement cannot be lines of a kernel, or an empty string."""
    operation = s.operation
    if isinstance(operation, (AssignScalar, Assign, Extract)):
        return "" if operation.indices is None else f"{method(s)} has indices"
    if isinstance(operation, (Multiply, MultiplySelection)):
        product = operation.product
        if product.kernel is not None or product.policy is not None:
            return "the product names a kernel or a policy"
        sizes = [operation.operand.size, s.out.size]
        if isinstance(operation, MultiplySelection):
            sizes.append(operation.indices.size)
        elif max(operation.matrix.shape) >= 2**31:
            return "the matrix has more than 2**31 rows or columns"
        return "" if all(sizes) else "the matrix has no rows or no columns"
    if isinstance(operation, Reduce) and type(operation.operand) is not VectorStore:
        return "the operand of reduce is a matrix"
    if isinstance(operation, (Apply, Select, Reduce, Constant, Ewise)):
        return ""
    return f"{method(s)} is not among the operations of a fused loop"


class _Outputs(NamedTuple):
    """The vectors that a body writes, each once."""

    vectors: tuple[Any, ...]

    def on(self, body: RecordedBody) -> _Outputs:
        """Return those of a recorded body; these are places."""
        return _Outputs(tuple([body.handles[x.number] for x in self.vectors]))


def _outputs(statements: Sequence[Statement], _: Any) -> _Outputs:
    written = {id(s.out): s.out for s in statements if not s.writes_scalar}
    return _Outputs(tuple(written.values()))


class GeneratedLoop:
    """A kernel, its arguments, and the vectors it writes; see `FusedLoop`.

    Parameters
    ----------
    statements : sequence of Statement
        The body, which `why_not_generated` accepts.
    empty, unchanged : VectorStore or None
        The loop's condition.
    times : int or None
        Iterations, at most.
    why : str
        Why no other kernel runs the loop.

    Attributes
    ----------
    one_way : str
        Why a product has no direction to choose.
    """

    name = "generated loop"
    keeps_log = True
    one_way = "only one form of the matrix is stored"

    def __init__(
        self,
        statements: Sequence[Statement],
        empty: VectorStore | None,
        unchanged: VectorStore | None,
        times: int | None,
        why: str,
    ) -> None:
        self.statements, self.why = statements, why
        self._empty, self._unchanged, self._times = empty, unchanged, times
        watched = [x for x in (empty, unchanged) if x is not None]
        vectors = [*matched(_outputs, statements, None).vectors, *watched]
        self.written: list[VectorStore] = list({id(x): x for x in vectors}.values())
        self.device = self.written[0].device
        self._block = self.device.limits.loop_block
        self._scalars: LoopScalars | None = None  # of the last run

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`: words and values of what is written, and of each product's sums."""
        sums = sum(
            bytes_of(s.out.size, s.operation.product.result)
            for s in self.statements
            if isinstance(s.operation, (Multiply, MultiplySelection))
        )
        return sum(x.bytes_to_write for x in self.written) + sums

    # ---------------------------------------------------------------------------- running
    def run(self, log: LoopLog | None = None) -> None:
        """Run the loop to its end, and wait for it: it may have none but an interrupt."""
        run_whole(self.device, self.name, self.written, lambda: self._prepared(log), stops=True)

    def _prepared(self, log: LoopLog | None) -> Prepared:
        rows = None if log is None else self._rows(log)
        for x in self.written:
            x.to_writable()
        (kernel, arguments, counted), handles = self._program(log)
        block, xp = self._block, self.device.xp
        grid = self.device.max_cooperative_blocks(kernel, block)
        run = Run(handles, self.device, grid, self._scalars)
        given = arguments.of(run)
        barrier = xp.zeros(GRID_BARRIER, np.uint32) if run.barrier is None else run.barrier
        count = constant("kTurns") * counted * constant("kCounterStride") + _FLAGS
        counters = xp.empty(count, np.uint64)
        times = NO_LIMIT if self._times is None else self._times
        for x in self.written:
            x.changes()
        launch = functools.partial(
            self.device.launch, kernel, grid * block, *given, block=block, cooperative=True,
            times=times, counters=counters, barrier=barrier, stop=self.device.stop[0],
            **({} if log is None else {"log_words": log.words, "log_is_new": log.is_new}),
        )  # fmt: skip
        return launch, lambda: self._settle(log, rows)

    def _program(self, log: LoopLog | None) -> tuple[Program, Sequence[Handle]]:
        """Return the program and its handles by place; one that is kept, if it fits them."""
        if not isinstance(self.statements, RecordedBody):  # a record has no scalars
            self._scalars = LoopScalars(self.statements, self.device)
        kept, handles = self._kept() if log is None else ([], [])
        for program in kept:
            if program.arguments.fit(handles):
                return program, handles
        text = self._text(log is not None, handles)
        program = text.write(0 if log is None else log.capacity)
        kept.append(program)
        return program, text.operands.params.handles

    def _kept(self) -> tuple[list[Program], Sequence[Handle]]:
        """Return where programs for this body and condition are kept, and the handles by place.

        That is the record of the body. A body with scalars is not kept as one: for it they are
        kept by its signature.
        """
        body = self.statements
        if not isinstance(body, RecordedBody):
            if not any(s.writes_scalar or s.scalars for s in body):
                return [], []
            of, handles = signature(body, self._empty, self._unchanged)
            if len(_programs) >= MOST_PROGRAMS:
                _programs.clear()
            return _programs.setdefault((self.device, self._block, of), []), handles
        places = []
        for x in (self._empty, self._unchanged):
            place = None if x is None else body.place_of(x)
            if x is not None and place is None:  # the record does not say its type
                return [], body.handles
            places.append(place)
        kept: list[Program] = body.record.found.setdefault((Program, self._block, *places), [])
        return kept, body.handles

    def _text(self, traced: bool, handles: Sequence[Handle] = ()) -> ProgramText:
        """Return the writer of the kernel's text; `handles` have their places already."""
        scalars = self._scalars or LoopScalars((), self.device)
        given = self.statements, scalars, self.written, self._unchanged, self._block, traced
        operands = self._operands(*given, handles)
        return ProgramText(self.statements, operands, self._empty, self._unchanged)

    def _operands(self, *given: Any) -> Operands:
        """Return what the statements name, made of what `Operands` takes."""
        return Operands(*given)

    def _settle(self, log: LoopLog | None, rows: ProgramRows | None) -> None:
        """Take over what the kernel has written."""
        if log and rows:
            log.ran(rows)
        if self._scalars:
            self._scalars.ran()

    def _rows(self, log: LoopLog) -> ProgramRows:
        """Return the maker of a trace's rows; entries are counted from now on, nothing waits."""
        statements = self.statements
        inputs = [self._counted_input(s) for s in statements]
        seen = {id(x): x for x in (*(s.out for s in statements), *inputs)}
        counts = {
            of: log.count_of(x) if type(x) is VectorStore else _none for of, x in seen.items()
        }
        bounds = {}
        why = dict.fromkeys(range(len(statements)), self.one_way)
        for k, s in enumerate(statements):
            if isinstance(s.operation, MultiplySelection):
                direction = "pull" if s.operation.product.transpose else "push"
                why[k] = selection.reason(direction)
            elif isinstance(s.operation, Multiply):
                bounds[k] = self._bound(s.operation)
        return ProgramRows(statements, inputs, counts, bounds, why)

    def _counted_input(self, s: Statement) -> Any:
        """Return the last vector that a statement reads; its entries are a row's input."""
        found = [x for x in operands_of(s.operation) if type(x) is VectorStore]
        return found[-1] if found else s.out

    def _bound(self, operation: Multiply) -> tuple[int, int]:
        """Return (entries, factor): a product pulls where its edges exceed their quotient."""
        takes_any = operation.product.semiring.monoid.name == "any"
        return operation.matrix.nvals, PULL_FIRST if takes_any else PULL_SUMS


def _none() -> int:
    """Return 0, the entries of a scalar before a loop; no row shows them."""
    return 0
