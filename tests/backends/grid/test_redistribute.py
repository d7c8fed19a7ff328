"""Matrices redistributed by degree from device to device equal those redistributed on the host."""

import numpy as np
import pytest

from lagpu import BOOL, FP64, INT32, Matrix, Vector, algorithms, backends, generators
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.grid import make
from lagpu.backends.grid import pieces as redistribute
from lagpu.backends.grid.partition import Ranks, layout
from lagpu.backends.grid.pieces import entries_of
from lagpu.errors import OutOfMemory

GRIDS = [(1, 1), (2, 1), (3, 1), (2, 3), (1, 2)]


def by_degree(grid, kind="sim"):
    """Return a grid of its own, in the order of degrees."""
    count = grid[0] * grid[1]
    if kind == "cpu":
        places = [backends.get("cpu")] * count
    else:
        places = [GpuBackend(f"s{p}", SimDevice(backend=f"s{p}")) for p in range(count)]
    return make(f"grid of {count} by degree", places, grid, "degree")


@pytest.fixture(autouse=True)
def _few_at_a_time(monkeypatch):
    monkeypatch.setattr(redistribute, "_CHUNK", 100)


def entries(n, m, seed=0):
    """Return distinct indices, of a graph with hubs and isolated vertices."""
    rng = np.random.default_rng(seed)
    at = np.unique((rng.random(m) ** 3 * n).astype(np.int64) * n + rng.integers(0, n, m) // 2)
    return at // n, at % n


def listed(A):
    i, j, x = A.to_coo()
    order = np.lexsort((j, i))
    return i[order].tolist(), j[order].tolist(), x[order].tolist()


@pytest.mark.parametrize("values", ["one", "each", "none"])
@pytest.mark.parametrize("n", [1, 2, 33, 700])
@pytest.mark.parametrize("grid", GRIDS)
def test_entries_and_order_are_those_of_the_host(grid, n, values):
    i, j = entries(n, 0 if values == "none" else 3 * n)
    x = np.arange(len(i)) * 1.5 if values == "each" else np.float64(2.5)
    made = []
    for place in (by_degree(grid), by_degree(grid, "cpu")):
        A = Matrix.from_coo(i, j, x, FP64, nrows=n, ncols=n, backend=place)
        dims = place.pieces.layout(A.shape).dims
        of = [[by.own(p).tolist() for p in range(by.pieces)] for by in dims]
        made.append((listed(A), of))
    assert made[0] == made[1]
    assert made[0][0] == (i.tolist(), j.tolist(), np.broadcast_to(x, i.shape).tolist())


@pytest.mark.parametrize("grid", GRIDS)
def test_a_graph_is_searched(grid):
    place = by_degree(grid)
    A = generators.kronecker(9, 8, seed=4, backend=place)
    B = generators.kronecker(9, 8, seed=4, backend="cpu")
    assert A.data.symmetric
    assert listed(A) == listed(B)
    for source in (0, 5, 511):
        assert algorithms.bfs_levels(A, source).to("cpu").isequal(algorithms.bfs_levels(B, source))


def test_a_later_matrix_is_redistributed_from_the_order_before(monkeypatch):
    """It is made by the order of a matrix that is gone, and then sets its own."""
    place = by_degree((3, 1))
    for seed in (1, 2):
        i, j = entries(257, 900, seed)
        A = Matrix.from_coo(i, j, np.arange(len(i)), INT32, nrows=257, ncols=257, backend=place)
        assert listed(A) == (i.tolist(), j.tolist(), list(range(len(i))))
        degrees = np.bincount(i, minlength=257) + np.bincount(j, minlength=257)
        first = place.pieces.partition(257).own(0)[0]
        assert degrees[first] == degrees.max()
        v = Vector.from_coo([first, 3], [1.0, 2.0], size=257, backend=place)
        assert v.to_coo()[0].tolist() == sorted([int(first), 3])
        del A, v


@pytest.mark.parametrize("last", [3.0, 7.0, None])
def test_parts_of_one_value_each(last):
    """Of one value in all parts, of one in each, or of values of their own in one of them."""
    pieces, n = by_degree((3, 1)).pieces, 100
    before = pieces.layout((n, n))
    order = Ranks(np.arange(n)[::-1])
    after = layout((n, n), (3, 1), (order, order))
    parts, expected = [], np.empty(n)
    for p, place in enumerate(pieces.places):
        own = before.dims[1].own(p)
        values = (np.arange(len(own)) if last is None else last) if p == 2 else 3.0
        expected[own] = values
        ptr = np.arange(len(own) + 1)
        parts.append(place.matrix_from_csc(ptr, own, values, FP64, before.shape(p)))
    made = redistribute.redistributed(pieces, pieces.handle(parts, FP64, (n, n)), after)
    for p, (place, part) in enumerate(zip(pieces.places, made, strict=True)):
        i, j = after.index(p, *entries_of(place, part, 2)[:2])
        assert sorted(j.tolist()) == sorted(after.dims[1].own(p).tolist())
        assert i.tolist() == j.tolist()
        assert entries_of(place, part, 2)[2].tolist() == expected[j].tolist()
        assert (part.csc().values is None) == (last == 3.0)


def test_memory_is_checked(monkeypatch):
    place = by_degree((2, 1))
    i, j = entries(700, 2000)
    monkeypatch.setattr(redistribute, "_BYTES_PER_ENTRY", 10**12)
    with pytest.raises(OutOfMemory):
        Matrix.from_coo(i, j, True, BOOL, nrows=700, ncols=700, backend=place)
    monkeypatch.undo()
    assert Matrix.from_coo(i, j, True, BOOL, nrows=700, ncols=700, backend=place).nvals == len(i)


def test_nothing_passes_through_the_host(monkeypatch):
    place = by_degree((3, 1))
    monkeypatch.setattr(type(place.pieces), "entries", None)
    A = generators.kronecker(8, 8, backend=place)
    assert A.nvals
