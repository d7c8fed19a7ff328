"""The tables of unary, binary and index-unary operators, and of monoids.

Each row is one operator with its meaning in NumPy; its functor is in
``backends/gpu/kernels/common/algebra.cuh``, or is text of the row (`lagpu.algebra.functions` and
`lagpu.algebra.arithmetic`). Names are those of GraphBLAS.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from lagpu.algebra.arithmetic import Arithmetic, Bits
from lagpu.algebra.functions import Functions
from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, UnaryOp
from lagpu.algebra.registry import SIGNS, Table
from lagpu.algebra.rules import arithmetic, index, logical, real, same
from lagpu.dtypes import BOOL, DType, lookup
from lagpu.errors import DomainMismatch

__all__ = [
    "BinaryTable",
    "IndexUnaryTable",
    "MonoidTable",
    "UnaryTable",
    "binary",
    "indexunary",
    "monoid",
    "unary",
]


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
