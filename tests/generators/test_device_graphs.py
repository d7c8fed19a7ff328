"""Graphs made on a device: those of the host."""

import numpy as np
import pytest

from lagpu import backends, generators
from lagpu.errors import InvalidValue, OutOfMemory
from lagpu.generators import edges as device
from lagpu.generators import graphs
from lagpu.generators.edges import KroneckerEdges, UniformEdges
from lagpu.host.columns import sorted_columns

MADE = [
    ("kronecker", KroneckerEdges, generators.kronecker),
    ("uniform", UniformEdges, generators.uniform),
]


@pytest.fixture
def place(backend, monkeypatch):
    found = backends.get(backend)
    if found.device is None:
        pytest.skip("no device")
    monkeypatch.setattr(device, "is_on_gpu", lambda home: True)
    return found


@pytest.mark.parametrize(("what", "kind", "on_host"), MADE)
@pytest.mark.parametrize("chunk", [7, 1 << 24])
def test_the_graph_is_that_of_the_host(place, what, kind, on_host, chunk, monkeypatch):
    monkeypatch.setattr(device, "_CHUNK_ON_GPU", chunk)
    for scale, edge_factor, seed in ((0, 1, 1), (5, 2, 3), (7, 16, 4)):
        A = device.drawn(what, kind, scale, edge_factor, seed, place)
        assert A.data.store.symmetric is True  # known, so that no search has to find out
        expected = on_host(scale, edge_factor, seed=seed, backend="cpu")
        assert A.to("cpu").isequal(expected)


@pytest.mark.parametrize("shares", [2, 3, 64])
def test_a_graph_made_by_shares_of_its_columns_is_the_same(place, shares, monkeypatch):
    monkeypatch.setattr(device.columns, "shares_for", lambda entries, free: shares)
    for scale in (0, 1, 7):
        A = device.drawn("kronecker", KroneckerEdges, scale, 16, 4, place)
        assert A.to("cpu").isequal(generators.kronecker(scale, 16, seed=4, backend="cpu"))
    tuples = device.kronecker_tuples(7, 16, 4, place)
    assert device.undirected(tuples, 128, place).isequal(A)


@pytest.mark.parametrize(("entry", "times"), [(40, 1), (23, 1), (9, 26)])
def test_edges_are_drawn_once_where_there_is_room(place, entry, times, monkeypatch):
    """In bytes of an entry: all at once, by shares of edges that are kept, or of drawn ones."""
    draws, n, drawn = 16 << 10, 1 << 10, []
    monkeypatch.setattr(
        place.device, "free_bytes", lambda: entry * 2 * draws + 24 * n + 100 * draws
    )

    class Counted(KroneckerEdges):
        def __call__(self, first, count):
            drawn.append(count)
            return super().__call__(first, count)

    A = device.drawn("kronecker", Counted, 10, 16, 1, place)
    assert sum(drawn) == times * draws
    assert A.to("cpu").isequal(generators.kronecker(10, 16, seed=1, backend="cpu"))


def test_a_device_of_little_memory_makes_more_shares(place, monkeypatch):
    """As many as fit; what does not fit in the most of them is refused."""
    draws, n = 16 << 10, 1 << 10
    beside = 24 * n + 100 * draws
    made = []
    monkeypatch.setattr(place.device, "pooled_bytes", lambda: 0)
    monkeypatch.setattr(
        device.columns,
        "sorted_columns",
        lambda *given: made.append(given[-1]) or sorted_columns(*given),
    )
    for shares, entries in ((1, 26), (2, 21), (4, 15), (13, 10)):
        free = entries * 2 * draws + beside
        monkeypatch.setattr(place.device, "free_bytes", lambda free=free: free)
        A = device.drawn("kronecker", KroneckerEdges, 10, 16, 1, place)
        assert len(made.pop()) == shares + 1
        assert A.nvals == generators.kronecker(10, 16, seed=1, backend="cpu").nvals
    monkeypatch.setattr(place.device, "free_bytes", lambda: 8 * 2 * draws + beside)
    with pytest.raises(OutOfMemory, match="kronecker"):
        device.drawn("kronecker", KroneckerEdges, 10, 16, 1, place)


def test_a_seed_makes_one_graph_on_every_backend(backend):
    for make in (generators.kronecker, generators.uniform):
        A = make(6, 4, seed=3, backend=backend)
        assert A.to("cpu").isequal(make(6, 4, seed=3, backend="cpu"))
        assert not A.to("cpu").isequal(make(6, 4, seed=4, backend="cpu"))


@pytest.mark.parametrize(
    "text",
    [
        "road:6", "road:5:3", "chains:4:5", "hubs:60:5", "grid:3x5", "delaunay:6", "mycielskian:6",
        "path:1", "path:9", "cycle:5", "star:1", "star:8",
    ],
)  # fmt: skip
def test_edges_of_the_host_are_sorted_on_the_device(place, text, monkeypatch):
    monkeypatch.setattr(graphs, "is_on_gpu", lambda home: home is place)
    monkeypatch.setattr(graphs, "undirected", None)  # the host sorts nothing
    A = generators.from_spec(text, backend=place)
    monkeypatch.undo()
    assert A.data.store.symmetric is True
    assert A.to("cpu").isequal(generators.from_spec(text, backend="cpu"))


def test_sizes_are_checked(place):
    with pytest.raises(InvalidValue, match="scale -1"):
        device.drawn("kronecker", KroneckerEdges, -1, 16, 1, place)
    with pytest.raises(OutOfMemory):
        device.drawn("uniform", UniformEdges, 31, 2**20, 1, place)


def test_the_tuples_have_graph500s_skew(place):
    tuples = device.kronecker_tuples(10, 16, 1, place)
    expected = device.kronecker_tuples(10, 16, 1, backends.get("cpu"))[0]
    A = device.undirected(tuples, 1024, place)
    u, v = (place.device.to_host(x) for x in tuples[0])
    for found, wanted in zip((u, v), expected, strict=True):
        assert found.tolist() == wanted.tolist()
    degree = np.diff(A.to_csc()[0])
    assert degree.max() > 10 * degree.mean()
    pairs = {(min(p), max(p)) for p in zip(u.tolist(), v.tolist(), strict=True) if p[0] != p[1]}
    assert A.nvals == 2 * len(pairs)
