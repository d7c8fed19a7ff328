"""Searches of many sources as one kernel: fused or not, and on cpu, the same."""

import numpy as np
import pytest
from bit_searches import (
    FUSED,
    direction,  # noqa: F401
    frontier_of,
    of_bits,  # noqa: F401
    random_graph,
)
from limits import set_limits
from loop_names import GENERATED, NO_ROOM, loop_name

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Matrix, binary, loop, semiring
from lagpu.algorithms.bfs import bfs_levels_multi
from lagpu.generators import path, star

PROGRAM = GENERATED


def numbers(A):
    """What the kernel reported of its last search: levels pushed, pulled, and chunks looked at."""
    cache = [x for name, x in A.data.store.cache.items() if name.startswith("bit-parallel search")]
    return A.backend.device.to_host(cache[-1].result)[2:5].tolist()


def assert_fused(backend):
    if backend.name != "cpu":
        assert loop_name(backend) == FUSED


def assert_as_on_cpu(found, expected):
    assert found.to("cpu").isequal(expected, check_dtype=True)
    assert found.nvals == expected.nvals


@pytest.mark.each_value
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("k", "n"), [(1, 2), (2, 31), (31, 65), (32, 1023), (33, 66), (65, 1025)])
def test_levels(backend, direction, k, n, directed):
    graph = random_graph(n, 2, directed)
    A = graph.to(backend)
    sources = [*range(k - 1), n - 1]
    levels = bfs_levels_multi(A, sources)
    assert_fused(backend)
    assert_as_on_cpu(levels, bfs_levels_multi(graph, sources))
    if backend.name != "cpu":
        pushes, pulls, *_ = numbers(A)
        assert pushes + pulls == 1 + levels.reduce("max").new().value
    if direction == "push":
        assert numbers(A)[1] == 0
    if direction == "pull":
        assert numbers(A)[1] > 0
    again = bfs_levels_multi(A, sources[::-1])  # the workspace is as it was
    assert_as_on_cpu(again, bfs_levels_multi(graph, sources[::-1]))


@pytest.mark.parametrize(("k", "n"), [(64, 1500), (130, 700), (33, 7000)])
def test_both_directions(backend, k, n):
    """Few sources are pushed, then there is much to pull, and the last ones are pushed again."""
    graph = random_graph(n, 4, directed=False)
    A = graph.to(backend)
    levels = bfs_levels_multi(A, list(range(k)))
    assert_fused(backend)
    assert_as_on_cpu(levels, bfs_levels_multi(graph, list(range(k))))
    if backend.name != "cpu":
        pushes, pulls, _ = numbers(A)
        assert pushes
        assert pulls > 1


def test_a_long_column_is_taken_in_chunks(backend, direction):
    graph = star(3000, backend="cpu")
    A = graph.to(backend)
    sources = [0, 1, 2999, *range(100, 130)]
    levels = bfs_levels_multi(A, sources)
    assert_fused(backend)
    assert_as_on_cpu(levels, bfs_levels_multi(graph, sources))
    if backend.name != "cpu":
        assert numbers(A)[2] > 1


def test_a_long_column_that_one_row_lacks_is_found_again_by_no_other(backend, direction):
    """A path of six leads to the hub; the source among its leaves has found it long before."""
    leaves, tail = np.arange(1, 1500), np.arange(1500, 1507)
    rows = np.r_[np.zeros_like(leaves), 1499, tail[:-1]]
    cols = np.r_[leaves, tail[0], tail[1:]]
    graph = Matrix.from_coo(
        np.r_[rows, cols], np.r_[cols, rows], nrows=1507, ncols=1507, backend="cpu"
    )
    levels = bfs_levels_multi(graph.to(backend), [1, 1506])
    assert_fused(backend)
    assert (levels.get(0, 0), levels.get(1, 0)) == (1, 8)
    assert_as_on_cpu(levels, bfs_levels_multi(graph, [1, 1506]))


@pytest.mark.each_value
@pytest.mark.parametrize("before", [0, 130])
@pytest.mark.parametrize("turned", [False, True])
def test_chunks_end_where_their_column_does(backend, direction, turned, before):
    """Behind the end of each long column come the entries of another one; in words of some rows."""
    lengths = [1023, 1024, 1025, 2048, 2049]
    ends = np.cumsum([len(lengths), *lengths])
    hubs, leaves, n = np.repeat(range(5), lengths), np.arange(5, ends[-1]), int(ends[-1])
    rows, cols = (leaves, hubs) if turned else (hubs, leaves)
    A = Matrix.from_coo(rows, cols, nrows=n, ncols=n, backend=backend)
    sources = [*ends[:-1], *(ends[1:] - 1)] if turned else range(5)
    sources = [*range(10, 10 + before), *sources]  # of which the last are in another word
    levels = bfs_levels_multi(A, [int(s) for s in sources])
    assert_fused(backend)
    reached = [{s} | set(cols[rows == s].tolist()) for s in sources]
    row, vertex, level = (x.tolist() for x in levels.to_coo())
    assert {*zip(row, vertex, strict=True)} == {
        (r, v) for r in range(len(reached)) for v in reached[r]
    }
    assert all(d == (v != sources[r]) for r, v, d in zip(row, vertex, level, strict=True))


def test_one_entry_is_left(backend):
    A = path(70, directed=True, backend="cpu").to(backend)
    frontier = searched(A, [5], Matrix(INT32, 1, 70, like=A), 3)[1]
    assert_fused(backend)
    assert [x.tolist() for x in frontier.to_coo()] == [[0], [8], [True]]


@pytest.mark.parametrize("dtype", [INT32, INT64, FP64, BOOL])
def test_many_levels_and_their_types(backend, dtype):
    """More bits of a depth than `bitmap_expand` keeps at hand."""
    A = path(70, backend="cpu").to(backend)
    levels = searched(A, [0, 69, 30], Matrix(dtype, 3, 70, like=A))[0]
    assert_fused(backend)
    expected = searched(A.to("cpu"), [0, 69, 30], Matrix(dtype, 3, 70, backend="cpu"))[0]
    assert_as_on_cpu(levels, expected)


def searched(A, sources, levels, times=None, semi=semiring.any_pair, frontier=None):
    frontier = frontier_of(A, sources) if frontier is None else frontier
    for depth in loop(until_empty=frontier, times=times):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semi(frontier @ A)
    return levels, frontier


def searched_behind(A, sources, levels, times=None):
    frontier = frontier_of(A, sources)
    for depth in loop(until_empty=frontier, times=times):
        frontier(~levels.S, replace=True) << semiring.lor_land(frontier @ A.T)
        levels(frontier.S) << depth
    return levels, frontier


def searched_twice(A, sources, levels, times=None):
    frontier, reached = frontier_of(A, sources), Matrix(BOOL, *levels.shape, like=A)
    for depth in loop(until_empty=frontier, times=times):
        reached(frontier.S) << True
        levels(frontier.S) << depth
        frontier(~reached.S, replace=True) << semiring.any_pair(frontier @ A)
    return levels, reached


def searched_turned(A, sources, levels):
    frontier = frontier_of(A, sources)
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A.T)
    return levels


def search_that_raises(frontier, levels, other):
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        levels(other.S) << depth


@pytest.mark.parametrize("times", [0, 1, 2, 3, 50])
@pytest.mark.parametrize("search", [searched, searched_behind, searched_twice])
def test_times(backend, search, times):
    graph = random_graph(70, 2, directed=True)
    A, sources = graph.to(backend), [3, 0, 69]
    live = search(A, sources, Matrix(INT32, 3, 70, like=A), times)
    if times:
        assert_fused(backend)
    plain = search(graph, sources, Matrix(INT32, 3, 70, like=graph), times)
    for found, expected in zip(live, plain, strict=True):
        assert_as_on_cpu(found, expected)


@pytest.mark.parametrize("search", [searched, searched_behind, searched_twice])
@pytest.mark.parametrize("times", [None, 2])
def test_what_the_levels_have_before(backend, search, times):
    """Entries there are stay and mask; the sources' own are assigned again."""
    graph = random_graph(70, 2, directed=False)
    sources = [3, 0, 69]

    def run(A):
        levels = Matrix.from_coo([0, 0, 1, 2], [3, 5, 8, 60], [7, 8, 9, 6], INT32,
                                 nrows=3, ncols=70, like=A)  # fmt: skip
        return search(A, sources, levels, times)

    live, plain = run(graph.to(backend)), run(graph)
    assert_fused(backend)
    for found, expected in zip(live, plain, strict=True):
        assert_as_on_cpu(found, expected)


def test_a_frontier_of_many_entries(backend):
    """A block with words, some of them at vertices without predecessors."""
    graph = path(200, directed=True, backend="cpu")

    def run(A):
        frontier = Matrix(BOOL, 2, 200, like=A)
        frontier(~frontier.S) << True
        keep = Matrix.from_coo([0, 0, 1], [0, 7, 100], nrows=2, ncols=200, like=A)
        frontier(keep.S, replace=True) << True
        return searched(A, None, Matrix(INT32, 2, 200, like=A), frontier=frontier)[0]

    live = run(graph.to(backend))
    assert_fused(backend)
    assert_as_on_cpu(live, run(graph))


def test_few_triplets_are_what_they_were(backend):
    """A wide matrix of at most one entry a row is a block at once; twice one place is not."""
    A = Matrix.from_coo([2, 0, 1], [7, 9, 7], [5, 6, 7], nrows=3, ncols=70, backend=backend)
    assert [x.tolist() for x in A.to_coo()] == [[0, 1, 2], [9, 7, 7], [6, 7, 5]]
    with pytest.raises(lagpu.errors.InvalidValue, match="twice"):
        Matrix.from_coo([1, 1], [7, 7], [3, 4], nrows=3, ncols=70, backend=backend)
    assert Matrix.from_coo([1, 1], [7, 7], nrows=3, ncols=70, backend=backend).nvals == 1
    both = {"nrows": 3, "ncols": 70, "backend": backend, "dup_op": binary.plus}
    assert Matrix.from_coo([1, 1], [7, 7], [3, 4], **both).get(1, 7) == 7


def test_no_edges(backend):
    A = Matrix(BOOL, 40, 40, backend=backend)
    levels = bfs_levels_multi(A, [3, 39])
    assert sorted(zip(*(x.tolist() for x in levels.to_coo()), strict=True)) == [
        (0, 3, 0),
        (1, 39, 0),
    ]


def test_values_that_do_not_vary_are_fused(backend):
    graph = random_graph(70, 2, directed=True)
    for semi, dtype in ((semiring.min_first, INT32), (semiring.any_pair, FP64)):
        A = graph.to(backend)
        frontier = frontier_of(A, [3, 0], dtype=dtype)
        live = searched(A, [3, 0], Matrix(INT32, 2, 70, like=A), 2, semi, frontier)
        assert_fused(backend)
        frontier = frontier_of(graph, [3, 0], dtype=dtype)
        plain = searched(graph, [3, 0], Matrix(INT32, 2, 70, like=graph), 2, semi, frontier)
        for found, expected in zip(live, plain, strict=True):
            assert_as_on_cpu(found, expected)


def test_columns_alone_and_transposed(backend):
    graph = random_graph(70, 2, directed=True)
    A, levels = graph.to(backend), Matrix(INT32, 3, 70, backend="cpu")
    expected = searched(graph, [3, 0, 69], levels)[0]
    turned = graph.T.new().to(backend)
    found = searched_turned(turned, [3, 0, 69], Matrix(INT32, 3, 70, backend=backend))
    assert_fused(backend)
    assert_as_on_cpu(found, expected)
    if backend.name == "cpu":
        return
    A.orientation = "csc"
    assert_as_on_cpu(bfs_levels_multi(A, [3, 0, 69]), expected)
    assert loop_name(backend) == PROGRAM  # it pulls, and needs no rows


def test_what_does_not_fit_runs_as_it_is_written(backend, monkeypatch):
    if backend.name == "cpu":
        pytest.skip("cpu has no blocks")
    A = path(40, backend="cpu").to(backend)
    sources = frontier_of(A, [3, 0])
    levels = Matrix(INT32, 2, 40, like=A)
    for asked in ("free_bytes", "pooled_bytes"):
        monkeypatch.setattr(backend.device, asked, lambda: 6000)  # enough for its statements
    searched(A, None, levels, 2, frontier=sources)
    assert backend.last_loop == NO_ROOM


def test_traced_and_eager_loops(backend):
    graph = random_graph(70, 2, directed=True)
    A, expected = graph.to(backend), bfs_levels_multi(graph, [3, 0])
    with lagpu.trace() as trace:
        traced = bfs_levels_multi(A, [3, 0])
    assert_as_on_cpu(traced, expected)
    assert len(trace.rows) == 2 * (int(expected.reduce("max").new().value) + 1)
    with lagpu.eager():
        assert_as_on_cpu(bfs_levels_multi(A, [3, 0]), expected)
    if backend.name != "cpu":
        assert backend.last_loop == "eager: inside lagpu.eager()"


def test_a_body_that_raises_has_done_what_stood_before(backend):
    A = path(10, backend="cpu").to(backend)
    frontier, levels = frontier_of(A, [3]), Matrix(INT32, 1, 10, like=A)
    other = Matrix(INT32, 1, 11, like=A)
    with pytest.raises(lagpu.errors.DimensionMismatch):
        search_that_raises(frontier, levels, other)
    assert (levels.nvals, levels.get(0, 3)) == (1, 0)


@pytest.mark.each_value
@pytest.mark.parametrize("ranks", ["of use", "of no use", "no memory"])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("k", [5, 64, 70])
def test_ranks(backend, monkeypatch, direction, ranks, directed, k):
    """The order of the words that a pull looks at changes nothing."""
    if backend.name == "cpu":
        pytest.skip("cpu has no ranks")
    from lagpu.backends.gpu.storage import workspaces

    set_limits(monkeypatch, cached=0 if ranks == "of no use" else 1 << 30)
    if ranks == "no memory":
        monkeypatch.setattr(workspaces, "has_free", lambda device, nbytes: False)
    graph = random_graph(1025, 5, directed)
    A = graph.to(backend)
    sources = list(range(0, 10 * k, 10))
    levels = bfs_levels_multi(A, sources)
    assert_fused(backend)
    assert_as_on_cpu(levels, bfs_levels_multi(graph, sources))
    made = [x for name, x in A.data.store.cache.items() if name.startswith("ranks")]
    assert [x.idx is not None for x in made] == [ranks == "of use"]
    if ranks == "of use":
        frontier_edges = np.bincount(graph.to_coo()[0])
        assert frontier_edges[A.backend.device.to_host(made[0].rank) == 0] == frontier_edges.max()


def test_ranks_ask_for_more_than_they_take(backend, monkeypatch):
    """Also where there are few entries and many rows, so that words are most of it."""
    if backend.name == "cpu":
        pytest.skip("cpu has no ranks")
    from lagpu.backends.gpu.storage import workspaces

    asked = []
    monkeypatch.setattr(workspaces, "has_free", lambda device, nbytes: asked.append(nbytes) or True)
    A = path(600, backend=backend)
    bfs_levels_multi(A, list(range(300)))
    (made,) = (x for name, x in A.data.store.cache.items() if name.startswith("ranks"))
    assert asked[0] > 2 * workspaces.nbytes_of(made)


def test_chunks_that_find_the_same_bit_count_it_once(backend, monkeypatch):
    """Every entry of a long column leads to it, and different warps look at the parts of it."""
    if backend.name == "cpu":
        pytest.skip("cpu has no chunks")
    if backend.name == "sim":
        from lagpu.backends.gpu.backend import GpuBackend
        from lagpu.backends.gpu.device.sim import SimDevice

        backend = GpuBackend("sim", SimDevice(preempt=1, seed=0))  # warps give way at every step
    monkeypatch.setattr("lagpu.backends.gpu.fused.search_many.SEARCH_PUSH_COST", 1 << 31)
    n = 5000
    leaves = np.arange(2, n)
    rows, cols = np.r_[np.zeros(n - 2, int), leaves], np.r_[leaves, np.ones(n - 2, int)]
    A = Matrix.from_coo(rows, cols, nrows=n, ncols=n, backend=backend)
    with lagpu.trace() as t:
        bfs_levels_multi(A, [0])
    products = [row.nvals_out for row in t.rows if row.method == "matrix_mxm"]
    assert products == [n - 2, 1, 0]


def test_batches_with_most_entries_come_first(backend):
    """The last of some words is a batch of its own, and long columns do not count."""
    if backend.name == "cpu":
        pytest.skip("cpu has no batches")
    from lagpu.backends.gpu.storage.workspaces import batches

    lengths = np.r_[np.full(32, 4), np.full(32, 16), np.full(33, 8)]
    lengths[3] = 1200
    A = Matrix.from_csc(
        np.r_[0, np.cumsum(lengths)],
        np.concatenate([np.arange(x) for x in lengths]),
        True,
        nrows=1200,
        backend=backend,
    )
    to_host = backend.device.to_host
    assert to_host(batches(A.data.csc(), 1)).tolist() == [1, 2, 0, 3]
    assert to_host(batches(A.data.csc(), 2)).tolist() == [2, 3, 4, 5, 0, 1, 6]


def test_a_hint_is_counted_where_it_is_looked_at(place, monkeypatch):
    """Vertex 0, which all others are found by: of each of them nothing else is looked at."""
    monkeypatch.setattr("lagpu.backends.gpu.fused.search_many.SEARCH_PUSH_COST", 1 << 31)  # pull
    A = star(40, backend=place)
    with lagpu.trace() as t:
        bfs_levels_multi(A, [1])
    products = [row for row in t.rows if row.method == "matrix_mxm"]
    assert [row.direction for row in products] == ["pull"] * 3
    assert products[1].edges == 38
