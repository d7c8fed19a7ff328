"""Operators of Python on sparse objects: what an object does not have raises, with a hint.

Python gives every object a truth value and a length; on a sparse vector each of them would be
a silent mistake. Here they raise, with the line to write instead, in the author's own names.
"""

import operator
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ClassVar, NoReturn

import numpy as np

from lagpu.errors import DomainMismatch, InvalidValue, NotComputed
from lagpu.host import display
from lagpu.host.source import author
from lagpu.operations import PURE

Operator = Callable[[Any, Any], Any]
_UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg, "abs()": operator.abs, "~": operator.invert
}  # fmt: skip


def _two(sign: str, reflected: bool = False) -> Operator:
    return lambda self, other: self._infix(sign, other, reflected)


def _into(sign: str) -> Operator:
    return lambda self, other: self._inplace(sign, other)


def _one(sign: str) -> Callable[[Any], Any]:
    return lambda self: self._alone(sign)


def name_of(x: Any) -> str:
    """Return the author's name for `x`: a local variable, else its own, numbered if it has none."""
    frame = author()
    for name, value in {} if frame is None else frame.f_locals.items():
        if value is x and name.isidentifier() and not name.startswith("_"):
            return name
    stored = getattr(x, "stored", x) if isinstance(x, NoTruth) else x
    if stored is not x:  # a transposed matrix
        return f"{name_of(stored)}.T"
    if isinstance(x, (bool, int, float, np.generic)):
        return str(x)
    if isinstance(getattr(x, "name", None), str):
        return display.own_name(x)
    return repr(x) if isinstance(x, NoTruth) else type(x).__name__


def how_to_enter(backend: Any, x: Any) -> str:
    """Return how to move `x` to a backend that `to` cannot name, as in a crosscheck; else ''."""
    return str(getattr(backend, "entered", "")).format(name_of(x))


class Config(dict[str, bool]):
    """Options by their names in python-graphblas: ``config.set(autocompute=False)``.

    With `autocompute`, the default, an expression in place of an object is computed, as in
    ``(u + v).nvals`` or ``A.mxv(u + v)``. Without it such a line raises.
    """

    def set(self, **options: bool) -> ExitStack:
        """Set options, in a ``with`` statement until its end."""
        if not options.keys() <= self.keys():
            raise InvalidValue(f"config: there is no {max(options)!r}. It has {', '.join(self)}.")
        undo = ExitStack()
        undo.callback(self.update, dict(self))
        self.update(options)
        return undo


config = Config(autocompute=True)


class NoArithmetic:
    """An object without arithmetic and order, unless a subclass overrides `_infix`."""

    __slots__ = ()
    _hint = "Assign it with << first."

    def _mark_used(self) -> None:
        """Mark this object as used, so that no warning follows the error that is being raised."""

    def refuse(self, what: str, instead: str = "") -> NoReturn:
        """Raise `DomainMismatch` with a fact about this object and a hint."""
        self._mark_used()
        raise DomainMismatch(f"{type(self).__name__}: {what}. {instead or self._hint}")

    def _infix(self, sign: str, other: Any, reflected: bool = False) -> Any:
        if isinstance(other, NoArithmetic):
            other._mark_used()  # one error is enough
        self.refuse(f"has no {sign}")

    def _inplace(self, sign: str, other: Any) -> Any:
        """Do ``self sign= other``, and return the object to which the name is bound then."""
        self._infix(f"{sign}=", other)

    def _alone(self, sign: str) -> Any:
        self.refuse(f"has no {sign}")

    __add__, __radd__, __iadd__ = _two("+"), _two("+", True), _into("+")
    __sub__, __rsub__, __isub__ = _two("-"), _two("-", True), _into("-")
    __mul__, __rmul__, __imul__ = _two("*"), _two("*", True), _into("*")
    __truediv__, __rtruediv__, __itruediv__ = _two("/"), _two("/", True), _into("/")
    __floordiv__, __rfloordiv__, __ifloordiv__ = _two("//"), _two("//", True), _into("//")
    __mod__, __rmod__, __imod__ = _two("%"), _two("%", True), _into("%")
    __pow__, __rpow__, __ipow__ = _two("**"), _two("**", True), _into("**")
    __and__, __rand__, __iand__ = _two("&"), _two("&", True), _into("&")
    __or__, __ror__, __ior__ = _two("|"), _two("|", True), _into("|")
    __xor__, __rxor__, __ixor__ = _two("^"), _two("^", True), _into("^")
    __lt__, __le__, __gt__, __ge__ = _two("<"), _two("<="), _two(">"), _two(">=")
    __neg__, __abs__ = _one("-"), _one("abs()")

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __ilshift__(self, other: Any) -> NoReturn:  # Python would bind the name to None
        self.refuse(f"<<= would bind {name_of(self)} to something else", "Write << alone.")


class NoTruth(NoArithmetic):
    """An object without truth value, length and iteration either, and never equal by identity."""

    __slots__ = ()
    __hash__ = object.__hash__
    __array_ufunc__ = None  # NumPy defers to our operators
    _truth: ClassVar[str] = ""
    _items: ClassVar[str] = ""
    _dense: ClassVar[str] = ""

    def _output(self, value: Any) -> str:
        return ""

    def __bool__(self) -> bool:
        self.refuse("has no truth value", self._truth.format(name_of(self)))

    def __iter__(self) -> Any:
        self.refuse("cannot be iterated over", self._items.format(name_of(self)))

    def __len__(self) -> int:
        self.refuse("has no len()", self._items.format(name_of(self)))

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self.refuse("is not a NumPy array", self._dense.format(name_of(self)))

    __invert__ = _one("~")
    __matmul__, __rmatmul__, __imatmul__ = _two("@"), _two("@", True), _into("@")
    # Equality by identity would silently be False for two equal vectors.
    __eq__, __ne__ = _two("=="), _two("!=")

    def __lshift__(self, value: Any) -> None:
        self.refuse("cannot be written to", self._output(value))


def is_operand(x: Any, ndim: int) -> bool:
    """Return True for a Vector (`ndim` 1) or a Matrix or its transpose (2), and not an array."""
    return isinstance(x, NoTruth) and getattr(x, "ndim", None) == ndim


class Computed:
    """An attribute that results have: an expression or a view computes its result for it.

    ``__getattr__`` would catch every name, but would slow down every attribute of every call.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, waiting: Any, owner: type) -> Any:
        return self if waiting is None else getattr(waiting._computed(), self.name)


class ComputedForms:
    """Attributes of vectors and matrices that an expression or a view takes from its result."""

    __slots__ = ()

    to_coo, to_dense, to_csc, to_csr, to_dcsc, to_dcsr = (Computed() for _ in range(6))
    to_dict, to_dicts, to_edgelist = Computed(), Computed(), Computed()
    get, isequal, isclose, dup, wait = (Computed() for _ in range(5))
    S, V, diag, reposition = Computed(), Computed(), Computed(), Computed()
    apply, select, reduce, reduce_scalar = Computed(), Computed(), Computed(), Computed()
    reduce_rowwise, reduce_columnwise = Computed(), Computed()


class Deferred(ComputedForms, NoTruth):
    """An expression that waits for its output, or is computed once when a value is read."""

    __slots__ = ()

    def _computed(self) -> Any:
        """Return the result as an object, computed at its first use."""
        self._mark_used()
        raise NotComputed(f"{type(self).__name__}: {self!r} has no values. {self._hint}")

    def _infix(self, sign: str, other: Any, reflected: bool = False) -> Any:
        return self._computed()._infix(sign, other, reflected)

    def _inplace(self, sign: str, other: Any) -> Any:
        return self._infix(sign, other)

    def _alone(self, sign: str) -> Any:
        return _UNARY[sign](self._computed())

    def __bool__(self) -> bool:
        return bool(self._computed())

    def __iter__(self) -> Any:
        return iter(self._computed())

    def __getitem__(self, where: Any) -> Any:
        return part_of(self, self._computed()[where])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        found = self._computed()
        return super().__array__() if found.ndim else found.__array__(dtype, copy)

    def __contains__(self, where: Any) -> bool:
        return where in self._computed()

    def __format__(self, spec: str) -> str:
        return format(self._number(), spec) if spec else str(self)

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __index__(self) -> int:
        return operator.index(self._number())

    def _number(self) -> Any:
        found = self._computed()
        if found.ndim:
            self.refuse("is not a number", "Use reduce, or one index for one entry.")
        return found

    # Attributes that a view of a matrix has by itself, and all methods that make operations.
    nvals, T, value, is_empty, kronecker, power = (Computed() for _ in range(6))
    vars().update({name: Computed() for name in PURE - vars(ComputedForms).keys()})


def part_of(x: Any, part: Any) -> Any:
    """Return a part of the result of an expression or a view, which cannot be written to."""
    part.within = x
    return part


def object_of(x: Any) -> Any:
    """Return `x` itself, or the computed result of a deferred expression."""
    return x._computed() if isinstance(x, Deferred) else x
