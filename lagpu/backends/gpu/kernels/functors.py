"""Operators as kernels know them: the functor's name, and the text of a user's own.

A `Prelude` gathers the texts of one kernel, each once: an operator that multiplies and accumulates
has one functor.
"""

from __future__ import annotations

import functools

from lagpu.algebra.operators import BinaryOp, Monoid, Operator
from lagpu.dtypes import FP64, DType
from lagpu.operations import Product

__all__ = ["Prelude", "accum_macros", "accumulator", "macros_of"]

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


class Prelude:
    """The functor texts of users' operators in one kernel, each once, in the order of first use."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}

    def functor(self, op: Operator | Monoid) -> str:
        """Return the name of an operator's functor; a user's is added to the prelude."""
        name, text = _monoid_functor(op) if isinstance(op, Monoid) else _operator_functor(op)
        if text:
            self._texts[text] = None
        return name

    @property
    def text(self) -> str:
        """The texts, to be pasted before the kernel; an empty string if there are none."""
        return "".join(self._texts)


def macros_of(
    product: Product, u: DType, a: DType, prelude: Prelude | None = None
) -> tuple[dict[str, str], str]:
    """Return the macros that specialise a kernel of a product, and its prelude.

    Parameters
    ----------
    product : Product
        The algebra.
    u, a : DType
        Types of the values of the vector and of the matrix.
    prelude : Prelude, optional
        Where functors are put; by default a new one.
    """
    prelude = prelude or Prelude()
    macros = {
        "ADD": prelude.functor(product.semiring.monoid),
        "MUL": prelude.functor(product.semiring.multiply),
        "U": u.ctype, "A": a.ctype, "T": product.domain.ctype, "Z": product.result.ctype,
        "FLIP": str(int(product.flip)), "ISO": "0",
    }  # fmt: skip
    return macros, prelude.text


def accumulator(
    accum: BinaryOp | None, w: DType, z: DType, prelude: Prelude
) -> tuple[str, str, str]:
    """Return functor, domain and result of what adds results of type `z` to entries of type `w`.

    As ``Accum`` in common/entry.cuh takes them; without an accumulator one that assigns.
    """
    if accum is None:
        return "NoAccum", "bool", "bool"
    domain, result = accum.types(w, z)
    return prelude.functor(accum), domain.ctype, result.ctype


def accum_macros(accum: BinaryOp | None, w: DType, z: DType, prelude: Prelude) -> dict[str, str]:
    """Return the macros of an accumulator; none if there is none."""
    if accum is None:
        return {}
    names = ("ACCUM", "ACCUM_T", "ACCUM_Z")
    return dict(zip(names, accumulator(accum, w, z, prelude), strict=True))


@functools.cache
def _operator_functor(op: Operator) -> tuple[str, str]:
    """Return the functor's name, and its C++ text if the operator is a user's."""
    if not op.body:
        return op.cuda, ""
    return op.cuda, _STRUCT.format(name=op.cuda, body=op.body, more="")


@functools.cache
def _monoid_functor(monoid: Monoid) -> tuple[str, str]:
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
