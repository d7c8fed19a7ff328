"""Fused searches whose blocks share the pull of long columns."""

import numpy as np
import pytest
from hubs import directions
from limits import set_limits
from searches import levels_and_paths, levels_behind, parents, start

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Matrix, Vector, algorithms, binary, check
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.gpu.ops.planner import NO_DELTA
from lagpu.backends.gpu.storage import workspaces


@pytest.fixture
def pulls(monkeypatch):
    """All levels are pulled; no block or cluster goes on alone."""
    set_limits(monkeypatch, solo=0, cluster_solo=0)
    monkeypatch.setattr(search_grid, "alpha_of", lambda *_, **__: 1e9)
    monkeypatch.setattr(search_grid, "beta_of", lambda sums: 1e9)
    monkeypatch.setattr(search_grid, "delta_of", lambda sums: NO_DELTA)


@pytest.fixture
def shared(pulls, monkeypatch):
    """Columns are shared in every graph, from few entries on."""
    set_limits(monkeypatch, spread_entries=0, spread=32)


def graph(n, place, directed, seed=0):
    """Half of the entries are in a few columns; with self-loops, duplicates, isolated vertices."""
    draw, count = np.random.default_rng(n + seed), 12 * n
    few, many = draw.integers(0, n // 40 + 1, count), draw.integers(0, max(1, 3 * n // 4), count)
    ends = (
        draw.integers(0, max(1, 4 * n // 5), count),
        np.where(draw.random(count) < 0.5, few, many),
    )
    if not directed:
        ends = np.concatenate([ends, ends[::-1]], axis=1)
    return Matrix.from_coo(*ends, nrows=n, ncols=n, dup_op=binary.lor, backend=place)


def proved(A, source):
    """Prove levels, parents and path counts; return the directions of the levels."""
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, source)
    check.check_levels(A, source, levels)
    assert algorithms.bfs_levels(A, source).isequal(levels)  # without a log
    check.check_parents(A, source, algorithms.bfs_parents(A, source), levels)
    check.check_paths(A, source, algorithms.count_shortest_paths(A, source))
    return directions(t)


def shares(A):
    """Whether kernels of searches on the matrix share columns."""
    spaces = [x for x in A.data.store.cache.values() if isinstance(x, search_grid.Workspace)]
    made = [launch.kernel for space in spaces for launch in space.launches.values()]
    assert made
    found = {"LG_SPREAD" in dict(kernel.macros) for kernel in made}
    assert len(found) == 1
    return found.pop()


@pytest.mark.each_value
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 1023, 1025])
def test_random_graphs(place, shared, n, directed):
    A = graph(n, place, directed)
    for source in {0, n // 2, n - 1}:  # the last one is isolated
        proved(A, source)
    assert shares(A)


@pytest.mark.each_value
@pytest.mark.parametrize("columns_only", [False, True])
@pytest.mark.parametrize("mask", ["empty", "half", "full"])
@pytest.mark.parametrize("times", [None, 2])
def test_masks_and_values(place, shared, mask, columns_only, times):
    """Levels before and behind the product, sums, the least of parents; some entries before."""
    n = 1025
    A = graph(n, place, directed=True)
    if columns_only:
        A.orientation = "csc"
    skipped = {"empty": [], "half": range(1, n, 2), "full": range(n)}[mask]

    def run(M):
        found = [Vector(kind, n, like=M) for kind in (INT32, FP64, INT32, INT64, INT32)]
        for k in (0, 2, 4):
            found[k] = Vector.from_coo(list(skipped), 7, INT32, size=n, like=M)
        f, g, h = start(FP64, n, [0], 1.0, M), start(INT64, n, [0, 7], [0, 7], M), None
        levels_and_paths(M, f, found[0], found[1], times)
        parents(M, g, found[2], found[3], times)
        h = start(BOOL, n, [0, 900], True, M)
        levels_behind(M, h, found[4], times)
        return [*found, f, g, h]

    for x, y in zip(run(A), run(A.to("cpu")), strict=True):
        assert x.to("cpu").isclose(y)
    assert shares(A)


@pytest.mark.parametrize("hubs", [1, 5, 33])
def test_hubs_side_by_side(place, pulls, monkeypatch, hubs):
    """Of the length that a GPU shares; the source leads to one hub, and others look in vain."""
    set_limits(monkeypatch, spread_entries=0)
    leaves = 2048 + 256 + 23
    cols = [hubs + leaves // 3 * k + np.arange(leaves) for k in range(hubs)]
    n = int(cols[-1][-1]) + 2
    u, v = np.r_[np.repeat(np.arange(hubs), leaves), 0], np.r_[np.concatenate(cols), n - 1]
    A = Matrix.from_coo(np.r_[u, v], np.r_[v, u], nrows=n, ncols=n, backend=place)
    assert set(proved(A, n - 1)) == {"pull"}
    assert shares(A)


@pytest.mark.parametrize(("hubs", "parts"), [(1, 0), (3, 36), (33, 384)])
def test_what_many_predecessors_leave_is_shared_once(place, pulls, monkeypatch, hubs, parts):
    """A level looks in vain at hubs of 3,000 leaves, beyond the 16 and 128 of a warp by parts."""
    set_limits(monkeypatch, spread_entries=0)
    leaves, n = 3000, 3002 + hubs
    u, v = np.repeat(np.arange(hubs), leaves), np.tile(hubs + np.arange(leaves), hubs)
    u, v = np.r_[u, n - 2], np.r_[v, n - 1]
    A = Matrix.from_coo(np.r_[u, v], np.r_[v, u], nrows=n, ncols=n, backend=place)
    algorithms.bfs_levels(A, n - 1)
    (space,) = (x for x in A.data.store.cache.values() if isinstance(x, search_grid.Workspace))
    chunks = space.lists(False)["chunks_a"]
    chunks[:] = blank = np.uint64(2**64 - 1)
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, n - 1)
    check.check_levels(A, n - 1, levels)
    vain = 2 * leaves * hubs
    assert [row.edges for row in t.rows if row.method == "mxv"] == [vain + 1, vain]
    assert np.count_nonzero(place.device.to_host(chunks) != blank) == parts


@pytest.mark.parametrize(("count", "n", "wanted"), [(4, 20, 0), (5, 20, 46), (5, 64, 0)])
def test_only_uneven_graphs_share(place, monkeypatch, count, n, wanted):
    """A few columns of 1,001 entries, beside columns of one: 1,024 side by side have 1/8 of all."""
    set_limits(monkeypatch, spread_entries=5500, spread_share=8, spread=1000)
    each, n = np.arange(1001), 1024 * n
    rows, cols = np.r_[np.tile(5 + each, count), np.arange(n)], np.repeat(np.arange(count), 1001)
    A = Matrix.from_coo(
        rows, np.r_[cols, np.arange(n)[::-1]], nrows=n, ncols=n, dup_op=binary.lor, backend=place
    )
    assert workspaces.shared_parts(A.data.store) == wanted
    check.check_levels(A, 0, algorithms.bfs_levels(A, 0))
    assert shares(A) == (wanted > 0)


def test_ordinary_graphs_have_the_ordinary_program(place):
    A = graph(1025, place, directed=False)
    algorithms.bfs_levels(A, 0)
    assert not shares(A)
