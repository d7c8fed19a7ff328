"""Masked products of a matrix with a vector: the value of iso results, and the launch."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import format_bytes
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.ops.strategies import STRATEGIES, Job, ProductLaunch, by_inputs, sums_whole
from lagpu.backends.gpu.storage.casts import cast_number
from lagpu.backends.gpu.storage.matrix import CscMatrix
from lagpu.backends.gpu.storage.vector import EdgeOffsets, ProductStats, VectorStore
from lagpu.dtypes import DType
from lagpu.operations import Product


def multiply(
    w: VectorStore,
    A: CscMatrix,
    u: VectorStore,
    product: Product,
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
    A, u, product, plan
        The product and its plan.
    mask : (words or None, complement)
        Presence words of the mask.
    dtype : DType
        Type wanted for the values; sums made by atomics are of type `product.result` instead.
    edges : array or None
        Counter of the matrix entries looked at.

    Raises
    ------
    NotSupported
        If the kernel's lists cannot hold the vector's indices.
    """
    device = w.device
    iso = iso_result(A, u.values is not None, u.number, product)
    dtype = STRATEGIES[plan.kernel].result_type(product, dtype)
    whole = (
        plan.kernel == "pull_bitmap"
        and not plan.variant
        and iso is None
        and mask[0] is None
        and not mask[1]
        and sums_whole(A, u, product)
    )
    prepared, kept = _prepared(A, u, product, plan, dtype, iso is not None, whole), None
    if u.form == "sparse":
        u.to_bitmap()
    lists = prepared.lists
    if plan.keep and u.nvals:
        lists = {name: device.xp.empty(u.nvals, one.dtype) for name, one in lists.items()}
        kept = EdgeOffsets(weakref.ref(by_inputs(A, product)), **lists)
    elif plan.edge_offsets is not None:
        vertex, offset = plan.edge_offsets[1:]
        lists = {"listed": len(vertex), "vertex": vertex, "offset": offset}
    words = w.spare_words()
    values = None if iso is not None else w.spare_values(dtype)
    counts, notification = w.counters.take(prepared.counters), device.notification()
    if prepared.reset is not None:
        prepared.reset({"w_words": words, "w_values": values})
    given = {
        "u_words": u.words, "m_words": mask[0], "complement": mask[1], "w_words": words,
        "w_values": values, "counts": counts, "notification": notification.memory,
        "serial": notification.serial, "edges": edges,
    }  # fmt: skip
    if lists:
        given |= lists
    if iso is None:
        given["u_values"], given["u_iso"] = u.values, u.number
    prepared.launch(given)
    if kept is not None:
        u.edge_offsets = kept
    made = VectorStore(device, w.counters, dtype, w.size)
    value = None if iso is None else cast_number(iso, dtype)
    made.hold_product(words, values, value, counts, notification, _stats(A, u, plan))
    return made


def _stats(A: CscMatrix, u: VectorStore, plan: Plan) -> ProductStats:
    """Return the statistics of the product's result."""
    nvals, frontier_edges, stats = u.nvals, u.frontier_edges, u.stats
    if frontier_edges is None:
        frontier_edges = A.nvals * nvals // max(u.size, 1)
    pulled = plan.direction == "pull" and not STRATEGIES[plan.kernel].whole
    if stats is not None and stats.matrix() is A:
        visited, explored = stats.visited + nvals, stats.explored + frontier_edges
        return ProductStats(stats.matrix, pulled, visited, explored)
    return ProductStats(weakref.ref(A), pulled, nvals, frontier_edges)


def _prepared(
    A: CscMatrix,
    u: VectorStore,
    product: Product,
    plan: Plan,
    dtype: DType,
    iso: bool,
    whole: bool,
) -> ProductLaunch:
    """Return the launch of a product, from those that ran on this matrix before."""
    key = (
        plan.kernel, plan.group, plan.variant, product.semiring, product.domain, product.transpose,
        product.flip, u.dtype, u.values is None, dtype, iso, whole,
    )  # fmt: skip
    found: tuple[Any, ProductLaunch] | None = A.kernels.get(key)
    if found is None or found[0] != (A.symmetric, A.csr is None):  # it may use them now
        strategy = STRATEGIES[plan.kernel]
        job = Job(A, u, product, plan.group, dtype, iso, plan.variant, whole)
        made = strategy.bind(strategy, job)
        found = A.kernels[key] = (A.symmetric, A.csr is None), made
    return found[1]


def iso_result(A: CscMatrix, has_values: bool, number: Any, product: Product) -> Any:
    """Return the one value that all sums have, or None if they may differ.

    Parameters
    ----------
    A : CscMatrix
        The matrix.
    has_values : bool
        Whether the vector's entries may differ.
    number : NumPy scalar
        Their one value if they do not.
    product : Product
        The algebra.
    """
    reads_u, reads_a, known = _operands_read(product)
    if not (reads_u or reads_a):
        return known
    if (reads_u and has_values) or (reads_a and A.values is not None):
        return None
    left, right = (number, A.number) if product.flip else (A.number, number)
    return _one_product(product, left, right)


@functools.lru_cache(maxsize=256)
def _operands_read(product: Product) -> tuple[bool, bool, Any]:
    """Return whether an iso result depends on vector and matrix, else that result or None."""
    multiply = product.semiring.multiply
    if multiply.positional or not product.semiring.monoid.idempotent:
        return False, False, None
    reads_u, reads_a = multiply.reads if product.flip else multiply.reads[::-1]
    known = None if reads_u or reads_a else _one_product(product, None, None)
    return reads_u, reads_a, known


def _one_product(product: Product, x: Any, y: Any) -> Any:
    """Return ``x (x) y``; None is an operand that the operator does not read."""
    domain = product.domain
    given = (domain.zero if z is None else cast_number(z, domain) for z in (x, y))
    left, right = (np.array([z]) for z in given)
    with np.errstate(all="ignore"):  # inf * 0 is a product like any other
        made = np.asarray(product.semiring.multiply.numpy(left, right))
    return cast_number(made[0], product.result)


def memory_of(A: CscMatrix) -> str:
    """Return a line on what a matrix holds on the device: forms, and workspaces of kernels."""
    forms = [A] if A.csr is None else [A, A.csr]
    workspaces = sum(int(space.nbytes) for form in forms for space in form.cache.values())
    rows = "" if A.csr is None else f", by rows {format_bytes(A.csr.nbytes)}"
    return f"by columns {format_bytes(A.nbytes)}{rows}, workspaces {format_bytes(workspaces)}"
