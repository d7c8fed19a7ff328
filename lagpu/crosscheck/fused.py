"""Run a fused loop again, statement by statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.core import Matrix, Scalar, Vector
from lagpu.core.views import SelectionMatrix, TransposedMatrix, TransposedSelection
from lagpu.crosscheck import meaning
from lagpu.crosscheck.lockstep import Lockstep, Replica, replicas_in
from lagpu.crosscheck.meaning import EXACT, Entries, HostMatrix, Rule, Terms, Unequal, Written
from lagpu.crosscheck.report import Difference, Place, Report, Row
from lagpu.dtypes import DType, cast, lookup
from lagpu.errors import DomainMismatch
from lagpu.operations import Assign, Descriptor, Multiply, MultiplySelection, Operation, Statement

Array = np.ndarray[Any, Any]


class Before(NamedTuple):
    """The state before a statement runs; None is for possible values that are unknown."""

    desc: Descriptor
    mask: Entries | None
    new: Terms | None  # the possible values that the statement copies, if it copies any
    old: Terms | None  # the possible values of the output
    determined: bool  # whether all operands but `new` have the same values in every run


class SingleBackend(Lockstep):
    """A `Lockstep` of one backend, which sets `Replica.possible` to the values of other runs."""

    def __init__(self, place: Backend, report: Report) -> None:
        super().__init__([place], report)
        self._candidates: Terms | None = None  # of the last choice by `any`

    def _run(self, s: Statement) -> None:
        before = self._before(s)
        super()._run(s)
        s.out.possible = self._possible_after(s.out, before)

    def _made(
        self, method: str, given: Any, dtype: DType, shape: tuple[int, ...], rule: Rule = EXACT
    ) -> Replica:
        source = next(replicas_in(given), None)
        copied = None if source is None or source.shape != shape else self._possible(source)
        made = super()._made(method, given, dtype, shape, rule)
        nothing = Terms(np.zeros(0, np.int64), np.zeros(0))
        determined = source is None or copied is not None or not source.free
        before = Before(Descriptor(), None, copied, nothing, determined)
        made.possible = self._possible_after(made, before)
        return made

    def _edit(self, method: str, x: Replica, *args: Any) -> None:
        super()._edit(method, x, *args)
        x.possible = None

    def _compare(self, w: Replica, method: str, rule: Rule) -> None:
        self._candidates = None
        if rule.is_any:  # choices are checked although there is no other backend
            w.host = None
            entries = self._entries(w)
            found = self._pair(method, entries, entries, 0, rule)
            if found.terms is not None:
                w.free |= found.is_free
                self._candidates = Terms(entries.indices[found.terms.at], found.terms.values)
        super()._compare(w, method, rule)

    # --------------------------------------------------------------------- possible values
    def _before(self, s: Statement) -> Before:
        source, mask, desc, w = _copied(s), s.desc.mask, s.desc, s.out
        determined = mask is None or desc.structure or not mask.free
        if source is None:
            determined &= not any(x.free for x in _values_read(s.operation))
            determined &= desc.accum is None or not w.free
        kept = None if mask is None else self._entries(mask)
        new = None if source is None else self._possible(source)
        return Before(desc, kept, new, self._possible(w), determined)

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
    kept = meaning.holds(before.mask, before.desc, new.at) & np.isin(new.at, indices)
    at, values = new.at[kept], np.atleast_1d(cast(new.values, dtype))[kept]
    rest = indices[~np.isin(indices, at)]
    if not len(rest):
        return Terms(at, values)
    if before.old is None:
        return None
    stays = np.isin(before.old.at, rest)
    return Terms(np.append(at, before.old.at[stays]), np.append(values, before.old.values[stays]))


# ---- the fused run of an algorithm, compared with its eager run on the same backend

_INDICES_ONLY = "indices only, as any chose the values"
_NUMBERS = (bool, int, float, complex, np.generic)


class Outcome(NamedTuple):
    """The result of a run of an algorithm, and its arguments, which it may have written."""

    result: Any
    args: Sequence[Any]
    kwargs: dict[str, Any]


class Comparison(NamedTuple):
    """The comparison of two runs on a backend.

    `free_reads` says that the program read numbers that depend on choices of `any`.
    """

    report: Report
    place: Backend
    free_reads: bool

    def outcomes(self, eager: Outcome, fused: Outcome, given: Outcome) -> None:
        """Raise `CrosscheckFailed` for the first difference; `given` has the arguments before.

        The report gets a row for each part of the result, and for each written argument.
        """
        report, count = self.report, len(self.report.rows)
        for name in Outcome._fields:
            self.parts(name, *(getattr(x, name) for x in (eager, fused, given)))
        if len(report.rows) == count:
            report.notes.append("nothing of the result could be compared")
        last = self.place.last_loop
        report.notes.append(f"the last loop ran {last}" if last else "no loop ran as one program")

    def parts(self, name: str, eager: Any, fused: Any, given: Any) -> None:
        """Compare results or arguments; each part of a result, and written argument, gets a row."""
        left, right, before = (list(_leaves(x, name)) for x in (eager, fused, given))
        if len(left) != len(right):
            self._unless_free(name, f"{len(left)} parts", f"{len(right)} parts")
        for (part, x), (_, y) in zip(left, right, strict=False):
            if _can_compare(x) and _can_compare(y):
                how = self._how(part, x, y)
                unchanged = dict(before).get(part) if name != "result" else None
                if how and (name == "result" or not _same(*map(_entries_of, (x, unchanged)))):
                    row = Row(Place("", 0, part), part, f"eager and fused, {how}", 1)
                    self.report.rows.append(row)
            elif name == "result":
                self.report.notes.append(f"{part}: {type(x).__name__} was not compared")

    def _differ(self, name: str, found: Unequal) -> NoReturn:
        ways = f"{self.place.name} eager", f"{self.place.name} fused"
        where = 0, "", Place("", 0, name), -1
        raise self.report.failed(Difference(*where, *ways, name, found.count, found.rows))

    def _how(self, name: str, x: Any, y: Any) -> str:
        """Return how two parts were compared, or an empty string; raise if they differ."""
        first, other = _entries_of(x), _entries_of(y)
        if first is None or other is None:  # parts such as strings and None
            if type(x) is type(y) and np.array_equal(x, y):
                return "" if x is None else str(EXACT)
            return self._unless_free(name, _brief(x), _brief(y))
        shapes = [getattr(part, "shape", ()) for part in (x, y)]
        if shapes[0] != shapes[1]:
            return self._unless_free(name, *shapes)
        data = getattr(x, "data", None)
        free = data.free if isinstance(data, Replica) else self.free_reads
        may = data.possible if isinstance(data, Replica) and not self.free_reads else None
        rule = Rule(tolerance=meaning.TOLERANCE.get(first.dtype.name, 0.0))
        chosen = free and may is not None
        if chosen:
            rule = rule._replace(is_any=True)
        elif free:
            first, other = (e._replace(values=np.zeros_like(e.values)) for e in (first, other))
        if rule.tolerance:
            rule = rule._replace(by=Written(None, Descriptor(), None, first))
        found = meaning.compare(first, other, rule, may if chosen else None)
        if isinstance(found, Unequal):
            self._differ(name, found)
        return _INDICES_ONLY if free and not chosen else str(rule)

    def _unless_free(self, name: str, x: Any, y: Any) -> str:
        """Raise for parts that differ, or add a note if choices of `any` may be the reason."""
        if not self.free_reads:
            self._differ(name, Unequal(1, ((None, str(x), str(y), ""),)))
        self.report.notes.append(f"{name}: was not compared, it may depend on what any chose")
        return ""


def _same(x: Entries | None, y: Entries | None) -> bool:
    if x is None or y is None:
        return x is y
    return np.array_equal(x.indices, y.indices) and bool(meaning.equal(x.values, y.values).all())


def _brief(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _leaves(x: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield (name, part) of a result; lists, tuples and dicts are taken apart."""
    if isinstance(x, (list, tuple)):
        for k, one in enumerate(x):
            yield from _leaves(one, f"{name}[{k}]")
    elif isinstance(x, dict):
        for key, one in x.items():
            yield from _leaves(one, f"{name}[{key!r}]")
    elif isinstance(x, (SelectionMatrix, TransposedSelection)):
        yield name, x.stored.operand
    elif isinstance(x, TransposedMatrix):
        yield name, x.stored
    else:
        yield name, x


def _can_compare(x: Any) -> bool:
    """Return True if parts like `x` can be compared, unlike generators and an author's objects."""
    if isinstance(x, np.ndarray):
        return not x.dtype.hasobject
    return x is None or isinstance(x, (Vector, Matrix, Scalar, *_NUMBERS, str, bytes))


def _entries_of(x: Any) -> Entries | None:
    """Return a part as entries; None if it has no values of lagpu's types."""
    if isinstance(x, Vector):
        return Entries(*x.to_coo(), x.dtype, x.size)
    if isinstance(x, Matrix):
        return HostMatrix(x.to_csc(), x.dtype, x.shape).entries()
    if isinstance(x, Scalar):
        return meaning.scalar_entries(x.value, x.dtype)
    if not isinstance(x, (np.ndarray, *_NUMBERS)):
        return None
    array = np.asarray(x)
    try:
        dtype = lookup(array.dtype)
    except DomainMismatch:
        return None
    if array.ndim == 0:
        return meaning.scalar_entries(x, dtype)
    nrows = array.shape[0] if array.ndim == 2 else 0
    values = array.ravel(order="F")  # in the order of the indices of a matrix
    return Entries(np.arange(len(values)), values, dtype, len(values), nrows)
