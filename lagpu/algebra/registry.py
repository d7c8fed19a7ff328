"""`Table`: the operators of one kind, by attribute, by name and in order."""

from __future__ import annotations

import copyreg
import difflib
import re
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Semiring, UnaryOp
from lagpu.dtypes import FP64
from lagpu.errors import DomainMismatch, InvalidValue, NotSupported, UnknownOperator
from lagpu.host import display

_tables: dict[str, Any] = {}  #: the table of each kind

Row = TypeVar("Row", UnaryOp, BinaryOp, IndexUnaryOp, Monoid, Semiring)

#: sign -> the name of its operator; lagpu has no mod, whose sign would be that of y
SIGNS = {
    "+": "plus", "-": "minus", "*": "times", "/": "truediv", "//": "floordiv", "**": "pow",
    "%": "mod", "&": "land", "|": "lor", "^": "lxor", "~": "lnot", "==": "eq", "!=": "ne",
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "@": "plus_times",
}  # fmt: skip
#: What to write instead of names of python-graphblas that are not here.
INSTEAD = {
    r"(.*_)?(first|second)[ij]1": "Take it without the 1, then add 1: apply(binary.plus, 1).",
    r"position[ij]1?": "Write x.apply(indexunary.rowindex, 0), or colindex; 1 counts from 1.",
    r"carg|cimag|creal|conj|cmplx": "Complex types are not there. Keep two real objects.",
    r"isclose": "Write binary.isclose(), or binary.isclose(rel_tol, abs_tol).",
    r"numpy": "The functions of NumPy have the names of C here, as in unary.acos and binary.hypot.",
}


def instead_of(name: str, kind: str, names: Iterable[str]) -> str:
    """Return what to write instead of a name that a table of this kind lacks."""
    for pattern, advice in INSTEAD.items():
        if re.fullmatch(pattern, name):
            return advice
    near = difflib.get_close_matches(name, names, n=5, cutoff=0.4)
    if near:
        return f"The nearest names are {', '.join(near)}."
    return f"dir({kind}) lists the names."


class Table(Generic[Row]):
    """The operators of one kind, by attribute, by name and in order.

    ``semiring.min_plus``, ``semiring["min_plus"]`` and ``for s in semiring`` give the same rows.
    """

    kind: str = ""
    row: type[Any] = object

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {
            name: row
            for owner in type(self).__mro__
            for name, row in vars(owner).items()
            if isinstance(row, self.row)
        }
        if self.kind:
            _tables.setdefault(self.kind, self)
            copyreg.pickle(self.row, _as_named)  # backends remember operators by identity

    def __reduce__(self) -> tuple[Any, ...]:
        return _table, (self.kind,)

    def __iter__(self) -> Iterator[Row]:
        return iter(tuple(self._rows.values()))

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"{self.kind}: {len(self)} operators, {', '.join(self._rows)}"

    def _repr_html_(self) -> str:
        rows = [op.listed() for op in self._rows.values()]
        return display.listing_html(
            f"{self.kind}: {len(self)} operators", ("name", "value", "operands -> result"), rows
        )

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
            raise UnknownOperator(
                f"{self.kind}: there is no {name!r}. {instead_of(name, self.kind, self._rows)}"
            ) from None

    if not TYPE_CHECKING:  # a type checker knows the rows alone, so that it finds a wrong name

        def __getattr__(self, name: str) -> Row:
            if name.startswith("__"):
                raise AttributeError(name)
            return self[name]

    @property
    def ss(self) -> Self:
        """The table itself: python-graphblas lists what is not in the standard under ``ss``."""
        return self

    def from_string(self, text: str) -> Row:
        """Return the operator of a text: a name, or a sign such as ``"+"``, with ``"[FP64]"``.

        Raises
        ------
        UnknownOperator
            If there is none, or the brackets do not match.
        """
        name, bracket, dtype = text.strip().partition("[")
        if text.count("]") != len(bracket) or (bracket and not dtype.endswith("]")):
            raise UnknownOperator(
                f"{self.kind}: {text!r} has brackets that do not match. Write 'plus[INT64]'."
            )
        plain = name.strip().replace(".", "_") if self.kind == "semiring" else name.strip()
        words = [SIGNS.get(part, part) for part in plain.split("_")] if plain else [plain]
        found = self["_".join(words)]
        typed: Row = found[dtype[:-1].strip()] if bracket else found
        return typed

    def register_new(self, name: str, *args: Any, **options: Any) -> Any:
        """Refuse: an operator needs its C++ text too.

        Raises
        ------
        NotSupported
            Always; the message has the line to write.
        """
        raise NotSupported(
            f"{self.kind}: there is no register_new, for a GPU cannot run a Python function. "
            f"Write {self.kind}.register({name!r}, function, text), with the same as a C++ "
            "expression, such as 'x + 1'."
        )

    def register_anonymous(self, *args: Any, **options: Any) -> Any:
        """Refuse, as `register_new` does."""
        return self.register_new("name")

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
        if isinstance(op, FunctionType):  # as python-graphblas takes one
            raise DomainMismatch(
                f"{self.kind}: {op.__name__} is a Python function, which a GPU cannot run. "
                f"Register it: {self.kind}.register(name, python, cuda)."
            )
        raise DomainMismatch(f"{self.kind}: {op!r} is not a {self.row.__name__}.")

    def _add(self, row: Row) -> Row:
        """Add a user's row under its own name."""
        if not re.fullmatch(r"[a-z][a-z0-9_]*", row.name):
            raise InvalidValue(f"{self.kind}: {row.name!r} is not a lower_case name.")
        if self._rows.setdefault(row.name, row) is not row:  # in one step, for threads
            raise InvalidValue(f"{self.kind}: {row.name!r} is taken. Choose another name.")
        return row


# ---------------------------------------------------------------- copies and pickles of operators
def _as_named(op: Any) -> tuple[Any, ...]:
    """Return what ``op.__reduce__`` would return: its kind, name, forced type and texts."""
    table = next(table for table in _tables.values() if table.row is type(op))
    own = table._rows.get(op.name)
    dtype = None if own is op else _forced_type(op)
    if own is None or (own is not op and (dtype is None or own[dtype] is not op)):
        raise InvalidValue(
            f"{op!r}: is not an operator of a table, so it has no copy and no pickle. Register it."
        )
    return _named, (table.kind, op.name, dtype, _texts(op))


def _table(kind: str) -> Any:
    """Return the table of a kind."""
    return _tables[kind]


def _named(kind: str, name: str, dtype: Any, texts: tuple[str, ...]) -> Any:
    """Return the operator of this process that has the name of the pickled one."""
    table = _tables[kind]
    if name not in table:
        raise UnknownOperator(
            f"{kind}: there is no {name!r} in this process. Register it here too, before the "
            "pickle is read, as in a module that both programs import."
        )
    found = table[name]
    if _texts(found) != texts:
        raise InvalidValue(
            f"{found!r}: is registered with another text in this process, {_texts(found)} != "
            f"{texts}. Register both alike, or give one another name."
        )
    return found if dtype is None else found[dtype]


def _forced_type(op: Any) -> Any:
    return op.op.dtype if isinstance(op, Monoid) else op.dtype


def _texts(op: Any) -> tuple[str, ...]:
    """Return what users have registered in `op`, as text: C++, types and ends of monoids."""
    if isinstance(op, Semiring):
        return *_texts(op.monoid), *_texts(op.multiply)
    if isinstance(op, Monoid):
        ends = (op.identity, op.terminal) if op.registered else ()
        return *_texts(op.op), *("" if end is None else str(end(FP64)) for end in ends)
    return (op.body, str(op.result(FP64))) if op.body else ()
