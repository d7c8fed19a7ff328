"""The rules by which two results are compared, and the first indices that differ.

Everything is compared exactly, with two exceptions: a value chosen by `any` must be one of the
candidates, and values rounded in another order must agree within a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import BinaryOp, Monoid, Operator
from lagpu.crosscheck.meaning import Entries, Terms, Triplets, holds, terms, written
from lagpu.dtypes import DType
from lagpu.host.columns import distinct
from lagpu.operations import (
    Apply,
    Descriptor,
    Ewise,
    Kronecker,
    Multiply,
    MultiplySelection,
    Operation,
    Reduce,
    ReduceRows,
    operands_of,
)

Array = np.ndarray[Any, Any]

#: Most indices that a difference lists.
SHOWN = 10

#: Relative to the result, or to the sum of the summands' magnitudes: enough for a thousand terms in
#: any order, and for a few units in the last place of a function.
TOLERANCE = {"FP32": 1e-4, "FP64": 1e-11}

# Functions for which no standard requires correct rounding.
_INEXACT = ("exp", "log")

# Operators that return one of their operands.
_CHOOSING = ("any", "first", "max", "min", "second")

# Operations that add.
_SUMMING = (Multiply, MultiplySelection, Reduce, ReduceRows, Triplets)


class Written(NamedTuple):
    """A statement with its operands on the host."""

    operation: Any  # with vectors as `Entries` and matrices as `HostMatrix`; or `Triplets`
    desc: Descriptor
    mask: Entries | None
    old: Entries  # the output before the statement; empty for a new object


class Rule(NamedTuple):
    """The rule for one result.

    `min` and `max` ignore NaN, and a backend may or may not begin with the identity: so it is a
    second valid sum of only NaN.
    """

    is_any: bool = False  # whether `any` may choose
    tolerance: float = 0.0  # relative; 0 for exact equality
    result: DType | None = None  # type of the operation's result, before it is written
    identity: Any = None
    by: Written | None = None  # the statement, if the rule needs its operands

    def __str__(self) -> str:
        if self.is_any:
            return "any of the candidates"
        return f"within {self.tolerance:g}" if self.tolerance else "exactly"

    @property
    def is_exact(self) -> bool:
        """Whether values must be equal."""
        return not self.is_any and not self.tolerance and self.identity is None


EXACT = Rule()


class Agreement(NamedTuple):
    """The comparison of two results, entry by entry."""

    bad: Array  # whether an entry breaks the rule
    choices: Array | None = None  # the number of different candidates, if `any` may choose
    terms: Terms | None = None  # the candidates

    @property
    def is_free(self) -> bool:
        """Whether `any` could have chosen another value somewhere."""
        return self.choices is not None and bool((self.choices > 1).any())


def rule_of(
    operation: Operation, result: DType, out: DType, desc: Descriptor | None = None
) -> Rule:
    """Return the rule for an operation whose result is written to an output of type `out`."""
    adder, function = _algebra(operation)
    accum = None if desc is None else desc.accum
    if adder is not None:
        is_any = adder.name == "any"
    elif function is not None:
        is_any = function.name == "any"
    else:
        is_any = accum is not None and accum.name == "any"
    kinds = [out, result, *(x.dtype for x in operands_of(operation))]
    floats = {kind.name for kind in kinds if kind.is_float}
    sums = adder is not None and not is_any and not adder.is_exact(result)
    rounds = sums or _is_inexact(function) or _is_inexact(accum)
    passes_nan = adder is not None and adder.name in ("min", "max") and result.is_float
    identity = adder.identity(result) if adder is not None and passes_nan else None
    return Rule(is_any, TOLERANCE[min(floats)] if floats and rounds else 0.0, result, identity)


def rule_of_triplets(op: BinaryOp | None, out: DType) -> Rule:
    """Return the rule for triplets, where `op` combines the values of one entry."""
    if op is None:
        return Rule(result=out)
    rounds = out.is_float and op.name not in _CHOOSING
    return Rule(op.name == "any", TOLERANCE[out.name] if rounds else 0.0, out)


def _algebra(operation: Operation) -> tuple[Monoid | None, Operator | None]:
    """Return (the monoid that adds, the operator of each term) of an operation."""
    if isinstance(operation, (Multiply, MultiplySelection)):
        semiring = operation.product.semiring
        return semiring.monoid, semiring.multiply
    if isinstance(operation, (Reduce, ReduceRows)):
        return operation.monoid, operation.monoid.op
    if isinstance(operation, (Ewise, Kronecker)):
        return None, operation.op
    if isinstance(operation, Apply):
        return None, operation.function.op
    return None, None


def _is_inexact(op: Operator | None) -> bool:
    """Return True if compilers may round an operator differently, as by contracting a user's."""
    return op is not None and (op.name in _INEXACT or bool(op.body))


def equal(x: Any, y: Any) -> Array:
    """Return whether values are equal, where NaN equals NaN."""
    x, y = np.asarray(x), np.asarray(y)
    same = x == y
    return np.asarray(same | ((x != x) & (y != y)) if x.dtype.kind == "f" else same)


def _allowed(rule: Rule, x: Array, y: Array, indices: Array) -> Agreement:
    """Return which values of the oracle and of another backend obey a rule that is not exact."""
    if rule.is_any:
        return _among_candidates(rule, x, y, indices)
    near = _near(x, y, rule.tolerance)
    if rule.identity is not None and x.dtype.kind == "f":
        near |= (x != x) & (y == rule.identity) | (y != y) & (x == rule.identity)
    assert rule.by is not None
    if rule.tolerance and not near.all() and isinstance(rule.by.operation, _SUMMING):
        scale = _magnitude(rule, indices)
        with np.errstate(all="ignore"):
            near |= np.abs(x.astype(float) - y.astype(float)) <= rule.tolerance * scale
    return Agreement(~near)


def _near(x: Array, y: Array, tolerance: float) -> Array:
    """Return whether values are equal, or near relative to the larger one."""
    if not tolerance:
        return equal(x, y)
    a, b = x.astype(float), y.astype(float)
    with np.errstate(all="ignore"):
        close: Array = np.abs(a - b) <= tolerance * np.maximum(np.abs(a), np.abs(b))
    return close | equal(x, y)


def _candidates(rule: Rule, indices: Array) -> tuple[Written, DType, Terms]:
    """Return (the statement, the type of its result, the candidates at some indices)."""
    by, result = rule.by, rule.result
    assert by is not None
    assert result is not None
    return by, result, terms(by.operation, indices, result, by.old.nrows)


def _magnitude(rule: Rule, indices: Array) -> Array:
    """Return the sum of the magnitudes of the summands: rounding errors stay if they cancel."""
    by, _, found = _candidates(rule, indices)
    total = np.bincount(found.at, np.abs(found.values.astype(float)), len(indices))
    if by.desc.accum is not None:
        there, x = by.old.at(indices)
        total += np.where(there, np.abs(x.astype(float)), 0)
    return np.asarray(total)


def _among_candidates(rule: Rule, x: Array, y: Array, indices: Array) -> Agreement:
    """Compare values chosen by `any` with the candidates, and other values exactly."""
    by, result, found = _candidates(rule, indices)
    found = written(found, by.old, by.desc.accum, result, indices)
    free = np.zeros(len(indices), bool)
    free[found.at] = True
    free &= holds(by.mask, by.desc, indices)
    bad = ~free & ~equal(x, y)
    for values in (x, y):
        chosen = np.zeros(len(indices), bool)
        chosen[found.at[_near(found.values, values[found.at], rule.tolerance)]] = True
        bad |= free & ~chosen
    return Agreement(bad, np.where(free, _distinct(found, len(indices)), 1), found)


def one_of(may: Terms, indices: Array, values: Array, tolerance: float) -> Agreement:
    """Return which values are not among the possible ones ``at`` the indices of a result."""
    place = np.searchsorted(indices, may.at)
    met = np.zeros(len(indices), bool)
    met[place[_near(may.values, values[place], tolerance)]] = True
    return Agreement(~met, None, Terms(place, may.values))


def _distinct(found: Terms, count: int) -> Array:
    """Return the number of different candidates at each index, (count,)."""
    order = np.lexsort((found.values, found.at))
    at, values = found.at[order], found.values[order]
    new = np.ones(len(at), bool)
    new[1:] = (at[1:] != at[:-1]) | ~equal(values[1:], values[:-1])
    return np.bincount(at[new], minlength=count)


# ---- two results, entry by entry


@dataclass(frozen=True)
class Unequal:
    """A forbidden difference of two results; see `Difference` for the rows."""

    count: int
    rows: tuple[Any, ...]


def compare(first: Entries, other: Entries, rule: Rule) -> Agreement | Unequal:
    """Compare the oracle's entries with another's."""
    unlike = _unlike(first, other, rule)
    if unlike is not None:
        return unlike
    if rule.by is None or not len(first.indices):
        found = Agreement(~equal(first.values, other.values))
    else:
        found = _allowed(rule, first.values, other.values, first.indices)
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
    if rule.is_exact:
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
