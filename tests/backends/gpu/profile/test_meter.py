"""What a trace must not do while a program runs: wait, copy, or make again what it has."""

import gc

import numpy as np
import programs
import pytest
from meters import recorded  # noqa: F401

import lagpu
from lagpu import BOOL, INT32, Vector, algorithms, generators


def test_a_traced_search_asks_the_device_for_what_an_untraced_one_does(place, recorded):
    A = generators.path(40, backend=place)
    for search in (
        algorithms.bfs_levels,
        algorithms.bfs_parents,
        programs.shortest_paths,
    ):
        search(A, 3)
        recorded.clear()
        search(A, 3)
        untraced = list(recorded)
        recorded.clear()
        with lagpu.trace() as t:
            search(A, 3)
        assert recorded == untraced == ["grid_search"]
        assert len(t.rows) > 40
        assert recorded[1:] == ["to_host"] * 2  # the log, once


def test_a_trace_that_is_gone_leaves_its_buffer_to_the_next(place, monkeypatch):
    A = generators.path(40, backend=place)
    monkeypatch.setattr(place.runtime, "logs", [])
    logs = place.runtime.logs
    enabled = gc.isenabled()
    gc.disable()  # nothing of a trace waits for the collector
    try:
        with lagpu.trace() as t:
            levels = algorithms.bfs_levels(A, 3)
        rows = t.rows
        assert logs == []
        del t
        assert len(logs) == 1
        kept = logs[0]
        with lagpu.trace() as t:
            algorithms.bfs_levels(A, 3)
            assert logs == []
            with lagpu.trace() as inner:
                algorithms.bfs_levels(A, 4)
        assert [r.nvals_out for r in t.rows] == [r.nvals_out for r in rows]
        assert inner.rows[-1].nvals_in != t.rows[-1].nvals_out == 0
        assert levels.nvals == 40
        del t, inner
        assert len(logs) == 1  # one is enough
        assert logs[0] is kept or len(logs[0]) == len(kept)
    finally:
        if enabled:
            gc.enable()


def test_a_trace_may_be_entered_again(place):
    A = generators.path(5, backend=place)
    t = lagpu.trace()
    for many in (1, 2):
        with t:
            algorithms.bfs_levels(A, 0)
        algorithms.bfs_levels(A, 0)
        assert len(t.rows) == 11 * many


@pytest.mark.parametrize("fuse", [True, False])
def test_the_first_entry_and_the_others(place, fuse):
    """Of a vector that is empty, sparse, or a bitmap: what is launched for an entry is timed."""
    v = Vector(INT32, 70, backend=place)
    mask = Vector.from_coo(np.arange(0, 70, 2), True, BOOL, size=70, backend=place)
    with lagpu.trace(fuse=fuse) as t:
        v[3] = 7
        v[4] = 8
        v(mask.S) << 1
        v[5] = 9
    assert [row.formula for row in t.rows] == [
        "v[3] << 7",
        "v[4] << 8",
        "v(mask.S) << 1",
        "v[5] << 9",
    ]
    assert [row.nvals_out for row in t.rows] == [1, 2, 36, 37]
    assert t.rows[0].kernel_ms == 0
    assert all(row.bytes for row in t.rows[1:3])
    assert v.get(3) == 7


def test_names_are_those_at_the_time(place):
    """A constant's statement is spelled later, with the name that its output had."""
    v = Vector(INT32, 5, backend=place)
    with lagpu.trace() as t:
        v[0] = 1
        u, v = v, Vector(INT32, 5, backend=place)
        v[1] = 2
        w, u = u, None
    assert [row.formula for row in t.rows] == ["v[0] << 1", "v[1] << 2"]
    assert w.nvals == 1
