"""Users' own operators: registered once, used in every operation on every backend."""

import contextlib
import math

import numpy as np
import pytest
import reference
import registered_loops
from loop_names import GENERATED, loop_name
from matches import assert_matches
from reference import How, PlainMatrix, PlainVector
from samples import sampled
from strategies import matrix, vector

import lagpu
from lagpu import (
    BOOL,
    FP32,
    FP64,
    INT32,
    INT64,
    UINT64,
    Matrix,
    Vector,
    binary,
    indexunary,
    monoid,
    semiring,
    unary,
)
from lagpu.core.arguments import bound_operator, selected
from lagpu.errors import DomainMismatch, InvalidValue

SQUARE_PLUS_ONE = unary.register("test_square_plus_one", lambda x: x * x + 1, "x * x + 1")
IS_ODD = unary.register("test_is_odd", lambda x: x % 2 == 1, "i64(x) % 2 == 1", result=BOOL)
PLUS_TWICE = binary.register("test_plus_twice", lambda x, y: x + 2 * y, "x + 2 * y")
FARTHER = binary.register("test_farther", lambda x, y: x if x > y else y, "x > y ? x : y")
HALF_SUM = binary.register(
    "test_half_sum", lambda x, y: (x + y) / 2, "(f64(x) + f64(y)) / 2", result=FP64
)
ABOVE = indexunary.register(
    "test_above", lambda x, i, j, y: x + i + j > y, "i64(x) + i + j > i64(y)", result=BOOL
)
SHIFTED = indexunary.register(
    "test_shifted", lambda x, i, j, y: x + i - j + y, "f64(x) + i - j + f64(y)", result=FP64
)
IN_BAND = indexunary.register(
    "test_in_band", lambda x, i, j, y: abs(i - j) <= y, "abs(i - j) <= y", result=BOOL
)
BESIDE = indexunary.register("test_beside", lambda x, i, j, y: i - j + y, "i - j + y")
FARTHEST = monoid.register("test_farthest", FARTHER, 0)
TWO_TIMES = monoid.register("test_times", binary.times, 1, terminal=0)
CRITICAL = semiring.register(FARTHEST, PLUS_TWICE)
BUILT_IN_ON_MINE = semiring.register(monoid.plus, HALF_SUM)
MINE_ON_BUILT_IN = semiring.register(FARTHEST, binary.plus)
COUNT_EQUAL = semiring.register(monoid.plus, binary.eq)  # the product, BOOL, is cast to INT64
# Numbers that FP64 lacks, and infinities: they have a text of their own in C++.
LEAST_OF = binary.register("test_least_of", lambda x, y: x if x < y else y, "x < y ? x : y")
LEAST = monoid.register("test_least", LEAST_OF, 2**63 - 1)
LEAST_FLOAT = monoid.register("test_least_float", LEAST_OF, math.inf)
MOST = monoid.register("test_most", FARTHER, -(2**63), terminal=2**62 + 1)
MOST_FLOAT = monoid.register("test_most_float", FARTHER, -math.inf, terminal=math.inf)
FROM_TWO = binary.register(
    "test_from_two",
    lambda x, y: -math.inf if x < y else max(x, y),
    "x < y ? -INFINITY : fmax(x, y)",
)
NEVER = binary.register(
    "test_never", lambda x, y: -math.inf if x < y else x, "x < y ? -INFINITY : x"
)
STRETCHED = unary.register(
    "test_stretched",
    lambda x: 1e300 if x == 1 else math.nan if x == 2 else 2.5,
    "x == 1 ? 1e300 : x == 2 ? NAN : 2.5",
)
USER_TYPES = (INT32, INT64, UINT64, FP32, FP64)  # a plain run takes the first


def small(dtype):
    u = PlainVector(4, dtype, {i: dtype.numpy.type(x) for i, x in ((0, 3), (1, 1), (3, 2))})
    v = PlainVector(4, dtype, {i: dtype.numpy.type(x) for i, x in ((0, 1), (1, 1), (2, 5))})
    where = {(0, 1): 1, (1, 1): 1, (2, 0): 2, (3, 2): 4, (3, 1): 2}
    A = PlainMatrix(4, 4, dtype, {at: dtype.numpy.type(x) for at, x in where.items()})
    return u, v, A


@pytest.mark.parametrize("dtype", sampled(USER_TYPES, 5), ids=str)
def test_users_operators_in_every_operation(backend, dtype):
    if backend.name != "cpu" and dtype not in (INT32, FP64):
        pytest.skip("each type costs a compilation of every kernel")
    u, v, A = small(dtype)
    live_u, live_v, live_A = vector(u, backend), vector(v, backend), matrix(A, backend)
    for op in (SQUARE_PLUS_ONE, IS_ODD):
        how = bound_operator(dtype, op, None, None)
        assert_matches(live_u.apply(op).new(), reference.apply(u.entries, op, how))
        assert_matches(live_A.apply(op).new(), reference.apply(A.entries, op, how))
    for op in (PLUS_TWICE, FARTHER, HALF_SUM):
        assert_matches(live_u.ewise_add(live_v, op).new(), reference.ewise_add(u, v, op))
        assert_matches(live_u.ewise_mult(live_v, op).new(), reference.ewise_mult(u, v, op))
        union = live_u.ewise_union(live_v, op, 1, 2).new()
        assert_matches(union, reference.ewise_union(u, v, op, 1, 2))
        for side in ({"left": 2}, {"right": 2}):
            how = bound_operator(dtype, op, side.get("left"), side.get("right"))
            assert_matches(live_u.apply(op, **side).new(), reference.apply(u.entries, op, how))
    for op in (ABOVE, SHIFTED):
        how = bound_operator(dtype, op, None, 2)
        assert_matches(live_u.apply(op, 2).new(), reference.apply(u.entries, op, how))
        assert_matches(live_A.apply(op, 2).new(), reference.apply(A.entries, op, how))
    _, number, domain = selected(dtype, ABOVE, 3)
    kept = reference.select(u.entries, ABOVE, domain, number)
    assert_matches(live_u.select(ABOVE, 3).new(), kept)
    kept = reference.select(A.entries, ABOVE, domain, number)
    assert_matches(live_A.select(ABOVE, 3).new(), kept)
    for op in (FARTHEST, TWO_TIMES):
        assert [live_u.reduce(op).new().value] == reference.reduce([*u.entries.values()], dtype, op)
        assert [live_A.reduce(op).new().value] == reference.reduce([*A.entries.values()], dtype, op)
        assert_matches(live_A.reduce_rowwise(op).new(), reference.reduce_rows(A, op))
    for op in (CRITICAL, BUILT_IN_ON_MINE, MINE_ON_BUILT_IN, COUNT_EQUAL):
        assert_matches(op(live_u @ live_A).new(), reference.product(A, u, op, flip=True))
        assert_matches(op(live_A @ live_u).new(), reference.product(A, u, op, flip=False))
    w = vector(v, backend)
    w(accum=PLUS_TWICE) << live_u
    assert_matches(
        w, reference.write(v, reference.extract(u, range(4)), dtype, How(accum=PLUS_TWICE))
    )


def test_users_dup_op(backend):
    w = Vector.from_coo([1, 1, 1], [1, 2, 3], dup_op=PLUS_TWICE, backend=backend)
    assert w.get(1) == (1 + 2 * 2) + 2 * 3
    farther = Vector.from_coo([2, 0, 2, 0], [1, 8, 3, 2], dup_op=FARTHER, backend=backend)
    assert farther.to_dense(0).tolist() == [8, 0, 3]
    A = Matrix.from_coo([0, 0], [1, 1], [4, 9], dup_op=FARTHER, backend=backend)
    assert A.get(0, 1) == 9


def test_users_operator_accumulates_a_scalar(backend):
    s = lagpu.Scalar(INT64, 4)
    s(accum=PLUS_TWICE) << Vector.from_dense([1, 2], backend=backend).reduce(monoid.plus)
    assert s == 10


@pytest.mark.parametrize(
    ("register", "error", "message"),
    [
        (lambda: unary.register("abs", abs, "x"), InvalidValue, "Use unary.abs, or choose"),
        (lambda: unary.register("Bad Name", abs, "x"), InvalidValue, "not a lower_case name"),
        (
            lambda: unary.register("test_bad", abs, "x", result="INT8x"),
            DomainMismatch,
            "lagpu type",
        ),
        (lambda: monoid.register("test_bad", monoid.plus, 0), DomainMismatch, "not a BinaryOp"),
        (lambda: monoid.register("test_bad", binary.firsti, 0), DomainMismatch, "reads indices"),
        (lambda: semiring.register(binary.minus, binary.plus), DomainMismatch, "not a Monoid"),
    ],
)
def test_registering_wrongly(register, error, message):
    before = [len(table) for table in (unary, binary, monoid, semiring)]
    with pytest.raises(error, match=message):
        register()
    assert before == [len(table) for table in (unary, binary, monoid, semiring)]


NEGATIVE = monoid.register("test_above_minus_one", FARTHER, -1)
COMPARES = monoid.register("test_compares", binary.eq, True)


def test_a_monoid_must_fit_its_type():
    u = Vector.from_dense(np.array([1, 2], np.uint32), backend="cpu")
    with pytest.raises(DomainMismatch, match="identity -1 does not fit UINT32"):
        u.reduce(NEGATIVE)
    assert u.dup(INT32).reduce(NEGATIVE).new().value == 2
    with pytest.raises(DomainMismatch, match="turns UINT32 into BOOL; a monoid keeps its type"):
        u.reduce(COMPARES)
    assert u.dup(BOOL).reduce(COMPARES).new().value is True


def vectors_to_loop_over(backend):
    n = 40
    rows = np.arange(n - 1)
    u, v, w = (
        Vector.from_coo(where, values, size=n, dtype=INT64, backend=backend)
        for where, values in (
            ([0, 1, 33, 39], [4, 7, 1, 50]),
            ([1, 3, 33], [2, 9, 3]),
            ([0, 3, 33], [5, 1, 2]),
        )
    )
    A = Matrix.from_coo(rows, rows + 1, rows % 3, nrows=n, ncols=n, dtype=INT64, backend=backend)
    return A, u, v, w, lagpu.Scalar(INT64, 1)


@pytest.mark.parametrize("kernel", [None, "push_edge", "pull_scalar"])
def test_a_users_monoid_has_its_own_numbers(backend, kernel):
    """A whole number beyond 2**53, infinities, and no rounding on the way to C++."""
    if kernel is not None and not backend.capabilities.fuses:
        pytest.skip("it chooses by itself")
    A = Matrix.from_coo([0, 1], [2, 2], nrows=3, ncols=3, backend=backend)
    big = 2**62
    for add, values, expected in (
        (MOST, [big, big + 1, 5], big + 1),
        (LEAST, [big + 2, big + 3, 5], big + 2),
        (LEAST_FLOAT, [math.inf, math.inf, 5.0], math.inf),
        (MOST_FLOAT, [-math.inf, -2.5, 5.0], -2.5),
    ):
        u = Vector.from_dense(values, like=A)
        w = semiring.register_anonymous(add, binary.first)(u @ A, kernel=kernel).new()
        assert w.get(2) == expected
        assert u.dup(clear=True).reduce(add, allow_empty=False).value == add.identity(u.dtype)


@pytest.mark.parametrize("dtype", [INT32, INT64, UINT64])
def test_a_float_result_becomes_an_integer_by_saturation(backend, dtype):
    """An operator that returns infinity for integers did what the processor does."""
    numbers = Vector.from_dense([1, 2, 3], dtype=dtype, backend=backend)
    twos = Vector.from_dense([2, 2, 2], like=numbers, dtype=dtype)
    info = np.iinfo(dtype.numpy)
    never = numbers.ewise_mult(twos, NEVER).new()
    assert never.to_dense().tolist() == [info.min, 2, 3]
    wide = numbers.apply(STRETCHED).new()
    assert (wide.dtype, wide.to_dense().tolist()) == (dtype, [info.max, 0, 2])


@pytest.mark.parametrize("dtype", [INT64, FP64])
def test_a_function_of_positions_may_subtract_them(backend, dtype):
    """They were unsigned on cpu, so that i - j wrapped above the diagonal."""
    A = Matrix.from_coo([0, 0, 2, 3], [1, 3, 1, 0], 2, dtype=dtype, nrows=4, backend=backend)
    assert [x.tolist() for x in A.select(IN_BAND, 1).new().to_coo()[:2]] == [[0, 2], [1, 1]]
    assert A.apply(BESIDE, 0).new().to_coo()[2].tolist() == [-1, -3, 1, 3]


def test_a_text_names_infinity_and_functions_of_cuda(backend):
    u, v = (Vector.from_dense(x, backend=backend) for x in ([1.0, 2.0, 3.0], [2.0, 2.0, 2.0]))
    assert u.ewise_mult(v, FROM_TWO).new().to_dense().tolist() == [-math.inf, 2.0, 3.0]


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize("eager", [False, True], ids=["fused", "eager"])
@pytest.mark.parametrize("looped", registered_loops.LOOPS, ids=lambda looped: looped.__name__)
def test_a_users_operator_stands_in_a_statement_twice(backend, looped, eager):
    found, expected = vectors_to_loop_over(backend), vectors_to_loop_over("cpu")
    with lagpu.eager() if eager else contextlib.nullcontext():
        looped(*found)
    if backend.capabilities.fuses:
        assert loop_name(backend) == ("eager" if eager else GENERATED)
    looped(*expected)
    for x, y in zip(found[1:4], expected[1:4], strict=True):
        assert x.to("cpu").isequal(y, check_dtype=True)
    assert found[4].value == expected[4].value


def test_a_semiring_that_is_there_is_the_answer():
    before = len(semiring)
    assert semiring.register(monoid.plus, binary.times) is semiring.plus_times
    assert semiring.register(monoid.max, PLUS_TWICE) is semiring.register(monoid.max, PLUS_TWICE)
    assert len(semiring) - before <= 1
