"""The tables of operators: unary, binary, indexunary, monoid, semiring.

Each row is one operator with its meaning in NumPy; its functor is in
``backends/gpu/kernels/common/algebra.cuh``. Names are those of GraphBLAS: a semiring is
``monoid_multiply``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.algebra.operators import (
    BinaryOp,
    IndexUnaryOp,
    Monoid,
    Semiring,
    UnaryOp,
    arithmetic,
    index,
    logical,
    real,
    same,
)
from lagpu.algebra.registry import Table
from lagpu.dtypes import BOOL, DType, lookup
from lagpu.errors import DomainMismatch

__all__ = ["Table", "binary", "indexunary", "monoid", "semiring", "unary"]


def _functor(name: str) -> str:
    """Return the functor's name for a user's operator, distinct from all built-in functors."""
    return "User_" + name


# ---------------------------------------------------------------------------------------- unary


class UnaryTable(Table[UnaryOp]):
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
        return self._add(UnaryOp(name, numpy, _functor(name), body=cuda, result=_constant(result)))


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


class BinaryTable(Table[BinaryOp]):
    """``z = f(x, y)``."""

    kind, row = "binary", BinaryOp

    plus = BinaryOp("plus", np.add, "Plus", domain=arithmetic)
    minus = BinaryOp("minus", np.subtract, "Minus", domain=arithmetic)
    times = BinaryOp("times", np.multiply, "Times", domain=arithmetic)
    truediv = BinaryOp("truediv", np.divide, "Truediv", domain=real)
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
        return self._add(BinaryOp(name, numpy, _functor(name), body=cuda, result=_constant(result)))


# ----------------------------------------------------------------------------------- indexunary


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
            name, numpy, _functor(name), body=cuda, result=_constant(result), uses_value=True
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

# ------------------------------------------------------------------------------------- semiring

_B, _M = binary, monoid


class SemiringTable(Table[Semiring]):
    """``w[j] = (+)_i u[i] (x) A[i, j]``: a monoid and a multiplication."""

    kind, row = "semiring", Semiring

    # any: one of the products, whichever
    any_pair = Semiring(_M.any, _B.pair)
    any_first = Semiring(_M.any, _B.first)
    any_second = Semiring(_M.any, _B.second)
    any_plus = Semiring(_M.any, _B.plus)
    any_times = Semiring(_M.any, _B.times)
    any_min = Semiring(_M.any, _B.min)
    any_max = Semiring(_M.any, _B.max)
    any_firsti = Semiring(_M.any, _B.firsti)
    any_firstj = Semiring(_M.any, _B.firstj)
    any_secondi = Semiring(_M.any, _B.secondi)
    any_secondj = Semiring(_M.any, _B.secondj)
    # plus: counts, sums, paths
    plus_pair = Semiring(_M.plus, _B.pair)
    plus_first = Semiring(_M.plus, _B.first)
    plus_second = Semiring(_M.plus, _B.second)
    plus_plus = Semiring(_M.plus, _B.plus)
    plus_minus = Semiring(_M.plus, _B.minus)
    plus_times = Semiring(_M.plus, _B.times)
    plus_truediv = Semiring(_M.plus, _B.truediv)
    plus_min = Semiring(_M.plus, _B.min)
    plus_max = Semiring(_M.plus, _B.max)
    plus_firsti = Semiring(_M.plus, _B.firsti)
    plus_firstj = Semiring(_M.plus, _B.firstj)
    plus_secondi = Semiring(_M.plus, _B.secondi)
    plus_secondj = Semiring(_M.plus, _B.secondj)
    # min: shortest paths, least labels, least parents
    min_pair = Semiring(_M.min, _B.pair)
    min_first = Semiring(_M.min, _B.first)
    min_second = Semiring(_M.min, _B.second)
    min_plus = Semiring(_M.min, _B.plus)
    min_minus = Semiring(_M.min, _B.minus)
    min_times = Semiring(_M.min, _B.times)
    min_truediv = Semiring(_M.min, _B.truediv)
    min_min = Semiring(_M.min, _B.min)
    min_max = Semiring(_M.min, _B.max)
    min_firsti = Semiring(_M.min, _B.firsti)
    min_firstj = Semiring(_M.min, _B.firstj)
    min_secondi = Semiring(_M.min, _B.secondi)
    min_secondj = Semiring(_M.min, _B.secondj)
    # max: critical paths, widest paths, greatest parents
    max_pair = Semiring(_M.max, _B.pair)
    max_first = Semiring(_M.max, _B.first)
    max_second = Semiring(_M.max, _B.second)
    max_plus = Semiring(_M.max, _B.plus)
    max_minus = Semiring(_M.max, _B.minus)
    max_times = Semiring(_M.max, _B.times)
    max_truediv = Semiring(_M.max, _B.truediv)
    max_min = Semiring(_M.max, _B.min)
    max_max = Semiring(_M.max, _B.max)
    max_firsti = Semiring(_M.max, _B.firsti)
    max_firstj = Semiring(_M.max, _B.firstj)
    max_secondi = Semiring(_M.max, _B.secondi)
    max_secondj = Semiring(_M.max, _B.secondj)
    # times: products along edges
    times_first = Semiring(_M.times, _B.first)
    times_second = Semiring(_M.times, _B.second)
    times_plus = Semiring(_M.times, _B.plus)
    times_times = Semiring(_M.times, _B.times)
    times_min = Semiring(_M.times, _B.min)
    times_max = Semiring(_M.times, _B.max)
    # logic: reachability, agreement, parity
    lor_land = Semiring(_M.lor, _B.land)
    lor_pair = Semiring(_M.lor, _B.pair)
    lor_first = Semiring(_M.lor, _B.first)
    lor_second = Semiring(_M.lor, _B.second)
    lor_lor = Semiring(_M.lor, _B.lor)
    lor_lxor = Semiring(_M.lor, _B.lxor)
    lor_eq = Semiring(_M.lor, _B.eq)
    lor_ne = Semiring(_M.lor, _B.ne)
    lor_lt = Semiring(_M.lor, _B.lt)
    lor_gt = Semiring(_M.lor, _B.gt)
    land_land = Semiring(_M.land, _B.land)
    land_lor = Semiring(_M.land, _B.lor)
    land_first = Semiring(_M.land, _B.first)
    land_second = Semiring(_M.land, _B.second)
    land_eq = Semiring(_M.land, _B.eq)
    land_ne = Semiring(_M.land, _B.ne)
    lxor_land = Semiring(_M.lxor, _B.land)
    lxor_pair = Semiring(_M.lxor, _B.pair)
    lxor_first = Semiring(_M.lxor, _B.first)
    lxor_second = Semiring(_M.lxor, _B.second)
    lxnor_lor = Semiring(_M.lxnor, _B.lor)

    def register(self, monoid: Monoid, multiply: BinaryOp) -> Semiring:
        """Make a semiring; its name is ``monoid_multiply``.

        Parameters
        ----------
        monoid : Monoid
            The addition.
        multiply : BinaryOp
            The multiplication.
        """
        return self._add(Semiring(_M.lookup(monoid), _B.lookup(multiply)))


semiring = SemiringTable()
