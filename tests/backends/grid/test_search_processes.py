"""One process a device: a search is one kernel of all processes, by windows that they share."""

import pytest
from pieces_of_search import edges_of, matrix
from ranks import on_ranks
from samples import picked
from test_start import Job, real

from lagpu import algorithms
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.grid.backend import GridBackend
from lagpu.backends.grid.comm import MpiEngine

BEGIN = """
import gc
import numpy as np
from pieces_of_search import RUNS, Paths, Search, edges_of, is_tree, matrix
import lagpu
from lagpu import algorithms as al, backends
from lagpu.backends import grid
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.errors import GridTimeout, OutOfMemory, ProcessFailed
from lagpu.host.job import launched

rank, size = launched().rank, launched().size
place = backends.get("grid:sim")
engine = place.pieces.engine

def ran():
    assert place.last_loop.startswith(RUNS), place.last_loop
"""

AS_ON_CPU = """
def alike(place, kind, n, source):
    i, j = edges_of(kind, n)
    A, B = matrix(n, i, j, place), matrix(n, i, j, "cpu")
    want = al.bfs_levels(B, source).to_dense(-1)
    for _ in range(2):  # the second time with what the first has kept
        levels, parents = al.bfs(A, source)
        assert place.last_loop.startswith(RUNS), place.last_loop
        assert levels.to_dense(-1).tolist() == want.tolist()
        assert is_tree(i, j, want, parents.to_dense(-1), source)
    assert al.count_shortest_paths(A, source).to_dense(0).tolist() == (
        al.count_shortest_paths(B, source).to_dense(0).tolist())
    assert place.last_loop.startswith(RUNS), place.last_loop

graphs = ("random", 33), ("both ways", 1025), ("hubs", 3000)
several = f"grid:{2 * size}:sim"
by_degree = f"grid:{size}-degree:sim"
for name, some in ("grid:sim", graphs), (several, graphs[:2]), (by_degree, graphs[1:2]):
    for kind, n in some:
        alike(backends.get(name), kind, n, n - 1)

i, j = edges_of("hubs", 2000)
A, alone = matrix(2000, i, j, place), matrix(2000, i, j, backends.get(f"grid:{size}:sim"))
for search in (Search, Paths):
    one, other = search(place), search("cpu")
    one.run(), other.run()
    ran()
    assert one.state() == other.state()

with lagpu.trace() as t:
    al.bfs_levels(A, 3)
ran()
with lagpu.trace(fuse=False) as u:
    al.bfs_levels(A, 3)
def rows(of):
    return [(r.level, r.nvals_in, r.nvals_out) for r in of.rows if r.direction]
assert rows(t) and rows(t) == rows(u)
pieces = {p.name for r in t.rows for p in r.phases or ()}
assert pieces == {f"piece {p}" for p in range(size)}, pieces

processes, calls = engine._processes, []
processes._compared, usual = 0, processes._synchronize
processes._synchronize = lambda *a, **k: calls.append(processes._method) or usual(*a, **k)
al.bfs_levels(A, 3)
assert calls == ["vector_set", "search", "search"], calls  # its launch and its end
del processes._synchronize

held = engine._windows
count = len(held)
del A, alone, t, u, one
gc.collect()
al.bfs_levels(matrix(33, *edges_of("random", 33), place), 3)  # frees what no process uses
assert len(engine._windows) < count
print("as on cpu", flush=True)
"""

FAULTS = """
A, B = (matrix(700, *edges_of("both ways", 700), x) for x in (place, "cpu"))
want = al.bfs_levels(B, 5).to_dense(-1).tolist()

def right():
    assert al.bfs_levels(A, 5).to_dense(-1).tolist() == want
    ran()

def fails(owner, method, error, expected):
    usual = getattr(owner, method)
    def wrong(*_given):
        raise error
    if rank == 1:
        setattr(owner, method, wrong)
    try:
        al.bfs_levels(A, 5)
    except Exception as found:
        assert isinstance(found, expected[rank != 1]), (rank, repr(found))
        assert rank == 1 or "process 1 of" in str(found) or isinstance(found, GridTimeout), found
    else:
        raise AssertionError("it has not failed")
    if rank == 1:
        setattr(owner, method, usual)
    right()

right()
device = place.pieces.places[0].device
space = A.data.parts[0].csc().cache["search of pieces"]
space.peers.patience = 3 * 10**8
fails(grid.search.GridLoop, "_again", OutOfMemory("none"), (OutOfMemory, OutOfMemory))
fails(SimDevice, "run_together", ValueError("broken"), (ValueError, GridTimeout))
fails(type(space.peers), "_reported", ValueError("seen late"), (ValueError, ProcessFailed))
right()
space.lasts = True  # so interrupts are heard
if rank == 1:
    device.stop[1][0] = 0
    usual = SimDevice.run_together
    def stopped(self, launches):
        device.stop[1][0] = 1  # as an interrupt does
        usual(self, launches)
    SimDevice.run_together = stopped
try:
    al.bfs_levels(A, 5)
except KeyboardInterrupt:
    assert rank == 1
except ProcessFailed as error:
    assert rank != 1 and "KeyboardInterrupt" in str(error), error
else:
    raise AssertionError("it was not stopped")
if rank == 1:
    SimDevice.run_together = usual
right()
print("failed and went on", flush=True)
"""


@real
@pytest.mark.parametrize("size", picked([2, 3], 3))
def test_searches_of_a_job_are_one_kernel(size):
    code, out, err = Job(size, BEGIN + AS_ON_CPU).ended()
    assert (code, out.split("\n")[:-1]) == (0, ["as on cpu"] * size), err


@real
def test_a_process_that_fails_leaves_no_other_behind():
    code, out, err = Job(2, BEGIN + FAULTS).ended()
    assert (code, out.split("\n")[:-1]) == (0, ["failed and went on"] * 2), err


def test_devices_of_one_process_are_no_devices_of_several():
    """Ranks that are threads of one process have one runtime: each search waits for the other."""

    def program(processes):
        place = GridBackend("grid", MpiEngine(processes), [GpuBackend("s", SimDevice())])
        A = matrix(40, *edges_of("random", 40), place)
        return algorithms.bfs_levels(A, 3).to_dense(-1).tolist(), place.last_loop

    want = algorithms.bfs_levels(matrix(40, *edges_of("random", 40), "cpu"), 3).to_dense(-1)
    for found, how in on_ranks(2, program)[0]:
        assert found == want.tolist()
        assert how == "eager: its process has other devices of the job"
