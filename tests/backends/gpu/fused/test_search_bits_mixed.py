"""Bit-parallel searches whose levels pull some rows and push the others."""

import numpy as np
import pytest
from bit_searches import random_graph
from samples import picked

import lagpu
from lagpu import INT32, Matrix, loop, semiring
from lagpu.algorithms.bfs import bfs_levels_multi
from lagpu.backends.gpu.fused import search_many

CORE, TAIL, LEAVES = 300, 12, 1300


def core_with_tail(directed):
    """A core that is pulled, a tail at whose end a search begins late, and a hub between both.

    The hub has a long column, which a row from the tail reaches while those of the core are pulled.
    """
    rng = np.random.default_rng(5)
    tail, hub = np.arange(CORE, CORE + TAIL), CORE + TAIL
    leaves = np.arange(hub + 1, hub + 1 + LEAVES)
    core = rng.integers(0, CORE, (2, CORE * 20))
    pairs = [core, [tail[:-1], tail[1:]], [tail[-2:], [hub, 0]], [leaves, np.full(LEAVES, hub)]]
    rows, cols = np.unique(np.concatenate([np.asarray(x) for x in pairs], axis=1), axis=1)
    if not directed:
        both = np.concatenate([rows, cols]), np.concatenate([cols, rows])
        rows, cols = np.unique(np.stack(both), axis=1)
    size = int(leaves[-1]) + 1
    return Matrix.from_coo(rows, cols, True, nrows=size, ncols=size, backend="cpu")


def mixed_levels(A):
    """How many levels of the last search both pulled and pushed, and how many pulled at all."""
    cache = [x for name, x in A.data.store.cache.items() if name.startswith("bit-parallel search")]
    result = A.backend.device.to_host(cache[-1].result)
    return int(result[5]), int(result[3])


def sources_of(k):
    """Most of them in the core, some in the tail."""
    return [*range(k - 3), CORE, CORE + TAIL - 4, CORE + TAIL - 2]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("k", picked([5, 32, 64, 130], 5, 64))
def test_rows_in_both_directions(place, k, directed):
    graph = core_with_tail(directed)
    A = graph.to(place)
    for sources in (sources_of(k), sources_of(k)[::-1]):  # the workspace is as it was
        levels = bfs_levels_multi(A, sources)
        mixed, pulls = mixed_levels(A)
        assert 0 < mixed <= pulls
        assert levels.to("cpu").isequal(bfs_levels_multi(graph, sources))


@pytest.mark.parametrize("part", [1, 4, 64, 1 << 20])
def test_however_many_rows_are_pushed(place, monkeypatch, part):
    """By the part of the heaviest vertices that a row has found."""
    monkeypatch.setattr(search_many, "ENOUGH", part)
    for graph in (core_with_tail(False), random_graph(1100, 8, directed=True)):
        A = graph.to(place)
        found = bfs_levels_multi(A, sources_of(64))
        assert found.to("cpu").isequal(bfs_levels_multi(graph, sources_of(64)))


def test_each_row_goes_the_way_that_looks_at_fewer_edges(place, monkeypatch):
    """Fewer than where nearly all rows are pushed beside a pull, or all are pulled."""
    looked = {}
    for part in (1, search_many.ENOUGH, 1 << 20):
        monkeypatch.setattr(search_many, "ENOUGH", part)
        A = core_with_tail(True).to(place)
        with lagpu.trace() as t:
            bfs_levels_multi(A, sources_of(5))
        looked[part] = sum(r.edges for r in t.rows if r.direction == "pull")
    pushed, chosen, pulled = looked.values()
    assert chosen < 0.5 * pushed < 0.5 * pulled, looked


def left_after(A, times):
    """The frontier that is left, where vertices of `behind` are not to be found."""
    k, n = 8, A.nrows
    rows = np.arange(k)
    frontier = Matrix.from_coo(rows, sources_of(k), True, nrows=k, ncols=n, backend=A.backend)
    levels = Matrix(INT32, k, n, like=A)
    levels[rows[0], CORE - 1] = 99
    for depth in loop(until_empty=frontier, times=times):
        levels(frontier.S) << depth
        frontier(~levels.S, replace=True) << semiring.any_pair(frontier @ A)
    return frontier, levels


@pytest.mark.parametrize("times", range(5))
def test_what_is_left(place, times):
    graph = core_with_tail(False)
    found, right = left_after(graph.to(place), times), left_after(graph, times)
    for x, y in zip(found, right, strict=True):
        assert x.to("cpu").isequal(y)


def test_a_log_has_the_edges_that_are_pushed_beside_a_pull(place, monkeypatch):
    """No row has found all of the heaviest vertices, so all are pushed."""
    monkeypatch.setattr(search_many, "ENOUGH", 1)
    A = core_with_tail(False).to(place)
    with lagpu.trace() as t:
        bfs_levels_multi(A, sources_of(5))
    products = [r for r in t.rows if r.method == "matrix_mxm"]
    pulls = [r for r in products if r.direction == "pull"]
    assert pulls
    assert pulls[0].reason.startswith(f"edges {pulls[0].edges} > ")
