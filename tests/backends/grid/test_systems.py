"""A search by a paper's system finds what the oracle finds, on every grid and by every rule."""

import numpy as np
import pytest
from grids import own_grid

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Matrix, Vector, algorithms, backends, loop, semiring
from lagpu.backends.grid.systems import SYSTEMS, system_of
from lagpu.backends.guard import overridden
from lagpu.errors import InvalidValue

GRIDS = [(1, 1), (1, 2), (2, 1), (2, 3), (4, 4)]
VARIANTS = [
    "kepler:messages=list",
    "kepler:messages=bitmap,parents=sent",
    "bfs2d:ratio=0",
    "bfs2d:ratio=0.2,share=no",
    "bfs2d:rule=edges,alpha=14,beta=24",
    "hiragushi:parents=late,alpha=1000",
    "hiragushi:share=no,beta=1e9",
]
#: n that no grid divides, and fewer vertices than pieces.
SIZES = [1, 2, 7, 33, 300]


def edges_of(n, kind):
    """Return edges of a graph with hubs, self-loops, and a third of the vertices isolated."""
    rng = np.random.default_rng([n, kind == "directed"])
    i, j = rng.integers(0, n, 4 * n), rng.integers(0, n, 4 * n)
    i[: n // 2], j[n // 2 : n] = n // 2, n - 1
    keep = (i % 3 != 1) & (j % 3 != 1)
    i, j = i[keep], j[keep]
    return (i, j) if kind == "directed" else (np.r_[i, j], np.r_[j, i])


def matrix(n, edges, place):
    return Matrix.from_coo(*edges, True, BOOL, nrows=n, ncols=n, dup_op="any", backend=place)


def on(grid, policy, order=None):
    """Return a grid whose pieces share nothing and which speak along rows and columns alone."""
    return overridden(own_grid(grid, order)[0], None, policy)


def is_tree(edges, levels, parents, source):
    known = {*zip(edges[0].tolist(), edges[1].tolist(), strict=True)}
    for v, (level, parent) in enumerate(zip(levels.tolist(), parents.tolist(), strict=True)):
        if level <= 0:
            assert parent == (source if level == 0 else -1)
        else:
            assert levels[parent] == level - 1
            assert (parent, v) in known
    return True


def searched(place, n, edges, source):
    A = matrix(n, edges, place)
    want = algorithms.bfs_levels(matrix(n, edges, "cpu"), source).to_dense(-1)
    levels = algorithms.bfs_levels(A, source)
    assert levels.to_dense(-1).tolist() == want.tolist()
    assert levels.nvals == (want >= 0).sum()
    levels, parents = algorithms.bfs(A, source)
    assert levels.to_dense(-1).tolist() == want.tolist()
    assert is_tree(edges, want, parents.to_dense(-1), source)
    return place.last_loop


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("policy", "grid"),
    [*((name, grid) for name in SYSTEMS for grid in GRIDS), *((name, (2, 3)) for name in VARIANTS)],
)
def test_levels_and_parents(policy, grid):
    place = on(grid, policy)
    for n in SIZES:
        edges = edges_of(n, "both ways" if n % 2 else "directed")
        searched(place, n, edges, int(edges[0][0]) if len(edges[0]) else 0)


@pytest.mark.parametrize("policy", SYSTEMS)
def test_pieces_with_kernels(policy):
    place = overridden(backends.get("grid:2x3:sim"), None, policy)
    assert "do not fill words" in searched(place, 90, edges_of(90, "directed"), 45)


@pytest.mark.parametrize("order", ["random", "degree"])
@pytest.mark.parametrize("grid", [(1, 1), (1, 2), (3, 1), (2, 3)])
def test_indices_in_another_order(grid, order):
    searched(on(grid, "bfs2d", order), 90, edges_of(90, "directed"), 45)


@pytest.mark.parametrize("policy", ["kepler", "kepler:messages=bitmap", "hiragushi"])
def test_bitmaps_without_isolated_vertices(policy):
    """They hold an isolated source, and vertices that have edges in a later graph alone."""
    place = on((2, 3), policy, "degree")
    i, j = edges_of(300, "both ways")
    first = matrix(300, (i, j), place)
    isolated = int(np.setdiff1d(np.arange(300), np.r_[i, j])[0])
    assert algorithms.bfs_levels(first, isolated).to_dense(-1)[isolated] == 0
    assert algorithms.bfs_levels(first, isolated).nvals == 1
    searched(place, 300, ((i + 1) % 300, (j + 1) % 300), int(i[0] + 1) % 300)


# ------------------------------------------------------------------------ what a loop may have
def both(program, n=60, grid=(2, 3), policy="bfs2d"):
    edges = edges_of(n, "directed")
    found = [program(matrix(n, edges, place)) for place in (on(grid, policy), backends.get("cpu"))]
    return [[x.to_coo()[0].tolist() for x in of] for of in found], found


def test_a_bounded_search_leaves_its_frontier():
    def program(A):
        levels, frontier = Vector(INT32, 60, like=A), Vector(BOOL, 60, like=A)
        frontier[41] = True
        for depth in loop(until_empty=frontier, times=2):
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
        return levels, frontier

    (here, want), (found, _) = both(program)
    assert here == want
    assert len(want[1]) > 1
    assert found[1].to_coo()[1].all()


@pytest.mark.parametrize("turned", [False, True])
def test_assignments_behind_the_product_and_entries_that_are_there(turned):
    def program(A):
        n = 60
        seen, where, constant = (Vector(INT64, n, like=A) for _ in range(3))
        seen[3], seen[11], where[0], constant[41] = 7, 8, 9, 5
        frontier = Vector(INT64, n, like=A)
        frontier[41] = 41
        B = A.T if turned else A
        for depth in loop(until_empty=frontier):
            frontier(~seen.S, replace=True) << semiring.any_secondi(frontier @ B)
            seen(frontier.S) << depth
            where(frontier.S) << frontier
            constant(frontier.S) << 3
        return seen, where, constant

    (here, want), (found, wanted) = both(program)
    assert here == want
    assert found[0].to_dense(-1).tolist() == wanted[0].to_dense(-1).tolist()
    assert found[2].to_dense(-1).tolist() == wanted[2].to_dense(-1).tolist()
    i, j = edges_of(60, "directed")
    known = {*zip(i.tolist(), j.tolist(), strict=True)}
    for v, parent in zip(*(x.tolist() for x in found[1].to_coo()), strict=True):
        assert (v, parent) == (0, 9) or ((v, parent) if turned else (parent, v)) in known


def test_several_sources_have_their_own_values():
    def program(A):
        parents, frontier = Vector(INT64, 60, like=A), Vector(INT64, 60, like=A)
        frontier[41], frontier[2] = 17, 18
        for _ in loop(until_empty=frontier):
            parents(frontier.S) << frontier
            frontier(~parents.S, replace=True) << semiring.any_secondi(frontier @ A)
        return (parents,)

    (here, want), (found, _) = both(program)
    assert here == want
    assert (found[0].get(41), found[0].get(2)) == (17, 18)


def test_no_iteration_changes_nothing():
    A = matrix(9, edges_of(9, "directed"), on((2, 3), "kepler"))
    levels, frontier = Vector(INT32, 9, like=A), Vector(BOOL, 9, like=A)
    for depth in loop(until_empty=frontier):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    assert (levels.nvals, frontier.nvals) == (0, 0)


# ------------------------------------------------------------------------------- how it is named
def test_a_grid_in_python_has_a_policy():
    with lagpu.grid("2x3", "cpu", policy="hiragushi:alpha=9,beta=3") as place:
        A = matrix(33, edges_of(33, "directed"), None)
        algorithms.bfs_levels(A, 3)
    assert {*SYSTEMS} <= {*place.capabilities.policies}


def test_arguments():
    assert system_of("bfs2d:ratio=0.5,share=no").ratio == 0.5
    assert system_of("hiragushi").alpha == 48
    assert system_of("hiragushi").beta == 20
    assert system_of("density") is None
    assert system_of(None) is None


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("bfs2d:size=3", "bfs2d has no argument 'size=3'. Use rule=, messages=, "),
        ("bfs2d:ratio", "bfs2d has no argument 'ratio'"),
        ("bfs2d:ratio=-1", "ratio=-1 is not a number of 0 or more"),
        ("bfs2d:ratio=nan", "ratio=nan is not a number"),
        ("bfs2d:rule=beamer", "rule=beamer is not one of push, ratio, edges"),
        ("bfs2d:messages=direction", "one direction for all pieces"),
        ("kepler:", "there is no 'kepler:'"),
        (
            "kepl",
            "there is no 'kepl' here. Use auto, beamer, push, pull, kepler, bfs2d or hiragushi, or",
        ),
    ],
)
def test_wrong_arguments(policy, words):
    A = matrix(9, edges_of(9, "directed"), on((2, 3), policy))
    with pytest.raises(InvalidValue, match=words.replace(".", r"\.")):
        algorithms.bfs_levels(A, 3)


def test_any_product_may_name_a_system():
    """Also one by itself, sums, and the values of a frontier."""
    edges = edges_of(60, "directed")
    A, B = matrix(60, edges, on((2, 3), "hiragushi:alpha=1e9")), matrix(60, edges, "cpu")
    paths = [algorithms.count_shortest_paths(x, 41).to_dense(0).tolist() for x in (A, B)]
    assert paths[0] == paths[1]
    for rows, product in ((60, semiring.any_pair), (60, semiring.plus_times)):
        found = []
        for x in (A, B):
            u = Vector.from_coo([3, 41], [2.0, 3.0], FP64, size=rows, backend=x.backend)
            found.append(product(u @ x).new().to_coo())
        assert [x.tolist() for x in found[0]] == [x.tolist() for x in found[1]]
    with lagpu.eager():
        levels = [algorithms.bfs_levels(x, 41).to_dense(-1).tolist() for x in (A, B)]
    assert levels[0] == levels[1]
