"""The candidates at each index of a result, computed by NumPy: values from which `any` may choose.

A backend only provides the contents of operands, so that no backend checks itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.crosscheck.host import Entries, HostMatrix, HostSelection, Terms
from lagpu.dtypes import DType, cast
from lagpu.operations import (
    Apply,
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
)

__all__ = ["bound", "either", "holds", "sources", "terms", "written"]

Array = np.ndarray[Any, Any]
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
