"""`op`, all operators by one name, and `select`, operators that keep entries when called.

Both are namespaces of python-graphblas over the tables: they hold no operators of their own.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Semiring, UnaryOp
from lagpu.algebra.registry import Table, instead_of
from lagpu.algebra.tables import binary, indexunary, semiring, unary
from lagpu.dtypes import BOOL
from lagpu.errors import DomainMismatch, UnknownOperator

__all__ = ["Compared", "Operators", "Selector", "Selectors", "op", "select"]


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
