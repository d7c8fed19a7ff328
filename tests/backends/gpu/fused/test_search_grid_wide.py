"""Grid searches whose pushes find words: whatever follows, results and directions are the same."""

import numpy as np
import pytest
from hubs import directions

import lagpu
from lagpu import BOOL, INT32, Matrix, Vector, algorithms, check, generators, loop, semiring
from lagpu.backends.gpu.fused import search_grid, search_space
from lagpu.backends.gpu.ops.directions import alpha_of

NEVER, ALWAYS = 0.0, 1e30


@pytest.fixture
def wide(monkeypatch):
    """Set gamma of all searches on matrices that are made from here on."""
    return lambda gamma: monkeypatch.setattr(search_grid, "gamma_of", lambda *_: gamma)


def tailed(place):
    """A core that is pulled, with a tail that is pushed again."""
    core, tail = 300, 12
    drawn = np.unique(np.random.default_rng(2).integers(0, core, (2, core * 30)), axis=1)
    path = np.arange(core - 1, core + tail)
    rows, cols = np.concatenate([drawn, [path[:-1], path[1:]]], axis=1)
    return Matrix.from_coo(rows, cols, True, nrows=core + tail, ncols=core + tail, backend=place)


GRAPHS = {
    "uniform": lambda place: generators.uniform(9, 8, seed=3, backend=place),
    "kronecker": lambda place: generators.kronecker(9, 16, seed=4, backend=place),
    "road": lambda place: generators.road(14, backend=place),
    "tailed": tailed,
}


@pytest.mark.parametrize("graph", GRAPHS)
def test_words_and_lists_lead_to_the_same(place, wide, monkeypatch, graph):
    monkeypatch.setattr(search_space, "SOLO", 0)  # no block goes on alone
    found = []
    for gamma in (NEVER, ALWAYS):
        wide(gamma)
        A = GRAPHS[graph](place)
        with lagpu.trace() as t:
            levels = algorithms.bfs_levels(A, 0)
        ways = directions(t)
        with lagpu.trace() as t:
            parents = algorithms.bfs_parents(A, 0)
        assert directions(t) == ways
        check.check_levels(A, 0, levels)
        check.check_parents(A, 0, parents, levels)
        check.check_paths(A, 0, algorithms.count_shortest_paths(A, 0))
        rows = [(r.level, r.nvals_in, r.nvals_out, r.edges, r.reason) for r in t.rows]
        found.append((ways, rows, levels.to_coo()[1].tolist()))
    assert found[0] == found[1]
    assert "push" in found[0][0]


def search(A, levels, frontier, times):  # without assert, so that pytest leaves its code alone
    for depth in loop(until_empty=frontier, times=times):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)


def test_what_is_left_of_a_search_that_ends_after_a_push(place, wide):
    for gamma in (NEVER, ALWAYS):
        wide(gamma)
        A = tailed(place)
        found = algorithms.bfs_levels(A, 0).to_dense(-1)
        for times in range(found.max() + 1):
            levels, frontier = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
            frontier[0] = True
            search(A, levels, frontier, times)
            assert place.last_loop.startswith("grid search" if times else "no iteration")
            assert frontier.to_coo()[0].tolist() == np.flatnonzero(found == times).tolist()


@pytest.mark.parametrize(("degree", "second"), [(16, "push"), (100, "pull")])
def test_the_same_share_of_edges_is_pulled_where_degrees_are_higher(place, degree, second):
    """A hub's neighbours have a twentieth of all edges; most others are those of a clique."""
    n, near = 1024, 20
    each = n * degree // 20 // near
    clique = np.arange(near + 1, near + 1 + int((n * degree * 0.94) ** 0.5))
    firsts, ends = np.arange(1, near + 1), (np.arange(each) * 3) % (n - near - 1) + near + 1
    rows = [np.zeros(near, int), np.repeat(firsts, each), np.repeat(clique, len(clique))]
    cols = [firsts, np.tile(ends, near), np.tile(clique, len(clique))]
    rows, cols = np.concatenate(rows), np.concatenate(cols)
    A = Matrix.from_coo(rows, cols, True, nrows=n, ncols=n, backend=place)
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, 0)
    assert directions(t)[:2] == ["push", second]
    products = [r for r in t.rows if r.method == "mxv"]
    assert products[0].reason.endswith(f"/ {alpha_of(A.nvals / n, n, wide=True):g}")
    check.check_levels(A, 0, levels)
