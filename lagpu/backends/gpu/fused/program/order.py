"""Which statements of a body share a pass, and in what order scalars get their values.

The lines leave what the statements leave one after the other, since

- a scalar that a pass sums has its value after the next barrier, which is that of a product if one
  comes before the first statement that reads the scalar;
- numbers given to scalars wait with it where they read it, or write what lines that wait read;
- what may end the loop stands between passes, where no sum waits for a barrier.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from lagpu.backends.gpu.fused.program.operands import Operands
from lagpu.backends.gpu.fused.program.passes import HeldPass, Pass
from lagpu.operations import Multiply, MultiplySelection, Reduce, Statement

__all__ = ["Passes"]

BARRIER = "grid_sync(barrier);"


@dataclass
class _ScalarLines:
    """Lines that give scalars values, in order, and the scalars they write and read, by `id`."""

    lines: list[str] = field(default_factory=list)
    writes: set[int] = field(default_factory=set)
    reads: set[int] = field(default_factory=set)

    def follow(self, others: _ScalarLines) -> bool:
        """Whether these lines must come after `others`, which stand before them in the body."""
        return bool(self.writes & (others.writes | others.reads) or self.reads & others.writes)

    def extend(self, more: _ScalarLines) -> None:
        """Add lines after these."""
        self.lines += more.lines
        self.writes |= more.writes
        self.reads |= more.reads


class Passes:
    """The lines of a body, with a pass for statements in a row wherever they may share one.

    Parameters
    ----------
    operands : Operands
        Of the program.
    """

    def __init__(self, operands: Operands) -> None:
        self._operands, self._scalars = operands, operands.scalars
        self._lines: list[str] = []
        self._pass: Pass | None = None  # the open one
        self._space: Any = None
        self._reads: set[int] = set()  # the scalars that it reads, by `id`
        self._after_pass = _ScalarLines()  # of statements that are in it, or stand after those
        self._after_barrier = _ScalarLines()  # of passes that have ended, whose sums need one
        self._sums = 0

    def of(self, statements: Iterable[Statement]) -> list[str]:
        """Return the lines of statements."""
        for s in statements:
            self._add(s)
        self._end_pass()
        self._synchronise()
        return self._lines

    def _add(self, s: Statement) -> None:
        checks = self._scalars.checks(s)
        if checks:  # they may end the loop, with all done that stands before
            self._end_pass()
            self._synchronise()
            self._lines += checks
        refs = {id(ref.scalar) for ref in s.scalars}
        if (refs | {id(s.out)}) & self._after_barrier.writes:
            self._synchronise()
        if isinstance(s.operation, (Multiply, MultiplySelection)):
            self._end_pass()
            lines, result, _ = self._operands.product(s)
            self._add_barrier(lines)
            self._in_pass(s, s.out.size).add(s, result)
        elif isinstance(s.operation, Reduce):
            open_pass = self._in_pass(s, s.operation.operand.size)
            name = f"sum{self._sums}"
            self._sums += 1
            z = open_pass.sum(s, s.operation, name)
            self._after_pass.extend(_ScalarLines([self._scalars.writes(s, z)], {id(s.out)}))
        elif s.writes_scalar:
            self._add_constant(s, refs)
        else:
            if refs & self._after_pass.writes:
                self._end_pass()
                self._synchronise()
            self._in_pass(s, s.out.size).add(s)
            self._reads |= refs

    def _add_constant(self, s: Statement, refs: set[int]) -> None:
        """Add a scalar that gets a number: before the open pass, or else after it."""
        this = _ScalarLines([self._scalars.constant(s)], {id(s.out)}, refs)
        if id(s.out) in self._after_barrier.reads:
            self._synchronise()
        if id(s.out) in self._reads or this.follow(self._after_pass):
            self._after_pass.extend(this)
        else:
            self._lines += this.lines

    def _in_pass(self, s: Statement, size: int) -> Pass:
        """Return the pass for a statement: the open one if that is over the same index space."""
        space = self._operands.space(s)
        if self._pass is None or space != self._space:
            self._end_pass()
            held = self._operands.holds(size)
            self._pass = (HeldPass if held else Pass)(self._operands, size)
            self._space = space
        return self._pass

    def _end_pass(self) -> None:
        """Add the lines of the open pass, and of scalars after it: now, or after the next barrier.

        They wait for a barrier if the pass has sums, or if they follow others that wait for one.
        """
        if self._pass is not None:
            self._lines += self._pass.lines()
            if self._pass.sums or self._after_pass.follow(self._after_barrier):
                self._after_barrier.extend(self._after_pass)
            else:
                self._lines += self._after_pass.lines
        self._pass, self._space, self._after_pass = None, None, _ScalarLines()
        self._reads.clear()

    def _synchronise(self) -> None:
        """Add a barrier before the open pass if lines wait for one."""
        if self._after_barrier.lines:
            self._add_barrier([BARRIER])

    def _add_barrier(self, lines: list[str]) -> None:
        """Add lines with a barrier, and those that wait for one."""
        self._lines += [*lines, *self._after_barrier.lines]
        self._after_barrier = _ScalarLines()
