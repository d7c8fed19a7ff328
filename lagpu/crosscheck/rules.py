"""The rules by which results of two backends are compared.

Everything is compared exactly, with two exceptions: a value chosen by `any` must be one of the
candidates, and values rounded in another order must agree within a tolerance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lagpu.algebra.operators import BinaryOp, Monoid, Operator
from lagpu.crosscheck.candidates import holds, terms, written
from lagpu.crosscheck.candidates_matrix import Triplets, matrix_terms
from lagpu.crosscheck.host import Entries, Terms
from lagpu.dtypes import DType
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

__all__ = [
    "TOLERANCE",
    "Agreement",
    "Rule",
    "Written",
    "allowed",
    "equal",
    "one_of",
    "rule_of",
    "rule_of_triplets",
]

Array = np.ndarray[Any, Any]

#: Relative to the result, or to the sum of the summands' magnitudes: enough for a thousand terms in
#: any order, and for a few units in the last place of a function.
TOLERANCE = {"FP32": 1e-4, "FP64": 1e-11}

# Functions for which no standard requires correct rounding.
_INEXACT = ("exp", "log")

# Operators that return one of their operands.
_CHOOSING = ("any", "first", "max", "min", "second")

# Operations that add.
_SUMMING = (Multiply, MultiplySelection, Reduce, ReduceRows, Triplets)


class Rule(NamedTuple):
    """The rule for one result.

    Attributes
    ----------
    is_any : bool
        Whether `any` may choose.
    tolerance : float
        Relative tolerance; 0 for exact equality.
    result : DType or None
        Type of the operation's result, before it is written.
    identity : NumPy scalar or None
        A second valid sum of only NaN: `min` and `max` ignore NaN, and a backend may or may not
        begin with the identity.
    """

    is_any: bool = False
    tolerance: float = 0.0
    result: DType | None = None
    identity: Any = None

    def __str__(self) -> str:
        if self.is_any:
            return "any of the candidates"
        return f"within {self.tolerance:g}" if self.tolerance else "exactly"


class Agreement(NamedTuple):
    """The comparison of two results.

    Attributes
    ----------
    bad : ndarray of bool, (nvals,)
        Entries that break the rule.
    choices : ndarray of int, (nvals,) or None
        The number of different candidates of `any`, if it may choose.
    terms : Terms or None
        The candidates.
    """

    bad: Array
    choices: Array | None = None
    terms: Terms | None = None

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


class Written(NamedTuple):
    """A statement with its operands on the host.

    Attributes
    ----------
    operation : Operation or Triplets
        The operation, with vectors as `Entries` and matrices as `HostMatrix`.
    desc : Descriptor
        How the output was written.
    mask : Entries or None
        The mask.
    old : Entries
        The output before the statement; empty for a new object.
    """

    operation: Any
    desc: Descriptor
    mask: Entries | None
    old: Entries


def allowed(rule: Rule, x: Array, y: Array, indices: Array, by: Written) -> Agreement:
    """Return which values of two results with the same indices obey a rule.

    Parameters
    ----------
    rule : Rule
        A rule of `rule_of` that is not exact.
    x, y : ndarray, (nvals,)
        Values of the oracle and of the other backend.
    indices : ndarray of int, (nvals,)
        Indices of the values, rising.
    by : Written
        The statement that wrote the values.
    """
    if rule.is_any:
        return _among(rule, x, y, indices, by)
    near = _near(x, y, rule.tolerance)
    if rule.identity is not None and x.dtype.kind == "f":
        near |= (x != x) & (y == rule.identity) | (y != y) & (x == rule.identity)
    if rule.tolerance and not near.all() and isinstance(by.operation, _SUMMING):
        scale = _magnitude(rule, indices, by)
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


def _candidates(rule: Rule, indices: Array, by: Written) -> Terms:
    """Return the candidates at indices of the result."""
    assert rule.result is not None
    if by.old.nrows:
        return matrix_terms(by.operation, indices, rule.result, by.old.nrows)
    return terms(by.operation, indices, rule.result)


def _magnitude(rule: Rule, indices: Array, by: Written) -> Array:
    """Return the sum of the magnitudes of the summands: rounding errors stay if they cancel."""
    found = _candidates(rule, indices, by)
    total = np.bincount(found.at, np.abs(found.values.astype(float)), len(indices))
    if by.desc.accum is not None:
        there, x = by.old.at(indices)
        total += np.where(there, np.abs(x.astype(float)), 0)
    return np.asarray(total)


def _among(rule: Rule, x: Array, y: Array, indices: Array, by: Written) -> Agreement:
    """Compare values chosen by `any` with the candidates, and other values exactly."""
    assert rule.result is not None
    found = _candidates(rule, indices, by)
    found = written(found, by.old, by.desc.accum, rule.result, indices)
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
