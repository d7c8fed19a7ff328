"""Run statements on several backends in lockstep; loops also as one program, where one can."""

from __future__ import annotations

import functools
import inspect
import threading
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from lagpu import operations as ops
from lagpu.backends.protocol import Backend, Capabilities, of_all
from lagpu.core.expr import format_formula
from lagpu.core.recorder import Observer, run_statement
from lagpu.crosscheck import meaning
from lagpu.crosscheck.meaning import EXACT, TOLERANCE, Agreement, Entries, HostMatrix, Rule, Terms
from lagpu.crosscheck.report import Difference, Place, Plan, Report, Row
from lagpu.dtypes import BOOL, Array, DType, cast
from lagpu.errors import NotSupported
from lagpu.host.source import author, line_of_author, named, source_of, target_of
from lagpu.observe.trace import names_in


@dataclass(eq=False, slots=True)
class Replica:
    """The handle of a vector or matrix on several backends: their handles, the oracle's first."""

    parts: list[Any]
    dtype: DType
    shape: tuple[int, ...]
    free: bool = False  # whether values may depend on choices of `any`
    loose: bool = False  # whether indices may, too
    possible: Terms | None = None  # the possible values, if `free` and known
    scale: Any = None  # in a loop, the largest magnitudes that each value was computed from
    host: HostMatrix | None = None  # the oracle's matrix, until it is written

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def kind(self) -> str:
        return "vector" if self.ndim == 1 else "matrix"


def part(x: Any, k: int) -> Any:
    """Return a record with the handles of backend `k`."""
    return ops.replaced(x, lambda replica: replica.parts[k], Replica)


def replicas_in(x: Any) -> Iterator[Replica]:
    """Yield the replicas in a record."""
    return ops.parts_in(x, Replica)


def formula_of(to: Any, call: Any) -> str:
    """Return a statement as mathematics, with the author's names."""
    frame = author()
    target = target_of(frame, "" if frame is None else source_of(frame))
    seen = (*call.inputs, *(() if to.mask is None else (to.mask.vector,)), to.out)
    names = named(names_in(frame), to.out, target, {id(x): x for x in seen})
    return " << ".join(format_formula(x.formula, names) for x in (to, call))


# Names of methods in messages.
_SHOWN = {"matrix_from_diagonal": "matrix_from_diag", "diagonal": "matrix_diag"}
_ASSIGNING = (ops.Assign, ops.AssignScalar)


def _passed(way: str, name: str) -> Callable[..., Any]:
    """Return the method of `Backend` that reads or edits an object on every backend."""

    @functools.wraps(getattr(Backend, name))
    def call(self: Crosscheck, x: Replica, *args: Any) -> Any:
        return getattr(self, way)(name, x, *args)

    return call


def _making(name: str, of: Callable[..., tuple[DType, tuple[int, ...]]]) -> Callable[..., Replica]:
    """Return the method of `Backend` that makes an object of a type and a shape, and compares."""
    method = getattr(Backend, name)
    signature = inspect.signature(method)

    @functools.wraps(method)
    def make(self: Crosscheck, *args: Any, **more: Any) -> Replica:
        given = signature.bind(self, *args, **more).args[1:]
        return self._made(name, given, *of(*given))

    return make


def _diagonal(A: Replica, k: int, rows: Any = None) -> tuple[DType, tuple[int]]:
    m, n = A.shape
    return A.dtype, (min(m, n - k) if k >= 0 else min(m + k, n),)


class Crosscheck(Observer):
    """Several backends as one, the oracle first; see `Backend` for the methods.

    An algorithm runs once, statement by statement, and stops at the first difference. The oracle's
    values decide how the program goes on, and where other backends may differ they get its values,
    so that each statement has the same operands everywhere.

    A loop runs statement by statement on copies, and then on the objects themselves as one program,
    on each backend that can. Meanwhile `Replica.possible` has the values that another run may
    choose, and `Replica.scale` the magnitudes that rounding errors are relative to.
    """

    device = None
    last_loop = ""
    last_product = None
    #: How to move an object to this backend, for errors: it has no name that `to` accepts.
    entered = (
        "Give {0} to the algorithm as an argument, which crosscheck copies to each backend, "
        "or make it inside with like=."
    )

    def __init__(self, places: Sequence[Backend], report: Report) -> None:
        self.name = "+".join(place.name for place in places)
        self.places = tuple(places)
        names = [place.name for place in places]
        again = [names[: k + 1].count(name) for k, name in enumerate(names)]
        self.labels = [f"{x} ({n})" if n > 1 else x for x, n in zip(names, again, strict=True)]
        self.lock = threading.RLock()
        self.report = report
        self.counts = False  # set once the arguments are copied: copies are not statements
        self.free_reads = False  # whether the program has read values chosen by `any`
        self._formula = ""  # of the running statement
        self._at: Place | None = None  # its place in the source, if it was recorded
        self._row: Row | None = None  # of the running statement, once its first call agrees
        self._rows: dict[tuple[Place, str], Row] = {}
        can = [place.capabilities for place in places]
        fuses, searches = (any(getattr(c, x) for c in can) for x in ("fuses", "searches"))
        self.capabilities = Capabilities(fuses=fuses, searches=searches)
        self.follows = False  # whether a loop runs whose results are compared once more
        self.scales: dict[int, float] = {}  # of scalars in that loop, by ``id``
        self._candidates: Terms | None = None  # of the last choice by `any`

    def begin(self, name: str) -> None:
        """Begin another report, of a test in a suite that is crosschecked."""
        self.report = Report(name, tuple(place.name for place in self.places))
        self._rows = {}

    # ---- the report
    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """Run a checked statement, and store its formula for a difference; see `Observer`."""
        self._run_as(formula_of(to, call), self._at, work)

    def _run_as(self, formula: str, at: Place | None, work: Callable[[], None]) -> None:
        outer = self._formula, self._at, self._row
        self._formula, self._at, self._row = formula, at, None
        try:
            work()
        finally:
            self._formula, self._at, self._row = outer

    def _place(self) -> Place:
        return self._at or Place(*line_of_author())

    @property
    def _number(self) -> int:
        return self.report.statements + (self._row is None)

    def _agreed(self, method: str, rule: Rule, chosen: int) -> None:
        """Count a statement, or one more call of it: some are computed first, and then written."""
        if not self.counts:
            return
        row = self._row
        if row is None:
            row = self._row_of(self.report.rows, method, self._formula or method, str(rule))
            self.report.statements += 1
            self.report.iterations = max(self.report.iterations, self.level + 1)
        if self._formula:
            self._row = row
        if row.rule == str(EXACT):  # keep the rule of the computation, not that of the write
            row.rule = str(rule)
        row.chosen += chosen

    def _row_of(self, rows: list[Row], what: str, formula: str, rule: str) -> Row:
        """Return the row for a place in the source, a new one at its first run; count the run."""
        place = self._place()
        row = self._rows.get((place, what))
        if row is None:
            row = self._rows[place, what] = Row(place, formula, rule)
            rows.append(row)
        row.runs += 1
        return row

    # ---- statements
    def execute(self, statement: ops.Statement) -> None:
        """See `Backend`.

        If `any` accumulates a matrix that must be computed, the matrix is computed first, as the
        backends do too: then the candidates of `any` are known.
        """
        out, desc, operation, dtype = statement
        by_any = desc.accum is not None and desc.accum.name == "any"
        if by_any and out.ndim == 2 and not isinstance(operation, _ASSIGNING):
            made = self.matrix(dtype, out.shape)
            self._run(statement._replace(out=made, desc=desc._replace(accum=None, replace=False)))
            statement = statement._replace(operation=ops.Assign(made))
        self._run(statement)

    def _run_on_each(self, s: ops.Statement) -> None:
        """Run a statement on every backend, and compare the outputs."""
        w, desc, operation, _ = s
        method = ops.method_of(operation, w.ndim)
        if method == "matrix_dup" and (desc.mask, desc.accum) != (None, None):
            method = "matrix_write"  # a masked or accumulated copy
        rule = meaning.rule_of(operation, s.dtype, w.dtype, desc)
        if not rule.is_exact:  # before an operand is overwritten
            mask = None if desc.mask is None else self._entries(desc.mask)
            on_host = ops.replaced(operation, self._on_host, Replica)
            rule = rule._replace(by=meaning.Written(on_host, desc, mask, self._entries(w)))
        free = _is_free(s)
        self._each("execute", s)
        w.free = free
        self._compare(w, method, rule)

    def evaluate(self, operation: ops.Operation) -> Any:
        x: Replica = next(replicas_in(operation))
        values = self._each("evaluate", operation)
        self.free_reads |= x.free
        if not isinstance(operation, ops.Reduce):
            return self._same(ops.method_of(operation, x.ndim), values)
        self.free_reads |= operation.monoid.name == "any"
        result = operation.monoid.types(x.dtype)[1]
        on_host = ops.replaced(operation, self._on_host, Replica)
        by = meaning.Written(on_host, ops.Descriptor(), None, meaning.scalar_entries(None, result))
        rule = meaning.rule_of(operation, result, result)._replace(by=by)
        first, *others = (meaning.scalar_entries(value, result) for value in values)
        method = ops.method_of(operation, x.ndim)
        for k, other in enumerate(others, 1):
            self._pair(f"{method} over {operation.monoid.name}", first, other, k, rule)
        unlike = [y for y in others if not meaning.equal(y.values, first.values).all()]
        self._agreed(method, rule, len(unlike) if rule.is_any else 0)
        return values[0]

    def explain(self, operation: ops.Operation) -> list[str]:
        lines = self._each("explain", operation)
        return [f"{x}: {y}" for x, y in zip(self.labels, map("; ".join, lines), strict=True)]

    def batch_size(
        self, A: Replica, sources: int, levels: int, live: Sequence[tuple[DType, int]]
    ) -> int:
        least = min(self._each("batch_size", A, sources, levels, live))
        return int(min(size for place in self.places for (size,) in of_all(place, least)))

    def meter(self) -> NoReturn:
        """Raise `NotSupported`: a trace would see no kernel."""
        raise NotSupported("crosscheck: cannot be traced. Trace the algorithm without crosscheck.")

    def free_bytes(self) -> int:
        return int(min(self._each("free_bytes")))

    # ---- objects: made
    def vector(self, dtype: DType, size: int) -> Replica:
        """See `Backend`; making an empty object counts as no statement."""
        return Replica(self._each("vector", dtype, size), dtype, (size,))

    def matrix(self, dtype: DType, shape: tuple[int, int]) -> Replica:
        """See `Backend`; making an empty object counts as no statement."""
        return Replica(self._each("matrix", dtype, shape), dtype, shape)

    vector_from_coo = _making("vector_from_coo", lambda i, x, dtype, size: (dtype, (size,)))
    matrix_from_csc = _making("matrix_from_csc", lambda *given: given[3:5])
    matrix_from_diagonal = _making(
        "matrix_from_diagonal", lambda v, k: (v.dtype, (v.shape[0] + abs(k),) * 2)
    )
    diagonal = _making("diagonal", _diagonal)
    dup = _making("dup", lambda x, dtype: (dtype, x.shape))

    @functools.wraps(Backend.matrix_from_coo)
    def matrix_from_coo(self, *given: Any) -> Replica:
        *triplets, dtype, shape, dup_op = given
        made_of = meaning.Triplets(*map(_on_host, triplets))
        by = meaning.Written(made_of, ops.Descriptor(), None, meaning.nothing(dtype, shape))
        rule = meaning.rule_of_triplets(dup_op, dtype)._replace(by=by)
        return self._made("matrix_from_coo", given, dtype, shape, rule)

    def _made(
        self, method: str, given: Any, dtype: DType, shape: tuple[int, ...], rule: Rule = EXACT
    ) -> Replica:
        """Return a new object, made by a method of each backend, after comparison."""
        made = Replica(self._each(method, *given), dtype, shape)
        made.free = any(x.free for x in replicas_in(given))
        shown = f"{made.kind}_dup" if method == "dup" else _SHOWN.get(method, method)
        self._compare(made, shown, rule)
        return made

    # ---- objects: read and changed
    vector_to_coo = _passed("_read", "vector_to_coo")
    vector_head = _passed("_read", "vector_head")
    isequal = _passed("_read", "isequal")
    is_symmetric = _passed("_read", "is_symmetric")
    set_values = _passed("_edit", "set_values")
    vector_set = _passed("_edit", "vector_set")
    vector_remove = _passed("_edit", "vector_remove")
    vector_clear = _passed("_edit", "vector_clear")

    def matrix_to_csc(self, A: Replica, on_device: bool = False, narrow: bool = False) -> Any:
        """Return the oracle's arrays on the host, after comparison."""
        return self._read("matrix_to_csc", A)

    def vector_values(self, v: Replica, on_device: bool = False) -> Any:
        """Return the oracle's values, after comparison."""
        return self.vector_to_coo(v)[1]

    def nvals(self, x: Replica) -> int:
        self.free_reads |= x.loose
        return int(self._same(f"{x.kind}_nvals", self._each("nvals", x)))

    def form(self, x: Replica) -> str:
        """Return the oracle's form: storage forms may differ."""
        return self.places[0].form(x.parts[0])

    def wait(self, x: Replica) -> None:
        self._each("wait", x)

    def may_keep_csr(self, A: Replica, allowed: bool | None) -> bool:
        """Pass the call to the backends that support it."""
        answers = []
        for place, data in zip(self.places, A.parts, strict=True):
            try:
                answers.append(place.may_keep_csr(data, allowed))
            except NotSupported as error:
                refusal = error
        if not answers:
            raise refusal
        return answers[0]

    # ---- on every backend
    def _each(self, method: str, *args: Any) -> list[Any]:
        """Call a method of each backend with its own handles, and return the results."""
        found = []
        for k, (place, label) in enumerate(zip(self.places, self.labels, strict=True)):
            given = part(args, k)
            if not place.capabilities.kernels:  # what a product chooses among those of others
                given = ops.replaced(given, lambda x: x._replace(kernel=None), ops.Product)
            try:
                found.append(getattr(place, method)(*given))
            except Exception as error:
                line = self._place()
                statement = f"statement {self._number} ({line}): {self._formula or line.text}"
                error.add_note(f"crosscheck: on {label}, {statement}")
                raise
        return found

    def _edit(self, method: str, x: Replica, *args: Any) -> None:
        self._each(method, x, *args)
        self._compare(x, method, EXACT)

    def _read(self, method: str, x: Replica, *args: Any) -> Any:
        """Return a value that the program reads and may act upon; it must be equal everywhere."""
        values = self._each(method, x, *args)
        self.free_reads |= any(read.free for read in replicas_in((x, *args)))
        return self._same(method if method.startswith(x.kind) else f"{x.kind}_{method}", values)

    def _same(self, what: str, values: Sequence[Any]) -> Any:
        for k in range(1, len(values)):
            if not _equal(values[0], values[k]):
                row = None, _brief(values[0]), _brief(values[k]), ""
                raise self._difference(what, k, 1, (row,))
        return values[0]

    # ---- comparison
    def _on_host(self, x: Replica) -> Entries | HostMatrix:
        if x.ndim == 1:
            return self._entries(x)
        if x.host is None:
            x.host = self._matrix(x, 0)
        return x.host

    def _matrix(self, A: Replica, k: int) -> HostMatrix:
        shape = typing.cast(tuple[int, int], A.shape)
        return HostMatrix(self.places[k].matrix_to_csc(A.parts[k]), A.dtype, shape)

    def _entries(self, x: Replica, k: int = 0) -> Entries:
        if x.ndim == 2:
            matrix = self._matrix(x, k) if k else self._on_host(x)
            assert isinstance(matrix, HostMatrix)
            return matrix.entries()
        return Entries(*self.places[k].vector_to_coo(x.parts[k]), x.dtype, x.shape[0])

    def _compare(self, w: Replica, method: str, rule: Rule) -> None:
        """Compare an output on all backends, then give all of them the oracle's values."""
        w.host, self._candidates = None, None
        first = self._entries(w)
        if rule.is_any and (self.follows or len(self.places) == 1):  # one backend's choices, too
            found = self._pair(method, first, first, 0, rule)
            if found.terms is not None:
                w.free |= found.is_free
                self._candidates = Terms(first.indices[found.terms.at], found.terms.values)
        chosen = 0
        for k in range(1, len(self.places)):
            other = self._entries(w, k)
            found = self._pair(method, first, other, k, rule)
            same = meaning.equal(first.values, other.values)
            unlike = 0 if rule.is_exact else np.count_nonzero(~same)
            if found.choices is not None:
                w.free |= found.is_free
                chosen += int(unlike)
            if unlike:
                self.places[k].set_values(w.parts[k], first.values)
        self._agreed(method, rule, chosen)
        if self.follows and w.dtype.is_float:
            w.scale = np.zeros(first.size) if w.scale is None else w.scale.copy()
            seen = np.abs(first.values.astype(float))
            if rule.is_sum:
                seen = np.fmax(seen, meaning.magnitude(rule, first.indices))
            w.scale[first.indices] = np.fmax(w.scale[first.indices], seen)

    def _pair(self, what: str, first: Entries, other: Entries, k: int, rule: Rule) -> Agreement:
        found = meaning.compare(first, other, rule)
        if found.many:
            raise self._difference(what, k, found.many, found.rows)
        return found

    def _difference(self, what: str, k: int, count: int, rows: tuple[Any, ...]) -> Exception:
        products: Any = ops.Multiply, ops.MultiplySelection
        planned = any(what in kind.names for kind in products)
        plans = tuple(map(_plan, self.labels, self.places)) if planned else ()
        where = self._number, self._formula, self._place(), self.level
        pair = self.labels[0], self.labels[k]
        return self.report.failed(Difference(*where, *pair, what, count, rows, plans))

    # ---- loops
    def noted(self, to: Any, call: Any) -> tuple[str, Place]:
        """Return the formula and the place of a statement of a loop's body; see `Observer`."""
        formula, place = formula_of(to, call), Place(*line_of_author())
        value = getattr(call.operation, "value", None)
        if type(value) is ops.CounterRef and value.formula is None:
            formula = place.text  # else it would say 0 in each iteration
        return formula, place

    def replay(self, note: Any, work: Callable[[], None]) -> None:
        formula, at = note
        self._run_as(formula, at, work)

    def _recorded_at(self, k: int) -> tuple[str, Place | None]:
        """Return the formula and the place of a recorded statement, if it is the author's."""
        return self.notes[k] if k < len(self.notes) else ("", None)

    def plan_loop(self, body: ops.Statements, turns: Any) -> Any:
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

    # ---- what another run of the same loop may give
    def _run(self, s: ops.Statement) -> None:
        if not self.follows:
            self._run_on_each(s)
            return
        before, w, loose = self._before(s), s.out, _is_loose(s)
        self._run_on_each(s)
        w.loose, w.free = loose, w.free or loose
        new = before.new if self._candidates is None else self._candidates
        w.possible = None
        if new is not None and w.free and before.determined:
            w.possible = _after(new, before, self._entries(w).indices, w.dtype)
        if w.dtype.is_float and not isinstance(s.operation, (ops.Multiply, ops.MultiplySelection)):
            for x in replicas_in(s.operation):
                if x.scale is not None and x.shape == w.shape:  # a difference of large numbers
                    w.scale = np.maximum(w.scale, x.scale)

    def _before(self, s: ops.Statement) -> Before:
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


def _on_host(x: Any) -> Any:
    return x.get() if hasattr(x, "get") else np.asarray(x)


def _is_free(s: ops.Statement) -> bool:
    """Return True if values of the output may depend on earlier choices of `any`."""
    valued = () if s.desc.structure or s.desc.mask is None else (s.desc.mask,)
    reads = (*replicas_in(s.operation), *valued)
    return any(x.free for x in reads) or (s.out.free and keeps_old(s))


def keeps_old(s: ops.Statement) -> bool:
    """Return whether the output may keep some of its earlier content."""
    in_part = isinstance(s.operation, _ASSIGNING) and s.operation.indices is not None
    return in_part or not s.desc.is_fresh


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, tuple):
        return len(x) == len(y) and all(map(_equal, x, y))
    if isinstance(x, np.ndarray):
        alike = x.dtype.kind == y.dtype.kind and x.shape == y.shape
        return alike and bool(meaning.equal(x, y).all())
    return bool(x == y) or (x != x and y != y)


def _brief(x: Any) -> str:
    return f"{len(x[0])} entries" if isinstance(x, tuple) else str(x)


def _plan(label: str, place: Backend) -> Plan:
    plan = place.last_product
    if plan is None:
        return Plan(label, "", "", "chooses its own method and does not report it")
    return Plan(label, plan.direction, plan.kernel, plan.reason)


# ---- loops, statement by statement and as one program
_INDICES_ONLY = "indices only, as any chose the values"
_NOT_COMPARED = "not compared, as its indices depend on what any chose"


class Before(NamedTuple):
    """The state before a statement runs; None is for possible values that are unknown."""

    desc: ops.Descriptor
    mask: Entries | None
    new: Terms | None  # the possible values that the statement copies, if it copies any
    old: Terms | None  # the possible values of the output
    determined: bool  # whether all operands but `new` have the same values in every run


def _planned(of: Crosscheck, k: int, body: ops.Statements, turns: Any) -> Any:
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
        self, of: Crosscheck, body: ops.Statements, turns: Any, fused: dict[int, Any]
    ) -> None:
        self._of, self._body, self._turns, self._places = of, list(body), turns, list(fused)
        loop = next(iter(fused.values()))
        self.name, self.why, self.nbytes = loop.name, loop.why, loop.nbytes

    def run(self) -> None:
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
                how = f"as one program on {of.labels[k]}, {name}: {', '.join(rules)}"
                of._row_of(of.report.loops, how, "", how)

    def _entries(self, x: Any, k: int = 0) -> Entries:
        if not isinstance(x, Replica):
            return meaning.scalar_entries(x.get(), x.dtype)
        x.host = None
        return self._of._entries(x, k)

    # ---- statement by statement
    def _eagerly(self) -> None:
        of, turns = self._of, self._turns
        if isinstance(turns, ops.Sweep):
            here, above = turns.here, turns.above
            for done, d in enumerate(range(turns.levels.deepest, 0, -1)):
                if done:
                    here, above = above, turns.levels.cut(d - 1)
                masks = {id(turns.here): here, id(turns.above): above}
                swapped = lambda x, masks=masks: masks.get(id(x), x)  # noqa: E731
                self._iterate(done, [ops.replaced(s, swapped, Replica) for s in self._body])
            return
        empty, unchanged, times, _, holds = turns
        done = 0
        while done != times and (empty is None or of.nvals(empty)):
            old = None if unchanged is None else of.dup(unchanged, unchanged.dtype)
            self._iterate(done, self._body)
            done += 1
            steady = old is not None and of.isequal(old, unchanged)
            if steady or (holds is not None and holds.get()):
                break

    def _iterate(self, done: int, statements: ops.Statements) -> None:
        of: Any = self._of
        of.level = done
        for k, s in enumerate(statements):
            of.replay(of._recorded_at(k), functools.partial(run_statement, of, s, done))
            if s.writes_scalar:
                summed = [x.scale.sum() for x in replicas_in(s.operation) if x.scale is not None]
                summed += [of.scales.get(id(x), 0.0) for x in s.scalars_read]
                seen = (of.scales.get(id(s.out), 0.0), abs(float(s.out.get() or 0)), *summed)
                of.scales[id(s.out)] = max(seen)

    # ---- as one program
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
        if found.many:
            formula, at = of._recorded_at(max(k for k, s in enumerate(self._body) if s.out is x))
            where = 0, formula, at or Place(*line_of_author()), -1
            ways = f"{label} eager", f"{label} fused"
            raise of.report.failed(Difference(*where, *ways, name, found.many, found.rows))
        return _INDICES_ONLY if rule.is_any and may is None else str(rule)


def _set(scalars: Sequence[Any], values: Sequence[Any]) -> None:
    for s, value in zip(scalars, values, strict=True):
        s.set(value)


def _copied(s: ops.Statement) -> Replica | None:
    """Return the object whose values a statement copies to the same indices, or None."""
    operation: Any = s.operation
    whole = isinstance(operation, ops.Assign) and operation.indices is None
    copies = whole and s.desc.accum is None and not operation.transposed
    return operation.operand if copies else None


def _is_loose(s: ops.Statement) -> bool:
    """Return True if indices of the output may depend on choices of `any`."""
    operation, desc, mask = s.operation, s.desc, s.desc.mask
    return (
        any(x.loose for x in replicas_in(operation))
        or (mask is not None and (mask.loose or (mask.free and not desc.structure)))
        or (isinstance(operation, ops.Select) and operation.operand.free)
        or (isinstance(operation, ops.MultiplySelection) and operation.indices.free)
        or (s.out.loose and keeps_old(s))
    )


def _values_read(operation: ops.Operation) -> Iterator[Replica]:
    """Yield the operands whose values, not only their patterns, decide the candidates of `any`."""
    if isinstance(operation, ops.MultiplySelection):
        yield operation.indices  # row numbers
    if not isinstance(operation, (ops.Multiply, ops.MultiplySelection)):
        yield from replicas_in(operation)
        return
    other = operation.matrix if isinstance(operation, ops.Multiply) else operation.indices
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
