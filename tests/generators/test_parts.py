"""Random graphs made part by part: those of the host, without the whole of them anywhere."""

import threading
import types
from contextlib import nullcontext

import numpy as np
import pytest
from ranks import on_grids

from lagpu import backends, generators
from lagpu.backends.grid.backend import Parts
from lagpu.backends.guard import overridden
from lagpu.errors import InvalidValue, OutOfMemory
from lagpu.generators import edges
from lagpu.generators import graphs as random
from lagpu.generators import graphs as shapes
from lagpu.host import memory

GRIDS = [
    "grid:1:cpu",
    "grid:3:cpu",
    "grid:2x3:cpu",
    "grid:3-random:cpu",
    "grid:2x3-degree:cpu",
    "grid:1-degree:sim",
    "grid:2:sim",
]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("make", [generators.kronecker, generators.uniform])
def test_the_graph_is_that_of_the_host(grid, make, monkeypatch):
    monkeypatch.setattr(edges, "_CHUNK_ON_HOST", 100)
    for scale, edge_factor, seed in ((0, 1, 1), (1, 3, 1), (6, 3, 2), (8, 4, 5)):
        A = make(scale, edge_factor, seed=seed, backend=grid)
        expected = make(scale, edge_factor, seed=seed, backend="cpu")
        assert A.is_symmetric
        assert A.data.symmetric is True  # known, so that no operation has to find out
        for found, wanted in zip(A.to_csc(), expected.to_csc(), strict=True):
            assert np.array_equal(found, wanted)


@pytest.mark.parametrize("grid", ["grid:1:sim", "grid:3:sim", "grid:2x3:sim"])
def test_a_piece_with_a_device_of_little_memory_draws_its_columns_by_shares(grid, monkeypatch):
    monkeypatch.setattr(edges, "_gpu", lambda home: home.device)
    monkeypatch.setattr(edges, "_CHUNK_ON_GPU", 1000)
    monkeypatch.setattr(edges.columns, "shares_for", lambda entries, free: 3)
    A = generators.kronecker(8, 4, seed=5, backend=grid)
    expected = generators.kronecker(8, 4, seed=5, backend="cpu")
    for found, wanted in zip(A.to_csc(), expected.to_csc(), strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("shares", [1, 3])
@pytest.mark.parametrize("grid", ["grid:1:sim", "grid:3:sim", "grid:2x3:sim", "grid:3-random:sim"])
def test_the_devices_of_a_process_see_one_anothers_tuples(grid, shares, monkeypatch):
    monkeypatch.setattr(edges, "_gpu", lambda home: home.device)
    monkeypatch.setattr(edges, "_CHUNK_ON_GPU", 100)
    monkeypatch.setattr(edges.columns, "shares_for", lambda entries, free: shares)
    monkeypatch.setattr(Parts, "owned", None)  # nothing goes through the host
    place = backends.get(grid)
    A = edges.undirected(edges.kronecker_tuples(8, 4, 5, place), 256, place)
    expected = generators.kronecker(8, 4, seed=5, backend="cpu")
    for found, wanted in zip(A.to_csc(), expected.to_csc(), strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("grid", "free", "times"),
    [
        ("grid:1:sim", 1 << 30, 1),
        ("grid:3:sim", 1 << 30, 1),  # by turns
        ("grid:2x3:sim", 1 << 30, 1),
        ("grid:3-random:sim", 1 << 30, 1),
        ("grid:1:sim", 120_000, 1),  # by shares of the columns, of tuples that are kept
        ("grid:3:sim", 26_000, 3 * 12),  # no room for them: by each piece, for each share
    ],
)
def test_the_devices_of_a_process_draw_each_edge_once(grid, free, times, monkeypatch):
    monkeypatch.setattr(edges, "_gpu", lambda home: home.device)
    monkeypatch.setattr(edges, "_CHUNK_ON_GPU", 100)
    drawn, draw = [], edges.KroneckerEdges.__call__

    def counted(self, first, count):
        drawn.append(count)
        return draw(self, first, count)

    monkeypatch.setattr(edges.KroneckerEdges, "__call__", counted)
    place = backends.get(grid)
    for home in place.pieces.places:
        monkeypatch.setattr(home.device, "free_bytes", lambda: free)
    A = generators.kronecker(8, 8, seed=5, backend=place)
    assert sum(drawn) == times * (8 << 8)
    expected = generators.kronecker(8, 8, seed=5, backend="cpu")
    for found, wanted in zip(A.to_csc(), expected.to_csc(), strict=True):
        assert np.array_equal(found, wanted)


def test_pieces_with_a_gpu_each_make_their_parts_at_the_same_time(monkeypatch):
    """None of these ends before all have begun."""
    monkeypatch.setattr(Parts, "_on_own_gpus", True)
    monkeypatch.setattr(edges, "threading", types.SimpleNamespace(Lock=nullcontext))  # as on a GPU
    begun, part = threading.Barrier(3, timeout=20), edges._part
    monkeypatch.setattr(edges, "_part", lambda *given: begun.wait() >= 0 and part(*given))
    A = generators.kronecker(8, 4, seed=5, backend="grid:3:sim")
    expected = generators.kronecker(8, 4, seed=5, backend="cpu")
    for found, wanted in zip(A.to_csc(), expected.to_csc(), strict=True):
        assert np.array_equal(found, wanted)


def test_what_is_drawn_on_the_host_is_drawn_a_piece_at_a_time(monkeypatch):
    monkeypatch.setattr(Parts, "_on_own_gpus", True)
    at_work, part = threading.Semaphore(1), edges._part

    def alone(*given):
        assert at_work.acquire(blocking=False)
        try:
            return part(*given)
        finally:
            at_work.release()

    monkeypatch.setattr(edges, "_part", alone)
    assert generators.kronecker(8, 4, seed=5, backend="grid:3-random:sim").nvals > 0


def test_an_error_of_one_of_them_is_that_of_the_statement(monkeypatch):
    monkeypatch.setattr(Parts, "_on_own_gpus", True)
    made, part = [], edges._part

    def fails(*given):
        made.append(given)
        if len(made) == 2:
            raise OutOfMemory("kronecker: needs more.")
        return part(*given)

    monkeypatch.setattr(edges, "_part", fails)
    with pytest.raises(OutOfMemory, match="needs more"):
        generators.kronecker(8, 4, seed=5, backend="grid:3:sim")
    assert len(made) == 3
    assert generators.kronecker(8, 4, seed=5, backend="grid:3:sim").nvals > 0


def test_all_processes_hear_of_an_error_of_one_of_them(monkeypatch):
    monkeypatch.setattr(Parts, "_on_own_gpus", True)
    part, failing = edges._part, []

    def fails(xp, home, *given):
        if any(home is place for place in failing):
            raise OutOfMemory("kronecker: needs more.")
        return part(xp, home, *given)

    monkeypatch.setattr(edges, "_part", fails)

    def program(place):
        if place.pieces.engine.local[0]:
            failing.append(place.pieces.places[1])
        generators.kronecker(8, 4, seed=5, backend=place)

    found = on_grids(2, program, pieces=2)
    assert [type(error) for error in found] == [OutOfMemory] * 2, found
    assert str(found[0]) == "process 1 of 2: kronecker: needs more."


@pytest.mark.parametrize(
    ("devices", "own"),
    [("cc", True), ("c", False), ("cs", False), ("c-", False), ("11", False), ("c11", False)],
)
def test_parts_are_made_at_the_same_time_where_each_has_a_gpu(devices, own):
    """Not where one is simulated, or there is none, or two have the same one."""
    one = types.SimpleNamespace(xp=types)
    made = {
        "c": lambda: types.SimpleNamespace(xp=types),
        "1": lambda: one,
        "s": lambda: types.SimpleNamespace(xp=np),
        "-": lambda: None,
    }
    homes = [types.SimpleNamespace(device=made[x]()) for x in devices]
    assert Parts._on_own_gpus.fget(types.SimpleNamespace(homes=homes)) == own


def test_no_piece_has_the_whole():
    A = generators.kronecker(8, backend="grid:4:cpu")
    places = A.backend.pieces.places
    counts = [place.nvals(part) for part, place in zip(A.data.parts, places, strict=True)]
    assert sum(counts) == A.nvals
    assert max(counts) < A.nvals / 2


@pytest.mark.parametrize("grid", GRIDS)
def test_entries_are_sent_to_the_pieces_that_own_them(grid):
    """As often as they are given, by their positions in the piece."""
    pieces = backends.get(grid).pieces
    n, count = 11, pieces.engine.size
    rows, cols = np.random.default_rng(7).integers(0, n, (2, 40))
    own = backends.get(grid).capabilities.parts.owned(
        lambda _, piece: (rows[piece::count], cols[piece::count]), (n, n)
    )
    layout = pieces.layout((n, n))
    assert sorted(own) == list(range(count))
    for piece, found in own.items():
        mine = layout.owner(rows, cols) == piece
        wanted = layout.position(rows[mine], cols[mine])
        assert sorted(zip(*found, strict=True)) == sorted(zip(*wanted, strict=True))


def test_sizes_are_checked():
    with pytest.raises(InvalidValue, match="scale 32"):
        generators.kronecker(32, backend="grid:2:cpu")
    with pytest.raises(OutOfMemory, match="uniform"):
        generators.uniform(31, 2**20, backend="grid:2:cpu")


MADE_OF = ("undirected", "from_entries", "from_edge_keys", "endpoints")


def tuples_made(place):
    return edges.kronecker_tuples(9, 16, 1, place)


def graph_of_tuples(place):
    i = np.arange(10_000, dtype=np.int32)
    return edges.undirected(dict.fromkeys(place.pieces.engine.local, (i, i)), 10_000, place)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda place: generators.kronecker(9, backend=place), "kronecker"),
        (lambda place: generators.uniform(9, backend=place), "uniform"),
        (lambda place: generators.gnm(1000, 6000, backend=place), "gnm"),
        (lambda place: generators.from_spec("road:60", backend=place), "road"),
        (lambda place: generators.path(9000, backend=place), "path"),
        (lambda place: generators.mycielskian(9, backend=place), "mycielskian"),
        (tuples_made, "kronecker"),
        (graph_of_tuples, "undirected"),
    ],
)
def test_all_processes_are_asked_before_one_makes_its_part(monkeypatch, make, what):
    """One that lacks memory is named in all; none has drawn an edge, or put a matrix together."""
    own, made = threading.local(), []
    monkeypatch.setattr(memory, "available_bytes", lambda: getattr(own, "free", 10**12))
    for place, name in (
        (edges.KroneckerEdges, "__call__"),
        (edges.UniformEdges, "__call__"),
        *((of, name) for of in (random, shapes) for name in vars(of) if name in MADE_OF),
    ):
        monkeypatch.setattr(place, name, lambda *_, **__: made.append("some of a graph"))

    def program(place):
        own.free = 100_000 if place.pieces.engine.local[0] == 1 else 10**9
        try:
            make(place)
        finally:
            own.free = 10**12

    found = on_grids(3, program)
    assert [type(error) for error in found] == [OutOfMemory] * 3, found
    assert str(found[1]).startswith(f"{what}: needs ")
    assert {str(found[k]) for k in (0, 2)} == {f"process 1 of 3: {found[1]}"}
    assert made == []


def test_the_pieces_of_a_host_are_asked_for_together(monkeypatch):
    """Those of a process one after the other, those of other processes at the same time."""
    asked = []
    monkeypatch.setattr(memory, "require", lambda *given, **how: asked.append((*given, how)))
    edges.kronecker_tuples(9, 16, 1, backends.get("grid:4:cpu"))
    share = 16 * 512 // 4
    drawn = edges._BYTES_PER_DRAWN * share
    assert asked == [(8 * 4 * share + drawn, "kronecker", {"processes": 1})]
    asked.clear()
    on_grids(2, lambda place: edges.kronecker_tuples(9, 16, 1, place), pieces=2, beside=2)
    assert asked == [(8 * 2 * share + drawn, "kronecker", {"processes": 2})] * 2


def test_a_backend_that_chooses_kernels_has_parts_too():
    place = overridden(backends.get("grid:2:sim"), "pull_scalar", None)
    A = generators.kronecker(5, backend=place)
    assert A.backend is place
    assert A.to("cpu").isequal(generators.kronecker(5, backend="cpu"))
