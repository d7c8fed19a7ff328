"""Fused searches by what a frontier's lists and words hold: degrees, chunks, who looks together."""

import numpy as np
import pytest
from hubs import directions

import lagpu
from lagpu import BOOL, INT32, Matrix, Vector, algorithms, check, generators, loop, semiring
from lagpu.backends.gpu.fused import search_grid

CLIQUE = 620  # beside what is searched: most edges are never followed, so that levels are pushed
DEGREES = [
    [1], [32], [33], [255], [256], [257], [2048], [2049], [5000],
    [33] * 5, [300] * 20, [600] * 9, [31] * 70,
    [0, 1, 31, 32, 33, 255, 256, 257, 0, 2047, 2048, 2049, 2050],
]  # fmt: skip


def matrix(edges, size, backend):
    rows, cols = np.concatenate(edges, axis=1)
    return Matrix.from_coo(rows, cols, True, nrows=size, ncols=size, backend=backend)


def edges(sources, targets):
    return np.array(np.broadcast_arrays(np.atleast_1d(sources), np.atleast_1d(targets)))


def fan(degrees, backend):
    """Vertex 0, then one vertex for each degree, then leaves that some share, of which few go on.

    A leaf in fifty has 40 edges, and one has more than eight chunks.
    """
    first = 1 + len(degrees)
    leaves = max(max(degrees), 2) * 2
    last = first + leaves
    size = last + 2200 + CLIQUE
    made = [edges(0, np.arange(1, first))]
    for k, degree in enumerate(degrees):
        made.append(edges(1 + k, first + (np.arange(degree) + 7 * k) % leaves))
    for leaf in range(0, leaves, 50):
        made.append(edges(first + leaf, last + (np.arange(40) * 5 + leaf) % 2200))
    made.append(edges(first + 1, last + np.arange(2100)))
    clique = np.arange(size - CLIQUE, size)
    made.append(np.stack([np.repeat(clique, CLIQUE), np.tile(clique, CLIQUE)]))
    return matrix(made, size, backend)


def searched(A):
    return (
        algorithms.bfs_levels(A, 0),
        algorithms.bfs_parents(A, 0),
        algorithms.count_shortest_paths(A, 0),
    )


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("degrees", DEGREES, ids=lambda d: "+".join(map(str, d[:13])))
def test_lists_of_all_degrees(place, degrees, monkeypatch):
    monkeypatch.setattr(search_grid, "gamma_of", lambda *_: 0.0)  # no push finds words
    A = fan(degrees, place)
    with lagpu.trace() as t:
        traced = searched(A)
    assert directions(t)[:3] == ["push"] * 3
    for levels, parents, paths in (traced, searched(A)):
        check.check_levels(A, 0, levels)
        check.check_parents(A, 0, parents, levels)
        check.check_paths(A, 0, paths)


@pytest.mark.each_value
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 48, 100, 129, 600, 2050, 2100])
@pytest.mark.parametrize("wanted", [1, 2, 3, 4, 5, 9, 32])
def test_some_vertices_of_a_word_look_far(place, count, wanted):
    """`wanted` of each 32 vertices have their one predecessor in the frontier behind `count`."""
    rng = np.random.default_rng(count + wanted)
    far, near, words = 2100, 700, 3
    first_near = -(-(1 + far) // 32) * 32
    first = -(-(first_near + near) // 32) * 32
    size = first + 32 * words + 30
    nearby = np.arange(first_near, first_near + near)
    made = [edges(0, nearby)]
    made.append(edges(np.repeat(nearby, 30), np.tile(np.arange(size - 30, size), near)))  # to pull
    expected = {}
    for word in range(words):
        looking = set(rng.choice(32, wanted, replace=False).tolist())
        for lane in range(32):
            v, parent = first + 32 * word + lane, first_near + int(rng.integers(near))
            if lane in looking:
                made.append(edges(1 + np.arange(count), v))
            made.append(edges(parent, v))
            expected[v] = parent
    A = matrix(made, size, place)
    with lagpu.trace() as t:
        parents = algorithms.bfs_parents(A, 0)
    assert "pull" in directions(t)
    for found in (parents, algorithms.bfs_parents(A, 0)):
        assert {v: found.get(v) for v in expected} == expected
        check.check_parents(A, 0, found)
    check.check_paths(A, 0, algorithms.count_shortest_paths(A, 0))


def left_after(A, times):
    levels, frontier = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    frontier[0] = True
    for depth in loop(until_empty=frontier, times=times):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    return frontier


def test_what_was_pulled_is_forgotten_when_it_is_pushed(backend, monkeypatch):
    """A tail behind a core that is pulled: what is left of a search that is stopped there."""
    monkeypatch.setattr(search_grid, "beta_of", lambda sums: 64.0)
    core, tail = 300, 12
    drawn = np.unique(np.random.default_rng(2).integers(0, core, (2, core * 30)), axis=1)
    path = np.arange(core - 1, core + tail)
    A = matrix([drawn, edges(path[:-1], path[1:])], core + tail, backend)
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, 0)
    if backend.name != "cpu":
        ways = directions(t)
        assert "push" in ways[ways.index("pull") :]
    found = levels.to_dense(-1)
    assert (found == found.max()).sum() == 1
    for times in range(found.max()):
        left = left_after(A, times).to_coo()[0]
        assert left.tolist() == np.flatnonzero(found == times).tolist()


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("size", [1, 33, 1025, 10_000])
def test_the_last_vertex_is_not_found_again(backend, size):
    """A source whose words another block of threads clears: it enters without a barrier."""
    A = generators.path(size, backend=backend)
    levels = algorithms.bfs_levels(A, size - 1)
    check.check_parents(A, size - 1, algorithms.bfs_parents(A, size - 1), levels)
    assert levels.to_dense().tolist() == list(range(size))[::-1]


def test_large_levels_end_where_their_edges_do(place, monkeypatch):
    """A wide level is pushed; each vertex that it finds lies before one whose edges lead on."""
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 0.0)  # push
    many = 3000
    wide = np.arange(1, many + 1)
    found, last = many - 1 + 2 * wide, 3 * many + 2
    made = [edges(0, wide), np.stack([wide, found]), edges(found + 1, last)]
    for search in (algorithms.bfs_levels, algorithms.count_shortest_paths):
        x, right = (search(matrix(made, last + 1, b), 0) for b in (place, "cpu"))
        assert right.nvals == 2 * many + 1
        assert x.to("cpu").isequal(right)
    with lagpu.trace() as t:
        algorithms.bfs_levels(matrix(made, last + 1, place), 0)
    assert directions(t) == ["push"] * 3
