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
from lagpu.errors import NotSupported, UnknownOperator

__all__ = ["Operators", "Selector", "Selectors", "op", "select"]


class Operators:
    """The unary and binary operators and the semirings by name: ``op.abs``, ``op.min_plus``.

    A name that is both, as ``plus``, is the binary operator; where a monoid belongs its monoid is
    taken.
    """

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


class Selectors:
    """The operators of `indexunary` that have a truth for each entry."""

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

    def __getitem__(self, name: str) -> Selector:
        """Return the operator of this name.

        Raises
        ------
        UnknownOperator, NotSupported
            If there is none, or it stands for a comparison of python-graphblas.
        """
        if name in ("value", "row", "column", "index"):
            short = {"row": "row", "column": "col"}.get(name, name)
            raise NotSupported(
                f"select.{name}: takes a comparison. Write A.select('{short}gt', 3), or another of "
                f"{', '.join(n for n in dir(self) if n.startswith(short))}."
            )
        found = indexunary[name]
        if found.result(BOOL) is not BOOL:
            raise UnknownOperator(f"select: {found!r} has no truth. Write A.apply({found!r}).")
        return self._made.setdefault(name, Selector(found))

    def __contains__(self, name: str) -> bool:
        return name in dir(self)

    def __dir__(self) -> list[str]:
        return sorted(row.name for row in indexunary if row.result(BOOL) is BOOL)

    def __repr__(self) -> str:
        return f"select: {len(dir(self))} operators, {', '.join(dir(self))}"

    @property
    def ss(self) -> Selectors:
        """The namespace itself."""
        return self

    def register_new(self, name: str, *args: Any, **options: Any) -> Any:
        """Refuse; see `IndexUnaryTable.register`."""
        return indexunary.register_new(name, *args, **options)


op = Operators()
select = Selectors()
