"""What an operation means: the values NumPy finds possible, and when two results agree."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lagpu import operations as ops
from lagpu.algebra.operators import BinaryOp, Monoid, Operator
from lagpu.dtypes import Array, DType, cast
from lagpu.host.columns import distinct, listed

Lookup = tuple[Array, Array]  # at each index, whether there is an entry, and its value


class Entries(NamedTuple):
    """A vector or a matrix on the host, as rising indices and their values.

    The index of (row, column) is ``column * nrows + row``; `nrows` is 0 for a vector.
    """

    indices: Array
    values: Array
    dtype: DType
    size: int
    nrows: int = 0

    def at(self, where: Array) -> Lookup:
        """Return (whether there is an entry, its value or else any value) for each index."""
        there, place = _find(self.indices, where)
        if not len(self.indices):
            return there, np.zeros(len(where), self.dtype.numpy)
        return there, self.values[place]

    def entries(self, transposed: bool = False) -> Entries:
        return self


def _find(keys: Array, where: Array, order: Array | None = None) -> tuple[Array, Array]:
    """Return (whether each index is one of the keys, the place of this key or else any place)."""
    if not len(keys):
        return np.zeros(len(where), bool), np.zeros(len(where), np.int64)
    place = np.minimum(np.searchsorted(keys, where, sorter=order), len(keys) - 1)
    place = place if order is None else order[place]
    return keys[place] == where, place


def nothing(dtype: DType, shape: tuple[int, ...]) -> Entries:
    rows = shape[0] if len(shape) == 2 else 0
    return Entries(np.zeros(0, np.int64), np.zeros(0, dtype.numpy), dtype, math.prod(shape), rows)


def scalar_entries(value: Any, dtype: DType) -> Entries:
    """Return a number or None as a vector of size 0, whose entry has no index to show."""
    where = np.zeros(int(value is not None), np.int64)
    return Entries(where, np.full(len(where), 0 if value is None else value, dtype.numpy), dtype, 0)


class HostMatrix:
    """A matrix on the host, compressed by columns or by rows, as a statement needs it."""

    def __init__(
        self, csc: tuple[Array, Array, Array], dtype: DType, shape: tuple[int, int]
    ) -> None:
        ptr, idx, values = csc
        self.dtype, self.shape, self.values = dtype, shape, np.broadcast_to(values, idx.shape)
        self._forms: dict[bool, tuple[Array, Array, Array]] = {True: (ptr, idx, self.values)}

    def lines(self, where: Array, columns: bool) -> tuple[Array, Array, Array]:
        """Return (position in `where`, other index, value) of the entries of columns, or rows."""
        ptr, idx, values = self._form(columns)
        counts, chosen = listed(ptr, where)
        at = np.repeat(np.arange(len(where)), counts)
        return at, idx[chosen].astype(np.int64), values[chosen]

    def entries(self, transposed: bool = False) -> Entries:
        """Return all entries by index, those of the transpose if `transposed`."""
        ptr, idx, values = self._form(not transposed)
        nrows = self.shape[1 if transposed else 0]
        keys = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)) * nrows + idx
        return Entries(keys, values, self.dtype, math.prod(self.shape), nrows)

    def _form(self, columns: bool) -> tuple[Array, Array, Array]:
        if columns not in self._forms:
            ptr, idx, values = self._forms[True]
            places: Any = (np.arange(len(idx)), idx, ptr)  # SciPy would drop values of 0
            from scipy.sparse import csc_array  # slow to import

            rows = csc_array(places, shape=self.shape).tocsr()
            self._forms[columns] = rows.indptr, rows.indices, values[rows.data]
        return self._forms[columns]


class HostSelection(NamedTuple):
    """The selection matrix of a vector on the host, with the `lines` of a `HostMatrix`."""

    rows: Entries

    def lines(self, where: Array, columns: bool) -> tuple[Array, Array, Array]:
        """Return the entries of some columns, or rows; `where` rises."""
        mine, other = self.rows.values.astype(np.int64), self.rows.indices
        if columns:
            mine, other = other, mine
        inside, place = _among(where, mine)
        return place, other[inside], np.ones(len(place), bool)


class Triplets(NamedTuple):
    """The triplets of a matrix on the host; `values` is an array or one scalar."""

    rows: Array
    cols: Array
    values: Any


class Terms(NamedTuple):
    """Candidates: value ``values[k]`` at the index ``wanted[at[k]]`` of a result."""

    at: Array
    values: Array


def _terms(operation: Any, wanted: Array, nrows: int) -> Terms:
    """Return the candidates of an operation at some rising indices of its result.

    The operation may be `Triplets`; operands are `Entries` and `HostMatrix`. `nrows` are the rows
    of the result; 0 for a vector or a number.
    """
    match operation:
        case ops.Multiply() | ops.MultiplySelection():
            return _products(operation, wanted, nrows)
        case Triplets(rows, cols, values):
            inside, place = _among(wanted, cols.astype(np.int64) * nrows + rows)
            return Terms(place, np.broadcast_to(values, len(rows))[inside])
        case ops.ReduceRows(A, monoid, transposed):
            at, _, values = A.lines(wanted, transposed)
            return Terms(at, cast(values, monoid.types(A.dtype)[0]))
        case ops.Reduce(x, monoid):
            values = cast(x.values, monoid.types(x.dtype)[0])
            return Terms(np.zeros(len(values), np.int64), values)
        case ops.Ewise():
            sides = zip((operation.left, operation.right), operation.transposed, strict=True)
            return _either(operation, *(x.entries(flipped).at(wanted) for x, flipped in sides))
        case ops.Kronecker(A, B, _, transposed):
            left, right = A.entries(transposed[0]), B.entries(transposed[1])
            i, j = wanted % nrows, wanted // nrows
            height = right.nrows
            width = right.size // height
            x = left.at(j // width * left.nrows + i // height)
            return _either(operation, x, right.at(j % width * height + i % height))
        case ops.Apply(x, function):
            return _bound(x.entries().at(wanted), function)
        case ops.ExtractColumn(A, j, transposed):
            _, rows, values = A.lines(np.array([j]), columns=not transposed)
            return _there(Entries(rows, values, A.dtype, len(wanted)).at(wanted))
        case ops.Extract(x, lists):
            indices = None if lists is None else lists[0]
            return _there(x.at(wanted if indices is None else indices[wanted]))
        case ops.Select(x):
            return _there(x.at(wanted))
        case _:
            return _assigned(operation, wanted, nrows)


def _there(found: Lookup) -> Terms:
    at = np.flatnonzero(found[0])
    return Terms(at, found[1][at])


def _products(operation: ops.Multiply | ops.MultiplySelection, wanted: Array, nrows: int) -> Terms:
    """Return the products ``x[i, k] (x) y[k, j]`` of each result.

    All products are formed, from each entry of the operand and its row of the matrix, and the
    wanted ones kept: so a frontier costs only its own entries.
    """
    product, operand = operation.product, operation.operand
    if isinstance(operation, ops.Multiply):
        matrix, operand = operation.matrix, operand.entries(operation.transposed)
    else:
        matrix = HostSelection(operation.indices)
    i, k = operand.indices % (operand.nrows or 1), operand.indices // (operand.nrows or 1)
    at, j, y = matrix.lines(k, columns=not product.transpose)
    inside, place = _among(wanted, j * (nrows or 1) + i[at])
    at = at[inside]
    i, k, j, x, y = i[at], k[at], j[inside], operand.values[at], y[inside]
    if not (nrows or product.flip):  # a vector on the right is one column
        i, j, x, y = j, i, y, x
    op = product.semiring.multiply
    if op.positional:
        return Terms(place, {"i": i, "k": k, "j": j}[op.positional])
    return Terms(place, np.atleast_1d(op.evaluate(product.domain, x, y)))


def _either(operation: ops.Ewise | ops.Kronecker, x: Lookup, y: Lookup) -> Terms:
    """Return the values of both operands where an element-wise operation has a result."""
    domain, result = operation.op.types(operation.left.dtype, operation.right.dtype)
    on_union = isinstance(operation, ops.Ewise) and operation.kind != "ewise_mult"
    meets = x[0] | y[0] if on_union else x[0] & y[0]
    defaults = operation.defaults if isinstance(operation, ops.Ewise) else None
    at, values = [], []
    for k, (there, value) in enumerate((x, y)):
        value = cast(value, domain)
        if defaults is not None:
            there, value = np.ones_like(there), np.where(there, value, defaults[k])
        there = there & meets
        at.append(np.flatnonzero(there))
        values.append(cast(np.atleast_1d(value)[there], result))
    return Terms(np.concatenate(at), np.concatenate(values))


def _bound(x: Lookup, function: ops.BoundOperator) -> Terms:
    """Return the entries and the bound operand of an operator as candidates."""
    other = function.right if function.left is None else function.left
    at = np.flatnonzero(x[0])
    own = np.atleast_1d(cast(x[1], function.domain))[at]
    values = np.concatenate((own, np.full(len(at), other)))
    return Terms(np.concatenate((at, at)), cast(values, function.result))


def _assigned(operation: ops.Assign | ops.AssignScalar, wanted: Array, nrows: int) -> Terms:
    where = (wanted % nrows, wanted // nrows) if nrows else (wanted,)
    lists = operation.indices or (None,) * len(where)
    inside, places = zip(*map(_sources, lists, where), strict=True)
    if isinstance(operation, ops.AssignScalar):
        there, x = np.ones(len(wanted), bool), np.full(len(wanted), operation.value)
    else:
        source = operation.operand.entries(operation.transposed)
        there, x = source.at(places[-1] * source.nrows + places[0] if nrows else places[0])
    return _there((np.logical_and.reduce((there, *inside)), x))


def _sources(indices: Array | None, wanted: Array) -> Lookup:
    """Return (whether an entry is assigned, which) for each index; k goes to ``indices[k]``."""
    if indices is None:
        return np.ones(len(wanted), bool), wanted
    return _find(indices, wanted, np.argsort(indices))


def _among(wanted: Array, keys: Array) -> tuple[Array, Array]:
    """Return (which keys are wanted, the place of each of these keys in `wanted`)."""
    inside, place = _find(wanted, keys)
    return inside, place[inside]


def holds(mask: Entries | None, desc: ops.Descriptor, where: Array) -> Array:
    """Return whether a mask keeps each index."""
    if mask is None:
        return np.ones(len(where), bool)
    there, x = mask.at(where)
    return (there if desc.structure else there & (x != 0)) ^ desc.complement


def written(
    found: Terms, old: Entries, accum: BinaryOp | None, result: DType, wanted: Array
) -> Terms:
    """Return the terms as written to the output: accumulated, and cast to its type."""
    at, values = found
    if accum is not None and accum.name == "any":  # the old value may stay
        there, x = old.at(wanted)
        at = np.concatenate((at, np.flatnonzero(there)))
        values = np.concatenate((cast(values, old.dtype), x[there]))
    elif accum is not None:
        there, x = old.at(wanted[at])
        domain, _ = accum.types(old.dtype, result)
        sums = np.atleast_1d(cast(accum.evaluate(domain, x, values), old.dtype))
        values = np.where(there, sums, cast(values, old.dtype))
    return Terms(at, np.atleast_1d(cast(values, old.dtype)))


# ---- the rules by which two results are compared, and the first indices that differ
#
# Everything is compared exactly, with two exceptions: a value chosen by `any` must be one of the
# candidates, and values rounded in another order must agree within a tolerance.

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
_SUMMING = (ops.Multiply, ops.MultiplySelection, ops.Reduce, ops.ReduceRows, Triplets)


class Written(NamedTuple):
    """A statement with its operands on the host."""

    operation: Any  # with vectors as `Entries` and matrices as `HostMatrix`; or `Triplets`
    desc: ops.Descriptor
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
    scale: Any = None  # the magnitudes to which the tolerance is relative, if not those of `by`

    def __str__(self) -> str:
        if self.is_any:
            return "any of the candidates"
        return f"within {self.tolerance:g}" if self.tolerance else "exactly"

    @property
    def is_exact(self) -> bool:
        """Whether values must be equal."""
        return not self.is_any and not self.tolerance and self.identity is None

    @property
    def is_sum(self) -> bool:
        """Whether rounding errors are relative to the summands of the statement."""
        sums = self.by is not None and isinstance(self.by.operation, _SUMMING)
        return bool(self.tolerance) and sums


EXACT = Rule()


class Agreement(NamedTuple):
    """The comparison of two results, entry by entry."""

    bad: Array  # whether an entry breaks the rule
    choices: Array | None = None  # the number of different candidates, if `any` may choose
    terms: Terms | None = None  # the candidates
    many: int = 0  # how many break it, and the first of them; see `Difference`
    rows: tuple[Any, ...] = ()

    @property
    def is_free(self) -> bool:
        return self.choices is not None and bool((self.choices > 1).any())


def rule_of(
    operation: ops.Operation, result: DType, out: DType, desc: ops.Descriptor | None = None
) -> Rule:
    """Return the rule for an operation whose result is written to an output of type `out`."""
    adder, function = _algebra(operation)
    accum = None if desc is None else desc.accum
    choosing = next((op for op in (adder, function, accum) if op is not None), None)
    is_any = choosing is not None and choosing.name == "any"
    kinds = [out, result, *(x.dtype for x in ops.operands_of(operation))]
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


def _algebra(operation: ops.Operation) -> tuple[Monoid | None, Operator | None]:
    """Return (the monoid that adds, the operator of each term) of an operation."""
    if isinstance(operation, (ops.Multiply, ops.MultiplySelection)):
        semiring = operation.product.semiring
        return semiring.monoid, semiring.multiply
    if isinstance(operation, (ops.Reduce, ops.ReduceRows)):
        return operation.monoid, operation.monoid.op
    if isinstance(operation, (ops.Ewise, ops.Kronecker)):
        return None, operation.op
    return None, operation.function.op if isinstance(operation, ops.Apply) else None


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
    if not near.all() and (rule.is_sum or rule.scale is not None):
        scale = magnitude(rule, indices) if rule.scale is None else rule.scale
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
    found = _terms(by.operation, indices, by.old.nrows)
    return by, result, Terms(found.at, np.atleast_1d(cast(found.values, result)))


def magnitude(rule: Rule, indices: Array) -> Array:
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
        bad |= free & ~_chosen(found, values, rule.tolerance)
    return Agreement(bad, np.where(free, _distinct(found, len(indices)), 1), found)


def _chosen(found: Terms, values: Array, tolerance: float) -> Array:
    chosen = np.zeros(len(values), bool)
    chosen[found.at[_near(found.values, values[found.at], tolerance)]] = True
    return chosen


def _distinct(found: Terms, count: int) -> Array:
    order = np.lexsort((found.values, found.at))
    at, values = found.at[order], found.values[order]
    new = np.ones(len(at), bool)
    new[1:] = (at[1:] != at[:-1]) | ~equal(values[1:], values[:-1])
    return np.bincount(at[new], minlength=count)


# ---- two results, entry by entry
def compare(first: Entries, other: Entries, rule: Rule, may: Terms | None = None) -> Agreement:
    """Compare the oracle's entries with another's, or with all candidates of `any`."""
    unlike = _unlike(first, other, rule)
    if unlike is not None:
        return unlike
    if may is not None:
        may = Terms(np.searchsorted(first.indices, may.at), may.values)
        found = Agreement(~_chosen(may, other.values, rule.tolerance), None, may)
    elif (rule.by is None and rule.scale is None) or not len(first.indices):
        found = Agreement(~equal(first.values, other.values))
    else:
        found = _allowed(rule, first.values, other.values, first.indices)
    where = np.flatnonzero(found.bad)
    x, y = first.values, other.values
    rows = (_row(first, i, x[i], y[i], _remark(found, i)) for i in where[:SHOWN])
    return found._replace(many=len(where), rows=tuple(rows))


def _unlike(x: Entries, y: Entries, rule: Rule) -> Agreement | None:
    """Return the difference of types or indices, if any, with values that differ as well."""
    if x.values.dtype != y.values.dtype:
        kinds = f"type {x.values.dtype}", f"type {y.values.dtype}"
        return Agreement(np.ones(1, bool), many=1, rows=((None, *kinds, ""),))
    if np.array_equal(x.indices, y.indices):
        return None
    both = x._replace(indices=distinct(np.concatenate([x.indices, y.indices])))
    (here, a), (there, b) = x.at(both.indices), y.at(both.indices)
    bad = here != there
    if rule.is_exact:
        bad |= ~equal(a, b) & here
    where = np.flatnonzero(bad)
    pairs = ((i, a[i] if here[i] else None, b[i] if there[i] else None) for i in where[:SHOWN])
    return Agreement(bad, many=len(where), rows=tuple(_row(both, *pair) for pair in pairs))


def _row(at: Entries, i: Any, x: Any, y: Any, remark: str = "") -> tuple[Any, ...]:
    index: Any = int(at.indices[i]) if at.size else None
    if at.nrows:
        index = index % at.nrows, index // at.nrows
    return index, *(None if value is None else value.item() for value in (x, y)), remark


def _remark(found: Agreement, i: Any) -> str:
    if found.terms is None:
        return ""
    values = np.unique(found.terms.values[found.terms.at == i])
    shown = ", ".join(str(x) for x in values[:6].tolist()) + (", ..." if len(values) > 6 else "")
    return f"any may choose one of {shown}" if len(values) else "there was no candidate"
