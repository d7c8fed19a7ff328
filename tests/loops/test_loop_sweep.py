"""`sweep`: the levels it yields, its input, and sweeps that run as one kernel."""

import contextlib

import numpy as np
import pytest
from graphs import both_ways, entries, matrix
from hypothesis import strategies as st
from strategies import for_all

import lagpu
from lagpu import (
    BOOL,
    INT32,
    INT64,
    UINT32,
    Matrix,
    Vector,
    algorithms,
    binary,
    semiring,
    sweep,
)
from lagpu.algorithms.betweenness import count_paths
from lagpu.errors import DimensionMismatch, DomainMismatch, InvalidValue


def pairs(levels):
    """What a sweep yields, as lists of positions."""
    found = []
    for here, above in sweep(levels):
        for x in (here, above):
            assert x.dtype is BOOL
            assert x.shape == levels.shape
            assert all(x.to_coo()[-1].tolist())
        found.append(
            [list(zip(*(p.tolist() for p in x.to_coo()[:-1]), strict=True)) for x in (here, above)]
        )
    return found


def wanted(positions, values):
    """The definition: d from the deepest level to 1, the positions of d and of d - 1."""
    of = {d: sorted(p for p, v in zip(positions, values, strict=True) if v == d) for d in {*values}}
    deepest = max(values, default=0)
    return [[of.get(d, []), of.get(d - 1, [])] for d in range(deepest, 0, -1)]


@for_all(cpu=100, compiled=30)
def test_levels_of_a_vector(backend, draw):
    """Unreached vertices, gaps, one level alone; every integer type."""
    n = draw(st.sampled_from((1, 2, 5, 31, 32, 33, 65)), label="n")
    deepest = draw(st.integers(0, min(n - 1, 6)), label="deepest")
    values = draw(st.lists(st.none() | st.integers(0, deepest), min_size=n, max_size=n))
    dtype = draw(st.sampled_from((INT32, INT64, UINT32)), label="type")
    where = [v for v in range(n) if values[v] is not None]
    kept = [values[v] for v in where]
    levels = Vector.from_coo(where, np.array(kept, dtype.numpy), size=n, backend=backend)
    assert pairs(levels) == wanted([(v,) for v in where], kept)


@for_all(cpu=60, compiled=12)
def test_levels_of_a_matrix(backend, draw):
    """A few rows of many columns, a block where there are such; and a square one."""
    k, n = draw(st.sampled_from(((1, 5), (3, 40), (33, 70), (4, 4))), label="shape")
    generator = np.random.default_rng(draw(st.integers(0, 999), label="seed"))
    rows, cols = np.nonzero(generator.random((k, n)) < 0.5)
    values = generator.choice([0, 1, 3], len(rows)).astype(np.int32)
    levels = Matrix.from_coo(rows, cols, values, INT32, nrows=k, ncols=n, backend=backend)
    positions = list(zip(rows.tolist(), cols.tolist(), strict=True))
    got = pairs(levels)
    assert [[sorted(x) for x in pair] for pair in got] == wanted(positions, values.tolist())


def test_levels_of_a_search_in_a_block(backend):
    A = matrix(60, both_ways([(v, v + 1) for v in range(59)]), backend)
    levels = algorithms.bfs_levels_multi(A, [0, 30])
    got = pairs(levels)
    assert len(got) == 59
    assert [[sorted(x) for x in pair] for pair in got[:2]] == [
        [[(0, 59)], [(0, 58)]],
        [[(0, 58)], [(0, 57)]],
    ]
    assert sorted(got[-1][0]) == [(0, 1), (1, 29), (1, 31)]


def test_levels_beyond_16_bits(backend):
    n = 2**16 + 2
    levels = Vector.from_coo(
        [3, 4, 5], np.array([1, 2**16 + 1, 2**16]), INT32, size=n, backend=backend
    )
    here, above = next(iter(sweep(levels)))
    assert here.to_coo()[0].tolist() == [4]
    assert above.to_coo()[0].tolist() == [5]


def test_nothing_to_sweep(backend):
    for levels in (
        Vector(INT32, 5, backend=backend),
        Vector(INT32, 0, backend=backend),
        Vector.from_coo([2], [0], INT32, size=5, backend=backend),
        Matrix(INT32, 2, 5, backend=backend),
    ):
        assert list(sweep(levels)) == []


def test_levels_are_read_once(backend):
    """What the body does to them changes no turn."""
    for levels in (
        Vector.from_coo([0, 1, 2], [0, 1, 2], INT32, size=3, backend=backend),
        Matrix.from_coo([0, 0, 0], [0, 1, 2], [0, 1, 2], INT32, nrows=1, ncols=3, backend=backend),
    ):
        seen = []
        for here, above in sweep(levels):
            seen.append((here.nvals, above.nvals))
            levels << levels.apply("times", right=0)
        assert seen == [(1, 1), (1, 1)]


def test_break_and_an_error_in_the_body(backend):
    levels = Vector.from_coo([0, 1, 2], [0, 1, 2], INT32, size=3, backend=backend)
    for here, _above in sweep(levels):
        assert here.nvals == 1
        break

    def fails():
        for here, _above in sweep(levels):
            1 / (here.nvals - 1)

    with pytest.raises(ZeroDivisionError):
        fails()
    assert len(list(sweep(levels))) == 2
    assert getattr(backend, "recorder", None) is None


def raising(A, levels, x, short):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        short(above.S, replace=True) << semiring.plus_first(x @ A)


def dependencies(A, levels, paths, delta, share):
    for here, above in sweep(levels):
        share(here.S, replace=True) << (1 + delta) / paths
        delta(above.S, accum=binary.plus) << semiring.plus_first(share @ A.T) * paths


@pytest.mark.parametrize("sources", [[3], [0, 3, 20]])
def test_parts_of_an_expression_are_parts_of_a_sweep(backend, sources):
    A = matrix(40, both_ways([(v, v + d) for d in (1, 8) for v in range(40 - d)]), backend)
    levels, paths = count_paths(A, sources)
    fuses = not (backend.name.startswith("grid") and len(sources) > 1)  # there without bitmaps
    found = []
    for way in (lagpu.eager, lagpu.fused if fuses else contextlib.nullcontext):
        delta = paths.dup()
        delta << 0
        with way():
            dependencies(A, levels, paths, delta, paths.dup())
        found.append(delta)
    assert found[0].isclose(found[1])
    assert 30 < found[1].reduce("max").new().value < 120
    if fuses and backend.capabilities.fuses:
        assert "sweep: " in A.backend.last_loop
        assert "no sweep" not in A.backend.last_loop


def test_an_error_in_the_body_over_a_matrix_leaves_what_stood_before(backend):
    A = matrix(40, both_ways([(v, v + 1) for v in range(39)]), backend)
    levels = algorithms.bfs_levels_multi(A, [0, 20])
    x, short = Matrix(INT64, 2, 40, like=A), Matrix(INT64, 2, 39, like=A)
    with pytest.raises(DimensionMismatch):
        raising(A, levels, x, short)
    assert [p.tolist() for p in x.to_coo()] == [[0], [39], [1]]
    assert getattr(backend, "recorder", None) is None


def test_what_it_refuses(backend):
    """At the call, before the first turn."""

    def of(values, dtype, size=3):
        return Vector.from_coo(np.arange(len(values)), values, dtype, size=size, backend=backend)

    def row(value):
        return Matrix.from_coo([0], [1], [value], INT32, nrows=1, ncols=4, backend=backend)

    for levels, error, fact in (
        ([0, 1], DomainMismatch, "list is neither a Vector nor a Matrix"),
        (of([0.0, 1.0], "FP64"), DomainMismatch, r"type FP64.*bfs_levels"),
        (of([True], "BOOL"), DomainMismatch, "type BOOL"),
        (of([0, -1, 1], INT32), InvalidValue, r"level -1 < 0.*delete"),
        (of([0, 3], INT64), InvalidValue, r"level 3 >= 3.*than 2"),
        (of([2**62], INT64), InvalidValue, "level 4611686018427387904 >= 3"),
        (row(4), InvalidValue, "4 >= 4"),
        (row(-4), InvalidValue, "-4 < 0"),
    ):
        with pytest.raises(error, match=fact):
            sweep(levels)


def test_a_sweep_in_a_trace_and_stepped_through(backend):
    """Rows have the turn as their level; making here and above is no statement."""

    def mark(levels, marks):
        for here, above in sweep(levels):
            marks(here.S) << 1
            marks(above.S) << 2

    def run():
        levels = Vector.from_coo([0, 1, 2], [0, 1, 2], INT32, size=4, backend=backend)
        marks = Vector(INT32, 4, like=levels, name="marks")
        mark(levels, marks)
        return marks

    with lagpu.trace(fuse=False) as t:
        marks = run()
    assert entries(marks) == {0: 2, 1: 1, 2: 1}
    rows = [(row.level, row.formula, row.nvals_out) for row in t.rows]
    assert rows == [
        (0, "marks(here.S) << 1", 1),
        (0, "marks(above.S) << 2", 2),
        (1, "marks(here.S) << 1", 2),
        (1, "marks(above.S) << 2", 3),
    ]
    steps = list(lagpu.step(run))
    assert [s.vectors["here"].to_dict() for s in steps] == [{2: True}] * 2 + [{1: True}] * 2
    assert entries(run()) == entries(marks)


def test_sweeps_are_crosschecked(backend):
    A = matrix(20, both_ways([(v, (v * v + 3) % 20) for v in range(20)]), "cpu")
    report = lagpu.crosscheck(
        algorithms.betweenness_centrality, A, backends=[lagpu.backends.get("cpu"), backend], batch=3
    )
    assert report.statements > 50


def of_both_kinds(levels, x, M):
    for here, _above in sweep(levels):
        x(here.S) << 1
        M(M.S) << 5


def test_a_traced_sweep_whose_recording_ends_has_its_turns(backend):
    levels = Vector.from_coo([0, 1, 2], [0, 1, 2], INT32, size=3, backend=backend)
    M = Matrix.from_coo([0], [1], [7], INT32, nrows=2, ncols=2, backend=backend)
    with lagpu.trace() as t:
        of_both_kinds(levels, Vector(INT64, 3, backend=backend), M)
    assert [row.level for row in t.rows] == [0, 0, 1, 1]
