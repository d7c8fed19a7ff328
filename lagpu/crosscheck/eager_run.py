"""Crosscheck of a single backend: the eager run, with which its fused run is compared.

A value chosen by `any` is checked at once. Several values may be right, and a fused run may choose
another: all of them are stored with the object, and with its copies, until a statement computes
with the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.protocol import Backend
from lagpu.crosscheck.candidates import holds
from lagpu.crosscheck.host import Entries, Terms
from lagpu.crosscheck.lockstep import Lockstep
from lagpu.crosscheck.replica import Replica, replicas_in
from lagpu.crosscheck.report import Report
from lagpu.crosscheck.rules import Rule, Written
from lagpu.dtypes import DType, cast
from lagpu.operations import (
    Assign,
    Descriptor,
    Multiply,
    MultiplySelection,
    Operation,
    Statement,
)

__all__ = ["SingleBackend"]

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
