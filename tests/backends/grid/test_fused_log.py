"""A trace of a search of pieces has a row a level, and what each piece has sent."""

import itertools

import numpy as np
import pytest
from pieces_of_search import PIECES, Search, edges_of, matrix, sim_grid, sims
from samples import picked

import lagpu
from lagpu import BOOL, INT32, Vector, algorithms, loop, semiring
from lagpu.backends import grid
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.gpu.ops.planner import NO_DELTA
from lagpu.backends.grid.partition import block_cyclic


def assigned_first(A, x, f):
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A)


def assigned_after(A, x, f):
    for depth in loop(until_empty=f):
        f(~x.S, replace=True) << semiring.any_pair(f @ A)
        x(f.S) << depth


def traced(place, n, work, there):
    """Return the rows of a traced search, where some vertices have levels already."""
    A = matrix(n, *edges_of("both ways", n), place)
    x, f = Vector(INT32, n, backend=place), Vector(BOOL, n, backend=place)
    f[7] = True
    for v in there:
        x[v] = 9
    with lagpu.trace() as found:
        work(A, x, f)
    return [row for row in found.rows if row.mode == "fused"], found.totals()


THERE = ((), (3,), (3, 400, 700))  # in no part, in one, and in several
CASES = list(itertools.product((assigned_first, assigned_after), THERE, (1, *PIECES)))


@pytest.mark.parametrize(
    ("work", "there", "pieces"),
    picked(
        CASES,
        (assigned_first, (), 3),
        (assigned_first, (3, 400, 700), 2),
        (assigned_after, (3, 400, 700), 3),
        (assigned_after, (3,), 2),
    ),
)
def test_a_trace_has_a_row_a_level(work, there, pieces, monkeypatch):
    """As on one device that does not ask how a frontier grows; each piece reports what it sends."""
    monkeypatch.setattr(search_grid, "delta_of", lambda sums: NO_DELTA)
    rows, _ = traced(sims(pieces), 3000, work, there)
    want, _ = traced("sim", 3000, work, there)
    fields = ["level", "method", "nvals_in", "nvals_out", "kernel", "direction", "reason"]
    for row, one in zip(rows, want, strict=True):
        # Pieces list what a pull finds where little is left, and one device sees that the matrix is
        # symmetric: either may know more of a level that finds nothing.
        known = fields[:-2] if "not run" in row.reason + one.reason else fields
        assert [getattr(row, x) for x in known] == [getattr(one, x) for x in known]
    products = [row for row in rows if row.direction]
    forms = []
    for row, one in zip(products, [row for row in want if row.direction], strict=True):
        assert row.kernel_ms >= 0
        assert (row.bytes > 0) == ("not run" not in row.reason)
        others = pieces - 1
        assert row.edges == one.edges if row.direction == "push" else row.edges >= row.nvals_out
        own = [block_cyclic(3000, pieces).count(p) for p in range(pieces)]
        wanted = {"list": 4 * row.nvals_out, "bitmap": sum(4 * -(-count // 32) for count in own)}
        assert [phase.name for phase in row.phases] == [f"piece {p}" for p in range(pieces)]
        sent = [sent for phase in row.phases for sent in phase.sent]
        forms.append((row.direction, *{x.form for x in sent}))
        assert sum(x.bytes for x in sent) == wanted[forms[-1][1]] * others
        assert sum(x.messages for x in sent) <= others * pieces
    always = {("push", "list"), ("push", "bitmap"), ("pull", "bitmap")}
    assert set(forms) | {("pull", "list")} == always | {("pull", "list")}


@pytest.mark.parametrize("pieces", PIECES)
def test_words_behind_the_last_vertex_with_an_edge_into_it_are_not_sent(pieces, monkeypatch):
    monkeypatch.setattr(grid.search, "alpha_of", lambda *_, **__: 1e9)  # pull
    monkeypatch.setattr(grid.search, "beta_of", lambda sums: 1e9)
    n, used = 6000, 700
    A = matrix(n, np.arange(used - 1), np.arange(1, used), sims(pieces))
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, used - 5)
    reach = [sum(block_cyclic(n, pieces).owner(np.arange(used)) == p) for p in range(pieces)]
    for row in [row for row in t.rows if row.direction == "pull"]:
        sizes = [[x.bytes for x in phase.sent] for phase in row.phases]
        assert sum(map(sum, sizes)) == sum(4 * -(-count // 32) for count in reach) * (pieces - 1)


@pytest.mark.parametrize("beta", [1, 4, 100, 1e9])
@pytest.mark.parametrize("pieces", PIECES)
def test_a_pull_that_can_find_but_few_vertices_lists_them(pieces, beta, monkeypatch):
    """So few that the next level would list them, if it found them as words."""
    monkeypatch.setattr(grid.search, "alpha_of", lambda *_, **__: 1e9)  # pull
    monkeypatch.setattr(grid.search, "beta_of", lambda sums: beta)
    n = 3000
    i, j = edges_of("both ways", n)
    i, j = np.r_[i, n - 9 : n - 2], np.r_[j, n - 8 : n - 1]  # and a tail, one way
    A, B = (matrix(n, i, j, place) for place in (sims(pieces), "cpu"))
    with lagpu.trace() as t:
        levels = algorithms.bfs_levels(A, 7)
    assert levels.to("cpu").isequal(algorithms.bfs_levels(B, 7))
    left, forms = len(np.unique(j)), []
    for row in [row for row in t.rows if row.direction]:
        forms.append((row.direction, *{x.form for phase in row.phases for x in phase.sent}))
        assert forms[-1] == ("pull", "list" if left * beta < n else "bitmap")
        left -= row.nvals_out
    assert left >= 0
    assert (("pull", "list") in forms) == (beta < 1e9)


@pytest.mark.parametrize("pieces", PIECES)
def test_what_a_push_into_words_has_found_is_pulled_however_little_it_is(pieces, monkeypatch):
    monkeypatch.setattr(grid.search, "gamma_of", lambda *_: 1e30)
    monkeypatch.setattr(grid.search, "beta_of", lambda sums: 1e-9)  # back to lists after a pull
    n = 3000
    A = matrix(n, *edges_of("both ways", n), sims(pieces))
    with lagpu.trace() as t:
        algorithms.bfs_levels(A, 7)
    rows = [row for row in t.rows if row.direction]
    into_words = [row.reason.endswith(": into words") for row in rows]
    assert into_words[0]
    for row, then, words in zip(rows, rows[1:], into_words, strict=False):
        assert (then.reason == f"pushed into words before; vertices {row.nvals_out}") == words
        assert not words or then.direction == "pull"


def test_levels_beyond_the_log_are_counted(monkeypatch):
    whole, totals = traced(sims(2), 3000, assigned_first, ())
    assert totals.unrecorded == 0
    monkeypatch.setattr("lagpu.backends.gpu.profile.CAPACITY", 7)  # three levels
    rows, totals = traced(sims(2), 3000, assigned_first, ())
    assert [row.nvals_out for row in rows] == [row.nvals_out for row in whole[: len(rows)]]
    assert (len(rows), totals.unrecorded) == (4, len(whole) - 4)


def test_two_searches_of_one_trace():
    search, again = Search(sim_grid(2)), Search(sim_grid(2))
    with lagpu.trace() as found:
        search.run()
        again.run()
    levels = [row.nvals_out for row in found.rows]
    assert levels[: len(levels) // 2] == levels[len(levels) // 2 :]
