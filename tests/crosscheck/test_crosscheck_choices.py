"""Crosschecks: what any backend may choose is free, for as long as it stands."""

from typing import NamedTuple

import numpy as np
import pytest
from crosschecked import BOTH, CPU
from faulty import difference, with_operations

from lagpu import (
    FP32,
    FP64,
    INT64,
    Matrix,
    Scalar,
    Vector,
    binary,
    crosscheck,
    semiring,
)


def setting(index, value):
    """Return an operation that is right but for one entry, or for the number it returns."""

    def operation(place, right, x):
        right(x)
        if index is not None:
            place.vector_set(x.out, index, x.out.dtype.numpy.type(value))
        return value

    return operation


# A program of w, u, v and A on one backend; the operation, an index, a value it may have, one not.
CHOICES = {
    "product from the left": (
        lambda o: o.w << semiring.any_first(o.u @ o.A),
        ("mxv", 2, (10, 11), 12),
    ),
    "product from the right": (
        lambda o: o.w << semiring.any_second(o.A @ o.u),
        ("mxv", 0, (12, 13), 10),
    ),
    "index of a product": (
        lambda o: o.w << semiring.any_firstj(o.A @ o.u),
        ("mxv", 0, (2, 3), 1),
    ),
    "row of the output": (
        lambda o: o.w << semiring.any_firsti(o.A @ o.u),
        ("mxv", 0, (0,), 2),
    ),
    "values multiplied": (
        lambda o: o.w << semiring.any_times(o.u @ o.A),
        ("mxv", 2, (10 * 1, 11 * 3), 10 * 3),
    ),
    "accumulated": (
        lambda o: o.w(accum=binary.plus) << semiring.any_first(o.u @ o.A),
        ("mxv", 2, (110, 111), 11),
    ),
    "masked by values": (
        lambda o: o.w(o.v.V) << semiring.any_first(o.u @ o.A),
        ("mxv", 2, (100,), 10),  # v[2] is 0: the old value stays
    ),
    "element-wise union": (
        lambda o: o.w << o.u.ewise_add(o.v, "any"),
        ("ewise_add", 1, (11, 21), 0),
    ),
    "one side alone": (lambda o: o.w << o.u.ewise_add(o.v, "any"), ("ewise_add", 3, (13,), 0)),
    "element-wise intersection": (
        lambda o: o.w << o.u.ewise_mult(o.v, "any"),
        ("ewise_mult", 0, (10, 20), 11),
    ),
    "with defaults": (
        lambda o: o.w << o.u.ewise_union(o.v, "any", 7, 8),
        ("ewise_union", 3, (13, 8), 7),
    ),
    "bound operand": (lambda o: o.w << o.u.apply("any", 5), ("apply", 1, (11, 5), 10)),
    "accumulator": (lambda o: o.w(accum="any") << o.u, ("assign", 2, (100, 12), 10)),
    "accumulator at indices": (
        lambda o: o.w(accum="any")[[3, 2]] << o.v[[0, 1]],
        ("assign", 2, (100, 21), 20),
    ),
    "accumulated number": (
        lambda o: o.w(accum="any") << 5,
        ("assign_scalar", 2, (100, 5), 6),
    ),
    "accumulated part": (
        lambda o: o.w(accum="any") << o.u[[3, 2, 1, 0]],
        ("extract", 2, (100, 11), 12),
    ),
    "columns of a matrix": (
        lambda o: o.w << o.A.reduce_columnwise("any"),
        ("reduce_vector", 2, (1, 3), 2),
    ),
    "rows of a matrix": (
        lambda o: o.w << o.A.reduce_rowwise("any"),
        ("reduce_vector", 0, (1, 2), 3),
    ),
    "all entries": (lambda o: o.s << o.u.reduce("any"), ("reduce", None, (10, 13), 20)),
    "all of a matrix": (lambda o: o.s << o.A.reduce("any"), ("matrix_reduce", None, (1, 3), 4)),
}


class Objects(NamedTuple):
    u: Vector
    v: Vector
    w: Vector
    A: Matrix
    s: Scalar


@pytest.fixture(scope="module")
def objects():
    where = {"backend": "cpu"}
    u = Vector.from_dense([10, 11, 12, 13], name="u", **where)
    v = Vector.from_coo([0, 1, 2], [20, 21, 0], size=4, name="v", **where)
    w = Vector.from_coo([2], [100], size=4, name="w", **where)
    A = Matrix.from_coo([0, 0, 1], [2, 3, 2], [1, 2, 3], nrows=4, ncols=4, name="A", **where)
    return Objects(u, v, w, A, Scalar(INT64, name="s"))


@pytest.mark.parametrize("case", CHOICES)
def test_what_any_may_choose(objects, case):
    statement, (name, index, may, may_not) = CHOICES[case]

    def program(*things):
        o = Objects(*things)
        statement(o)
        return o.w, o.s

    results = []
    for value in may:
        other = with_operations(**{name: setting(index, value)})
        report = crosscheck(program, *objects, backends=("cpu", other))
        w, s = report.result
        results.append(s.value if index is None else w.get(index))
        assert report.rows[-1].chosen >= (value != results[-1])
    assert len(set(results)) == 1, "the oracle's value stands"
    assert results[0] in may
    assert report.rows[-1].rule == "any of the candidates"
    wrong = with_operations(**{name: setting(index, may_not)})
    found = difference(program, *objects, faulty=wrong)
    assert found.rows[0][:3] == (index, results[0], may_not)
    assert found.count == 1


# A program that accumulates into a full w, the operation, and a value that w[3] may not get: there
# is nothing at index 3 of v.
NOTHING = {
    "bound operand": (lambda w, u, v: w(accum="second") << v.apply("any", 5), "apply", 5),
    "element-wise intersection": (
        lambda w, u, v: w(accum="second") << u.ewise_mult(v, "any"),
        "ewise_mult",
        13,
    ),
    "with defaults": (
        lambda w, u, v: w(accum="second") << v.ewise_union(v, "any", 7, 8),
        "ewise_union",
        7,
    ),
}


@pytest.mark.parametrize("case", NOTHING)
def test_where_nothing_meets_nothing_is_chosen(objects, case):
    statement, name, may_not = NOTHING[case]

    def program(w, u, v):
        statement(w, u, v)
        return w

    w = Vector.from_dense([100, 101, 102, 103], like=objects.u, name="w")
    report = crosscheck(program, w, objects.u, objects.v, backends=BOTH)
    assert report.rows[0].rule == "any of the candidates"
    assert report.result.get(3) == 103
    faulty = with_operations(**{name: setting(3, may_not)})
    found = difference(program, w, objects.u, objects.v, faulty=faulty)
    assert found.rows == ((3, 103, may_not, "there was no candidate"),)


@pytest.mark.each_value
@pytest.mark.parametrize("name", [s.name for s in semiring if s.monoid.name == "any"])
@pytest.mark.parametrize("flip", [False, True])
def test_no_choice_of_the_oracle_is_refused(name, flip):
    """Terms, mask and accumulator as NumPy sees them hold whatever GraphBLAS takes of them."""
    rng = np.random.default_rng(len(name) + flip)
    ran = 0

    def program(A, u, m, w, how):
        product = u @ A if flip else A @ u
        w(**how(m)) << semiring[name](product)
        return w

    first = 8 * (len(name) % 3)  # masks, accumulators and types by turns
    for k in range(first, first + 8):
        rows, cols = np.nonzero(rng.random((7, 7)) < 0.4)
        A = Matrix.from_coo(rows, cols, rng.integers(-3, 4, len(rows)), nrows=7, ncols=7, **CPU)
        u, m, w = (
            Vector.from_coo(i, rng.integers(-2, 3, len(i)), size=7, **CPU)
            for i in (np.flatnonzero(rng.random(7) < p) for p in (0.6, 0.5, 0.4))
        )
        if k % 3 == 0:
            u = u.dup(FP32)
        mask = (None, lambda m: m.S, lambda m: m.V, lambda m: ~m.S, lambda m: ~m.V)[k % 5]

        def how(m, k=k, mask=mask):
            return {
                "mask": None if mask is None else mask(m),
                "accum": (None, binary.plus, binary.min)[k // 2 % 3],
                "replace": mask is not None and bool(k % 2),
            }

        report = crosscheck(program, A, u, m, w, how, backends=("cpu", "cpu"))
        assert report.rows[-1].rule == "any of the candidates"
        ran += report.statements
    assert ran == 8


def test_inexact_functions_and_sums_of_reductions(objects):
    def program(u):
        w = Vector(FP32, u.size, like=u, name="w")
        w << u.apply("exp")
        w(accum=binary.times) << u.apply("log")
        return w, w.reduce("times").new()

    u = objects.u.dup(FP32)
    for factor, fails in ((1 + 1e-6, False), (1.01, True)):

        def changed(place, right, s, factor=factor):
            right(s)
            _, values = place.vector_to_coo(s.out)
            place.set_values(s.out, values * values.dtype.type(factor))

        other = with_operations(apply=changed)
        if fails:
            assert difference(program, u, faulty=other).place.text == 'w << u.apply("exp")'
        else:
            report = crosscheck(program, u, backends=("cpu", other))
            assert [row.rule for row in report.rows] == ["within 0.0001"] * 3


def test_the_least_of_nothing_but_nan_is_free(objects):
    """`min` passes over NaN, and a kernel that begins with the identity ends with it."""

    def program(o):
        w = Vector(FP64, 4, like=o.u)
        w << semiring.min_first(o.u @ o.A)
        return Objects(w, *o[1:])

    u = Vector.from_dense([np.nan] * 4, like=objects.u)
    things = objects._replace(u=u)
    for number in (np.nan, np.inf):
        other = with_operations(mxv=setting(2, number))
        report = crosscheck(program, things, backends=("cpu", other))
        assert isinstance(report.result, Objects)
        assert report.rows[0].rule == "exactly"
    for number in (-np.inf, 0.0):
        found = difference(program, things, faulty=with_operations(mxv=setting(2, number)))
        assert found.rows[0][2] == number


def test_nan_is_like_nan(objects):
    def program(u):
        w = u.apply(binary.truediv, left=0.0).new()
        w << w.apply(binary.truediv, left=0.0)
        return w.isequal(w)

    u = Vector.from_dense([0.0, 1.0, np.inf, np.nan], backend="cpu")
    assert crosscheck(program, u, backends=BOTH).statements == 2
