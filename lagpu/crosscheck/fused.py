"""Run a loop statement by statement, then as one program where a backend can, and compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lagpu import operations as ops
from lagpu.backends.protocol import Backend, Capabilities
from lagpu.core.recorder import run_statement
from lagpu.crosscheck import meaning
from lagpu.crosscheck.lockstep import (
    Lockstep,
    Replica,
    formula_of,
    keeps_old,
    part,
    replaced,
    replicas_in,
)
from lagpu.crosscheck.meaning import TOLERANCE, Entries, Rule, Terms, Unequal
from lagpu.crosscheck.report import Difference, Place, Report, Row
from lagpu.dtypes import BOOL, DType, cast
from lagpu.host.source import line_of_author
from lagpu.operations import Assign, Descriptor, Multiply, MultiplySelection, Operation, Statement

Array = np.ndarray[Any, Any]
_INDICES_ONLY = "indices only, as any chose the values"
_NOT_COMPARED = "not compared, as its indices depend on what any chose"


class Before(NamedTuple):
    """The state before a statement runs; None is for possible values that are unknown."""

    desc: Descriptor
    mask: Entries | None
    new: Terms | None  # the possible values that the statement copies, if it copies any
    old: Terms | None  # the possible values of the output
    determined: bool  # whether all operands but `new` have the same values in every run


class Crosscheck(Lockstep):
    """A `Lockstep` whose loops also run as one program, on each backend that can.

    A loop runs statement by statement on copies, and then on the objects themselves as each backend
    would run it. Meanwhile `Replica.possible` has the values that another run may choose, and
    `Replica.scale` the magnitudes that rounding errors are relative to.
    """

    why_eager = ""  # loops are recorded

    def __init__(self, places: Sequence[Backend], report: Report) -> None:
        super().__init__(places, report)
        can = [place.capabilities for place in places]
        fuses, searches = (any(getattr(c, x) for c in can) for x in ("fuses", "searches"))
        self.capabilities = Capabilities(fuses=fuses, searches=searches)
        self.follows = False  # whether a loop runs whose results are compared once more
        self.scales: dict[int, float] = {}  # of scalars in that loop, by ``id``
        self._recorded: list[tuple[str, Place]] = []
        self._candidates: Terms | None = None  # of the last choice by `any`

    def begin(self, name: str) -> None:
        """Begin another report, of a test in a suite that is crosschecked."""
        self.report = Report(name, tuple(place.name for place in self.places))
        self._rows = {}

    # ------------------------------------------------------------------------------- loops
    def recorded(self, to: Any, call: Any) -> None:
        """Note the formula and the place of a statement of a loop's body; see `Observer`."""
        formula, place = formula_of(to, call), Place(*line_of_author())
        if Statement(to.out, Descriptor(), call.operation, call.dtype).assigns_counter:
            formula = place.text  # else it would say 0 in each iteration
        self._recorded.append((formula, place))

    def replay(self, k: int, work: Callable[[], None]) -> None:
        """Run a recorded statement; see `Observer`."""
        outer = self._formula, self._at, self._row
        self._formula, self._at, self._row = *self.recorded_at(k), None
        try:
            work()
        finally:
            self._formula, self._at, self._row = outer

    def recorded_at(self, k: int) -> tuple[str, Place | None]:
        """Return the formula and the place of a recorded statement, if it is the author's."""
        return self._recorded[k] if k < len(self._recorded) else ("", None)

    def forget(self) -> None:
        """See `Observer`."""
        self._recorded.clear()

    def agreed_fused(self, label: str, name: str, rule: str) -> None:
        """Count a loop that gave the same as one program."""
        place, how = Place(*line_of_author()), f"as one program on {label}, {name}: {rule}"
        row = self._rows.get((place, how))
        if row is None:
            row = self._rows[place, how] = Row(place, place.text, how)
            self.report.loops.append(row)
        row.runs += 1

    def plan_loop(self, body: Sequence[Statement], turns: Any) -> Any:
        """Return the loop in both ways, or the first refusal if each backend refuses it."""
        loops = [_planned(self, k, body, turns) for k in range(len(self.places))]
        fused = {k: x for k, x in enumerate(loops) if not isinstance(x, ops.Rejection)}
        if not fused:
            return next((x for x in loops if x.why), ops.Rejection("it is crosschecked"))
        return LoopTwice(self, list(body), turns, fused)

    def levels(self, x: Replica) -> ops.Levels | None:
        """Return the levels on each backend; None if none has more than the host."""
        parts = self._each("levels", x)
        return LevelsOfAll(self, x, parts) if any(y is not None for y in parts) else None

    # ------------------------------------------- what another run of the same loop may give
    def evaluate(self, operation: Any) -> Any:
        """See `Backend`."""
        self.free_reads |= isinstance(operation, ops.Reduce) and operation.monoid.name == "any"
        return super().evaluate(operation)

    def nvals(self, x: Replica) -> int:
        """See `Backend`."""
        self.free_reads |= x.loose
        return super().nvals(x)

    def _run(self, s: Statement) -> None:
        if not self.follows:
            super()._run(s)
            return
        before, w, loose = self._before(s), s.out, _is_loose(s)
        super()._run(s)
        w.loose, w.free = loose, w.free or loose
        w.possible = self._possible_after(w, before)
        if w.dtype.is_float and not isinstance(s.operation, (Multiply, MultiplySelection)):
            for x in replicas_in(s.operation):
                if x.scale is not None and x.shape == w.shape:  # a difference of large numbers
                    w.scale = np.maximum(w.scale, x.scale)

    def _compare(self, w: Replica, method: str, rule: Rule) -> None:
        self._candidates = None
        if rule.is_any and (self.follows or len(self.places) == 1):  # one backend's choices, too
            w.host = None
            entries = self._entries(w)
            found = self._pair(method, entries, entries, 0, rule)
            if found.terms is not None:
                w.free |= found.is_free
                self._candidates = Terms(entries.indices[found.terms.at], found.terms.values)
        super()._compare(w, method, rule)
        if self.follows and w.dtype.is_float:
            entries = self._entries(w)
            w.scale = np.zeros(entries.size) if w.scale is None else w.scale.copy()
            seen = np.abs(entries.values.astype(float))
            if rule.is_sum:
                seen = np.fmax(seen, meaning.magnitude(rule, entries.indices))
            w.scale[entries.indices] = np.fmax(w.scale[entries.indices], seen)

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


def _planned(of: Lockstep, k: int, body: Sequence[Statement], turns: Any) -> Any:
    """Return how backend `k` would run a loop, or why not as one program."""
    place = of.places[k]
    if isinstance(turns, ops.Sweep):
        levels: Any = turns.levels
        if not isinstance(levels, LevelsOfAll) or levels.parts[k] is None:
            return ops.Rejection("")
        turns = ops.Sweep(turns.here.parts[k], turns.above.parts[k], levels.parts[k])
    elif not place.capabilities.records:
        return ops.Rejection("")
    with place.lock:
        return place.plan_loop([part(s, k) for s in body], part(turns, k))


class LevelsOfAll:
    """See `lagpu.operations.Levels`; `parts` has those of each backend, or None."""

    def __init__(self, of: Crosscheck, x: Replica, parts: list[Any]) -> None:
        self.parts = parts
        self._of, self._shape = of, x.shape
        self._found = of._entries(x)
        values = self._found.values
        ends = (int(values.min()), int(values.max())) if len(values) else (0, -1)
        low, deep = zip(*(ends if y is None else (y.lowest, y.deepest) for y in parts), strict=True)
        self.lowest, self.deepest = of._same("lowest level", low), of._same("deepest level", deep)

    def cut(self, d: int) -> Replica:
        """See `lagpu.operations.Levels`."""
        where, true = self._found.indices[self._found.values == d], np.True_
        if len(self._shape) == 1:
            return self._of.vector_from_coo(where, true, BOOL, self._shape[0])
        rows, cols = where % self._shape[0], where // self._shape[0]
        return self._of.matrix_from_coo(rows, cols, true, BOOL, self._shape, None)


class LoopTwice:
    """A loop that runs statement by statement on all backends, and then as one program on some.

    Both begin with the same objects. The program goes on with those that the fused loops have
    written, with the oracle's values where rounding or a choice by `any` may differ.
    """

    def __init__(
        self, of: Crosscheck, body: Sequence[Statement], turns: Any, fused: dict[int, Any]
    ) -> None:
        self._of, self._body, self._turns, self._places = of, list(body), turns, list(fused)
        loop = next(iter(fused.values()))
        self.name, self.why, self.nbytes = loop.name, loop.why, loop.nbytes

    def run(self) -> None:
        """See `FusedLoop`."""
        of, places = self._of, self._of.places
        outs = [*{id(s.out): s.out for s in self._body}.values()]
        written = [x for x in outs if isinstance(x, Replica)]
        scalars = [x for x in outs if not isinstance(x, Replica)]
        for x in replicas_in((*self._body, *self._turns)):  # both runs begin with their values
            x.free, x.loose, x.possible, x.scale = False, False, None, None
        of.scales.clear()
        before, own = [s.get() for s in scalars], [list(x.parts) for x in written]
        for x in written:
            for k in self._places:
                x.parts[k] = places[k].dup(x.parts[k], x.dtype)
        outer = of.level, of.follows
        of.follows, of.free_reads = True, False
        try:
            self._eagerly()
        finally:
            of.level, of.follows = outer
        copies, after = {id(x): list(x.parts) for x in written}, [s.get() for s in scalars]
        eager = [self._entries(x) for x in outs]
        for k in self._places:
            for x, parts in zip(written, own, strict=True):
                x.parts[k] = parts[k]
            _set(scalars, before)
            try:
                name = self._fused(k)
                fused = [self._entries(x, k) for x in outs]
            finally:
                _set(scalars, after)
            rules: dict[str, None] = {}
            for x, first, other in zip(outs, eager, fused, strict=True):
                how = self._agree(x, first, other, name, of.labels[k]) if name else _NOT_COMPARED
                rules[how] = None
                if isinstance(x, Replica):
                    x.host = None
                    if how == _NOT_COMPARED:
                        x.parts[k] = copies[id(x)][k]
                    elif not meaning.equal(first.values, other.values).all():
                        places[k].set_values(x.parts[k], first.values)
            if name:
                of.agreed_fused(of.labels[k], name, ", ".join(rules))

    def _entries(self, x: Any, k: int = 0) -> Entries:
        if not isinstance(x, Replica):
            return meaning.scalar_entries(x.get(), x.dtype)
        x.host = None
        return self._of._entries(x, k)

    # ------------------------------------------------------------------- statement by statement
    def _eagerly(self) -> None:
        of, turns = self._of, self._turns
        if isinstance(turns, ops.Sweep):
            here, above = turns.here, turns.above
            for done, d in enumerate(range(turns.levels.deepest, 0, -1)):
                if done:
                    here, above = above, turns.levels.cut(d - 1)
                masks = {id(turns.here): here, id(turns.above): above}
                self._iterate(done, [replaced(s, partial(_swapped, masks)) for s in self._body])
            return
        empty, unchanged, times, _, holds = turns
        done = 0
        while done != times and (empty is None or of.nvals(empty)):
            old = None if unchanged is None else of.dup(unchanged, unchanged.dtype)
            self._iterate(done, self._body)
            done += 1
            if old is not None and of.isequal(old, unchanged):
                break
            if holds is not None and holds.get():
                break

    def _iterate(self, done: int, statements: Sequence[Statement]) -> None:
        of: Any = self._of
        of.level = done
        for k, s in enumerate(statements):
            of.replay(k, partial(run_statement, of, s, done))
            if s.writes_scalar:
                summed = [x.scale.sum() for x in replicas_in(s.operation) if x.scale is not None]
                summed += [of.scales.get(id(x), 0.0) for x in s.scalars_read]
                seen = (of.scales.get(id(s.out), 0.0), abs(float(s.out.get() or 0)), *summed)
                of.scales[id(s.out)] = max(seen)

    # --------------------------------------------------------------------------- as one program
    def _fused(self, k: int) -> str:
        """Run the loop on backend `k` as one program; return the program's name."""
        of, place = self._of, self._of.places[k]
        try:
            with place.lock:
                loop = _planned(of, k, self._body, self._turns)
                if isinstance(loop, ops.Rejection):  # for what the eager run has changed
                    return ""
                loop.run()
        except Exception as error:
            where = Place(*line_of_author())
            error.add_note(f"crosscheck: on {of.labels[k]}, as one program, {where}")
            raise
        return str(loop.name)

    def _agree(self, x: Any, first: Entries, other: Entries, name: str, label: str) -> str:
        """Return how a result was compared; raise `CrosscheckFailed` if it differs."""
        of = self._of
        rule, may = Rule(tolerance=TOLERANCE.get(first.dtype.name, 0.0)), None
        if of.free_reads or (isinstance(x, Replica) and x.loose):
            return _NOT_COMPARED
        if isinstance(x, Replica) and x.free:
            may = x.possible
            rule = rule._replace(is_any=True)
            if may is None:
                first, other = (e._replace(values=np.zeros_like(e.values)) for e in (first, other))
        elif rule.tolerance:
            scale = x.scale[first.indices] if isinstance(x, Replica) else of.scales[id(x)]
            rule = rule._replace(scale=scale)
        found = meaning.compare(first, other, rule, may)
        if isinstance(found, Unequal):
            last = max(k for k, s in enumerate(self._body) if s.out is x)
            formula, at = of.recorded_at(last)
            where = 0, formula, at or Place(*line_of_author()), -1
            ways = f"{label} eager", f"{label} fused"
            raise of.report.failed(Difference(*where, *ways, name, found.count, found.rows))
        return _INDICES_ONLY if rule.is_any and may is None else str(rule)


def _set(scalars: Sequence[Any], values: Sequence[Any]) -> None:
    for s, value in zip(scalars, values, strict=True):
        s.set(value)


def _swapped(masks: dict[int, Replica], x: Replica) -> Replica:
    return masks.get(id(x), x)


def _copied(s: Statement) -> Replica | None:
    """Return the object whose values a statement copies to the same indices, or None."""
    operation = s.operation
    if not isinstance(operation, Assign) or operation.indices is not None:
        return None
    if s.desc.accum is not None or operation.transposed:
        return None
    source: Replica = operation.operand
    return source


def _is_loose(s: Statement) -> bool:
    """Return True if indices of the output may depend on choices of `any`."""
    operation, desc, mask = s.operation, s.desc, s.desc.mask
    if any(x.loose for x in replicas_in(operation)):
        return True
    if mask is not None and (mask.loose or (mask.free and not desc.structure)):
        return True
    if isinstance(operation, ops.Select) and operation.operand.free:
        return True
    if isinstance(operation, MultiplySelection) and operation.indices.free:
        return True
    return bool(s.out.loose) and keeps_old(s)


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
