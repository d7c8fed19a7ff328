"""Searches of sparse graphs by a cluster of thread blocks: what it finds, when it hands over."""

import numpy as np
import pytest

import lagpu
from lagpu import Matrix, algorithms, check, generators
from lagpu.backends.gpu.backend import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.kernels import constant

IN_CLUSTER = "one cluster of thread blocks alone"


@pytest.fixture
def place(backend):
    if backend.device is None or backend.device.cluster_blocks == 1:
        pytest.skip("has no clusters")
    return backend


def tree(depth, legs, hub):
    """A tree of three branches a vertex, long legs at its leaves, and a hub at the end of one.

    A path stands beside it: most edges are never followed, so that levels are pushed.
    """
    inner = (3**depth - 1) // 2
    up, down = np.repeat(np.arange(inner), 3), np.arange(1, 3 * inner + 1)
    ends = np.arange(inner, 3 * inner + 1)
    n = 3 * inner + 1
    for _ in range(legs):
        up, down = np.r_[up, ends], np.r_[down, n + np.arange(len(ends))]
        ends, n = n + np.arange(len(ends)), n + len(ends)
    up, down = np.r_[up, np.full(hub, ends[-1])], np.r_[down, n + np.arange(hub)]
    n += hub
    beside = n + np.arange(50 * len(ends) + 50 * hub)
    up, down, n = np.r_[up, beside[:-1]], np.r_[down, beside[1:]], n + len(beside)
    rows, cols = np.r_[up, down], np.r_[down, up]
    return Matrix.from_coo(rows, cols, nrows=n, ncols=n, backend="cpu")


def graphs(small):
    """A road; a tree whose frontier outgrows shared memory; one that meets a hub."""
    return [
        generators.road(40 if small else 600, backend="cpu"),
        tree(6 if small else 9, 12, 0),
        tree(2 if small else 5, 12, 100),
    ]


def test_a_cluster_finds_what_the_oracle_finds(place):
    reported = []
    for A in graphs(place.device.name == "sim"):
        B, source = A.to(place), 1
        levels = algorithms.bfs_levels(A, source)
        assert algorithms.bfs_levels(B, source).to("cpu").isequal(levels)
        check.check_parents(A, source, algorithms.bfs_parents(B, source).to("cpu"))
        paths = algorithms.count_shortest_paths(B, source).to("cpu")
        assert paths.isclose(algorithms.count_shortest_paths(A, source), rel_tol=1e-12)
        for first in (0, 3):
            with lagpu.trace() as t:
                found = algorithms.bfs_levels(B, first)
            assert found.to("cpu").isequal(algorithms.bfs_levels(A, first))
            rows = [row for row in t.rows if row.method == "mxv"]
            vertices, level = found.to_coo()
            degrees = np.diff(A.to_csc()[0])
            alone = [row for row in rows if IN_CLUSTER in row.reason]
            for row in alone:
                here = degrees[vertices[level == row.level]]
                assert row.reason.startswith(f"vertices {len(here)},")
                assert row.edges == here.sum()
                assert here.max() <= constant("kSmall")  # the whole grid takes a hub
            reported.append(len(alone))
    assert min(max(reported[k : k + 2]) for k in (0, 2, 4)) > 1, reported


def test_a_gpu_without_room_for_a_cluster_searches_without():
    device = SimDevice()
    device.cluster_blocks = 8  # and the device runs three blocks
    place = GpuBackend("narrow", device)
    A = generators.road(20, backend="cpu")
    B = A.to(place)
    assert algorithms.bfs_levels(B, 0).to("cpu").isequal(algorithms.bfs_levels(A, 0))
    assert place.last_loop.startswith("grid search")
    assert B.data.csc().cache["grid search"].cluster == 1
