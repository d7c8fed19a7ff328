"""Grid searches pull only where frontiers grow, and push again where a pull was in vain."""

import numpy as np
import pytest
from hubs import directions
from limits import set_limits

import lagpu
from lagpu import Matrix, algorithms, check
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.gpu.ops.planner import NO_DELTA
from lagpu.io.csc import from_entries, undirected


@pytest.fixture(autouse=True)
def _all_blocks(monkeypatch):
    """No block or cluster goes on alone, so that each level has a direction."""
    set_limits(monkeypatch, solo=0, cluster_solo=0)


def cube(side, place):
    """Cells of a cube; each is joined to all that touch it."""
    n = side**3
    at, found = np.stack(np.unravel_index(np.arange(n), (side,) * 3)), []
    for step in np.array(list(np.ndindex(3, 3, 3)))[:13] - 1:
        to = at + step[:, None]
        here = np.flatnonzero(((to >= 0) & (to < side)).all(axis=0))
        found.append([here, np.ravel_multi_index(to[:, here], (side,) * 3)])
    return undirected(*np.concatenate(found, axis=1), n).matrix(place)


def core_beside_cliques(n, size, place):
    """A random graph of n vertices with a tail, and cliques, whose vertices are side by side."""
    core = np.random.default_rng(3).integers(0, n, (2, 16 * n))
    i, j = np.triu_indices(size, 1)
    first = n + size * np.arange(n // size)[:, None]
    apart = [(first + i).ravel(), (first + j).ravel()]
    ends = n + n // size * size + np.arange(4)
    tail = [np.r_[5, ends[:-1]], ends]
    return undirected(*np.concatenate([core, apart, tail], axis=1), ends[-1] + 1).matrix(place)


def proved(A, source=0):
    """Return the direction of each level, and why; levels, parents and path counts are proved."""
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, source)
    check.check_levels(A, source, levels)
    check.check_parents(A, source, algorithms.bfs_parents(A, source), levels)
    check.check_paths(A, source, algorithms.count_shortest_paths(A, source))
    return directions(t), [row.reason for row in t.rows if row.method == "mxv"]


def test_a_mesh_of_many_neighbours_is_pushed(place, monkeypatch):
    ways, reasons = proved(cube(25, place))
    middle = len(ways) * 3 // 4
    assert set(ways[:middle]) == {"push"}
    assert any(reason.endswith("have not grown much") for reason in reasons[:middle])
    monkeypatch.setattr(search_grid, "delta_of", lambda sums: NO_DELTA)
    assert "pull" in proved(cube(25, place))[0][:middle]


@pytest.mark.parametrize("n", [1024, 1057])
def test_a_search_pushes_again_where_its_pull_has_found_few_of_those_left(place, monkeypatch, n):
    monkeypatch.setattr(search_grid, "beta_of", lambda sums: 1e30)  # however few of all these are
    ways, reasons = proved(core_beside_cliques(n, 32, place))
    last = len(ways) - ways[::-1].index("pull")
    assert 0 < last < len(ways)
    assert reasons[last].startswith("pulled before; vertices ")
    assert reasons[last].endswith(", few of those left")
    assert all(r.startswith(("edges ", "vertices ")) for r in reasons[last + 1 :])
    monkeypatch.setattr(search_grid, "delta_of", lambda sums: NO_DELTA)
    assert proved(core_beside_cliques(n, 32, place))[0][last] == "pull"


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("many", [1, 31, 32, 33, 64, 1000, 2049])
def test_words_full_of_vertices_become_lists(place, monkeypatch, many, directed):
    """A pull finds vertices side by side, some with many edges; a push goes on from all."""
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 1e30)
    monkeypatch.setattr(search_grid, "beta_of", lambda sums: 1e-30)
    monkeypatch.setattr(search_grid, "delta_of", lambda sums: NO_DELTA)
    here, first = 1 + np.arange(many), 40 + many  # some vertices have no edges
    fans = np.where(here % 7 == 3, 40, 1)
    ends = first + np.arange(fans.sum())
    rows, cols = np.r_[np.zeros(many, int), np.repeat(here, fans)], np.r_[here, ends]
    n = int(ends[-1]) + 3
    made = from_entries(rows, cols, None, n, n) if directed else undirected(rows, cols, n)
    A = made.matrix(place)
    assert isinstance(A, Matrix)
    ways, _ = proved(A)
    assert ways[:2] == ["pull", "push"]


def test_a_small_dense_graph_is_pulled_from_a_part_of_its_edges_on(place):
    """Neighbours of a root have a bit less than half of the edges, or a bit more."""
    u, v = np.triu_indices(300, 1)
    kept = np.random.default_rng(1).random(len(u)) < 0.45
    A = undirected(u[kept], v[kept], 300).matrix(place)
    assert {tuple(proved(A, source)[0][:2]) for source in range(4)} == {("push", "pull")}
