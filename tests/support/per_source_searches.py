"""Searches with values, a row a source, and their answer on cpu."""

import numpy as np

from lagpu import Matrix, binary


def assert_as_on_cpu(found, expected):
    assert found.to("cpu").isequal(expected, check_dtype=True)
    assert found.nvals == expected.nvals


def random_graph(n, degree, directed, seed=1, dtype=None):
    """With self-loops, doubled edges, a hub, isolated vertices, and whole numbers as weights."""
    generator = np.random.default_rng(seed)
    rows = generator.integers(0, n, degree * n)
    cols = generator.integers(0, max(1, 9 * n // 10), degree * n)
    rows[: n // 2] = n // 3
    if not directed:
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    values = True if dtype is None else generator.integers(-3, 9, len(rows)).astype(dtype.numpy)
    return Matrix.from_coo(rows, cols, values, nrows=n, ncols=n, dup_op=binary.any, backend="cpu")
