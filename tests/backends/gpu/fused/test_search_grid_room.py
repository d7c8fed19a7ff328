"""Grid searches whose lists fill the arrays that a frontier and its successor share."""

import numpy as np
import pytest
from searches import levels_behind

import lagpu
from lagpu import BOOL, FP64, INT32, Matrix, Vector, algorithms, check, loop, semiring
from lagpu.backends.gpu.fused import search_grid

EACH = 40  # edges of a vertex that is followed in chunks


@pytest.fixture
def pushes(monkeypatch):
    """Let searches on matrices that are made from here on only push, and find no words."""
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 0.0)
    monkeypatch.setattr(search_grid, "gamma_of", lambda *_: 0.0)


@pytest.fixture
def tight(place, monkeypatch):
    """Leave no more room for places than the kernels take, on sim, where these are few."""
    placed = place.device.limits.placed or search_grid.PLACED
    monkeypatch.setattr(search_grid, "PLACED", placed)
    return placed


def undirected(rows, cols, n, backend):
    ends = np.r_[rows, cols], np.r_[cols, rows]
    return Matrix.from_coo(*ends, True, nrows=n, ncols=n, dup_op=lagpu.binary.any, backend=backend)


def levels_first(A, frontier, levels, times):
    for depth in loop(until_empty=frontier, times=times):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)


def found(search, A, sources, times=None):
    levels, frontier = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    frontier[sources] = True
    search(A, frontier, levels, times)
    return levels.to_dense(-1).tolist(), frontier.to_coo()[0].tolist()


def pairs(m):
    """Each of `m` vertices has an edge to one more of its own."""
    return np.arange(m), m + np.arange(m)


def chunks(m):
    """Each of `m` vertices has EACH edges to as many others as there are."""
    sources = np.repeat(np.arange(m), EACH)
    return sources, m + (sources + np.tile(np.arange(EACH), m)) % m


def both(m):
    """Of `m` vertices each second one has short columns; the others are followed in chunks."""
    rows, cols = chunks(m // 2)
    short, to = pairs(m // 2)
    return np.r_[2 * rows, 2 * short + 1], np.r_[2 * cols, 2 * to + 1]


@pytest.mark.parametrize("search", [levels_first, levels_behind])
@pytest.mark.parametrize("size", [2, 100, 3000])
@pytest.mark.parametrize("made", [pairs, chunks, both])
def test_a_frontier_and_its_successor_are_all_vertices(place, pushes, tight, made, size, search):
    """Where sources are not assigned first, they are found again: by two levels, all of them."""
    A = undirected(*made(size), 2 * size, place)
    expected = found(search, A.to("cpu"), np.arange(size))
    assert set(expected[0]) == {0, 1}
    assert found(search, A, np.arange(size)) == expected
    assert place.last_loop.startswith("grid search")
    for times in (1, 2):
        wanted = found(search, A.to("cpu"), np.arange(size), times)
        assert found(search, A, np.arange(size), times) == wanted


@pytest.mark.parametrize("degree", [1, EACH])
def test_all_vertices_are_found_where_all_were_sources(place, pushes, tight, degree):
    """Both frontiers have every vertex: the lists then have arrays of their own."""
    n = 2000
    rows = np.repeat(np.arange(n), degree)
    cols = (rows + np.tile(np.arange(1, degree + 1), n)) % n
    A = Matrix.from_coo(rows, cols, True, nrows=n, ncols=n, backend=place)
    assert found(levels_behind, A, np.arange(n), 1) == ([0] * n, list(range(n)))
    assert found(levels_behind, A, np.arange(n)) == ([0] * n, [])
    assert found(levels_first, A, np.arange(n)) == ([0] * n, [])
    assert place.last_loop.startswith("grid search")


def fan(place):
    """A path, then 72 vertices that find 30 each, of which two share what they find."""
    path, branches, fingers, many = 5, 8, 9, 30
    made, front = [np.stack([np.arange(path - 1), np.arange(1, path)])], np.array([path - 1])
    n = path
    for each in (branches, fingers, many):
        up = np.repeat(front, each)
        front, n = n + np.arange(len(up)), n + len(up)
        made.append(np.stack([up, front]))
    made.append(np.stack([front, n + np.arange(len(front)) // 2]))
    n += len(front) // 2
    return undirected(*np.concatenate(made, axis=1), n, place), len(front)


def test_what_a_cluster_finds_without_room_is_listed_once(place, pushes, tight):
    """On sim shared memory has room for 72, and what they find is most of the graph."""
    A, many = fan(place)
    assert 2 * many - 72 > A.nrows
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, 0)
    if place.device.name == "sim" and place.device.cluster_blocks > 1:
        assert any("cluster" in row.reason and row.nvals_out == many for row in t.rows)
    B = A.to("cpu")
    assert levels.to("cpu").isequal(algorithms.bfs_levels(B, 0))
    paths = algorithms.count_shortest_paths(A, 0).to("cpu")
    assert paths.isequal(algorithms.count_shortest_paths(B, 0))


@pytest.mark.parametrize("more", [-1, 0, 1, 31, 5000])
def test_vertices_without_places_are_looked_up(place, pushes, tight, more):
    """Lists about as long as those that have places, and longer, by the whole grid."""
    m = tight + more
    each, many = np.arange(m), 3 * tight + 5000
    degree = each % 4  # of what is found
    new, last = m + each, 2 * m + many - 1
    ends = 2 * m + (np.repeat(7 * each, degree) + np.arange(degree.sum())) % many
    A = undirected(np.r_[each, np.repeat(new, degree)], np.r_[new, ends], last + 1, place)

    def paths(A):
        counts, frontier = Vector(FP64, A.nrows, like=A), Vector(FP64, A.nrows, like=A)
        frontier[each] = 1.0
        for _ in loop(until_empty=frontier):
            counts(frontier.S) << frontier
            frontier(~counts.S, replace=True) << semiring.plus_first(frontier @ A)
        return counts.to("cpu")

    B = A.to("cpu")
    assert found_levels(A, each) == found_levels(B, each)
    assert paths(A).isequal(paths(B))
    assert place.last_loop.startswith("grid search")


def found_levels(A, sources):
    levels, left = found(levels_first, A, sources)
    assert not left
    return levels


def test_memory_of_a_search(place):
    """Bytes a vertex: the hint, one list, four bits; and places for some vertices."""
    n = 600_000
    places = 8 * 2 * search_grid.PLACED / n
    A = Matrix.from_coo([0, 1], [1, 0], True, nrows=n, ncols=n, backend=place)
    assert algorithms.bfs_levels(A, 0).nvals == 2
    kept = {name: x.nbytes / n for name, x in A.data.csc().cache.items()}
    assert kept == pytest.approx(
        {"push": 4, "pull": 4.125, "grid search": 0.375 + places}, abs=1e-3
    )
    levels, frontier = Vector(INT32, n, like=A), Vector(BOOL, n, like=A)
    frontier[0] = True
    levels_behind(A, frontier, levels, None)  # the source is found again
    assert levels.to_coo()[1].tolist() == [1, 0]
    kept = {name: x.nbytes / n for name, x in A.data.csc().cache.items()}
    assert kept["grid search"] == pytest.approx(8.375 + 2 * places, abs=1e-3)
    semiring.any_pair(frontier @ A, kernel="push_queue").new()  # a product needs all places
    assert A.data.csc().cache["push"].nbytes / n == pytest.approx(12, abs=1e-3)


@pytest.mark.parametrize("n", [31, 1025, 20_000])
@pytest.mark.parametrize("pointers", [np.int32, np.int64])
def test_long_pointers_have_blocks_of_fewer_threads(place, pointers, n):
    """28 warps, on sim 7: no power of two."""
    drawn = np.random.default_rng(n).integers(0, n, (2, 12 * n))
    hub = np.full(3000 % n, n // 2), np.arange(3000 % n)
    rows, cols = np.concatenate([drawn, hub], axis=1)
    A, B = (undirected(rows, cols, n, x) for x in (place, "cpu"))
    A.data.store.col_ptr = A.data.store.col_ptr.astype(pointers)
    levels = algorithms.bfs_levels(A, 0)
    assert levels.to("cpu").isequal(algorithms.bfs_levels(B, 0))
    check.check_parents(A, 0, algorithms.bfs_parents(A, 0), levels)
    paths = algorithms.count_shortest_paths(A, 0)
    assert paths.to("cpu").isequal(algorithms.count_shortest_paths(B, 0))
    limits = place.device.limits
    threads = limits.wide_search_block if pointers == np.int64 else limits.search_block
    assert A.data.csc().cache["grid search"].block == threads
