"""Fused searches of graphs whose hubs a whole block of threads looks at: more than 2048 edges in.

Vertex 0 leads to all `near`; hub k has predecessors among `far`, which nothing leads to and which
have the lower numbers, and among `near`; all of these lead to the last vertex. There are more hubs
than a block of threads keeps for later.
"""

import numpy as np
import pytest
from hubs import directions

import lagpu
from lagpu import Matrix, algorithms, check, generators
from lagpu.backends.gpu.fused import search_grid

FAR, NEAR, HUBS = 2500, 3000, 34
FIRST_NEAR, FIRST_HUB = 1 + FAR, 1 + FAR + NEAR
SIZE = FIRST_HUB + HUBS + 1


def graph(backend, near_of):
    """Hub k has the predecessors `near_of(k)`, and all of `far` unless that is all of `near`."""
    rows, cols = [np.zeros(NEAR, int)], [np.arange(FIRST_NEAR, FIRST_HUB)]
    for k in range(HUBS):
        among = near_of(k)
        if len(among) < NEAR:
            rows.append(np.arange(1, FIRST_NEAR))
        rows.append(FIRST_NEAR + among)
        cols += [np.full(len(r), FIRST_HUB + k) for r in rows[len(cols) :]]
    rows.append(np.arange(FIRST_NEAR, FIRST_HUB))
    cols.append(np.full(NEAR, SIZE - 1))
    rows, cols = np.concatenate(rows), np.concatenate(cols)
    return Matrix.from_coo(rows, cols, True, nrows=SIZE, ncols=SIZE, backend=backend)


def looked_at(t):
    return [row.edges for row in t.rows if row.method == "mxv"]


@pytest.mark.parametrize("traced", [False, True])
def test_the_one_predecessor_that_counts_is_the_last(backend, traced, monkeypatch):
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 30.0)  # pull
    A = graph(backend, lambda k: np.array([NEAR - 1 - k]))
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, 0)
    if backend.name != "cpu":
        assert directions(t)[1] == "pull"
        assert looked_at(t)[1] >= HUBS * (FAR + 1)
    if traced:
        with lagpu.trace():
            levels, parents = algorithms.bfs_levels(A, 0), algorithms.bfs_parents(A, 0)
    else:
        levels, parents = algorithms.bfs_levels(A, 0), algorithms.bfs_parents(A, 0)
    check.check_levels(A, 0, levels)
    check.check_parents(A, 0, parents, levels)
    hubs = range(FIRST_HUB, FIRST_HUB + HUBS)
    assert [parents.get(h) for h in hubs] == [FIRST_HUB - 1 - k for k in range(HUBS)]


@pytest.mark.parametrize("traced", [False, True])
def test_paths_are_summed_over_all_predecessors(backend, traced, monkeypatch):
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 14.0)  # pull

    def some(k):  # all of them for the first hub
        return np.arange(NEAR)[:: k % 7 + 1][k:]

    A = graph(backend, some)
    if traced:
        with lagpu.trace() as t:
            paths = algorithms.count_shortest_paths(A, 0)
        if backend.name != "cpu":
            assert directions(t)[1] == "pull"
            hubs = sum(len(some(k)) + (FAR if len(some(k)) < NEAR else 0) for k in range(HUBS))
            assert looked_at(t)[1] == hubs + NEAR  # the last vertex has those
    else:
        paths = algorithms.count_shortest_paths(A, 0)
    expected = [float(len(some(k))) for k in range(HUBS)]
    assert [paths.get(FIRST_HUB + k) for k in range(HUBS)] == expected
    assert paths.get(SIZE - 1) == NEAR
    check.check_paths(A, 0, paths)


def test_words_are_shared_again_by_each_pull_of_a_search(backend):
    """With sums a block's warps take words as they come to it: more than two each, twice."""
    A = generators.uniform(13, 8, seed=3, backend=backend)
    with lagpu.trace() as t:
        paths = algorithms.count_shortest_paths(A, 0)
    if backend.name != "cpu":
        assert directions(t).count("pull") >= 2
    check.check_paths(A, 0, paths)


def test_each_predecessor_that_is_looked_at_is_counted(place, monkeypatch):
    """Vertex 0 too, where all but the last predecessor of a hub are looked at in vain."""
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 1e9)  # pull
    monkeypatch.setattr(search_grid, "beta_of", lambda sums: 1e9)
    many = 2500
    hub, source = many, many + 1
    rows, cols = [*range(many), source, 1], [*[hub] * many, many - 1, source]
    A = Matrix.from_coo(rows, cols, nrows=many + 2, ncols=many + 2, backend=place)
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, source)
    assert [x.tolist() for x in levels.to_coo()] == [[many - 1, hub, source], [1, 2, 0]]
    assert directions(t) == ["pull"] * 3
    assert looked_at(t) == [many + 1, many, 0]


@pytest.mark.parametrize("many", [1, 2, 3, 5, 9])
def test_lanes_that_look_together_look_for_their_own_vertex(place, monkeypatch, many):
    """Neighbours with many predecessors, of which the last one of one of them alone counts."""
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 1e9)  # pull
    monkeypatch.setattr(search_grid, "beta_of", lambda sums: 1e9)
    first, near, source = 96, 140, 141
    for found in range(many):
        rows, cols = [near, source], [first + found, near]
        for k in range(many):
            before = range(20 + 11 * (k % 7))
            rows += before
            cols += [first + k] * len(before)
        A = Matrix.from_coo(rows, cols, nrows=142, ncols=142, backend=place)
        levels = algorithms.bfs_levels(A, source)
        assert [x.tolist() for x in levels.to_coo()] == [[first + found, near, source], [2, 1, 0]]
