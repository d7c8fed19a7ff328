"""Pulls of a search by groups of words: what a warp lists, what hints answer, and what waits."""

import itertools

import numpy as np
import pytest
from samples import sampled

import lagpu
from lagpu import BOOL, INT64, Matrix, Vector, algorithms, check, generators, loop, semiring
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.gpu.ops.planner import NO_DELTA

SIZES = (1, 31, 32, 33, 1023, 1025)


@pytest.fixture(autouse=True)
def _only_pulls(monkeypatch):
    """Searches pull in each level."""
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 1e9)
    monkeypatch.setattr(search_grid, "beta_of", lambda sums: 1e9)
    monkeypatch.setattr(search_grid, "delta_of", lambda sums: NO_DELTA)


def graph_of(place, rows, cols, n):
    return Matrix.from_coo(rows, cols, nrows=n, ncols=n, dtype=BOOL, backend=place)


def passed_on(A, source):
    """The source's value at every vertex; a function of its own, so that it is fused."""
    values = Vector(INT64, A.nrows, like=A)
    frontier = Vector.from_coo(source, 7, INT64, size=A.nrows, backend=A.backend)
    for _ in loop(until_empty=frontier):
        values(frontier.S) << frontier
        frontier(~values.S, replace=True) << semiring.any_second(frontier @ A)
    return values


def compare(A, source):
    """Levels and parents of a graph are proved, and its levels are the same under a trace."""
    levels, parents = algorithms.bfs(A, source)
    check.check_levels(A, source, levels)
    check.check_parents(A, source, parents, levels)
    with lagpu.trace() as t:
        traced = algorithms.bfs_levels(A, source)
    assert all(row.direction == "pull" or not row.edges for row in t.rows if row.method == "mxv")
    assert traced.isequal(algorithms.bfs_levels(A, source))
    assert traced.isequal(levels)
    return levels


@pytest.mark.parametrize("n", SIZES)
def test_random_graphs(place, n):
    rng = np.random.default_rng(n)
    for m, hub, directed in itertools.product((0, n // 2, 2 * n, 9 * n), (0, 3, 1), (True, False)):
        rows, cols = rng.integers(0, n, m), rng.integers(0, n, m)
        rows[: m // hub if hub else 0] = n // 2  # a hub: of a third or all of the edges
        if not directed:
            rows, cols = np.r_[rows, cols], np.r_[cols, rows]
        compare(graph_of(place, rows, cols, n), int(rng.integers(n)))


@pytest.mark.parametrize("left", [1, 11, 31, 32])
def test_words_of_which_more_or_fewer_vertices_are_left(place, left):
    """`left` vertices of each word lead from the last level's vertices alone, in vain at first."""
    words, near, far = 70, 70 * 32, 70 * 32 + 1
    rows, cols = [], []
    for v in range(words * 32):
        before = [near] if v % 32 >= left else [far, far + 1 + v % 3]
        rows += before
        cols += [v] * len(before)
    rows += [far + 4, near, far, *[near] * 3]  # far is found in the level after near
    cols += [near, far, far, *(far + 1 + k for k in range(3))]
    levels = compare(graph_of(place, rows, cols, far + 5), far + 4)
    found = levels.to_dense(-1)[: words * 32].reshape(words, 32)
    assert (found[:, :left] == 3).all()
    assert (found[:, left:] == 2).all()


@pytest.mark.parametrize("every", sampled([1, 3, 33, 1025], 2))
def test_a_warp_takes_several_groups(place, every):
    """A path along every so many of 150,000 vertices, which begins with a star to all of them."""
    n, length = 150_000, 12
    path = np.arange(length) * 7919 % n  # from group to group
    rest = np.setdiff1d(np.arange(0, n, every), path)
    rows = np.r_[path[:-1], np.full(len(rest), path[3])]
    cols = np.r_[path[1:], rest]
    levels = algorithms.bfs_levels(graph_of(place, rows, cols, n), 0)
    expected = np.full(n, -1)
    expected[path] = np.arange(length)
    expected[rest] = 4
    assert (levels.to_dense(-1) == expected).all()


def test_a_vertex_with_many_predecessors_is_looked_at_by_its_block(place):
    """Of more than 2048 predecessors the last one alone is in the frontier."""
    many, hubs = 2500, 40
    source, first = many, many + 1
    rows = [*(list(range(many)) * hubs), source]
    cols = [*np.repeat(np.arange(first, first + hubs), many).tolist(), many - 1]
    levels = compare(graph_of(place, rows, cols, first + hubs), source)
    assert [levels.get(h) for h in range(first, first + hubs)] == [2] * hubs


def test_a_hint_that_answers_is_the_one_look(place):
    """All leaves of a star have their one predecessor as their hint."""
    n = 100
    with lagpu.trace() as t:
        algorithms.bfs_levels(graph_of(place, [0] * (n - 1), range(1, n), n), 0)
    assert [row.edges for row in t.rows if row.method == "mxv"] == [n - 1, 0]


def test_products_that_read_the_frontier(place):
    A = generators.kronecker(9, 8, seed=5, backend=place)
    expected = passed_on(generators.kronecker(9, 8, seed=5, backend="cpu"), [3])
    found = [x.tolist() for x in passed_on(A, [3]).to_coo()]
    assert found == [x.tolist() for x in expected.to_coo()]
