"""The report of a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lagpu.core.matrix import Matrix
from lagpu.core.scalar import Scalar
from lagpu.core.vector import Vector
from lagpu.core.views import SelectionMatrix, TransposedMatrix, TransposedSelection
from lagpu.crosscheck.candidates import (
    Agreement,
    Entries,
    Rule,
    Terms,
    Written,
    allowed,
    equal,
    one_of,
)
from lagpu.dtypes import DType, lookup
from lagpu.errors import CrosscheckFailed, DomainMismatch
from lagpu.host.columns import distinct

#: Most indices that a difference lists.
SHOWN = 10

_LAGPU = Path(__file__).parents[1]  # its files have the same names on every machine


@dataclass(frozen=True)
class Place:
    """The place of a statement in the source.

    Attributes
    ----------
    file, line : str, int
        File and first line of the statement.
    text : str
        The source text of the statement; empty if it cannot be read.
    """

    file: str
    line: int
    text: str

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
    """The choice of a backend for a product.

    Attributes
    ----------
    backend : str
        Name of the backend.
    direction, kernel, reason : str
        The choice and why; direction and kernel are empty if the backend does not report them.
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
        Number of the statement, from 1, in the order in which statements ran; 0 for a comparison
        after the last statement.
    formula : str
        The statement as mathematics.
    place : Place
        The place of the statement in the source.
    level : int
        Iteration of the innermost loop, from 0; -1 outside of a loop.
    oracle, other : str
        The two backends, or the two ways to run.
    what : str
        The operation or the part of the result that was compared.
    count : int
        Number of indices that differ.
    rows : tuple of (index, value, value, remark)
        The first `SHOWN` differences; None is no entry. The index of a matrix is (row, column).
    plans : tuple of Plan
        The choice of each backend, for a product.
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
    """One statement of the source, with all its runs.

    Attributes
    ----------
    place : Place
        The place of the statement in the source.
    formula : str
        The formula of the first run.
    rule : str
        How results were compared.
    runs : int
        How often the statement ran.
    chosen : int
        Values for which `any` chose differently from the oracle, over all runs.
    """

    place: Place
    formula: str
    rule: str
    runs: int = 0
    chosen: int = 0

    def __str__(self) -> str:
        times = f"{self.runs:,} x {self.rule}"
        other = f", {self.chosen:,} values chosen differently" if self.chosen else ""
        where = f"{self.place}: " if self.place.file else ""
        return f"{where}{self.place.text or self.formula}: {times}{other}"


@dataclass
class Report:
    """The comparisons of a crosscheck; printed as a short text.

    Attributes
    ----------
    algorithm : str
        Name of the algorithm.
    backends : tuple of str
        Names of the backends, the oracle first.
    statements : int
        Statements that ran and agree.
    iterations : int
        Largest number of iterations of a loop.
    rows : list of Row
        One row for each statement of the source.
    notes : list of str
        Remarks, such as results that were not compared.
    difference : Difference or None
        The first difference, at which the run stopped.
    result : object
        The result of the algorithm on the oracle.
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
        turns = f"{self.iterations:,} iteration{'s' * (self.iterations != 1)}"
        most = f", loops of at most {turns}" if self.iterations else ""
        head = f"{self.algorithm} on {where}: {self.statements:,} statements agree{most}"
        tail = [] if self.difference is None else list(self.difference.lines())
        return "\n".join([head, *(f"  {x}" for x in (*self.rows, *self.notes)), *tail])


# ------------------------------------------------------------------------------------------
# The parts of an algorithm's result: vectors, matrices, arrays, numbers and strings.


_NUMBERS = (bool, int, float, complex, np.generic)


def leaves(x: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield (name, part) of a result; lists, tuples and dicts are taken apart."""
    if isinstance(x, (list, tuple)):
        for k, one in enumerate(x):
            yield from leaves(one, f"{name}[{k}]")
    elif isinstance(x, dict):
        for key, one in x.items():
            yield from leaves(one, f"{name}[{key!r}]")
    elif isinstance(x, (SelectionMatrix, TransposedSelection)):
        yield name, x.stored.operand
    elif isinstance(x, TransposedMatrix):
        yield name, x.stored
    else:
        yield name, x


def can_compare(x: Any) -> bool:
    """Return True if parts like `x` can be compared, unlike generators and an author's objects."""
    if isinstance(x, np.ndarray):
        return not x.dtype.hasobject
    return x is None or isinstance(x, (Vector, Matrix, Scalar, *_NUMBERS, str, bytes))


def entries_of(x: Any) -> Entries | None:
    """Return a part as entries; None if it has no values of lagpu's types."""
    if isinstance(x, Vector):
        return Entries(*x.to_coo(), x.dtype, x.size)
    if isinstance(x, Matrix):
        ptr, idx, values = x.to_csc()
        keys = np.repeat(np.arange(x.ncols), np.diff(ptr)) * x.nrows + idx
        return Entries(keys, values, x.dtype, x.nrows * x.ncols, x.nrows)
    if isinstance(x, Scalar):
        return _number(x.value, x.dtype)
    if not isinstance(x, (np.ndarray, *_NUMBERS)):
        return None
    array = np.asarray(x)
    try:
        dtype = lookup(array.dtype)
    except DomainMismatch:
        return None
    if array.ndim == 0:
        return _number(x, dtype)
    nrows = array.shape[0] if array.ndim == 2 else 0
    values = array.ravel(order="F")  # in the order of the indices of a matrix
    return Entries(np.arange(len(values)), values, dtype, len(values), nrows)


def _number(value: Any, dtype: DType) -> Entries:
    where = np.zeros(int(value is not None), np.int64)
    return Entries(where, np.full(len(where), value or 0, dtype.numpy), dtype, 0)


# ------------------------------------------------------------------------------------------
# Compare two results entry by entry, and report the first indices that differ.


@dataclass(frozen=True)
class Unequal:
    """A forbidden difference of two results; see `Difference` for the rows."""

    count: int
    rows: tuple[Any, ...]


def compare(first: Entries, other: Entries, rule: Rule, by: Written | None) -> Agreement | Unequal:
    """Compare the oracle's entries with another's; `by` is the statement, if the rule needs it."""
    unlike = _unlike(first, other, rule)
    if unlike is not None:
        return unlike
    if by is None or not len(first.indices):
        found = Agreement(~equal(first.values, other.values))
    else:
        found = allowed(rule, first.values, other.values, first.indices, by)
    return _judged(found, first, other)


def compare_choices(first: Entries, other: Entries, rule: Rule, may: Terms) -> Agreement | Unequal:
    """Compare another run's entries with all candidates of `any`, ``at`` their indices."""
    return _unlike(first, other, rule) or _judged(
        one_of(may, first.indices, other.values, rule.tolerance), first, other
    )


def _judged(found: Agreement, first: Entries, other: Entries) -> Agreement | Unequal:
    """Return an agreement, or the rows of its bad entries if there are any."""
    where = np.flatnonzero(found.bad)
    if not len(where):
        return found
    rows = [
        _row(first, i, first.values[i], other.values[i], _remark(found, i)) for i in where[:SHOWN]
    ]
    return Unequal(len(where), tuple(rows))


def _unlike(x: Entries, y: Entries, rule: Rule) -> Unequal | None:
    """Return the difference of types or indices, if any, with values that differ as well."""
    if x.values.dtype != y.values.dtype:
        kinds = f"type {x.values.dtype}", f"type {y.values.dtype}"
        return Unequal(1, ((None, *kinds, ""),))
    if np.array_equal(x.indices, y.indices):
        return None
    both = Entries(
        distinct(np.concatenate([x.indices, y.indices])), x.values[:0], x.dtype, x.size, x.nrows
    )
    (here, a), (there, b) = x.at(both.indices), y.at(both.indices)
    bad = here != there
    if rule == Rule(result=rule.result):
        bad |= ~equal(a, b) & here
    where = np.flatnonzero(bad)
    rows = [
        _row(both, i, a[i] if here[i] else None, b[i] if there[i] else None) for i in where[:SHOWN]
    ]
    return Unequal(len(where), tuple(rows))


def _row(at: Entries, i: Any, x: Any, y: Any, remark: str = "") -> tuple[Any, ...]:
    """Return one line of a difference in Python numbers; a scalar has no index."""
    index: Any = int(at.indices[i]) if at.size else None
    if at.nrows:
        index = index % at.nrows, index // at.nrows
    return index, *(None if value is None else value.item() for value in (x, y)), remark


def _remark(found: Agreement, i: Any) -> str:
    """Return the candidates of `any` in words."""
    if found.terms is None:
        return ""
    values = np.unique(found.terms.values[found.terms.at == i])
    shown = ", ".join(str(x) for x in values[:6].tolist()) + (", ..." if len(values) > 6 else "")
    return f"any may choose one of {shown}" if len(values) else "there was no candidate"
