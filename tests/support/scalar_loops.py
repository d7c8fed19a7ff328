"""Loops with scalars, and what runs them both ways."""

import numpy as np
import pytest
from loop_names import GENERATED, loop_name

import lagpu
from lagpu import FP32, FP64, INT32, INT64, Scalar, Vector, binary, loop, semiring

PROGRAM = GENERATED


def both(place, function, *make):
    """What a loop leaves, fused and eager; each argument is made again for each run."""
    found = []
    for how in (None, lagpu.eager):
        args = [one() for one in make]
        if how is None:
            function(*args)
            assert loop_name(place) == PROGRAM
        else:
            with how():
                function(*args)
            assert place.last_loop == "eager: inside lagpu.eager()"
        found.append([x for x in args if isinstance(x, (Vector, Scalar))])
    return found


def assert_same(fused, eager):
    for x, y in zip(fused, eager, strict=True):
        assert x.dtype is y.dtype
        if isinstance(x, Scalar):
            assert x.nvals == y.nvals, (x, y)
            assert x.is_empty or x.value == pytest.approx(y.value, rel=1e-6, nan_ok=True)
            assert type(x.value) is type(y.value)
        else:
            assert x.isclose(y, rel_tol=1e-6)


def vectors(n, dtype, place, kind):
    """A vector of n indices in one of the forms there are."""
    values = (np.arange(n) % 5 - (1 if dtype in (INT32, INT64, FP32, FP64) else 0)).astype(
        dtype.numpy
    )
    if kind == "empty":
        return Vector(dtype, n, backend=place)
    if kind == "one":
        return Vector.from_coo([n - 1], values[-1:], dtype, size=n, backend=place)
    if kind == "iso":
        return Vector.from_coo(np.arange(0, n, 2), dtype.numpy.type(1), size=n, backend=place)
    if kind == "sparse":
        return Vector.from_coo(np.arange(0, n, 3), values[::3], size=n, backend=place)
    if kind == "bitmap":
        v = Vector.from_dense(values, backend=place)
        v(v.V, replace=True) << v
        return v
    return Vector.from_dense(values, backend=place)


# ---- functions of their own, so that pytest leaves their code alone


def sums(v, w, s, add):
    for _ in loop(times=2):
        w << v
        s << w.reduce(add)


def masked(v, w, m, s):
    for _ in loop(times=2):
        w(~m.S, replace=True) << v
        s(accum=binary.plus) << w.reduce("plus")


def normalised(A, x, square, norm, k):
    for _ in loop(times=k):
        x << semiring.plus_times(A @ x)
        square << x.ewise_mult(x, binary.times)
        norm << square.reduce("plus")
        norm << norm
        x << x.apply("truediv", right=norm)


def lagged(v, w, before, s):
    """What a scalar was in the iteration before stands in `before`."""
    for depth in loop(times=4):
        before << s
        w << v.apply("plus", left=s)
        s << w.reduce("max")
        s(accum=binary.plus) << depth


def thresholds(v, w, low, high, x):
    for _ in loop(until_empty=w):
        low << w.reduce("min")
        x(w.S, accum=binary.plus) << low
        w << w.select("valuegt", low)
        high(accum=binary.max) << w.reduce("max")


def unions(u, v, w, s, t):
    for _ in loop(until_unchanged=w):
        s << u.reduce("min")
        t << v.reduce("max")
        w << u.ewise_union(v, binary.plus, left_default=s, right_default=t)


def constants(w, s):
    for depth in loop(times=5):
        s << depth
        w(accum=binary.plus) << s


def only_scalars(v, s):
    for _ in loop(times=3):
        s(accum=binary.plus) << v.reduce("plus")


def no_vectors(v, s):
    for depth in loop(until_empty=v, times=2):
        s << depth


def counted(v, one, total):
    """The loop ends by a vector of one entry."""
    for _ in loop(until_empty=one, times=50):
        v << v.apply("times", right=0.5)
        total << v.reduce("plus")
        one << total
        one << one.select("valuege", 1.0)


def two_loops(v, w, s, t):
    for _ in loop(times=2):
        w << v
        s << w.reduce("plus")
    for _ in loop(times=3):
        w << w.apply("times", right=s)
        t << w.reduce("plus")
        s << 2


def read_in_the_body(v, w, s):
    for _ in loop(times=2):
        w << v
        s << w.reduce("plus")
        w << s.value


def decides(v, w, s):
    for _ in loop(times=2):
        s << v.reduce("plus")
        if s:
            w << v


def from_empty(v, w, s, x):
    for _ in loop(times=3):
        x(accum=binary.plus) << 1
        w << w.select("valuegt", 1)
        s << w.reduce("plus")
        v << v.apply("plus", right=s)
        w << w.apply("minus", right=1)


def wide(v, w, s):
    for _ in loop(times=2):
        s << v.reduce("plus")
        w << s


def outside(A, v, s):
    for _ in loop(times=2):
        s << A.reduce("plus")
        v << s


def indexed(v, w, s):
    for _ in loop(times=2):
        s << v.reduce("plus")
        w[[0, 1]] << s


def lagged_from_nothing(w, s):
    for _ in loop(times=2):
        w << s
        s << w.reduce("plus")


def elsewhere(here, there, s):
    for _ in loop(until_empty=here, times=2):
        s << here.reduce("plus")
        there << s


def downwards(levels, found, s):
    for here, above in lagpu.sweep(levels):
        found(above.S, replace=True) << 1.0
        found(here.S) << 1.0
        s(accum=binary.plus) << found.reduce("plus")


def products(A, F, s):
    for _ in loop(until_empty=F):
        F << semiring.plus_times(F @ A)
        F << F.apply("times", right=s)


def emptied(v, w, s):
    """A number fills it, a sum of nothing empties it again."""
    for _ in loop(times=2):
        s << 1
        s << w.reduce("plus")
        v << s


def emptied_at_the_end(v, w, s):
    for _ in loop(times=3):
        v << v.apply("plus", right=s)
        s << w.reduce("plus")


def filled(v, w, s):
    """Nothing is asked for a value, so nothing is waited for."""
    for _ in loop(times=3):
        s << 1
        s(accum=binary.plus) << w.reduce("plus")
        v << v.apply("plus", right=s)


def as_floats(v, w, s):
    for _ in loop(times=1):
        s << v.reduce("max")
        w << s


def refused_in_the_middle(v, w, s):
    for _ in loop(times=3):
        s << v.reduce("plus")
        v << v.apply("plus", right=s)
        w << v


def nested(v, w, s, total):
    for _ in loop(times=3):
        for _ in loop(times=2):
            w << v.apply("times", right=total)
            s << w.reduce("max")
        total(accum=binary.plus) << s.value


def rounded(v, s, t, u):
    for _ in loop(times=1):
        s << t
        s(accum=binary.times) << t
        s(accum=binary.plus) << u
        v(accum=binary.plus) << s


def added(v, w, s):
    for _ in loop(times=1):
        w << v
        s(accum=binary.plus) << w.reduce("plus")
        w(accum=binary.times) << s
