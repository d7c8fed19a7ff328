"""The table `agg`: aggregators by the names of python-graphblas, each a few statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from lagpu.algebra.operators import BinaryOp, Monoid
from lagpu.algebra.registry import Table
from lagpu.algebra.tables import binary, monoid, semiring, unary
from lagpu.core.expr import OUTPUTS, Call
from lagpu.errors import NotSupported


@dataclass(frozen=True)
class Parts:
    """What is reduced, `x`, and the `way`: reduce, reduce_rowwise or reduce_columnwise."""

    x: Any
    way: str

    def total(self, add: Monoid, x: Any = None) -> Any:
        """Return the sums over a monoid as a vector; of `x`, by default what is reduced."""
        call = getattr(self.x if x is None else x, self.way)(add)
        if self.way != "reduce":
            return call.new()
        sum_ = call.new()
        out = OUTPUTS[1](sum_.dtype, 1, like=self.x)
        if not sum_.is_empty:
            out[0] = sum_
        return out

    def of(self, op: Any, bound: Any = None) -> Any:
        """Return what is reduced with an operator applied to each entry."""
        return self.x.apply(op, bound).new() if bound is not None else self.x.apply(op).new()

    def indices(self) -> Any:
        """Return each entry's index in what a sum runs over."""
        if self.x.ndim == 2 and self.way == "reduce":
            raise NotSupported(
                "agg: a matrix as a whole has no single index. "
                "Write reduce_rowwise or reduce_columnwise."
            )
        by_row = self.way == "reduce_columnwise" or self.x.ndim == 1
        return self.of("rowindex" if by_row else "colindex", 0)

    def where(self, wanted: Any, entries: Any = None) -> Any:
        """Return what is reduced, of those entries that equal the sum of their row or column."""
        entries = self.x if entries is None else entries
        if self.way == "reduce":
            number = wanted.get(0)
            same = entries.select("valueeq", number if number is not None else 0).new()
            return self.x.dup(mask=same.S) if number is not None else self.x.dup(clear=True)
        same = entries.ewise_mult(self.spread(wanted, entries), binary.eq).new()
        return self.x.dup(mask=same.V)

    def spread(self, sums: Any, entries: Any) -> Any:
        """Return a matrix with the sum of its row or column at each entry."""
        ones = entries.apply(unary.one).new()
        if self.way == "reduce_rowwise":
            return semiring.any_first(sums.diag() @ ones).new()
        return semiring.any_second(ones @ sums.diag()).new()


Recipe = Callable[[Parts], Any]


@dataclass(frozen=True, eq=False)
class Aggregator:
    """A sum that is more than a monoid: ``A.reduce_rowwise(agg.mean)``.

    Attributes
    ----------
    name : str
        Its name in python-graphblas.
    recipe : callable
        Returns the sums as a vector, from the `Parts` of a reduction.
    monoid : Monoid, optional
        The monoid, of an aggregator that is nothing more.
    meaning : str
        The value of each sum, in words.
    """

    name: str
    recipe: Recipe = field(repr=False)
    meaning: str = ""
    monoid: Monoid | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"agg.{self.name}"

    def listed(self) -> tuple[str, str, str]:
        """Return (name, meaning, recipe) for a table of aggregators."""
        kind = "one sum" if self.monoid is not None else "several statements"
        return self.name, self.meaning, kind

    def __call__(self, *operands: Any) -> Any:
        """Refuse: an aggregator stands in a reduction.

        Raises
        ------
        NotSupported
            Always.
        """
        raise NotSupported(f"{self!r}: cannot be called. Write u.reduce(agg.{self.name}).")


def aggregate(x: Any, op: Aggregator, way: str, by: FrameType) -> Call:
    """Return the deferred reduction of `x` over an aggregator, as written in the frame `by`."""
    if op.monoid is not None:
        call: Call = getattr(x, way)(op.monoid)
    else:
        sums = op.recipe(Parts(x, way))
        call = sums[0].call() if way == "reduce" else sums.dup()[:].call()
    return call._written_in(by)


def _of_monoid(name: str, add: Monoid, meaning: str) -> Aggregator:
    return Aggregator(name, lambda parts: parts.total(add), meaning, add)


def _divided(x: Any, y: Any) -> Any:
    return x.ewise_mult(y, binary.truediv).new()


def _count(parts: Parts) -> Any:
    return parts.total(monoid.plus, parts.of(unary.one["INT64"]))


def _counted(op: BinaryOp) -> Recipe:
    """Return the recipe that counts the entries of which `op` with 0 is true."""
    return lambda parts: parts.total(monoid.plus, parts.of(op, 0))


def _mean(parts: Parts) -> Any:
    return _divided(parts.total(monoid.plus), _count(parts))


def _squares(parts: Parts) -> Any:
    return parts.total(monoid.plus, parts.x.ewise_mult(parts.x, binary.times).new())


def _root(recipe: Recipe) -> Recipe:
    return lambda parts: recipe(parts).apply(unary.sqrt).new()


def _variance(less: int) -> Recipe:
    """Return the recipe of a variance whose divisor is the count, or one less."""

    def recipe(parts: Parts) -> Any:
        count, mean = _count(parts).dup("FP64"), _mean(parts)
        x = parts.x.dup("FP64")
        if parts.way == "reduce":
            off = x.apply(binary.minus, mean.get(0) if mean.nvals else 0).new()
        else:
            each = parts.spread(mean, x)
            off = x.ewise_mult(each, binary.minus).new()
        squares = parts.total(monoid.plus, off.ewise_mult(off, binary.times).new())
        return _divided(squares, count.apply(binary.minus, less).new())

    return recipe


def _log_of_sums(log: Any, exp: Any) -> Recipe:
    return lambda parts: parts.total(monoid.plus, parts.of(exp)).apply(log).new()


def _inverses(parts: Parts) -> Any:
    return parts.total(monoid.plus, parts.of(unary.minv))


def _geometric_mean(parts: Parts) -> Any:
    share = _count(parts).apply(unary.minv).new()
    return parts.total(monoid.times).dup("FP64").ewise_mult(share, binary.pow).new()


def _range(parts: Parts) -> Any:
    return parts.total(monoid.max).ewise_mult(parts.total(monoid.min), binary.minus).new()


def _index_of(extreme: Monoid) -> Recipe:
    """Return the recipe of the least index at which the extreme value stands."""

    def recipe(parts: Parts) -> Any:
        indices = parts.indices()
        kept = parts.where(parts.total(extreme))
        return parts.total(monoid.min, indices.dup(mask=kept.S))

    return recipe


def _index(side: Monoid) -> Recipe:
    return lambda parts: parts.total(side, parts.indices())


def _value_at(side: Monoid) -> Recipe:
    """Return the recipe of the value at the least or the greatest index."""

    def recipe(parts: Parts) -> Any:
        indices = parts.indices()
        return parts.total(monoid.any, parts.where(parts.total(side, indices), indices))

    return recipe


class AggregatorTable(Table[Aggregator]):  # type: ignore[type-var]  # a table of its own kind
    """Sums that are more than a monoid, by the names of python-graphblas."""

    kind, row = "agg", Aggregator

    sum = _of_monoid("sum", monoid.plus, "the sum")
    prod = _of_monoid("prod", monoid.times, "the product")
    min = _of_monoid("min", monoid.min, "the least value")
    max = _of_monoid("max", monoid.max, "the greatest value")
    any = _of_monoid("any", monoid.lor, "whether any value is true")
    all = _of_monoid("all", monoid.land, "whether all values are true")
    any_value = _of_monoid("any_value", monoid.any, "one of the values, whichever")
    bitwise_all = _of_monoid("bitwise_all", monoid.band, "the bits that all values have")
    bitwise_any = _of_monoid("bitwise_any", monoid.bor, "the bits that any value has")
    count = Aggregator("count", _count, "the number of entries")
    count_nonzero = Aggregator("count_nonzero", _counted(binary.ne), "how many are not 0")
    count_zero = Aggregator("count_zero", _counted(binary.eq), "how many are 0")
    exists = Aggregator(
        "exists",
        lambda p: p.total(monoid.any, p.of(unary.one["INT64"])),
        "1 where any entry is",
    )
    mean = Aggregator("mean", _mean, "the mean")
    sum_of_squares = Aggregator("sum_of_squares", _squares, "the sum of squares")
    sum_of_inverses = Aggregator("sum_of_inverses", _inverses, "the sum of 1 / x")
    root_mean_square = Aggregator(
        "root_mean_square",
        _root(lambda p: _divided(_squares(p), _count(p))),
        "the root of the mean of squares",
    )
    geometric_mean = Aggregator("geometric_mean", _geometric_mean, "the product's n-th root")
    harmonic_mean = Aggregator(
        "harmonic_mean", lambda p: _divided(_count(p), _inverses(p)), "the count by the sum of 1/x"
    )
    varp = Aggregator("varp", _variance(0), "the variance of a population")
    vars = Aggregator("vars", _variance(1), "the variance of a sample")
    stdp = Aggregator("stdp", _root(_variance(0)), "the standard deviation of a population")
    stds = Aggregator("stds", _root(_variance(1)), "the standard deviation of a sample")
    peak_to_peak = Aggregator("peak_to_peak", _range, "the greatest value less the least")
    L0norm = Aggregator("L0norm", _counted(binary.ne), "how many are not 0")
    L1norm = Aggregator("L1norm", lambda p: p.total(monoid.plus, p.of(unary.abs)), "the sum of |x|")
    L2norm = Aggregator("L2norm", _root(_squares), "the root of the sum of squares")
    hypot = Aggregator("hypot", _root(_squares), "the root of the sum of squares")
    Linfnorm = Aggregator(
        "Linfnorm", lambda p: p.total(monoid.max, p.of(unary.abs)), "the greatest |x|"
    )
    logaddexp = Aggregator(
        "logaddexp", _log_of_sums(unary.log, unary.exp), "the logarithm of the sum of exp(x)"
    )
    logaddexp2 = Aggregator(
        "logaddexp2", _log_of_sums(unary.log2, unary.exp2), "the same to the base 2"
    )
    argmin = Aggregator("argmin", _index_of(monoid.min), "the first index of the least value")
    argmax = Aggregator("argmax", _index_of(monoid.max), "the first index of the greatest value")
    first_index = Aggregator("first_index", _index(monoid.min), "the index of the first entry")
    last_index = Aggregator("last_index", _index(monoid.max), "the index of the last entry")
    first = Aggregator("first", _value_at(monoid.min), "the value of the first entry")
    last = Aggregator("last", _value_at(monoid.max), "the value of the last entry")

    def named(self, op: Any) -> Aggregator | None:
        """Return the aggregator given as itself or by a name that no monoid has; else None."""
        if type(op) is Aggregator:
            return op
        return self[op] if type(op) is str and op not in monoid and op in self else None


agg = AggregatorTable()
