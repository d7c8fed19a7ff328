"""What an operation means: the values that NumPy finds possible at each index of a result.

Backends only provide the contents of operands, so none of them checks itself.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lagpu.algebra.operators import BinaryOp
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
    Reduce,
    ReduceRows,
    Select,
)

Array = np.ndarray[Any, Any]
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
        if not len(self.indices):
            return np.zeros(len(where), bool), np.zeros(len(where), self.dtype.numpy)
        place = np.minimum(np.searchsorted(self.indices, where), len(self.indices) - 1)
        return self.indices[place] == where, self.values[place]

    def entries(self, transposed: bool = False) -> Entries:
        """Return the vector itself; see `HostMatrix.entries`."""
        return self


def nothing(dtype: DType, shape: tuple[int, ...]) -> Entries:
    """Return a vector or a matrix without entries."""
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
        self.dtype, self.shape = dtype, shape
        self._forms: dict[bool, tuple[Array, Array, Array]] = {True: csc}

    @property
    def values(self) -> Array:
        """Values of all entries, by columns."""
        _, idx, values = self._forms[True]
        return np.broadcast_to(values, idx.shape)

    def lines(self, where: Array, columns: bool) -> tuple[Array, Array, Array]:
        """Return (position in `where`, other index, value) of the entries of columns, or rows."""
        ptr, idx, values = self._form(columns)
        starts = ptr[where].astype(np.int64)
        counts = ptr[where + 1] - starts
        at = np.repeat(np.arange(len(where)), counts)
        chosen = np.arange(len(at)) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
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


class HostSelection(NamedTuple):
    """The selection matrix of a vector on the host, with the `lines` of a `HostMatrix`."""

    rows: Entries

    def lines(self, where: Array, columns: bool) -> tuple[Array, Array, Array]:
        """Return the entries of some columns, or rows; `where` rises."""
        mine, other = self.rows.values.astype(np.int64), self.rows.indices
        if columns:
            mine, other = other, mine
        met, place = _among(where, mine)
        return place, other[met], np.ones(len(place), bool)


class Triplets(NamedTuple):
    """The triplets of a matrix on the host; `values` is an array or one scalar."""

    rows: Array
    cols: Array
    values: Any


class Terms(NamedTuple):
    """Candidates: value ``values[k]`` at the index ``wanted[at[k]]`` of a result."""

    at: Array
    values: Array


def terms(operation: Operation | Triplets, wanted: Array, result: DType, nrows: int = 0) -> Terms:
    """Return the candidates of an operation at some rising indices of its result.

    Operands are `Entries` and `HostMatrix`. `result` is the type of the result before it is
    written, `nrows` its rows; 0 for a vector or a number.
    """
    found = _terms(operation, wanted, nrows)
    return Terms(found.at, np.atleast_1d(cast(found.values, result)))


def _terms(operation: Any, wanted: Array, nrows: int) -> Terms:
    match operation:
        case Multiply() | MultiplySelection():
            return _products(operation, wanted, nrows)
        case Triplets(rows, cols, values):
            met, place = _among(wanted, cols.astype(np.int64) * nrows + rows)
            return Terms(place, np.broadcast_to(values, len(rows))[met])
        case ReduceRows(A, monoid, transposed):
            at, _, values = A.lines(wanted, transposed)
            return Terms(at, cast(values, monoid.types(A.dtype)[0]))
        case Reduce(x, monoid):
            values = cast(x.values, monoid.types(x.dtype)[0])
            return Terms(np.zeros(len(values), np.int64), values)
        case Ewise():
            sides = zip((operation.left, operation.right), operation.transposed, strict=True)
            return _either(operation, *(x.entries(flipped).at(wanted) for x, flipped in sides))
        case Kronecker(A, B, _, transposed):
            left, right = A.entries(transposed[0]), B.entries(transposed[1])
            i, j = wanted % nrows, wanted // nrows
            height = right.nrows
            width = right.size // height
            return _either(
                operation,
                left.at(j // width * left.nrows + i // height),
                right.at(j % width * height + i % height),
            )
        case Apply(x, function):
            return _bound(x.entries().at(wanted), function)
        case ExtractColumn(A, j, transposed):
            _, rows, values = A.lines(np.array([j]), columns=not transposed)
            return _there(Entries(rows, values, A.dtype, len(wanted)).at(wanted))
        case Extract(x, lists):
            indices = None if lists is None else lists[0]
            return _there(x.at(wanted if indices is None else indices[wanted]))
        case Select(x):
            return _there(x.at(wanted))
        case _:
            return _assigned(operation, wanted, nrows)


def _there(found: Lookup) -> Terms:
    at = np.flatnonzero(found[0])
    return Terms(at, found[1][at])


def _products(operation: Multiply | MultiplySelection, wanted: Array, nrows: int) -> Terms:
    """Return the products ``x[i, k] (x) y[k, j]`` of each result.

    All products are formed, from each entry of the operand and its row of the matrix, and the
    wanted ones kept: so a frontier costs only its own entries.
    """
    product, operand = operation.product, operation.operand
    if isinstance(operation, Multiply):
        matrix, operand = operation.matrix, operand.entries(operation.transposed)
    else:
        matrix = HostSelection(operation.indices)
    i, k = operand.indices % (operand.nrows or 1), operand.indices // (operand.nrows or 1)
    at, j, y = matrix.lines(k, columns=not product.transpose)
    met, place = _among(wanted, j * (nrows or 1) + i[at])
    i, k, j, x, y = i[at][met], k[at][met], j[met], operand.values[at][met], y[met]
    if not (nrows or product.flip):  # a vector on the right is one column
        i, j, x, y = j, i, y, x
    op = product.semiring.multiply
    if op.positional:
        return Terms(place, {"i": i, "k": k, "j": j}[op.positional])
    return Terms(place, np.atleast_1d(op.evaluate(product.domain, x, y)))


def _either(operation: Ewise | Kronecker, x: Lookup, y: Lookup) -> Terms:
    """Return the values of both operands where an element-wise operation has a result."""
    domain, result = operation.op.types(operation.left.dtype, operation.right.dtype)
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


def _bound(x: Lookup, function: BoundOperator) -> Terms:
    """Return the entries and the bound operand of an operator as candidates."""
    other = function.right if function.left is None else function.left
    at = np.flatnonzero(x[0])
    own = np.atleast_1d(cast(x[1], function.domain))[at]
    values = np.concatenate((own, np.full(len(at), other)))
    return Terms(np.concatenate((at, at)), cast(values, function.result))


def _assigned(operation: Assign | AssignScalar, wanted: Array, nrows: int) -> Terms:
    """Return the values that are assigned to a vector, a matrix or a part of it."""
    where = (wanted % nrows, wanted // nrows) if nrows else (wanted,)
    lists = operation.indices or (None,) * len(where)
    inside, places = zip(*map(_sources, lists, where), strict=True)
    if isinstance(operation, AssignScalar):
        there, x = np.ones(len(wanted), bool), np.full(len(wanted), operation.value)
    else:
        source = operation.operand.entries(operation.transposed)
        there, x = source.at(places[-1] * source.nrows + places[0] if nrows else places[0])
    return _there((np.logical_and.reduce((there, *inside)), x))


def _sources(indices: Array | None, wanted: Array) -> Lookup:
    """Return (whether an entry is assigned, which) for each index; k goes to ``indices[k]``."""
    if indices is None:
        return np.ones(len(wanted), bool), wanted
    if not len(indices):
        return np.zeros(len(wanted), bool), wanted
    order = np.argsort(indices)
    place = np.minimum(np.searchsorted(indices, wanted, sorter=order), len(indices) - 1)
    return indices[order[place]] == wanted, order[place]


def _among(wanted: Array, keys: Array) -> tuple[Array, Array]:
    """Return (which keys are wanted, the place of each of these keys in `wanted`)."""
    if not len(wanted):
        return np.zeros(len(keys), bool), np.zeros(0, np.int64)
    place = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    met = wanted[place] == keys
    return met, place[met]


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
