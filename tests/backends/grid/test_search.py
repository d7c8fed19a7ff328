"""What a search by a system sends is what the papers' formulas give for a graph by hand."""

import time

import numpy as np
import pytest
from grids import own_grid
from ranks import on_ranks

import lagpu
from lagpu import BOOL, Matrix, algorithms, backends
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.grid.backend import GridBackend, GridMeter
from lagpu.backends.grid.comm import MpiEngine
from lagpu.backends.guard import overridden

#: 256 vertices on 2 x 2 pieces: runs of 16, each piece has 64, whose bitmap is 8 bytes.
N, WORDS = 256, 8


HUB = 207  # the last vertex that piece 0 has


def star(place):
    """A star around a vertex of piece 0; each other piece has 64 of its ends."""
    ends = np.delete(np.arange(N), HUB)
    i, j = np.r_[ends, 0 * ends + HUB], np.r_[0 * ends + HUB, ends]
    return Matrix.from_coo(i, j, True, BOOL, nrows=N, ncols=N, backend=place)


def phases(policy, search=algorithms.bfs_parents):
    """Return, for each level, what was sent in each phase: (form, messages, bytes)."""
    A = star(overridden(own_grid((2, 2))[0], None, policy))
    with lagpu.trace() as t:
        search(A, HUB)
    rows = [row for row in t.rows if row.method == "mxv"]
    assert [row.nvals_in for row in rows] == [1, 255]
    assert all(phase.ms >= 0 for row in rows for phase in row.phases)
    return [
        [
            (phase.name, *((of.form, of.messages, of.bytes) for of in phase.sent))
            for phase in row.phases
        ]
        for row in rows
    ], rows


def test_lists_and_bitmaps_whichever_is_shorter():
    """The column of pieces 0, 1 receives the hub; their rows receive 64 vertices each.

    With each set of vertices a byte is sent, the value of all.
    """
    (first, second), rows = phases("kepler", algorithms.bfs_levels)
    assert first == [
        ("expand", ("list", 1, 5)),
        ("expansion",),
        ("fold", ("bitmap", 2, 2 * WORDS + 2)),
        ("update",),
    ]
    # No mask is sent, so piece 2 does not know that the hub, which is in its row, is visited.
    assert second[0] == ("expand", ("bitmap", 4, 4 * WORDS + 4))
    assert second[2] == ("fold", ("list", 1, 4 + 1))
    assert "4 pieces; " in rows[0].reason


def test_lists_alone_and_bitmaps_alone():
    (first, second), _ = phases("kepler:messages=list", algorithms.bfs_levels)
    assert first[2] == ("fold", ("list", 2, 2 * 64 * 4 + 2))
    assert second[0] == ("expand", ("list", 4, 255 * 4 + 4))
    (first, second), _ = phases("kepler:messages=bitmap", algorithms.bfs_levels)
    assert first[0] == ("expand", ("bitmap", 1, WORDS + 1))
    assert second[0] == ("expand", ("bitmap", 4, 4 * WORDS + 4))


def test_parents_are_sent_with_their_vertices():
    (first, second), _ = phases("kepler:messages=list")
    assert first[2] == ("fold", ("list", 2, 2 * (64 * 4 + 8)))  # all have one parent
    assert second[2] == ("fold", ("list", 1, 4 + 8))


def test_the_row_receives_what_is_visited_where_that_is_shared():
    """Parents have values, so the positions of a mask are fewer bytes than what they leave out."""
    n = 600
    i, j = np.nonzero(np.random.default_rng(1).random((n, n)) < 0.2)
    sent = {}
    for policy in ("bfs2d", "bfs2d:share=no"):
        place = overridden(own_grid((2, 2))[0], None, policy)
        A = Matrix.from_coo(i, j, True, BOOL, nrows=n, ncols=n, backend=place)
        with lagpu.trace() as t:
            algorithms.bfs_parents(A, 0)
        rows = [row for row in t.rows if row.method == "mxv"]
        names = [{phase.name for phase in row.phases} for row in rows]
        assert any("share" in of for of in names) == (policy == "bfs2d")
        sent[policy] = sum(of.bytes for row in rows for phase in row.phases for of in phase.sent)
    assert sent["bfs2d"] < 0.9 * sent["bfs2d:share=no"]


def test_a_trace_counts_what_the_places_looked_at():
    _, rows = phases("kepler")
    assert rows[0].edges == N - 1
    assert {row.kernel for row in rows} == {"SuiteSparse saxpy"}


@pytest.mark.parametrize(
    ("policy", "kernels"),
    [
        ("kepler", ["push_active", "push_active"]),
        ("bfs2d", ["push_edge", "pull_scalar"]),
        ("hiragushi:alpha=1e9", ["pull_bitmap", "pull_bitmap"]),
    ],
)
def test_pieces_with_kernels_push_and_pull_by_a_system(policy, kernels):
    A = star(overridden(backends.get("grid:2x1:sim"), None, policy))
    with lagpu.trace(fuse=False) as t:
        algorithms.bfs_levels(A, HUB)
    rows = [row for row in t.rows if row.method == "mxv"]
    assert [row.kernel for row in rows] == kernels


def test_compiling_is_no_time_of_the_host(monkeypatch):
    A = star(backends.get("grid:2:sim"))
    compiled = iter([0.0, 1e6])
    monkeypatch.setattr(GridMeter, "_compile_ms", lambda _: next(compiled))
    start = time.perf_counter()
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, HUB)
    elapsed = (time.perf_counter() - start) * 1e3
    assert t.totals().compile_ms >= 1e6
    assert 0 < t.totals().host_ms + 1e6 <= elapsed


@pytest.mark.parametrize("policy", ["kepler", "bfs2d:ratio=0.1", "hiragushi"])
def test_in_a_job(policy):
    """Two processes of three pieces each: as in one process, and the same in both."""
    rng = np.random.default_rng(5)
    edges = rng.integers(0, 200, 700), rng.integers(0, 200, 700)

    def matrix(place):
        return Matrix.from_coo(
            *edges, True, BOOL, nrows=200, ncols=200, dup_op="any", backend=place
        )

    def search(place):
        A = matrix(overridden(place, None, policy))
        levels, parents = algorithms.bfs(A, int(edges[0][0]))
        return levels.to_dense(-1).tolist(), parents.to_dense(-1).tolist()

    def program(processes):
        places = [CpuBackend() for _ in range(3)]
        return search(GridBackend("grid", MpiEngine(processes, 3), places, (2, 3)))

    want = search(own_grid((2, 3))[0])
    assert want[0] == algorithms.bfs_levels(matrix("cpu"), int(edges[0][0])).to_dense(-1).tolist()
    found = on_ranks(2, program)[0]
    assert found == [want, want]
