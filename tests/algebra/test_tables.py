"""The operator table: laws of monoids, type rules, NumPy meaning on cpu, users' own operators."""

import itertools
import math
import pickle

import numpy as np
import pytest
import reference
from in_one import in_one
from matches import assert_matches
from reference import PlainMatrix, PlainVector
from strategies import BINARY, INDEXUNARY, MONOIDS, SEMIRINGS, TYPES, UNARY, VALUES, matrix, vector

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
    binary,
    dtypes,
    monoid,
    semiring,
    unary,
)
from lagpu.core.arguments import bound_operator, selected
from lagpu.errors import DomainMismatch, UnknownOperator

# ------------------------------------------------------------------------------------- laws


def values_of(dtype, *, special=True):
    values = [dtype.numpy.type(x) for x in VALUES[dtype.name]]
    return values if special else [x for x in values if abs(float(x)) < 1e20]


def same_value(x, y):
    return (x != x and y != y) or x == y


@in_one("dtype", TYPES)
@pytest.mark.parametrize("m", MONOIDS, ids=lambda m: m.name)
def test_monoid_laws(m, dtype):
    if dtype not in m:
        pytest.skip("bits are those of integers")
    domain, result = m.types(dtype)
    assert domain is result
    if m.name == "any":
        assert m.has_any_terminal
        return
    identity = m.identity(domain)
    assert identity.dtype == domain.numpy
    # a NaN beside a number is skipped by min and max, so the identity shows beside one
    values = values_of(domain, special=m.name not in ("plus", "times"))
    numbers = [x for x in values if x == x]
    for x in numbers:
        assert same_value(m.op.evaluate(domain, identity, x), x)
        assert same_value(m.op.evaluate(domain, x, identity), x)
        if m.terminal is not None:
            assert m.op.evaluate(domain, m.terminal(domain), x) == m.terminal(domain)
    for x, y in itertools.product(values, repeat=2):
        assert same_value(m.op.evaluate(domain, x, y), m.op.evaluate(domain, y, x))
    for x, y, z in itertools.product(values, repeat=3):
        left = m.op.evaluate(domain, m.op.evaluate(domain, x, y), z)
        right = m.op.evaluate(domain, x, m.op.evaluate(domain, y, z))
        assert same_value(left, right) or math.isclose(left, right, rel_tol=1e-5, abs_tol=1e-37)


def test_monoid_reduce_is_the_definition():
    assert monoid.plus.reduce(np.array([1, 2, 3], np.int32), INT32) == 6
    assert monoid.min.reduce(np.array([], np.int32), INT32) == 2**31 - 1
    assert monoid.lor.reduce(np.array([False, True]), BOOL)


def test_exactness():
    assert not monoid.plus.is_exact(FP64)
    assert monoid.plus.is_exact(INT64)
    assert monoid.min.is_exact(FP32)
    assert not monoid.any.is_exact(INT32)


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_flips_to(op):
    """A flipped operator with exchanged operands is the same operator."""
    if not op.flips_to:
        return
    other = binary[op.flips_to]
    assert other.flips_to == op.name
    for x, y in itertools.product((0, 1, 2, 5), repeat=2):
        assert op.evaluate(INT32, x, y) == other.evaluate(INT32, y, x)


# ------------------------------------------------------------------------------- type rules


@pytest.mark.parametrize(
    ("op", "left", "right", "domain", "result"),
    [
        (binary.plus, INT32, INT32, INT32, INT32),
        (binary.plus, BOOL, BOOL, INT64, INT64),
        (binary.plus, INT32, UINT32, INT64, INT64),
        (binary.plus, INT64, UINT64, FP64, FP64),
        (binary.plus, INT32, FP32, FP64, FP64),
        (binary.min, BOOL, BOOL, BOOL, BOOL),
        (binary.truediv, INT32, INT32, FP64, FP64),
        (binary.truediv, FP32, FP32, FP32, FP32),
        (binary.lor, INT32, FP64, BOOL, BOOL),
        (binary.lt, INT32, INT64, INT64, BOOL),
        (binary.plus["FP32"], INT32, INT32, FP32, FP32),
        (semiring.plus_times, BOOL, BOOL, INT64, INT64),
        (semiring.plus_pair, BOOL, BOOL, INT64, INT64),
        (semiring.plus_first, BOOL, FP32, FP32, FP32),
        (semiring.any_pair, BOOL, INT32, INT32, INT32),
        (semiring.any_secondi, BOOL, BOOL, BOOL, INT64),
        (semiring.lor_land, INT32, INT32, BOOL, BOOL),
        (semiring.lor_first, INT32, INT32, BOOL, BOOL),
        (semiring.lor_eq, INT32, FP32, FP64, BOOL),
        (semiring.min_truediv, INT32, INT32, FP64, FP64),
        (semiring.plus_times["FP64"], INT32, INT32, FP64, FP64),
    ],
    ids=str,
)
def test_type_rules(op, left, right, domain, result):
    assert op.types(left, right) == (domain, result)


@pytest.mark.parametrize("op", SEMIRINGS, ids=lambda op: op.name)
@in_one("dtype", TYPES)
def test_semirings_add_what_they_multiply(op, dtype):
    domain, result = op.types(dtype, dtype)
    assert op.multiply.result(domain) is result
    assert not op.casts
    assert op.monoid.types(result) == (result, result)


def test_a_sum_of_truths_counts(backend):
    """As in python-graphblas, where the type is that of the operands."""
    assert semiring.plus_land.casts
    assert semiring.plus_land.types(INT32, INT32) == (BOOL, INT64)
    u = Vector.from_dense([1, 0, 3], backend=backend)
    A = Matrix.from_coo([0, 1, 2], [1, 1, 1], [5, 6, 7], nrows=3, ncols=3, backend=backend)
    assert semiring.plus_land(u @ A).new().get(1) == 2
    assert semiring.times_lxor(u @ A).new().get(1) == 0


def test_a_typed_operator_is_one_object():
    """Backends remember operators by identity, so a loop must not make new ones."""
    assert binary.plus["FP32"] is binary.plus[FP32]
    assert monoid.plus["FP32"] is monoid.plus[np.float32]
    assert semiring.min_plus["FP32"] is semiring.min_plus["float32"]
    assert repr(binary.plus["FP32"]) == "binary.plus[FP32]"
    assert repr(monoid.plus["FP32"]) == "monoid.plus[FP32]"
    assert repr(semiring.min_plus["FP32"]) == "semiring.min_plus[FP32]"
    assert repr(unary.abs) == "unary.abs"


# ------------------------------------------------------------------------------------ types


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (int, INT64),
        (float, FP64),
        (bool, BOOL),
        ("int32", INT32),
        ("INT32", INT32),
        (np.uint8, UINT32),
        ("uint8", UINT32),
        ("UINT8", UINT32),
        ("INT16", INT32),
        (np.int16, INT32),
        (np.float16, FP32),
        (np.dtype(">i4"), INT32),
        (np.longlong, INT64),
        (UINT64, UINT64),
    ],
    ids=str,
)
def test_lookup(given, found):
    assert dtypes.lookup(given) is found


@pytest.mark.parametrize(
    "bad", [None, "INT", complex, object, str, "m8[s]", {"bad": 1}, 7], ids=str
)
def test_lookup_refuses(bad):
    with pytest.raises(DomainMismatch, match=r"is not a lagpu type\. Use one of BOOL, INT32"):
        dtypes.lookup(bad)


@in_one("old", TYPES)
@pytest.mark.parametrize("new", TYPES, ids=str)
def test_cast_is_that_of_graphblas(old, new):
    """Arrays and scalars against the plain definition, and against the C library."""
    more = (-0.5, 3e9, -3e9, 2e19) if old.is_float else ()
    values = np.array([*VALUES[old.name], *more], old.numpy)
    expected = [reference.cast(x, new) for x in values]
    got = dtypes.cast(values, new)
    assert got.dtype == new.numpy
    assert all(map(same_value, got.tolist(), [x.item() for x in expected]))
    assert all(same_value(dtypes.cast(x, new), y) for x, y in zip(values, expected, strict=True))
    theirs = Vector.from_dense(values, backend="cpu").dup(new).to_dense()
    assert all(map(same_value, theirs.tolist(), got.tolist()))


def test_types_pickle_as_themselves():
    assert pickle.loads(pickle.dumps(FP32)) is FP32


def test_smallest_and_largest():
    assert (INT32.smallest, INT32.largest) == (-(2**31), 2**31 - 1)
    assert (BOOL.smallest, BOOL.largest) == (False, True)
    assert (FP32.smallest, FP32.largest) == (-np.inf, np.inf)


# ---------------------------------------------------- every row and type, in the C library


SQUARE = tuple(itertools.product(range(4), range(4)))


def pairs(left, right):
    """All pairs of values of two types, as two full vectors."""
    x, y = zip(*itertools.product(VALUES[left.name], VALUES[right.name]), strict=True)
    plain = []
    for dtype, values in ((left, x), (right, y)):
        entries = dict(enumerate(map(dtype.numpy.type, values)))
        plain.append(PlainVector(len(values), dtype, entries))
    return plain


@in_one("left", TYPES)
@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.name)
def test_binary_means_its_numpy_function(op, left):
    for right in TYPES:
        u, v = pairs(left, right)
        got = vector(u, "cpu").ewise_mult(vector(v, "cpu"), op).new()
        assert_matches(got, reference.ewise_mult(u, v, op))


@in_one("dtype", TYPES)
@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_unary_means_its_numpy_function(op, dtype):
    u, _ = pairs(dtype, BOOL)
    how = bound_operator(dtype, op, None, None)
    assert_matches(vector(u, "cpu").apply(op).new(), reference.apply(u.entries, op, how))
    assert_matches(op(vector(u, "cpu")).new(), reference.apply(u.entries, op, how))


@in_one("dtype", TYPES)
@pytest.mark.parametrize("op", INDEXUNARY, ids=lambda op: op.name)
def test_indexunary_means_its_numpy_function(op, dtype):
    u, _ = pairs(dtype, BOOL)
    A = PlainMatrix(4, 4, dtype, dict(zip(SQUARE, u.entries.values(), strict=False)))
    for thunk in (0, 1, -2):
        how = bound_operator(dtype, op, None, thunk)
        got = op(vector(u, "cpu"), thunk).new()
        assert_matches(got, reference.apply(u.entries, op, how))
        got = op(matrix(A, "cpu"), thunk).new()
        assert_matches(got, reference.apply(A.entries, op, how))
        if op.result(BOOL) is BOOL:
            _, number, domain = selected(dtype, op, thunk)
            got = matrix(A, "cpu").select(op, thunk).new()
            assert_matches(got, reference.select(A.entries, op, domain, number))


@in_one("dtype", TYPES)
@pytest.mark.parametrize("m", MONOIDS, ids=lambda m: m.name)
def test_monoid_reduces_as_its_operator(m, dtype):
    values = values_of(dtype, special=m.name not in ("plus", "times"))
    u = PlainVector(len(values), dtype, dict(enumerate(values)))
    possible = [x.item() for x in reference.reduce(values, dtype, m)]
    got = vector(u, "cpu").reduce(m).new()
    assert any(reference.close(got.value, x, got.dtype, got.dtype) for x in possible)


# ----------------------------------------------------------------------------------- tables


def test_tables_are_read_by_attribute_name_and_order():
    assert semiring.min_plus is semiring["min_plus"]
    assert "min_plus" in semiring
    assert "min_plus" in dir(semiring)
    assert len(list(binary)) == len(binary)
    assert semiring.lookup("min_plus") is semiring.lookup(semiring.min_plus)


@pytest.mark.parametrize(
    ("table", "name", "near"),
    [(semiring, "any_pear", "any_pair"), (binary, "pluss", "plus"), (monoid, "maxx", "max")],
)
def test_unknown_name_tells_the_nearest(table, name, near):
    with pytest.raises(UnknownOperator, match=f"there is no '{name}'.*{near}"):
        getattr(table, name)
    with pytest.raises(AttributeError, match=near) as caught:
        table.lookup(name)
    assert str(caught.value).count(",") < 5, "the nearest, not all"


def test_wrong_kind_of_operator():
    with pytest.raises(DomainMismatch, match="is not a Semiring"):
        semiring.lookup(binary.plus)
    with pytest.raises(DomainMismatch, match="is not a Monoid"):
        monoid.lookup(binary.minus)
