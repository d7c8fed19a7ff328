"""Statements that share a pass leave what they leave one after the other."""

import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from drawn_loops import compare, load, pass_loops, start
from hypothesis import strategies as st
from loop_names import GENERATED, loop_name
from nvrtc import nvrtc_compile
from pass_texts import shape_of, written_kernels, written_texts
from programs import TILED
from strategies import for_all

import lagpu
from lagpu import FP32, FP64, INT64, Scalar, Vector, binary, indexunary, loop, semiring, unary
from lagpu.errors import EmptyObject

SIZES = (1, 31, 32, 33, 1023, 1025)

# ---- functions of their own, so that pytest leaves their code alone; each body is one pass unless
# ---- PASSES says more


def aliases(A, x, y, z, b, f, r, s):
    for _ in loop(times=3):
        x << x.ewise_add(y, binary.plus)
        y << x.ewise_mult(x, binary.minus)
        x(accum=binary.plus) << x
        y(x.S, accum=binary.max) << y.ewise_union(x, binary.minus, left_default=1, right_default=2)
        x << x.select(indexunary.valuegt, 1)
        x << x.apply(unary.ainv)


def masks(A, x, y, z, b, f, r, s):
    for depth in loop(times=3):
        x(b.S) << y
        b(~x.S) << 1
        y(b.V) << x
        z(~b.V) << y
        b << x.select(indexunary.valuegt, 1)
        z(b.S) << 7
        f(~b.S) << z
        x(x.V) << z
        y(~y.S) << depth


def replaces(A, x, y, z, b, f, r, s):
    for depth in loop(times=3):
        x(y.S, replace=True) << z
        y(~x.S, replace=True) << depth
        z(x.V, replace=True) << y
        f(~y.V, replace=True) << x
        b(b.V, replace=True) << x
        x(~x.V, replace=True) << 0
        y(~y.S, replace=True) << x


def accumulators(A, x, y, z, b, f, r, s):
    for _ in loop(times=3):
        x(accum=binary.plus) << y
        x(y.S, accum=binary.min) << 2
        z(~x.V, accum=binary.minus, replace=True) << x
        y(accum=binary.max) << z.select(indexunary.valuele, 1)
        f(x.S, accum=binary.times) << y
        b(accum=binary.lxor) << x


def keeps_what_no_statement_writes(A, x, y, z, b, f, r, s):
    for _ in loop(times=2):
        x(b.S) << 5
        y << x
        z(x.S, replace=True) << z
        f(y.S, accum=binary.plus) << 1


def sums(A, x, y, z, b, f, r, s):
    for depth in loop(times=3):
        x << x.apply(binary.plus, right=1)
        r << x.reduce("plus")
        s << 3
        x(b.S, accum=binary.plus) << depth
        s(accum=binary.plus) << x.reduce("max")
        s(accum=binary.plus) << y.reduce("plus")
        y << x.select(indexunary.valuegt, 2)


def reads_sums(A, x, y, z, b, f, r, s):
    for _ in loop(times=3):
        s << 2
        s(accum=binary.plus) << x.reduce("plus")
        y << y.apply(binary.minus, right=s)
        s << 1
        x(y.S) << s
        s(accum=binary.max) << y.reduce("plus")
        s(accum=binary.minus) << x.reduce("max")
        f << s


def sums_before_a_product(A, x, y, z, b, f, r, s):
    for _ in loop(times=3):
        s << 1
        s(accum=binary.max) << x.reduce("min")
        y << x.apply(binary.min, right=5)
        x << semiring.min_second(y @ A)
        x(accum=binary.plus) << s
        y << x


def products(A, x, y, z, b, f, r, s):
    for _ in loop(times=2):
        y << x.apply(binary.min, right=5)
        x(y.V, accum=binary.min) << semiring.min_plus(y @ A)
        y(~x.S) << x
        z(x.S) << x.ewise_mult(y, binary.minus)
        x(~z.V, replace=True) << semiring.max_plus(A @ z)
        z << x


def until_unchanged(A, x, y, z, b, f, r, s):
    for _ in loop(until_unchanged=x, times=4):
        y << x.apply(binary.min, right=2)
        s << y.reduce("plus")
        x << x.apply(binary.plus, right=1)


# loop: (passes, barriers of sums that are owed and that no product passes) of its kernel
LOOPS = {
    aliases: (1, 0),
    masks: (1, 0),
    replaces: (1, 0),
    accumulators: (1, 0),
    keeps_what_no_statement_writes: (1, 0),
    sums: (1, 1),
    reads_sums: (4, 2),
    sums_before_a_product: (2, 0),
    products: (3, 0),
    until_unchanged: (1, 1),
}


@pytest.fixture
def texts(monkeypatch):
    return written_texts(monkeypatch)


def check(function, backend, sizes=SIZES, seeds=range(6)):
    for n in sizes:
        for seed in seeds:
            found = compare(function, backend, n, 0, seed)
            if backend.name != "cpu" and not isinstance(found, str):
                assert loop_name(backend) == GENERATED, backend.last_loop


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_a_pass_gives_what_its_statements_give(backend, function):
    check(function, backend)


@pytest.mark.parametrize("function", [masks, sums, products], ids=lambda f: f.__name__)
def test_passes_over_more_words_than_warps(backend, function):
    check(function, backend, TILED[backend.name][:2], range(1, 3))


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_statements_in_a_row_share_a_pass(backend, function, texts):
    if backend.name == "cpu":
        pytest.skip("cpu has no programs")
    function(*start(backend, 33, 0, 4))
    passes, barriers, _ = shape_of(texts[0])
    end = 1 if function is until_unchanged else 0
    assert (passes, barriers - end) == LOOPS[function]


def test_a_traced_loop_has_no_passes(backend, texts):
    """Its log has a record of each statement."""
    if backend.name == "cpu":
        pytest.skip("cpu has no programs")
    with lagpu.trace() as trace:
        masks(*start(backend, 33, 0, 4))
    assert loop_name(backend) == GENERATED
    assert shape_of(texts[0])[0] == 0
    assert len([row for row in trace.rows if row.level == 0]) == 9


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_nvrtc_compiles_passes(backend, function, monkeypatch):
    if backend.name != "sim":
        pytest.skip("the kernels of sim are those of a GPU")
    made = written_kernels(monkeypatch)
    function(*start(backend, 33, 0, 4))
    assert nvrtc_compile(made[0], "sm_90")


def reads_only(u, x, y, r):
    for _ in loop(times=2):
        x(accum=binary.plus) << u
        y(~u.S) << x
        y(u.V) << x.ewise_mult(u, binary.minus)
        x(~u.V, accum=binary.max) << u.ewise_add(y, binary.plus)
        r(accum=binary.plus) << u.reduce("plus")
        y(u.S, replace=True) << y


@pytest.mark.parametrize("n", [1, 33, 1025])
@pytest.mark.parametrize("value", [0, 3])
@pytest.mark.parametrize("kind", ["number", "full", "iso", "sparse", "bitmap", "empty", "one"])
def test_a_pass_reads_a_vector_in_each_form(backend, kind, value, n):
    found = []
    for eagerly in (False, True):
        x = Vector.from_coo(range(0, n, 2), range(0, n, 2), INT64, size=n, backend=backend)
        u = Vector(INT64, n, like=x)
        if kind == "number":
            u << value
        elif kind == "full":
            u = Vector.from_coo(range(n), value, INT64, size=n, backend=backend)
        elif kind != "empty":
            where = range(1) if kind == "one" else range(0, n, 3)
            values = value if kind == "iso" else [value + i % 2 for i in where]
            u = Vector.from_coo(where, values, INT64, size=n, backend=backend)
            if kind == "bitmap":
                u(u.V, accum=binary.plus) << u
        y, r = Vector(INT64, n, like=x), Scalar(INT64, 0)
        with lagpu.eager() if eagerly else nullcontext():
            reads_only(u, x, y, r)
        assert backend.name == "cpu" or (loop_name(backend) == GENERATED) != eagerly
        vectors = [v.to_coo()[j].tolist() for v in (u, x, y) for j in (0, 1)]
        found.append([*vectors, r.value])
    assert found[0] == found[1]


def divides_where_it_may(x, y, z, m):
    for _ in loop(times=2):
        y << y.apply(binary.times, right=1)
        z(m.S) << x.ewise_mult(y, binary.test_quotient)
        z(m.S) << z.apply(binary.test_quotient, right=2)
        z(y.V, accum=binary.plus) << x.ewise_union(
            y, binary.test_quotient, left_default=1, right_default=0
        )


@pytest.mark.parametrize("n", [7, 70])
def test_a_function_is_called_where_its_result_is_asked_for(backend, n):
    """Not for what a mask leaves out: a quotient by 0 ends the process on a CPU."""
    if "test_quotient" not in binary:
        binary.register("test_quotient", lambda x, y: x // y, "x / y")
    found = []
    for eagerly in (False, True):
        x = Vector.from_coo(range(n), range(n, 2 * n), INT64, size=n, backend=backend)
        y = Vector.from_coo(range(n), [i % 2 for i in range(n)], INT64, size=n, backend=backend)
        m = Vector.from_coo(range(1, n, 2), True, size=n, backend=backend)
        z = Vector(INT64, n, like=x)
        with lagpu.eager() if eagerly else nullcontext():
            divides_where_it_may(x, y, z, m)
        assert backend.name == "cpu" or (loop_name(backend) == GENERATED) != eagerly
        found.append([part.tolist() for part in z.to_coo()])
    assert found[0] == found[1]


def rounded(x, y, z):
    for _ in loop(times=1):
        y << x.ewise_mult(x, binary.times)
        z(accum=binary.plus) << y


@pytest.mark.parametrize(("dtype", "bits"), [(FP32, 15), (FP64, 30)], ids=str)
def test_a_value_is_rounded_between_two_statements(backend, dtype, bits):
    """A compiler may make one instruction of a product and a sum, which rounds once."""
    near, less = 1 + 2.0**-bits, -(1 + 2.0 ** (1 - bits))
    x, z = (Vector.from_dense(np.full(40, v, dtype.numpy), backend=backend) for v in (near, less))
    y = Vector(dtype, 40, backend=backend)
    rounded(x, y, z)
    assert backend.name == "cpu" or loop_name(backend) == GENERATED
    assert z.to_dense().tolist() == [0.0] * 40


# ---- random bodies


@for_all(cpu=2, compiled=12)
def test_random_passes_give_the_eager_answer(backend, draw):
    source = draw(pass_loops(), label="loop")
    run = load(source, Path(tempfile.mkdtemp()) / "body.py")
    n = draw(st.sampled_from(SIZES), label="n")
    for seed in range(8):
        compare(run, backend, n, 0, seed)


# ---- scalars without a value


def needs_a_sum(x, y, few, total):
    for _ in loop(times=3):
        y << x.select(indexunary.valuegt, 4)
        x << x.apply(unary.ainv)
        total << y.reduce("plus")
        few << total
        x(x.S, accum=binary.plus) << total


def test_a_loop_ends_before_the_statement_that_lacks_a_sum(backend):
    """All before it is done, whatever pass it is of."""
    found = []
    for eagerly in (False, True):
        x = Vector.from_coo([0, 69], [1, 5], INT64, size=70, backend=backend)
        y, few, total = Vector(INT64, 70, like=x), Vector(INT64, 1, like=x), Scalar(INT64, 7)
        with lagpu.eager() if eagerly else nullcontext(), pytest.raises(EmptyObject):
            needs_a_sum(x, y, few, total)
        found.append([v.to_coo()[j].tolist() for v in (x, y, few) for j in (0, 1)])
        assert total.is_empty
    assert found[0] == found[1]
