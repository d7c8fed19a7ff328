"""What met at each index of a result, in NumPy alone: the values among which `any` may choose.

Nothing here asks a backend for more than the contents of an operand, so that what is checked does
not check itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lagpu.backends.base import Applied, Descriptor, Product
from lagpu.dtypes import DType, cast
from lagpu.operators import BinaryOp

__all__ = ["Entries", "HostMatrix", "Terms", "holds", "terms", "written"]

Array = np.ndarray[Any, Any]


class Entries(NamedTuple):
    """A vector on the host.

    Attributes
    ----------
    indices, values : ndarray, (nvals,)
        Its entries, indices rising.
    dtype : DType
        Type of the values.
    size : int
        Its length.
    nrows : int
        Not 0 for a matrix, of which (row, column) is the index ``column * nrows + row``.
    """

    indices: Array
    values: Array
    dtype: DType
    size: int
    nrows: int = 0

    def at(self, where: Array) -> tuple[Array, Array]:
        """Return (whether there is an entry, its value or anything) for each index."""
        if not len(self.indices):
            return np.zeros(len(where), bool), np.zeros(len(where), self.dtype.numpy)
        place = np.minimum(np.searchsorted(self.indices, where), len(self.indices) - 1)
        return self.indices[place] == where, self.values[place]


class HostMatrix:
    """A matrix on the host, compressed by the index of a result that it takes part in.

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
            Which of `where` each entry belongs to, counted from 0; its other index; its value.
        """
        ptr, idx, values = self._form(columns)
        starts = ptr[where].astype(np.int64)
        counts = ptr[where + 1] - starts
        at = np.repeat(np.arange(len(where)), counts)
        ends = np.cumsum(counts)
        chosen = np.arange(len(at)) + np.repeat(starts - (ends - counts), counts)
        return at, idx[chosen].astype(np.int64), np.broadcast_to(values, idx.shape)[chosen]

    def _form(self, columns: bool) -> tuple[Array, Array, Array]:
        if columns not in self._forms:
            ptr, idx, values = self._forms[True]
            places: Any = (np.arange(len(idx)), idx, ptr)  # not the values: 0 would be dropped
            rows = sp.csc_array(places, shape=self.shape).tocsr()
            dense = np.broadcast_to(values, idx.shape)
            self._forms[columns] = rows.indptr, rows.indices, dense[rows.data]
        return self._forms[columns]


class HostSelection:
    """The selection matrix of a vector on the host; as `HostMatrix` to a product."""

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
    """Values that met: value ``values[k]`` at the index ``wanted[at[k]]`` of a result."""

    at: Array
    values: Array


def terms(method: str, args: tuple[Any, ...], wanted: Array, result: DType) -> Terms:
    """Return the values that an operation has at the indices `wanted` of its result.

    Parameters
    ----------
    method : str
        Name of the `Backend` method.
    args : tuple
        Its arguments, vectors as `Entries` and matrices as `HostMatrix`.
    wanted : ndarray of int, (count,)
        Indices of entries of the result, rising.
    result : DType
        Type of the operation's result, before it is written.
    """
    if method == "mxv":
        found = _product_terms(args[0], args[1], args[2], wanted)
    elif method == "mxv_selection":
        found = _product_terms(HostSelection(args[0]), args[1], args[2], wanted)
    elif method == "reduce_vector":
        A, monoid, transpose = args
        at, _, values = A.lines(wanted, transpose)
        found = Terms(at, cast(values, monoid.types(A.dtype)[0]))
    elif method in ("reduce", "matrix_reduce"):
        values = cast(args[0].values, args[1].types(args[0].dtype)[0])
        found = Terms(np.zeros(len(values), np.int64), values)
    elif method.startswith("ewise"):
        found = _both(args[0], args[1], args[2], args[3] if len(args) > 3 else None, wanted)
    elif method == "apply":
        found = _bound(args[0], args[2], wanted)
    else:
        found = _copied(method, args[0], args[1], wanted)
    return Terms(found.at, np.atleast_1d(cast(found.values, result)))


def _product_terms(A: HostMatrix | HostSelection, u: Entries, how: Product, wanted: Array) -> Terms:
    """Return the products ``u[k] (x) A[k, j]``, or ``A[i, k] (x) u[k]``, of each result."""
    at, other, values = A.lines(wanted, how.transpose)
    met, x = u.at(other)
    at, other, x, values = at[met], other[met], x[met], values[met]
    op = how.semiring.multiply
    if op.positional:  # a vector on the left is one row, on the right one column
        index = {"i": 0 if how.flip else wanted[at], "k": other, "j": wanted[at] * how.flip}
        return Terms(at, np.broadcast_to(np.asarray(index[op.positional]), at.shape))
    left, right = (x, values) if how.flip else (values, x)
    return Terms(at, np.atleast_1d(op.evaluate(how.domain, left, right)))


def _both(
    u: Entries, v: Entries, op: BinaryOp, defaults: tuple[Any, Any] | None, wanted: Array
) -> Terms:
    """Return what stands on either side of an element-wise operation."""
    domain, result = op.types(u.dtype, v.dtype)
    at, values = [], []
    for k, side in enumerate((u, v)):
        there, x = side.at(wanted)
        x = cast(x, domain)
        if defaults is not None:
            there, x = np.ones_like(there), np.where(there, x, defaults[k])
        at.append(np.flatnonzero(there))
        values.append(cast(np.atleast_1d(x)[there], result))
    return Terms(np.concatenate(at), np.concatenate(values))


def _bound(u: Entries, how: Applied, wanted: Array) -> Terms:
    """Return entries and the bound operand of an applied operator."""
    _, x = u.at(wanted)
    bound = how.right if how.left is None else how.left
    every = np.arange(len(wanted))
    values = np.concatenate((np.atleast_1d(cast(x, how.domain)), np.full(len(every), bound)))
    return Terms(np.concatenate((every, every)), cast(values, how.result))


def _copied(method: str, source: Any, indices: Array | None, wanted: Array) -> Terms:
    """Return what an assignment or an extraction brings."""
    where = wanted
    every = np.ones(len(wanted), bool)
    if indices is not None and method == "extract":
        where = indices[wanted]
    elif indices is not None:  # assigned: entry k goes to indices[k]
        order = np.argsort(indices)
        place = np.minimum(np.searchsorted(indices, wanted, sorter=order), len(indices) - 1)
        where = order[place] if len(indices) else wanted
        every = np.isin(wanted, indices)
    there, x = (
        (every, np.full(len(wanted), source)) if method == "assign_scalar" else source.at(where)
    )
    there = there & every
    return Terms(np.flatnonzero(there), x[there])


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
    """Return the terms as they stand in the output: accumulated, and cast to its type."""
    at, values = found
    if accum is not None and accum.name == "any":  # what was there may stay
        there, x = old.at(wanted)
        at = np.concatenate((at, np.flatnonzero(there)))
        values = np.concatenate((cast(values, old.dtype), x[there]))
    elif accum is not None:
        there, x = old.at(wanted[at])
        domain, _ = accum.types(old.dtype, result)
        sums = np.atleast_1d(cast(accum.evaluate(domain, x, values), old.dtype))
        values = np.where(there, sums, cast(values, old.dtype))
    return Terms(at, np.atleast_1d(cast(values, old.dtype)))
