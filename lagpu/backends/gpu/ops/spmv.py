"""Products of a matrix with a vector: the value of iso results, the launch, and selections."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import numpy as np

from lagpu.backends.gpu.device.protocol import CheckedLaunch, Device, format_bytes
from lagpu.backends.gpu.kernels import kernel, macros_of
from lagpu.backends.gpu.ops import elementwise
from lagpu.backends.gpu.ops.planner import Plan, choose
from lagpu.backends.gpu.ops.strategies import STRATEGIES, Job, ProductLaunch, by_inputs, sums_kind
from lagpu.backends.gpu.profile import Runtime
from lagpu.backends.gpu.storage import stores
from lagpu.backends.gpu.storage.stores import CscMatrix, EdgeOffsets, ProductStats, VectorStore
from lagpu.backends.gpu.storage.workspaces import nbytes_of
from lagpu.dtypes import BOOL, DType
from lagpu.errors import NotSupported
from lagpu.operations import Descriptor, Multiply, MultiplySelection, Product

#: The part of its arrays that each kernel moves, by the kernel's name (docs/design/trace.md).
SELECTION_TRAFFIC: dict[str, dict[str, tuple[str, float]]] = {
    "selection_gather": {"u_values": ("out", 1.0), "w_values": ("out", 1.0)},
    "selection_scatter": {"u_values": ("edges", 1.0), "w_values": ("out", 1.0)},
    "selection_reset": {},
}


def choose_selection(product: Product) -> Plan:
    """Return the plan of a product with a selection; there is one kernel for each direction."""
    if product.is_named:
        raise NotSupported(
            f"{product.kernel or product.policy}: a selection has no such choice. "
            "Leave kernel= and policy= out."
        )
    direction = "pull" if product.transpose else "push"
    return Plan(direction, *SELECTIONS[direction])


SELECTIONS = {
    "pull": ("selection_gather", "a selection: each result takes one entry"),
    "push": ("selection_scatter", "a selection: each entry goes to one result"),
}


def write_selection(
    runtime: Runtime, w: VectorStore, desc: Descriptor, op: MultiplySelection
) -> None:
    """``w<m> = P (+.x) u`` or ``P' (+.x) u``, for the selection P of `op.indices`."""
    f, u, product, device = op.indices, op.operand, op.product, w.device
    runtime.last.plan = plan = choose_selection(product)
    mask, complement = elementwise.mask_words(desc)
    t = VectorStore(device, w.counters, product.result, w.size)
    if w.size and f.size and u.size:
        inputs = f.arguments("f_") | u.arguments("u_")
        words, values, count = w.spare_words(), w.spare_values(product.result), w.counters.take()
        types = f.dtype, u.dtype
        if not product.transpose:
            reset = _selection_launch(device, "selection_reset", w.size, product, types)
            reset({"nrows": w.size, "w_words": words, "w_values": values})
        run = _selection_launch(device, plan.kernel, f.size, product, types)
        nrows = u.size if product.transpose else w.size
        run({
            "m": f.size, "nrows": nrows, **inputs, "m_words": mask, "complement": complement,
            "w_words": words, "w_values": values, "count": count, "edges": runtime.edges,
        })  # fmt: skip
        t.set_bitmap(words, values, None, count)
    if desc.is_fresh and t.dtype is w.dtype:
        w.adopt(t)
    else:
        elementwise.write(w, desc, t)


@functools.lru_cache(maxsize=1024)
def _selection_launch(
    device: Device, name: str, threads: int, product: Product, types: tuple[DType, DType]
) -> CheckedLaunch:
    """Return the launch of a kernel of spmv/selection.cu; `types` are those of f and u."""
    macros, prelude = macros_of(product, types[1], BOOL)
    macros["F"] = types[0].ctype
    return device.prepare(kernel("spmv/selection.cu", name, prelude=prelude, **macros), threads)


def write_product(runtime: Runtime, w: VectorStore, desc: Descriptor, op: Multiply) -> None:
    """``w<m> = A (+.x) u`` or ``A' (+.x) u``."""
    A, u, product = op.matrix.csc(), op.operand, op.product
    runtime.last.plan = plan = choose(A, u, product, desc)
    A.multiplied = True
    (mask, complement), is_fresh, device = elementwise.mask_words(desc), desc.is_fresh, w.device
    iso = iso_result(A, u.values is not None, u.number, product)
    strategy, dtype = STRATEGIES[plan.kernel], w.dtype if is_fresh else product.result
    if iso is None:
        dtype = strategy.result_type(product, dtype)
    plain = plan.kernel == "pull_bitmap" and not plan.variant and iso is None
    sums = sums_kind(A, u, product) if plain and mask is None and not complement else ""
    job = (
        plan.kernel, product, u.dtype, u.values is None, dtype, iso is not None, plan.group,
        plan.variant, sums,
    )  # fmt: skip
    found: tuple[Any, ProductLaunch] | None = A.kernels.get(job)
    if found is None or found[0] != (A.symmetric, A.csr is None):  # bind again to a new form
        found = A.kernels[job] = (A.symmetric, A.csr is None), strategy.bind(A, Job(*job))
    prepared, kept = found[1], None
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
        **lists, "u_words": u.words, "m_words": mask, "complement": complement, "w_words": words,
        "w_values": values, "counts": counts, "notification": notification.memory,
        "serial": notification.serial, "edges": runtime.edges,
    }  # fmt: skip
    if iso is None:
        given["u_values"], given["u_iso"] = u.values, u.number
    prepared.launch(given)
    if kept is not None:
        u.edge_offsets = kept.of
    value = None if iso is None else stores.cast_number(iso, dtype)
    made = words, values, value, counts, notification, _stats(A, u, plan)
    if is_fresh and dtype is w.dtype:
        w.become(w.set_bitmap, *made)
    else:
        t = VectorStore(device, w.counters, dtype, w.size)
        t.set_bitmap(*made)
        elementwise.write(w, desc, t)
        w.stats = t.stats


def _stats(A: CscMatrix, u: VectorStore, plan: Plan) -> ProductStats:
    nvals, frontier_edges, stats = u.nvals, u.frontier_edges, u.stats
    if frontier_edges is None:
        frontier_edges = A.nvals * nvals // max(u.size, 1)
    pulled = plan.direction == "pull" and not STRATEGIES[plan.kernel].every_entry
    if stats is None or stats.matrix() is not A:
        stats = ProductStats(weakref.ref(A), pulled, 0, 0)
    explored = stats.explored + frontier_edges
    return ProductStats(stats.matrix, pulled, stats.visited + nvals, explored)


def iso_result(A: CscMatrix, has_values: bool, number: Any, product: Product) -> Any:
    """Return the one value that all sums have, or None if they may differ."""
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
    if product.semiring.multiply.positional or not product.semiring.monoid.idempotent:
        return False, False, None
    reads_u, reads_a = product.reads
    return reads_u, reads_a, None if reads_u or reads_a else _one_product(product, None, None)


def _one_product(product: Product, x: Any, y: Any) -> Any:
    """Return ``x (x) y``; None is an operand that the operator does not read."""
    domain = product.domain
    given = (domain.zero if z is None else stores.cast_number(z, domain) for z in (x, y))
    left, right = (np.array([z]) for z in given)
    with np.errstate(all="ignore"):  # inf * 0 is a product like any other
        made = np.asarray(product.semiring.multiply.numpy(left, right))
    return stores.cast_number(made[0], product.result)


def memory_of(A: CscMatrix) -> str:
    """Return a line on what a matrix holds on the device: forms, and workspaces of kernels."""
    forms = [A] if A.csr is None else [A, A.csr]
    workspaces = sum(nbytes_of(space) for form in forms for space in form.cache.values())
    rows = "" if A.csr is None else f", by rows {format_bytes(A.csr.nbytes)}"
    return f"by columns {format_bytes(A.nbytes)}{rows}, workspaces {format_bytes(workspaces)}"
