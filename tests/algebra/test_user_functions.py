"""Operators of Python functions: by their names, anonymous, with parameters; NumPy's names."""

import pickle
import re

import numpy as np
import pytest

from lagpu import (
    BOOL,
    FP64,
    INT32,
    INT64,
    Matrix,
    Scalar,
    Vector,
    agg,
    binary,
    indexunary,
    loop,
    monoid,
    op,
    select,
    semiring,
    unary,
)
from lagpu.dtypes import ALL
from lagpu.errors import (
    DomainMismatch,
    InvalidValue,
    NameTaken,
    NoDomain,
    NotSupported,
    UnknownOperator,
    UnknownType,
)


def plus_three(x):
    return x + 3


def positive(x):
    return x > 0


def weighted(x, y):
    return x + 10 * y


def plus(by=0):
    def inner(x, y):
        return x + y + by

    return inner


def twins(u, v, one, two, three):
    for _ in loop(times=2):
        u << u.apply(one)
        v << u.ewise_mult(v, two)
        u << u.apply(three)


@pytest.fixture
def u(backend):
    return Vector.from_coo([0, 1, 3], [1, 2, -4], "INT32", size=5, backend=backend)


@pytest.fixture
def made():
    """Register in a table, and forget it at the end."""
    names = []

    def register(table, name, *args, by="register_new", **options):
        names.append((table, name))
        return getattr(table, by)(name, *args, **options)

    yield register
    for table, name in names:
        table._rows.pop(name, None)
        vars(table).pop(name, None)
        table._paths.pop(name, None)


def twins(u, v, one, two, three):
    for _ in loop(times=2):
        u << u.apply(one)
        v << u.ewise_mult(v, two)
        u << u.apply(three)


def test_operators_of_one_name_are_distinct_in_a_kernel(backend, made):
    """Of two tables, and one whose name is that of another one with its number."""
    number = int(re.search(r"\d+", unary.register_anonymous(plus_three).cuda)[0]) + 3
    one = made(unary, "twin", lambda x: x + 1, cuda="x + 1", by="register")
    two = made(binary, "twin", lambda x, y: x * y, cuda="x * y", by="register")
    numbered = made(unary, f"twin_{number}", lambda x: x - 1, cuda="x - 1", by="register")
    others = [unary.register_anonymous(plus_three, "twin", cuda="x + 3") for _ in range(5)]
    assert len({x.cuda for x in (one, two, numbered, *others)}) == 8
    u, v = (Vector.from_coo([0, 2], [x, 5], "INT32", size=3, backend=backend) for x in (1, 2))
    twins(u, v, one, two, others[-1])
    assert (u.to_coo()[1].tolist(), v.to_coo()[1].tolist()) == ([9, 13], [24, 300])


def summed(u, one, two, sums):
    first, second = sums
    for _ in loop(times=2):
        first << u.reduce(one)
        second << u.reduce(two)
        u << u.apply(binary.plus, right=1)


def test_monoids_of_one_name_are_distinct_in_a_kernel(backend, made):
    """Of functions without names, of other identities, and of a name with a point."""
    add, multiply = (
        binary.register_anonymous(function, cuda=cuda)
        for function, cuda in ((lambda x, y: x + y, "x + y"), (lambda x, y: x * y, "x * y"))
    )
    most = (monoid.register_anonymous(binary.max, least, "most") for least in (-5, -100))
    inside = made(monoid, "test_mine.add", add, 0), made(monoid, "test_mine.multiply", multiply, 1)
    pairs = [[monoid.register_anonymous(add, 0), monoid.register_anonymous(multiply, 1)], most]
    for (one, two), wanted in zip([*pairs, inside], [(12, 32), (8, 8), (12, 32)], strict=True):
        u = Vector.from_coo([0, 2, 3], [1, 1, 7], "INT32", size=5, backend=backend)
        sums = Scalar("INT32"), Scalar("INT32")
        summed(u, one, two, sums)
        assert tuple(x.value for x in sums) == wanted


def test_a_registered_function_is_an_operator(u, made):
    f = made(unary, "test_plus_three", plus_three, cuda="x + 3")
    assert unary.test_plus_three is op.test_plus_three is f
    assert f.orig_func is plus_three
    w = u.apply("test_plus_three").new()
    assert w.dtype is INT32
    assert w.to_coo()[1].tolist() == [4, 5, -1]
    with pytest.raises(InvalidValue, match="is taken"):
        unary.register_new("test_plus_three", plus_three)


def test_the_type_of_a_result_is_that_of_the_function(u):
    f = unary.register_anonymous(positive, cuda="x > T(0)")
    assert f(u).new().dtype == bool
    assert u.apply(f).new().to_coo()[1].tolist() == [True, True, False]
    assert unary.register_anonymous(lambda x: x / 2).types(INT32)[1] is FP64
    assert unary.register_anonymous(lambda x: x / 2, result="FP32").types(INT32)[1] == "FP32"
    assert unary.register_anonymous(plus_three).types(INT64)[1] is INT64


def test_a_function_without_cuda_runs_on_cpu_alone(u):
    f = binary.register_anonymous(weighted)
    if u.backend.name == "cpu":
        assert u.ewise_mult(u, f).new().to_coo()[1].tolist() == [11, 22, -44]
        u(f) << u
        assert u.to_coo()[1].tolist() == [11, 22, -44]
    else:
        with pytest.raises(
            NotSupported, match=r"binary\.weighted: is a Python function, which only"
        ):
            u.ewise_mult(u, f).new()
        with pytest.raises(NotSupported, match="as in cuda='x"):
            u(f) << u


def test_two_functions_of_one_name_are_two_operators(u):
    f, g = (unary.register_anonymous(plus_three, "f", cuda=c) for c in ("x + 3", "x + T(4)"))
    assert f.cuda != g.cuda
    assert f is not g


def test_parameters_make_operators(u):
    f = binary.register_anonymous(plus, parameterized=True)
    assert f(1) is f(1)
    assert f(1) is not f(by=2)
    assert f.monoid is None
    if u.backend.name == "cpu":
        assert u.ewise_add(u, f(1)).new().to_coo()[1].tolist() == [3, 5, -7]
        assert u.ewise_add(u, f).new().to_coo()[1].tolist() == [2, 4, -8]
        assert u.apply(f(1), left=10).new().to_coo()[1].tolist() == [12, 13, 7]
        add = monoid.register_anonymous(f, lambda by=0: -by)
        assert f.monoid is add
        assert not add.is_idempotent
        assert u.reduce(add(1)).new().value == 1
        assert u.reduce(add).new().value == -1
        assert u.reduce(f).new().value == -1
        A = u.diag()
        twice = semiring.register_anonymous(add, f)
        assert A.mxv(u, twice(1)).new().to_coo()[1].tolist() == [3, 5, -7]
        assert A.mxv(u, semiring.register_anonymous(monoid.plus, f)).new().nvals == 3


def test_a_text_has_no_parameters(made):
    """On a GPU each choice of parameters would be the one text."""
    with pytest.raises(InvalidValue, match=r"test_plus_by: cuda=.* is one text for all parameters"):
        made(binary, "test_plus_by", plus, cuda="x + y", parameterized=True)


def test_functions_of_places_select(u, made):
    made(indexunary, "test_from", lambda x, i, j, t: i >= t, cuda="i >= y", result="BOOL")
    assert select.test_from(u, 1).new().to_coo()[0].tolist() == [1, 3]
    chosen = select.register_anonymous(lambda x, i, j, t: 2 * i >= t)
    if u.backend.name == "cpu":
        assert chosen(u, 5).new().to_coo()[0].tolist() == [3]
        of = select.register_anonymous(lambda n: lambda x, i, j, t: n * i >= t, parameterized=True)
        assert of(5)(u, 5).new().to_coo()[0].tolist() == [1, 3]
    with pytest.raises(InvalidValue, match="has no truth"):
        select.register_anonymous(lambda x, i, j, t: x + t)
    made(indexunary, "test_place", lambda x, i, j, t: i + t)
    assert "test_place" not in dir(select)


def test_a_name_may_have_points(made):
    f = made(unary, "test_mine.next", plus_three)
    assert unary.test_mine.next is op.test_mine.next is unary.from_string("test_mine.next") is f
    assert dir(unary.test_mine) == ["next"]
    assert "test_mine" in dir(unary)
    assert f not in list(unary)
    with pytest.raises(UnknownOperator, match=r"no 'test_mine\.other'"):
        unary.test_mine.other  # noqa: B018


def test_operators_with_points_in_their_names_run_in_a_kernel(u, made):
    one = made(unary, "test_mine.next", lambda x: x + 1, cuda="x + 1", by="register")
    two = made(unary, "test_mine_next", lambda x: 2 * x, cuda="2 * x", by="register")
    for _ in loop(times=2):
        u << u.apply(one)
        u << u.apply(two)
    assert u.apply(one).new().to_coo()[1].tolist() == [11, 15, -9]


@pytest.mark.parametrize("wrong", [3, "x + 1", lambda x: Matrix, lambda x, y: x])
def test_what_is_no_function_of_numbers_is_refused(wrong):
    with pytest.raises(DomainMismatch):
        unary.register_anonymous(wrong)


def test_names_of_numpy_are_operators(u):
    assert unary.numpy.arccos is unary.acos
    assert binary.numpy.add is binary.plus is op.numpy.add
    assert monoid.numpy.add is monoid.plus
    assert semiring.numpy.add_multiply is semiring.plus_times
    assert semiring.numpy.fmax_hypot.multiply is binary.hypot
    assert binary.from_string("true_divide") is binary.truediv
    assert u.apply(unary.numpy.negative).new().to_coo()[1].tolist() == [-1, -2, 4]
    assert "arccos" in dir(unary.numpy)
    assert not hasattr(binary.numpy, "maximum")  # of NaN it is NaN


@pytest.mark.parametrize(("table", "name"), [(t, n) for t in (unary, binary) for n in dir(t.numpy)])
def test_an_operator_by_its_name_in_numpy_computes_the_same(table, name):
    found, function = getattr(table.numpy, name), getattr(np, name)
    x, y = np.array([0.25, -0.5, 0.75]), np.array([0.5, 2.0, -0.25])
    if name.startswith(("bitwise", "invert")):
        x, y = np.array([1, 6, -4]), np.array([3, 2, 1])
    if name == "ldexp":
        y = np.array([1, 2, -1])
    kind = INT64 if x.dtype.kind == "i" else FP64
    operands = (x, y)[: 1 if table is unary else 2]
    with np.errstate(all="ignore"):
        expected = function(*operands)
    given = [v.astype(float) if kind is FP64 else v for v in operands]
    np.testing.assert_allclose(found.evaluate(found.domain(kind), *given), expected)


def test_what_operators_say_of_themselves():
    assert binary.plus.monoid is monoid.plus
    assert binary.plus[int].monoid is monoid.plus[int]
    assert binary.minus.monoid is None
    assert monoid.plus[int].binaryop is binary.plus[int]
    assert semiring.min_plus.binaryop is binary.plus
    assert semiring.min_plus[int].binaryop is binary.plus[int]
    assert binary.first.commutes_to is binary.second
    assert binary.first[int].commutes_to is binary.second[int]
    assert binary.atan2.commutes_to is None
    assert binary.plus.is_commutative
    assert not binary.minus.is_commutative
    assert semiring.any_first.commutes_to is semiring.any_second
    assert semiring.plus_times[int].is_commutative
    assert monoid.min.is_idempotent
    assert not monoid.plus.is_idempotent
    assert semiring.min_plus[int].parent is semiring.min_plus
    assert binary.plus.parent is binary.plus
    assert binary.secondi.is_positional
    assert semiring.any_secondi.is_positional
    assert not monoid.min.is_positional
    assert "INT32" in binary.bor
    assert "FP64" not in binary.bor


@pytest.mark.parametrize("name", [x.name for x in binary])
def test_operands_may_be_exchanged_where_an_operator_says_so(name):
    """By its meaning, on numbers that tell the operands apart."""
    one = binary[name]
    other = one.commutes_to
    if other is None or one.positional or name == "any":
        return
    for kind in (INT64, FP64):
        if kind in one:
            domain = one.domain(kind)
            x, y = domain.numpy.type(6), domain.numpy.type(-2)
            for a, b in ((x, y), (y, x), (x, x)):
                assert one.evaluate(domain, a, b) == other.evaluate(domain, b, a), (name, a, b)


def test_selectors_have_types_and_pickles(u):
    assert pickle.loads(pickle.dumps(select.tril)) is select.tril
    assert select.valuegt["FP64"] is select.valuegt["FP64"]
    assert pickle.loads(pickle.dumps(select.valuegt["FP64"])) is select.valuegt["FP64"]
    assert u.select("VALUEGT", 1).new().isequal(select.valuegt["INT32"](u, 1).new())


def test_functions_of_python_are_operators(u):
    assert u.ewise_mult(u, min).new().isequal(u)
    assert u.apply(abs).new().to_coo()[1].tolist() == [1, 2, 4]
    u(max) << u.apply("-").new()
    assert u.to_coo()[1].tolist() == [1, 2, 4]
    assert u.apply("+", right=2).new().to_coo()[1].tolist() == [3, 4, 6]
    assert u.apply(select.valuegt, 1).new().to_coo()[1].tolist() == [False, True, True]


def test_types_are_a_mapping_from_operands_to_results():
    assert binary.lt.types["INT32"] is BOOL
    assert binary.plus.types(INT32, FP64) == (FP64, FP64)
    assert set(unary.abs.types) == set(ALL)
    assert set(binary.bor.types) == {kind for kind in ALL if not kind.is_float}
    assert len(binary.bor.types) == 5
    assert FP64 not in binary.bor
    with pytest.raises(NoDomain, match=r"binary\.bor: does not work with FP64\. Use a type of"):
        binary.bor["FP64"]
    assert isinstance(NoDomain("x"), KeyError)
    with pytest.raises(UnknownType, match="'INT7' is not a lagpu type"):
        assert "INT7" in binary.bor
    assert monoid.min.identities[INT32] == 2**31 - 1


def test_an_operator_knows_its_monoid_and_keeps_it(made):
    assert binary.plus.monoid is monoid.plus
    assert binary.plus["INT64"].monoid is monoid.plus["INT64"]
    other = binary.register_anonymous(lambda x, y: x + y, "plus")
    assert other.monoid is None
    assert monoid.register_anonymous(other, 0) is other.monoid
    monoid.register_anonymous(binary.minus, 0)
    assert binary.minus.monoid is None


def test_names_that_are_taken(made):
    made(unary, "steps.two", plus_three)
    for name in ("steps", "steps.two", "identity.new", "identity"):
        with pytest.raises(NameTaken, match=f"{name!r} is taken"):
            unary.register_new(name, plus_three)
    made(unary, "test_in_module", plus_three)
    assert {"test_in_module", "abs"} <= set(vars(unary))


def test_texts_that_mean_one_of_several_kinds():
    assert op.from_string("-") is unary.ainv
    assert op.from_string("count") is agg.count
    assert agg.from_string("+[int]") is agg.sum["INT64"]
    assert select.from_string("row<=") is select.rowle
    assert select.from_string(">[FP64]") is select.valuegt["FP64"]
    assert select.tril.orig_func is indexunary.tril.orig_func


def test_isclose_has_parameters():
    assert binary.isclose(0.1) is binary.isclose(0.1)
    assert binary.isclose.commutes_to is binary.isclose
    assert binary.isclose(0.1).commutes_to is binary.isclose(0.1)
    assert semiring.min_secondi.commutes_to is semiring.min_firstj
    x = Vector.from_coo([0, 1], [1.0, 2.0], backend="cpu")
    assert x.ewise_mult(x, "isclose").new().reduce(monoid.land).value is True


@pytest.mark.parametrize("name", ["cdiv", "pow", "bshift"])
def test_cpu_says_which_operator_its_semirings_lack(name):
    """Numba compiles none of these, whose text says nothing to an author."""
    ring = semiring.register_anonymous(monoid.lor, getattr(binary, name))
    u = Vector.from_coo([0, 1], [1, 2], INT64, size=2, backend="cpu")
    A = Matrix.from_coo([0, 1], [1, 0], [3, 4], INT64, nrows=2, ncols=2, backend="cpu")
    with pytest.raises(NotSupported, match=rf"cpu: binary\.{name} is in no semiring of INT64 here"):
        ring(u @ A).new()
