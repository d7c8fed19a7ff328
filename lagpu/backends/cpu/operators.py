"""Operators, monoids and semirings of the C library for those of lagpu, each made once."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator, Semiring, UnaryOp
from lagpu.algebra.rules import arithmetic
from lagpu.backends.cpu.handles import Box, check, ffi, gb, lib
from lagpu.dtypes import DType, lookup
from lagpu.errors import BackendUnavailable, KernelCompileError, NotSupported

__all__ = [
    "KEPT",
    "binary_operator",
    "c_monoid",
    "c_semiring",
    "compares_in_type_of_entries",
    "typed_operator",
]

#: python-graphblas lists ldexp of floats under the types that it casts to them.
_LDEXP = {"FP64": "INT64", "FP32": "BOOL"}
KEPT: list[Any] = []  # objects to which GraphBLAS has pointers


def _compiled(op: Operator, domain: DType, result: DType, arity: int) -> Any:
    """Return a typed python-graphblas operator, compiled from a function of numbers.

    The result is cast to the operator's own type, whatever type Numba would infer, then to
    `result`.

    Raises
    ------
    KernelCompileError
        If Numba cannot compile the function for `domain`.
    """
    try:
        import numba
    except ImportError as error:
        raise BackendUnavailable(
            f"cpu: {op!r} needs Numba. Install it with: pip install numba"
        ) from error
    try:
        return _registered(numba, op, domain, result, arity)[domain.name]
    except Exception as error:  # of Numba, or of the function itself
        raise KernelCompileError(
            f"cpu: Numba does not compile {op!r} for {domain}. It says:\n{error}"
        ) from error


def _registered(numba: Any, op: Operator, domain: DType, result: DType, arity: int) -> Any:
    """Return an untyped python-graphblas operator of a function that Numba compiles when typed."""
    function, read, write = op.numpy, domain.numpy.type, result.numpy.type
    own = op.result(domain).numpy.type
    if op.domain is arithmetic and domain.numpy.kind == "i" and not op.of_numbers:
        read = np.dtype(f"u{domain.numpy}").type  # signed integers do not wrap in Numba
    if isinstance(function, np.ufunc):  # Numba can call a ufunc, but not compile one by itself
        inner = numba.njit(lambda *operands: function(*operands), error_model="numpy")
    else:
        inner = numba.njit(function, error_model="numpy")  # Python's, 1 / 0 raises where nobody is
    if arity == 1:
        return gb.unary.register_anonymous(
            lambda x: write(own(inner(read(x)))), op.name, is_udt=True
        )
    if arity == 2:
        return gb.binary.register_anonymous(
            lambda x, y: write(own(inner(read(x), read(y)))), op.name, is_udt=True
        )
    return gb.indexunary.register_anonymous(
        lambda x, i, j, y: write(own(inner(read(x), i, j, read(y)))), op.name, is_udt=True
    )


@functools.cache
def typed_operator(op: Operator, domain: DType) -> Any:
    """Return the typed python-graphblas operator."""
    kinds: dict[type[Operator], tuple[Any, int]] = {
        UnaryOp: (gb.unary, 1),
        BinaryOp: (gb.binary, 2),
        IndexUnaryOp: (gb.indexunary, 4),
    }
    module, arity = kinds[type(op)]
    if op.of_numbers:
        return _compiled(op, domain, op.result(domain), arity)
    if isinstance(op, BinaryOp) and op.positional:
        return getattr(module.ss, op.name)["INT64"]
    if isinstance(op, IndexUnaryOp) and not op.uses_value:
        return getattr(module, op.name)["INT64"]
    kind = _LDEXP[domain.name] if op.name == "ldexp" else domain.name
    extended = getattr(module, "ss", module)  # what the C library has beyond GraphBLAS' standard
    return getattr(extended if op.name in dir(extended) else module, op.name)[kind]


@functools.cache
def binary_operator(op: BinaryOp, left: DType, right: DType) -> Any:
    """Return the C operator for operands of these types."""
    return typed_operator(op, op.types(left, right)[0]).gb_obj


@functools.cache
def c_monoid(monoid: Monoid, dtype: DType) -> Any:
    """Return the C monoid for operands of this type."""
    domain = monoid.types(dtype)[0]
    found = None if monoid.registered else getattr(gb.monoid, monoid.name)
    if found is not None and gb.dtypes.lookup_dtype(domain.name) in found.types:
        return found[domain.name].gb_obj
    values = [monoid.identity(domain).item()]
    if monoid.terminal is not None:
        values.append(monoid.terminal(domain).item())
    new = f"{'GrB_Monoid' if len(values) == 1 else 'GxB_Monoid_terminal'}_new_{domain.name}"
    handle = ffi.new("GrB_Monoid*")
    operator = typed_operator(monoid.op, domain).gb_obj
    check(getattr(lib, new)(handle, operator, *values), f"monoid {monoid.name}")
    KEPT.append(handle)
    return handle[0]


@functools.cache
def c_semiring(semiring: Semiring, domain: DType) -> Any:
    """Return the C semiring whose multiplication works on `domain`."""
    add, multiply = semiring.monoid, semiring.multiply
    if not add.registered and not multiply.of_numbers:
        module = gb.semiring.ss if multiply.positional else gb.semiring
        kind = gb.dtypes.lookup_dtype("INT64" if multiply.positional else domain.name)
        found = getattr(module, semiring.name, None)
        if found is not None and kind in found.types:
            return found[kind].gb_obj
    product = multiply.result(domain)
    result = add.types(product)[1]
    if product is result:
        times = typed_operator(multiply, domain)
    elif multiply.positional:
        raise NotSupported(
            f"cpu: {semiring!r} adds {result}, and GraphBLAS' {multiply.name} gives {product}."
        )
    else:  # GraphBLAS does not cast a product; a function compiled with the cast does
        times = _compiled(multiply, domain, result, 2)
    handle = ffi.new("GrB_Semiring*")
    info = lib.GrB_Semiring_new(handle, c_monoid(add, result), times.gb_obj)
    check(info, f"semiring {semiring.name}")
    KEPT.append(handle)
    return handle[0]


def compares_in_type_of_entries(op: IndexUnaryOp, entries: Box, thunk: Any) -> bool:
    """Return True if GraphBLAS compares entries with the thunk as lagpu does.

    GraphBLAS casts the thunk to the type of the entries: -1 would equal the UINT32 4294967295.
    """
    return not op.uses_value or bool(op.body) or lookup(thunk.dtype) is entries.dtype
