"""Products of matrices: expansion, sorting and compression, or dot products under a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, Monoid
from lagpu.algebra.tables import monoid
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.kernels.functors import Prelude
from lagpu.backends.gpu.ops.pattern import at_positions, positions, require_numbered
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.storage.casts import are_nonzero
from lagpu.backends.gpu.storage.forms import csr_of, from_coo, take, transpose
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.dtypes import DType
from lagpu.operations import Descriptor, Product

__all__ = ["TRAFFIC", "extract", "kronecker", "mxm", "plan", "transposed"]

Array = Any


#: The part of its arrays that each kernel moves, by the kernel's name (docs/design/trace.md).
TRAFFIC: dict[str, dict[str, tuple[str, float]]] = {
    "sum_products": dict.fromkeys(("a_values", "b_values", "b_rows"), ("edges", 1.0)),
    "dot_products": dict.fromkeys(("a_idx", "b_idx", "a_values", "b_values"), ("edges", 0.5)),
}


def transposed(A: CscMatrix) -> CscMatrix:
    """Return ``A'``, kept beside `A` unless its author forbade that."""
    return csr_of(A) if A.may_keep_csr else transpose(A)


def mxm(
    A: CscMatrix,
    A_rows: CscMatrix | None,
    B: CscMatrix,
    product: Product,
    desc: Descriptor,
    edges: Array | None = None,
) -> tuple[CscMatrix, Plan]:
    """Return ``A (+.x) B`` and how it was made; `A_rows` is ``A'`` if it is there.

    With a mask that is not complemented, the dot product of a row and a column for each entry of
    the mask may take fewer steps than all products. `edges`, unless None, gets the number of
    matrix entries that are looked at.
    """
    xp = A.device.xp
    require_numbered((A.shape[0], B.shape[1]))
    lengths = xp.diff(A.col_ptr).astype(np.int64)
    counts = lengths[B.row_idx]
    mask = desc.mask
    if mask is not None and not desc.structure:
        mask = take(mask, are_nonzero(mask.all_values()))
    found = _plan(int(counts.sum()))
    if mask is not None and not desc.complement:
        wide = xp.bincount(A.row_idx, minlength=A.shape[0])[mask.row_idx]
        cols = mask.columns()
        high = xp.diff(B.col_ptr)[cols]
        steps, all_ = int(xp.minimum(wide, high).sum()) + mask.nvals, int(counts.sum())
        if steps <= all_:
            why = "steps of dot products at the mask's entries {} <= products {}", steps, all_
            rows = transposed(A) if A_rows is None else A_rows
            return _dots(rows, B, mask, cols, product, edges), Plan("", "dot_products", why)
        why = "products {} < steps of dot products at the mask's entries {}", all_, steps
        found = found._replace(why=why)
    if edges is not None:
        edges.fill(int(counts.sum()))
    return _all(A, B, counts, product, mask, desc.complement), found


def plan(A: CscMatrix, B: CscMatrix) -> Plan:
    """Return how ``A (+.x) B`` would be made without a mask."""
    lengths = A.device.xp.diff(A.col_ptr).astype(np.int64)
    return _plan(int(lengths[B.row_idx].sum()))


def _plan(count: int) -> Plan:
    return Plan("", "sum_products", ("products {}, listed and sorted", count))


def _all(
    A: CscMatrix,
    B: CscMatrix,
    counts: Array,
    product: Product,
    mask: CscMatrix | None,
    complement: bool,
) -> CscMatrix:
    """List every product, sort those that the mask keeps by entry, add each run."""
    xp, shape = A.device.xp, (A.shape[0], B.shape[1])
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


def _index_type(array: Array) -> str:
    return "i32" if array.dtype.itemsize == 4 else "i64"


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
    macros, prelude = _macros(A, B, add, multiply, domain, result)
    bidx = _index_type(B.row_idx)
    run = kernel("spgemm/mxm.cu", "sum_products", prelude=prelude, BIDX=bidx, **macros)
    values = xp.empty(len(starts), result.numpy)
    bounds = xp.append(starts, len(a)).astype(np.int64)
    cols = where // max(shape[0], 1)
    rows = where - cols * max(shape[0], 1)
    A.device.launch(
        run, len(starts), len(starts), bounds, a, b, A.values, A.number, B.values, B.number,
        B.row_idx, rows, cols, values,
    )  # fmt: skip
    return at_positions(A.device, result, shape, where, values, None)


def _macros(
    A: CscMatrix, B: CscMatrix, add: Monoid, multiply: BinaryOp, domain: DType, result: DType
) -> tuple[dict[str, str], str]:
    """Return the macros of types and functors, and the prelude."""
    prelude = Prelude()
    types = {"A": A.dtype, "B": B.dtype, "T": domain, "Z": result}
    macros = {"ADD": prelude.functor(add), "MUL": prelude.functor(multiply)}
    return macros | {name: dtype.ctype for name, dtype in types.items()}, prelude.text


def _dots(
    R: CscMatrix,
    B: CscMatrix,
    mask: CscMatrix,
    cols: Array,
    product: Product,
    edges: Array | None,
) -> CscMatrix:
    """Return the products of rows and columns at the entries of the mask, whose columns are `cols`.

    `R` is ``A'``.
    """
    xp, n = R.device.xp, mask.nvals
    semiring, domain, result = product.semiring, product.domain, product.result
    R.device.require(n * (48 + result.numpy.itemsize), "mxm")
    macros, prelude = _macros(R, B, semiring.monoid, semiring.multiply, domain, result)
    indices = {
        "APTR": R.col_ptr, "AIDX": R.row_idx, "BPTR": B.col_ptr, "BIDX": B.row_idx,
    }  # fmt: skip
    macros |= {name: _index_type(array) for name, array in indices.items()}
    macros |= {} if edges is None else {"EDGES": "1"}
    run = kernel("spgemm/mxm.cu", "dot_products", prelude=prelude, **macros)
    values, found = xp.empty(n, result.numpy), xp.zeros(n, bool)
    R.device.launch(
        run, n, n, mask.row_idx.astype(np.int64), cols, R.col_ptr, R.row_idx, R.values,
        R.number, B.col_ptr, B.row_idx, B.values, B.number, values, found, edges,
    )  # fmt: skip
    made = CscMatrix(R.device, result, mask.shape, mask.col_ptr, mask.row_idx, values)
    return take(made, found)


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
