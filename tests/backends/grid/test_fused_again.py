"""A repeated search of pieces keeps what does not change, and checks what may."""

import numpy as np
import pytest
from pieces_of_search import (
    PIECES,
    RUNS,
    Alone,
    Paths,
    Search,
    edges_of,
    fails_at_each_call,
    fails_without,
    matrix,
    sims,
)

import lagpu
from lagpu import BOOL, FP64, INT32, INT64, Vector, algorithms, loop, semiring
from lagpu.backends.gpu.device.protocol import Peers
from lagpu.backends.gpu.device.sim import SimDevice
from lagpu.backends.gpu.fused.loop import KernelLoop
from lagpu.backends.gpu.storage.stores import VectorStore
from lagpu.backends.grid import search as fused
from lagpu.errors import OutOfMemory

SIZES = [33, 1500]  # slots that are numbered, and slots that are indices


def levels(A, source):
    return algorithms.bfs_levels(A, source).to_dense(-1).tolist()


@pytest.mark.parametrize("n", SIZES)
def test_what_does_not_change_is_found_once(n, monkeypatch):
    place, seen = sims(2), []
    for owner, name in (
        (fused, "_why_no_kernels"),
        (fused, "_why_not_here"),
        (SimDevice, "prepare"),
    ):
        usual = getattr(owner, name)

        def noted(*given, usual=usual, name=name, **how):
            seen.append(name)
            return usual(*given, **how)

        monkeypatch.setattr(owner, name, noted)
    i, j = edges_of("both ways", n)
    A, B = (matrix(n, i, j, x) for x in (place, "cpu"))
    for source in (int(i[0]), int(i[5]), int(i[0])):
        assert levels(A, source) == levels(B, source)
        assert place.last_loop == f"{RUNS}2 pieces"
    assert seen == ["_why_no_kernels", "_why_not_here", "prepare", "prepare"]
    i, j = edges_of("random", n)
    A, B = (matrix(n, i, j, x) for x in (place, "cpu"))
    assert levels(A, int(i[0])) == levels(B, int(i[0]))
    assert seen[4:] == ["_why_not_here", "prepare", "prepare"]


def bounded(A, source, times):
    """Search some levels; return them, and what is left in the frontier."""
    x, f = Vector(INT64, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    f[source] = True
    for depth in loop(until_empty=f, times=times):
        x(f.S) << depth
        f(~x.S, replace=True) << semiring.any_pair(f @ A)
    return x.to_dense(-1).tolist(), f.to_coo()[0].tolist()


def counts(A, source):
    x, f = Vector(FP64, A.nrows, like=A), Vector(FP64, A.nrows, like=A)
    f[source] = 1.0
    for _ in loop(until_empty=f):
        x(f.S) << f
        f(~x.S, replace=True) << semiring.plus_first(f @ A)
    return x.to_dense(-1).tolist()


def backwards(A, source):
    x, f = Vector(INT32, A.nrows, like=A), Vector(BOOL, A.nrows, like=A)
    f[source] = True
    for depth in loop(until_empty=f):
        x(f.S) << depth
        f(~x.S, replace=True) << semiring.any_pair(A @ f)
    return x.to_dense(-1).tolist()


def reached(A, source):
    found = algorithms.bfs_parents(A, source).to_dense(-1)
    return (found >= 0).tolist()


WORK = [
    levels,
    lambda A, source: bounded(A, source, 1),
    counts,
    lambda A, source: bounded(A, source, 3),
    reached,
    backwards,
    lambda A, source: bounded(A, source, None),
]


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("n", SIZES)
def test_searches_of_several_structures_take_turns_on_a_graph(n, pieces):
    i, j = edges_of("random", n)
    A, B = (matrix(n, i, j, x) for x in (sims(pieces), "cpu"))
    for order in (WORK, WORK[::-1]):
        for work in order:
            for source in (int(i[0]), n - 1):
                assert work(A, source) == work(B, source)
                assert A.backend.last_loop.startswith(RUNS)


def test_graphs_and_backends_take_turns_in_a_loop():
    n = 700
    graphs = [
        [matrix(n, *edges_of(kind, n), place) for kind in ("random", "both ways", "hubs")]
        for place in ("cpu", sims(2), "sim", sims(3))
    ]
    for source in (4, 99):
        for want, *others in zip(*graphs, strict=True):
            for A in others:
                assert levels(A, source) == levels(want, source)


def test_a_graph_that_was_written_is_another_one():
    n, place = 300, sims(2)
    A, B = (matrix(n, *edges_of("random", n), x) for x in (place, "cpu"))
    other, want = (matrix(n, *edges_of("hubs", n), x) for x in (place, "cpu"))
    for work in (levels, backwards):
        assert work(A, 2) == work(B, 2)
    A << other
    for work in (levels, backwards):
        assert work(A, 2) == work(want, 2)
        assert place.last_loop.startswith(RUNS)


@pytest.mark.parametrize("piece", [0, 1])
def test_one_part_that_is_another_object_is_seen(piece):
    n, place = 300, sims(2)
    A, B = matrix(n, *edges_of("random", n), place), matrix(n, *edges_of("hubs", n), place)
    want = matrix(n, *edges_of("random", n), "cpu")
    levels(A, 2), levels(B, 2)
    assert fused._Space.of(A.data) is not fused._Space.of(B.data)
    mine, theirs = A.data.parts[piece], B.data.parts[piece]
    mine.store, theirs.store = theirs.store, mine.store
    assert fused._Space.of(A.data) is None
    mine.store, theirs.store = theirs.store, mine.store
    assert levels(A, 2) == levels(want, 2)


def test_a_graph_whose_rows_are_forbidden_later_is_searched_by_statements():
    n, place = 300, sims(2)
    A, B = (matrix(n, *edges_of("random", n), x) for x in (place, "cpu"))
    for work in (levels, backwards):
        assert work(A, 3) == work(B, 3)
        assert place.last_loop.startswith(RUNS)
    A.orientation = "csc"
    for work in (levels, backwards):
        assert work(A, 3) == work(B, 3)
        assert "its orientation is csc" in place.last_loop
    A.orientation = "auto"
    for work in (levels, backwards):
        assert work(A, 3) == work(B, 3)
        assert place.last_loop.startswith(RUNS)


def test_results_are_those_of_their_call_alone():
    n, place = 1500, sims(2)
    i, j = edges_of("both ways", n)
    A = matrix(n, i, j, place)
    first = algorithms.bfs_levels(A, int(i[0]))
    before = first.to_dense(-1).tolist()
    second = algorithms.bfs_levels(A, int(i[9]))
    assert first.to_dense(-1).tolist() == before
    for one, other in zip(first.data.parts, second.data.parts, strict=True):
        assert one is not other
        assert not np.shares_memory(one.values, other.values)
        assert not np.shares_memory(one.words, other.words)


def test_a_trace_between_two_searches():
    n, place = 700, sims(2)
    i, j = edges_of("both ways", n)
    A, B = (matrix(n, i, j, x) for x in (place, "cpu"))
    for source in (5, 6):
        assert levels(A, source) == levels(B, source)
        with lagpu.trace() as found:
            assert levels(A, source) == levels(B, source)
        assert [row.level for row in found.rows if row.direction][:2] == [0, 1]


def test_a_trace_of_the_first_search(monkeypatch):
    monkeypatch.setattr(SimDevice, "unasked", 1 << 20)
    n, place = 700, sims(2)
    i, j = edges_of("both ways", n)
    A, B = (matrix(n, i, j, x) for x in (place, "cpu"))
    with lagpu.trace():
        assert levels(A, 5) == levels(B, 5)
    for source in (6, 7, 8):
        assert levels(A, source) == levels(B, source)


# -------------------------------------------------------------------------------------- faults
@pytest.fixture(params=[Search, Paths, Alone])
def known(request):
    """A search on a grid, on whose graph one of its structure has run; and what it finds."""
    want, first = request.param("cpu"), request.param(sims(2))
    want.run()
    first.run()
    assert first.state() == want.state()
    again = request.param(first.A.backend)
    again.A = first.A
    return again, want.state()


@pytest.mark.parametrize(
    ("owner", "method", "error"),
    [
        (VectorStore, "spare_words", KeyboardInterrupt),
        (VectorStore, "spare_words", MemoryError),
        (SimDevice, "run_together", KeyboardInterrupt),
        (SimDevice, "run_together", MemoryError),
        (Peers, "_reported", KeyboardInterrupt),  # a host that waits for a report allocates nothing
    ],
)
def test_an_error_in_a_known_search_leaves_all_as_it_was(owner, method, error, known, monkeypatch):
    """At any place: each call of a method fails in turn."""
    search, want = known
    fails_at_each_call(search, owner, method, error, monkeypatch)
    assert search.state() == want


@pytest.mark.parametrize("known", [Alone], indirect=True)
def test_an_interrupt_while_the_next_search_is_prepared(known, monkeypatch):
    search, want = known
    monkeypatch.setattr(SimDevice, "unasked", 1 << 20)
    fails_at_each_call(search, VectorStore, "spare_words", KeyboardInterrupt, monkeypatch)
    assert search.state() == want


def test_an_interrupt_after_a_loop_of_one_piece(monkeypatch):
    usual, search, want = KernelLoop.run, Alone(sims(1)), Alone("cpu")

    def stopped(self, log=None):
        usual(self, log)
        raise KeyboardInterrupt

    want.run()
    with monkeypatch.context() as patch:
        patch.setattr(KernelLoop, "run", stopped)
        with pytest.raises(KeyboardInterrupt):
            search.run()
    assert search.state() == want.state()
    assert (search.x.nvals, search.f.nvals) == (want.x.nvals, 0)


@pytest.mark.parametrize("known", [Alone], indirect=True)
def test_no_memory_for_the_next_search(known, monkeypatch):
    search, want = known
    space = fused._Space.of(search.A.data)
    monkeypatch.setattr(SimDevice, "unasked", 1 << 20)
    with monkeypatch.context() as patch:
        usual, calls = VectorStore.to_blank, []

        def to_blank(vector):
            calls.append(vector)
            if len(calls) == 4:  # of the first piece, in the next search
                raise OutOfMemory("none")
            return usual(vector)

        patch.setattr(VectorStore, "to_blank", to_blank)
        search.run()
    assert search.state() == want
    assert len(calls) == 4
    assert not space.ahead


@pytest.mark.parametrize("absent", [0, 1])
def test_a_piece_that_is_absent_from_a_known_search(absent, known, monkeypatch):
    search, want = known
    fails_without(search, absent, monkeypatch)
    search.run()
    assert search.state() == want
