"""Every kernel of the masked product: semirings, types, index widths, masks, u @ A and A @ u."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lagpu.algebra.operators import Semiring
from lagpu.algebra.tables import binary, semiring
from lagpu.backends.protocol import Backend
from lagpu.core.vector import Vector
from lagpu.dtypes import BOOL, FP32, FP64, INT32, INT64, UINT32, UINT64, DType
from lagpu.selftest.case import Case, Difference, Program, agree
from lagpu.selftest.data import GRAPHS, Graph, vector

# Every kind of addition (with and without a terminal value, of each type) and of multiplication
# (which reads no operand, one, both, or indices), and every type once.
_SEMIRINGS: tuple[tuple[Semiring, DType], ...] = (
    (semiring.any_pair, BOOL),
    (semiring.lor_land, BOOL),
    (semiring.lxor_land, BOOL),
    (semiring.land_eq, BOOL),
    (semiring.plus_pair, INT64),
    (semiring.plus_times, INT32),
    (semiring.plus_minus, FP32),
    (semiring.plus_first, FP64),
    (semiring.plus_first, BOOL),
    (semiring.times_second, UINT32),
    (semiring.min_plus, FP32),
    (semiring.min_first, INT32),
    (semiring.max_min, UINT64),
    (semiring.max_second, INT64),
    (semiring.min_secondi, INT64),
    (semiring.max_firstj, INT64),
)
_WIDE = (semiring.any_pair, semiring.plus_times)
_FEW = GRAPHS[1::3]  # a self-loop, a graph as large as a warp, a hub of many warps


def cases(kernels: tuple[str, ...]) -> Iterator[Case]:
    """Yield the cases of some kernels; the name "" means the backend's own choice."""
    for kernel in kernels:
        for op, dtype in _SEMIRINGS:
            yield _case(kernel, op, dtype, wide=False)
            if op in _WIDE:
                yield _case(kernel, op, dtype, wide=True)
        yield Case("products", f"{kernel or 'product'} any_secondi", _any_is_one_of(kernel))


def _case(kernel: str, op: Semiring, dtype: DType, *, wide: bool) -> Case:
    def on(graphs: tuple[Graph, ...]) -> dict[str, Program]:
        return {
            f"{way} on {graph.name}": _program(graph, kernel, op, dtype, way, wide)
            for graph in graphs
            for way in _WAYS
        }

    width = ", 64-bit indices" if wide else ""
    name = f"{kernel or 'product'} {op.name} {dtype}{width}"
    return Case("products", name, agree(on(GRAPHS)), agree(on(_FEW)))


def _program(
    graph: Graph, kernel: str, op: Semiring, dtype: DType, way: str, wide: bool
) -> Program:
    share, seed, left, mask, accum, replace = _WAYS[way]

    def run(place: Backend) -> Vector:
        A = graph.matrix(dtype, place, wide=wide)
        u = vector(graph.n, dtype, place, share=share, seed=seed)
        m = vector(graph.n, INT32, place, share=0.5, seed=seed + 1)
        choice = {"kernel": kernel} if kernel and place.capabilities.kernels else {}
        call = op(u @ A, **choice) if left else op(A @ u, **choice)
        w = vector(graph.n, call.dtype, place, share=0.5, seed=seed + 2)
        w(mask(m), accum=accum(op) if accum else None, replace=replace) << call
        return w

    return run


def _add(op: Semiring) -> Any:
    """Return an accumulator for results of a semiring."""
    return binary.lor if op.monoid.name in ("any", "lor", "land", "lxor") else binary.plus


# name: share of entries in u, seed, u on the left, mask, accumulator, replace
_WAYS: dict[str, tuple[float, int, bool, Any, Any, bool]] = {
    "u @ A": (0.05, 1, True, lambda m: None, None, False),
    "u @ A, ~m.S, replace": (0.3, 2, True, lambda m: ~m.S, None, True),
    "u @ A, m.V": (1.0, 3, True, lambda m: m.V, None, False),
    "u @ A, ~m.V, accum": (0.5, 4, True, lambda m: ~m.V, _add, False),
    "A @ u": (0.3, 5, False, lambda m: None, None, False),
    "A @ u, m.S, accum, replace": (0.6, 6, False, lambda m: m.S, _add, True),
    "no entries": (0.0, 7, True, lambda m: ~m.S, None, True),
}


def _any_is_one_of(kernel: str) -> Any:
    """Return a run that proves any_secondi: each result is an in-neighbour with an entry.

    Any such in-neighbour is right, so the result is not compared with the oracle.
    """

    def run(place: Backend, oracle: Backend) -> str:
        choice = {"kernel": kernel} if kernel and place.capabilities.kernels else {}
        for graph in GRAPHS:
            A = graph.matrix(BOOL, place)
            u = vector(graph.n, INT64, place, share=0.3, seed=8)
            found, parents = semiring.any_secondi(u @ A, **choice).new().to_coo()
            given = np.zeros(graph.n, bool)
            given[u.to_coo()[0]] = True
            edges = given[graph.rows]
            if not np.array_equal(found, np.unique(graph.cols[edges])):
                raise Difference(f"{graph.name}: entries at the wrong vertices")
            known = set(zip(graph.rows[edges].tolist(), graph.cols[edges].tolist(), strict=True))
            for i, j in zip(parents.tolist(), found.tolist(), strict=True):
                if (i, j) not in known:
                    raise Difference(f"{graph.name}: {i} is not an in-neighbour of {j}")
        return f"{len(GRAPHS)} graphs hold"

    return run
