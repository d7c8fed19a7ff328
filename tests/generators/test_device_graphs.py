"""Graphs made on a device: those of the host."""

import numpy as np
import pytest

from lagpu import backends, generators
from lagpu.errors import InvalidValue, OutOfMemory
from lagpu.generators import device
from lagpu.generators.edges import KroneckerEdges, UniformEdges
from lagpu.generators.random import kronecker_tuples

MADE = [
    ("kronecker", KroneckerEdges, generators.kronecker),
    ("uniform", UniformEdges, generators.uniform),
]


@pytest.fixture
def place(backend):
    found = backends.get(backend)
    if found.device is None:
        pytest.skip("no device")
    return found


@pytest.mark.parametrize(("what", "kind", "on_host"), MADE)
@pytest.mark.parametrize("chunk", [7, 1 << 24])
def test_the_graph_is_that_of_the_host(place, what, kind, on_host, chunk, monkeypatch):
    monkeypatch.setattr(device, "_CHUNK", chunk)
    for scale, edge_factor, seed in ((0, 1, 1), (5, 2, 3), (7, 16, 4)):
        A = device.drawn(what, kind, scale, edge_factor, seed, place)
        assert A.data.store.symmetric is True  # known, so that no search has to find out
        expected = on_host(scale, edge_factor, seed=seed, backend="cpu")
        assert A.to("cpu").isequal(expected)


def test_a_seed_makes_one_graph_on_every_backend(backend):
    for make in (generators.kronecker, generators.uniform):
        A = make(6, 4, seed=3, backend=backend)
        assert A.to("cpu").isequal(make(6, 4, seed=3, backend="cpu"))
        assert not A.to("cpu").isequal(make(6, 4, seed=4, backend="cpu"))


def test_sizes_are_checked(place):
    with pytest.raises(InvalidValue, match="scale -1"):
        device.drawn("kronecker", KroneckerEdges, -1, 16, 1, place)
    with pytest.raises(OutOfMemory):
        device.drawn("uniform", UniformEdges, 31, 2**20, 1, place)


def test_the_tuples_have_graph500s_skew(place):
    u, v = device.kronecker_tuples(10, 16, 1, place)
    expected = kronecker_tuples(10, 16, seed=1, backend="cpu")
    A = device.undirected(u, v, 1024, place)
    u, v = (place.device.to_host(x) for x in (u, v))
    for found, wanted in zip((u, v), expected, strict=True):
        assert found.tolist() == wanted.tolist()
    degree = np.diff(A.to_csc()[0])
    assert degree.max() > 10 * degree.mean()
    pairs = {(min(p), max(p)) for p in zip(u.tolist(), v.tolist(), strict=True) if p[0] != p[1]}
    assert A.nvals == 2 * len(pairs)
