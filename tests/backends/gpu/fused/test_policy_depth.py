"""Which searches of one known value run per source: those of deep graphs, where they fit."""

import pytest
from constant_loops import (
    APART,
    OF_BITS,
    assert_of_bits,
    assert_per_source,
    frontier_of,
    in_front,
    tuned,
    turned,
)
from graphs import both_ways, matrix
from loop_names import NO_ROOM
from per_source_loops import empty
from per_source_searches import assert_as_on_cpu, random_graph

import lagpu
from lagpu import FP64, INT32, INT64, Matrix, generators, loop, semiring
from lagpu.algorithms.bfs import bfs_levels_multi


def said_of(A, sources=(3, 5)):
    bfs_levels_multi(A, list(sources))
    return A.backend.last_loop


def test_deep_and_sparse_graphs_without_hubs_run_per_source(backend):
    graphs = {
        "path": generators.path(200, backend=backend),
        "road": generators.road(50, seed=1, backend=backend),
        "random": random_graph(200, 2, directed=False).to(backend),
        "dense": generators.kronecker(8, 16, backend=backend),
        "small": generators.path(64, backend=backend),
    }
    found = {name: said_of(A) for name, A in graphs.items()}
    if backend.name != "cpu":
        deep, dense = f"{APART}: a search has more than 64 levels", graphs["dense"]
        assert found == {
            "path": deep,
            "road": deep,
            "random": f"{OF_BITS}: a search has at most 64 levels",
            "dense": f"{OF_BITS}: mean degree {dense.nvals / dense.nrows:.1f} > 8",
            "small": f"{OF_BITS}: 64 vertices have at most 64 levels",
        }
    for A in graphs.values():
        assert_as_on_cpu(bfs_levels_multi(A, [3, 5]), bfs_levels_multi(A.to("cpu"), [3, 5]))


def test_large_levels_are_shared(backend, monkeypatch):
    """Levels must be small as well as many: so many entries for each."""
    tuned(monkeypatch, backend, EDGES=3)
    A = generators.path(200, backend=backend)
    assert said_of(A) == (
        "eager: this backend runs each statement by itself"
        if backend.name == "cpu"
        else f"{APART}: a search has more than 132 levels, 398 entries / 3"
    )
    tuned(monkeypatch, backend, EDGES=2)
    assert said_of(A) == (
        "eager: this backend runs each statement by itself"
        if backend.name == "cpu"
        else f"{OF_BITS}: a search has at most 199 levels, 398 entries / 2"
    )


def test_what_is_searched_as_a_block(backend):
    A = generators.path(200, backend=backend)

    def search(k, times):
        in_front(A, frontier_of(A, [(0, 3)], k), Matrix(INT32, k, 200, like=A), times)

    search(2, 65)
    assert_per_source(backend)
    search(2, 64)  # it has no more levels than that
    assert_of_bits(backend, "at most 64 levels <= 64")
    search(1, 65)  # one row has none beside it
    assert_of_bits(backend, "only one source")


def four_numbers(A, f, a, b, c, d):
    for depth in loop(until_empty=f):
        a(f.S) << depth
        b(f.S) << 1
        c(f.S) << 2
        d(f.S) << 3
        f(~a.S, replace=True) << semiring.any_pair(f @ A)
    return a, b, c, d


def test_four_assignments(backend):
    graph = generators.path(200, backend="cpu")

    def run(A):
        return four_numbers(
            A, frontier_of(A, [(0, 3), (1, 9)], 2), *(Matrix(INT32, 2, 200, like=A) for _ in "abcd")
        )

    for found, expected in zip(run(graph.to(backend)), run(graph), strict=True):
        assert_as_on_cpu(found, expected)
    assert_of_bits(backend, "4 assignments > 3")


def test_a_matrix_is_asked_once_for_each_direction(place, monkeypatch):
    from lagpu.backends.gpu.fused import search_grid as policy

    asked = []
    search = policy.grid_search

    def recorded(body, times):
        asked.append((body.product.transpose, times))
        return search(body, times)

    monkeypatch.setattr(policy, "grid_search", recorded)
    A = generators.path(200, directed=True, backend=place)
    for _ in range(2):
        assert said_of(A) == f"{APART}: a search has more than 64 levels"
        turned(A, frontier_of(A, [(0, 150), (1, 9)], 2), Matrix(INT32, 2, 200, like=A))
        assert place.last_loop == f"{OF_BITS}: a search has at most 64 levels"
    assert asked == [(True, 64), (False, 64)]
    asked.clear()
    A = generators.path(200, backend=place)  # one direction is the other
    turned(A, frontier_of(A, [(0, 150), (1, 9)], 2), Matrix(INT32, 2, 200, like=A))
    assert said_of(A) == place.last_loop == f"{APART}: a search has more than 64 levels"
    assert asked == [(False, 64)]


def test_it_is_a_vertex_of_most_edges_that_is_asked(place):
    """Not the sources: the answer is the matrix' own, whatever asks first."""
    ring = [(v, (v + 1) % 190) for v in range(190)]
    A = matrix(200, [*both_ways(ring), (195, 196)], place)
    assert said_of(A, (195, 199)) == f"{APART}: a search has more than 64 levels"
    assert said_of(A, (0, 1)) == f"{APART}: a search has more than 64 levels"


def with_bytes(place, monkeypatch, nbytes):
    for asked in ("free_bytes", "pooled_bytes"):
        monkeypatch.setattr(place.device, asked, lambda: nbytes)


def test_without_room_it_is_a_search_of_a_block(place, monkeypatch):
    from lagpu.backends.gpu.fused import search_many

    graph = generators.path(200, backend="cpu")
    A = graph.to(place)
    levels = Matrix(INT32, 2, 200, like=A)
    f = frontier_of(A, [(0, 3), (1, 5)], 2)
    nbytes = property(lambda s: 1 << 62)
    monkeypatch.setattr(search_many.PerSourceSearch, "nbytes", nbytes)
    assert_as_on_cpu(in_front(A, f, levels)[0], bfs_levels_multi(graph, [3, 5]))
    assert place.last_loop == (
        f"{OF_BITS}: a search has more than 64 levels, "
        "but the lists of a per-source search do not fit"
    )


def test_without_room_to_ask(place, monkeypatch):
    A = generators.path(1000, backend=place)
    f, levels = frontier_of(A, [(0, 3), (1, 5)], 2), Matrix(INT32, 2, 1000, like=A)
    bfs_levels_multi(generators.path(64, backend=place), [3, 5])
    with monkeypatch.context() as patch:
        patch.setattr("lagpu.backends.gpu.fused.search_many._PROBE_BYTES", 1 << 60)
        in_front(A, f, levels)
    assert place.last_loop == f"{OF_BITS}: the search that would count the levels does not fit"
    assert said_of(A) == f"{APART}: a search has more than 64 levels"  # it may be asked later


def test_neither_fits(place, monkeypatch):
    A = generators.path(200, backend=place)
    f, levels = frontier_of(A, [(0, 3), (1, 5)], 2), Matrix(INT32, 2, 200, like=A)
    in_front(A, f, levels.dup(), 65)
    assert_per_source(place)
    with_bytes(place, monkeypatch, 27000)  # enough for its statements
    in_front(A, f, levels, 65)
    assert place.last_loop == NO_ROOM


@pytest.mark.parametrize("times", [None, 70])
@pytest.mark.parametrize("keep", [False, True])
def test_what_it_asks_for_is_counted(place, monkeypatch, keep, times):
    """`nbytes` is what is allocated: of values, if none varies, nothing."""
    from lagpu.backends.gpu.fused import search_many

    A = generators.path(300, backend=place)
    semi = semiring.plus_first if keep else semiring.any_pair
    asked, counted = [], []
    nbytes, xp = search_many.PerSourceSearch.nbytes.fget, place.device.xp

    class Reported:
        """The arrays' library; `empty` is noted."""

        def __getattr__(self, name):
            return getattr(xp, name)

        def empty(self, *args, **more):
            made = xp.empty(*args, **more)
            asked.append(made.nbytes)
            return made

    def counts(*args):
        counted.append(nbytes(*args))
        return counted[-1]

    def run():
        f = frontier_of(A, [(0, 3), (1, 5)], 2, FP64)
        asked.clear()
        in_front(A, f, empty(INT64, f), times, semi)

    run()  # what the matrix keeps is made
    assert_per_source(place)
    monkeypatch.setattr(search_many.PerSourceSearch, "nbytes", property(counts))
    monkeypatch.setattr(place.device, "xp", Reported())
    run()
    assert set(counted) == {sum(asked)}
    assert (2 * 300 * 8 in asked) == keep


# ---- traces


def test_a_trace_changes_nothing(place):
    A = generators.path(200, backend=place)
    expected, untraced = bfs_levels_multi(A, [3, 5]), place.last_loop
    with lagpu.trace() as t:
        found = bfs_levels_multi(A, [3, 5])
    assert place.last_loop == untraced == f"{APART}: a search has more than 64 levels"
    assert found.isequal(expected, check_dtype=True)
    assert [(row.level, row.formula) for row in t.rows] == [
        (None, "levels(frontier.S) << depth"),
        (None, "frontier(~levels.S, replace) << frontier any_pair A"),
    ]
    assert all("one kernel for all levels" in row.reason for row in t.rows)


def test_a_trace_that_asks_first_has_the_same_rows(place):
    """The search that tells how deep the matrix is belongs to no loop."""

    def rows(A):
        with lagpu.trace() as t:
            bfs_levels_multi(A, [3, 5])
        return [(row.level, row.formula, row.nvals_in, row.nvals_out) for row in t.rows]

    for graph in (generators.path(200, backend=place), random_graph(200, 2, directed=False)):
        A = graph.to(place)
        assert rows(A) == rows(A)


def four_levels(A, Q, W, X, Y, Z):
    for depth in loop(until_empty=Q):
        W(Q.S) << depth
        X(Q.S) << depth
        Y(Q.S) << depth
        Z(Q.S) << depth
        Q(~W.S, replace=True) << semiring.any_pair(Q @ A)


def test_a_deep_search_with_many_assignments_is_of_bits(place):
    """A thread block for each source makes three at most."""
    A = generators.path(200, backend=place)
    Q = frontier_of(A, [(0, 3), (1, 150)], 2)
    outputs = [Matrix(INT32, 2, 200, like=A) for _ in range(4)]
    four_levels(A, Q, *outputs)
    assert place.last_loop == f"{OF_BITS}: 4 assignments > 3"
    right = bfs_levels_multi(A.to("cpu"), [3, 150])
    assert all(x.to("cpu").isequal(right) for x in outputs)


def test_any_semiring_whose_products_are_one_value_runs_per_source(backend):
    """The search that measures the depth has a semiring of its own."""

    def search(A, f, levels):
        for depth in loop(until_empty=f):
            levels(f.S) << depth
            f(~levels.S, replace=True) << semiring.max_second(f @ A)

    def run(place):
        A = Matrix.from_coo(
            range(199), range(1, 200), 3, INT64, nrows=200, ncols=200, backend=place
        )
        f = Matrix.from_coo([0, 1], [0, 5], 3, INT64, nrows=2, ncols=200, backend=place)
        levels = Matrix(INT32, 2, 200, backend=place)
        search(A, f, levels)
        return levels

    found = run(backend.name)
    if backend.name != "cpu":
        assert_per_source(backend)
    assert found.to("cpu").isequal(run("cpu"))
