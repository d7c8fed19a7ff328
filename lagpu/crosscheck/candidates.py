"""The values that each statement may give: a slow second evaluator."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lagpu.algebra.operators import BinaryOp, Monoid, Operator
from lagpu.dtypes import DType, cast
from lagpu.operations import (
    Apply,
    Assign,
    AssignScalar,
    BoundOperator,
    Descriptor,
    Ewise,
    Extract,
    ExtractColumn,
    Kronecker,
    Multiply,
    MultiplySelection,
    Operation,
    Product,
    Reduce,
    ReduceRows,
    operands_of,
)

Array = np.ndarray[Any, Any]


class Entries(NamedTuple):
    """A vector on the host.

    Attributes
    ----------
    indices, values : ndarray, (nvals,)
        The entries, indices rising.
    dtype : DType
        Type of the values.
    size : int
        Length of the vector.
    nrows : int
        0 for a vector; for a matrix its rows, where (row, column) has the index
        ``column * nrows + row``.
    """

    indices: Array
    values: Array
    dtype: DType
    size: int
    nrows: int = 0

    def at(self, where: Array) -> tuple[Array, Array]:
        """Return (whether there is an entry, its value or else any value) for each index."""
        if not len(self.indices):
            return np.zeros(len(where), bool), np.zeros(len(where), self.dtype.numpy)
        place = np.minimum(np.searchsorted(self.indices, where), len(self.indices) - 1)
        return self.indices[place] == where, self.values[place]


class HostMatrix:
    """A matrix on the host, compressed by columns or by rows, as a statement needs it.

    Attributes
    ----------
    dtype : DType
        Type of the values.
    shape : tuple of int
        (nrows, ncols).
    """

    def __init__(
        self, csc: tuple[Array, Array, Array], dtype: DType, shape: tuple[int, int]
    ) -> None:
        self.dtype, self.shape = dtype, shape
        self._forms: dict[bool, tuple[Array, Array, Array]] = {True: csc}

    @property
    def values(self) -> Array:
        """Values of all entries, by columns."""
        _, idx, values = self._forms[True]
        return np.broadcast_to(values, idx.shape)

    def lines(self, where: Array, columns: bool) -> tuple[Array, Array, Array]:
        """Return the entries of some columns, or rows.

        Returns
        -------
        at, other, values : ndarray, (entries,)
            The position in `where` of each entry's line; the other index; the value.
        """
        ptr, idx, values = self._form(columns)
        starts = ptr[where].astype(np.int64)
        counts = ptr[where + 1] - starts
        at = np.repeat(np.arange(len(where)), counts)
        ends = np.cumsum(counts)
        chosen = np.arange(len(at)) + np.repeat(starts - (ends - counts), counts)
        return at, idx[chosen].astype(np.int64), np.broadcast_to(values, idx.shape)[chosen]

    def entries(self, transposed: bool = False) -> Entries:
        """Return all entries by index, those of the transpose if `transposed`."""
        ptr, idx, values = self._form(not transposed)
        nrows = self.shape[1 if transposed else 0]
        keys = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)) * nrows + idx
        size = self.shape[0] * self.shape[1]
        return Entries(keys, np.broadcast_to(values, idx.shape), self.dtype, size, nrows)

    def _form(self, columns: bool) -> tuple[Array, Array, Array]:
        if columns not in self._forms:
            ptr, idx, values = self._forms[True]
            places: Any = (np.arange(len(idx)), idx, ptr)  # SciPy would drop values of 0
            rows = sp.csc_array(places, shape=self.shape).tocsr()
            dense = np.broadcast_to(values, idx.shape)
            self._forms[columns] = rows.indptr, rows.indices, dense[rows.data]
        return self._forms[columns]


class HostSelection:
    """The selection matrix of a vector on the host, with the `lines` of a `HostMatrix`."""

    def __init__(self, f: Entries) -> None:
        self._columns, self._rows = f.indices, f.values.astype(np.int64)

    def lines(self, where: Array, columns: bool) -> tuple[Array, Array, Array]:
        """Return the entries of some columns, or rows; see `HostMatrix.lines`."""
        mine, other = self._rows, self._columns
        if columns:
            mine, other = other, mine
        place = np.searchsorted(where, mine)
        inside = place < len(where)
        inside[inside] = where[place[inside]] == mine[inside]
        found = place[inside]
        return found, other[inside], np.ones(len(found), bool)


class Terms(NamedTuple):
    """Candidates: value ``values[k]`` at the index ``wanted[at[k]]`` of a result."""

    at: Array
    values: Array


def nothing(dtype: DType, shape: tuple[int, ...]) -> Entries:
    """Return a vector or a matrix without entries."""
    rows = shape[0] if len(shape) == 2 else 0
    return Entries(np.zeros(0, np.int64), np.zeros(0, dtype.numpy), dtype, math.prod(shape), rows)


# ------------------------------------------------------------------------------------------
# The candidates at each index of a result, computed by NumPy: values from which `any` may choose.
#
# A backend only provides the contents of operands, so that no backend checks itself.


Lookup = tuple[Array, Array]  # at each index, whether there is an entry, and its value


def terms(operation: Operation, wanted: Array, result: DType) -> Terms:
    """Return the candidates of an operation at the indices `wanted` of a vector or a number.

    Parameters
    ----------
    operation : Operation
        An operation whose result is a vector or a number; vectors are `Entries`, matrices
        `HostMatrix`.
    wanted : ndarray of int, (count,)
        Indices of entries of the result, rising.
    result : DType
        Type of the operation's result, before it is written.
    """
    if isinstance(operation, Multiply):
        A, u, product = operation.matrix, operation.operand, operation.product
        found = _product_terms(A, u, product, wanted)
    elif isinstance(operation, MultiplySelection):
        f, u, product = operation
        found = _product_terms(HostSelection(f), u, product, wanted)
    elif isinstance(operation, ReduceRows):
        A, monoid, transposed = operation
        at, _, values = A.lines(wanted, transposed)
        found = Terms(at, cast(values, monoid.types(A.dtype)[0]))
    elif isinstance(operation, Reduce):
        x = operation.operand
        values = cast(x.values, operation.monoid.types(x.dtype)[0])
        found = Terms(np.zeros(len(values), np.int64), values)
    elif isinstance(operation, Ewise):
        u, v = operation.left, operation.right
        found = either(operation, u, v, u.at(wanted), v.at(wanted))
    elif isinstance(operation, Apply):
        found = bound(operation.operand.at(wanted), operation.function)
    else:
        found = _copied(operation, wanted)
    return Terms(found.at, np.atleast_1d(cast(found.values, result)))


def _product_terms(
    A: HostMatrix | HostSelection, u: Entries, product: Product, wanted: Array
) -> Terms:
    """Return the products ``u[k] (x) A[k, j]``, or ``A[i, k] (x) u[k]``, of each result."""
    at, other, values = A.lines(wanted, product.transpose)
    met, x = u.at(other)
    at, other, x, values = at[met], other[met], x[met], values[met]
    op = product.semiring.multiply
    if op.positional:  # a vector on the left is one row, on the right one column
        index = {"i": 0 if product.flip else wanted[at], "k": other, "j": wanted[at] * product.flip}
        return Terms(at, np.broadcast_to(np.asarray(index[op.positional]), at.shape))
    left, right = (x, values) if product.flip else (values, x)
    return Terms(at, np.atleast_1d(op.evaluate(product.domain, left, right)))


def either(operation: Ewise | Kronecker, left: Any, right: Any, x: Lookup, y: Lookup) -> Terms:
    """Return the values of both operands where an element-wise operation has a result.

    Parameters
    ----------
    operation : Ewise or Kronecker
        The operation, with operator, union or intersection, and defaults.
    left, right : Entries or HostMatrix
        The operands, for their types.
    x, y : tuple of ndarray, (count,)
        At each index, whether the operand has an entry, and its value.
    """
    domain, result = operation.op.types(left.dtype, right.dtype)
    on_union = isinstance(operation, Ewise) and operation.kind != "ewise_mult"
    meets = x[0] | y[0] if on_union else x[0] & y[0]
    defaults = operation.defaults if isinstance(operation, Ewise) else None
    at, values = [], []
    for k, (there, value) in enumerate((x, y)):
        value = cast(value, domain)
        if defaults is not None:
            there, value = np.ones_like(there), np.where(there, value, defaults[k])
        there = there & meets
        at.append(np.flatnonzero(there))
        values.append(cast(np.atleast_1d(value)[there], result))
    return Terms(np.concatenate(at), np.concatenate(values))


def bound(x: Lookup, function: BoundOperator) -> Terms:
    """Return the entries and the bound operand of an operator as candidates."""
    other = function.right if function.left is None else function.left
    at = np.flatnonzero(x[0])
    own = np.atleast_1d(cast(x[1], function.domain))[at]
    values = np.concatenate((own, np.full(len(at), other)))
    return Terms(np.concatenate((at, at)), cast(values, function.result))


def _copied(operation: Any, wanted: Array) -> Terms:
    """Return the values of an assignment, an extraction or a selection of entries."""
    if isinstance(operation, ExtractColumn):
        A, j, transposed = operation
        _, rows, values = A.lines(np.array([j]), columns=not transposed)
        there, x = Entries(rows, values, A.dtype, len(wanted)).at(wanted)
        return Terms(np.flatnonzero(there), x[there])
    lists = getattr(operation, "indices", None)
    indices = None if lists is None else lists[0]
    if indices is not None and isinstance(operation, Extract):
        every, where = np.ones(len(wanted), bool), indices[wanted]
    else:
        every, where = sources(indices, wanted)
    if isinstance(operation, AssignScalar):
        there, x = every, np.full(len(wanted), operation.value)
    else:
        there, x = operation.operand.at(where)
    there = there & every
    return Terms(np.flatnonzero(there), x[there])


def sources(indices: Array | None, wanted: Array) -> tuple[Array, Array]:
    """Return (whether an entry is assigned, which) for each index; k goes to ``indices[k]``."""
    if indices is None:
        return np.ones(len(wanted), bool), wanted
    if not len(indices):
        return np.zeros(len(wanted), bool), wanted
    order = np.argsort(indices)
    place = np.minimum(np.searchsorted(indices, wanted, sorter=order), len(indices) - 1)
    return indices[order[place]] == wanted, order[place]


def holds(mask: Entries | None, desc: Descriptor, where: Array) -> Array:
    """Return whether a mask keeps each index."""
    if mask is None:
        return np.ones(len(where), bool)
    there, x = mask.at(where)
    kept: Array = there if desc.structure else there & (x != 0)
    return kept ^ desc.complement


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


# ------------------------------------------------------------------------------------------
# The candidates at each entry of a matrix; see `terms` in `candidates` for vectors.


class Triplets(NamedTuple):
    """The triplets of a matrix on the host; `values` is an array or one scalar."""

    rows: Array
    cols: Array
    values: Any


def matrix_terms(
    operation: Operation | Triplets, wanted: Array, result: DType, nrows: int
) -> Terms:
    """Return the candidates of an operation at the indices `wanted` of its result, a matrix.

    Parameters
    ----------
    operation : Operation or Triplets
        The operation, with matrices as `HostMatrix`.
    wanted : ndarray of int, (count,)
        Indices of entries of the result, rising: ``column * nrows + row``.
    result : DType
        Type of the operation's result, before it is written.
    nrows : int
        Rows of the result.
    """
    if isinstance(operation, Multiply):
        found = _product_terms_candidates_matrix(wanted, nrows, operation)
    elif isinstance(operation, Triplets):
        found = _triplets(wanted, nrows, operation)
    elif isinstance(operation, Kronecker):
        found = _kronecker_terms(wanted, nrows, operation)
    elif isinstance(operation, Ewise):
        A, B = operation.left, operation.right
        x, y = (
            M.entries(transposed).at(wanted)
            for M, transposed in zip((A, B), operation.transposed, strict=True)
        )
        found = either(operation, A, B, x, y)
    elif isinstance(operation, Apply):
        found = bound(operation.operand.entries().at(wanted), operation.function)
    else:
        assert isinstance(operation, (Assign, AssignScalar))  # others are computed, then assigned
        found = _assigned(wanted, nrows, operation)
    return Terms(found.at, np.atleast_1d(cast(found.values, result)))


def _product_terms_candidates_matrix(wanted: Array, nrows: int, operation: Multiply) -> Terms:
    """Return the products ``A[i, k] (x) B[k, j]`` of each result.

    All products are formed, from each entry of `A` and its row of `B`, and the wanted ones kept: so
    a frontier on the left costs only its own entries.
    """
    product, B = operation.product, operation.matrix
    left = operation.operand.entries(operation.transposed)
    i, k = _row_and_column(left.indices, left.nrows)
    at, j, y = B.lines(k, columns=not product.transpose)
    met, place = _among(wanted, j * nrows + i[at])
    at, j, y = at[met], j[met], y[met]
    op = product.semiring.multiply
    if op.positional:
        return Terms(place, {"i": i[at], "k": k[at], "j": j}[op.positional])
    return Terms(place, np.atleast_1d(op.evaluate(product.domain, left.values[at], y)))


def _triplets(wanted: Array, nrows: int, triplets: Triplets) -> Terms:
    """Return the values of the triplets of each entry."""
    rows, cols, values = triplets
    met, place = _among(wanted, cols.astype(np.int64) * nrows + rows)
    return Terms(place, np.broadcast_to(values, len(rows))[met])


def _kronecker_terms(wanted: Array, nrows: int, operation: Kronecker) -> Terms:
    """Return both factors of each entry of a Kronecker product."""
    A, B, _, transposed = operation
    left, right = A.entries(transposed[0]), B.entries(transposed[1])
    i, j = _row_and_column(wanted, nrows)
    height = right.nrows
    width = right.size // height
    x = left.at(j // width * left.nrows + i // height)
    y = right.at(j % width * height + i % height)
    return either(operation, A, B, x, y)


def _assigned(wanted: Array, nrows: int, operation: Assign | AssignScalar) -> Terms:
    """Return the values that are assigned to a matrix or a part of it."""
    rows, cols = operation.indices or (None, None)
    i, j = _row_and_column(wanted, nrows)
    (in_rows, i), (in_cols, j) = sources(rows, i), sources(cols, j)
    inside = in_rows & in_cols
    if isinstance(operation, AssignScalar):
        return Terms(np.flatnonzero(inside), np.full(np.count_nonzero(inside), operation.value))
    source = operation.operand.entries(operation.transposed)
    there, x = source.at(j * source.nrows + i)
    there &= inside
    return Terms(np.flatnonzero(there), x[there])


def _row_and_column(indices: Array, nrows: int) -> tuple[Array, Array]:
    return indices % nrows, indices // nrows


def _among(wanted: Array, keys: Array) -> tuple[Array, Array]:
    """Return (which keys are wanted, the place of each of these keys in `wanted`)."""
    place = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    met = wanted[place] == keys
    return met, place[met]


# ------------------------------------------------------------------------------------------
# The rules by which results of two backends are compared.
#
# Everything is compared exactly, with two exceptions: a value chosen by `any` must be one of the
# candidates, and values rounded in another order must agree within a tolerance.


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
        return _among_rules(rule, x, y, indices, by)
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


def _among_rules(rule: Rule, x: Array, y: Array, indices: Array, by: Written) -> Agreement:
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
