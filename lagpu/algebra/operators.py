"""Operators, monoids, semirings, and `Table`: those of one kind by name and in order."""

from __future__ import annotations

import copyreg
import dataclasses
import difflib
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import BuiltinFunctionType, FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from lagpu.dtypes import ALL, BOOL, FP64, INT64, DType, cast, lookup, unify
from lagpu.errors import DomainMismatch, InvalidValue, NameTaken, NoDomain, UnknownOperator


class _Described:
    """The docstring of a class, and of each operator of it: what ``help(binary.plus)`` shows."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, op: Any, owner: type) -> str | None:
        return self.text if op is None else "\n\n".join(op.described())


# ---- rules of types: from the type of the operands to the domain, and from it to the result
Rule = Callable[[DType], DType]


def same(dtype: DType) -> DType:
    """Return `dtype` itself."""
    return dtype


def arithmetic(dtype: DType) -> DType:
    """Return INT64 for BOOL, and a numeric type itself."""
    return INT64 if dtype.is_bool else dtype


def real(dtype: DType) -> DType:
    """Return FP64 for integers and BOOL, and a float type itself."""
    return dtype if dtype.is_float else FP64


def integral(dtype: DType) -> DType:
    """Return INT64 for BOOL, and an integer type itself; `DomainMismatch` for a float."""
    if dtype.is_float:
        raise DomainMismatch(f"it takes integers, not {dtype}. Convert with x.dup('INT64').")
    return arithmetic(dtype)


def integral64(dtype: DType) -> DType:
    """Return INT64 for BOOL and any integer type; raise as `integral` does."""
    integral(dtype)
    return INT64


def logical(_dtype: DType) -> DType:
    """Return BOOL, in which every value but zero is true."""
    return BOOL


def index(_dtype: DType) -> DType:
    """Return INT64, the type of positions."""
    return INT64


# ---- the five kinds of operator, each with its meaning in NumPy, its functor and its types
#
# An operator works on a *domain*, the type its operands are cast to, and gives a *result* type.
# Both follow from the operands' types by a rule that every backend obeys, so all backends return
# the same type: arithmetic on BOOL is INT64, division and roots of integers are FP64, logic is
# BOOL.
def mark_used(*operands: Any) -> None:
    """Suppress the warnings of expressions that are not used: one error is enough."""
    for operand in operands:
        getattr(operand, "_mark_used", lambda: None)()


class _Written(Protocol):
    def _written_in(self, by: FrameType) -> Self:
        """Return this call, which the author has written in a frame."""


Result = TypeVar("Result", bound=_Written, covariant=True)


class _Applies(Protocol[Result]):
    """A vector or a matrix, whose `apply` returns a deferred call."""

    def apply(self, op: Any, right: Any = None, *, left: Any = None) -> Result:
        """Apply an operator to each entry."""


class _Product(Protocol[Result]):
    """A product ``u @ A`` that waits for its semiring."""

    def times(self, semiring: Any, by: Any, **options: Any) -> Result:
        """Return the deferred product over a semiring."""


class Types(dict[DType, DType]):
    """The types that an operator takes, each with that of the result: ``op.types[INT64]``.

    ``op.types(left, right)`` is (domain, result) for operands of these types.
    """

    def __init__(self, of: Callable[..., tuple[DType, DType]]) -> None:
        self._of = of
        for kind in ALL:
            with suppress(DomainMismatch):
                self[kind] = of(kind, kind)[1]

    def __call__(self, left: DType, right: DType | None = None) -> tuple[DType, DType]:
        """Return (domain, result) for operands of these types."""
        return self._of(left, right)

    def __missing__(self, dtype: Any) -> DType:
        """Return the result for a type by its name, or raise why there is none."""
        kind = lookup(dtype)
        return self._of(kind, kind)[1]

    def __contains__(self, dtype: object) -> bool:
        return super().__contains__(lookup(dtype))  # which raises if there is no such type


class _Algebra:
    """What operators, monoids and semirings have in common: text, and a forced domain."""

    name: str
    dtype: DType | None
    _types: Any

    @functools.cached_property
    def types(self) -> Types:
        """The types that the operator takes, and of its results; see `Types`."""
        return Types(self._types)

    def __repr__(self) -> str:
        typed = f"[{self.dtype}]" if self.dtype else ""
        return f"{type(self).__name__.removesuffix('Op').lower()}.{self.name}{typed}"

    def _types_shown(self) -> str:
        return self._by_type(lambda t: "{} -> {}".format(*self.types(t, t)))

    def _by_type(self, describe: Callable[[DType], str]) -> str:
        """Return the distinct descriptions of the types that the operator takes."""
        return ", ".join(dict.fromkeys(map(describe, self.types)))

    def __getitem__(self, dtype: Any) -> Self:
        """Return this operator with its domain forced to `dtype`."""
        return self._forced(lookup(dtype))

    @functools.cache  # noqa: B019 (one object a type: backends remember operators by identity)
    def _forced(self, dtype: DType) -> Self:
        made = self._with_domain(dtype)
        if dtype not in made.types:
            raise NoDomain(
                f"{self!r}: does not work with {dtype}. Use a type of {list(self.types)}."
            )
        object.__setattr__(made, "_parent", self)
        return made

    def _with_domain(self, dtype: DType) -> Self:
        return dataclasses.replace(self, dtype=dtype)  # type: ignore[type-var]

    @property
    def parent(self) -> Self:
        """The operator without a forced domain; of that itself, the operator."""
        return vars(self).get("_parent", self)

    def __contains__(self, dtype: Any) -> bool:
        """Whether operands may be of this type."""
        return dtype in self.types

    @property
    def commutes_to(self) -> Self | None:
        """The operator of the exchanged operands, if the table has it."""
        return self

    @property
    def is_commutative(self) -> bool:
        """Whether the operands may be exchanged."""
        return self.commutes_to is self

    @property
    def is_positional(self) -> bool:
        """Whether the result is an index and no value is read."""
        return bool(getattr(getattr(self, "multiply", self), "positional", ""))


@dataclass(frozen=True, eq=False, repr=False)
class Operator(_Algebra):
    """The base of `UnaryOp`, `BinaryOp` and `IndexUnaryOp`.

    `domain` returns the type to which operands are cast, from their common type, and `result` the
    type of the result, from the domain.
    """

    name: str  #: GraphBLAS name in snake_case.
    #: The meaning: takes and returns NumPy arrays of the domain (see each kind for the arguments).
    numpy: Callable[..., Any]
    cuda: str  #: Name of the functor in a kernel.
    #: The C++ expression of the functor, or statements that return and end with a semicolon; empty
    #: if the functor is in ``common/algebra.cuh``.
    body: str = ""
    domain: Rule = same
    result: Rule = same
    dtype: DType | None = None  #: A domain forced with ``op[dtype]``.
    #: Whether `numpy` takes numbers, as a user's function does, and not arrays: it may branch on
    #: them, and Numba compiles it for the cpu backend.
    of_numbers: bool = False
    #: What the operator computes, as text; its C++ text if a user registered it.
    formula: str = ""

    @property
    def orig_func(self) -> Callable[..., Any]:
        """The function of a user's operator, by its name in python-graphblas."""
        return self.numpy

    def described(self) -> list[str]:
        """Return the paragraphs of this operator's docstring."""
        return [f"{self!r}: z = {self.formula}.", f"Operands -> result: {self._types_shown()}."]

    @functools.lru_cache(maxsize=256)  # noqa: B019 (operators live as long as the program)
    def _types(self, left: DType, right: DType | None = None) -> tuple[DType, DType]:
        """Return (domain, result) for operands of these types."""
        unified = self.dtype or (left if right is None else unify(left, right))
        try:
            domain = self.domain(unified)
        except DomainMismatch as error:
            raise DomainMismatch(f"{self!r}: {error}") from None
        return domain, self.result(domain)

    def evaluate(self, domain: DType, *operands: Any) -> Any:
        """Return the results for NumPy arrays or scalars, after casts to `domain`."""
        function, result = self.numpy, self.result(domain)
        if self.of_numbers:  # it computes with NumPy's numbers, which wrap
            number = bool if domain.is_bool else domain.numpy.type  # True + True is 2, as in C++
            function = np.frompyfunc(
                lambda *x: cast(self.numpy(*map(number, x)), result), len(operands), 1
            )
        with np.errstate(all="ignore"):
            values = np.asarray(function(*(cast(x, domain) for x in operands)))
            return cast(values.astype(result.numpy) if self.of_numbers else values, result)


@dataclass(frozen=True, eq=False, repr=False)
class UnaryOp(Operator):
    """``z = f(x)``; ``numpy(x)``, C++ body in `x`."""

    def __call__(self, operand: _Applies[Result]) -> Result:
        """Return the deferred call that applies this operator to a vector, a matrix or a number."""
        x: Any = as_scalar[0](operand) if isinstance(operand, _NUMBERS) else operand
        if not hasattr(x, "apply"):
            mark_used(x)
            raise DomainMismatch(f"{self!r}: {type(x).__name__} has no entries. Give a Vector.")
        return x.apply(self)._written_in(sys._getframe(1))


_NUMBERS = (int, float, np.generic)
as_scalar: list[Callable[[Any], Any]] = []  #: makes a scalar of a number, once there are scalars


def _joined(
    op: BinaryOp | Monoid, applied: BinaryOp,
    operands: tuple[Any, ...], defaults: dict[str, Any], by: FrameType,
) -> Any:  # fmt: skip
    """Return the call of an operator on ``u | v``, ``u & v``, or an object and a number."""
    combined = getattr(operands[0], "combined", None) if len(operands) == 1 else None
    if combined is not None:
        return combined(op, by, **defaults)
    sparse = [getattr(type(x), "apply", None) is not None for x in operands]
    if sparse == [True, True]:  # one of them, or both, is a scalar
        first, second = (getattr(x, "ndim", 1) == 0 for x in operands)
        sparse = [second or not first, not second]
    if sparse == [True, False] and not defaults:
        return operands[0].apply(applied, operands[1])._written_in(by)
    if sparse == [False, True] and not defaults:
        return operands[1].apply(applied, left=operands[0])._written_in(by)
    if len(operands) == 2 and not defaults and all(isinstance(x, _NUMBERS) for x in operands):
        return as_scalar[0](operands[0]).apply(applied, operands[1])._written_in(by)
    mark_used(*operands)
    raise DomainMismatch(
        f"{op!r}: takes one u | v, on the union, or u & v, on the intersection, or u and a number. "
        f"Write {op!r}(u | v), {op!r}(u & v) or {applied!r}(u, 3)"
        f"{f', or u.reduce({op!r})' * isinstance(op, Monoid)}."
    )


@dataclass(frozen=True, eq=False, repr=False)
class BinaryOp(Operator):
    """``z = f(x, y)``; ``numpy(x, y)``, C++ body in `x` and `y`."""

    #: Name of the operator with its operands exchanged, if the table has that operator.
    flips_to: str = ""
    #: ``"i"``, ``"k"`` or ``"j"`` when the result is this index of the product
    #: ``C[i, j] = x[i, k] * y[k, j]`` and no value is read; else empty.
    positional: str = ""
    #: Whether the result depends on the value of `x`, and on the value of `y`. A kernel does not
    #: load values that are not read.
    reads: tuple[bool, bool] = (True, True)

    @property
    def commutes_to(self) -> BinaryOp | None:
        """The operator of the exchanged operands, if the table has it."""
        if self.name in _SYMMETRIC and not self.cuda.startswith("User_"):
            return self
        other: Any = _tables["binary"][self.flips_to] if self.flips_to else None
        return other if None in (other, self.dtype) else other[self.dtype]

    @property
    def monoid(self) -> Monoid | None:
        """The monoid of this operator, if the table has one."""
        found: Monoid | None = vars(self.parent).get("_monoid")
        return found if None in (found, self.dtype) else found[self.dtype]  # type: ignore[index]

    def merged(self, rows: Any, cols: Any, values: Any, kind: DType) -> tuple[Any, Any, Any]:
        """Return entries sorted by column and row, those given several times combined."""
        order = np.lexsort((rows, cols))
        rows, cols, values = rows[order], cols[order], values[order]
        new = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
        starts = np.flatnonzero(np.append(True, new))[: len(rows)]
        return rows[starts], cols[starts], self.fold_runs(values, starts, kind)

    def fold_runs(self, values: Any, starts: Any, kind: DType) -> Any:
        """Combine each run of values, beginning at `starts`, from left to right."""
        domain, _ = self.types(kind)
        total = values[starts].copy()
        ends = np.append(starts[1:], len(values))
        for step in range(1, int((ends - starts).max(initial=0))):
            more = starts + step < ends
            found = self.evaluate(domain, total[more], values[starts[more] + step])
            total[more] = cast(found, kind)
        return total

    def __call__(self, *operands: Any, **defaults: Any) -> Any:
        """Return the deferred call of ``op(u | v)``, ``op(u & v)``, ``op(u, 3)`` or ``op(3, u)``.

        Parameters
        ----------
        *operands
            Two vectors or matrices on the union, ``u | v``, or on the intersection, ``u & v``; or
            one of them and a number.
        **defaults
            ``left_default=`` and ``right_default=``: in place of a missing entry of ``u | v``.
        """
        return _joined(self, self, operands, defaults, sys._getframe(1))


@dataclass(frozen=True, eq=False, repr=False)
class IndexUnaryOp(Operator):
    """``z = f(x, i, j, thunk)``; ``numpy(x, i, j, thunk)``, C++ body in `x`, `i`, `j` and `y`.

    For a vector `i` is the index and `j` is 0.
    """

    #: Whether it combines `x` with the thunk (both then share the domain); else that is INT64.
    uses_value: bool = False

    def __call__(self, operand: _Applies[Result], thunk: Any = 0) -> Result:
        """Return the deferred call that applies this operator to a vector or a matrix."""
        return operand.apply(self, thunk)._written_in(sys._getframe(1))


@dataclass(frozen=True, eq=False, repr=False)
class Monoid(_Algebra):
    """An associative, commutative `BinaryOp` with an identity."""

    name: str  #: Name of the operator.
    op: BinaryOp  #: The operator; its domain and its result are the same type.
    identity: Callable[[DType], Any]  #: The identity of a type, as a NumPy scalar.
    #: Returns the value of a type that no further operand changes; None if there is none.
    terminal: Callable[[DType], Any] | None = None
    has_any_terminal: bool = False  #: True for ``any``: every value is terminal.
    #: False for ``any``, whose result depends on the order of operands. For sums and products of
    #: floats see `is_exact`.
    exact: bool = True
    #: Whether ``op(x, x) == x`` for every `x`: equal values need not be added up.
    idempotent: bool = False
    registered: bool = False  #: Whether a user registered the monoid.

    def __post_init__(self) -> None:
        """Let the operator know its monoid; a user's changes no operator of lagpu."""
        if not self.registered or self.op.cuda.startswith("User_"):
            vars(self.op.parent).setdefault("_monoid", self)

    @property
    def binaryop(self) -> BinaryOp:
        """The operator, by its name in python-graphblas."""
        return self.op

    @property
    def identities(self) -> dict[DType, Any]:
        """The identity of each type."""
        return {kind: self.identity(kind) for kind in self.types}

    @property
    def is_idempotent(self) -> bool:
        """Whether ``op(x, x) == x``, by its name in python-graphblas."""
        return self.idempotent

    @property
    def dtype(self) -> DType | None:  # type: ignore[override]
        """A domain forced with ``monoid[dtype]``."""
        return self.op.dtype

    def __call__(self, *operands: Any, **defaults: Any) -> Any:
        """Return the deferred call of ``op(u | v)``, or as a `BinaryOp` does."""
        return _joined(self, self.op, operands, defaults, sys._getframe(1))

    def described(self) -> list[str]:
        """Return the paragraphs of this monoid's docstring."""
        found = [
            f"{self!r}: x ⊕ y = {self.op.formula}.",
            f"Identity: {self._values(self.identity)}.",
        ]
        if self.has_any_terminal:
            found.append("Any value ends a sum.")
        if self.terminal is not None:
            found.append(f"A sum ends early at: {self._values(self.terminal)}.")
        return found

    def _values(self, value: Callable[[DType], Any]) -> str:
        return self._by_type(lambda t: f"{self.types[t]}: {value(self.types[t])}")

    def _with_domain(self, dtype: DType) -> Self:
        return dataclasses.replace(self, op=self.op[dtype])

    @functools.lru_cache(maxsize=256)  # noqa: B019 (monoids live as long as the program)
    def _types(self, left: DType, right: DType | None = None) -> tuple[DType, DType]:
        """Return (domain, result), the same type twice; raise if the identity does not fit it."""
        domain, result = self.op.types(left, right)
        if domain is not result:
            raise DomainMismatch(
                f"{self!r}: {self.op!r} turns {domain} into {result}; a monoid keeps its type."
            )
        self.identity(domain)
        return domain, result

    def is_exact(self, dtype: DType) -> bool:
        """Whether the result is the same in every order of the operands of `dtype`."""
        return self.exact and not (dtype.is_float and self.name in ("plus", "times"))

    def reduce(self, values: np.ndarray[Any, Any], dtype: DType) -> Any:
        """Reduce `values` one after another, by the definition (a slow reference)."""
        several = values if len(values) else [self.identity(dtype)]
        return functools.reduce(functools.partial(self.op.evaluate, dtype), several)


@dataclass(frozen=True, eq=False, repr=False)
class Semiring(_Algebra):
    """A `Monoid` that adds and a `BinaryOp` that multiplies: ``w[j] = ⊕_i u[i] ⊗ A[i, j]``."""

    monoid: Monoid
    multiply: BinaryOp
    dtype: DType | None = None  #: A domain forced with ``semiring[dtype]``.

    @property
    def binaryop(self) -> BinaryOp:
        """The multiplication, by its name in python-graphblas."""
        return self.multiply if self.dtype is None else self.multiply[self.dtype]

    @property
    def commutes_to(self) -> Semiring | None:
        """The semiring of the exchanged operands, if the table has it."""
        other = self.multiply.commutes_to
        if other is self.multiply:
            return self
        name = f"{self.monoid.name}_{'' if other is None else other.name}"
        found: Semiring | None = _tables["semiring"]._rows.get(name)
        return found if found is None or self.dtype is None else found[self.dtype]

    @functools.cached_property
    def name(self) -> str:  # type: ignore[override]
        """``monoid_multiply``, the name in GraphBLAS."""
        return f"{self.monoid.name}_{self.multiply.name}"

    def described(self) -> list[str]:
        """Return the paragraphs of this semiring's docstring."""
        return [
            f"{self!r}: w[j] = ⊕_i u[i] ⊗ A[i, j], the sum over all i of products.",
            f"⊗ is {self.multiply!r}: x ⊗ y = {self.multiply.formula}.",
            f"⊕ is {self.monoid!r}: x ⊕ y = {self.monoid.op.formula}.",
            f"Operands -> result: {self._types_shown()}.",
            f"Write w << {self!r}(u @ A), {self!r}(A @ u) or {self!r}(A @ B).",
        ]

    def __call__(self, product: _Product[Result], *more: Any, **options: Any) -> Result:
        """Return the deferred product ``u @ A`` or ``A @ u`` over this semiring.

        Parameters
        ----------
        product : MatMul
            ``u @ A``, ``A @ u`` or ``A @ B``; ``A.T`` is the transpose.
        **options
            ``kernel=`` or ``policy=``, for a backend that offers a choice.
        """
        times = getattr(product, "times", None)
        if more or times is None:
            mark_used(product, *more)
            fact = f"a product such as q @ A, not {type(product).__name__}"
            fact = f"one product, not {1 + len(more)} operands" if more else fact
            raise DomainMismatch(f"{self!r}: takes {fact}. Write {self.name}(q @ A).")
        return times(self, sys._getframe(1), **options)

    @functools.lru_cache(maxsize=256)  # noqa: B019 (semirings live as long as the program)
    def _types(self, left: DType, right: DType) -> tuple[DType, DType]:
        """Return (domain, result): operands are cast to the domain, sums have the result type.

        A product of another type is cast to the result type before it is added.
        """
        domain = self.multiply.domain(self.dtype or self.multiply.dtype or unify(left, right))
        if self.multiply.result is same:  # the monoid decides the type: plus over BOOL is INT64
            added = self.monoid.op.domain(domain)
            if all(self.multiply.reads):  # it widens operands alone: lor of sums adds before a cast
                added = unify(domain, added)
            domain = self.multiply.domain(added)
        return domain, self.monoid.types(self.multiply.result(domain))[1]

    @property
    def casts(self) -> bool:
        """Whether products of BOOL are cast before they are added, as `plus` counts truths."""
        domain, result = self.types(BOOL, BOOL)
        return self.multiply.result(domain) is not result


for _kind in (UnaryOp, BinaryOp, IndexUnaryOp, Monoid, Semiring):
    _kind.__doc__ = _Described(_kind.__doc__)  # type: ignore[assignment]


def result_of(op: Any, kind: DType) -> Any:
    """Return the result type of an operator, or the error that says why it has none."""
    try:
        return op.result(kind)
    except DomainMismatch as error:
        return error


# ---- `Table`: the operators of one kind, by attribute, by name and in order
_tables: dict[str, Any] = {}  #: the table of each kind

Row = TypeVar("Row", UnaryOp, BinaryOp, IndexUnaryOp, Monoid, Semiring)

#: The operators whose operands may be exchanged.
_SYMMETRIC = frozenset((
    "plus", "times", "min", "max", "any", "pair", "land", "lor", "lxor", "lxnor", "eq", "ne",
    "iseq", "isne", "hypot", "band", "bor", "bxor", "bxnor", "isclose",
))  # fmt: skip
#: sign -> the name of its operator
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
}


def instead_of(name: str, kind: str, names: Iterable[str]) -> str:
    """Return what to write instead of a name that a table of this kind lacks."""
    for pattern, advice in INSTEAD.items():
        if re.fullmatch(pattern, name):
            return advice
    near = difflib.get_close_matches(name, names, n=5, cutoff=0.4)
    return f"The nearest names are {', '.join(near)}." if near else f"dir({kind}) lists the names."


class Namespace:
    """Operators by attribute and by name: ``semiring.min_plus``, ``semiring["min_plus"]``."""

    kind: str
    _paths: Any  # the names with a point, and what else is listed apart

    if not TYPE_CHECKING:  # a type checker knows the rows alone, so that it finds a wrong name

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return self[name]

    @property
    def ss(self) -> Self:
        """The same names: python-graphblas lists what is not in the standard under ``ss``."""
        return self

    def _group(self, name: str, names: Iterable[str]) -> Any:
        """Return the operators whose names begin with ``name.``, or raise: there is no such one."""
        if any(path.startswith(f"{name}.") for path in self._paths):
            return Path(self, name)
        advice = instead_of(name, self.kind, names)
        raise UnknownOperator(f"{self.kind}: there is no {name!r}. {advice}")


class Path(Namespace):
    """The operators whose names begin alike, up to a point: ``unary.numpy.arccos``."""

    def __init__(self, table: Any, name: str) -> None:
        self._table, self._name = table, name

    def __getitem__(self, name: str) -> Any:
        return self._table[f"{self._name}.{name}"]

    def __dir__(self) -> list[str]:
        start = f"{self._name}."
        return sorted({k.removeprefix(start) for k in self._table._paths if k.startswith(start)})

    def __repr__(self) -> str:
        return f"{self._table.kind}.{self._name}: {', '.join(dir(self))}"


class Parameterized:
    """Operators of one kind that a function makes of its parameters: ``plus_x(10)``.

    Used as an operator, it is the one of the default parameters.
    """

    is_positional = is_idempotent = False
    monoid: Parameterized | None = None  # of a binary operator, once it is made

    def __init__(self, make: Callable[..., Any], name: str, of: Iterable[Any] = ()) -> None:
        functions = [inspect.signature(getattr(f, "made_of", f)) for f in of if callable(f)]
        if functions[1:] and functions[0] != functions[1]:
            raise InvalidValue(
                f"{name}: parameters {functions[0]} != {functions[1]}. Give both the same."
            )
        self.made_of = next((getattr(f, "made_of", f) for f in of), make)
        self._make, self.name = functools.cache(make), name

    def __call__(self, *parameters: Any, **named: Any) -> Any:
        """Return the operator of these parameters; one object for each."""
        return self._make(*parameters, **named)

    is_commutative = property(lambda self: self().is_commutative)
    commutes_to = property(lambda self: self if self.is_commutative else None)

    def __repr__(self) -> str:
        return f"{self.name}(...)"


class Table(Namespace, Generic[Row]):
    """The operators of one kind, by attribute, by name and in order.

    ``semiring.min_plus``, ``semiring["min_plus"]`` and ``for s in semiring`` give the same rows.
    """

    kind: str = ""
    row: type[Any] = object
    signs: ClassVar[dict[str, str]] = {}  # where they differ from those of `SIGNS`

    def __init__(self) -> None:
        named = {k: x for owner in type(self).__mro__ for k, x in vars(owner).items()}
        self._rows: dict[str, Row] = {k: x for k, x in named.items() if isinstance(x, self.row)}
        vars(self).update(self._rows)  # as those of a module
        # Those with a point in their names, or with parameters, are listed apart.
        self._paths: dict[str, Any] = {
            k: x for k, x in named.items() if isinstance(x, Parameterized)
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

    def __contains__(self, name: str) -> bool:
        return name in self._rows or name in self._paths

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._rows, *(x.split(".")[0] for x in self._paths)})

    def __getitem__(self, name: str) -> Row:
        found: Any = self._rows.get(name) or self._paths.get(name)
        return found or self._group(name, self._rows)

    def from_string(self, text: str) -> Row:
        """Return the operator of a text: a name, or a sign such as ``"+"``, with ``"[FP64]"``."""
        name, bracket, dtype = text.strip().partition("[")
        if text.count("]") != len(bracket) or (bracket and not dtype.endswith("]")):
            raise UnknownOperator(
                f"{self.kind}: {text!r} has brackets that do not match. Write 'plus[INT64]'."
            )
        plain = name.strip().replace(".", "_") if self.kind == "semiring" else name.strip()
        if "." in plain or (f"numpy.{plain}" in self._paths and plain not in self):
            return self[plain if "." in plain else f"numpy.{plain}"]
        signs = {**SIGNS, **self.signs}
        words = [signs.get(part, part) for part in plain.split("_")] if plain else [plain]
        found = self["_".join(words)]
        return found[dtype[:-1].strip()] if bracket else found

    def lookup(self, op: Row | str) -> Row:
        """Return `op` itself, or the row of this name or text."""
        if isinstance(op, str):
            op = self[op] if op in self or op.isidentifier() else self.from_string(op)
        if isinstance(op, self.row):
            return op
        if type(op) is Parameterized:
            return self.lookup(op())
        if isinstance(op, BuiltinFunctionType) and op.__name__ in self:  # min, max, abs
            return self[op.__name__]
        raise DomainMismatch(f"{self.kind}: {op!r} is not a {self.row.__name__}.")

    def _add(self, row: Row) -> Row:
        """Add a user's row under its own name."""
        if not re.fullmatch(r"[a-z][a-z0-9_]*([.][a-z][a-z0-9_]*)*", row.name):
            raise InvalidValue(f"{self.kind}: {row.name!r} is not a lower_case name.")
        self._put(row.name, row)
        return row

    def _put(self, name: str, row: Row) -> None:
        """Add a row under a name that neither a row nor a group of rows has."""
        first, point, _ = name.partition(".")
        apart = point or isinstance(row, Parameterized)
        rows = self._paths if apart else self._rows
        taken = any(path.startswith(f"{name}.") for path in self._paths)
        taken = taken or bool(point and first in self._rows)
        if taken or rows.setdefault(name, row) is not row:  # in one step, for threads
            use = f"Use {self.kind}.{name}, or choose another name."
            raise NameTaken(f"{self.kind}: {name!r} is taken. {use}")
        if not apart and not hasattr(type(self), name):
            vars(self)[name] = row


# ---- copies and pickles of operators
def _as_named(op: Any) -> tuple[Any, ...]:
    """Return the parts of ``op.__reduce__``: its kind, name, forced type and texts."""
    table = next(table for table in _tables.values() if table.row is type(op))
    own = table._rows.get(op.name, table._paths.get(op.name))
    dtype = None if own is op else op.dtype
    if own is None or (own is not op and (dtype is None or own[dtype] is not op)):
        raise InvalidValue(
            f"{op!r}: is not an operator of a table, so it has no copy and no pickle. Register it."
        )
    return _named, (table.kind, op.name, dtype, _texts(op))


def _table(kind: str) -> Any:
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


def _texts(op: Any) -> tuple[str, ...]:
    """Return what users have registered in `op`, as text: C++, types and ends of monoids."""
    if isinstance(op, Semiring):
        return *_texts(op.monoid), *_texts(op.multiply)
    if isinstance(op, Monoid):
        ends = (op.identity, op.terminal) if op.registered else ()
        return *_texts(op.op), *("" if end is None else str(end(FP64)) for end in ends)
    return (op.body, str(op.result(FP64))) if op.body else ()
