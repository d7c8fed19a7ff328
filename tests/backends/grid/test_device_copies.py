"""A sub-cluster of one device gets its copy of a graph from device to device."""

import numpy as np
import pytest
from graphs import both_ways, random_edges
from pieces_of_search import gpu_grid, matrix

from lagpu import (
    BOOL,
    FP64,
    INT32,
    INT64,
    Matrix,
    Vector,
    algorithms,
    binary,
    indexunary,
    semiring,
)
from lagpu.backends import grid
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.protocol import Peers
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.grid import pieces as grid_pieces
from lagpu.errors import OutOfMemory

N = 70
EDGES = list(dict.fromkeys(random_edges(N, 300, 3)))


def sims(pieces, order=None, shape=None):
    places = [GpuBackend(f"s{p}", SimDevice(backend=f"s{p}")) for p in range(pieces)]
    return grid.make(f"grid of {pieces}", places, shape, order)


def copies_of(A):
    shared = A.backend.capabilities.clusters(A.data, 1)
    found = []
    for k, place in enumerate(shared.backends):
        copy = Matrix._of(shared.copy(A.data, k), BOOL, A.shape, place, None)
        rows, cols, values = copy.to_coo()
        assert values.all()
        found.append((copy, sorted(zip(rows.tolist(), cols.tolist(), strict=True))))
    return found


@pytest.fixture
def not_on_the_host(monkeypatch):
    monkeypatch.setattr(grid_pieces, "copied", lambda *_: pytest.fail("copied on the host"))


@pytest.mark.parametrize("block", [7, 1 << 26])
@pytest.mark.parametrize("edges", [EDGES, both_ways(EDGES), [], [(N - 1, 0)]])
@pytest.mark.parametrize("order", [None, "random", "degree"])
@pytest.mark.parametrize("pieces", [2, 3])
def test_each_copy_is_the_graph(pieces, order, edges, block, monkeypatch, not_on_the_host):
    monkeypatch.setattr(grid_pieces, "_BLOCK", block)
    i, j = np.array(edges, int).reshape(-1, 2).T
    A = matrix(N, i, j, sims(pieces, order))
    symmetric = A.is_symmetric
    for copy, found in copies_of(A):
        assert found == sorted(set(edges))
        form = copy.data.csc()
        assert form.col_ptr.dtype == form.row_idx.dtype == np.int32
        for v in range(N):
            rows = form.row_idx[form.col_ptr[v] : form.col_ptr[v + 1]]
            assert (np.diff(rows) > 0).all()
        assert copy.is_symmetric is symmetric


def test_rows_and_columns_of_pieces_are_copied_on_the_host():
    i, j = np.array(EDGES).T
    for _, found in copies_of(matrix(N, i, j, sims(4, shape=(2, 2)))):
        assert found == sorted(EDGES)


def test_a_matrix_keeps_its_copies_until_it_is_written():
    i, j = np.array(EDGES).T
    A = matrix(N, i, j, sims(2))
    first = [copy.data for copy, _ in copies_of(A)]
    assert [copy.data for copy, _ in copies_of(A)] == first
    A[0, 1] = True
    del A[int(i[0]), int(j[0])]
    assert all(found == sorted({*EDGES[1:], (0, 1)}) for _, found in copies_of(A))


def test_copies_are_not_kept_where_there_is_little_room(monkeypatch):
    i, j = np.array(EDGES).T
    A = matrix(N, i, j, sims(2))
    for home in A.backend.capabilities.parts.homes:
        monkeypatch.setattr(home, "free_bytes", lambda: 64)
    first = [copy.data for copy, _ in copies_of(A)]
    assert all(
        copy.data is not before for (copy, _), before in zip(copies_of(A), first, strict=True)
    )


def test_a_device_without_room_refuses_and_keeps_nothing(monkeypatch):
    i, j = np.array(EDGES).T
    place = sims(2)
    A = matrix(N, i, j, place)
    first = place.capabilities.parts.homes[0].device
    monkeypatch.setattr(first, "free_bytes", lambda: 100)
    monkeypatch.setattr(first, "pooled_bytes", lambda: 0)
    with pytest.raises(OutOfMemory, match="a copy of the graph"):
        copies_of(A)


@pytest.mark.gpu
def test_betweenness_on_gpus(not_on_the_host):
    i, j = np.array(both_ways(EDGES)).T
    A, B = (matrix(N, i, j, x) for x in (gpu_grid(2), "cpu"))
    found, want = (algorithms.betweenness_centrality(x, pieces=1).to_dense() for x in (A, B))
    assert np.allclose(found, want, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 5])  # of sources: sub-clusters without one have sums of 0
@pytest.mark.parametrize("order", [None, "random", "degree"])
def test_sums_of_sub_clusters_stay_on_the_devices(order, count, monkeypatch, not_on_the_host):
    i, j = np.array(both_ways(EDGES)).T
    A, B = (matrix(N, i, j, x) for x in (sims(3, order), "cpu"))
    with monkeypatch.context() as m:
        m.setattr(GpuBackend, "vector_values", lambda *_: pytest.fail("sent to the host"))
        found = algorithms.betweenness_centrality(A, count, seed=1, pieces=1)
    wanted = algorithms.betweenness_centrality(B, count, seed=1).to_dense()
    assert found.nvals == N
    assert np.allclose(found.to_dense(), wanted, rtol=1e-12, equal_nan=True)


# ---- statements whose entries stay on the devices
def masked_product(A, u):
    L = A.select("tril").new()
    C = Matrix(INT64, *A.shape, like=A)
    C(L.S) << semiring.plus_times(L @ L)
    return C


STATEMENTS = {
    "transpose": lambda A, u: A.T.new(),
    "product with the transpose": lambda A, u: semiring.plus_times(A @ u).new(),
    "sum with the transpose": lambda A, u: A.ewise_add(A.T, binary.plus).new(),
    "product of matrices": lambda A, u: semiring.plus_times(A @ A).new(),
    "product with the transpose on the left": lambda A, u: semiring.plus_times(A.T @ A).new(),
    "masked product": masked_product,
    "rows of a matrix": lambda A, u: semiring.min_plus(A[[1, 5], :].new() @ A).new(),
    "selected by index": lambda A, u: A.select("offdiag").new(),
    "rows as values": lambda A, u: A.apply("rowindex").new(),
    "columns as values": lambda A, u: A.apply("colindex", right=3).new(),
    "sums of rows": lambda A, u: A.reduce_rowwise("plus").new(),
    "indices of a vector": lambda A, u: u.apply("index").new(),
    "gathered": lambda A, u: u[u.apply("index").new()].new(),
}


def run(name, place, one_value=False):
    """Return what a statement leaves, and how many bytes it has sent to and from the host."""
    n, nbytes = 3000, []
    rng = np.random.default_rng(2)
    i, j, w = (rng.integers(0, n, 4 * n) for _ in range(3))
    w = 2 if one_value else w
    A = Matrix.from_coo(i, j, w, INT64, nrows=n, ncols=n, dup_op="first", backend=place)
    u = Vector.from_dense(np.arange(n) % 7, backend=place)
    with pytest.MonkeyPatch.context() as m:
        for way in ("_to_host", "_from_host"):
            m.setattr(SimDevice, way, counted(getattr(SimDevice, way), nbytes))
        made = STATEMENTS[name](A, u)
    return made.to_coo(), sum(nbytes)


def counted(copy, nbytes):
    def run(self, array):
        nbytes.append(array.nbytes)
        return copy(self, array)

    return run


def assert_same(found, wanted):
    for mine, theirs in zip(found, wanted, strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("name", STATEMENTS)
def test_entries_stay_on_the_devices(name):
    for one_value in (False, True):
        found, nbytes = run(name, sims(3), one_value)
        assert_same(found, run(name, "cpu", one_value)[0])
        assert nbytes < 500


@pytest.mark.parametrize("shape", [None, (2, 2)])
@pytest.mark.parametrize("order", ["random", "degree"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_the_same_in_another_order(name, order, shape):
    assert_same(run(name, sims(4, order, shape))[0], run(name, "cpu")[0])


@pytest.mark.gpu
@pytest.mark.parametrize("name", STATEMENTS)
def test_gpus_find_the_same(name):
    assert_same(run(name, gpu_grid(2))[0], run(name, "cpu")[0])


@pytest.mark.parametrize("size", [1, 31, 32, 33, 1023, 1025, 5000])
@pytest.mark.parametrize(("pieces", "order"), [(2, None), (3, None), (2, "random")])
def test_indices_of_a_full_vector_need_no_kernel_of_all_devices(size, pieces, order, monkeypatch):
    ran = []
    monkeypatch.setattr(Peers, "run", counted_runs(Peers.run, ran))
    place = sims(pieces, order)
    for full in (Vector.from_scalar(True, size, BOOL, backend=place), place_of(range(size), place)):
        for dtype in (INT32, FP64):
            assert full.apply("index").new(dtype).to_dense().tolist() == [*range(size)]
    assert not ran or order == "random"
    full(full.V, replace=True) << full.apply("index")
    assert full.to_coo()[0].tolist() == [*range(1, size)]
    assert full.apply(indexunary.index, 2).new().to_coo()[1].tolist() == [*range(3, size + 2)]


def place_of(values, place):
    return Vector.from_dense(np.array(values), backend=place)


def counted_runs(run, ran):
    def counted(self, *args, **options):
        ran.append(1)
        return run(self, *args, **options)

    return counted
