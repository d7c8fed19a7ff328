"""Compare two results entry by entry, and report the first indices that differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lagpu.crosscheck.host import Entries, Terms
from lagpu.crosscheck.report import SHOWN
from lagpu.crosscheck.rules import Agreement, Rule, Written, allowed, equal, one_of
from lagpu.host.sorting import distinct

__all__ = ["Unequal", "compare", "compare_choices"]


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
