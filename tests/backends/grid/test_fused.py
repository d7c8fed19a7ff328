"""A search of a grid is one kernel on the devices of all pieces, and finds what cpu finds."""

import gc
import types
import weakref

import numpy as np
import pytest
from hubs import directions
from pieces_of_search import (
    PIECES,
    RUNS,
    Paths,
    Search,
    edges_of,
    fails_at_each_call,
    fails_without,
    is_tree,
    matrix,
    sim_grid,
    sims,
)
from searches import levels_behind

import lagpu
from lagpu import (
    BOOL,
    FP64,
    INT32,
    INT64,
    Matrix,
    Vector,
    algorithms,
    backends,
    loop,
    semiring,
)
from lagpu.backends import grid
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.storage.stores import VectorStore, nwords
from lagpu.backends.grid import search as fused
from lagpu.loops.loop import BY_ITSELF
from lagpu.operations import Until

SIZES = [1, 2, 31, 32, 33, 257, 385, 1023, 1025, 3000]
GRAPHS = [
    *(("random", n) for n in SIZES),
    *((kind, n) for kind in ("both ways", "hubs") for n in (33, 1025, 3000)),
]


def sources(n, i):
    return {0, n - 1, int(i[0]) if len(i) else 0}


@pytest.mark.each_value
@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize(("kind", "n"), GRAPHS)
def test_levels_and_parents(kind, n, pieces):
    place = sim_grid(pieces)
    i, j = edges_of(kind, n)
    A, B = (matrix(n, i, j, x) for x in (place, "cpu"))
    for source in sources(n, i):
        want = algorithms.bfs_levels(B, source)
        levels = algorithms.bfs_levels(A, source)
        assert place.last_loop == f"{RUNS}{pieces} pieces"
        assert levels.to_dense(-1).tolist() == want.to_dense(-1).tolist()
        assert levels.nvals == want.nvals
        levels, parents = algorithms.bfs(A, source)
        assert place.last_loop == f"{RUNS}{pieces} pieces"
        assert levels.to_dense(-1).tolist() == want.to_dense(-1).tolist()
        assert is_tree(i, j, levels.to_dense(-1), parents.to_dense(-1), source)


@pytest.mark.parametrize("pieces", PIECES)
def test_all_pieces_hear_of_a_hub_that_a_block_looks_at_later(pieces, monkeypatch):
    monkeypatch.setattr(grid.search, "alpha_of", lambda *_, **__: 1e9)  # pull
    monkeypatch.setattr(grid.search, "beta_of", lambda sums: 1e9)
    n, many = 6001, 2500  # of the hub's predecessors the last one alone is found
    source, hub, near, leaf = n - 1, n - 2, many, many + 1
    i = [source, *range(near + 1), *[hub] * (n - many - 4)]
    j = [near, *[hub] * (near + 1), *range(many + 2, n - 2)]
    i += [*[near] * 50, n - 12]  # some of the hub's word too; only one leads to the leaf
    j += [*range(n - 60, n - 10), leaf]
    i += [0] * 99  # the hub's predecessor of most edges, so its hint, which is not found
    j += range(n - 160, n - 61)
    A, B = (matrix(n, np.array(i), np.array(j), x) for x in (sims(pieces), "cpu"))
    with lagpu.trace() as t:
        found = algorithms.bfs_levels(A, source).to_dense(-1).tolist()
    assert directions(t)[1:] == ["pull"] * 3
    assert found == algorithms.bfs_levels(B, source).to_dense(-1).tolist()


@pytest.mark.parametrize("pieces", [1, *PIECES])
def test_levels_of_what_few_and_many_edges_find_into_words(pieces, monkeypatch):
    """A push of more edges than an eighth of the vertices leaves levels to a pass over words."""
    monkeypatch.setattr(grid.search, "alpha_of", lambda *_, **__: 0.0)  # push
    monkeypatch.setattr(grid.search, "gamma_of", lambda *_: 1e30)
    n = 1025
    for degree in (1, n // 8, n // 8 + 1, n - 2):
        found = np.random.default_rng(degree).permutation(np.arange(1, n))[:degree]
        A = matrix(n, np.r_[np.zeros(degree, int), found[0]], np.r_[found, n - 1], sims(pieces))
        expected = np.full(n, -1)
        expected[n - 1] = 2  # one edge further
        expected[found], expected[0] = 1, 0
        assert algorithms.bfs_levels(A, 0).to_dense(-1).tolist() == expected.tolist()
        levels, frontier = Vector(INT32, n, like=A), Vector(BOOL, n, like=A)
        frontier[0] = True
        levels_behind(A, frontier, levels, None)
        assert levels.to_dense(-1).tolist() == np.where(expected > 0, expected - 1, -1).tolist()


@pytest.mark.parametrize("pieces", [1, *PIECES])
def test_small_levels_are_pushed(pieces):
    i, j = edges_of("path", 70)
    A, B = (matrix(70, i, j, x) for x in (sims(pieces), "cpu"))
    want = algorithms.bfs_levels(B, int(i[0])).to_dense(-1).tolist()
    assert algorithms.bfs_levels(A, int(i[0])).to_dense(-1).tolist() == want


@pytest.mark.parametrize("many", [1, 2, 31, 32, 33, 70])
@pytest.mark.parametrize("pieces", [1, *PIECES])
def test_a_push_of_few_vertices_and_of_more(pieces, many, monkeypatch):
    """Of which some have no edges, most a few, and one thousands; up to 32 need no list.

    A loop at a vertex that nothing leads to is never looked at, so it is pushed to the end.
    """
    monkeypatch.setattr(grid.search, "alpha_of", lambda *_, **__: 1e-9)
    n, source = 9001, 9000
    degrees = np.arange(many) % 40
    degrees[many // 2] = 5000
    starts = np.arange(many)
    i = np.r_[np.full(many, source), np.repeat(starts, degrees), n - 2]
    j = np.r_[starts, many + np.arange(degrees.sum()) * 7 % (n - 2 - many), n - 2]
    A, B = (matrix(n, i, j, x) for x in (sims(pieces), "cpu"))
    with lagpu.trace() as t:
        found = algorithms.bfs_levels(A, source)
    assert set(directions(t)) == {"push"}
    want = algorithms.bfs_levels(B, source).to_dense(-1)
    assert found.to_dense(-1).tolist() == want.tolist()
    levels, parents = algorithms.bfs(A, source)
    assert levels.to_dense(-1).tolist() == want.tolist()
    assert is_tree(i, j, want, parents.to_dense(-1), source)


@pytest.mark.each_value
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("pieces", PIECES)
def test_any_order_of_threads(pieces, seed):
    place = sims(pieces, seed=seed, preempt=1 + seed * 8)
    n = 1500
    i, j = edges_of("both ways", n)
    A, B = (matrix(n, i, j, x) for x in (place, "cpu"))
    want = algorithms.bfs_levels(B, 7).to_dense(-1)
    levels, parents = algorithms.bfs(A, 7)
    assert levels.to_dense(-1).tolist() == want.tolist()
    assert is_tree(i, j, want, parents.to_dense(-1), 7)


# A loop's body is read from its source, so the functions below have no assert, which pytest writes.
def searched_backwards(A, n, place):
    levels, f = (Vector(dtype, n, backend=place) for dtype in (INT32, BOOL))
    f[3] = True
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(A @ f)
    return levels.to_dense(-1).tolist()


@pytest.mark.parametrize("pieces", PIECES)
def test_the_transpose_and_a_matrix_known_to_be_symmetric(pieces):
    place = sim_grid(pieces)
    n = 400
    for kind in ("hubs", "both ways"):
        i, j = edges_of(kind, n)
        found = []
        for x in (place, "cpu"):
            A = matrix(n, i, j, x)
            if kind == "both ways":
                assert A.is_symmetric
            found.append(searched_backwards(A, n, x))
        assert place.last_loop.startswith(RUNS)
        assert found[0] == found[1]


@pytest.mark.each_value
@pytest.mark.parametrize("order", ["random", "degree"])
@pytest.mark.parametrize("pieces", [1, *PIECES])
@pytest.mark.parametrize(
    ("kind", "n"), [(k, n) for k in ("random", "hubs") for n in (1, 33, 1025, 5000)]
)
def test_vertices_in_another_order(kind, n, pieces, order):
    i, j = edges_of(kind, n)
    places = [GpuBackend(f"s{p}", SimDevice(backend=f"s{p}")) for p in range(pieces)]
    place = grid.make(f"grid of {pieces} by {order}", places, (pieces, 1), order)
    A, B = (matrix(n, i, j, x) for x in (place, "cpu"))
    for source in sources(n, i):
        want = algorithms.bfs_levels(B, source).to_dense(-1)
        levels, parents = algorithms.bfs(A, source)
        assert place.last_loop.startswith(RUNS)
        assert levels.to_dense(-1).tolist() == want.tolist()
        assert is_tree(i, j, want, parents.to_dense(-1), source)
        counts = algorithms.count_shortest_paths(A, source)
        assert place.last_loop.startswith(RUNS)
        assert counts.to("cpu").isequal(algorithms.count_shortest_paths(B, source))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("pieces", PIECES)
def test_pieces_know_what_is_behind_edges_of_the_whole_matrix(pieces, symmetric):
    n = 1025
    A = matrix(n, *edges_of("both ways" if symmetric else "random", n), sims(pieces))
    assert A.is_symmetric == symmetric
    i, j, _ = A.to_coo()
    algorithms.bfs_levels(A, int(i[0]))
    walks = np.bincount(j, minlength=n) @ np.bincount(i, minlength=n)  # into a vertex, and out
    spaces = [fused._Space.of(x) for x in (A.data, A.data.transpose) if x is not None]
    (space,) = [space for space in spaces if space is not None]
    assert space.behind == walks / A.nvals
    assert space.targets == len(np.unique(j))


def words_of_another_vector(store):
    return store.device.xp.full(nwords(store.size), 0xFFFFFFFF, np.uint32)


@pytest.mark.parametrize("times", [1, 2, 3, 4, None])
@pytest.mark.parametrize("starts", [(699,), (690, 699), (0, 699), (0,)])
@pytest.mark.parametrize("pieces", [1, *PIECES])
def test_sources_to_which_nothing_leads(pieces, starts, times, monkeypatch):
    """They follow all vertices that pieces send, and no level after the first has them."""
    monkeypatch.setattr(VectorStore, "spare_words", words_of_another_vector)
    monkeypatch.setattr(grid.search, "alpha_of", lambda *_, **__: 1e9)  # pull
    monkeypatch.setattr(grid.search, "beta_of", lambda sums: 1e9)
    n = 700
    i = np.r_[np.arange(650), 699, 690]
    j = np.r_[np.arange(1, 651) % 600, 0, 7]
    found = [searched(place, n, i, j, times, True, BOOL, starts) for place in (sims(pieces), "cpu")]
    assert found[0] == found[1]


@pytest.mark.parametrize("times", range(1, 8))
@pytest.mark.parametrize("pieces", [1, *PIECES])
def test_what_is_left_of_a_pull_that_has_listed_what_it_found(pieces, times, monkeypatch):
    monkeypatch.setattr(grid.search, "alpha_of", lambda *_, **__: 1e9)  # pull
    monkeypatch.setattr(grid.search, "beta_of", lambda sums: 100)
    n, hub, many = 3000, 0, 2000
    i = np.r_[[hub] * many, np.arange(many, many + 9)]
    j = np.r_[np.arange(1, many + 1), np.arange(many + 1, many + 10)]
    found = [searched(place, n, i, j, times, True, BOOL, (hub,)) for place in (sims(pieces), "cpu")]
    assert found[0] == found[1]
    assert found[0][2] > 0


def searched(place, n, i, j, times, first, dtype, starts):
    """Search from several vertices where some have levels already; return what is left."""
    A = matrix(n, i, j, place)
    levels, f = Vector(INT32, n, backend=place), Vector(dtype, n, backend=place)
    levels[5], levels[n - 2] = 70, 71
    for v in starts:
        f[v] = v + 1
    if first:
        for depth in loop(until_empty=f, times=times):
            levels(f.S) << depth
            f(~levels.S, replace=True) << semiring.any_pair(f @ A)
    else:
        for depth in loop(until_empty=f, times=times):
            f(~levels.S, replace=True) << semiring.any_pair(f @ A)
            levels(f.S) << depth
    return levels.to_dense(-1).tolist(), f.to_coo()[0].tolist(), f.nvals


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize(("n", "times"), [(33, 2), (700, 0), (700, 1), (700, 3), (700, None)])
def test_some_levels_of_several_sources_beside_what_is_there(n, times, pieces):
    i, j = edges_of("random", n)
    place = sim_grid(pieces)
    for first in (True, False):
        args = (n, i, j, times, first, BOOL, (4, n - 1, 9))
        assert searched(place, *args) == searched("cpu", *args)
        fits = (first or times is None) and times != 0
        assert place.last_loop.startswith(RUNS) == fits


def new_entries(A, n, place, first):
    """Return the entries of what searches from several vertices, one without edges, have made."""
    levels, paths = Vector(INT32, n, backend=place), Vector(FP64, n, backend=place)
    f = Vector(FP64, n, backend=place)
    for v in (4, n - 1, 9):
        f[v] = 1
    if first:
        for depth in loop(until_empty=f):
            levels(f.S) << depth
            paths(f.S) << f
            f(~levels.S, replace=True) << semiring.plus_first(f @ A)
    else:
        for depth in loop(until_empty=f):
            f(~levels.S, replace=True) << semiring.any_pair(f @ A)
            levels(f.S) << depth
    parents = algorithms.bfs_parents(A, 4)
    return levels.nvals, paths.nvals, parents.nvals, f.nvals


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("pieces", PIECES)
def test_a_search_reports_how_many_entries_it_has_made(pieces, first, monkeypatch):
    """So that no kernel counts them when they are read."""
    n, place = 700, sims(pieces)
    for kind in ("random", "both ways", "path"):
        i, j = edges_of(kind, n - 1)
        A, B = (matrix(n, i, j, x) for x in (place, "cpu"))
        want = new_entries(B, n, "cpu", first)
        with monkeypatch.context() as only:
            only.setattr(VectorStore, "_start_count", None)
            assert new_entries(A, n, place, first) == want
        assert place.last_loop.startswith(RUNS)


@pytest.mark.parametrize("pieces", PIECES)
def test_the_next_outputs_are_allocated_while_the_kernels_run(pieces, monkeypatch):
    monkeypatch.setattr(SimDevice, "unasked", 1 << 20)
    n, place = 700, sims(pieces)
    i, j = edges_of("both ways", n)
    A = matrix(n, i, j, place)
    algorithms.bfs_levels(A, 4)
    (ahead,) = fused._Space.of(A.data).ahead.values()
    found = algorithms.bfs_levels(A, 4).data.parts
    for part, piece in zip(found, ahead, strict=True):
        assert [part] == piece.outputs


@pytest.mark.parametrize("pieces", PIECES)
def test_the_next_buffers_are_allocated_while_the_kernels_run(pieces, monkeypatch):
    """Those of a search that adds up, which stores the frontier's values."""
    monkeypatch.setattr(SimDevice, "unasked", 1 << 20)
    search = Paths(sims(pieces))
    search.run()
    assert all(part.kind in part.counters.ahead for part in search.x.data.parts)


def after_a_bounded_search(place, n, i, j, bound):
    """Search from a vertex to a bounded depth, then from another one to the end."""
    A, found = matrix(n, i, j, place), []
    for source, times in ((int(i[0]), bound), (n - 1, None)):
        levels, f = Vector(INT32, n, backend=place), Vector(BOOL, n, backend=place)
        f[source] = True
        for depth in loop(until_empty=f, times=times):
            levels(f.S) << depth
            f(~levels.S, replace=True) << semiring.any_pair(f @ A)
        found.append(levels.to_dense(-1).tolist())
    return found


@pytest.mark.parametrize("pieces", PIECES)
def test_what_a_bounded_search_has_found_is_forgotten_by_the_next(pieces):
    n = 3000
    i, j = edges_of("both ways", n)
    place = sim_grid(pieces)
    for bound in (2, 3, 4):
        args = (n, i, j, bound)
        assert after_a_bounded_search(place, *args) == after_a_bounded_search("cpu", *args)
        assert place.last_loop.startswith(RUNS)


def two_levels(A, n, place):
    parents, f = Vector(INT64, n, backend=place), Vector(INT64, n, backend=place)
    f[8] = 8
    for _ in loop(until_empty=f, times=2):
        parents(f.S) << f
        f(~parents.S, replace=True) << semiring.any_secondi(f @ A)
    return parents.to_dense(-1), f.to_coo()


@pytest.mark.parametrize("pieces", PIECES)
def test_the_values_of_a_frontier_that_is_left(pieces):
    n = 300
    i, j = edges_of("both ways", n)
    place, found = sim_grid(pieces), []
    for x in (place, "cpu"):
        A = matrix(n, i, j, x, np.full(len(i), 1) * 1.0)
        found.append(two_levels(A, n, x))
    assert place.last_loop.startswith(RUNS)
    edges = {*zip(i.tolist(), j.tolist(), strict=True)}
    (mine, (at, values)), (theirs, (want, _)) = found
    assert ((mine >= 0) == (theirs >= 0)).all()
    assert at.tolist() == want.tolist()
    assert all((p, v) in edges and mine[p] >= 0 for v, p in zip(at, values, strict=True))


def edge_values(A, n, place):
    x, f = Vector(FP64, n, backend=place), Vector(FP64, n, backend=place)
    f[2] = 9.0
    for _ in loop(until_empty=f):
        x(f.S) << f
        f(~x.S, replace=True) << semiring.any_second(f @ A)
    return x


def test_values_of_edges():
    """What a piece assigns may come from the matrix; of one value, or of many."""
    n, place = 200, sim_grid(2)
    i, j = edges_of("random", n)
    for weights in (np.full(len(i), 4.0), (i * 7 + j) % 5 + 1.0):
        A = matrix(n, i, j, place, weights)
        x = edge_values(A, n, place)
        assert place.last_loop.startswith(RUNS)
        rows, cols, values = A.to_coo()
        into = {}
        for v, w in zip(cols.tolist(), values.tolist(), strict=True):
            into.setdefault(v, set()).add(w)
        found = dict(zip(*(y.tolist() for y in x.to_coo()), strict=True))
        assert found.pop(2) == 9.0
        assert all(w in into[v] for v, w in found.items())
        levels = algorithms.bfs_levels(matrix(n, rows, cols, "cpu"), 2)
        assert sorted([2, *found]) == levels.to_coo()[0].tolist()


# ------------------------------------------------------------------------- who runs statements
def applied(v):
    for _ in loop(times=2):
        v << v.apply("abs")


def test_what_is_no_search_of_pieces():
    place = sim_grid(2)
    i, j = edges_of("random", 40)
    A = matrix(40, i, j, place, np.ones(len(i)))

    def run(step, dtype=FP64, rows=None):
        shape = (40,) if rows is None else (rows, 40)
        made = Vector if rows is None else Matrix
        x, f = made(dtype, *shape, backend=place), made(dtype, *shape, backend=place)
        f[(0,) * len(shape)] = 1
        for _ in loop(until_empty=f):
            x(f.S) << f
            f(~x.S, replace=True) << step(f @ A)
        return place.last_loop

    assert "sums of type FP64 do not fit a frontier of INT64" in run(semiring.plus_second, INT64)
    assert "the index of the output" in run(semiring.any_secondj, INT64)
    assert "the frontier has several rows" in run(semiring.any_pair, rows=3)
    applied(Vector(FP64, 40, backend=place))
    assert "the loop has no frontier" in place.last_loop


def last_loop(place):
    A = matrix(9, np.arange(8), np.arange(1, 9), place)
    levels = algorithms.bfs_levels(A, 2)
    assert levels.to_dense(-1).tolist() == [-1, -1, *range(7)]
    return A.backend.last_loop


def test_pieces_that_cannot_run_together(monkeypatch):
    mixed = grid.make("mixed", [backends.get("sim"), backends.get("cpu")])
    assert not mixed.capabilities.records
    assert last_loop(mixed) == BY_ITSELF
    A = matrix(3, np.arange(2), np.arange(1, 3), mixed)
    assert "pieces are on cpu, which has no kernels" in mixed.plan_loop([], Until(A.data)).why
    one = backends.get("sim")
    assert "two pieces are on one device" in last_loop(grid.make("twice", [one, one]))
    place = sims(2)
    monkeypatch.setattr(SimDevice, "why_apart", lambda *_: "a wire is cut")
    assert last_loop(place) == "eager: a wire is cut"


def test_pieces_that_have_some_of_the_rows_alone(monkeypatch):
    place, seen, why = sim_grid(2), [], fused._why_not_here
    monkeypatch.setattr(fused, "_why_not_here", lambda *given: seen.append(given) or why(*given))
    last_loop(place)
    ((pieces, body, times, system),) = seen
    assert why(pieces, body, times, system) == ""
    parts = [types.SimpleNamespace(shape=(4, part.shape[1])) for part in body.A.parts]
    rows = types.SimpleNamespace(shape=body.A.shape, parts=parts)
    assert "each piece has some of the rows" in why(pieces, body._replace(A=rows), times, system)


# -------------------------------------------------------------------------------------- faults
@pytest.fixture
def want():
    search = Search("cpu")
    search.run()
    return search.state()


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("absent", [0, 1])
def test_a_piece_that_never_comes(pieces, absent, want, monkeypatch):
    search = Search(sims(pieces))
    fails_without(search, absent, monkeypatch)
    search.run()
    assert search.state() == want


@pytest.mark.parametrize("method", ["shared_zeros", "run_together", "_to_host", "_from_host"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_error_leaves_all_as_it_was(method, error, want, monkeypatch):
    """Wherever it comes: each call of a method of the devices fails in turn."""
    search = Search(sims(2))
    fails_at_each_call(search, SimDevice, method, error, monkeypatch)
    assert search.state() == want


def test_an_interrupt_while_handles_take_their_parts(want, monkeypatch):
    search = Search(sims(2))
    take, calls = type(search.x.data).take, [0]

    def once(self, *parts):
        calls[0] += 1
        if calls[0] == 2:
            raise KeyboardInterrupt
        take(self, *parts)

    with monkeypatch.context() as patch:
        patch.setattr(type(search.x.data), "take", once)
        with pytest.raises(KeyboardInterrupt):
            search.run()
    assert search.state() == want


def test_a_matrix_goes_with_its_last_reference(own_garbage):
    """What a search keeps beside the parts holds none of them: on a GPU it would hold the graph."""
    search = Search(sim_grid(2), n=600)
    search.run()
    forms = [weakref.ref(part.csc()) for part in search.A.data.parts]
    gc.collect()
    gc.disable()
    try:
        del search.A
        assert [form() for form in forms] == [None, None]
    finally:
        gc.enable()
