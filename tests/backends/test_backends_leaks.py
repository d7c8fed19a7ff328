"""Many searches on small graphs: no memory and no handle is kept."""

import gc
import os
import tracemalloc
from pathlib import Path

import pytest
from samples import picked

from lagpu import algorithms, backends
from lagpu.backends.gpu.fused import search_grid
from lagpu.generators import kronecker

PAGE = os.sysconf("SC_PAGE_SIZE")


def held():
    """Return (resident bytes, open files), without what only waits for the collector."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * PAGE, len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("count", [40, *picked([20_000], rest="exhaustive")])
@pytest.mark.parametrize("name", ["cpu", "sim"])
def test_searches_keep_nothing(name, count):
    place = backends.get(name)
    A = kronecker(6, backend=place)

    def search(k):
        algorithms.bfs_levels(A, k % A.nrows)
        if k % 10 == 0:  # a graph of its own
            algorithms.bfs_levels(kronecker(5, seed=k, backend=place), 0)

    for k in range(min(count, 100)):
        search(k)
    tracemalloc.start()
    try:
        search(0)
        resident, files = held()
        traced = tracemalloc.get_traced_memory()[0]
        for k in range(count):
            search(k)
        grown, after = held()
        more = tracemalloc.get_traced_memory()[0] - traced
    finally:
        tracemalloc.stop()
    assert after == files
    assert more < 100_000 + 2 * count  # Python's own objects: less than 2 bytes a search
    assert grown - resident < (16 << 20) + 100 * count


def test_plans_of_records_that_are_gone_do_not_gather(monkeypatch):
    """Graphs of two sizes by turns: each search is recorded again, and leaves a plan."""
    monkeypatch.setattr(search_grid, "_MOST_KERNELS", 8)
    A, B = (kronecker(k, backend="sim") for k in (5, 6))
    levels = algorithms.bfs_levels(A, 0)
    for _ in range(20):
        algorithms.bfs_levels(B, 0)
        for _ in range(2):  # the second one by the record of the first
            assert algorithms.bfs_levels(A, 0).isequal(levels)
    assert 0 < len(A.data.csc().kernels) <= 8
