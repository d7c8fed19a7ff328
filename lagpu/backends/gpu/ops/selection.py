"""Products with the selection matrix of a vector: a gather or a scatter, without a matrix."""

from __future__ import annotations

import functools
from typing import Any

from lagpu.backends.gpu.device.protocol import Device, PreparedLaunch
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.kernels.source import macros_of
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.dtypes import BOOL, DType
from lagpu.errors import NotSupported
from lagpu.operations import Product

#: The part of its arrays that each kernel moves, by the kernel's name (docs/design/trace.md).
TRAFFIC: dict[str, dict[str, tuple[str, float]]] = {
    "selection_gather": {"u_values": ("out", 1.0), "w_values": ("out", 1.0)},
    "selection_scatter": {"u_values": ("edges", 1.0), "w_values": ("out", 1.0)},
    "selection_reset": {},
}


def choose(product: Product) -> Plan:
    """Return the plan of a product with a selection; there is one kernel for each direction.

    Raises
    ------
    NotSupported
        If the author names a kernel or a policy.
    """
    if product.kernel is not None or product.policy is not None:
        raise NotSupported(
            f"{product.kernel or product.policy}: a selection has no such choice. "
            "Leave kernel= and policy= out."
        )
    direction = "pull" if product.transpose else "push"
    return Plan(direction, _KERNELS[direction], reason(direction))


_KERNELS = {"pull": "selection_gather", "push": "selection_scatter"}


def reason(direction: str) -> str:
    """Return why a product with a selection pulls or pushes."""
    if direction == "pull":
        return "a selection: each result takes one entry"
    return "a selection: each entry goes to one result"


def multiply(
    w: VectorStore,
    f: VectorStore,
    u: VectorStore,
    product: Product,
    plan: Plan,
    mask: tuple[Any, bool],
    edges: Any,
) -> VectorStore:
    """Return ``P (+.x) u`` or ``P' (+.x) u`` where the mask keeps, as a new store.

    Parameters
    ----------
    w : VectorStore
        The output, whose spare buffers are used.
    f, u, product, plan
        The vector whose selection is P, the vector multiplied, the product and its plan.
    mask : (words or None, complement)
        Presence words of the mask.
    edges : array or None
        Counter of the entries of P looked at.
    """
    made = VectorStore(w.device, w.counters, product.result, w.size)
    if not (w.size and f.size and u.size):
        return made
    chosen, inputs = f.arguments("f_"), u.arguments("u_")
    words, values, count = w.spare_words(), w.spare_values(product.result), w.counters.take()
    types = f.dtype, u.dtype
    if not product.transpose:
        reset = _launch(w.device, "selection_reset", w.size, product, types)
        reset({"nrows": w.size, "w_words": words, "w_values": values})
    run = _launch(w.device, plan.kernel, f.size, product, types)
    nrows = u.size if product.transpose else w.size
    run({
        "m": f.size, "nrows": nrows, **chosen, **inputs, "m_words": mask[0],
        "complement": mask[1], "w_words": words, "w_values": values, "count": count, "edges": edges,
    })  # fmt: skip
    made.set_bitmap(words, values, None, count)
    return made


@functools.lru_cache(maxsize=1024)
def _launch(
    device: Device, name: str, threads: int, product: Product, types: tuple[DType, DType]
) -> PreparedLaunch:
    """Return the launch of a kernel of spmv/selection.cu; `types` are those of f and u."""
    macros, prelude = macros_of(product, types[1], BOOL)
    macros["F"] = types[0].ctype
    run = kernel("spmv/selection.cu", name, prelude=prelude, **macros)
    return device.prepare(run, threads)
