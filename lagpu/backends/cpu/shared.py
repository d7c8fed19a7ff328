"""C calls for vectors and matrices alike, which differ only in the kind in a function's name."""

from __future__ import annotations

from typing import Any

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, UnaryOp
from lagpu.backends.cpu.handles import (
    C_NAMES,
    NULL,
    Box,
    c_function,
    c_monoid,
    check,
    descriptor,
    ffi,
    lib,
    typed_operator,
)
from lagpu.backends.cpu.workarounds import accumulator, mask_handle
from lagpu.dtypes import DType, lookup
from lagpu.errors import NotSupported
from lagpu.operations import BoundOperator, Descriptor, Product


def require_no_choice(product: Product) -> None:
    """Raise `NotSupported` if the author names a kernel or a policy for a product."""
    chosen = product.policy if product.kernel is None else product.kernel
    if chosen is not None:
        raise NotSupported(
            f"cpu: SuiteSparse chooses its own kernels, not {chosen!r}. "
            "Leave kernel= and policy= out."
        )


def require_no_kernel(product: Product) -> None:
    """Raise `NotSupported` if the author names a kernel for a product."""
    if product.kernel is not None:
        raise NotSupported(
            f"cpu: SuiteSparse chooses its own kernels, not {product.kernel!r}. "
            "Leave kernel= out, or give policy='push' or 'pull'."
        )


def written_as(
    w: Box, desc: Descriptor, result: DType, transpose: str = ""
) -> tuple[Any, Any, Any]:
    """Return (mask, accumulator, descriptor) as C handles."""
    mask, structure = mask_handle(desc)
    return (
        mask,
        accumulator(w, desc.accum, result),
        descriptor(desc.replace, structure, desc.complement, transpose),
    )


def element(x: Box, index: tuple[int, ...]) -> Any:
    """Return the value at an index or two, or None."""
    value = ffi.new(f"{C_NAMES[x.dtype.name]}*")
    info = c_function(f"{x.kind}_extractElement", x.dtype)(value, x.handle, *index)
    if info == lib.GrB_NO_VALUE:
        return None
    check(info, "extractElement")
    return value[0]


def apply_into(w: Box, mask: Any, accum: Any, d: Any, u: Box, function: BoundOperator) -> None:
    """``w<m> = f(u)``."""
    op, domain, _, left, right = function
    operator = typed_operator(op, domain).gb_obj
    if isinstance(op, UnaryOp):
        info = getattr(lib, f"GrB_{w.kind}_apply")(w.handle, mask, accum, operator, u.handle, d)
    elif left is not None:
        call = c_function(f"{w.kind}_apply_BinaryOp1st", domain)
        info = call(w.handle, mask, accum, operator, left.item(), u.handle, d)
    else:
        name = "BinaryOp2nd" if isinstance(op, BinaryOp) else "IndexOp"
        call = c_function(f"{w.kind}_apply_{name}", domain)
        info = call(w.handle, mask, accum, operator, u.handle, right.item(), d)
    check(info, "apply")


def select_into(
    w: Box, mask: Any, accum: Any, d: Any, u: Box, op: IndexUnaryOp, thunk: Any
) -> None:
    """``w<m> = u`` where `op` holds."""
    domain = lookup(thunk.dtype)
    operator = typed_operator(op, domain).gb_obj
    call = c_function(f"{w.kind}_select", domain)
    check(call(w.handle, mask, accum, operator, u.handle, thunk.item(), d), "select")


def reduced(u: Box, monoid: Monoid) -> Any:
    """Return the sum of all entries, of which there is at least one."""
    result = monoid.types(u.dtype)[1]
    value = ffi.new(f"{C_NAMES[result.name]}*")
    call = c_function(f"{u.kind}_reduce", result)
    check(call(value, NULL, c_monoid(monoid, u.dtype), u.handle, NULL), "reduce")
    return value[0]
