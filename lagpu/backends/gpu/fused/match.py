"""From recorded statements to a program: which loops one kernel can run, and why others cannot."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.backends.gpu.fused.search_grid import DEPTH, MOST, VALUE, Assignment, Traversal
from lagpu.backends.gpu.kernels.functors import reads
from lagpu.backends.gpu.ops.spmv import IDEMPOTENT
from lagpu.backends.gpu.storage.casts import cast_array
from lagpu.backends.gpu.storage.forms import why_no_rows
from lagpu.backends.gpu.storage.vector import MatrixStore, VectorStore
from lagpu.backends.protocol import Product, Statement
from lagpu.dtypes import DType

__all__ = ["traversal_of"]


def traversal_of(statements: list[Statement], f: VectorStore, times: int | None) -> Traversal | str:
    """Return the traversal that these statements are, repeated until `f` is empty, or why not."""
    places = [k for k, s in enumerate(statements) if s.method == "mxv"]
    if len(places) != 1:
        return f"{len(places)} products in the body; a traversal has one"
    place = places[0]
    product = statements[place]
    A, u, how = product.args
    mask = product.desc
    if product.w is not f or u is not f:
        return "the product does not map the frontier to itself"
    if A.shape[0] != A.shape[1]:
        return "the matrix is not square"
    lacking = why_no_rows(A)
    if lacking:
        return f"a traversal needs the matrix by rows too, and {lacking}"
    if how.kernel is not None or how.policy is not None:
        return "the author chose the kernel"
    if mask.accum is not None or not mask.replace or mask.mask is None:
        return "the product has an accumulator, or no mask with replace"
    if not (mask.structure and mask.complement):
        return "the product's mask is not the complement of a structure"
    assigned = _assignments(statements, f)
    if isinstance(assigned, str):
        return assigned
    if mask.mask not in [a.x for a in assigned]:
        return "what the mask excludes is not assigned in the body"
    before = place > 0
    if before and place != len(statements) - 1:
        return "assignments stand on both sides of the product"
    return _with_values(A, f, mask.mask, how, assigned, before, times)


def _assignments(statements: list[Statement], f: VectorStore) -> tuple[Assignment, ...] | str:
    """Return the assignments ``x(f.S) << depth`` and ``x(f.S) << f``, or why there is another."""
    found: list[Assignment] = []
    for s in statements:
        if s.method == "mxv":
            continue
        desc = s.desc
        if desc.mask is not f or not desc.structure or desc.complement:
            return f"{s.method} is not masked by the frontier's structure"
        if desc.accum is not None or desc.replace or s.w is f or s.args[1] is not None:
            return f"{s.method} has an accumulator, replace or indices"
        if s.method == "assign_scalar" and s.is_counter:
            what = DEPTH
        elif s.method == "assign" and s.args[0] is f:
            what = VALUE
        else:
            return f"{s.method} assigns neither the depth nor the frontier"
        if any(a.x is s.w for a in found):
            return "a vector is assigned twice"
        found.append(Assignment(s.w, what))
    if len(found) > MOST:
        return f"{len(found)} assignments; at most {MOST} fit"
    return tuple(found)


def _with_values(
    A: MatrixStore,
    f: VectorStore,
    v: VectorStore,
    how: Product,
    assigned: tuple[Assignment, ...],
    before: bool,
    times: int | None,
) -> Traversal | str:
    """Decide how the products' values are kept."""
    monoid, multiply = how.semiring.monoid, how.semiring.multiply
    iso = _is_one(A, f, how)
    sums = not iso and not monoid.has_any_terminal
    reads_f = not iso and reads(multiply)[0 if how.flip else 1]
    keep = sums or reads_f or (times is not None and not iso)
    if sums and f.dtype is not how.result:
        return f"sums of type {how.result} do not fit a frontier of {f.dtype}"
    if sums and f.dtype.numpy.itemsize < 4:
        return f"sums of type {f.dtype} have no atomic"
    if keep and not before:
        return "values are kept and the assignments stand behind the product"
    return Traversal(A, f, v, how, assigned, before, sums, iso, keep)


def _is_one(A: MatrixStore, f: VectorStore, how: Product) -> bool:
    """Whether every product of the loop is 1, whatever the frontier."""
    multiply = how.semiring.multiply
    if multiply.positional or how.semiring.monoid.name not in IDEMPOTENT:
        return False
    reads_f, reads_a = reads(multiply) if how.flip else reads(multiply)[::-1]
    if (reads_f and (f.values is not None or f.number != 1)) or (reads_a and A.values is not None):
        return False
    return _gives_one(multiply, f.dtype, A.number, how.domain, how.flip)


@functools.lru_cache(maxsize=64)
def _gives_one(multiply: BinaryOp, dtype: DType, a: Any, domain: DType, flip: bool) -> bool:
    one = cast_array(np, np.array([dtype.numpy.type(1)]), domain)
    other = cast_array(np, np.array([a]), domain)
    z = multiply.numpy(one, other) if flip else multiply.numpy(other, one)
    return bool(np.asarray(z)[0] == 1)
