"""Operators and methods that objects refuse, each with a hint at what was probably meant.

Python gives every object a truth value, ``==`` and ``+``; for a sparse vector each of them would be
a silent mistake. Here they raise, with the line to write instead, in the author's own names.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np

from lagpu.errors import DomainMismatch, NotComputed
from lagpu.host.source import author

__all__ = [
    "Deferred",
    "NoArithmetic",
    "NoTruth",
    "NotYet",
    "for_matrix",
    "for_vector",
    "how_to_enter",
    "how_to_join",
    "name_of",
    "no_operator",
]

# sign -> (operator, whether it meets on the union; None: Python's meaning has no counterpart)
_BINARY: dict[str, tuple[str, bool]] = {
    "+": ("plus", True),
    "-": ("minus", True),
    "*": ("times", False),
    "/": ("truediv", False),
    "&": ("land", False),
    "|": ("lor", True),
    "^": ("lxor", True),
}
_COMPARED = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def name_of(x: Any) -> str:
    """Return the author's name for `x`: a local variable, else its own name, or a number itself."""
    frame = author()
    for name, value in {} if frame is None else frame.f_locals.items():
        if value is x and name.isidentifier() and not name.startswith("_"):
            return name
    stored = getattr(x, "stored", x) if isinstance(x, NoTruth) else x
    if stored is not x:  # a transposed matrix
        return f"{name_of(stored)}.T"
    if isinstance(x, (bool, int, float, np.generic)):
        return str(x)
    own = getattr(x, "name", None)
    if isinstance(own, str):
        return own
    return repr(x) if isinstance(x, NoTruth) else type(x).__name__


def how_to_join(x: Any, y: Any) -> str:
    """Return the line that brings two objects of different backends together."""
    usual = f"Move one with .to, as in {name_of(y)}.to({x.backend.name!r})"
    entered = how_to_enter(x.backend, y) or how_to_enter(y.backend, x)
    return entered or f"{usual}; nothing is copied for you."


def how_to_enter(backend: Any, x: Any) -> str:
    """Return how `x` gets to a backend without a name for `to`, as inside a crosscheck; or ''."""
    return str(getattr(backend, "entered", "")).format(name_of(x))


class NoArithmetic:
    """Refuses arithmetic and order; a subclass says what to write instead."""

    __slots__ = ()
    _hint = "Assign it with << first."

    def _mark_used(self) -> None:
        """Mark this object as used, so that no warning follows the error that is being raised."""

    def refuse(self, what: str, instead: str = "") -> NoReturn:
        """Raise with what this object is not, and what to write instead."""
        self._mark_used()
        raise DomainMismatch(f"{type(self).__name__}: {what}. {instead or self._hint}")

    def _instead(self, sign: str, other: Any, reflected: bool) -> str:
        """Return what to write for ``self sign other``, or with the operands exchanged."""
        return ""

    def _no(self, sign: str, other: Any, reflected: bool = False) -> NoReturn:
        self.refuse(f"has no {sign}", self._instead(sign, other, reflected))

    def __add__(self, other: Any) -> NoReturn:
        self._no("+", other)

    def __radd__(self, other: Any) -> NoReturn:
        self._no("+", other, True)

    def __sub__(self, other: Any) -> NoReturn:
        self._no("-", other)

    def __rsub__(self, other: Any) -> NoReturn:
        self._no("-", other, True)

    def __mul__(self, other: Any) -> NoReturn:
        self._no("*", other)

    def __rmul__(self, other: Any) -> NoReturn:
        self._no("*", other, True)

    def __truediv__(self, other: Any) -> NoReturn:
        self._no("/", other)

    def __rtruediv__(self, other: Any) -> NoReturn:
        self._no("/", other, True)

    def __and__(self, other: Any) -> NoReturn:
        self._no("&", other)

    def __or__(self, other: Any) -> NoReturn:
        self._no("|", other)

    def __xor__(self, other: Any) -> NoReturn:
        self._no("^", other)

    def __floordiv__(self, other: Any) -> NoReturn:
        self._no("//", other)

    def __mod__(self, other: Any) -> NoReturn:
        self._no("%", other)

    def __pow__(self, other: Any) -> NoReturn:
        self._no("**", other)

    def __iadd__(self, other: Any) -> NoReturn:
        self._no("+=", other)

    def __isub__(self, other: Any) -> NoReturn:
        self._no("-=", other)

    def __imul__(self, other: Any) -> NoReturn:
        self._no("*=", other)

    def __iand__(self, other: Any) -> NoReturn:
        self._no("&=", other)

    def __ior__(self, other: Any) -> NoReturn:
        self._no("|=", other)

    def __ilshift__(self, other: Any) -> NoReturn:  # it would bind the name to None
        self.refuse(f"<<= would bind {name_of(self)} to something else", "Write << alone.")

    def __neg__(self) -> NoReturn:
        self._no("-", None)

    def __abs__(self) -> NoReturn:
        self._no("abs()", None)

    def __lt__(self, other: Any) -> bool:
        self._no("<", other)

    def __le__(self, other: Any) -> bool:
        self._no("<=", other)

    def __gt__(self, other: Any) -> bool:
        self._no(">", other)

    def __ge__(self, other: Any) -> bool:
        self._no(">=", other)


class NoTruth(NoArithmetic):
    """Refuses truth, length, iteration and comparison too; the base of every object here."""

    __slots__ = ()
    __hash__ = object.__hash__
    __array_ufunc__ = None  # NumPy leaves operators to us
    _truth: ClassVar[str] = ""
    _items: ClassVar[str] = ""
    _dense: ClassVar[str] = ""

    def _say(self, template: str) -> str:
        return template.format(name_of(self)) if template else ""

    def _output(self, value: Any) -> str:
        """Return what to write instead of ``self << value``, where that writes nothing."""
        return ""

    def __bool__(self) -> bool:
        self.refuse("has no truth value", self._say(self._truth))

    def __iter__(self) -> NoReturn:
        self.refuse("cannot be iterated over", self._say(self._items))

    def __len__(self) -> int:
        self.refuse("has no len()", self._say(self._items))

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self.refuse("is not a NumPy array", self._say(self._dense))

    def __invert__(self) -> Any:
        self._no("~", None)

    def __matmul__(self, other: Any) -> Any:
        self._no("@", other)

    def __rmatmul__(self, other: Any) -> Any:
        self._no("@", other, True)

    # Equality by identity would be False for two equal vectors, without a word.
    def __eq__(self, other: object) -> bool:
        self._no("==", other)

    def __ne__(self, other: object) -> bool:
        self._no("!=", other)

    def __lshift__(self, value: Any) -> None:
        self.refuse("is not written to", self._output(value))


class NotYet:
    """An attribute that only a result has: a deferred call raises `NotComputed` for it.

    ``__getattr__`` would catch every name, but would slow down each attribute of each call.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, waiting: Deferred, owner: type) -> NoReturn:
        waiting._mark_used()
        raise NotComputed(
            f"{type(waiting).__name__}: {waiting!r} is not computed yet and has no {self.name}. "
            f"{waiting._hint}"
        )


class Deferred(NoTruth):
    """An expression that waits for its output: it has no values yet, and says so."""

    __slots__ = ()

    nvals, size, nrows, ncols = NotYet(), NotYet(), NotYet(), NotYet()
    to_coo, to_dense, to_csc, get = NotYet(), NotYet(), NotYet(), NotYet()
    dup, isequal, isclose = NotYet(), NotYet(), NotYet()
    reduce, apply, select, S, V, T = NotYet(), NotYet(), NotYet(), NotYet(), NotYet(), NotYet()
    vxm, mxv, ewise_add, ewise_mult = NotYet(), NotYet(), NotYet(), NotYet()
    selection = NotYet()


def no_operator(method: str, u: Any, v: Any) -> NoReturn:
    """Raise: whether two objects are added or multiplied, and how, is for the author to say."""
    op = "times" if method.endswith("mult") else "plus"
    raise DomainMismatch(
        f"{method}: has no operator. Write {name_of(u)}.{method}({name_of(v)}, binary.{op}), "
        "or another operator."
    )


def for_vector(u: Any, sign: str, other: Any, reflected: bool) -> str:
    """Return what to write instead of ``u sign other`` for a vector `u`."""
    me, it = name_of(u), name_of(other)
    both = isinstance(other, NoTruth) and getattr(other, "ndim", None) == u.ndim
    if other is None and sign in ("==", "!="):
        return f"Write {me} is {'not ' * (sign == '!=')}None."
    if sign in _COMPARED:
        return _compared(me, it, _COMPARED[sign], both)
    if sign[:-1] in _BINARY and sign.endswith("="):
        op = _BINARY[sign[:-1]][0]
        return f"Write {me}(accum=binary.{op}) << {it}."
    if isinstance(other, NoTruth) and not both:
        pair = f"{it} @ {me}" if reflected else f"{me} @ {it}"
        return f"A product is semiring.plus_times({pair}), or another semiring."
    if other is None:
        return {
            "-": f"Write {me}.apply(unary.ainv).",
            "abs()": f"Write {me}.apply(unary.abs).",
            "~": f"As a mask, write ~{me}.S for where {me} has no entry, ~{me}.V where none but 0.",
        }[sign]
    if sign not in _BINARY:
        return "There is no such operator: make one with binary.register, then apply or ewise_mult."
    op, union = _BINARY[sign]
    if not both:
        left = f"left={it}" if reflected else it
        return f"Write {me}.apply(binary.{op}, {left})."
    if sign == "-":
        return f"Write {me}.ewise_union({it}, binary.minus, 0, 0)."
    ways = ("ewise_add", "on the union"), ("ewise_mult", "on the intersection")
    (first, where), (second, there) = ways if union else ways[::-1]
    return f"Write {me}.{first}({it}, binary.{op}), {where}, or {second}, {there}."


def for_matrix(A: Any, sign: str, other: Any, reflected: bool) -> str:
    """Return what to write instead of ``A sign other`` for a matrix or its transpose."""
    me, it = name_of(A), name_of(other)
    if isinstance(other, NoTruth) and getattr(other, "ndim", None) == 1:
        return for_vector(other, sign, A, not reflected) if sign not in _COMPARED else ""
    if isinstance(other, NoTruth) and sign in ("==", "!="):
        return f"Write {'not ' * (sign == '!=')}{me}.isequal({it})."
    return for_vector(A, sign, other, reflected)


def _compared(me: str, it: str, op: str, both: bool) -> str:
    if both and op in ("eq", "ne"):
        negated = "not " * (op == "ne")
        return (
            f"Write {negated}{me}.isequal({it}) for one answer, "
            f"{me}.ewise_mult({it}, binary.{op}) for one an entry."
        )
    if both:
        return f"Write {me}.ewise_mult({it}, binary.{op}) for an answer an entry."
    return (
        f"Write {me}.select('value{op}', {it}) to keep such entries, "
        f"{me}.apply(binary.{op}, {it}) for an answer an entry."
    )
