"""Any loop of lagpu statements runs as one program, with the answer of the eager loop."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from drawn_loops import compare, load, random_graph, vector_loops
from hypothesis import strategies as st
from loop_names import GENERATED, is_fused, loop_name
from programs import (
    TILED,
    components,
    normalise,
    relax,
    walks,
    within,
)
from strategies import for_all

import lagpu
from lagpu import INT32, INT64, Vector, loop, semiring
from lagpu.backends.gpu.fused.program.run import why_no_line
from lagpu.operations import Descriptor, Multiply, Statement

# ---- three loops a user may write; functions of their own, so that pytest leaves their code alone


def results(backend, n, fused=True):
    """What the loops above give, and how they ran."""
    A, S = random_graph(n, 3 * n, backend), random_graph(n, n, backend, 2, directed=False)
    found, ran = [], []

    def run(function, *args):
        if fused:
            function(*args)
        else:
            with lagpu.eager():
                function(*args)
        ran.append(f"{GENERATED}: on cpu, eager" if backend.name == "cpu" else backend.last_loop)
        found.extend(x.to("cpu") for x in args if isinstance(x, Vector))

    label = Vector.from_dense(np.arange(n), backend=backend)
    run(components, S, label)
    frontier = Vector.from_coo([n // 2], True, size=n, backend=backend)
    run(within, A, Vector(INT32, n, like=A), frontier, 3)
    x = Vector.from_coo([n // 2], 1, size=n, backend=backend)
    run(walks, A, x, Vector(INT64, n, like=A), 4)
    source = Vector.from_coo([n // 2], 0, size=n, backend=backend)
    run(relax, A, source.dup(), source.dup(), Vector(INT64, n, like=A))
    x = Vector.from_coo(np.arange(0, n, 2), np.arange(0, n, 2) % 3, size=n, backend=backend)
    run(normalise, A, x, Vector(INT64, n, like=A), 3)
    return found, ran


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 1023, 1025])
def test_loops_of_a_user_run_as_one_program(backend, n):
    found, ran = results(backend, n)
    assert all(is_fused(how) for how in ran), ran
    expected, _ = results(lagpu.backends.get("cpu"), n)
    assert all(x.isequal(y) for x, y in zip(found, expected, strict=True))
    eagerly, ran = results(backend, n, fused=False)
    assert all(x.isequal(y) for x, y in zip(eagerly, expected, strict=True))
    assert backend.name == "cpu" or all("lagpu.eager" in how for how in ran)


def test_loops_over_more_words_than_warps(backend):
    for n in TILED[backend.name]:
        found, ran = results(backend, n)
        assert all(is_fused(how) for how in ran), ran
        expected, _ = results(lagpu.backends.get("cpu"), n)
        assert all(x.isequal(y) for x, y in zip(found, expected, strict=True))


def test_programs_are_shared_by_structure(backend):
    """Other sizes, constants and graphs ask for no new kernel."""
    if backend.name == "cpu":
        pytest.skip("cpu has no programs")
    results(backend, 40)
    from lagpu.backends.gpu.kernels import from_source

    made = from_source.cache_info().misses
    results(backend, 77)
    assert from_source.cache_info().misses == made


def test_rows_are_not_made_if_that_is_forbidden(backend):
    if backend.name == "cpu":
        pytest.skip("cpu keeps what it likes")
    A = random_graph(100, 300, backend)
    expected = Vector.from_coo([50], 1, size=100, backend="cpu")
    walks(A.to("cpu"), expected, Vector(INT64, 100, backend="cpu"), 3)
    for operand in (A, A.dup()):
        operand.orientation = "csc"
        x = Vector.from_coo([50], 1, size=100, backend=backend)
        walks(operand, x, Vector(INT64, 100, like=A), 3)
        assert operand.data.store.csr is None
        assert x.to("cpu").isequal(expected)
        assert is_fused(backend.last_loop)


def under_zeros(m, u, x, y):
    for _ in loop(times=2):
        x(m.V) << u
        y(~m.V) << u


@pytest.mark.parametrize("value", [0, False, 0.0])
def test_a_mask_of_zeros_alone_keeps_nothing(backend, value):
    """Nor does its complement leave anything out; no bits of it are read."""
    m = Vector.from_coo([0, 2], value, size=40, backend=backend)
    u = Vector.from_coo(range(40), 7, size=40, backend=backend)
    x, y = (Vector(INT64, 40, backend=backend) for _ in "xy")
    under_zeros(m, u, x, y)
    assert backend.name == "cpu" or is_fused(backend.last_loop)
    assert (x.nvals, y.nvals) == (0, 40)


def sums_up(A, x, y):
    for _ in loop(times=1):
        y << semiring.plus_first(x @ A)


@pytest.mark.parametrize("n", [1, 31, 33, 64, 1025, 4127])
@pytest.mark.parametrize("lacks", [None, 0, 40, -1])
def test_the_edges_that_leave_a_vector_are_counted(backend, n, lacks):
    """A word of which no vertex lacks is counted at once."""
    if backend.name == "cpu":
        pytest.skip("cpu has no programs")
    A = random_graph(n, 3 * n, backend)
    there = np.ones(n, bool)
    if lacks is not None:
        there[lacks % n] = False
    x = Vector.from_coo(np.flatnonzero(there), 1, INT64, size=n, backend=backend)
    with lagpu.trace() as trace:
        sums_up(A, x, Vector(INT64, n, like=A))
    rows, _, _ = A.to_coo()
    [row] = [row for row in trace.rows if row.method == "mxv"]
    assert row.reason.startswith(f"edges {there[rows].sum()} "), row.reason


# ---- random bodies


@for_all(cpu=3, compiled=25)
def test_random_bodies_give_the_eager_answer(backend, draw):
    check_a_body(backend, draw, draw(vector_loops(), label="loop"))


@for_all(cpu=3, compiled=25)
def test_random_bodies_with_scalars_give_the_eager_answer(backend, draw):
    check_a_body(backend, draw, draw(vector_loops(scalars=True), label="loop"))


def check_a_body(backend, draw, source):
    """A scalar that has no value where it is read raises the same error everywhere."""
    n = draw(st.sampled_from((1, 33, 70)), label="n")
    run = load(source, Path(tempfile.mkdtemp()) / "body.py")
    found = compare(run, backend, n, 0, draw(st.integers(0, 99), label="seed"))
    if backend.name != "cpu" and not isinstance(found, str):
        assert loop_name(backend) in (GENERATED, "no iteration"), backend.last_loop


@pytest.mark.parametrize("shape", [(2**31, 1), (1, 2**31), (2**31 - 1, 2**31 - 1)])
def test_indices_of_a_product_have_32_bits(shape):
    made = Vector(INT64, 1, backend="sim").data
    product = SimpleNamespace(is_named=False)
    named = {"matrix": SimpleNamespace(shape=shape), "operand": made, "product": product}
    operation = Multiply(**{name: named.get(name) for name in Multiply._fields})
    why = "" if max(shape) < 2**31 else "the matrix has more than 2**31 rows or columns"
    assert why_no_line(Statement(made, Descriptor(), operation, INT64)) == why
