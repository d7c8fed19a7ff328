"""Products of bits: those of single statements and those of generated loops are one, and right."""

from itertools import product

import bitmap_loops
import numpy as np
import pytest
from bitmap_programs import PROGRAM, random_graph, together  # noqa: F401
from bitmap_traces import both
from samples import picked

import lagpu
from lagpu import BOOL, INT64, Matrix, Vector, binary, semiring
from lagpu.backends.gpu.kernels import from_source

ROWS = [1, 31, 32, 33, 64, 65, 100]
USERS = ("fused.program.run", "ops.bits")  # of the rule that chooses a direction


def bits(k, n, share, seed=1):
    """A k x n matrix on cpu that has this share of all entries, and at share 1 all."""
    where = np.nonzero(np.random.default_rng(seed).random((k, n)) < share)
    return Matrix.from_coo(*where, True, BOOL, nrows=k, ncols=n, backend="cpu")


def dense(A):
    rows, cols, _ = A.to_coo()
    x = np.zeros(A.shape, np.float32)
    x[rows, cols] = 1
    return x


def proved(backend, graph, mask, first):
    """Compare both loops, fused and by single statements, with NumPy."""
    A, m, f = dense(graph), dense(mask), dense(first)
    for run, kept in ((bitmap_loops.inside, m), (bitmap_loops.outside, 1 - m)):
        expected = ((f @ A > 0) * kept @ A > 0) * kept
        live = [x.to(backend) for x in (graph, mask, first)]
        (found,) = run(*live)
        assert backend.last_loop.startswith(PROGRAM)
        with lagpu.eager():
            (eager,) = run(*live)
        for x in (found, eager):
            np.testing.assert_array_equal(dense(x), expected)
            assert x.nvals == expected.sum()


@pytest.fixture(params=["push", "pull"])
def direction(request, place, monkeypatch):
    """All products of bits go this way, by themselves and in generated loops."""
    for user in USERS:
        cost = 0 if request.param == "push" else 1 << 40
        monkeypatch.setattr(f"lagpu.backends.gpu.{user}.BITS_PUSH_COST", cost)


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize(
    ("k", "hub"),
    picked(product(ROWS, [0, 1500]), (31, 0), (33, 1500), (64, 0), (100, 0), rest="exhaustive"),
)
def test_masks(place, direction, k, hub):
    """Without entries, with some and with all; columns of several chunks where there is a hub."""
    n = max(2 * k + 9, hub and hub + 7)
    graph = random_graph(n, 2, hub=hub).apply("one").new()
    first = bits(k, n, 0.02, seed=2)
    for share in (0, 0.3, 1):
        proved(place, graph, bits(k, n, share), first)
        if hub:
            proved(place, graph.T.new(), bits(k, n, share), first)


@pytest.mark.each_value
@pytest.mark.parametrize("k", ROWS)
@pytest.mark.parametrize("share", [0, 1])
def test_all_bits_or_none(place, direction, k, share):
    graph = random_graph(2 * k + 9, 3).apply("one").new()
    proved(place, graph, bits(k, graph.nrows, 0), bits(k, graph.nrows, share))


@pytest.mark.few_on_sim(2)
@pytest.mark.each_value
@pytest.mark.parametrize("k", [33, 100])
def test_more_warps_than_words(place, direction, k, monkeypatch):
    """Then two warps write the halves of a word of 64 bits; each row has one entry to lose."""
    n = 2 * k + 9
    cycle = Matrix.from_coo(
        range(n), np.roll(range(n), 1), 1, INT64, nrows=n, ncols=n, backend="cpu"
    )
    first = Matrix.from_coo(range(k), range(k), True, BOOL, nrows=k, ncols=n, backend="cpu")
    for seed in range(4 if place.name == "sim" else 1):
        if place.name == "sim":
            monkeypatch.setattr(place.device, "blocks", 40)
            monkeypatch.setattr(place.device, "seed", seed)
            monkeypatch.setattr(place.device, "preempt", 1)
        proved(place, cycle, bits(k, n, 0), first)


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("k", [3, 33, 64, 65, 100])
def test_one_rule_chooses_directions(place, k):
    """A loop and its single statements: the same way for the same reason, level by level."""
    A = random_graph(2 * k + 90, 4, directed=False).apply("one").new().to(place)
    traces = both(lambda: bitmap_loops.accumulated(A, k), place, PROGRAM)
    fused, eager = ([r for r in t.rows if r.method == "matrix_mxm"] for t in traces)
    assert {row.direction for row in fused} == {"push", "pull"}
    alike = 0
    for row, other in zip(fused, eager, strict=True):
        if "about" not in other.reason:
            assert (row.direction, row.reason) == (other.direction, other.reason)
            alike += 1
        if row.direction == "push":
            assert row.reason.startswith(f"edges {row.edges} <= ")
        assert row.edges <= A.nvals * -(-k // 64)
    assert alike >= len(fused) - 1


def test_a_pull_looks_for_no_bit_of_an_empty_row(place, monkeypatch):
    """Each column finds the bit of row 0 at its first entry, and there is no other to be found."""
    monkeypatch.setattr("lagpu.backends.gpu.fused.program.run.BITS_PUSH_COST", 1 << 40)
    graph = random_graph(300, 20).apply("one").new()
    n, k = graph.nrows, 40
    rows, cols = np.zeros(n, np.int64), np.arange(n)
    first = Matrix.from_coo(rows, cols, True, BOOL, nrows=k, ncols=n, backend="cpu").to(place)
    with lagpu.trace() as t:
        bitmap_loops.outside(graph.to(place), bits(k, n, 0).to(place), first)
    assert place.last_loop.startswith(PROGRAM)
    row = next(row for row in t.rows if row.method == "matrix_mxm")
    assert (row.direction, row.edges) == ("pull", len(set(graph.to_coo()[1].tolist())))


def test_rows_ask_for_two_kernels(place):
    """One for words of 32 bits and one for those of 64, however many rows there are."""
    A = random_graph(220, 2).apply("one").new().to(place)
    for fewer, more in ((3, 32), (33, 100)):
        bitmap_loops.accumulated(A, fewer)
        before = from_source.cache_info().misses
        bitmap_loops.accumulated(A, more)
        assert place.last_loop.startswith(PROGRAM)
        assert from_source.cache_info().misses == before


@pytest.mark.parametrize("accum", [None, binary.plus])
def test_a_bitmap_matrix_whose_rows_are_scaled_stays_one(place, accum):
    """The products that follow take a launch each, and sort nothing."""
    found = []
    for backend in ("cpu", place):
        A, X = random_graph(100, 2).to(backend), Matrix(INT64, 40, 100, backend=backend)
        X(bits(40, 100, 0.3).to(backend).S) << 1
        scale = Vector.from_coo([0, 3, 39], [2, 3, 5], size=40, backend=backend)
        for _ in range(2):
            X(accum=accum) << binary.times(scale & X)
            X << semiring.plus_first(X @ A)
        found.append(X)
    assert found[0].isequal(found[1].to("cpu"))
    assert found[1].data.is_bitmap
    turned = binary.times(X.T & scale).new()  # of more rows than columns
    assert turned.to("cpu").isequal(binary.times(found[0].T & scale.to("cpu")).new())
    assert not turned.data.is_bitmap
