"""Workspaces are made by our own kernels: for each other one CuPy compiles in the first search."""

import numpy as np
import pytest
from library_steps import Noted, NotingDevice

from lagpu import Matrix, algorithms
from lagpu.backends.gpu.backend import GpuBackend
from lagpu.backends.gpu.storage import workspaces
from lagpu.generators import kronecker


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_first_search_needs_no_kernel_of_cupy(symmetric, weighted):
    place = GpuBackend("noting", NotingDevice())
    G = kronecker(5, backend="cpu", seed=3)
    if not symmetric:
        G = G.select("triu", 0).new()
    ptr, rows, _ = G.to_csc()
    values = np.arange(len(rows)) % 7.5 if weighted and not symmetric else True
    A = Matrix.from_csc(ptr, rows, values, nrows=32, backend=place)
    Noted.steps.clear()
    found = algorithms.bfs_levels(A, 1)
    assert place.last_loop.startswith("grid search")
    assert not Noted.steps
    assert found.to("cpu").isequal(algorithms.bfs_levels(G, 1))


@pytest.mark.parametrize("lengths", [[0, 32, 33, 256, 257, 512, 5000], [0], [1, 40] * 300])
def test_the_device_counts_chunks_as_the_host_does(place, lengths):
    ptr = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.concatenate([np.arange(n) for n in lengths])
    A = Matrix.from_csc(ptr, rows, True, nrows=5000, backend=place)
    space = workspaces.push_space(A.data.csc())
    assert space.num_chunks == len(space.chunks) == workspaces.num_chunks(np.array(lengths))
    assert len(space.groups(16)) == 1 + sum(-(-n // 16) for n in lengths)


def test_columns_take_no_memory_beside_their_own(place, monkeypatch):
    """A graph that fills most of the device still has room to be searched by COOC."""
    G = kronecker(7, backend="cpu", seed=3)
    ptr, rows, _ = G.to_csc()
    A = Matrix.from_csc(ptr, rows, True, nrows=128, backend=place).data.csc()
    asked = []
    monkeypatch.setattr(A.device, "require", lambda nbytes, what: asked.append(nbytes))
    columns = A.device.to_host(workspaces.columns_of(A))
    assert columns.dtype == np.int32
    np.testing.assert_array_equal(columns, np.repeat(np.arange(128), np.diff(ptr)))
    assert asked == [4 * A.nvals]
