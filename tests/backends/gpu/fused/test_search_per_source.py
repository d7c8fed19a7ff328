"""Searches with values, each row by itself: fused or not, and on cpu, the same."""

import numpy as np
import pytest
from constant_loops import with_bits
from graphs import AWKWARD, both_ways, matrix
from hypothesis import strategies as st
from loop_names import GENERATED, NO_ROOM, PER_SOURCE, loop_name
from per_source_loops import (
    against_the_edges,
    behind,
    empty,
    four_assigned,
    frontier_of,
    levels_alone,
    levels_and_values,
    searched,
    three_assigned,
)
from per_source_searches import assert_as_on_cpu, random_graph
from strategies import for_all

import lagpu
from lagpu import BOOL, FP32, FP64, INT32, INT64, Matrix, check, semiring
from lagpu.algorithms.betweenness import count_paths
from lagpu.algorithms.bfs import bfs_parents_multi
from lagpu.generators import grid2d, path, star

FUSED = PER_SOURCE
PROGRAM = GENERATED


def tuned(monkeypatch, backend, **constants):
    if backend.name != "cpu":
        from lagpu.backends.gpu.fused import search_many

        for name, value in constants.items():
            monkeypatch.setattr(search_many, name, value)


@pytest.fixture
def per_source(backend, monkeypatch):
    """Whatever the graph."""
    tuned(monkeypatch, backend, MOST_DEGREE=1 << 20)


def assert_fused(backend):
    if backend.name != "cpu":
        assert loop_name(backend) == FUSED


def compared(backend, graph, *args, **options):
    """Search on the backend and on cpu: what both find is the same; returned as cpu has it."""
    live, plain = (searched(A, *args, **options) for A in (graph.to(backend), graph))
    for found, expected in zip(live, plain, strict=True):
        assert_as_on_cpu(found, expected)
    return plain


# ---- fused, and the answer of cpu


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("k", "n"),
    [(2, 31), (2, 32), (2, 33), (31, 1023), (33, 1025), (64, 130), (70, 200), (300, 620)],
)
def test_paths(backend, per_source, directed, k, n):
    graph = random_graph(n, 2, directed)
    sources = [*range(k - 1), n - 1]
    live, plain = count_paths(graph.to(backend), sources), None
    assert_fused(backend)
    plain = count_paths(graph, sources)
    for found, expected in zip(live, plain, strict=True):
        assert_as_on_cpu(found, expected)


@pytest.mark.each_value
@pytest.mark.parametrize("solo", [0, 1, 5, 2048])
@pytest.mark.parametrize("look", [0, 1])
def test_levels_that_shared_memory_does_not_hold(backend, per_source, monkeypatch, solo, look):
    """Wide levels go on in the list behind, each behind the one before."""
    tuned(monkeypatch, backend, SOLO=solo, LOOK=look, EARLY=9 * look)
    for graph in (grid2d(20, 9, backend="cpu"), random_graph(300, 3, directed=True)):
        live = count_paths(graph.to(backend), [0, 77, 150])
        assert_fused(backend)
        for found, expected in zip(live, count_paths(graph, [0, 77, 150]), strict=True):
            assert_as_on_cpu(found, expected)


def test_a_device_of_little_shared_memory(backend, per_source, monkeypatch):
    """Lists in shared memory are as long as it allows; more is refused at the launch."""
    if backend.name == "cpu":
        pytest.skip("cpu has no shared memory")
    monkeypatch.setattr(backend.device, "dynamic_shared_bytes", 1000)
    graph = random_graph(130, 3, directed=True)
    live = count_paths(graph.to(backend), [0, 77])
    assert_fused(backend)
    for found, expected in zip(live, count_paths(graph, [0, 77]), strict=True):
        assert_as_on_cpu(found, expected)


@pytest.mark.parametrize(("width", "leaves"), [(40, 0), (2, 2100)])
def test_vertices_of_many_edges(backend, per_source, width, leaves):
    """Several in each of some levels: a warp takes one, or the block."""
    layer = np.arange(width)
    rows = [np.repeat(layer, width) + d * width for d in range(4)]
    cols = [np.tile(layer, width) + (d + 1) * width for d in range(4)]
    rows.append(np.repeat(np.arange(5 * width), leaves))
    cols.append(5 * width + np.arange(5 * width * leaves))
    n = 5 * width * (1 + leaves)
    graph = Matrix.from_coo(*map(np.concatenate, (rows, cols)), nrows=n, ncols=n, backend="cpu")
    entries = [(0, 0, 1), (0, 1, 2), (1, width, 1), (2, n - 1, 1)]
    levels, *_ = compared(backend, graph, entries, 3, semiring.plus_first)
    assert_fused(backend)
    assert levels.reduce("max").new().value >= 4


def test_a_hub(backend, per_source):
    wheel = star(4000, backend="cpu")
    compared(backend, wheel, [(0, 0, 1), (1, 1, 1), (2, 3999, 2)], 3, semiring.plus_first)
    assert_fused(backend)


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, per_source, name):
    n, edges = AWKWARD[name]
    for graph in (matrix(n, edges, "cpu"), matrix(n, both_ways(edges), "cpu")):
        sources = list(range(min(n, 4)))
        for found, expected in zip(
            count_paths(graph.to(backend), sources), count_paths(graph, sources), strict=True
        ):
            assert found.to("cpu").isequal(expected, check_dtype=True)
        if n >= 8:
            assert_fused(backend)


SEMIRINGS = [
    ("plus_times", INT64),
    ("plus_times", FP64),
    ("min_plus", INT64),
    ("max_plus", FP64),
    ("min_times", FP32),
    ("plus_pair", INT32),
    ("min_secondi", INT64),
    ("max_firsti", INT64),
]


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize(("name", "dtype"), SEMIRINGS)
def test_semirings(backend, per_source, name, dtype):
    """Weights, negative ones too; sums of whole numbers are exact in whatever order."""
    semi = getattr(semiring, name)
    graph = random_graph(60, 2, directed=True, dtype=dtype)
    entries = [(0, 3, 2), (0, 20, -5), (1, 50, 3), (4, 3, 1), (4, 4, 0)]
    compared(backend, graph, entries, 5, semi, dtype)
    assert_fused(backend)
    compared(backend, graph, entries, 5, semi, dtype, times=2)
    assert_fused(backend)


@pytest.mark.parametrize("name", ["min_second", "max_second"])
def test_no_number(backend, per_source, name):
    """NaN gives way to any number, but stays where it is alone."""
    nan, inf = np.nan, np.inf
    values = np.array([nan, nan, 2, nan, inf, -inf])
    rows, cols = [0, 0, 1, 2, 0, 0], [1, 2, 3, 3, 4, 5]
    graph = Matrix.from_coo(rows, cols, values, nrows=8, ncols=8, backend="cpu")
    live, plain = (
        searched(A, [(0, 0, 1), (1, 2, 1)], 2, getattr(semiring, name))[1].to_coo()
        for A in (graph.to(backend), graph)
    )
    assert_fused(backend)
    for found, expected in zip(live, plain, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [BOOL, INT32, FP64])
@pytest.mark.parametrize("bits", [0, 1])
def test_the_first_product_stands(backend, per_source, monkeypatch, dtype, bits):
    """With `any` each value is one of those that a predecessor gives."""
    with_bits(monkeypatch, backend, bits)
    graph = random_graph(60, 2, directed=True, dtype=INT32)
    entries = [(0, 3, 1), (1, 50, 1), (1, 3, 1)]
    levels, values, _ = searched(graph.to(backend), entries, 2, semiring.any_second, dtype)
    assert_fused(backend)
    expected = searched(graph, entries, 2, semiring.any_second, dtype)[0]
    assert_as_on_cpu(levels, expected)
    weights = {(i, j): z for i, j, z in zip(*(x.tolist() for x in graph.to_coo()), strict=True)}
    level = {(s, v): d for s, v, d in zip(*(x.tolist() for x in expected.to_coo()), strict=True)}
    for s, v, z in zip(*(x.tolist() for x in values.to_coo()), strict=True):
        given = [
            dtype.numpy.type(weight)
            for (i, j), weight in weights.items()
            if j == v and level.get((s, i)) == level[s, v] - 1
        ]
        assert level[s, v] == 0 or z in given


@pytest.mark.parametrize("bits", [0, 1])
def test_parents(backend, per_source, monkeypatch, bits):
    with_bits(monkeypatch, backend, bits)
    graph = random_graph(300, 2, directed=False)
    A, sources = graph.to(backend), [7, 0, 299, 100]
    parents = bfs_parents_multi(A, sources)
    assert_fused(backend)
    for row, source in enumerate(sources):
        check.check_parents(A, source, parents[row, :].new())


@pytest.mark.parametrize("search", [levels_and_values, against_the_edges])
@pytest.mark.parametrize("times", [1, 2, 3, 50])
def test_times(backend, per_source, search, times):
    """The frontier that is left has its values."""
    graph = random_graph(70, 2, directed=True)
    entries = [(0, 3, 1), (1, 0, 2), (2, 69, 3)]
    compared(backend, graph, entries, 3, semiring.plus_first, times=times, search=search)
    assert_fused(backend)


def test_against_the_edges(backend, per_source):
    graph = random_graph(70, 2, directed=True, dtype=INT64)
    entries = [(0, 3, 1), (1, 0, 2), (40, 69, 3)]
    args = entries, 41, semiring.plus_times
    assert graph.nrows < 2 * 41  # no block is that high
    compared(backend, graph, *args, search=against_the_edges)
    args = entries[:2], 35, semiring.plus_times
    compared(backend, graph, *args, search=against_the_edges)
    assert_fused(backend)
    A = graph.to(backend)
    if backend.name != "cpu":
        A.orientation = "csc"
        live = searched(A, entries[:2], 35, semiring.plus_times, search=against_the_edges)
        assert_fused(backend)
        plain = searched(graph, entries[:2], 35, semiring.plus_times, search=against_the_edges)
        assert_as_on_cpu(live[1], plain[1])
        searched(A, entries[:2], 35, semiring.plus_times)
        assert loop_name(backend) == PROGRAM  # it pulls, and needs no rows


@pytest.mark.parametrize("times", [None, 2])
@pytest.mark.parametrize("full", [False, True])
def test_entries_there_before(backend, per_source, times, full):
    """They stay and mask; the sources' own are assigned again; so it is where all is masked."""
    graph = random_graph(70, 2, directed=False)

    def run(A):
        f = frontier_of(A, [(0, 3, 1), (0, 9, 4), (2, 69, 2)], 3, FP64)
        levels, reached = empty(INT64, f), empty(INT32, f)
        values = frontier_of(A, [(0, 3, 9), (0, 5, 8), (1, 8, 7), (2, 60, 6)], 3, FP32)
        if full:
            values(~values.S) << 5
        reached(values.S) << 3
        return three_assigned(A, f, levels, values, reached, semiring.plus_first, times)

    live, plain = run(graph.to(backend)), run(graph)
    assert_fused(backend)
    for found, expected in zip(live, plain, strict=True):
        assert_as_on_cpu(found, expected)


def test_a_frontier_of_many_entries(backend, per_source):
    """A block with words, all of them or some; rows without an entry; one value, or many."""
    graph = random_graph(130, 2, directed=True)

    def run(A, wide, iso):
        f = frontier_of(A, [(0, 3, 1), (2, 129, 2)], 64, FP64)
        f(~f.S) << 3
        if not wide:
            keep = Matrix.from_coo([0, 0, 1, 63], [0, 7, 100, 1], nrows=64, ncols=130, like=A)
            f(keep.S, replace=True) << f
        if iso:
            f = f.apply("one").new()
        return levels_and_values(A, f, empty(INT32, f), empty(FP64, f), semiring.plus_first)

    for how in ((False, False), (False, True), (True, False)):
        live, plain = run(graph.to(backend), *how), run(graph, *how)
        assert_fused(backend)
        for found, expected in zip(live, plain, strict=True):
            assert_as_on_cpu(found, expected)


def test_an_empty_frontier_and_no_edges(backend, per_source):
    A = Matrix(BOOL, 40, 40, backend="cpu")
    compared(backend, A, [], 3, semiring.plus_first)
    compared(backend, A, [(0, 3, 1), (2, 39, 1)], 3, semiring.plus_first)
    assert_fused(backend)


def test_values_that_nothing_is_assigned(backend, per_source):
    graph = random_graph(70, 2, directed=True)

    def run(A):
        f = frontier_of(A, [(0, 3, 1), (1, 5, 1)], 2, FP64)
        return levels_alone(A, f, empty(INT32, f), semiring.plus_first)

    assert_as_on_cpu(run(graph.to(backend))[0], run(graph)[0])
    assert_fused(backend)


def test_one_known_value_is_assigned(backend, per_source):
    """A search of a block assigns no frontier; the first one has values of its own."""
    graph = random_graph(70, 2, directed=True)
    compared(backend, graph, [(0, 3, 4), (0, 5, 6), (1, 8, 1)], 2, semiring.any_pair)
    assert_fused(backend)


POOL = [("plus_first", FP64), ("plus_times", INT64), ("min_plus", INT64), ("min_secondi", INT64)]


@for_all(cpu=20, compiled=40)
def test_random_loops(backend, draw):
    with pytest.MonkeyPatch.context() as patch:
        solo = draw(st.sampled_from([1, 4, 100]), label="solo")
        tuned(patch, backend, MOST_DEGREE=1 << 20, SOLO=solo, EARLY=solo)
        check_random_loop(backend, draw)


def check_random_loop(backend, draw):
    """The fused loop and its statements one by one, on one backend."""
    k = draw(st.integers(2, 40), label="k")
    n = draw(st.integers(2 * k, 2 * k + 70), label="n")
    name, dtype = draw(st.sampled_from(POOL), label="semiring")
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=3 * n), label="edges")
    place = st.tuples(st.integers(0, k - 1), vertex)
    value = st.integers(-2, 5)
    first = draw(st.dictionaries(place, value, max_size=2 * k), label="frontier")
    before = draw(st.dictionaries(place, value, max_size=5), label="levels")
    times = draw(st.none() | st.integers(1, 4), label="times")
    A = matrix(n, [(*e, q % 5) for q, e in enumerate(edges)], backend, weights="whole")

    def run():
        f = frontier_of(A, [(*at, z) for at, z in first.items()], k, dtype)
        levels = frontier_of(A, [(*at, z) for at, z in before.items()], k, INT32)
        return levels_and_values(A, f, levels, empty(dtype, f), getattr(semiring, name), times)

    fused = run()
    if first:
        assert_fused(backend)
    with lagpu.eager():
        statements = run()
    for found, expected in zip(fused, statements, strict=True):
        assert found.isequal(expected, check_dtype=True)
        assert found.nvals == expected.nvals


# ---- what is not searched so


def test_what_does_not_fit_is_a_program(backend):
    graph = random_graph(70, 2, directed=True)
    said = []

    def run(A, search, semi, dtype, *more):
        f = frontier_of(A, [(0, 3, 1), (1, 5, 1)], 2, dtype)
        return search(A, f, *(empty(dtype, f) for _ in range(len(more))), semi)

    cases = [
        (behind, semiring.plus_first, FP64, 1),
        (four_assigned, semiring.plus_first, FP64, 1, 2, 3, 4),
        (levels_and_values, semiring.lxor_first, BOOL, 1, 2),
    ]
    for case in cases:
        for found, expected in zip(run(graph.to(backend), *case), run(graph, *case), strict=True):
            assert_as_on_cpu(found, expected)
        said.append(loop_name(backend))
    dense = random_graph(70, 20, directed=True)
    compared(backend, dense, [(0, 3, 1), (1, 5, 1)], 2, semiring.plus_first)
    said.append(loop_name(backend))
    compared(backend, graph, [(0, 3, 1)], 1, semiring.plus_first)  # one row has none beside it
    said.append(loop_name(backend))
    weighted = random_graph(70, 2, directed=True, dtype=FP64)
    compared(backend, weighted, [(0, 3, 1)], 2, semiring.plus_times, INT64)
    said.append(loop_name(backend))
    assert backend.name == "cpu" or said == [PROGRAM] * len(said)


def test_no_room(backend, monkeypatch):
    if backend.name == "cpu":
        pytest.skip("cpu has no blocks")
    A = path(40, backend="cpu").to(backend)
    f = frontier_of(A, [(0, 3, 1), (1, 5, 1)], 2, FP64)
    levels, paths = empty(INT32, f), empty(FP64, f)
    for asked in ("free_bytes", "pooled_bytes"):
        monkeypatch.setattr(backend.device, asked, lambda: 20000)  # enough for its statements
    levels_and_values(A, f, levels, paths, semiring.plus_first, 2)
    assert backend.last_loop == NO_ROOM
