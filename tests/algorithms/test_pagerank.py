"""PageRank against NetworkX and the checker."""

from functools import partial

import networkx as nx
import numpy as np
import pytest
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of
from hypothesis import strategies as st
from loop_names import GENERATED, loop_name
from strategies import for_all

import lagpu
from lagpu import FP32, FP64, Matrix, Vector
from lagpu.algorithms import pagerank
from lagpu.check import check_pagerank
from lagpu.errors import (
    CheckFailed,
    DimensionMismatch,
    DomainMismatch,
    IndexOutOfBound,
    InvalidValue,
    NotConverged,
)
from lagpu.io import from_networkx


def prove(A, **options):
    weight = options.pop("weight", True)
    theirs = nx.pagerank(networkx_of(A), weight="weight" if weight else None, **options)
    ranks = pagerank(A, weight=weight, **options)
    assert ranks.dtype is FP64
    assert entries(ranks) == pytest.approx(theirs, rel=1e-9)
    not_checked = ("max_iter", "nstart")
    check_pagerank(
        A, ranks, weight=weight, **{k: v for k, v in options.items() if k not in not_checked}
    )


@for_all(cpu=100, compiled=8)
def test_random_graphs(backend, draw):
    A = drawn(draw, backend, weights=draw(st.sampled_from(["ones", "whole", "float"])))
    vertex = st.integers(0, A.nrows - 1)
    weights = st.none() | st.dictionaries(vertex, st.integers(1, 5), min_size=1, max_size=4)
    prove(
        A,
        alpha=draw(st.sampled_from([0.85, 0.5, 0.0]), label="alpha"),
        personalization=draw(weights, label="personalization"),
        dangling=draw(weights, label="dangling"),
        nstart=draw(weights, label="nstart"),
        weight=draw(st.booleans(), label="weight"),
        tol=1e-8,
        max_iter=400,
    )


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    prove(matrix(n, edges, backend))
    prove(matrix(n, both_ways(edges), backend))


def test_vectors_are_weights_too(backend):
    A = matrix(4, [(0, 1), (1, 2), (2, 0), (2, 3)], backend)
    where = {1: 2.0, 3: 6.0}
    v = Vector.from_coo([1, 3], [2, 6], FP32, size=4, backend=backend)
    assert pagerank(A, personalization=v).isclose(pagerank(A, personalization=where))
    check_pagerank(A, pagerank(A, dangling=v), dangling=v)


def test_parallel_edges_add_up(backend):
    G = nx.MultiDiGraph([(0, 1), (0, 1), (0, 2), (1, 0), (2, 2)])
    found = pagerank(from_networkx(G, weight="weight", backend=backend))
    assert entries(found) == pytest.approx(nx.pagerank(G), rel=1e-9)


def test_arguments_stand_where_networkx_has_them(backend):
    A = matrix(3, [(0, 1), (1, 2), (2, 0), (2, 1)], backend)
    how = (0.5, {0: 1, 1: 3}, 60, 1e-9, {2: 1})
    assert entries(pagerank(A, *how)) == pytest.approx(nx.pagerank(networkx_of(A), *how), abs=1e-8)


def test_no_vertices(backend):
    assert pagerank(Matrix("FP64", 0, 0, backend=backend)).nvals == 0


def test_too_few_iterations(backend):
    A = matrix(4, [(0, 1), (1, 2), (2, 0), (2, 3)], backend)
    with pytest.raises(NotConverged, match=r"by 0\.\d+ .* after 2 iterations\. Allow") as caught:
        pagerank(A, max_iter=2)
    assert isinstance(caught.value, ArithmeticError)
    with pytest.raises(NotConverged, match="after 0"):
        pagerank(A, max_iter=0)


def test_the_loop_is_one_kernel(backend):
    """And gives what it gives statement by statement, in as many iterations."""
    if not backend.capabilities.fuses:
        pytest.skip(f"{backend.name} runs loops in one way")
    for n, edges in (AWKWARD["star"], (40, [(v, v * v % 40) for v in range(39)])):
        A = matrix(n, edges, backend)
        fused = pagerank(A)
        assert loop_name(backend) == GENERATED
        with lagpu.trace() as one:
            pagerank(A)
        with lagpu.trace(fuse=False) as many:
            eager = pagerank(A)
        assert fused.isclose(eager, rel_tol=1e-12)
        said = [
            [(row.level, row.method, row.nvals_in, row.nvals_out, row.edges) for row in t.rows]
            for t in (one, many)
        ]
        assert said[0] == said[1]
        sums = [row for row in one.rows if row.method == "reduce" and row.mode == "fused"]
        assert {row.nvals_out for row in sums} == {1}
        assert one.rows[-1].level + 1 == len(sums) // 2


@pytest.mark.parametrize("name", ["path", "star", "two parts"])
def test_it_takes_as_many_iterations_as_networkx(backend, name):
    A = matrix(*AWKWARD[name], backend)
    with lagpu.eager(), lagpu.trace() as t:
        pagerank(A)
    count = t.rows[-1].level + 1
    for search, error in (
        (pagerank, NotConverged),
        (lambda A, **how: nx.pagerank(networkx_of(A), **how), nx.PowerIterationFailedConvergence),
    ):
        search(A, max_iter=count)
        with pytest.raises(error):
            search(A, max_iter=count - 1)


def test_its_steps(backend):
    A = matrix(*AWKWARD["star"], backend)
    steps = list(lagpu.step(pagerank, A))
    assert set(steps[-1].vectors) >= {"ranks", "new"}
    found = steps[-1].vectors["ranks"].to_dict()
    assert found == pytest.approx(entries(pagerank(A)), rel=1e-12)
    assert any("plus(left)" in s.formula for s in steps)


def walk(n):
    """A walk along 50 edges from vertex 0, that begins anywhere and jumps back to 0."""
    A = matrix(n, [(v, v + 1) for v in range(50)], "cpu")
    return pagerank(A, personalization={0: 1})


@pytest.mark.ci
def test_many_vertices_do_not_end_it():
    """With 1.5 million vertices n * tol is above 1: more than ranks that sum to 1 tell apart."""
    exact = {v: 0.15 * 0.85**v / (1 - 0.85**51) for v in range(51)}
    for n in (51, 1_500_000):
        where, ranks = walk(n).to_coo()
        wrong = dict(zip(where[:51].tolist(), ranks[:51], strict=True))
        apart = sum(abs(exact[v] - wrong[v]) for v in exact) + ranks[51:].sum()
        assert apart < 1e-3 * 0.85 / 0.15, n


def test_a_tolerance_above_the_bound_is_refused_by_the_proof():
    """Ranks all alike are no ranks, however many vertices n * tol allows for."""
    A = matrix(4000, [(v, 0) for v in range(1, 4000)], "cpu")
    check_pagerank(A, pagerank(A, tol=1.0), tol=1.0)
    with pytest.raises(CheckFailed, match=r"a further step .* not below 0\.001"):
        check_pagerank(A, (np.arange(4000), np.full(4000, 1 / 4000)), tol=1.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"alpha": 1.5}, InvalidValue, "alpha 1.5"),
        ({"alpha": float("nan")}, InvalidValue, "alpha nan"),
        ({"personalization": {}}, InvalidValue, "personalization needs"),
        ({"personalization": {0: 0}}, InvalidValue, "personalization needs"),
        ({"dangling": {0: -1, 1: 2}}, InvalidValue, "dangling needs"),
        ({"nstart": {0: float("nan")}}, InvalidValue, "nstart needs"),
        ({"nstart": {9: 1}}, IndexOutOfBound, "9"),
        ({"nstart": Vector("FP64", 3, backend="cpu")}, DimensionMismatch, "3 != 4"),
        ({"nstart": {0.5: 1}}, DomainMismatch, "float64, not integers"),
        ({"nstart": {0: "a"}}, DomainMismatch, "nstart 'a' is not a number"),
        ({"nstart": [1, 2, 3, 4]}, DomainMismatch, "neither a Vector nor a dict"),
        ({"alpha": "a"}, DomainMismatch, "alpha 'a' is not a number"),
        ({"tol": "a"}, DomainMismatch, "tol 'a' is not a number"),
        ({"tol": 0}, InvalidValue, "tol 0 is not above 0"),
        ({"tol": float("nan")}, InvalidValue, "tol nan"),
        ({"max_iter": 1.5}, DomainMismatch, "max_iter"),
        ({"max_iter": -1}, InvalidValue, "pagerank: max_iter -1 < 0"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        pagerank(matrix(4, [(0, 1)], "cpu"), **options)


EXTREME = {  # edges with weights, and the same ratios by ordinary weights
    "overflow": ([1e308, 1e308, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]),
    "denormal": ([5e-324, 1e-323, 5e-324, 5e-324], [1.0, 2.0, 1.0, 1.0]),
    "large and denormal": ([1.7e308, 1.7e308, 5e-324, 5e-324], [1.0, 1.0, 1.0, 1.0]),
    "in one row": ([1e308, 1.0, 1e308, 5e-324], [1.0, 0.0, 1.0, 1.0]),
    "zeros": ([0.0, 0.0, 1e308, 1.7e308], [0.0, 0.0, 1.0, 1.7]),
}


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("name", EXTREME)
def test_extreme_weights(backend, name):
    """With a damping that takes few iterations: weights are what differs."""
    pagerank = partial(lagpu.algorithms.pagerank, alpha=0.3)
    check_pagerank = partial(lagpu.check.check_pagerank, alpha=0.3)
    extreme, plain = EXTREME[name]
    rows, cols = [0, 0, 1, 2], [1, 2, 0, 0]
    A = Matrix.from_coo(rows, cols, extreme, FP64, nrows=4, ncols=4, backend=backend)
    B = Matrix.from_coo(rows, cols, plain, FP64, nrows=4, ncols=4, backend=backend)
    ranks = pagerank(A, tol=1e-12, max_iter=500)
    assert ranks.to_dense().sum() == pytest.approx(1, abs=1e-12)
    assert ranks.isclose(pagerank(B, tol=1e-12, max_iter=500), abs_tol=1e-11)
    check_pagerank(A, ranks, tol=1e-12)


@pytest.mark.parametrize("kind", ["personalization", "dangling", "nstart"])
def test_extreme_weights_of_vertices(backend, kind):
    pagerank = partial(lagpu.algorithms.pagerank, alpha=0.3)
    rows, cols, weights = [0, 0, 1, 2], [1, 2, 0, 0], [0.0, 0.0, 1.0, 1.7]
    A = Matrix.from_coo(rows, cols, weights, FP64, nrows=4, ncols=4, backend=backend)
    ranks = pagerank(A, **{kind: {0: 1.7e308, 1: 1.7e308}})
    assert ranks.isclose(pagerank(A, **{kind: {0: 1, 1: 1}}))
    if kind != "nstart":
        found = {kind: {0: 1.7e308, 1: 1.7e308}}
        lagpu.check.check_pagerank(A, ranks, alpha=0.3, **found)
    ranks = pagerank(A, **{kind: {0: 5e-324}})
    assert ranks.isclose(pagerank(A, **{kind: {0: 1}}))


def test_bad_weights(backend):
    for value, message in ((-1.0, "a weight is -1.0 < 0"), (np.nan, "NaN"), (np.inf, "infinite")):
        A = Matrix.from_coo([0, 1], [1, 0], [1.0, value], backend=backend)
        with pytest.raises(InvalidValue, match=message):
            pagerank(A)
        assert pagerank(A, weight=False).to_dense().tolist() == [0.5, 0.5]
    with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
        pagerank(Matrix("BOOL", 2, 3, backend=backend))


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ([0.5, 0.5, None], "vertex 2: no rank"),
        ([0.5, 0.6, -0.1], "vertex 2: rank -0.1"),
        ([0.5, 0.5, np.nan], "vertex 2: rank nan"),
        ([0.4, 0.4, 0.4], "the sum is 1.2"),
        ([0.3, 0.3, 0.4], "a further step"),
        ([0.3334, 0.3333, 0.3333], "a further step"),
    ],
)
def test_wrong_ranks_are_refused(ranks, message):
    A = matrix(3, [(0, 1), (1, 2), (2, 0)], "cpu")
    kept = [v for v, rank in enumerate(ranks) if rank is not None]
    with pytest.raises(CheckFailed, match=message):
        check_pagerank(A, (np.array(kept), np.array([ranks[v] for v in kept])))
