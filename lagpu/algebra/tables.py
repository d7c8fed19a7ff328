"""The tables of built-in operators, and the namespaces in which users find them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from lagpu.algebra.arithmetic import binary, indexunary, monoid, unary
from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Semiring, UnaryOp
from lagpu.algebra.registry import Table, instead_of
from lagpu.dtypes import BOOL
from lagpu.errors import DomainMismatch, InvalidValue, UnknownOperator

#: What the package exports; the tables without semirings are in `arithmetic`.
__all__ = ["binary", "indexunary", "monoid", "op", "select", "semiring", "unary"]

_B, _M = binary, monoid


class SemiringTable(Table[Semiring]):
    """``w[j] = ⊕ᵢ u[i] ⊗ A[i, j]``: a monoid and a multiplication."""

    kind, row = "semiring", Semiring

    # any: one of the products, whichever
    any_pair = Semiring(_M.any, _B.pair)
    any_first = Semiring(_M.any, _B.first)
    any_second = Semiring(_M.any, _B.second)
    any_plus = Semiring(_M.any, _B.plus)
    any_minus = Semiring(_M.any, _B.minus)
    any_rminus = Semiring(_M.any, _B.rminus)
    any_times = Semiring(_M.any, _B.times)
    any_truediv = Semiring(_M.any, _B.truediv)
    any_rtruediv = Semiring(_M.any, _B.rtruediv)
    any_floordiv = Semiring(_M.any, _B.floordiv)
    any_rfloordiv = Semiring(_M.any, _B.rfloordiv)
    any_cdiv = Semiring(_M.any, _B.cdiv)
    any_rdiv = Semiring(_M.any, _B.rdiv)
    any_min = Semiring(_M.any, _B.min)
    any_max = Semiring(_M.any, _B.max)
    any_land = Semiring(_M.any, _B.land)
    any_lor = Semiring(_M.any, _B.lor)
    any_lxor = Semiring(_M.any, _B.lxor)
    any_eq = Semiring(_M.any, _B.eq)
    any_ne = Semiring(_M.any, _B.ne)
    any_lt = Semiring(_M.any, _B.lt)
    any_le = Semiring(_M.any, _B.le)
    any_gt = Semiring(_M.any, _B.gt)
    any_ge = Semiring(_M.any, _B.ge)
    any_iseq = Semiring(_M.any, _B.iseq)
    any_isne = Semiring(_M.any, _B.isne)
    any_islt = Semiring(_M.any, _B.islt)
    any_isle = Semiring(_M.any, _B.isle)
    any_isgt = Semiring(_M.any, _B.isgt)
    any_isge = Semiring(_M.any, _B.isge)
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
    plus_rminus = Semiring(_M.plus, _B.rminus)
    plus_times = Semiring(_M.plus, _B.times)
    plus_truediv = Semiring(_M.plus, _B.truediv)
    plus_rtruediv = Semiring(_M.plus, _B.rtruediv)
    plus_floordiv = Semiring(_M.plus, _B.floordiv)
    plus_rfloordiv = Semiring(_M.plus, _B.rfloordiv)
    plus_cdiv = Semiring(_M.plus, _B.cdiv)
    plus_rdiv = Semiring(_M.plus, _B.rdiv)
    plus_pow = Semiring(_M.plus, _B.pow)
    plus_rpow = Semiring(_M.plus, _B.rpow)
    plus_min = Semiring(_M.plus, _B.min)
    plus_max = Semiring(_M.plus, _B.max)
    plus_absfirst = Semiring(_M.plus, _B.absfirst)
    plus_abssecond = Semiring(_M.plus, _B.abssecond)
    plus_land = Semiring(_M.plus, _B.land)
    plus_lor = Semiring(_M.plus, _B.lor)
    plus_lxor = Semiring(_M.plus, _B.lxor)
    plus_iseq = Semiring(_M.plus, _B.iseq)
    plus_isne = Semiring(_M.plus, _B.isne)
    plus_islt = Semiring(_M.plus, _B.islt)
    plus_isle = Semiring(_M.plus, _B.isle)
    plus_isgt = Semiring(_M.plus, _B.isgt)
    plus_isge = Semiring(_M.plus, _B.isge)
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
    min_rminus = Semiring(_M.min, _B.rminus)
    min_times = Semiring(_M.min, _B.times)
    min_truediv = Semiring(_M.min, _B.truediv)
    min_rtruediv = Semiring(_M.min, _B.rtruediv)
    min_floordiv = Semiring(_M.min, _B.floordiv)
    min_rfloordiv = Semiring(_M.min, _B.rfloordiv)
    min_cdiv = Semiring(_M.min, _B.cdiv)
    min_rdiv = Semiring(_M.min, _B.rdiv)
    min_min = Semiring(_M.min, _B.min)
    min_max = Semiring(_M.min, _B.max)
    min_land = Semiring(_M.min, _B.land)
    min_lor = Semiring(_M.min, _B.lor)
    min_lxor = Semiring(_M.min, _B.lxor)
    min_iseq = Semiring(_M.min, _B.iseq)
    min_isne = Semiring(_M.min, _B.isne)
    min_islt = Semiring(_M.min, _B.islt)
    min_isle = Semiring(_M.min, _B.isle)
    min_isgt = Semiring(_M.min, _B.isgt)
    min_isge = Semiring(_M.min, _B.isge)
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
    max_rminus = Semiring(_M.max, _B.rminus)
    max_times = Semiring(_M.max, _B.times)
    max_truediv = Semiring(_M.max, _B.truediv)
    max_rtruediv = Semiring(_M.max, _B.rtruediv)
    max_floordiv = Semiring(_M.max, _B.floordiv)
    max_rfloordiv = Semiring(_M.max, _B.rfloordiv)
    max_cdiv = Semiring(_M.max, _B.cdiv)
    max_rdiv = Semiring(_M.max, _B.rdiv)
    max_min = Semiring(_M.max, _B.min)
    max_max = Semiring(_M.max, _B.max)
    max_absfirst = Semiring(_M.max, _B.absfirst)
    max_abssecond = Semiring(_M.max, _B.abssecond)
    max_land = Semiring(_M.max, _B.land)
    max_lor = Semiring(_M.max, _B.lor)
    max_lxor = Semiring(_M.max, _B.lxor)
    max_iseq = Semiring(_M.max, _B.iseq)
    max_isne = Semiring(_M.max, _B.isne)
    max_islt = Semiring(_M.max, _B.islt)
    max_isle = Semiring(_M.max, _B.isle)
    max_isgt = Semiring(_M.max, _B.isgt)
    max_isge = Semiring(_M.max, _B.isge)
    max_firsti = Semiring(_M.max, _B.firsti)
    max_firstj = Semiring(_M.max, _B.firstj)
    max_secondi = Semiring(_M.max, _B.secondi)
    max_secondj = Semiring(_M.max, _B.secondj)
    # times: products along edges
    times_pair = Semiring(_M.times, _B.pair)
    times_first = Semiring(_M.times, _B.first)
    times_second = Semiring(_M.times, _B.second)
    times_plus = Semiring(_M.times, _B.plus)
    times_minus = Semiring(_M.times, _B.minus)
    times_rminus = Semiring(_M.times, _B.rminus)
    times_times = Semiring(_M.times, _B.times)
    times_truediv = Semiring(_M.times, _B.truediv)
    times_rtruediv = Semiring(_M.times, _B.rtruediv)
    times_floordiv = Semiring(_M.times, _B.floordiv)
    times_rfloordiv = Semiring(_M.times, _B.rfloordiv)
    times_cdiv = Semiring(_M.times, _B.cdiv)
    times_rdiv = Semiring(_M.times, _B.rdiv)
    times_min = Semiring(_M.times, _B.min)
    times_max = Semiring(_M.times, _B.max)
    times_land = Semiring(_M.times, _B.land)
    times_lor = Semiring(_M.times, _B.lor)
    times_lxor = Semiring(_M.times, _B.lxor)
    times_iseq = Semiring(_M.times, _B.iseq)
    times_isne = Semiring(_M.times, _B.isne)
    times_islt = Semiring(_M.times, _B.islt)
    times_isle = Semiring(_M.times, _B.isle)
    times_isgt = Semiring(_M.times, _B.isgt)
    times_isge = Semiring(_M.times, _B.isge)
    times_firsti = Semiring(_M.times, _B.firsti)
    times_firstj = Semiring(_M.times, _B.firstj)
    times_secondi = Semiring(_M.times, _B.secondi)
    times_secondj = Semiring(_M.times, _B.secondj)
    # lor: reachability
    lor_pair = Semiring(_M.lor, _B.pair)
    lor_first = Semiring(_M.lor, _B.first)
    lor_second = Semiring(_M.lor, _B.second)
    lor_land = Semiring(_M.lor, _B.land)
    lor_lor = Semiring(_M.lor, _B.lor)
    lor_lxor = Semiring(_M.lor, _B.lxor)
    lor_eq = Semiring(_M.lor, _B.eq)
    lor_ne = Semiring(_M.lor, _B.ne)
    lor_lt = Semiring(_M.lor, _B.lt)
    lor_le = Semiring(_M.lor, _B.le)
    lor_gt = Semiring(_M.lor, _B.gt)
    lor_ge = Semiring(_M.lor, _B.ge)
    # land: agreement of all
    land_pair = Semiring(_M.land, _B.pair)
    land_first = Semiring(_M.land, _B.first)
    land_second = Semiring(_M.land, _B.second)
    land_land = Semiring(_M.land, _B.land)
    land_lor = Semiring(_M.land, _B.lor)
    land_lxor = Semiring(_M.land, _B.lxor)
    land_eq = Semiring(_M.land, _B.eq)
    land_ne = Semiring(_M.land, _B.ne)
    land_lt = Semiring(_M.land, _B.lt)
    land_le = Semiring(_M.land, _B.le)
    land_gt = Semiring(_M.land, _B.gt)
    land_ge = Semiring(_M.land, _B.ge)
    # lxor: parity
    lxor_pair = Semiring(_M.lxor, _B.pair)
    lxor_first = Semiring(_M.lxor, _B.first)
    lxor_second = Semiring(_M.lxor, _B.second)
    lxor_land = Semiring(_M.lxor, _B.land)
    lxor_lor = Semiring(_M.lxor, _B.lor)
    lxor_lxor = Semiring(_M.lxor, _B.lxor)
    lxor_eq = Semiring(_M.lxor, _B.eq)
    lxor_ne = Semiring(_M.lxor, _B.ne)
    lxor_lt = Semiring(_M.lxor, _B.lt)
    lxor_le = Semiring(_M.lxor, _B.le)
    lxor_gt = Semiring(_M.lxor, _B.gt)
    lxor_ge = Semiring(_M.lxor, _B.ge)
    # lxnor: parity, negated
    lxnor_lor = Semiring(_M.lxnor, _B.lor)
    # eq: the same by its name in python-graphblas
    eq_pair = Semiring(_M.eq, _B.pair)
    eq_first = Semiring(_M.eq, _B.first)
    eq_second = Semiring(_M.eq, _B.second)
    eq_land = Semiring(_M.eq, _B.land)
    eq_lor = Semiring(_M.eq, _B.lor)
    eq_lxor = Semiring(_M.eq, _B.lxor)
    eq_eq = Semiring(_M.eq, _B.eq)
    eq_ne = Semiring(_M.eq, _B.ne)
    eq_lt = Semiring(_M.eq, _B.lt)
    eq_le = Semiring(_M.eq, _B.le)
    eq_gt = Semiring(_M.eq, _B.gt)
    eq_ge = Semiring(_M.eq, _B.ge)
    # bor: union of bits
    bor_band = Semiring(_M.bor, _B.band)
    bor_bor = Semiring(_M.bor, _B.bor)
    bor_bxor = Semiring(_M.bor, _B.bxor)
    bor_bxnor = Semiring(_M.bor, _B.bxnor)
    # band: intersection of bits
    band_band = Semiring(_M.band, _B.band)
    band_bor = Semiring(_M.band, _B.bor)
    band_bxor = Semiring(_M.band, _B.bxor)
    band_bxnor = Semiring(_M.band, _B.bxnor)
    # bxor: parity of each bit
    bxor_band = Semiring(_M.bxor, _B.band)
    bxor_bor = Semiring(_M.bxor, _B.bor)
    bxor_bxor = Semiring(_M.bxor, _B.bxor)
    bxor_bxnor = Semiring(_M.bxor, _B.bxnor)
    # bxnor: parity of each bit, negated
    bxnor_band = Semiring(_M.bxnor, _B.band)
    bxnor_bor = Semiring(_M.bxnor, _B.bor)
    bxnor_bxor = Semiring(_M.bxnor, _B.bxor)
    bxnor_bxnor = Semiring(_M.bxnor, _B.bxnor)

    def register_new(self, name: str, monoid: Any, binaryop: Any, **lazy: Any) -> Semiring:
        """Do what `register` does, by its name in python-graphblas; `name` is a second name."""
        made = self.register_anonymous(monoid, binaryop)
        if self._rows.setdefault(name, made) is not made:
            raise InvalidValue(f"semiring: {name!r} is taken. Choose another name.")
        return made

    def register_anonymous(self, monoid: Any, binaryop: Any) -> Semiring:
        """Return the semiring of a monoid and a multiplication, registered if it is new."""
        add, multiply = _M.lookup(monoid), _B.lookup(binaryop)
        known = self._rows.get(f"{add.name}_{multiply.name}")
        if known is not None and known.monoid is add and known.multiply is multiply:
            return known
        return self.register(add, multiply)

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


# ------------------------------------------------------------------------------------------
# `op`, all operators by one name, and `select`, operators that keep entries when called.
#
# Both are namespaces of python-graphblas over the tables: they hold no operators of their own.


class Operators:
    """The unary and binary operators and the semirings by name: ``op.abs``, ``op.min_plus``.

    A name that is both, as ``plus``, is the binary operator; where a monoid belongs its monoid is
    taken.
    """

    kind = "op"
    _tables: tuple[Table[Any], ...] = (binary, unary, semiring)

    def __getattr__(self, name: str) -> BinaryOp | UnaryOp | Semiring:
        if name.startswith("__"):
            raise AttributeError(name)
        found: BinaryOp | UnaryOp | Semiring = self[name]
        return found

    def __getitem__(self, name: str) -> Any:
        """Return the operator of this name.

        Raises
        ------
        UnknownOperator
            If there is none.
        """
        for table in self._tables:
            if name in table:
                return table[name]
        raise UnknownOperator(f"op: there is no {name!r}. {instead_of(name, 'op', dir(self))}")

    def __contains__(self, name: str) -> bool:
        return any(name in table for table in self._tables)

    def __dir__(self) -> list[str]:
        return sorted({row.name for table in self._tables for row in table})

    def __repr__(self) -> str:
        return f"op: {len(dir(self))} operators of unary, binary and semiring"

    @property
    def ss(self) -> Operators:
        """The namespace itself: python-graphblas lists some operators under ``ss``."""
        return self

    def from_string(self, text: str) -> Any:
        """Return the operator of a text; see `Table.from_string`."""
        for table in self._tables:
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

    @property
    def name(self) -> str:
        """Name of the operator."""
        return self.op.name

    def __repr__(self) -> str:
        return f"select.{self.name}"

    def __call__(self, operand: Any, thunk: Any = 0) -> Any:
        """Return the deferred selection from a vector or a matrix."""
        return operand.select(self.op, thunk)._written_in(sys._getframe(1))


class Compared:
    """Keep entries by a comparison: ``select.value(A > 3)``, ``select.row(A <= 5)``.

    Attributes
    ----------
    name : str
        Its name, after what is compared: value, row, column or index.
    short : str
        How the names of its operators begin, as ``col`` of ``colle``.
    """

    def __init__(self, name: str, short: str) -> None:
        self.name, self.short = name, short
        self.__doc__ = f"Keep entries by a comparison of the {name}: ``select.{name}(A <= 5)``."

    def __repr__(self) -> str:
        return f"select.{self.name}"

    def __call__(self, comparison: Any) -> Any:
        """Return the deferred selection of the entries for which a comparison holds.

        Parameters
        ----------
        comparison : expression
            A vector or a matrix beside a number. It says what is kept, and is not computed itself.

        Raises
        ------
        DomainMismatch
            If it is no such comparison, or asks for one row, column or index.
        """
        kept = getattr(comparison, "kept", None)
        if kept is None:
            raise DomainMismatch(
                f"{self!r}: {type(comparison).__name__} is no comparison. "
                f"Write {self!r}(A <= 5), for instance."
            )
        return kept(self.short)._written_in(sys._getframe(1))


class Selectors:
    """The operators of `indexunary` that have a truth for each entry, and four comparisons."""

    kind = "select"
    value = Compared("value", "value")
    row = Compared("row", "row")
    column = Compared("column", "col")
    index = Compared("index", "index")

    def __init__(self) -> None:
        self._made: dict[str, Selector] = {}

    if TYPE_CHECKING:  # the names that a type checker knows
        tril: Selector
        triu: Selector
        diag: Selector
        offdiag: Selector
        rowle: Selector
        rowgt: Selector
        colle: Selector
        colgt: Selector
        indexle: Selector
        indexgt: Selector
        valueeq: Selector
        valuene: Selector
        valuelt: Selector
        valuele: Selector
        valuegt: Selector
        valuege: Selector
    else:

        def __getattr__(self, name: str) -> Selector:
            if name.startswith("__"):
                raise AttributeError(name)
            return self[name]

    def __getitem__(self, name: str) -> Any:
        """Return the operator of this name.

        Raises
        ------
        UnknownOperator
            If there is none.
        """
        if name in _COMPARED:
            return getattr(self, name)
        found = indexunary[name]
        if found.result(BOOL) is not BOOL:
            raise UnknownOperator(f"select: {found!r} has no truth. Write A.apply({found!r}).")
        return self._made.setdefault(name, Selector(found))

    def __contains__(self, name: str) -> bool:
        return name in dir(self)

    def __dir__(self) -> list[str]:
        return sorted({*_COMPARED, *(r.name for r in indexunary if r.result(BOOL) is BOOL)})

    def __repr__(self) -> str:
        return f"select: {len(dir(self))} operators, {', '.join(dir(self))}"

    @property
    def ss(self) -> Selectors:
        """The namespace itself."""
        return self

    def register_new(self, name: str, *args: Any, **options: Any) -> Any:
        """Refuse; see `IndexUnaryTable.register`."""
        return indexunary.register_new(name, *args, **options)


_COMPARED = frozenset(("value", "row", "column", "index"))
op = Operators()
select = Selectors()
