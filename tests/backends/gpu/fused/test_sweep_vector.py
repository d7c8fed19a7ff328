"""Sweeps that run as one kernel, and sweeps that must not: the answer is that of the eager one."""

import dataclasses
import re
from itertools import product

import numpy as np
import pytest
from graphs import both_ways, matrix
from hypothesis import strategies as st
from loop_names import GRID, SWEEP, how_it_ran, loop_name
from nvrtc import ARCHITECTURES, nvrtc_compile
from samples import picked
from strategies import for_all
from sweeps import brandes, by_the_pulled, graph, heights, many, twins

import lagpu
import lagpu.backends.gpu.fused.sweep as module
from lagpu import BOOL, FP64, INT32, INT64, Matrix, Vector, algorithms, binary, semiring, sweep
from lagpu.backends.gpu.device.protocol import CUDA_LIMITS
from lagpu.core.recorder import current_recorder

FUSED = SWEEP


def fuses(backend):
    return backend.capabilities.fuses


# ---- bodies: functions of their own, without assert, so that pytest leaves their code alone


def flow(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.V, replace=True) << delta.ewise_mult(paths, binary.truediv)
        pulled(above.S, replace=True) << semiring.plus_second(A @ share)
        delta(above.S, accum=binary.plus) << pulled.ewise_mult(paths, binary.times)


def deleting(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << here
        delta(here.S) << 7
        pulled(above.S, replace=True) << semiring.any_pair(A @ share)
        paths(above.S) << pulled


def replaced_again(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta
        pulled(above.S, replace=True) << semiring.plus_second(A @ share)
        pulled(above.S, replace=True) << pulled.ewise_mult(paths, binary.minus)
        delta(above.S) << pulled


def positions(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.S, replace=True) << delta
        pulled(above.S, replace=True) << semiring.min_secondi(A @ share)
        delta(accum=binary.second) << pulled.ewise_mult(above, binary.first)


def rounded(A, levels, paths, delta, share, pulled):
    for here, above in sweep(levels):
        share(here.V, replace=True) << paths
        pulled(above.S, replace=True) << semiring.plus_second(A @ share)
        pulled(above.S) << pulled.ewise_mult(paths, binary.times)
        delta(above.S, accum=binary.plus) << pulled


BODIES = (
    (brandes, FP64),
    (flow, FP64),
    (by_the_pulled, FP64),
    (replaced_again, INT64),
    (heights, INT32),
    (deleting, INT64),
    (deleting, BOOL),
    (many, INT64),
    (positions, INT64),
)


def vectors(n, dtype, backend, seed, blank):
    """paths and delta with most entries; share and pulled with some, or with none if `blank`."""
    rng, found = np.random.default_rng(seed), []
    for name, share in (("paths", 0.9), ("delta", 0.8), ("share", 0.5), ("pulled", 0.5)):
        keep = np.flatnonzero(
            rng.random(n) < (0 if blank and name in ("share", "pulled") else share)
        )
        values = rng.integers(1, 6, len(keep)).astype(dtype.numpy)
        found.append(Vector.from_coo(keep, values, dtype, size=n, backend=backend, name=name))
    return found


def compare(body, A, levels, made):
    """Run a body as it comes and eagerly; return how the first ran."""
    n, backend = A.nrows, A.backend
    fused, eager = ([v.dup() for v in made] for _ in range(2))
    body(A, levels, *fused)
    ran = how_it_ran(backend)
    with lagpu.eager():
        body(A, levels, *eager)
    for x, y in zip(fused, eager, strict=True):
        assert x.nvals == y.nvals, (body.__name__, x.name)
        assert x.isclose(y, rel_tol=1e-12) if x.dtype is FP64 else x.isequal(y), (n, x.name)
    again = fused[0].dup()  # what is left behind serves the next statement
    again(fused[3].S, accum=binary.second) << fused[2]
    there = eager[0].dup()
    there(eager[3].S, accum=binary.second) << eager[2]
    assert again.isclose(there, rel_tol=1e-12) if again.dtype is FP64 else again.isequal(there)
    return ran


@for_all(cpu=20, compiled=60)
def test_random_bodies_graphs_and_levels(backend, draw):
    """Levels as a search gives them, and any others: gaps, unreached vertices, loops."""
    body, dtype = draw(st.sampled_from(BODIES), label="body")
    n = draw(st.sampled_from((1, 2, 31, 32, 33, 100)), label="n")
    seed = draw(st.integers(0, 10**6), label="seed")
    A = graph(n, backend, seed, draw(st.booleans(), label="symmetric"))
    blank = body is by_the_pulled or draw(st.booleans(), label="blank")
    made = vectors(n, dtype, backend, seed, blank)
    if draw(st.booleans(), label="of a search"):
        levels = algorithms.bfs_levels(A, seed % n)
    else:
        rng = np.random.default_rng(seed)
        keep = np.flatnonzero(rng.random(n) < 0.8)
        values = rng.choice([0, 1, 2, 5], len(keep)) % n
        levels = Vector.from_coo(keep, values.astype(np.int32), size=n, backend=backend)
    deep = (levels.reduce("max").new().value or 0) > 0
    ran = compare(body, A, levels, made)
    assert not fuses(backend) or not deep or ran == FUSED


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("n", picked([1, 31, 32, 33, 1023, 1025], 33, 1025))
def test_uneven_graphs_are_swept_by_ranks(backend, monkeypatch, n, symmetric):
    """Marks and values are in the order of degrees, but not where an operator reads indices."""
    used, real = [], module.ranked
    monkeypatch.setattr(module, "ranked", lambda *of: used.append(real(*of)) or used[-1])
    rng = np.random.default_rng(n)
    rows = (n * rng.random(40 * n) ** 3).astype(np.int64)  # hubs; loops and duplicates
    cols = rng.integers(0, n, len(rows))
    if symmetric:
        rows, cols = np.r_[rows, cols], np.r_[cols, rows]
    values = (np.arange(len(rows)) % 7 + 1).astype(np.int64)
    A = Matrix.from_coo(rows, cols, values, nrows=n, ncols=n, dup_op="first", backend=backend)
    levels = algorithms.bfs_levels(A, int(cols[0]))
    for body, dtype in BODIES:
        compare(body, A, levels, vectors(n, dtype, backend, n, True))
        expected = n > 1 and fuses(backend) and body is not positions
        assert [x.idx is not None for x in used] == [True] * expected, body.__name__
        used.clear()


@pytest.mark.parametrize(
    ("body", "n"),
    picked(product((brandes, many), (1023, 1025)), (brandes, 1023), rest="exhaustive"),
)
def test_large_and_small_levels_by_turns(backend, n, body):
    """One block alone, the grid, one block alone again; more than 255 levels."""
    if body is many and not fuses(backend):
        pytest.skip("one way to run a loop is enough for one body")
    tail = 258
    edges = [(v, v + 1) for v in range(tail)]
    edges += [(tail, v) for v in range(tail + 1, n - 1)]
    edges += [(v, n - 1) for v in range(tail + 1, n - 1)]
    A = matrix(n, both_ways([(*e, 2) for e in edges]), backend, weights="whole")
    made = vectors(n, FP64 if body is brandes else INT64, backend, n, True)
    for source in (0, tail, n - 1):
        ran = compare(body, A, algorithms.bfs_levels(A, source), made)
        assert not fuses(backend) or ran == FUSED


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("body", [brandes, heights, positions])
def test_hubs(backend, body):
    """Columns for a lane, a warp, a block; more of the last than a block keeps."""
    n = 5000 if body is brandes else 1200
    star = [(0, v) for v in range(1, n)]
    A = matrix(n, both_ways(star), backend)
    made = vectors(n, FP64 if body is brandes else INT64, backend, 3, True)
    compare(body, A, algorithms.bfs_levels(A, 0), made)
    compare(body, A, algorithms.bfs_levels(A, 7), made)
    assert not fuses(backend) or backend.last_loop.startswith("eager: inside")
    rng = np.random.default_rng(5)  # every vertex of level 1 has all of the 1100 of level 2
    hubs, last = 80, 1180
    mine = [np.repeat(np.arange(1, hubs), last - hubs), np.tile(np.arange(hubs, last), hubs - 1)]
    rows = np.r_[np.zeros(hubs - 1, np.int64), mine[0], rng.integers(0, last, 99)]
    cols = np.r_[np.arange(1, hubs), mine[1], rng.integers(0, last, 99)]
    B = Matrix.from_coo(rows, cols, nrows=last, ncols=last, dup_op=binary.lor, backend=backend)
    made = vectors(last, FP64 if body is brandes else INT64, backend, 4, True)
    ran = compare(body, B, algorithms.bfs_levels(B, 0), made)
    assert not fuses(backend) or ran == FUSED


def test_equal_rows_have_equal_sums(backend):
    """More long ones than the blocks keep: the sums of floats depend on no order of threads."""
    A = twins(200, 1100, backend)
    made = [Vector(FP64, A.nrows, backend=backend) for _ in range(4)]
    made[0] << 1.0
    made[1] << np.r_[np.zeros(201), 10.0 ** np.random.default_rng(6).uniform(-8, 8, 1100)]
    flow(A, algorithms.bfs_levels(A, 0), *made)
    assert not fuses(backend) or how_it_ran(backend) == FUSED
    assert len(np.unique(made[1].to_dense()[1:201])) == 1


def test_betweenness_runs_as_two_kernels(backend):
    """So a sweep of 500 levels is no thousand launches."""
    A = matrix(500, both_ways([(v, v + 1) for v in range(499)]), backend)
    levels, paths = algorithms.betweenness.count_paths(A, [0])
    if fuses(backend):
        assert loop_name(backend) == GRID
    delta = algorithms.betweenness.dependencies(A, levels, paths)
    if fuses(backend):
        assert loop_name(backend) == FUSED
    assert delta.to_dense().tolist() == list(range(499, -1, -1))


# ---- bodies that do not fit


def counted(A, levels, x, y):
    turns = 0
    for here, above in sweep(levels):
        turns += 1
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)
    return turns


def read_later(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)
    return here


def two_products(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << semiring.plus_first(y @ A)
        y(above.S, replace=True) << semiring.plus_first(x @ A)


def unmasked(A, levels, x, y):
    for _here, above in sweep(levels):
        x << x.apply(binary.plus, right=1)
        y(above.S, replace=True) << semiring.plus_first(x @ A)


def replaced_whole(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y << x.apply(binary.plus, right=1)
        y(above.S, replace=True) << semiring.plus_first(x @ A)


def not_replaced(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)


def to_everywhere(A, levels, x, y):
    for here, _above in sweep(levels):
        x(here.S, replace=True) << 1
        y << semiring.plus_first(x @ A)


def to_all_but_above(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(~above.S, replace=True) << semiring.plus_first(x @ A)


def with_a_kernel(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << x.vxm(A, semiring.plus_first, kernel="push_edge")


def read_before(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << x.apply(binary.plus, right=1)
        y(above.S, replace=True) << semiring.plus_first(x @ A)


def writes_a_mask(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)
        above(above.S) << False


def elsewhere(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)
        levels(accum=binary.plus) << y.ewise_add(levels, binary.first)


def replaced_elsewhere(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)
        levels(above.S, replace=True) << y


def written_above(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)
        x(above.S) << y


def indexed(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(above.S, replace=True) << semiring.plus_first(x @ A)
        x(here.S)[0] << 3


def written_before(A, levels, x, y):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        y(here.S) << 7
        y(above.S, replace=True) << semiring.plus_first(x @ A)


REASONS = (
    (counted, r"turns is of type int, and \+= binds the name to another object"),
    (read_later, "line [0-9]+ reads the here"),
    (two_products, "2 products in the body"),
    (unmasked, "apply before the product is not masked by here"),
    (replaced_whole, "apply before the product is not masked by here"),
    (not_replaced, "operand may have entries outside of here"),
    (to_everywhere, "not written to above alone"),
    (to_all_but_above, "not written to above alone"),
    (with_a_kernel, "the product names a kernel or a policy"),
    (written_before, "the product and a statement before it write the same vector"),
    (read_before, "replaces a vector that the body reads"),
    (writes_a_mask, "the body writes a mask"),
    (elsewhere, "ewise_add after the product is not masked by above"),
    (replaced_elsewhere, "assign after the product has replace"),
    (written_above, "assign after the product writes a vector that is replaced at here"),
    (indexed, "assign_scalar has several indices, or a mask"),
)


GENERATED_LOOPS = (
    *(two_products, unmasked, replaced_whole, not_replaced, to_everywhere, to_all_but_above),
    *(written_before, read_before, written_above),  # others write the levels
)


@pytest.mark.parametrize(("body", "reason"), REASONS, ids=lambda x: getattr(x, "__name__", ""))
def test_what_does_not_fit_says_why(backend, body, reason):
    """It is a generated loop that makes the masks of each level, or its statements run alone."""
    if body is with_a_kernel and not fuses(backend):
        pytest.skip("kernels are for a backend that has them")
    A = graph(40, backend, 3, True)

    def run():
        levels = algorithms.bfs_levels(A, 1)
        x, y = (Vector(INT64, 40, backend=backend, name=name) for name in "xy")
        x(levels.S) << levels
        result = body(A, levels, x, y)
        return [levels, x, y], result

    found, result = run()
    if fuses(backend):
        loops = body in GENERATED_LOOPS
        how = "generated loop: no sweep: " if loops else "eager: "
        assert re.match(f"{how}.*{reason}", backend.last_loop), backend.last_loop
    with lagpu.eager():
        wanted, same = run()
    assert all(x.isequal(y) for x, y in zip(found, wanted, strict=True))
    assert result == same if body is counted else True


def test_rows_that_may_not_be_made(backend):
    if not fuses(backend):
        pytest.skip("cpu has one form")
    A = graph(60, backend, 3, False)
    A.orientation = "csc"
    levels = Vector.from_coo(np.arange(60), np.arange(60) % 4, INT32, size=60, backend=backend)
    made = vectors(60, FP64, backend, 1, True)
    assert compare(brandes, A, levels, made) == "generated loop"
    assert compare(by_the_pulled, A, levels, made) == FUSED


def raising(A, levels, x, short):
    for here, above in sweep(levels):
        x(here.S, replace=True) << 1
        short(above.S, replace=True) << semiring.plus_first(x @ A)


def test_an_error_in_the_body_leaves_what_stood_before(backend):
    A = graph(40, backend, 3, True)
    levels = algorithms.bfs_levels(A, 1)
    x, short = Vector(INT64, 40, backend=backend), Vector(INT64, 39, backend=backend)
    with pytest.raises(lagpu.errors.DimensionMismatch):
        raising(A, levels, x, short)
    deepest = levels.reduce("max").new().value
    assert x.isequal(levels.select("valueeq", deepest).new().apply("one").new(INT64))
    assert current_recorder() is None


def test_a_traced_sweep_is_fused(backend):
    """Its kernel keeps no log, so each statement has one row for all levels."""
    A = matrix(9, both_ways([(v, v + 1) for v in range(8)]), backend)
    levels, paths = algorithms.betweenness.count_paths(A, [0])
    with lagpu.trace() as t:
        algorithms.betweenness.dependencies(A, levels, paths)
    levels = [row.level for row in t.rows if row.level != -1]
    assert levels == [None] * 4 if fuses(backend) else [k // 4 for k in range(4 * 8)]
    if fuses(backend):
        assert loop_name(backend) == SWEEP


@pytest.fixture
def made(monkeypatch):
    """The kernels that sweeps ask for."""
    kernels, real = [], module.from_source
    recorded = lambda *args, **macros: kernels.append(real(*args, **macros)) or kernels[-1]  # noqa: E731
    monkeypatch.setattr(module, "from_source", recorded)
    return kernels


def test_values_are_rounded_between_two_statements(backend):
    """A compiler may make one instruction of a product and a sum, which rounds once."""
    A = matrix(40, [(i, i + 1) for i in range(39)], backend=backend)
    near, less = 1 + 2.0**-30, -(1 + 2.0**-29)
    paths, delta = (Vector.from_dense(np.full(40, x), backend=backend) for x in (near, less))
    share, pulled = (Vector(FP64, 40, backend=backend) for _ in range(2))
    rounded(A, algorithms.bfs_levels(A, 0), paths, delta, share, pulled)
    assert not fuses(backend) or how_it_ran(backend) == FUSED
    assert delta.to_dense().tolist() == [0.0] * 39 + [less]


def test_sweeps_of_one_structure_share_a_kernel(backend, made):
    if not fuses(backend):
        pytest.skip("cpu has no kernels of ours")
    for n in (33, 100):
        A = graph(n, backend, 1, True)
        brandes(A, algorithms.bfs_levels(A, 1), *vectors(n, FP64, backend, n, True))
    assert len(made) == 2
    assert made[0] is made[1]


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("count", picked([1, len(BODIES)], 1))
def test_nvrtc_compiles_sweeps(count, arch, made):
    place = lagpu.backends.get("sim")
    A = graph(33, place, 1, True)
    for body, dtype in BODIES[: count : 1 if arch == "sm_90" else 4]:
        body(A, algorithms.bfs_levels(A, 1), *vectors(33, dtype, place, 1, True))
    for kernel in made:
        macros = (("LG_BLOCK", str(CUDA_LIMITS.loop_block)),)
        assert nvrtc_compile(dataclasses.replace(kernel, macros=macros), arch)
