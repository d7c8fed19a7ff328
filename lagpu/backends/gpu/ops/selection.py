"""Products with the selection matrix of a vector: a gather or a scatter, and no matrix is made."""

from __future__ import annotations

import functools
from typing import Any

from lagpu.backends.gpu.device.protocol import VARIES, Bound, Device
from lagpu.backends.gpu.fused.parameters import Parameters
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.kernels.functors import monoid_functor, operator_functor
from lagpu.backends.gpu.ops.planner import Plan
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.protocol import Product, Statement
from lagpu.dtypes import BOOL, DType
from lagpu.errors import NotSupported

__all__ = ["choose", "multiply", "piece", "reason", "why_no_piece"]


def choose(how: Product) -> Plan:
    """Return the plan of a product with a selection, of which there is one a direction.

    Raises
    ------
    NotSupported
        If the author names a kernel or a policy.
    """
    if how.kernel is not None or how.policy is not None:
        raise NotSupported(
            f"{how.kernel or how.policy}: a selection has no such choice. "
            "Leave kernel= and policy= out."
        )
    direction = "pull" if how.transpose else "push"
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
    how: Product,
    plan: Plan,
    mask: tuple[Any, bool],
    edges: Any,
) -> VectorStore:
    """Return ``P (+.x) u`` or ``P' (+.x) u`` where the mask keeps, as a new store.

    Parameters
    ----------
    w : VectorStore
        The output, whose spare buffers are used.
    f, u, how, plan
        The vector whose selection is P, the vector multiplied, the product and its plan.
    mask : (words or None, complement)
        Presence words of the mask.
    edges : array or None
        Counter of the entries of P looked at.
    """
    made = VectorStore(w.device, w.counters, how.result, w.size)
    if not (w.size and f.size and u.size):
        return made
    chosen, inputs = f.readable(), u.readable()
    words, values, count = w.spare_words(), w.spare_values(how.result), w.counters.take()
    types = f.dtype, u.dtype
    if not how.transpose:
        _launch(w.device, "selection_reset", w.size, how, types)(w.size, words, values)
    run = _launch(w.device, plan.kernel, f.size, how, types)
    nrows = u.size if how.transpose else w.size
    run(f.size, nrows, *chosen, *inputs, *mask, words, values, count, edges)
    made.set_bitmap(words, values, None, count)
    return made


@functools.lru_cache(maxsize=1024)
def _launch(
    device: Device, name: str, threads: int, how: Product, types: tuple[DType, DType]
) -> Bound:
    """Return the launch of a kernel of spmv/selection.cu; `types` are those of f and u."""
    add, add_text = monoid_functor(how.semiring.monoid)
    mul, mul_text = operator_functor(how.semiring.multiply)
    run = kernel(
        "spmv/selection.cu", name, prelude=add_text + mul_text, F=types[0].ctype, ADD=add, MUL=mul,
        U=types[1].ctype, A=BOOL.ctype, T=how.domain.ctype, Z=how.result.ctype,
        FLIP=str(int(how.flip)), ISO="0",
    )  # fmt: skip
    return device.bound(run, threads, *(VARIES,) * len(run.params))


# ---------------------------------------------------------------------------- in a program
def why_no_piece(s: Statement) -> str:
    """Return why a product with a selection cannot be a piece of a program, or nothing."""
    f, u, how = s.args
    if how.kernel is not None or how.policy is not None:
        return "the author chose the kernel"
    return "" if f.size and u.size and s.w.size else "the matrix has no rows or no columns"


def piece(params: Parameters, spec: str, s: Statement, mask: str, sums: str, looked_at: str) -> str:
    """Return the line of a program that puts a product into its sums.

    Parameters
    ----------
    params : Parameters
        Of the kernel.
    spec : str
        Name of the struct of its types.
    s : Statement
        The product.
    mask, sums : str
        Initialisers of ``Mask`` and ``Sums``.
    looked_at : str
        Where the entries of P looked at are counted, or a null pointer.
    """
    f, u, how = s.args
    x, y = params.vector(f), params.vector(u)
    nrows = params.size(u.size if how.transpose else s.w.size)
    chosen = f"{x}_words, {x}_values, {x}_iso, {params.size(f.size)}, {nrows}"
    operand = f"{y}_words, {y}_values, {y}_iso"
    types = f"{spec}, {str(how.transpose).lower()}, {f.dtype.ctype}"
    return (
        f"select_all<{types}>({{{chosen}}}, {{{operand}}}, {mask}, {sums}, {looked_at}, barrier);"
    )
