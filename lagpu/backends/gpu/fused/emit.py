"""What makes the results of an element-wise statement in a program, as text.

See common/entries.cuh.
"""

from __future__ import annotations

from typing import Any

from lagpu.algebra.tables import unary
from lagpu.backends.gpu.fused.parameters import Parameters
from lagpu.backends.gpu.fused.scalars import Cells
from lagpu.backends.gpu.kernels.functors import operator_functor
from lagpu.backends.gpu.storage.vector import VectorStore
from lagpu.backends.protocol import Applied, Statement
from lagpu.dtypes import DType, lookup

__all__ = ["MODES", "source_of"]

MODES = {"ewise_add": 0, "ewise_mult": 1, "ewise_union": 2}


def source_of(s: Statement, params: Parameters, cells: Cells) -> tuple[DType, str]:
    """Return the type of an element-wise statement's results and what makes them."""
    args, method = s.args, s.method
    if method == "assign_scalar":
        kind = s.w.dtype.ctype
        value = f"cast<{kind}>(i64(depth))" if s.is_counter else cells.number(kind, args[0])
        return s.w.dtype, f"Filled<{kind}>{{{value}}}"
    if method in ("assign", "extract"):
        return args[0].dtype, _mapped(params, cells, args[0])
    if method == "apply":
        u, op, how = args
        return how.result, _mapped(params, cells, u, op, how)
    u = args[0]
    x = params.vector(u)
    if method == "select":
        _, op, thunk = args
        kind = lookup(thunk.dtype).ctype
        name = params.functor(operator_functor(op))
        what = f"{x}_words, {x}_values, {x}_iso, {cells.number(kind, thunk)}"
        return u.dtype, f"Selected<{name}, {kind}, {u.dtype.ctype}>{{{what}}}"
    v, op = args[1:3]
    defaults = args[3] if method == "ewise_union" else None
    domain, result = op.types(u.dtype, v.dtype)
    y = params.vector(v)
    zero = domain.numpy.type(0)
    missing = ", ".join(cells.number(domain.ctype, d) for d in defaults or (zero, zero))
    types = ", ".join(t.ctype for t in (domain, result, u.dtype, v.dtype))
    name = params.functor(operator_functor(op))
    what = ", ".join(f"{z}_{part}" for z in (x, y) for part in ("words", "values", "iso"))
    return result, f"Combined<{name}, {types}>{{{MODES[method]}, {what}, {missing}}}"


def _mapped(
    params: Parameters,
    cells: Cells,
    u: VectorStore,
    op: Any = unary.identity,
    how: Applied | None = None,
) -> str:
    how = how or Applied(u.dtype, u.dtype)
    x = params.vector(u)
    name = params.functor(operator_functor(op))
    scalar = how.right if how.left is None else how.left
    bound = cells.number(how.domain.ctype, how.domain.numpy.type(0) if scalar is None else scalar)
    types = f"{how.domain.ctype}, {how.result.ctype}, {u.dtype.ctype}"
    side = "true" if how.left is not None else "false"
    return f"Mapped<{name}, {types}>{{{x}_words, {x}_values, {x}_iso, {bound}, {side}}}"
