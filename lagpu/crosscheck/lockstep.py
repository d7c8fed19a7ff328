"""Run statements on several backends in lockstep."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar, cast

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.processes import of_all
from lagpu.backends.protocol import Backend, Capabilities
from lagpu.core.expr import format_formula
from lagpu.core.recorder import Observer
from lagpu.crosscheck.candidates import (
    Agreement,
    Entries,
    HostMatrix,
    Rule,
    Terms,
    Triplets,
    Written,
    equal,
    nothing,
    rule_of,
    rule_of_triplets,
)
from lagpu.crosscheck.report import Difference, Place, Plan, Report, Row, Unequal, compare
from lagpu.dtypes import DType
from lagpu.errors import NotSupported
from lagpu.host.source import author, line_of_author, named, source_of, target_of
from lagpu.observe.trace import names_in
from lagpu.operations import (
    Assign,
    AssignScalar,
    Descriptor,
    Levels,
    Multiply,
    MultiplySelection,
    Operation,
    Reduce,
    Rejection,
    Statement,
    Sweep,
    Until,
    method_of,
)


class Replica:
    """The handle of a vector or matrix on several backends, with each backend's handle.

    Attributes
    ----------
    parts : list
        The backends' handles, the oracle's first.
    dtype : DType
        Type of the values.
    shape : tuple of int
        The size of each dimension.
    free : bool
        Whether values may depend on choices of `any`.
    possible : Terms or None
        The possible values at each index, if `free` and known.
    host : HostMatrix or None
        The oracle's matrix on the host, until the matrix is written.
    """

    __slots__ = ("dtype", "free", "host", "parts", "possible", "shape")

    def __init__(self, parts: list[Any], dtype: DType, shape: tuple[int, ...]) -> None:
        self.parts, self.dtype, self.shape = parts, dtype, shape
        self.free = False
        self.possible: Terms | None = None
        self.host: HostMatrix | None = None

    @property
    def ndim(self) -> int:
        """1 for a vector, 2 for a matrix."""
        return len(self.shape)

    @property
    def kind(self) -> str:
        """``"vector"`` or ``"matrix"``."""
        return "vector" if self.ndim == 1 else "matrix"


def replaced(x: Any, change: Callable[[Replica], Any]) -> Any:
    """Return a record in which `change` has replaced each replica."""
    if isinstance(x, Replica):
        return change(x)
    if not isinstance(x, tuple):
        return x
    parts = [replaced(one, change) for one in x]
    if all(new is old for new, old in zip(parts, x, strict=True)):
        return x
    return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)


def part(x: Any, k: int) -> Any:
    """Return a record with the handles of backend `k`."""
    return replaced(x, lambda replica: replica.parts[k])


def replicas_in(x: Any) -> Iterator[Replica]:
    """Yield the replicas in a record."""
    if isinstance(x, Replica):
        yield x
    elif isinstance(x, tuple):
        for one in x:
            yield from replicas_in(one)


# ------------------------------------------------------------------------------------------
# Track the running statement, and count the statements that agree.
#
# A statement may be several calls of a backend: an accumulated product of matrices is computed
# first, and then written.


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


# ------------------------------------------------------------------------------------------
# Lockstep: a backend that runs each operation on several backends and compares the results.
#
# So an algorithm runs once, statement by statement, and stops at the first difference. The first
# backend is the oracle: its values decide how the program goes on, and where other backends may
# differ they get its values, so that each statement has the same operands everywhere.


Array = np.ndarray[Any, Any]
T = TypeVar("T")


class Lockstep(Observer):
    """Several backends as one; see `Backend` for the methods.

    Parameters
    ----------
    places : sequence of Backend
        The backends, the oracle first.
    report : Report
        Counts statements, and makes the error of a difference.
    """

    capabilities = Capabilities()
    device = None
    last_loop = ""
    last_product = None
    why_eager = "it is crosschecked"
    #: How to move an object to this backend, for errors: it has no name that `to` accepts.
    entered = (
        "Give {0} to the algorithm as an argument, which crosscheck copies to each backend, "
        "or make it inside with like=."
    )

    def __init__(self, places: Sequence[Backend], report: Report) -> None:
        self.name = "+".join(place.name for place in places)
        self.places = tuple(places)
        self.labels = _numbered([place.name for place in places])
        self.lock = threading.RLock()
        self.tally = Tally(report)
        self.free_reads = False  # whether the program has read values chosen by `any`

    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """Run a checked statement, and store its formula for a difference; see `Observer`."""
        with self.tally.statement(formula_of(to, call)):
            work()

    # ---------------------------------------------------------------------------- statements
    def execute(self, statement: Statement) -> None:
        """See `Backend`.

        If `any` accumulates a matrix that must be computed, the matrix is computed first, as the
        backends do too: then the candidates of `any` are known.
        """
        if _is_made_for_any(statement):
            out, desc, _, dtype = statement
            made = self.matrix(dtype, out.shape)
            self._run(statement._replace(out=made, desc=desc._replace(accum=None, replace=False)))
            statement = statement._replace(operation=Assign(made))
        self._run(statement)

    def _run(self, s: Statement) -> None:
        """Run a statement on every backend, and compare the outputs."""
        w, desc, operation, _ = s
        method = _name_of(s)
        rule = rule_of(operation, s.dtype, w.dtype, desc)
        by = self._written(operation, desc, w, rule)
        free = _is_free(s)
        self._each(lambda place, k: place.execute(part(s, k)))
        w.free = free
        self._compare(w, method, rule, by)

    def evaluate(self, operation: Operation) -> Any:
        """See `Backend`."""
        x: Replica = next(replicas_in(operation))
        values = self._each(lambda place, k: place.evaluate(part(operation, k)))
        self.free_reads |= x.free
        if not isinstance(operation, Reduce):
            return self._same(method_of(operation, x.ndim), values)
        result = operation.monoid.types(x.dtype)[1]
        rule = rule_of(operation, result, result)
        found = [_scalar(value, result) for value in values]
        method = method_of(operation, x.ndim)
        on_host = replaced(operation, self._on_host)
        by = Written(on_host, Descriptor(), None, _scalar(None, result))
        for k in range(1, len(found)):
            self._pair(f"{method} over {operation.monoid.name}", found[0], found[k], k, rule, by)
        others = [x for x in found if rule.is_any and not equal(x.values, found[0].values).all()]
        self.tally.agreed(method, rule, len(others), self.level)
        return values[0]

    def explain(self, operation: Operation) -> list[str]:
        """Return the explanation of each backend."""
        lines = self._each(lambda place, k: place.explain(part(operation, k)))
        return [f"{x}: {y}" for x, y in zip(self.labels, map("; ".join, lines), strict=True)]

    def plan_loop(self, body: Sequence[Statement], turns: Until | Sweep) -> Rejection:
        """See `Backend`: loops run statement by statement."""
        return Rejection(self.why_eager)

    def batch_size(
        self, A: Replica, sources: int, levels: int, live: Sequence[tuple[DType, int]]
    ) -> int:
        """Return the smallest batch size of all backends, in all processes."""
        found = self._each(lambda place, k: place.batch_size(part(A, k), sources, levels, live))
        return int(min(self._each(lambda place, _: min(of_all(place, min(found)))[0])))

    def meter(self) -> NoReturn:
        """Raise `NotSupported`: a trace would see no kernel."""
        raise NotSupported("crosscheck: cannot be traced. Trace the algorithm without crosscheck.")

    def free_bytes(self) -> int:
        """Return the least number of free bytes of all backends."""
        return int(min(self._each(lambda place, _: place.free_bytes())))

    # ------------------------------------------------------------------------- objects: made
    def vector(self, dtype: DType, size: int) -> Replica:
        """See `Backend`; making an empty object counts as no statement."""
        return Replica(self._each(lambda place, _: place.vector(dtype, size)), dtype, (size,))

    def matrix(self, dtype: DType, shape: tuple[int, int]) -> Replica:
        """See `Backend`; making an empty object counts as no statement."""
        return Replica(self._each(lambda place, _: place.matrix(dtype, shape)), dtype, shape)

    def vector_from_coo(self, indices: Any, values: Any, dtype: DType, size: int) -> Replica:
        """See `Backend`."""
        made = self._each(lambda place, _: place.vector_from_coo(indices, values, dtype, size))
        return self._made("vector_from_coo", made, dtype, (size,))

    def matrix_from_coo(
        self,
        rows: Any,
        cols: Any,
        values: Any,
        dtype: DType,
        shape: tuple[int, int],
        dup_op: BinaryOp | None,
    ) -> Replica:
        """See `Backend`."""
        rule = rule_of_triplets(dup_op, dtype)
        triplets = Triplets(*map(_on_host, (rows, cols, values)))
        by = Written(triplets, Descriptor(), None, nothing(dtype, shape))
        made = self._each(
            lambda place, _: place.matrix_from_coo(rows, cols, values, dtype, shape, dup_op)
        )
        return self._made("matrix_from_coo", made, dtype, shape, rule, by)

    def matrix_from_csc(
        self,
        col_ptr: Any,
        row_idx: Any,
        values: Any,
        dtype: DType,
        shape: tuple[int, int],
        symmetric: bool | None = None,
    ) -> Replica:
        """See `Backend`."""
        made = self._each(
            lambda place, _: place.matrix_from_csc(
                col_ptr, row_idx, values, dtype, shape, symmetric
            )
        )
        return self._made("matrix_from_csc", made, dtype, shape)

    def matrix_from_diagonal(self, v: Replica, k: int) -> Replica:
        """See `Backend`."""
        made = self._each(lambda place, at: place.matrix_from_diagonal(v.parts[at], k))
        n = v.shape[0] + abs(k)
        return self._made("matrix_from_diag", made, v.dtype, (n, n), of=v)

    def diagonal(self, A: Replica, k: int, rows: Any = None) -> Replica:
        """See `Backend`."""
        made = self._each(lambda place, at: place.diagonal(A.parts[at], k, rows))
        m, n = A.shape
        size = min(m, n - k) if k >= 0 else min(m + k, n)
        return self._made("matrix_diag", made, A.dtype, (size,), of=A)

    def dup(self, x: Replica, dtype: DType) -> Replica:
        """See `Backend`."""
        made = self._each(lambda place, k: place.dup(x.parts[k], dtype))
        return self._made(f"{x.kind}_dup", made, dtype, x.shape, of=x)

    def vector_resized(self, v: Replica, size: int) -> Replica:
        """See `Backend`."""
        made = self._each(lambda place, k: place.vector_resized(v.parts[k], size))
        return self._made("vector_resized", made, v.dtype, (size,), of=v)

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
        """Return a new object after comparison; `of` is the object that it was made of."""
        made = Replica(parts, dtype, shape)
        made.free = of is not None and of.free
        self._compare(made, method, rule or Rule(), by)
        return made

    # ------------------------------------------------------------------------- objects: read
    def vector_to_coo(self, v: Replica) -> tuple[Array, Array]:
        """See `Backend`."""
        return self._read("vector_to_coo", lambda place, k: place.vector_to_coo(v.parts[k]), v)

    def matrix_to_csc(
        self, A: Replica, on_device: bool = False, narrow: bool = False
    ) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        return self._read("matrix_to_csc", lambda place, k: place.matrix_to_csc(A.parts[k]), A)

    def vector_values(self, v: Replica, on_device: bool = False) -> Array:
        """Return the oracle's values, after comparison."""
        return self.vector_to_coo(v)[1]

    def set_values(self, x: Replica, values: Array) -> None:
        """See `Backend`."""
        self._edit(x, "set_values", lambda place, k: place.set_values(x.parts[k], values))

    def vector_head(self, v: Replica, count: int) -> tuple[Array, Array]:
        """See `Backend`."""
        return self._read("vector_head", lambda place, k: place.vector_head(v.parts[k], count), v)

    def matrix_corner(self, A: Replica, nrows: int, ncols: int) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        return self._read(
            "matrix_corner", lambda place, k: place.matrix_corner(A.parts[k], nrows, ncols), A
        )

    def nvals(self, x: Replica) -> int:
        """See `Backend`."""
        counts = self._each(lambda place, k: place.nvals(x.parts[k]))
        return self._same(f"{x.kind}_nvals", counts)

    def form(self, x: Replica) -> str:
        """Return the oracle's form: storage forms may differ."""
        return self.places[0].form(x.parts[0])

    def isequal(self, x: Replica, y: Replica) -> bool:
        """See `Backend`."""
        return self._read(
            f"{x.kind}_isequal", lambda place, k: place.isequal(x.parts[k], y.parts[k]), x, y
        )

    def levels(self, x: Replica) -> Levels | None:
        """Return None: the host sorts the levels."""
        return None

    def is_symmetric(self, A: Replica) -> bool:
        """See `Backend`."""
        return self._read("matrix_is_symmetric", lambda place, k: place.is_symmetric(A.parts[k]), A)

    def wait(self, x: Replica) -> None:
        """Wait for every backend."""
        self._each(lambda place, k: place.wait(x.parts[k]))

    # ---------------------------------------------------------------------- objects: changed
    def vector_set(self, v: Replica, i: int, value: Any) -> None:
        """See `Backend`."""
        self._edit(v, "vector_set", lambda place, k: place.vector_set(v.parts[k], i, value))

    def vector_remove(self, v: Replica, i: int) -> None:
        """See `Backend`."""
        self._edit(v, "vector_remove", lambda place, k: place.vector_remove(v.parts[k], i))

    def vector_clear(self, v: Replica) -> None:
        """See `Backend`."""
        self._edit(v, "vector_clear", lambda place, k: place.vector_clear(v.parts[k]))

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

    # ---------------------------------------------------------------------- on every backend
    def _each(self, run: Callable[[Backend, int], T]) -> list[T]:
        """Call `run` with each backend and its number, and return the results."""
        found = []
        for k, (place, label) in enumerate(zip(self.places, self.labels, strict=True)):
            try:
                found.append(run(place, k))
            except Exception as error:
                error.add_note(f"crosscheck: on {label}, {self.tally.where()}")
                raise
        return found

    def _edit(self, v: Replica, method: str, run: Callable[[Backend, int], None]) -> None:
        self._each(run)
        self._compare(v, method, Rule(), None)

    def _read(self, method: str, run: Callable[[Backend, int], T], *read: Replica) -> T:
        """Return a value that the program reads and may act upon; it must be equal everywhere."""
        values = self._each(run)
        self.free_reads |= any(x.free for x in read)
        return self._same(method, values)

    def _same(self, what: str, values: list[T]) -> T:
        for k in range(1, len(values)):
            if not _equal(values[0], values[k]):
                rows = ((None, *(_brief(values[0]), _brief(values[k])), ""),)
                raise self._difference(what, k, 1, rows)
        return values[0]

    # --------------------------------------------------------------------------- comparison
    def _written(
        self, operation: Operation, desc: Descriptor, w: Replica, rule: Rule
    ) -> Written | None:
        """Copy the operands to the host before one is overwritten, if the rule needs them."""
        if rule == Rule(result=rule.result):
            return None
        mask = None if desc.mask is None else self._entries(desc.mask)
        return Written(replaced(operation, self._on_host), desc, mask, self._entries(w))

    def _on_host(self, x: Replica) -> Entries | HostMatrix:
        """Return an operand as NumPy arrays."""
        if x.ndim == 1:
            return self._entries(x)
        if x.host is None:
            x.host = self._matrix(x, 0)
        return x.host

    def _matrix(self, A: Replica, k: int) -> HostMatrix:
        shape = cast(tuple[int, int], A.shape)
        return HostMatrix(self.places[k].matrix_to_csc(A.parts[k]), A.dtype, shape)

    def _entries(self, x: Replica, k: int = 0) -> Entries:
        if x.ndim == 2:
            matrix = self._matrix(x, k) if k else self._on_host(x)
            assert isinstance(matrix, HostMatrix)
            return matrix.entries()
        return Entries(*self.places[k].vector_to_coo(x.parts[k]), x.dtype, x.shape[0])

    def _compare(self, w: Replica, method: str, rule: Rule, by: Written | None) -> None:
        """Compare an output on all backends, then give all of them the oracle's values."""
        w.host = None
        first = self._entries(w)
        chosen = 0
        for k in range(1, len(self.places)):
            other = self._entries(w, k)
            found = self._pair(method, first, other, k, rule, by)
            if found is not None:
                if found.choices is not None:
                    w.free |= found.is_free
                    chosen += int(np.count_nonzero(~equal(first.values, other.values)))
                if not equal(first.values, other.values).all():
                    self.places[k].set_values(w.parts[k], first.values)
        self.tally.agreed(method, rule, chosen, self.level)

    def _pair(
        self,
        what: str,
        first: Entries,
        other: Entries,
        k: int,
        rule: Rule,
        by: Written | None,
    ) -> Agreement | None:
        """Raise for a difference; return None if the rule was exact equality."""
        found = compare(first, other, rule, by)
        if isinstance(found, Unequal):
            raise self._difference(what, k, found.count, found.rows)
        return None if by is None else found

    def _difference(self, what: str, k: int, count: int, rows: tuple[Any, ...]) -> Exception:
        plans: tuple[Plan, ...] = ()
        if what in _PLANNED:
            plans = tuple(_plan(*pair) for pair in zip(self.labels, self.places, strict=True))
        pair = self.labels[0], self.labels[k]
        return self.tally.differs(what, self.level, pair, count, rows, plans)


#: Names of products, which a backend plans.
_PLANNED = {method_of(Multiply(0, 0, cast(Any, 0)), 1), method_of(Multiply(0, 0, cast(Any, 0)), 2),
            method_of(MultiplySelection(0, 0, cast(Any, 0)), 1)}  # fmt: skip


def _on_host(x: Any) -> Any:
    return x.get() if hasattr(x, "get") else np.asarray(x)


def _is_made_for_any(s: Statement) -> bool:
    """Return True if `any` accumulates a matrix that must be computed first."""
    by_any = s.desc.accum is not None and s.desc.accum.name == "any"
    return by_any and s.out.ndim == 2 and not isinstance(s.operation, (Assign, AssignScalar))


def _name_of(s: Statement) -> str:
    """Return a statement's name in reports; a masked or accumulated copy is ``matrix_write``."""
    name = method_of(s.operation, s.out.ndim)
    is_plain = s.desc.mask is None and s.desc.accum is None
    return "matrix_write" if name == "matrix_dup" and not is_plain else name


def _is_free(s: Statement) -> bool:
    """Return True if values of the output may depend on earlier choices of `any`."""
    operation, desc = s.operation, s.desc
    valued = () if desc.structure or desc.mask is None else (desc.mask,)
    if any(x.free for x in (*replicas_in(operation), *valued)):
        return True
    in_part = isinstance(operation, (Assign, AssignScalar)) and operation.indices is not None
    return s.out.free and (not desc.is_fresh or in_part)


def _numbered(names: list[str]) -> tuple[str, ...]:
    """Return distinct names of backends, numbered if one is given twice."""
    again = [names[: k + 1].count(name) for k, name in enumerate(names)]
    return tuple(f"{x} ({n})" if n > 1 else x for x, n in zip(names, again, strict=True))


def _scalar(value: Any, dtype: DType) -> Entries:
    """Return a number or None as a vector of size 0, whose entry has no index to show."""
    where = np.zeros(int(value is not None), np.int64)
    return Entries(where, np.full(len(where), 0 if value is None else value, dtype.numpy), dtype, 0)


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, tuple):
        return len(x) == len(y) and all(map(_equal, x, y))
    if isinstance(x, np.ndarray):
        return x.dtype.kind == y.dtype.kind and x.shape == y.shape and bool(equal(x, y).all())
    return bool(x == y) or (x != x and y != y)


def _brief(x: Any) -> str:
    if isinstance(x, tuple):
        return f"{len(x[0])} entries"
    return str(x)


def _plan(label: str, place: Backend) -> Plan:
    """Return the choice of a backend for its last product."""
    plan = place.last_product
    if plan is None:
        return Plan(label, "", "", "chooses its own method and does not tell")
    return Plan(label, plan.direction, plan.kernel, plan.reason)
