"""A sub-cluster's copy of a graph is made of the parts of the grid, some entries at a time."""

import threading

import numpy as np
import pytest
from graphs import both_ways, matrix, random_edges
from ranks import on_ranks
from samples import picked

from lagpu import BOOL, Matrix
from lagpu.algorithms import betweenness
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.grid import pieces as grid_pieces
from lagpu.backends.grid.backend import GridBackend
from lagpu.backends.grid.comm import LocalEngine, MpiEngine
from lagpu.backends.grid.pieces import GridClusters, Pieces
from lagpu.errors import OutOfMemory

N = 29
EDGES = list(dict.fromkeys(random_edges(N, 70, 3)))
SHAPES = [(2, 1), (1, 2), (4, 1), (2, 2), (2, 3), (1, 4)]


def grid_of(shape, order=None, processes=None):
    count = shape[0] * shape[1]
    engine = LocalEngine(count)
    if processes is not None:
        count //= processes.size
        engine = MpiEngine(processes, count)
    return GridBackend("g", engine, [CpuBackend() for _ in range(count)], shape, order)


@pytest.fixture
def never_collected(monkeypatch):
    """Entries are sent a few at a time, and no process collects the whole grid's matrix."""
    monkeypatch.setattr(grid_pieces, "_GIVEN", 7)
    collected = Pieces.collected

    def collect(self, x):
        assert len(x.shape) == 1 or self.engine.size < 4, "the graph is collected"
        return collected(self, x)

    monkeypatch.setattr(Pieces, "collected", collect)
    monkeypatch.setattr(CpuBackend, "matrix_from_csc", rising(CpuBackend.matrix_from_csc))


def rising(make):
    """A backend trusts that rows rise in each column."""

    def checked(self, col_ptr, row_idx, *more):
        for j in range(len(col_ptr) - 1):
            assert (np.diff(row_idx[col_ptr[j] : col_ptr[j + 1]]) > 0).all()
        return make(self, col_ptr, row_idx, *more)

    return checked


def copied(A, size):
    """The (rows, columns) of each local copy, by columns."""
    shared = A.backend.capabilities.clusters(A.data, size)

    def work():
        found = []
        for k, place in enumerate(shared.backends):
            copy = Matrix._of(shared.copy(A.data, k), BOOL, A.shape, place, None)
            rows, cols, values = shared.inside(copy.to_coo)
            assert values.all()
            order = np.lexsort((rows, cols))
            found.append([*zip(rows[order].tolist(), cols[order].tolist(), strict=True)])
        return found

    return shared.run(work)


def wanted(edges):
    return sorted(edges, key=lambda edge: (edge[1], edge[0]))


CASES = [
    (shape, size, order)
    for shape in SHAPES
    for size in (1, 2, 3)
    for order in (None, "random", "degree")
    if shape[0] * shape[1] % size == 0 and size < shape[0] * shape[1]
]


@pytest.mark.parametrize(("shape", "size", "order"), picked(CASES, *CASES[-9:]))
def test_each_copy_is_the_graph(shape, size, order, never_collected):
    A = matrix(N, EDGES, grid_of(shape, order))
    assert copied(A, size) == [wanted(EDGES)] * (shape[0] * shape[1] // size)


@pytest.mark.parametrize("edges", [[], [(0, 0)], [(N - 1, 0)], both_ways(EDGES)])
def test_few_entries_and_hints(edges, never_collected):
    for size in (1, 2):
        A = matrix(N, edges, grid_of((2, 2)))
        symmetric = A.is_symmetric
        assert copied(A, size) == [wanted(set(edges))] * (4 // size)
        shared = A.backend.capabilities.clusters(A.data, size)
        assert shared.backends[0].is_symmetric(shared.copy(A.data, 0)) is symmetric


@pytest.mark.parametrize(
    ("processes", "shape", "size"),
    [
        (2, (4, 1), 1),
        (2, (2, 2), 2),
        (4, (2, 2), 1),
        (4, (2, 2), 2),
        (3, (2, 3), 1),
        (6, (2, 3), 3),
    ],
)
def test_in_processes(processes, shape, size, never_collected):
    def program(own):
        return copied(matrix(N, EDGES, grid_of(shape, processes=own)), size)

    each = max(1, shape[0] * shape[1] // processes // size)
    assert on_ranks(processes, program)[0] == [[wanted(EDGES)] * each] * processes


@pytest.mark.parametrize(("size", "events"), [(1, ["copy", "work"] * 4), (2, ["copy", "work"] * 2)])
def test_a_process_makes_a_copy_when_the_one_before_has_done_its_work(size, events, monkeypatch):
    """Of sub-clusters that work one after the other on one host."""
    found, copy = [], GridClusters.copy

    def note(self, A, k):
        found.append("copy")
        return copy(self, A, k)

    monkeypatch.setattr(GridClusters, "copy", note)
    A = matrix(N, EDGES, grid_of((2, 2)))
    betweenness.sums(A, [0, 1, 2, 3], 4, size, 1, lambda *_: found.append("work"))
    assert found == events


def test_a_copy_that_does_not_fit_is_refused_in_all_processes(monkeypatch):
    rank = threading.local()

    def require(nbytes, what, *_):
        assert nbytes > 0
        if rank.own == 1:
            raise OutOfMemory(f"{what}: no room")

    def program(own):
        rank.own = own.rank
        A = matrix(N, EDGES, grid_of((2, 1), processes=own))
        return copied(A, 1)

    monkeypatch.setattr(grid_pieces, "require", require)
    found = on_ranks(2, program)[0]
    assert [type(error) for error in found] == [OutOfMemory] * 2
    assert str(found[0]) == "process 1 of 2: grid: a copy of the graph: no room"
