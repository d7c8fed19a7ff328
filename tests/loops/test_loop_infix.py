"""Loops in python-graphblas' notation run as one program, and compute what cpu computes."""

import numpy as np
import pytest

from lagpu import (
    BOOL,
    FP64,
    Matrix,
    Scalar,
    Vector,
    backends,
    binary,
    loop,
    monoid,
    replace,
    semiring,
)
from lagpu.errors import LagpuError


def power(A, x, y, p, d, s, q, k):
    for _ in loop(times=5):
        y << x
        x << 0.15 + 0.85 * (y @ A) / 2
        x *= 1.5
        x /= 3


def rank(A, x, y, p, d, s, q, k):
    for _ in loop(times=7):
        y << x * p
        x << 0.1
        x += semiring.plus_first(y @ A)
        x -= 0.01 * y


def distances(A, x, y, p, d, s, q, k):
    for _ in loop(until_unchanged=d):
        d(binary.min) << semiring.min_plus(d @ A)


def search(A, x, y, p, d, s, q, k):
    for _ in loop(until_empty=q):
        q(~d.S, replace) << semiring.any_pair(q @ A)
        d(q.S) << 3


def temporaries(A, x, y, p, d, s, q, k):
    for _ in loop(times=4):
        x << binary.max(x | y * 2) + abs(y - x) * (x > 0.5)


def until_same(A, x, y, p, d, s, q, k):
    for _ in loop(until_unchanged=d):
        d << binary.min(d | semiring.min_plus(d @ A) + 0)


def masks(A, x, y, p, d, s, q, k):
    for _ in loop(times=3):
        x((y > 0.2).V, binary.plus) << x + 1


def scalars(A, x, y, p, d, s, q, k):
    for _ in loop(times=3):
        s << x @ y
        x << x / s


def normalized(A, x, y, p, d, s, q, k):
    for _ in loop(times=3):
        x << x / x.reduce(monoid.plus)


def numbers(A, x, y, p, d, s, q, k):
    for _ in loop(times=4):
        x << x * (k + 1) - k / 2


FUSED = (power, rank, distances, search, temporaries, until_same, masks, scalars, normalized)


def a_scalar(A, x, y, p, d, s, q, k):
    for _ in loop(times=3):
        x << x * (s + 1)


def joined_masks(A, x, y, p, d, s, q, k):
    for _ in loop(until_unchanged=d):
        d(binary.min) << semiring.min_plus(d @ A)
        q(~d.S & ~y.V | p.V, replace) << True
        x(q.S) << d.select(~q.S & p.S)


def or_the_identity(A, x, y, p, d, s, q, k):
    for _ in loop(until_unchanged=d):
        d(binary.min) << semiring.min_plus(d @ A)
        p(~d.S, replace) << p
        s << 1 - p.reduce(monoid.plus, allow_empty=False)
        x << x + s * d.reduce(monoid.max, allow_empty=False)


def new_objects(A, x, y, p, d, s, q, k):
    for _ in loop(times=4):
        d(binary.min) << semiring.min_plus((d + 1).new() @ A).new(mask=~p.S)
        s << (x * 2).new().reduce(monoid.max).new()
        q((~d.S).new().V, replace) << (x > s / 4).new(BOOL, mask=y.S | d.S)
        x << binary.plus(x | q.select(q.V).new("FP64", mask=q.V.new().S))


FUSED = (*FUSED, numbers, a_scalar, joined_masks, or_the_identity, new_objects)


def host_diagonal(A, x, y, p, d, s, q, k):
    for _ in loop(until_unchanged=d):
        d(binary.min) << semiring.min_plus(d @ A)
        x << (A * p).reduce_rowwise()


def number_bound(A, x, y, p, d, s, q, k):
    for _ in loop(times=3):
        x << x + 1
        k += 1
    y << k


def two_kinds(A, x, y, p, d, s, q, k):
    B = Matrix(FP64, *A.shape, like=A)
    for _ in loop(until_unchanged=d):
        d(binary.min) << semiring.min_plus(d @ A)
        B << A.T
    y << B.reduce_rowwise()


EAGER = {
    host_diagonal: " reads a value on the host",
    number_bound: "k is of type int, and += binds the name to another object",
    two_kinds: "the body writes vectors and matrices",
}


def run(program, backend):
    """Return the contents of all objects after a program on a path with chords."""
    rng, n = np.random.default_rng(1), 24
    rows = np.concatenate([np.arange(n - 1), rng.integers(0, n, 40)])
    cols = np.concatenate([np.arange(1, n), rng.integers(0, n, 40)])
    A = Matrix.from_coo(
        rows, cols, rng.random(len(rows)), nrows=n, ncols=n, dup_op=binary.plus, backend=backend
    )
    x = Vector.from_dense(rng.random(n), like=A)
    y = Vector.from_coo(range(0, n, 2), rng.random(n // 2), size=n, like=A)
    p = Vector.from_coo(range(5, n), rng.random(n - 5), size=n, like=A)
    d, q, s = Vector(FP64, n, like=A), Vector(BOOL, n, like=A), Scalar(FP64, 2.0)
    d[0], q[0] = 0.0, True
    program(A, x, y, p, d, s, q, 3)
    return [*(v.to_coo() for v in (x, y, p, d, q)), ([0], np.array(s.value))]


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("program", [*FUSED, *EAGER], ids=lambda f: f.__name__)
def test_a_loop_in_infix_notation(backend, program):
    expected = run(program, "cpu")
    for found, right in zip(run(program, backend.name), expected, strict=True):
        np.testing.assert_array_equal(found[0], right[0])
        np.testing.assert_allclose(found[1], right[1])
    if backend.capabilities.fuses:
        why = backends.get(backend.name).last_loop
        if program in FUSED:
            assert not why.startswith("eager"), why
        else:
            assert why.startswith("eager"), why
            assert EAGER[program] in why


def test_an_error_in_a_part_of_an_expression_ends_the_loop(backend):
    x, long = Vector(FP64, 3, backend=backend), Vector(FP64, 4, backend=backend)
    x << 1

    def program(x, long):
        for _ in loop(times=3):
            x << (x + 1) * 2
            x << x + (x * long)

    with pytest.raises(LagpuError, match=r"x.size 3 != 4 of long"):
        program(x, long)
    assert x.to_coo()[1].tolist() == [4, 4, 4], "once"
