"""Searches of pieces whose products add up or read the frontier: values are sent with it."""

import numpy as np
import pytest
from pieces_of_search import (
    PIECES,
    RUNS,
    Paths,
    edges_of,
    fails_without,
    matrix,
    sim_grid,
    sims,
)
from samples import picked

import lagpu
from lagpu import FP64, INT64, Matrix, Vector, algorithms, binary, loop, semiring
from lagpu.backends import grid
from lagpu.backends.gpu import GpuBackend
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.grid import search
from lagpu.backends.grid.partition import block_cyclic

ADDS = {
    "path counts": (semiring.plus_first, FP64),
    "weighted": (semiring.plus_times, FP64),
    "least": (semiring.min_plus, INT64),
    "any value": (semiring.any_first, INT64),
    "edges": (semiring.plus_second, FP64),
    "any edge": (semiring.any_second, INT64),
}


def added_up(A, n, place, name, times=None, starts=((4, 3), (9, 5))):
    """Search with values; return what was assigned, and what is left in the frontier."""
    adds, dtype = ADDS[name]
    x, f = Vector(dtype, n, backend=place), Vector(dtype, n, backend=place)
    for v, value in starts:
        f[v] = value
    for _ in loop(until_empty=f, times=times):
        x(f.S) << f
        f(~x.S, replace=True) << adds(f @ A)
    return [y.tolist() for y in (*x.to_coo(), *f.to_coo())]


def valued(A, n, place, dtypes, had):
    f = Vector(FP64, n, backend=place)
    x, y = (Vector(dtype, n, backend=place) for dtype in dtypes)
    f[8] = 2
    if had:
        x[9] = 7
    for _ in loop(until_empty=f):
        x(f.S) << f
        f(~x.S, replace=True) << semiring.plus_first(f @ A)
    found = [x.to_dense(-1).tolist()]
    f[8] = 2
    x.clear()
    for _ in loop(until_empty=f):
        x(f.S) << f
        y(f.S) << f
        f(~x.S, replace=True) << semiring.plus_first(f @ A)
    return [*found, x.to_dense(-1).tolist(), y.to_dense(-1).tolist()]


@pytest.mark.parametrize("pieces", PIECES)
def test_values_for_each_kind_of_output(pieces):
    """A new vector of the frontier's type gets its sums at once, others at the end."""
    n, place = 300, sims(pieces)
    i, j = edges_of("both ways", n)
    for had, *dtypes in ((False, FP64, FP64), (True, FP64, FP64), (False, INT64, FP64)):
        found = [valued(matrix(n, i, j, x), n, x, dtypes, had) for x in (place, "cpu")]
        assert place.last_loop.startswith(RUNS)
        assert found[0] == found[1]


def weighted(n, i, j, place, dtype, weights=None):
    weights = (i * 7 + j) % 5 + 1 if weights is None else weights
    return Matrix.from_coo(
        i, j, weights.astype(dtype.numpy), nrows=n, ncols=n, dup_op=binary.min, backend=place
    )


@pytest.mark.parametrize(
    ("name", "pieces"),
    picked(
        [(name, pieces) for name in ADDS for pieces in PIECES],
        *(("path counts", pieces) for pieces in PIECES),
        ("weighted", 2),
        ("any value", 2),
        ("any edge", 3),
    ),
)
def test_sums_and_values_of_a_frontier(name, pieces):
    place, starts = sim_grid(pieces), ((4, 3), (9, 3)) if name == "any value" else ((4, 3), (9, 5))
    for kind, n in (("random", 33), ("both ways", 1025), ("hubs", 3000), ("path", 70)):
        i, j = edges_of(kind, n)
        weights = j % 5 + 1 if name == "any edge" else None  # whichever is taken
        A, B = (weighted(n, i, j, x, ADDS[name][1], weights) for x in (place, "cpu"))
        for times in (None, 2):
            want = added_up(B, n, "cpu", name, times, starts)
            assert added_up(A, n, place, name, times, starts) == want
            assert place.last_loop == f"{RUNS}{pieces} pieces"


def test_a_search_with_values_on_a_matrix_that_was_searched_without():
    """It needs larger windows, which the searches without values then have too."""
    place, n = sims(2), 257
    i, j = edges_of("both ways", n)
    A, B = (weighted(n, i, j, x, FP64) for x in (place, "cpu"))
    levels = algorithms.bfs_levels(B, 4).to_dense(-1).tolist()
    for _ in range(2):
        assert algorithms.bfs_levels(A, 4).to_dense(-1).tolist() == levels
        want = added_up(B, n, "cpu", "path counts")
        assert added_up(A, n, place, "path counts") == want


@pytest.mark.parametrize("name", ["weighted", "any edge", "any value"])
@pytest.mark.parametrize("pieces", [1, *PIECES])
def test_values_of_edges_and_vertices_in_another_order(pieces, name):
    places = [GpuBackend(f"s{p}", SimDevice(backend=f"s{p}")) for p in range(pieces)]
    place, n = grid.make(f"grid of {pieces} by degree", places, (pieces, 1), "degree"), 1025
    i, j = edges_of("hubs", n)
    weights = j % 5 + 1 if name == "any edge" else None  # whichever is taken
    A, B = (weighted(n, i, j, x, ADDS[name][1], weights) for x in (place, "cpu"))
    starts = ((4, 3),) if name == "any value" else ((4, 3), (9, 5))
    assert added_up(A, n, place, name, None, starts) == added_up(B, n, "cpu", name, None, starts)
    assert place.last_loop.startswith(RUNS)


def test_sums_of_floats_do_not_depend_on_the_order_of_threads():
    """By pushes and pulls, and with more hubs of one block than it puts off."""
    n = 4200
    i, j = edges_of("both ways", n)
    hubs = block_cyclic(n, 2).own(0)[: 3 * 40 : 3]
    into, through = np.repeat(hubs, 2200), np.tile(np.arange(1500, 3700), len(hubs))
    i, j = np.r_[np.full(2200, 4), through, i], np.r_[np.arange(1500, 3700), into, j]
    weights = np.random.default_rng(3).random(len(i))
    found = []
    for seed in range(4):
        place = sims(2, seed=seed, preempt=1 + 20 * seed)
        A = weighted(n, i, j, place, FP64, weights)
        found.append(added_up(A, n, place, "weighted"))
        assert place.last_loop.startswith(RUNS)
    assert found[1:] == found[:1] * 3
    want = added_up(weighted(n, i, j, "cpu", FP64, weights), n, "cpu", "weighted")
    assert found[0][0] == want[0]
    np.testing.assert_allclose(found[0][1], want[1], rtol=1e-12)


def test_a_trace_counts_values_that_are_sent(monkeypatch):
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 14.0)  # as on pieces
    n, traced = 1025, []
    for place in (lagpu.backends.get("sim"), sim_grid(2)):
        A = weighted(n, *edges_of("both ways", n), place, FP64)
        with lagpu.trace() as found:
            added_up(A, n, place, "path counts")
        traced.append([row for row in found.rows if row.direction])
    one, products = traced
    assert [row.reason for row in products] == [row.reason for row in one]
    assert {row.direction for row in products} == {"push", "pull"}
    for row, same in zip(products, one, strict=True):
        # A push adds counts up itself: no pull looks at all edges to what it has found.
        assert row.direction == "pull" or row.edges == same.edges
        sent = [x for phase in row.phases for x in phase.sent if x.form == "values"]
        assert sum(x.bytes for x in sent) == 8 * row.nvals_out


@pytest.mark.parametrize("pieces", PIECES)
def test_a_piece_that_never_comes_to_a_sum(pieces, monkeypatch):
    search, whole = Paths(sims(pieces)), Paths("cpu")
    whole.run()
    fails_without(search, 1, monkeypatch)
    search.run()
    assert search.state() == whole.state()


@pytest.mark.parametrize("grid", ["2", "3", "2-degree"])
def test_counts_of_skewed_graphs_are_added_up_by_ranks(grid, monkeypatch):
    """Few vertices have most edges, so the first pull reads their counts from a table."""
    made = []

    def kernel(file, name, **macros):
        made.append(macros.get("RANKS"))
        return inner(file, name, **macros)

    inner = search.kernel
    monkeypatch.setattr(search, "kernel", kernel)
    for n in (700, 3000):
        rng = np.random.default_rng(n)
        i, j = ((n * rng.random(20 * n) ** 3).astype(int) for _ in range(2))
        A, B = (matrix(n, np.r_[i, j], np.r_[j, i], x) for x in (f"grid:{grid}:sim", "cpu"))
        for source in (0, n - 1):
            mine, theirs = (algorithms.count_shortest_paths(M, source) for M in (A, B))
            assert [x.tolist() for x in mine.to_coo()] == [x.tolist() for x in theirs.to_coo()]
    assert set(made) == {"1"}


def along(A, op):
    frontier, values = Vector(FP64, A.nrows, like=A), Vector(FP64, A.nrows, like=A)
    frontier[0] = 1
    for _ in loop(until_empty=frontier):
        values(frontier.S) << frontier
        frontier(~values.S, replace=True) << op(frontier @ A)
    return values


@pytest.mark.parametrize("name", ["min_second", "max_second"])
def test_a_sum_of_no_numbers_is_none(name):
    """A minimum takes a number before a NaN, so what it begins with is no number either."""
    n = 300
    steps = np.where(np.arange(n - 1) % 3, np.nan, 5.0)
    A = Matrix.from_coo(np.arange(n - 1), np.arange(1, n), steps, nrows=n, ncols=n, backend=sims(2))
    values = along(A, getattr(semiring, name))
    assert A.backend.last_loop.startswith(RUNS)
    assert np.array_equal(values.to_dense(), [1, *steps], equal_nan=True)
