"""Operations and products of bitmap matrices."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lagpu.algebra.operators import Monoid
from lagpu.backends.gpu.kernels import kernel, macros_of
from lagpu.backends.gpu.ops import elementwise
from lagpu.backends.gpu.ops.planner import BITS_PUSH_COST, Plan
from lagpu.backends.gpu.ops.spmv import iso_result
from lagpu.backends.gpu.ops.strategies import by_inputs, by_outputs, edges_of_outputs
from lagpu.backends.gpu.profile import Runtime
from lagpu.backends.gpu.storage import stores
from lagpu.backends.gpu.storage.bitmap import BitmapMatrix, MatrixHandle, require, stride, words_of
from lagpu.backends.gpu.storage.forms import is_symmetric, transpose
from lagpu.backends.gpu.storage.stores import Counters, CscMatrix, VectorStore, nwords
from lagpu.backends.gpu.storage.workspaces import chunks_of, index_types
from lagpu.operations import Descriptor, Multiply, Product


def on_entries(counters: Counters, desc: Descriptor) -> Descriptor:
    return desc if desc.mask is None else desc._replace(mask=desc.mask.bitmap(counters).entries)


def _make_room(C: BitmapMatrix) -> None:
    if C.entries.form != "bitmap" or C.entries.values is None:
        require(C.device, C.shape, C.dtype, "assign")
    C.entries.to_writable()


def write(counters: Counters, C: MatrixHandle, desc: Descriptor, T: BitmapMatrix) -> None:
    """``C<M> = T``, in place."""
    made = C.own_bitmap(counters)
    _make_room(made)
    mask = on_entries(counters, desc)
    made.changed()
    elementwise.write(made.entries, mask, T.entries)
    C.store = made


def fill(counters: Counters, C: MatrixHandle, desc: Descriptor, value: Any) -> None:
    """``C<M> = value``, in place."""
    made = C.own_bitmap(counters)
    w, k = made.entries, C.shape[0]
    mask, complement = elementwise.mask_words(on_entries(counters, desc))
    if desc.accum is None and w.known == 0:  # then all entries have one value: it is not stored
        require(C.device, C.shape, None, "assign")
        w.set_empty()
        w.to_bitmap()
        w.iso = value
    else:
        _make_room(made)
    count, macros = counters.take(), elementwise.accumulated(desc.accum, w.dtype, w.dtype)
    run = stores.specialised("bitmap/products.cu", "bitmap_fill", W=w.dtype, **macros)
    made.changed()
    w.changes()
    w.device.launch(
        run, len(w.words), nwords=len(w.words), per=stride(k) // 32, k=k, scalar=value,
        m_words=mask, complement=complement, replace=desc.replace,
        w_words=w.words, w_values=w.values, nvals=count,
    )  # fmt: skip
    w.counted(count)
    C.store = made


def reduce_columns(A: BitmapMatrix, monoid: Monoid) -> VectorStore:
    """Return ``w[j] = (+)_i A[i, j]``."""
    xp, n = A.device.xp, A.shape[1]
    result = monoid.types(A.dtype)[1]
    found, sums = xp.empty(n, bool), xp.empty(n, result.numpy)
    types = {"U": A.dtype, "Z": result}
    run = stores.specialised("bitmap/products.cu", "bitmap_reduce_columns", ADD=monoid, **types)
    A.device.launch(
        run, 32 * n, n=n, per=stride(A.shape[0]) // 32, **A.entries.arguments(), found=found,
        sums=sums,
    )  # fmt: skip
    words = xp.empty(nwords(n), np.uint32)
    A.device.launch(kernel("elementwise/bitmap.cu", "true_bits"), n, n, None, found, words)
    w = VectorStore(A.device, A.entries.counters, result, n)
    w.set_bitmap(words, sums, None, None)
    w.set_sparse(*w.listed(), None)
    return w


#: The part of its arrays that each kernel moves, by the kernel's name (docs/design/trace.md).
TRAFFIC: dict[str, dict[str, tuple[str, float]]] = {
    "bitmap_mxm_bits": {"idx": ("edges", 1.0)},
    "bitmap_mxm_sums": {
        **dict.fromkeys(("row_idx", "a_values"), ("edges", 1.0)),
        "q_values": ("in", 1.0),
        "out": ("out", 1.0),
    },
    # It shares these arrays with another launch, which counts them.
    "bitmap_mxm_sums_long": dict.fromkeys(
        ("col_ptr", "row_idx", "a_values", "q_words", "q_values", "m_words", "lengths", "out_words",
         "out", "counts", "edges"), ("in", 0.0),
    ),
}  # fmt: skip


def choose(Q: BitmapMatrix, A: CscMatrix, product: Product, iso: Any) -> Plan:
    """Return direction, kernel and reason of a product; `iso` as `iso_result` returns it."""
    why: tuple[Any, ...] | str
    if iso is None:
        columns = A.shape[1 if product.transpose else 0]
        why = "values of type {} are added up in {} columns, never pushed", product.result, columns
        return Plan("pull", "bitmap_mxm_sums", why)
    if product.transpose and not A.may_keep_csr and A.csr is None and not is_symmetric(A):
        why = "a push needs the matrix by rows, and its orientation is csc"
        return Plan("pull", "bitmap_mxm_bits", why)
    entries = Q.entries
    count = entries.nvals  # waits for the product before, which counted the frontier's edges too
    frontier_edges, about = entries.frontier_edges, ""
    if frontier_edges is None:
        frontier_edges = min(count, Q.shape[1]) * A.nvals // max(Q.shape[1], 1)
        about = "about "
    looks = A.nvals * words_of(Q.shape[0])[1]
    # a push of the edges of all frontiers against a look at every entry
    pulls = frontier_edges * BITS_PUSH_COST > looks
    sign = ">" if pulls else "<="
    why = "edges {}{} {} {} / {}", about, frontier_edges, sign, looks, BITS_PUSH_COST
    return Plan("pull" if pulls else "push", "bitmap_mxm_bits", why)


def prepared(runtime: Runtime, op: Multiply) -> tuple[BitmapMatrix, CscMatrix, Product, Any, Plan]:
    A, product = op.matrix.csc(), op.product
    if not product.transpose and not A.may_keep_csr:  # its transpose lasts for this product only
        A, product = transpose(A), product._replace(transpose=True)
    Q = op.operand.bitmap(runtime.counters)
    iso = iso_result(A, Q.entries.values is not None, Q.entries.number, product)
    return Q, A, product, iso, choose(Q, A, product, iso)


def multiply(runtime: Runtime, desc: Descriptor, op: Multiply) -> BitmapMatrix:
    """Return ``Q (+.x) A``, or ``Q (+.x) A'``, where the mask keeps."""
    Q, A, product, iso, plan = prepared(runtime, op)
    runtime.last.plan, pulls = plan, plan.direction == "pull"
    counters, device, result, k = runtime.counters, A.device, product.result, Q.shape[0]
    mask, complement = elementwise.mask_words(on_entries(counters, desc))
    shape = k, A.shape[1 if product.transpose else 0]
    require(device, shape, None if iso is not None else result, "mxm")
    made = VectorStore(device, counters, result, stride(k) * shape[1])
    words, out = made.spare_words(), BitmapMatrix(device, result, shape, made)
    counts, notification = counters.take(3), device.notification()
    form = by_outputs(A, product) if pulls else by_inputs(A, product)
    macros = index_types(form) | ({} if runtime.edges is None else {"EDGES": "1"})
    given = {
        "k": k, "m_words": mask, "complement": complement, "out_words": words, "counts": counts,
        "notification": notification.memory, "serial": notification.serial,
        "lengths": edges_of_outputs(A, product, form), "edges": runtime.edges,
    }  # fmt: skip
    values = None
    if iso is None:
        values = given["out"] = made.spare_values(result)
        _sums(Q, form, product, macros, given)
    else:
        iso = stores.cast_number(iso, result)
        words.fill(0)
        out.alive = given["alive"] = counters.take(words_of(k)[1])
        _bits(Q, form, pulls, macros, given)
    made.set_bitmap(words, values, iso, counts, notification)
    return out


def _bits(
    Q: BitmapMatrix, form: CscMatrix, pulls: bool, macros: dict[str, str], given: dict[str, Any]
) -> None:
    word, groups = words_of(Q.shape[0])
    macros |= {"WORD": word, "PUSH": "0" if pulls else "1"}
    run = kernel("bitmap/products.cu", "bitmap_mxm_bits", **macros)
    chunks, n = chunks_of(form), form.shape[1]
    form.device.launch(
        run, n * groups, n=n, groups=groups, ptr=form.col_ptr, idx=form.row_idx,
        q_words=Q.entries.readable()[0], q_alive=Q.alive, chunks=len(chunks.column),
        chunk_column=chunks.column, chunk_start=chunks.start, **given,
    )  # fmt: skip


def _sums(
    Q: BitmapMatrix, form: CscMatrix, product: Product, types: dict[str, str], given: dict[str, Any]
) -> None:
    n, per, device = form.shape[1], stride(Q.shape[0]) // 32, form.device
    macros, prelude = macros_of(product, Q.dtype, form.dtype)
    named = functools.partial(kernel, "bitmap/products.cu", prelude=prelude, **macros, **types)
    given |= {
        "per": per, "col_ptr": form.col_ptr, "row_idx": form.row_idx, "a_values": form.values,
        "a_iso": form.number, **Q.entries.arguments("q_"),
    }  # fmt: skip
    columns = chunks_of(form).columns
    if len(columns):
        device.launch(
            named("bitmap_mxm_sums_long"), len(columns) * per * 1024, block=1024,
            listed=len(columns), columns=columns,
            **{name: x for name, x in given.items() if name not in ("notification", "serial")},
        )  # fmt: skip
    device.launch(named("bitmap_mxm_sums"), n * per * 32, n=n, **given)
