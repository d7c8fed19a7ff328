"""Launching masked products: storage and macros for the kernels of spmv.cu and spmv_edge.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from lagpu.backends.base import Product
from lagpu.backends.gpu.build import is_symmetric, transpose
from lagpu.backends.gpu.functors import monoid_functor, operator_functor, reads
from lagpu.backends.gpu.kernels import Kernel, kernel
from lagpu.backends.gpu.plan import Plan
from lagpu.backends.gpu.storage import MatrixStore, VectorStore, cast_array, nwords
from lagpu.dtypes import DType

__all__ = ["IDEMPOTENT", "multiply"]

# Sums of equal values: with these monoids the value itself.
IDEMPOTENT = ("any", "min", "max", "lor", "land")


def multiply(
    w: VectorStore,
    A: MatrixStore,
    u: VectorStore,
    how: Product,
    plan: Plan,
    mask: tuple[Any, bool],
    dtype: DType,
    edges: Any,
) -> VectorStore:
    """Return ``A (+.x) u`` or ``A' (+.x) u`` where the mask keeps, as a new store.

    Parameters
    ----------
    w : VectorStore
        The output, whose spare buffers are used.
    A, u, how, plan
        The product and its plan.
    mask : (words or None, complement)
        Presence words of the mask.
    dtype : DType
        Type wanted for the values; a push with a true sum gives `how.result` instead.
    edges : array or None
        Counter of the matrix entries looked at.
    """
    iso = _iso_result(A, u, how)
    if plan.direction == "pull":
        return _pull(w, A, u, how, plan, mask, dtype, edges, iso)
    return _push(w, A, u, how, mask, edges, iso)


def _iso_result(A: MatrixStore, u: VectorStore, how: Product) -> Any:
    """Return the one value all sums have, or None if they may differ."""
    multiply = how.semiring.multiply
    if multiply.positional or how.semiring.monoid.name not in IDEMPOTENT:
        return None
    left, right = (u, A) if how.flip else (A, u)
    reads_left, reads_right = reads(multiply)
    if (reads_left and left.values is not None) or (reads_right and right.values is not None):
        return None
    x, y = (cast_array(np, np.array([side.number]), how.domain) for side in (left, right))
    return cast_array(np, np.asarray(multiply.numpy(x, y)), how.result)[0]


def _kernel(
    file: str,
    name: str,
    A: MatrixStore,
    u: VectorStore,
    how: Product,
    iso: bool,
    **more: str,
) -> Kernel:
    """Return the kernel for these types; what it does not read does not specialise it."""
    indices = {
        "PTR": "i32" if A.col_ptr.dtype == np.int32 else "i64",
        "IDX": "i32" if A.row_idx.dtype == np.int32 else "i64",
    }
    if iso:
        return kernel(file, name, **indices, **{k: v for k, v in more.items() if k != "W"})
    add, add_text = monoid_functor(how.semiring.monoid)
    mul, mul_text = operator_functor(how.semiring.multiply)
    return kernel(
        file,
        name,
        prelude=add_text + mul_text,
        ADD=add,
        MUL=mul,
        U=u.dtype.ctype,
        A=A.dtype.ctype,
        T=how.domain.ctype,
        Z=how.result.ctype,
        FLIP=str(int(how.flip)),
        ISO="0",
        **indices,
        **more,
    )


def _inputs(A: MatrixStore, u: VectorStore, iso: bool) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return (values, iso) of the matrix and (words, values, iso) of the vector for a kernel."""
    words, values, number = u.readable()
    if iso:
        return (None, False), (words, None, False)
    return (A.values, A.number), (words, values, number)


def by_columns(A: MatrixStore, how: Product) -> MatrixStore:
    """Return the form whose columns are the output's entries, made and kept if need be."""
    if how.transpose or is_symmetric(A):
        return A
    if A.rows is None:
        A.rows = transpose(A)
    return A.rows


def _pull(
    w: VectorStore,
    A: MatrixStore,
    u: VectorStore,
    how: Product,
    plan: Plan,
    mask: tuple[Any, bool],
    dtype: DType,
    edges: Any,
    iso: Any,
) -> VectorStore:
    form = by_columns(A, how)
    n = form.shape[1]
    a_args, u_args = _inputs(form, u, iso is not None)
    words = w.spare_words()
    values = None if iso is not None else w.spare_values(dtype)
    count = w.counters.take()
    name, threads = (
        ("spmv_csc_scalar", nwords(n) * 32)
        if plan.kernel == "pull_scalar"
        else ("spmv_csc_warp", nwords(n) * 256)
    )
    run = _kernel("spmv.cu", name, form, u, how, iso is not None, W=dtype.ctype)
    w.device.launch(
        run, threads, n, form.col_ptr, form.row_idx, *a_args, *u_args, *mask,
        words, values, count, edges,
    )  # fmt: skip
    made = VectorStore(w.device, w.counters, dtype, n)
    one = None if iso is None else cast_array(np, np.array([iso]), dtype)[0]
    made.set_bitmap(words, values, one, count)
    made.pulled = True
    return made


def _push(
    w: VectorStore,
    A: MatrixStore,
    u: VectorStore,
    how: Product,
    mask: tuple[Any, bool],
    edges: Any,
    iso: Any,
) -> VectorStore:
    n = A.shape[1] if how.transpose else A.shape[0]
    a_args, u_args = _inputs(A, u, iso is not None)
    words = w.spare_words()
    values = None if iso is not None else w.spare_values(how.result)
    count = w.counters.take()
    more = {"TRANSPOSE": str(int(how.transpose))}
    launch = w.device.launch
    launch(_kernel("spmv_edge.cu", "spmv_edge_reset", A, u, how, iso is not None, **more),
           n, n, words, values)  # fmt: skip
    if A.nvals:
        launch(
            _kernel("spmv_edge.cu", "spmv_csc_edge", A, u, how, iso is not None, **more),
            A.nvals, A.shape[0], A.shape[1], A.nvals, A.col_ptr, A.row_idx, *a_args, *u_args,
            *mask, words, values, count, edges,
        )  # fmt: skip
    made = VectorStore(w.device, w.counters, how.result, n)
    made.set_bitmap(words, values, iso, count)
    return made
