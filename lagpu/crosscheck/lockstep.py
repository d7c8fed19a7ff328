"""A backend that is several: each operation runs on all of them, and the results are compared.

So the text of an algorithm runs once, statement by statement, and stops where two results differ.
The first backend is the oracle: its values decide how the program goes on, and where the others may
differ they get its values, so that each statement starts from the same operands everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from lagpu.backends.protocol import Backend, Descriptor
from lagpu.core.observer import Watcher
from lagpu.crosscheck.compare import Unequal, compare
from lagpu.crosscheck.host import Entries, HostMatrix, nothing
from lagpu.crosscheck.replica import MAKING, Twin, as_written, part, writes_part
from lagpu.crosscheck.report import Plan, Report
from lagpu.crosscheck.rules import Agreement, Rule, Written, equal, rule_of
from lagpu.crosscheck.statements import Tally, formula_of
from lagpu.dtypes import DType
from lagpu.errors import NotSupported

__all__ = ["Lockstep"]

Array = np.ndarray[Any, Any]

# Methods that compute a matrix by operators.
_RULED = frozenset(
    f"matrix_{name}"
    for name in (
        *("apply", "mxm", "ewise_add", "ewise_mult", "ewise_union", "kronecker"),
        *("write", "assign", "assign_scalar", "from_coo"),
    )
)
WRITING = frozenset(
    (
        *("mxv", "ewise_add", "ewise_mult", "ewise_union", "apply", "select", "assign_scalar"),
        *("assign", "extract", "extract_column", "reduce_vector", "mxv_selection"),
    )
)
# Products, which a backend plans.
_PLANNED = ("mxv", "mxv_selection", "matrix_mxm")
EDITING = frozenset(("vector_set", "vector_remove", "vector_clear", "vector_resize"))
SUMMING = frozenset(("reduce", "matrix_reduce"))
#: What a program reads of an object, and may act upon.
READING = frozenset(
    (
        *("vector_nvals", "vector_get", "vector_isequal", "vector_to_coo", "vector_head"),
        *("matrix_nvals", "matrix_get", "matrix_isequal", "matrix_to_csc", "matrix_corner"),
        "matrix_is_symmetric",
    )
)


class Lockstep(Watcher):
    """The backend; see `Backend` for its methods, all of which have one of a few forms.

    Parameters
    ----------
    places : sequence of Backend
        The oracle first.
    report : Report
        Counts statements; a difference is raised as its error.
    """

    recorder = None  # loops run statement by statement
    why_eager = "it is crosschecked"
    #: How an object that is elsewhere gets here, for an error: there is no name to move it to.
    entered = (
        "Give {0} to the algorithm as an argument, which crosscheck copies to each backend, "
        "or make it inside with like=."
    )

    def __init__(self, places: Sequence[Backend], report: Report) -> None:
        self.name = "+".join(place.name for place in places)
        self.places = tuple(places)
        self.labels = _distinct([place.name for place in places])
        self.tally = Tally(report)
        self.level = -1  # the loop sets it
        self.free_reads = False  # whether the program has read what `any` chose

    # ------------------------------------------------------------------ what a watcher hears
    def statement(self, to: Any, call: Any, work: Callable[[], None]) -> None:
        """Run a checked statement, and remember its formula for a difference."""
        with self.tally.statement(formula_of(to, call)):
            work()

    # ------------------------------------------------------------------------- all methods
    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name in WRITING:
            return lambda w, desc, *args: self._write(name, w, desc, args)
        if name in MAKING:
            return lambda *args: self._make(name, args)
        if name in EDITING:
            return lambda v, *args: self._edit(name, v, args)
        if name in SUMMING:
            return lambda *args: self._sum(name, args)
        if name in READING:
            return lambda *args: self._read(name, args)
        raise AttributeError(name)

    def _each(self, method: str, *args: Any) -> list[Any]:
        """Run a method everywhere."""
        found = []
        for k, label in enumerate(self.labels):
            try:
                found.append(self._one(k, method, *args))
            except Exception as error:
                error.add_note(f"crosscheck: on {label}, {self.tally.where()}")
                raise
        return found

    def _one(self, k: int, method: str, *args: Any) -> Any:
        return getattr(self.places[k], method)(*(part(x, k) for x in args))

    def matrix_turnable(self, A: Twin, allowed: bool | None) -> bool:
        """Ask those backends that have a say in it."""
        answers = []
        for k in range(len(self.places)):
            try:
                answers.append(self._one(k, "matrix_turnable", A, allowed))
            except NotSupported as error:
                refusal = error
        if not answers:
            raise refusal
        return bool(answers[0])

    def vector_wait(self, v: Twin) -> None:
        """Wait everywhere."""
        self._each("vector_wait", v)

    def vector_form(self, v: Twin) -> str:
        """Return the oracle's form: backends may store as they like."""
        return str(self._one(0, "vector_form", v))

    def matrix_form(self, A: Twin) -> str:
        """Return the oracle's form."""
        return str(self._one(0, "matrix_form", A))

    def meter(self) -> NoReturn:
        """Refuse: a trace would see this backend, and no kernel."""
        raise NotSupported(
            "crosscheck: there is no trace inside it. Trace the algorithm by itself."
        )

    def explain(self, A: Twin, u: Twin, how: Any) -> list[str]:
        """Return each backend's own words."""
        return self._said(self._each("explain", A, u, how))

    def explain_selection(self, f: Twin, u: Twin, how: Any) -> list[str]:
        """Return each backend's own words."""
        return self._said(self._each("explain_selection", f, u, how))

    def explain_mxm(self, A: Twin, B: Twin, *how: Any) -> list[str]:
        """Return each backend's own words."""
        return self._said(self._each("explain_mxm", A, B, *how))

    def _said(self, lines: list[list[str]]) -> list[str]:
        return [f"{x}: {y}" for x, y in zip(self.labels, map("; ".join, lines), strict=True)]

    def block_bytes(self, dtype: DType, nrows: int, ncols: int) -> None:
        """Return None: what is not stored alike is told by its entries."""

    def rows_apart(self, A: Twin, k: int) -> bool:
        """Return False: backends go on together."""
        return False

    def free_bytes(self) -> int:
        """Return what is free everywhere."""
        return int(min(self._each("free_bytes")))

    def vector_values(self, v: Twin) -> Array:
        """Return the oracle's values, once all agree."""
        values: Array = self._read("vector_to_coo", (v,))[1]
        return values

    # ------------------------------------------------------------------- forms of a method
    def _write(self, method: str, w: Twin, desc: Descriptor, args: tuple[Any, ...]) -> None:
        rule = rule_of(method, args, desc, w.dtype)
        by = self._written(method, w, desc, args, rule)
        free = _depends(method, w, desc, args)
        self._each(method, w, desc, *args)
        w.free = free
        self._settle(w, method, rule, by)

    def _make(self, method: str, args: tuple[Any, ...]) -> Twin:
        dtype, shape = MAKING[method](*args)
        if method in ("vector", "matrix"):
            return Twin(self._each(method, *args), dtype, shape)  # an output to be: no statement
        old, desc, more = as_written(method, args)
        rule = rule_of(method, args, desc, dtype) if method in _RULED else Rule()
        by = self._written(method, old or Twin([], dtype, shape), desc, more, rule)
        made = Twin(self._each(method, *args), dtype, shape)
        made.free = _depends(method, old, desc, more)
        self._settle(made, method, rule, by)
        return made

    def _edit(self, method: str, v: Twin, args: tuple[Any, ...]) -> None:
        self._each(method, v, *args)
        if method == "vector_resize":
            v.shape = (args[0],)
        self._settle(v, method, Rule(), None)

    def _sum(self, method: str, args: tuple[Any, ...]) -> Any:
        result = args[1].types(args[0].dtype)[1]
        rule = rule_of(method, args, None, result)
        values = self._each(method, *args)
        self.free_reads |= args[0].free
        found = [_scalar(x, result) for x in values]
        by = Written(
            method, (self._on_host(args[0]), args[1]), Descriptor(), None, _scalar(None, result)
        )
        for k in range(1, len(found)):
            self._pair(f"{method} over {args[1].name}", found[0], found[k], k, rule, by)
        others = [x for x in found if rule.is_any and not equal(x.values, found[0].values).all()]
        self.tally.agreed(method, rule, len(others), self.level)
        return values[0]

    def _read(self, method: str, args: tuple[Any, ...]) -> Any:
        values = self._each(method, *args)
        if not method.endswith("nvals"):
            self.free_reads |= any(x.free for x in args if isinstance(x, Twin))
        for k in range(1, len(values)):
            if not _same(values[0], values[k]):
                rows = ((None, *(_brief(values[0]), _brief(values[k])), ""),)
                raise self._difference(method, k, 1, rows)
        return values[0]

    # --------------------------------------------------------------------------- comparison
    def _written(
        self, method: str, w: Twin, desc: Descriptor, args: tuple[Any, ...], rule: Rule
    ) -> Written | None:
        """Look at the operands before one is overwritten, if the rule needs them."""
        if rule == Rule(result=rule.result):
            return None
        return Written(
            method,
            tuple(map(self._on_host, args)),
            desc,
            None if desc.mask is None else self._entries(desc.mask),
            self._entries(w),
        )

    def _on_host(self, x: Any) -> Any:
        """Return an operand as NumPy sees it."""
        if not isinstance(x, Twin):
            return x
        if len(x.shape) == 1:
            return self._entries(x)
        if x.host is None:
            x.host = self._matrix(x, 0)
        return x.host

    def _matrix(self, A: Twin, k: int) -> HostMatrix:
        shape = cast(tuple[int, int], A.shape)
        return HostMatrix(self.places[k].matrix_to_csc(A.parts[k]), A.dtype, shape)

    def _entries(self, x: Twin, k: int = 0) -> Entries:
        if not x.parts:  # an output to be
            return nothing(x.dtype, x.shape)
        if len(x.shape) == 2:
            return (self._matrix(x, k) if k else self._on_host(x)).entries()
        return Entries(*self.places[k].vector_to_coo(x.parts[k]), x.dtype, x.shape[0])

    def _settle(self, w: Twin, method: str, rule: Rule, by: Written | None) -> None:
        """Compare what was written, and give all backends the oracle's."""
        first = self._entries(w)
        chosen = 0
        for k in range(1, len(self.places)):
            other = self._entries(w, k)
            found = self._pair(method, first, other, k, rule, by)
            if found is not None:
                if found.choices is not None:
                    w.free |= found.is_free
                    chosen += int(np.count_nonzero(~equal(first.values, other.values)))
                self._follow(w, k, first, other)
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
        """Raise for a difference; return None if all entries are equal and had to be."""
        found = compare(first, other, rule, by)
        if isinstance(found, Unequal):
            raise self._difference(what, k, found.count, found.rows)
        return None if by is None else found

    def _follow(self, w: Twin, k: int, first: Entries, other: Entries) -> None:
        """Give a backend the oracle's values where it has others."""
        if equal(first.values, other.values).all():
            return
        place, data = self.places[k], w.parts[k]
        if len(w.shape) == 2:
            arrays = self.places[0].matrix_to_csc(w.parts[0])
            w.parts[k] = place.matrix_from_csc(*arrays, w.dtype, w.shape)
            return
        copy = place.vector_from_coo(first.indices, first.values, w.dtype, w.shape[0])
        for name in ("trail", "leaving"):  # what a planner remembers: the next plan stays the same
            if hasattr(data, name):
                setattr(copy, name, getattr(data, name))
        w.parts[k] = copy

    def _difference(self, what: str, k: int, count: int, rows: tuple[Any, ...]) -> Exception:
        plans: tuple[Plan, ...] = ()
        if what in _PLANNED:
            plans = tuple(_plan(*pair) for pair in zip(self.labels, self.places, strict=True))
        pair = self.labels[0], self.labels[k]
        return self.tally.differs(what, self.level, pair, count, rows, plans)


def _depends(method: str, w: Twin | None, desc: Descriptor, args: tuple[Any, ...]) -> bool:
    """Whether values of an output may depend on what `any` chose."""
    valued = () if desc.structure else (desc.mask,)
    if any(x.free for x in (*args, *valued) if isinstance(x, Twin)):
        return True
    return w is not None and w.free and (not desc.is_fresh or writes_part(method, args))


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Return names that tell backends apart, also if one is given twice."""
    again = [names[: k + 1].count(name) for k, name in enumerate(names)]
    return tuple(f"{x} ({n})" if n > 1 else x for x, n in zip(names, again, strict=True))


def _scalar(value: Any, dtype: DType) -> Entries:
    """Return a number, or none, as a vector of size 0: its one entry has no index to show."""
    where = np.zeros(int(value is not None), np.int64)
    return Entries(where, np.full(len(where), 0 if value is None else value, dtype.numpy), dtype, 0)


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, tuple):
        return len(x) == len(y) and all(map(_same, x, y))
    if isinstance(x, np.ndarray):
        return x.dtype.kind == y.dtype.kind and x.shape == y.shape and bool(equal(x, y).all())
    return bool(x == y) or (x != x and y != y)


def _brief(x: Any) -> str:
    if isinstance(x, tuple):
        return f"{len(x[0])} entries"
    return str(x)


def _plan(label: str, place: Backend) -> Plan:
    """Return what a backend chose for the product it has just run."""
    plan = getattr(place, "plan", None)
    if plan is None:
        return Plan(label, "", "", "chooses its own method and does not tell")
    return Plan(label, plan.direction, plan.kernel, plan.reason)
