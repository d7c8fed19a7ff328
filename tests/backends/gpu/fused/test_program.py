"""Any loop of lagpu statements runs as one program, with the answer of the eager loop."""

import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from loop_names import GENERATED, is_fused, loop_name
from programs import (
    NAMES,
    PRODUCTS,
    TILED,
    WHOLE,
    components,
    load,
    normalise,
    random_graph,
    relax,
    walks,
    ways_to_write,
    within,
)
from strategies import for_all

import lagpu
from lagpu import INT32, INT64, Scalar, Vector

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


# ---- random bodies

SUMS = ("plus", "min", "max", "lor", "land")


@st.composite
def scalar_statements(draw):
    """What writes a scalar, r or s, or reads one."""
    s, w, u = (draw(st.sampled_from(names)) for names in ("rs", ("x", "y", "f", "b"), WHOLE))
    accum = draw(st.sampled_from(("", "(accum=binary.max)", "(accum=binary.minus)")))
    return draw(
        st.sampled_from(
            (
                f"{s}{accum} << {u}.reduce('{draw(st.sampled_from(SUMS))}')",
                f"{s}{accum} << {u}.reduce('{draw(st.sampled_from(SUMS))}')",
                f"{s}{accum} << 3",
                f"{s}{accum} << depth",
                f"{s}{accum} << r",
                f"{w} << {s}",
                f"{w}({u}.S{accum.replace('(', ', ').rstrip(')')}) << {s}",
                f"{w}(~{u}.V) << {u}.apply('plus', right={s})",
                f"{w} << {u}.apply('minus', left={s})",
                f"{w} << {u}.select('valuele', {s})",
                f"{w} << x.ewise_union(y, 'min', left_default={s}, right_default=r)",
            )
        )
    )


@st.composite
def statements(draw):
    w = draw(st.sampled_from(list(NAMES)))
    u, v, m = (draw(st.sampled_from(WHOLE)) for _ in range(3))
    options = draw(ways_to_write(m))
    op = draw(st.sampled_from(PRODUCTS))
    what = draw(
        st.sampled_from(
            (
                f"semiring.{op}({u} @ A)",
                f"semiring.{op}(A @ {u})",
                f"semiring.{op}({u} @ A.T)",
                f"semiring.{op}({u} @ {v if v in 'xyz' else 'x'}.selection())",
                f"semiring.{op}({v if v in 'xyz' else 'z'}.selection() @ {u})",
                f"{u}.ewise_add({v}, binary.min)",
                f"{u}.ewise_mult({v}, binary.plus)",
                f"{u}.ewise_union({v}, binary.minus, left_default=1, right_default=2)",
                f"{u}.apply(unary.ainv)",
                f"{u}.apply(binary.minus, left=3)",
                f"{u}.apply(indexunary.rowindex, 2)",
                f"{u}.select(indexunary.valuegt, 1)",
                f"{u}.select('rowle', 20)",
                u,
                "2",
                "depth",
            )
        )
    )
    return f"{w}({options}) << {what}" if options else f"{w} << {what}"


@st.composite
def loops(draw, scalars=False):
    body = draw(st.lists(statements(), min_size=1, max_size=5))
    if scalars:
        more = draw(st.lists(scalar_statements(), min_size=1, max_size=5))
        body = draw(st.permutations(body + more))
    until = draw(st.sampled_from(("", "until_unchanged=x, ", "until_empty=y, ", "until_empty=b, ")))
    times = draw(st.integers(1, 3))
    head = f"def run(A, x, y, z, b, f, r, s):\n    for depth in loop({until}times={times}):\n"
    return head + textwrap.indent("\n".join(body), " " * 8) + "\n"


@for_all(cpu=3, compiled=25)
def test_random_bodies_give_the_eager_answer(backend, draw):
    check_a_body(backend, draw, draw(loops(), label="loop"))


@for_all(cpu=3, compiled=25)
def test_random_bodies_with_scalars_give_the_eager_answer(backend, draw):
    check_a_body(backend, draw, draw(loops(scalars=True), label="loop"))


def check_a_body(backend, draw, source):
    """A scalar that has no value where it is read raises the same error everywhere."""
    n = draw(st.sampled_from((1, 33, 70)), label="n")
    seed = draw(st.integers(0, 99), label="seed")
    run = load(source, Path(tempfile.mkdtemp()) / "body.py")

    def start(place):
        rng = np.random.default_rng(seed)
        A = random_graph(n, 2 * n, place, seed, directed=seed % 2 == 0)
        made = [A]
        for kind in NAMES.values():
            where = np.flatnonzero(rng.random(n) < 0.4)
            values = rng.integers(0, 4, len(where)).astype(kind.numpy)
            made.append(Vector.from_coo(where, values, kind, size=n, backend=place))
        return [*made, Scalar(INT64, name="r"), Scalar(INT64, 2)]

    def end(args):
        try:
            run(*args)
        except lagpu.errors.EmptyObject as error:
            return str(error)
        return ""

    here, there = start(backend), start("cpu")
    assert end(here) == end(there)
    if backend.name != "cpu":
        assert loop_name(backend) in (GENERATED, "no iteration"), backend.last_loop
    assert [x.value for x in here[-2:]] == [x.value for x in there[-2:]]
    for name, x, y in zip(NAMES, here[1:-2], there[1:-2], strict=True):
        assert x.to("cpu").isequal(y), (name, x.to_coo(), y.to_coo())
