"""Per-source sweeps over bitmap matrices: the answer is that of the eager sweep."""

import dataclasses
import re

import numpy as np
import pytest
from graphs import both_ways, matrix
from hypothesis import strategies as st
from loop_names import how_it_ran, loop_name
from nvrtc import ARCHITECTURES, nvrtc_compile
from per_source_sweeps import (
    FUSED,
    compare,
    deleting,
    fuses,
    of_any_degree,  # noqa: F401
    operands,
    random_block,
)
from samples import picked
from strategies import for_all
from sweeps import brandes, by_the_pulled, graph, heights, many, twins

import lagpu
import lagpu.backends.gpu.fused.sweep as module
from lagpu import BOOL, FP64, INT32, INT64, Matrix, Vector, algorithms, binary, semiring, sweep
from lagpu.backends.gpu.device.protocol import CUDA_LIMITS
from lagpu.backends.gpu.fused import loop
from lagpu.backends.gpu.fused import search_many as policy

# ---- bodies that have matrices alone: functions without assert, so that pytest leaves their code


def shares(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.V, replace=True) << delta.ewise_mult(paths, binary.truediv)
        pulled(above.S, replace=True) << semiring.plus_times(share @ A.T)
        delta(above.S, accum=binary.plus) << pulled.ewise_mult(paths, binary.times)


def inner(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta
        pulled(above.S, replace=True) << semiring.min_firstj(share @ A.T)
        delta(accum=binary.second) << pulled.ewise_mult(above, binary.first)


def rows(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << paths.apply("rowindex", right=1)
        share(here.S, accum=binary.plus) << delta.apply("colindex", right=2)
        share(here.S) << share.select("colgt", 3)
        pulled(above.S, replace=True) << semiring.max_firsti(share @ A)
        delta(above.S) << pulled.ewise_add(share, binary.plus)
        paths(above.S, accum=binary.max) << paths.select("tril", 5)


BODIES = (
    (brandes, FP64),
    (shares, FP64),
    (by_the_pulled, FP64),
    (heights, INT32),
    (deleting, INT64),
    (deleting, BOOL),
    (many, INT64),
    (inner, INT64),
    (rows, INT64),
)


@for_all(cpu=4, compiled=40)
def test_random_bodies_graphs_and_levels(backend, draw):
    """Levels as searches give them, and any others: gaps, rows of other depths and without any."""
    body, dtype = draw(st.sampled_from(BODIES), label="body")
    k = draw(st.sampled_from((2, 3, 31, 33, 64, 70)), label="k")
    n = max(2 * k, draw(st.sampled_from((4, 31, 32, 33, 100)), label="n"))
    seed = draw(st.integers(0, 10**6), label="seed")
    A = graph(n, backend, seed, draw(st.booleans(), label="symmetric"))
    blank = body is by_the_pulled or draw(st.booleans(), label="blank")
    made = operands(k, n, dtype, backend, seed, blank)
    rng = np.random.default_rng(seed)
    if draw(st.booleans(), label="of a search"):
        levels = algorithms.bfs_levels_multi(A, rng.choice(n, k, replace=False).tolist())
    else:
        kind = draw(st.sampled_from((INT32, INT64, lagpu.UINT32)), label="type")
        kept = np.array([0, 1, 2, min(n - 1, 5)])
        where = np.nonzero(rng.random((k, n)) < rng.choice([0, 0.2, 0.9], k)[:, None])
        values = np.minimum(rng.choice(kept, len(where[0])), where[0] % 6).astype(kind.numpy)
        levels = Matrix.from_coo(*where, values, kind, nrows=k, ncols=n, backend=backend)
    deep = (levels.reduce("max").new().value or 0) > 0
    ran = compare(body, A, levels, made)
    assert not fuses(backend) or not deep or ran == FUSED


def test_equal_columns_have_equal_sums(backend):
    """More long ones than a block keeps: the sums of floats depend on no order of threads."""
    A = twins(100, 4100, backend)
    made = [Matrix(FP64, 2, A.nrows, backend=backend) for _ in range(4)]
    made[0] << 1.0
    made[1] << np.tile(
        np.r_[np.zeros(101), 10.0 ** np.random.default_rng(7).uniform(-8, 8, 4100)], (2, 1)
    )
    shares(A, algorithms.bfs_levels_multi(A, [0, 1]), *made)
    assert not fuses(backend) or how_it_ran(backend) == FUSED
    assert len(np.unique(made[1].to_dense()[0, 1:101])) == 1


@pytest.mark.parametrize(
    ("n", "tail", "body", "dtype"),
    [
        pytest.param(1023, 258, brandes, FP64, marks=pytest.mark.exhaustive),
        # more than 255 levels
        pytest.param(1023, 258, many, INT64, marks=pytest.mark.exhaustive),
        (1025, 20, brandes, FP64),
        pytest.param(1025, 20, many, INT64, marks=pytest.mark.exhaustive),
    ],
)
def test_rows_of_other_depths(backend, n, tail, body, dtype):
    """A path at a wide part, from both ends; and a row of one vertex alone."""
    if not fuses(backend):
        pytest.skip("cpu runs statement by statement")
    edges = [(v, v + 1) for v in range(tail)]
    edges += [(tail, v) for v in range(tail + 1, n - 2)]
    edges += [(v, n - 2) for v in range(tail + 1, n - 2)]
    A = matrix(n, both_ways(edges), backend)
    levels = algorithms.bfs_levels_multi(A, [0, tail, n - 2, n - 1])
    assert compare(body, A, levels, operands(4, n, dtype, backend, n)) == FUSED


def test_dependencies_are_those_of_each_source(backend):
    if not fuses(backend):
        pytest.skip("cpu runs statement by statement")
    edges = [(v, v + 1) for v in range(399)] + [(v, (v * v) % 390) for v in range(40)]
    A = matrix(400, both_ways(edges), backend)
    sources = [0, 7, 200, 399]
    levels, paths = algorithms.betweenness.count_paths(A, sources)
    found = algorithms.betweenness.dependencies(A, levels, paths)
    assert loop_name(backend) == FUSED
    B = A.to("cpu")
    for k, source in enumerate(sources):
        one = algorithms.betweenness.dependencies(
            B, *algorithms.betweenness.count_paths(B, [source])
        )
        i, j, values = found.to_coo()
        where, wanted = one.to_coo()
        assert j[i == k].tolist() == where.tolist()
        assert np.allclose(values[i == k], wanted, rtol=1e-12)


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize(("body", "dtype"), [(brandes, FP64), (heights, INT32), (inner, INT64)])
def test_hubs(backend, body, dtype):
    """Columns for a lane, a warp, a block; more of the last than a block keeps."""
    if not fuses(backend):
        pytest.skip("cpu runs statement by statement")
    n = 5000 if body is brandes else 1200
    star = matrix(n, both_ways([(0, v) for v in range(1, n)]), backend)
    levels = algorithms.bfs_levels_multi(star, [0, 7, n - 1])
    assert compare(body, star, levels, operands(3, n, dtype, backend, 3)) == FUSED
    hubs, last = 40, 660  # every vertex of level 1 has all of the 620 of level 2
    mine = [np.repeat(np.arange(1, hubs), last - hubs), np.tile(np.arange(hubs, last), hubs - 1)]
    u = np.r_[np.zeros(hubs - 1, np.int64), mine[0]]
    v = np.r_[np.arange(1, hubs), mine[1]]
    A = matrix(last, both_ways(list(zip(u.tolist(), v.tolist(), strict=True))), backend)
    levels = algorithms.bfs_levels_multi(A, [0, 1, hubs])
    assert compare(body, A, levels, operands(3, last, dtype, backend, 4)) == FUSED


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("deepest", [255, 257, 65535, 65537])
def test_levels_that_just_fit_a_mark(backend, deepest):
    """Two vertices of the last levels and two of the first, whose marks a wrap would confuse."""
    if not fuses(backend):
        pytest.skip("cpu has no marks")
    n = deepest + 1
    where = np.array([0, 1, 2, 3])
    values = np.array([deepest, deepest - 1, 1, 0]).astype(np.int32)
    rows_of, cols = np.repeat([0, 1], 4), np.tile(where, 2)
    levels = Matrix.from_coo(
        rows_of, cols, np.tile(values, 2), INT32, nrows=2, ncols=n, backend=backend
    )
    A = matrix(n, both_ways([(0, 1), (1, 2), (0, 3), (2, 3), (0, 2)]), backend)
    made = [Matrix(FP64, 2, n, backend=backend, name=name) for name in "abcd"]
    for v in made[:2]:
        v(levels.S) << 1
    brandes(A, levels, *made)
    assert loop_name(backend) == FUSED
    assert made[1].to_coo()[2].tolist() == [1, 3, 1, 3] * 2


def test_what_a_sweep_without_turns_leaves(backend):
    """All vertices at level 0, and no level at all: replaced matrices keep what they had."""
    A = graph(40, backend, 3, True)
    made = operands(3, 40, FP64, backend, 1, blank=False)
    none = Matrix(INT32, 3, 40, backend=backend)
    first = Matrix.from_coo([0, 2], [4, 5], [0, 0], INT32, nrows=3, ncols=40, backend=backend)
    for levels in (none, first):
        now = [v.dup() for v in made]
        brandes(A, levels, *now)
        assert all(x.isequal(y) for x, y in zip(now, made, strict=True))


def test_rows_without_any_turn_are_cleared(backend):
    """A replaced matrix has no entry left in a row that has no level, nor where levels begin."""
    A = matrix(8, both_ways([(v, v + 1) for v in range(7)]), backend)
    levels = Matrix.from_coo(
        [0, 0, 0, 1], [0, 1, 2, 5], [0, 1, 2, 0], INT32, nrows=3, ncols=8, backend=backend
    )
    made = operands(3, 8, FP64, backend, 1, blank=False)
    for v in made[:2]:
        v << 1
    ran = compare(brandes, A, levels, made)
    assert not fuses(backend) or ran == FUSED
    others = Matrix.from_coo([1, 1], [3, 4], [0, 1], INT32, nrows=3, ncols=8, backend=backend)
    for these in (others, levels):
        brandes(A, these, *made)
        for x in made:
            x.to_coo()  # as columns: a form that the next sweep makes stale
    share, pulled = (list(zip(*x.to_coo()[:2], strict=True)) for x in made[2:])
    assert (share, pulled) == ([(0, 1)], [(0, 0)])


# ---- what does not fit


def two_products(A, B, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << semiring.plus_first(y @ A)
        y(above.S, replace=True) << semiring.plus_first(x @ A)


def unmasked(A, B, levels, x, y):
    for _here, above in sweep(levels):
        x << x.apply(binary.plus, right=1)
        y(above.S, replace=True) << semiring.plus_first(x @ A)


def not_replaced(A, B, levels, x, y):
    for here, above in sweep(levels):
        x(here.S) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)


def to_all_but_above(A, B, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(~above.S, replace=True) << semiring.plus_first(x @ A)


def writes_a_mask(A, B, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)
        above(above.S) << False


def of_rows(A, B, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(B @ x)


def turned(A, B, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)
        y << y.ewise_mult(B.T, binary.first)


def both_kinds(A, B, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)
        B << B.apply(binary.plus, right=1)


def later(A, B, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)
    return here


REASONS = (
    (two_products, "2 products in the body"),
    (unmasked, "apply before the product is not masked by here"),
    (not_replaced, "operand may have entries outside of here"),
    (to_all_but_above, "not written to above alone"),
    (writes_a_mask, "the body writes a mask"),
    (of_rows, "mxv has an operand whose shape is not that of the levels"),
    (turned, "ewise_mult transposes an operand"),
    (both_kinds, "the body writes vectors and matrices"),
    (later, "line [0-9]+ reads the here"),
)


@pytest.mark.parametrize(("body", "reason"), REASONS, ids=lambda x: getattr(x, "__name__", ""))
def test_what_does_not_fit_runs_eagerly_and_says_why(backend, body, reason):
    A = graph(40, backend, 3, True)
    B = Matrix.from_coo([0, 1], [1, 0], [2, 3], INT64, nrows=3, ncols=3, backend=backend)
    if body is turned:
        B = random_block(40, 3, INT64, backend, np.random.default_rng(1), 0.5, "B")

    def run():
        levels = algorithms.bfs_levels_multi(A, [1, 2, 3])
        x, y = (Matrix(INT64, 3, 40, backend=backend, name=name) for name in "xy")
        z = Vector(INT64, 3, backend=backend)
        x(levels.S) << levels
        body(A, z if body is both_kinds else B, levels, x, y)
        return [levels, x, y, z]

    found = run()
    if fuses(backend):
        assert re.match(f"eager: .*{reason}", backend.last_loop), backend.last_loop
    with lagpu.eager():
        wanted = run()
    assert all(x.isequal(y) for x, y in zip(found, wanted, strict=True))


def test_when_a_sweep_is_not_per_source(backend, monkeypatch):
    if not fuses(backend):
        pytest.skip("cpu has no kernels of ours")
    A = graph(60, backend, 3, False)
    levels = algorithms.bfs_levels_multi(A, [1, 2])
    one = algorithms.bfs_levels_multi(A, [1])
    assert compare(brandes, A, levels, operands(2, 60, FP64, backend, 1)) == FUSED
    ran = compare(brandes, A, one, operands(1, 60, FP64, backend, 1))
    assert ran == "eager: no per-source sweep: only one source"
    monkeypatch.setattr(policy, "MOST_DEGREE", 0)
    ran = compare(brandes, A, levels, operands(2, 60, FP64, backend, 1))
    assert re.fullmatch(r"eager: no per-source sweep: mean degree [0-9.]+ > 0", ran)
    monkeypatch.setattr(policy, "MOST_DEGREE", 10**6)
    monkeypatch.setattr(loop, "has_free", lambda device, nbytes: False)
    ran = compare(brandes, A, levels, operands(2, 60, FP64, backend, 1))
    assert ran == "eager: the workspace of a per-source sweep does not fit"
    with lagpu.trace() as t:  # no more than without a trace
        algorithms.betweenness.dependencies(A, levels, levels.apply("one").new(FP64))
    assert backend.last_loop == ran
    deepest = levels.reduce("max").new().value
    assert [row.level for row in t.rows if row.level != -1] == [k // 4 for k in range(4 * deepest)]
    square = Matrix.from_coo([0], [1], [1], INT32, nrows=4, ncols=4, backend=backend)
    C = graph(4, backend, 1, True)
    ran = compare(brandes, C, square, [Matrix(FP64, 4, 4, backend=backend) for _ in range(4)])
    assert ran == "eager: its levels are a matrix that is not stored as a bitmap"


def test_rows_that_may_not_be_made(backend):
    if not fuses(backend):
        pytest.skip("cpu has one form")
    A = graph(60, backend, 3, False)
    levels = algorithms.bfs_levels_multi(A, [1, 2])
    A.orientation = "csc"
    ran = compare(brandes, A, levels, operands(2, 60, FP64, backend, 1))
    assert ran == "eager: a sweep needs the matrix by rows too, and its orientation is csc"
    assert compare(by_the_pulled, A, levels, operands(2, 60, FP64, backend, 1)) == FUSED


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("count", picked([1, len(BODIES)], 1))
def test_nvrtc_compiles_sweeps_of_rows(count, arch, monkeypatch):
    kernels, real = [], module.from_source
    recorded = lambda *args, **macros: kernels.append(real(*args, **macros)) or kernels[-1]  # noqa: E731
    monkeypatch.setattr(module, "from_source", recorded)
    place = lagpu.backends.get("sim")
    A = graph(33, place, 1, True)
    for body, dtype in BODIES[: count : 1 if arch == "sm_90" else 4]:
        body(A, algorithms.bfs_levels_multi(A, [1, 2]), *operands(2, 33, dtype, place, 1))
    assert kernels
    for kernel in kernels:
        macros = (("LG_BLOCK", str(CUDA_LIMITS.row_block)), ("LG_BLOCKS", str(policy.BLOCKS)))
        assert nvrtc_compile(dataclasses.replace(kernel, macros=macros), arch)
