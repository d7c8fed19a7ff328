"""Counts of a stored matrix, and the forms of vectors in a search."""

import numpy as np
import pytest

from lagpu import BOOL, FP64, INT32, Matrix, Vector, binary, semiring
from lagpu.backends.cpu import handles, statements
from lagpu.backends.cpu.handles import lib

M, N = 50, 30


def random_matrix():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, M - 1, 200), rng.integers(0, N - 1, 200)
    return Matrix.from_coo(rows, cols, True, nrows=M, ncols=N, dup_op=binary.lor, backend="cpu")


@pytest.mark.parametrize("dtype", [BOOL, INT32, FP64], ids=str)
@pytest.mark.parametrize("by_row", [False, True], ids=["columns", "rows"])
def test_edges_are_counted_whatever_the_values(by_row, dtype):
    A, size = random_matrix(), M if by_row else N
    col_ptr, row_idx, _ = A.to_csc()
    degree = np.bincount(row_idx, minlength=M) if by_row else np.diff(col_ptr)
    for at in ([1, 4, 7, size - 1], [], range(size)):
        values = np.zeros(len(at), dtype.numpy)
        u = Vector.from_coo(list(at), values, dtype, size=size, backend="cpu")
        assert statements.degree_sum(A.data, u.data, by_row) == degree[list(at)].sum()
    assert statements.longest(A.data, by_row) == degree.max()


def test_a_push_hashes_and_a_large_frontier_is_written_into_a_bitmap(monkeypatch):
    n, methods, stored = 4096, [], []
    make, store = handles.descriptor, handles.store_as
    monkeypatch.setattr(handles, "descriptor", lambda *how: methods.append(how[4:]) or make(*how))
    monkeypatch.setattr(handles, "store_as", lambda x, kind: stored.append(kind) or store(x, kind))
    ring = np.arange(n)
    A = Matrix.from_coo(ring, (ring + 1) % n, True, nrows=n, ncols=n, backend="cpu")
    v = Vector(INT32, n, like=A)
    for count in (3, n // 4):
        q = Vector.from_coo(range(count), True, size=n, backend="cpu")
        q(~v.S, replace=True) << semiring.any_pair(q @ A, policy="push")
        stored.clear()
        v(q.S) << 1
        bitmap = lib.GxB_BITMAP | lib.GxB_FULL
        assert stored == ([] if count == 3 else [bitmap, lib.GxB_AUTO_SPARSITY])
    assert list(filter(None, methods)) == [(lib.GxB_AxB_HASH,)] * 2
    assert v.to_coo()[0].tolist() == list(range(1, n // 4 + 1))
