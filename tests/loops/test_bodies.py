"""Bodies with scalars, counters, tests, functions and elements: one kernel, the same answers."""

import contextlib
import functools
import re

import author_bodies
import numpy as np
import pytest
from author_bodies import BODIES, REFUSED, deleting, heat, target
from batches import batches_at_once
from nvrtc import ARCHITECTURES, nvrtc_compile
from pass_texts import written_kernels

import lagpu
from lagpu import BOOL, FP32, FP64, INT64, Matrix, Scalar, Vector, backends, binary, loop, unary
from lagpu.backends.cpu import csgraph
from lagpu.errors import DomainMismatch, IndexOutOfBound, InvalidValue, NotSupported


def graph(place, n=40):
    """A directed ring with chords, where each column adds up to less than 1."""
    rows = np.concatenate([np.arange(n), np.arange(0, n, 3)])
    cols = np.concatenate([(np.arange(n) + 1) % n, (np.arange(0, n, 3) + 5) % n])
    return Matrix.from_coo(rows, cols, 0.45, FP64, nrows=n, ncols=n, backend=place)


@functools.cache
def expected(body, n=40):
    return body(graph("cpu", n))


def assert_same(found, wanted):
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        tolerance = 1e-6 if getattr(x, "dtype", FP64) is FP32 else 1e-9
        if isinstance(x, Vector):
            assert x.dtype is y.dtype
            assert x.to("cpu").isclose(y, rel_tol=tolerance)
        elif isinstance(x, Scalar):
            assert x.isclose(y, rel_tol=tolerance, check_dtype=True)
        else:
            assert x == y


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("n", [40, 1025])
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_a_body_is_one_kernel_with_the_answer_of_cpu(place, body, n):
    with lagpu.fused():
        for _ in range(2):  # the second time by the program that is kept
            assert_same(body(graph(place, n)), expected(body, n))


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_same_under_a_trace_and_statement_by_statement(place, body):
    A = graph(place)
    with lagpu.fused(), lagpu.trace() as fused:
        first = body(A)
    with lagpu.trace(fuse=False) as eager:
        second = body(A)
    with lagpu.eager():
        third = body(A)
    for found in (first, second, third):
        assert_same(found, expected(body))
    if body is deleting:  # a loop's log has an assignment of a scalar where an empty one deletes
        return
    rows = [
        [(row.method.replace("set", "assign_scalar"), row.level, row.nvals_out) for row in t.rows]
        for t in (fused, eager)
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body.__name__)
def test_what_is_not_one_kernel_says_why_and_is_right(place, body):
    assert_same(body(graph(place)), expected(body))
    assert place.last_loop.startswith("eager: ")
    assert re.search(REFUSED[body], place.last_loop)


def test_other_numbers_share_a_program(place, monkeypatch):
    A, made = graph(place), written_kernels(monkeypatch)
    for t in (1.5, 2.5):
        assert_same(heat(A, t), heat(graph("cpu"), t))
    for goal in (4, 30):
        assert_same(target(A, goal), target(graph("cpu"), goal))
    assert len(made) == 2


def test_what_a_function_reads_may_change_between_loops(place, monkeypatch):
    """So the record of such a loop serves no other one."""
    x = Vector.from_scalar(1.0, 40, FP64, backend=place)
    with lagpu.fused():
        author_bodies.of_a_function(x)
        monkeypatch.setattr(author_bodies, "factor", 3.0)
        author_bodies.of_a_function(x)
    assert x.get(7) == 2.0**3 * 3.0**3


def test_an_error_of_the_counter_comes_where_python_has_it(place):
    found = []
    for where in ("cpu", place):
        x = Vector.from_scalar(1.0, 3, FP64, backend=where)
        with pytest.raises(ZeroDivisionError):
            divides(x, 3)
        found.append(x.to_dense().tolist())
    assert found[0] == found[1] != [1.0] * 3


def adds_bits(x, y, z):
    for _ in loop(times=2):
        y << x
        x(z.S, accum=binary.bor) << z


@pytest.mark.parametrize("outside", [contextlib.nullcontext, lagpu.eager, batches_at_once])
def test_an_accumulator_of_other_types_is_refused_where_it_is_written(place, outside):
    """The statements before it have run."""
    x, y = (Vector.from_scalar(value, 3, FP64, backend=place) for value in (1.5, 0.0))
    with outside(), pytest.raises(DomainMismatch, match="bor: it takes integers, not FP64"):
        adds_bits(x, y, x.dup())
    assert y.isequal(x)


def maps(x, y, op):
    for _ in loop(times=2):
        y << x
        x << x.apply(op)


def adds(x, y, op):
    for _ in loop(times=2):
        y << x
        x(accum=op) << y


@pytest.mark.parametrize(("body", "table"), [(maps, unary), (adds, binary)])
@pytest.mark.parametrize("kind", [Vector, Matrix])
def test_a_function_without_text_is_refused_where_it_is_used(place, body, table, kind):
    op = table.register_anonymous({maps: lambda x: x + 1, adds: lambda x, y: x + y}[body])
    x, y = (kind.from_scalar(value, *[4] * kind.ndim, FP64, backend=place) for value in (1.5, 0.0))
    with pytest.raises(NotSupported, match="is a Python function"):
        body(x, y, op)
    assert y.isequal(x)


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_crosschecked(body):
    lagpu.crosscheck(lambda A: body(A)[0], graph("cpu"), backends=("cpu", "sim"))


@pytest.mark.parametrize(("index", "runs"), [([0, 5, 9], 2), ([0, -1], 1), ([], 4)])
def test_an_index_outside_ends_the_loop_where_the_statement_is(place, index, runs):
    for n in (12, 40):  # of registers, and of memory
        found = []
        for where in ("cpu", place):
            p = Vector.from_coo(np.arange(len(index)), index, dtype=INT64, size=n, backend=where)
            x, y = (Vector.from_scalar(1.0, n, FP64, backend=where) for _ in range(2))
            error = contextlib.nullcontext()
            if (n == 12 and runs < 4) or -1 in index:
                message = rf"index {12 if runs == 2 else -1} is outside 0 \.\. {n - 1}"
                error = pytest.raises(IndexOutOfBound, match=message)
            with lagpu.fused(), error:
                author_bodies.outside(p, x, y)
            found.append([v.to("cpu") for v in (p, x, y)])
        assert all(v.isequal(w) for v, w in zip(*found, strict=True))


def test_a_vector_of_indices_is_only_read():
    u, p = Vector(FP64, 3, backend="cpu"), Vector.from_dense([0, 1, 2], backend="cpu")
    for refused in (
        lambda: u.__setitem__(p, 1.0),
        lambda: u[p] << 1.0,
        lambda: u[u],
        lambda: u[p].new(input_mask=u.S),
    ):
        with pytest.raises(DomainMismatch, match="a vector is not an index"):
            refused()


def test_until_takes_a_scalar_by_name():
    s = Scalar(BOOL, name="s")
    with pytest.raises(DomainMismatch, match=r"Write loop\(until=s\)"):
        loop(s)
    with pytest.raises(DomainMismatch, match="until= is a bool, not a Scalar"):
        loop(until=True)
    with pytest.raises(InvalidValue, match="until_unchanged=, until= or times="):
        loop()


def test_until_is_tested_after_an_iteration():
    """A scalar that is true before the loop does not keep it from running."""
    s, done = Scalar(BOOL, True), 0
    x = Vector.from_scalar(1.0, 3, FP64, backend="cpu")
    for _ in loop(until=s):
        done += 1
        s << (x.reduce("plus").get() * done > 5)
    assert done == 2


@pytest.mark.parametrize("place", ["cpu", "sim", "grid:2:sim"])
def test_a_scalar_that_the_body_does_not_write_ends_a_search(place, monkeypatch):
    monkeypatch.setattr(csgraph, "SMALL", 0)
    monkeypatch.setattr(csgraph, "LEAST", 0)
    A = graph(backends.get(place))
    for true, reached in ((False, 40), (True, 1)):
        levels, frontier = Vector(INT64, 40, like=A), Vector(BOOL, 40, like=A)
        frontier[0] = True
        author_bodies.levels_until(A, levels, frontier, Scalar(BOOL, true))
        assert levels.nvals == reached


@pytest.mark.parametrize("after", [0, 1])
def test_batches_take_scalars_of_scalars(place, after):
    """A loop that Python runs: its statements on scalars wait with the others."""
    if place.name == "cpu":
        pytest.skip("cpu runs each statement by itself")
    for body in (author_bodies.root, author_bodies.empties, author_bodies.means):
        with batches_at_once(after):
            python = [by_python(body, graph(place)) for _ in range(3)][-1]
        assert_same(python, expected(body))
        assert place.last_loop == "" or "is not a" not in place.last_loop


def by_python(body, A):
    """Run a body as a loop of Python's, with statements that wait."""
    plain = {"loop": lambda times: range(times)}
    return type(body)(body.__code__, body.__globals__ | plain)(A)


@pytest.mark.ci
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("traced", [False, True])
def test_nvrtc_compiles_the_programs(arch, traced, monkeypatch):
    made = written_kernels(monkeypatch)
    with lagpu.trace() if traced else contextlib.nullcontext():
        for body in BODIES:
            body(graph(backends.get("sim")))
    assert len(made) >= len(BODIES) - 1  # one is a search
    for kernel in made[ARCHITECTURES.index(arch) :: 3]:
        assert nvrtc_compile(kernel, arch)


def divides(x, last):
    for k in loop(times=9):
        x << x + 1 / (last - k)
