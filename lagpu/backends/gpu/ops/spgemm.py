"""Products of matrices: expansion, sorting and compression; under a mask perhaps dot products."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, Monoid
from lagpu.algebra.tables import monoid
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.ops import masked
from lagpu.backends.gpu.ops.masked import macros_of_two
from lagpu.backends.gpu.ops.pattern import at_positions, positions, require_numbered
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.storage.forms import from_coo, take_true
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.workspaces import index_ctype
from lagpu.dtypes import DType
from lagpu.operations import Descriptor, Product

Array = Any


#: The part of its arrays that each kernel moves, by the kernel's name (docs/design/trace.md).
TRAFFIC: dict[str, dict[str, tuple[str, float]]] = {
    "sum_products": dict.fromkeys(("a_values", "b_values", "b_rows"), ("edges", 1.0)),
    **masked.TRAFFIC,
}


def mxm(
    A: masked.Left,
    B: CscMatrix,
    product: Product,
    desc: Descriptor,
    edges: Array | None = None,
) -> tuple[CscMatrix | masked.AtMask, Plan]:
    """Return ``A (+.x) B`` and how it was made.

    With a mask that is not complemented, the dot product of a row and a column for each entry of
    the mask may take fewer steps than all products. `edges`, unless None, gets the number of
    matrix entries that are looked at.
    """
    require_numbered((A.nrows, B.shape[1]))
    mask = desc.mask
    if mask is not None and not desc.structure:
        mask = take_true(mask)
    if mask is None or desc.complement:
        all_ = masked.count_products(A, B)
        found = _plan(all_)
    else:
        all_, steps = masked.count_steps(A, B, mask)
        if steps.total <= masked.OF_A_PRODUCT * all_:
            made = masked.dot_products(A.by_rows(), B, mask, product, steps, edges)
            return made, masked.plan(steps, all_)
        why = "{} x products {} < steps of dot products at the mask's entries {}"
        numbers = masked.OF_A_PRODUCT, all_, steps.total
        found = _plan(all_)._replace(why=(why, *numbers))
    if edges is not None:
        edges.fill(all_)
    return _all(A.by_columns(), B, product, mask, desc.complement), found


def plan(A: masked.Left, B: CscMatrix) -> Plan:
    """Return how ``A (+.x) B`` would be made without a mask."""
    return _plan(masked.count_products(A, B))


def _plan(count: int) -> Plan:
    return Plan("", "sum_products", ("products {}, listed and sorted", count))


def _all(
    A: CscMatrix,
    B: CscMatrix,
    product: Product,
    mask: CscMatrix | None,
    complement: bool,
) -> CscMatrix:
    """List every product, sort those that the mask keeps by entry, add each run."""
    xp, shape = A.device.xp, (A.shape[0], B.shape[1])
    counts = xp.diff(A.col_ptr).astype(np.int64)[B.row_idx]
    A.device.require(int(counts.sum()) * 64, "mxm", "Give a mask, or take fewer rows at a time.")
    b, a = _expanded(xp, A.col_ptr[B.row_idx].astype(np.int64), counts)
    key = B.columns()[b] * np.int64(shape[0]) + A.row_idx[a]
    if mask is not None:
        kept = xp.flatnonzero(xp.isin(key, positions(mask)) != complement)
        a, b, key = a[kept], b[kept], key[kept]
    order = xp.argsort(key, kind="stable")
    key = key[order]
    first = xp.ones(len(key), bool)
    first[1:] = key[1:] != key[:-1]
    starts = xp.flatnonzero(first)
    semiring, types = product.semiring, (product.domain, product.result)
    pairs = a[order], b[order], starts, key[starts]
    return _summed(A, B, *pairs, shape, semiring.monoid, semiring.multiply, types)


def _expanded(xp: Any, starts: Array, counts: Array) -> tuple[Array, Array]:
    """Return for ``counts[k]`` places from ``starts[k]`` on, for each k in turn: k, the place."""
    ends = xp.cumsum(counts)
    total = xp.arange(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
    owner = xp.searchsorted(ends, total, side="right")
    return owner, starts[owner] + total - (ends - counts)[owner]


def _summed(
    A: CscMatrix,
    B: CscMatrix,
    a: Array,
    b: Array,
    starts: Array,
    where: Array,
    shape: tuple[int, int],
    add: Monoid,
    multiply: BinaryOp,
    types: tuple[DType, DType],
) -> CscMatrix:
    """Return the matrix of the runs of products that begin at `starts`, at positions `where`."""
    xp, (domain, result) = A.device.xp, types
    macros, prelude = macros_of_two(A, B, add, multiply, domain, result)
    bidx = index_ctype(B.row_idx)
    run = kernel("spgemm/mxm.cu", "sum_products", prelude=prelude, BIDX=bidx, **macros)
    values = xp.empty(len(starts), result.numpy)
    bounds = xp.append(starts, len(a)).astype(np.int64)
    cols = where // max(shape[0], 1)
    rows = where - cols * max(shape[0], 1)
    A.device.launch(
        run, len(starts), runs=len(starts), starts=bounds, a=a, b=b,
        a_values=A.values, a_iso=A.number, b_values=B.values, b_iso=B.number,
        b_rows=B.row_idx, rows=rows, cols=cols, z=values,
    )  # fmt: skip
    return at_positions(A.device, result, shape, where, values, None)


def kronecker(A: CscMatrix, B: CscMatrix, op: BinaryOp) -> CscMatrix:
    """Return a block ``A[i, j] (x) B`` for each entry of `A`."""
    xp, (p, q) = A.device.xp, B.shape
    shape = (A.shape[0] * p, A.shape[1] * q)
    require_numbered(shape)
    A.device.require(A.nvals * B.nvals * 80, "kronecker")
    each = xp.arange(A.nvals * B.nvals, dtype=np.int64)
    a, b = each // max(B.nvals, 1), each % max(B.nvals, 1)
    rows = A.row_idx.astype(np.int64)[a] * p + B.row_idx[b]
    key = (A.columns()[a] * q + B.columns()[b]) * np.int64(shape[0]) + rows
    order = xp.argsort(key)
    types = op.types(A.dtype, B.dtype)
    pairs = a[order], b[order], each, key[order]  # each sum has one product
    return _summed(A, B, *pairs, shape, monoid.any, op, types)


def extract(A: CscMatrix, rows: Array | None, cols: Array | None) -> CscMatrix:
    """Return ``A(I, J)``; indices may repeat, None means all."""
    xp = A.device.xp
    columns = xp.arange(A.shape[1], dtype=np.int64) if cols is None else cols
    starts = A.col_ptr[columns].astype(np.int64)
    j, place = _expanded(xp, starts, A.col_ptr[columns + 1] - starts)
    i = A.row_idx[place].astype(np.int64)
    if rows is not None:  # each entry once for every time its row is listed
        order = xp.argsort(rows, kind="stable")
        listed = rows[order]
        low = xp.searchsorted(listed, i, side="left")
        entry, at = _expanded(xp, low, xp.searchsorted(listed, i, side="right") - low)
        i, j, place = order[at], j[entry], place[entry]
    shape = (A.shape[0] if rows is None else len(rows), len(columns))
    values = A.number if A.values is None else A.values[place]
    return from_coo(A.device, i, j, values, A.dtype, shape, None)
