"""Operators as kernels know them: the functor's name, and the text of a user's own."""

from __future__ import annotations

import functools

from lagpu.algebra.operators import BinaryOp, Monoid, Operator
from lagpu.dtypes import FP64, DType

__all__ = ["monoid_functor", "operator_functor", "reads"]

# Multiplications that do not look at one operand's value; positional ones look at neither.
_IGNORES = {"first": (True, False), "second": (False, True), "pair": (False, False)}

_STRUCT = """struct {name} {{
  static constexpr bool reads_x = true, reads_y = true;
  template <class Z, class T>
  LG_DEVICE static Z call(T x, T y, i64 i, i64 k, i64 j) {{ return Z({body}); }}
{more}}};
"""
_MONOID = """  template <class Z>
  LG_DEVICE static Z identity() {{ return Z({identity}); }}
  template <class Z>
  LG_DEVICE static bool is_terminal(Z z) {{ return {terminal}; }}
"""


def reads(op: BinaryOp) -> tuple[bool, bool]:
    """Return whether `op` looks at its left and at its right operand."""
    return (False, False) if op.positional else _IGNORES.get(op.name, (True, True))


@functools.cache
def operator_functor(op: Operator) -> tuple[str, str]:
    """Return the functor's name, and its C++ text if the operator is a user's."""
    if not op.body:
        return op.cuda, ""
    return op.cuda, _STRUCT.format(name=op.cuda, body=op.body, more="")


@functools.cache
def monoid_functor(monoid: Monoid) -> tuple[str, str]:
    """Return the functor's name, and its C++ text if the monoid is a user's."""
    if not monoid.registered:
        return monoid.op.cuda, ""
    name = f"User_monoid_{monoid.name}"
    body = monoid.op.body or f"{monoid.op.cuda}::call<Z, T>(x, y, i, k, j)"
    end = "false"
    if monoid.terminal is not None:
        end = f"z == Z({_literal(monoid.terminal(FP64))})"
    more = _MONOID.format(identity=_literal(monoid.identity(FP64)), terminal=end)
    return name, _STRUCT.format(name=name, body=body, more=more)


def _literal(number: DType) -> str:
    return repr(float(number))  # type: ignore[arg-type]
