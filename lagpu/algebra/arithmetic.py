"""Arithmetic as the GPU computes it, on NumPy arrays: the meaning of each built-in operator."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from lagpu.algebra.operators import (
    BinaryOp,
    IndexUnaryOp,
    Monoid,
    UnaryOp,
    arithmetic,
    index,
    integral,
    integral64,
    logical,
    real,
    same,
)
from lagpu.algebra.registry import SIGNS, Table
from lagpu.dtypes import BOOL, DType, cast, lookup
from lagpu.errors import DomainMismatch

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


# ------------------------------------------------------------------------------------------
# Functions of one real number: rows whose functor is the C++ text that the row has.
#
# Their names, and their values at signed zeros, infinities and NaN, are those of GraphBLAS.
# Integers and BOOL become FP64 first, as for `sqrt`.


def _function(name: str, numpy: Any, body: str = "") -> UnaryOp:
    """Return a row of a real function of this name in C++ too, unless a body is given."""
    return UnaryOp(name, numpy, name.capitalize(), body or f"{name}(x)", domain=real)


def _question(name: str, numpy: Any, body: str) -> UnaryOp:
    return UnaryOp(name, numpy, name.capitalize(), body, domain=real, result=logical)


def _round(x: Any) -> Any:
    """Round halves away from zero, as C does."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def _lgamma(x: Any) -> Any:
    return np.where(np.isinf(x), np.inf, scipy.special.gammaln(x))


def _exponent(x: Any) -> Any:
    """Return the exponent of 2, and 0 for what is not finite."""
    return np.where(np.isfinite(x), np.frexp(x)[1], 0)


class Functions:
    """Rows of the table of unary operators."""

    acos = _function("acos", np.arccos)
    acosh = _function("acosh", np.arccosh)
    asin = _function("asin", np.arcsin)
    asinh = _function("asinh", np.arcsinh)
    atan = _function("atan", np.arctan)
    atanh = _function("atanh", np.arctanh)
    bnot = UnaryOp("bnot", np.invert, "Bnot", "~x", domain=integral)
    cbrt = _function("cbrt", np.cbrt)
    ceil = _function("ceil", np.ceil)
    cos = _function("cos", np.cos)
    cosh = _function("cosh", np.cosh)
    erf = _function("erf", lambda x: scipy.special.erf(x))
    erfc = _function("erfc", lambda x: scipy.special.erfc(x))
    exp2 = _function("exp2", np.exp2)
    expm1 = _function("expm1", np.expm1)
    floor = _function("floor", np.floor)
    frexpe = _function(
        "frexpe", _exponent, "int e = 0; if (x - x == T(0)) frexp(x, &e); return Z(e);"
    )
    frexpx = _function("frexpx", lambda x: np.frexp(x)[0], "int e = 0; return Z(frexp(x, &e));")
    isfinite = _question("isfinite", np.isfinite, "x - x == T(0)")
    isinf = _question("isinf", np.isinf, "x == x && x - x != T(0)")
    isnan = _question("isnan", np.isnan, "x != x")
    lgamma = _function("lgamma", _lgamma)
    log10 = _function("log10", np.log10)
    log1p = _function("log1p", np.log1p)
    log2 = _function("log2", np.log2)
    round = _function("round", _round)
    signum = _function("signum", np.sign, "x > T(0) ? T(1) : x < T(0) ? T(-1) : x == x ? T(0) : x")
    sin = _function("sin", np.sin)
    sinh = _function("sinh", np.sinh)
    tan = _function("tan", np.tan)
    tanh = _function("tanh", np.tanh)
    tgamma = _function("tgamma", lambda x: scipy.special.gamma(x))
    trunc = _function("trunc", np.trunc)


# ------------------------------------------------------------------------------------------
# The tables of unary, binary and index-unary operators, and of monoids.
#
# Each row is one operator with its meaning in NumPy; its functor is in
# ``backends/gpu/kernels/common/algebra.cuh``, or is text of the row (`lagpu.algebra.arithmetic`
# and `lagpu.algebra.arithmetic`). Names are those of GraphBLAS.


_SIGNED = re.compile("(value|row|col|index)?([<>]=?|[!=]=)")


def _functor(name: str) -> str:
    """Return the functor's name for a user's operator, distinct from all built-in functors."""
    return "User_" + name


# ---------------------------------------------------------------------------------------- unary


class UnaryTable(Functions, Table[UnaryOp]):
    """``z = f(x)``."""

    kind, row = "unary", UnaryOp

    identity = UnaryOp("identity", lambda x: x, "Identity")
    ainv = UnaryOp("ainv", lambda x: np.negative(x), "Ainv", domain=arithmetic)
    abs = UnaryOp("abs", np.abs, "Abs")
    lnot = UnaryOp("lnot", np.logical_not, "Lnot", domain=logical)
    minv = UnaryOp("minv", lambda x: 1 / x, "Minv", domain=real)
    one = UnaryOp("one", np.ones_like, "One")
    exp = UnaryOp("exp", np.exp, "Exp", domain=real)
    log = UnaryOp("log", np.log, "Log", domain=real)
    sqrt = UnaryOp("sqrt", np.sqrt, "Sqrt", domain=real)

    def register(
        self, name: str, numpy: Callable[[Any], Any], cuda: str, *, result: Any = None
    ) -> UnaryOp:
        """Add ``z = f(x)`` for every backend.

        `cuda` is compiled and run as it stands, and `numpy` is called: both are trusted code. Never
        take them from a file or from somebody else.

        Parameters
        ----------
        name : str
            Its name in this table.
        numpy : callable
            The function of one number, of operators and NumPy calls that Numba can compile.
        cuda : str
            The same as a C++ expression in ``x``, such as ``"x * x + 1"``.
        result : dtype, optional
            Result type if it is not that of `x`.
        """
        return self._add(
            UnaryOp(name, numpy, _functor(name), cuda, result=_constant(result), of_numbers=True)
        )


def _constant(dtype: Any) -> Callable[[DType], DType]:
    """Return the rule whose result is always `dtype`, or `same` for None."""
    if dtype is None:
        return same
    fixed = lookup(dtype)
    return logical if fixed is BOOL else lambda _dtype: fixed


# --------------------------------------------------------------------------------------- binary


def _no_value(*_operands: Any) -> Any:
    raise NotImplementedError("a positional operator reads indices, not values")


def _positional(name: str, index_of: str) -> BinaryOp:
    """Return the row of an operator that returns an index of the product and reads no value."""
    function = name.capitalize()
    neither = (False, False)
    return BinaryOp(name, _no_value, function, result=index, positional=index_of, reads=neither)


class BinaryTable(Arithmetic, Bits, Table[BinaryOp]):
    """``z = f(x, y)``."""

    kind, row = "binary", BinaryOp

    plus = BinaryOp("plus", np.add, "Plus", domain=arithmetic)
    minus = BinaryOp("minus", np.subtract, "Minus", domain=arithmetic, flips_to="rminus")
    times = BinaryOp("times", np.multiply, "Times", domain=arithmetic)
    truediv = BinaryOp("truediv", np.divide, "Truediv", domain=real, flips_to="rtruediv")
    min = BinaryOp("min", np.fmin, "Min")
    max = BinaryOp("max", np.fmax, "Max")
    first = BinaryOp("first", lambda x, y: x, "First", flips_to="second", reads=(True, False))
    second = BinaryOp("second", lambda x, y: y, "Second", flips_to="first", reads=(False, True))
    pair = BinaryOp("pair", lambda x, y: np.ones_like(x), "Pair", reads=(False, False))
    any = BinaryOp("any", lambda x, y: y, "AnyOf")
    land = BinaryOp("land", np.logical_and, "Land", domain=logical)
    lor = BinaryOp("lor", np.logical_or, "Lor", domain=logical)
    lxor = BinaryOp("lxor", np.logical_xor, "Lxor", domain=logical)
    lxnor = BinaryOp("lxnor", lambda x, y: np.equal(x, y), "Lxnor", domain=logical)
    eq = BinaryOp("eq", np.equal, "Eq", result=logical)
    ne = BinaryOp("ne", np.not_equal, "Ne", result=logical)
    lt = BinaryOp("lt", np.less, "Lt", result=logical, flips_to="gt")
    le = BinaryOp("le", np.less_equal, "Le", result=logical, flips_to="ge")
    gt = BinaryOp("gt", np.greater, "Gt", result=logical, flips_to="lt")
    ge = BinaryOp("ge", np.greater_equal, "Ge", result=logical, flips_to="le")
    firsti = _positional("firsti", "i")
    firstj = _positional("firstj", "k")
    secondi = _positional("secondi", "k")
    secondj = _positional("secondj", "j")

    @functools.cache  # noqa: B019 (one object for each pair of tolerances)
    def isclose(self, rel_tol: float = 1e-7, abs_tol: float = 0.0) -> BinaryOp:
        """Return the operator that says whether two numbers are equal up to a tolerance.

        Parameters
        ----------
        rel_tol : float
            Share of the greater of the two numbers.
        abs_tol : float
            The least difference that counts.
        """
        relative, absolute = (float(scalar) for scalar in (rel_tol, abs_tol))

        def close(x: Any, y: Any) -> Any:
            off = abs(x - y)
            return x == y or (
                off <= max(relative * max(abs(x), abs(y)), absolute) and off < math.inf
            )

        words = f"{relative.hex()}_{absolute.hex()}".translate(str.maketrans(".+-", "pam"))
        body = _CLOSE.format(repr(relative), repr(absolute))
        return BinaryOp("isclose", close, f"Isclose_{words}", body, real, logical, of_numbers=True)

    def register(
        self, name: str, numpy: Callable[[Any, Any], Any], cuda: str, *, result: Any = None
    ) -> BinaryOp:
        """Add ``z = f(x, y)`` for every backend.

        `cuda` is compiled and run as it stands, and `numpy` is called: both are trusted code. Never
        take them from a file or from somebody else.

        Parameters
        ----------
        name : str
            Its name in this table.
        numpy : callable
            The function of two numbers, of operators and NumPy calls that Numba can compile.
        cuda : str
            The same as a C++ expression in ``x`` and ``y``, such as ``"x + 2 * y"``.
        result : dtype, optional
            Result type if it is not that of the operands.
        """
        return self._add(
            BinaryOp(name, numpy, _functor(name), cuda, result=_constant(result), of_numbers=True)
        )


# ----------------------------------------------------------------------------------- indexunary


_CLOSE = (
    "x == y || (fabs(x - y) <= max(T({0}) * max(T(fabs(x)), T(fabs(y))), T({1})) && "
    "x - y - (x - y) == 0)"
)


class IndexUnaryTable(Table[IndexUnaryOp]):
    """``z = f(x, i, j, thunk)``: operators with a BOOL result select, the others apply."""

    kind, row = "indexunary", IndexUnaryOp

    rowindex = IndexUnaryOp("rowindex", lambda x, i, j, t: i + t, "RowIndex", result=index)
    colindex = IndexUnaryOp("colindex", lambda x, i, j, t: j + t, "ColIndex", result=index)
    diagindex = IndexUnaryOp("diagindex", lambda x, i, j, t: j - i - t, "DiagIndex", result=index)
    index = IndexUnaryOp("index", lambda x, i, j, t: i + t, "RowIndex", result=index)
    tril = IndexUnaryOp("tril", lambda x, i, j, t: j <= i + t, "Tril", result=logical)
    triu = IndexUnaryOp("triu", lambda x, i, j, t: j >= i + t, "Triu", result=logical)
    diag = IndexUnaryOp("diag", lambda x, i, j, t: j == i + t, "Diag", result=logical)
    offdiag = IndexUnaryOp("offdiag", lambda x, i, j, t: j != i + t, "Offdiag", result=logical)
    rowle = IndexUnaryOp("rowle", lambda x, i, j, t: i <= t, "RowLe", result=logical)
    rowgt = IndexUnaryOp("rowgt", lambda x, i, j, t: i > t, "RowGt", result=logical)
    colle = IndexUnaryOp("colle", lambda x, i, j, t: j <= t, "ColLe", result=logical)
    colgt = IndexUnaryOp("colgt", lambda x, i, j, t: j > t, "ColGt", result=logical)
    indexle = IndexUnaryOp("indexle", lambda x, i, j, t: i <= t, "RowLe", result=logical)
    indexgt = IndexUnaryOp("indexgt", lambda x, i, j, t: i > t, "RowGt", result=logical)
    valueeq = IndexUnaryOp(
        "valueeq", lambda x, i, j, t: x == t, "ValueEq", result=logical, uses_value=True
    )
    valuene = IndexUnaryOp(
        "valuene", lambda x, i, j, t: x != t, "ValueNe", result=logical, uses_value=True
    )
    valuelt = IndexUnaryOp(
        "valuelt", lambda x, i, j, t: x < t, "ValueLt", result=logical, uses_value=True
    )
    valuele = IndexUnaryOp(
        "valuele", lambda x, i, j, t: x <= t, "ValueLe", result=logical, uses_value=True
    )
    valuegt = IndexUnaryOp(
        "valuegt", lambda x, i, j, t: x > t, "ValueGt", result=logical, uses_value=True
    )
    valuege = IndexUnaryOp(
        "valuege", lambda x, i, j, t: x >= t, "ValueGe", result=logical, uses_value=True
    )

    def lookup(self, op: Any) -> IndexUnaryOp:
        """Return the operator given as itself, by name, or as an operator of `lagpu.select`.

        A sign is a name too: ``">"`` is that of ``valuegt``, ``"row<="`` that of ``rowle``.
        """
        signed = _SIGNED.fullmatch(op) if type(op) is str else None
        if signed is not None:
            op = f"{signed[1] or 'value'}{SIGNS[signed[2]]}"
        kept = getattr(op, "op", None)
        return super().lookup(kept if isinstance(kept, IndexUnaryOp) else op)

    def register(
        self, name: str, numpy: Callable[[Any, Any, Any, Any], Any], cuda: str, *, result: Any
    ) -> IndexUnaryOp:
        """Add ``z = f(x, i, j, thunk)`` for every backend.

        `cuda` is compiled and run as it stands, and `numpy` is called: both are trusted code. Never
        take them from a file or from somebody else.

        Parameters
        ----------
        name : str
            Its name in this table.
        numpy : callable
            The function ``(x, i, j, thunk)`` of numbers, which Numba can compile.
        cuda : str
            The same as a C++ expression in ``x``, ``i``, ``j`` and ``y`` (the thunk).
        result : dtype
            Result type; an operator of result BOOL can select.
        """
        row = IndexUnaryOp(
            name,
            numpy,
            _functor(name),
            cuda,
            result=_constant(result),
            of_numbers=True,
            uses_value=True,
        )
        return self._add(row)


unary = UnaryTable()
binary = BinaryTable()
indexunary = IndexUnaryTable()

# --------------------------------------------------------------------------------------- monoid


def _zero(dtype: DType) -> Any:
    return dtype.numpy.type(0)


def _one(dtype: DType) -> Any:
    return dtype.numpy.type(1)


def _all_bits(dtype: DType) -> Any:
    return ~dtype.numpy.type(0)


# The identity and the end of a monoid on bits, in C++.
_BOR, _BAND = ("Z(0)", "z == Z(~Z(0))"), ("Z(~Z(0))", "z == Z(0)")
_BXOR, _BXNOR = ("Z(0)", "false"), ("Z(~Z(0))", "false")


def _largest(dtype: DType) -> Any:
    return dtype.largest


def _smallest(dtype: DType) -> Any:
    return dtype.smallest


def _of_type(value: Any, what: str) -> Callable[[DType], Any]:
    """Return the rule that casts `value` to a type, or raises if the type cannot hold it."""

    def typed(dtype: DType) -> Any:
        try:
            number = dtype.numpy.type(value)
        except OverflowError:
            number = None
        if number is None or not (dtype.is_float or number == value):
            raise DomainMismatch(f"{what} {value} does not fit {dtype}.")
        return number

    return typed


class MonoidTable(Table[Monoid]):
    """Associative, commutative operators with an identity; a terminal value ends a sum early."""

    kind, row = "monoid", Monoid

    plus = Monoid("plus", binary.plus, _zero)
    times = Monoid("times", binary.times, _one)
    min = Monoid("min", binary.min, _largest, terminal=_smallest, idempotent=True)
    max = Monoid("max", binary.max, _smallest, terminal=_largest, idempotent=True)
    any = Monoid("any", binary.any, _zero, has_any_terminal=True, exact=False, idempotent=True)
    lor = Monoid("lor", binary.lor, _zero, terminal=_one, idempotent=True)
    land = Monoid("land", binary.land, _one, terminal=_zero, idempotent=True)
    lxor = Monoid("lxor", binary.lxor, _zero)
    lxnor = Monoid("lxnor", binary.lxnor, _one)
    eq = Monoid("eq", binary.lxnor, _one)
    bor = Monoid("bor", binary.bor, _zero, terminal=_all_bits, idempotent=True, cuda=_BOR)
    band = Monoid("band", binary.band, _all_bits, terminal=_zero, idempotent=True, cuda=_BAND)
    bxor = Monoid("bxor", binary.bxor, _zero, cuda=_BXOR)
    bxnor = Monoid("bxnor", binary.bxnor, _all_bits, cuda=_BXNOR)

    def register_new(
        self, name: str, binaryop: BinaryOp, identity: Any, *, terminal: Any = None, **lazy: Any
    ) -> Monoid:
        """Do what `register` does, by its name in python-graphblas."""
        return self.register(name, binaryop, identity, terminal=terminal)

    def lookup(self, op: Any) -> Monoid:
        """Return the monoid given as itself, by name, or as its binary operator.

        Raises
        ------
        DomainMismatch, UnknownOperator
            As `Table.lookup` raises them.
        """
        if isinstance(op, BinaryOp) and op.name in self and self[op.name].op.name == op.name:
            found = self[op.name]
            return found if op.dtype is None else found[op.dtype]
        return super().lookup(op)

    def register(self, name: str, op: BinaryOp, identity: Any, *, terminal: Any = None) -> Monoid:
        """Make a monoid of an operator that is associative and commutative.

        Parameters
        ----------
        name : str
            Its name in this table.
        op : BinaryOp
            The operator, whose result has the type of its operands.
        identity : scalar
            ``op(identity, x) == x`` for every `x`.
        terminal : scalar, optional
            ``op(terminal, x) == terminal`` for every `x`.
        """
        found = binary.lookup(op)
        if found.positional:
            raise DomainMismatch(f"monoid: {found!r} reads indices, so it cannot add.")
        row = Monoid(
            name,
            found,
            _of_type(identity, f"monoid.{name}: identity"),
            terminal=None if terminal is None else _of_type(terminal, f"monoid.{name}: terminal"),
            registered=True,
        )
        return self._add(row)


monoid = MonoidTable()
