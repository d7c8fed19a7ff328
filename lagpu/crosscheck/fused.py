"""Run a fused loop again, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.crosscheck.candidates import TOLERANCE, Entries, Rule, Terms, Written, equal, holds
from lagpu.crosscheck.lockstep import Lockstep, Replica, replicas_in
from lagpu.crosscheck.report import (
    Difference,
    Place,
    Report,
    Row,
    Unequal,
    can_compare,
    compare,
    compare_choices,
    entries_of,
    leaves,
)
from lagpu.dtypes import DType, cast
from lagpu.errors import InvalidValue
from lagpu.operations import Assign, Descriptor, Multiply, MultiplySelection, Operation, Statement

Array = np.ndarray[Any, Any]


class Before(NamedTuple):
    """The state before a statement runs.

    Attributes
    ----------
    desc, mask
        How the statement writes.
    new : Terms or None
        The possible values that the statement copies; None if it copies none, or they are unknown.
    old : Terms or None
        The possible values of the output before the statement; None if they are unknown.
    determined : bool
        Whether all operands but `new` have the same values in every run.
    """

    desc: Descriptor
    mask: Entries | None
    new: Terms | None
    old: Terms | None
    determined: bool


class SingleBackend(Lockstep):
    """A `Lockstep` of one backend, which sets `Replica.possible` to the values of other runs.

    Parameters
    ----------
    place : Backend
        The backend.
    report : Report
        As in `Lockstep`.
    """

    def __init__(self, place: Backend, report: Report) -> None:
        super().__init__([place], report)
        self._candidates: Terms | None = None  # of the last choice by `any`

    def _run(self, s: Statement) -> None:
        before = self._before(s)
        super()._run(s)
        s.out.possible = self._possible_after(s.out, before)

    def _made(
        self,
        method: str,
        parts: list[Any],
        dtype: DType,
        shape: tuple[int, ...],
        rule: Rule | None = None,
        by: Written | None = None,
        of: Replica | None = None,
    ) -> Replica:
        copied = self._possible(of) if of is not None and of.shape == shape else None
        made = super()._made(method, parts, dtype, shape, rule, by, of)
        nothing = Terms(np.zeros(0, np.int64), np.zeros(0))
        determined = of is None or copied is not None or not of.free
        before = Before(Descriptor(), None, copied, nothing, determined)
        made.possible = self._possible_after(made, before)
        return made

    def _edit(self, v: Replica, method: str, run: Callable[[Backend, int], None]) -> None:
        super()._edit(v, method, run)
        v.possible = None

    def _compare(self, w: Replica, method: str, rule: Rule, by: Written | None) -> None:
        self._candidates = None
        if rule.is_any:  # choices are checked although there is no other backend
            w.host = None
            entries = self._entries(w)
            found = self._pair(method, entries, entries, 0, rule, by)
            if found is not None and found.terms is not None:
                w.free |= found.is_free
                self._candidates = Terms(entries.indices[found.terms.at], found.terms.values)
        super()._compare(w, method, rule, by)

    # --------------------------------------------------------------------- possible values
    def _before(self, s: Statement) -> Before:
        source, mask, desc, w = _copied(s), s.desc.mask, s.desc, s.out
        determined = mask is None or desc.structure or not mask.free
        if source is None:
            determined &= not any(x.free for x in _values_read(s.operation))
            determined &= desc.accum is None or not w.free
        return Before(
            desc,
            None if mask is None else self._entries(mask),
            None if source is None else self._possible(source),
            self._possible(w),
            determined,
        )

    def _possible(self, x: Replica) -> Terms | None:
        """Return the possible values of `x`, ``at`` its indices; None if they are unknown."""
        if x.free:
            return x.possible
        entries = self._entries(x)
        return Terms(entries.indices, entries.values)

    def _possible_after(self, w: Replica, before: Before) -> Terms | None:
        """Return the possible values of an output after the statement; None if unknown."""
        new = before.new if self._candidates is None else self._candidates
        if new is None or not (w.free and before.determined):
            return None
        return _after(new, before, self._entries(w).indices, w.dtype)


def _copied(s: Statement) -> Replica | None:
    """Return the object whose values a statement copies to the same indices, or None."""
    operation = s.operation
    if not isinstance(operation, Assign) or operation.indices is not None:
        return None
    if s.desc.accum is not None or operation.transposed:
        return None
    source: Replica = operation.operand
    return source


def _values_read(operation: Operation) -> Iterator[Replica]:
    """Yield the operands whose values, not only their patterns, decide the candidates of `any`."""
    if isinstance(operation, MultiplySelection):
        yield operation.indices  # row numbers
    if not isinstance(operation, (Multiply, MultiplySelection)):
        yield from replicas_in(operation)
        return
    other = operation.matrix if isinstance(operation, Multiply) else operation.indices
    left, right = other, operation.operand
    if operation.product.flip:
        left, right = right, left
    op = operation.product.semiring.multiply
    if op.positional or op.name == "pair":
        return
    if op.name != "second":
        yield left
    if op.name != "first":
        yield right


def _after(new: Terms, before: Before, indices: Array, dtype: DType) -> Terms | None:
    """Return the possible values at the indices of an output: new ones, or else old ones."""
    kept = holds(before.mask, before.desc, new.at) & np.isin(new.at, indices)
    at, values = new.at[kept], np.atleast_1d(cast(new.values, dtype))[kept]
    rest = indices[~np.isin(indices, at)]
    if not len(rest):
        return Terms(at, values)
    if before.old is None:
        return None
    stays = np.isin(before.old.at, rest)
    return Terms(np.append(at, before.old.at[stays]), np.append(values, before.old.values[stays]))


# ------------------------------------------------------------------------------------------
# Compare the fused run of an algorithm with its eager run on the same backend.


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
