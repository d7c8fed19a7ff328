"""Which statements of a body share a pass, and in what order scalars get their values.

The lines leave what the statements leave one after the other, since

- a scalar that a pass sums has its value after the next barrier, which is that of a product if one
  comes before the first statement that reads the scalar;
- numbers given to scalars wait with it where they read it, or write what lines that wait read;
- what may end the loop stands between passes, where no sum is owed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lagpu.backends.gpu.fused.program.operands import Operands
from lagpu.backends.gpu.fused.program.passes import HeldPass, Pass
from lagpu.operations import Multiply, MultiplySelection, Reduce, Statement

__all__ = ["Passes"]

BARRIER = "grid_sync(barrier);"


class _Waiting:
    """Lines for scalars that wait, in order, and the scalars that they write and read, by `id`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.writes: set[int] = set()
        self.reads: set[int] = set()

    def add(self, lines: Iterable[str], out: int, reads: Iterable[int] = ()) -> None:
        """Add the lines of a statement that writes the scalar `out`."""
        self.lines += lines
        self.writes.add(out)
        self.reads.update(reads)

    def follow(self, others: _Waiting) -> bool:
        """Whether lines must not come before `others`, which stand before them in the body."""
        return bool(self.writes & (others.writes | others.reads) or self.reads & others.writes)

    def extend(self, more: _Waiting) -> None:
        """Add lines that wait for the same."""
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
        self._after = _Waiting()  # what comes after it
        self._owed = _Waiting()  # the same of passes that have ended: after the next barrier
        self._sums = 0

    def of(self, statements: Iterable[Statement]) -> list[str]:
        """Return the lines of statements."""
        for s in statements:
            self._add(s)
        self._close()
        self._settle()
        return self._lines

    def _add(self, s: Statement) -> None:
        checks = self._scalars.checks(s)
        if checks:  # they may end the loop, with all done that stands before
            self._close()
            self._settle()
            self._lines += checks
        refs = {id(ref.scalar) for ref in s.scalars}
        if (refs | {id(s.out)}) & self._owed.writes:
            self._settle()
        if isinstance(s.operation, (Multiply, MultiplySelection)):
            self._close()
            lines, result, _ = self._operands.product(s)
            self._settle_after(lines)
            self._in_pass(s, s.out.size).add(s, result)
        elif isinstance(s.operation, Reduce):
            open_pass = self._in_pass(s, s.operation.operand.size)
            name = f"sum{self._sums}"
            self._sums += 1
            z = open_pass.sum(s, s.operation, name)
            self._after.add([self._scalars.writes(s, z)], id(s.out))
        elif s.writes_scalar:
            self._constant(s, refs)
        else:
            if refs & self._after.writes:
                self._close()
                self._settle()
            self._in_pass(s, s.out.size).add(s)
            self._reads |= refs

    def _constant(self, s: Statement, refs: set[int]) -> None:
        """Add a scalar that gets a number: before the open pass, or else after it."""
        this = _Waiting()
        this.add([self._scalars.constant(s)], id(s.out), refs)
        if id(s.out) in self._owed.reads:
            self._settle()
        if id(s.out) in self._reads or this.follow(self._after):
            self._after.extend(this)
        else:
            self._lines += this.lines

    def _in_pass(self, s: Statement, size: int) -> Pass:
        """Return the pass for a statement: the open one if that is over the same index space."""
        space = self._operands.space(s)
        if self._pass is None or space != self._space:
            self._close()
            held = self._operands.holds(size)
            self._pass = (HeldPass if held else Pass)(self._operands, size)
            self._space = space
        return self._pass

    def _close(self) -> None:
        """End the open pass. Its sums are owed: a barrier must come before they are read.

        So is what may not come before the sums that are owed already.
        """
        if self._pass is not None:
            self._lines += self._pass.lines()
            if self._pass.sums or self._after.follow(self._owed):
                self._owed.extend(self._after)
            else:
                self._lines += self._after.lines
        self._pass, self._space, self._after = None, None, _Waiting()
        self._reads.clear()

    def _settle(self) -> None:
        """Add a barrier before the open pass, and the values of the sums owed, if there are any."""
        if self._owed.lines:
            self._settle_after([BARRIER])

    def _settle_after(self, lines: list[str]) -> None:
        """Add lines with a barrier, and the values of the sums owed."""
        self._lines += [*lines, *self._owed.lines]
        self._owed = _Waiting()
