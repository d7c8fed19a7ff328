"""Every operation on vectors, over their storage forms, masks and types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from lagpu.algebra.operators import BinaryOp, IndexUnaryOp, Monoid, Operator
from lagpu.algebra.tables import binary, indexunary, monoid, unary
from lagpu.backends.protocol import Backend
from lagpu.core.expr import Call
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, FP32, FP64, INT32, INT64, UINT32, UINT64, DType
from lagpu.selftest.case import Case, Difference, Program, agree
from lagpu.selftest.data import vector

Op = TypeVar("Op", bound=Operator)
Make = Callable[[Vector, Vector], Call]
"""Returns the call of one operation on two vectors."""

_SIZES = (1, 31, 33, 1025)
_SHARES = (0.05, 0.6, 1.0)  # sparse, bitmap, full
_ROUNDED = ("exp", "log", "sqrt", "minv")  # libraries differ in the last bit


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _functions()
    yield from _pairs()
    yield from _indexed()
    yield from _sums()
    yield from _assignments()
    yield Case("vectors", "entries one by one", agree({"program": _entries}))


def _functions() -> Iterator[Case]:
    """Yield cases of unary operators, and of binary operators with a bound operand."""
    for function in _built_in(unary):
        if function.name in _ROUNDED:
            yield _rounded(function.name)
            continue
        for dtype in (BOOL, INT32, FP64):
            yield _over("apply", f"{function.name} {dtype}", dtype, _applied(function))
    for dtype in (INT32, FP64):
        yield _over("apply", f"minus left {dtype}", dtype, lambda u, v: u.apply("minus", left=7))
        yield _over("apply", f"times right {dtype}", dtype, lambda u, v: u.apply("times", 3))


def _pairs() -> Iterator[Case]:
    """Yield cases of binary operators."""
    for op in _built_in(binary):
        # `any` may return either operand, and positional operators need a product.
        if not op.positional and op.name != "any":
            for dtype in (UINT32, FP32):
                yield _over("ewise_mult", f"{op.name} {dtype}", dtype, _multiplied(op))
    for dtype in (BOOL, INT64, FP32):
        yield _over("ewise_add", f"max {dtype}", dtype, lambda u, v: u.ewise_add(v, binary.max))
        yield _over("ewise_union", f"minus {dtype}", dtype, _united)


def _indexed() -> Iterator[Case]:
    """Yield cases of index-unary operators."""
    for op in _built_in(indexunary):
        yield _over("apply", f"{op.name} FP32", FP32, _applied(op, 2))
        if op.result(INT32) is BOOL:
            yield _over("select", f"{op.name} INT32", INT32, _selected(op))


def _sums() -> Iterator[Case]:
    for total in monoid:
        if total.name != "any" and not total.registered:
            for dtype in filter(total.takes, (BOOL, INT32, UINT64, FP32)):
                yield _over("reduce", f"{total.name} {dtype}", dtype, _reduced(total))


def _built_in(table: Iterable[Op]) -> list[Op]:
    """Return the operators of a table that no user has registered."""
    return [op for op in table if not op.body]


def _applied(op: Any, *bound: Any) -> Make:
    return lambda u, v: u.apply(op, *bound)


def _multiplied(op: BinaryOp) -> Make:
    if op.name == "truediv":  # avoid division by zero
        return lambda u, v: u.ewise_mult(v.apply(binary.plus, 1).new(), op)
    return lambda u, v: u.ewise_mult(v, op)


def _united(u: Vector, v: Vector) -> Call:
    return u.ewise_union(v, binary.minus, 1, 2)


def _selected(op: IndexUnaryOp) -> Make:
    return lambda u, v: u.select(op, 2)


def _reduced(op: Monoid) -> Make:
    return lambda u, v: u.reduce(op)


def _over(group: str, name: str, dtype: DType, make: Make) -> Case:
    """Return the case of a call over sizes and forms, plain and under a mask with replace."""
    programs: dict[str, Program] = {}
    for n in _SIZES:
        for share in _SHARES:
            for masked in (False, True):
                where = f"size {n}, share {share}{', ~m.S, replace' * masked}"
                programs[where] = _call(n, share, dtype, make, masked)
    return Case("vectors", f"{group} {name}", agree(programs))


def _call(n: int, share: float, dtype: DType, make: Make, masked: bool) -> Program:
    def run(place: Backend) -> Any:
        u = vector(n, dtype, place, share=share, seed=1)
        v = vector(n, dtype, place, share=0.5, seed=2)
        call = make(u, v)
        if not masked or call.shape == ():
            return call.new()
        m = vector(n, INT32, place, share=0.5, seed=3)
        w = vector(n, call.dtype, place, share=0.5, seed=4)
        w(~m.S, replace=True) << call
        return w

    return run


def _rounded(name: str) -> Case:
    """Return the case of a function that is accurate to a few units in the last place."""

    def run(place: Backend, oracle: Backend) -> str:
        for dtype in (FP32, FP64):
            u = vector(1025, dtype, place, share=0.6, seed=1).apply(binary.plus, 1).new()
            got = u.apply(name).new()
            wanted = u.to(oracle).apply(name).new()
            eps = float(np.finfo(dtype.numpy).eps)
            (at, x), (where, y) = got.to_coo(), wanted.to_coo()
            same = np.array_equal(at, where) and np.allclose(x, y, 8 * eps, 0, equal_nan=True)
            if not same:
                raise Difference(f"{dtype}: differs by more than 8 roundings")
        return "2 types agree to 8 roundings"

    return Case("vectors", f"apply {name}", run)


def _assignments() -> Iterator[Case]:
    """Yield cases of assignment and extraction, also at indices, for all masks and accumulators."""
    masks: dict[str, Any] = {
        "": lambda m: None,
        " m.S": lambda m: m.S,
        " ~m.S": lambda m: ~m.S,
        " m.V": lambda m: m.V,
        " ~m.V": lambda m: ~m.V,
    }
    for dtype in (BOOL, INT64, FP32):
        for name, mask in masks.items():
            programs: dict[str, Program] = {}
            for n in _SIZES:
                for accum in (None, binary.second):
                    for replace in (False, True) if name else (False,):
                        how = f"size {n}, accum {accum}, replace {replace}"
                        programs |= {
                            f"{what}, {how}": _written(n, dtype, mask, accum, replace, write)
                            for what, write in _WRITES.items()
                        }
            yield Case("vectors", f"assign and extract {dtype}{name}", agree(programs))


# Each takes (updater, u, indices), where the indices are distinct, unsorted and incomplete.
_WRITES: dict[str, Any] = {
    "scalar": lambda to, u, at: to << 1,
    "vector": lambda to, u, at: to << u,
    "scalar at indices": lambda to, u, at: to[at] << 1,
    "vector at indices": lambda to, u, at: to[at] << u[: len(at)].new(),
}


def _written(n: int, dtype: DType, mask: Any, accum: Any, replace: bool, write: Any) -> Program:
    def run(place: Backend) -> Vector:
        w = vector(n, dtype, place, share=0.6, seed=1)
        u = vector(n, dtype, place, share=0.5, seed=2)
        m = vector(n, INT32, place, share=0.5, seed=3)
        at = np.random.default_rng(n).permutation(n)[: (n + 1) // 2]
        write(w(mask(m), accum=accum, replace=replace), u, at)
        gathered: Vector = w[at[::-1]].new()
        return w if n % 2 else gathered

    return run


def _entries(place: Backend) -> list[Any]:
    """Set, read, delete, resize, copy, clear, build and compare."""
    w = Vector(INT64, 40, backend=place)
    w[33], w[0], w[31] = 5, 1, 3
    w[33] = w.get(0) + w.get(31, 0) + w.get(32, 100)
    del w[0]
    short = w.dup(FP64)
    short.resize(33)
    v = Vector(INT64, 40, backend=place)
    v.build([7, 5, 7], [1, 2, 3], dup_op=binary.plus)
    v[:33] << short
    before = v.dup()
    v.clear()
    v << before.apply(binary.plus, 1)
    found = [part.tolist() for x in (w, short, before, v) for part in x.to_coo()]
    return [found, v.isequal(before), v.isequal(v.dup()), v.nvals, 31 in v, 30 in v]
