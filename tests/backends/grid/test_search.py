"""What a search by a system sends is what the papers' formulas give for a graph by hand."""

import time

import numpy as np
import pytest
from grids import own_grid
from ranks import on_ranks

import lagpu
from lagpu import BOOL, Matrix, algorithms
from lagpu.backends.cpu import CpuBackend
from lagpu.backends.grid.backend import GridBackend, GridMeter
from lagpu.backends.grid.comm import MpiEngine
from lagpu.backends.guard import overridden

#: 256 vertices on 2 x 2 pieces: runs of 16, each piece has 64, whose bitmap is 8 bytes.
N, WORDS = 256, 8
COUNTS = ("counts", 12, 4 * 3 * 16)  # two numbers of each piece to three others


def star(place):
    """A star around vertex 0, which piece 0 has; each other piece has 64 of its ends."""
    ends = np.arange(1, N)
    i, j = np.r_[ends, 0 * ends], np.r_[0 * ends, ends]
    return Matrix.from_coo(i, j, True, BOOL, nrows=N, ncols=N, backend=place)


def phases(policy, search=algorithms.bfs_parents):
    """Return, for each level, what was sent in each phase: (form, messages, bytes)."""
    A = star(overridden(own_grid((2, 2))[0], None, policy))
    with lagpu.trace() as t:
        search(A, 0)
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
    """The column of pieces 0, 1 receives vertex 0; their rows receive 64 vertices each."""
    (first, second), rows = phases("kepler")
    assert first == [
        ("expand", ("list", 1, 4)),
        ("expansion",),
        ("fold", ("bitmap", 2, 2 * WORDS)),
        ("update",),
        ("agree", COUNTS),
    ]
    # Piece 2 does not know that vertex 0, which is in its row, is visited.
    assert second == [
        ("expand", ("bitmap", 4, 4 * WORDS)),
        ("expansion",),
        ("fold", ("list", 1, 4)),
        ("update",),
        ("agree", COUNTS),
        ("parents", ("bitmap", 2, 2 * WORDS), ("parents", 2, 2 * 64 * 4)),
    ]
    assert [row.direction for row in rows] == ["push", "push"]
    assert "always pushes; 0 of 4 pieces pull" in rows[0].reason


def test_lists_alone_and_bitmaps_alone():
    (first, second), _ = phases("kepler:messages=list", algorithms.bfs_levels)
    assert first[2] == ("fold", ("list", 2, 2 * 64 * 4))
    assert second[0] == ("expand", ("list", 4, 255 * 4))
    assert [name for name, *_ in second] == ["expand", "expansion", "fold", "update", "agree"]
    (first, second), _ = phases("kepler:messages=bitmap", algorithms.bfs_levels)
    assert first[0] == ("expand", ("bitmap", 4, 4 * WORDS))
    assert second[2] == ("fold", ("bitmap", 4, 4 * WORDS))


def test_pairs_are_sent_where_parents_are_not_late():
    (first, second), _ = phases("kepler:parents=sent")
    assert first[2] == ("fold", ("pairs", 2, 2 * 64 * 8))
    assert second[2] == ("fold", ("pairs", 1, 8))
    assert "parents" not in [name for name, *_ in second]


def test_the_row_receives_what_is_visited_before_a_pull():
    (first, second), rows = phases("bfs2d")
    pulls = ("agree", ("counts", 12, 4 * 3 * 8))
    assert first[1] == pulls
    assert first[2][0] == "expansion"  # no piece pulls
    # Each piece sends its row 63 or 64 vertices; so vertex 0 is not sent again.
    assert second[1:3] == [pulls, ("share", ("bitmap", 4, 4 * WORDS))]
    assert second[4] == ("fold",)
    assert [row.direction for row in rows] == ["push", "pull"]
    assert "threshold 0.05; 4 of 4 pieces pull" in rows[1].reason
    (_, second), _ = phases("bfs2d:share=no")
    assert second[2] == ("fold", ("list", 1, 4))


def test_each_piece_has_a_direction_of_its_own():
    """At level 0, a frontier of 1 vertex: column 0 has it; over 127 or 128 unvisited."""
    _, rows = phases("bfs2d:ratio=0.0001")
    assert rows[0].direction == "both"
    assert "2 of 4 pieces pull" in rows[0].reason


def test_hiragushi_sends_lists_and_pairs_then_bitmaps_as_they_are():
    (first, second), rows = phases("hiragushi:alpha=0.5")
    assert first[0] == ("expand", ("list", 1, 4))
    assert first[2] == ("fold", ("pairs", 2, 2 * 64 * 8))
    # The edges of level 1 are all that are left: 255 * 0.5 > 0.
    assert second[0] == ("expand", ("bitmap", 4, 4 * WORDS))
    assert second[1] == ("share", ("bitmap", 4, 4 * WORDS))
    assert "frontier 255, its edges 255, unexplored 0; 4 of 4" in rows[1].reason


def test_a_trace_counts_what_the_places_looked_at():
    _, rows = phases("kepler")
    assert rows[0].edges == N - 1
    assert {row.kernel for row in rows} == {"SuiteSparse saxpy"}


def test_sorted_lists_have_a_phase_and_their_bytes():
    """Each level lists 255 neighbours, with 8 bytes for each of the two numbers."""
    plain, _ = phases("kepler")
    sent, rows = phases("kepler:claims=sort")
    for level, row, wanted in zip(sent, rows, plain, strict=True):
        assert level == [*wanted[:2], ("sort",), *wanted[2:]]
        assert row.edges == N - 1
        assert f"255 neighbours sorted, {255 * 16} bytes" in row.reason
        assert row.kernel == "kepler:claims=sort"


def test_a_level_that_pulls_lists_nothing():
    sent, rows = phases("bfs2d:claims=sort,ratio=0.02,share=no")
    assert [[name for name, *_ in level if name == "sort"] for level in sent] == [["sort"], []]
    assert [row.direction for row in rows] == ["push", "pull"]
    assert rows[1].kernel == "SuiteSparse saxpy"


def test_compiling_is_no_time_of_the_host(monkeypatch):
    A = star(overridden(own_grid((2, 2))[0], None, "kepler"))
    compiled = iter([0.0, 1e6])
    monkeypatch.setattr(GridMeter, "_compile_ms", lambda _: next(compiled))
    start = time.perf_counter()
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, 0)
    elapsed = (time.perf_counter() - start) * 1e3
    assert t.totals().compile_ms >= 1e6
    assert 0 < t.totals().host_ms + 1e6 <= elapsed


@pytest.mark.parametrize("policy", ["kepler", "bfs2d:ratio=0.1", "kepler:claims=sort", "hiragushi"])
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


def test_degrees_are_counted_again_where_the_matrix_was_written():
    A = star(overridden(own_grid((2, 2))[0], None, "hiragushi"))

    def why():
        with lagpu.trace() as t:
            algorithms.bfs_levels(A, 0)
        return next(row.reason for row in t.rows if row.method == "mxv")

    assert "frontier 1, its edges 255, unexplored 255;" in why()
    assert "its edges 255, unexplored 255;" in why()
    A << A.select("tril")
    assert "its edges 0, unexplored 255;" in why()
