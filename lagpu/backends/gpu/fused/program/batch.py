"""Batches: statements in a row that run once, as one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import lagpu.operations as ops
from lagpu.backends.gpu.device.protocol import HostNotification
from lagpu.backends.gpu.fused import emit
from lagpu.backends.gpu.fused.loop import KernelLoop, Prepared
from lagpu.backends.gpu.fused.match import distinct
from lagpu.backends.gpu.fused.program.run import MOST_PROGRAMS, why_no_line
from lagpu.backends.gpu.fused.program.text import (
    Program,
    Signature,
    signature,
    without_numbers,
    write_program,
)
from lagpu.backends.gpu.kernels import GRID_BARRIER, constant
from lagpu.backends.gpu.profile import LoopLog
from lagpu.backends.gpu.storage.stores import Counters, VectorStore
from lagpu.operations import Statement, Until

AFTER = 2  # batches alike that run statement by statement; then a program is made
WAITS = False  # whether the program is made at once, not in the background: for tests


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
            known = self._known[of.key] = _Known(self._counters, statements, of)
        if known.is_ready(statements, of, counted):
            return Batch(known, statements, of, counted)
        return None


def _has_one_index(s: Statement) -> bool:
    """Whether a statement is ``w[i] << number``."""
    operation = s.operation
    if type(operation) is not ops.AssignScalar or type(s.out) is not VectorStore or s.desc.mask:
        return False
    where = operation.indices
    return where is not None and where[0] is not None and len(where[0]) == 1


class _Known:
    """The program of batches alike: not there yet, being made, there, or impossible."""

    program: Program | None = None
    launch: Any = None  # once the program has run
    grid = 0

    def __init__(self, counters: Counters, statements: Sequence[Statement], of: Signature) -> None:
        self.counters, self.device = counters, counters.device
        self.block = self.device.limits.loop_block
        self.has_scalars = any(s.writes_scalar or s.scalars for s in statements)
        place = {id(x): k for k, x in enumerate(of.handles)}
        #: The places of the vectors that it writes.
        self.written = list(
            dict.fromkeys(place[id(s.out)] for s in statements if id(s.out) in place)
        )
        self._came, self._fails = 0, not self.written
        self._done: Callable[[], bool | None] = lambda: True

    def is_ready(self, statements: Sequence[Statement], of: Signature, counted: Any) -> bool:
        """Count one more; return whether its program can run, after beginning to make it."""
        self._came += 1
        if self._fails or self._came <= AFTER:
            return False
        if self.program is None or not self.program.arguments.fit(of.handles):
            self._make(statements, of, counted)
        if self.launch is not None:
            return True
        done = self._done()
        self._fails = done is False
        if done:
            self._prepare()
        return bool(done)

    def _make(self, statements: Sequence[Statement], of: Signature, counted: Any) -> None:
        """Write a program for such statements, and begin to compile it."""
        bare = without_numbers(statements)
        written = distinct(s.out for s in bare if not s.writes_scalar)
        scalars = emit.LoopScalars(bare, self.device)
        given = scalars, written, Until(times=1), self.block, False, of.handles
        operands = emit.Operands(bare, *given)
        operands.once, operands.counted = True, counted
        self.program, self.launch = write_program(operands, 0), None
        if not WAITS:
            self._done = self.device.compile_beside(self.program.kernel)

    def _prepare(self) -> None:
        """Load the program, and fix the arguments that are the same in each run."""
        assert self.program is not None
        device, (kernel, arguments, names, num_counters) = self.device, self.program
        self.grid = device.max_cooperative_blocks(kernel, self.block)
        vary = {k + j for k, _ in arguments.vectors for j in range(3)}
        vary.update(k for first, end, _ in arguments.made for k in range(first, end))
        self.varying = [(k, names[k]) for k in sorted(vary)]
        fixed = {x: arguments.fixed[k] for k, x in enumerate(names) if k not in vary}
        count = constant("kTurns") * num_counters * constant("kCounterStride") + 2
        self.barrier = device.xp.zeros(GRID_BARRIER, np.uint32)
        self.launch = device.prepare(
            kernel, self.grid * self.block, block=self.block, cooperative=True, times=1,
            counters=device.xp.empty(count, np.uint64), stop=None, **fixed,
        )  # fmt: skip


class Batch(KernelLoop):
    """One run of a batch's program; see `KernelLoop`. It ends by itself."""

    name = "batch"
    why = "the loop is run by Python"

    def __init__(
        self, known: _Known, statements: Sequence[Statement], of: Signature, counted: Any
    ) -> None:
        self.statements, self.device = statements, known.device
        self.written = [of.handles[k] for k in known.written]
        self._known, self._of, self._counted = known, of, counted

    @property
    def nbytes(self) -> int:
        """See `FusedLoop`."""
        return sum(x.bytes_to_write for x in self.written)

    def _prepare(self, log: LoopLog | None) -> Prepared:
        known, (_, handles, numbers), device = self._known, self._of, self.device
        assert known.program is not None
        for x in self.written:
            if x.form != "bitmap" or x.values is None:
                device.require(x.bytes_to_write, "batch")
                x.to_writable()
        scalars = emit.LoopScalars(self.statements, device) if known.has_scalars else None
        run = emit.Run(handles, device, known.grid, scalars, numbers=numbers)
        values = known.program.arguments.of(run)
        heard, counts = device.notification(), known.counters.take(3)
        new = {name: values[k] for k, name in known.varying}
        new["barrier"] = known.barrier if run.barrier is None else run.barrier
        new |= {"counts": counts, "notification": heard.memory, "serial": heard.serial}
        for x in self.written:
            x.changes()
        return partial(known.launch, new), partial(self._settle, scalars, heard, counts)

    def _settle(
        self, scalars: emit.LoopScalars | None, heard: HostNotification, counts: Any
    ) -> None:
        x = self._counted
        if scalars is not None:
            scalars.ran(heard if x is None else None)
        if x is not None:
            x.counted(counts, heard._replace(counts_edges=False))
