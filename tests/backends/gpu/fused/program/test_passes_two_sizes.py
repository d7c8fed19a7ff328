"""Passes of vectors of two sizes alternate, and every warp may hold the vectors of one or both."""

import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest
from drawn_loops import SIZES, compare, load, pass_loops
from hypothesis import strategies as st
from loop_names import GENERATED, loop_name
from pass_texts import shape_of, written_texts
from strategies import for_all

import lagpu
from lagpu import FP64, INT64, Scalar, Vector, binary, indexunary, loop, semiring


@pytest.fixture
def texts(backend, monkeypatch):
    """The texts of kernels that are written from now on; None on cpu, which has none."""
    return written_texts(monkeypatch) if backend.name != "cpu" else None


# ---- bodies with all vectors of the soak


def passes_of_two_sizes(A, x, y, z, b, f, r, s, p, q, c, g):
    for depth in loop(times=3):
        s << x.reduce("max")
        p(~q.S) << depth
        s(accum=binary.plus) << p.reduce("plus")
        x(y.V, accum=binary.min) << s
        c(accum=binary.lor) << p.select(indexunary.valuegt, 1)
        g(c.V, replace=True) << s
        y(~x.S) << x.ewise_add(z, binary.plus)
        r << 3
        r(accum=binary.max) << y.reduce("plus")
        q << q.ewise_union(p, binary.minus, left_default=1, right_default=2)
        p(accum=binary.plus) << r


def ends_with_the_other_size(A, x, y, z, b, f, r, s, p, q, c, g):
    p(~p.S) << 1  # or there is no iteration
    for _ in loop(until_empty=p, times=9):
        s << 1
        s(accum=binary.plus) << x.reduce("plus")
        x(accum=binary.min) << s
        p(accum=binary.plus) << s
        p << p.select(indexunary.valuele, 40)


def multiplies_to_the_other_size(A, x, y, z, b, f, r, s, p, q, c, g):
    P, X = p.selection(x.size), x.selection(p.size)
    for _ in loop(times=3):
        x(y.S) << semiring.plus_first(P @ q)
        s << 0
        s(accum=binary.plus) << x.reduce("plus")
        q(~c.V) << semiring.max_second(X @ y)
        p(accum=binary.min) << s
        p(accum=binary.plus) << semiring.plus_times(x @ P)
        y(accum=binary.max) << semiring.min_plus(q @ X)
        y(accum=binary.minus) << s


# function: whether its vectors of another size may be held
TWO_SIZES = {
    passes_of_two_sizes: True,
    ends_with_the_other_size: True,
    multiplies_to_the_other_size: False,
}


@pytest.mark.parametrize("size", [1, 32, 33, 1025])
@pytest.mark.parametrize("function", TWO_SIZES, ids=lambda f: f.__name__)
def test_loops_over_two_sizes_are_generated(backend, function, size, texts):
    for n in (31, 33, 1025):
        for seed in range(4):
            compare(function, backend, n, 0, seed, size)
            assert backend.name == "cpu" or loop_name(backend) == GENERATED, backend.last_loop
    if texts:
        held = shape_of(texts[-1])[2]
        assert (held > 0) == (TWO_SIZES[function] and size <= 32)


@for_all(cpu=2, compiled=24)
def test_random_passes_of_two_sizes_give_the_eager_answer(backend, draw):
    source = draw(pass_loops(two_sizes=True), label="loop")
    run = load(source, Path(tempfile.mkdtemp()) / "body.py")
    n, size = (draw(st.sampled_from(SIZES), label=label) for label in ("n", "size"))
    for seed in range(8):
        compare(run, backend, n, 0, seed, size)


# ---- vectors that every warp holds


def apart(A, x, few, also, total, k):
    for _ in loop(until_empty=few, times=k):
        x(accum=binary.plus) << 1
        total << x.reduce("max")
        also(~few.S) << total
        few(accum=binary.min) << total
        few << few.select(indexunary.valuelt, 4)
        also(few.S, accum=binary.plus) << few
        total << also.reduce("plus")
        x << semiring.max_second(A @ x)


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33])
@pytest.mark.parametrize("k", [0, 1, 9])
def test_few_entries_are_held_by_every_warp(backend, n, k, texts):
    found = []
    for place, eagerly in ((backend, False), (backend, True), (lagpu.backends.get("cpu"), True)):
        A = lagpu.Matrix.from_coo([0, 1, 2], [1, 2, 0], 1, nrows=70, ncols=70, backend=place)
        x = Vector.from_coo(range(0, 70, 2), 1, INT64, size=70, backend=place)
        few = Vector.from_coo(range(0, n, 3), -3, INT64, size=n, backend=place)
        also = Vector.from_coo([n - 1], 2.0, FP64, size=n, backend=place)
        total = Scalar(INT64, 7)
        with lagpu.eager() if eagerly else nullcontext():
            apart(A, x, few, also, total, k)
        found.append(
            [v.to_coo()[j].tolist() for v in (x, few, also) for j in (0, 1)] + [total.value]
        )
    assert found[0] == found[1] == found[2]
    if texts:
        assert shape_of(texts[0])[2] == (n <= 32)


def owes(x, few, total, other):
    for _ in loop(times=2):
        total << x.reduce("plus")
        few << 3
        few(accum=binary.plus) << total
        x(accum=binary.plus) << total
        other << x.reduce("max")
        few << 1
        other(accum=binary.plus) << 5
        few(accum=binary.plus) << other


@pytest.mark.parametrize("size", [1, 33])
def test_a_sum_of_a_pass_that_has_ended_is_read_after_a_barrier(backend, size):
    """The pass ended since the next statement is over other indices."""
    found = []
    for eagerly in (False, True):
        x = Vector.from_coo(range(0, 2000, 2), 1, INT64, size=2000, backend=backend)
        few = Vector(INT64, size, like=x)
        total, other = Scalar(INT64, 0), Scalar(INT64, 0)
        with lagpu.eager() if eagerly else nullcontext():
            owes(x, few, total, other)
        assert backend.name == "cpu" or (loop_name(backend) == GENERATED) != eagerly
        vectors = [v.to_coo()[j].tolist() for v in (x, few) for j in (0, 1)]
        found.append([*vectors, total.value, other.value])
    assert found[0] == found[1]


# ---- functions of their own: scalars that are read by what waits, and written after it


def copies_in_a_row(x, few, r, s):
    for _ in loop(times=2):
        x << r
        r << s
        s(accum=binary.plus) << 7


def overwrites_what_a_sum_is_added_to(x, few, r, s):
    for _ in loop(times=2):
        s << x.reduce("plus")
        s(accum=binary.plus) << r
        r(accum=binary.plus) << 5
        x(accum=binary.plus) << s


def overwrites_it_in_the_next_pass(x, few, r, s):
    for _ in loop(times=2):
        s << x.reduce("plus")
        s(accum=binary.plus) << r
        few(accum=binary.max) << r
        r(accum=binary.plus) << 5


def overwrites_it_after_the_next_pass(x, few, r, s):
    for _ in loop(times=2):
        s << x.reduce("plus")
        s(accum=binary.plus) << r
        few(accum=binary.plus) << 1
        r(accum=binary.plus) << 5


def sums_of_a_large_and_a_small_vector(x, few, r, s):
    for _ in loop(times=2):
        s << x.reduce("plus")
        s << few.reduce("max")
        few(accum=binary.plus) << 1


def sums_into_what_another_sum_reads(x, few, r, s):
    for _ in loop(times=2):
        s << x.reduce("plus")
        s(accum=binary.plus) << r
        r(accum=binary.plus) << few.reduce("plus")
        few(accum=binary.plus) << 1


def adds_sums_of_a_large_and_a_small_vector(x, few, r, s):
    for _ in loop(times=2):
        s << x.reduce("plus")
        s(accum=binary.times) << few.reduce("plus")
        few << s


@pytest.mark.parametrize("size", [2, 33])
@pytest.mark.parametrize(
    "function",
    [
        copies_in_a_row,
        overwrites_what_a_sum_is_added_to,
        overwrites_it_in_the_next_pass,
        overwrites_it_after_the_next_pass,
        sums_of_a_large_and_a_small_vector,
        sums_into_what_another_sum_reads,
        adds_sums_of_a_large_and_a_small_vector,
    ],
    ids=lambda f: f.__name__,
)
def test_a_scalar_that_waits_is_written_in_order(backend, function, size):
    found = []
    for eagerly in (False, True):
        x = Vector.from_coo(range(0, 100, 2), 1, INT64, size=100, backend=backend)
        few = Vector.from_coo([1], 30, INT64, size=size, backend=backend)
        r, s = Scalar(INT64, 100), Scalar(INT64, 200)
        with lagpu.eager() if eagerly else nullcontext():
            function(x, few, r, s)
        assert backend.name == "cpu" or (loop_name(backend) == GENERATED) != eagerly
        vectors = [v.to_coo()[j].tolist() for v in (x, few) for j in (0, 1)]
        found.append([*vectors, r.value, s.value])
    assert found[0] == found[1]


def multiplies_few(A, few, also):
    for _ in loop(until_empty=few, times=3):
        also(accum=binary.plus) << few
        few << semiring.plus_second(few @ A)
        few << few.select(indexunary.valuelt, 9)


def test_few_entries_that_are_multiplied_are_in_memory(backend, texts):
    found = []
    for place in (backend, lagpu.backends.get("cpu")):
        A = lagpu.Matrix.from_coo([0, 1, 2, 2], [1, 2, 0, 1], 1, nrows=3, ncols=3, backend=place)
        few = Vector.from_coo([0, 2], [1, 2], INT64, size=3, backend=place)
        also = Vector(INT64, 3, backend=place)
        multiplies_few(A, few, also)
        found.append([few.to_coo()[1].tolist(), also.to_coo()[1].tolist()])
    assert found[0] == found[1]
    if texts:
        assert shape_of(texts[0])[2] == 0
