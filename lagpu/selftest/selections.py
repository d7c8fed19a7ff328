"""Products with selection matrices: gathers and scatters, as single statements and in a loop."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lagpu.algebra.operators import Semiring
from lagpu.algebra.tables import semiring
from lagpu.backends.protocol import Backend
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, FP32, FP64, INT32, INT64, UINT32, UINT64, DType
from lagpu.loops.loop import loop
from lagpu.selftest.case import Case, Program, agree
from lagpu.selftest.data import vector

# Every kind of addition and multiplication; types of row numbers alternate.
_SEMIRINGS: tuple[tuple[Semiring, DType], ...] = (
    (semiring.any_pair, BOOL),
    (semiring.lor_land, BOOL),
    (semiring.plus_times, INT32),
    (semiring.plus_first, FP64),
    (semiring.times_second, UINT32),
    (semiring.min_plus, FP32),
    (semiring.max_second, INT64),
    (semiring.min_secondi, INT64),
)
_INTEGERS = (INT32, INT64, UINT32, UINT64)
_SIZES = (1, 31, 33, 1025)
_FORMS = ("u @ P", "P.T @ u", "P @ u", "u @ P.T")


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for k, (op, dtype) in enumerate(_SEMIRINGS):
        kind, forms = _INTEGERS[k % 4], _FORMS[k % 2 :: 2]
        programs: dict[str, Program] = {}
        for n in _SIZES:
            for hub in (False, True):
                for form in forms:
                    name = f"{form}, {n} {'columns of one row' if hub else 'columns'}"
                    programs[name] = _program(n, hub, form, op, dtype, kind)
        name = f"selection {' and '.join(forms)}, {op.name} {dtype} by {kind}"
        yield Case("products", name, agree(programs))
    roots = {f"{n} vertices": _roots_of(n) for n in _SIZES}
    yield Case("products", "selection, a loop that writes the vector it selects by", agree(roots))


def _program(n: int, hub: bool, form: str, op: Semiring, dtype: DType, kind: DType) -> Program:
    def run(place: Backend) -> Vector:
        P = _chosen(n, hub, kind, place).selection()
        u = vector(n, dtype, place, share=0.6, seed=2)
        m = vector(n, INT32, place, share=0.5, seed=3)
        left, right = {
            "u @ P": (u, P), "P.T @ u": (P.T, u), "P @ u": (P, u), "u @ P.T": (u, P.T),
        }[form]  # fmt: skip
        call = op(left @ right)
        w = vector(n, call.dtype, place, share=0.5, seed=4)
        w(~m.V) << call
        return w

    return run


def _chosen(n: int, hub: bool, kind: DType, place: Backend) -> Vector:
    """Return row numbers, some out of range, or with `hub` the same number at every entry."""
    rng = np.random.default_rng(n)
    rows = np.full(n, n // 2) if hub else rng.integers(0, n + n // 10 + 1, n)
    indices = np.flatnonzero(rng.random(n) < 0.9)
    return Vector.from_coo(indices, rows[indices], kind, size=n, backend=place)


def _roots_of(n: int) -> Program:
    """Return the program that finds the root of each vertex of a random forest."""

    def run(place: Backend) -> Vector:
        above = np.random.default_rng(n).integers(0, np.arange(1, n + 1))
        parents = Vector.from_dense(above, backend=place)
        P = parents.selection()
        for _ in loop(until_unchanged=parents):
            parents << semiring.min_first(parents @ P)
        return parents

    return run
