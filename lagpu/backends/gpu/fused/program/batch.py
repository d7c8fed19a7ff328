"""Batches: statements in a row that run once, as one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import lagpu.operations as ops
from lagpu.backends.gpu.device.protocol import HostNotification
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.fused.loop import KernelLoop, Prepared
from lagpu.backends.gpu.fused.match import distinct
from lagpu.backends.gpu.fused.program.run import MOST_PROGRAMS, counters_of, why_no_line
from lagpu.backends.gpu.fused.program.text import (
    Signature,
    signature,
    without_numbers,
    write_program,
)
from lagpu.backends.gpu.kernels import GRID_BARRIER
from lagpu.backends.gpu.profile import LoopLog
from lagpu.backends.gpu.storage.stores import Counters, VectorStore
from lagpu.operations import Statement, Until

AFTER = 2  # batches alike that run statement by statement; then a program is made
WAITS = False  # whether the program is made at once, not in the background: for tests
_MOST_KEPT = 4  # programs of batches alike
#: Of a matrix whose masked products join: of more, the planner's kernels save more than a launch.
_MOST_ENTRIES = 1 << 20


class Batches:
    """The programs of statements in a row that came again and again; see `protocol.Batches`.

    A program is made in the background, while such statements still run one by one.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._known: dict[tuple[Any, ...], _Known] = {}

    def joins(self, statement: Statement) -> bool:
        """See `protocol.Batches`: it writes a vector or a scalar, as lines of a kernel do."""
        kind = type(statement.out)
        if kind is not VectorStore and kind is not ops.ScalarValue:
            return False
        if why_no_line(statement) and not _has_one_index(statement):
            return False
        operation = statement.operation
        if (
            isinstance(operation, ops.Multiply)
            and statement.desc.mask is not None
            and operation.matrix.nvals > _MOST_ENTRIES
        ):
            return False
        if any(op.of_numbers and not op.body for op in _operators(statement)):
            return False  # it raises: only cpu runs Python functions
        return not (statement.scalars and emit.why_no_scalars((statement,)))

    def plan(self, statements: Sequence[Statement], counted: Any) -> Batch | None:
        """See `protocol.Batches`."""
        if counted is not None and all(s.out is not counted for s in statements):
            counted = None
        of = signature(statements, counted)
        known = self._known.get(of.key)
        if known is None:
            if len(self._known) >= MOST_PROGRAMS:
                self._known.clear()
            known = self._known[of.key] = _Known(statements, of)
        known.came += 1
        if not known.written or known.came <= AFTER:
            return None
        for kept in known.kept:
            if kept.program.arguments.fit(of.handles):
                return Batch(known, kept, statements, of, counted) if kept.is_ready() else None
        if len(known.kept) < _MOST_KEPT:
            known.kept.append(_Kept(self._counters, statements, of, counted))
        return None


def _operators(s: Statement) -> list[Any]:
    """Return the operators of a statement, and of its accumulator."""
    operation, accum = s.operation, s.desc.accum
    found: list[Any] = [] if accum is None else [accum]
    if isinstance(operation, emit.PRODUCTS):
        semiring = operation.product.semiring
        return [*found, semiring.monoid.op, semiring.multiply]
    if isinstance(operation, ops.Reduce):
        return [*found, operation.monoid.op]
    op = (
        operation.function.op
        if isinstance(operation, ops.Apply)
        else getattr(operation, "op", None)
    )
    return found if op is None else [*found, op]


def _has_one_index(s: Statement) -> bool:
    """Whether a statement is ``w[i] << number``."""
    operation = s.operation
    if type(operation) is not ops.AssignScalar or type(s.out) is not VectorStore or s.desc.mask:
        return False
    where = operation.indices
    return where is not None and where[0] is not None and len(where[0]) == 1


class _Known:
    """What batches alike have in common: which vectors they write, and the programs for them."""

    def __init__(self, statements: Sequence[Statement], of: Signature) -> None:
        self.came = 0
        self.has_scalars = any(s.writes_scalar or s.scalars for s in statements)
        place = {id(x): k for k, x in enumerate(of.handles)}
        outs = (place.get(id(s.out)) for s in statements)
        #: The places of the vectors that they write.
        self.written = [k for k in dict.fromkeys(outs) if k is not None]
        self.kept: list[_Kept] = []  # for vectors in other forms, as `Arguments.fit` tests


class _Kept:
    """A program of batches alike, which may not be compiled yet."""

    def __init__(
        self, counters: Counters, statements: Sequence[Statement], of: Signature, counted: Any
    ) -> None:
        """Write a program for such statements, and begin to compile it."""
        self.counters, self.device = counters, counters.device
        bare, block = without_numbers(statements), self.device.limits.loop_block
        written = distinct(s.out for s in bare if not s.writes_scalar)
        scalars = emit.LoopScalars(bare, self.device)
        operands = emit.Operands(bare, scalars, written, Until(times=1), block, False, of.handles)
        operands.once, operands.counted = True, counted
        self.program, self._block = write_program(operands, 0), block
        self.launch: Any = None
        kernel = self.program.kernel
        self._done = (lambda: True) if WAITS else self.device.compile_beside(kernel)

    def is_ready(self) -> bool:
        """Whether the program can run; the first time it is loaded."""
        if self.launch is None and self._done():
            self._load()
        return self.launch is not None

    def _load(self) -> None:
        """Load the program, and fix the arguments that are the same in each run."""
        device, (kernel, arguments, names, num_counters, _) = self.device, self.program
        self.grid = device.max_cooperative_blocks(kernel, self._block)
        vary = {k + j for k, _ in arguments.vectors for j in range(3)}
        vary.update(k for first, end, _ in arguments.made for k in range(first, end))
        self.varying = [(k, names[k]) for k in sorted(vary)]
        fixed = {x: arguments.fixed[k] for k, x in enumerate(names) if k not in vary}
        self.barrier = device.xp.zeros(GRID_BARRIER, np.uint32)
        self.launch = device.prepare(
            kernel, self.grid * self._block, block=self._block, cooperative=True, times=1,
            counters=counters_of(device, num_counters), stop=None, **fixed,
        )  # fmt: skip


class Batch(KernelLoop):
    """One run of a batch's program; see `KernelLoop`. It ends by itself."""

    name = "batch"
    why = "the loop is run by Python"

    def __init__(
        self,
        known: _Known,
        kept: _Kept,
        statements: Sequence[Statement],
        of: Signature,
        counted: Any,
    ) -> None:
        self.statements, self.device = statements, kept.device
        self.written = [of.handles[k] for k in known.written]
        self._known, self._kept, self._of, self._counted = known, kept, of, counted

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`."""
        return sum(x.bytes_to_write for x in self.written)

    def _prepare(self, log: LoopLog | None) -> Prepared:
        kept, (_, handles, numbers), device = self._kept, self._of, self.device
        for x in self.written:
            if x.form != "bitmap" or x.values is None:
                if x.size > emit.UNASKED:
                    device.require(x.bytes_to_write, "batch")
                x.to_writable()
        scalars = emit.LoopScalars(self.statements, device) if self._known.has_scalars else None
        run = emit.Run(handles, device, kept.grid, scalars, numbers=numbers)
        values = kept.program.arguments.of(run)
        heard, counts = device.notification(), kept.counters.take(3)
        new = {name: values[k] for k, name in kept.varying}
        new["barrier"] = kept.barrier if run.barrier is None else run.barrier
        new |= {"counts": counts, "notification": heard.memory, "serial": heard.serial}
        for x in self.written:
            x.changes()
        return partial(kept.launch, new), partial(self._settle, scalars, heard, counts)

    def _settle(
        self, scalars: emit.LoopScalars | None, heard: HostNotification, counts: Any
    ) -> None:
        x = self._counted
        if scalars is not None:
            scalars.ran(heard if x is None else None)
        if x is not None:
            x.counted(counts, heard._replace(counts_edges=False))
