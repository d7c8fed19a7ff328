"""Quotients, powers, remainders and bits of two numbers: rows with the C++ text of their functor.

Names, and values at zeros, extremes and NaN, are those of GraphBLAS. Rows `of_numbers` are not in
the C library: python-graphblas has Numba compile them, and so has the cpu backend.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lagpu.algebra.operators import BinaryOp
from lagpu.algebra.rules import arithmetic, integral, integral64, real
from lagpu.dtypes import cast, lookup

__all__ = ["Arithmetic", "Bits"]

_CDIV = """
  if constexpr (Limits<T>::is_float) return Z({x} / {y});
  if constexpr (!Limits<T>::is_float) {{
    if ({y} == T(0)) {{
      if ({x} == T(0)) return Z(0);
      return Z({x} < T(0) ? Limits<T>::smallest() : Limits<T>::largest());
    }}
    if ({y} == T(-1) && T(-1) < T(0)) return Z(wrapping<T>(0) - wrapping<T>({x}));
    return Z({x} / {y});
  }}
  return Z(0);"""
_FLOORDIV = """
  if constexpr (Limits<T>::is_float) {{
    if ({y} == T(0)) return Z({x} / {y});
    const T rest = fmod({x}, {y});
    T quotient = ({x} - rest) / {y};
    if (rest != T(0) && ({y} < T(0)) != (rest < T(0))) quotient -= T(1);
    if (quotient == T(0)) return Z(copysign(T(0), {x} / {y}));
    const T below = floor(quotient);
    return Z(quotient - below > T(0.5) ? below + T(1) : below);
  }}
  if constexpr (!Limits<T>::is_float) {{
    if ({y} == T(0)) return Z(0);
    if ({y} == T(-1) && T(-1) < T(0)) return Z(wrapping<T>(0) - wrapping<T>({x}));
    const T quotient = {x} / {y};
    const bool down = {x} % {y} != T(0) && ({x} < T(0)) != ({y} < T(0));
    return Z(down ? quotient - T(1) : quotient);
  }}
  return Z(0);"""
# A power of integers is computed in FP64 and saturates, as in GraphBLAS; a whole one is rounded,
# because pow of CUDA may be less than it by a bit.
_POW = """
  if constexpr (Limits<T>::is_float) return Z(x != x ? x : y != y ? y : pow(x, y));
  if constexpr (!Limits<T>::is_float) {
    const f64 power = pow(f64(x), f64(y));
    return cast<Z>(y < T(0) ? power : rint(power));
  }
  return Z(0);"""
_BITS = "const i32 bits = 8 * i32(sizeof(T)); "
_AT = (
    _BITS
    + "if (y < T(1) || y > T(bits)) return Z({0}); "
    + "const T bit = T(wrapping<T>(1) << (i32(y) - 1)); "
)
_BSHIFT = (
    _BITS
    + "const i32 by = i32((i64(y) & 255) ^ 128) - 128; "  # as INT8, which GraphBLAS makes of it
    + "if (by >= bits) return Z(0); if (by <= -bits) return Z(x < T(0) ? T(-1) : T(0)); "
    + "return Z(by >= 0 ? T(wrapping<T>(x) << by) : T(x >> -by));"
)
_BINOM = """
  if (y < T(0) || y > x) return Z(0);
  const i64 n = i64(x), most = i64(y) < n - i64(y) ? i64(y) : n - i64(y);
  i64 found = 1;
  for (i64 step = 0; step < most; step++) found = i64(u64(found) * u64(n - step)) / (step + 1);
  return Z(found);"""


def _cdiv(x: Any, y: Any) -> Any:
    """Divide toward zero; an integer divided by 0 is the extreme of its sign, and 0 / 0 is 0."""
    dtype = lookup(np.asarray(x).dtype)
    if dtype.is_float:
        return np.divide(x, y)
    by = np.where(y == 0, 1, y)
    quotient = np.floor_divide(x, by)
    inexact = (quotient * by != x) & (quotient < 0)
    extreme = np.where(x < 0, dtype.smallest, np.where(x > 0, dtype.largest, 0))
    return np.where(y == 0, extreme, quotient + inexact).astype(dtype.numpy)


def _pow(x: Any, y: Any) -> Any:
    dtype = lookup(np.asarray(x).dtype)
    if dtype.is_float:
        return np.where(np.isnan(x) | np.isnan(y), np.nan, np.power(x, y))
    return cast(np.power(np.float64(x), np.float64(y)), dtype)


def _remainder(x: float, y: float) -> float:
    """Return what IEEE's remainder leaves, of the nearest multiple."""
    defined = x == x and y == y and not math.isinf(x) and y != 0
    return math.remainder(x, y) if defined else math.nan


def _bit(x: Any, y: Any) -> tuple[Any, Any]:
    """Return (whether y is 1 .. bits, the number with the bit y)."""
    bits = 8 * np.asarray(x).dtype.itemsize
    inside = (y >= 1) & (y <= bits)
    place = np.where(inside, y, 1).astype(np.uint64) - np.uint64(1)
    return inside, np.left_shift(np.uint64(1), place).astype(np.asarray(x).dtype)


def _bget(x: Any, y: Any) -> Any:
    inside, bit = _bit(x, y)
    return np.where(inside & ((x & bit) != 0), 1, 0)


def _bset(x: Any, y: Any) -> Any:
    inside, bit = _bit(x, y)
    return np.where(inside, x | bit, x)


def _bclr(x: Any, y: Any) -> Any:
    inside, bit = _bit(x, y)
    return np.where(inside, x & ~bit, x)


def _bshift(x: Any, y: Any) -> Any:
    x = np.asarray(x)
    bits, k = 8 * x.dtype.itemsize, np.asarray(y).astype(np.int8).astype(np.int64)
    left = np.left_shift(x, np.clip(k, 0, bits - 1).astype(x.dtype))
    right = np.right_shift(x, np.clip(-k, 0, bits - 1).astype(x.dtype))
    gone = np.where(x < 0, -1, 0).astype(x.dtype)
    return np.where(k >= bits, 0, np.where(k <= -bits, gone, np.where(k >= 0, left, right)))


def _binom(n: Any, k: Any) -> Any:
    if k < 0 or k > n:
        return 0
    found = 1
    for step in range(min(k, n - k)):
        found = found * (n - step) // (step + 1)
    return found


def _real(name: str, numpy: Any, body: str, **more: Any) -> BinaryOp:
    return BinaryOp(name, numpy, name.capitalize(), body, domain=real, **more)


def _compared(name: str, numpy: Any, sign: str, flips_to: str = "") -> BinaryOp:
    """Return a comparison that gives 1 or 0 in the type of its operands."""
    return BinaryOp(name, numpy, name.capitalize(), f"x {sign} y", flips_to=flips_to)


class Arithmetic:
    """Rows of the table of binary operators."""

    rminus = BinaryOp(
        "rminus", lambda x, y: np.subtract(y, x), "Rminus", "wrapping<T>(y) - wrapping<T>(x)",
        domain=arithmetic, flips_to="minus",
    )  # fmt: skip
    rtruediv = _real("rtruediv", lambda x, y: np.divide(y, x), "y / x", flips_to="truediv")
    cdiv = BinaryOp(
        "cdiv", _cdiv, "Cdiv", _CDIV.format(x="x", y="y"), domain=arithmetic, flips_to="rdiv"
    )
    rdiv = BinaryOp(
        "rdiv", lambda x, y: _cdiv(y, x), "Rdiv", _CDIV.format(x="y", y="x"), domain=arithmetic,
        flips_to="cdiv",
    )  # fmt: skip
    floordiv = BinaryOp(
        "floordiv", lambda x, y: x // y, "Floordiv", _FLOORDIV.format(x="x", y="y"),
        domain=arithmetic, of_numbers=True, flips_to="rfloordiv",
    )  # fmt: skip
    rfloordiv = BinaryOp(
        "rfloordiv", lambda x, y: y // x, "Rfloordiv", _FLOORDIV.format(x="y", y="x"),
        domain=arithmetic, of_numbers=True, flips_to="floordiv",
    )  # fmt: skip
    pow = BinaryOp("pow", _pow, "Pow", _POW, domain=arithmetic)
    rpow = _real("rpow", lambda x, y: y**x, "pow(y, x)", of_numbers=True)
    absfirst = BinaryOp(
        "absfirst", lambda x, y: abs(x), "Absfirst", "Abs::call<Z, T>(x, x, i, k, j)",
        of_numbers=True, flips_to="abssecond", reads=(True, False),
    )  # fmt: skip
    abssecond = BinaryOp(
        "abssecond", lambda x, y: abs(y), "Abssecond", "Abs::call<Z, T>(y, y, i, k, j)",
        of_numbers=True, flips_to="absfirst", reads=(False, True),
    )  # fmt: skip
    iseq = _compared("iseq", np.equal, "==")
    isne = _compared("isne", np.not_equal, "!=")
    islt = _compared("islt", np.less, "<", "isgt")
    isle = _compared("isle", np.less_equal, "<=", "isge")
    isgt = _compared("isgt", np.greater, ">", "islt")
    isge = _compared("isge", np.greater_equal, ">=", "isle")
    atan2 = _real("atan2", np.arctan2, "atan2(x, y)")
    copysign = _real("copysign", np.copysign, "copysign(x, y)")
    hypot = _real("hypot", np.hypot, "hypot(x, y)")
    fmod = _real("fmod", np.fmod, "fmod(x, y)")
    remainder = _real("remainder", np.frompyfunc(_remainder, 2, 1), "remainder(x, y)")
    ldexp = _real(
        "ldexp", lambda x, y: np.ldexp(x, cast(y, lookup("INT32"))), "ldexp(x, cast<i32>(y))"
    )
    binom = BinaryOp("binom", _binom, "Binom", _BINOM, domain=integral64, of_numbers=True)


class Bits:
    """Rows of the table of binary operators that see integers as bits."""

    band = BinaryOp("band", np.bitwise_and, "Band", "x & y", domain=integral)
    bor = BinaryOp("bor", np.bitwise_or, "Bor", "x | y", domain=integral)
    bxor = BinaryOp("bxor", np.bitwise_xor, "Bxor", "x ^ y", domain=integral)
    bxnor = BinaryOp("bxnor", lambda x, y: ~(x ^ y), "Bxnor", "~(x ^ y)", domain=integral)
    bget = BinaryOp(
        "bget",
        _bget,
        "Bget",
        _AT.format("0") + "return Z((x & bit) != T(0) ? 1 : 0);",
        domain=integral,
    )
    bset = BinaryOp("bset", _bset, "Bset", _AT.format("x") + "return Z(x | bit);", domain=integral)
    bclr = BinaryOp("bclr", _bclr, "Bclr", _AT.format("x") + "return Z(x & ~bit);", domain=integral)
    bshift = BinaryOp("bshift", _bshift, "Bshift", _BSHIFT, domain=integral)
