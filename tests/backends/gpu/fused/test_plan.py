"""Loops that run as one program, and loops that must not: the answer is that of the eager loop."""

import types

import numpy as np
import pytest
from loop_names import GENERATED, is_fused
from searches import graph, levels_and_paths, levels_behind, parents, raising, start, twice

import lagpu
from lagpu import (
    BOOL,
    FP64,
    INT32,
    INT64,
    Matrix,
    Vector,
    algorithms,
    binary,
    check,
    loop,
    semiring,
)
from lagpu.backends.gpu.fused import plan
from lagpu.errors import DimensionMismatch

SIZES = [1, 2, 31, 32, 33, 1023, 1025]


def fuses(A):
    return A.backend.name in ("sim", "gpu")


# ---- loops: functions of their own, without assert, so that pytest leaves their code alone


def backwards(A, f, levels, times):
    for depth in loop(until_empty=f, times=times):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(A @ f)


def counted(A, f, levels):
    seen = 0
    for depth in loop(until_empty=f):
        seen += 1
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)
    return seen


def stopped(A, f, levels):
    for depth in loop(until_empty=f):
        if depth == 2:
            break
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)


def shifted(A, f, levels):
    for depth in loop(until_empty=f):
        levels(f.S) << depth + 1
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)


def listed(A, f, levels, sizes):
    for depth in loop(until_empty=f):
        sizes.append(f.nvals)
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)


def read_after(A, f, levels):
    for depth in loop(until_empty=f):
        levels(f.S) << depth
        f(~levels.S, replace=True) << semiring.any_pair(f @ A)
    return depth


class Held:
    def __init__(self, f, levels):
        self.f = f
        self.levels = levels

    @property
    def sneaky(self):
        self.reads = getattr(self, "reads", 0) + 1
        return self.levels

    def plain(self, A):
        for depth in loop(until_empty=self.f):
            self.levels(self.f.S) << depth
            self.f(~self.levels.S, replace=True) << semiring.any_pair(self.f @ A)

    def by_property(self, A):
        for depth in loop(until_empty=self.f):
            self.sneaky(self.f.S) << depth
            self.f(~self.levels.S, replace=True) << semiring.any_pair(self.f @ A)


def same(x, y):
    return np.array_equal(x.to_coo()[0], y.to_coo()[0]) and np.allclose(
        x.to_coo()[1], y.to_coo()[1]
    )


# ---- fused, and equal to eager


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("symmetric", [True, False])
def test_algorithms_are_fused_and_right(backend, n, symmetric):
    A = graph(n, symmetric, backend)
    for source in {0, n // 2, n - 1}:
        levels = algorithms.bfs_levels(A, source)
        assert not fuses(A) or is_fused(A.backend.last_loop)
        check.check_levels(A, source, levels)
        check.check_parents(A, source, algorithms.bfs_parents(A, source))
        both = algorithms.bfs(A, source)
        check.check_parents(A, source, both[1], both[0])
        paths = algorithms.count_shortest_paths(A, source)
        assert not fuses(A) or is_fused(A.backend.last_loop)
        check.check_paths(A, source, paths)
        with lagpu.eager():
            assert levels.isequal(algorithms.bfs_levels(A, source))
            assert same(paths, algorithms.count_shortest_paths(A, source))


@pytest.mark.each_value
@pytest.mark.parametrize("times", [None, 0, 1, 2, 3, 50])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("sources", [[0], [5], [1, 2, 30], list(range(33))])
def test_frontiers_and_bounds(backend, times, symmetric, sources):
    A = graph(33, symmetric, backend, seed=4)
    results = []
    for eagerly in (False, True):
        blocked = start(INT32, 33, [7, 8], 99, A)
        f, paths = start(FP64, 33, sources, 1, A), Vector(INT64, 33, like=A)
        g, behind = start(BOOL, 33, sources, True, A), start(INT32, 33, sources, 0, A)
        h, back = start(BOOL, 33, sources, True, A), Vector(FP64, 33, like=A)
        p, least, found = (
            start(INT64, 33, sources, 0, A),
            Vector(INT32, 33, like=A),
            Vector(INT64, 33, like=A),
        )
        if eagerly:
            with lagpu.eager():
                levels_and_paths(A, f, blocked, paths, times)
                levels_behind(A, g, behind, times)
                backwards(A, h, back, times)
                parents(A, p, least, found, times)
        else:
            levels_and_paths(A, f, blocked, paths, times)
            assert not fuses(A) or times == 0 or is_fused(A.backend.last_loop)
            levels_behind(A, g, behind, times)
            backwards(A, h, back, times)
            parents(A, p, least, found, times)
        results.append((f, blocked, paths, g, behind, h, back, p, least, found))
    for k, (x, y) in enumerate(zip(*results, strict=True)):
        assert same(x, y), (k, x, y)


# ---- not fused: recording once would freeze something


@pytest.fixture
def case(backend):
    A = graph(33, True, backend, seed=2)
    with lagpu.eager():
        right = algorithms.bfs_levels(A, 3)
    return A, start(BOOL, 33, [3], True, A), Vector(INT32, 33, like=A), right


def reason(A):
    return A.backend.last_loop if fuses(A) else "eager"


def test_a_python_counter(case):
    A, f, levels, right = case
    seen = counted(A, f, levels)
    assert levels.isequal(right)
    assert seen == int(right.reduce("max").new().value) + 1
    assert reason(A).startswith("eager")


def test_an_early_break(case):
    A, f, levels, right = case
    stopped(A, f, levels)
    assert levels.isequal(right.select("valuelt", 2).new())
    assert reason(A).startswith("eager")


def test_arithmetic_with_the_counter(case):
    A, f, levels, right = case
    shifted(A, f, levels)
    assert levels.isequal(right.apply(binary.plus, 1).new())
    assert reason(A).startswith("grid search" if A.backend.capabilities.fuses else "eager")
    f << right.select("valuele", 1).new().apply("one").new(BOOL)  # several vertices
    levels.clear()
    shifted(A, f, levels)
    near = right.apply("max", 1).new().apply("minus", 1).new()
    assert levels.isequal(near.apply(binary.plus, 1).new())
    assert reason(A).startswith("generated loop" if A.backend.capabilities.fuses else "eager")


def test_a_list_and_a_read(case):
    A, f, levels, right = case
    sizes = []
    listed(A, f, levels, sizes)
    assert levels.isequal(right)
    assert sizes == np.bincount(right.to_coo()[1]).tolist()
    assert reason(A).startswith("eager")


def test_a_constant_makes_it_a_program(case):
    A, f, levels, right = case
    other = Vector(INT32, 33, like=A)
    twice(A, f, levels, other)
    assert levels.isequal(right)
    assert other.isequal(right.apply(binary.times, 0).new().apply(binary.plus, 7).new())
    assert not fuses(A) or reason(A).startswith(GENERATED)


def test_an_error_in_the_middle_leaves_what_came_before(case):
    A, f, levels, right = case
    with pytest.raises(DimensionMismatch):
        raising(A, f, levels, Vector(INT32, 5, like=A))
    assert levels.isequal(right.select("valueeq", 0).new())
    assert f.to_coo()[0].tolist() == [3]


def test_attributes(case):
    A, f, levels, right = case
    Held(f, levels).plain(A)
    assert levels.isequal(right)
    assert not fuses(A) or is_fused(A.backend.last_loop)


def test_a_property_may_do_anything(case):
    A, f, levels, right = case
    held = Held(f, levels)
    held.by_property(A)
    assert levels.isequal(right)
    assert held.reads == int(right.reduce("max").new().value) + 1


def test_without_a_source(case):
    A, f, levels, right = case
    body = "for d in loop(until_empty=f):\n levels(f.S) << d\n"
    body += " f(~levels.S, replace=True) << semiring.any_pair(f @ A)\n"
    exec(body, {"loop": loop, "semiring": semiring, "A": A, "f": f, "levels": levels})
    assert levels.isequal(right)
    assert reason(A).startswith("eager")


def test_tracing_sees_each_statement(case):
    A, f, levels, right = case
    del f, levels
    with lagpu.trace() as traced:
        assert algorithms.bfs_levels(A, 3).isequal(right)
    assert [row.level for row in traced.rows if row.method == "mxv"] == list(
        range(int(right.reduce("max").new().value) + 1)
    )


def test_last_loop_tells_of_the_last_loop(case):
    A, f, levels, right = case
    if not fuses(A):
        pytest.skip("a backend that fuses no loop says the same of each")
    algorithms.bfs_levels(A, 3)
    assert is_fused(A.backend.last_loop)
    with lagpu.eager():
        algorithms.bfs_levels(A, 3)
    assert A.backend.last_loop == "eager: inside lagpu.eager()"
    with lagpu.trace():
        algorithms.bfs_levels(A, 3)
    assert is_fused(A.backend.last_loop)
    with lagpu.trace(fuse=False):
        algorithms.bfs_levels(A, 3)
    assert A.backend.last_loop == "eager: a trace of single statements is on"
    for _ in loop(until_unchanged=levels, times=2):
        levels << right
        assert f.nvals == 1
    assert A.backend.last_loop.startswith("eager")
    nothing = Vector(BOOL, A.nrows, like=A)
    levels_behind(A, nothing, levels, None)
    assert A.backend.last_loop == "no iteration"
    algorithms.bfs_levels(A, 3)
    only = Vector.from_coo([3], [0], INT32, size=A.nrows, like=A)
    for here, _ in lagpu.sweep(only):
        nothing(here.S) << True
    assert A.backend.last_loop == "no iteration"


def test_the_counter_is_right_behind_the_loop(case):
    A, f, levels, right = case
    last = read_after(A, f, levels)
    assert levels.isequal(right)
    assert last == right.reduce("max").new().value
    assert reason(A).startswith("eager")


def test_sources_set_one_by_one_all_count(backend):
    A = Matrix.from_coo([0, 3], [1, 4], nrows=6, ncols=6, backend=backend)
    f, levels = Vector(BOOL, 6, like=A), Vector(INT32, 6, like=A)
    f[0] = True
    f[3] = True
    levels_behind(A, f, levels, None)
    assert levels.to_coo()[0].tolist() == [1, 4]
    f[3] = True
    backwards(A, f, levels, None)
    assert levels.to_coo()[0].tolist() == [1, 3, 4]


@pytest.mark.parametrize(
    ("shape", "fits"),
    [((32, 2**31 - 1), True), ((32, 2**31), False), ((33, 2**30 - 1), True), ((33, 2**30), False)],
)
def test_words_are_counted_in_32_bits(shape, fits):
    frontier = types.SimpleNamespace(shape=shape, may_be_bitmap=lambda wide: True)
    body = types.SimpleNamespace(frontier=frontier, assignments=())
    assert plan._why_no_bitmaps(body) == ("" if fits else "the frontier has 2**31 words or more")
