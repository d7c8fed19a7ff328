"""The trace: a row an operation, levels of the loop, nothing while it is off."""

import pytest

import lagpu
from lagpu import BOOL, INT32, Matrix, Vector, algorithms, binary, monoid, semiring


@pytest.fixture
def path(backend):
    return Matrix.from_coo([0, 1, 2, 3], [1, 2, 3, 4], nrows=5, ncols=5, backend=backend)


def test_a_search_row_by_row(path):
    with lagpu.trace() as t:
        algorithms.bfs_levels(path, 0)
    assert [row.method for row in t.rows] == ["assign_scalar", "mxv"] * 5
    assert [row.level for row in t.rows] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    products = t.rows[1::2]
    assert [row.nvals_in for row in products] == [1] * 5
    assert [row.nvals_out for row in products] == [1, 1, 1, 1, 0]
    assert all(row.ms >= 0 for row in t.rows)
    assert all(row.kernel and row.reason for row in products)
    assert products[0].formula == "frontier(~levels.S, replace) << frontier any_pair A"
    assert t.rows[0].formula == "levels(frontier.S) << 0"


def test_edges_looked_at(path):
    with lagpu.trace() as t:
        algorithms.bfs_levels(path, 0)
    looked = [row.edges for row in t.rows if row.method == "mxv"]
    assert all(isinstance(edges, int) and edges >= 0 for edges in looked)
    if path.backend.name == "cpu":
        assert looked == [1, 1, 1, 1, 0]


def test_results_are_those_without_a_trace(path):
    without = algorithms.bfs_levels(path, 1)
    with lagpu.trace():
        traced = algorithms.bfs_levels(path, 1)
    assert traced.isequal(without)


def test_levels_end_with_the_loop_also_by_break_and_nested(backend):
    v = Vector.from_dense([1], backend=backend)
    w = Vector(INT32, 1, backend=backend)
    with lagpu.trace() as t:
        w << 0
        for outer in lagpu.loop(times=2):
            for _ in lagpu.loop(times=5):
                w << v
                break
            w << outer
        w << 3
    assert [row.level for row in t.rows] == [-1, 0, 0, 0, 1, -1]


def test_formulas_name_mask_accumulator_and_indices(backend):
    w = Vector(INT32, 2, backend=backend, name="w")
    u = Vector.from_dense([1, 2], backend=backend, name="u")
    A = Matrix.from_coo([0], [1], nrows=2, ncols=2, backend=backend)
    with lagpu.trace() as t:
        w(~u.V, accum=binary.plus) << u.ewise_add(u, binary.min)
        w(u.S, replace=True)[[0]] = 5
        w << semiring.plus_first(A.T @ u)
        w << u.reduce(monoid.plus)
        w << A[0, :]
    assert [row.formula for row in t.rows] == [
        "w(~u.V, accum=binary.plus) << min(u (+) u)",
        "w(u.S, replace)[I] << 5",
        "w << A' plus_first u",
        "w << 3",
        "w << A[0, :]",
    ]


def test_traces_nest_and_end_with_an_error(backend):
    w = Vector(BOOL, 1, backend=backend)
    with lagpu.trace() as outer:
        with pytest.raises(RuntimeError, match="stop"), lagpu.trace() as inner:  # noqa: PT012
            w << True
            raise RuntimeError("stop")
        w << False
    w << True
    assert (len(inner.rows), len(outer.rows)) == (1, 1)
