"""What met at each index of a result, in NumPy alone: the values among which `any` may choose.

Nothing here asks a backend for more than the contents of an operand, so that what is checked does
not check itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.protocol import Applied, Descriptor, Product
from lagpu.crosscheck.host import Entries, HostMatrix, HostSelection, Terms
from lagpu.dtypes import DType, cast

__all__ = ["bound", "either", "holds", "sources", "terms", "written"]

Array = np.ndarray[Any, Any]
Sight = tuple[Array, Array]  # at each index, whether there is an entry, and its value


def terms(method: str, args: tuple[Any, ...], wanted: Array, result: DType) -> Terms:
    """Return the values that an operation has at the indices `wanted` of its result.

    Parameters
    ----------
    method : str
        Name of the `Backend` method, which writes a vector or returns a number.
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
        u, v, op, *defaults = args
        found = either(op, u, v, u.at(wanted), v.at(wanted), *defaults)
    elif method == "apply":
        found = bound(args[0].at(wanted), args[2])
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


def either(op: BinaryOp, left: Any, right: Any, x: Sight, y: Sight, defaults: Any = None) -> Terms:
    """Return what stands on either side of an element-wise operation.

    Parameters
    ----------
    op : BinaryOp
        The operator, which gives the types.
    left, right : Entries or HostMatrix
        The operands, for their types.
    x, y : tuple of ndarray, (count,)
        At each index, whether the operand has an entry, and its value.
    defaults : tuple, optional
        What stands for a missing entry.
    """
    domain, result = op.types(left.dtype, right.dtype)
    at, values = [], []
    for k, (there, value) in enumerate((x, y)):
        value = cast(value, domain)
        if defaults is not None:
            there, value = np.ones_like(there), np.where(there, value, defaults[k])
        at.append(np.flatnonzero(there))
        values.append(cast(np.atleast_1d(value)[there], result))
    return Terms(np.concatenate(at), np.concatenate(values))


def bound(x: Sight, how: Applied) -> Terms:
    """Return entries and the bound operand of an applied operator."""
    other = how.right if how.left is None else how.left
    every = np.arange(len(x[1]))
    values = np.concatenate((np.atleast_1d(cast(x[1], how.domain)), np.full(len(every), other)))
    return Terms(np.concatenate((every, every)), cast(values, how.result))


def _copied(method: str, source: Any, indices: Array | None, wanted: Array) -> Terms:
    """Return what an assignment or an extraction brings."""
    if indices is not None and method == "extract":
        every, where = np.ones(len(wanted), bool), indices[wanted]
    else:
        every, where = sources(indices, wanted)
    there, x = (
        (every, np.full(len(wanted), source)) if method == "assign_scalar" else source.at(where)
    )
    there = there & every
    return Terms(np.flatnonzero(there), x[there])


def sources(indices: Array | None, wanted: Array) -> tuple[Array, Array]:
    """Return (whether one is assigned, which) for each index: entry k goes to ``indices[k]``."""
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
