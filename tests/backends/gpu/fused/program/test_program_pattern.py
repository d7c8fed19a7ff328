"""Loops within the pattern of a sparse matrix: one kernel, and what the statements leave."""

import numpy as np
import pytest
from nvrtc import ARCHITECTURES, nvrtc_compile
from pass_texts import written_kernels
from pattern_loops import OUTSIDE, WITHIN, truss

import lagpu
from lagpu import INT64, Matrix, backends, generators

GRAPHS = ("symmetric", "directed", "star", "loops", "one")


def graph(name, place):
    """Numbers 1 to 7 at random places, or rows longer than a warp, or one entry."""
    rng = np.random.default_rng(5)
    if name == "star":
        A = generators.star(90, backend=place)
        more = generators.complete(40, backend=place)
        rows, cols, _ = A.to_coo()
        return built([*rows, *more.to_coo()[0]], [*cols, *more.to_coo()[1]], 90, place)
    if name == "one":
        return built([2], [2], 3, place)
    rows, cols = rng.integers(0, 40, (2, 300))
    if name == "symmetric":
        rows, cols = np.concatenate([rows, cols]), np.concatenate([cols, rows])
    if name != "loops":
        rows, cols = rows[rows != cols], cols[rows != cols]
    return built(rows, cols, 40, place)


def built(rows, cols, n, place):
    where = np.unique(np.asarray(rows) * n + np.asarray(cols))
    rows, cols = np.divmod(where, n)
    values = (rows * 3 + cols * 3) % 7 + 1
    return Matrix.from_coo(rows, cols, values, INT64, nrows=n, ncols=n, backend=place)


def assert_same(found, wanted):
    for x, y in zip(found, wanted, strict=True):
        x = x.to("cpu")
        assert x.dtype is y.dtype
        assert x.isclose(y, rel_tol=1e-12) if x.dtype.is_float else x.isequal(y)


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("body", WITHIN, ids=lambda body: body.__name__)
def test_a_body_is_one_kernel_with_the_answer_of_cpu(place, body, name):
    A = graph(name, place)
    before = A.dup()
    with lagpu.fused():
        assert_same(body(A), body(graph(name, "cpu")))
    assert A.isequal(before), "the matrix that was copied is written"


@pytest.mark.parametrize("body", OUTSIDE, ids=lambda body: body.__name__)
def test_what_may_leave_the_pattern_runs_by_itself(place, body):
    A = graph("directed", place)
    assert_same(body(A), body(graph("directed", "cpu")))
    assert OUTSIDE[body] in place.last_loop


def test_results_are_matrices_like_others(place):
    """They are written, multiplied and read after the loop; no entry may be left."""
    (C,) = truss(graph("symmetric", place))
    (D,) = truss(graph("symmetric", "cpu"))
    assert (C @ C).new().to("cpu").isequal((D @ D).new())
    C(C.S) << 5
    assert C.reduce().get() == 5 * D.nvals
    (none,) = truss(graph("symmetric", place), 1000)
    assert none.nvals == 0
    (again,) = truss(none)  # without a pattern: by itself
    assert again.nvals == 0


def test_a_trace_has_a_row_for_each_statement(place):
    with lagpu.trace() as t:
        truss(graph("symmetric", place))
    rows = [row.method for row in t.rows if row.mode == "fused"]
    assert rows == ["matrix_mxm", "matrix_select", "matrix_apply"]


@pytest.mark.ci
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nvrtc_compiles_the_programs(arch, monkeypatch):
    made = written_kernels(monkeypatch)
    for body in WITHIN:
        body(graph("directed", backends.get("sim")))
    assert len(made) == len(WITHIN)
    for kernel in made:
        assert nvrtc_compile(kernel, arch)
