"""What each policy chooses by its numbers, at the ends of their ranges and along a search."""

from types import SimpleNamespace

import numpy as np
import pytest

import lagpu
from lagpu import BOOL, INT64, Matrix, Vector, algorithms, loop, semiring
from lagpu.backends.gpu.ops import planner
from lagpu.backends.gpu.ops.planner import POLICIES, Numbers, _numbers, policy_of
from lagpu.errors import InvalidValue
from lagpu.generators import kronecker, path

USUAL = Numbers(1000, 10, 50, True, 5000, 990, 8.0, False)


@pytest.mark.parametrize(
    ("policy", "changes", "kernel", "why"),
    [
        ("density", {"nvals": 99}, "push_edge", "density 9.90% < 10%"),
        (
            "density",
            {"nvals": 100},
            "pull_scalar",
            "density 10.00% >= 10%; column length 8.0 < 16",
        ),
        ("density", {"nvals": 1, "pulled": True}, "pull_scalar", "pulled before; column length"),
        ("density", {"nvals": 100, "length": 16.0}, "pull_warp", "column length 16.0 >= 16"),
        ("bfs2d", {"nvals": 49, "unvisited": 1000}, "push_active", "unvisited 0.049 < 0.05"),
        ("bfs2d", {"nvals": 50, "unvisited": 1000}, "pull_scalar", "unvisited 0.05 >= 0.05"),
        ("bfs2d", {"unvisited": 0}, "pull_scalar", "unvisited inf >= 0.05"),
        ("beamer", {"frontier_edges": 50, "unexplored": 700}, "push_queue", "50 <= unexplored 700"),
        ("beamer", {"frontier_edges": 51, "unexplored": 700}, "pull_bitmap", "51 > unexplored 700"),
        ("beamer", {"exact": False}, "push_queue", "edges about 50 <= unexplored 5000 / 14"),
        ("beamer", {"pulled": True, "nvals": 41}, "push_queue", "vertices 41 < 1000 / 24"),
        ("beamer", {"pulled": True, "nvals": 42}, "pull_bitmap", "vertices 42 >= 1000 / 24"),
        ("beamer", {"pulled": True, "size": 960, "nvals": 40}, "pull_bitmap", "40 >= 960 / 24"),
        ("density:threshold=0.5", {"nvals": 499}, "push_edge", "density 49.90% < 50%"),
        ("beamer:alpha=100", {"frontier_edges": 51}, "pull_bitmap", "51 > unexplored 5000 / 100"),
        ("beamer:beta=25", {"pulled": True, "nvals": 40}, "pull_bitmap", "40 >= 1000 / 25"),
        ("hiragushi", {"frontier_edges": 105}, "pull_bitmap", "105 > unexplored 5000 / 48"),
        ("hiragushi:pull=gather", {"frontier_edges": 105}, "pull_gather", "unexplored 5000 / 48"),
        ("hiragushi:pull=gather", {"frontier_edges": 9}, "push_queue", "9 <= unexplored 5000"),
        ("hiragushi:push=merrill,alpha=9", {"frontier_edges": 9}, "push_merrill", "5000 / 9"),
        ("bfs2d:ratio=0.2", {"nvals": 199, "unvisited": 1000}, "push_active", "0.199 < 0.2"),
        (
            "tdbu",
            {"nvals": 99},
            "pull_scalar_all",
            "top-down, density 9.90% < 10%; column length 8",
        ),
        ("tdbu", {"nvals": 100}, "pull_scalar", "bottom-up, density 10.00% >= 10%; column"),
        (
            "tdbu",
            {"nvals": 1, "pulled": True},
            "pull_scalar",
            "bottom-up, density once >= 10%; column",
        ),
        ("tdbu", {"nvals": 1, "length": 16.0}, "pull_warp_all", "column length 16.0 >= 16"),
        ("tdbu:scalar", {"nvals": 1, "length": 16.0}, "pull_scalar_all", "< 10%; scalar"),
        ("tdbu:vector", {"nvals": 1}, "pull_warp_all", "< 10%; vector"),
        ("tdbu:vector,threshold=0.01", {}, "pull_warp", "density 1.00% >= 1%; vector"),
        ("vbfs", {}, "push_virtual", "groups of 32; vertices 10"),
        ("vbfs:4096", {"pulled": True}, "push_virtual", "groups of 4096; vertices 10"),
        ("active", {}, "push_active", "wanted everywhere but at the mask; vertices 10"),
        ("active", {"wanted": 7}, "pull_active", "wanted at 7 entries of the mask"),
    ],
)
def test_the_choice(policy, changes, kernel, why):
    name, given = policy_of(policy)
    plan = POLICIES[name].rule(USUAL._replace(**changes), **given)
    assert plan.kernel == kernel
    assert plan.direction == kernel[:4]
    assert why in plan.reason


def test_alpha_of_each_degree():
    long, dense = planner.LONG_SEARCH_DEGREE, planner.DENSE_DEGREE
    degrees = (long, np.nextafter(long, dense), 32.0, np.nextafter(dense, 0), dense, 384.0)

    def alphas(n, **how):
        return [planner.alpha_of(d, n, **how) for d in degrees]

    assert alphas(1 << 20) == [14.0, 16.0, 32.0, 64.0, 64.0, 64.0]
    assert alphas(1 << 20, wide=True) == [14.0, 8.0, 16.0, 32.0, 32.0, 55.0]
    for n, dense_alpha in ((1 << 17, 8.0), (98_303, 5.0), (1 << 15, 2.0), (1, 2.0)):
        assert alphas(n, wide=True) == [14.0, 8.0, 16.0, 32.0, dense_alpha, dense_alpha]
    for n, sums_alpha in ((1, 1.0), ((1 << 19) - 1, 1.0), (1 << 19, 14.0), (1 << 24, 14.0)):
        assert alphas(n, sums=True, wide=True) == [sums_alpha] * 4 + [2.0] * 2


@pytest.mark.parametrize(
    ("search", "beta"), [(algorithms.bfs_levels, 1024), (algorithms.count_shortest_paths, 64)]
)
def test_a_search_pulls_longer_where_nothing_is_added_up(place, search, beta):
    A = kronecker(9, 8, seed=2, backend=place)
    with lagpu.trace() as t:
        search(A, int(A.to_coo()[0][0]))
    reasons = [row.reason for row in t.rows if row.reason.startswith("pulled before")]
    assert reasons
    assert all(reason.endswith(f" 512 / {beta}") for reason in reasons)


def test_only_searches_that_add_nothing_up_ask_how_a_frontier_grows():
    assert (planner.delta_of(sums=False), planner.delta_of(sums=True)) == (8.0, planner.NO_DELTA)


def test_long_searches_never_push_into_words():
    long = planner.LONG_SEARCH_DEGREE
    assert planner.gamma_of(14.0, long, 999.0) == planner.gamma_of(14.0, 1.0, 1.0) == 0


def test_a_push_into_words_reckons_with_the_hubs_behind_its_edges():
    assert planner.gamma_of(16.0, 32.0, 33.0) == 16.0 * 32.0  # there are none
    assert planner.gamma_of(16.0, 32.0, 1000.0) == 16.0 * 300.0


def test_groups_of_the_largest_size(place):
    A = kronecker(6, backend=place)
    u = Vector.from_coo([1], True, size=64, backend=place)
    right = semiring.any_pair(u @ A).new()
    for size in (1, 4096):
        assert semiring.any_pair(u @ A, kernel=f"push_virtual:{size}").new().isequal(right)
        assert semiring.any_pair(u @ A, policy=f"vbfs:{size}").new().isequal(right)
        assert POLICIES["vbfs"].rule(USUAL, group=size).group == size
    with pytest.raises(InvalidValue, match="1 to 4096"):
        semiring.any_pair(u @ A, kernel="push_virtual:4097").new()


def test_vertices_are_visited_once(place):
    """On a path each frontier has one vertex, and one less is left."""
    n = 30
    A = path(n, backend=place)
    levels, q = Vector(INT64, n, like=A), Vector(BOOL, n, like=A)
    q[0] = True
    with lagpu.trace() as t:
        for depth in loop(until_empty=q):
            levels(q.S) << depth
            q(~levels.S, replace=True) << semiring.any_pair(q @ A, policy="bfs2d")
    products = [row.reason for row in t.rows if row.method == "mxv"]
    left = [n - 1 - k for k in range(n)]
    for reason, unvisited in zip(products, left, strict=True):
        ratio = 1 / unvisited if unvisited else float("inf")
        assert reason.startswith(f"frontier / unvisited {ratio:.3g} ")


@pytest.mark.parametrize("along", [True, False])
def test_edges_of_the_next_frontier_are_counted_in_a_directed_graph(place, along):
    """By out-degrees along the edges, by in-degrees against them."""
    rng = np.random.default_rng(2)
    rows, cols = np.unique(rng.integers(0, 100, (2, 600)) // [[1], [3]], axis=1)
    A = Matrix.from_coo(rows, cols, nrows=100, ncols=100, backend=place)
    u = Vector.from_coo([1, 2, 3], True, size=100, backend=place)
    for kernel in ("push_queue", "pull_bitmap"):  # both forms are there then
        v = semiring.any_pair(u @ A if along else A @ u, kernel=kernel).new()
        there = v.to_coo()[0]
        assert v.nvals == len(there)
        degree = np.bincount(rows if along else cols, minlength=100)
        assert v.data.frontier_edges == degree[there].sum()


def test_one_product_of_a_directed_graph_pulls_where_the_vector_is_dense(place):
    """A push against the edges needs the other form, which one product alone does not make."""
    n = 256
    there = np.ones((n, n), bool)
    there[0, 1] = False
    A = Matrix.from_coo(*np.nonzero(there), nrows=n, ncols=n, backend=place)
    for nvals, kernel in ((31, "push, push_edge: "), (32, "pull, pull_warp: ")):
        u = Vector.from_coo(np.arange(nvals), True, size=n, backend=place)
        line = lagpu.explain(semiring.any_pair(u @ A)).splitlines()[1]
        assert line.startswith(kernel)
        assert "the second form is missing: one product alone does not make it" in line


def test_the_columns_of_a_directed_graph_serve_one_direction_of_each_product(place):
    """A pull along the edges and a push against them; the others lack the form by rows."""
    rows = np.arange(99)
    A = Matrix.from_coo(rows, rows + 1, nrows=100, ncols=100, backend=place)
    many, one = (Vector.from_coo(np.arange(k), True, size=100, backend=place) for k in (90, 1))
    for pulls, u, policy in ((True, many, "density"), (False, one, "beamer")):
        for along, call in ((True, semiring.any_pair(u @ A, policy=policy)),
                            (False, semiring.any_pair(A @ u, policy=policy))):  # fmt: skip
            line = lagpu.explain(call).splitlines()[1]
            assert ("second form is missing" in line) == (along != pulls), line
            assert line.startswith("pull" if along and pulls else "push") or along != pulls


@pytest.mark.parametrize(("transpose", "length"), [(True, 2.0), (False, 1.5)])
def test_columns_are_as_long_as_those_of_the_outputs(place, transpose, length):
    k = np.arange(60)
    A = Matrix.from_coo(k % 40, k // 2, True, nrows=40, ncols=30, backend=place)
    u = Vector.from_coo([0], True, size=40 if transpose else 30, backend=place)
    found = _numbers(A.data.csc(), u.data, SimpleNamespace(transpose=transpose, policy=None))
    assert found.length == length
