"""Sub-clusters of a grid share out the sources of betweenness, and the sums are always the same."""

import threading
import time

import pytest
from graphs import both_ways, matrix, random_edges
from ranks import on_ranks

from lagpu.algorithms import betweenness, betweenness_centrality, betweenness_estimate
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.grid.backend import GridBackend
from lagpu.backends.grid.comm import LocalEngine, MpiEngine
from lagpu.backends.grid.pieces import GridClusters
from lagpu.backends.grid.processes import Processes
from lagpu.errors import InvalidValue, LagpuError, LimitExceeded, ProcessFailed

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


def test_sources_without_edges_are_shared_out_last(monkeypatch):
    """Of four sources two have edges; each sub-cluster gets one of these."""
    edges, chosen = both_ways([(0, 1), (1, 2), (2, 3)]), []
    batches = betweenness.batches
    monkeypatch.setattr(
        betweenness,
        "batches",
        lambda A, mine, batch: chosen.append(mine) or batches(A, mine, batch),
    )
    A, B = (matrix(8, edges, x) for x in (cpu_grid(2), "cpu"))
    found, wanted = (betweenness_centrality(x, sources=[1, 7, 2, 5]).to_dense() for x in (A, B))
    assert found == pytest.approx(wanted, rel=1e-9)
    assert chosen == [[1, 7], [2, 5], [1, 7, 2, 5]]


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
    batches = betweenness.batches

    def note(*args):
        threads.append(threading.get_ident())
        return batches(*args)

    monkeypatch.setattr(betweenness, "batches", note)
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
        betweenness.sums(graph(name), [0, 1, 2, 3], 1, 1, 1, fail)


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


@pytest.mark.parametrize(
    ("processes", "pieces", "each"),
    [(4, 2, 1), pytest.param(6, 3, 1, marks=pytest.mark.ci), (4, 4, 2)],
)
def test_sub_clusters_of_several_processes(processes, pieces, each, made):
    """The same bits as in one process, in all, and once more: they are in step."""
    want = betweenness_centrality(graph(cpu_grid(processes * each)), pieces=pieces).to_dense()

    def program(own):
        A = graph(job_grid(own, each))
        found = [betweenness_centrality(A, pieces=pieces).to_dense().tobytes() for _ in "ab"]
        return found, betweenness_centrality(A, pieces=each).to_dense().tobytes()

    found = on_ranks(processes, program)[0]
    alone = found[0][1]
    assert found == [([want.tobytes()] * 2, alone)] * processes
    assert (processes * each // pieces, pieces) in made


def job_grid(processes, each=1):
    places = [CpuBackend() for _ in range(each)]
    return GridBackend("grid", MpiEngine(processes, each), places)


def count(A):
    """Run a statement for which all processes of the sub-cluster meet."""
    return A.backend.nvals(A.data)


def between_statements(processes, A):
    if processes.rank == 2:
        raise LimitExceeded("too many")
    count(A)


def in_a_statement(processes, A):
    if processes.rank == 2:
        A.backend.pieces.places[0].execute = lambda statement: 1 / 0
    A.apply("ainv").new()


def interrupted(processes, A):
    count(A)
    if processes.rank == 2:
        raise KeyboardInterrupt
    count(A)


def one_runs_other_statements(processes, A):
    if processes.rank != 2:
        count(A)


def after_the_last_statement(processes, A):
    count(A)
    if processes.rank == 2:
        raise LimitExceeded("too many")


@pytest.mark.parametrize(
    ("fault", "own", "said"),
    [
        (between_statements, LimitExceeded, "process 2 of 4: too many"),
        (after_the_last_statement, LimitExceeded, "process 2 of 4: too many"),
        (in_a_statement, ZeroDivisionError, "process 2 of 4: ZeroDivisionError: division by zero"),
        (interrupted, KeyboardInterrupt, "process 2 of 4: KeyboardInterrupt"),
        (one_runs_other_statements, ProcessFailed, "grid: process 2 is at "),
    ],
)
@pytest.mark.parametrize("slow", [1, pytest.param(0, marks=pytest.mark.ci)])
def test_an_error_within_a_sub_cluster_reaches_all(fault, own, said, slow):
    """Those of the same one in their statements, those of others when they are ready."""

    def program(processes):
        def fail(A, chosen, totals):
            if processes.rank // 2 == slow:
                time.sleep(0.05)
            if processes.rank // 2 == 1:
                fault(processes, A)

        A, errors = graph(job_grid(processes)), []
        for _ in "ab":  # the second time in step again
            try:
                betweenness.sums(A, [0, 1, 2, 3], 2, 2, 1, fail)
            except BaseException as error:
                errors.append(error)
        return errors, A.nvals

    found = on_ranks(4, program)[0]
    assert [nvals for _, nvals in found] == [graph("cpu").nvals] * 4
    for rank, (errors, _) in enumerate(found):
        assert len(errors) == 2
        for error in errors:
            assert said in str(error) or (rank == 2 and isinstance(error, own)), (rank, error)
            assert isinstance(error, LagpuError) or rank == 2


def test_one_that_leaves_without_a_word_leaves_no_other_waiting(monkeypatch):
    """As by an interrupt between the error and the last barrier of its sub-cluster."""
    leave = Processes._leave

    def lost(self, *args):
        if self._among is not None and self._among.rank == 2 and not gone:
            gone.append(True)
            raise KeyboardInterrupt
        leave(self, *args)

    monkeypatch.setattr(Processes, "_leave", lost)
    gone = []

    def program(processes):
        A = graph(job_grid(processes))
        betweenness.sums(A, [0, 1], 1, 2, 1, lambda A, chosen, totals: count(A))

    found = on_ranks(4, program)[0]
    assert isinstance(found[2], KeyboardInterrupt)
    for rank in (0, 1, 3):
        assert str(found[rank]) == "process 2 of 4: KeyboardInterrupt"


def test_an_error_of_a_process_is_raised_in_all():
    def program(processes):
        def fail(A, chosen, totals):
            if processes.rank == 1:
                raise LimitExceeded("too many")

        A = graph(GridBackend("grid", MpiEngine(processes, 1), [CpuBackend()]))
        betweenness.sums(A, [0, 1, 2], 1, 1, 1, fail)

    first, second = on_ranks(2, program)[0]
    assert isinstance(first, LimitExceeded)
    assert str(first) == "process 1 of 2: too many"
    assert str(second) == "too many"
