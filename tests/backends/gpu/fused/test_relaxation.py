"""Relaxations as one kernel: the numbers of the oracle, and why other loops are none."""

import numpy as np
import pytest
from loop_names import GENERATED, RELAXATION, loop_name
from samples import picked

from lagpu import (
    BOOL,
    FP32,
    FP64,
    INT32,
    INT64,
    UINT32,
    UINT64,
    Matrix,
    Vector,
    algorithms,
    binary,
    generators,
    loop,
    semiring,
)
from lagpu.backends.gpu.fused import search_grid
from lagpu.backends.gpu.kernels import constant

TYPES = (INT32, INT64, UINT32, UINT64, FP32, FP64)

# ---- loops: functions of their own, without assert, so that pytest leaves their code alone


def shortest(A, f, d, worse, times=None):
    for _ in loop(until_empty=f, times=times):
        f(~worse.V, replace=True) << f
        d(f.S) << f
        f << semiring.min_plus(f @ A)
        worse << f.ewise_mult(d, binary.ge)


def longest(A, f, d, worse, times=None):
    for _ in loop(until_empty=f, times=times):
        f(~worse.V, replace=True) << f
        d(f.S) << f
        f << semiring.max_plus(f @ A)
        worse << f.ewise_mult(d, binary.le)


def narrowest(A, f, d, worse, times=None):
    for _ in loop(until_empty=f, times=times):
        f(~worse.V, replace=True) << f
        d(f.S) << f
        f << semiring.min_max(A @ f)
        worse << f.ewise_mult(d, binary.ge)


def widest(A, f, d, worse, times=None):
    for _ in loop(until_empty=f, times=times):
        f(~worse.V, replace=True) << f
        d(f.S) << f
        f << semiring.max_min(f @ A)
        worse << f.ewise_mult(d, binary.le)


def not_equal_either(A, f, d, worse, times=None):
    for _ in loop(until_empty=f, times=times):
        f(~worse.V, replace=True) << f
        d(f.S) << f
        f << semiring.min_plus(f @ A)
        worse << f.ewise_mult(d, binary.gt)


def without_replace(A, f, d, worse, times=None):
    for _ in loop(until_empty=f, times=times):
        f(~worse.V) << f
        d(f.S) << f
        f << semiring.min_plus(f @ A)
        worse << f.ewise_mult(d, binary.ge)


# ---- graphs


def graph(n, dtype, low=0, high=50, hub=True, seed=3):
    """A directed graph with self-loops, isolated vertices, and a hub, whose edges are drawn."""
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(0, n, (2, 3 * n))
    if hub:
        rows[: n // 2] = n // 3
    values = rng.integers(low, high, 3 * n)
    if dtype.is_float:
        values = values * 0.37
    return Matrix.from_coo(rows, cols, values, dtype, nrows=n, ncols=n, dup_op="min", backend="cpu")


def run(function, A, dtype, place, number=0, source=0, times=None):
    """What a loop from one vertex leaves, and how it ran."""
    A = A if A.backend is place else A.to(place)
    f, d = (Vector(dtype, A.nrows, like=A) for _ in range(2))
    worse = Vector(BOOL, A.nrows, like=A)
    f[source] = number
    function(A, f, d, worse, times)
    return [x.to("cpu") for x in (f, d, worse)], loop_name(place)


def agrees(function, A, dtype, place, **more):
    """Return how a loop ran, whose vectors are those of the oracle."""
    found, how = run(function, A, dtype, place, **more)
    expected, _ = run(function, A, dtype, CPU, **more)
    assert all(x.isequal(y) for x, y in zip(found, expected, strict=True))
    return how


CPU = Matrix(BOOL, 1, 1, backend="cpu").backend


SIZES = (1, 31, 32, 33, 1023, 1025)


@pytest.mark.parametrize("dtype", picked(TYPES, INT64, FP32))
def test_every_type_and_size(place, dtype):
    for n in SIZES:
        A = graph(n, dtype)
        assert agrees(shortest, A, dtype, place, source=n // 3) == RELAXATION


@pytest.mark.parametrize(
    ("function", "dtype", "low", "high"),
    picked(
        [
            (widest, INT64, -9, 9),
            (narrowest, FP64, -9, 9),
            (longest, INT64, -9, 1),
            (widest, UINT32, 1, 50),
        ],
        (widest, INT64, -9, 9),
    ),
)
def test_other_semirings_and_the_other_direction(place, function, dtype, low, high):
    for n in SIZES:
        A = graph(n, dtype, low=low, high=high)
        for number in (0.5, -7) if dtype.is_float else (5,):
            more = {"source": n // 3, "number": number}
            assert agrees(function, A, dtype, place, **more) == RELAXATION


def test_awkward_graphs(place):
    """Zero and equal lengths, a hub of many chunks, a long path, and one that cannot be left."""
    n = 5 * constant("kChunk") + 3
    star = Matrix.from_coo(
        np.r_[np.zeros(n - 1, int), np.arange(1, n)],
        np.r_[np.arange(1, n), np.zeros(n - 1, int)],
        np.r_[np.arange(1, n), np.arange(1, n)] % 7,
        nrows=n, ncols=n, backend="cpu",
    )  # fmt: skip
    path = Matrix.from_coo(np.arange(99), np.arange(1, 100), 0, INT64, nrows=100, ncols=100,
                           backend="cpu")  # fmt: skip
    empty = Matrix(INT64, 40, 40, backend="cpu")
    for A, source in ((star, 0), (star, 5), (path, 0), (path, 99), (empty, 7)):
        assert agrees(shortest, A, INT64, place, source=source) == RELAXATION


def test_numbers_far_apart(place):
    """The limit passes wide gaps by steps that double, and at the end all numbers there are."""
    lengths = [1, 1, 10**6, 3, 2**40, 0, 2**61, 1]
    n = len(lengths) + 1
    path = Matrix.from_coo(range(n - 1), range(1, n), lengths, INT64, nrows=n, ncols=n,
                           backend="cpu")  # fmt: skip
    ones = Matrix.from_coo(np.zeros(900, int), np.arange(1, 901), 1, INT64, nrows=n + 1000,
                           ncols=n + 1000, backend="cpu")  # fmt: skip
    rows, cols, values = path.to_coo()
    r, c, v = ones.to_coo()
    far = Matrix.from_coo(
        np.r_[r, rows + 900], np.r_[c, cols + 900], np.r_[v, np.minimum(values, 2**40)], INT64,
        nrows=n + 1000, ncols=n + 1000, backend="cpu",
    )  # fmt: skip
    assert agrees(shortest, far, INT64, place) == RELAXATION
    assert agrees(shortest, far.dup(FP32), FP32, place, number=0.25) == RELAXATION
    assert agrees(shortest, path, INT64, place) == GENERATED, "n times the largest may not fit"


def test_steps_fit_their_type(place):
    """The step is a multiple of the largest length, which n of just fit."""
    for dtype, length in ((INT32, 2**28), (FP32, 4e37), (INT64, 2**60)):
        A = Matrix.from_coo([0, 1], [1, 0], length, dtype, backend="cpu")
        assert agrees(shortest, A, dtype, place) == RELAXATION
        A = Matrix.from_coo([0, 1], [1, 0], [length, 0], dtype, backend="cpu")
        assert agrees(shortest, A, dtype, place, source=1) == RELAXATION


def counts(B):
    """Turns of the last relaxation along the edges of a matrix, moves of its limit, and returns."""
    found = B.data.csc().cache["relaxation along the edges"].result
    return B.backend.device.to_host(found).tolist()[:3]


def with_lengths(A, place):
    """A graph with lengths by position, on the oracle and elsewhere."""
    rows, cols, _ = A.to_coo()
    lengths = 1 + (rows * 7919 + cols * 104729) % 90
    B = Matrix.from_coo(rows, cols, lengths, INT64, nrows=A.nrows, ncols=A.nrows, backend="cpu")
    return B, B.to(place)


def test_vertices_wait(place):
    """On a road most vertices wait; a longer way of more edges replaces a shorter one."""
    A, B = with_lengths(generators.road(30 if place.device.name == "sim" else 300), place)
    for source in (1, 200):
        assert (
            algorithms.bellman_ford(B, source).to("cpu").isequal(algorithms.bellman_ford(A, source))
        )
        turns, moves, returns = counts(B)
        assert turns > moves > 3
        assert returns == 0


def test_vertices_wait_where_the_largest_number_is_best(place):
    A, B = with_lengths(generators.road(30 if place.device.name == "sim" else 300), place)
    A, B = (x.apply("ainv").new() for x in (A, B))
    assert agrees(longest, B, INT64, place, source=1) == RELAXATION
    assert counts(B)[1] > 3


def test_a_gap_is_passed_by_steps_that_double(place):
    """Each step is a small part of one long edge, since the other vertices have many edges."""
    n, far = 150, 2**40
    rows, cols = np.nonzero(~np.eye(n, dtype=bool))
    A = Matrix.from_coo(
        np.r_[rows, n - 1, n], np.r_[cols, n, n + 1], np.r_[np.ones(len(rows), int), far, 1], INT64,
        nrows=n + 2, ncols=n + 2, backend="cpu",
    )  # fmt: skip
    B = A.to(place)
    assert agrees(shortest, B, INT64, place) == RELAXATION
    assert 2 < counts(B)[1] < 9, "a step is an eighteenth of the gap"


def test_a_turn_goes_beyond_what_is_listed(place, monkeypatch):
    """Of small degrees: half of the turns, the same numbers."""
    A, B = with_lengths(generators.road(30 if place.device.name == "sim" else 300), place)
    expected, turns = algorithms.bellman_ford(A, 1), []
    for ahead in (0, 1):
        monkeypatch.setattr(search_grid.planner, "RELAXED_AHEAD", ahead)
        B.data.csc().cache.pop("relaxation along the edges", None)
        assert algorithms.bellman_ford(B, 1).to("cpu").isequal(expected)
        turns.append(counts(B)[0])
    assert turns[1] < 0.8 * turns[0], turns


def test_the_nearest_of_many_vertices_go_first(place):
    """Of a frontier that most edges leave only a part is relaxed at once."""
    scale = 9 if place.device.name == "sim" else 15
    A, B = with_lengths(generators.kronecker(scale, backend="cpu"), place)
    degrees = np.diff(A.to_csc()[0])
    for source in np.argsort(degrees)[-3:].tolist():
        assert (
            algorithms.bellman_ford(B, source).to("cpu").isequal(algorithms.bellman_ford(A, source))
        )
        _, moves, returns = counts(B)
        assert moves > 0
        assert returns > 0


def test_many_vertices_of_one_number(place):
    """No limit parts them: it comes back until it is next to the one before."""
    n = 1000 if place.device.name == "sim" else 200_000
    rows = np.r_[np.zeros(n - 1, int), np.arange(1, n)]
    cols = np.r_[np.arange(1, n), np.arange(1, n) % (n - 1) + 1]
    for dtype in (INT64, FP32):
        A = Matrix.from_coo(rows, cols, 37, dtype, nrows=n, ncols=n, backend="cpu")
        B = A.to(place)
        assert algorithms.bellman_ford(B, 0).to("cpu").isequal(algorithms.bellman_ford(A, 0))
        assert loop_name(place) == RELAXATION
        assert counts(B)[0] < 300


def test_a_matrix_is_searched_from_many_vertices(place):
    """The launch is kept, and what it leaves does not disturb the next one."""
    A = graph(300, INT64, low=1)
    B = A.to(place)
    for source in (0, 100, 7, 100, 299):
        found = algorithms.bellman_ford(B, source)
        assert loop_name(place) == RELAXATION
        assert found.to("cpu").isequal(algorithms.bellman_ford(A, source))


@pytest.mark.parametrize(
    ("function", "make", "more", "why"),
    [
        (shortest, lambda: graph(50, INT64, low=-1), {"times": 9}, "at most 9 iterations"),
        (shortest, lambda: graph(50, INT64), {"times": 50}, "at most 50 iterations, where 51"),
        (shortest, lambda: graph(50, INT32, low=2**24, high=2**26), {}, "may not fit INT32"),
        (widest, lambda: graph(50, UINT32), {"number": 9}, "may not fit UINT32"),
        (longest, lambda: graph(50, INT64), {"times": 60}, "may be better than its vertex"),
        (shortest, lambda: graph(50, INT64, low=-9), {"times": 60}, "with values of -9 to 49"),
        (not_equal_either, lambda: graph(50, INT64, low=1), {"times": 60}, "no search"),
        (without_replace, lambda: graph(50, INT64), {"times": 60}, "no search"),
        (narrowest, lambda: graph(50, INT32), {"number": 2**31 - 1}, "may not fit INT32"),
    ],
)
def test_other_loops_are_generated(place, function, make, more, why):
    A = make()
    assert agrees(function, A, A.dtype, place, **more) == GENERATED
    assert why in place.last_loop


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(place, value):
    A = Matrix.from_coo([0, 1, 2], [1, 2, 3], [1.0, value, 2.0], nrows=4, ncols=4, backend="cpu")
    for function in (shortest, widest):
        run(function, A, FP64, place, times=6)
        assert loop_name(place) == GENERATED


def test_what_is_there_before(place):
    """Numbers, marks or several vertices at the beginning are for a generated loop."""
    A = graph(40, INT64, low=1).to(place)

    def begin():
        return [Vector(INT64, 40, like=A), Vector(INT64, 40, like=A), Vector(BOOL, 40, like=A)]

    for k, value in ((0, 3), (1, 2), (2, True)):
        f, d, worse = begin()
        f[5] = 0
        (f, d, worse)[k][6] = value
        shortest(A, f, d, worse)
        assert loop_name(place) == GENERATED
        assert "begin with one vertex" in place.last_loop
    assert f.nvals == worse.nvals == 0


def test_a_matrix_is_searched_by_several_semirings(place):
    """Each has a launch of its own."""
    A = graph(60, INT64, low=1)
    B = A.to(place)
    for function in (shortest, widest, shortest):
        assert agrees(function, B, INT64, place, source=20, number=5) == RELAXATION


def test_a_matrix_that_is_written_is_another_one(place):
    """Least and largest value are kept with the matrix that they are of."""
    A = graph(40, INT64, low=1).to(place)
    assert A.reduce("min").new().value >= 1
    algorithms.bellman_ford(A, 13)
    assert loop_name(place) == RELAXATION
    A << A.apply("ainv").new()
    assert A.reduce("max").new().value <= -1
    assert run(shortest, A, INT64, place, times=60)[1] == GENERATED
