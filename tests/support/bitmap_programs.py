"""Loops over bitmap matrices that are no search, by name, and the graphs they run on."""

import bitmap_loops
import numpy as np
import pytest
from loop_names import GENERATED

from lagpu import INT64, Matrix, binary

PROGRAM = GENERATED


def random_graph(n, degree, directed=True, seed=1, hub=0):
    """A graph with self-loops, weights, an isolated vertex, and a hub of so many edges."""
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, n, (2, degree * n))
    rows, cols = np.r_[rows, np.full(hub, n // 2)], np.r_[cols, np.arange(hub) % n]
    cols[cols == n - 1] = 0
    if not directed:
        rows[rows == n - 1] = 0
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    weights = rng.integers(1, 9, len(rows))
    return Matrix.from_coo(
        rows, cols, weights, INT64, nrows=n, ncols=n, dup_op=binary.min, backend="cpu"
    )


LOOPS = {
    "reached": lambda k: lambda A: bitmap_loops.reached_in(A, k, 3),
    "label": lambda k: lambda A: bitmap_loops.least_label(A, k),
    "distances": lambda k: lambda A: bitmap_loops.distances(A, k),
    "distances in 2": lambda k: lambda A: bitmap_loops.distances(A, k, 2),
    "counts": lambda k: lambda A: bitmap_loops.counts(A, k),
    "by value": lambda k: lambda A: bitmap_loops.masked_by_value(A, k),
    "no replace": lambda k: lambda A: bitmap_loops.without_replace(A, k),
    "accum": lambda k: lambda A: bitmap_loops.accumulated(A, k),
    "against": lambda k: lambda A: bitmap_loops.against(A, k),
    "filled": lambda k: lambda A: bitmap_loops.filled(A, k),
}


@pytest.fixture(autouse=True)
def together(backend, monkeypatch):
    """However sparse a graph is, no search runs per source."""
    if backend.capabilities.fuses:
        monkeypatch.setattr("lagpu.backends.gpu.fused.search_many.MOST_DEGREE", 0)
