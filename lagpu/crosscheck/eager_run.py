"""A backend run eagerly, to compare what it does as it comes with; what `any` chose is followed.

A choice is checked at once. Behind it the value is one of several that are right, and a fused run
may have another: all of them go along with the object, as far as it is only copied on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lagpu.backends.protocol import Backend, Descriptor
from lagpu.crosscheck.candidates import holds
from lagpu.crosscheck.host import Entries, Terms
from lagpu.crosscheck.lockstep import Lockstep
from lagpu.crosscheck.replica import Twin, as_written
from lagpu.crosscheck.report import Report
from lagpu.crosscheck.rules import Rule, Written
from lagpu.dtypes import DType, cast

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
    """The backend; `Twin.may` of what it writes says what other runs may have.

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

    def _write(self, method: str, w: Twin, desc: Descriptor, args: tuple[Any, ...]) -> None:
        past = self._look(method, w, desc, args)
        super()._write(method, w, desc, args)
        w.may = self._possible_now(w, past)

    def _make(self, method: str, args: tuple[Any, ...]) -> Twin:
        past = self._look(method, *as_written(method, args))
        made = super()._make(method, args)
        made.may = self._possible_now(made, past)
        return made

    def _edit(self, method: str, v: Twin, args: tuple[Any, ...]) -> None:
        super()._edit(method, v, args)
        v.may = None

    def _settle(self, w: Twin, method: str, rule: Rule, by: Written | None) -> None:
        self._met = None
        if rule.is_any:  # the choices are checked all the same
            entries = self._entries(w)
            found = self._pair(method, entries, entries, 0, rule, by)
            if found is not None and found.terms is not None:
                w.free |= found.is_free
                self._met = Terms(entries.indices[found.terms.at], found.terms.values)
        super()._settle(w, method, rule, by)

    # ------------------------------------------------------------------- what values may be
    def _look(self, method: str, w: Twin | None, desc: Descriptor, args: tuple[Any, ...]) -> Past:
        source, mask = _copied(method, args, desc), desc.mask
        settled = mask is None or desc.structure or not mask.free
        if source is None:
            settled &= not any(x.free for x in _values_read(method, args))
            settled &= desc.accum is None or w is None or not w.free
        return Past(
            desc,
            None if mask is None else self._entries(mask),
            None if source is None else self._possible(source),
            Terms(np.zeros(0, np.int64), np.zeros(0)) if w is None else self._possible(w),
            settled,
        )

    def _possible(self, x: Twin) -> Terms | None:
        """Return what the values of `x` may be, ``at`` its indices; None if that is not known."""
        if x.free:
            return x.may
        entries = self._entries(x)
        return Terms(entries.indices, entries.values)

    def _possible_now(self, w: Twin, past: Past) -> Terms | None:
        """Return what the values of an output may be, now that it is written."""
        new = past.new if self._met is None else self._met
        if new is None or not (w.free and past.settled):
            return None
        return _after(new, past, self._entries(w).indices, w.dtype)


def _copied(method: str, args: tuple[Any, ...], desc: Descriptor) -> Twin | None:
    """Return the object whose values a method copies to the same indices, or None."""
    whole = method == "assign" and args[1] is None
    if desc.accum is None and (whole or method in ("vector_dup", "matrix_dup", "matrix_write")):
        source: Twin = args[0]
        return source
    return None


def _values_read(method: str, args: tuple[Any, ...]) -> Iterator[Twin]:
    """Yield the operands whose values, not their entries alone, are among what `any` has."""
    if method == "mxv_selection":
        yield args[0]  # row numbers
    if method not in ("mxv", "mxv_selection", "matrix_mxm"):
        yield from (x for x in args if isinstance(x, Twin))
        return
    left, right, how = args[:3]
    if method == "matrix_mxm":
        op = how.multiply
    else:
        left, right = (right, left) if how.flip else (left, right)
        op = how.semiring.multiply
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
