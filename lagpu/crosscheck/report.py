"""The report of a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lagpu.errors import CrosscheckFailed

_LAGPU = Path(__file__).parents[1]  # its files have the same names on every machine


@dataclass(frozen=True)
class Place:
    """The place of a statement in the source."""

    file: str
    line: int  # the statement's first
    text: str  # empty if the source cannot be read

    def __str__(self) -> str:
        file = Path(self.file)
        if file.parent.name.startswith("ipykernel_"):  # of a notebook
            return f"cell:{self.line}"
        for folder, inside in ((_LAGPU.parent, _LAGPU), (Path.cwd(), Path.cwd())):
            if file.is_relative_to(inside):
                return f"{file.relative_to(folder)}:{self.line}"
        return f"{file}:{self.line}"


@dataclass(frozen=True)
class Plan:
    """The choice of a backend for a product; direction and kernel are empty if not reported."""

    backend: str
    direction: str
    kernel: str
    reason: str

    def __str__(self) -> str:
        how = ", ".join(filter(None, (self.direction, self.kernel)))
        return f"{how}: {self.reason}" if self.kernel else how + self.reason


@dataclass(frozen=True)
class Difference:
    """The first difference."""

    #: Of the statement, from 1, in the order in which statements ran; 0 for the comparison of a
    #: loop that also ran as one program, where the statement is the last to write the result.
    number: int
    formula: str  #: The statement as mathematics.
    place: Place  #: The place of the statement in the source.
    level: int  #: Iteration of the innermost loop, from 0; -1 outside of a loop.
    oracle: str  #: The backend, or the way to run, whose result counts as right.
    other: str  #: The backend, or the way to run, that differs from it.
    what: str  #: The operation or the part of the result that was compared.
    count: int  #: Number of indices that differ.
    #: (index, value, value, remark) of the first `SHOWN` differences; None is no entry. The index
    #: of a matrix is (row, column).
    rows: tuple[tuple[Any, Any, Any, str], ...]
    plans: tuple[Plan, ...] = ()  #: The choice of each backend, for a product.

    @property
    def headline(self) -> str:
        """The difference in one sentence."""
        when = f"statement {self.number}" if self.number else "at the end of the loop"
        turn = f", iteration {self.level}" if self.level >= 0 else ""
        where = f" ({self.place}{turn})" if self.place.file else ""
        index, x, y, remark = self.rows[0]
        at = "" if index is None else f"at {index} "
        values = f"{at}{self.oracle} has {_shown(x)}, {self.other} {_shown(y)}"
        many = f" (first of {self.count})" if self.count > 1 else ""
        note = f"; {remark}" if remark else ""
        return f"{when}{where}: {self.what}: {values}{note}{many}."

    def lines(self) -> Iterator[str]:
        """Yield the whole difference as text."""
        yield self.headline
        if self.place.file and self.place.text:
            yield f"  written   {self.place.text}"
        if self.formula:
            yield f"  formula   {self.formula}"
        first = f", the first {len(self.rows)}" if self.count > len(self.rows) else ""
        yield f"  differ    {self.count:,} {'index' if self.count == 1 else 'indices'}{first}:"
        cells = [("", self.oracle, self.other, "")]
        for i, x, y, note in self.rows:
            cells.append(("" if i is None else str(i), _shown(x), _shown(y), note))
        widths = [max(len(row[k]) for row in cells) for k in range(3)]
        for row in cells:
            aligned = "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=False))
            yield f"    {aligned}  {row[3]}".rstrip()
        for plan in self.plans:
            yield f"  {plan.backend:<9} {plan}"


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


@dataclass
class Row:
    """One statement of the source, with all its runs."""

    place: Place
    formula: str  # of the first run
    rule: str  # how results were compared
    runs: int = 0
    chosen: int = 0  # values for which `any` chose differently from the oracle, over all runs

    def __str__(self) -> str:
        times = f"{self.runs:,} x {self.rule}"
        other = f", {self.chosen:,} values chosen differently" if self.chosen else ""
        where = f"{self.place}: " if self.place.file else ""
        return f"{where}{self.place.text or self.formula}: {times}{other}"


@dataclass
class Report:
    """The comparisons of a crosscheck; printed as a short text."""

    algorithm: str  #: Its name.
    backends: tuple[str, ...]  #: Their names, the oracle first.
    statements: int = 0  #: Statements that ran and agree.
    iterations: int = 0  #: Largest number of iterations of a loop.
    rows: list[Row] = field(default_factory=list)  #: One for each statement of the source.
    #: One for each loop of the source and each backend on which it also ran as one program.
    loops: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  #: Remarks.
    difference: Difference | None = None  #: The first one, at which the run stopped.
    result: Any = None  #: The result of the algorithm on the oracle.

    @property
    def ok(self) -> bool:
        """Whether everything agrees."""
        return self.difference is None

    def failed(self, difference: Difference) -> CrosscheckFailed:
        """Return the error that carries this report with its difference."""
        self.difference = difference
        lines = "\n".join(difference.lines())
        error = CrosscheckFailed(f"crosscheck of {self.algorithm}: {lines}")
        error.report = self
        return error

    def __repr__(self) -> str:
        where = " and ".join(self.backends)
        turns = f"{self.iterations:,} iteration{'s' * (self.iterations != 1)}"
        most = f", loops of at most {turns}" if self.iterations else ""
        head = f"{self.algorithm} on {where}: {self.statements:,} statements agree{most}"
        tail = [] if self.difference is None else list(self.difference.lines())
        return "\n".join([head, *(f"  {x}" for x in (*self.rows, *self.loops, *self.notes)), *tail])
