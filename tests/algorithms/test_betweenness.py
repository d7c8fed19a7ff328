"""Betweenness of vertices and edges against NetworkX and the checker."""

import random

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from graphs import AWKWARD, both_ways, drawn, entries, matrix, networkx_of, random_edges
from hypothesis import strategies as st
from samples import sampled
from strategies import for_all

import lagpu
from lagpu import FP64, Matrix
from lagpu.algorithms import (
    betweenness,
    betweenness_centrality,
    betweenness_estimate,
    edge_betweenness_centrality,
)
from lagpu.check import check_betweenness, check_edge_betweenness
from lagpu.errors import CheckFailed, DimensionMismatch, DomainMismatch, InvalidValue, LimitExceeded


def prove(A, *, directed, k=None, seed=None, normalized=True, endpoints=False, batch=None):
    G = networkx_of(A, directed=directed)
    options = {"k": k, "seed": seed, "normalized": normalized}
    mine = {"endpoints": endpoints, "directed": directed, "batch": batch}
    found = betweenness_centrality(A, **mine, **options)
    assert found.dtype is FP64
    theirs = nx.betweenness_centrality(G, endpoints=endpoints, **options)
    assert entries(found) == pytest.approx(theirs, rel=1e-9, nan_ok=True)
    sources = None
    if k is not None:
        sources = list(nx.utils.create_py_random_state(seed).sample(range(A.nrows), k))
    shown = {"normalized": normalized, "directed": directed, "sources": sources}
    check_betweenness(A, found, endpoints=endpoints, **shown)
    estimate, error = betweenness_estimate(A, **mine, **options)
    assert estimate.to_dense() == pytest.approx(found.to_dense(), rel=1e-12, nan_ok=True)
    check_betweenness(A, estimate, endpoints=endpoints, error=error, **shown)
    assert k not in (None, A.nrows) or not error.to_dense().any()
    edges = edge_betweenness_centrality(A, directed=directed, **options)
    theirs = nx.edge_betweenness_centrality(G, **options)
    rows, cols, values = edges.to_coo()
    assert len(rows) == A.nvals
    for u, v, value in zip(rows.tolist(), cols.tolist(), values.tolist(), strict=True):
        wanted = theirs[u, v] if (u, v) in theirs else theirs[v, u]
        assert value == pytest.approx(wanted, rel=1e-9, abs=1e-15)
    check_edge_betweenness(A, edges, **shown)


@for_all(cpu=60, compiled=6)
def test_random_graphs(backend, draw):
    directed = draw(st.booleans(), label="directed")
    A = drawn(draw, backend, directed=directed, max_n=10)
    prove(
        A,
        directed=directed,
        k=draw(st.none() | st.integers(1, A.nrows), label="k"),
        seed=draw(st.integers(0, 99), label="seed"),
        normalized=draw(st.booleans(), label="normalized"),
        endpoints=draw(st.booleans(), label="endpoints"),
        batch=draw(st.none() | st.integers(1, 5), label="batch"),
    )


@pytest.mark.few_on_sim(3)
@pytest.mark.parametrize("name", sampled(AWKWARD, 2))
def test_awkward_graphs(backend, name):
    n, edges = AWKWARD[name]
    prove(matrix(n, edges, backend), directed=True)
    prove(matrix(n, both_ways(edges), backend), directed=False, normalized=False, batch=4)


def test_whether_it_is_directed_is_seen(backend):
    """Only what is not normalized depends on it; values do not matter."""
    path = Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 3, 0], backend=backend)
    assert betweenness_centrality(path, normalized=False).to_dense().tolist() == [0, 1, 0]
    both = betweenness_centrality(path, normalized=False, directed=True)
    assert both.to_dense().tolist() == [0, 2, 0]
    assert betweenness_centrality(path).isequal(betweenness_centrality(path, directed=True))
    assert edge_betweenness_centrality(path, normalized=False).get(2, 1) == 2


@pytest.mark.parametrize("search", [betweenness_centrality, edge_betweenness_centrality])
def test_edges_without_reverses_are_not_undirected(search, backend):
    A = matrix(4, [(0, 1), (1, 0), (1, 2), (2, 3)], backend)
    with pytest.raises(InvalidValue, match=r"directed=False, but an edge has no reverse\. Give"):
        search(A, directed=False)
    with pytest.raises(InvalidValue, match="has no reverse"):
        betweenness_estimate(A, 2, directed=False)
    assert search(A, directed=True).isequal(search(A))


@pytest.mark.few_on_sim(2)
@pytest.mark.parametrize("batch", [None, 1, 2, 3, 7])
def test_a_larger_sample(backend, batch):
    """Blocks of one, of some with a rest, and one of all."""
    A = matrix(300, both_ways(random_edges(300, 900, 4)), backend)
    theirs = nx.betweenness_centrality(networkx_of(A, directed=False), k=5, seed=7)
    found = betweenness_centrality(A, 5, seed=7, batch=batch)
    assert entries(found) == pytest.approx(theirs, rel=1e-9)


def require_one_device(backend):
    if backend.capabilities.parts is not None:
        pytest.skip("the sub-clusters of a grid share the sources out")


def with_free_bytes(monkeypatch, backend, free):
    asked = backend if backend.device is None else backend.device
    monkeypatch.setattr(type(asked), "free_bytes", lambda self: free)


def test_the_batch_fits_the_memory(backend, monkeypatch):
    require_one_device(backend)
    A = matrix(100, both_ways([(v, v + 1) for v in range(99)]), backend)
    size = 96 * (A.nvals + A.nrows)

    def of(free, count=40):
        with_free_bytes(monkeypatch, backend, free)
        return betweenness.batch_size(A, list(range(60, 60 + count)))

    assert backend.free_bytes() > 1e6
    sources = list(range(60, 80))
    if not backend.capabilities.fuses:
        from lagpu.backends import policies as batch

        assert [of(2 * free) for free in (0, 2 * size - 1, 2 * size)] == [1, 1, 2]
        assert [of(2 * free) for free in (5 * size, 39 * size, 40 * size)] == [4, 32, 40]
        monkeypatch.setattr(batch, "_TOUCHED", 9 * (A.nvals + A.nrows + 61 * 100))
        assert of(10**12) == 8
        assert [len(block) for block in betweenness.batches(A, sources, None)] == [8, 8, 4]
        return
    whole = 100 * 32 * (14 * 8 + 4 * 4 + 4 * 1) + 22 * 100 * 32 // 8  # matrices of 32 rows
    assert [of(whole - 1), of(whole), of(10**12)] == [1, 32, 32]
    assert [of(10**12, 31)] == [1], "a block is no faster if it is not full"
    assert [of(10**12, 90), of(10**12, 31)] == [32, 1], "64 rows are no block of 100 columns"
    from lagpu.backends.gpu.fused import search_many as policy

    monkeypatch.setattr(policy, "_MOST_SHALLOW_LEVELS", 60)  # there are 61 levels
    apart = whole + 39 * 32 * 100
    assert [of(apart - 1), of(apart), of(10**12, 31)] == [16, 32, 16]
    assert [len(block) for block in betweenness.batches(A, sources, None)] == [16, 4]
    monkeypatch.setattr(policy, "MOST_DEGREE", 1)
    assert of(10**12) == 1
    assert [len(block) for block in betweenness.batches(A, sources[:3], None)] == [1, 1, 1]


def test_as_many_rows_apart_as_fit(backend, monkeypatch):
    """Where levels are many: 128, or half as many until there are so many sources and they fit."""
    A = matrix(300, both_ways([(v, v + 1) for v in range(299)]), backend)
    if not backend.capabilities.fuses:
        pytest.skip("cpu searches no rows apart")
    blocks = [len(b) for b in betweenness.batches(A, list(range(150)), None)]
    assert blocks == [128, 22]
    assert [len(b) for b in betweenness.batches(A, list(range(127)), None)] == [64, 63]
    row = 300 * (14 * 8 + 4 * 4 + 4 * 1 + 39)  # of 22 matrices the words are not counted here
    for rows in (128, 64):
        with monkeypatch.context() as patched:
            with_free_bytes(patched, backend, (rows - 1) * row)
            assert betweenness.batch_size(A, list(range(150))) == rows // 2
    theirs = nx.betweenness_centrality(networkx_of(A, directed=False), normalized=False)
    found = betweenness_centrality(A, normalized=False)
    assert entries(found) == pytest.approx(theirs, rel=1e-9)


def test_a_wide_block_where_many_sources_fit(backend):
    """64 rows only where the matrix is at least twice as wide."""
    require_one_device(backend)
    A = matrix(200, both_ways([(0, v) for v in range(1, 200)]), backend)
    blocks = [len(b) for b in betweenness.batches(A, list(range(140)), None)]
    assert blocks == ([64, 64, 12] if backend.capabilities.fuses else [140])


def test_a_block_is_a_matrix_and_one_source_a_vector(backend):
    require_one_device(backend)
    A = matrix(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], backend)
    for batch, shapes in ((1, {(6,)}), (4, {(4, 6), (2, 6)})):
        with lagpu.trace() as t:
            betweenness_centrality(A, batch=batch)
        assert {row.shapes[0] for row in t.rows if "frontier(" in row.formula} == shapes
        assert all("x" not in row.formula for row in t.rows if batch > 1 and row.method == "mxv")


def test_many_paths(backend):
    """A chain of 70 diamonds has 2**70 shortest paths from end to end."""
    edges = [
        e
        for v in range(0, 210, 3)
        for e in ((v, v + 1), (v, v + 2), (v + 1, v + 3), (v + 2, v + 3))
    ]
    A = matrix(211, edges, backend)
    found = betweenness_centrality(A, 1, seed=3, endpoints=True)
    theirs = nx.betweenness_centrality(networkx_of(A), 1, seed=3, endpoints=True)
    assert entries(found) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("search", [betweenness_centrality, edge_betweenness_centrality])
def test_too_many_paths_are_an_error(backend, search):
    """2**1023 paths are reported exactly; 2**1024 are more than FP64 holds, at one vertex alone."""
    for diamonds in (1023, 1024):
        start = 3 * np.arange(diamonds)[:, None]
        edges = (start + np.array([0, 0, 1, 2]), start + np.array([1, 2, 3, 3]))
        A = Matrix.from_coo(*(x.ravel() for x in edges), nrows=3073, ncols=3073, backend=backend)
        seed = next(s for s in range(10**5) if random.Random(s).sample(range(3073), 1) == [0])
        if diamonds == 1023:
            assert np.isfinite(search(A, 1, seed=seed).reduce("max").new().value)
        else:
            with pytest.raises(LimitExceeded, match=r"from vertex 0 .* 1\.8e308 .* seed"):
                search(A, 1, seed=seed)


@pytest.mark.parametrize("endpoints", [False, True])
def test_the_squared_error_is_the_variance_over_all_samples(endpoints):
    """Exactly, for each vertex: among the samples with it, and among those without it."""
    n, k = 6, 3
    A = matrix(n, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 5), (5, 1)], "cpu")
    found = {}
    for seed in range(300):
        sources = frozenset(random.Random(seed).sample(range(n), k))
        if sources not in found:
            both = betweenness_estimate(A, k, seed=seed, endpoints=endpoints)
            found[sources] = tuple(v.to_dense() for v in both)
    assert len(found) == 20
    for v in range(n):
        groups = [list(found.items())]
        if not endpoints:
            groups = [
                [x for x in found.items() if (v in x[0]) is inside] for inside in (False, True)
            ]
        for group in groups:
            values, errors = np.array([(x[v], e[v]) for _, (x, e) in group]).T
            assert (errors**2).mean() == pytest.approx(values.var(), rel=1e-9, abs=1e-15)


def test_errors_of_one_source_and_of_all(backend):
    A = matrix(4, [(0, 1), (1, 2), (2, 3)], backend)
    for error in (betweenness_estimate(A, 1, seed=1)[1], betweenness_estimate(A, 2, seed=1)[1]):
        assert error.nvals == 4
    found, error = betweenness_estimate(A, 1, seed=1)
    chosen = random.Random(1).sample(range(4), 1)
    assert np.isnan(error.to_dense()).tolist() == [True] * 4
    assert np.flatnonzero(np.isnan(found.to_dense())).tolist() == chosen
    assert betweenness_estimate(A, 4)[1].to_dense().tolist() == [0, 0, 0, 0]


def test_no_vertices(backend):
    A = Matrix("BOOL", 0, 0, backend=backend)
    assert betweenness_centrality(A).nvals == edge_betweenness_centrality(A).nvals == 0


@pytest.mark.parametrize("search", [betweenness_centrality, edge_betweenness_centrality])
def test_bad_input(search):
    A = matrix(4, [(0, 1)], "cpu")
    for k, error in (
        (5, InvalidValue),
        (0, InvalidValue),
        (-1, InvalidValue),
        (1.5, DomainMismatch),
        (range(3), InvalidValue),
    ):
        with pytest.raises(error, match="betweenness: k"):
            search(A, k)
    with pytest.raises(InvalidValue, match=r"Give it or sources="):
        search(A, [0, 1])
    for batch, error in ((0, InvalidValue), (-2, InvalidValue), (1.5, DomainMismatch)):
        if search is betweenness_centrality:
            with pytest.raises(error, match="betweenness: batch"):
                search(A, batch=batch)
    for seed, error in ((-1, InvalidValue), (0.5, DomainMismatch)):
        with pytest.raises(error, match="betweenness: seed"):
            search(A, 2, seed=seed)
    with pytest.raises(DimensionMismatch, match="2 rows != 3 columns"):
        search(Matrix("BOOL", 2, 3, backend="cpu"))
    with pytest.raises(DomainMismatch, match="is not a Matrix"):
        search(np.eye(2))


# -------------------------------------------------------------------------- the checkers themselves

# 0 -> 1 -> 3, 0 -> 2 -> 3 -> 4.
EDGES = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]
SUMS = [0, 1, 1, 3, 0]


@pytest.mark.parametrize(
    ("v", "value", "message"),
    [
        (1, None, "vertex 1: no centrality"),
        (1, 2.0, "vertex 1: 2.0, but the sum gives 1.0"),
        (0, 1e-9, "vertex 0: 1e-09, but the sum gives 0.0"),
        (3, 3.00001, "vertex 3: 3.00001"),
        (3, np.nan, "vertex 3: nan"),
    ],
)
def test_wrong_centralities_are_refused(v, value, message):
    A = matrix(5, EDGES, "cpu")
    check_betweenness(A, (np.arange(5), np.array(SUMS, float)), normalized=False)
    check_betweenness(A, (np.arange(5), np.array(SUMS) / 12))
    wrong = dict(enumerate(SUMS)) | {v: value}
    wrong = {v: x for v, x in wrong.items() if x is not None}
    with pytest.raises(CheckFailed, match=message):
        check_betweenness(
            A, (np.array(list(wrong)), np.array(list(wrong.values()), float)), normalized=False
        )


@pytest.mark.parametrize(
    ("v", "value", "message"),
    [
        (1, None, "vertex 1: no error"),
        (3, 0.0, "over the sources that count: vertex 3: 0.0, but"),
        (0, 0.1, "vertex 0: 0.1, but the sum gives 0.0"),
    ],
)
def test_wrong_errors_are_refused(v, value, message):
    A = matrix(5, EDGES, "cpu")
    found, error = betweenness_estimate(A, 3, seed=1)
    how = {"sources": random.Random(1).sample(range(5), 3)}
    assert len(check_betweenness(A, found, error=error, **how)) == 3
    wrong = {k: x for k, x in (entries(error) | {v: value}).items() if x is not None}
    pair = (np.array(list(wrong)), np.array(list(wrong.values())))
    with pytest.raises(CheckFailed, match=message):
        check_betweenness(A, found, error=pair, **how)


def test_wrong_edge_centralities_are_refused():
    A = matrix(5, EDGES, "cpu")
    right = np.array([2.0, 2.0, 3.0, 3.0, 4.0])
    rows, cols = np.array(EDGES).T
    check_edge_betweenness(A, sp.coo_array((right, (rows, cols)), shape=(5, 5)), normalized=False)
    for k in range(5):
        wrong = right.copy()
        wrong[k] += 0.5
        B = sp.coo_array((wrong, (rows, cols)), shape=(5, 5))
        with pytest.raises(CheckFailed, match=f"edge {rows[k]} -> {cols[k]}: {wrong[k]}, but"):
            check_edge_betweenness(A, B, normalized=False)
    fewer = sp.coo_array((right[1:], (rows[1:], cols[1:])), shape=(5, 5))
    with pytest.raises(DimensionMismatch, match="entries are not those of the graph"):
        check_edge_betweenness(A, fewer)
