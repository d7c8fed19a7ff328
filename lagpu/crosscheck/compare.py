"""Compare two results entry by entry; a difference comes with its first indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lagpu.crosscheck.host import Entries
from lagpu.crosscheck.report import SHOWN
from lagpu.crosscheck.rules import Agreement, Rule, Written, allowed, equal

__all__ = ["Unequal", "compare"]


@dataclass(frozen=True)
class Unequal:
    """Results that may not differ as they do; see `Difference` for the rows."""

    count: int
    rows: tuple[Any, ...]


def compare(first: Entries, other: Entries, rule: Rule, by: Written | None) -> Agreement | Unequal:
    """Compare the oracle's entries with another's; `by` wrote them, if the rule asks for it."""
    if first.values.dtype != other.values.dtype:
        kinds = f"type {first.values.dtype}", f"type {other.values.dtype}"
        return Unequal(1, ((None, *kinds, ""),))
    if not np.array_equal(first.indices, other.indices):
        return _unlike(first, other, rule)
    if by is None or not len(first.indices):
        found = Agreement(~equal(first.values, other.values))
    else:
        found = allowed(rule, first.values, other.values, first.indices, by)
    where = np.flatnonzero(found.bad)
    if not len(where):
        return found
    rows = [
        _row(first, i, first.values[i], other.values[i], _remark(found, i)) for i in where[:SHOWN]
    ]
    return Unequal(len(where), tuple(rows))


def _unlike(x: Entries, y: Entries, rule: Rule) -> Unequal:
    """Return where one side has no entry, and where values differ that may not."""
    both = Entries(np.union1d(x.indices, y.indices), x.values[:0], x.dtype, x.size, x.nrows)
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
    """Say what `any` could have chosen."""
    if found.terms is None:
        return ""
    values = np.unique(found.terms.values[found.terms.at == i])
    shown = ", ".join(str(x) for x in values[:6].tolist()) + (", ..." if len(values) > 6 else "")
    return f"any may choose one of {shown}" if len(values) else "nothing met here"
