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
  static constexpr bool reads_x = {reads_x}, reads_y = {reads_y};
  template <class Z, class T>
  LG_DEVICE static Z call(T x, T y, i64 i, i64 k, i64 j) {{ {code} }}
{more}}};
"""
_MONOID = """  template <class Z>
  LG_DEVICE static Z identity() {{ return Z({identity}); }}
  template <class Z>
  LG_DEVICE static bool is_terminal(Z z) {{ return {terminal}; }}
"""
# Functions that CUDA has without an include, for the functors that name them.
_SIM_MATH = """#if defined(LAGPU_SIM) && !defined(LG_FUNCTOR_MATH)
#define LG_FUNCTOR_MATH
#define LG_ONE(name) extern "C" double name(double) noexcept; \\
  inline float name(float x) {{ return __builtin_##name##f(x); }}
#define LG_TWO(name) extern "C" double name(double, double) noexcept; \\
  inline float name(float x, float y) {{ return __builtin_##name##f(x, y); }}
{ones}
{twos}
#undef LG_ONE
#undef LG_TWO
inline double frexp(double x, int* e) {{ return __builtin_frexp(x, e); }}
inline double ldexp(double x, int e) {{ return __builtin_ldexp(x, e); }}
#endif
""".format(
    ones=" ".join(
        f"LG_ONE({name})"
        for name in (
            *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf"),
            *("erfc", "exp2", "expm1", "lgamma", "log10", "log1p", "log2", "rint", "round", "sin"),
            *("sinh", "tan", "tanh", "tgamma", "trunc"),
        )
    ),
    twos=" ".join(
        f"LG_TWO({name})" for name in ("atan2", "copysign", "fmod", "hypot", "remainder")
    ),
)


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
        return _SIM_MATH + "".join(self._texts) if self._texts else ""


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
    """Return the functor's name, and its C++ text unless it is in ``common/algebra.cuh``."""
    return op.cuda, _struct(op.cuda, op, op.body) if op.body else ""


@functools.cache
def _monoid_functor(monoid: Monoid) -> tuple[str, str]:
    """Return the functor's name, and its C++ text unless it is in ``common/algebra.cuh``."""
    if not (monoid.registered or monoid.op.body):
        return monoid.op.cuda, ""
    name = f"User_monoid_{monoid.name}"
    body = monoid.op.body or f"{monoid.op.cuda}::call<Z, T>(x, y, i, k, j)"
    identity, terminal = monoid.cuda or _as_numbers(monoid)
    return name, _struct(
        name, monoid.op, body, _MONOID.format(identity=identity, terminal=terminal)
    )


def _struct(name: str, op: Operator, body: str, more: str = "") -> str:
    """Return the text of a functor."""
    x, y = (str(read).lower() for read in getattr(op, "reads", (True, True)))
    code = body if body.endswith(";") else f"return Z({body});"
    return _STRUCT.format(name=name, reads_x=x, reads_y=y, code=code, more=more)


def _as_numbers(monoid: Monoid) -> tuple[str, str]:
    """Return the identity of a user's monoid, and whether `z` is terminal, in C++."""
    end = "false"
    if monoid.terminal is not None:
        end = f"z == Z({_literal(monoid.terminal(FP64))})"
    return _literal(monoid.identity(FP64)), end


def _literal(number: DType) -> str:
    return repr(float(number))  # type: ignore[arg-type]
