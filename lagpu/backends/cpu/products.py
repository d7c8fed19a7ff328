"""Products of a matrix and a vector, each by one call, in the direction of its plan."""

from __future__ import annotations

from typing import Any

from lagpu.backends.cpu.directions import LAST, Plan, Search, after, choose
from lagpu.backends.cpu.forms import counts_of, make_transposed, stored_as_bitmap
from lagpu.backends.cpu.handles import Box, check, descriptor, lib, method_descriptor
from lagpu.backends.cpu.operators import c_semiring
from lagpu.backends.cpu.shared import require_no_kernel
from lagpu.backends.cpu.workarounds import accumulator, mask_handle, without_hyperlists
from lagpu.operations import Descriptor, Multiply, Product

__all__ = ["multiply"]


def multiply(w: Box, desc: Descriptor, op: Multiply, plan: Plan | None = None) -> None:
    """``w<m> = A (+.x) u`` or ``A' (+.x) u``; without a plan, one is chosen and remembered."""
    A, u, product = op.matrix, op.operand, op.product
    if plan is None:
        require_no_kernel(product)
        LAST.plan = plan = choose(A, u, product, desc)
    left: Search | None = after(A, plan, u.search) if plan.direction else None
    stored, transpose = _form(A, plan, product)
    if plan.direction == "pull":
        with stored_as_bitmap(u):
            info = _call(w, desc, stored, u, product, transpose, lib.GxB_AxB_DOT)
    else:
        # Left to itself, SuiteSparse takes Gustavson's method from n / 16 products on, which looks
        # at all n places (docs/design/cpu.md).
        hashes = plan.direction and desc.mask is not None and desc.complement
        method = lib.GxB_AxB_HASH if hashes else lib.GxB_AxB_SAXPY if plan.direction else 0
        info = _call(w, desc, stored, u, product, transpose, method)
    if info:
        check(info, "mxv")
    w.search = left


def _form(A: Box, plan: Plan, product: Product) -> tuple[Box, bool]:
    """Return the matrix to multiply by, and whether it is used transposed."""
    if plan.lacks:
        counts = counts_of(A)
        counts.lacked += max(plan.edges, counts.shape[not product.transpose])
    if not plan.direction or product.transpose is (plan.direction == "push"):
        return A, product.transpose
    return make_transposed(A), not product.transpose


def _call(
    w: Box, desc: Descriptor, A: Box, u: Box, product: Product, transpose: bool, method: int
) -> Any:
    """Return the status of the call."""
    semiring = c_semiring(product.semiring, product.domain)
    without_hyperlists(product.semiring.multiply, A)
    mask, structure = mask_handle(desc, A)
    plus = accumulator(w, desc.accum, product.result)
    turned = ("" if transpose else "T1") if product.flip else "T0" if transpose else ""
    how = desc.replace, structure, desc.complement, turned
    d = method_descriptor(*how, method) if method else descriptor(*how)
    if product.flip:
        return lib.GrB_vxm(w.handle, mask, plus, semiring, u.handle, A.handle, d)
    return lib.GrB_mxv(w.handle, mask, plus, semiring, A.handle, u.handle, d)
