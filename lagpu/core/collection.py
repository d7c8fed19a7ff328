"""The base of `Vector` and `Matrix`, and `agg`: aggregators by the names of python-graphblas."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from sys import _getframe
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from lagpu import backends
from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Table
from lagpu.algebra.tables import binary, monoid, semiring, unary
from lagpu.backends.protocol import Backend
from lagpu.core import arguments, expr
from lagpu.core.expr import OUTPUTS, Call, Mask, Updater, assign, write
from lagpu.core.hints import NoTruth, is_operand, object_of
from lagpu.core.infix import Arithmetic, described
from lagpu.core.recorder import flush, queue, why_unreadable
from lagpu.core.views import MaskedInput, assignment
from lagpu.dtypes import FP64, INT64, DType, lookup, unify
from lagpu.errors import DomainMismatch, InvalidValue
from lagpu.operations import Apply, Handle, Reduce, Select, new


@dataclass(frozen=True)
class Parts:
    """What is reduced, `x`, and the `way`: reduce, reduce_rowwise or reduce_columnwise."""

    x: Any
    way: str

    def total(self, add: Monoid, x: Any = None) -> Any:
        """Return the sums of `x`, by default `self.x`, over a monoid: a vector or a scalar."""
        return getattr(self.x if x is None else x, self.way)(add).new()

    def of(self, op: Any, bound: Any = None) -> Any:
        """Return `x` with an operator applied to each entry."""
        return self.x.apply(op, bound).new()

    def indices(self) -> Any:
        """Return each entry's index in what a sum runs over."""
        if self.x.ndim == 2 and self.way == "reduce":
            raise InvalidValue(
                "agg: a matrix as a whole has no single index. "
                "Write reduce_rowwise or reduce_columnwise."
            )
        by_row = self.way == "reduce_columnwise" or self.x.ndim == 1
        return self.of("rowindex" if by_row else "colindex", 0)

    def where(self, wanted: Any, entries: Any) -> Any:
        """Return an object with those `entries` that equal the sum of their row or column."""
        if self.way == "reduce":
            return entries.select("valueeq", _or_zero(wanted)).new()
        same = entries.ewise_mult(self.spread(wanted, entries), binary.eq).new()
        return same.select("valuene", 0).new()

    def spread(self, sums: Any, entries: Any) -> Any:
        """Return a matrix with the sum of its row or column at each entry."""
        ones = entries.apply(unary.one).new()
        if self.way == "reduce_rowwise":
            return semiring.any_first(sums.diag() @ ones).new()
        return semiring.any_second(ones @ sums.diag()).new()


def _or_zero(x: Any) -> Any:
    """Return the scalar `x`, or 0 if it is empty: then there is no entry that it would change."""
    return x.ewise_add(0, binary.first).new()


Recipe = Callable[[Parts], Any]


@dataclass(frozen=True, eq=False)
class Aggregator:
    """A sum that is more than a monoid: ``A.reduce_rowwise(agg.mean)``.

    `recipe` returns the sums, a vector or a scalar, from the `Parts` of a reduction. `monoid` is
    that of an aggregator that is nothing more, `meaning` the value of each sum in words.
    """

    recipe: Recipe
    meaning: str
    monoid: Monoid | None = None
    name: str = ""
    dtype: DType | None = None

    def __getitem__(self, dtype: Any) -> Aggregator:
        """Return this aggregator with sums of type `dtype`."""
        return self._forced(lookup(dtype))

    @functools.cache  # noqa: B019 (aggregators live as long as the program)
    def _forced(self, kind: DType) -> Aggregator:
        add, recipe = self.monoid, self.recipe
        add = None if add is None else add[kind]
        sums = _summed(add) if add is not None else _then(unary.identity[kind], recipe)
        return replace(self, recipe=sums, monoid=add, dtype=kind)

    @property
    def is_ours(self) -> bool:
        """Whether it is one of the table, which computes by statements of lagpu alone."""
        if self.name not in agg:
            return False
        known = agg[self.name]
        return self is (known if self.dtype is None else known[self.dtype])

    def __set_name__(self, owner: type, name: str) -> None:
        object.__setattr__(self, "name", name)  # that of the table; the rest is fixed

    def __repr__(self) -> str:
        return f"agg.{self.name}" + ("" if self.dtype is None else f"[{self.dtype}]")

    def listed(self) -> tuple[str, str, str]:
        """Return (name, meaning, recipe) for a table of aggregators."""
        kind = "one sum" if self.monoid is not None else "several statements"
        return self.name, self.meaning, kind

    def __call__(self, x: Any, *, rowwise: bool = False, columnwise: bool = False) -> Call:
        """Return the deferred reduction of a vector or a matrix, or of its rows or columns."""
        x = object_of(x)
        ndim = getattr(x, "ndim", 0)
        if not isinstance(x, NoTruth) or ndim == 0:
            raise DomainMismatch(f"{self!r}: {expr.kind_of(x)} is neither a Vector nor a Matrix.")
        if (rowwise or columnwise) and (ndim == 1 or (rowwise and columnwise)):
            raise InvalidValue(f"{self!r}: give one of rowwise= and columnwise=, for a Matrix.")
        way = "reduce_rowwise" if rowwise else "reduce_columnwise" if columnwise else "reduce"
        return getattr(x, way)(self)._written_in(_getframe(1))


def aggregate(x: Any, op: Aggregator, way: str, by: FrameType) -> Call:
    """Return the deferred reduction of `x` over an aggregator, as written in the frame `by`."""
    sums = op.recipe(Parts(x, way))
    call: Call = sums.copying() if way == "reduce" else sums[:].call()
    return call._written_in(by)


def _summed(add: Monoid, op: Any = None, bound: Any = None) -> Recipe:
    """Return the recipe of a sum over a monoid: of the entries, or of `op` of each."""
    return lambda parts: parts.total(add, None if op is None else parts.of(op, bound))


def _then(op: Any, recipe: Recipe) -> Recipe:
    """Return the recipe that applies an operator to the sums of another one."""
    return lambda parts: recipe(parts).apply(op).new()


def _of_two(op: BinaryOp, first: Recipe, second: Recipe) -> Recipe:
    """Return the recipe that combines the sums of two others."""
    return lambda parts: first(parts).ewise_mult(second(parts), op).new()


def _of_monoid(add: Monoid, meaning: str) -> Aggregator:
    return Aggregator(_summed(add), meaning, add)


def _squares(kind: DType) -> Recipe:
    """Return the recipe of a sum of squares, which are of `kind` or wider."""

    def recipe(parts: Parts) -> Any:
        times = binary.times[unify(parts.x.dtype, kind)]
        return parts.total(monoid.plus, parts.x.ewise_mult(parts.x, times).new())

    return recipe


# Parts of an FP64 are FP64: a sum of integers may overflow where their mean does not.
_count = _summed(monoid.plus, unary.one["INT64"])
_mean = _of_two(binary.truediv, _summed(monoid.plus["FP64"]), _count)
_inverses = _summed(monoid.plus, unary.minv["FP64"])
_exp, _exp2 = (_summed(monoid.plus, op["FP64"]) for op in (unary.exp, unary.exp2))
_product = _summed(monoid.times["FP64"])
_in_fp64 = _squares(FP64)
_root_mean = _then(unary.sqrt, _of_two(binary.truediv, _in_fp64, _count))
_geometric = _of_two(binary.pow, _product, _then(unary.minv, _count))
_harmonic = _of_two(binary.truediv, _count, _inverses)
_range = _of_two(binary.minus, _summed(monoid.max), _summed(monoid.min))


def _variance(less: int) -> Recipe:
    """Return the recipe of a variance whose divisor is the count, or one less."""

    def recipe(parts: Parts) -> Any:
        count, mean = _count(parts).apply(unary.identity["FP64"]).new(), _mean(parts)
        x = parts.of(unary.identity["FP64"])
        if parts.way == "reduce":
            off = x.apply(binary.minus, _or_zero(mean)).new()
        else:
            off = x.ewise_mult(parts.spread(mean, x), binary.minus).new()
        squares = parts.total(monoid.plus, off.ewise_mult(off, binary.times).new())
        return squares.ewise_mult(count.apply(binary.minus, less).new(), binary.truediv).new()

    return recipe


def _index_of(extreme: Monoid) -> Recipe:
    """Return the recipe of the least index with the extreme value."""

    def recipe(parts: Parts) -> Any:
        kept = Parts(parts.where(parts.total(extreme), parts.x), parts.way)
        return kept.total(monoid.min, kept.indices())

    return recipe


def _index(side: Monoid) -> Recipe:
    return lambda parts: parts.total(side, parts.indices())


def _value_at(side: Monoid) -> Recipe:
    """Return the recipe of the value at the least or the greatest index."""

    def recipe(parts: Parts) -> Any:
        if parts.x.ndim == 2 and parts.way == "reduce":  # by rows
            parts = Parts(recipe(Parts(parts.x, "reduce_rowwise")), "reduce")
        indices = parts.indices()
        kept = parts.where(parts.total(side, indices), indices)
        second = binary.second[parts.x.dtype]  # else of the type of the indices, too
        return parts.total(monoid.any, kept.ewise_mult(parts.x, second).new())

    return recipe


class AggregatorTable(Table[Aggregator]):  # type: ignore[type-var]  # a table of its own kind
    """Sums that are more than a monoid, by the names of python-graphblas."""

    kind, row = "agg", Aggregator
    signs: ClassVar[dict[str, str]] = {"+": "sum", "*": "prod", "|": "any", "&": "all"}

    sum = _of_monoid(monoid.plus, "the sum")
    prod = _of_monoid(monoid.times, "the product")
    min = _of_monoid(monoid.min, "the least value")
    max = _of_monoid(monoid.max, "the greatest value")
    any = _of_monoid(monoid.lor, "whether any value is true")
    all = _of_monoid(monoid.land, "whether all values are true")
    any_value = _of_monoid(monoid.any, "one of the values, whichever")
    bitwise_all = _of_monoid(monoid.band, "the bits that all values have")
    bitwise_any = _of_monoid(monoid.bor, "the bits that any value has")
    count = Aggregator(_count, "the number of entries")
    count_nonzero = Aggregator(_summed(monoid.plus, binary.ne, 0), "how many are not 0")
    count_zero = Aggregator(_summed(monoid.plus, binary.eq, 0), "how many are 0")
    exists = Aggregator(_summed(monoid.any, unary.one["INT64"]), "1 where any entry is")
    mean = Aggregator(_mean, "the mean")
    sum_of_squares = Aggregator(_squares(INT64), "the sum of squares")
    sum_of_inverses = Aggregator(_inverses, "the sum of 1 / x")
    root_mean_square = Aggregator(_root_mean, "the root of the mean of squares")
    geometric_mean = Aggregator(_geometric, "the product's n-th root")
    harmonic_mean = Aggregator(_harmonic, "the count divided by the sum of 1 / x")
    varp = Aggregator(_variance(0), "the variance of a population")
    vars = Aggregator(_variance(1), "the variance of a sample")
    stdp = Aggregator(_then(unary.sqrt, _variance(0)), "the standard deviation of a population")
    stds = Aggregator(_then(unary.sqrt, _variance(1)), "the standard deviation of a sample")
    peak_to_peak = Aggregator(_range, "the greatest value less the least")
    L0norm = Aggregator(_summed(monoid.plus, binary.ne, 0), "how many are not 0")
    L1norm = Aggregator(_summed(monoid.plus, unary.abs), "the sum of |x|")
    L2norm = Aggregator(_then(unary.sqrt, _in_fp64), "the root of the sum of squares")
    hypot = Aggregator(_then(unary.sqrt, _in_fp64), "the root of the sum of squares")
    Linfnorm = Aggregator(_summed(monoid.max, unary.abs), "the greatest |x|")
    logaddexp = Aggregator(_then(unary.log, _exp), "the logarithm of the sum of exp(x)")
    logaddexp2 = Aggregator(_then(unary.log2, _exp2), "the same to the base 2")
    argmin = Aggregator(_index_of(monoid.min), "the first index of the least value")
    argmax = Aggregator(_index_of(monoid.max), "the first index of the greatest value")
    first_index = Aggregator(_index(monoid.min), "the index of the first entry")
    last_index = Aggregator(_index(monoid.max), "the index of the last entry")
    first = Aggregator(_value_at(monoid.min), "the value of the first entry")
    last = Aggregator(_value_at(monoid.max), "the value of the last entry")

    @staticmethod
    def Aggregator(
        name: str, *, composite: Iterable[Aggregator], finalize: Callable[..., Any], types: Any = ()
    ) -> Aggregator:
        """Return an aggregator of one's own, without a place in the table.

        Parameters
        ----------
        name : str
            Its name in messages.
        composite : list of Aggregator
            The aggregators whose sums it combines.
        finalize : callable
            Returns the call that combines them, of their vectors and of ``opts``, which is empty.
        types
            Accepted as in python-graphblas.
        """
        parts = tuple(composite)
        made = Aggregator(
            lambda x: finalize(*(part.recipe(x) for part in parts), {}).new(), "a user's own"
        )
        made.__set_name__(AggregatorTable, name)
        return made


agg = AggregatorTable()


def adder(op: Any) -> Monoid | Aggregator:
    """Return the monoid of a reduction, or an aggregator that is more than a monoid."""
    if type(op) is Monoid:
        return op
    if type(op) is str and op not in monoid and op in agg:
        op = agg[op]
    return (op.monoid or op) if type(op) is Aggregator else monoid.lookup(op)


# --------------------- The base of `Vector` and `Matrix`: assignment, apply, select, reduce, copies
#: What to write instead of attributes of other libraries that are not here.
_DENSE = "Use to_coo for indices and values, or to_dense with a fill value."
_INSTEAD = {
    **dict.fromkeys(("to_numpy", "to_list", "tolist", "toarray", "todense"), _DENSE),
    "sum": 'Use reduce("plus").new().value.',
    "min": 'Use reduce("min").new().value.',
    "max": 'Use reduce("max").new().value.',
    "nnz": "Use nvals.",
    "copy": "Use dup.",
    "to_scipy": "Write lagpu.io.to_scipy(A); of a vector, to_coo.",
    "to_networkx": "Write lagpu.io.to_networkx(A).",
    "ss": "Only the cpu backend uses SuiteSparse. Use to_csr, to_csc, to_coo, from_csr, "
    "from_csc, A.orientation, or dup for a copy.",
    "gb_obj": "Objects of the C library are the cpu backend's own. Use to_coo or to_csr.",
}


class Collection(Arithmetic):
    """The base of `Vector` and `Matrix`: entries of one type on one backend."""

    __slots__ = {
        "__weakref__": "For caches of a program.",
        "backend": "Where the entries live.",
        "data": "The backend's own object.",
        "dtype": "Type of the values.",
        "name": "Name in formulas and messages.",
        "shape": "The size of each dimension.",
    }
    backend: Backend
    data: Handle
    dtype: DType
    name: str
    shape: tuple[int, ...]
    ndim: ClassVar[int]
    _unnamed: ClassVar[str]
    _why_unreadable = why_unreadable

    if not TYPE_CHECKING:  # a type checker knows the real attributes alone

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                f"{type(self).__name__}: there is no {name!r}. {_INSTEAD.get(name, '')}".rstrip()
            )

    @classmethod
    def _of(
        cls, data: Handle, dtype: DType, shape: tuple[int, ...], backend: Backend, name: str | None
    ) -> Self:
        made = cls.__new__(cls)
        made.data, made.dtype, made.shape, made.backend = data, dtype, shape, backend
        made.name = name or cls._unnamed
        return made

    @property
    def nvals(self) -> int:
        """Number of entries."""
        backend = self.backend
        flush(backend, self.data)
        found = backend.nvals(self.data)
        if not found or backend.capabilities.batches is None:
            return found
        return backend.nvals(self.data) if queue.ends(_getframe(1), self) else found

    def wait(self, how: str = "materialize") -> Self:
        """Return this object when all operations that make it have ended, for measuring time.

        A backend may run asynchronously; reading an object always waits. `how` is
        materialize or complete, as in python-graphblas; both wait for the same.
        """
        arguments.check_how(how)
        self._flushed().wait(self.data)
        return self

    def _flushed(self) -> Backend:
        """Run the recorded statements, on which this object may depend; return the backend."""
        flush(self.backend)
        return self.backend

    @property
    def S(self) -> Mask:
        """The mask of all positions with an entry, whatever its value."""
        return Mask(self, True)

    @property
    def V(self) -> Mask:
        """The mask of all positions with an entry that is not zero."""
        return Mask(self, False)

    # ------------------------------------------------------------------------ copies
    def dup(
        self, dtype: Any = None, *, clear: bool = False,
        mask: Mask | None = None, name: str | None = None,
    ) -> Self:  # fmt: skip
        """Return a copy, cast to `dtype` if it is given.

        Parameters
        ----------
        dtype, name : optional
            Type of the values (DType), and name (str), of the copy.
        clear : bool
            Leave out all entries, for an object of the same size and type.
        mask : Mask, optional
            Copy only the entries that the mask keeps.
        """
        kind = self.dtype if dtype is None else lookup(dtype)
        waits = dtype is None and self.ndim == 1 and queue.statements  # so may a copy
        if clear or mask is not None or waits:
            new = type(self)(kind, *self.shape, like=self, name=name or self.name)  # type: ignore[call-arg]
            if not clear:
                assign(Updater(new, mask), self)
            return new
        data = self._flushed().dup(self.data, kind)
        return self._of(data, kind, self.shape, self.backend, name or self.name)

    def _require_empty(self, clear: bool) -> None:
        if self.nvals and not clear:
            raise InvalidValue(f"build: {self.name} has entries. Clear it, or give clear=True.")

    def __copy__(self, memo: dict[int, Any] | None = None) -> Any:
        return self.dup()

    __deepcopy__ = __copy__

    def __reduce__(self) -> tuple[Any, ...]:
        *where, values = self.to_coo() if self.ndim == 1 else self.to_csc()  # type: ignore[attr-defined]
        if self.ndim == 1 and len(values) == self.size:  # type: ignore[attr-defined]
            where = [None]
        place = backends.name_elsewhere(self.backend)
        parts = (self.shape, self.dtype, where, arguments.one_if_alike(values), place, self.name)
        return arguments.put_together, (type(self), *parts)

    # ------------------------------------------------------------------------ comparison
    def isequal(self, other: Any, *, check_dtype: bool = False) -> bool:
        """Whether both have the same shape, the same entries and equal values.

        Parameters
        ----------
        other : Vector or Matrix, as this object, or an expression or a view of one
            The other object, on the same backend.
        check_dtype : bool
            Whether the types must be the same too.
        """
        other = self._alike(other, "isequal", check_dtype)
        return other is not None and self._flushed().isequal(self.data, other.data)

    def isclose(
        self, other: Any, *, rel_tol: float = 1e-7, abs_tol: float = 0.0, check_dtype: bool = False
    ) -> bool:
        """Whether both have the same entries, with values equal up to a tolerance; see `isequal`.

        Two values are close if they are equal, or differ by `rel_tol` times the greater or by
        `abs_tol` at most, as in ``math.isclose``. NaN is close to nothing.
        """
        other = self._alike(other, "isclose", check_dtype)
        if other is None:
            return False
        (*where, x), (*there, y) = self.to_coo(), other.to_coo()  # type: ignore[attr-defined]
        same = all(np.array_equal(i, j) for i, j in zip(where, there, strict=True))
        return same and arguments.all_close(x, y, rel_tol, abs_tol)

    def _alike(self, other: Any, what: str, check_dtype: bool) -> Any:
        """Return an object to compare with; None if its shape, or type if it counts, differs."""
        if type(other) is not type(self):  # an expression, a view, or something else
            other = object_of(other)
            if not is_operand(other, self.ndim):
                kind = OUTPUTS[self.ndim].__name__
                raise DomainMismatch(f"{what}: {expr.kind_of(other)} is not a {kind}.")
        if other.backend is not self.backend:
            raise expr.mixed_backends(what, (self, other))
        if self.shape != other.shape or (check_dtype and self.dtype is not other.dtype):
            return None
        return other if isinstance(other, Collection) else other.new()

    # ----------------------------------------------------------------------- assignments
    def __call__(
        self, first: Any = None, *more: Any, mask: Any = None,
        accum: Any = None, replace: bool = False, input_mask: Any = None,
    ) -> Any:  # fmt: skip
        """Return the updater of ``w(mask, accum=op, replace=True) << call``.

        Mask, accumulator and `lagpu.replace` may be given by position, in any order. `input_mask`
        is a mask of ``u`` in ``w(input_mask=m) << u[I]``.
        """
        if more or mask is not None or (first is not None and type(first) is not Mask):
            first, accum, replace = described(self, (first, *more), mask, accum, replace)
        if input_mask is not None:
            if first is not None:
                raise DomainMismatch("input_mask: takes no mask of the output. Leave one out.")
            return MaskedInput(input_mask, self, accum, replace)
        return Updater(self, first, accum, replace)

    def update(self, value: Any) -> None:
        """Do what ``<<`` does."""
        if type(value) is Call and len(value.shape) >= len(self.shape):
            write(self, value)
        elif type(value) is type(self):
            write(self, assignment(self, value, None))
        else:
            assign(Updater(self), value)

    __lshift__ = update

    _call_for = assignment

    def __delitem__(self, where: Any) -> None:
        """Delete the entries at indices, as ``w[I] << Scalar(dtype)`` does."""
        assign(Updater(self, indices=where), OUTPUTS[0](self.dtype))

    # ------------------------------------------------------------------------ operations
    def apply(self, op: Any, right: Any = None, *, left: Any = None) -> Call:
        """Apply an operator to each entry: ``w[i] = f(u[i])`` or ``C[i, j] = f(A[i, j])``.

        Parameters
        ----------
        op : UnaryOp, BinaryOp or IndexUnaryOp
            The operator: ``f(x)``; ``f(x, right)`` or ``f(left, x)``; ``f(x, i, j, right)``.
        right, left : scalar, optional
            The bound operand of a `BinaryOp`, or the thunk of an `IndexUnaryOp` (default 0).
        """
        if left is not None or right is not None:
            left, right = object_of(left), object_of(right)
        return self._applied(op, left, right, _getframe(1))

    def _applied(self, op: Any, left: Any, right: Any, by: FrameType | None) -> Call:
        function = arguments.bound_operator(self.dtype, op, left, right)
        bound, _, result, one, other = function
        formula: tuple[Any, ...] = (bound.name, "(", self, ")")
        if left is not None:
            formula = (bound.name, "(", one, ", ", self, ")")
        elif right is not None:
            formula = (bound.name, "(", self, ", ", other, ")")
        return Call(new(Apply, (self.data, function)), (self,), result, self.shape, formula, by)

    def select(self, op: IndexUnaryOp | str, thunk: Any = None) -> Call:
        """Keep the entries for which `op` of value, index and `thunk` is true.

        Parameters
        ----------
        op : IndexUnaryOp
            An operator with a BOOL result, as in ``u.select("valuegt", 3)``; or a mask or a BOOL
            object of the same shape, as in ``u.select(u > v)``, which keeps the entries there.
        thunk : scalar
            The operator's last operand, as in ``A.select("tril", -1)``; by default 0. A mask has
            none.
        """
        if isinstance(op, NoTruth):
            if thunk is not None:
                raise DomainMismatch(
                    f"select: a mask takes no thunk, here {thunk!r}. Leave it out."
                )
            return self._where(op)._written_in(_getframe(1))
        op, number, _ = arguments.selected(self.dtype, op, 0 if thunk is None else thunk)
        formula = (op.name, "(", self, f", {number})")
        operation = new(Select, (self.data, op, number))
        return Call(operation, (self,), self.dtype, self.shape, formula, _getframe(1))

    def _where(self, x: Any) -> Call:
        """Return the deferred selection of the entries where a mask or a BOOL object is true."""
        if isinstance(x, Call) and x.compared is not None and x.inputs[0] is self:
            return x.kept()
        mask = expr.as_mask(self, x)
        if mask.vector.shape != self.shape:
            raise expr.mask_does_not_fit(mask, self)
        call: Call = mask.new().ewise_mult(self, binary.second)
        return call._written_in(None, ("select(", self, ", ", x, ")"))

    def reduce(self, op: Any = "plus", *, allow_empty: bool = True) -> Call:
        """Return the sum of all values over a monoid, empty if there are none.

        Parameters
        ----------
        op : Monoid, Aggregator or str
            The monoid, or an aggregator such as ``agg.mean``, which is several statements.
        allow_empty : bool
            With False, the sum of no entries is the identity of the monoid; the sum is computed at
            once, before the statement.

        Raises
        ------
        InvalidValue
            If `allow_empty` is False and an aggregator is more than a monoid.
        """
        found = adder(op)
        if isinstance(found, Aggregator):
            if not allow_empty:
                raise InvalidValue(
                    f"reduce: {found!r} has no identity. Leave out allow_empty=False."
                )
            return aggregate(self, found, "reduce", _getframe(1))
        result = found.types(self.dtype)[1]
        formula = (found.name, "(", self, ")")
        call = Call(Reduce(self.data, found), (self,), result, (), formula, _getframe(1))
        return call if allow_empty else call.new().ewise_add(found.identity(result), binary.first)
