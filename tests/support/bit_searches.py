"""Searches of many sources at once, as the tests of bit-parallel searches run them."""

import numpy as np
import pytest
from loop_names import BITS

from lagpu import BOOL, Matrix, binary

FUSED = BITS


@pytest.fixture(autouse=True)
def of_bits(backend, monkeypatch):
    """However deep the graph is; tests/test_rowdepths.py has what is searched row by row."""
    if backend.capabilities.fuses:
        monkeypatch.setattr("lagpu.backends.gpu.fused.search_many.LEVELS", 1 << 30)


@pytest.fixture(params=["as it is chosen", "push", "pull"])
def direction(request, backend, monkeypatch):
    """Whichever direction the kernel would choose, or always the same one."""
    if request.param != "as it is chosen":
        if not backend.capabilities.fuses:
            pytest.skip("cpu has one way")
        from lagpu.backends.gpu.fused import search_many

        monkeypatch.setattr(
            search_many, "SEARCH_PUSH_COST", 0 if request.param == "push" else 1 << 31
        )
    return request.param


def random_graph(n, degree, directed, seed=1):
    """A graph with self-loops, and a second component of a tenth of the vertices."""
    generator = np.random.default_rng(seed)
    cut = max(1, n - n // 10)
    rows, cols = generator.integers(0, n, (2, degree * n))
    kept = (rows < cut) == (cols < cut)
    rows, cols = np.r_[rows[kept], 0], np.r_[cols[kept], 0]
    if not directed:
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    return Matrix.from_coo(rows, cols, nrows=n, ncols=n, dup_op=binary.any, backend="cpu")


def frontier_of(A, sources, k=None, dtype=BOOL):
    rows = np.arange(len(sources))
    shape = {"nrows": k or len(sources), "ncols": A.nrows}
    return Matrix.from_coo(rows, sources, dtype.numpy.type(1), like=A, **shape)
