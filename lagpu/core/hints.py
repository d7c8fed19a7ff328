"""Operators and methods that sparse objects refuse, each with a hint: the line to write instead.

Python gives every object a truth value, ``==`` and ``+``; on a sparse vector each of them would be
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

# sign -> (operator, whether ewise_add, on the union, is the likelier meaning)
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
    """Return the author's name for `x`: a local variable, else ``x.name``; a number as text."""
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
    """Return the hint for two objects of different backends: how to move one of them."""
    usual = f"Move one with .to, as in {name_of(y)}.to({x.backend.name!r})"
    entered = how_to_enter(x.backend, y) or how_to_enter(y.backend, x)
    return entered or f"{usual}; nothing is copied for you."


def how_to_enter(backend: Any, x: Any) -> str:
    """Return how to move `x` to a backend that `to` cannot name, as in a crosscheck; else ''."""
    return str(getattr(backend, "entered", "")).format(name_of(x))


class NoArithmetic:
    """An object without arithmetic and order; a subclass hints at what to write instead."""

    __slots__ = ()
    _hint = "Assign it with << first."

    def _mark_used(self) -> None:
        """Mark this object as used, so that no warning follows the error that is being raised."""

    def refuse(self, what: str, instead: str = "") -> NoReturn:
        """Raise `DomainMismatch` with a fact about this object and a hint."""
        self._mark_used()
        raise DomainMismatch(f"{type(self).__name__}: {what}. {instead or self._hint}")

    def _instead(self, sign: str, other: Any, reflected: bool) -> str:
        """Return a hint for ``self sign other``, or for ``other sign self`` if `reflected`."""
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

    def __ilshift__(self, other: Any) -> NoReturn:  # Python would bind the name to None
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
    """An object without truth value, length, iteration and comparison either."""

    __slots__ = ()
    __hash__ = object.__hash__
    __array_ufunc__ = None  # NumPy defers to our operators
    _truth: ClassVar[str] = ""
    _items: ClassVar[str] = ""
    _dense: ClassVar[str] = ""

    def _fill_in(self, template: str) -> str:
        return template.format(name_of(self)) if template else ""

    def _output(self, value: Any) -> str:
        """Return a hint for ``self << value``, on an object that cannot be written."""
        return ""

    def __bool__(self) -> bool:
        self.refuse("has no truth value", self._fill_in(self._truth))

    def __iter__(self) -> NoReturn:
        self.refuse("cannot be iterated over", self._fill_in(self._items))

    def __len__(self) -> int:
        self.refuse("has no len()", self._fill_in(self._items))

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self.refuse("is not a NumPy array", self._fill_in(self._dense))

    def __invert__(self) -> Any:
        self._no("~", None)

    def __matmul__(self, other: Any) -> Any:
        self._no("@", other)

    def __rmatmul__(self, other: Any) -> Any:
        self._no("@", other, True)

    # Equality by identity would silently be False for two equal vectors.
    def __eq__(self, other: object) -> bool:
        self._no("==", other)

    def __ne__(self, other: object) -> bool:
        self._no("!=", other)

    def __lshift__(self, value: Any) -> None:
        self.refuse("cannot be written to", self._output(value))


class NotYet:
    """An attribute that only results have; on a deferred expression it raises `NotComputed`.

    ``__getattr__`` would catch every name, but would slow down every attribute of every call.
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
    """An expression that waits for its output: it has no values yet, and raises if asked."""

    __slots__ = ()

    nvals, size, nrows, ncols = NotYet(), NotYet(), NotYet(), NotYet()
    to_coo, to_dense, to_csc, get = NotYet(), NotYet(), NotYet(), NotYet()
    dup, isequal, isclose = NotYet(), NotYet(), NotYet()
    reduce, apply, select, S, V, T = NotYet(), NotYet(), NotYet(), NotYet(), NotYet(), NotYet()
    vxm, mxv, ewise_add, ewise_mult = NotYet(), NotYet(), NotYet(), NotYet()
    selection = NotYet()


def no_operator(method: str, u: Any, v: Any) -> NoReturn:
    """Raise `DomainMismatch` for an element-wise method that was called without an operator."""
    op = "times" if method.endswith("mult") else "plus"
    raise DomainMismatch(
        f"{method}: has no operator. Write {name_of(u)}.{method}({name_of(v)}, binary.{op}), "
        "or another operator."
    )


def for_vector(u: Any, sign: str, other: Any, reflected: bool) -> str:
    """Return a hint for ``u sign other`` of a vector `u`."""
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
    """Return a hint for ``A sign other`` of a matrix or its transpose."""
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
            f"{me}.ewise_mult({it}, binary.{op}) for one per entry."
        )
    if both:
        return f"Write {me}.ewise_mult({it}, binary.{op}) for one answer per entry."
    return (
        f"Write {me}.select('value{op}', {it}) to keep such entries, "
        f"{me}.apply(binary.{op}, {it}) for one answer per entry."
    )
