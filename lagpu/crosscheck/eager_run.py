"""A backend run eagerly, to compare what it does as it comes with; what `any` chose is followed.

A choice is checked at once. Behind it the value is one of several that are right, and a fused run
may have another: all of them go along with the object, as far as it is only copied on.
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

__all__ = ["Alone"]

Array = np.ndarray[Any, Any]


class Past(NamedTuple):
    """What a statement writes, and into what, before it runs.

    Attributes
    ----------
    desc, mask
        How it is written.
    new : Terms or None
        What the copied values may be; None if nothing is copied, or that is not known.
    old : Terms or None
        The same for the output as it was.
    settled : bool
        Whether what is written, or what `any` chooses from, is the same in every run but for `new`.
    """

    desc: Descriptor
    mask: Entries | None
    new: Terms | None
    old: Terms | None
    settled: bool


class Alone(Lockstep):
    """The backend; `Replica.possible` of what it writes says what other runs may have.

    Parameters
    ----------
    place : Backend
        The one to run on.
    report : Report
        As in `Lockstep`.
    """

    def __init__(self, place: Backend, report: Report) -> None:
        super().__init__([place], report)
        self._met: Terms | None = None  # among what `any` chose last

    def _run(self, s: Statement) -> None:
        past = self._look(s)
        super()._run(s)
        s.out.possible = self._possible_now(s.out, past)

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
        settled = of is None or copied is not None or not of.free
        past = Past(Descriptor(), None, copied, nothing, settled)
        made.possible = self._possible_now(made, past)
        return made

    def _edit(self, v: Replica, method: str, run: Callable[[Backend, int], None]) -> None:
        super()._edit(v, method, run)
        v.possible = None

    def _settle(self, w: Replica, method: str, rule: Rule, by: Written | None) -> None:
        self._met = None
        if rule.is_any:  # the choices are checked all the same
            w.host = None
            entries = self._entries(w)
            found = self._pair(method, entries, entries, 0, rule, by)
            if found is not None and found.terms is not None:
                w.free |= found.is_free
                self._met = Terms(entries.indices[found.terms.at], found.terms.values)
        super()._settle(w, method, rule, by)

    # ------------------------------------------------------------------- what values may be
    def _look(self, s: Statement) -> Past:
        source, mask, desc, w = _copied(s), s.desc.mask, s.desc, s.out
        settled = mask is None or desc.structure or not mask.free
        if source is None:
            settled &= not any(x.free for x in _values_read(s.operation))
            settled &= desc.accum is None or not w.free
        return Past(
            desc,
            None if mask is None else self._entries(mask),
            None if source is None else self._possible(source),
            self._possible(w),
            settled,
        )

    def _possible(self, x: Replica) -> Terms | None:
        """Return what the values of `x` may be, ``at`` its indices; None if that is not known."""
        if x.free:
            return x.possible
        entries = self._entries(x)
        return Terms(entries.indices, entries.values)

    def _possible_now(self, w: Replica, past: Past) -> Terms | None:
        """Return what the values of an output may be, now that it is written."""
        new = past.new if self._met is None else self._met
        if new is None or not (w.free and past.settled):
            return None
        return _after(new, past, self._entries(w).indices, w.dtype)


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
    """Yield the operands whose values, not their entries alone, are among what `any` has."""
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


def _after(new: Terms, past: Past, indices: Array, dtype: DType) -> Terms | None:
    """Return what values there may be at the indices of an output: the new ones, or the old."""
    kept = holds(past.mask, past.desc, new.at) & np.isin(new.at, indices)
    at, values = new.at[kept], np.atleast_1d(cast(new.values, dtype))[kept]
    rest = indices[~np.isin(indices, at)]
    if not len(rest):
        return Terms(at, values)
    if past.old is None:
        return None
    stays = np.isin(past.old.at, rest)
    return Terms(np.append(at, past.old.at[stays]), np.append(values, past.old.values[stays]))
