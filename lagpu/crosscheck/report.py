"""What a crosscheck found: how each statement was compared, or the first difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lagpu.errors import CrosscheckFailed

__all__ = ["SHOWN", "Difference", "Place", "Plan", "Report", "Row"]

#: Indices that a difference lists.
SHOWN = 10


@dataclass(frozen=True)
class Place:
    """Where a statement stands.

    Attributes
    ----------
    file, line : str, int
        Its file, and the line it begins in.
    text : str
        The statement as written, or empty if the source is not there.
    """

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        file = Path(self.file)
        here = Path.cwd()
        return f"{file.relative_to(here) if file.is_relative_to(here) else file}:{self.line}"


@dataclass(frozen=True)
class Plan:
    """What a backend chose for a product.

    Attributes
    ----------
    backend : str
        Its name.
    direction, kernel, reason : str
        The choice and why; direction and kernel are empty if the backend does not tell.
    """

    backend: str
    direction: str
    kernel: str
    reason: str

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.direction, self.kernel))) + (
            f": {self.reason}" if self.kernel else self.reason
        )


@dataclass(frozen=True)
class Difference:
    """The first difference.

    Attributes
    ----------
    number : int
        Of the statement, counted from 1 as they ran; 0 for what is compared after the last one.
    formula : str
        The statement as mathematics.
    place : Place
        Where it stands, as written.
    level : int
        Iteration of the innermost loop, from 0; -1 outside of one.
    oracle, other : str
        The two backends, or the two ways to run.
    what : str
        What was compared.
    count : int
        Number of indices that differ.
    rows : tuple of (index, value, value, remark)
        The first `SHOWN` of them; None is no entry. The index of a matrix is (row, column).
    plans : tuple of Plan
        What each backend chose, for a product.
    """

    number: int
    formula: str
    place: Place
    level: int
    oracle: str
    other: str
    what: str
    count: int
    rows: tuple[tuple[Any, Any, Any, str], ...]
    plans: tuple[Plan, ...] = ()

    @property
    def headline(self) -> str:
        """The difference in one sentence."""
        when = f"statement {self.number}" if self.number else "at the end"
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
        yield f"  differ    {self.count:,} {'index' if self.count == 1 else 'indices'}" + (
            f", the first {len(self.rows)}:" if self.count > len(self.rows) else ":"
        )
        cells = [("", self.oracle, self.other, "")]
        cells += [
            ("" if i is None else str(i), _shown(x), _shown(y), note) for i, x, y, note in self.rows
        ]
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
    """One statement of the text, with all the times it ran.

    Attributes
    ----------
    place : Place
        Where it stands.
    formula : str
        Its formula, as it ran first.
    rule : str
        How results were compared.
    runs : int
        How often it ran.
    chosen : int
        Values that `any` chose otherwise than the oracle, over all runs.
    """

    place: Place
    formula: str
    rule: str
    runs: int = 0
    chosen: int = 0

    def __str__(self) -> str:
        times = f"{self.runs:,} x {self.rule}"
        other = f", {self.chosen:,} values chosen otherwise" if self.chosen else ""
        where = f"{self.place}: " if self.place.file else ""
        return f"{where}{self.place.text or self.formula}: {times}{other}"


@dataclass
class Report:
    """What was compared, and how; printed, it is a short text.

    Attributes
    ----------
    algorithm : str
        Its name.
    backends : tuple of str
        The oracle first.
    statements : int
        Statements that ran and agree.
    iterations : int
        Largest number of iterations of a loop.
    rows : list of Row
        One a statement of the text.
    notes : list of str
        What else there is to know.
    difference : Difference or None
        The first one; the run stopped there.
    result : object
        What the algorithm returned, on the oracle.
    """

    algorithm: str
    backends: tuple[str, ...]
    statements: int = 0
    iterations: int = 0
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    difference: Difference | None = None
    result: Any = None

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
        head = f"{self.algorithm} on {where}: {self.statements:,} statements in "
        head += f"{self.iterations:,} iteration{'s' * (self.iterations != 1)} agree"
        tail = [] if self.difference is None else list(self.difference.lines())
        return "\n".join([head, *(f"  {x}" for x in (*self.rows, *self.notes)), *tail])
