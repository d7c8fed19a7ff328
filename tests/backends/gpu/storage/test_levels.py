"""Levels in a block: their ends, one of them cut out, and the vertices of each row by level."""

import numpy as np
import pytest
from nvrtc import ARCHITECTURES, nvrtc_compile

from lagpu import BOOL, INT32, INT64, UINT32, UINT64, Matrix, Vector
from lagpu.backends.gpu.kernels import kernel
from lagpu.backends.gpu.storage import bitmap


@pytest.mark.parametrize("dtype", [INT32, INT64, UINT32, UINT64])
def test_the_ordering_of_rows(backend, dtype):
    """Each level of each row is a piece of its list, whole, and nothing else is in it."""
    if backend.device is None:
        pytest.skip("cpu sorts levels on the host")
    k, n = 5, 1500
    rng = np.random.default_rng(3)
    depth = np.array([0, 3, 700, 1499, 0])
    where = np.nonzero(rng.random((k, n)) < np.array([0.5, 0.9, 0.9, 1, 0])[:, None])
    values = (rng.random(len(where[0])) * (depth[where[0]] + 1)).astype(dtype.numpy)
    levels = Matrix.from_coo(*where, values, dtype, nrows=k, ncols=n, backend=backend)
    found = backend.levels(levels.data)
    assert (found.lowest, found.deepest) == (values.min(), values.max())
    order, offsets, last, ranks = map(backend.device.to_host, found.ordered())
    starts = offsets.reshape(k, found.deepest + 2)
    for i in range(k):
        mine, cols = values[where[0] == i], where[1][where[0] == i]
        assert last[i] == (mine.max() if len(mine) else -1)
        wanted = np.searchsorted(np.sort(mine), np.arange(found.deepest + 2).astype(dtype.numpy))
        assert starts[i].tolist() == wanted.tolist()
        for d in set(mine.tolist()):
            piece = order[i * n + starts[i, d] : i * n + starts[i, d + 1]]
            assert sorted(piece.tolist()) == cols[mine == d].tolist()
        wanted = np.full(n, -1)
        wanted[order[i * n : i * n + len(mine)]] = np.arange(len(mine))
        assert ranks[i * n : (i + 1) * n].tolist() == wanted.tolist()


@pytest.mark.parametrize("most", [255, 256, -1])
def test_levels_of_a_vector_that_are_sorted_as_bytes(backend, most, monkeypatch):
    """Larger levels, and negative ones, are not cut to bytes."""
    if backend.device is None:
        pytest.skip("cpu sorts levels on the host")
    monkeypatch.setattr(bitmap, "_MANY", 1)
    kinds, device = [], type(backend.device)

    def order_of(self, keys, of=device.order_of):
        kinds.append(keys.dtype)
        return of(self, keys)

    monkeypatch.setattr(device, "order_of", order_of)
    values = np.array([3, most, 0, 3, 1], np.int32)
    found = backend.levels(Vector.from_coo([4, 1, 6, 2, 8], values, size=9, backend=backend).data)
    assert (found.lowest, found.deepest) == (min(0, most), max(3, most))
    assert kinds == [np.uint8 if most == 255 else np.int32]
    if most > 0:
        assert Vector._of(found.cut(3), BOOL, (9,), backend, "cut").to_coo()[0].tolist() == [2, 4]
        assert Vector._of(found.cut(most), BOOL, (9,), backend, "cut").to_coo()[0].tolist() == [1]


def test_levels_are_those_of_the_beginning(backend):
    """A level is cut as bits; what becomes of the matrix does not matter."""
    if backend.device is None:
        pytest.skip("cpu sorts levels on the host")
    given = Matrix.from_coo(
        [0, 1, 1], [4, 2, 5], [1, 0, 1], INT32, nrows=2, ncols=6, backend=backend
    )
    levels = Matrix(INT32, 2, 6, backend=backend)
    levels(given.S) << given
    found = backend.levels(levels.data)
    levels << 9
    cut = Matrix._of(found.cut(1), BOOL, (2, 6), backend, "cut")
    assert [x.tolist() for x in cut.to_coo()] == [[0, 1], [4, 5], [True, True]]
    assert cut.nvals == 2


def test_levels_without_entries(backend):
    if backend.device is None:
        pytest.skip("cpu sorts levels on the host")
    levels = Matrix(INT32, 2, 6, backend=backend)
    found = backend.levels(levels.data)
    assert (found.lowest, found.deepest) == (0, -1)
    levels << 3
    levels(levels.S, replace=True) << levels.select("valuegt", 5)
    found = backend.levels(levels.data)  # stored position by position, and none is left
    assert (found.lowest, found.deepest) == (0, -1)
    assert backend.levels(Matrix(INT32, 6, 6, backend=backend).data) is None


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("ctype", ["i64", "u32", "u64"])
def test_nvrtc_compiles_the_ordering(ctype, arch):
    assert nvrtc_compile(kernel("sweep/order.cu", "level_rows", U=ctype), arch)
