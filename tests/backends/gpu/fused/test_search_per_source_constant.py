"""Searches whose frontier has one known value, each row by itself: what is assigned, and when."""

import pytest
from constant_loops import (
    APART,
    LOOPS,
    assert_per_source,
    behind,
    frontier_of,
    in_front,
    tuned,
    with_bits,
)
from graphs import AWKWARD, both_ways, matrix
from hypothesis import strategies as st
from per_source_loops import empty
from per_source_searches import assert_as_on_cpu, random_graph
from strategies import for_all

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, UINT64, Matrix, generators, semiring
from lagpu.algorithms.bfs import bfs_levels_multi


@pytest.fixture
def per_source(backend, monkeypatch):
    """Whatever the graph."""
    tuned(monkeypatch, backend, MOST_DEGREE=1 << 20, LEVELS=0)


def compared(backend, graph, search, entries, k, *args, dtype=INT32):
    """Search on the backend and on cpu: what both find is the same; returned as cpu has it."""

    def run(A):
        return search(A, frontier_of(A, entries, k), Matrix(dtype, k, A.nrows, like=A), *args)

    live, plain = run(graph.to(backend)), run(graph)
    for found, expected in zip(live, plain, strict=True):
        assert_as_on_cpu(found, expected)
    return plain


# ---- the answer of cpu


@pytest.mark.each_value
@pytest.mark.parametrize("bits", [0, 1])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("k", "n"), [(2, 31), (2, 32), (2, 33), (33, 1023), (65, 1025), (32, 70), (70, 200)]
)
def test_levels(backend, per_source, monkeypatch, directed, k, n, bits):
    with_bits(monkeypatch, backend, bits)
    graph = random_graph(n, 2, directed)
    sources = [*range(k - 1), n - 1]
    found = bfs_levels_multi(graph.to(backend), sources)
    assert_per_source(backend)
    assert_as_on_cpu(found, bfs_levels_multi(graph, sources))


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, per_source, name):
    n, edges = AWKWARD[name]
    for graph in (matrix(n, edges, "cpu"), matrix(n, both_ways(edges), "cpu")):
        sources = list(range(min(n, 4)))
        found = bfs_levels_multi(graph.to(backend), sources)
        assert found.to("cpu").isequal(bfs_levels_multi(graph, sources), check_dtype=True)
        if n >= 8:
            assert_per_source(backend)


@pytest.mark.each_value
@pytest.mark.parametrize("times", [None, 0, 1, 2, 3, 50])
@pytest.mark.parametrize("search", LOOPS)
def test_times(backend, per_source, monkeypatch, search, times):
    """The frontier that is left has the one value, in its type."""
    graph = random_graph(70, 2, directed=True)
    for bits in (1, 0):
        with_bits(monkeypatch, backend, bits)
        *_, left = compared(backend, graph, search, [(0, 3), (1, 0), (2, 69)], 3, times)
        if times != 0:
            assert_per_source(backend)
        assert (left.nvals > 0) == (times in (0, 1, 2, 3))


@pytest.mark.parametrize("search", LOOPS)
def test_sources_again_and_rows_without(backend, per_source, search):
    """Two rows from one vertex, a row from two, one from neighbours, and rows from none."""
    graph = random_graph(70, 2, directed=False)
    entries = [(0, 3), (1, 3), (2, 7), (2, 50), (5, 0), (5, 1)]
    compared(backend, graph, search, entries, 8)
    assert_per_source(backend)
    compared(backend, graph, search, [], 3)
    compared(backend, Matrix(BOOL, 40, 40, backend="cpu"), search, [(0, 3), (2, 39)], 3)
    assert_per_source(backend)


@pytest.mark.each_value
@pytest.mark.parametrize("times", [None, 1, 3])
@pytest.mark.parametrize("search", LOOPS)
@pytest.mark.parametrize("bits", [0, 1])
def test_entries_there_before(backend, per_source, monkeypatch, search, times, bits):
    """They stay and mask; the sources' own are assigned again if they are at all."""
    with_bits(monkeypatch, backend, bits)
    graph = random_graph(70, 2, directed=False)

    def run(A):
        levels = Matrix.from_coo(
            [0, 0, 1, 2, 2], [3, 5, 8, 60, 61], [7, 8, 9, 6, 5], INT32, nrows=3, ncols=70, like=A
        )
        return search(A, frontier_of(A, [(0, 3), (1, 0), (2, 69)], 3), levels, times)

    for found, expected in zip(run(graph.to(backend)), run(graph), strict=True):
        assert_as_on_cpu(found, expected)
    assert_per_source(backend)


def test_all_is_excluded(backend, per_source):
    graph = random_graph(70, 2, directed=False)

    def run(A, search):
        levels = Matrix(INT32, 3, 70, like=A)
        levels(~levels.S) << 5
        return search(A, frontier_of(A, [(0, 3), (1, 0)], 3), levels)

    for search in (in_front, behind):
        for found, expected in zip(run(graph.to(backend), search), run(graph, search), strict=True):
            assert_as_on_cpu(found, expected)
        assert_per_source(backend)


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("dtype", [BOOL, INT32, INT64, UINT64, FP64])
def test_types_of_the_levels(backend, per_source, dtype):
    graph = generators.path(150, backend="cpu")
    for search in LOOPS:
        compared(backend, graph, search, [(0, 0), (1, 149), (2, 70)], 3, 90, dtype=dtype)
        assert_per_source(backend)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("search", LOOPS)
def test_a_frontier_of_many_entries(backend, per_source, search, wide):
    """A block with words, all of them or some."""
    graph = random_graph(130, 2, directed=True)

    def run(A):
        f = Matrix(BOOL, 64, 130, like=A)
        f(~f.S) << True
        if not wide:
            keep = Matrix.from_coo([0, 0, 1, 63], [0, 7, 100, 1], nrows=64, ncols=130, like=A)
            f(keep.S, replace=True) << True
        return search(A, f, empty(INT32, f), 3)

    for found, expected in zip(run(graph.to(backend)), run(graph), strict=True):
        assert_as_on_cpu(found, expected)
    assert_per_source(backend)


@pytest.mark.parametrize(
    ("semi", "dtype", "value"),
    [
        (semiring.any_pair, FP64, 7),  # the first frontier has a value of its own
        (semiring.any_pair, BOOL, 0),
        (semiring.min_first, INT32, -3),
        (semiring.max_second, INT64, 5),
        (semiring.lor_land, BOOL, 1),
    ],
    ids=str,
)
def test_the_frontier_that_is_left(backend, per_source, semi, dtype, value):
    """It has the products' value, and a search goes on from it."""
    graph = random_graph(70, 2, directed=True)

    def run(A):
        f = frontier_of(A, [(0, 3), (1, 0)], 2, dtype, value)
        levels, left = in_front(A, f, empty(INT32, f), 1, semi)
        said.append(A.backend.last_loop)
        values = left.dup()
        levels, left = in_front(A, left, levels, 2, semi)
        said.append(A.backend.last_loop)
        return levels, values, left, left.reduce("plus").new()

    said = []
    live = run(graph.to(backend))
    if backend.name != "cpu":
        assert all(why.startswith(APART) for why in said), said
    *plain, total = run(graph)
    for found, expected in zip(live, plain, strict=False):
        assert_as_on_cpu(found, expected)
    assert live[3].value == total.value


def test_values_that_differ_are_searched_as_before(backend, per_source):
    """The first frontier's values are not read."""
    graph = random_graph(70, 2, directed=True)

    def run(A):
        f = Matrix.from_coo([0, 1], [3, 0], [2, 7], INT64, nrows=2, ncols=70, like=A)
        return in_front(A, f, empty(INT32, f), 2)

    for found, expected in zip(run(graph.to(backend)), run(graph), strict=True):
        assert_as_on_cpu(found, expected)
    assert_per_source(backend)


@pytest.mark.each_value
@pytest.mark.parametrize("solo", [0, 1, 5, 2048])
@pytest.mark.parametrize(("look", "bits"), [(0, 0), (1, 0), (0, 1)])
def test_levels_that_shared_memory_does_not_hold(
    backend, per_source, monkeypatch, solo, look, bits
):
    tuned(monkeypatch, backend, SOLO=solo, LOOK=look, EARLY=9 * look)
    with_bits(monkeypatch, backend, bits)
    for graph in (generators.grid2d(20, 9, backend="cpu"), random_graph(300, 3, directed=True)):
        compared(backend, graph, in_front, [(0, 0), (1, 77), (2, 150)], 3)
        assert_per_source(backend)


def test_bits_stand_in_shared_memory_where_they_fit(backend, per_source, monkeypatch):
    """Beside whole lists; not where products are summed."""
    if backend.name == "cpu":
        pytest.skip("cpu has no kernels")
    from lagpu.backends.gpu.fused import search_many

    asked, kernel = [], search_many.kernel

    def recorded(file, name, **macros):
        asked.append(macros.get("BITS", asked[-1] if asked else None))
        return kernel(file, name, **macros)

    monkeypatch.setattr(search_many, "kernel", recorded)
    graph = random_graph(1025, 2, directed=False)
    A, expected = graph.to(backend), bfs_levels_multi(graph, [3, 0])
    lists = search_many.SOLO * 2 * (8 + A.data.store.col_ptr.itemsize)
    for free, bits in ((4 * 33, "1"), (4 * 33 - 1, "0"), (0, "0")):
        monkeypatch.setattr(backend.device, "dynamic_shared_bytes", lists + free)
        assert_as_on_cpu(bfs_levels_multi(A, [3, 0]), expected)
        assert_per_source(backend)
        assert set(asked) == {bits}
        asked.clear()
    monkeypatch.setattr(backend.device, "dynamic_shared_bytes", lists + 4 * 33)
    in_front(A, frontier_of(A, [(0, 3)], 2, INT64), Matrix(INT32, 2, 1025, like=A),
             None, semiring.plus_first)  # fmt: skip
    assert_per_source(backend)
    assert set(asked) == {"0"}


def test_a_hub(backend, per_source):
    wheel = generators.star(4000, backend="cpu")
    for search in (in_front, behind):
        compared(backend, wheel, search, [(0, 0), (1, 1), (2, 3999)], 3)
        assert_per_source(backend)


@for_all(cpu=20, compiled=40)
def test_random_loops(backend, draw):
    with pytest.MonkeyPatch.context() as patch:
        solo = draw(st.sampled_from([1, 4, 100]), label="solo")
        bits = draw(st.sampled_from([0, 1]), label="bits")
        tuned(patch, backend, MOST_DEGREE=1 << 20, LEVELS=0, SOLO=solo, EARLY=solo)
        with_bits(patch, backend, bits)
        check_random_loop(backend, draw)


def check_random_loop(backend, draw):
    """The fused loop and its statements one by one, on one backend."""
    k = draw(st.integers(2, 40), label="k")
    n = draw(st.integers(2 * k, 2 * k + 70), label="n")
    search = draw(st.sampled_from(LOOPS), label="loop")
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=3 * n), label="edges")
    place = st.tuples(st.integers(0, k - 1), vertex)
    first = draw(st.sets(place, max_size=2 * k), label="frontier")
    before = draw(st.sets(place, max_size=5), label="levels")
    times = draw(st.none() | st.integers(1, 4), label="times")
    A = matrix(n, edges, backend)

    def run():
        f = frontier_of(A, sorted(first), k)
        return search(A, f, frontier_of(A, sorted(before), k, INT32, 9), times)

    fused = run()
    if first:
        assert_per_source(backend)
    with lagpu.eager():
        statements = run()
    for found, expected in zip(fused, statements, strict=True):
        assert found.isequal(expected, check_dtype=True)
        assert found.nvals == expected.nvals
