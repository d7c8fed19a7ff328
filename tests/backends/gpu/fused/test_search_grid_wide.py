"""Grid searches whose pushes find words: what follows is pulled, and results are the same."""

import itertools

import numpy as np
import pytest
from hubs import directions
from limits import set_limits
from searches import levels_behind

import lagpu
from lagpu import BOOL, INT32, Matrix, Vector, algorithms, check, generators, loop, semiring
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.gpu.ops.planner import NO_DELTA, alpha_of
from lagpu.backends.gpu.storage.forms import csr_of, degree_behind_edges
from lagpu.backends.guard import overridden

NEVER, ALWAYS = 0.0, 1e30


@pytest.fixture
def wide(monkeypatch):
    """Set gamma of all searches on matrices that are made from here on, however they grow."""
    monkeypatch.setattr(search_grid, "delta_of", lambda sums: NO_DELTA)
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


def products(t):
    return [row for row in t.rows if row.method == "mxv"]


@pytest.mark.parametrize("beta", [2.0, 1024.0])
@pytest.mark.parametrize("graph", GRAPHS)
def test_words_and_lists_lead_to_the_same(place, wide, monkeypatch, graph, beta):
    set_limits(monkeypatch, solo=0, cluster_solo=0)  # no block or cluster goes on alone
    monkeypatch.setattr(search_grid, "beta_of", lambda sums: beta)
    found = []
    for gamma in (NEVER, ALWAYS):
        wide(gamma)
        A = GRAPHS[graph](place)
        with lagpu.trace() as t:
            levels = algorithms.bfs_levels(A, 0)
        rows = products(t)
        with lagpu.trace() as t:
            parents = algorithms.bfs_parents(A, 0)
        assert directions(t) == [row.direction for row in rows]
        check.check_levels(A, 0, levels)
        check.check_parents(A, 0, parents, levels)
        check.check_paths(A, 0, algorithms.count_shortest_paths(A, 0))
        counts = [(row.level, row.nvals_in, row.nvals_out) for row in rows]
        found.append((counts, levels.to_coo()[1].tolist()))
        assert rows[0].direction == "push"
        assert rows[0].reason.endswith(": into words") == (gamma == ALWAYS)
        if gamma == NEVER:
            assert not [row for row in rows if "words" in row.reason]
            continue
        for row, then in itertools.pairwise(rows):
            if "not run" in then.reason:
                continue
            if row.direction == "push":
                assert then.reason == f"pushed into words before; vertices {row.nvals_out}"
            else:
                assert then.reason.startswith(f"pulled before; vertices {row.nvals_out} ")
            if row.direction == "push" or row.nvals_out * beta >= A.nrows:
                assert then.direction == "pull"
    assert found[0] == found[1]


@pytest.mark.parametrize(("gamma", "then"), [(25.0, "push"), (50.0, "pull")])
def test_a_push_into_words_that_may_have_found_few_edges_counts_them(
    place, wide, monkeypatch, gamma, then
):
    """It may have found two thirds of the edges that gamma says, and these may be few."""
    wide(gamma)
    set_limits(monkeypatch, solo=0, cluster_solo=0)
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: NEVER)
    j = np.arange(1, 111)
    i = (j - 1) // 10  # ten times ten behind vertex 0: 220 edges
    A = Matrix.from_coo(np.r_[i, j], np.r_[j, i], True, nrows=111, ncols=111, backend=place)
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, 0)
    assert products(t)[0].reason.endswith(": into words")
    assert directions(t)[:2] == ["push", then]
    check.check_levels(A, 0, levels)


@pytest.mark.parametrize("policy", ["beamer", "hiragushi"])
def test_a_rule_that_was_asked_for_counts_the_edges_of_each_frontier(place, wide, policy):
    """So its alpha decides after every push, whatever was found."""
    wide(ALWAYS)
    there = overridden(place, None, policy)
    A = generators.kronecker(9, 16, seed=4, backend=there)
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, 0)
    assert there.last_loop.startswith("grid search")
    reasons = [row.reason for row in products(t)]
    assert not [reason for reason in reasons if "words" in reason]


def test_a_wide_push_is_expected_by_the_degrees_behind_edges(place):
    A = generators.star(101, backend=place)
    form = A.data.csc()
    assert degree_behind_edges(form, form) == (100 * 100 + 100 * 1) / 200
    i, j = [0, 0, 1, 2], [1, 2, 2, 0]  # edges into 1, 2, 2, 0, which have 1, 1, 1 and 2
    B = Matrix.from_coo(i, j, True, nrows=3, ncols=3, backend=place).data.csc()
    assert degree_behind_edges(csr_of(B), B) == (1 + 1 + 1 + 2) / 4
    assert degree_behind_edges(*2 * (Matrix(BOOL, 3, 3, backend=place).data.csc(),)) == 0


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
            reached = np.where(found < times, found, -1)
            assert levels.to_dense(-1).tolist() == reached.tolist()


@pytest.mark.parametrize("n", [31, 33, 1025])
def test_levels_of_what_few_and_many_edges_find_into_words(place, wide, monkeypatch, n):
    """A push of more edges than an eighth of the vertices leaves levels to a pass over words."""
    wide(ALWAYS)
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: NEVER)
    for degree in (1, n // 8, n // 8 + 1, n - 2):
        found = np.random.default_rng(degree).permutation(np.arange(1, n))[:degree]
        rows, cols = [*np.zeros(degree, int), found[0]], [*found, n - 1]  # and one edge further
        A = Matrix.from_coo(rows, cols, True, nrows=n, ncols=n, backend=place)
        expected = np.full(n, -1)
        expected[n - 1] = 2
        expected[found], expected[0] = 1, 0
        with lagpu.trace() as t:
            levels = algorithms.bfs_levels(A, 0)
        assert products(t)[0].reason.endswith(": into words")
        assert levels.to_dense(-1).tolist() == expected.tolist()
        assert algorithms.bfs_levels(A, 0).to_dense(-1).tolist() == expected.tolist()
        levels, frontier = Vector(INT32, n, like=A), Vector(BOOL, n, like=A)
        frontier[0] = True
        levels_behind(A, frontier, levels, None)
        assert levels.to_dense(-1).tolist() == np.where(expected > 0, expected - 1, -1).tolist()
        parents = np.where(expected == 2, found[0], np.where(expected == 1, 0, -1))
        assert algorithms.bfs_parents(A, 0).to_dense(-1)[1:].tolist() == parents[1:].tolist()


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


@pytest.mark.parametrize("find", [algorithms.bfs_levels, algorithms.bfs_parents])
def test_many_edges_that_have_found_one_vertex_do_not_make_all_others_look(place, find):
    """A clique's edges lead to one another and to a hub, from which one edge leads to each."""
    cliques = size = 100
    i, j = np.nonzero(~np.eye(size, dtype=bool))
    first = 1 + size * np.arange(cliques)
    rows = np.r_[(first[:, None] + i).ravel(), first]
    cols = np.r_[(first[:, None] + j).ravel(), np.zeros(cliques, int)]
    n = cliques * size + 1
    rows, cols = np.r_[rows, np.zeros(cliques, int)], np.r_[cols, first]
    A = Matrix.from_coo(rows, cols, True, nrows=n, ncols=n, backend=place)
    with lagpu.trace() as t:
        find(A, 2)
    found = [(row.direction, row.nvals_in, row.nvals_out) for row in products(t)]
    assert found[1:4] == [("push", 99, 1), ("push", 1, 99), ("push", 99, 9801)]
    assert products(t)[1].reason.endswith(": into words")
    assert sum(row.edges for row in products(t)) < A.nvals / 20
    check.check_levels(A, 2, algorithms.bfs_levels(A, 2))


def test_words_that_become_lists_again_have_their_levels(place, wide, monkeypatch):
    """A push leaves levels to a pass over its words, which lists must not empty before."""
    set_limits(monkeypatch, solo=0, cluster_solo=0)
    wide(8.0)
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: NEVER)
    A = tailed(place)
    with lagpu.trace() as t:
        check.check_levels(A, 0, algorithms.bfs_levels(A, 0))
    rows = products(t)
    assert [r.nvals_in for r, then in itertools.pairwise(rows) if "into words" in r.reason
            and then.direction == "push"]  # fmt: skip
    for source in range(1, 9):
        check.check_levels(A, source, algorithms.bfs_levels(A, source))
