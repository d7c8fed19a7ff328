"""`Table`: the operators of one kind, by attribute, by name and in order."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Semiring, UnaryOp
from lagpu.errors import DomainMismatch, InvalidValue, UnknownOperator

__all__ = ["Table"]

Row = TypeVar("Row", UnaryOp, BinaryOp, IndexUnaryOp, Monoid, Semiring)


class Table(Generic[Row]):
    """The operators of one kind, by attribute, by name and in order.

    ``semiring.min_plus``, ``semiring["min_plus"]`` and ``for s in semiring`` give the same rows.
    """

    kind: str = ""
    row: type[Any] = object

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {
            name: row for name, row in vars(type(self)).items() if isinstance(row, self.row)
        }

    def __iter__(self) -> Iterator[Row]:
        return iter(tuple(self._rows.values()))

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"{self.kind}: {len(self)} operators, {', '.join(self._rows)}"

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._rows})

    def __getitem__(self, name: str) -> Row:
        """Return the operator of this name.

        Raises
        ------
        UnknownOperator
            If there is none; the message has the nearest names.
        """
        try:
            return self._rows[name]
        except KeyError:
            near = difflib.get_close_matches(name, self._rows, n=5, cutoff=0.4) or [*self._rows]
            raise UnknownOperator(
                f"{self.kind}: there is no {name!r}. The nearest names are {', '.join(near)}."
            ) from None

    def __getattr__(self, name: str) -> Row:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def lookup(self, op: Row | str) -> Row:
        """Return `op` itself, or the row of this name.

        Raises
        ------
        DomainMismatch
            If `op` is an operator of another kind.
        UnknownOperator
            If no row has this name.
        """
        if isinstance(op, str):
            return self[op]
        if isinstance(op, self.row):
            return cast(Row, op)
        raise DomainMismatch(f"{self.kind}: {op!r} is not a {self.row.__name__}.")

    def _add(self, row: Row) -> Row:
        """Add a user's row under its own name."""
        if not re.fullmatch(r"[a-z][a-z0-9_]*", row.name):
            raise InvalidValue(f"{self.kind}: {row.name!r} is not a lower_case name.")
        if self._rows.setdefault(row.name, row) is not row:  # in one step, for threads
            raise InvalidValue(f"{self.kind}: {row.name!r} is taken. Choose another name.")
        return row
