"""The tables of built-in operators, and the namespaces in which users find them."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, cast

from lagpu.algebra import operators
from lagpu.algebra.arithmetic import binary, indexunary, monoid, unary
from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Parameterized, Semiring, Table, UnaryOp
from lagpu.dtypes import BOOL, INT64
from lagpu.errors import DomainMismatch, InvalidValue, UnknownOperator

#: What the package exports; the tables without semirings are in `arithmetic`.
__all__ = ["binary", "indexunary", "monoid", "op", "select", "semiring", "unary"]

_B, _M = binary, monoid


class _ByName:
    """Becomes the semiring of each name that a class gives it: `min_plus` adds by `min`."""

    def __set_name__(self, owner: type, name: str) -> None:
        add, _, multiply = name.partition("_")
        setattr(owner, name, Semiring(_M[add], _B[multiply]))


_BY_NAME = cast(Semiring, _ByName())


class SemiringTable(Table[Semiring]):
    """``w[j] = ⊕_i u[i] ⊗ A[i, j]``: a monoid and a multiplication."""

    kind, row = "semiring", Semiring

    # any: one of the products, whichever
    any_pair = any_first = any_second = any_plus = any_minus = any_rminus = any_times = _BY_NAME
    any_truediv = any_rtruediv = any_floordiv = any_rfloordiv = any_cdiv = any_rdiv = _BY_NAME
    any_min = any_max = any_land = any_lor = any_lxor = any_eq = any_ne = any_lt = any_le = _BY_NAME
    any_gt = any_ge = any_iseq = any_isne = any_islt = any_isle = any_isgt = any_isge = _BY_NAME
    any_firsti = any_firstj = any_secondi = any_secondj = _BY_NAME
    # plus: counts, sums, paths
    plus_pair = plus_first = plus_second = plus_plus = plus_minus = plus_rminus = _BY_NAME
    plus_times = plus_truediv = plus_rtruediv = plus_floordiv = plus_rfloordiv = _BY_NAME
    plus_cdiv = plus_rdiv = plus_pow = plus_rpow = plus_min = plus_max = plus_absfirst = _BY_NAME
    plus_abssecond = plus_land = plus_lor = plus_lxor = plus_iseq = plus_isne = plus_islt = _BY_NAME
    plus_isle = plus_isgt = plus_isge = plus_firsti = plus_firstj = plus_secondi = _BY_NAME
    plus_secondj = _BY_NAME
    # min: shortest paths, least labels, least parents
    min_pair = min_first = min_second = min_plus = min_minus = min_rminus = min_times = _BY_NAME
    min_truediv = min_rtruediv = min_floordiv = min_rfloordiv = min_cdiv = min_rdiv = _BY_NAME
    min_min = min_max = min_land = min_lor = min_lxor = min_iseq = min_isne = min_islt = _BY_NAME
    min_isle = min_isgt = min_isge = min_firsti = min_firstj = min_secondi = min_secondj = _BY_NAME
    # max: critical paths, widest paths, greatest parents
    max_pair = max_first = max_second = max_plus = max_minus = max_rminus = max_times = _BY_NAME
    max_truediv = max_rtruediv = max_floordiv = max_rfloordiv = max_cdiv = max_rdiv = _BY_NAME
    max_min = max_max = max_absfirst = max_abssecond = max_land = max_lor = max_lxor = _BY_NAME
    max_iseq = max_isne = max_islt = max_isle = max_isgt = max_isge = max_firsti = _BY_NAME
    max_firstj = max_secondi = max_secondj = _BY_NAME
    # times: products along edges
    times_pair = times_first = times_second = times_plus = times_minus = times_rminus = _BY_NAME
    times_times = times_truediv = times_rtruediv = times_floordiv = times_rfloordiv = _BY_NAME
    times_cdiv = times_rdiv = times_min = times_max = times_land = times_lor = times_lxor = _BY_NAME
    times_iseq = times_isne = times_islt = times_isle = times_isgt = times_isge = _BY_NAME
    times_firsti = times_firstj = times_secondi = times_secondj = _BY_NAME
    # lor: reachability
    lor_pair = lor_first = lor_second = lor_land = lor_lor = lor_lxor = lor_eq = lor_ne = _BY_NAME
    lor_lt = lor_le = lor_gt = lor_ge = _BY_NAME
    # land: agreement of all
    land_pair = land_first = land_second = land_land = land_lor = land_lxor = land_eq = _BY_NAME
    land_ne = land_lt = land_le = land_gt = land_ge = _BY_NAME
    # lxor: parity
    lxor_pair = lxor_first = lxor_second = lxor_land = lxor_lor = lxor_lxor = lxor_eq = _BY_NAME
    lxor_ne = lxor_lt = lxor_le = lxor_gt = lxor_ge = _BY_NAME
    # lxnor: parity, negated
    lxnor_lor = _BY_NAME
    # eq: the same by its name in python-graphblas
    eq_pair = eq_first = eq_second = eq_land = eq_lor = eq_lxor = eq_eq = eq_ne = eq_lt = _BY_NAME
    eq_le = eq_gt = eq_ge = _BY_NAME
    # bor: union of bits
    bor_band = bor_bor = bor_bxor = bor_bxnor = _BY_NAME
    # band: intersection of bits
    band_band = band_bor = band_bxor = band_bxnor = _BY_NAME
    # bxor: parity of each bit
    bxor_band = bxor_bor = bxor_bxor = bxor_bxnor = _BY_NAME
    # bxnor: parity of each bit, negated
    bxnor_band = bxnor_bor = bxnor_bxor = bxnor_bxnor = _BY_NAME

    def register_new(self, name: str, monoid: Any, binaryop: Any, **lazy: Any) -> Any:
        """Do what `register` does, by its name in python-graphblas; `name` is a second name."""
        made = self.register_anonymous(monoid, binaryop, name)
        self._put(name, made)
        return made

    def register_anonymous(self, monoid: Any, binaryop: Any, name: str | None = None) -> Any:
        """Return the semiring of a monoid and a multiplication, the table's own if it has it."""
        pair = (monoid, binaryop)
        of = [f for f in pair if isinstance(f, Parameterized)]
        if of:

            def make(*x: Any, **y: Any) -> Any:
                return self.register_anonymous(*(f(*x, **y) if f in of else f for f in pair))

            return Parameterized(make, name or "semiring", of)
        add, multiply = _M.lookup(monoid), _B.lookup(binaryop)
        known = self._rows.get(f"{add.name}_{multiply.name}")
        if known is not None and known.monoid is add and known.multiply is multiply:
            return known
        return Semiring(add, multiply)

    def register(self, monoid: operators.Monoid, multiply: BinaryOp) -> Semiring:
        """Return the semiring ``monoid_multiply`` of two operators, made if there is none."""
        return self._add(self.register_anonymous(_M.lookup(monoid), _B.lookup(multiply)))


semiring = SemiringTable()
_of_numpy: tuple[Any, Any] = (_M["numpy"], _B["numpy"])
for _add, _op in ((x, y) for x in dir(_of_numpy[0]) for y in dir(_of_numpy[1])):
    semiring._paths[f"numpy.{_add}_{_op}"] = semiring.register_anonymous(
        getattr(_of_numpy[0], _add), getattr(_of_numpy[1], _op)
    )


# ---- `op`, all operators by one name, and `select`, operators that keep entries when called
#
# Both are namespaces of python-graphblas over the tables: they hold no operators of their own.
class Operators(operators.Namespace):
    """The unary and binary operators and the semirings by name: ``op.abs``, ``op.min_plus``.

    A name that is both, as ``plus``, is the binary operator, or its monoid where one belongs.
    """

    kind = "op"
    _tables: tuple[Table[Any], ...] = (binary, unary, semiring, monoid)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> BinaryOp | UnaryOp | Semiring: ...

    def __getitem__(self, name: str) -> Any:
        for table in self._tables:
            if name in table:
                return table[name]
        return self._group(name, dir(self))

    @property
    def _paths(self) -> list[str]:
        return [path for table in self._tables for path in table._paths]

    def __contains__(self, name: str) -> bool:
        return any(name in table for table in self._tables)

    def __dir__(self) -> list[str]:
        return sorted({row.name for table in self._tables for row in table})

    def __repr__(self) -> str:
        return f"op: {len(dir(self))} operators of unary, binary and semiring"

    def from_string(self, text: str) -> Any:
        """Return the operator of a text; see `Table.from_string`."""
        for table in (unary, *self._tables, operators._tables["agg"]):  # "-" alone is `ainv`
            try:
                return table.from_string(text)
            except UnknownOperator:
                continue
        return self[text]


class Selector:
    """An operator that keeps the entries for which it is true: ``select.tril(A, -1)``."""

    def __init__(self, op: IndexUnaryOp) -> None:
        self.op = op
        self.__doc__ = f"Keep entries, as ``A.select({op.name!r}, thunk)`` does."

    def __getattr__(self, name: str) -> Any:
        if name == "op" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.op, name)

    def __repr__(self) -> str:
        return f"select.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _selector, (self.op,)

    def __getitem__(self, dtype: Any) -> Selector:
        """Return the selector of the operator with its domain forced to `dtype`."""
        return _selector(self.op[dtype])

    def __call__(self, operand: Any, thunk: Any = 0) -> Any:
        """Return the deferred selection from a vector or a matrix."""
        x = operators.as_scalar[0](operand) if isinstance(operand, operators._NUMBERS) else operand
        return x.select(self.op, thunk)._written_in(sys._getframe(1))


@functools.cache
def _selector(op: IndexUnaryOp) -> Selector:
    named = vars(Selectors).get(op.name)
    return named if isinstance(named, Selector) and named.op is op else Selector(op)


class Compared:
    """Keep entries by a comparison: ``select.value(A > 3)``, ``select.row(A <= 5)``.

    `name` says what is compared: value, row, column or index. `short` begins the names of its
    operators, as ``col`` of ``colle``.
    """

    def __init__(self, name: str, short: str) -> None:
        self.name, self.short = name, short
        self.__doc__ = f"Keep entries by a comparison of the {name}: ``select.{name}(A <= 5)``."

    def __repr__(self) -> str:
        return f"select.{self.name}"

    def __call__(self, comparison: Any) -> Any:
        """Return the deferred selection of the entries for which a comparison holds.

        The comparison is that of a vector or a matrix with a number.
        """
        kept = getattr(comparison, "kept", None)
        if kept is None:
            raise DomainMismatch(
                f"{self!r}: {type(comparison).__name__} is no comparison. "
                f"Write {self!r}(A <= 5), for instance."
            )
        return kept(self.short)._written_in(sys._getframe(1))


class _ByOperator:
    """Becomes the selector of each name that a class gives it."""

    def __set_name__(self, owner: type, name: str) -> None:
        setattr(owner, name, Selector(indexunary[name]))


_OF_ITS_OPERATOR = cast(Selector, _ByOperator())


class Selectors(operators.Namespace):
    """The operators of `indexunary` that have a truth for each entry, and four comparisons."""

    kind = "select"
    value = Compared("value", "value")
    row = Compared("row", "row")
    column = Compared("column", "col")
    index = Compared("index", "index")
    tril = triu = diag = offdiag = rowle = rowgt = colle = colgt = _OF_ITS_OPERATOR
    indexle = indexgt = valueeq = valuene = valuelt = valuele = _OF_ITS_OPERATOR
    valuegt = valuege = _OF_ITS_OPERATOR

    def __getitem__(self, name: str) -> Any:
        known = vars(type(self)).get(name, vars(self).get(name))
        if isinstance(known, (Selector, Compared)):
            return known
        found: Any = indexunary[name]
        if isinstance(found, Parameterized):
            return Parameterized(lambda *x, **y: Selector(found(*x, **y)), name)
        if not _has_truth(found):
            raise UnknownOperator(f"select: {found!r} has no truth. Write A.apply({found!r}).")
        return vars(self).setdefault(name, Selector(found))

    def __contains__(self, name: str) -> bool:
        return name in dir(self)

    def __dir__(self) -> list[str]:
        return sorted({*_COMPARED, *(r.name for r in indexunary if _has_truth(r))})

    def __repr__(self) -> str:
        return f"select: {len(dir(self))} operators, {', '.join(dir(self))}"

    def from_string(self, text: str) -> Selector:
        """Return the operator of a text: a name or a comparison, as ``"row<=[INT64]"``."""
        name, bracket, dtype = text.partition("[")
        found: Selector = self[indexunary.lookup(name).name]
        return found[dtype.rstrip("]")] if bracket else found

    def register_new(self, name: str, function: Any, **options: Any) -> Any:
        """Add an operator to `indexunary`, and return its selector."""
        made = self.register_anonymous(function, name, **options)
        indexunary._add(getattr(made, "op", made))
        return made

    def register_anonymous(self, function: Any, name: str | None = None, **options: Any) -> Any:
        """Return the selector of a Python function; see `OperatorTable.register_new`."""
        options.pop("lazy", None)
        made = indexunary.register_anonymous(function, name, **options)
        if isinstance(made, Parameterized):
            return Parameterized(lambda *x, **y: Selector(made(*x, **y)), made.name)
        if not _has_truth(made):
            raise InvalidValue(f"select: {made!r} has no truth. Return a bool.")
        return Selector(made)


def _has_truth(op: IndexUnaryOp) -> bool:
    """Whether an operator returns BOOL, of any type that it takes."""
    return any(operators.result_of(op, kind) is BOOL for kind in (BOOL, INT64))


_COMPARED = frozenset(("value", "row", "column", "index"))
op = Operators()
select = Selectors()
