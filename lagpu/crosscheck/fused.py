"""Compare the fused run of an algorithm with its eager run on the same backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.crosscheck.compare import Unequal, compare, compare_choices
from lagpu.crosscheck.host import Entries
from lagpu.crosscheck.replica import Replica
from lagpu.crosscheck.report import Difference, Place, Report, Row
from lagpu.crosscheck.results import can_compare, entries_of, leaves
from lagpu.crosscheck.rules import TOLERANCE, Rule, Written, equal
from lagpu.errors import InvalidValue
from lagpu.operations import Descriptor

__all__ = ["Outcome", "compare_outcomes", "require_fusing"]

_INDICES_ONLY = "indices only, as any chose the values"


class Outcome(NamedTuple):
    """The objects after a run of an algorithm.

    Attributes
    ----------
    result : object
        The returned object.
    args, kwargs : sequence, dict
        The arguments, which the algorithm may have written.
    """

    result: Any
    args: Sequence[Any]
    kwargs: dict[str, Any]


def require_fusing(place: Backend) -> None:
    """Raise `InvalidValue` for a backend that fuses no loops."""
    if not place.capabilities.fuses:
        raise InvalidValue(
            f"crosscheck: {place.name} runs every loop eagerly, so there are no two runs to "
            "compare. Give two backends."
        )


def compare_outcomes(
    eager: Outcome,
    fused: Outcome,
    given: Outcome,
    free_reads: bool,
    place: Backend,
    report: Report,
) -> None:
    """Raise `CrosscheckFailed` for the first difference of two runs.

    Parameters
    ----------
    eager : Outcome
        Outcome of the eager run.
    fused : Outcome
        Outcome of the run with fused loops.
    given : Outcome
        The arguments before both runs; no result.
    free_reads : bool
        Whether the program read numbers that depend on choices of `any`.
    place : Backend
        The backend of both runs.
    report : Report
        Gets a row for each part of the result, and for each written argument.
    """
    ways = f"{place.name} eager", f"{place.name} fused"
    comparison = _Comparison(report, ways, free_reads)
    count = len(report.rows)
    comparison.results(eager.result, fused.result)
    for name in ("args", "kwargs"):
        comparison.arguments(name, *(getattr(x, name) for x in (eager, fused, given)))
    if len(report.rows) == count:
        report.notes.append("nothing of the result could be compared")
    ran = f"the last loop ran {place.last_loop}" if place.last_loop else ""
    report.notes.append(ran or "no loop ran as one program")


class _Comparison:
    """Two runs, compared part by part."""

    def __init__(self, report: Report, ways: tuple[str, str], free_reads: bool) -> None:
        self._report = report
        self._ways = ways
        self._free_reads = free_reads

    def results(self, eager: Any, fused: Any) -> None:
        """Compare the results; each part gets a row or a note."""
        for name, x, y in self._parts("result", eager, fused):
            if can_compare(x) and can_compare(y):
                self._add(name, self._how(name, x, y))
            else:
                self._report.notes.append(f"{name}: {type(x).__name__} was not compared")

    def arguments(self, name: str, eager: Any, fused: Any, given: Any) -> None:
        """Compare the arguments after both runs; each written one gets a row."""
        before = dict(leaves(given, name))
        for part, x, y in self._parts(name, eager, fused):
            if can_compare(x) and can_compare(y):
                how = self._how(part, x, y)
                if not _same(entries_of(x), entries_of(before.get(part))):
                    self._add(part, how)

    def _parts(self, name: str, eager: Any, fused: Any) -> list[tuple[str, Any, Any]]:
        """Return (name, part, part) of both runs; raise if their numbers of parts differ."""
        left, right = list(leaves(eager, name)), list(leaves(fused, name))
        if len(left) != len(right) and not self._free_reads:
            self._fail(name, f"{len(left)} parts", f"{len(right)} parts")
        return [(part, x, y) for (part, x), (_, y) in zip(left, right, strict=False)]

    def _add(self, name: str, how: str) -> None:
        if how:
            self._report.rows.append(Row(Place("", 0, name), name, f"eager and fused, {how}", 1))

    def _fail(self, name: str, x: Any, y: Any) -> NoReturn:
        self._differ(name, Unequal(1, ((None, str(x), str(y), ""),)))

    def _differ(self, name: str, found: Unequal) -> NoReturn:
        where = Place("", 0, name)
        raise self._report.failed(
            Difference(0, "", where, -1, *self._ways, name, found.count, found.rows)
        )

    def _how(self, name: str, x: Any, y: Any) -> str:
        """Return how two parts were compared, or an empty string; raise if they differ."""
        first, other = entries_of(x), entries_of(y)
        shapes = [getattr(part, "shape", ()) for part in (x, y)]
        if first is None or other is None:
            return self._how_whole(name, x, y)
        if shapes[0] != shapes[1]:
            return self._unless_free(name, *shapes)
        data = getattr(x, "data", None)
        free = data.free if isinstance(data, Replica) else self._free_reads
        rule = Rule(tolerance=TOLERANCE.get(first.dtype.name, 0.0))
        if (
            free
            and isinstance(data, Replica)
            and data.possible is not None
            and not self._free_reads
        ):
            rule = rule._replace(is_any=True)
            found = compare_choices(first, other, rule, data.possible)
        else:
            if free:
                first, other = (e._replace(values=np.zeros_like(e.values)) for e in (first, other))
            by = Written(None, Descriptor(), None, first) if rule.tolerance else None
            found = compare(first, other, rule, by)
        if isinstance(found, Unequal):
            self._differ(name, found)
        return _INDICES_ONLY if free and not rule.is_any else str(rule)

    def _how_whole(self, name: str, x: Any, y: Any) -> str:
        """Compare parts that have no entries, such as strings and None."""
        if type(x) is not type(y) or not np.array_equal(x, y):
            return self._unless_free(name, *map(_brief, (x, y)))
        return "" if x is None else str(Rule())

    def _unless_free(self, name: str, x: Any, y: Any) -> str:
        """Raise for parts that differ, or add a note if choices of `any` may be the reason."""
        if not self._free_reads:
            self._fail(name, x, y)
        self._report.notes.append(f"{name}: was not compared, it may depend on what any chose")
        return ""


def _same(x: Entries | None, y: Entries | None) -> bool:
    if x is None or y is None:
        return x is y
    return np.array_equal(x.indices, y.indices) and bool(equal(x.values, y.values).all())


def _brief(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 40 else f"{text[:37]}..."
