"""Arithmetic as the GPU computes it, on NumPy arrays: the meaning of each built-in operator."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable
from operator import attrgetter
from types import FunctionType
from typing import Any, ClassVar, TypeVar

import numpy as np

from lagpu.algebra.operators import (
    SIGNS,
    BinaryOp,
    IndexUnaryOp,
    Monoid,
    Parameterized,
    Table,
    UnaryOp,
    arithmetic,
    index,
    integral,
    integral64,
    logical,
    real,
    result_of,
    same,
)
from lagpu.dtypes import ALL, BOOL, FP64, DType, cast, lookup
from lagpu.errors import DomainMismatch, InvalidValue

Kind = TypeVar("Kind", UnaryOp, BinaryOp, IndexUnaryOp)

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
_MOD = """
  if constexpr (Limits<T>::is_float) {
    const T rest = fmod(x, y);
    if (rest == T(0)) return Z(copysign(T(0), y));
    return Z((y < T(0)) != (rest < T(0)) ? rest + y : rest);
  }
  if constexpr (!Limits<T>::is_float) {
    if (y == T(0) || (y == T(-1) && T(-1) < T(0))) return Z(0);
    const T rest = x % y;
    return Z(rest != T(0) && (x < T(0)) != (y < T(0)) ? rest + y : rest);
  }
  return Z(0);"""
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
  for (i64 step = 0; step < most; step++) {
    const i64 by = n - step, rest = found % (step + 1) * by / (step + 1);
    if (found / (step + 1) > (Limits<i64>::largest() - rest) / by) return Limits<Z>::largest();
    found = found / (step + 1) * by + rest;
  }
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
    """Return the remainder of IEEE 754: the difference to the nearest multiple."""
    defined = x == x and y == y and not math.isinf(x) and y != 0
    return math.remainder(x, y) if defined else math.nan


def _on_bit(change: Callable[[Any, Any], Any], *, keeps: bool = True) -> Callable[[Any, Any], Any]:
    """Return a function that changes bit y of x, 1 .. bits; for another y it returns x, or 0."""

    def changed(x: Any, y: Any) -> Any:
        x = np.asarray(x)
        inside = (y >= 1) & (y <= 8 * x.dtype.itemsize)
        place = np.where(inside, y, 1).astype(np.uint64) - np.uint64(1)
        bit = np.left_shift(np.uint64(1), place).astype(x.dtype)
        return np.where(inside, change(x, bit), x if keeps else 0)

    return changed


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
        rest = found % (step + 1) * (n - step) // (step + 1)
        if found // (step + 1) > (2**63 - 1 - rest) // (n - step):
            return 2**63 - 1  # more do not fit, and need no more steps
        found = found // (step + 1) * (n - step) + rest
    return found


# ---- the tables of unary, binary and index-unary operators, and of monoids
#
# Each row is one operator with its name of GraphBLAS, its meaning in NumPy and its formula. Its
# functor is in ``backends/gpu/kernels/common/algebra.cuh``, or is the C++ text of the row. Values
# at signed zeros, infinities and NaN are those of GraphBLAS.
_SIGNED = re.compile("(value|row|col|index)?([<>]=?|[!=]=)")


class OperatorTable(Table[Kind]):
    """A table of operators that users extend with a function and the same as C++ text."""

    _of_users: ClassVar[dict[str, Any]] = {}

    def register(
        self, name: str, numpy: Callable[..., Any], cuda: str, *, result: Any = None
    ) -> Kind:
        """Add an operator for every backend.

        `cuda` is compiled and run as it is, and `numpy` is called: both are trusted code. Never
        take them from a file or from somebody else.

        Parameters
        ----------
        name : str
            Its name in this table.
        numpy : callable
            The function of one number, of two, or of ``(x, i, j, thunk)``, by the kind of the
            table; of operators and NumPy calls that Numba can compile.
        cuda : str
            The same as a C++ expression in ``x``, in ``x`` and ``y``, or in ``x``, ``i``, ``j`` and
            ``y`` (the thunk), such as ``"x + 2 * y"``.
        result : dtype, optional
            Result type if it is not that of the operands. An index-unary operator needs it; one
            whose result is BOOL can select.
        """
        # No built-in functor has such a name, and no other name of a table has a capital letter.
        functor = f"User_{self.kind}_{name.replace('.', 'Dot')}"
        more = {"result": _constant(result), "of_numbers": True, **self._of_users}
        return self._add(self.row(name, numpy, functor, cuda, formula=cuda, **more))

    def register_new(
        self, name: str, function: Callable[..., Any], *, cuda: str = "",
        result: Any = None, parameterized: bool = False, lazy: bool = False,
    ) -> Any:  # fmt: skip
        """Add an operator of a Python function, as python-graphblas does; see `register`.

        Parameters
        ----------
        name : str
            Its name in this table; one with a point, as ``"mine.next"``, is found as
            ``unary.mine.next``.
        function : callable
            As in `register`; with `parameterized` one that returns such a function.
        cuda : str
            The same in C++. Without it, as with `parameterized`, only the cpu backend computes the
            operator, with Numba.
        result : dtype, optional
            Result type; by default that of the function for one number of each type.
        parameterized : bool
            Make an operator for each choice of the parameters of `function`.
        lazy : bool
            Accepted as in python-graphblas; every function is compiled at its first use.

        Raises
        ------
        DomainMismatch
            If `function` is no function, or takes numbers of no type.
        """
        made = self.register_anonymous(
            function, name, cuda=cuda, result=result, parameterized=parameterized
        )
        return self._add(made)

    def register_anonymous(
        self, function: Callable[..., Any], name: str | None = None, *,
        cuda: str = "", result: Any = None, parameterized: bool = False,
    ) -> Any:  # fmt: skip
        """Return the operator of a Python function without a place in the table; see above."""
        if not isinstance(function, FunctionType):
            raise DomainMismatch(f"{self.kind}: {function!r} is not a function of numbers.")
        own = name or re.sub("[^a-z0-9]+", "_", function.__name__.lower()).strip("_")
        if parameterized:
            if cuda:
                raise InvalidValue(
                    f"{self.kind}.{own}: cuda={cuda!r} is one text for all parameters. "
                    "Register an operator for each choice of them, or leave cuda out."
                )
            return Parameterized(
                lambda *x, **y: self.register_anonymous(function(*x, **y), own, result=result),
                own,
                (function,),
            )
        functor = f"User_{next(_numbers)}_{own.replace('.', '_')}"  # no kind begins with digits
        rule = _inferred(function, own, self.row) if result is None else _constant(result)
        made: Any = self.row(
            own, function, functor, cuda, formula=cuda or f"{own}, a Python function", result=rule,
            of_numbers=True, **self._of_users,
        )  # fmt: skip
        if all(isinstance(result_of(made, kind), DomainMismatch) for kind in ALL):
            raise result_of(made, FP64)
        return made

    def lookup(self, op: Any) -> Kind:
        """Return the operator given as itself, by name or as a Python function."""
        row: Any = super().lookup(_of_function(self, op) if isinstance(op, FunctionType) else op)
        return row


_numbers = itertools.count()


@functools.lru_cache(maxsize=1024)  # a function is compiled once
def _of_function(table: Any, function: Any) -> Any:
    return table.register_anonymous(function)


def _inferred(function: Any, name: str, row: Any) -> Callable[[DType], DType]:
    """Return the rule of a function's result: its type for the number one of the domain."""

    @functools.cache
    def result(domain: DType) -> DType:
        one = True if domain.is_bool else domain.numpy.type(1)
        given = {UnaryOp: (one,), BinaryOp: (one, one)}.get(row, (one, 0, 0, one))
        try:
            with np.errstate(all="ignore"):
                return lookup(np.asarray(function(*given)).dtype)
        except Exception as error:
            raise DomainMismatch(f"{name}: has no result for {domain}: {error}") from error

    return result


def _constant(dtype: Any) -> Callable[[DType], DType]:
    """Return the rule whose result is always `dtype`, or `same` for None."""
    if dtype is None:
        return same
    fixed = lookup(dtype)
    return logical if fixed is BOOL else lambda _dtype: fixed


# ---- unary
def _unary(name: str, numpy: Any, formula: str, body: str = "", **more: Any) -> UnaryOp:
    return UnaryOp(name, numpy, name.capitalize(), body, formula=formula, **more)


def _function(name: str, numpy: Any, formula: str, body: str = "") -> UnaryOp:
    """Return the row of a real function, which has this name in C++ too unless a body is given."""
    return _unary(name, numpy, formula, body or f"{name}(x)", domain=real)


def _question(name: str, numpy: Any, formula: str, body: str) -> UnaryOp:
    return _unary(name, numpy, formula, body, domain=real, result=logical)


def _round(x: Any) -> Any:
    """Round halves away from zero, as C does."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def _special() -> Any:
    import scipy.special  # slow to import, and few programs need it

    return scipy.special


class UnaryTable(OperatorTable[UnaryOp]):
    """``z = f(x)``."""

    kind, row = "unary", UnaryOp
    signs: ClassVar[dict[str, str]] = {"-": "ainv"}

    identity = _unary("identity", lambda x: x, "x")
    ainv = _unary("ainv", lambda x: np.negative(x), "-x", domain=arithmetic)
    abs = _unary("abs", np.abs, "|x|")
    lnot = _unary("lnot", np.logical_not, "not x", domain=logical)
    minv = _unary("minv", lambda x: 1 / x, "1 / x", domain=real)
    one = _unary("one", np.ones_like, "1")
    exp = _unary("exp", np.exp, "e ** x", domain=real)
    log = _unary("log", np.log, "log x, to the base e", domain=real)
    sqrt = _unary("sqrt", np.sqrt, "the square root of x", domain=real)
    acos = _function("acos", np.arccos, "the angle whose cosine is x")
    acosh = _function("acosh", np.arccosh, "the number whose hyperbolic cosine is x")
    asin = _function("asin", np.arcsin, "the angle whose sine is x")
    asinh = _function("asinh", np.arcsinh, "the number whose hyperbolic sine is x")
    atan = _function("atan", np.arctan, "the angle whose tangent is x")
    atanh = _function("atanh", np.arctanh, "the number whose hyperbolic tangent is x")
    bnot = _unary("bnot", np.invert, "the bits that x does not have", "~x", domain=integral)
    cbrt = _function("cbrt", np.cbrt, "the cube root of x")
    ceil = _function("ceil", np.ceil, "the least whole number that is not below x")
    cos = _function("cos", np.cos, "the cosine of x")
    cosh = _function("cosh", np.cosh, "the hyperbolic cosine of x")
    erf = _function("erf", lambda x: _special().erf(x), "the error function of x")
    erfc = _function("erfc", lambda x: _special().erfc(x), "1 - erf(x)")
    exp2 = _function("exp2", np.exp2, "2 ** x")
    expm1 = _function("expm1", np.expm1, "e ** x - 1")
    floor = _function("floor", np.floor, "the greatest whole number that is not above x")
    frexpe = _function(
        "frexpe", lambda x: np.where(np.isfinite(x), np.frexp(x)[1], 0),
        "e of x = m * 2 ** e, where 1/2 <= |m| < 1",
        "int e = 0; if (x - x == T(0)) frexp(x, &e); return Z(e);",
    )  # fmt: skip
    frexpx = _function(
        "frexpx", lambda x: np.frexp(x)[0], "m of x = m * 2 ** e, where 1/2 <= |m| < 1",
        "int e = 0; return Z(frexp(x, &e));",
    )  # fmt: skip
    isfinite = _question(
        "isfinite", np.isfinite, "whether x is neither infinite nor NaN", "x - x == T(0)",
    )  # fmt: skip
    isinf = _question("isinf", np.isinf, "whether x is infinite", "x == x && x - x != T(0)")
    isnan = _question("isnan", np.isnan, "whether x is NaN", "x != x")
    lgamma = _function(
        "lgamma", lambda x: np.where(np.isinf(x), np.inf, _special().gammaln(x)), "log |Gamma(x)|"
    )
    log10 = _function("log10", np.log10, "log x, to the base 10")
    log1p = _function("log1p", np.log1p, "log (1 + x)")
    log2 = _function("log2", np.log2, "log x, to the base 2")
    round = _function("round", _round, "the nearest whole number; a half goes away from 0")
    signum = _function(
        "signum", np.sign, "-1, 0 or 1, the sign of x",
        "x > T(0) ? T(1) : x < T(0) ? T(-1) : x == x ? T(0) : x",
    )  # fmt: skip
    sin = _function("sin", np.sin, "the sine of x")
    sinh = _function("sinh", np.sinh, "the hyperbolic sine of x")
    tan = _function("tan", np.tan, "the tangent of x")
    tanh = _function("tanh", np.tanh, "the hyperbolic tangent of x")
    tgamma = _function("tgamma", lambda x: _special().gamma(x), "Gamma(x)")
    trunc = _function("trunc", np.trunc, "x without its fraction")


# ---- binary
def _binary(name: str, numpy: Any, formula: str, body: str = "", **more: Any) -> BinaryOp:
    more.setdefault("cuda", name.capitalize())
    return BinaryOp(name, numpy, body=body, formula=formula, **more)


def _real(name: str, numpy: Any, formula: str, body: str, **more: Any) -> BinaryOp:
    return _binary(name, numpy, formula, body, domain=real, **more)


def _no_value(*_operands: Any) -> Any:
    raise NotImplementedError("a positional operator reads indices, not values")


def _positional(name: str, index_of: str, side: str, flips_to: str) -> BinaryOp:
    """Return the row of an operator that returns an index of the product and reads no value."""
    entry = "left entry (i, k)" if name.startswith("first") else "right entry (k, j)"
    return _binary(
        name, _no_value, f"{index_of}, the {side} of the product's {entry}", result=index,
        positional=index_of, flips_to=flips_to, reads=(False, False),
    )  # fmt: skip


_CLOSE = (
    "x == y || (fabs(x - y) <= max(T({0}) * max(T(fabs(x)), T(fabs(y))), T({1})) && "
    "x - y - (x - y) == 0)"
)


def _isclose(rel_tol: float = 1e-7, abs_tol: float = 0.0) -> BinaryOp:
    """Return the operator that says whether two numbers are equal up to a tolerance.

    They may differ by `rel_tol` times the greater of the two, or by `abs_tol`.
    """
    relative, absolute = (float(scalar) for scalar in (rel_tol, abs_tol))

    def close(x: Any, y: Any) -> Any:
        off = abs(x - y)
        return x == y or (off <= max(relative * max(abs(x), abs(y)), absolute) and off < math.inf)

    words = f"{relative.hex()}_{absolute.hex()}".translate(str.maketrans(".+-", "pam"))
    body = _CLOSE.format(repr(relative), repr(absolute))
    more = {"cuda": f"Isclose_{words}", "result": logical, "of_numbers": True}
    return _real("isclose", close, body, body, **more)


class BinaryTable(OperatorTable[BinaryOp]):
    """``z = f(x, y)``."""

    kind, row = "binary", BinaryOp

    plus = _binary("plus", np.add, "x + y", domain=arithmetic)
    minus = _binary("minus", np.subtract, "x - y", domain=arithmetic, flips_to="rminus")
    times = _binary("times", np.multiply, "x * y", domain=arithmetic)
    truediv = _binary("truediv", np.divide, "x / y", domain=real, flips_to="rtruediv")
    min = _binary("min", np.fmin, "the lesser of x and y; a NaN gives way")
    max = _binary("max", np.fmax, "the greater of x and y; a NaN gives way")
    first = _binary("first", lambda x, y: x, "x", flips_to="second", reads=(True, False))
    second = _binary("second", lambda x, y: y, "y", flips_to="first", reads=(False, True))
    pair = _binary(
        "pair", lambda x, y: np.ones_like(x), "1, whatever x and y are", reads=(False, False),
    )  # fmt: skip
    any = _binary("any", lambda x, y: y, "x or y, whichever", cuda="AnyOf")
    land = _binary("land", np.logical_and, "whether x and y are both true", domain=logical)
    lor = _binary("lor", np.logical_or, "whether x or y is true", domain=logical)
    lxor = _binary("lxor", np.logical_xor, "whether one of x and y is true", domain=logical)
    lxnor = _binary(
        "lxnor", lambda x, y: np.equal(x, y), "whether x and y are both true or both false",
        domain=logical,
    )  # fmt: skip
    eq = _binary("eq", np.equal, "whether x == y", result=logical)
    ne = _binary("ne", np.not_equal, "whether x != y", result=logical)
    lt = _binary("lt", np.less, "whether x < y", result=logical, flips_to="gt")
    le = _binary("le", np.less_equal, "whether x <= y", result=logical, flips_to="ge")
    gt = _binary("gt", np.greater, "whether x > y", result=logical, flips_to="lt")
    ge = _binary("ge", np.greater_equal, "whether x >= y", result=logical, flips_to="le")
    firsti = _positional("firsti", "i", "row", "secondj")
    firstj = _positional("firstj", "k", "column", "secondi")
    secondi = _positional("secondi", "k", "row", "firstj")
    secondj = _positional("secondj", "j", "column", "firsti")
    rminus = _binary(
        "rminus", lambda x, y: np.subtract(y, x), "y - x", "wrapping<T>(y) - wrapping<T>(x)",
        domain=arithmetic, flips_to="minus",
    )  # fmt: skip
    rtruediv = _real("rtruediv", lambda x, y: np.divide(y, x), "y / x", "y / x", flips_to="truediv")
    cdiv = _binary(
        "cdiv", _cdiv, "x / y, of integers rounded toward 0, as in C", _CDIV.format(x="x", y="y"),
        domain=arithmetic, flips_to="rdiv",
    )  # fmt: skip
    rdiv = _binary(
        "rdiv", lambda x, y: _cdiv(y, x), "y / x, of integers rounded toward 0, as in C",
        _CDIV.format(x="y", y="x"), domain=arithmetic, flips_to="cdiv",
    )  # fmt: skip
    floordiv = _binary(
        "floordiv", lambda x, y: x if x < y == -1 and x // y == 0 else x // y,  # Numba: MIN // -1
        "x / y, rounded down; 0 where an integer is divided by 0",
        _FLOORDIV.format(x="x", y="y"), domain=arithmetic, of_numbers=True, flips_to="rfloordiv",
    )  # fmt: skip
    rfloordiv = _binary(
        "rfloordiv", lambda x, y: y if y < x == -1 and y // x == 0 else y // x,
        "y / x, rounded down; 0 where an integer is divided by 0",
        _FLOORDIV.format(x="y", y="x"), domain=arithmetic, of_numbers=True, flips_to="floordiv",
    )  # fmt: skip
    mod = _binary(
        "mod", lambda x, y: x % y, "the remainder of x / y, with the sign of y; 0 where an integer "
        "is divided by 0", _MOD, domain=arithmetic, of_numbers=True,
    )  # fmt: skip
    pow = _binary("pow", _pow, "x ** y", _POW, domain=arithmetic)
    rpow = _real("rpow", lambda x, y: y**x, "y ** x", "pow(y, x)", of_numbers=True)
    absfirst = _binary(
        "absfirst", lambda x, y: abs(x), "|x|", "Abs::call<Z, T>(x, x, i, k, j)", of_numbers=True,
        flips_to="abssecond", reads=(True, False),
    )  # fmt: skip
    abssecond = _binary(
        "abssecond", lambda x, y: abs(y), "|y|", "Abs::call<Z, T>(y, y, i, k, j)", of_numbers=True,
        flips_to="absfirst", reads=(False, True),
    )  # fmt: skip
    iseq = _binary("iseq", np.equal, "1 if x == y, else 0", "x == y")
    isne = _binary("isne", np.not_equal, "1 if x != y, else 0", "x != y")
    islt = _binary("islt", np.less, "1 if x < y, else 0", "x < y", flips_to="isgt")
    isle = _binary("isle", np.less_equal, "1 if x <= y, else 0", "x <= y", flips_to="isge")
    isgt = _binary("isgt", np.greater, "1 if x > y, else 0", "x > y", flips_to="islt")
    isge = _binary("isge", np.greater_equal, "1 if x >= y, else 0", "x >= y", flips_to="isle")
    atan2 = _real("atan2", np.arctan2, "the angle of the point (y, x), x its height", "atan2(x, y)")
    copysign = _real("copysign", np.copysign, "|x| with the sign of y", "copysign(x, y)")
    hypot = _real("hypot", np.hypot, "the root of x * x + y * y", "hypot(x, y)")
    fmod = _real("fmod", np.fmod, "the remainder of x / y, with the sign of x", "fmod(x, y)")
    remainder = _real(
        "remainder", np.frompyfunc(_remainder, 2, 1), "x less the nearest multiple of y",
        "remainder(x, y)",
    )  # fmt: skip
    ldexp = _real(  # compiled by Numba, as C does not define the cast of a large exponent
        "ldexp", lambda x, y: np.ldexp(x, np.int32((y == y) * np.fmax(np.fmin(y, 9999), -9999))),
        "x * 2 ** y", "ldexp(x, cast<i32>(y))", of_numbers=True,
    )  # fmt: skip
    binom = _binary(
        "binom", _binom, "the number of ways to choose y of x things, at most 2 ** 63 - 1", _BINOM,
        domain=integral64, of_numbers=True,
    )  # fmt: skip
    # Integers as bits.
    band = _binary("band", np.bitwise_and, "the bits of both x and y", "x & y", domain=integral)
    bor = _binary("bor", np.bitwise_or, "the bits of x or y", "x | y", domain=integral)
    bxor = _binary("bxor", np.bitwise_xor, "the bits of one of x and y", "x ^ y", domain=integral)
    bxnor = _binary(
        "bxnor", lambda x, y: ~(x ^ y), "the bits in which x and y agree", "~(x ^ y)",
        domain=integral,
    )  # fmt: skip
    bget = _binary(
        "bget", _on_bit(lambda x, bit: (x & bit) != 0, keeps=False),
        "bit y of x; the lowest is bit 1", _AT.format("0") + "return Z((x & bit) != T(0) ? 1 : 0);",
        domain=integral,
    )  # fmt: skip
    bset = _binary(
        "bset", _on_bit(lambda x, bit: x | bit), "x with bit y",
        _AT.format("x") + "return Z(x | bit);", domain=integral,
    )  # fmt: skip
    bclr = _binary(
        "bclr", _on_bit(lambda x, bit: x & ~bit), "x without bit y",
        _AT.format("x") + "return Z(x & ~bit);", domain=integral,
    )  # fmt: skip
    bshift = _binary(
        "bshift", _bshift, "x * 2 ** y, by moving bits; to the right if y < 0", _BSHIFT,
        domain=integral,
    )  # fmt: skip
    isclose = Parameterized(_isclose, "isclose")


# ---- indexunary
def _place(name: str, numpy: Any, formula: str, cuda: str, result: Any = logical) -> IndexUnaryOp:
    """Return the row of an operator of row, column and thunk, which reads no value."""
    place = lambda _x, i, j, t: numpy(i, j, t)  # noqa: E731
    return IndexUnaryOp(name, place, cuda, formula=formula, result=result)


def _value(name: str, numpy: Any, sign: str, cuda: str) -> IndexUnaryOp:
    compared, formula = lambda x, _i, _j, t: numpy(x, t), f"whether x {sign} t"
    return IndexUnaryOp(name, compared, cuda, formula=formula, result=logical, uses_value=True)


class IndexUnaryTable(OperatorTable[IndexUnaryOp]):
    """``z = f(x, i, j, thunk)``: operators with a BOOL result select, the others apply."""

    kind, row = "indexunary", IndexUnaryOp
    _of_users: ClassVar[dict[str, Any]] = {"uses_value": True}

    rowindex = _place("rowindex", lambda i, j, t: i + t, "i + t", "RowIndex", index)
    colindex = _place("colindex", lambda i, j, t: j + t, "j + t", "ColIndex", index)
    diagindex = _place("diagindex", lambda i, j, t: j - i - t, "j - i - t", "DiagIndex", index)
    index = _place("index", lambda i, j, t: i + t, "i + t", "RowIndex", index)
    tril = _place("tril", lambda i, j, t: j <= i + t, "whether j <= i + t", "Tril")
    triu = _place("triu", lambda i, j, t: j >= i + t, "whether j >= i + t", "Triu")
    diag = _place("diag", lambda i, j, t: j == i + t, "whether j == i + t", "Diag")
    offdiag = _place("offdiag", lambda i, j, t: j != i + t, "whether j != i + t", "Offdiag")
    rowle = _place("rowle", lambda i, j, t: i <= t, "whether i <= t", "RowLe")
    rowgt = _place("rowgt", lambda i, j, t: i > t, "whether i > t", "RowGt")
    colle = _place("colle", lambda i, j, t: j <= t, "whether j <= t", "ColLe")
    colgt = _place("colgt", lambda i, j, t: j > t, "whether j > t", "ColGt")
    indexle = _place("indexle", lambda i, j, t: i <= t, "whether i <= t", "RowLe")
    indexgt = _place("indexgt", lambda i, j, t: i > t, "whether i > t", "RowGt")
    valueeq = _value("valueeq", np.equal, "==", "ValueEq")
    valuene = _value("valuene", np.not_equal, "!=", "ValueNe")
    valuelt = _value("valuelt", np.less, "<", "ValueLt")
    valuele = _value("valuele", np.less_equal, "<=", "ValueLe")
    valuegt = _value("valuegt", np.greater, ">", "ValueGt")
    valuege = _value("valuege", np.greater_equal, ">=", "ValueGe")

    def lookup(self, op: Any) -> IndexUnaryOp:
        """Return the operator given as itself, by name, or as an operator of `lagpu.select`.

        A sign is a name too: ``">"`` is that of ``valuegt``, ``"row<="`` that of ``rowle``.
        """
        op = op.lower() if type(op) is str else op  # "TRIL", as in C
        signed = _SIGNED.fullmatch(op) if type(op) is str else None
        if signed is not None:
            op = f"{signed[1] or 'value'}{SIGNS[signed[2]]}"
        kept = getattr(op, "op", None)
        return super().lookup(kept if isinstance(kept, IndexUnaryOp) else op)


unary = UnaryTable()
binary = BinaryTable()
indexunary = IndexUnaryTable()

# ---- monoid
_zero, _largest, _smallest = (attrgetter(name) for name in ("zero", "largest", "smallest"))


def _one(dtype: DType) -> Any:
    return dtype.numpy.type(1)


def _all_bits(dtype: DType) -> Any:
    return ~dtype.numpy.type(0)


#: These numbers of a type ``Z`` in C++.
IN_CUDA: dict[Any, str] = {_zero: "Z(0)", _one: "Z(1)", _all_bits: "Z(~Z(0))"}
IN_CUDA |= {_largest: "Limits<Z>::largest()", _smallest: "Limits<Z>::smallest()"}


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
    bor = Monoid("bor", binary.bor, _zero, terminal=_all_bits, idempotent=True)
    band = Monoid("band", binary.band, _all_bits, terminal=_zero, idempotent=True)
    bxor = Monoid("bxor", binary.bxor, _zero)
    bxnor = Monoid("bxnor", binary.bxnor, _all_bits)

    def register_new(
        self, name: str, binaryop: Any, identity: Any, *, terminal: Any = None, **lazy: Any
    ) -> Any:
        """Do what `register` does, by its name in python-graphblas."""
        if isinstance(binaryop, Parameterized):
            return self._add(self.register_anonymous(binaryop, identity, name))
        return self.register(name, binaryop, identity, terminal=terminal)

    def register_anonymous(
        self, binaryop: Any, identity: Any, name: str | None = None, *, is_idempotent: bool = False
    ) -> Any:
        """Return a monoid without a place in the table, or one for each choice of parameters."""
        own = name or str(getattr(binaryop, "name", "anonymous"))
        if isinstance(binaryop, Parameterized):
            end = identity if callable(identity) else lambda *x, **y: identity
            made = Parameterized(
                lambda *x, **y: self._row(own, binaryop(*x, **y), end(*x, **y), None),
                own,
                (binaryop, identity),
            )
            binaryop.monoid, made.is_idempotent = made, is_idempotent
            return made
        return self._row(own, binaryop, identity, None)

    def lookup(self, op: Any) -> Monoid:
        """Return the monoid given as itself, by name, or as its binary operator."""
        if isinstance(op, (BinaryOp, Parameterized)):
            op = op.monoid or op
        return super().lookup(op)

    def register(self, name: str, op: BinaryOp, identity: Any, *, terminal: Any = None) -> Monoid:
        """Make a monoid of an associative, commutative operator whose result has its own type.

        ``op(identity, x) == x``, and ``op(terminal, x) == terminal``, for every `x`.
        """
        return self._add(self._row(name, op, identity, terminal))

    def _row(self, name: str, op: Any, identity: Any, terminal: Any) -> Monoid:
        found = binary.lookup(op)
        if found.positional:
            raise DomainMismatch(f"monoid: {found!r} reads indices, so it cannot add.")
        start = _of_type(identity, f"monoid.{name}: identity")
        end = None if terminal is None else _of_type(terminal, f"monoid.{name}: terminal")
        return Monoid(name, found, start, terminal=end, registered=True)


monoid = MonoidTable()

# ---- by their names in NumPy
_NUMPY: dict[Any, str] = {
    unary: "absolute:abs negative:ainv positive:identity invert:bnot bitwise_not:bnot "
    "logical_not:lnot arccos:acos arccosh:acosh arcsin:asin arcsinh:asinh arctan:atan "
    "arctanh:atanh exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan sinh cosh tanh floor "
    "ceil trunc isnan isinf isfinite",
    binary: "add:plus subtract:minus multiply:times true_divide:truediv divide:truediv "
    "floor_divide:floordiv power:pow fmax:max fmin:min fmod mod remainder:mod arctan2:atan2 hypot "
    "copysign ldexp logical_and:land logical_or:lor logical_xor:lxor bitwise_and:band "
    "bitwise_or:bor bitwise_xor:bxor equal:eq not_equal:ne less:lt less_equal:le greater:gt "
    "greater_equal:ge",
    monoid: "add:plus multiply:times fmax:max fmin:min logical_and:land logical_or:lor "
    "logical_xor:lxor bitwise_and:band bitwise_or:bor bitwise_xor:bxor equal:eq",
}  # what NumPy computes otherwise, as `maximum` of NaN or `sign` of integers, is not among them
for _table, _names in _NUMPY.items():
    for _name, _, _own in (pair.partition(":") for pair in _names.split()):
        _table._paths[f"numpy.{_name}"] = _table[_own or _name]
