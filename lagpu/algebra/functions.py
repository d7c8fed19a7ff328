"""Functions of one real number: rows whose functor is the C++ text that the row has.

Their names, and their values at signed zeros, infinities and NaN, are those of GraphBLAS.
Integers and BOOL become FP64 first, as for `sqrt`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from lagpu.algebra.operators import UnaryOp
from lagpu.algebra.rules import integral, logical, real

__all__ = ["Functions"]


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
