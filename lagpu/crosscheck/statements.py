"""Track the running statement, and count the statements that agree.

A statement may be several calls of a backend: an accumulated product of matrices is computed first,
and then written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lagpu.core.expr import format_formula
from lagpu.crosscheck.report import Difference, Place, Plan, Report, Row
from lagpu.crosscheck.rules import Rule
from lagpu.host.source import author, line_of_author, named, source_of, target_of
from lagpu.observe.trace import names_in

__all__ = ["Tally", "formula_of"]


class Tally:
    """Counts the agreeing statements in a report, with a row for each statement of the source.

    Parameters
    ----------
    report : Report
        Gets the rows and the difference.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self._formula = ""
        self._row: Row | None = None  # of the running statement, once its first call agrees
        self._rows: dict[tuple[Place, str], Row] = {}

    def begin(self) -> None:
        """Reset the counts: copying the arguments counts as no statement."""
        self.report.statements = 0
        self.report.rows.clear()
        self._rows.clear()

    @contextmanager
    def statement(self, formula: str) -> Iterator[None]:
        """Count all calls inside ``with`` as one statement of this formula."""
        outer = self._formula, self._row
        self._formula, self._row = formula, None
        try:
            yield
        finally:
            self._formula, self._row = outer

    @property
    def number(self) -> int:
        """The number of the running statement, from 1."""
        return self.report.statements + (self._row is None)

    def where(self) -> str:
        """Return the running statement in words."""
        place = Place(*line_of_author())
        return f"statement {self.number} ({place}): {self._formula or place.text}"

    def agreed(self, method: str, rule: Rule, chosen: int, level: int) -> None:
        """Count a statement, or one more call of the running statement."""
        row = self._row or self._next(method, rule, level)
        if self._formula:
            self._row = row
        if row.rule == str(Rule()):  # keep the rule of the computation, not that of the write
            row.rule = str(rule)
        row.chosen += chosen

    def _next(self, method: str, rule: Rule, level: int) -> Row:
        place = Place(*line_of_author())
        row = self._rows.get((place, method))
        if row is None:
            row = self._rows[place, method] = Row(place, self._formula or method, str(rule))
            self.report.rows.append(row)
        row.runs += 1
        self.report.statements += 1
        self.report.iterations = max(self.report.iterations, level + 1)
        return row

    def differs(
        self,
        what: str,
        level: int,
        pair: tuple[str, str],
        count: int,
        rows: tuple[Any, ...],
        plans: tuple[Plan, ...] = (),
    ) -> Exception:
        """Return the error for a difference of the running statement; see `Difference`."""
        place = Place(*line_of_author())
        found = Difference(
            self.number, self._formula, place, level, *pair, what, count, rows, plans
        )
        return self.report.failed(found)


def formula_of(to: Any, call: Any) -> str:
    """Return a statement as mathematics, with the author's names."""
    frame = author()
    names = names_in(frame)
    seen = (*call.inputs, *(() if to.mask is None else (to.mask.vector,)), to.out)
    target = ""
    if frame is not None and id(to.out) not in names:
        target = target_of(frame.f_code, source_of(frame))
    names = named(names, to.out, target, {id(x): x for x in seen})
    return f"{format_formula(to.formula, names)} << {format_formula(call.formula, names)}"
