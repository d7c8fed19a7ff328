"""Loops over blocks as programs: fused or not, and on cpu, the same."""

import re
from itertools import cycle, product

import bitmap_loops
import loop_names
import numpy as np
import pytest
from bitmap_loops import LEFT
from bitmap_programs import (
    LOOPS,
    PROGRAM,
    random_graph,
    together,  # noqa: F401
)
from bitmap_traces import both
from loop_names import NO_ROOM, loop_name
from samples import picked, sampled
from traces import same

import lagpu
from lagpu import INT64, Matrix, algorithms, binary, check, generators, semiring
from lagpu.algorithms.betweenness import count_paths

ONE_WAY = "sums of bitmap matrices are pulled, and so is a matrix stored in one form"
ROWS = [1, 2, 31, 32, 33, 64, 65, 100]


def compared(backend, run, *graphs, how=PROGRAM):
    """Run a loop over blocks fused, statement by statement, and on cpu."""
    live = [A.to(backend) for A in graphs]
    found = run(*live)
    if backend.name != "cpu":
        assert backend.last_loop.startswith(how), backend.last_loop
    with lagpu.eager():
        eager = run(*live)
    expected = run(*graphs)
    for x, y, z in zip(found, eager, expected, strict=True):
        assert x.to("cpu").isequal(z, check_dtype=True)
        assert y.to("cpu").isequal(z, check_dtype=True)
        assert x.nvals == z.nvals
        again = x.dup()  # nothing stands past the last row, which is never read
        again << x.apply("one")
        assert again.reduce("plus").new().value == (z.nvals or None)
    return found


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize(("name", "k", "directed"), sampled(product(LOOPS, ROWS, (False, True)), 9))
def test_a_users_loops(backend, name, k, directed):
    compared(backend, LOOPS[name](k), random_graph(2 * k + 9, 2, directed))


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("name", sampled(LOOPS, 3))
def test_hubs(backend, name):
    """Columns that a whole block sums, in one of two directions."""
    graph = random_graph(1500, 1, directed=name == "against", hub=1499)
    compared(backend, LOOPS[name](3), graph)
    compared(backend, LOOPS[name](40), graph.T.new())


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize(("cost", "k"), sampled(product((8, 0, 1 << 40), ROWS), 3))
def test_products_of_one_known_value(backend, monkeypatch, k, cost):
    """They are made of bits; hubs too; pushed or pulled, or one of the two."""
    if backend.name != "cpu":
        monkeypatch.setattr("lagpu.backends.gpu.fused.program.run.BITS_PUSH_COST", cost)
    one = random_graph(2 * k + 9, 2, hub=1).apply("one").new()
    hubs = random_graph(1500, 1, hub=1499).apply("one").new()
    for graph in (one, hubs, hubs.T.new()):
        compared(backend, lambda A: bitmap_loops.within(A, k), graph)
        compared(backend, lambda A: bitmap_loops.exactly(A, k), graph)


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", LOOPS)
def test_no_edges(backend, name):
    compared(backend, LOOPS[name](2), Matrix(INT64, 7, 7, backend="cpu"), how=loop_names.ALL)


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("k", ROWS)
def test_parents_of_several_sources(backend, k):
    graph = generators.kronecker(8, seed=3, backend="cpu")
    A, vertices = graph.to(backend), list(range(k))
    parents = algorithms.bfs_parents_multi(A, vertices)
    assert backend.name == "cpu" or loop_name(backend) == PROGRAM
    for row, source in enumerate(vertices):
        check.check_parents(A, source, parents[row, :].new())


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("k", ROWS[1:])
def test_path_counts_of_several_sources(backend, k):
    graph = generators.kronecker(8, seed=3, backend="cpu")
    compared(backend, lambda A: count_paths(A, list(range(k))), graph)


@pytest.mark.parametrize("batch", picked([2, 32, 64], 2))
def test_betweenness_in_batches(backend, batch):
    graph = generators.kronecker(8, seed=3, backend="cpu")
    found, expected = (
        algorithms.betweenness_centrality(A, k=70, seed=1, batch=batch)
        for A in (graph.to(backend), graph)
    )
    np.testing.assert_allclose(found.to_dense(0), expected.to_dense(0), rtol=1e-12)


@pytest.mark.each_value
@pytest.mark.parametrize("times", [0, 1, 2, 50])
@pytest.mark.parametrize("loop", [bitmap_loops.distances, bitmap_loops.without_replace])
def test_times(backend, loop, times):
    how = PROGRAM if times else ""
    compared(backend, lambda A: loop(A, 5, times), random_graph(70, 2), how=how)


@pytest.mark.parametrize("k", [1, 33])
def test_an_empty_frontier(backend, k):
    def run(A):
        return bitmap_loops.distances(A, k, 3), bitmap_loops.counts(A, k)

    A = random_graph(2 * k, 1).to(backend)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bitmap_loops, "sources", lambda A, k, dtype, value=None: Matrix(
            dtype, k, A.ncols, like=A))  # fmt: skip
        assert [x.nvals for found in run(A) for x in found] == [0] * 4


def test_blocks_of_two_widths(backend):
    graph = random_graph(70, 2)
    rng = np.random.default_rng(5)
    other = Matrix.from_coo(
        rng.integers(0, 70, 300), rng.integers(0, 90, 300), 1, INT64, nrows=70, ncols=90,
        dup_op=binary.min, backend="cpu",
    )  # fmt: skip
    compared(backend, lambda A, B: bitmap_loops.two_shapes(A, B, 33), graph, other)


def test_the_columns_alone(backend):
    """Where a matrix may not have rows, a product that needs them is no piece."""
    if backend.name == "cpu":
        pytest.skip("cpu has no orientations")
    graph = random_graph(70, 2)
    A = graph.to(backend)
    A.orientation = "csc"
    found = bitmap_loops.counts(A, 3)
    assert loop_name(backend) == PROGRAM
    assert found[1].to("cpu").isequal(bitmap_loops.counts(graph, 3)[1])
    found = bitmap_loops.against(A, 3)
    assert "orientation is csc" in backend.last_loop
    assert found[1].to("cpu").isequal(bitmap_loops.against(graph, 3)[1])


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize(
    ("loop", "why"),
    [
        (bitmap_loops.with_a_vector, "writes vectors and matrices"),
        (bitmap_loops.products_of_both, "writes vectors and matrices"),
        (bitmap_loops.summed_beside, "writes vectors and matrices"),
        (bitmap_loops.by_rows, "apply reads row or column indices"),
        (bitmap_loops.by_places, "select reads row or column indices"),
        (bitmap_loops.turned, "writes the matrix of a product"),
        (bitmap_loops.writes_its_matrix, "writes the matrix of a product"),
        (bitmap_loops.all_large, "cannot be a bitmap matrix; take fewer rows at a time"),
    ],
)
def test_what_is_no_program(backend, loop, why):
    graph = random_graph(1100 if loop is bitmap_loops.all_large else 20, 2)
    compared(backend, lambda A: loop(A, 3), graph, how="eager: ")
    if backend.name != "cpu":
        loop(graph.to(backend), 3)
        assert why in backend.last_loop


def test_a_square_matrix_is_one_too_in_a_loop(backend):
    """Of at most 1,024 rows; any statement takes it afterwards."""
    graph, left = random_graph(40, 3), []
    for A in (graph.to(backend), graph):
        (near,) = bitmap_loops.all_large(A, 2)
        both = near.ewise_add(A, "plus").new()
        both(~near.S) << semiring.plus_pair(A @ near.T)
        left.append((near, both, semiring.plus_pair(near @ A).new(), near[[5, 2], [0, 7]].new()))
    for there, here in zip(*left, strict=True):
        assert there.to("cpu").isequal(here)
    if backend.name != "cpu":
        assert loop_name(backend) == PROGRAM


def test_a_scalar_is_read_in_each_iteration(backend):
    compared(backend, lambda A: bitmap_loops.with_a_scalar(A, 3), random_graph(20, 2))


@pytest.mark.parametrize("k", [1, 3, 40])
@pytest.mark.parametrize("loop", [bitmap_loops.with_sums, bitmap_loops.until_it_is_counted])
def test_scalars_are_written(backend, loop, k):
    graph = random_graph(45, 2)
    compared(backend, lambda A: loop(A, k), graph)
    rows = []
    for A in (graph, graph.to(backend)):
        with lagpu.trace() as t:
            loop(A, k)
        rows.append([(row.level, row.method, row.nvals_in, row.nvals_out) for row in t.rows])
    assert rows[0] == rows[1]


def test_a_body_that_raises_has_done_what_stood_before(backend):
    graph = random_graph(20, 2)
    for A in (graph.to(backend), graph):
        with pytest.raises(lagpu.errors.DimensionMismatch):
            bitmap_loops.raising(A, 3)
    there, here = LEFT.pop(), LEFT.pop()
    assert here.to("cpu").isequal(there)


def test_no_room(backend, monkeypatch):
    if backend.name == "cpu":
        pytest.skip("cpu has no blocks")
    graph = random_graph(70, 2)
    A = graph.to(backend)
    for asked in ("free_bytes", "pooled_bytes"):
        monkeypatch.setattr(backend.device, asked, lambda: 40000)  # enough for its statements
    found = bitmap_loops.counts(A, 3)
    assert backend.last_loop == NO_ROOM
    monkeypatch.undo()
    assert found[1].to("cpu").isequal(bitmap_loops.counts(graph, 3)[1])


def test_programs_are_shared_by_structure(backend):
    """Other rows, sizes and graphs ask for no new kernel."""
    if backend.name == "cpu":
        pytest.skip("cpu has no programs")
    bitmap_loops.filled(random_graph(70, 2).to(backend), 3)
    from lagpu.backends.gpu.kernels import from_source

    before = from_source.cache_info().misses
    bitmap_loops.filled(random_graph(90, 3, directed=False).to(backend), 40)
    assert loop_name(backend) == PROGRAM
    assert from_source.cache_info().misses == before


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize(
    ("name", "k"),
    picked(
        product(LOOPS, (1, 33)),
        *zip(LOOPS, cycle((1, 33)), strict=False),
        rest="exhaustive",
    ),
)
def test_a_trace_says_what_that_of_single_statements_says(place, name, k):
    A = random_graph(2 * k + 9, 2).to(place)
    fused, eager = both(lambda: LOOPS[name](k)(A), place, PROGRAM)
    assert same(fused, eager)
    inside = [row for row in fused.rows if row.level >= 0]
    assert inside
    assert {row.mode for row in inside} == {"fused"}
    products, expected = (
        [row for row in t.rows if row.method == "matrix_mxm"] for t in (fused, eager)
    )
    for row, other in zip(products, expected, strict=True):
        assert row.kernel == "fused"
        if other.kernel == "bitmap_mxm_sums":
            assert row.edges == other.edges
            assert (row.direction, row.reason) == ("pull", ONE_WAY)
        elif row.direction == "push":
            assert row.reason.startswith(f"edges {row.edges} <= ")
        else:
            assert re.fullmatch(r"edges \d+ > \d+ / 8", row.reason)
        assert 0 <= row.edges <= A.nvals * -(-k // 32)


def test_indices_of_64_bits(place):
    graph = random_graph(70, 2, hub=69)
    A = graph.to(place)
    A.data.store.col_ptr, A.data.store.row_idx = (
        x.astype(np.int64) for x in (A.data.store.col_ptr, A.data.store.row_idx)
    )
    for name in ("distances", "by value"):
        for found, expected in zip(LOOPS[name](33)(A), LOOPS[name](33)(graph), strict=True):
            assert found.to("cpu").isequal(expected)
        assert loop_name(place) == PROGRAM
