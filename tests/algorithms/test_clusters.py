"""Sub-clusters of a grid share out the sources of betweenness, and the sums are always the same."""

import threading

import pytest
from graphs import both_ways, matrix, random_edges
from ranks import on_ranks

from lagpu.algorithms import betweenness_centrality, betweenness_estimate, clusters
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.grid.backend import GridBackend
from lagpu.backends.grid.local import LocalEngine
from lagpu.backends.grid.mpi import MpiEngine
from lagpu.backends.grid.systems.clusters import GridClusters
from lagpu.errors import InvalidValue, LimitExceeded

EDGES = both_ways(random_edges(21, 32, 3))


def cpu_grid(pieces):
    """A grid whose places take what the front end makes, as its sub-clusters of one piece do."""
    rows, columns = pieces if isinstance(pieces, tuple) else (pieces, 1)
    count = rows * columns
    return GridBackend(
        "g", LocalEngine(count), [CpuBackend() for _ in range(count)], (rows, columns)
    )


def graph(place):
    return matrix(21, EDGES, place)


WANTED = betweenness_centrality(graph("cpu")).to_dense()


@pytest.fixture
def made(monkeypatch):
    """The sub-clusters that were made: their number, and the pieces of each."""
    found, init = [], GridClusters.__init__

    def note(self, pieces, size, make):
        init(self, pieces, size, make)
        found.append((self.count, size))

    monkeypatch.setattr(GridClusters, "__init__", note)
    return found


@pytest.mark.parametrize(("grid", "pieces"), [((2, 3), p) for p in (None, 1, 2, 3, 6)])
def test_each_has_sources_of_its_own(grid, pieces, made):
    A = graph(cpu_grid(grid))
    folded = [betweenness_centrality(A, pieces=pieces, one_degree=True).to_dense() for _ in "ab"]
    assert folded[0].tobytes() == folded[1].tobytes()
    for found in (folded[0], betweenness_centrality(A, pieces=pieces).to_dense()):
        assert found == pytest.approx(WANTED, rel=1e-9, abs=1e-12)
    size = pieces or 1  # the smallest that fits
    assert made == ([] if size == 6 else [(6 // size, size)] * 3)


def test_fewer_sources_than_sub_clusters():
    A, B = graph(cpu_grid(4)), graph("cpu")
    for k in (1, 3):
        found, error = betweenness_estimate(A, k, seed=5, pieces=1)
        wanted, theirs = betweenness_estimate(B, k, seed=5)
        assert found.to_dense() == pytest.approx(wanted.to_dense(), rel=1e-9, nan_ok=True)
        assert error.to_dense() == pytest.approx(theirs.to_dense(), rel=1e-6, nan_ok=True)


def test_the_smallest_that_fits(monkeypatch, made):
    grid = cpu_grid((2, 2))
    A = graph(grid)
    needed = 24 * A.nvals + 120 * 21

    def with_free(free):
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: free)
        made.clear()
        grid.capabilities.clusters(A.data, None)
        return made

    # All four pieces are in the memory of this host, with 4 / size copies.
    assert with_free(2 * 4 * needed) == [(4, 1)]
    assert with_free(2 * 4 * needed - 1) == [(2, 2)]
    assert with_free(2 * 2 * needed - 1) == []
    assert with_free(0) == []


def test_devices_work_in_threads(monkeypatch):
    wanted = betweenness_centrality(graph("cpu"), 4, seed=1).to_dense()
    threads = []
    added = clusters._added

    def note(*args):
        threads.append(threading.get_ident())
        return added(*args)

    monkeypatch.setattr(clusters, "_added", note)
    A = graph("grid:2:sim")
    found = betweenness_centrality(A, 4, seed=1, pieces=1).to_dense()
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert len(threads) == 2
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("name", ["grid:2:sim", "grid:2:cpu"])
def test_an_error_of_one_sub_cluster_is_raised(name):
    def fail(A, chosen, totals):
        if chosen == [1]:
            raise LimitExceeded("too many")

    with pytest.raises(LimitExceeded, match="too many"):
        clusters.sums(graph(name), [0, 1, 2, 3], 1, 1, 1, fail)


@pytest.mark.parametrize("pieces", [0, 2, 4, 7])
def test_sub_clusters_that_cannot_be(pieces):
    with pytest.raises(InvalidValue, match=f"cannot be shared by {pieces} of 3 pieces"):
        betweenness_centrality(graph(cpu_grid(3)), pieces=pieces)
    if pieces:
        with pytest.raises(InvalidValue, match="cpu has no sub-clusters"):
            betweenness_centrality(graph("cpu"), pieces=pieces)


@pytest.mark.parametrize("pieces", [1, 2, None, 4])
def test_in_a_job(pieces):
    """Two processes of two pieces: the same bits as in one process, in both."""
    want = betweenness_centrality(graph(cpu_grid(4)), pieces=pieces).to_dense()

    def program(processes):
        places = [CpuBackend() for _ in range(2)]
        A = graph(GridBackend("grid", MpiEngine(processes, 2), places))
        return betweenness_centrality(A, pieces=pieces).to_dense().tobytes()

    assert on_ranks(2, program)[0] == [want.tobytes()] * 2


def test_an_error_of_a_process_is_raised_in_all():
    def program(processes):
        def fail(A, chosen, totals):
            if processes.rank == 1:
                raise LimitExceeded("too many")

        A = graph(GridBackend("grid", MpiEngine(processes, 1), [CpuBackend()]))
        clusters.sums(A, [0, 1, 2], 1, 1, 1, fail)

    first, second = on_ranks(2, program)[0]
    assert isinstance(first, LimitExceeded)
    assert str(first) == "process 1 of 2: too many"
    assert str(second) == "too many"
