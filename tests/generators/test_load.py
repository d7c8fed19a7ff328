"""The facts of a graph in pieces are those of the whole, which no process collects."""

import numpy as np
import pytest

from lagpu import Matrix, backends
from lagpu.generators.load import Facts

N = 40


def graph(both, weighted):
    rng = np.random.default_rng(3)
    i, j, w = rng.integers(0, N - 1, 90), rng.integers(0, N, 90), rng.random(90)
    if both:
        i, j, w = np.r_[i, j], np.r_[j, i], np.r_[w, w]
    values, dup_op = (w, "max") if weighted else (True, "any")
    return Matrix.from_coo(i, j, values, nrows=N, ncols=N, dup_op=dup_op, backend="cpu")


@pytest.mark.parametrize("grid", ["grid:3:cpu", "grid:2x3:cpu"])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_facts_of_pieces(monkeypatch, grid, both, weighted):
    A = graph(both, weighted)
    B, wanted = A.to(grid), Facts.of(A)
    monkeypatch.setattr(type(backends.get(grid)), "matrix_to_csc", None)  # none has the whole
    found = Facts.of(B)
    assert wanted.symmetric is both
    for name in ("vertices", "entries", "symmetric", "edges"):
        assert getattr(found, name) == getattr(wanted, name)
    for name in ("out_degree", "in_degree", "has_loop"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist()
        assert getattr(found, name).dtype == getattr(wanted, name).dtype
