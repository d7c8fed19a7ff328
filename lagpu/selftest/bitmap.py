"""Loops over bitmap matrices, fused and eager, compared with the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lagpu.algebra.tables import binary, semiring
from lagpu.backends.protocol import Backend
from lagpu.core.matrix import Matrix
from lagpu.dtypes import BOOL, INT32, INT64, DType
from lagpu.loops.loop import eager, loop
from lagpu.selftest.case import Case, Program, agree
from lagpu.selftest.data import GRAPHS, Graph

_ROWS = (1, 33, 65)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    for name, run in _LOOPS.items():
        for graph in GRAPHS:
            programs: dict[str, Program] = {}
            for k in (k for k in _ROWS if 2 * k <= max(2, graph.n)):
                programs[f"{k} rows"] = _on(graph, run, k)
                programs[f"{k} rows, eagerly"] = _eagerly(programs[f"{k} rows"])
            yield Case("matrices", f"{name} on {graph.name}", agree(programs))


def _on(graph: Graph, run: Callable[[Matrix, int], Matrix], k: int) -> Program:
    return lambda place: run(graph.matrix(INT64, place), k)


def _eagerly(program: Program) -> Program:
    def run(place: Backend) -> Any:
        with eager():
            return program(place)

    return run


def _seeds(A: Matrix, k: int, dtype: DType) -> Matrix:
    """Return a k x n matrix with one entry in each row, at different columns if possible."""
    rows = np.arange(k)
    places = rows * max(1, A.nrows // k) % A.nrows
    return Matrix.from_coo(
        rows, places, rows.astype(dtype.numpy), dtype, nrows=k, ncols=A.nrows, like=A
    )


def _distances(A: Matrix, k: int) -> Matrix:
    """Return the least weights of paths; only vertices that came nearer are relaxed again."""
    found, changed = _seeds(A, k, INT64), _seeds(A, k, INT64)
    new = Matrix(INT64, *found.shape, like=A)
    nearer = Matrix(BOOL, *found.shape, like=A)
    for _ in loop(until_empty=changed):
        new << semiring.min_plus(changed @ A)
        nearer << new.ewise_mult(found, binary.lt)
        changed(nearer.V, replace=True) << new
        changed(~found.S) << new
        found(accum=binary.min) << new
    return found


def _labels(A: Matrix, k: int) -> Matrix:
    """Return the largest seed that a vertex reaches, against the edges."""
    label = _seeds(A, k, INT32)
    for _ in loop(until_unchanged=label, times=50):
        label(accum=binary.max) << semiring.max_first(label @ A.T)
    return label


def _filled(A: Matrix, k: int) -> Matrix:
    """Return sums of the depths at which vertices were reached within two steps, 7 elsewhere."""
    near, when = _seeds(A, k, BOOL), Matrix(INT32, k, A.nrows, like=A)
    for depth in loop(times=3):
        when(near.S, accum=binary.plus) << depth
        near(~when.S) << semiring.any_pair(near @ A)
        when(~near.S, replace=True) << 7
        when(accum=binary.max) << near
    return when


_LOOPS = {"weights of paths": _distances, "labels": _labels, "steps, and numbers": _filled}
